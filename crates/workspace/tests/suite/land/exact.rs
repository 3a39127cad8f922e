//! What counts as a copy's change, and what doesn't.

use std::fs;
use std::os::unix::fs::symlink;

use journeyman_workspace::{CopyChanges, LandOptions, OnConflict, WorkspaceError};

use crate::land::copied::{Copied, RUN, names};
use crate::support::{Project, apply, delete, rel, session, set_mode, shown, write};

fn told(changes: &CopyChanges) -> String {
    let renames = changes.renames().into_iter().map(|(from, to)| format!(" {from}=>{to}"));
    shown(&changes.files()) + &renames.collect::<String>()
}

#[test]
fn kinds_of_changes() {
    let copied = Copied::with(&[
        ("same", "same\n"),
        ("edited", "old\n"),
        ("gone", "gone\n"),
        ("a/moved", "moved\n"),
        ("b/moved", "moved\n"),
        ("twin", "twin\n"),
        ("run", "#!\n"),
        ("tolink", "t\n"),
        ("todir", "d\n"),
        ("dir/x", "x\n"),
        ("empty", ""),
        (".git/config", "[core]\n"),
    ]);
    let root = copied.copy_root();
    assert!(copied.changes().is_empty(), "{:?}", copied.changes());
    // Written anew with the same bytes: no change.
    copied.write("same", "same\n");
    copied.write("edited", "new\n");
    fs::remove_file(root.join("gone")).unwrap();
    fs::create_dir_all(root.join("c")).unwrap();
    // Both have the same content; the one that keeps its name is found first.
    fs::rename(root.join("a/moved"), root.join("c/other")).unwrap();
    fs::rename(root.join("b/moved"), root.join("c/moved")).unwrap();
    // One is gone and two are like it: one of them is its new name.
    fs::rename(root.join("twin"), root.join("twin1")).unwrap();
    fs::copy(root.join("twin1"), root.join("twin2")).unwrap();
    set_mode(&root.join("run"), 0o755);
    fs::remove_file(root.join("tolink")).unwrap();
    symlink("same", root.join("tolink")).unwrap();
    fs::remove_file(root.join("todir")).unwrap();
    copied.write("todir/x", "in it\n");
    fs::remove_dir_all(root.join("dir")).unwrap();
    copied.write("dir", "a file\n");
    fs::rename(root.join("empty"), root.join("empty2")).unwrap();
    // Git's own is nobody's.
    copied.write(".git/config", "[core]\nevil = true\n");
    copied.write("sub/.GIT/hooks/post-checkout", "evil\n");
    let expected = "-a/moved -b/moved +c/moved +c/other +dir -dir/x ~edited -empty +empty2 -gone ~run -todir \
                    +todir/x ~tolink -twin +twin1 +twin2 a/moved=>c/moved b/moved=>c/other twin=>twin1";
    assert_eq!(told(&copied.changes()), expected);
    let landing = copied.land(OnConflict::Refuse);
    assert!(landing.conflicts.is_empty(), "{landing:?}");
    let (mut tree, mut wanted) = (copied.tree(), copied.copied());
    assert_eq!(copied.project.text(".git/config"), "[core]\n");
    for model in [&mut tree, &mut wanted] {
        model.retain(|path, _| !path.starts_with(b".git/config") && !path.starts_with(b"sub/.GIT"));
    }
    assert_eq!(tree, wanted);
}

#[test]
fn ignored_files_count_where_an_edit_changed_them() {
    let files = [
        (".gitignore", "*.log\nbuild/\n"),
        ("a.log", "old\n"),
        ("b.log", "old\n"),
        ("c.log", "old\n"),
        ("build/made", "old\n"),
    ];
    let copied = Copied::with(&files);
    // An edit, a command, an edit that is taken back by hand, a new one, and one that is deleted
    // again.
    apply(&copied.copy, vec![write("a.log", "edited\n"), write("c.log", "edited\n")]).unwrap();
    copied.command(|| copied.write("b.log", "by a command\n"));
    copied.write("c.log", "old\n");
    apply(&copied.copy, vec![write("build/new", "new\n"), write("build/short", "lived\n")]).unwrap();
    apply(&copied.copy, vec![delete("build/short")]).unwrap();
    // What a command did to an edited file is in it.
    copied.command(|| copied.write("a.log", "edited, and by a command\n"));
    assert_eq!(told(&copied.changes()), "~a.log +build/new");
    copied.project.write("build/new", "the user's\n");
    let landing = copied.land(OnConflict::Refuse);
    assert_eq!(names(&landing), ["build/new"]);
    copied.land(OnConflict::Mine);
    assert_eq!(copied.project.text("a.log"), "edited, and by a command\n");
    assert_eq!(copied.project.text("build/new"), "the user's\n");
}

#[test]
fn changed_rules_neither_add_nor_delete() {
    let files = [
        (".gitignore", "secret\n"),
        ("secret", "s\n"),
        ("kept", "k\n"),
        ("both", "b\n"),
        ("out/sight", "o\n"),
    ];
    let copied = Copied::with(&files);
    copied.write(".gitignore", "kept\nboth\nout/\n");
    copied.write("both", "changed and out of sight\n");
    fs::remove_file(copied.copy_root().join("out/sight")).unwrap();
    assert_eq!(told(&copied.changes()), "~.gitignore ~both -out/sight");
    copied.project.write("secret", "the user's new one\n");
    let landing = copied.land(OnConflict::Refuse);
    assert!(landing.conflicts.is_empty(), "{landing:?}");
    assert_eq!(copied.project.text("secret"), "the user's new one\n");
    assert_eq!(copied.project.text("kept"), "k\n");
    assert_eq!(copied.project.text("both"), "changed and out of sight\n");
    assert!(!copied.project.root().join("out/sight").exists());
}

#[test]
fn empty_directories_come_and_go() {
    let project = Project::with(&[("keep", "k\n"), ("old/x", "x\n"), ("users/x", "x\n")]);
    fs::create_dir_all(project.root().join("was/empty")).unwrap();
    let copied = Copied::of(project);
    let root = copied.copy_root();
    fs::create_dir_all(root.join("new/empty")).unwrap();
    set_mode(&root.join("new/empty"), 0o700);
    for dir in ["was", "old", "users"] {
        fs::remove_dir_all(root.join(dir)).unwrap();
    }
    copied.project.write("users/own", "the user's\n");
    let before = copied.tree();
    assert_eq!(told(&copied.changes()), "-old/x -users/x");
    copied.land(OnConflict::Refuse);
    let mut expected = copied.copied();
    for path in ["users", "users/own"] {
        expected.insert(path.as_bytes().to_vec(), before[path.as_bytes()].clone());
    }
    assert_eq!(copied.tree(), expected);
    assert_eq!(crate::support::mode(&copied.project.root().join("new/empty")), 0o700);
    copied.user.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    assert_eq!(copied.tree(), before);
}

#[test]
fn a_directory_of_empty_ones_makes_room_for_a_file() {
    let project = Project::with(&[("d/x", "x\n")]);
    fs::create_dir_all(project.root().join("d/empty/deep")).unwrap();
    let copied = Copied::of(project);
    fs::remove_dir_all(copied.copy_root().join("d")).unwrap();
    copied.write("d", "a file\n");
    let before = copied.tree();
    let landing = copied.land(OnConflict::Refuse);
    assert!(landing.conflicts.is_empty(), "{landing:?}");
    assert_eq!(copied.tree(), copied.copied());
    copied.user.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    assert_eq!(copied.tree(), before);
    // With something of the user's in it, it stays.
    copied.project.write("d/empty/own", "own\n");
    let landing = copied.land(OnConflict::Theirs);
    assert_eq!(names(&landing), ["d"]);
    assert_eq!(copied.project.text("d/empty/own"), "own\n");
}

/// A project in which files over 1,000 bytes aren't kept.
fn small_limit() -> Project {
    let mut project = Project::with(&[("a", "a\n")]);
    project.limits.kept_file_bytes = 1_000;
    for name in ["same", "edited", "grown", "gone", "run", "users"] {
        project.write(name, name.repeat(500));
    }
    project
}

#[test]
fn files_too_large_to_keep_are_compared_and_never_lost() {
    let copied = Copied::of(small_limit());
    let root = copied.copy_root();
    assert!(copied.changes().is_empty());
    // The same size, so that only the content tells.
    copied.write("edited", "EDITED".repeat(500));
    copied.write("grown", "grown".repeat(501));
    fs::remove_file(root.join("gone")).unwrap();
    set_mode(&root.join("run"), 0o755);
    copied.write("new", "n".repeat(2_000));
    copied.write("a", "b\n");
    assert_eq!(told(&copied.changes()), "~a ~edited -gone ~grown +new ~run");
    let before = copied.tree();
    let landing = copied.land(OnConflict::Refuse);
    // Replacing or deleting one couldn't be undone.
    assert_eq!(names(&landing), ["edited", "gone", "grown"]);
    assert_eq!(copied.tree(), before);
    let landing = copied.land(OnConflict::Mine);
    assert_eq!(shown(&landing.applied.changes), "~a +new ~run");
    assert_eq!(copied.project.text("new"), "n".repeat(2_000));
    let landing = copied.land(OnConflict::Theirs);
    assert_eq!(shown(&landing.applied.changes), "~edited -gone ~grown");
    assert_eq!(copied.tree(), copied.copied());
    let landing = copied.land(OnConflict::Refuse);
    assert!(landing.conflicts.is_empty() && landing.applied.changes.is_empty(), "{landing:?}");
}

#[test]
fn large_files_lie_beside_the_copy_until_they_are_landed() {
    let copied = Copied::of(small_limit());
    let root = copied.copy_root();
    copied.write("new", "n".repeat(2_000));
    copied.write("short", "s".repeat(3_000));
    copied.write("damaged", "d".repeat(4_000));
    fs::rename(root.join("same"), root.join("moved")).unwrap();
    let beside = copied.project.state().join("work").join(session(RUN).as_str()).join("large");
    let lie = || fs::read_dir(&beside).unwrap().count();
    let _before = copied.changes();
    assert_eq!(lie(), 4);
    fs::remove_file(root.join("short")).unwrap();
    let changes = copied.changes();
    assert_eq!(lie(), 3, "what isn't among the changes any more goes");
    let wanted = copied.copied();
    fs::remove_dir_all(&root).unwrap();
    for entry in fs::read_dir(&beside).unwrap() {
        let path = entry.unwrap().path();
        if fs::read(&path).unwrap().starts_with(b"d") {
            fs::write(&path, "x".repeat(4_000)).unwrap();
        }
    }
    let before = copied.tree();
    let theirs = LandOptions { on_conflict: OnConflict::Theirs, ..LandOptions::default() };
    let lost = copied.user.land(&changes, &theirs).unwrap_err();
    assert!(matches!(lost, WorkspaceError::Lost { .. }), "{lost:?}");
    assert_eq!(copied.tree(), before);
    // Without it, it is named and all else is landed.
    for entry in fs::read_dir(&beside).unwrap() {
        let path = entry.unwrap().path();
        if fs::read(&path).unwrap().starts_with(b"x") {
            fs::remove_file(&path).unwrap();
        }
    }
    let landing = copied.user.land(&changes, &theirs).unwrap();
    assert!(names(&landing).contains(&"damaged".to_owned()), "{landing:?}");
    let mut tree = wanted;
    tree.remove(&b"damaged"[..]);
    assert_eq!(copied.tree(), tree);
    let report = copied.user.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
    // A large file that is gone is gone; the new ones are taken back.
    let kept: Vec<String> = report.conflicts.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(kept, ["same"]);
    assert!(!copied.project.root().join("new").exists());
}

#[test]
fn a_users_large_file_is_not_taken_for_the_copys_change() {
    let copied = Copied::of(small_limit());
    copied.project.write("users", "USERS".repeat(500));
    copied.write("a", "b\n");
    // The base can't tell who changed it; the user is asked, and has it as it is.
    assert_eq!(told(&copied.changes()), "~a ~users");
    let landing = copied.land(OnConflict::Mine);
    assert_eq!(
        (shown(&landing.applied.changes), names(&landing)),
        ("~a".to_owned(), vec!["users".to_owned()])
    );
    assert_eq!(copied.project.text("users"), "USERS".repeat(500));
}

#[test]
fn stored_changes_are_all_that_landing_needs() {
    let copied = Copied::with(&[("a", "1\n2\n3\n4\n5\n"), ("gone", "g\n"), ("was", "was\n"), ("d/x", "x\n")]);
    assert_eq!(copied.user.landings().stored_changes(&session(RUN)).unwrap(), None);
    copied.write("a", "one\n2\n3\n4\n5\n");
    fs::remove_file(copied.copy_root().join("gone")).unwrap();
    fs::remove_dir_all(copied.copy_root().join("d")).unwrap();
    fs::rename(copied.copy_root().join("was"), copied.copy_root().join("is")).unwrap();
    fs::write(copied.copy_root().join(std::ffi::OsStr::new("new\nline")), "n\n").unwrap();
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"odd\xff");
    fs::write(copied.copy_root().join(odd), "o\n").unwrap();
    let changes = copied.changes();
    let wanted = copied.copied();
    let stored = copied.user.landings().stored_changes(&session(RUN)).unwrap();
    assert_eq!(stored.as_ref(), Some(&changes));
    assert_eq!(copied.user.landings().stored_changes(&session(8)).unwrap(), None);
    let file = copied.project.state().join("work").join(session(RUN).as_str()).join("changes");
    let whole = fs::read(&file).unwrap();
    // Damaged, cut short, or of another session: as if there were none.
    for place in [0, 10, 40, whole.len() / 2, whole.len() - 2] {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(&file, &damaged).unwrap();
        assert_eq!(copied.user.landings().stored_changes(&session(RUN)).unwrap(), None, "byte {place}");
        fs::write(&file, &whole[..place]).unwrap();
        assert_eq!(copied.user.landings().stored_changes(&session(RUN)).unwrap(), None, "cut at {place}");
    }
    let elsewhere = copied.project.state().join("work").join(session(8).as_str());
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("changes"), &whole).unwrap();
    assert_eq!(copied.user.landings().stored_changes(&session(8)).unwrap(), None);
    fs::write(&file, &whole).unwrap();
    fs::remove_dir_all(copied.copy_root()).unwrap();
    copied.user.land(&stored.unwrap(), &LandOptions::default()).unwrap();
    assert_eq!(copied.tree(), wanted);
}

#[test]
fn contents_that_are_gone_are_no_half_landing() {
    let copied = Copied::with(&[("a", "1\n")]);
    copied.write("a", "2\n");
    copied.write("b", "3\n");
    let changes = copied.changes();
    for entry in walk(&copied.project.dir.path().join("blobs")) {
        fs::remove_file(entry).unwrap();
    }
    let before = copied.tree();
    let lost = copied.user.land(&changes, &LandOptions::default()).unwrap_err();
    assert!(matches!(lost, WorkspaceError::Lost { .. }), "{lost:?}");
    assert_eq!(copied.tree(), before);
    let diff = copied.user.landings().diff(&changes, 1_000).unwrap_err();
    assert!(matches!(diff, WorkspaceError::Lost { .. }), "{diff:?}");
    // The copy still has them.
    let again = Copied { copy: reopened(&copied), ..copied };
    again.user.land(&again.changes(), &LandOptions::default()).unwrap();
    assert_eq!(again.project.text("b"), "3\n");
    assert_eq!(again.user.stat(&rel("a")).unwrap().unwrap().size, 2);
}

fn reopened(copied: &Copied) -> journeyman_workspace::Workspace {
    let state = copied.project.dir.path().join("another-state");
    let options = journeyman_workspace::Options::new(state, copied.project.blobs.clone());
    journeyman_workspace::Workspace::open(&copied.copy_root(), options).unwrap()
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files
}

#[test]
fn where_only_what_was_checked_may_land_nothing_is_merged() {
    let copied = Copied::with(&[("f", "1\n2\n3\n4\n5\n"), ("g", "g\n")]);
    copied.write("f", "one\n2\n3\n4\n5\n");
    copied.write("g", "G\n");
    copied.project.write("f", "1\n2\n3\n4\nfive\n");
    let before = copied.tree();
    let options = LandOptions { as_checked: true, ..LandOptions::default() };
    let refused = copied.user.land(&copied.changes(), &options).unwrap();
    assert_eq!((names(&refused), refused.merged.len()), (vec!["f".to_owned()], 0));
    assert_eq!(copied.tree(), before);
    assert_eq!(copied.land(OnConflict::Refuse).merged.len(), 1);
    assert_eq!(copied.project.text("f"), "one\n2\n3\n4\nfive\n");
}

#[test]
fn what_a_word_on_conflicts_finds_no_way_for_is_left() {
    let copied = Copied::with(&[("a", "1\n"), ("b", "1\n")]);
    copied.write("a", "2\n");
    copied.write("b", "2\n");
    copied.write("d/x", "x\n");
    copied.project.write("d", "the user's\n");
    fs::remove_file(copied.project.root().join("a")).unwrap();
    copied.project.write("a/inside", "x\n");
    let landing = copied.land(OnConflict::Theirs);
    let left: Vec<String> = landing.left.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(left, ["a", "d/x"], "{landing:?}");
    assert_eq!((copied.project.text("b"), copied.project.text("d")), ("2\n".into(), "the user's\n".into()));
    assert_eq!(copied.land(OnConflict::Mine).left, []);
}
