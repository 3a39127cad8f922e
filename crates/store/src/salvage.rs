//! Recovery of a damaged log's readable part into a new log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::{Channel, Seq, SessionId, UnixMillis};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

use crate::entry::entry_bytes;
use crate::export_import;
use crate::lease::unique_number;
use crate::private_directories::{path_with_suffix, sync_dir};
use crate::sqlite::{seq_of_place, unpack_place};
use crate::{Entry, NewEntry, SESSION_STATUS_READY, SqliteStore, Store, StoreError};
use raw_database::{LeafKind, RawDatabase};
use record::SessionRow;

pub(crate) mod raw_database;
mod record;

/// Maximum bytes of entries that are appended at once.
const BATCH_BYTES: usize = 1024 * 1024;
/// The possible numbers of sessions.
const SESSION_NUMBERS: RangeInclusive<i64> = 1..=(1 << 23) - 1;
/// The title of a session whose own is lost.
const NO_TITLE: &str = "(recovered)";
/// The kind of a placeholder for a lost event, so that later entries keep their sequence numbers.
/// Readers ignore events of unknown kinds.
const LOST_EVENT: &str = "lost";
/// Maximum number of consecutive lost events that are replaced by placeholders. A page of the file
/// holds far fewer entries; a longer gap means that the session's own row is damaged.
const MAX_REPLACED_EVENTS: u64 = 4096;
/// Start and length of the bytes on which every open SQLite connection holds a shared lock.
const SHARED_LOCK_RANGE: (u64, u64) = (0x4000_0002, 510);

/// A report of a salvage: the recovered part of a damaged log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvageReport {
    /// The sessions of which anything was found, the oldest first.
    pub sessions: Vec<SalvagedSession>,
    /// The file with the entries after a lost one, as JSON Lines, if there are any.
    pub apart: Option<PathBuf>,
}

/// The recovered part of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvagedSession {
    /// Its id; a new one if the id is lost.
    pub id: SessionId,
    /// Its title.
    pub title: String,
    /// The known number of entries before the damage.
    pub had: u64,
    /// The number of entries in the new log: all up to the first lost record, as after a crash at
    /// that time. The session can continue from there.
    pub kept: u64,
    /// The number of placeholders for lost events among them. Events hold neither messages nor
    /// actions.
    pub blank: u64,
    /// The number of recovered entries after the first lost record. They are in
    /// [`SalvageReport::apart`].
    pub apart: u64,
}

impl SalvagedSession {
    /// Returns the number of lost entries.
    #[must_use]
    pub fn lost_entry_count(&self) -> u64 {
        self.had.saturating_sub(self.kept).saturating_sub(self.apart).saturating_add(self.blank)
    }
}

impl fmt::Display for SalvageReport {
    /// Writes one line for all sessions, and one for each session with losses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept: u64 = self.sessions.iter().map(|session| session.kept).sum();
        let blank: u64 = self.sessions.iter().map(|session| session.blank).sum();
        write!(f, "saved {} sessions with {} entries", self.sessions.len(), kept.saturating_sub(blank))?;
        for session in self.sessions.iter().filter(|session| session.lost_entry_count() + session.apart > 0) {
            let SalvagedSession { id, title, had, kept, blank, apart } = session;
            let (lost, whole) = (session.lost_entry_count(), kept.saturating_sub(*blank));
            write!(
                f,
                "\n{id} ({title}): {whole} of {had} entries, {lost} lost, {apart} behind them set apart"
            )?;
            if *apart == 0 && lost == *blank {
                write!(f, "; only events are lost, and nothing of the conversation")?;
            }
        }
        match &self.apart {
            Some(path) => write!(f, "\nwhat was set apart is in {}", path.display()),
            None => Ok(()),
        }
    }
}

/// The result of [`repair`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairReport {
    /// The report of the recovered log, which replaces the damaged one.
    pub salvage: SalvageReport,
    /// The new path of the damaged log.
    pub aside: PathBuf,
}

/// Copies the readable part of the log `damaged`, with its write-ahead log, into the new log
/// `into`, atomically. The damaged log isn't changed.
///
/// No [`SqliteStore`] of this process may have the damaged log open: reading the file would release
/// its locks. The files are read in this thread, in time proportional to their size.
///
/// # Errors
/// [`StoreError::Busy`] while another process has the log open; [`StoreError::Io`] if `into`
/// exists; [`StoreError::Damaged`] when nothing at all can be read; failures of the medium.
pub async fn salvage(damaged: &Path, into: &Path) -> Result<SalvageReport, StoreError> {
    refuse_in_use(damaged)?;
    refuse_existing(into)?;
    let finds = RecoveredRows::scan_file(damaged)?;
    if finds.is_empty() {
        let detail = "no session and no entry in it can be read".to_owned();
        return Err(StoreError::Damaged { path: damaged.to_owned(), detail });
    }
    save_recovered(&finds, damaged, into).await
}

fn refuse_existing(into: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(into) {
        Ok(_) => Err(StoreError::io("save into", into, io::ErrorKind::AlreadyExists.into())),
        Err(_) => Ok(()),
    }
}

/// Writes the recovered rows into the new log `into`.
async fn save_recovered(
    finds: &RecoveredRows,
    damaged: &Path,
    into: &Path,
) -> Result<SalvageReport, StoreError> {
    let temporary = path_with_suffix(into, &format!("-new-{:016x}", unique_number()));
    let apart = path_with_suffix(into, "-apart.jsonl");
    let saved = finds.write_log(damaged, &temporary, &apart).await;
    let saved = saved.and_then(|saved| {
        let wal = path_with_suffix(&temporary, "-wal");
        if fs::symlink_metadata(&wal).is_ok_and(|found| found.len() > 0) {
            return Err(StoreError::io("move the newest changes from", &wal, io::Error::other("it stays")));
        }
        fs::hard_link(&temporary, into).map_err(|source| StoreError::io("save into", into, source))?;
        Ok(saved)
    });
    for suffix in ["", "-wal", "-shm"] {
        // A leftover is harmless: its name is unique.
        drop(fs::remove_file(path_with_suffix(&temporary, suffix)));
    }
    let saved = saved.inspect_err(|_| drop(fs::remove_file(&apart)))?;
    sync_dir(into.parent().unwrap_or(Path::new("")))?;
    Ok(saved)
}

/// Replaces the log `damaged` by a log of its readable part, and moves the damaged one aside in the
/// same directory. If nothing is readable, the new log is empty. A crash leaves either log, or an
/// empty file, which is reported as damaged; the next repair then puts the new log in its place.
///
/// # Errors
/// [`StoreError::Busy`] while another process has the log open; failures of the medium. Then
/// nothing was moved.
pub async fn repair(damaged: &Path) -> Result<RepairReport, StoreError> {
    let mark = format!("-damaged-{:08x}", unique_number() >> 32);
    let (fresh, aside) = (path_with_suffix(damaged, "-saved"), path_with_suffix(damaged, &mark));
    let left_apart = path_with_suffix(&fresh, "-apart.jsonl");
    let _locked = lock_for_repair(damaged)?;
    // Kept open until the end: closing any descriptor of the file gives up the lock.
    let (finds, mut saved);
    if is_empty_file(damaged) && fresh.exists() {
        // An interrupted repair had the new log complete and the damaged one aside.
        saved = report_complete_log(&fresh, &left_apart)?;
    } else {
        // Left by an interrupted repair.
        drop((fs::remove_file(&fresh), fs::remove_file(&left_apart)));
        finds = RecoveredRows::scan_file(damaged)?;
        saved = save_recovered(&finds, damaged, &fresh).await?;
    }
    let failed = |source| StoreError::io("put aside", damaged, source);
    let empty = path_with_suffix(damaged, &format!("-new-{:016x}", unique_number()));
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&empty).map_err(failed)?;
    match fs::hard_link(damaged, &aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    fs::rename(&empty, damaged).map_err(failed)?;
    for suffix in ["-wal", "-shm"] {
        match fs::rename(path_with_suffix(damaged, suffix), path_with_suffix(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    if let Some(apart) = &mut saved.apart {
        let beside_aside = path_with_suffix(&aside, "-apart.jsonl");
        fs::rename(&*apart, &beside_aside).map_err(failed)?;
        *apart = beside_aside;
    }
    // Last: the next repair removes what it finds of one that didn't come to this.
    fs::rename(&fresh, damaged).map_err(failed)?;
    sync_dir(damaged.parent().unwrap_or(Path::new("")))?;
    Ok(RepairReport { salvage: saved, aside })
}

fn is_empty_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

/// Returns the report of a new log that an interrupted repair left, with what it set apart.
fn report_complete_log(log: &Path, apart: &Path) -> Result<SalvageReport, StoreError> {
    let finds = RecoveredRows::scan_file(log)?;
    let sessions = finds.sessions.into_values().map(|row| SalvagedSession {
        id: row.id,
        title: row.title,
        had: row.last,
        kept: row.last,
        blank: 0,
        apart: 0,
    });
    Ok(SalvageReport { sessions: sessions.collect(), apart: apart.exists().then(|| apart.to_owned()) })
}

/// Locks a log against all other processes until it is closed: what one of them stored after the
/// file was read would not be in the new log. Returns an error if another process has it open.
fn lock_for_repair(path: &Path) -> Result<Option<File>, StoreError> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StoreError::io("lock", path, source)),
    };
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::AGAIN | Errno::ACCESS) => Err(StoreError::Busy { path: path.to_owned() }),
        // A file system without locks can't tell.
        Ok(()) | Err(_) => Ok(Some(file)),
    }
}

/// Returns an error if another process has the file open.
fn refuse_in_use(path: &Path) -> Result<(), StoreError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(StoreError::io("read", path, source)),
    };
    let (start, length) = SHARED_LOCK_RANGE;
    let mut lock = Flock::from(FlockType::WriteLock);
    (lock.start, lock.length, lock.offset_type) = (start, length, FlockOffsetType::Set);
    match fcntl_getlk(&file, &lock) {
        Ok(Some(_)) => Err(StoreError::Busy { path: path.to_owned() }),
        // A file system without locks can't tell.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// The rows found in a damaged file.
struct RecoveredRows {
    image: RawDatabase,
    sessions: BTreeMap<i64, SessionRow>,
    /// Ids from their index, for sessions whose row is lost.
    ids: BTreeMap<i64, SessionId>,
    /// Page and index of the cell of each entry, by its place.
    entries: BTreeMap<i64, (u32, u16)>,
    /// The places of records, from their index.
    records: BTreeSet<i64>,
}

impl RecoveredRows {
    fn scan_file(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::io("read", path, source);
        let image = RawDatabase::open(path).map_err(failed)?;
        let (mut sessions, mut ids, mut entries) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut records = BTreeSet::new();
        for number in 1..=image.pages {
            let Some((leaf, cells)) = image.cells(number).map_err(failed)? else { continue };
            for (cell, index) in cells.iter().zip(0..) {
                if leaf == LeafKind::Table && record::is_entry(&cell.local, cell.length) {
                    entries.entry(cell.row).or_insert((number, index));
                    continue;
                }
                let Some(record) = image.record(cell).map_err(failed)? else { continue };
                match leaf {
                    LeafKind::Table => {
                        if let Some(row) = record::parse_session(&record)
                            && SESSION_NUMBERS.contains(&cell.row)
                        {
                            sessions.insert(cell.row, row);
                        }
                    }
                    LeafKind::Index => {
                        ids.extend(record::parse_id_index(&record).map(|(id, number)| (number, id)));
                        records.extend(record::parse_record_index(&record));
                    }
                }
            }
        }
        Ok(Self { image, sessions, ids, entries, records })
    }

    fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.entries.is_empty()
    }

    /// Reads an entry; `None` if a part is lost.
    fn read_entry(&self, (page, index): (u32, u16)) -> io::Result<Option<NewEntry>> {
        let cells = self.image.cells(page)?;
        let cell = cells.as_ref().and_then(|(_, cells)| cells.get(usize::from(index)));
        let record = cell.map(|cell| self.image.record(cell)).transpose()?.flatten();
        Ok(record.and_then(|record| record::parse_entry(&record)))
    }

    /// Returns the row of a session, with defaults if it is lost.
    fn session_row(&self, number: i64) -> SessionRow {
        if let Some(row) = self.sessions.get(&number) {
            return row.clone();
        }
        let id = self.ids.get(&number).cloned();
        SessionRow {
            id: id.unwrap_or_else(|| SessionId::new(UnixMillis(0), number.cast_unsigned())),
            root: String::new(),
            title: NO_TITLE.to_owned(),
            created: UnixMillis(0),
            updated: UnixMillis(0),
            last: 0,
            status: SESSION_STATUS_READY.to_owned(),
            records: None,
        }
    }

    /// Returns true if the places of all records of a session are known, so that a lost entry at
    /// another place was an event.
    fn has_all_records(&self, number: i64, row: &SessionRow) -> bool {
        let known = self.records.range(session_places(number)).count();
        row.records == Some(known as u64)
    }

    async fn write_log(&self, from: &Path, to: &Path, apart: &Path) -> Result<SalvageReport, StoreError> {
        let store = SqliteStore::open(to)?;
        // Creates the file, also if nothing was found.
        store.sessions(None, 1).await?;
        let mut apart = DetachedEntries { path: apart.to_owned(), file: None };
        let mut sessions = Vec::new();
        let of_entries = self.entries.keys().map(|&place| unpack_place(place).0);
        let numbers: BTreeSet<i64> = self.sessions.keys().copied().chain(of_entries).collect();
        for number in numbers {
            sessions.push(self.write_session(&store, number, from, &mut apart).await?);
        }
        let apart = apart.finish()?;
        Ok(SalvageReport { sessions, apart })
    }

    async fn write_session(
        &self,
        store: &SqliteStore,
        number: i64,
        from: &Path,
        apart: &mut DetachedEntries,
    ) -> Result<SalvagedSession, StoreError> {
        let failed = |source| StoreError::io("read", from, source);
        let mut row = self.session_row(number);
        if let Err(StoreError::SessionExists { .. }) =
            store.create(&row.id, &row.root, &row.title, row.created).await
        {
            // Two rows have the same id only if one of them is stale; its entries are kept too.
            row.id = SessionId::new(UnixMillis(0), number.cast_unsigned());
            store.create(&row.id, &row.root, &row.title, row.created).await?;
        }
        let knows_records = self.has_all_records(number, &row);
        let newest = self
            .entries
            .range(session_places(number))
            .next_back()
            .map_or(0, |(&place, _)| seq_of_place(place).0);
        let id = row.id.clone();
        let had = row.last.max(newest);
        let mut saved = SalvagedSession { id, title: row.title, had, kept: 0, blank: 0, apart: 0 };
        let mut batch = Batch { store, id: &row.id, stored: Seq::START, entries: Vec::new(), bytes: 0 };
        let mut at = row.created;
        for (&place, &cell) in self.entries.range(session_places(number)) {
            let seq = seq_of_place(place);
            let Some(entry) = self.read_entry(cell).map_err(failed)? else { continue };
            let gap = saved.kept + 1..seq.0;
            if !gap.is_empty()
                && saved.apart == 0
                && knows_records
                && self.are_only_events(number, gap.clone())
            {
                batch.add_lost_events(&mut saved, gap.end - gap.start, at).await?;
            }
            if seq.0 != saved.kept + 1 {
                saved.apart += 1;
                apart.add(&saved.id, seq, entry)?;
                continue;
            }
            (saved.kept, at) = (seq.0, entry.at);
            batch.add(entry).await?;
        }
        let tail = saved.kept + 1..saved.had + 1;
        if !tail.is_empty() && saved.apart == 0 && knows_records && self.are_only_events(number, tail.clone())
        {
            batch.add_lost_events(&mut saved, tail.end - tail.start, at).await?;
        }
        batch.append_to_store().await?;
        // The old status describes an end that is lost.
        let status = if saved.kept < saved.had { SESSION_STATUS_READY } else { &row.status };
        store.set_status(&row.id, status, row.updated).await?;
        Ok(saved)
    }

    /// Returns true if no record was at these sequence numbers.
    fn are_only_events(&self, number: i64, gap: Range<u64>) -> bool {
        let place = |seq| crate::sqlite::pack_place(number, Seq(seq));
        gap.end - gap.start <= MAX_REPLACED_EVENTS
            && self.records.range(place(gap.start)..place(gap.end)).next().is_none()
    }
}

/// Entries that are appended to a session of the new log in batches.
struct Batch<'a> {
    store: &'a SqliteStore,
    id: &'a SessionId,
    stored: Seq,
    entries: Vec<NewEntry>,
    bytes: usize,
}

impl Batch<'_> {
    async fn add(&mut self, entry: NewEntry) -> Result<(), StoreError> {
        self.bytes += entry_bytes(&entry.kind, &entry.payload);
        self.entries.push(entry);
        if self.bytes >= BATCH_BYTES { self.append_to_store().await } else { Ok(()) }
    }

    /// Adds placeholders for lost events.
    async fn add_lost_events(
        &mut self,
        saved: &mut SalvagedSession,
        count: u64,
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        for _ in 0..count {
            let (channel, payload) = (Some(Channel::Monitor), b"{}".to_vec());
            self.add(NewEntry { channel, kind: LOST_EVENT.to_owned(), at, payload }).await?;
        }
        saved.kept += count;
        saved.blank += count;
        Ok(())
    }

    async fn append_to_store(&mut self) -> Result<(), StoreError> {
        self.bytes = 0;
        self.stored = self.store.append(self.id, self.stored, std::mem::take(&mut self.entries)).await?;
        Ok(())
    }
}

/// Returns the range of the places of a session's entries.
fn session_places(number: i64) -> RangeInclusive<i64> {
    crate::sqlite::pack_place(number, Seq::START)..=crate::sqlite::pack_place(number, Seq(u64::MAX))
}

/// The file for entries after a lost one, created for the first of them.
struct DetachedEntries {
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

impl DetachedEntries {
    fn add(&mut self, session: &SessionId, seq: Seq, entry: NewEntry) -> Result<(), StoreError> {
        let failed = |source| StoreError::io("write", &self.path, source);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path);
                none.insert(BufWriter::new(file.map_err(failed)?))
            }
        };
        let NewEntry { channel, kind, at, payload } = entry;
        let line = export_import::encode_session_entry(session, &Entry { seq, channel, kind, at, payload })?;
        file.write_all(&line).map_err(failed)
    }

    fn finish(self) -> Result<Option<PathBuf>, StoreError> {
        let Some(file) = self.file else { return Ok(None) };
        let written = file.into_inner().map_err(io::IntoInnerError::into_error);
        let synced = written.and_then(|file| file.sync_all());
        synced.map_err(|source| StoreError::io("write", &self.path, source))?;
        Ok(Some(self.path))
    }
}
