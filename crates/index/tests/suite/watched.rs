//! Files are followed as they change, by the system's events.

use crate::common;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::{everything, put, refresh};
use journeyman_index::store::RefreshOptions;
use journeyman_index::watch::{WatchEvent, follow_project};
use journeyman_index::{Index, ProjectIndex};

/// Far longer than anything should take; a machine under load is slow.
const DEADLINE: Duration = Duration::from_secs(300);

/// A tree that a thread follows until it is dropped.
struct Followed {
    kept: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    told: Receiver<String>,
    so_far: Vec<String>,
}

impl Followed {
    fn new(files: &[(&str, &str)]) -> Self {
        let kept = tempfile::tempdir().unwrap();
        let tree = kept.path().canonicalize().unwrap().join("tree");
        std::fs::create_dir(&tree).unwrap();
        for (path, text) in files {
            put(&tree, path, text);
        }
        let directory = kept.path().join("index");
        let (stop, (sender, told)) = (Arc::new(AtomicBool::new(false)), channel());
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let project = ProjectIndex::open(&tree, &directory, 2).unwrap();
            let options = RefreshOptions {
                threads: NonZero::new(2).unwrap(),
                wait: false,
                progress: &|_| {},
                stop: &flag,
            };
            let mut tell = |told: WatchEvent<'_>| {
                let said = match told {
                    WatchEvent::Watching(directories) => format!("watching {directories}"),
                    WatchEvent::Polling(why) => format!("polling: {why}"),
                    WatchEvent::Updated(paths, _) => format!("updated {}", paths.len()),
                    WatchEvent::Refreshed(why, _) => format!("refreshed: {why}"),
                    WatchEvent::Failed(error) => format!("failed: {error}"),
                };
                sender.send(said).ok();
            };
            follow_project(&project, options, &mut tell).unwrap();
        });
        let mut followed = Self { kept, stop, thread: Some(thread), told, so_far: Vec::new() };
        followed.wait_for_event("refreshed: the beginning");
        followed
    }

    fn tree(&self) -> PathBuf {
        self.kept.path().join("tree")
    }

    fn wait_for_event(&mut self, what: &str) {
        let end = Instant::now() + DEADLINE;
        while !self.so_far.iter().any(|told| told.starts_with(what)) {
            let left = end.saturating_duration_since(Instant::now());
            self.so_far
                .push(self.told.recv_timeout(left).unwrap_or_else(|_| panic!("{what}: {:?}", self.so_far)));
        }
    }

    /// Waits until the index equals one built from scratch.
    fn wait_until_equal(&self) {
        let end = Instant::now() + DEADLINE;
        let words = ["alpha", "beta", "many"];
        loop {
            let anew = tempfile::tempdir().unwrap();
            let fresh = Index::open(anew.path()).unwrap();
            refresh(&fresh, &self.tree());
            let expected = everything(&fresh.snapshot(), &words);
            let found = Index::open(&self.kept.path().join("index")).unwrap();
            let there = everything(&found.snapshot(), &words);
            if there == expected {
                return;
            }
            let apart = there.lines().zip(expected.lines()).find(|(there, expected)| there != expected);
            assert!(Instant::now() < end, "{apart:?}, told: {:?}", self.told.try_iter().collect::<Vec<_>>());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn write(tree: &Path, path: &str, text: &str) {
    put(tree, path, text);
}

#[test]
fn changes_are_followed() {
    let mut followed = Followed::new(&[("src/a.rs", "fn alpha() {}\n"), ("b.rs", "fn beta() {}\n")]);
    let tree = followed.tree();
    assert!(followed.so_far[0].starts_with("watching 2"), "{:?}", followed.so_far);
    write(&tree, "src/a.rs", "fn beta() {}\n");
    followed.wait_for_event("updated 1");
    followed.wait_until_equal();
    // Editors write another file, and rename it.
    write(&tree, "src/a.rs.tmp", "fn many() {}\n");
    std::fs::rename(tree.join("src/a.rs.tmp"), tree.join("src/a.rs")).unwrap();
    followed.wait_until_equal();
    std::fs::remove_file(tree.join("b.rs")).unwrap();
    followed.wait_until_equal();
    // Directories that are created, moved and deleted, with files in them.
    write(&tree, "new/deep/er/c.rs", "fn alpha() {}\n");
    followed.wait_until_equal();
    write(&tree, "new/deep/er/c.rs", "fn beta() {}\n");
    followed.wait_until_equal();
    std::fs::rename(tree.join("new/deep"), tree.join("moved")).unwrap();
    followed.wait_until_equal();
    write(&tree, "moved/er/c.rs", "fn many() {}\n");
    followed.wait_until_equal();
    std::fs::remove_dir_all(tree.join("moved")).unwrap();
    followed.wait_until_equal();
    // Ignore rules that are added and removed.
    write(&tree, "data/d.rs", "fn alpha() {}\n");
    write(&tree, ".gitignore", "data/\n");
    followed.wait_for_event("refreshed: ");
    followed.wait_until_equal();
    write(&tree, "data/e.rs", "fn alpha() {}\n");
    std::fs::remove_file(tree.join(".gitignore")).unwrap();
    followed.wait_until_equal();
}

#[test]
fn a_directory_in_the_place_of_another_is_followed() {
    let mut followed = Followed::new(&[("old/in/a.rs", "fn alpha() {}\n")]);
    let tree = followed.tree();
    let replace: [&dyn Fn(); 2] = [
        // As git does where the last file of a directory goes, and another one comes.
        &|| std::fs::remove_dir_all(tree.join("old")).unwrap(),
        &|| std::fs::rename(tree.join("old"), tree.join("moved")).unwrap(),
    ];
    for take_away in replace {
        take_away();
        write(&tree, "old/in/a.rs", "fn beta() {}\n");
        followed.wait_for_event("refreshed: directories");
        followed.wait_until_equal();
        // A second scan, for events that came late, would hide that one isn't watched.
        std::thread::sleep(Duration::from_millis(200));
        write(&tree, "old/in/a.rs", "fn many() {}\n");
        followed.wait_until_equal();
        followed.so_far.clear();
    }
}

#[test]
fn an_index_that_is_deleted_is_made_anew() {
    let followed = Followed::new(&[("a.rs", "fn alpha() {}\n"), ("b.rs", "fn beta() {}\n")]);
    std::fs::remove_dir_all(followed.kept.path().join("index")).unwrap();
    write(&followed.tree(), "b.rs", "fn many() {}\n");
    followed.wait_until_equal();
}

#[test]
fn very_many_changes_cause_one_scan() {
    let mut followed = Followed::new(&[("a.rs", "fn alpha() {}\n")]);
    let tree = followed.tree();
    for nth in 0..900 {
        std::fs::write(tree.join(format!("m{nth}.rs")), "fn many() {}\n").unwrap();
    }
    followed.wait_for_event("refreshed: ");
    followed.wait_until_equal();
}

#[test]
fn an_update_waits_for_another_writer() {
    let mut followed = Followed::new(&[("a.rs", "fn alpha() {}\n")]);
    let lock = std::fs::File::options().write(true).open(followed.kept.path().join("index/lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    write(&followed.tree(), "a.rs", "fn beta() {}\n");
    std::thread::sleep(Duration::from_millis(300));
    drop(lock);
    followed.wait_for_event("updated 1");
    followed.wait_until_equal();
}
