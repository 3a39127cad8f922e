//! Trees and files that are very large, deep or wide: bounded time and memory, and a word on what
//! can't be undone.

use journeyman_testkit::test_path;
use std::fs;
use std::time::Instant;

use journeyman_workspace::{Change, ListOptions, UndoTarget, WorkspaceError};

use crate::hostile::again::{alone, peak_memory, role};
use crate::support::{Project, apply, delete, rel, session, set, shown, write};

const GIB: u64 = 1 << 30;
/// More than a process needs that keeps no file's content in memory.
const MODEST: u64 = 200 << 20;

fn whole() -> bool {
    std::env::var_os("JM_CRASH_ALL").is_some()
}

/// 5 GiB that take no room: looked at by its signature alone around commands, named as not
/// undoable, never held in memory.
#[test]
fn a_file_of_5_gib_is_named_and_not_read() {
    if role().is_none() {
        print!("{}", alone(test_path!("a_file_of_5_gib_is_named_and_not_read"), "alone"));
        return;
    }
    let project = Project::with(&[("small", "s")]);
    let file = fs::File::create(project.root().join("huge")).unwrap();
    file.set_len(5 * GIB).unwrap();
    let workspace = project.open();
    let begun = Instant::now();
    workspace.checkpoint(&session(1), "c").unwrap();
    let before = workspace.command_observer().begin().unwrap();
    assert_eq!(before.not_undoable_files(), [rel("huge")]);
    std::os::unix::fs::FileExt::write_all_at(&file, b"changed", 3 * GIB).unwrap();
    project.write("small", "changed");
    assert_eq!(shown(&workspace.command_observer().end(before, &session(1), None).unwrap()), "~huge ~small");
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!(shown(&report.restored), "~small");
    assert_eq!(report.conflicts.len(), 1);
    assert!(report.conflicts[0].1.contains("too large"), "{:?}", report.conflicts);
    assert!(matches!(workspace.read(&rel("huge"), 1 << 20), Err(WorkspaceError::TooLarge { .. })));
    println!("around it {:?}", begun.elapsed());
    if whole() {
        // An edit of it reads it once, to know what it replaces.
        let begun = Instant::now();
        apply(&workspace, vec![delete("huge")]).unwrap();
        println!("deleted in {:?}", begun.elapsed());
    }
    let peak = peak_memory();
    println!("{} MiB at most", peak >> 20);
    assert!(peak < MODEST, "{peak} bytes");
}

/// More files than are looked at: an error that says what to do; as many as are: bounded memory.
#[test]
fn two_hundred_thousand_files_are_looked_at_or_refused_by_their_number() {
    let test = "two_hundred_thousand_files_are_looked_at_or_refused_by_their_number";
    if role().is_none() {
        print!("{}", alone(test_path!(test), "alone"));
        return;
    }
    let count: usize = if whole() { 200_000 } else { 10_000 };
    let mut project = Project::in_memory();
    for dir in 0..count / 100 {
        let dir = project.root().join(format!("{dir}"));
        fs::create_dir(&dir).unwrap();
        for file in 0..100 {
            fs::write(dir.join(format!("{file}")), file.to_string()).unwrap();
        }
    }
    project.limits.max_files = count - 1;
    let small = project.open();
    for error in [
        small.checkpoint(&session(1), "c").unwrap_err(),
        small.command_observer().begin().map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, WorkspaceError::TooManyFiles { .. }), "{error:?}");
        assert!(error.to_string().contains(".gitignore"), "{error}");
    }
    assert!(small.list(ListOptions::default()).unwrap().truncated);
    apply(&small, vec![write("0/0", "an edit needs no look at all of them")]).unwrap();
    small.undo(UndoTarget::LastRun).unwrap();
    drop(small);
    project.limits.max_files = count;
    let workspace = project.open();
    let begun = Instant::now();
    let checkpoint = workspace.checkpoint(&session(1), "c").unwrap();
    let first = begun.elapsed();
    let begun = Instant::now();
    let before = workspace.command_observer().begin().unwrap();
    project.write("7/7", "changed");
    assert_eq!(shown(&workspace.command_observer().end(before, &session(1), None).unwrap()), "~7/7");
    println!("{count} files: the first look {first:?}, around a command {:?}", begun.elapsed());
    assert_eq!(workspace.history().changes_since(&checkpoint).unwrap().len(), 1);
    workspace.undo(UndoTarget::LastRun).unwrap();
    let peak = peak_memory();
    println!("{} MiB at most, {} bytes a file", peak >> 20, peak / count as u64);
    assert!(peak < MODEST + 1_500 * count as u64, "{peak} bytes");
}

#[test]
fn thousands_of_files_in_one_directory_come_and_go() {
    let project = Project::in_memory();
    let count = 5_000;
    let workspace = project.open();
    let changes = |range: std::ops::Range<usize>| -> Vec<Change> {
        range.map(|n| write(&format!("one/{n:06}"), &n.to_string())).collect()
    };
    let error = workspace.apply(set(1, changes(0..10_001))).unwrap_err();
    assert!(matches!(error, WorkspaceError::TooManyChanges { .. }), "{error:?}");
    workspace.apply(set(1, changes(0..count))).unwrap();
    assert_eq!(workspace.list(ListOptions::default()).unwrap().paths.len(), count);
    let whole = project.tree();
    let begun = workspace.command_observer().begin().unwrap();
    for n in (0..count).step_by(2) {
        fs::remove_file(project.root().join(format!("one/{n:06}"))).unwrap();
    }
    assert_eq!(workspace.command_observer().end(begun, &session(2), None).unwrap().len(), count / 2);
    assert_eq!(workspace.undo(UndoTarget::LastRun).unwrap().restored.len(), count / 2);
    assert_eq!(project.tree(), whole);
    assert_eq!(workspace.undo(UndoTarget::Session(session(1))).unwrap().restored.len(), count);
    assert_eq!(project.tree().len(), 0);
}

/// Two thousand directories, one in the other: beyond the bound nothing is looked at, and nothing
/// breaks.
#[test]
fn a_tree_of_two_thousand_levels_breaks_nothing() {
    let project = Project::with(&[("top", "t")]);
    let path = |levels: usize| format!("{}file", "d/".repeat(levels));
    let workspace = project.open();
    for levels in [100, 127, 128, 129, 500, 1_000, 2_000] {
        let path = path(levels);
        apply(&workspace, vec![write(&path, "one")]).unwrap();
        apply(&workspace, vec![write(&path, "two")]).unwrap();
        assert_eq!(workspace.read(&rel(&path), 10).unwrap().text(), Some("two"));
    }
    workspace.checkpoint(&session(1), "c").unwrap();
    let begun = workspace.command_observer().begin().unwrap();
    project.write("top", "changed");
    project.write(&path(120), "made");
    let changed = workspace.command_observer().end(begun, &session(2), None).unwrap();
    assert_eq!(changed.len(), 2);
    let listing = workspace.list(ListOptions::default()).unwrap();
    assert!(listing.paths.len() >= 4);
    workspace.undo(UndoTarget::Session(session(2))).unwrap();
    assert_eq!(workspace.undo(UndoTarget::Session(session(1))).unwrap().conflicts, vec![]);
    assert_eq!(project.tree().len(), 1);
}
