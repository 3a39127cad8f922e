//! Cut off at every step of a landing, and failed at every step of it, also by a disk that is
//! really full.

use journeyman_testkit::{skip, test_arguments, test_path};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_workspace::failpoint::{Failpoint, Fault};
use journeyman_workspace::{CopyChanges, LandOptions, OnConflict, UndoTarget, Workspace, WorkspaceError};
use rustix::io::Errno;

use crate::land::copied::{Copied, RUN};
use crate::support::{Model, session, set_mode};

fn after(steps: usize, fault: Fault) -> (Failpoint, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let hook = move |_| if counter.fetch_add(1, Ordering::Relaxed) == steps { fault } else { Fault::Go };
    (Failpoint::new(hook), seen)
}

/// Every kind of change on the copy's side, and the user's own beside some of them.
fn prepared() -> Copied {
    let lines: String = (1..=9).map(|line| format!("{line}\n")).collect();
    let copied = Copied::with(&[
        ("edited", "old\n"),
        ("merged", &lines),
        ("gone", "gone\n"),
        ("from", &lines),
        ("run", "#!/bin/sh\n"),
        ("dir/in/deep", "deep\n"),
        ("dir/other", "other\n"),
        ("file", "file\n"),
        ("link", "no link yet\n"),
        ("empties/only", "only\n"),
    ]);
    let root = copied.copy_root();
    copied.write("edited", "new\n");
    copied.write("merged", lines.replace("1\n", "one\n"));
    fs::remove_file(root.join("gone")).unwrap();
    fs::create_dir(root.join("moved")).unwrap();
    fs::rename(root.join("from"), root.join("moved/to")).unwrap();
    set_mode(&root.join("run"), 0o755);
    fs::remove_dir_all(root.join("dir")).unwrap();
    copied.write("dir", "a file now\n");
    fs::remove_file(root.join("file")).unwrap();
    copied.write("file/is/a/directory", "now\n");
    fs::remove_file(root.join("link")).unwrap();
    symlink("edited", root.join("link")).unwrap();
    fs::remove_dir_all(root.join("empties")).unwrap();
    fs::create_dir_all(root.join("empty/inner")).unwrap();
    copied.project.write("merged", lines.replace("9\n", "nine\n"));
    copied.project.write("from", lines.replace("5\n", "five\n"));
    copied.project.write("users/own", "own\n");
    copied
}

fn land(workspace: &Workspace, changes: &CopyChanges) -> Result<(), WorkspaceError> {
    let landing = workspace.land(changes, &LandOptions::default())?;
    assert!(landing.conflicts.is_empty(), "{landing:?}");
    assert_eq!(landing.merged.len(), 1, "{landing:?}");
    Ok(())
}

fn no_leftovers(model: &Model) {
    let left: Vec<_> = model.keys().filter(|path| path.windows(4).any(|part| part == b".jm-")).collect();
    assert!(left.is_empty(), "left over: {left:?}");
}

#[test]
fn before_or_after_and_never_between() {
    let whole = prepared();
    let before = whole.tree();
    let changes = whole.changes();
    let (hook, count) = after(usize::MAX, Fault::Go);
    land(&whole.failing(hook), &changes).unwrap();
    let done = whole.tree();
    no_leftovers(&done);
    let mut expected = whole.copied();
    for own in ["users", "users/own", "merged", "moved/to"] {
        expected.insert(own.as_bytes().to_vec(), done[own.as_bytes()].clone());
    }
    assert_eq!(done, expected);
    let text = whole.project.text("merged");
    assert!(text.starts_with("one\n") && text.ends_with("nine\n"), "{text}");
    assert!(whole.project.text("moved/to").contains("five\n"));
    let steps = count.load(Ordering::Relaxed);
    assert!(steps > 40, "{steps} steps");
    let mut ends = [0, 0];
    for step in 0..steps {
        let copied = prepared();
        let changes = copied.changes();
        let cut = land(&copied.failing(after(step, Fault::Cut).0), &changes).unwrap_err();
        assert!(matches!(cut, WorkspaceError::CutOff(_)), "{cut:?}");
        let workspace = copied.project.open();
        let tree = copied.tree();
        assert!(tree == before || tree == done, "cut at step {step} ({cut}): {tree:#?}");
        no_leftovers(&tree);
        ends[usize::from(tree == done)] += 1;
        // It can be taken back, or done again.
        if tree == done {
            let report = workspace.undo(UndoTarget::Session(session(RUN))).unwrap();
            assert!(report.conflicts.is_empty(), "{report:?}");
            assert_eq!(copied.tree(), before, "undone after a cut at step {step}");
        } else {
            land(&workspace, &changes).unwrap();
            assert_eq!(copied.tree(), done, "again after a cut at step {step}");
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
    for step in 0..steps {
        let copied = prepared();
        let changes = copied.changes();
        let workspace = copied.failing(after(step, Fault::Fail(Errno::NOSPC)).0);
        match land(&workspace, &changes) {
            Ok(()) => assert_eq!(copied.tree(), done, "failed too late at step {step}"),
            Err(error) => {
                let known = matches!(error, WorkspaceError::NoSpace { .. } | WorkspaceError::State { .. });
                assert!(known, "{error:?}");
                assert_eq!(copied.tree(), before, "failed at step {step}");
                land(&workspace, &changes).unwrap();
                assert_eq!(copied.tree(), done, "again after a failure at step {step}");
            }
        }
    }
}

/// Run by [`a_disk_that_is_really_full`] in namespaces of its own, with the project on a disk of
/// two MiB.
#[test]
fn within_a_small_disk() {
    let Some(disk) = std::env::var_os("JM_TEST_SMALL_DISK") else { return };
    let disk = std::path::PathBuf::from(disk);
    let project = crate::support::Project::new();
    let root = project.root();
    fs::create_dir(disk.join("tree")).unwrap();
    fs::remove_dir(&root).unwrap();
    symlink(disk.join("tree"), &root).unwrap();
    let noise = |seed: u64, size: usize| -> Vec<u8> {
        let mut state = seed;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u8::try_from(state >> 56).unwrap()
        };
        (0..size).map(|_| byte()).collect()
    };
    for n in 0..10_u64 {
        project.write(&format!("file{n}"), noise(n, 100_000));
    }
    let copied = Copied::of(project);
    let copy = copied.project.dir.path().join("copy");
    // `cp -a` copied the link to the tree; the copy has to be one of its own, on the larger disk.
    assert!(copy.symlink_metadata().unwrap().is_symlink());
    fs::remove_file(&copy).unwrap();
    let run = Command::new("cp").arg("-a").arg(disk.join("tree")).arg(&copy).status().unwrap();
    assert!(run.success());
    let state = copied.project.dir.path().join("copy-state");
    let options = journeyman_workspace::Options::new(state, copied.project.blobs.clone());
    let workspace = Workspace::open(&copy, options).unwrap();
    for n in 0..30_u64 {
        fs::write(copy.join(format!("file{n}")), noise(100 + n, 100_000)).unwrap();
    }
    fs::remove_file(copy.join("file3")).unwrap();
    let changes = copied.user.landings().changes_in_workspace(&workspace, &copied.info).unwrap();
    let before = crate::support::model(&disk.join("tree"));
    let refused = copied.user.land(&changes, &LandOptions::default()).unwrap_err();
    assert!(matches!(refused, WorkspaceError::NoSpace { .. }), "{refused:?}");
    assert_eq!(crate::support::model(&disk.join("tree")), before);
    // With less to land there is room, and nothing stands in the way of it.
    for n in 0..30_u64 {
        fs::write(copy.join(format!("file{n}")), noise(200 + n, 20_000)).unwrap();
    }
    let changes = copied.user.landings().changes_in_workspace(&workspace, &copied.info).unwrap();
    let landing = copied.user.land(&changes, &LandOptions::default()).unwrap();
    assert_eq!((landing.conflicts, landing.applied.changes.len()), (vec![], 30));
    assert_eq!(crate::support::model(&disk.join("tree")), crate::support::model(&copy));
}

#[test]
fn a_disk_that_is_really_full() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let us = std::env::current_exe().unwrap();
    let script = "mount -t tmpfs -o size=2m small \"$1\" && JM_TEST_SMALL_DISK=\"$1\" && export JM_TEST_SMALL_DISK && \
                  shift && exec \"$@\"";
    let namespaces = ["--user", "--map-root-user", "--mount", "--", "sh", "-c", script, "sh"];
    let ran = Command::new("unshare")
        .args(namespaces)
        .arg(&disk)
        .arg(&us)
        .args(test_arguments(test_path!("within_a_small_disk")))
        .output();
    match ran {
        Ok(ran) => {
            let said =
                [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
            if said.contains("running 1 test") {
                assert!(ran.status.success() && said.contains("1 passed"), "{said}");
            } else {
                skip(format!("no file system can be mounted here: {said}"));
            }
        }
        Err(error) => skip(format!("no namespaces: {error}")),
    }
}

#[test]
fn an_undo_keeps_what_the_user_changed_after_the_landing() {
    let copied = prepared();
    let before = copied.tree();
    land(&copied.user, &copied.changes()).unwrap();
    copied.project.write("edited", "the user's\n");
    copied.project.write("moved/to", "the user's too\n");
    let report = copied.user.undo(UndoTarget::Session(session(RUN))).unwrap();
    let kept: Vec<String> = report.conflicts.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(kept, ["edited", "moved/to"]);
    let mut expected = before;
    for path in ["edited", "moved", "moved/to"] {
        expected.insert(path.as_bytes().to_vec(), copied.tree()[path.as_bytes()].clone());
    }
    assert_eq!(copied.tree(), expected);
    assert_eq!(copied.project.text("edited"), "the user's\n");
    // Landing once more asks about those two and about nothing else.
    let again = copied.land(OnConflict::Refuse);
    assert!(!again.conflicts.is_empty() && again.applied.changes.is_empty(), "{again:?}");
}
