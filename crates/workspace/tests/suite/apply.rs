//! Change sets: all or nothing, nothing but what they say, and what they refuse.

use crate::support;
use journeyman_testkit::skip;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use journeyman_protocol::ContentHash;
use journeyman_workspace::{ActualState, Change, ChangeId, ExpectedState, WorkspaceError};
use support::{Project, apply, delete, mode, rel, set_mode, shown, write};

#[test]
fn opening_and_reading_leave_no_trace() {
    let project = Project::with(&[("a", "x")]);
    let workspace = project.open();
    workspace.read(&rel("a"), 10).unwrap();
    workspace.list(journeyman_workspace::ListOptions::default()).unwrap();
    let names: Vec<_> = fs::read_dir(project.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["tree"]);
}

#[test]
fn a_set_of_every_kind_of_change() {
    let project =
        Project::with(&[("keep", "k"), ("edit", "old"), ("gone", "g"), ("from", "moved"), ("run", "#!")]);
    set_mode(&project.root().join("edit"), 0o640);
    set_mode(&project.root().join("from"), 0o755);
    let workspace = project.open();
    let applied = apply(
        &workspace,
        vec![
            write("edit", "new"),
            write("deep/er/made", "m"),
            delete("gone"),
            Change::Rename { from: rel("from"), to: rel("to/here") },
            Change::SetExecutable { path: rel("run"), executable: true },
        ],
    )
    .unwrap();
    assert_eq!(shown(&applied.changes), "+deep/er/made ~edit -from -gone ~run +to/here");
    assert_eq!(applied.id, ChangeId(1));
    let tree: Vec<String> = project.tree().keys().map(|k| String::from_utf8_lossy(k).into_owned()).collect();
    assert_eq!(tree, ["deep", "deep/er", "deep/er/made", "edit", "keep", "run", "to", "to/here"]);
    assert_eq!((project.text("edit"), mode(&project.root().join("edit"))), ("new".into(), 0o640));
    assert_eq!((project.text("to/here"), mode(&project.root().join("to/here"))), ("moved".into(), 0o755));
    assert_eq!(mode(&project.root().join("run")) & 0o111, 0o111);
}

#[test]
fn later_changes_see_earlier_ones() {
    let project = Project::with(&[("a", "1")]);
    let workspace = project.open();
    let hash = ExpectedState::Hash(ContentHash::of(b"2"));
    let changes = vec![
        write("a", "2"),
        Change::Rename { from: rel("a"), to: rel("b") },
        Change::Write { path: rel("b"), content: b"3".to_vec(), expected: hash },
        Change::SetExecutable { path: rel("b"), executable: true },
        Change::Write { path: rel("a"), content: b"again".to_vec(), expected: ExpectedState::Absent },
    ];
    let applied = apply(&workspace, changes).unwrap();
    assert_eq!(shown(&applied.changes), "~a +b");
    assert_eq!((project.text("a"), project.text("b")), ("again".into(), "3".into()));
    assert_eq!(mode(&project.root().join("b")) & 0o100, 0o100);
}

#[test]
fn what_is_already_so_is_not_journaled() {
    let project = Project::with(&[("a", "1")]);
    let workspace = project.open();
    let changes = vec![write("a", "1"), write("b", "2"), delete("b")];
    let applied = apply(&workspace, changes).unwrap();
    assert_eq!((applied.id, applied.changes), (ChangeId::NONE, vec![]));
    assert!(!project.state().join("journal").exists());
}

#[test]
fn refusals_change_nothing() {
    let project = Project::with(&[("a", "1"), ("dir/b", "2")]);
    symlink("/etc", project.root().join("out")).unwrap();
    fs::create_dir(project.root().join(".git")).unwrap();
    symlink(".git", project.root().join("dotgit")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, project.root().join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let before = project.tree();
    let workspace = project.open();
    let one = ContentHash::of(b"1");
    let other = ContentHash::of(b"0");
    let with = |path: &str, expected| Change::Write { path: rel(path), content: b"x".to_vec(), expected };
    type Check = fn(&WorkspaceError) -> bool;
    let table: Vec<(Change, Check)> = vec![
        (with("a", ExpectedState::Absent), |e| {
            matches!(e, WorkspaceError::Conflict { found: ActualState::Content { size: 1, .. }, .. })
        }),
        (with("a", ExpectedState::Hash(other)), |e| {
            matches!(e, WorkspaceError::Conflict { expected: Some(_), .. })
        }),
        (with("new", ExpectedState::Hash(one)), |e| {
            matches!(e, WorkspaceError::Conflict { found: ActualState::Nothing, .. })
        }),
        (Change::Delete { path: rel("a"), expected: ExpectedState::Hash(other) }, |e| {
            matches!(e, WorkspaceError::Conflict { .. })
        }),
        (delete("nope"), |e| matches!(e, WorkspaceError::NotFound { .. })),
        (delete("dir"), |e| matches!(e, WorkspaceError::NotAFile { .. })),
        (with("dir", ExpectedState::Anything), |e| matches!(e, WorkspaceError::NotAFile { .. })),
        (with("pipe", ExpectedState::Anything), |e| matches!(e, WorkspaceError::NotAFile { .. })),
        (with("a/below", ExpectedState::Anything), |e| matches!(e, WorkspaceError::Contradiction { .. })),
        (with("out/passwd", ExpectedState::Anything), |e| matches!(e, WorkspaceError::Outside { .. })),
        (with(".git/config", ExpectedState::Anything), |e| matches!(e, WorkspaceError::Protected { .. })),
        (with("sub/.GIT/config", ExpectedState::Anything), |e| matches!(e, WorkspaceError::Protected { .. })),
        (with("dotgit/config", ExpectedState::Anything), |e| matches!(e, WorkspaceError::Protected { .. })),
        (Change::Rename { from: rel("a"), to: rel("dir/b") }, |e| {
            matches!(e, WorkspaceError::Conflict { .. })
        }),
        (Change::Rename { from: rel("nope"), to: rel("x") }, |e| {
            matches!(e, WorkspaceError::NotFound { .. })
        }),
        (Change::SetExecutable { path: rel("nope"), executable: true }, |e| {
            matches!(e, WorkspaceError::NotFound { .. })
        }),
    ];
    for (change, is_expected) in table {
        let error = apply(&workspace, vec![write("first", "1"), change.clone()]).unwrap_err();
        assert!(is_expected(&error), "{change:?}: {error:?}");
        assert_eq!(project.tree(), before, "{change:?}");
    }
}

#[test]
fn writing_through_a_link_that_stays_inside() {
    let project = Project::with(&[("real/file", "old")]);
    symlink("real", project.root().join("dir")).unwrap();
    symlink("real/file", project.root().join("link")).unwrap();
    let workspace = project.open();
    let applied = apply(&workspace, vec![write("link", "1"), write("dir/new", "2")]).unwrap();
    assert_eq!(shown(&applied.changes), "~real/file +real/new");
    assert_eq!((project.text("real/file"), project.text("real/new")), ("1".into(), "2".into()));
    assert!(project.root().join("link").is_symlink() && project.root().join("dir").is_symlink());
    apply(&workspace, vec![delete("link")]).unwrap();
    assert!(!project.root().join("link").exists() && project.root().join("real/file").exists());
}

#[test]
fn attributes_owner_and_names_survive() {
    let project = Project::new();
    project.write("a", "old");
    let path = project.root().join("a");
    let xattr = rustix::fs::setxattr(&path, "user.jm", b"kept", rustix::fs::XattrFlags::empty());
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
    }
    set_mode(&path, 0o4751);
    let workspace = project.open();
    apply(&workspace, vec![write("a", "new"), write("odd\nname", "n")]).unwrap();
    assert_eq!(mode(&path), 0o4751);
    if root {
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (1234, 4321));
    }
    if xattr.is_ok() {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&path, "user.jm", value.as_mut_slice()).unwrap();
        assert_eq!(&value[..length], b"kept");
    } else {
        skip("extended attributes on this file system");
    }
    assert_eq!(project.text("odd\nname"), "n");
    let bytes = rel(b"not \xff utf8");
    let change = Change::Write { path: bytes.clone(), content: vec![1], expected: ExpectedState::Absent };
    apply(&workspace, vec![change]).unwrap();
    assert_eq!(workspace.read(&bytes, 10).unwrap().size, 1);
}

#[test]
fn the_longest_name_can_be_written() {
    let project = Project::new();
    let name = "n".repeat(255);
    let workspace = project.open();
    apply(&workspace, vec![write(&name, "1")]).unwrap();
    apply(&workspace, vec![write(&name, "2")]).unwrap();
    assert_eq!(project.text(&name), "2");
}

#[test]
fn a_second_workspace_waits_or_is_told_who_holds_the_lock() {
    let mut project = Project::with(&[("a", "1")]);
    project.limits.lock_wait = std::time::Duration::ZERO;
    let workspace = project.open();
    fs::create_dir_all(project.state()).unwrap();
    let lock = fs::File::create(project.state().join("lock")).unwrap();
    fs::write(project.state().join("lock"), "pid 4711\n").unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = apply(&workspace, vec![write("a", "2")]).unwrap_err();
    assert!(error.to_string().contains("pid 4711"), "{error}");
    drop(lock);
    apply(&workspace, vec![write("a", "2")]).unwrap();
}

#[test]
fn a_root_that_vanished_is_named() {
    let project = Project::with(&[("a", "1")]);
    let workspace = project.open();
    fs::remove_dir_all(project.root()).unwrap();
    let gone = |error: WorkspaceError| matches!(error, WorkspaceError::Root { .. });
    assert!(gone(apply(&workspace, vec![write("a", "2")]).unwrap_err()));
    assert!(gone(workspace.read(&rel("a"), 10).unwrap_err()));
    assert!(gone(workspace.command_observer().begin().unwrap_err()));
    assert!(gone(workspace.list(journeyman_workspace::ListOptions::default()).unwrap_err()));
    assert!(!project.root().exists());
}

#[test]
fn a_refusal_of_the_system_is_named_and_nothing_is_left() {
    use journeyman_workspace::failpoint::{Failpoint, Fault, TransactionStep};
    use rustix::io::Errno;
    type Check = fn(&WorkspaceError) -> bool;
    let table: [(Errno, Check); 5] = [
        (Errno::NOSPC, |e| matches!(e, WorkspaceError::NoSpace { .. })),
        (Errno::DQUOT, |e| matches!(e, WorkspaceError::NoSpace { .. })),
        (Errno::ROFS, |e| matches!(e, WorkspaceError::ReadOnly { .. })),
        (Errno::ACCESS, |e| matches!(e, WorkspaceError::Denied { .. })),
        (Errno::IO, |e| matches!(e, WorkspaceError::Io { .. })),
    ];
    for (errno, is_expected) in table {
        for at in [TransactionStep::Stage, TransactionStep::Remove, TransactionStep::Place] {
            let project = Project::with(&[("a", "1"), ("b", "2"), ("c", "3")]);
            let before = project.tree();
            let hook = move |step| if step == at { Fault::Fail(errno) } else { Fault::Go };
            let workspace = project.open_failing(Failpoint::new(hook));
            let changes = vec![write("a", "x"), delete("b"), write("new/d", "y")];
            let error = apply(&workspace, changes).unwrap_err();
            assert!(is_expected(&error), "{errno:?} at {at:?}: {error:?}");
            assert_eq!(project.tree(), before, "{errno:?} at {at:?}");
        }
    }
}

#[test]
fn a_closed_directory_is_named_and_nothing_is_left() {
    let project = Project::with(&[("closed/a", "1"), ("b", "2")]);
    set_mode(&project.root().join("closed"), 0o555);
    let before = project.tree();
    let workspace = project.open();
    let result = apply(&workspace, vec![write("b", "3"), write("closed/a", "2")]);
    if rustix::process::geteuid().is_root() {
        // Root may write everywhere.
        result.unwrap();
    } else {
        let error = result.unwrap_err();
        assert!(matches!(error, WorkspaceError::Denied { .. }), "{error:?}");
        assert_eq!(project.tree(), before);
    }
    set_mode(&project.root().join("closed"), 0o755);
}
