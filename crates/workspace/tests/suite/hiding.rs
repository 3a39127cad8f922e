//! A command can't hide what it did: not by permissions, not by a tag, not by a name.

use crate::support;
use journeyman_testkit::test_path;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use journeyman_store::Blobs;
use journeyman_workspace::failpoint::{Failpoint, Fault, TransactionStep};
use journeyman_workspace::{ListOptions, Options, UndoTarget, Workspace, WorkspaceError};
use support::{Project, apply, is_ordinary_user, mode, session, set_mode, shown, write};

const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

fn command(workspace: &Workspace, work: impl FnOnce()) -> Result<String, WorkspaceError> {
    let before = workspace.command_observer().begin().unwrap();
    work();
    Ok(shown(&workspace.command_observer().end(before, &session(1), None)?))
}

#[test]
fn a_directory_that_a_command_made_unreadable_is_opened_again() {
    if !is_ordinary_user(test_path!("a_directory_that_a_command_made_unreadable_is_opened_again")) {
        return;
    }
    let project = Project::with(&[("src/a", "1"), ("src/deep/b", "1"), ("named/c", "1"), ("z", "1")]);
    let before = project.tree();
    let workspace = project.open();
    let root = project.root();
    let changed = command(&workspace, || {
        project.write("src/a", "evil");
        project.write("src/deep/b", "evil");
        project.write("src/deep/new", "evil");
        project.write("named/c", "evil");
        project.write("made/deep/x", "evil");
        for (path, mode) in
            [("src/deep", 0o000), ("src", 0o000), ("named", 0o444), ("made/deep", 0), ("made", 0o300)]
        {
            set_mode(&root.join(path), mode);
        }
    });
    assert_eq!(changed.unwrap(), "+made/deep/x ~named/c ~src/a ~src/deep/b +src/deep/new");
    assert_eq!((mode(&root.join("src")), mode(&root.join("src/deep"))), (0o755, 0o755));
    assert_eq!(workspace.undo(UndoTarget::LastRun).unwrap().conflicts, vec![]);
    assert_eq!(project.tree(), before);
}

#[test]
fn what_the_user_keeps_unreadable_stays_so() {
    if !is_ordinary_user(test_path!("what_the_user_keeps_unreadable_stays_so")) {
        return;
    }
    let project = Project::with(&[("private/a", "1"), ("b", "1")]);
    let private = project.root().join("private");
    set_mode(&private, 0o000);
    let changed = command(&project.open(), || project.write("b", "2"));
    assert_eq!((changed.unwrap(), mode(&private)), ("~b".to_owned(), 0));
    set_mode(&private, 0o700);
}

#[test]
fn a_file_that_a_command_made_unreadable_fails_no_undo() {
    if !is_ordinary_user(test_path!("a_file_that_a_command_made_unreadable_fails_no_undo")) {
        return;
    }
    let project = Project::with(&[("a", "1"), ("b", "1")]);
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let changed = command(&workspace, || {
        project.write("a", "2");
        project.write("b", "2");
        set_mode(&project.root().join("a"), 0o000);
    });
    assert_eq!(changed.unwrap(), "~a ~b");
    let diff = workspace.history().diff_since(&checkpoint, 1 << 20).unwrap().text;
    assert!(diff.contains("a/a") && diff.contains("+2"), "{diff}");
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((shown(&report.restored), report.conflicts.len()), ("~b".to_owned(), 1));
    assert!(report.conflicts[0].1.contains("can't be read"));
}

#[test]
fn a_tag_hides_nothing_in_a_directory_that_was_there() {
    let project = Project::with(&[("src/a", "1"), ("src/sub/b", "1")]);
    let before = project.tree();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let changed = command(&workspace, || {
        project.write("src/CACHEDIR.TAG", TAG);
        project.write("src/a", "evil");
        project.write("src/new", "evil");
        project.write("cache/CACHEDIR.TAG", TAG);
        project.write("cache/made", "x");
    });
    assert_eq!(changed.unwrap(), "+src/CACHEDIR.TAG ~src/a +src/new");
    let changed = command(&workspace, || project.write("src/sub/b", "evil too"));
    assert_eq!(changed.unwrap(), "~src/sub/b", "nor from a later command");
    let told = "+src/CACHEDIR.TAG ~src/a +src/new ~src/sub/b";
    assert_eq!(shown(&project.open().history().changes_since(&checkpoint).unwrap()), told);
    workspace.undo(UndoTarget::LastRun).unwrap();
    fs::remove_dir_all(project.root().join("cache")).unwrap();
    assert_eq!(project.tree(), before);
}

#[test]
fn the_name_of_a_short_lived_sibling_hides_nothing() {
    let project = Project::with(&[("a", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("a", "2")]).unwrap();
    let name = ".a.jm-0123456789abcdef";
    let changed = command(&workspace, || {
        project.write(name, "evil");
        project.write(".d.jm-0123456789abcdef/x", "evil");
    });
    assert_eq!(changed.unwrap(), "+.a.jm-0123456789abcdef +.d.jm-0123456789abcdef/x");
    let listing = workspace.list(ListOptions::default()).unwrap();
    assert!(listing.paths.contains(&support::rel(name)));
    workspace.undo(UndoTarget::LastRun).unwrap();
    let left: Vec<_> = project.tree().into_keys().collect();
    assert_eq!(left, [b"a".to_vec()]);
}

#[test]
fn siblings_of_an_open_transaction_are_seen_by_nobody() {
    let project = Project::with(&[("a", "1"), ("dir/b", "1")]);
    let other = Arc::new(project.open());
    let looks = Arc::new(AtomicUsize::new(0));
    let (count, beside) = (looks.clone(), other.clone());
    let begun = Arc::new(Mutex::new(Vec::new()));
    let begins = begun.clone();
    let root = project.root();
    let hook = Failpoint::new(move |step| {
        if matches!(step, TransactionStep::Staged | TransactionStep::Placed | TransactionStep::Clean) {
            let names = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name());
            let hidden = names.filter(|name| name.to_string_lossy().contains(".jm-")).count();
            count.fetch_add(hidden, Ordering::Relaxed);
            let paths = beside.list(ListOptions::default()).unwrap().paths;
            assert!(paths.iter().all(|path| !path.to_string().contains(".jm-")), "{step:?}: {paths:?}");
            // A command that begins now waits until the tree is at rest.
            let beside = beside.clone();
            begins
                .lock()
                .unwrap()
                .push(std::thread::spawn(move || beside.command_observer().begin().unwrap().file_count()));
        }
        Fault::Go
    });
    apply(&project.open_failing(hook), vec![write("a", "2"), write("dir/b", "2")]).unwrap();
    assert!(looks.load(Ordering::Relaxed) > 0, "there were siblings to be seen");
    let after = other.command_observer().begin().unwrap().file_count();
    for begun in std::mem::take(&mut *begun.lock().unwrap()) {
        assert_eq!(begun.join().unwrap(), after);
    }
    assert_eq!((project.text("a"), project.text("dir/b")), ("2".into(), "2".into()));
}

#[test]
fn a_file_that_we_write_ourselves_is_no_part_of_the_tree() {
    let project = Project::with(&[("a", "1"), ("out.log", "before"), ("sub/b", "1")]);
    // Known from a time when it was a file like any other.
    let before = project.open().checkpoint(&support::session(1), "before").unwrap();
    let options = Options { own_files: vec![project.root().join("out.log")], ..project.options() };
    let workspace = Workspace::open(&project.root(), options).unwrap();
    let changed = command(&workspace, || {
        project.write("a", "2");
        project.write("out.log", "what we print");
        project.write("sub/out.log", "another's");
    });
    assert_eq!(changed.unwrap(), "~a +sub/out.log");
    assert_eq!(shown(&workspace.history().changes_since(&before).unwrap()), "~a +sub/out.log");
    let refused = apply(&workspace, vec![write("out.log", "x")]).unwrap_err();
    assert!(matches!(refused, WorkspaceError::Own { .. }), "{refused}");
    workspace.undo(UndoTarget::To(before)).unwrap();
    assert_eq!((project.text("a"), project.text("out.log")), ("1".into(), "what we print".into()));
}

#[test]
fn our_own_directories_in_the_tree_are_no_part_of_it() {
    let project = Project::with(&[("a", "1"), ("sub/proj/b", "1")]);
    let own = project.root().join("deep/.state/journeyman");
    let blobs = Arc::new(Blobs::open(&own.join("blobs"), 1 << 30).unwrap());
    let options = Options { own_dir: Some(own.clone()), ..Options::new(own.join("projects/x"), blobs) };
    let workspace = Workspace::open(&project.root(), options).unwrap();
    let beside = "sub/.journeyman-work-0123456789abcdef/layer/b";
    let changed = command(&workspace, || {
        project.write("a", "2");
        project.write(beside, "a copy's");
        project.write("deep/.state/journeyman/sessions.db", "sessions");
        project.write("sub/.journeyman-work-notours/c", "c");
    });
    assert_eq!(changed.unwrap(), "~a +sub/.journeyman-work-notours/c");
    for path in ["deep/.state/journeyman/trusted", "deep/.state/journeyman/projects/x/journal/log", beside] {
        let refused = apply(&workspace, vec![write(path, "x")]).unwrap_err();
        assert!(matches!(refused, WorkspaceError::Own { .. }), "{path}: {refused}");
    }
    assert_eq!(workspace.own_directories(), [support::rel("deep/.state/journeyman")]);
    workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((project.text("a"), project.text(beside)), ("1".into(), "a copy's".into()));
    assert!(own.join("blobs").is_dir() && own.join("sessions.db").is_file());
    workspace.redo(None).unwrap();
    assert_eq!(project.text("a"), "2", "what an undo needs is still there");
}
