//! Cut off at every step, failed at every step: the tree is as before or as after, never between.

use crate::support;
use journeyman_testkit::test_path;

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_protocol::{CallId, UnixMillis};
use journeyman_workspace::failpoint::{Failpoint, Fault};
use journeyman_workspace::{Change, UndoTarget, Workspace, WorkspaceError};
use rustix::io::Errno;
use support::{
    Model, Project, apply, delete, is_ordinary_user, mode, rel, session, set, set_mode, shown, write,
};

/// A hook that lets `steps` pass and then does `fault` once; and the count of the steps it saw.
fn after(steps: usize, fault: Fault) -> (Failpoint, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let hook = move |_| if counter.fetch_add(1, Ordering::Relaxed) == steps { fault } else { Fault::Go };
    (Failpoint::new(hook), seen)
}

fn project() -> Project {
    let files =
        [("edit", "old"), ("gone", "g"), ("from", "f"), ("run", "#!"), ("dir/in/x", "x"), ("dir/y", "y")];
    let project = Project::with(&files);
    symlink("edit", project.root().join("link")).unwrap();
    set_mode(&project.root().join("edit"), 0o600);
    project
}

fn changes() -> Vec<Change> {
    vec![
        write("link", "new"),
        write("made/deep/file", "m"),
        delete("gone"),
        Change::Rename { from: rel("from"), to: rel("made/moved") },
        Change::SetExecutable { path: rel("run"), executable: true },
        write("dir/y", "Y"),
    ]
}

fn no_leftovers(model: &Model) {
    let left: Vec<_> = model.keys().filter(|path| path.windows(4).any(|part| part == b".jm-")).collect();
    assert!(left.is_empty(), "left over: {left:?}");
}

/// Runs `work` once to the end to learn its steps, then cut off and failed at each of them.
fn at_every_step(prepare: impl Fn(&Project), work: impl Fn(&Workspace) -> Result<(), WorkspaceError>) {
    let whole = project();
    prepare(&whole);
    let before = whole.tree();
    let (hook, count) = after(usize::MAX, Fault::Go);
    work(&whole.open_failing(hook)).unwrap();
    let done = whole.tree();
    assert_ne!(before, done);
    no_leftovers(&done);
    let steps = count.load(Ordering::Relaxed);
    assert!(steps > 10, "{steps} steps");
    let mut ends = [0, 0];
    for step in 0..steps {
        let project = project();
        prepare(&project);
        let (hook, _) = after(step, Fault::Cut);
        let cut = work(&project.open_failing(hook)).unwrap_err();
        assert!(matches!(cut, WorkspaceError::CutOff(_)), "{cut:?}");
        let workspace = project.open();
        let tree = project.tree();
        assert!(tree == before || tree == done, "cut at step {step} ({cut}): {tree:#?}");
        no_leftovers(&tree);
        ends[usize::from(tree == done)] += 1;
        // Whatever was decided, opening again doesn't change it, and the work can go on.
        drop(project.open());
        assert_eq!(project.tree(), tree);
        if tree == before {
            work(&workspace).unwrap();
            assert_eq!(project.tree(), done, "again after a cut at step {step}");
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
    for step in 0..steps {
        let project = project();
        prepare(&project);
        let (hook, _) = after(step, Fault::Fail(Errno::NOSPC));
        let workspace = project.open_failing(hook);
        match work(&workspace) {
            Ok(()) => assert_eq!(project.tree(), done, "failed too late at step {step}"),
            Err(error) => {
                let known = matches!(error, WorkspaceError::NoSpace { .. } | WorkspaceError::State { .. });
                assert!(known, "{error:?}");
                assert_eq!(project.tree(), before, "failed at step {step}");
                work(&workspace).unwrap();
                assert_eq!(project.tree(), done, "again after a failure at step {step}");
            }
        }
    }
}

#[test]
fn a_change_set() {
    at_every_step(|_| {}, |workspace| workspace.apply(set(1, changes())).map(drop));
}

#[test]
fn permissions_of_a_file_with_several_names() {
    let prepare = |project: &Project| {
        fs::hard_link(project.root().join("run"), project.dir.path().join("outside")).unwrap();
    };
    let work = |workspace: &Workspace| {
        let outside = workspace.root().parent().unwrap().join("outside");
        let before = fs::metadata(&outside).unwrap().permissions();
        let applied = workspace.apply(set(
            1,
            vec![Change::SetExecutable { path: rel("run"), executable: true }, write("edit", "new")],
        ));
        assert_eq!(fs::metadata(&outside).unwrap().permissions(), before);
        applied.map(drop)
    };
    at_every_step(prepare, work);
}

#[test]
fn an_undo() {
    let prepare = |project: &Project| {
        let workspace = project.open();
        apply(&workspace, changes()).unwrap();
        let begun = workspace.command_observer().begin().unwrap();
        fs::remove_dir_all(project.root().join("dir")).unwrap();
        project.write("dir", "a file now");
        fs::remove_file(project.root().join("link")).unwrap();
        project.write("link/was/here", "x");
        workspace.command_observer().end(begun, &session(1), None).unwrap();
    };
    at_every_step(prepare, |workspace| workspace.undo(UndoTarget::LastRun).map(drop));
}

#[test]
fn an_undo_restores_the_tree_exactly() {
    let project = project();
    let before = project.tree();
    let workspace = project.open();
    apply(&workspace, changes()).unwrap();
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((project.tree(), report.conflicts), (before, vec![]));
}

/// Between the crash and the next start somebody edits one of the files: it stays, the others go
/// back.
#[test]
fn edits_made_after_a_crash_stay() {
    let steps = 40;
    for step in 0..steps {
        let project = project();
        let (hook, _) = after(step, Fault::Cut);
        if apply(&project.open_failing(hook), changes()).is_ok() {
            break;
        }
        fs::write(project.root().join("edit"), "the user's").unwrap();
        fs::create_dir_all(project.root().join("gone-too")).unwrap();
        drop(project.open());
        assert_eq!(project.text("edit"), "the user's", "step {step}");
        let tree = project.tree();
        no_leftovers(&tree);
        let (gone, made) =
            (tree.contains_key(b"gone".as_slice()), tree.contains_key(b"made/deep/file".as_slice()));
        assert_ne!(gone, made, "step {step}: neither before nor after");
    }
}

/// A process that only waits for the lock doesn't take a living one's open change for a crash.
#[test]
fn an_open_change_of_a_living_process_is_left_alone() {
    let project = project();
    let (hook, _) = after(8, Fault::Cut);
    apply(&project.open_failing(hook), changes()).unwrap_err();
    let torn = project.tree();
    let lock = fs::File::open(project.state().join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    drop(project.open());
    assert_eq!(project.tree(), torn);
    drop(lock);
    drop(project.open());
    assert_ne!(project.tree(), torn);
}

/// The journal survives being cut anywhere: what is whole counts, what is torn never happened.
#[test]
fn a_journal_torn_at_any_byte_opens() {
    let project = project();
    let workspace = project.open();
    apply(&workspace, vec![write("edit", "1")]).unwrap();
    let log = project.state().join("journal/log");
    let first = fs::read(&log).unwrap().len();
    apply(&workspace, vec![write("edit", "2")]).unwrap();
    let whole = fs::read(&log).unwrap();
    for cut in (first..whole.len()).step_by(7) {
        fs::write(&log, &whole[..cut]).unwrap();
        let workspace = project.open();
        let text = project.text("edit");
        assert!(text == "2" || text == "1", "cut at {cut}: {text}");
        apply(&workspace, vec![write("edit", "2")]).unwrap();
        assert_eq!(project.text("edit"), "2");
    }
}

const DIRECTORIES: [&str; 3] = ["closed", "open", "open/inner"];

fn modes(project: &Project) -> (Model, [u32; 3]) {
    (project.tree(), DIRECTORIES.map(|dir| mode(&project.root().join(dir))))
}

/// A project in which a command opens a directory, works in it, and closes others.
fn with_directories() -> (Project, Workspace) {
    let project = Project::with(&[("open/inner/a", "1"), ("closed/b", "2"), ("closed/c", "3")]);
    set_mode(&project.root().join("closed"), 0o500);
    let workspace = project.open();
    (project, workspace)
}

fn set_permissions(project: &Project) {
    let root = project.root();
    set_mode(&root.join("closed"), 0o755);
    project.write("closed/b", "by the command");
    fs::remove_file(root.join("closed/c")).unwrap();
    project.write("open/inner/a", "by the command");
    set_mode(&root.join("open/inner"), 0o500);
    set_mode(&root.join("open"), 0o500);
}

#[test]
fn permissions_of_directories_go_back_with_the_files_in_them_or_not_at_all() {
    if !is_ordinary_user(test_path!(
        "permissions_of_directories_go_back_with_the_files_in_them_or_not_at_all"
    )) {
        return;
    }
    let call = CallId::new("shell");
    for step in 0.. {
        let (project, workspace) = with_directories();
        let before = modes(&project);
        let begun = workspace.command_observer().begin_call(&session(1), &call).unwrap();
        set_permissions(&project);
        let told = workspace.command_observer().end(begun, &session(1), Some(&call)).unwrap();
        assert_eq!(shown(&told), "~closed ~closed/b -closed/c ~open ~open/inner ~open/inner/a");
        let done = modes(&project);
        let (hook, _) = after(step, Fault::Cut);
        let undone = project.open_failing(hook).undo(UndoTarget::LastRun);
        let again = project.open();
        let now = modes(&project);
        let is_over = undone.is_ok();
        match undone {
            Ok(report) => {
                let restored = "~closed ~closed/b +closed/c ~open ~open/inner ~open/inner/a";
                assert_eq!((shown(&report.restored).as_str(), report.conflicts), (restored, vec![]));
                assert_eq!(now, before);
                assert_eq!(shown(&again.redo(None).unwrap().restored), shown(&told));
                assert_eq!(modes(&project), done);
            }
            Err(error) => {
                assert!(matches!(error, WorkspaceError::CutOff(_)), "{error}");
                assert!(now == before || now == done, "cut at {step}: {now:?}");
            }
        }
        DIRECTORIES.into_iter().rev().for_each(|dir| set_mode(&project.root().join(dir), 0o755));
        if is_over {
            assert!(step > 10, "{step} steps");
            return;
        }
    }
}

#[test]
fn permissions_of_directories_stay_where_somebody_set_them_since() {
    let (project, workspace) = with_directories();
    let call = CallId::new("shell");
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let before = modes(&project);
    // A command that is cut off: they go back with what else it did.
    let begun = workspace.command_observer().begin_call(&session(1), &call).unwrap();
    set_permissions(&project);
    drop(begun);
    let done = modes(&project);
    let recovered =
        workspace.recovery().recover_call(&checkpoint, &session(1), &call, UnixMillis(u64::MAX)).unwrap();
    assert_eq!(shown(&recovered.restored), "~closed ~closed/b +closed/c ~open ~open/inner ~open/inner/a");
    assert_eq!(modes(&project), before);
    workspace.redo(None).unwrap();
    assert_eq!(modes(&project), done);
    set_mode(&project.root().join("open"), 0o711);
    let report = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    let reason = "its permissions were changed since; kept as they are".to_owned();
    assert_eq!(report.conflicts, [(rel("open"), reason)]);
    assert_eq!(modes(&project).1, [0o500, 0o711, 0o755]);
    // Another session's edit in between isn't taken for the command's.
    workspace.apply(set(2, vec![write("open/new", "n")])).unwrap();
    let begun = workspace.command_observer().begin_call(&session(3), &call).unwrap();
    set_mode(&project.root().join("open"), 0o755);
    assert_eq!(shown(&workspace.command_observer().end(begun, &session(3), Some(&call)).unwrap()), "~open");
    workspace.undo(UndoTarget::Session(session(3))).unwrap();
    assert_eq!(modes(&project).1, [0o500, 0o711, 0o755]);
}
