//! The journal of changes: which files were changed, by which session, and their earlier states.
//!
//! One append-only file, `journal/log` in the state directory. Each line is 16 hexadecimal digits
//! of the hash of the rest, a space, and one JSON value. A change's line is durable before its
//! first effect; a line that says `done` or `void` closes it. The next process that takes the lock
//! closes what a crash left open, so that at most the last change of the file is ever unfinished.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::{SessionId, UnixMillis};
use serde::{Deserialize, Serialize};

use crate::change::{ChangeId, CheckpointId};
use crate::error::WorkspaceError;
use crate::journal::line_format::{CHECKSUM_DIGITS, parse_checked_line, push_line};
use crate::journal::parsing::{JournalTail, ParsedLines, is_journal_gone, parse_lines};
use crate::journal::record::{ChangeRecord, CheckpointRecord, DroppedLines, JournalLine};
use crate::journal::undone::undone_in;
use crate::limits::MAX_DROPPED_SESSIONS;
use crate::state::lock::{
    make_private_dir, private_file_options, replace_durably, state_error, sync_parent_dir,
};
use journeyman_protocol::Clock;

pub(crate) mod history;
pub(crate) mod line_format;
pub(crate) mod parsing;
pub(crate) mod record;
pub(crate) mod undone;

/// The last line of a journal at rest is short; so much of the end is read to find it.
const TAIL_BYTES: u64 = 4096;
/// Changes and checkpoints of a journal whose predecessor is gone begin after this number where
/// there is no clock.
const FIRST_ID_AFTER_LOSS: u64 = 1_000_000;
/// A journal larger than this is not read into memory; the bound at which it is cut is far below.
const MAX_JOURNAL_BYTES: u64 = 256 * 1024 * 1024;

/// A change that a crash left open.
#[derive(Debug)]
pub(crate) struct UnfinishedChange {
    pub(crate) record: ChangeRecord,
    pub(crate) placed: bool,
}

/// The end of the journal at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct JournalEnd {
    ino: u64,
    len: u64,
}

/// A place in the journal at which no change was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct JournalMark {
    end: JournalEnd,
    /// The newest id before it: places move when the journal is cut, ids don't.
    last: u64,
}

impl JournalMark {
    /// Returns true if the line was there at this mark.
    pub(crate) fn covers(&self, line: &JournalLine) -> bool {
        line.id() <= self.last
    }
}

/// The durability of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineDurability {
    Now,
    Later,
}

/// The journal of one project. Writing needs the project's lock.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    limit: u64,
    clock: Option<Clock>,
    file: Option<File>,
    known: JournalEnd,
    last_id: u64,
    /// The length of the journal after it was last cut.
    stays: u64,
}

impl Journal {
    pub(crate) fn new(state_dir: &Path, limit: u64) -> Self {
        let path = state_dir.join("journal").join("log");
        Self { path, limit, clock: None, file: None, known: JournalEnd::default(), last_id: 0, stays: 0 }
    }

    /// Sets the clock for the times that are written.
    pub(crate) fn with_clock(self, clock: Option<Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Returns the time to write down.
    pub(crate) fn timestamp(&self) -> Option<UnixMillis> {
        self.clock.as_ref().map(Clock::now)
    }

    /// Returns the end of the journal now; no lock needed.
    pub(crate) fn current_end(&self) -> JournalEnd {
        fs::metadata(&self.path)
            .map(|found| JournalEnd { ino: found.ino(), len: found.len() })
            .unwrap_or_default()
    }

    /// Returns the end of the journal now, or an error if the journal can't be examined.
    pub(crate) fn try_current_end(&self) -> Result<JournalEnd, WorkspaceError> {
        match fs::metadata(&self.path) {
            Ok(found) => Ok(JournalEnd { ino: found.ino(), len: found.len() }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(JournalEnd::default()),
            Err(source) => Err(state_error("look at the journal", &self.path, source)),
        }
    }

    /// Returns true if the last line says that nothing is open. Reads a few bytes; no lock needed.
    pub(crate) fn is_at_rest(&self) -> bool {
        let Ok(end) = self.try_current_end() else { return false };
        end.len == 0
            || end == self.known
            || matches!(self.last_line(end.len), Ok(Some(line)) if line.is_at_rest())
    }

    /// Returns the mark of now; `None` while a change is open. No lock needed.
    pub(crate) fn mark_if_at_rest(&self) -> Result<Option<JournalMark>, WorkspaceError> {
        let end = self.try_current_end()?;
        if end.len == 0 {
            return Ok(Some(JournalMark { end, last: 0 }));
        }
        if self.file.is_some() && end == self.known {
            return Ok(Some(JournalMark { end, last: self.last_id }));
        }
        let last = self.last_line(end.len)?.filter(JournalLine::is_at_rest);
        Ok(last.map(|line| JournalMark { end, last: line.id() }))
    }

    /// Returns the mark of now; valid after [`Journal::catch_up`], under the lock.
    pub(crate) fn current_mark(&self) -> Result<JournalMark, WorkspaceError> {
        Ok(JournalMark { end: self.try_current_end()?, last: self.last_id })
    }

    /// Updates the cached end under the lock, drops a torn last line, and returns the change that a
    /// crash left open.
    pub(crate) fn catch_up(&mut self) -> Result<Option<UnfinishedChange>, WorkspaceError> {
        let end = self.try_current_end()?;
        if self.file.is_some() && end == self.known {
            return self.cut_if_long(end).map(|()| None);
        }
        self.file = None;
        if end.len == 0 {
            self.known = end;
            if is_journal_gone(&self.path) {
                // Numbers that were given before don't come back: copies and sessions still know
                // them.
                let numbers = self.timestamp().map_or(FIRST_ID_AFTER_LOSS, |now| now.0 / 1000);
                self.append(&[JournalLine::Damaged(numbers)], LineDurability::Now)?;
            }
            return Ok(None);
        }
        if let Some(line) = self.last_line(end.len)?
            && line.is_at_rest()
        {
            self.last_id = line.id();
            self.known = end;
            return self.cut_if_long(end).map(|()| None);
        }
        let ParsedLines { lines, whole, tail, .. } = self.read_from(0)?;
        if whole < end.len {
            let file = self.open()?;
            file.set_len(whole).map_err(|source| state_error("repair", &self.path, source))?;
        }
        self.known = self.current_end();
        self.last_id = lines.iter().map(JournalLine::id).max().unwrap_or_default();
        if tail == JournalTail::Damaged {
            self.append(&[JournalLine::Damaged(self.next_id())], LineDurability::Now)?;
        }
        let mut open: Option<UnfinishedChange> = None;
        for line in lines {
            match line {
                JournalLine::Change(record) => open = Some(UnfinishedChange { record, placed: false }),
                // The line that closed it is damaged: nobody begins anything before that is
                // written.
                JournalLine::Checkpoint(_) if open.as_ref().is_some_and(|open| !open.placed) => open = None,
                JournalLine::Placed(_) => {
                    if let Some(unfinished) = &mut open {
                        unfinished.placed = true;
                    }
                }
                JournalLine::Done(_) | JournalLine::Void(_) => open = None,
                JournalLine::Checkpoint(_) | JournalLine::Dropped(_) | JournalLine::Damaged(_) => {}
            }
        }
        Ok(open)
    }

    /// Returns the id of the next change or checkpoint; valid after [`Journal::catch_up`], under
    /// the lock.
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.saturating_add(1)
    }

    /// Appends lines, all or none of them.
    pub(crate) fn append(
        &mut self,
        lines: &[JournalLine],
        sync: LineDurability,
    ) -> Result<(), WorkspaceError> {
        let failed = |source| state_error("write the journal", &self.path, source);
        let mut text = Vec::new();
        for line in lines {
            push_line(&mut text, &serde_json::to_vec(line).map_err(|error| failed(error.into()))?);
        }
        if self.file.is_none() {
            self.file = Some(self.open()?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        // Asked of the file itself: what is to be cut off after a failure must not be guessed.
        let length = file.metadata().map_err(failed)?.len();
        let written = file.write_all(&text).and_then(|()| match sync {
            LineDurability::Now => file.sync_data(),
            LineDurability::Later => Ok(()),
        });
        if let Err(source) = written {
            // What was written of it must not stand before the next line. If even this fails, the
            // checksum gives the torn line away.
            drop(file.set_len(length));
            self.file = None;
            return Err(state_error("write the journal", &self.path, source));
        }
        self.known = self.current_end();
        self.last_id = lines.iter().map(JournalLine::id).max().unwrap_or_default().max(self.last_id);
        Ok(())
    }

    /// Makes the next [`Journal::catch_up`] read the file again, because this process left a change
    /// open.
    pub(crate) fn invalidate(&mut self) {
        self.file = None;
        self.known = JournalEnd::default();
    }

    /// Waits until everything is on the disk.
    pub(crate) fn flush(&self) -> Result<(), WorkspaceError> {
        match &self.file {
            Some(file) => {
                file.sync_data().map_err(|source| state_error("flush the journal", &self.path, source))
            }
            None => Ok(()),
        }
    }

    /// Returns all lines, oldest first. Lines with a wrong checksum are [`JournalLine::Damaged`],
    /// except that those at the end are left out.
    pub(crate) fn lines(&self) -> Result<Vec<JournalLine>, WorkspaceError> {
        Ok(self.read_from(0)?.lines)
    }

    /// Returns the lines after `end`, or all lines if the journal was cut since.
    fn lines_since(&self, end: JournalEnd) -> Result<Vec<JournalLine>, WorkspaceError> {
        let now = self.try_current_end()?;
        if now == end {
            return Ok(Vec::new());
        }
        let from = if now.ino == end.ino && now.len > end.len { end.len } else { 0 };
        Ok(self.read_from(from)?.lines)
    }

    /// Returns the lines of changes and checkpoints that came after a mark, also where the journal
    /// was cut since.
    pub(crate) fn lines_since_mark(&self, mark: JournalMark) -> Result<Vec<JournalLine>, WorkspaceError> {
        let mut lines = self.lines_since(mark.end)?;
        lines.retain(|line| line.id() > mark.last);
        Ok(lines)
    }

    /// Returns the siblings of all changes that weren't closed when the journal ended at `end`.
    pub(crate) fn siblings_open_since(&self, end: JournalEnd) -> Result<HashSet<Vec<u8>>, WorkspaceError> {
        let closed = |line: &JournalLine| match line {
            JournalLine::Done(id) | JournalLine::Void(id) => Some(*id),
            _ => None,
        };
        let lines = self.lines()?;
        let mut over: HashSet<ChangeId> = lines.iter().filter_map(closed).collect();
        for line in self.lines_since(end)? {
            over.remove(&ChangeId(line.id()));
        }
        let open = lines.into_iter().filter_map(|line| match line {
            JournalLine::Change(record) if !over.contains(&record.id) => Some(record),
            _ => None,
        });
        let mut siblings = HashSet::new();
        for record in open {
            siblings.extend(record.dirs_set_aside().map(|(_, aside)| aside.as_bytes().to_vec()));
            let files = record.files.into_iter().filter_map(|file| file.sibling);
            siblings.extend(files.map(|path| path.as_bytes().to_vec()));
        }
        Ok(siblings)
    }

    /// Returns the lines of changes and checkpoints after this id.
    pub(crate) fn lines_after(&self, id: u64) -> Result<Vec<JournalLine>, WorkspaceError> {
        let mut lines = self.lines()?;
        lines.retain(|line| line.id() > id);
        Ok(lines)
    }

    fn open(&self) -> Result<File, WorkspaceError> {
        let dir = self.path.parent().unwrap_or(&self.path);
        make_private_dir(dir)?;
        let is_new = !self.path.exists();
        let file = private_file_options().read(true).append(true).create(true).open(&self.path);
        let file = file.map_err(|source| state_error("open the journal", &self.path, source))?;
        if is_new {
            for dir in [Some(dir), dir.parent()].into_iter().flatten() {
                let synced = File::open(dir).and_then(|dir| dir.sync_all());
                synced.map_err(|source| state_error("flush the directory", dir, source))?;
            }
        }
        Ok(file)
    }

    /// Returns the checkpoint in the last line, if it is one.
    pub(crate) fn last_checkpoint(&self) -> Option<CheckpointRecord> {
        match self.last_line(self.current_end().len) {
            Ok(Some(JournalLine::Checkpoint(record))) => Some(record),
            // What can't be read is made anew.
            _ => None,
        }
    }

    fn last_line(&self, len: u64) -> Result<Option<JournalLine>, WorkspaceError> {
        let mut tail = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
            file.take(TAIL_BYTES).read_to_end(&mut tail)
        });
        read.map_err(|source| state_error("read the journal", &self.path, source))?;
        let Some(body) = tail.strip_suffix(b"\n") else { return Ok(None) };
        let start = memchr::memrchr(b'\n', body).map_or(0, |at| at + 1);
        Ok(body.get(start..).and_then(parse_checked_line))
    }

    /// Reads the lines from a place on.
    fn read_from(&self, from: u64) -> Result<ParsedLines, WorkspaceError> {
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.take(MAX_JOURNAL_BYTES).read_to_end(&mut text)
        });
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(ParsedLines::default()),
            Err(source) => return Err(state_error("read the journal", &self.path, source)),
        }
        Ok(parse_lines(&text, from))
    }

    fn cut_if_long(&mut self, end: JournalEnd) -> Result<(), WorkspaceError> {
        // What couldn't be cut further has to grow before it is tried again.
        if end.len > self.limit && end.len > self.stays.saturating_add(self.limit / 8) {
            self.drop_older_half()?;
            self.stays = self.known.len;
        }
        Ok(())
    }

    /// Drops the older half; never the newest change.
    fn drop_older_half(&mut self) -> Result<(), WorkspaceError> {
        let lines = self.lines()?;
        let mut size = 0_u64;
        let (mut from, mut changed) = (lines.len(), false);
        for (place, line) in lines.iter().enumerate().rev() {
            let json = serde_json::to_vec(line)
                .map_err(|error| state_error("cut the journal", &self.path, error.into()))?;
            size += (json.len() + CHECKSUM_DIGITS + 2) as u64;
            if size > self.limit / 2 && changed {
                break;
            }
            changed |= matches!(line, JournalLine::Change(_));
            from = place;
        }
        self.drop_lines_before(lines, from, &HashSet::new())
    }

    /// Replaces the journal by its lines from this place on, what was said of dropped ones before,
    /// the newest checkpoint and those in `needed`. After a crash it is the one or the other.
    pub(crate) fn drop_lines_before(
        &mut self,
        mut lines: Vec<JournalLine>,
        from: usize,
        needed: &HashSet<CheckpointId>,
    ) -> Result<(), WorkspaceError> {
        let newest = lines.iter().rev().find_map(|line| match line {
            JournalLine::Checkpoint(record) => Some(record.id),
            _ => None,
        });
        let kept = lines.split_off(from.min(lines.len()));
        let is_needed = |line: &JournalLine| match line {
            JournalLine::Checkpoint(record) => Some(record.id) == newest || needed.contains(&record.id),
            _ => false,
        };
        let dropped = dropped_record(&lines, &kept);
        let before = dropped.map(JournalLine::Dropped).into_iter().chain(lines.into_iter().filter(is_needed));
        let kept = kept.into_iter().filter(|line| !matches!(line, JournalLine::Dropped(_)));
        let all: Vec<JournalLine> = before.chain(kept).collect();
        let mut text = Vec::new();
        for line in &all {
            let json = serde_json::to_vec(line)
                .map_err(|error| state_error("cut the journal", &self.path, error.into()))?;
            push_line(&mut text, &json);
        }
        let replaced = replace_durably(&self.path, &text).and_then(|()| sync_parent_dir(&self.path));
        replaced.map_err(|source| state_error("cut the journal", &self.path, source))?;
        self.file = None;
        self.known = self.current_end();
        Ok(())
    }
}

/// Returns the record of dropped lines, if a change is among them.
pub(crate) fn dropped_record(gone: &[JournalLine], kept: &[JournalLine]) -> Option<DroppedLines> {
    let earlier = gone.iter().chain(kept).rev().find_map(|line| match line {
        JournalLine::Dropped(dropped) => Some(dropped),
        _ => None,
    });
    let changes = |lines| {
        <[JournalLine]>::iter(lines).filter_map(|line| match line {
            JournalLine::Change(record) => Some(record),
            _ => None,
        })
    };
    let undone = undone_in(changes(gone).chain(changes(kept)));
    let ours =
        changes(gone).rev().filter(|record| !record.cause.is_undo_or_redo() && !undone.contains(&record.id));
    let mut sessions: Vec<SessionId> = Vec::new();
    let mut seen = HashSet::new();
    for session in
        ours.map(|record| &record.session).chain(earlier.iter().flat_map(|dropped| &dropped.sessions))
    {
        if seen.insert(session) && sessions.len() < MAX_DROPPED_SESSIONS {
            sessions.push(session.clone());
        }
    }
    let last = changes(gone).map(|record| record.id.0).max();
    let through = last.max(earlier.map(|dropped| dropped.through))?;
    Some(DroppedLines { through, sessions })
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::UnixMillis;

    use super::*;
    use crate::journal::record::ChangeCause;

    fn record(id: u64) -> JournalLine {
        let session = SessionId::new(UnixMillis(1), 1);
        JournalLine::Change(ChangeRecord {
            id: ChangeId(id),
            session,
            call: None,
            cause: ChangeCause::Edit,
            at: None,
            description: None,
            files: Vec::new(),
            made: Vec::new(),
            removed: Vec::new(),
            cleared: Vec::new(),
            modes: Vec::new(),
            undoes: Vec::new(),
            left: Vec::new(),
            beside: Vec::new(),
            settles_copy: false,
        })
    }

    #[test]
    fn a_torn_line_is_dropped_and_an_open_change_found() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(dir.path(), 1 << 20);
        assert!(journal.catch_up().unwrap().is_none());
        journal.append(&[record(1), JournalLine::Done(ChangeId(1)), record(2)], LineDurability::Now).unwrap();
        let whole = fs::read(&journal.path).unwrap();
        for torn in ["", "0123456789abcdef {\"do", "0123456789abcdef {\"do\0\0\0\":2}\n", "\n"] {
            let text = [whole.as_slice(), torn.as_bytes()].concat();
            fs::write(&journal.path, text).unwrap();
            let mut again = Journal::new(dir.path(), 1 << 20);
            assert!(!again.is_at_rest());
            let open = again.catch_up().unwrap().unwrap();
            assert_eq!((open.record.id, open.placed), (ChangeId(2), false));
            assert_eq!(fs::read(&journal.path).unwrap(), whole, "after {torn:?}");
            assert_eq!(again.next_id(), 3);
        }
    }

    #[test]
    fn damaged_lines_are_told_and_never_taken_for_a_torn_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(dir.path(), 1 << 20);
        journal.catch_up().unwrap();
        let (one, done) = (ChangeId(1), JournalLine::Done(ChangeId(1)));
        journal
            .append(
                &[record(1), done.clone(), record(2), JournalLine::Done(ChangeId(2))],
                LineDurability::Now,
            )
            .unwrap();
        let whole = fs::read(&journal.path).unwrap();
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', &whole).map(|at| at + 1).collect();
        // Which bytes are damaged; the lines that are read; the end.
        let table = [
            (
                vec![3],
                vec![JournalLine::Damaged(0), done.clone(), record(2), JournalLine::Done(ChangeId(2))],
                JournalTail::Nothing,
            ),
            (
                vec![ends[0] + 20],
                vec![record(1), JournalLine::Damaged(1), record(2), JournalLine::Done(ChangeId(2))],
                JournalTail::Nothing,
            ),
            (
                vec![ends[0] - 1],
                vec![JournalLine::Damaged(0), record(2), JournalLine::Done(ChangeId(2))],
                JournalTail::Nothing,
            ),
            (
                vec![ends[0] + 1, ends[1] + 1],
                vec![record(1), JournalLine::Damaged(1), JournalLine::Done(ChangeId(2))],
                JournalTail::Nothing,
            ),
            (vec![ends[2] + 5], vec![record(1), done, record(2)], JournalTail::Damaged),
            (vec![whole.len() - 1], vec![record(1), JournalLine::Done(one), record(2)], JournalTail::Torn),
        ];
        for (at, expected, tail) in table {
            let mut text = whole.clone();
            at.iter().for_each(|at| text[*at] ^= 1);
            let read = parse_lines(&text, 0);
            assert_eq!((&read.lines, read.tail), (&expected, tail), "{at:?}");
        }
        // A damaged last line stays on record.
        let mut text = whole.clone();
        text[ends[2] + 5] ^= 1;
        fs::write(&journal.path, &text).unwrap();
        let mut again = Journal::new(dir.path(), 1 << 20);
        assert_eq!(again.catch_up().unwrap().unwrap().record.id, ChangeId(2));
        assert_eq!(again.lines().unwrap().last(), Some(&JournalLine::Damaged(3)));
        assert_eq!(again.next_id(), 4);
    }

    #[test]
    fn beyond_its_bound_the_newer_half_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(dir.path(), 4_000);
        for id in 1..100 {
            assert!(journal.catch_up().unwrap().is_none());
            assert_eq!(journal.next_id(), id);
            journal.append(&[record(id), JournalLine::Done(ChangeId(id))], LineDurability::Later).unwrap();
        }
        let lines = journal.lines().unwrap();
        assert_eq!(lines.last(), Some(&JournalLine::Done(ChangeId(99))));
        assert!(fs::metadata(&journal.path).unwrap().len() < 4_400);
        assert!(Journal::new(dir.path(), 4_000).catch_up().unwrap().is_none());
    }
}
