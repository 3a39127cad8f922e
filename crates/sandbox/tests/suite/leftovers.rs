//! Whatever ends a command: no process of it is left, no mount, no control group. The commands are
//! the worst that there are: they leave their session, double-fork, and go on forking and ending,
//! so that no list of them is ever current.
//!
//! `JM_SOAK_RUNS` says how many commands are run in all; a few dozen by default.

use crate::common;
use journeyman_testkit::{rerun_test, skip, wait_until};

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{alive, block_on, project, sandbox};
use journeyman_sandbox::{Outcome, Request};
use tokio_util::sync::CancellationToken;

/// Says how many commands are run.
const RUNS: &str = "JM_SOAK_RUNS";
/// What a killed agent runs at the same time.
const AT_ONCE: usize = 2;

fn runs() -> usize {
    std::env::var(RUNS).map_or(40, |text| text.parse().expect("JM_SOAK_RUNS is a number"))
}

/// A tree of processes that never is the same twice. It says so when it is under way.
fn hoppers(marker: &str) -> String {
    // Each is a process of its own for a moment only: it starts the next, which leaves its session,
    // and ends.
    let hop = format!(
        "hop() {{ trap \"\" TERM HUP INT; (setsid sh -c \"$0\" \"$0\" &) ; exit 0; }}; sleep 0.005; hop # {marker}"
    );
    format!(
        "export HOP='{hop}'\n\
         for i in 1 2; do (setsid sh -c \"$HOP\" \"$HOP\" &); done\n\
         (setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done # {marker}' &)\n\
         echo ready\nsleep 1000 # {marker}\n:"
    )
}

/// How a command is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Itself,
    Timeout,
    Cancel,
    Drop,
}

async fn end_one(box_: &journeyman_sandbox::Sandbox, end: End, marker: &str) {
    let project = project();
    let mut text = hoppers(marker);
    if end == End::Itself {
        text = text.replace("sleep 1000 #", "sleep 0.05; exit 3 #");
    }
    let mut request = Request::for_shell_command(project.path(), &text);
    if end == End::Timeout {
        request.limits.wall = Duration::from_millis(150);
    }
    let cancel = CancellationToken::new();
    let mut running = box_.spawn(request, cancel.clone()).await.unwrap();
    if end != End::Timeout {
        assert_eq!(running.next_chunk().await.unwrap().bytes, b"ready\n");
    }
    let expected = match end {
        End::Itself => Outcome::Exited(3),
        End::Timeout => Outcome::TimedOut,
        End::Cancel => {
            cancel.cancel();
            Outcome::Cancelled
        }
        End::Drop => {
            drop(running);
            while alive(marker) > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            return;
        }
    };
    assert_eq!(running.wait().await.unwrap().outcome, expected);
    assert_eq!(alive(marker), 0, "{end:?}");
}

/// This process's mounts, as its own namespace has them.
fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap()
}

/// Control groups that an agent has.
fn groups(agent: u32) -> Vec<std::path::PathBuf> {
    let prefix = format!("journeyman-{agent}-");
    let mut pending = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn nothing_is_left_of_commands_that_end_or_are_ended() {
    let before = mounts();
    let box_ = sandbox();
    for run in 0..runs() {
        let end = [End::Itself, End::Timeout, End::Cancel, End::Drop][run % 4];
        let marker = format!("jm-hop-{}-{run}", std::process::id());
        block_on(end_one(&box_, end, &marker));
    }
    assert_eq!(mounts(), before);
    assert_eq!(alive(&format!("jm-hop-{}", std::process::id())), 0);
    wait_until("the removal of the groups", || groups(std::process::id()).is_empty());
}

/// Not a test by itself: an agent to be killed, which says when its commands are under way.
#[test]
#[ignore = "run by another test"]
fn agent_to_be_killed() {
    let marker = std::env::var("JM_TEST_MARKER").unwrap();
    let box_ = sandbox();
    block_on(async {
        let mut running = Vec::new();
        for _ in 0..AT_ONCE {
            let project = project().keep();
            let request = Request::for_shell_command(&project, &hoppers(&marker));
            running.push(box_.spawn(request, CancellationToken::new()).await.unwrap());
        }
        for command in &mut running {
            command.next_chunk().await.unwrap();
        }
        println!("under way");
        std::future::pending::<()>().await;
    });
}

fn agent(marker: &str) -> Child {
    let mut agent = rerun_test!("agent_to_be_killed")
        .env("JM_TEST_MARKER", marker)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.contains("under way")));
    agent
}

#[test]
fn nothing_is_left_of_commands_whose_agent_is_killed() {
    let before = mounts();
    // One in eight: each has an agent of its own, which is started and tries its sandbox first.
    for run in 0..runs().div_ceil(8 * AT_ONCE) {
        let marker = format!("jm-killed-{}-{run}", std::process::id());
        let mut agent = agent(&marker);
        assert!(alive(&marker) > AT_ONCE);
        agent.kill().unwrap();
        agent.wait().unwrap();
        wait_until("the end of the killed agent's commands", || alive(&marker) == 0);
        // Whoever starts next takes its groups away, which are empty.
        wait_until("the sweep of its groups", || {
            block_on(
                sandbox()
                    .spawn(Request::for_shell_command(project().path(), "true"), CancellationToken::new()),
            )
            .unwrap();
            groups(agent.id()).is_empty()
        });
    }
    assert_eq!(mounts(), before);
}

/// The process that watches the command from inside is the parent of what has the marker.
fn watcher_of(program: &str, marker: &str) -> rustix::process::Pid {
    let commands = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.starts_with(program.as_bytes()) && String::from_utf8_lossy(&line).contains(marker)
    });
    let parents: Vec<i32> = commands
        .filter_map(|entry| {
            let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
            status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
        })
        .collect();
    rustix::process::Pid::from_raw(*parents.first().unwrap()).unwrap()
}

/// Takes from the watcher what it needs, and sees what is told of it.
fn unwatched(sandbox: &journeyman_sandbox::Sandbox, needs: journeyman_protocol::SandboxNeeds, marker: &str) {
    let project = project();
    let text = format!("touch begun; (setsid sleep 1000.{marker} &); echo ready; sleep 1000; : {marker}");
    let mut request = Request::for_shell_command(project.path(), &text);
    request.needs = needs;
    let completed = block_on(async {
        let mut running = sandbox.spawn(request, CancellationToken::new()).await.unwrap();
        assert_eq!(running.next_chunk().await.unwrap().bytes, b"ready\n");
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let watcher = watcher_of("/bin/sh\0", marker);
        rustix::process::prlimit(Some(watcher), rustix::process::Resource::Nofile, none).unwrap();
        // It looks again when something happens.
        rustix::process::kill_process(watcher, rustix::process::Signal::CHILD).unwrap();
        running.wait().await.unwrap()
    });
    assert_eq!(completed.outcome, Outcome::Signaled(9), "{completed:?}");
    let told =
        completed.denials.iter().any(|denial| denial.certain && denial.what.contains("watching the command"));
    assert!(told, "{completed:?}");
    assert!(project.path().join("begun").exists());
    wait_until("the end of what wasn't watched", || alive(marker) == 0);
}

#[test]
fn a_command_whose_watcher_fails_is_killed_and_was_run() {
    let marker = format!("{}1", std::process::id());
    unwatched(&sandbox(), journeyman_protocol::SandboxNeeds::ALL, &marker);
    let Some((landlock, needs)) = landlock() else { return };
    unwatched(&landlock, needs, &format!("{}2", std::process::id()));
}

#[test]
fn a_helper_that_does_not_end_is_killed_and_told() {
    let Some((landlock, needs)) = landlock() else { return };
    let project = project();
    let marker = format!("{}3", std::process::id());
    let mut request =
        Request::for_shell_command(project.path(), &format!("echo ready; exec sleep 1000.{marker}"));
    request.needs = needs;
    let cancel = CancellationToken::new();
    let completed = block_on(async {
        let mut running = landlock.spawn(request, cancel.clone()).await.unwrap();
        assert_eq!(running.next_chunk().await.unwrap().bytes, b"ready\n");
        wait_until("the start of the program", || alive(&format!("sleep\01000.{marker}")) == 1);
        let watcher = watcher_of("sleep\0", &marker);
        rustix::process::kill_process(watcher, rustix::process::Signal::STOP).unwrap();
        cancel.cancel();
        running.wait().await.unwrap()
    });
    assert_eq!(completed.outcome, Outcome::Cancelled);
    assert!(completed.denials.iter().any(|denial| denial.what.contains("didn't in time")), "{completed:?}");
    wait_until("the end of the command with its helper", || alive(&marker) == 0);
}

/// Back-end 3, and what it is asked for.
fn landlock() -> Option<(journeyman_sandbox::Sandbox, journeyman_protocol::SandboxNeeds)> {
    let tier = journeyman_protocol::SandboxTier::Landlock;
    let settings =
        journeyman_sandbox::SandboxSettings { allow: vec![tier], allow_root: true, ..common::settings() };
    let landlock = journeyman_sandbox::Sandbox::new(settings);
    if let Err(error) = block_on(landlock.enforcement(&tier.max_needs())) {
        skip(error.to_string());
        return None;
    }
    Some((landlock, tier.max_needs()))
}

#[test]
fn nothing_is_left_of_the_unprivileged() {
    common::again_unprivileged(module_path!());
}
