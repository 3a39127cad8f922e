//! Hostile trees, races, owners, and very many files.

use journeyman_testkit::test_path;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use journeyman_workspace::failpoint::{Failpoint, Fault, TransactionStep};
use journeyman_workspace::{CopyChanges, LandOptions, OnConflict, UndoTarget, WorkspaceError};

use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::land::copied::{Copied, RUN, names};
use crate::support::{Project, is_ordinary_user, mode, session, set_mode};

#[test]
fn nothing_goes_through_a_link() {
    let copied = Copied::with(&[("dir/f", "old\n"), ("dir/gone", "g\n"), ("file", "f\n")]);
    let outside = copied.project.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["f", "gone", "file"] {
        fs::write(outside.join(name), "outside\n").unwrap();
    }
    copied.write("dir/f", "new\n");
    copied.write("dir/new", "new\n");
    fs::remove_file(copied.copy_root().join("dir/gone")).unwrap();
    copied.write("file", "new\n");
    let root = copied.project.root();
    fs::rename(root.join("dir"), root.join("elsewhere")).unwrap();
    symlink(&outside, root.join("dir")).unwrap();
    fs::remove_file(root.join("file")).unwrap();
    symlink(outside.join("file"), root.join("file")).unwrap();
    for on_conflict in [OnConflict::Refuse, OnConflict::Mine, OnConflict::Markers, OnConflict::Theirs] {
        let landing = copied.land(on_conflict);
        assert!(names(&landing).contains(&"dir/new".to_owned()), "{landing:?}");
        for name in ["f", "gone", "file"] {
            assert_eq!(fs::read_to_string(outside.join(name)).unwrap(), "outside\n", "{on_conflict:?}");
        }
        assert!(!outside.join("new").exists());
    }
    // The link itself was replaced, as asked for; what the user gave another name got the copy's
    // lines.
    assert_eq!(copied.project.text("file"), "new\n");
    assert!(root.join("dir").symlink_metadata().unwrap().is_symlink());
    assert_eq!(copied.project.text("elsewhere/f"), "new\n");
}

#[test]
fn links_that_lead_out_are_landed_as_links() {
    let copied = Copied::with(&[("f", "f\n")]);
    symlink("/etc/passwd", copied.copy_root().join("out")).unwrap();
    symlink("../../..", copied.copy_root().join("up")).unwrap();
    symlink("nowhere", copied.copy_root().join("dangling")).unwrap();
    copied.land(OnConflict::Refuse);
    assert_eq!(copied.tree(), copied.copied());
    copied.write("f", "2\n");
    fs::remove_file(copied.copy_root().join("out")).unwrap();
    copied.land(OnConflict::Refuse);
    assert!(fs::metadata("/etc/passwd").is_ok());
}

#[test]
fn what_has_no_content_stands_where_it_is() {
    let copied = Copied::with(&[("pipe", "p\n"), ("other", "o\n")]);
    copied.write("pipe", "new\n");
    copied.write("socket/x", "new\n");
    let root = copied.project.root();
    fs::remove_file(root.join("pipe")).unwrap();
    assert!(
        Command::new("mkfifo").arg(root.join("pipe")).arg(root.join("socket")).status().unwrap().success()
    );
    for on_conflict in [OnConflict::Refuse, OnConflict::Theirs] {
        let landing = copied.land(on_conflict);
        assert_eq!(names(&landing), ["pipe", "socket/x"], "{landing:?}");
    }
}

#[test]
fn permissions_keep_people_out_and_are_said() {
    if !is_ordinary_user(test_path!("permissions_keep_people_out_and_are_said")) {
        return;
    }
    let copied = Copied::with(&[("secret", "s\n"), ("dir/f", "f\n"), ("plain", "p\n")]);
    copied.write("secret", "new\n");
    copied.write("dir/f", "new\n");
    copied.write("dir/new", "new\n");
    copied.write("plain", "new\n");
    let changes = copied.changes();
    let root = copied.project.root();
    set_mode(&root.join("secret"), 0o000);
    set_mode(&root.join("dir"), 0o000);
    let landing =
        copied.user.land(&changes, &LandOptions { on_conflict: OnConflict::Mine, ..LandOptions::default() });
    set_mode(&root.join("dir"), 0o755);
    let landing = landing.unwrap();
    assert_eq!(names(&landing), ["dir/f", "dir/new", "secret"], "{landing:?}");
    assert_eq!(copied.project.text("plain"), "new\n");
    set_mode(&root.join("secret"), 0o644);
    // A directory that can be looked into and not written.
    set_mode(&root.join("dir"), 0o555);
    let before = copied.tree();
    let refused = copied.user.land(&changes, &LandOptions::default());
    let after = copied.tree();
    set_mode(&root.join("dir"), 0o755);
    assert!(matches!(refused, Err(WorkspaceError::Denied { .. })), "{refused:?}");
    assert_eq!(after, before);
}

#[test]
fn modes_and_attributes_of_the_users_file_stay() {
    let project = Project::new();
    project.write("kept", "old\n");
    project.write("named", "a long enough content\n");
    let copied = Copied::of(project);
    let root = copied.project.root();
    set_mode(&root.join("kept"), 0o640);
    let set = |name: &str| setxattr(root.join(name), "user.mine", b"1", XattrFlags::empty()).is_ok();
    let attributes = set("kept") && set("named");
    copied.write("kept", "new\n");
    copied.write("private", "p\n");
    set_mode(&copied.copy_root().join("private"), 0o600);
    fs::rename(copied.copy_root().join("named"), copied.copy_root().join("renamed")).unwrap();
    let owner = fs::metadata(root.join("kept")).unwrap().uid();
    copied.land(OnConflict::Refuse);
    assert_eq!((mode(&root.join("kept")), mode(&root.join("private"))), (0o640, 0o600));
    assert_eq!(fs::metadata(root.join("kept")).unwrap().uid(), owner);
    if !attributes {
        println!("skipped in part: no extended attributes here");
        return;
    }
    for name in ["kept", "renamed"] {
        let mut value = [0; 8];
        let found = getxattr(root.join(name), "user.mine", &mut value).map(|length| value[..length].to_vec());
        assert_eq!(found, Ok(b"1".to_vec()), "{name}");
    }
}

#[test]
fn binary_files_never_get_markers() {
    let copied = Copied::with(&[("image", "\u{0}base")]);
    copied.project.write("image", b"\0user");
    copied.write("image", b"\0copy");
    let landing = copied.land(OnConflict::Markers);
    assert_eq!(names(&landing), ["image"]);
    assert_eq!(fs::read(copied.project.root().join("image")).unwrap(), b"\0user");
    copied.land(OnConflict::Theirs);
    assert_eq!(fs::read(copied.project.root().join("image")).unwrap(), b"\0copy");
}

/// What is written beside a copy, edited by hand, with a checksum that is right.
fn forged(copied: &Copied, edit: impl Fn(String) -> String) -> CopyChanges {
    use journeyman_protocol::ContentHash;
    let file = copied.project.state().join("work").join(session(RUN).as_str()).join("changes");
    let text = fs::read_to_string(&file).unwrap();
    let json = edit(text.split_once(' ').unwrap().1.trim_end().to_owned());
    let sum = ContentHash::of(json.as_bytes()).to_string();
    fs::write(&file, format!("{} {json}\n", &sum[..16])).unwrap();
    copied.user.landings().stored_changes(&session(RUN)).unwrap().unwrap()
}

#[test]
fn a_hand_edited_list_of_changes_gets_nothing_past_the_door() {
    let copied = Copied::with(&[("f", "f\n"), (".git/config", "[core]\n")]);
    copied.write("zz/a", "evil\n");
    let _changes = copied.changes();
    let file = copied.project.state().join("work").join(session(RUN).as_str()).join("changes");
    let whole = fs::read(&file).unwrap();
    for evil in [".git/hooks/post-checkout", "sub/.Git/config", "../outside", "/etc/passwd", ""] {
        use journeyman_protocol::ContentHash;
        let json = String::from_utf8(whole[17..whole.len() - 1].to_vec()).unwrap();
        let json = json.replace("zz/a", evil);
        let sum = ContentHash::of(json.as_bytes()).to_string();
        fs::write(&file, format!("{} {json}\n", &sum[..16])).unwrap();
        assert_eq!(copied.user.landings().stored_changes(&session(RUN)).unwrap(), None, "{evil}");
    }
    fs::write(&file, &whole).unwrap();
    // Names that are given away twice, or never were there.
    let doubled =
        forged(&copied, |json| json.replace("\"path\":\"zz/a\"", "\"path\":\"zz/a\",\"from\":\"f\""));
    copied.user.land(&doubled, &LandOptions::default()).unwrap();
    assert_eq!(copied.project.text("zz/a"), "evil\n");
    assert_eq!(copied.project.text("f"), "f\n");
}

#[test]
fn no_bytes_of_the_list_panic() {
    use journeyman_protocol::ContentHash;
    let copied = Copied::with(&[("f", "f\n"), ("g", "some content\n")]);
    copied.write("f", "2\n");
    fs::rename(copied.copy_root().join("g"), copied.copy_root().join("h")).unwrap();
    let _changes = copied.changes();
    let file = copied.project.state().join("work").join(session(RUN).as_str()).join("changes");
    let whole = fs::read(&file).unwrap();
    let json = whole[17..whole.len() - 1].to_vec();
    let mut landed = 0;
    for place in 0..json.len() {
        for new in [b'0', b'"', b'x', b'}', 0xff] {
            let mut changed = json.clone();
            changed[place] = new;
            let sum = ContentHash::of(&changed).to_string();
            fs::write(&file, [&sum.as_bytes()[..16], b" ", &changed, b"\n"].concat()).unwrap();
            if let Some(changes) = copied.user.landings().stored_changes(&session(RUN)).unwrap() {
                let dry =
                    LandOptions { on_conflict: OnConflict::Theirs, dry_run: true, ..LandOptions::default() };
                landed += usize::from(copied.user.land(&changes, &dry).is_ok());
                let _diff = copied.user.landings().diff(&changes, 1_000);
                let _stat = copied.user.landings().diff_stat(&changes);
            }
        }
    }
    assert!(landed > 0);
}

#[test]
fn what_the_user_writes_in_the_last_instant_stays() {
    for step in [TransactionStep::Intend, TransactionStep::Flush, TransactionStep::Place] {
        let copied = Copied::with(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
        for name in ["a", "b", "c"] {
            copied.write(name, "copy\n");
        }
        let changes = copied.changes();
        let target = copied.project.root().join("c");
        let done = Arc::new(AtomicBool::new(false));
        let hook = move |now: TransactionStep| {
            if now == step && !done.swap(true, Ordering::SeqCst) {
                fs::write(&target, "the user's, a moment ago\n").unwrap();
            }
            Fault::Go
        };
        let workspace = copied.failing(Failpoint::new(hook));
        let refused = workspace.land(&changes, &LandOptions::default()).unwrap_err();
        assert!(matches!(refused, WorkspaceError::Conflict { .. }), "{step:?}: {refused:?}");
        let texts = ["a", "b", "c"].map(|name| copied.project.text(name));
        assert_eq!(texts, ["1\n", "1\n", "the user's, a moment ago\n"], "{step:?}");
        // Asked again, it is a conflict like any other.
        let again = workspace.land(&changes, &LandOptions::default()).unwrap();
        assert_eq!(names(&again), ["c"]);
    }
}

#[test]
fn twelve_thousand_files_are_one_transaction() {
    let project = Project::with(&[]);
    for n in 0..4_000 {
        project.write(&format!("d{}/f{n}", n % 50), format!("{n}\n"));
    }
    let copied = Copied::of(project);
    for n in 0..12_000 {
        let path = format!("d{}/f{n}", n % 50);
        match n % 3 {
            0 if n < 4_000 => fs::remove_file(copied.copy_root().join(path)).unwrap(),
            _ => copied.write(&path, format!("{n} of the copy\n")),
        }
    }
    let before = copied.tree();
    let landing = copied.land(OnConflict::Refuse);
    assert_eq!((landing.conflicts.len(), landing.applied.changes.len()), (0, 12_000));
    assert_eq!(copied.tree(), copied.copied());
    // In another process, and after the journal had every reason to be cut.
    let again = copied.project.open();
    let report = again.undo(UndoTarget::Session(session(RUN))).unwrap();
    assert_eq!((report.conflicts.len(), report.restored.len()), (0, 12_000));
    assert_eq!(copied.tree(), before);
}

#[test]
fn what_the_journal_cannot_hold_is_refused_before_anything() {
    let mut project = Project::with(&[]);
    project.limits.journal_bytes = 100_000;
    let copied = Copied::of(project);
    for n in 0..500 {
        copied.write(&format!("f{n}"), format!("{n}\n"));
    }
    let before = copied.tree();
    let refused = copied.try_land(OnConflict::Refuse).unwrap_err();
    assert!(matches!(refused, WorkspaceError::TooManyChanges { given: 500, limit: 50..500 }), "{refused:?}");
    assert_eq!(copied.tree(), before);
}

#[test]
fn two_candidates_land_one_after_the_other() {
    // The second one is against the same base, and finds the first one's work as if a user had done
    // it.
    let copied = Copied::with(&[("f", "1\n2\n3\n4\n5\n6\n7\n8\n")]);
    copied.write("f", "one\n2\n3\n4\n5\n6\n7\n8\n");
    let first = copied.changes();
    copied.write("f", "1\n2\n3\n4\n5\n6\n7\neight\n");
    let second = copied.changes();
    copied.user.land(&first, &LandOptions::default()).unwrap();
    copied.user.land(&second, &LandOptions::default()).unwrap();
    assert_eq!(copied.project.text("f"), "one\n2\n3\n4\n5\n6\n7\neight\n");
    copied.user.undo(UndoTarget::Session(session(RUN))).unwrap();
    assert_eq!(copied.project.text("f"), "1\n2\n3\n4\n5\n6\n7\n8\n");
}
