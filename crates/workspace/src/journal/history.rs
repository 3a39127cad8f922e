//! The changes that happened, and which of them are in effect.
//!
//! A change is taken back by an undo, and an undo by a redo, or by a later undo that goes back
//! beyond it. So a change is in effect unless something that took it back is; the journal is walked
//! once, newest first, to tell. It may differ from file to file: what an undo had to leave, it
//! didn't take back.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use journeyman_protocol::{CallId, RelPath, SessionId, UnixMillis};

use crate::change::{ChangeId, CheckpointId, UndoTarget};
use crate::error::WorkspaceError;
use crate::journal::record::{ChangeCause, ChangeRecord, DroppedLines, JournalLine};
use crate::journal::undone::{undone_at, undone_in};
use crate::limits::MAX_DESCRIPTIONS;

/// Which changes were taken back, as far as one file is concerned.
type UndoneChanges = Rc<HashSet<ChangeId>>;

/// The changes of a part of the journal that are in effect.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangesInEffect {
    pub(crate) count: usize,
    /// The first descriptions among them.
    pub(crate) descriptions: Vec<String>,
}

/// The changes that happened, as far as the journal remembers.
pub(crate) struct History {
    done: Vec<ChangeRecord>,
    checkpoints: HashSet<CheckpointId>,
    dropped: Option<DroppedLines>,
    gaps: Vec<JournalGap>,
    /// The changes undone for every file that no undo or redo left out.
    undone: UndoneChanges,
    /// The files that one did leave; each is looked at when it is asked for.
    left: RefCell<HashMap<RelPath, Option<UndoneChanges>>>,
}

/// Damaged lines of the journal.
struct JournalGap {
    /// The newest number before them.
    through: u64,
    /// The number of changes before them.
    done: usize,
    /// The sessions that may have made what they recorded: whose lines are next to them, or on both
    /// sides.
    sessions: HashSet<SessionId>,
}

/// Finds the damaged lines, and who may have written them.
fn find_gaps(lines: &[JournalLine], finished: &HashSet<ChangeId>) -> Vec<JournalGap> {
    let writer = |line: &JournalLine| match line {
        JournalLine::Change(record) => Some(record.session.clone()),
        JournalLine::Checkpoint(record) => Some(record.session.clone()),
        _ => None,
    };
    let is_done =
        |line: &&JournalLine| matches!(line, JournalLine::Change(record) if finished.contains(&record.id));
    let places = lines.iter().enumerate().filter(|(_, line)| matches!(line, JournalLine::Damaged(_)));
    let gaps = places.map(|(at, line)| {
        let (before, after) = lines.split_at(at);
        // A run's first line is a checkpoint: what is lost before that isn't the run's.
        let next = after.iter().find(|line| writer(line).is_some());
        let next = next.filter(|line| matches!(line, JournalLine::Change(_))).and_then(writer);
        let previous = before.iter().rev().find_map(writer);
        let earlier: HashSet<SessionId> = before.iter().filter_map(writer).collect();
        let both = after.iter().filter_map(writer).filter(|session| earlier.contains(session));
        let sessions = both.chain(next).chain(previous).collect();
        JournalGap { through: line.id(), done: before.iter().filter(is_done).count(), sessions }
    });
    gaps.collect()
}

/// Returns the changes that happened: those that were closed, and those whose closing line is
/// damaged. A change of the latter that was rolled back left its files as they were before, which
/// an undo detects.
fn finished_changes(lines: &[JournalLine]) -> HashSet<ChangeId> {
    let (mut finished, mut void, mut open) = (HashSet::new(), HashSet::new(), None);
    for line in lines {
        match line {
            JournalLine::Done(id) | JournalLine::Placed(id) => {
                finished.insert(*id);
            }
            JournalLine::Void(id) => {
                void.insert(*id);
            }
            JournalLine::Change(record) => open = Some(record.id),
            JournalLine::Damaged(_) => finished.extend(open),
            JournalLine::Checkpoint(_) | JournalLine::Dropped(_) => open = None,
        }
    }
    finished.retain(|id| !void.contains(id));
    finished
}

/// Changes to take back, newest first.
pub(crate) struct SelectedChanges<'a> {
    pub(crate) records: Vec<&'a ChangeRecord>,
    /// The sessions whose changes they are, newest first.
    pub(crate) sessions: Vec<SessionId>,
    /// True if all that the journal has since some moment is walked back, undone or not.
    pub(crate) replay: bool,
    /// True if older changes of these sessions aren't in the journal any more.
    pub(crate) dropped: bool,
    /// True if lines that may have recorded changes of theirs are damaged.
    pub(crate) damaged: bool,
}

impl History {
    pub(crate) fn new(lines: Vec<JournalLine>) -> Self {
        let finished = finished_changes(&lines);
        let gaps = find_gaps(&lines, &finished);
        let (mut done, mut checkpoints, mut dropped) = (Vec::new(), HashSet::new(), None);
        for line in lines {
            match line {
                JournalLine::Change(record) if finished.contains(&record.id) => done.push(record),
                JournalLine::Checkpoint(record) => {
                    checkpoints.insert(record.id);
                }
                JournalLine::Dropped(found) => dropped = Some(found),
                _ => {}
            }
        }
        let undone = Rc::new(undone_in(done.iter()));
        let takers = done.iter().filter(|record| !record.undoes.is_empty());
        let left = takers.flat_map(|record| &record.left).map(|left| (left.path.clone(), None)).collect();
        Self { done, checkpoints, dropped, gaps, undone, left: RefCell::new(left) }
    }

    /// Returns the changes in effect in each part of the journal that one of these ids begins (they
    /// are ascending).
    pub(crate) fn changes_in_effect_after(&self, ids: &[CheckpointId]) -> Vec<ChangesInEffect> {
        let mut counts = vec![ChangesInEffect::default(); ids.len()];
        for record in self.done.iter().filter(|record| self.is_undoable(record)) {
            let stretch = ids.partition_point(|id| id.0 < record.id.0);
            if let Some(count) = stretch.checked_sub(1).and_then(|place| counts.get_mut(place)) {
                count.count += 1;
                if count.descriptions.len() < MAX_DESCRIPTIONS {
                    count.descriptions.extend(record.description.clone());
                }
            }
        }
        counts
    }

    /// Returns the changes, oldest first.
    pub(crate) fn into_changes(self) -> Vec<ChangeRecord> {
        self.done
    }

    fn undone_at(&self, path: &RelPath) -> UndoneChanges {
        match self.left.borrow_mut().get_mut(path) {
            None => self.undone.clone(),
            Some(known) => {
                known.get_or_insert_with(|| Rc::new(undone_at(self.done.iter(), Some(path)))).clone()
            }
        }
    }

    /// Returns true if the change's effect on `path` (on directories, without one) was taken back
    /// already.
    pub(crate) fn is_undone(&self, id: ChangeId, path: Option<&RelPath>) -> bool {
        match path {
            Some(path) => self.undone_at(path).contains(&id),
            None => self.undone.contains(&id),
        }
    }

    /// Returns true if something of the change is in effect.
    pub(crate) fn is_in_effect(&self, record: &ChangeRecord) -> bool {
        if record.files.is_empty() {
            !self.is_undone(record.id, None)
        } else {
            record.files.iter().any(|file| !self.is_undone(record.id, Some(&file.path)))
        }
    }

    /// Returns true if something of the change is there to be taken back by itself.
    pub(crate) fn is_undoable(&self, record: &ChangeRecord) -> bool {
        !record.cause.is_undo_or_redo() && self.is_in_effect(record)
    }

    /// Returns the newest landing that settled the session's copy, and true if it is in effect.
    pub(crate) fn landing_of(&self, session: &SessionId) -> Option<(ChangeId, bool)> {
        let mut landings =
            self.done.iter().rev().filter(|record| record.settles_copy && record.session == *session);
        landings.next().map(|record| (record.id, self.is_in_effect(record)))
    }

    /// Returns the changes of one call, oldest first.
    pub(crate) fn changes_of_call<'a>(
        &'a self,
        session: &'a SessionId,
        call: &'a CallId,
    ) -> impl Iterator<Item = &'a ChangeRecord> + 'a {
        self.done
            .iter()
            .filter(move |record| record.session == *session && record.call.as_ref() == Some(call))
    }

    /// Returns true if others journaled changes since `then` that commands of the session may have
    /// made.
    pub(crate) fn has_changes_beside(&self, session: &SessionId, then: UnixMillis) -> bool {
        let newest_first = self.done.iter().rev();
        let mut since = newest_first.take_while(|record| record.at.is_none_or(|at| at >= then));
        since.any(|record| record.beside.contains(session))
    }

    /// Returns true if changes of this session, or of any, were dropped from the journal.
    fn has_dropped(&self, session: Option<&SessionId>) -> bool {
        self.dropped.as_ref().is_some_and(|dropped| match session {
            Some(session) => dropped.sessions.contains(session),
            None => !dropped.sessions.is_empty(),
        })
    }

    /// Returns true if damaged lines may have recorded changes of this session.
    fn is_damaged(&self, session: &SessionId) -> bool {
        self.gaps.iter().any(|gap| gap.sessions.contains(session))
    }

    /// Selects the changes to take back.
    pub(crate) fn select_changes(&self, target: &UndoTarget) -> Result<SelectedChanges<'_>, WorkspaceError> {
        let asked = match target {
            UndoTarget::To(checkpoint) => return self.select_since(*checkpoint),
            UndoTarget::LastRun => None,
            UndoTarget::Session(session) => Some(session),
        };
        let damaged = asked.map_or(!self.gaps.is_empty(), |session| self.is_damaged(session));
        let nothing = || match (self.has_dropped(asked), damaged) {
            (true, _) => WorkspaceError::HistoryDropped { session: asked.cloned() },
            (_, true) => WorkspaceError::HistoryDamaged { session: asked.cloned() },
            _ => WorkspaceError::NothingToUndo { session: asked.cloned() },
        };
        let undoable = || self.done.iter().enumerate().rev().filter(|(_, record)| self.is_undoable(record));
        let session = match asked {
            Some(session) => session.clone(),
            None => {
                let (at, newest) = undoable().next().ok_or_else(nothing)?;
                let is_alone =
                    |gap: &JournalGap| gap.sessions.iter().all(|session| *session == newest.session);
                // What a newer run changed may have been recorded there.
                if self.gaps.iter().any(|gap| gap.done > at && !is_alone(gap)) {
                    return Err(WorkspaceError::HistoryDamaged { session: None });
                }
                newest.session.clone()
            }
        };
        let undoable = || undoable().map(|(_, record)| record);
        let is_of = |record: &&ChangeRecord| record.session == session || record.beside.contains(&session);
        let records: Vec<&ChangeRecord> = undoable().filter(is_of).collect();
        if records.is_empty() {
            return Err(nothing());
        }
        let (dropped, damaged) = (self.has_dropped(Some(&session)), self.is_damaged(&session));
        Ok(SelectedChanges { records, sessions: vec![session], replay: false, dropped, damaged })
    }

    /// Selects everything that was journaled since a checkpoint.
    fn select_since(&self, checkpoint: CheckpointId) -> Result<SelectedChanges<'_>, WorkspaceError> {
        if !self.checkpoints.contains(&checkpoint) {
            return Err(WorkspaceError::UnknownCheckpoint { id: checkpoint });
        }
        if self.dropped.as_ref().is_some_and(|dropped| dropped.through > checkpoint.0) {
            return Err(WorkspaceError::SinceDropped { checkpoint });
        }
        let since = || self.done.iter().rev().take_while(|record| record.id.0 > checkpoint.0);
        // An undo of what was before the checkpoint is a change like any other; one of what came
        // after it comes to nothing together with what it took back.
        let counts = |record: &&ChangeRecord| {
            let beyond =
                !record.cause.is_undo_or_redo() || record.undoes.iter().any(|id| id.0 < checkpoint.0);
            beyond && self.is_in_effect(record)
        };
        let mut sessions = Vec::new();
        for record in since().filter(counts) {
            if !sessions.contains(&record.session) {
                sessions.push(record.session.clone());
            }
        }
        let damaged = self.gaps.iter().any(|gap| gap.through >= checkpoint.0);
        if sessions.is_empty() && damaged {
            return Err(WorkspaceError::HistoryDamaged { session: None });
        }
        if sessions.is_empty() {
            return Err(WorkspaceError::NothingSince { checkpoint });
        }
        Ok(SelectedChanges { records: since().collect(), sessions, replay: true, dropped: false, damaged })
    }

    /// Returns the undos that can be taken back, newest first: those of a session's changes;
    /// without a session, those since the newest change that wasn't one, then what was taken back
    /// of calls that were cut off. Nobody asked for that, so what came later doesn't close it.
    pub(crate) fn redoable_undos<'a>(
        &'a self,
        session: Option<&'a SessionId>,
    ) -> Box<dyn Iterator<Item = &'a ChangeRecord> + 'a> {
        let newest_first = || self.done.iter().rev();
        let asked =
            newest_first().take_while(|record| record.cause.is_undo_or_redo() && record.call.is_none());
        let unasked = newest_first().filter(|record| record.call.is_some());
        let is_redoable =
            |record: &&ChangeRecord| record.cause == ChangeCause::Undo && self.is_in_effect(record);
        match session {
            None => Box::new(asked.chain(unasked).filter(is_redoable)),
            Some(session) => {
                Box::new(newest_first().filter(is_redoable).filter(move |undo| {
                    self.changes_undone_by(undo).any(|record| record.session == *session)
                }))
            }
        }
    }

    /// Returns the changes that an undo took back and that are no undos themselves, newest first.
    fn changes_undone_by(&self, undo: &ChangeRecord) -> impl Iterator<Item = &ChangeRecord> {
        let taken: HashSet<ChangeId> = undo.undoes.iter().copied().collect();
        let records = self.done.iter().rev();
        records.filter(move |record| taken.contains(&record.id) && !record.cause.is_undo_or_redo())
    }

    /// Returns the sessions whose changes an undo took back, newest first.
    pub(crate) fn sessions_undone_by(&self, undo: &ChangeRecord) -> Vec<SessionId> {
        let mut sessions = Vec::new();
        for record in self.changes_undone_by(undo) {
            if !sessions.contains(&record.session) {
                sessions.push(record.session.clone());
            }
        }
        if sessions.is_empty() { vec![undo.session.clone()] } else { sessions }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use journeyman_protocol::ContentHash;
    use journeyman_store::Blobs;

    use super::*;
    use crate::journal::record::{CheckpointRecord, FileRecord, LeftFile};
    use crate::journal::{Journal, LineDurability};
    use crate::options::Options;
    use crate::snapshot::entry::{FileKind, FileState};
    use crate::workspace::Workspace;

    fn session(number: u64) -> SessionId {
        SessionId::new(UnixMillis(1), number)
    }

    /// A file that an undo left from this change on.
    type Left<'a> = (&'a str, u64);

    fn record(
        id: u64,
        cause: ChangeCause,
        files: &[&str],
        undoes: &[u64],
        left: &[Left<'_>],
    ) -> ChangeRecord {
        let parsed =
            |paths: &[&str]| paths.iter().map(|path| RelPath::parse(path).unwrap()).collect::<Vec<_>>();
        let file = |path| FileRecord { path, before: None, after: None, sibling: None };
        ChangeRecord {
            id: ChangeId(id),
            session: session(1),
            call: None,
            cause,
            at: None,
            description: None,
            files: parsed(files).into_iter().map(file).collect(),
            made: Vec::new(),
            removed: Vec::new(),
            cleared: Vec::new(),
            modes: Vec::new(),
            undoes: undoes.iter().map(|id| ChangeId(*id)).collect(),
            left: left
                .iter()
                .map(|(path, newest)| LeftFile {
                    path: RelPath::parse(*path).unwrap(),
                    newest: ChangeId(*newest),
                })
                .collect(),
            beside: Vec::new(),
            settles_copy: false,
        }
    }

    fn history(records: Vec<ChangeRecord>) -> History {
        let lines = records.into_iter().flat_map(|record| {
            let id = record.id;
            [JournalLine::Change(record), JournalLine::Done(id)]
        });
        History::new(lines.collect())
    }

    /// A change, and whether it is undone at `a`, at `b`, and where nothing was left.
    type Undone = (u64, [bool; 3]);

    #[test]
    fn what_is_in_effect_after_undo_and_redo_of_undo() {
        let edit = |id| record(id, ChangeCause::Edit, &["a", "b"], &[], &[]);
        let undo =
            |id, undoes: &[u64], left: &[Left<'_>]| record(id, ChangeCause::Undo, &["a"], undoes, left);
        let redo =
            |id, undoes: &[u64], left: &[Left<'_>]| record(id, ChangeCause::Redo, &["a"], undoes, left);
        // The journal, then for each id whether it is undone at a, at b, and where nothing was
        // left.
        let table: Vec<(Vec<ChangeRecord>, Vec<Undone>)> = vec![
            (vec![edit(1)], vec![(1, [false; 3])]),
            (vec![edit(1), undo(2, &[1], &[])], vec![(1, [true; 3]), (2, [false; 3])]),
            (vec![edit(1), undo(2, &[1], &[("b", 1)])], vec![(1, [true, false, true])]),
            (vec![edit(1), undo(2, &[1], &[]), redo(3, &[2], &[])], vec![(1, [false; 3]), (2, [true; 3])]),
            (vec![edit(1), undo(2, &[1], &[]), redo(3, &[2], &[("a", 2)])], vec![(1, [true, false, false])]),
            (
                vec![edit(1), undo(2, &[1], &[]), redo(3, &[2], &[]), undo(4, &[1], &[])],
                vec![(1, [true; 3]), (2, [true; 3]), (4, [false; 3])],
            ),
            // A file restored in part: the newer change is taken back, the older one isn't.
            (
                vec![edit(1), edit(2), undo(3, &[1, 2], &[("a", 1)])],
                vec![(1, [false, true, true]), (2, [true; 3])],
            ),
            // Back beyond an undo: what it took back is in effect again.
            (
                vec![edit(1), edit(2), undo(3, &[1, 2], &[]), undo(4, &[2, 3], &[])],
                vec![(1, [false; 3]), (2, [true; 3]), (3, [true; 3])],
            ),
            (
                vec![edit(1), edit(2), undo(3, &[1, 2], &[]), undo(4, &[2, 3], &[]), redo(5, &[4], &[])],
                vec![(1, [true; 3]), (2, [true; 3]), (3, [false; 3]), (4, [true; 3])],
            ),
            // A journal that nobody wrote: what takes itself or what comes later back does nothing.
            (vec![undo(1, &[1, 2], &[]), undo(2, &[2, 3], &[])], vec![(1, [false; 3]), (2, [false; 3])]),
        ];
        for (records, expected) in table {
            let shown = format!("{records:?}");
            let history = history(records);
            let [a, b] = ["a", "b"].map(|path| RelPath::parse(path).unwrap());
            for (id, undone) in expected {
                let found = [Some(&a), Some(&b), None].map(|path| history.is_undone(ChangeId(id), path));
                assert_eq!(found, undone, "change {id} in {shown}");
            }
        }
    }

    /// A journal of about 32 MiB: what reading it, and undoing from it, takes. `cargo test
    /// --release -p journeyman-workspace large_journal -- --ignored --nocapture` prints it for
    /// several lengths: it has to grow with the length, not with its square.
    #[test]
    #[ignore = "it measures"]
    fn a_large_journal_is_walked_once() {
        for count in [15_000_u64, 30_000, 60_000] {
            let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let (root, state) = (dir.path().join("tree"), dir.path().join("state"));
            std::fs::create_dir(&root).unwrap();
            let blobs = Arc::new(Blobs::open(&dir.path().join("blobs"), 1 << 30).unwrap());
            let kept: Vec<ContentHash> = (0..2_000_u64)
                .map(|n| {
                    blobs.put_with_durability(&n.to_le_bytes(), journeyman_store::Durability::Later).unwrap()
                })
                .collect();
            let state_of = |n: u64| {
                let hash = kept.get(usize::try_from(n % 2_000).unwrap()).copied();
                Some(FileState { kind: FileKind::File, mode: 0o644, size: 8, hash })
            };
            let mut journal = Journal::new(&state, u64::MAX);
            journal.catch_up().unwrap();
            let tree = kept[0];
            let label = "before the run".to_owned();
            let first = CheckpointRecord { id: CheckpointId(1), session: session(0), label, at: None, tree };
            let mut lines = vec![JournalLine::Checkpoint(first)];
            for n in 0..count {
                // A hundred files a thousand times over, by a session each hundred changes.
                let mut record = record(n + 2, ChangeCause::Edit, &[], &[], &[]);
                record.session = session(n / 100);
                let path = RelPath::parse(format!("src/some/directory/file-{:03}.rs", n % 100)).unwrap();
                let round = n / 100;
                let before = if round == 0 { None } else { state_of(round - 1) };
                record.files = vec![FileRecord { path, before, after: state_of(round), sibling: None }];
                let id = record.id;
                lines.extend([JournalLine::Change(record), JournalLine::Done(id)]);
            }
            journal.append(&lines, LineDurability::Later).unwrap();
            let bytes = std::fs::metadata(state.join("journal/log")).unwrap().len();
            let last = (count - 1) / 100;
            std::fs::create_dir_all(root.join("src/some/directory")).unwrap();
            for n in 0..100 {
                let path = root.join(format!("src/some/directory/file-{n:03}.rs"));
                std::fs::write(path, (last % 2_000).to_le_bytes()).unwrap();
            }
            let mut options = Options::new(state.clone(), blobs);
            options.limits.journal_bytes = u64::MAX;
            let workspace = Workspace::open(&root, options).unwrap();
            let timed = |what: &str, work: &dyn Fn() -> usize| {
                let begin = Instant::now();
                let done = work();
                println!("{count} changes, {bytes} bytes: {what} ({done}): {:?}", begin.elapsed());
            };
            timed("read", &|| Journal::new(&state, u64::MAX).lines().unwrap().len());
            timed("undo of the last run", &|| workspace.undo(UndoTarget::LastRun).unwrap().restored.len());
            timed("redo", &|| workspace.redo(None).unwrap().restored.len());
            timed("undo to the first checkpoint", &|| {
                workspace.undo(UndoTarget::To(CheckpointId(1))).unwrap().restored.len()
            });
            timed("redo", &|| workspace.redo(None).unwrap().restored.len());
            timed("checkpoints", &|| workspace.checkpoints().unwrap().len());
        }
    }
}
