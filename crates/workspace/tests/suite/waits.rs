//! What a one-file edit asks of the disk, and in which order: seen from outside, system call by
//! system call.

use crate::support;
use journeyman_testkit::rerun_test;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tracer::{self, Plan, trace};
use journeyman_store::Blobs;
use journeyman_workspace::{Options, Workspace};
use support::{session, set, write};

/// Tells the traced program where it works, and what it does.
const WHERE: &str = "JM_TEST_WAITS";
const WHAT: &str = "JM_TEST_WAITS_OF";

/// The calls that wait for the disk or that a reader of the tree can see.
fn named(calls: &[i64]) -> String {
    let names = calls.iter().filter_map(|call| match *call {
        libc::SYS_fsync => Some("fsync"),
        libc::SYS_fdatasync => Some("fdatasync"),
        libc::SYS_syncfs => Some("syncfs"),
        libc::SYS_sync => Some("sync"),
        libc::SYS_renameat2 => Some("exchange"),
        libc::SYS_rename | libc::SYS_renameat => Some("rename"),
        libc::SYS_unlink | libc::SYS_unlinkat => Some("unlink"),
        _ => None,
    });
    names.collect::<Vec<_>>().join(" ")
}

/// The traced program; nothing in an ordinary run.
#[test]
fn traced() {
    let Some(dir) = std::env::var_os(WHERE).map(PathBuf::from) else { return };
    let what = std::env::var(WHAT).unwrap();
    let blobs = Arc::new(Blobs::open(&dir.join("blobs"), 1 << 30).unwrap());
    let workspace = Workspace::open(&dir.join("tree"), Options::new(dir.join("state"), blobs)).unwrap();
    // The journal and the lock are there from here on.
    workspace.apply(set(1, vec![write("other", "x")])).unwrap();
    if what != "new" {
        workspace.checkpoint(&session(1), "before").unwrap();
    }
    tracer::begin();
    if what == "checkpoint" {
        workspace.checkpoint(&session(1), "again").unwrap();
    } else {
        workspace.apply(set(1, vec![write("src/file", "after")])).unwrap();
    }
    tracer::end();
}

fn calls(dir: &Path, what: &str) -> String {
    let mut command = rerun_test!("traced");
    command.env(WHERE, dir).env(WHAT, what);
    let trace = trace(&mut command, Plan::Watch).unwrap();
    assert_eq!(trace.code, Some(0), "{what}");
    println!("{what}: {} system calls", trace.calls.len());
    named(&trace.calls)
}

#[test]
fn the_new_content_and_the_intent_are_on_the_disk_before_the_file_changes_and_the_directory_after_it() {
    let table = [
        // Its content, the journal; the exchange; its directory. Then what was there goes.
        ("kept", "fsync fdatasync exchange fsync unlink"),
        // Before all that, what was there is kept: its blob, and the blob's directory.
        ("new", "fsync rename fsync fsync fdatasync exchange fsync unlink"),
        ("checkpoint", ""),
    ];
    for (what, expected) in table {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("tree");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("src/file"), "before").unwrap();
        // What a first blob makes needs waits of its own.
        let blobs = Blobs::open(&dir.path().join("blobs"), 1 << 30).unwrap();
        let hash = blobs.put(b"before").unwrap();
        blobs.remove(&hash).unwrap();
        drop(blobs);
        assert_eq!(calls(dir.path(), what), expected, "{what}");
    }
}
