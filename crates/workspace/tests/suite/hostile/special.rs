//! Things that are no ordinary files: pipes, sockets, devices, hard links, files that nobody may
//! change.

use journeyman_testkit::skip;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;

use journeyman_workspace::{Change, UndoTarget, WorkspaceError};
use rustix::fs::{CWD, FileType, Mode, mkfifoat, mknodat};

use crate::hostile::again::set_immutable;
use crate::support::{Project, apply, delete, rel, session, write};

/// Never opened, so that nothing waits for its other end.
#[test]
fn pipes_sockets_and_devices_are_refused_at_once_and_never_waited_for() {
    let project = Project::with(&[("file", "f"), ("dir/file", "f")]);
    let root = project.root();
    mkfifoat(CWD, root.join("pipe"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    let device =
        mknodat(CWD, root.join("device"), FileType::CharacterDevice, Mode::RWXU, rustix::fs::makedev(1, 5));
    let mut names = vec!["pipe", "socket"];
    match device {
        Ok(()) => names.push("device"),
        Err(errno) => println!("no device: {errno}"),
    }
    let workspace = project.open();
    for name in names {
        for change in [
            write(name, "x"),
            delete(name),
            Change::Rename { from: rel(name), to: rel("moved") },
            Change::Rename { from: rel("file"), to: rel(name) },
            Change::SetExecutable { path: rel(name), executable: true },
        ] {
            let error = apply(&workspace, vec![write("file", "changed"), change]).unwrap_err();
            assert!(matches!(error, WorkspaceError::NotAFile { .. }), "{name}: {error:?}");
        }
        assert_eq!(project.text("file"), "f");
    }
    // A command puts a pipe in a file's place, and in a directory's: the undo leaves it and
    // restores the rest.
    workspace.checkpoint(&session(1), "c").unwrap();
    let begun = workspace.command_observer().begin().unwrap();
    fs::remove_file(root.join("file")).unwrap();
    mkfifoat(CWD, root.join("file"), Mode::RWXU).unwrap();
    fs::remove_dir_all(root.join("dir")).unwrap();
    mkfifoat(CWD, root.join("dir"), Mode::RWXU).unwrap();
    project.write("other", "o");
    workspace.command_observer().end(begun, &session(1), None).unwrap();
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    let named: Vec<String> = report.conflicts.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(named, ["dir/file", "file"]);
    assert!(!root.join("other").exists());
}

#[test]
fn a_file_with_several_names_keeps_the_others_as_they_were() {
    let project = Project::with(&[("one", "old")]);
    let root = project.root();
    fs::hard_link(root.join("one"), root.join("two")).unwrap();
    fs::hard_link(root.join("one"), project.dir.path().join("outside")).unwrap();
    let workspace = project.open();
    apply(&workspace, vec![write("one", "new")]).unwrap();
    let outside = || fs::read_to_string(project.dir.path().join("outside")).unwrap();
    assert_eq!(
        (project.text("one"), project.text("two"), outside()),
        ("new".into(), "old".into(), "old".into())
    );
    workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!(
        (project.text("one"), project.text("two"), outside()),
        ("old".into(), "old".into(), "old".into())
    );
    // What a command writes through one name is seen under both.
    fs::remove_file(root.join("one")).unwrap();
    fs::hard_link(root.join("two"), root.join("one")).unwrap();
    let begun = workspace.command_observer().begin().unwrap();
    fs::write(root.join("one"), "by a command").unwrap();
    assert_eq!(workspace.command_observer().end(begun, &session(2), None).unwrap().len(), 2);
    workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((project.text("one"), project.text("two")), ("old".into(), "old".into()));
    assert_eq!(outside(), "by a command", "what is outside isn't ours to restore");
}

#[test]
fn permissions_of_a_file_with_several_names_change_for_one_of_them() {
    let project = Project::with(&[("one", "#!/bin/sh")]);
    let root = project.root();
    let outside = project.dir.path().join("outside");
    fs::hard_link(root.join("one"), &outside).unwrap();
    let workspace = project.open();
    let modes = || {
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o111;
        (mode(&root.join("one")), mode(&outside))
    };
    apply(&workspace, vec![Change::SetExecutable { path: rel("one"), executable: true }]).unwrap();
    assert_eq!((modes(), project.text("one")), ((0o111, 0), "#!/bin/sh".into()));
    workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((modes(), project.text("one")), ((0, 0), "#!/bin/sh".into()));
}

#[test]
fn a_file_or_directory_that_nobody_may_change_stops_the_whole_set() {
    let project = Project::new();
    for name in ["a", "locked", "z", "dir/inner"] {
        project.write(name, "old");
    }
    let locked = [project.root().join("locked"), project.root().join("dir")];
    if let Err(error) = set_immutable(&locked[0], true) {
        return skip(format!("files can't be made immutable: {error}"));
    }
    set_immutable(&locked[1], true).unwrap();
    struct Unlock<'a>(&'a [std::path::PathBuf]);
    impl Drop for Unlock<'_> {
        fn drop(&mut self) {
            self.0.iter().for_each(|path| drop(set_immutable(path, false)));
        }
    }
    let unlock = Unlock(&locked);
    let workspace = project.open();
    let before = project.tree();
    for change in [
        write("locked", "new"),
        delete("locked"),
        Change::Rename { from: rel("locked"), to: rel("moved") },
        Change::SetExecutable { path: rel("locked"), executable: true },
        write("dir/inner", "new"),
        write("dir/new", "new"),
        write("dir/below/new", "new"),
        delete("dir/inner"),
        Change::Rename { from: rel("a"), to: rel("dir/a") },
    ] {
        let what = format!("{change:?}");
        let changes = vec![write("a", "new"), write("made/new", "n"), change, delete("z")];
        let error = apply(&workspace, changes).unwrap_err();
        assert!(
            matches!(error, WorkspaceError::Denied { .. } | WorkspaceError::NotFound { .. }),
            "{what}: {error:?}"
        );
        assert_eq!(project.tree(), before, "{what}: {error}");
    }
    // An undo that comes upon it restores nothing, and all of it afterwards.
    drop(unlock);
    apply(&workspace, vec![write("a", "new"), write("locked", "new"), delete("z")]).unwrap();
    let after = project.tree();
    set_immutable(&locked[0], true).unwrap();
    let _unlock = Unlock(&locked);
    let error = workspace.undo(UndoTarget::LastRun).unwrap_err();
    assert!(matches!(error, WorkspaceError::Denied { .. }), "{error:?}");
    assert_eq!(project.tree(), after);
    set_immutable(&locked[0], false).unwrap();
    workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!(project.tree(), before);
}

/// A file that is rewritten all the time, in place and by renaming: every look at the tree ends,
/// and what is kept of it is something that it was.
#[test]
fn a_file_that_never_rests_keeps_nobody_waiting() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let project = Project::with(&[("busy", "aaaaaaaa"), ("calm", "c")]);
    let workspace = project.open();
    let stop = AtomicBool::new(false);
    let root = project.root();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0_u8;
            while !stop.load(Ordering::Relaxed) {
                round = round.wrapping_add(1);
                let text = [b'a' + round % 26; 8];
                if round.is_multiple_of(2) {
                    fs::write(root.join("busy"), text).unwrap();
                } else {
                    fs::write(root.join("busy.new"), text).unwrap();
                    fs::rename(root.join("busy.new"), root.join("busy")).unwrap();
                }
            }
        });
        let _stopping = crate::hostile::swaps::Stopping(&stop);
        for round in 0..200 {
            let begun = workspace.command_observer().begin().unwrap();
            fs::write(root.join("calm"), round.to_string()).unwrap();
            let changed = workspace.command_observer().end(begun, &session(1), None).unwrap();
            assert!(changed.iter().any(|change| change.path == rel("calm")), "round {round}");
        }
    });
    let before = fs::metadata(root.join("busy")).unwrap().ino();
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!(project.text("calm"), "c");
    println!("{before}: {:?}", report.conflicts);
}
