//! The list of checkpoints, and what differs between them.

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use journeyman_protocol::{FileChangeKind, UnixMillis};
use journeyman_workspace::failpoint::{Failpoint, Fault, TransactionStep};
use journeyman_workspace::{
    CheckpointId, Checkup, CheckupReport, Clock, Options, UndoTarget, Workspace, WorkspaceError,
};
use support::{Project, apply, delete, session, set, set_mode, settle, shown, write};

fn open_with_clock(project: &Project) -> Workspace {
    let now = Arc::new(AtomicU64::new(1_000));
    let clock = Clock::new(move || UnixMillis(now.fetch_add(1_000, Ordering::Relaxed)));
    let options = Options { clock: Some(clock), ..project.options() };
    Workspace::open(&project.root(), options).unwrap()
}

#[test]
fn an_edit_of_another_session_while_the_tree_is_looked_at_is_in_the_checkpoint() {
    let project = Project::with(&[("a", "1")]);
    let (other, looks) = (project.open(), AtomicUsize::new(0));
    let workspace = project.open_failing(Failpoint::new(move |step| {
        if step == TransactionStep::Look && looks.fetch_add(1, Ordering::Relaxed) == 0 {
            other.apply(set(2, vec![write("theirs", "t")])).unwrap();
        }
        Fault::Go
    }));
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    assert_eq!(workspace.history().changes_since(&checkpoint).unwrap(), []);
    let nothing = workspace.undo(UndoTarget::To(checkpoint));
    assert!(matches!(nothing, Err(WorkspaceError::NothingSince { .. })), "{nothing:?}");
    assert_eq!(project.text("theirs"), "t");
}

#[test]
fn each_says_when_by_whom_and_what_came_after() {
    let project = Project::with(&[("a", "0")]);
    assert_eq!(project.open().checkpoints().unwrap(), vec![]);
    let workspace = open_with_clock(&project);
    let first = workspace.checkpoint(&session(1), "one").unwrap();
    workspace.apply(set(1, vec![write("a", "1")])).unwrap();
    workspace.apply(set(2, vec![write("b", "1")])).unwrap();
    let second = workspace.checkpoint(&session(2), "two").unwrap();
    workspace.apply(set(2, vec![write("b", "2")])).unwrap();
    let table = |workspace: &Workspace| {
        let infos = workspace.checkpoints().unwrap();
        infos
            .into_iter()
            .map(|info| (info.id, info.session, info.label, info.changes, info.whole))
            .collect::<Vec<_>>()
    };
    let rows = |changes: [usize; 2]| {
        vec![
            (first, session(1), "one".to_owned(), changes[0], true),
            (second, session(2), "two".to_owned(), changes[1], true),
        ]
    };
    assert_eq!(table(&workspace), rows([2, 1]));
    let times: Vec<_> = workspace.checkpoints().unwrap().into_iter().map(|info| info.at).collect();
    assert!(times[0] < times[1] && times[0].is_some(), "{times:?}");
    // What is taken back is no change any more, and neither is the taking back; another process
    // says the same.
    workspace.undo(UndoTarget::Session(session(2))).unwrap();
    assert_eq!(table(&project.open()), rows([1, 0]));
    workspace.redo(None).unwrap();
    assert_eq!(table(&project.open()), rows([2, 1]));
}

#[test]
fn a_journal_of_an_earlier_version_is_read() {
    let project = Project::with(&[("a", "1")]);
    let workspace = open_with_clock(&project);
    workspace.checkpoint(&session(1), "one").unwrap();
    apply(&workspace, vec![write("a", "2")]).unwrap();
    let log = project.state().join("journal/log");
    let text = fs::read_to_string(&log).unwrap();
    // As lines were without times.
    let old: String = text
        .lines()
        .map(|line| {
            let mut json = line[17..].to_owned();
            while let Some(start) = json.find("\"at\":") {
                let end = start + json[start..].find(',').unwrap() + 1;
                json.replace_range(start..end, "");
            }
            let sum = journeyman_protocol::ContentHash::of(json.as_bytes()).to_string();
            format!("{} {json}\n", &sum[..16])
        })
        .collect();
    assert_ne!(old, text);
    fs::write(&log, old).unwrap();
    let workspace = project.open();
    let infos = workspace.checkpoints().unwrap();
    assert_eq!((infos.len(), infos[0].at, infos[0].changes), (1, None, 1));
    workspace.undo(UndoTarget::To(infos[0].id)).unwrap();
    assert_eq!(project.text("a"), "1");
}

#[test]
fn what_differs_between_two_is_told_with_links_modes_and_binary_files() {
    let project = Project::with(&[("text", "1\n2\n"), ("run", "#!\n"), ("bin", "\0one"), ("gone", "g\n")]);
    symlink("text", project.root().join("link")).unwrap();
    let workspace = project.open();
    let one = workspace.checkpoint(&session(1), "one").unwrap();
    project.write("text", "1\ntwo\n");
    set_mode(&project.root().join("run"), 0o755);
    project.write("bin", "\0two");
    fs::remove_file(project.root().join("gone")).unwrap();
    fs::remove_file(project.root().join("link")).unwrap();
    symlink("run", project.root().join("link")).unwrap();
    project.write("odd\nname", "n\n");
    let two = workspace.checkpoint(&session(1), "two").unwrap();
    let now = workspace.history().diff_between(&one, None, 1 << 20).unwrap();
    assert_eq!(workspace.history().diff_since(&one, 1 << 20).unwrap(), now);
    // The files go on changing; what was between the two stays what it was, in any process.
    project.write("text", "all new\n");
    apply(&workspace, vec![delete("run")]).unwrap();
    for workspace in [&workspace, &project.open()] {
        let diff = workspace.history().diff_between(&one, Some(&two), 1 << 20).unwrap();
        assert_eq!(diff, now);
        for part in [
            "-2\n+two\n",
            "old mode 100644\nnew mode 100755\n",
            "Binary files a/bin and b/bin differ\n",
            "deleted file mode 100644\n",
            "-text\n\\ No newline at end of file\n+run\n",
            "\"b/odd\\nname\"",
        ] {
            assert!(diff.text.contains(part), "`{part}` is not in\n{}", diff.text);
        }
        let files: Vec<_> =
            diff.files.iter().map(|file| (file.path.to_string(), file.kind, file.opaque)).collect();
        let expected = [
            ("bin", FileChangeKind::Modified, true),
            ("gone", FileChangeKind::Deleted, false),
            ("link", FileChangeKind::Modified, false),
            ("odd\\nname", FileChangeKind::Added, false),
            ("run", FileChangeKind::Modified, false),
            ("text", FileChangeKind::Modified, false),
        ];
        assert_eq!(files, expected.map(|(path, kind, opaque)| (path.to_owned(), kind, opaque)));
        assert_eq!((diff.lost, diff.truncated), (vec![], false));
    }
    let short = workspace.history().diff_between(&one, Some(&two), 10).unwrap();
    assert_eq!((short.text.as_str(), short.truncated, short.files.len()), ("", true, 6));
    assert_eq!(workspace.history().diff_between(&one, Some(&one), 1 << 20).unwrap().files, vec![]);
    let unknown = workspace.history().diff_between(&one, Some(&CheckpointId(99)), 1 << 20).unwrap_err();
    assert!(matches!(unknown, WorkspaceError::UnknownCheckpoint { id: CheckpointId(99) }));
}

#[test]
fn ignore_rules_that_change_between_two_neither_add_nor_delete() {
    let project = Project::with(&[("seen", "s\n"), ("hidden", "h\n"), (".gitignore", "hidden\n")]);
    let workspace = project.open();
    let one = workspace.checkpoint(&session(1), "one").unwrap();
    project.write(".gitignore", "seen\n");
    let two = workspace.checkpoint(&session(1), "two").unwrap();
    let diff = workspace.history().diff_between(&one, Some(&two), 1 << 20).unwrap();
    let files: Vec<String> = diff.files.iter().map(|file| file.path.to_string()).collect();
    assert_eq!(files, [".gitignore"]);
}

#[test]
fn what_isnt_kept_any_more_is_said() {
    let project = Project::with(&[("a", "1\n"), ("b", "1\n")]);
    let workspace = project.open();
    let one = workspace.checkpoint(&session(1), "one").unwrap();
    project.write("a", "2\n");
    project.write("b", "2\n");
    let two = workspace.checkpoint(&session(1), "two").unwrap();
    let whole = |workspace: &Workspace| {
        workspace.checkpoints().unwrap().into_iter().map(|info| info.whole).collect::<Vec<_>>()
    };
    assert_eq!(whole(&workspace), [true, true]);
    // "1\n" is the content of both files in the first.
    project.blobs.remove(&journeyman_protocol::ContentHash::of(b"1\n")).unwrap();
    assert_eq!(whole(&workspace), [false, true]);
    let diff = workspace.history().diff_between(&one, Some(&two), 1 << 20).unwrap();
    assert_eq!(diff.lost.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a", "b"]);
    assert!(diff.files.iter().all(|file| file.opaque));
    // With the lists of files gone too, there is nothing to compare.
    for entry in fs::read_dir(project.dir.path().join("blobs")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        }
    }
    let workspace = project.open();
    assert_eq!(whole(&workspace), [false, false]);
    let lost = workspace.history().diff_between(&one, Some(&two), 1 << 20).unwrap_err();
    assert!(matches!(lost, WorkspaceError::Lost { .. }), "{lost}");
}

#[test]
fn a_checkpoint_whose_list_of_files_is_damaged_is_named_and_ends_nothing() {
    let project = Project::with(&[("a", "1"), ("b", "2")]);
    let workspace = project.open();
    let first = workspace.checkpoint(&session(1), "before the run").unwrap();
    drop(workspace);
    let fan_out = fs::read_dir(project.dir.path().join("blobs")).unwrap().map(|dir| dir.unwrap().path());
    let files = fan_out.filter(|dir| dir.is_dir()).flat_map(|dir| fs::read_dir(dir).unwrap());
    for path in files.map(|file| file.unwrap().path()) {
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let workspace = project.open();
    let listed = workspace.checkpoints().unwrap();
    assert_eq!((listed[0].id, listed[0].readable, listed[0].whole), (first, false, false));
    let refused = workspace.history().diff_since(&first, 1000).unwrap_err().to_string();
    assert!(refused.contains(&format!("checkpoint {first}")) && refused.contains("damaged"), "{refused}");
    // The same tree is written anew, so that a later run can rely on it, and the first checkpoint
    // is mended by it.
    let second = workspace.checkpoint(&session(2), "before the run").unwrap();
    project.write("a", "changed");
    drop(workspace);
    let workspace = project.open();
    let changed = workspace.history().changes_since(&second).unwrap();
    assert_eq!(changed.len(), 1);
    assert_eq!(workspace.history().changes_since(&first).unwrap(), changed);
    assert!(workspace.checkpoints().unwrap().iter().all(|checkpoint| checkpoint.readable));
}

/// A project with packed contents, an edit and a checkpoint, and the files of its state.
fn with_state() -> Project {
    let project = Project::new();
    for number in 0..140 {
        project.write(&format!("dir/file{number}"), format!("content {number}"));
    }
    // Files that were just written are read again by the next checkpoint, which packs them with
    // what is new.
    settle();
    let workspace = project.open();
    workspace.checkpoint(&session(1), "before the run").unwrap();
    apply(&workspace, vec![write("dir/file1", "edited"), write("dir/file2", "edited")]).unwrap();
    workspace.checkpoint(&session(1), "step 2").unwrap();
    project
}

#[test]
fn a_checkup_finds_damage_of_each_kind_and_a_repair_leaves_none() {
    let clock = Clock::new(|| UnixMillis(1_800_000_000_000));
    // A file of the project's state, where it is damaged in hundredths of its length, and what is
    // said.
    let table = [
        ("journal/log", 50, "the journal is damaged in 1 place"),
        ("packs", 50, "the index of packed contents is damaged in 1 place"),
        ("packs", 0, "the index of packed contents is damaged in 1 place"),
        ("ledger", 50, "the ledger is damaged in 1 place"),
    ];
    for (file, at, said) in table {
        let project = with_state();
        let blobs = Arc::clone(&project.blobs);
        let mut counted = 0;
        let mut count = |verified| counted = verified;
        let whole = CheckupReport { checkpoints: 2, ..CheckupReport::default() };
        assert_eq!(Checkup::new(&blobs, &mut count).check(&project.state()).unwrap(), whole);
        assert!(counted > 3, "{counted}");
        let path = project.state().join(file);
        let mut bytes = fs::read(&path).unwrap();
        let place = bytes.len() * at / 100;
        bytes[place] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut quiet = |_| {};
        let mut checkup = Checkup::new(&blobs, &mut quiet);
        let found = checkup.check(&project.state()).unwrap();
        assert_eq!((found.damage.len(), &found.damage[0].path), (1, &path), "{file}: {found:?}");
        assert!(found.damage[0].cost.contains(said), "{file}: {found:?}");
        let told = checkup.repair(&project.state(), &clock).unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        // What it was is kept where that is said.
        let aside = told[0].rsplit(' ').next().unwrap();
        assert_eq!(fs::read(aside).unwrap(), bytes, "{told:?}");
        assert_eq!(checkup.check(&project.state()).unwrap().damage, [], "{file}");
        assert_eq!(checkup.repair(&project.state(), &clock).unwrap(), Vec::<String>::new());
        // All but what was damaged is there: of packs, all but the one entry that was hit.
        let workspace = project.open();
        let whole = workspace.checkpoints().unwrap().iter().filter(|one| one.whole && one.readable).count();
        assert!(whole >= 1 || file == "packs", "{file}");
        workspace.checkpoint(&session(2), "later").unwrap();
    }
}

#[test]
fn a_repair_moves_damaged_contents_out_of_the_way_and_waits_for_nobody() {
    let clock = Clock::new(|| UnixMillis(1_800_000_000_000));
    let project = with_state();
    let blobs = Arc::clone(&project.blobs);
    let hash = journeyman_protocol::ContentHash::of(b"edited");
    let path = blobs.path(&hash);
    fs::write(&path, b"\0edxted").unwrap();
    let mut quiet = |_| {};
    let mut checkup = Checkup::new(&blobs, &mut quiet);
    let found = checkup.check(&project.state()).unwrap();
    assert_eq!(found.damage.iter().map(|one| &one.path).collect::<Vec<_>>(), [&path], "{found:?}");
    assert!(found.damage[0].cost.contains("dir/file1 in checkpoint"), "{found:?}");
    let using = blobs.lock_for_use().unwrap();
    let busy = checkup.repair(&project.state(), &clock).unwrap_err();
    assert!(matches!(busy, WorkspaceError::Busy { .. }), "{busy:?}");
    assert!(path.exists());
    drop(using);
    let told = checkup.repair(&project.state(), &clock).unwrap();
    assert!(told[0].contains("damaged/") && told[0].contains("dir/file1 in checkpoint"), "{told:?}");
    let found = checkup.check(&project.state()).unwrap();
    assert_eq!((found.damage.len(), found.missing, path.exists()), (0, 1, false));
}

#[test]
fn a_journal_that_is_gone_is_told_and_its_numbers_do_not_come_back() {
    let clock = Clock::new(|| UnixMillis(1_800_000_000_000));
    for mend in [true, false] {
        let project = with_state();
        fs::remove_file(project.state().join("journal/log")).unwrap();
        let mut quiet = |_| {};
        let blobs = Arc::clone(&project.blobs);
        let mut checkup = Checkup::new(&blobs, &mut quiet);
        let found = checkup.check(&project.state()).unwrap();
        assert!(found.damage[0].cost.contains("the journal is gone"), "{found:?}");
        if mend {
            checkup.repair(&project.state(), &clock).unwrap();
            assert_eq!(checkup.check(&project.state()).unwrap().damage, []);
        }
        let workspace = project.open();
        let refused = workspace.undo(UndoTarget::LastRun).unwrap_err();
        assert!(matches!(refused, WorkspaceError::HistoryDamaged { session: None }), "{refused:?}");
        let id = workspace.checkpoint(&session(2), "before the run").unwrap();
        assert!(id.0 >= 1_000_000, "{id}");
        apply(&workspace, vec![write("dir/file3", "edited")]).unwrap();
        let report = workspace.undo(UndoTarget::LastRun).unwrap();
        assert_eq!((shown(&report.restored).as_str(), report.damaged), ("~dir/file3", false));
    }
}
