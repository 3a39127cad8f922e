//! What the past may take of the disk: bounded whatever is done, oldest first, and never what is
//! still needed.

use crate::support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_protocol::ContentHash;
use journeyman_store::Blobs;
use journeyman_workspace::failpoint::{Failpoint, Fault, TransactionStep};
use journeyman_workspace::{CheckpointId, Options, UndoTarget, Workspace, WorkspaceError};
use support::{Project, apply, session, set, shown, write};

/// A quota that a few dozen changes fill.
const QUOTA: u64 = 512 * 1024;

fn project(quota: u64) -> Project {
    let mut project = Project::in_memory();
    project.limits.project_bytes = quota;
    project
}

/// Bytes of disk beneath a directory.
fn disk(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let sizes = entries.map(|entry| {
        let path = entry.unwrap().path();
        let found = fs::symlink_metadata(&path).unwrap();
        if found.is_dir() { disk(&path) } else { found.blocks() * 512 }
    });
    sizes.sum()
}

fn blobs(project: &Project) -> u64 {
    disk(&project.dir.path().join("blobs"))
}

/// Text that can't be packed much, another one for each number.
fn noise(number: u64, bytes: usize) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b' ' + u8::try_from(state % 94).unwrap())
    };
    (0..bytes).map(next).collect()
}

fn command(project: &Project, workspace: &Workspace, number: u64, files: &[(String, String)]) {
    let begun = workspace.command_observer().begin().unwrap();
    for (path, content) in files {
        project.write(path, content);
    }
    workspace.command_observer().end(begun, &session(number), None).unwrap();
}

#[test]
fn disk_use_stays_bounded_over_hundreds_of_changes_and_the_newest_can_be_taken_back() {
    let project = project(QUOTA);
    let mut workspace = project.open();
    let mut most = 0;
    // Six times what the quota holds.
    for number in 0..500_u64 {
        if number % 50 == 0 {
            workspace = project.open();
        }
        if number % 10 == 0 {
            workspace.checkpoint(&session(number), "turn").unwrap();
        }
        let (path, before) = (format!("f{}", number % 7), project.tree());
        workspace.apply(set(number, vec![write(&path, &noise(number, 6_000))])).unwrap();
        if number % 25 == 0 {
            let report = workspace.undo(UndoTarget::Session(session(number))).unwrap();
            assert_eq!((report.conflicts, report.dropped), (vec![], false));
            assert_eq!(project.tree(), before, "change {number}");
            workspace.redo(None).unwrap();
        }
        most = most.max(blobs(&project));
    }
    let storage = workspace.history().storage_usage().unwrap();
    assert_eq!(storage.limit_bytes, QUOTA);
    assert!(storage.bytes <= QUOTA, "{storage:?}");
    // The last change before a sweep, and the directories.
    assert!(most <= QUOTA + 256 * 4096 + 64 * 1024, "{most}");
    assert!(most > QUOTA / 2, "the quota is used: {most}");
    assert!(disk(&project.state()) < 512 * 1024, "the books are bounded too: {}", disk(&project.state()));
    // What is left of the past is whole.
    let checkpoints = workspace.checkpoints().unwrap();
    assert!(checkpoints.len() > 2 && checkpoints.len() < 300, "{}", checkpoints.len());
    assert!(checkpoints[1..].iter().all(|checkpoint| checkpoint.whole));
    let oldest = &checkpoints[1];
    let report = workspace.undo(UndoTarget::To(oldest.id)).unwrap();
    assert_eq!(report.conflicts, vec![]);
    assert_eq!(workspace.history().changes_since(&oldest.id).unwrap(), vec![]);
}

#[test]
fn what_was_dropped_is_said() {
    let project = project(QUOTA);
    let workspace = project.open();
    project.write("a", "0");
    let first = workspace.checkpoint(&session(1), "first").unwrap();
    apply(&workspace, vec![write("a", "1")]).unwrap();
    for number in 0..200 {
        workspace.apply(set(2, vec![write("b", &noise(number, 8_000))])).unwrap();
    }
    let error = workspace.undo(UndoTarget::Session(session(1))).unwrap_err();
    assert!(matches!(error, WorkspaceError::HistoryDropped { session: Some(_) }), "{error}");
    assert!(error.to_string().contains("aren't kept any more"));
    // The newest checkpoint stays, and what differs from it can be seen; but not all of it can be
    // gone back to.
    assert_eq!(shown(&workspace.history().changes_since(&first).unwrap()), "~a +b");
    let error = workspace.undo(UndoTarget::To(first)).unwrap_err();
    assert!(matches!(error, WorkspaceError::SinceDropped { checkpoint } if checkpoint == first), "{error}");
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert!(report.dropped, "older changes of the same session are gone");
    assert_eq!(shown(&report.restored), "~b");
    let error = workspace.undo(UndoTarget::LastRun).unwrap_err();
    assert!(matches!(error, WorkspaceError::HistoryDropped { session: None }), "{error}");
    // Never asked for, never dropped.
    let error = workspace.undo(UndoTarget::Session(session(7))).unwrap_err();
    assert!(matches!(error, WorkspaceError::NothingToUndo { session: Some(_) }), "{error}");
}

#[test]
fn the_same_content_is_kept_once_and_packed() {
    let project = project(64 << 20);
    let text = "the same line again and again\n".repeat(4_000);
    for number in 0..40 {
        project.write(&format!("copy-{number}"), &text);
    }
    let workspace = project.open();
    for number in 0..20 {
        workspace.checkpoint(&session(number), "same").unwrap();
        command(&project, &workspace, number, &[("changed".to_owned(), format!("{number}"))]);
    }
    let (raw, taken) = (text.len() as u64 * 40, workspace.history().storage_usage().unwrap().bytes);
    println!("{raw} bytes of files, 20 checkpoints of them: {taken} bytes");
    assert!(taken < raw / 10, "{taken} of {raw}");
    assert!(taken <= blobs(&project));
}

#[test]
fn a_tree_larger_than_the_quota_is_kept_as_far_as_it_fits_and_the_rest_is_named() {
    let project = project(QUOTA);
    for number in 0..20 {
        project.write(&format!("f{number:02}"), noise(number, 64 * 1024));
    }
    let workspace = project.open();
    let begun = workspace.command_observer().begin().unwrap();
    let unkept: Vec<String> = begun.not_undoable_files().iter().map(ToString::to_string).collect();
    assert_eq!(unkept.len(), 12, "{unkept:?}");
    for number in 0..20 {
        project.write(&format!("f{number:02}"), "gone");
    }
    workspace.command_observer().end(begun, &session(1), None).unwrap();
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((report.restored.len(), report.conflicts.len()), (8, 12));
    assert!(report.conflicts.iter().all(|(_, why)| why.contains("too large")));
    for round in 0..100 {
        workspace.checkpoint(&session(1), "again").unwrap();
        workspace.apply(set(2, vec![write("f00", &noise(1_000 + round, 20_000))])).unwrap();
    }
    // The newest checkpoint and the newest change, whatever they take.
    assert!(blobs(&project) < 2 * QUOTA + 256 * 4096, "{}", blobs(&project));
    assert_eq!(shown(&workspace.undo(UndoTarget::LastRun).unwrap().restored), "~f00");
    let newest = workspace.checkpoints().unwrap().pop().unwrap();
    assert!(newest.whole);
}

#[test]
fn packs_stay_as_long_as_anything_in_them_is_needed_and_are_packed_anew() {
    let project = project(QUOTA);
    // Packs that are nearly all garbage afterwards: a few files of the first snapshot stay as they
    // are.
    for number in 0..600 {
        project.write(&format!("d{}/f{number}", number % 10), noise(number, 500));
    }
    let workspace = project.open();
    workspace.checkpoint(&session(1), "first").unwrap();
    for round in 1..12_u64 {
        let files: Vec<(String, String)> = (20..600)
            .map(|number| (format!("d{}/f{number}", number % 10), noise(round * 1_000 + number, 500)))
            .collect();
        command(&project, &workspace, round, &files);
        workspace.checkpoint(&session(round), "next").unwrap();
        assert!(blobs(&project) < 2 * QUOTA + 256 * 4096, "round {round}: {}", blobs(&project));
    }
    let checkpoints = workspace.checkpoints().unwrap();
    let newest = checkpoints.last().unwrap();
    assert!(newest.whole);
    let before = project.tree();
    let everything: Vec<(String, String)> =
        (0..600).map(|number| (format!("d{}/f{number}", number % 10), "over".to_owned())).collect();
    command(&project, &project.open(), 50, &everything);
    let report = project.open().undo(UndoTarget::LastRun).unwrap();
    assert_eq!(report.conflicts, vec![]);
    assert_eq!(project.tree(), before, "those that were never changed come from the first pack");
}

#[test]
fn what_another_project_put_first_or_needs_too_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Blobs::open(&dir.path().join("blobs"), 1 << 30).unwrap());
    let open = |name: &str| {
        let root = dir.path().join("trees").join(name);
        fs::create_dir_all(&root).unwrap();
        let mut options = Options::new(dir.path().join("projects").join(name), store.clone());
        options.limits.project_bytes = QUOTA;
        (Workspace::open(&root, options).unwrap(), root)
    };
    let (ours, our_root) = open("ours");
    let (theirs, their_root) = open("theirs");
    // The same text, which ours puts first.
    let shared = noise(1, 9_000);
    for root in [&our_root, &their_root] {
        fs::write(root.join("shared"), &shared).unwrap();
    }
    ours.apply(set(1, vec![write("shared", "1")])).unwrap();
    theirs.apply(set(1, vec![write("shared", "1")])).unwrap();
    assert!(
        ours.history().storage_usage().unwrap().bytes > theirs.history().storage_usage().unwrap().bytes,
        "counted where it was put first"
    );
    for number in 0..300 {
        ours.apply(set(2, vec![write("other", &noise(10 + number, 8_000))])).unwrap();
    }
    let error = ours.undo(UndoTarget::Session(session(1))).unwrap_err();
    assert!(matches!(error, WorkspaceError::HistoryDropped { .. }), "{error}");
    assert_eq!(shown(&theirs.undo(UndoTarget::LastRun).unwrap().restored), "~shared");
    assert_eq!(fs::read_to_string(their_root.join("shared")).unwrap(), shared);
    // Once nobody needs it, it goes with theirs.
    for number in 0..300 {
        theirs.apply(set(3, vec![write("other", &noise(1_000 + number, 8_000))])).unwrap();
    }
    assert!(!store.contains(&ContentHash::of(shared.as_bytes())).unwrap());
}

#[test]
fn a_running_command_keeps_what_it_began_with() {
    let project = project(QUOTA);
    project.write("watched", noise(1, 30_000));
    let (running, other) = (project.open(), project.open());
    let call = journeyman_protocol::CallId::new("long");
    let with_beat = running.command_observer().begin_background(&session(1), &call).unwrap();
    project.write("plain", noise(2, 30_000));
    let without = running.command_observer().begin().unwrap();
    for number in 0..200 {
        // By the same process, and by another one.
        let workspace = if number % 2 == 0 { &running } else { &other };
        workspace.apply(set(2, vec![write("other", &noise(10 + number, 8_000))])).unwrap();
    }
    assert!(blobs(&project) < 2 * QUOTA);
    fs::remove_file(project.root().join("watched")).unwrap();
    running.command_observer().end(with_beat, &session(1), Some(&call)).unwrap();
    fs::remove_file(project.root().join("plain")).unwrap();
    running.command_observer().end(without, &session(3), None).unwrap();
    let report = running.undo(UndoTarget::Session(session(3))).unwrap();
    assert_eq!(project.text("plain"), noise(2, 30_000), "{report:?}");
    let hash = ContentHash::of(noise(1, 30_000).as_bytes());
    assert!(project.blobs.contains(&hash).unwrap(), "what the background command removed can come back");
}

#[test]
fn copies_and_the_checkpoints_they_were_made_from_are_kept() {
    let project = project(QUOTA);
    project.write("a", "0");
    let workspace = project.open();
    let base = workspace.checkpoint(&session(1), "base of a copy").unwrap();
    apply(&workspace, vec![write("a", "1")]).unwrap();
    // A copy as it lies on the disk: its record, and a journal of its own over the same blobs.
    let copy = project.state().join("work").join(session(5).as_str());
    let copied = Project {
        dir: tempfile::tempdir().unwrap(),
        blobs: project.blobs.clone(),
        limits: project.limits.clone(),
    };
    fs::create_dir(copied.root()).unwrap();
    let precious = noise(77, 20_000);
    copied.write("p", &precious);
    let options =
        Options { limits: project.limits.clone(), ..Options::new(copy.join("state"), project.blobs.clone()) };
    let inside = Workspace::open(&copied.root(), options).unwrap();
    inside.apply(set(5, vec![write("p", "changed in the copy")])).unwrap();
    fs::write(copy.join("record"), format!("sum\n{{\"info\":{{\"base\":{}}}}}\n", base.0)).unwrap();
    // The project is the one that counts it.
    fs::rename(copy.join("state/ledger"), project.dir.path().join("theirs")).unwrap();
    let mut ledger = fs::read(project.state().join("ledger")).unwrap();
    ledger.extend(fs::read(project.dir.path().join("theirs")).unwrap());
    fs::write(project.state().join("ledger"), ledger).unwrap();
    for number in 0..300 {
        workspace.apply(set(2, vec![write("b", &noise(number, 8_000))])).unwrap();
        if number % 20 == 0 {
            workspace.checkpoint(&session(2), "later").unwrap();
        }
    }
    let checkpoints = workspace.checkpoints().unwrap();
    let kept = checkpoints.iter().find(|checkpoint| checkpoint.id == base).unwrap();
    assert!(kept.whole);
    assert!(checkpoints.len() < 10, "{}", checkpoints.len());
    assert_eq!(shown(&inside.undo(UndoTarget::LastRun).unwrap().restored), "~p");
    assert_eq!(copied.text("p"), precious);
}

/// Killed at any step of a sweep: the newest changes can be taken back all the same, and the next
/// sweep ends the work.
#[test]
fn a_sweep_that_is_cut_off_loses_nothing_that_is_needed() {
    for step in [TransactionStep::Forget, TransactionStep::Sweep, TransactionStep::Swept] {
        let project = project(QUOTA);
        let hit = Arc::new(AtomicUsize::new(0));
        let count = hit.clone();
        let hook = Failpoint::new(move |now| {
            if now == step && count.fetch_add(1, Ordering::Relaxed) == 0 { Fault::Cut } else { Fault::Go }
        });
        let workspace = project.open_failing(hook);
        project.write("f", "before everything");
        let mut cut = false;
        for number in 0..400 {
            let before = project.text("f");
            match workspace.apply(set(number, vec![write("f", &noise(number, 8_000))])) {
                Ok(_) => {}
                Err(WorkspaceError::CutOff(at)) => {
                    assert_eq!(at, step);
                    cut = true;
                    let workspace = project.open();
                    assert_eq!(shown(&workspace.undo(UndoTarget::LastRun).unwrap().restored), "~f");
                    assert_eq!(project.text("f"), before);
                    workspace.redo(None).unwrap();
                    assert_eq!(project.text("f"), noise(number, 8_000));
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(cut, "{step:?}");
        assert!(blobs(&project) <= QUOTA + 256 * 4096 + 64 * 1024, "{step:?}: {}", blobs(&project));
        assert!(workspace.history().storage_usage().unwrap().bytes <= QUOTA);
    }
}

#[test]
fn two_processes_keep_to_one_quota() {
    let project = project(QUOTA);
    let threads: Vec<_> = (0..2_u64)
        .map(|thread| {
            let (root, options) = (project.root(), project.options());
            std::thread::spawn(move || {
                let workspace = Workspace::open(&root, options).unwrap();
                for number in 0..300_u64 {
                    let seed = thread * 10_000 + number;
                    let path = format!("t{thread}");
                    workspace.apply(set(seed, vec![write(&path, &noise(seed, 6_000))])).unwrap();
                    if number % 20 == 0 {
                        workspace.checkpoint(&session(seed), "turn").unwrap();
                    }
                    if number % 30 == 29 {
                        let report = workspace.undo(UndoTarget::Session(session(seed))).unwrap();
                        assert_eq!(report.conflicts, vec![]);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let workspace = project.open();
    workspace.apply(set(99_999, vec![write("last", "x")])).unwrap();
    assert!(workspace.history().storage_usage().unwrap().bytes <= QUOTA);
    assert!(blobs(&project) <= QUOTA + 256 * 4096 + 64 * 1024);
    assert!(matches!(
        workspace.undo(UndoTarget::To(CheckpointId(1))),
        Err(WorkspaceError::UnknownCheckpoint { .. })
    ));
}
