//! Other processes on the same tree.

use journeyman_testkit::test_path;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_workspace::failpoint::{Failpoint, Fault, TransactionStep};
use journeyman_workspace::{Options, UndoTarget, Workspace, WorkspaceError};

use crate::hostile::again::{role, start};
use crate::support::{Project, session, set, write};

const DIRECTORY: &str = "JM_HOSTILE_DIRECTORY";
const HOLDER: &str = "two_processes_wait_for_each_other_or_are_told_who_has_the_tree";
/// Between two looks at what the other process does.
const LOOK: Duration = Duration::from_millis(2);

fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::sleep(LOOK);
    }
}

/// The other process: it stops in the middle of a change until it may go on.
fn hold(dir: &Path) {
    let (reached, go) = (dir.join("reached"), dir.join("go"));
    let hook = move |step| {
        if step == TransactionStep::Placed && !reached.exists() {
            fs::write(&reached, "").unwrap();
            wait_for(&go);
        }
        Fault::Go
    };
    let blobs = std::sync::Arc::new(journeyman_store::Blobs::open(&dir.join("blobs"), 1 << 30).unwrap());
    let options = Options::new(dir.join("state"), blobs);
    let workspace = Workspace::open_with(&dir.join("tree"), options, Some(Failpoint::new(hook))).unwrap();
    workspace.apply(set(2, vec![write("a", "theirs"), write("b", "theirs")])).unwrap();
}

#[test]
fn two_processes_wait_for_each_other_or_are_told_who_has_the_tree() {
    if role().as_deref() == Some("holder") {
        return hold(&PathBuf::from(std::env::var_os(DIRECTORY).unwrap()));
    }
    for killed in [false, true] {
        let mut project = Project::with(&[("a", "old"), ("b", "old")]);
        let dir = project.dir.path().to_owned();
        let mut holder = start(test_path!(HOLDER), "holder", DIRECTORY, &dir);
        wait_for(&dir.join("reached"));
        // Who doesn't wait is told who has it; reading goes on, and nothing of the open change is
        // touched.
        project.limits.lock_wait = Duration::ZERO;
        let hasty = project.open();
        let busy = hasty.apply(set(1, vec![write("c", "mine")])).unwrap_err();
        let name = format!("pid {}", holder.id());
        assert!(matches!(&busy, WorkspaceError::Busy { holder, .. } if *holder == name), "{busy:?}");
        assert!(matches!(hasty.undo(UndoTarget::LastRun), Err(WorkspaceError::Busy { .. })));
        assert!(matches!(hasty.checkpoint(&session(1), "c"), Err(WorkspaceError::Busy { .. })));
        assert_eq!(project.tree().keys().filter(|path| path.windows(4).any(|w| w == b".jm-")).count(), 2);
        // Who waits comes after.
        project.limits.lock_wait = Duration::from_secs(60);
        let patient = project.open();
        let waiting = std::thread::spawn(move || patient.apply(set(1, vec![write("c", "mine")])));
        if killed {
            holder.kill().unwrap();
        } else {
            fs::write(dir.join("go"), "").unwrap();
        }
        let status = holder.wait().unwrap();
        waiting.join().unwrap().unwrap();
        assert_eq!(status.success(), !killed);
        let left = if killed { "old" } else { "theirs" };
        let texts = [project.text("a"), project.text("b"), project.text("c")];
        assert_eq!(texts, [left, left, "mine"], "killed: {killed}");
        assert_eq!(project.tree().len(), 3);
        // The one that was told is as good as before.
        hasty.apply(set(1, vec![write("c", "mine again")])).unwrap();
    }
}

/// The other order: they come while we are at it.
#[test]
fn a_process_that_comes_second_waits_for_us() {
    let project = Project::with(&[("a", "old"), ("b", "old")]);
    let dir = project.dir.path().to_owned();
    fs::write(dir.join("go"), "").unwrap();
    let their_dir = dir.clone();
    let theirs = std::sync::Mutex::new(None);
    let theirs = std::sync::Arc::new(theirs);
    let slot = theirs.clone();
    let hook = move |step| {
        let mut slot = slot.lock().unwrap();
        if step == TransactionStep::Placed && !their_dir.join("started").exists() {
            fs::write(their_dir.join("started"), "").unwrap();
            *slot = Some(start(test_path!(HOLDER), "holder", DIRECTORY, &their_dir));
            // As long as it takes them to open the lock file, which nobody can see from outside;
            // the sooner we go on, the less they wait, and the outcome is the same.
            std::thread::sleep(LOOK * 50);
        }
        Fault::Go
    };
    let workspace = project.open_failing(Failpoint::new(hook));
    workspace.apply(set(1, vec![write("a", "mine"), write("b", "mine"), write("c", "mine")])).unwrap();
    let mut child = theirs.lock().unwrap().take().unwrap();
    assert!(child.wait().unwrap().success());
    let texts = [project.text("a"), project.text("b"), project.text("c")];
    assert_eq!(texts, ["theirs", "theirs", "mine"]);
    workspace.undo(UndoTarget::Session(session(2))).unwrap();
    assert_eq!(project.text("a"), "mine");
}

/// Two processes that both change the tree again and again: every change happens, none is torn.
#[test]
fn many_changes_of_two_processes_go_one_after_the_other() {
    const TEST: &str = "many_changes_of_two_processes_go_one_after_the_other";
    const ROUNDS: usize = 40;
    let work = |workspace: &Workspace, number: u64| {
        for round in 0..ROUNDS {
            let text = format!("{number} {round}");
            workspace.apply(set(number, vec![write("a", &text), write("b", &text)])).unwrap();
            if round % 8 == 7 {
                workspace.checkpoint(&session(number), "c").unwrap();
            }
        }
    };
    if role().as_deref() == Some("second") {
        let dir = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
        let blobs = std::sync::Arc::new(journeyman_store::Blobs::open(&dir.join("blobs"), 1 << 30).unwrap());
        let mut options = Options::new(dir.join("state"), blobs);
        options.limits.lock_wait = Duration::from_secs(60);
        let workspace = Workspace::open(&dir.join("tree"), options).unwrap();
        return work(&workspace, 2);
    }
    let mut project = Project::with(&[("a", "old"), ("b", "old")]);
    project.limits.lock_wait = Duration::from_secs(60);
    let mut second = start(test_path!(TEST), "second", DIRECTORY, project.dir.path());
    work(&project.open(), 1);
    assert!(second.wait().unwrap().success());
    assert_eq!(project.text("a"), project.text("b"));
    assert_eq!(project.tree().len(), 2);
    let log = fs::read_to_string(project.state().join("journal/log")).unwrap();
    assert_eq!(log.matches("{\"done\":").count(), 2 * ROUNDS);
    let mut ids: Vec<&str> = log.lines().filter(|line| line.contains("{\"done\":")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2 * ROUNDS, "no number was given twice");
}
