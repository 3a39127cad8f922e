//! The process that kills, and looks at what is left.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use journeyman_agent::{CutOffPolicy, resume};
use journeyman_protocol::RunOutcome;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;

use crate::crash::checks;
use crate::crash::child::{Fault, Kill, PLAN, Plan, Said};
use crate::crash::place::{Place, now, session, settings};
use crate::crash::task::Script;

/// A child that has not ended by then hangs: a task takes a second or two.
const HANGS: Duration = Duration::from_secs(90);
/// The killer of all: a task that was killed that often and never ended.
const MOST_CHILDREN: usize = 20;
const SIGKILL: i32 = 9;

/// All places: in one directory, so that they share the sandbox's memory.
static PLACES: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = tempfile::Builder::new().prefix("jm-crash-").tempdir().unwrap();
    dir.keep().canonicalize().unwrap()
});

/// How one child is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As the plan says, by itself.
    Planned(Kill),
    /// Killed by its parent after this time.
    After(Duration),
}

/// A place in a directory of its own, removed with it.
pub(crate) struct Scene {
    dir: Option<TempDir>,
    pub(crate) place: Place,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("task-").tempdir_in(&*PLACES).unwrap();
        let place = Place(dir.path().to_owned());
        place.make();
        Self { dir: Some(dir), place }
    }

    /// Leaves the directory for a person to look at, where something is wrong.
    pub(crate) fn mind(&mut self, problems: &mut Vec<String>, what: &str) {
        if !problems.is_empty() {
            let kept = self.dir.take().map(TempDir::keep).unwrap_or_default();
            problems.push(format!("{what}: the place is kept as {}", kept.display()));
        }
    }
}

/// Removes what all places share.
pub(crate) fn clean_up() {
    std::fs::remove_dir_all(&*PLACES).ok();
}

/// A plan for a child that isn't disturbed.
pub(crate) fn plan(place: &Path, kill: Kill) -> Plan {
    Plan { place: place.to_owned(), kill, fault: Fault::None, hold_at: None, go_on: false }
}

/// Starts a child.
pub(crate) fn spawn(plan: &Plan) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .env(PLAN, serde_json::to_string(plan).unwrap())
        .env("JM_CRASH_PLACE", &plan.place)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Waits for a child; one that hangs is killed, and says so.
pub(crate) fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let most = Timespec { tv_sec: HANGS.as_secs().cast_signed(), tv_nsec: 0 };
    // A signal of another test's child may come in between.
    let ended = retry_on_intr(|| poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&most)));
    if ended.unwrap() == 0 {
        child.kill().ok();
        child.wait().ok();
        return Err("a child hangs".to_owned());
    }
    Ok(child.wait().unwrap())
}

/// What the last child said.
pub(crate) fn said(place: &Place) -> Result<Said, String> {
    let text =
        std::fs::read(place.0.join("said.json")).map_err(|error| format!("it said nothing: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

/// Runs one child as told. True when it got to its own end.
fn one(place: &Place, end: End) -> Result<bool, String> {
    let kill = if let End::Planned(kill) = end { kill } else { Kill::Never };
    let mut child = spawn(&plan(&place.0, kill));
    if let End::After(time) = end {
        std::thread::sleep(time);
        child.kill().ok();
    }
    let status = wait(&mut child)?;
    match status.signal() {
        Some(SIGKILL) => Ok(false),
        None if status.success() => Ok(true),
        _ => Err(format!("a child ended with {status}")),
    }
}

/// What an undisturbed run leaves behind.
pub(crate) struct Reference {
    pub(crate) tree: BTreeMap<String, String>,
    pub(crate) said: Said,
    pub(crate) took: Duration,
}

/// The undisturbed run, once.
pub(crate) fn reference() -> &'static Reference {
    static REFERENCE: OnceLock<Reference> = OnceLock::new();
    REFERENCE.get_or_init(|| {
        let scene = Scene::new();
        let started = Instant::now();
        assert_eq!(one(&scene.place, End::Planned(Kill::Never)), Ok(true));
        let took = started.elapsed();
        let said = said(&scene.place).unwrap();
        assert_eq!((said.outcome, &said.error), (Some(RunOutcome::Verified), &None), "{said:?}");
        let tree = scene.place.tree();
        let problems = examine(&scene.place, &tree);
        assert_eq!(problems, Vec::<String>::new(), "without a crash");
        Reference { tree, said, took }
    })
}

/// Cuts a task off as told, one child after the other, then lets it come to its end; gives what is
/// wrong then.
pub(crate) fn cut_off(ends: &[End]) -> Vec<String> {
    let reference = reference();
    let mut scene = Scene::new();
    let mut problems = story(&scene.place, ends);
    problems.extend(examine(&scene.place, &reference.tree));
    scene.mind(&mut problems, &format!("{ends:?}"));
    problems
}

fn story(place: &Place, ends: &[End]) -> Vec<String> {
    let all = ends.iter().copied().chain(std::iter::repeat(End::Planned(Kill::Never)));
    for end in all.take(MOST_CHILDREN) {
        match one(place, end) {
            Ok(false) => {
                let unforeseen = unforeseen(place);
                if !unforeseen.is_empty() {
                    return unforeseen;
                }
            }
            Ok(true) => {
                let said = match said(place) {
                    Ok(said) => said,
                    Err(problem) => return vec![problem],
                };
                let ended = matches!(said.outcome, Some(RunOutcome::Verified) | None);
                return if said.error.is_none() && ended { Vec::new() } else { vec![format!("{said:?}")] };
            }
            Err(problem) => return vec![problem],
        }
    }
    vec!["it never ended".to_owned()]
}

/// What was done although the log doesn't know that it was meant to be.
fn unforeseen(place: &Place) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(checks::effects_without_intent(place))
}

/// What is wrong with a place whose task has ended.
pub(crate) fn examine(place: &Place, tree: &BTreeMap<String, String>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut problems = runtime.block_on(async {
        let mut problems = checks::problems(place, tree).await;
        let entries = place
            .log()
            .read(&session(), journeyman_protocol::Seq::START, usize::MAX)
            .await
            .unwrap_or_default();
        let clock = journeyman_agent::Clock::new(now);
        let parts = place.parts(place.log(), place.workspace(None), std::sync::Arc::new(Script), clock);
        match resume(parts, settings(), session(), CutOffPolicy::Continue).await {
            Ok(handle) => {
                problems.extend(
                    checks::subscribed(|filter, since| handle.subscribe(filter, since), &entries).await,
                );
                handle.close().await;
            }
            Err(error) => problems.push(format!("it can't be opened again: {error}")),
        }
        problems
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    problems.extend(left_processes(place));
    problems
}

/// Processes that outlive their session. A killed one takes the kernel a moment.
fn left_processes(place: &Place) -> Vec<String> {
    let started = Instant::now();
    loop {
        let left = checks::processes(&place.0);
        if left.is_empty() || started.elapsed() > Duration::from_secs(10) {
            return left.into_iter().map(|process| format!("a process is left: {process}")).collect();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
