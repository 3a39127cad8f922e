//! What commands and checks did: the tree before and after, and the difference in the journal.

use std::collections::HashSet;
use std::sync::Arc;

use journeyman_protocol::{CallId, FileChange, RelPath, SessionId};

use crate::beat::{Beat, Begin};
use crate::compare::{dir_records, filtered, without_others};
use crate::journal::{Cause, DirRecord, End, FileRecord, Journal, Line, Record, Sync};
use crate::limits::MAX_DEPTH;
use crate::meanwhile::Live;
use crate::snapshot::{
    Content, Difference, Entry, Keep, TICK, Tree, TreeSnapshot, differences, directories_only_in, file_clock,
    is_settled,
};
use crate::workspace::{Since, Writer, lock};
use crate::{ChangeId, CheckpointId, Workspace, WorkspaceError};

/// From so many files read on, the stat cache is saved before a command: reading them again would cost more.
const SAVE_FROM: usize = 64;

/// Permission bits without which a directory hides what is in it from its owner.
const OWNER_LOOKS: u32 = 0o500;
/// Those that a directory gets which was made without them.
const OWNER: u32 = 0o700;

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The session waits for it.
    Foreground,
    /// It runs beside the session's turns.
    Background,
}

/// Whose doing a difference is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doing<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) call: Option<&'a CallId>,
    pub(crate) cause: Cause,
}

impl Workspace {
    /// Looks at the tree before a command runs. What the command may change is kept, so that it can be undone;
    /// [`TreeSnapshot::not_undoable`] names the exceptions.
    ///
    /// # Errors
    /// As [`Workspace::checkpoint`], but it takes no lock.
    pub fn command_begin(&self) -> Result<TreeSnapshot, WorkspaceError> {
        let _using = self.vault.blobs().using()?;
        let tree = self.snapshot(Keep::Contents, None)?;
        // Of these the signature is all that tells a change, so that the next one has to get a later time.
        let now = file_clock();
        let is_fresh = |entry: &Entry| entry.content == Content::Unkept && !is_settled(&entry.seen, now);
        if tree.entries.iter().any(is_fresh) {
            std::thread::sleep(TICK);
        }
        self.gives(&tree);
        self.save_cache(SAVE_FROM)?;
        let journal_end = lock(&self.writer).journal.find_end()?;
        Ok(TreeSnapshot { tree, beat: None, journal_end })
    }

    /// The same for a command of this call, which gives a sign of life from here on until [`Workspace::command_end`]:
    /// where a crash comes first, [`Workspace::seal_call`] puts back what it did. So it does for a snapshot that
    /// is dropped.
    ///
    /// # Errors
    /// As [`Workspace::command_begin`], and failures of the state directory.
    pub fn call_begin(&self, session: &SessionId, call: &CallId) -> Result<TreeSnapshot, WorkspaceError> {
        self.begin(session, Some(call), Place::Foreground)
    }

    /// The same for a command that runs in the background, perhaps for hours in which a person works too. What
    /// differs at its [end](Workspace::command_end) is journaled for the call, and an undo treats it as it treats
    /// what [checks](Workspace::check_end) left.
    ///
    /// # Errors
    /// As [`Workspace::call_begin`].
    pub fn background_begin(
        &self,
        session: &SessionId,
        call: &CallId,
    ) -> Result<TreeSnapshot, WorkspaceError> {
        self.begin(session, Some(call), Place::Background)
    }

    /// The same for checks, up to [`Workspace::check_end`]: after a crash, [`Workspace::seal_checks`] journals what
    /// they did.
    ///
    /// # Errors
    /// As [`Workspace::call_begin`].
    pub fn check_begin(&self, session: &SessionId) -> Result<TreeSnapshot, WorkspaceError> {
        self.begin(session, None, Place::Foreground)
    }

    fn begin(
        &self,
        session: &SessionId,
        call: Option<&CallId>,
        place: Place,
    ) -> Result<TreeSnapshot, WorkspaceError> {
        let _using = self.vault.blobs().using()?;
        let mut snapshot = self.command_begin()?;
        let mut begin = {
            let writer = &mut *lock(&self.writer);
            self.notice_removals(writer);
            let base = &mut writer.base;
            let means = (&self.vault, self.limits().beat);
            Begin::new((session, call), &snapshot.tree, snapshot.journal_end, base, means)?
        };
        begin.background = place == Place::Background;
        let live = call.map(|call| Live {
            session: session.clone(),
            call: call.clone(),
            tree: Arc::clone(&snapshot.tree),
            journal_end: snapshot.journal_end,
        });
        let beat = Arc::new(Beat::start(&self.options.state_dir, &begin, live)?);
        self.runs(&beat);
        snapshot.beat = Some(beat);
        Ok(snapshot)
    }

    /// Looks at the tree after a command, journals what differs as one change, and gives it, sorted.
    ///
    /// Files are compared by signature and then by content; a new modification time alone is no change. Mode
    /// changes count. Directories come and go with the change but aren't reported. What other processes journaled
    /// meanwhile isn't taken for the command's doing; what a person changed by hand in that time is.
    /// A command that changes ignore rules neither adds nor deletes the files that they concern. A directory that
    /// it made unreadable gets its permissions back, and one that it tagged as a cache is looked into all the same.
    ///
    /// # Errors
    /// As [`Workspace::checkpoint`]; [`WorkspaceError::MadeUnreadable`] where permissions can't be given back.
    pub fn command_end(
        &self,
        before: TreeSnapshot,
        session: &SessionId,
        call: Option<&CallId>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        let using = self.vault.blobs().using()?;
        let after = self.snapshot_after(&before.tree, true)?;
        let since = Since::End(before.journal_end);
        let background = before.beat.as_ref().is_some_and(|beat| beat.background);
        let cause = if background { Cause::Background } else { Cause::Command };
        let doing = Doing { session, call, cause };
        let changes = self.journal_difference(&before.tree, &after, since, doing)?;
        before.beat.iter().for_each(|beat| beat.bury());
        drop(using);
        self.keep_to_quota()?;
        Ok(changes)
    }

    /// As [`Workspace::command_end`], for checks: commands during which a person may well be working. What differs
    /// is journaled as found while checks ran, and an undo of the session takes it back only where an edit or a
    /// command of the session changed the same file, or where the file was new. All else is kept and reported.
    ///
    /// # Errors
    /// As [`Workspace::command_end`].
    // By value, as for a command: a snapshot is good for one comparison.
    #[allow(clippy::needless_pass_by_value)]
    pub fn check_end(
        &self,
        before: TreeSnapshot,
        session: &SessionId,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        let using = self.vault.blobs().using()?;
        let after = self.snapshot_after(&before.tree, true)?;
        let since = Since::End(before.journal_end);
        let doing = Doing { session, call: None, cause: Cause::Check };
        let changes = self.journal_difference(&before.tree, &after, since, doing)?;
        before.beat.iter().for_each(|beat| beat.bury());
        drop(using);
        self.keep_to_quota()?;
        Ok(changes)
    }

    /// Journals everything that differs from a checkpoint, and isn't journaled yet, as one change of the session:
    /// what a command did that a crash cut off, so that an undo takes it back.
    ///
    /// # Errors
    /// As [`Workspace::changes_since`] and [`Workspace::command_end`].
    pub fn journal_since(
        &self,
        checkpoint: &CheckpointId,
        session: &SessionId,
        call: Option<&CallId>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        let _using = self.vault.blobs().using()?;
        let before = self.checkpoint_tree(checkpoint)?;
        let after = self.snapshot_after(&before, false)?;
        let since = Since::Checkpoint(*checkpoint);
        self.journal_difference(&before, &after, since, Doing { session, call, cause: Cause::Command })
    }

    /// Looks at the tree again, and into directories that can't be read any more. `made` says that `before` knows
    /// which ones couldn't be read then, so that others are new and may be opened too.
    pub(crate) fn snapshot_after(&self, before: &Tree, made: bool) -> Result<Arc<Tree>, WorkspaceError> {
        for _ in 0..MAX_DEPTH {
            let after = self.snapshot(Keep::Contents, Some(before))?;
            let was_hidden = |path: &[u8]| {
                before.unreadable.iter().any(|dir| path == dir.as_slice() || is_below(path, dir))
            };
            let hidden: Vec<&Vec<u8>> = after.unreadable.iter().filter(|dir| !was_hidden(dir)).collect();
            let mut opened = false;
            for dir in &hidden {
                opened |= self.reveal(before, dir, made);
            }
            if opened {
                continue;
            }
            let lost = hidden.into_iter().find(|dir| before.dirs.iter().any(|known| known.path == **dir));
            return match lost.and_then(|dir| RelPath::parse(dir).ok()) {
                Some(path) => Err(WorkspaceError::MadeUnreadable { path }),
                None => Ok(after),
            };
        }
        self.snapshot(Keep::Contents, Some(before))
    }

    /// Gives a directory, those above it and those once beneath it their earlier permissions where they keep
    /// their owner out; whether any got them.
    fn reveal(&self, before: &Tree, hidden: &[u8], made: bool) -> bool {
        let slashes = hidden.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let above = slashes.chain([hidden.len()]).filter_map(|cut| hidden.get(..cut)).map(|path| {
            let known = before.dirs.iter().find(|dir| dir.path == path);
            (path, known.map(|dir| dir.permissions))
        });
        let beneath = before.dirs.iter().filter(|dir| is_below(&dir.path, hidden));
        let beneath = beneath.map(|dir| (dir.path.as_slice(), Some(dir.permissions)));
        let mut opened = false;
        for (path, then) in above.chain(beneath) {
            let Ok(path) = RelPath::parse(path) else { continue };
            let Ok(Some(seen)) = self.door.look(&path) else { continue };
            let now = seen.permissions();
            let wanted = then.or(made.then_some(now | OWNER)).filter(|wanted| *wanted != now);
            if let Some(wanted) = wanted
                && seen.is_dir()
                && now & OWNER_LOOKS != OWNER_LOOKS
            {
                opened |= self.door.permit(&path, wanted).is_ok();
            }
        }
        opened
    }

    /// A journal to read from, without waiting for whoever writes.
    pub(crate) fn journal(&self) -> Journal {
        Journal::new(&self.options.state_dir, self.limits().journal_bytes)
    }

    /// The short-lived siblings of transactions that are open, or were when the journal ended at `end`. A name
    /// alone hides nothing: a command can give its files any.
    pub(crate) fn open_siblings(&self, end: End) -> HashSet<Vec<u8>> {
        // What can't be read hides nothing.
        self.journal().siblings_open_since(end).unwrap_or_default()
    }

    fn journal_difference(
        &self,
        before: &Tree,
        after: &Arc<Tree>,
        since: Since,
        doing: Doing<'_>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        if before.is_same(after) {
            return Ok(Vec::new());
        }
        let (made, removed) = (directories_only_in(after, before), directories_only_in(before, after));
        let found = filtered(self.inputs(), before, differences(before, after))?;
        if found.is_empty() && made.is_empty() && removed.is_empty() {
            return Ok(Vec::new());
        }
        self.vault.sync()?;
        self.writing(|writer, _| {
            let lines = match since {
                Since::End(end) => writer.journal.lines_since(end)?,
                Since::Checkpoint(checkpoint) => writer.journal.lines_after(checkpoint.0)?,
            };
            let found = without_others(found, lines);
            let made = dir_records(&self.door, &made, true);
            let removed = dir_records(&self.door, &removed, false);
            doing.journal(writer, found, made, removed)
        })
    }
}

impl Doing<'_> {
    /// Journals differences as one change that has happened; nothing where there are none.
    pub(crate) fn journal(
        self,
        writer: &mut Writer,
        found: Vec<Difference>,
        made: Vec<DirRecord>,
        removed: Vec<DirRecord>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        if found.is_empty() && made.is_empty() && removed.is_empty() {
            return Ok(Vec::new());
        }
        let id = ChangeId(writer.journal.next_id());
        let files = found.iter().map(|difference| FileRecord {
            path: difference.path.clone(),
            before: difference.before,
            after: difference.after,
            sibling: None,
        });
        let record = Record {
            id,
            session: self.session.clone(),
            call: self.call.cloned(),
            cause: self.cause,
            at: writer.journal.now(),
            files: files.collect(),
            made,
            removed,
            cleared: Vec::new(),
            undoes: Vec::new(),
            left: Vec::new(),
        };
        writer.journal.append(&[Line::Change(record), Line::Done(id)], Sync::Now)?;
        Ok(found.iter().map(Difference::file_change).collect())
    }
}

fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.first() == Some(&b'/'))
}
