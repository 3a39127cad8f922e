//! Whatever the user did, with whatever the copy did.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use journeyman_workspace::{LandOptions, OnConflict, UndoTarget};

use crate::land::copied::{Copied, RUN, names};
use crate::support::{Model, model, session, set_mode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Nothing,
    SameLine,
    OtherLine,
    Delete,
    Rename,
    Chmod,
    Link,
    Directory,
    AddSame,
    AddOther,
}

use Deed::{AddOther, AddSame, Chmod, Delete, Directory, Link, Nothing, OtherLine, Rename, SameLine};

const DEEDS: [Deed; 10] =
    [Nothing, SameLine, OtherLine, Delete, Rename, Chmod, Link, Directory, AddSame, AddOther];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    User,
    Copy,
}

impl Who {
    fn pick<T>(self, user: T, copy: T) -> T {
        match self {
            Self::User => user,
            Self::Copy => copy,
        }
    }
}

fn base() -> String {
    (1..=12).map(|line| format!("line {line}\n")).collect()
}

fn edit(root: &Path, line: usize, new: &str) {
    let text = fs::read_to_string(root.join("f")).unwrap();
    let old = format!("line {line}\n");
    assert!(text.contains(&old));
    fs::write(root.join("f"), text.replace(&old, new)).unwrap();
}

fn act(root: &Path, deed: Deed, who: Who) {
    let file = root.join("f");
    match deed {
        Nothing => {}
        SameLine => edit(root, 6, who.pick("six of the user\n", "six of the copy\n")),
        OtherLine => {
            let (line, new) = who.pick((2, "two\n"), (11, "eleven\n"));
            edit(root, line, new);
        }
        Delete => fs::remove_file(file).unwrap(),
        Rename => fs::rename(file, root.join(who.pick("mine", "theirs"))).unwrap(),
        Chmod => set_mode(&file, 0o755),
        Link => {
            fs::remove_file(&file).unwrap();
            symlink(who.pick("dir/k", "dir/l"), file).unwrap();
        }
        Directory => {
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            fs::write(file.join("x"), who.pick("user\n", "copy\n")).unwrap();
        }
        AddSame => fs::write(root.join("new"), "the same\n").unwrap(),
        AddOther => fs::write(root.join("new"), who.pick("user\n", "copy\n")).unwrap(),
    }
}

/// Rows are the user's deeds, columns the copy's, in the order of [`DEEDS`]. `u`: the tree stays as
/// the user has it; `c`: it becomes what the copy has; `+`: both deeds are in it; `x`: a conflict.
const TABLE: [&str; 10] = [
    "u c c c c c c c c c", // nothing
    "u x + x + + x x + +", // same line
    "u + + x + + x x + +", // other line
    "u x x u x x x c + +", // delete
    "u + + x x + + x + +", // rename
    "u + + x + u x x + +", // chmod
    "u x x x x x x x + +", // link
    "u x x u x x x x + +", // directory
    "u + + + + + + + u x", // add same
    "u + + + + + + + x x", // add other
];

fn project() -> Copied {
    let copied = Copied::with(&[("f", &base()), ("dir/k", "k\n"), ("dir/l", "l\n")]);
    set_mode(&copied.project.root().join("f"), 0o644);
    set_mode(&copied.copy_root().join("f"), 0o644);
    copied
}

/// A tree in which both deeds were done, one after the other.
fn both(user: Deed, copy: Deed) -> Model {
    let fresh = project();
    let root = fresh.project.root();
    // What is done to a file that got another name was done to it before that.
    if user == Rename {
        act(&root, copy, Who::Copy);
        act(&root, user, Who::User);
    } else {
        act(&root, user, Who::User);
        act(&root, copy, Who::Copy);
    }
    model(&root)
}

/// What the copy has, where landing it against the user's will can't make it so.
fn theirs(user: Deed, copy: Deed, before: &Model, copied: &Model) -> Model {
    match (user, copy) {
        // The user's name for it isn't the copy's to take away; what else the copy has comes.
        (Rename, Delete | Rename) => before.clone(),
        (Rename, Directory) => {
            let added = copied.iter().filter(|(path, _)| path.starts_with(b"f"));
            before.iter().chain(added).map(|(path, node)| (path.clone(), node.clone())).collect()
        }
        // A directory with the user's own files in it stays.
        (Directory, SameLine | OtherLine | Rename | Chmod | Link) => before.clone(),
        _ => copied.clone(),
    }
}

fn each(mut check: impl FnMut(Deed, Deed, &str)) {
    for (row, user) in TABLE.iter().zip(DEEDS) {
        for (cell, copy) in row.split(' ').zip(DEEDS) {
            check(user, copy, cell);
        }
    }
}

#[test]
fn landing_and_taking_back() {
    each(|user, copy, cell| {
        let pair = format!("user: {user:?}, copy: {copy:?}");
        let copied = project();
        act(&copied.project.root(), user, Who::User);
        act(&copied.copy_root(), copy, Who::Copy);
        let before = copied.tree();
        let changes = copied.changes();
        let tried = copied.user.land(&changes, &LandOptions { dry_run: true, ..Default::default() }).unwrap();
        assert_eq!(copied.tree(), before, "{pair}");
        let landing = copied.land(OnConflict::Refuse);
        assert_eq!(tried.applied.changes, landing.applied.changes, "{pair}");
        assert_eq!((&tried.merged, &tried.conflicts), (&landing.merged, &landing.conflicts), "{pair}");
        let expected = match cell {
            "u" | "x" => before.clone(),
            "c" => copied.copied(),
            _ => both(user, copy),
        };
        assert_eq!(copied.tree(), expected, "{pair}: {landing:?}");
        assert_eq!(landing.conflicts.is_empty(), cell != "x", "{pair}: {landing:?}");
        let changed = expected != before;
        assert_eq!(changed, !landing.applied.changes.is_empty(), "{pair}: {landing:?}");
        if cell == "x" {
            return;
        }
        // Once more changes nothing.
        let again = copied.land(OnConflict::Refuse);
        assert_eq!(
            (copied.tree(), again.conflicts, again.applied.changes),
            (expected, vec![], vec![]),
            "{pair}"
        );
        if changed {
            let report = copied.user.undo(UndoTarget::Session(session(RUN))).unwrap();
            assert!(report.conflicts.is_empty(), "{pair}: {report:?}");
            assert_eq!(copied.tree(), before, "{pair}");
        }
    });
}

#[test]
fn conflicts_go_the_way_that_was_asked_for() {
    each(|user, copy, cell| {
        if cell != "x" {
            return;
        }
        let pair = format!("user: {user:?}, copy: {copy:?}");
        for on_conflict in [OnConflict::Mine, OnConflict::Theirs, OnConflict::Markers] {
            let copied = project();
            act(&copied.project.root(), user, Who::User);
            act(&copied.copy_root(), copy, Who::Copy);
            let before = copied.tree();
            let landing = copied.land(on_conflict);
            assert!(!landing.conflicts.is_empty(), "{pair}");
            let after = copied.tree();
            let mine = if (user, copy) == (Rename, Directory) {
                theirs(user, copy, &before, &copied.copied())
            } else {
                before.clone()
            };
            match on_conflict {
                OnConflict::Theirs => {
                    assert_eq!(after, theirs(user, copy, &before, &copied.copied()), "{pair} {landing:?}");
                }
                OnConflict::Markers => {
                    let has = |path: &str| copied.project.text(path).contains("=======\n");
                    let marked = match (user, copy) {
                        (SameLine, SameLine) => has("f"),
                        (AddSame | AddOther, AddSame | AddOther) => has("new"),
                        (Directory, Directory) => has("f/x"),
                        _ => {
                            assert_eq!(after, mine, "{pair}: {landing:?}");
                            true
                        }
                    };
                    assert!(marked, "{pair}: {after:?}");
                }
                _ => assert_eq!(after, mine, "{pair}: {landing:?}"),
            }
            if after != before {
                let report = copied.user.undo(UndoTarget::Session(session(RUN))).unwrap();
                assert!(report.conflicts.is_empty(), "{pair}: {report:?}");
                assert_eq!(copied.tree(), before, "{pair}");
            }
        }
    });
}

#[test]
fn the_merged_text_and_the_marked_one() {
    let copied = project();
    act(&copied.project.root(), SameLine, Who::User);
    act(&copied.copy_root(), OtherLine, Who::Copy);
    let landing = copied.land(OnConflict::Refuse);
    let expected = base().replace("line 6\n", "six of the user\n").replace("line 11\n", "eleven\n");
    assert_eq!(copied.project.text("f"), expected);
    assert_eq!(landing.merged.iter().map(ToString::to_string).collect::<Vec<_>>(), ["f"]);

    let copied = project();
    act(&copied.project.root(), SameLine, Who::User);
    act(&copied.copy_root(), SameLine, Who::Copy);
    act(&copied.copy_root(), OtherLine, Who::Copy);
    let landing = copied.land(OnConflict::Markers);
    let marked = format!(
        "<<<<<<< here\nsix of the user\n=======\nsix of the copy\n>>>>>>> session {}\n",
        session(RUN)
    );
    let expected = base().replace("line 6\n", &marked).replace("line 11\n", "eleven\n");
    assert_eq!(copied.project.text("f"), expected);
    assert_eq!(names(&landing), ["f"]);
    assert!(landing.merged.is_empty());
}
