//! Taking a session's changes back.
//!
//! The changes are walked newest first. A file goes back through them as long as it is what each of them left;
//! where it isn't, somebody changed it since, and it stays as it is from there on: a conflict. What differed only
//! after checks may be a person's work and stays too, unless it was new. The result is one
//! more transaction, journaled like any other, so that it is all or nothing and can itself be taken back.

use std::collections::{BTreeMap, HashSet};

use journeyman_protocol::{CallId, FileChange, RelPath, SessionId};
use rustix::io::Errno;

use crate::door::{Door, Seen};
use crate::journal::{Cause, DirRecord, FileRecord, Line, Record};
use crate::snapshot::{FileState, Kind, kind_of, observe};
use crate::transaction::{After, Intent, Operation, Source, is_beneath};
use crate::vault::Vault;
use crate::{ChangeId, NotAFile, UndoTarget, WorkspaceError};

/// What an undo will do.
pub(crate) struct UndoPlan {
    pub(crate) intent: Intent,
    pub(crate) operations: Vec<Operation>,
    pub(crate) conflicts: Vec<(RelPath, String)>,
}

impl UndoPlan {
    /// What it does to files.
    pub(crate) fn restored(&self) -> Vec<FileChange> {
        let restored = self.operations.iter().map(|operation| FileChange {
            path: operation.path.clone(),
            kind: kind_of(operation.before.is_some(), operation.after.is_some()),
        });
        restored.collect()
    }
}

/// The changes that happened, as far as the journal remembers.
pub(crate) struct History {
    done: Vec<Record>,
}

impl History {
    pub(crate) fn new(lines: Vec<Line>) -> Self {
        let finished: HashSet<ChangeId> = lines
            .iter()
            .filter_map(|line| match line {
                Line::Done(id) | Line::Placed(id) => Some(*id),
                _ => None,
            })
            .collect();
        let done = lines.into_iter().filter_map(|line| match line {
            Line::Change(record) if finished.contains(&record.id) => Some(record),
            _ => None,
        });
        Self { done: done.collect() }
    }

    /// The changes, oldest first.
    pub(crate) fn into_done(self) -> Vec<Record> {
        self.done
    }

    /// Whether the change's effect on `path` (on directories, without one) was taken back already.
    fn is_undone(&self, id: ChangeId, path: Option<&RelPath>) -> bool {
        self.done
            .iter()
            .any(|record| record.undoes.contains(&id) && path.is_none_or(|path| !record.left.contains(path)))
    }

    /// The changes of one call, oldest first.
    pub(crate) fn of_call<'a>(
        &'a self,
        session: &'a SessionId,
        call: &'a CallId,
    ) -> impl Iterator<Item = &'a Record> + 'a {
        self.done
            .iter()
            .filter(move |record| record.session == *session && record.call.as_ref() == Some(call))
    }

    /// Whether something of the change is there to be taken back.
    pub(crate) fn is_undoable(&self, record: &Record) -> bool {
        record.cause != Cause::Undo
            && if record.files.is_empty() {
                !self.is_undone(record.id, None)
            } else {
                record.files.iter().any(|file| !self.is_undone(record.id, Some(&file.path)))
            }
    }

    /// The changes to take back, newest first.
    fn select(&self, target: &UndoTarget) -> Result<(SessionId, Vec<&Record>), WorkspaceError> {
        let undoable = || self.done.iter().rev().filter(|record| self.is_undoable(record));
        let session = match target {
            UndoTarget::LastRun | UndoTarget::To(_) => undoable().next().map(|record| record.session.clone()),
            UndoTarget::Session(session) => Some(session.clone()),
        };
        let asked = match target {
            UndoTarget::LastRun | UndoTarget::To(_) => None,
            UndoTarget::Session(session) => Some(session.clone()),
        };
        let nothing = || WorkspaceError::NothingToUndo { session: asked.clone() };
        let session = session.ok_or_else(nothing)?;
        let records: Vec<&Record> = undoable().filter(|record| record.session == session).collect();
        if records.is_empty() { Err(nothing()) } else { Ok((session, records)) }
    }
}

/// Where a file goes, and why no further.
struct Way {
    current: Option<(FileState, Seen)>,
    target: Option<FileState>,
    conflict: Option<String>,
}

/// What a session's changes did to one file, newest first.
#[derive(Default)]
struct Steps<'a> {
    files: Vec<&'a FileRecord>,
    /// Whether an edit or a command is among them.
    of_session: bool,
    /// Whether checks are.
    after_checks: bool,
}

impl Steps<'_> {
    /// Whether the file is the session's: what only differed after checks may be a person's work, unless it
    /// came into being in one.
    fn are_ours(&self) -> bool {
        self.of_session || self.files.last().is_some_and(|oldest| oldest.before.is_none())
    }
}

/// Plans an undo; nothing is written.
pub(crate) fn plan(
    door: &Door,
    vault: &Vault,
    history: &History,
    target: &UndoTarget,
) -> Result<UndoPlan, WorkspaceError> {
    let (session, records) = history.select(target)?;
    plan_for(door, vault, history, session, &records)
}

/// Plans to take back these changes of a session, newest first.
pub(crate) fn plan_for(
    door: &Door,
    vault: &Vault,
    history: &History,
    session: SessionId,
    records: &[&Record],
) -> Result<UndoPlan, WorkspaceError> {
    let mut files: BTreeMap<&RelPath, Steps<'_>> = BTreeMap::new();
    for record in records {
        for file in record.files.iter().filter(|file| !history.is_undone(record.id, Some(&file.path))) {
            let steps = files.entry(&file.path).or_default();
            steps.files.push(file);
            steps.of_session |= !record.cause.is_doubtful();
            steps.after_checks |= record.cause == Cause::Check;
        }
    }
    let (files, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, steps)| steps.are_ours());
    let mut operations = Vec::new();
    let mut conflicts = BTreeMap::new();
    let mut obstructed = Vec::new();
    for (path, steps) in files {
        let mut way = way_back(door, path, &steps.files)?;
        if way.current.is_none()
            && let Some((at, seen)) = obstacle(door, path)?
        {
            obstructed.push((path, at, seen.is_link()));
        }
        match operation(vault, path, &way)? {
            Some(Ok(operation)) => operations.push(operation),
            Some(Err(reason)) => way.conflict = Some(reason),
            None => {}
        }
        if let Some(reason) = way.conflict {
            conflicts.insert(path.clone(), reason);
        }
    }
    let removed = removed_by(&operations);
    let mut blocked = HashSet::new();
    for (path, _, is_link) in obstructed.into_iter().filter(|(_, at, _)| !removed.contains(at)) {
        if is_link {
            conflicts.insert(path.clone(), "a link stands in its way; kept".to_owned());
        } else if operations.iter().any(|operation| operation.path == *path) {
            conflicts.insert(path.clone(), "a file stands in its way; kept".to_owned());
        }
        blocked.insert(path);
    }
    operations.retain(|operation| !blocked.contains(&operation.path));
    let (make, remove) = directories(door, records, &operations)?;
    let intent = Intent {
        session,
        call: None,
        cause: Cause::Undo,
        undoes: records.iter().map(|record| record.id).collect(),
        left: conflicts.keys().cloned().collect(),
        make,
        remove,
    };
    // These aren't left for another try: they never were the session's to take back.
    conflicts.extend(others.into_iter().map(|(path, steps)| {
        let what = if steps.after_checks { "checks" } else { "a command in the background" };
        (path.clone(), format!("changed while {what} ran; kept"))
    }));
    Ok(UndoPlan { intent, operations, conflicts: conflicts.into_iter().collect() })
}

/// What stands above the file and isn't a directory.
fn obstacle(door: &Door, path: &RelPath) -> Result<Option<(RelPath, Seen)>, WorkspaceError> {
    match door.obstacle(path) {
        // Behind a directory that can't be entered nothing can be done, and nothing is known.
        Err(Errno::ACCESS) => Ok(None),
        other => other.map_err(|errno| door.fail("look at", path, errno)),
    }
}

fn removed_by(operations: &[Operation]) -> HashSet<RelPath> {
    let gone = operations.iter().filter(|operation| operation.after.is_none());
    gone.map(|operation| operation.path.clone()).collect()
}

fn way_back(door: &Door, path: &RelPath, steps: &[&FileRecord]) -> Result<Way, WorkspaceError> {
    let current = match observe(door, path) {
        Ok(current) => current,
        // No file, whatever else: the engine sees whether the directory can make room.
        Err(WorkspaceError::NotAFile { kind: NotAFile::Directory, .. } | WorkspaceError::NotFound { .. }) => {
            None
        }
        Err(WorkspaceError::NotAFile { kind, .. }) => {
            let conflict = Some(format!("it is {kind} now; kept as it is"));
            return Ok(Way { current: None, target: None, conflict });
        }
        Err(WorkspaceError::Denied { .. }) => {
            let conflict = Some("it can't be read; kept as it is".to_owned());
            return Ok(Way { current: None, target: None, conflict });
        }
        Err(other) => return Err(other),
    };
    let mut at = current.map(|(state, _)| state);
    let mut conflict = None;
    for step in steps {
        if is_left_by(at.as_ref(), step) {
            at = step.before.map(|before| match (at, step.after) {
                // The change left the mode alone, so that the mode it has now is the user's.
                (Some(now), Some(after)) if after.mode == before.mode => {
                    FileState { mode: now.mode, ..before }
                }
                _ => before,
            });
        } else if !is_same(at.as_ref(), step.before.as_ref()) {
            conflict = Some("it was changed after the run; kept as it is".to_owned());
            break;
        }
    }
    Ok(Way { current, target: at, conflict })
}

/// Whether the file is as this change left it.
fn is_left_by(now: Option<&FileState>, step: &FileRecord) -> bool {
    match (now, &step.before, &step.after) {
        (None, _, None) => true,
        (Some(now), Some(before), Some(after)) if after.mode != before.mode && now.kind == Kind::File => {
            now.same_content(after) && now.mode == after.mode
        }
        (Some(now), _, Some(after)) => now.same_content(after),
        _ => false,
    }
}

fn is_same(now: Option<&FileState>, then: Option<&FileState>) -> bool {
    match (now, then) {
        (None, None) => true,
        (Some(now), Some(then)) => now.same_content(then),
        _ => false,
    }
}

/// What has to happen to the file; a reason when its earlier content isn't there to be restored.
fn operation(
    vault: &Vault,
    path: &RelPath,
    way: &Way,
) -> Result<Option<Result<Operation, String>>, WorkspaceError> {
    let operation = |after| Some(Ok(Operation { path: path.clone(), before: way.current, after }));
    let after = |state: FileState, source| After {
        state,
        source,
        mode: Some(state.mode),
        executable: false,
        like: None,
    };
    Ok(match (&way.current, way.target) {
        (None, None) => None,
        (Some(_), None) => operation(None),
        (Some((now, _)), Some(target)) if now.same_content(&target) => {
            let differs = now.mode != target.mode && now.kind == Kind::File;
            if differs { operation(Some(after(target, Source::Unchanged))) } else { None }
        }
        (_, Some(target)) => match target.hash {
            Some(hash) if vault.contains(&hash)? => operation(Some(after(target, Source::Blob(hash)))),
            Some(_) => Some(Err("its earlier content isn't kept any more".to_owned())),
            None => Some(Err("it was too large for its earlier content to be kept".to_owned())),
        },
    })
}

/// Directories to make again, and those to remove if they are empty in the end.
fn directories(
    door: &Door,
    records: &[&Record],
    operations: &[Operation],
) -> Result<(Vec<DirRecord>, Vec<DirRecord>), WorkspaceError> {
    let mut make = BTreeMap::new();
    let mut remove = BTreeMap::new();
    // Newest first: what an older change says of a directory counts more.
    for record in records {
        let check = record.cause.is_doubtful();
        let empties = |dir: &DirRecord| {
            let mut gone = operations.iter().filter(|operation| operation.after.is_none());
            gone.any(|operation| is_beneath(&operation.path, &dir.path))
        };
        for dir in record.made.iter().filter(|dir| !check || empties(dir)) {
            make.remove(&dir.path);
            remove.insert(dir.path.clone(), dir.clone());
        }
        for dir in record.removed.iter().chain(&record.cleared).filter(|_| !check) {
            remove.remove(&dir.path);
            make.insert(dir.path.clone(), dir.clone());
        }
    }
    let cleared = removed_by(operations);
    let mut missing = Vec::new();
    for (path, dir) in make {
        let there = match door.look(&path) {
            Err(Errno::ACCESS) => continue,
            other => other.map_err(|errno| door.fail("look at", &path, errno))?,
        };
        let in_the_way = match there {
            Some(_) => Some(path.clone()),
            None => obstacle(door, &path)?.map(|(at, _)| at),
        };
        if in_the_way.is_none_or(|at| cleared.contains(&at)) {
            missing.push(dir);
        }
    }
    Ok((missing, remove.into_values().collect()))
}
