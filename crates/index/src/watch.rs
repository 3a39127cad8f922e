//! Updating the index as files change.
//!
//! [`follow_project`] watches every directory that isn't ignored, so that a build directory's
//! thousands cost nothing. Changes are collected until there are none for a moment, and then
//! updated file by file; after very many changes at once, changes of ignore rules or directories,
//! and lost events, the whole tree is scanned. The tree is scanned periodically where watching
//! isn't possible: on file systems that don't report others' changes, and where the system's limit
//! of watches is reached.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use journeyman_ignore_rules::CACHE_TAG_FILE;
use journeyman_protocol::RelPath;
use notify::event::EventKind;
use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::source::{IGNORE_FILE, WorkTree};
use crate::store::{IndexReport, RefreshOptions};
use crate::{IndexError, ProjectIndex};

/// Time without events before the changes are indexed: editors write a file in several steps.
const QUIET_TIME: Duration = Duration::from_millis(50);
/// Maximum time that changes are collected.
const MAX_COLLECTION_TIME: Duration = Duration::from_millis(500);
/// Minimum number of changed files for which a scan of the tree costs less, as after switching
/// branches.
const MIN_CHANGES_FOR_SCAN: usize = 500;
/// Maximum queued events. More would exceed [`MIN_CHANGES_FOR_SCAN`] changes anyway.
const MAX_QUEUED_EVENTS: usize = 10_000;
/// Interval of checks for cancellation.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Wait before a retry while another process writes the index.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Interval of scans without watching; or so many times the duration of a scan, if that is longer.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const POLL_TIME_FACTOR: u32 = 20;
/// Maximum scans for new directories while they keep appearing.
const MAX_NEW_DIRECTORY_SCANS: usize = 4;
/// Time without changes after which small segments are merged.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// File systems that don't report changes made elsewhere: NFS, SMB, CIFS, 9P, FUSE, and folders
/// shared with a virtual machine.
const REMOTE_FILE_SYSTEMS: [(u32, &str); 7] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x786f_4256, "a virtual machine's shared folder"),
];

/// An event of following the files.
#[derive(Debug)]
pub enum WatchEvent<'a> {
    /// Number of watched directories.
    Watching(usize),
    /// No directory is watched, for this reason: the tree is scanned periodically.
    Polling(&'a str),
    /// Some files were updated.
    Updated(&'a [RelPath], IndexReport),
    /// The tree was scanned, for this reason.
    Refreshed(&'a str, IndexReport),
    /// An update failed; it is retried.
    Failed(IndexError),
}

/// Follows a project's files until it is stopped: a scan of the tree first, then changes.
///
/// # Errors
/// [`IndexError`] where the first scan fails. Later failures are reported, and retried.
pub fn follow_project(
    project: &ProjectIndex,
    options: RefreshOptions<'_>,
    on_event: &mut dyn FnMut(WatchEvent<'_>),
) -> Result<(), IndexError> {
    let (queue, events) = EventQueue::new();
    let mut watch = DirectoryWatch::new(project.work_tree(), queue.clone());
    on_event(watch.to_event());
    let begun = Instant::now();
    let report = watch.scan_tree(project, options)?;
    let mut scan_reason = report.left_to_another.then(|| "the beginning".to_owned());
    if scan_reason.is_none() {
        on_event(WatchEvent::Refreshed("the beginning", report));
    }
    let mut last_scan = (Instant::now(), begun.elapsed());
    let mut changed: BTreeSet<RelPath> = BTreeSet::new();
    let mut watching = watch.watcher.is_some();
    let (mut quiet_since, mut merged) = (Instant::now(), false);
    while !options.stop.load(Ordering::Relaxed) {
        let changes = watch.collect_changes(&events, &queue);
        changed.extend(changes.files);
        scan_reason = scan_reason.or(changes.scan_reason);
        if watching && watch.watcher.is_none() {
            watching = false;
            on_event(watch.to_event());
        }
        if watch.watcher.is_none()
            && scan_reason.is_none()
            && last_scan.0.elapsed() > POLL_INTERVAL.max(last_scan.1.saturating_mul(POLL_TIME_FACTOR))
        {
            scan_reason = Some("it is time".to_owned());
        }
        if changed.len() > MIN_CHANGES_FOR_SCAN {
            scan_reason = scan_reason.or_else(|| Some(format!("{} files changed", changed.len())));
        }
        if scan_reason.is_none() && changed.is_empty() {
            if quiet_since.elapsed() > IDLE_TIME {
                use_quiet_time(project, merged);
                (quiet_since, merged) = (Instant::now(), true);
            }
            continue;
        }
        let begun = Instant::now();
        let done = match &scan_reason {
            Some(why) => watch.scan_tree(project, options).map(|report| (Some(why.clone()), report)),
            None => {
                let paths: Vec<RelPath> = changed.iter().cloned().collect();
                project.update_files(&paths, options).map(|report| (None, report))
            }
        };
        (quiet_since, merged) = (Instant::now(), false);
        match done {
            Ok((_, report)) if report.left_to_another => std::thread::sleep(RETRY_DELAY),
            Ok((Some(why), report)) => {
                last_scan = (Instant::now(), begun.elapsed());
                let timed = why == "it is time";
                if !timed || report.read + report.gone + report.same > 0 {
                    on_event(WatchEvent::Refreshed(&why, report));
                }
                scan_reason = None;
                changed.clear();
            }
            Ok((None, report)) => {
                let paths: Vec<RelPath> = std::mem::take(&mut changed).into_iter().collect();
                if report.read + report.gone + report.same > 0 {
                    on_event(WatchEvent::Updated(&paths, report));
                }
                // As after it was deleted: other files aren't in it.
                let partial = project.index().snapshot().is_partial();
                scan_reason = partial.then(|| "the index was incomplete".to_owned());
            }
            Err(error) => {
                on_event(WatchEvent::Failed(error));
                scan_reason = Some("it failed before".to_owned());
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }
    Ok(())
}

/// Merges the segments that updates have left, or releases memory where that is done.
fn use_quiet_time(project: &ProjectIndex, merged: bool) {
    if merged {
        // Queries in the meantime mapped memory again.
        project.index().release_memory();
    } else {
        // Segments that can't be merged now can be later.
        project.index().merge_small_segments().ok();
    }
}

/// Collected changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct CollectedChanges {
    files: BTreeSet<RelPath>,
    /// The reason for a scan of the tree, if any.
    scan_reason: Option<String>,
}

/// A bounded queue of events, with a flag for lost ones.
#[derive(Clone)]
struct EventQueue {
    events: SyncSender<notify::Result<Event>>,
    lost: Arc<AtomicBool>,
}

impl EventQueue {
    fn new() -> (Self, Receiver<notify::Result<Event>>) {
        let (events, receiver) = sync_channel(MAX_QUEUED_EVENTS);
        (Self { events, lost: Arc::default() }, receiver)
    }

    fn enqueue(&self, event: notify::Result<Event>) {
        // Reading the tree, as a refresh does, opens every file: such events change nothing, and
        // their number would push out others.
        if event.as_ref().is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
            return;
        }
        // Events that don't fit aren't needed: the whole tree is scanned.
        if self.events.try_send(event).is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
    }
}

/// The watched directories.
struct DirectoryWatch {
    tree: WorkTree,
    root: PathBuf,
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    /// Those of them that may have been replaced: the watch of a directory goes with it, and one
    /// that was created in its place isn't watched.
    replaced: BTreeSet<PathBuf>,
    /// The reason why no directory is watched.
    polling_reason: String,
}

impl DirectoryWatch {
    fn new(tree: &WorkTree, queue: EventQueue) -> Self {
        let root = tree.root().to_owned();
        let mut watch = Self {
            tree: tree.clone(),
            root,
            watcher: None,
            watched: BTreeSet::new(),
            replaced: BTreeSet::new(),
            polling_reason: String::new(),
        };
        if let Some(kind) = remote_file_system(&watch.root) {
            watch.polling_reason = format!("this is {kind}, which doesn't tell what others change");
            return watch;
        }
        match notify::recommended_watcher(move |event| queue.enqueue(event)) {
            Ok(watcher) => watch.watcher = Some(watcher),
            Err(error) => watch.polling_reason = format!("the system watches nothing: {error}"),
        }
        watch.watch_directories();
        watch
    }

    fn to_event(&self) -> WatchEvent<'_> {
        match self.watcher {
            Some(_) => WatchEvent::Watching(self.watched.len()),
            None => WatchEvent::Polling(&self.polling_reason),
        }
    }

    /// Watches the current directories; returns the number of new ones.
    fn watch_directories(&mut self) -> usize {
        let Some(watcher) = &mut self.watcher else { return 0 };
        let there: BTreeSet<PathBuf> = self.tree.directories().into_iter().collect();
        for gone in self.watched.difference(&there) {
            // The watch of a removed directory is gone with it.
            watcher.unwatch(gone).ok();
        }
        self.watched.retain(|directory| there.contains(directory));
        let replaced = std::mem::take(&mut self.replaced);
        let mut new = 0;
        for directory in there {
            if self.watched.contains(&directory) && !replaced.contains(&directory) {
                continue;
            }
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    new += 1;
                    self.watched.insert(directory);
                }
                Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => {
                    self.polling_reason = format!(
                        "the system watches no more than {} directories for this user (fs.inotify.max_user_watches)",
                        self.watched.len()
                    );
                    self.watcher = None;
                    self.watched.clear();
                    return 0;
                }
                // The directory is gone again, or unreadable: then it has no files either.
                Err(_) => {
                    self.watched.remove(&directory);
                }
            }
        }
        new
    }

    /// Scans the tree; directories that appeared meanwhile are watched before their files are read.
    fn scan_tree(
        &mut self,
        project: &ProjectIndex,
        options: RefreshOptions<'_>,
    ) -> Result<IndexReport, IndexError> {
        self.watch_directories();
        let mut report = project.refresh(options)?;
        for _ in 0..MAX_NEW_DIRECTORY_SCANS {
            if self.watch_directories() == 0 {
                break;
            }
            let more = project.refresh(options)?;
            report.read += more.read;
            report.gone += more.gone;
            report.same += more.same;
        }
        Ok(report)
    }

    /// Collects changes until there are none for a moment.
    fn collect_changes(
        &mut self,
        events: &Receiver<notify::Result<Event>>,
        queue: &EventQueue,
    ) -> CollectedChanges {
        let mut changes = CollectedChanges::default();
        let mut wait = STOP_CHECK_INTERVAL;
        let mut end = None;
        // Until no event comes for a while, or none can.
        while let Ok(event) = events.recv_timeout(wait) {
            let before = (changes.files.len(), changes.scan_reason.is_some());
            self.add_event(event, &mut changes);
            if before != (changes.files.len(), changes.scan_reason.is_some()) || end.is_some() {
                let end = *end.get_or_insert_with(|| Instant::now() + MAX_COLLECTION_TIME);
                wait = QUIET_TIME.min(end.saturating_duration_since(Instant::now()));
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
        }
        if queue.lost.swap(false, Ordering::Relaxed) {
            self.note_lost_events(&mut changes);
        }
        changes
    }

    /// Has everything looked at, because events were lost: also those of directories.
    fn note_lost_events(&mut self, changes: &mut CollectedChanges) {
        changes.scan_reason.get_or_insert_with(|| "events were lost".to_owned());
        self.replaced.clone_from(&self.watched);
    }

    /// Sorts an event into the collected changes.
    fn add_event(&mut self, event: notify::Result<Event>, changes: &mut CollectedChanges) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                changes.scan_reason.get_or_insert_with(|| format!("watching failed: {error}"));
                return;
            }
        };
        if event.need_rescan() {
            self.note_lost_events(changes);
        }
        for path in &event.paths {
            let Ok(relative) = path.strip_prefix(&self.root) else { continue };
            if relative.components().any(|part| part.as_os_str() == ".git") {
                continue;
            }
            let name = path.file_name().map_or(&[][..], |name| name.as_bytes());
            if [b".gitignore".as_slice(), b".ignore", IGNORE_FILE.as_bytes(), CACHE_TAG_FILE].contains(&name)
            {
                changes.scan_reason.get_or_insert_with(|| "ignore rules changed".to_owned());
            }
            let is_directory = || path.symlink_metadata().is_ok_and(|found| found.is_dir());
            let came_or_went = matches!(event.kind, EventKind::Create(_) | EventKind::Remove(_))
                || matches!(event.kind, EventKind::Modify(notify::event::ModifyKind::Name(_)));
            // A directory's other changes are those of its files, and reported as theirs.
            let known = self.watched.contains(path);
            if came_or_went && (known || is_directory()) {
                changes.scan_reason.get_or_insert_with(|| "directories changed".to_owned());
                let beneath = self.watched.range(path.clone()..).take_while(|one| one.starts_with(path));
                self.replaced.extend(beneath.cloned());
            } else if !known {
                changes.files.extend(RelPath::parse(relative.as_os_str().as_bytes()));
            }
        }
    }
}

/// Returns the kind of a file system that doesn't report others' changes.
fn remote_file_system(root: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(root).ok()?.f_type;
    // The kernel's numbers have 32 bits, whatever their type here.
    let kind = u32::try_from(kind & 0xffff_ffff).ok()?;
    REMOTE_FILE_SYSTEMS.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, AccessMode, CreateKind, Flag, RemoveKind};

    use super::*;

    fn watch(root: &Path) -> (DirectoryWatch, EventQueue, Receiver<notify::Result<Event>>) {
        let (queue, events) = EventQueue::new();
        let (elsewhere, _) = EventQueue::new();
        // Only events of the test come in.
        (DirectoryWatch::new(&WorkTree::new(root, 1), elsewhere), queue, events)
    }

    fn made(path: &Path) -> notify::Result<Event> {
        Ok(Event::new(EventKind::Create(CreateKind::Any)).add_path(path.to_owned()))
    }

    fn removed(path: &Path) -> notify::Result<Event> {
        Ok(Event::new(EventKind::Remove(RemoveKind::Folder)).add_path(path.to_owned()))
    }

    fn names(changes: &CollectedChanges) -> Vec<String> {
        changes.files.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_that_are_only_opened_are_no_events() {
        let (queue, events) = EventQueue::new();
        let opened = Event::new(EventKind::Access(AccessKind::Open(AccessMode::Any)));
        for _ in 0..=MAX_QUEUED_EVENTS {
            queue.enqueue(Ok(opened.clone()));
        }
        assert!(events.try_recv().is_err() && !queue.lost.load(Ordering::Relaxed));
    }

    #[test]
    fn events_are_sorted() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("src")).unwrap();
        let (mut watch, queue, events) = watch(root);
        for path in ["src/a.rs", ".git/index", "src/b.rs", "src/a.rs"] {
            queue.enqueue(made(&root.join(path)));
        }
        queue.enqueue(made(Path::new("/elsewhere/c.rs")));
        let changes = watch.collect_changes(&events, &queue);
        assert_eq!(
            (names(&changes), changes.scan_reason),
            (vec!["src/a.rs".to_owned(), "src/b.rs".to_owned()], None)
        );
        queue.enqueue(made(&root.join("src")));
        assert_eq!(
            watch.collect_changes(&events, &queue).scan_reason.as_deref(),
            Some("directories changed")
        );
        // A tag has its directory left out, as a rule does.
        for rules in ["src/.gitignore", "src/CACHEDIR.TAG"] {
            queue.enqueue(made(&root.join(rules)));
            let reason = watch.collect_changes(&events, &queue).scan_reason;
            assert_eq!(reason.as_deref(), Some("ignore rules changed"), "{rules}");
        }
    }

    #[test]
    fn lost_events_have_all_files_looked_at() {
        let place = tempfile::tempdir().unwrap();
        let (mut watch, queue, events) = watch(place.path());
        queue.enqueue(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert_eq!(watch.collect_changes(&events, &queue).scan_reason.as_deref(), Some("events were lost"));
        for nth in 0..=MAX_QUEUED_EVENTS {
            queue.enqueue(made(&place.path().join(format!("f{nth}"))));
        }
        let mut all = None;
        // Queued events come in several rounds where the machine is slow.
        while all.is_none() {
            all = watch.collect_changes(&events, &queue).scan_reason;
        }
        assert_eq!(all.as_deref(), Some("events were lost"));
    }

    #[test]
    fn what_may_be_another_directory_is_watched_anew() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for directory in ["src/deep", "src2"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        let (mut watch, queue, events) = watch(root);
        assert_eq!((watch.watched.len(), watch.watch_directories()), (4, 0));
        // By the time the event is seen, others are in its place.
        queue.enqueue(removed(&root.join("src")));
        watch.collect_changes(&events, &queue);
        assert_eq!((watch.watch_directories(), watch.watch_directories()), (2, 0));
        // The lost events may be of any directory.
        queue.enqueue(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        watch.collect_changes(&events, &queue);
        assert_eq!((watch.watch_directories(), watch.watch_directories()), (4, 0));
        queue.lost.store(true, Ordering::Relaxed);
        watch.collect_changes(&events, &queue);
        assert_eq!((watch.watch_directories(), watch.watch_directories()), (4, 0));
    }
}
