//! What commands and checks did: the tree before and after, and the difference in the journal.

use crate::commands::doing::Doing;
use crate::snapshot::differences::Found;
use std::collections::HashSet;
use std::sync::Arc;

use journeyman_protocol::{CallId, FileChange, RelPath, SessionId};

use crate::change::CheckpointId;
use crate::commands::heartbeat::Live;
use crate::commands::heartbeat::{Beat, Begin, Span};
use crate::commands::tree_snapshot::Since;
use crate::commands::tree_snapshot::TreeSnapshot;
use crate::error::WorkspaceError;
use crate::failpoint::Step;
use crate::files::stat::{TICK, file_clock, is_settled};
use crate::ignored::Ignored;
use crate::journal::record::Cause;
use crate::journal::{End, Journal};
use crate::limits::MAX_DEPTH;
use crate::mutex::lock;
use crate::snapshot::capture::Keep;
use crate::snapshot::compare::{Others, dir_records, filtered, mode_records};
use crate::snapshot::differences::{differences, directories_only_in};
use crate::snapshot::entry::{Content, Entry};
use crate::snapshot::tree::Tree;
use crate::workspace::Workspace;

/// From so many files read on, the stat cache is saved before a command: reading them again would
/// cost more.
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

/// What is looked at beside the files that checkpoints cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Besides {
    /// Small ignored files.
    Ignored,
    Nothing,
}

impl Workspace {
    /// Looks at the tree before a command runs. What the command may change is kept, so that it can
    /// be undone; [`TreeSnapshot::not_undoable`] names the exceptions.
    ///
    /// # Errors
    /// As [`Workspace::checkpoint`]. It waits for another process only while that one changes the
    /// tree.
    pub fn command_begin(&self) -> Result<TreeSnapshot, WorkspaceError> {
        self.look_before(Besides::Ignored)
    }

    fn look_before(&self, besides: Besides) -> Result<TreeSnapshot, WorkspaceError> {
        let _using = self.vault.blobs().using()?;
        let (tree, journal_end) = self.look(|| self.snapshot(Keep::Contents, None))?;
        // Of these the signature is all that tells a change, so that the next one has to get a
        // later time.
        let now = file_clock();
        let is_fresh = |entry: &Entry| entry.content == Content::Unkept && !is_settled(&entry.seen, now);
        if tree.entries.iter().any(is_fresh) {
            std::thread::sleep(TICK);
        }
        self.gives(&tree);
        let (ignored, hard_links) = self.look_beside(&tree, besides == Besides::Ignored)?;
        self.save_cache(SAVE_FROM)?;
        Ok(TreeSnapshot { tree, beat: None, journal_end, ignored, hard_links: Arc::new(hard_links) })
    }

    /// The same for a command of this call, which gives a sign of life from here on until
    /// [`Workspace::command_end`]: where a crash comes first, [`Workspace::seal_call`] puts back
    /// what it did. So it does for a snapshot that is dropped.
    ///
    /// # Errors
    /// As [`Workspace::command_begin`], and failures of the state directory.
    pub fn call_begin(&self, session: &SessionId, call: &CallId) -> Result<TreeSnapshot, WorkspaceError> {
        self.begin(session, Some(call), Place::Foreground)
    }

    /// The same for a command that runs in the background, perhaps for hours in which a person
    /// works too. What differs at its [end](Workspace::command_end) is journaled for the call, and
    /// an undo treats it as it treats what [checks](Workspace::check_end) left.
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

    /// The same for checks, up to [`Workspace::check_end`]: after a crash,
    /// [`Workspace::seal_checks`] journals what they did.
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
        // Tests write to their own databases: what checks change there is nobody's to take back.
        let besides = if call.is_some() { Besides::Ignored } else { Besides::Nothing };
        let mut snapshot = self.look_before(besides)?;
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

    /// Looks at the tree after a command, journals what differs as one change, and gives it,
    /// sorted.
    ///
    /// Files are compared by signature and then by content; a new modification time alone is no
    /// change. Mode changes count, also of directories. Directories come and go with the change but
    /// aren't reported. So do small ignored files count that the command changed or deleted, but
    /// not those that it added. What other processes journaled meanwhile isn't taken for the
    /// command's doing; what a person changed by hand in that time is. What may as well be the
    /// doing of another session's command that ran at the same time is given too; an undo of either
    /// session leaves and names it. A command that changes ignore rules neither adds nor deletes
    /// the files that they concern. A directory that it made unreadable gets its permissions back,
    /// and one that it tagged as a cache is looked into all the same.
    ///
    /// # Errors
    /// As [`Workspace::checkpoint`]; [`WorkspaceError::MadeUnreadable`] where permissions can't be
    /// given back.
    pub fn command_end(
        &self,
        before: TreeSnapshot,
        session: &SessionId,
        call: Option<&CallId>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        let using = self.vault.blobs().using()?;
        let since = before.since();
        let background = before.beat.as_ref().is_some_and(|beat| beat.background);
        let cause = if background { Cause::Background } else { Cause::Command };
        let doing = Doing { session, call, cause };
        let changes = self.journal_difference((&before.tree, &before.ignored), since, doing)?;
        before.beat.iter().for_each(|beat| beat.bury());
        drop(using);
        self.keep_to_quota()?;
        Ok(changes)
    }

    /// As [`Workspace::command_end`], for checks: commands during which a person may well be
    /// working. What differs is journaled as found while checks ran, and an undo of the session
    /// takes it back only where an edit or a command of the session changed the same file, or where
    /// the file was new. All else is kept and reported.
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
        let since = before.since();
        let doing = Doing { session, call: None, cause: Cause::Check };
        let changes = self.journal_difference((&before.tree, &before.ignored), since, doing)?;
        before.beat.iter().for_each(|beat| beat.bury());
        drop(using);
        self.keep_to_quota()?;
        Ok(changes)
    }

    /// Journals everything that differs from a checkpoint, and isn't journaled yet, as one change
    /// of the session: what a command did that a crash cut off, so that an undo takes it back.
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
        let since = Since::Checkpoint(*checkpoint);
        let doing = Doing { session, call, cause: Cause::Command };
        self.journal_difference((&before, &Ignored::default()), since, doing)
    }

    /// Looks at the tree again, and into directories that can't be read any more. `made` says that
    /// `before` knows which ones couldn't be read then, so that others are new and may be opened
    /// too.
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

    /// Gives a directory, those above it and those once beneath it their earlier permissions where
    /// they keep their owner out; whether any got them.
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

    /// The short-lived siblings of transactions that are open, or were when the journal ended at
    /// `end`. A name alone hides nothing: a command can give its files any.
    pub(crate) fn open_siblings(&self, end: End) -> HashSet<Vec<u8>> {
        // What can't be read hides nothing.
        self.journal().siblings_open_since(end).unwrap_or_default()
    }

    /// Journals what differs from `before` and nobody has journaled yet.
    fn journal_difference(
        &self,
        (before, ignored): (&Tree, &Ignored),
        since: Since,
        doing: Doing<'_>,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        let look = || self.snapshot_after(before, matches!(since, Since::Look(..)));
        let compared = |after: &Tree| -> Result<Found, WorkspaceError> {
            let mut found = self.compared(before, after)?;
            // One that isn't ignored any more is among the others.
            found.files.extend(self.ignored_differences(ignored));
            found.files.sort_by(|one, other| one.path.cmp(&other.path));
            found.files.dedup_by(|later, earlier| later.path == earlier.path);
            Ok(found)
        };
        let seen = self.mark_at_rest()?;
        let mut after = look()?;
        self.hands().step(Step::Look, None)?;
        let mut found = compared(&after)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        self.vault.sync()?;
        self.writing(|writer, _| {
            // Somebody changed the tree meanwhile: now nobody does.
            if seen != Some(writer.journal.mark()?) {
                after = look()?;
                found = compared(&after)?;
                self.vault.sync()?;
            }
            let lines = match since {
                Since::Look(mark, _) => writer.journal.lines_since_mark(mark)?,
                Since::Checkpoint(checkpoint) => writer.journal.lines_after(checkpoint.0)?,
            };
            let others = Others::of(lines);
            let found = Found {
                files: others.without(found.files),
                made: others.without_dirs(found.made, true),
                removed: others.without_dirs(found.removed, false),
                modes: others.without_modes(found.modes),
                beside: Vec::new(),
            };
            let began = match since {
                Since::Look(_, began) => began,
                Since::Checkpoint(_) => i64::MIN,
            };
            let (own, shared) = self.shared(found, &self.others_at_work(doing.session, began)?);
            let mut changes = others.beside(doing.session);
            for found in [own, shared] {
                changes.extend(doing.journal(writer, found)?);
            }
            changes.sort_by(|one, other| one.path.cmp(&other.path));
            changes.dedup_by(|one, other| one.path == other.path);
            Ok(changes)
        })
    }

    /// Returns what differs between two looks, the second of which was just taken.
    pub(crate) fn compared(&self, before: &Tree, after: &Tree) -> Result<Found, WorkspaceError> {
        if before.is_same(after) {
            return Ok(Found::default());
        }
        let (made, removed) = (directories_only_in(after, before), directories_only_in(before, after));
        let mut found = Found {
            files: filtered(self.inputs(), before, differences(before, after))?,
            made: dir_records(&self.door, &made, true),
            removed: dir_records(&self.door, &removed, false),
            modes: mode_records(before, after),
            beside: Vec::new(),
        };
        self.retain_own(&mut found);
        Ok(found)
    }

    /// Parts what a session's command did from what may as well be the doing of others, which ran
    /// then.
    fn shared(&self, found: Found, others: &[Span]) -> (Found, Found) {
        if others.is_empty() {
            return (found, Found::default());
        }
        let (mut own, mut shared) = (Found::default(), Found::default());
        let mut sessions = Vec::new();
        let mut side = |path: &RelPath, is_there: bool| {
            let mut beside = self.may_be_of(path, is_there, others);
            let is_shared = !beside.is_empty();
            sessions.append(&mut beside);
            is_shared
        };
        (shared.files, own.files) =
            found.files.into_iter().partition(|it| side(&it.path, it.after.is_some()));
        (shared.made, own.made) = found.made.into_iter().partition(|dir| side(&dir.path, true));
        (shared.modes, own.modes) = found.modes.into_iter().partition(|dir| side(&dir.path, true));
        (shared.removed, own.removed) = found.removed.into_iter().partition(|dir| side(&dir.path, false));
        sessions.sort();
        sessions.dedup();
        shared.beside = sessions;
        (own, shared)
    }
}

fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.first() == Some(&b'/'))
}
