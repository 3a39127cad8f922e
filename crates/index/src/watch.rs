//! Following the files as they change.
//!
//! [`follow`] watches the directories that ignore rules let be seen, one by one, so that a build directory's thousands
//! cost nothing. What changed is gathered until it is quiet for a moment and brought up to date file by file; where very
//! much changed at once, where ignore rules or directories did, and where the system says that it lost count, all files
//! are looked at. That is also what is done now and then where nothing can be watched: on file systems that don't tell
//! what others change, and where the system watches no more directories.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use journeyman_protocol::RelPath;
use notify::event::EventKind;
use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::source::{IGNORE_FILE, WorkTree};
use crate::store::{Options, Report};
use crate::{IndexError, Project};

/// So long nothing may happen before what did is brought up to date: editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(50);
/// So long it may go on happening meanwhile.
const MOST_GATHERED: Duration = Duration::from_millis(500);
/// More files than this at once are a branch that was switched: one look at all files costs less.
const MANY: usize = 500;
/// Events that wait to be looked at. More is what [`MANY`] is about.
const WAITING: usize = 10_000;
/// How often is looked whether it should end.
const LOOK: Duration = Duration::from_millis(100);
/// Before another process's writing is looked at again.
const PATIENCE: Duration = Duration::from_millis(200);
/// Without watching, all files are looked at so often, or so many times the time that this takes.
const POLL: Duration = Duration::from_secs(2);
const REST: u32 = 20;
/// Times that new directories are looked for while they keep coming.
const ROUNDS: usize = 4;
/// After so long a time of quiet small segments are merged.
const LEISURE: Duration = Duration::from_secs(5);

/// File systems on which others' changes aren't told: NFS, SMB, CIFS, 9P, FUSE, and folders shared with a virtual machine.
const REMOTE: [(u32, &str); 7] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x786f_4256, "a virtual machine's shared folder"),
];

/// What is told while files are followed.
#[derive(Debug)]
pub enum Told<'a> {
    /// So many directories are watched.
    Watching(usize),
    /// None are, for this reason: all files are looked at now and then.
    Polling(&'a str),
    /// Some files were brought up to date.
    Updated(&'a [RelPath], Report),
    /// All files were looked at, for this reason.
    Refreshed(&'a str, Report),
    /// It couldn't be done; it is tried again.
    Failed(IndexError),
}

/// Follows a project's files until it is told to stop: first all are looked at, then what changes.
///
/// # Errors
/// [`IndexError`] where the first look fails. Later failures are told, and tried again.
pub fn follow(
    project: &Project,
    options: Options<'_>,
    told: &mut dyn FnMut(Told<'_>),
) -> Result<(), IndexError> {
    let (inbox, events) = Inbox::new();
    let mut watch = Watch::new(project.source(), inbox.clone());
    told(watch.state());
    watch.spread();
    let begun = Instant::now();
    let report = project.refresh(options)?;
    let mut due = report.left_to_another.then(|| "the beginning".to_owned());
    if due.is_none() {
        told(Told::Refreshed("the beginning", report));
    }
    let mut last = (Instant::now(), begun.elapsed());
    let mut left: BTreeSet<RelPath> = BTreeSet::new();
    let mut watching = watch.watcher.is_some();
    let (mut quiet_since, mut tidied) = (Instant::now(), false);
    while !options.stop.load(Ordering::Relaxed) {
        let gathered = watch.gather(&events, &inbox);
        left.extend(gathered.files);
        due = due.or(gathered.all);
        if watching && watch.watcher.is_none() {
            watching = false;
            told(watch.state());
        }
        if watch.watcher.is_none()
            && due.is_none()
            && last.0.elapsed() > POLL.max(last.1.saturating_mul(REST))
        {
            due = Some("it is time".to_owned());
        }
        if left.len() > MANY {
            due = due.or_else(|| Some(format!("{} files changed", left.len())));
        }
        if due.is_none() && left.is_empty() {
            if quiet_since.elapsed() > LEISURE {
                if tidied {
                    // Whoever asked meanwhile mapped memory again.
                    project.index().rest();
                } else {
                    // What can't be put in order now can be later.
                    project.index().tidy().ok();
                }
                (quiet_since, tidied) = (Instant::now(), true);
            }
            continue;
        }
        let begun = Instant::now();
        let done = match &due {
            Some(why) => watch.look_at_all(project, options).map(|report| (Some(why.clone()), report)),
            None => {
                let paths: Vec<RelPath> = left.iter().cloned().collect();
                project.update(&paths, options).map(|report| (None, report))
            }
        };
        (quiet_since, tidied) = (Instant::now(), false);
        match done {
            Ok((_, report)) if report.left_to_another => std::thread::sleep(PATIENCE),
            Ok((Some(why), report)) => {
                last = (Instant::now(), begun.elapsed());
                let timed = why == "it is time";
                if !timed || report.read + report.gone + report.same > 0 {
                    told(Told::Refreshed(&why, report));
                }
                due = None;
                left.clear();
            }
            Ok((None, report)) => {
                let paths: Vec<RelPath> = std::mem::take(&mut left).into_iter().collect();
                if report.read + report.gone + report.same > 0 {
                    told(Told::Updated(&paths, report));
                }
            }
            Err(error) => {
                told(Told::Failed(error));
                due = Some("it failed before".to_owned());
                std::thread::sleep(POLL);
            }
        }
    }
    Ok(())
}

/// What was gathered.
#[derive(Debug, Default, PartialEq, Eq)]
struct Gathered {
    files: BTreeSet<RelPath>,
    /// Why all files are to be looked at.
    all: Option<String>,
}

/// Where events come in: bounded, and it says when some were lost.
#[derive(Clone)]
struct Inbox {
    events: SyncSender<notify::Result<Event>>,
    lost: Arc<AtomicBool>,
}

impl Inbox {
    fn new() -> (Self, Receiver<notify::Result<Event>>) {
        let (events, receiver) = sync_channel(WAITING);
        (Self { events, lost: Arc::default() }, receiver)
    }

    fn take(&self, event: notify::Result<Event>) {
        // Whoever reads the tree, a refresh among them, opens every file: that changes nothing, and as many such
        // events as there are files would push out those that count.
        if event.as_ref().is_ok_and(|event| matches!(event.kind, EventKind::Access(_))) {
            return;
        }
        // What doesn't fit isn't needed: everything is looked at.
        if self.events.try_send(event).is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
    }
}

/// The directories that are watched.
struct Watch {
    tree: WorkTree,
    root: PathBuf,
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    /// Why none are.
    polls: String,
}

impl Watch {
    fn new(tree: &WorkTree, inbox: Inbox) -> Self {
        let root = tree.root().to_owned();
        let mut watch =
            Self { tree: tree.clone(), root, watcher: None, watched: BTreeSet::new(), polls: String::new() };
        if let Some(kind) = remote(&watch.root) {
            watch.polls = format!("this is {kind}, which doesn't tell what others change");
            return watch;
        }
        match notify::recommended_watcher(move |event| inbox.take(event)) {
            Ok(watcher) => watch.watcher = Some(watcher),
            Err(error) => watch.polls = format!("the system watches nothing: {error}"),
        }
        watch.spread();
        watch
    }

    fn state(&self) -> Told<'_> {
        match self.watcher {
            Some(_) => Told::Watching(self.watched.len()),
            None => Told::Polling(&self.polls),
        }
    }

    /// Watches the directories that there are now; gives how many are new.
    fn spread(&mut self) -> usize {
        let Some(watcher) = &mut self.watcher else { return 0 };
        let there: BTreeSet<PathBuf> = self.tree.directories().into_iter().collect();
        for gone in self.watched.difference(&there) {
            // The watch of one that was removed went with it.
            watcher.unwatch(gone).ok();
        }
        self.watched.retain(|directory| there.contains(directory));
        let mut new = 0;
        for directory in there {
            if self.watched.contains(&directory) {
                continue;
            }
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    new += 1;
                    self.watched.insert(directory);
                }
                Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => {
                    self.polls = format!(
                        "the system watches no more than {} directories for this user (fs.inotify.max_user_watches)",
                        self.watched.len()
                    );
                    self.watcher = None;
                    self.watched.clear();
                    return 0;
                }
                // It is gone again, or nobody may look into it: then it has no files either.
                Err(_) => {}
            }
        }
        new
    }

    /// Looks at all files, with directories that came meanwhile watched before their files are looked at.
    fn look_at_all(&mut self, project: &Project, options: Options<'_>) -> Result<Report, IndexError> {
        self.spread();
        let mut report = project.refresh(options)?;
        for _ in 0..ROUNDS {
            if self.spread() == 0 {
                break;
            }
            let more = project.refresh(options)?;
            report.read += more.read;
            report.gone += more.gone;
            report.same += more.same;
        }
        Ok(report)
    }

    /// Gathers what happens until it is quiet for a moment.
    fn gather(&mut self, events: &Receiver<notify::Result<Event>>, inbox: &Inbox) -> Gathered {
        let mut gathered = Gathered::default();
        let mut wait = LOOK;
        let mut end = None;
        // Until nothing comes for a while, or nothing can.
        while let Ok(event) = events.recv_timeout(wait) {
            let before = (gathered.files.len(), gathered.all.is_some());
            self.sort(event, &mut gathered);
            if before != (gathered.files.len(), gathered.all.is_some()) || end.is_some() {
                let end = *end.get_or_insert_with(|| Instant::now() + MOST_GATHERED);
                wait = QUIET.min(end.saturating_duration_since(Instant::now()));
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
        }
        if inbox.lost.swap(false, Ordering::Relaxed) {
            gathered.all.get_or_insert_with(|| "events were lost".to_owned());
        }
        gathered
    }

    /// What an event is about.
    fn sort(&self, event: notify::Result<Event>, gathered: &mut Gathered) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                gathered.all.get_or_insert_with(|| format!("watching failed: {error}"));
                return;
            }
        };
        if event.need_rescan() {
            gathered.all.get_or_insert_with(|| "events were lost".to_owned());
        }
        for path in &event.paths {
            let Ok(relative) = path.strip_prefix(&self.root) else { continue };
            if relative.components().any(|part| part.as_os_str() == ".git") {
                continue;
            }
            let name = path.file_name().map_or(&[][..], |name| name.as_bytes());
            if [b".gitignore".as_slice(), b".ignore", IGNORE_FILE.as_bytes()].contains(&name) {
                gathered.all.get_or_insert_with(|| "ignore rules changed".to_owned());
            }
            let is_directory = || path.symlink_metadata().is_ok_and(|found| found.is_dir());
            let came_or_went = matches!(event.kind, EventKind::Create(_) | EventKind::Remove(_))
                || matches!(event.kind, EventKind::Modify(notify::event::ModifyKind::Name(_)));
            // A directory's other changes are its files', and told as theirs.
            let known = self.watched.contains(path);
            if came_or_went && (known || is_directory()) {
                gathered.all.get_or_insert_with(|| "directories changed".to_owned());
            } else if !known {
                gathered.files.extend(RelPath::parse(relative.as_os_str().as_bytes()));
            }
        }
    }
}

/// The kind of a file system that doesn't tell what others change on it.
#[cfg(target_os = "linux")]
fn remote(root: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(root).ok()?.f_type;
    // The kernel's numbers have 32 bits, whatever type they come in.
    let kind = u32::try_from(kind & 0xffff_ffff).ok()?;
    REMOTE.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn remote(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, AccessMode, CreateKind, Flag};

    use super::*;

    fn watch(root: &Path) -> (Watch, Inbox, Receiver<notify::Result<Event>>) {
        let (inbox, events) = Inbox::new();
        let (elsewhere, _) = Inbox::new();
        // Events of the test alone come in.
        (Watch::new(&WorkTree::new(root, 1), elsewhere), inbox, events)
    }

    fn made(path: &Path) -> notify::Result<Event> {
        Ok(Event::new(EventKind::Create(CreateKind::Any)).add_path(path.to_owned()))
    }

    fn names(gathered: &Gathered) -> Vec<String> {
        gathered.files.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_that_are_only_opened_are_no_events() {
        let (inbox, events) = Inbox::new();
        let opened = Event::new(EventKind::Access(AccessKind::Open(AccessMode::Any)));
        for _ in 0..=WAITING {
            inbox.take(Ok(opened.clone()));
        }
        assert!(events.try_recv().is_err() && !inbox.lost.load(Ordering::Relaxed));
    }

    #[test]
    fn events_are_sorted() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("src")).unwrap();
        let (mut watch, inbox, events) = watch(root);
        for path in ["src/a.rs", ".git/index", "src/b.rs", "src/a.rs"] {
            inbox.take(made(&root.join(path)));
        }
        inbox.take(made(Path::new("/elsewhere/c.rs")));
        let gathered = watch.gather(&events, &inbox);
        assert_eq!(
            (names(&gathered), gathered.all),
            (vec!["src/a.rs".to_owned(), "src/b.rs".to_owned()], None)
        );
        inbox.take(made(&root.join("src")));
        assert_eq!(watch.gather(&events, &inbox).all.as_deref(), Some("directories changed"));
        inbox.take(made(&root.join("src/.gitignore")));
        assert_eq!(watch.gather(&events, &inbox).all.as_deref(), Some("ignore rules changed"));
    }

    #[test]
    fn lost_events_have_all_files_looked_at() {
        let place = tempfile::tempdir().unwrap();
        let (mut watch, inbox, events) = watch(place.path());
        inbox.take(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert_eq!(watch.gather(&events, &inbox).all.as_deref(), Some("events were lost"));
        for nth in 0..=WAITING {
            inbox.take(made(&place.path().join(format!("f{nth}"))));
        }
        let mut all = None;
        // What was waiting comes in several gatherings where the machine is slow.
        while all.is_none() {
            all = watch.gather(&events, &inbox).all;
        }
        assert_eq!(all.as_deref(), Some("events were lost"));
    }
}
