//! What else can go wrong: a disk that is full, fails or can't be written, a clock that jumps, a
//! second process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use journeyman_agent::{AgentError, CutOffPolicy, resume};
use journeyman_protocol::RunOutcome;
use journeyman_store::StoreError;

use crate::crash::child::{Fault, Kill, PLAN, Plan, Said};
use crate::crash::parallel::each;
use crate::crash::parent::{Scene, examine, plan, reference, said, spawn, wait};
use crate::crash::place::{now, session, settings};
use crate::crash::task::Script;

blocking_cases![
    a_full_disk,
    a_read_only_log,
    a_disk_that_is_really_full,
    a_disk_that_fails_to_flush,
    a_clock_that_jumps_back,
    a_second_process_is_refused,
];

/// The writes of the suite from which on something fails: in the first steps, in the midst, at the
/// end.
const FROM: [usize; 6] = [4, 9, 16, 27, 38, 52];
/// No wait for another process takes this long.
const HANGS: Duration = Duration::from_secs(60);

/// What a child says that met a fault, went on when it was gone, and got to its end.
fn told(said: &Said) -> Vec<String> {
    let mut problems = said.error.clone().into_iter().collect::<Vec<_>>();
    if said.failed != 1 {
        problems.push(format!("{} tasks ended with an error", said.failed));
    }
    if said.storage_failures == 0 {
        problems.push("nobody was told that the log can't be written".to_owned());
    }
    // Where it stopped at the very end, nothing is left to change, and so to verify.
    if !matches!(said.outcome, Some(RunOutcome::Verified | RunOutcome::Unverified)) {
        problems.push(format!("it ended with {:?}: {}", said.outcome, said.summary));
    }
    problems
}

fn with_fault(fault: Fault) -> Vec<String> {
    let mut scene = Scene::new();
    let mut child = spawn(&Plan { fault, ..plan(&scene.place.0, Kill::Never) });
    let mut problems = match wait(&mut child) {
        Ok(status) if status.success() => said(&scene.place).map_or_else(|why| vec![why], |said| told(&said)),
        other => vec![format!("{other:?}")],
    };
    problems.extend(examine(&scene.place, &reference().tree));
    scene.mind(&mut problems, &format!("{fault:?}"));
    problems
}

fn none_wrong(found: Vec<Vec<String>>) {
    let wrong: Vec<String> =
        found.into_iter().filter(|it| !it.is_empty()).map(|it| it.join("\n    ")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn a_full_disk() {
    none_wrong(each(&FROM, |from| with_fault(Fault::Full { from: *from })));
}

fn a_read_only_log() {
    none_wrong(each(&FROM[1..4], |from| with_fault(Fault::ReadOnly { from: *from })));
}

/// A disk of a few megabytes, nearly all of which something else takes until it is needed.
fn a_disk_that_is_really_full() {
    // What is left for the log: its first entries, half of them, nearly all.
    let room = [200_usize, 420, 640];
    let found = each(&room, |room| {
        let mut scene = Scene::new();
        let fault = Fault::Real { room: room * 1024 };
        let log = scene.place.0.join("log");
        std::fs::create_dir_all(&log).unwrap();
        let plan = Plan { fault, ..plan(&scene.place.0, Kill::Never) };
        let output = on_a_small_disk(&log, &plan);
        let mut problems = match output {
            Err(missing) => {
                journeyman_testkit::skip(format_args!("no small disk to be had: {missing}"));
                return Vec::new();
            }
            Ok(()) => said(&scene.place).map_or_else(|why| vec![why], |said| told(&said)),
        };
        // The log is gone with the disk; the child looked at it itself.
        if scene.place.tree() != reference().tree {
            problems.push("the tree is another one".to_owned());
        }
        scene.mind(&mut problems, &format!("{fault:?}"));
        problems
    });
    none_wrong(found);
}

/// Runs a child whose log lies on a disk of 4 MiB; the error is what is missing for that.
fn on_a_small_disk(log: &Path, plan: &Plan) -> Result<(), String> {
    let script = "mount -t tmpfs -o size=4m disk \"$1\" || exit 77; shift; exec \"$@\"";
    // Root needs no namespace of users, and anybody else must stay who they are: the sandbox maps
    // them once more.
    let flags: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["--mount"],
        false => &["--user", "--map-current-user", "--keep-caps", "--mount"],
    };
    let output = Command::new("unshare")
        .args(flags)
        .args(["sh", "-c", script, "sh"])
        .arg(log)
        .arg(std::env::current_exe().unwrap())
        .env(PLAN, serde_json::to_string(plan).unwrap())
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&output.stderr))
        }
        Ok(output) => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(error.to_string()),
    }
}

/// From some write on every flush fails, for good: the process can only give up. Another one goes
/// on.
fn a_disk_that_fails_to_flush() {
    let found = each(&FROM, |from| {
        let mut scene = Scene::new();
        let fault = Fault::Flush { from: *from };
        let mut problems = Vec::new();
        let mut child = spawn(&Plan { fault, ..plan(&scene.place.0, Kill::Never) });
        match wait(&mut child) {
            Ok(status) if status.success() => match said(&scene.place) {
                Ok(said) if said.summary == "no filter" => {
                    journeyman_testkit::skip("no seccomp filter to be had");
                    return Vec::new();
                }
                // A message that can't be written is refused.
                Ok(said) if said.error.is_some() || said.outcome == Some(RunOutcome::Error) => {
                    if said.storage_failures == 0 {
                        problems.push(format!("nobody was told: {said:?}"));
                    }
                }
                other => problems.push(format!("it went on: {other:?}")),
            },
            other => problems.push(format!("{other:?}")),
        }
        // What is on the disk is whole, and the disk is sound for another process.
        let mut child = spawn(&Plan { go_on: true, ..plan(&scene.place.0, Kill::Never) });
        match wait(&mut child) {
            Ok(status) if status.success() => match said(&scene.place) {
                Ok(said) if said.error.is_none() && said.outcome == Some(RunOutcome::Verified) => {}
                other => problems.push(format!("the second: {other:?}")),
            },
            other => problems.push(format!("the second: {other:?}")),
        }
        problems.extend(examine(&scene.place, &reference().tree));
        scene.mind(&mut problems, &format!("{fault:?}"));
        problems
    });
    none_wrong(found);
}

/// A day back, in the midst; before a kill, after it.
fn a_clock_that_jumps_back() {
    let jumps = [(Some(0), None), (Some(30), None), (Some(150), None), (None, Some(0)), (Some(60), Some(40))];
    let found = each(&jumps, |(first, second)| {
        let mut scene = Scene::new();
        let mut problems = Vec::new();
        let kill = if second.is_some() { Kill::AfterWrite(25) } else { Kill::Never };
        let jumps = |at: &Option<usize>| at.map_or(Fault::None, |at| Fault::Clock { at });
        let mut child = spawn(&Plan { fault: jumps(first), ..plan(&scene.place.0, kill) });
        let mut ended = wait(&mut child);
        if second.is_some() {
            let mut child = spawn(&Plan { fault: jumps(second), ..plan(&scene.place.0, Kill::Never) });
            ended = wait(&mut child);
        }
        match (ended, said(&scene.place)) {
            (Ok(status), Ok(said)) if status.success() && said.outcome == Some(RunOutcome::Verified) => {}
            other => problems.push(format!("{other:?}")),
        }
        problems.extend(examine(&scene.place, &reference().tree));
        scene.mind(&mut problems, &format!("{first:?} {second:?}"));
        problems
    });
    none_wrong(found);
}

/// While one process has the session another one is refused, and told who has it. The first isn't
/// disturbed.
fn a_second_process_is_refused() {
    let scene = Scene::new();
    let mut child = spawn(&Plan { hold_at: Some(20), ..plan(&scene.place.0, Kill::Never) });
    let started = Instant::now();
    while !scene.place.0.join("held").exists() {
        assert!(started.elapsed() < HANGS && child.try_wait().unwrap().is_none(), "it was never held");
        std::thread::sleep(Duration::from_millis(2));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(async {
        let clock = journeyman_agent::Clock::new(now);
        let place = &scene.place;
        let parts = place.parts(place.log(), place.workspace(None), std::sync::Arc::new(Script), clock);
        resume(parts, settings(), session(), CutOffPolicy::Continue).await.err()
    });
    let who = format!("crash test, process {}", child.id());
    match refused {
        Some(AgentError::Store(StoreError::Leased { holder, .. })) => assert_eq!(holder, who),
        other => panic!("{other:?}"),
    }
    std::fs::write(scene.place.0.join("go"), "").unwrap();
    assert!(wait(&mut child).unwrap().success());
    assert_eq!(said(&scene.place).unwrap().outcome, Some(RunOutcome::Verified));
    assert_eq!(examine(&scene.place, &reference().tree), Vec::<String>::new());
}
