//! Undo of what commands did to ignored files.

use std::fs;

use journeyman_protocol::CallId;
use journeyman_workspace::UndoTarget;

use crate::support::{Project, session, shown};

#[test]
fn ignored_files_that_a_command_changes_or_deletes_come_back() {
    let mut project = Project::with(&[
        (".gitignore", ".env\n*.sqlite\n*.bin\n/data\n/target\n"),
        ("a", "1"),
        (".env", "KEY=1"),
        ("a.sqlite", "rows"),
        ("sub/b.sqlite", "rows"),
        ("large.bin", "larger than is kept"),
        ("data/deep/x", "x"),
        ("target/debug/y", "y"),
    ]);
    project.limits.kept_file_bytes = 10;
    let workspace = project.open();
    let root = project.root();
    for round in 0..2 {
        let before = workspace.command_observer().begin().unwrap();
        assert_eq!(
            before.not_undoable_files().iter().map(ToString::to_string).collect::<Vec<_>>(),
            [".gitignore", "large.bin"]
        );
        project.write(".env", "KEY=2");
        project.write("new.sqlite", "made by the command");
        fs::remove_file(root.join("a.sqlite")).unwrap();
        fs::remove_dir_all(root.join("sub")).unwrap();
        fs::remove_file(root.join("large.bin")).unwrap();
        fs::remove_dir_all(root.join("data")).unwrap();
        fs::remove_dir_all(root.join("target")).unwrap();
        let changes = workspace.command_observer().end(before, &session(round), None).unwrap();
        assert_eq!(shown(&changes), "~.env -a.sqlite -data/deep/x -large.bin -sub/b.sqlite");
        let report = workspace.undo(UndoTarget::Session(session(round))).unwrap();
        assert_eq!(shown(&report.restored), "~.env +a.sqlite +data/deep/x +sub/b.sqlite");
        assert_eq!(report.conflicts.len(), 1, "{:?}", report.conflicts);
        assert_eq!(report.conflicts[0].0.to_string(), "large.bin");
        let texts =
            [".env", "a.sqlite", "sub/b.sqlite", "data/deep/x", "new.sqlite"].map(|path| project.text(path));
        assert_eq!(texts, ["KEY=1", "rows", "rows", "x", "made by the command"]);
        fs::remove_file(root.join("new.sqlite")).unwrap();
        project.write("large.bin", "larger than is kept");
        project.write("target/debug/y", "y");
    }
}

#[test]
fn an_ignored_file_that_only_got_a_new_time_is_none_that_changed() {
    let project = Project::with(&[(".gitignore", ".env\n"), (".env", "KEY=1")]);
    let workspace = project.open();
    let before = workspace.command_observer().begin().unwrap();
    project.write(".env", "KEY=1");
    assert_eq!(workspace.command_observer().end(before, &session(1), None).unwrap(), []);
    assert!(workspace.undo(UndoTarget::Session(session(1))).is_err());
}

#[test]
fn an_ignored_file_changed_beside_a_command_of_another_session_is_named_as_neithers_own() {
    let project = Project::with(&[(".gitignore", "*.db\n"), ("one.db", "1"), ("two.db", "2")]);
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let calls = [1, 2].map(|number| {
        (
            number,
            workspace
                .command_observer()
                .begin_call(&session(number), &CallId::new(format!("{number}")))
                .unwrap(),
        )
    });
    project.write("one.db", "by the first");
    project.write("two.db", "by the second");
    for (number, before) in calls {
        workspace
            .command_observer()
            .end(before, &session(number), Some(&CallId::new(format!("{number}"))))
            .unwrap();
    }
    for number in [1, 2] {
        let told = workspace.history().ignored_changes_since(&checkpoint, &session(number)).unwrap();
        let told = told.iter().map(|it| (it.change.path.to_string(), it.is_undoable, it.is_shared));
        let expected = ["one.db", "two.db"].map(|path| (path.to_owned(), false, true));
        assert_eq!(told.collect::<Vec<_>>(), expected, "session {number}");
    }
}

#[test]
fn what_commands_did_to_ignored_files_is_told() {
    let project = Project::with(&[(".gitignore", ".env\n"), (".env", "KEY=1"), ("a", "1")]);
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let before = workspace.command_observer().begin().unwrap();
    fs::remove_file(project.root().join(".env")).unwrap();
    project.write("a", "2");
    workspace.command_observer().end(before, &session(1), None).unwrap();
    let told = workspace.history().ignored_changes_since(&checkpoint, &session(1)).unwrap();
    assert_eq!(shown(&told.iter().map(|it| it.change.clone()).collect::<Vec<_>>()), "-.env");
    assert!(told[0].is_undoable && !told[0].is_shared);
    let of_another = workspace.history().ignored_changes_since(&checkpoint, &session(2)).unwrap();
    assert_eq!(of_another, [], "each session is told of what its own commands did");
    workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!(workspace.history().ignored_changes_since(&checkpoint, &session(1)).unwrap(), []);
}
