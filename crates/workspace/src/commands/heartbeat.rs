//! Heartbeats of running commands.
//!
//! Before a command begins, one small file in the state directory says for which call it runs and
//! what the tree was, as a difference to the newest checkpoint's. While the command runs, the file
//! is locked and touched at intervals; once the end is journaled, it is removed. After a crash it
//! shows when the command was last alive, so that its changes can be told from those that a person
//! made afterwards.
//!
//! A killed program's command may live on for a moment. So each heartbeat has a second file, the
//! process lock, which the command's own processes keep locked: nothing is reverted before it is
//! free, and a command that starts late finds it locked or gone, and doesn't run.
//!
//! The files aren't flushed: they have to survive a killed process, not a power failure.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use journeyman_protocol::{CallId, ContentHash, GuardViolation, RelPath, SessionId};
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, flock, futimens};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::contents::store::BlobStore;
use crate::error::WorkspaceError;
use crate::files::stat::file_clock;
use crate::guarded::record::StoredGuardedState;
use crate::journal::JournalMark;
use crate::journal::line_format::{parse_checked_line, push_line};
use crate::journal::record::DirRecord;
use crate::limits::{
    MAX_HEARTBEAT_BYTES, MAX_HEARTBEAT_DIFFERENCES, MAX_LATE_INTERVALS, MAX_STALE_HEARTBEATS,
};
use crate::snapshot::differences::diff_trees;
use crate::snapshot::entry::{FileState, WalkedDir};
use crate::snapshot::stored_tree::{StoredTree, load_tree, store_tree};
use crate::snapshot::tree::Tree;
use crate::state::lock::{make_private_dir, private_file_options, state_error};

/// Maximum number of names to try for one heartbeat file; each command of a process takes one.
const MAX_NAME_TRIES: u32 = 1_000;
/// The suffix of a process lock's file name.
const PROCESS_LOCK_SUFFIX: &str = ".process_lock";
/// The extension of a heartbeat whose command is recovered, until the session has that on record.
const RECOVERED_EXTENSION: &str = "recovered";
/// The extension of a heartbeat whose command is on record, kept while another command runs that
/// overlapped it.
const PAST_EXTENSION: &str = "past";
/// Maximum wait for a command's processes to end after its program was killed. A process that waits
/// for a dead disk or server can take for ever.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(10);
/// Interval at which a lock is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum wait for another process that holds a heartbeat's lock only to test it.
const MAX_PROBE_WAIT: Duration = Duration::from_millis(10);
/// Maximum number of listings of the heartbeats where names in each are gone when they are read.
const MAX_LISTINGS: u32 = 16;
/// Nanoseconds in a second.
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The session and call of a running command, and the tree before the command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommandStart {
    pub(crate) session: SessionId,
    /// Absent for checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<CallId>,
    /// True if the command ran beside the session's turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) background: bool,
    period_ms: u64,
    /// The end of the journal at that time.
    pub(crate) journal_end: JournalMark,
    /// A tree among the blobs that is nearly the one before the command.
    base: ContentHash,
    /// The files that differ from that tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<(RelPath, Option<FileState>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dirs: Vec<DirRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dirs_gone: Vec<RelPath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<RelPath>,
    /// The guarded paths before the command, where it was watched for them.
    #[serde(skip)]
    pub(crate) guarded: Option<StoredGuardedState>,
    /// Guarded paths that recovery moved away or put back until now.
    #[serde(skip)]
    pub(crate) violations: Vec<GuardViolation>,
}

/// A line of a heartbeat after the first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HeartbeatLine {
    Guarded(StoredGuardedState),
    Violations(Vec<GuardViolation>),
}

impl CommandStart {
    /// Describes `tree` by its difference to a base; a new base is stored where that would be long.
    pub(crate) fn new(
        (session, call): (&SessionId, Option<&CallId>),
        tree: &Arc<Tree>,
        journal_end: JournalMark,
        base: &mut Option<(ContentHash, Arc<Tree>)>,
        (blob_store, period): (&BlobStore, Duration),
    ) -> Result<Self, WorkspaceError> {
        let near =
            base.as_ref().filter(|(_, known)| Arc::ptr_eq(known, tree) || differs_by_few_files(known, tree));
        let (hash, known) = if let Some((hash, known)) = near {
            (*hash, Arc::clone(known))
        } else {
            let known = base.as_ref().map(|(_, known)| known.as_ref());
            let hash = store_tree(tree, known, blob_store)?;
            *base = Some((hash, Arc::clone(tree)));
            (hash, Arc::clone(tree))
        };
        let mut begin = Self {
            session: session.clone(),
            call: call.cloned(),
            background: false,
            period_ms: u64::try_from(period.as_millis()).unwrap_or(u64::MAX),
            journal_end,
            base: hash,
            files: Vec::new(),
            dirs: Vec::new(),
            dirs_gone: Vec::new(),
            unreadable: tree.unreadable.iter().filter_map(|path| RelPath::parse(path).ok()).collect(),
            guarded: None,
            violations: Vec::new(),
        };
        if !Arc::ptr_eq(&known, tree) {
            let found = diff_trees(&known, tree);
            begin.files = found.into_iter().map(|found| (found.path, found.after)).collect();
            let (here, there) = (dir_permissions_by_path(tree), dir_permissions_by_path(&known));
            let new = here.iter().filter(|(path, mode)| there.get(*path) != Some(mode));
            begin.dirs = new
                .filter_map(|(path, mode)| {
                    Some(DirRecord { path: RelPath::parse(path).ok()?, mode: Some(*mode) })
                })
                .collect();
            let gone = there.keys().filter(|path| !here.contains_key(*path));
            begin.dirs_gone = gone.filter_map(|path| RelPath::parse(path).ok()).collect();
        }
        Ok(begin)
    }

    /// Returns the latest time of a change that a command last seen alive at `last` may have made.
    fn latest_change_time(&self, last: i64) -> i64 {
        let late = self.period_ms.saturating_mul(u64::from(MAX_LATE_INTERVALS) + 1).saturating_mul(1_000_000);
        last.saturating_add(i64::try_from(late).unwrap_or(i64::MAX))
    }

    /// Returns the blobs that the record needs: a tree, and contents that the tree doesn't have.
    pub(crate) fn needed_blobs(&self) -> (ContentHash, Vec<ContentHash>) {
        let states = self.files.iter().filter_map(|(_, state)| state.as_ref());
        let states = states.filter_map(|state| state.hash);
        (self.base, states.chain(self.guarded.iter().flat_map(StoredGuardedState::contents)).collect())
    }

    /// Parses a heartbeat's text; `None` if its first line is torn, so that the command never
    /// began.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut lines =
            text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
        let mut begin: Self = lines.next().and_then(parse_checked_line)?;
        for note in lines.filter_map(parse_checked_line::<HeartbeatLine>) {
            match note {
                HeartbeatLine::Guarded(guard) => begin.guarded = Some(guard),
                HeartbeatLine::Violations(violations) => begin.violations.extend(violations),
            }
        }
        Some(begin)
    }

    /// Loads the tree before the command, without signatures.
    pub(crate) fn load_tree(&self, blob_store: &BlobStore) -> Result<Tree, WorkspaceError> {
        let StoredTree { files, dirs } = load_tree(&self.base, blob_store.blobs())?;
        let mut files: BTreeMap<Vec<u8>, FileState> = files.into_iter().collect();
        for (path, state) in &self.files {
            match state {
                Some(state) => files.insert(path.as_bytes().to_vec(), *state),
                None => files.remove(path.as_bytes()),
            };
        }
        let mut dirs: BTreeMap<Vec<u8>, u32> =
            dirs.into_iter().map(|dir| (dir.path, dir.permissions)).collect();
        for dir in &self.dirs {
            dirs.insert(dir.path.as_bytes().to_vec(), dir.mode.unwrap_or_default());
        }
        for path in &self.dirs_gone {
            dirs.remove(path.as_bytes());
        }
        let dirs = dirs.into_iter().map(|(path, permissions)| WalkedDir { path, permissions });
        let stored = StoredTree { files: files.into_iter().collect(), dirs: dirs.collect() };
        let mut tree = Arc::try_unwrap(stored.into_tree()).unwrap_or_default();
        tree.unreadable = self.unreadable.iter().map(|path| path.as_bytes().to_vec()).collect();
        Ok(tree)
    }
}

fn dir_permissions_by_path(tree: &Tree) -> HashMap<&[u8], u32> {
    tree.dirs.iter().map(|dir| (dir.path.as_slice(), dir.permissions)).collect()
}

fn differs_by_few_files(known: &Tree, tree: &Tree) -> bool {
    let entries = known.entries.len().abs_diff(tree.entries.len()) <= MAX_HEARTBEAT_DIFFERENCES;
    entries
        && known.dirs.len().abs_diff(tree.dirs.len()) <= MAX_HEARTBEAT_DIFFERENCES
        && diff_trees(known, tree).len() <= MAX_HEARTBEAT_DIFFERENCES
}

/// A running command's heartbeat. If it is dropped without [`Heartbeat::retire`], the file stays
/// behind as a stale heartbeat.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    path: PathBuf,
    /// The command, unless it is a check.
    pub(crate) live: Option<LiveCommand>,
    pub(crate) background: bool,
    /// The start, in nanoseconds of the file system's clock.
    pub(crate) began: i64,
    shared: Arc<HeartbeatFile>,
}

#[derive(Debug)]
struct HeartbeatFile {
    file: File,
    stopped: Mutex<bool>,
    wake: Condvar,
}

impl HeartbeatFile {
    /// Touches the file. A failure only makes the command look dead earlier: then more of its
    /// changes are left and listed.
    fn touch(&self) {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        futimens(&self.file, &Timestamps { last_access: now, last_modification: now }).ok();
    }

    fn touch_periodically(&self, period: Duration) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let (now, waited) =
                self.wake.wait_timeout(stopped, period).unwrap_or_else(PoisonError::into_inner);
            stopped = now;
            if waited.timed_out() && !*stopped {
                self.touch();
            }
        }
    }
}

impl Heartbeat {
    /// Writes the heartbeat file and starts the thread that touches it.
    pub(crate) fn start(
        state_dir: &Path,
        begin: &CommandStart,
        live: Option<LiveCommand>,
    ) -> Result<Self, WorkspaceError> {
        let dir = heartbeats_dir(state_dir);
        make_private_dir(&dir)?;
        prune_heartbeats(&dir);
        let failed = |source| state_error("write", &dir, source);
        let json = serde_json::to_vec(begin).map_err(|error| failed(error.into()))?;
        let mut text = Vec::with_capacity(json.len() + 32);
        push_line(&mut text, &json);
        let (path, mut file) = create_heartbeat_file(&dir).map_err(failed)?;
        let mut process_lock = OpenOptions::new();
        process_lock
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(process_lock_path(&path))
            .map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| failed(errno.into()))?;
        file.write_all(&text).map_err(failed)?;
        let shared = Arc::new(HeartbeatFile { file, stopped: Mutex::new(false), wake: Condvar::new() });
        let (theirs, period) = (Arc::clone(&shared), Duration::from_millis(begin.period_ms.max(1)));
        // Without the thread, later changes of the command are taken for another's, left and
        // listed.
        drop(
            std::thread::Builder::new()
                .name("jm-heartbeat".to_owned())
                .spawn(move || theirs.touch_periodically(period)),
        );
        let began = time_in_name(&path).unwrap_or(i64::MIN);
        Ok(Self { path, live, background: begin.background, began, shared })
    }

    /// Returns the file that the command's processes keep locked.
    pub(crate) fn process_lock(&self) -> PathBuf {
        process_lock_path(&self.path)
    }

    /// Records what was guarded before the command, so that it can be restored after a crash.
    pub(crate) fn note_guarded(&self, guard: StoredGuardedState) -> Result<(), WorkspaceError> {
        let noted = append_line(&self.shared.file, &HeartbeatLine::Guarded(guard));
        noted.map_err(|source| state_error("write", &self.path, source))
    }

    /// Removes the heartbeat once the command's end is journaled.
    pub(crate) fn retire(&self) {
        remove_heartbeat(&self.path);
    }
}

fn append_line(mut file: &File, note: &HeartbeatLine) -> io::Result<()> {
    let json = serde_json::to_vec(note)?;
    let mut text = Vec::with_capacity(json.len() + 32);
    push_line(&mut text, &json);
    file.seek(SeekFrom::End(0))?;
    file.write_all(&text)
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        *self.shared.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.touch();
        // The thread still has the file open for a moment.
        flock(&self.shared.file, FlockOperation::Unlock).ok();
        self.shared.wake.notify_all();
    }
}

/// The heartbeat that a command left behind when it was cut off. It is locked, so that one process
/// alone settles it.
#[derive(Debug)]
pub(crate) struct StaleHeartbeat {
    pub(crate) begin: CommandStart,
    /// The start, in nanoseconds of the file system's clock.
    pub(crate) began: i64,
    /// The latest time of a change that the command may have made.
    pub(crate) until: i64,
    /// The time of the last heartbeat.
    pub(crate) last: i64,
    path: PathBuf,
    file: File,
    /// Held so that no other process takes the command for alive while this one examines it.
    _witness: Option<File>,
}

impl Drop for StaleHeartbeat {
    fn drop(&mut self) {
        // Closing alone wouldn't do where another thread is just starting a process, which has the
        // file too.
        flock(&self.file, FlockOperation::Unlock).ok();
    }
}

impl StaleHeartbeat {
    pub(crate) fn is_recovered(&self) -> bool {
        RecoveryStage::of(&self.path) == Some(RecoveryStage::Recovered)
    }

    /// Notes that the command is recovered, and what was moved away or put back for that.
    pub(crate) fn mark_recovered(&self, violations: &[GuardViolation]) -> io::Result<()> {
        if !violations.is_empty() {
            append_line(&self.file, &HeartbeatLine::Violations(violations.to_vec()))?;
            // Its time goes on to say when the command was last seen alive.
            let (seconds, nanos) =
                (self.last.div_euclid(NANOS_PER_SECOND), self.last.rem_euclid(NANOS_PER_SECOND));
            let last = Timespec { tv_sec: seconds, tv_nsec: nanos };
            futimens(&self.file, &Timestamps { last_access: last, last_modification: last })?;
        }
        if self.path.extension().is_none() {
            fs::rename(&self.path, self.path.with_extension(RECOVERED_EXTENSION))?;
            fs::remove_file(process_lock_path(&self.path)).ok();
        }
        Ok(())
    }

    /// Removes the heartbeat, as the result of its command is on record. While an overlapping
    /// command still runs, the time span of this command stays recorded: changes that the other
    /// command finds may be this one's.
    pub(crate) fn retire(&self) {
        let is_other =
            |path: &PathBuf| *path != self.path && time_in_name(path).is_some_and(|began| began <= self.last);
        let others = self
            .path
            .parent()
            .and_then(|dir| heartbeat_paths(dir, &[RecoveryStage::Running]).ok())
            .unwrap_or_default();
        if others.iter().any(is_other)
            && fs::rename(&self.path, self.path.with_extension(PAST_EXTENSION)).is_ok()
        {
            fs::remove_file(process_lock_path(&self.path)).ok();
        } else {
            remove_heartbeat(&self.path);
        }
    }
}

/// The part of a command's recovery that is on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryStage {
    /// The command runs, or was cut off.
    Running,
    /// The command was cut off and is recovered.
    Recovered,
    /// The recovery is on record.
    Past,
}

impl RecoveryStage {
    /// Returns the stage that a heartbeat's extension states; `None` for a process lock.
    fn of(path: &Path) -> Option<Self> {
        match path.extension() {
            None => Some(Self::Running),
            Some(extension) if extension == RECOVERED_EXTENSION => Some(Self::Recovered),
            Some(extension) if extension == PAST_EXTENSION => Some(Self::Past),
            Some(_) => None,
        }
    }
}

fn process_lock_path(path: &Path) -> PathBuf {
    path.with_extension(PROCESS_LOCK_SUFFIX.trim_start_matches('.'))
}

/// Removes a heartbeat with its process lock. A heartbeat that can't be removed is found to be
/// journaled when its call is recovered.
fn remove_heartbeat(path: &Path) {
    fs::remove_file(process_lock_path(path)).ok();
    fs::remove_file(path).ok();
}

/// Waits until no process of a command lives whose program is gone. Returns the locked process
/// lock, so that no process of the command can start either; `Err(())` if one lives on.
fn wait_for_processes(path: &Path) -> io::Result<Result<Option<File>, ()>> {
    let file = match File::open(process_lock_path(path)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(None)),
        Err(error) => return Err(error),
    };
    Ok(if lock_within(&file, MAX_EXIT_WAIT)? { Ok(Some(file)) } else { Err(()) })
}

/// The state of a heartbeat.
pub(crate) enum HeartbeatState {
    Dead(Box<StaleHeartbeat>),
    /// Another process still touches it, or recovers its command.
    Alive(Box<CommandStart>),
}

/// Returns the heartbeats of these stages for which `wanted` returns true, oldest first.
pub(crate) fn find_heartbeats(
    state_dir: &Path,
    stages: &[RecoveryStage],
    wanted: impl Fn(&CommandStart) -> bool,
) -> Result<Vec<HeartbeatState>, WorkspaceError> {
    let found = map_heartbeats(state_dir, stages, |path| read_heartbeat(path, &wanted))?;
    Ok(found.into_iter().flatten().collect())
}

/// Reads each heartbeat of these stages, oldest first. Skips heartbeats that are removed meanwhile.
fn map_heartbeats<T>(
    state_dir: &Path,
    stages: &[RecoveryStage],
    read: impl Fn(&Path) -> io::Result<T>,
) -> Result<Vec<T>, WorkspaceError> {
    let dir = heartbeats_dir(state_dir);
    let mut listings = 0;
    'list: loop {
        listings += 1;
        let mut found = Vec::new();
        for path in heartbeat_paths(&dir, stages).map_err(|source| state_error("list", &dir, source))? {
            match read(&path) {
                Ok(one) => found.push(one),
                // The next stage of a command has another name, which the listing lacks.
                Err(error) if error.kind() == io::ErrorKind::NotFound && listings < MAX_LISTINGS => {
                    continue 'list;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(state_error("read", &path, source)),
            }
        }
        return Ok(found);
    }
}

/// The time span in which a call ran, or may have run.
#[derive(Debug)]
pub(crate) struct CommandSpan {
    pub(crate) session: SessionId,
    pub(crate) began: i64,
    /// Later than now while it runs.
    pub(crate) until: i64,
}

/// Returns when the calls of a state directory ran, or may have run: those not recovered yet, and
/// those recovered while a command ran that began at `since`. Doesn't wait.
pub(crate) fn list_command_spans(state_dir: &Path, since: i64) -> Result<Vec<CommandSpan>, WorkspaceError> {
    let spans = map_heartbeats(
        state_dir,
        &[RecoveryStage::Running, RecoveryStage::Recovered, RecoveryStage::Past],
        |path| read_command_span(path, since),
    )?;
    Ok(spans.into_iter().flatten().collect())
}

/// Reads the time span of a command; `None` for checks, for commands that ended before `since`, and
/// for a torn file, whose command never began.
fn read_command_span(path: &Path, since: i64) -> io::Result<Option<CommandSpan>> {
    let mut file = File::open(path)?;
    let Some(begin) = read_command_start(&mut file)?.filter(|it| it.call.is_some()) else { return Ok(None) };
    let seen = file.metadata()?;
    let last = last_touch_time(&seen);
    let began = time_in_name(path).unwrap_or(last);
    let mut until = latest_change_time_at(&begin, path, &seen);
    // A busy machine or a stopped process renews its heartbeat late, and is alive all the same.
    if until < file_clock() && is_held(&file)? {
        until = i64::MAX;
    }
    let has_overlapped =
        if RecoveryStage::of(path) == Some(RecoveryStage::Running) { until >= since } else { last >= since };
    Ok(has_overlapped.then_some(CommandSpan { until, session: begin.session, began }))
}

/// Returns true if the command's program, or one that recovers the command, holds the heartbeat.
fn is_held(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => flock(file, FlockOperation::Unlock).map(|()| false).map_err(Into::into),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// Locks a file, waiting at most `wait`; returns false if another process still holds it.
fn lock_within(file: &File, wait: Duration) -> io::Result<bool> {
    let started = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) if started.elapsed() < wait => {
                std::thread::sleep(POLL_INTERVAL)
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn read_command_start(file: &mut File) -> io::Result<Option<CommandStart>> {
    let mut text = Vec::new();
    file.take(MAX_HEARTBEAT_BYTES).read_to_end(&mut text)?;
    Ok(CommandStart::parse(&text))
}

/// Returns the latest time of a change that the command may have made.
fn latest_change_time_at(begin: &CommandStart, path: &Path, seen: &fs::Metadata) -> i64 {
    let until = begin.latest_change_time(last_touch_time(seen));
    match RecoveryStage::of(path) {
        Some(RecoveryStage::Running) | None => until,
        // It was renamed when nothing of the command lived any more.
        Some(RecoveryStage::Recovered | RecoveryStage::Past) => {
            until.min(to_nanos(seen.ctime(), seen.ctime_nsec()))
        }
    }
}

fn last_touch_time(seen: &fs::Metadata) -> i64 {
    to_nanos(seen.mtime(), seen.mtime_nsec())
}

/// Returns the starts of all commands of a state directory that run or aren't on record. Doesn't
/// wait.
pub(crate) fn list_command_starts(state_dir: &Path) -> Result<Vec<CommandStart>, WorkspaceError> {
    let begins = map_heartbeats(state_dir, &[RecoveryStage::Running, RecoveryStage::Recovered], |path| {
        read_command_start(&mut File::open(path)?)
    })?;
    Ok(begins.into_iter().flatten().collect())
}

fn read_heartbeat(path: &Path, wanted: impl Fn(&CommandStart) -> bool) -> io::Result<Option<HeartbeatState>> {
    let mut file = private_file_options().read(true).write(true).open(path)?;
    let Some(begin) = read_command_start(&mut file)?.filter(wanted) else { return Ok(None) };
    // Its program holds it for as long as it runs, others only for a moment ([`is_held`]).
    if !lock_within(&file, MAX_PROBE_WAIT)? {
        return Ok(Some(HeartbeatState::Alive(Box::new(begin))));
    }
    let seen = file.metadata()?;
    if seen.nlink() == 0 {
        return Ok(None);
    }
    let Ok(process_lock) = wait_for_processes(path)? else {
        return Ok(Some(HeartbeatState::Alive(Box::new(begin))));
    };
    let last = last_touch_time(&seen);
    let until = latest_change_time_at(&begin, path, &seen);
    let began = time_in_name(path).unwrap_or(last);
    Ok(Some(HeartbeatState::Dead(Box::new(StaleHeartbeat {
        begin,
        began,
        until,
        last,
        path: path.to_owned(),
        file,
        _witness: process_lock,
    }))))
}

fn to_nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.wrapping_mul(NANOS_PER_SECOND).wrapping_add(nanos)
}

fn heartbeats_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("running")
}

/// Creates a file whose name begins with the current time, so that names sort by age.
fn create_heartbeat_file(dir: &Path) -> io::Result<(PathBuf, File)> {
    let now = file_clock().max(0);
    for attempt in 0..MAX_NAME_TRIES {
        let path = dir.join(format!("{now:020}-{}-{attempt:03}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn time_in_name(path: &Path) -> Option<i64> {
    path.file_name()?.to_str()?.split('-').next()?.parse().ok()
}

/// Returns the paths of the heartbeats of these stages, oldest first.
pub(crate) fn heartbeat_paths(dir: &Path, stages: &[RecoveryStage]) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.retain(|path| RecoveryStage::of(path).is_some_and(|stage| stages.contains(&stage)));
    names.sort_unstable();
    Ok(names)
}

/// Removes the oldest stale heartbeats beyond the bound, and those on record that no running
/// command overlapped.
fn prune_heartbeats(dir: &Path) {
    let running = heartbeat_paths(dir, &[RecoveryStage::Running]).unwrap_or_default();
    let oldest = running.first().and_then(|path| time_in_name(path)).unwrap_or(i64::MAX);
    for path in heartbeat_paths(dir, &[RecoveryStage::Past]).unwrap_or_default() {
        let is_needed = fs::metadata(&path).is_ok_and(|seen| last_touch_time(&seen) >= oldest);
        if !is_needed {
            fs::remove_file(&path).ok();
        }
    }
    let all = heartbeat_paths(dir, &[RecoveryStage::Running, RecoveryStage::Recovered]).unwrap_or_default();
    for path in all.iter().take(all.len().saturating_sub(MAX_STALE_HEARTBEATS)) {
        let is_dead =
            File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_dead {
            remove_heartbeat(path);
        }
    }
}

/// A command that runs in this process.
#[derive(Debug)]
pub(crate) struct LiveCommand {
    pub(crate) session: SessionId,
    pub(crate) call: CallId,
    pub(crate) tree: Arc<Tree>,
    pub(crate) journal_end: JournalMark,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_that_is_renamed_after_the_listing_is_read() {
        let state = tempfile::tempdir().unwrap();
        let dir = heartbeats_dir(state.path());
        fs::create_dir(&dir).unwrap();
        for name in ["1-1-000", "2-1-000", "3-1-000"] {
            fs::write(dir.join(name), name).unwrap();
        }
        let read = |path: &Path| {
            // Another process ends the first command, and recovers the second.
            if path.ends_with("2-1-000") {
                fs::remove_file(dir.join("1-1-000")).unwrap();
                fs::rename(path, path.with_extension(RECOVERED_EXTENSION)).unwrap();
            }
            fs::read_to_string(path)
        };
        let stages = [RecoveryStage::Running, RecoveryStage::Recovered];
        assert_eq!(map_heartbeats(state.path(), &stages, read).unwrap(), ["2-1-000", "3-1-000"]);
    }
}
