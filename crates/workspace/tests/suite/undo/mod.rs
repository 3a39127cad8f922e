//! Checkpoints, commands, diffs and undo, as a user of one project sees them.

mod damaged;
mod ignored;
mod sessions;
use crate::support;
use journeyman_testkit::skip;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use journeyman_protocol::{CallId, Clock, RelPath, UnixMillis};
use journeyman_workspace::failpoint::{Failpoint, Fault, TransactionStep};
use journeyman_workspace::{CheckpointId, UndoReport, UndoTarget, Workspace, WorkspaceError};
use support::{Project, apply, delete, mode, rel, session, set, set_mode, shown, tick, write};

fn command(workspace: &Workspace, number: u64, work: impl FnOnce()) -> String {
    let before = workspace.command_observer().begin().unwrap();
    work();
    let call = CallId::new("shell");
    shown(&workspace.command_observer().end(before, &session(number), Some(&call)).unwrap())
}

fn undo(workspace: &Workspace) -> UndoReport {
    workspace.undo(UndoTarget::LastRun).unwrap()
}

fn conflicts(report: &UndoReport) -> Vec<String> {
    report.conflicts.iter().map(|(path, _)| path.to_string()).collect()
}

#[test]
fn a_run_of_edits_and_commands_goes_back_whole() {
    let project = Project::with(&[
        ("a", "1"),
        ("b", "2"),
        ("old/c", "3"),
        (".gitignore", "ignored\n"),
        ("ignored", "i"),
    ]);
    symlink("a", project.root().join("link")).unwrap();
    fs::create_dir(project.root().join("empty")).unwrap();
    let before = project.tree();
    let workspace = project.open();
    apply(&workspace, vec![write("a", "edited"), write("new/deep/file", "n")]).unwrap();
    let changed = command(&workspace, 1, || {
        project.write("a", "by command");
        project.write("made/x", "x");
        fs::remove_dir_all(project.root().join("old")).unwrap();
        fs::remove_file(project.root().join("link")).unwrap();
        symlink("b", project.root().join("link")).unwrap();
        set_mode(&project.root().join("b"), 0o755);
        fs::remove_dir(project.root().join("empty")).unwrap();
    });
    assert_eq!(changed, "~a ~b ~link +made/x -old/c");
    apply(&workspace, vec![write("a", "last"), delete("made/x")]).unwrap();
    let report = undo(&workspace);
    assert_eq!(shown(&report.restored), "~a ~b ~link -new/deep/file +old/c");
    assert_eq!(report.conflicts, vec![]);
    assert_eq!(project.tree(), before);
    let nothing = workspace.undo(UndoTarget::LastRun).unwrap_err();
    assert!(matches!(nothing, WorkspaceError::NothingToUndo { session: None }));
}

#[test]
fn what_the_user_changed_since_stays() {
    let project = Project::with(&[("mine", "1"), ("theirs", "1"), ("moded", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("mine", "2"), write("theirs", "2"), write("moded", "2"), write("new", "n")])
        .unwrap();
    project.write("theirs", "the user's");
    project.write("new", "the user's too");
    set_mode(&project.root().join("moded"), 0o600);
    let report = undo(&workspace);
    assert_eq!(shown(&report.restored), "~mine ~moded");
    assert_eq!(conflicts(&report), ["new", "theirs"]);
    assert_eq!((project.text("mine"), project.text("theirs")), ("1".into(), "the user's".into()));
    assert_eq!(mode(&project.root().join("moded")), 0o600, "the mode was the user's, not the run's");
    // Once the user has taken their change back, the rest of the undo can be had.
    project.write("theirs", "2");
    fs::remove_file(project.root().join("new")).unwrap();
    let report = undo(&workspace);
    assert_eq!((shown(&report.restored), conflicts(&report)), ("~theirs".into(), vec![]));
    assert_eq!(project.text("theirs"), "1");
    assert!(workspace.undo(UndoTarget::LastRun).is_err());
}

#[test]
fn a_file_that_goes_back_in_part_is_not_said_to_be_kept() {
    let project = Project::with(&[("a", "1"), ("b", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("a", "2"), write("b", "2")]).unwrap();
    project.write("a", "the user's");
    project.write("b", "the user's");
    // The run goes on from there, in one of them.
    apply(&workspace, vec![write("a", "the user's, edited")]).unwrap();
    let report = undo(&workspace);
    assert_eq!((shown(&report.restored), project.text("a")), ("~a".into(), "the user's".into()));
    let part = "put back in part: it was changed between the run's changes, and is as it was then";
    let expected = [("a", part), ("b", "it was changed after the run; kept as it is")];
    assert_eq!(report.conflicts, expected.map(|(path, why)| (rel(path), why.to_owned())));
    let again = undo(&workspace);
    assert_eq!((shown(&again.restored), project.text("a")), (String::new(), "the user's".into()));
    assert_eq!(conflicts(&again), ["a", "b"]);
    let redone = workspace.redo(None).unwrap();
    assert_eq!((shown(&redone.restored), project.text("a")), ("~a".into(), "the user's, edited".into()));
}

#[test]
fn sessions_are_taken_back_by_themselves_newest_first() {
    let project = Project::with(&[("a", "0"), ("b", "0")]);
    let workspace = project.open();
    workspace.apply(set(1, vec![write("a", "1")])).unwrap();
    workspace.apply(set(2, vec![write("b", "2")])).unwrap();
    workspace.apply(set(1, vec![write("a", "3")])).unwrap();
    workspace.apply(set(3, vec![write("a", "4")])).unwrap();
    let report = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!((conflicts(&report), project.text("a")), (vec!["a".to_owned()], "4".to_owned()));
    assert_eq!(undo(&workspace).sessions[0], session(3));
    assert_eq!(project.text("a"), "3");
    assert_eq!(undo(&workspace).sessions[0], session(1));
    assert_eq!(project.text("a"), "0");
    assert_eq!(undo(&workspace).sessions[0], session(2));
    assert_eq!(project.text("b"), "0");
    let error = workspace.undo(UndoTarget::Session(session(9))).unwrap_err();
    assert!(matches!(error, WorkspaceError::NothingToUndo { session: Some(_) }));
}

#[test]
fn undo_works_from_another_process_and_files_and_directories_may_change_places() {
    let project = Project::with(&[("was-file", "f"), ("was-dir/x", "x"), ("was-dir/sub/y", "y")]);
    let before = project.tree();
    command(&project.open(), 1, || {
        fs::remove_file(project.root().join("was-file")).unwrap();
        project.write("was-file/inside/z", "z");
        fs::remove_dir_all(project.root().join("was-dir")).unwrap();
        project.write("was-dir", "now a file");
    });
    let report = undo(&project.open());
    assert_eq!(report.conflicts, vec![]);
    assert_eq!(project.tree(), before);
}

#[test]
fn a_directory_with_the_users_file_in_it_stays() {
    let project = Project::with(&[("a", "1")]);
    let workspace = project.open();
    command(&workspace, 1, || project.write("made/x", "x"));
    project.write("made/users", "u");
    undo(&workspace);
    assert!(!project.root().join("made/x").exists());
    assert_eq!(project.text("made/users"), "u");
}

#[test]
fn same_size_changes_in_the_same_tick_are_seen() {
    let project = Project::with(&[("a", "0000")]);
    let workspace = project.open();
    for round in 1..60 {
        let text = format!("{round:04}");
        assert_eq!(command(&workspace, 1, || project.write("a", &text)), "~a", "round {round}");
    }
    undo(&workspace);
    assert_eq!(project.text("a"), "0000");
}

#[test]
fn touching_and_building_are_no_changes() {
    let project = Project::with(&[("a", "1"), (".gitignore", "target/\n")]);
    let workspace = project.open();
    workspace.checkpoint(&session(1), "before").unwrap();
    let log = fs::metadata(project.state().join("journal/log")).unwrap().len();
    let changed = command(&workspace, 1, || {
        project.write("a", "1");
        project.write("target/made", "x");
        project.write("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
        project.write("cache/made", "x");
        project.write("node_modules/p/index.js", "x");
        project.write(".git/HEAD", "x");
    });
    assert_eq!(changed, "");
    assert_eq!(fs::metadata(project.state().join("journal/log")).unwrap().len(), log);
}

#[test]
fn new_ignore_rules_neither_add_nor_delete() {
    let project = Project::with(&[("seen", "s"), ("hidden/big", "h"), (".gitignore", "hidden\n")]);
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let changed = command(&workspace, 1, || project.write(".gitignore", "seen\n"));
    assert_eq!(changed, "~.gitignore");
    assert_eq!(shown(&workspace.history().changes_since(&checkpoint).unwrap()), "~.gitignore");
    undo(&workspace);
    assert_eq!((project.text("hidden/big"), project.text("seen")), ("h".into(), "s".into()));
}

#[test]
fn to_a_checkpoint_what_the_user_added_to_a_file_that_came_and_went_is_given_back() {
    for is_new in [true, false] {
        let project = Project::with(&[("kept", "k")]);
        if !is_new {
            project.write("file", "as it was\n");
        }
        let workspace = project.open();
        let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
        apply(&workspace, vec![write("file", "by the session\n")]).unwrap();
        project.write("file", "by the session\nby the user\n");
        command(&workspace, 1, || match is_new {
            true => fs::remove_file(project.root().join("file")).unwrap(),
            false => project.write("file", "as it was\n"),
        });
        let report = workspace.undo(UndoTarget::To(checkpoint)).unwrap();
        assert_eq!(project.text("file"), "by the session\nby the user\n");
        assert_eq!(conflicts(&report), ["file"]);
    }
}

#[test]
fn an_ignored_file_that_a_command_of_the_run_changed_isnt_said_to_be_changed_after_it() {
    let project = Project::with(&[(".gitignore", "*.log\n"), ("sub/.ignore", "/x\n"), ("a", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("my.log", "1\n"), write("sub/x", "x"), write("a", "edited")]).unwrap();
    command(&workspace, 1, || {
        project.write("my.log", "2\n");
        project.write("sub/x", "by the command");
    });
    project.write("a", "the user's");
    let report = undo(&workspace);
    // Logs are what tools make again: nobody keeps what commands do to them.
    let unknown = "it isn't as the run's last edit left it, and as it is ignored it can't be told whether a command \
                   of the run or somebody else changed it; kept as it is";
    let expected = [("a", "it was changed after the run; kept as it is"), ("my.log", unknown)];
    assert_eq!(report.conflicts, expected.map(|(path, why)| (rel(path), why.to_owned())));
    assert_eq!(shown(&report.restored), "-sub/x");
}

#[test]
fn files_over_the_bounds_are_named_and_reported() {
    let mut project = Project::with(&[("big", "0123456789"), ("small", "1")]);
    project.limits.kept_file_bytes = 8;
    let workspace = project.open();
    let begun = workspace.command_observer().begin().unwrap();
    assert_eq!(begun.not_undoable_files(), [rel("big")]);
    project.write("big", "9876543210 and more");
    project.write("small", "2");
    let changed = workspace.command_observer().end(begun, &session(1), None).unwrap();
    assert_eq!(shown(&changed), "~big ~small");
    let report = undo(&workspace);
    assert_eq!((shown(&report.restored), conflicts(&report)), ("~small".into(), vec!["big".into()]));
    assert!(report.conflicts[0].1.contains("too large"));
    // An edit of such a file still is all or nothing; taking it back isn't possible.
    apply(&workspace, vec![write("big", "a whole new text")]).unwrap();
    assert_eq!(project.text("big"), "a whole new text");
    project.limits.max_files = 1;
    assert!(matches!(
        project.open().command_observer().begin(),
        Err(WorkspaceError::TooManyFiles { limit: 1 })
    ));
}

#[test]
fn a_checkpoint_is_told_from_the_tree_in_any_process() {
    let project = Project::with(&[("a", "1"), ("b", "2")]);
    let first = project.open().checkpoint(&session(1), &"long label ".repeat(100)).unwrap();
    project.write("c", "3");
    fs::remove_file(project.root().join("a")).unwrap();
    let workspace = project.open();
    assert_eq!(shown(&workspace.history().changes_since(&first).unwrap()), "-a +c");
    let second = workspace.checkpoint(&session(1), "second").unwrap();
    assert_eq!(workspace.checkpoint(&session(1), "again").unwrap(), second, "nothing happened since");
    assert_eq!(workspace.history().changes_since(&second).unwrap(), vec![]);
    project.write("b", "other");
    assert_eq!(shown(&workspace.history().changes_since(&second).unwrap()), "~b");
    assert_eq!(shown(&project.open().history().changes_since(&first).unwrap()), "-a ~b +c");
    let unknown = workspace.history().changes_since(&CheckpointId(99)).unwrap_err();
    assert!(matches!(unknown, WorkspaceError::UnknownCheckpoint { .. }));
}

#[test]
fn a_damaged_cache_or_lost_blobs_cost_time_and_not_truth() {
    let project = Project::with(&[("a", "1"), ("b", "2")]);
    project.open().checkpoint(&session(1), "x").unwrap();
    let cache = project.state().join("stat-cache");
    let mut bytes = fs::read(&cache).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&cache, bytes).unwrap();
    let workspace = project.open();
    assert_eq!(command(&workspace, 1, || project.write("a", "2")), "~a");
    // With the blobs gone, what can't be restored is a conflict, and the tree is left alone.
    for entry in fs::read_dir(project.dir.path().join("blobs")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        }
    }
    let report = undo(&workspace);
    assert_eq!((report.restored.len(), conflicts(&report)), (0, vec!["a".to_owned()]));
    let workspace = project.open();
    assert_eq!(command(&workspace, 2, || project.write("b", "3")), "~b");
    undo(&workspace);
    assert_eq!(project.text("b"), "2", "a cache whose blobs are gone isn't believed");
}

#[test]
fn git_takes_the_diff() {
    let git = |dir: &std::path::Path, arguments: &[&str], input: &str| {
        let child = Command::new("git")
            .current_dir(dir)
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.ok().map(|mut child| {
            use std::io::Write;
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        })
    };
    let project = Project::with(&[
        ("plain", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"),
        ("no newline", "a\nb"),
        ("crlf", "a\r\nb\r\n"),
        ("gone", "x\n"),
        ("emptied", "x\n"),
        ("run", "#!/bin/sh\n"),
        ("caf\u{e9}", "\u{fc}\n"),
        ("odd\n\"name\\", "q\n"),
        ("cr\rin line", "one\rtwo\nthree\n"),
    ]);
    symlink("plain", project.root().join("link")).unwrap();
    symlink("plain", project.root().join("became-file")).unwrap();
    if git(&project.root(), &["init", "-q"], "").is_none() {
        return skip("git");
    }
    let copy = project.dir.path().join("copy");
    let status = Command::new("cp").args(["-a"]).arg(project.root()).arg(&copy).status().unwrap();
    assert!(status.success());
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    project.write("plain", "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13");
    project.write("no newline", "a\nb\nc\n");
    project.write("crlf", "a\r\nB\r\n");
    project.write("emptied", "");
    project.write("made/new", "n\n");
    project.write("made/empty", "");
    project.write("caf\u{e9}", "\u{f6}\n");
    project.write("odd\n\"name\\", "r\n");
    project.write("cr\rin line", "one\rTWO\nthree\n");
    fs::remove_file(project.root().join("gone")).unwrap();
    set_mode(&project.root().join("run"), 0o755);
    for link in ["link", "became-file"] {
        fs::remove_file(project.root().join(link)).unwrap();
    }
    symlink("crlf", project.root().join("link")).unwrap();
    project.write("became-file", "f\n");
    let diff = workspace.history().diff_since(&checkpoint, 1 << 20).unwrap();
    let applied = git(&copy, &["apply", "--whitespace=nowarn", "-"], &diff.text).unwrap();
    assert!(applied.status.success(), "{}\n{}", String::from_utf8_lossy(&applied.stderr), diff.text);
    let strip = |tree: support::Model| -> support::Model {
        tree.into_iter().filter(|(path, _)| !path.starts_with(b".git")).collect()
    };
    assert_eq!(strip(support::model(&copy)), strip(project.tree()));
    assert_eq!((diff.truncated, diff.added > 10, diff.removed > 5), (false, true, true));
    let short = workspace.history().diff_since(&checkpoint, 400).unwrap();
    assert!(short.truncated && short.text.len() <= 400);
    assert_eq!((short.added, short.removed), (diff.added, diff.removed));
    let status = git(&project.root(), &["fsck"], "").unwrap();
    assert!(status.status.success());
}

#[test]
fn a_file_that_only_its_signature_tells_apart_is_in_the_diff_by_name() {
    let project = Project::with(&[("bin", "\0one")]);
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "x").unwrap();
    project.write("bin", "\0two");
    let diff = workspace.history().diff_since(&checkpoint, 1 << 20).unwrap();
    assert_eq!(diff.text, "diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n");
    let path = RelPath::parse("x").unwrap();
    assert_eq!(journeyman_workspace::unified_diff(&path, Some(b"a\n"), Some(b"a\n")), "");
}

#[test]
fn a_large_tree_is_kept_in_packs_and_comes_back_from_them() {
    let project = Project::new();
    for n in 0..300 {
        project.write(&format!("d{}/f{n}", n % 9), format!("content {n}\n").repeat(n));
    }
    let before = project.tree();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "first").unwrap();
    let blobs = fs::read_dir(project.dir.path().join("blobs")).unwrap().count();
    assert!(blobs < 20, "{blobs} directories of blobs");
    let changed = command(&workspace, 1, || {
        for n in 0..300 {
            let path = project.root().join(format!("d{}/f{n}", n % 9));
            if n % 3 == 0 { fs::remove_file(path).unwrap() } else { fs::write(path, "x").unwrap() }
        }
    });
    assert_eq!(changed.split(' ').count(), 300);
    assert!(workspace.history().diff_since(&checkpoint, 10 << 20).unwrap().removed > 40_000);
    let report = undo(&project.open());
    assert_eq!((report.restored.len(), report.conflicts), (300, vec![]));
    assert_eq!(project.tree(), before);
    assert_eq!(project.open().history().changes_since(&checkpoint).unwrap(), vec![]);
}

#[test]
fn a_directory_that_a_command_replaced_by_a_link_comes_back() {
    let project = Project::with(&[("d/x", "1"), ("d/sub/y", "1"), ("z", "1")]);
    let before = project.tree();
    let workspace = project.open();
    apply(&workspace, vec![write("d/x", "2"), write("d/new", "n")]).unwrap();
    let changed = command(&workspace, 1, || {
        fs::rename(project.root().join("d"), project.root().join("d2")).unwrap();
        symlink("d2", project.root().join("d")).unwrap();
    });
    assert_eq!(changed, "+d -d/new -d/sub/y -d/x +d2/new +d2/sub/y +d2/x");
    apply(&workspace, vec![write("d/x", "3"), write("z", "2")]).unwrap();
    let report = undo(&workspace);
    assert_eq!(report.conflicts, vec![]);
    assert_eq!(project.tree(), before);
}

#[test]
fn what_lies_behind_a_link_that_the_user_made_is_kept_and_the_rest_goes_back() {
    let project = Project::with(&[("d/x", "1"), ("f/x", "1"), ("z", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("d/x", "2"), write("d/new", "n"), write("z", "2")]).unwrap();
    command(&workspace, 1, || {
        fs::remove_dir_all(project.root().join("f")).unwrap();
        fs::create_dir_all(project.root().join("d/sub")).unwrap();
        fs::remove_dir(project.root().join("d/sub")).unwrap();
    });
    fs::rename(project.root().join("d"), project.root().join("d2")).unwrap();
    symlink("d2", project.root().join("d")).unwrap();
    project.write("f", "the user's");
    let report = undo(&workspace);
    assert_eq!(shown(&report.restored), "~z");
    let reasons: Vec<String> = report.conflicts.iter().map(|(path, why)| format!("{path}: {why}")).collect();
    let expected = [
        "d/new: a link stands in its way; kept",
        "d/x: a link stands in its way; kept",
        "f/x: a file stands in its way; kept",
    ];
    assert_eq!(reasons, expected);
    assert_eq!((project.text("d2/x"), project.text("d2/new")), ("2".into(), "n".into()));
    // With the link gone, the rest can be had.
    fs::remove_file(project.root().join("d")).unwrap();
    fs::rename(project.root().join("d2"), project.root().join("d")).unwrap();
    fs::remove_file(project.root().join("f")).unwrap();
    let report = undo(&workspace);
    assert_eq!(shown(&report.restored), "-d/new ~d/x +f/x");
    assert_eq!(report.conflicts, vec![]);
}
