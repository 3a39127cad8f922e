//! Taking changes back: a session's, all since a checkpoint, or those of an undo.
//!
//! The changes are walked newest first. A file is restored through them as long as its content is
//! what each of them left. Where it isn't, the file was changed since and stays as it is: a
//! conflict. What differed only after checks may be a person's work and stays too, unless it was
//! new. The result is one more transaction, journaled like any other, so that it is all or nothing
//! and can itself be taken back: a redo is the undo of an undo.

use std::collections::{BTreeMap, HashSet};

use journeyman_protocol::{CallId, FileChange, RelPath, SessionId};
use rustix::io::Errno;

use crate::change::{ChangeId, UndoReport, UndoTarget};
use crate::contents::store::{BlobCondition, BlobStore};
use crate::error::{NotAFile, WorkspaceError};
use crate::files::paths::is_beneath;
use crate::files::root_dir::RootDir;
use crate::files::stat::FileStat;
use crate::journal::history::{History, SelectedChanges};
use crate::journal::record::{ChangeCause, ChangeRecord, DirModeRecord, DirRecord, FileRecord, LeftFile};
use crate::snapshot::compare::{CompareInputs, is_ignored_now};
use crate::snapshot::differences::change_kind;
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::transaction::operation::{ChangeIntent, FileAfter, NewContent, Operation};
use crate::workspace::Workspace;

const TOO_LARGE_REASON: &str = "it was too large for its earlier content to be kept";
const OTHERS_RAN_REASON: &str =
    "a command of another session ran when it was changed, so it can't be told whose change that is; kept";
const PARTLY_OTHERS_RAN_REASON: &str = "put back in part: a command of another session ran when it was changed before that, so it can't be \
                       told whose change that is";
const PARTLY_CHANGED_REASON: &str =
    "put back in part: it was changed between the run's changes, and is as it was then";
const IGNORED_CHANGED_REASON: &str = "it isn't as the run's last edit left it, and as it is ignored it can't be told whether a \
                       command of the run or somebody else changed it; kept as it is";

/// The plan of an undo.
pub(crate) struct UndoPlan {
    pub(crate) intent: ChangeIntent,
    pub(crate) operations: Vec<Operation>,
    pub(crate) conflicts: Vec<(RelPath, String)>,
}

impl UndoPlan {
    /// Returns the files that it changes.
    pub(crate) fn restored_files(&self) -> Vec<FileChange> {
        let restored = self.operations.iter().map(|operation| FileChange {
            path: operation.path.clone(),
            kind: change_kind(operation.before.is_some(), operation.after.is_some()),
        });
        let mut restored: Vec<FileChange> =
            restored.chain(self.intent.modes.iter().map(DirModeRecord::file_change)).collect();
        restored.sort_by(|one, other| one.path.cmp(&other.path));
        restored
    }

    /// Returns true if it is to be journaled. With nothing but conflicts there is nothing to
    /// journal, and the same can be tried again.
    pub(crate) fn has_effect(&self) -> bool {
        self.intent.left.is_empty() || !(self.operations.is_empty() && self.intent.modes.is_empty())
    }
}

impl Workspace {
    /// Takes changes back, newest first: what a session's edits and commands changed, or everything
    /// that was journaled since a checkpoint, by any session. Files that were changed since, or
    /// while checks ran, stay as they are and are reported; all others are restored together or not
    /// at all. The undo is a change of its own in the journal, that [`Workspace::redo`] takes back.
    /// Asked again after a conflict, it tries those files again.
    ///
    /// # Errors
    /// [`WorkspaceError::NothingToUndo`], [`WorkspaceError::NothingSince`];
    /// [`WorkspaceError::UnknownCheckpoint`], [`WorkspaceError::HistoryDropped`],
    /// [`WorkspaceError::SinceDropped`] for what the journal doesn't hold any more;
    /// [`WorkspaceError::Busy`], failures of the file system: then nothing was restored.
    // By value: the target names what is consumed.
    #[allow(clippy::needless_pass_by_value)]
    pub fn undo(&self, target: UndoTarget) -> Result<UndoReport, WorkspaceError> {
        self.project.root_dir.check_alive()?;
        let report = self.transactions.write_locked(|writer, context| {
            let history = History::new(writer.journal.lines()?);
            let selected = history.select_changes(&target)?;
            let plan = plan_undo(self.project.compare_inputs(), &history, &selected)?;
            let SelectedChanges { sessions, dropped, damaged, .. } = selected;
            let restored = plan.restored_files();
            if plan.has_effect() {
                context.execute(&mut writer.journal, plan.intent, &plan.operations)?;
            }
            Ok(UndoReport { sessions, restored, conflicts: plan.conflicts, dropped, damaged })
        })?;
        self.quota().enforce()?;
        Ok(report)
    }

    /// Takes back what one call changed, as [`Workspace::undo`] does, and keeps it: once no undo is
    /// left to do again, [`Workspace::redo`] gives it back.
    ///
    /// # Errors
    /// [`WorkspaceError::NothingToUndo`] if nothing of the call is in effect;
    /// [`WorkspaceError::Busy`], failures of the file system: then nothing was restored.
    pub fn undo_call(&self, session: &SessionId, call: &CallId) -> Result<UndoReport, WorkspaceError> {
        self.project.root_dir.check_alive()?;
        self.transactions.write_locked(|writer, context| {
            let history = History::new(writer.journal.lines()?);
            let done = history.changes_of_call(session, call).filter(|record| history.is_undoable(record));
            let mut records: Vec<_> = done.collect();
            records.reverse();
            if records.is_empty() {
                return Err(WorkspaceError::NothingToUndo { session: Some(session.clone()) });
            }
            let (sessions, replay, dropped, damaged) = (vec![session.clone()], false, false, false);
            let selected = SelectedChanges { records, sessions, replay, dropped, damaged };
            let mut plan = plan_undo(self.project.compare_inputs(), &history, &selected)?;
            plan.intent.call = Some(call.clone());
            let restored = plan.restored_files();
            if plan.has_effect() {
                context.execute(&mut writer.journal, plan.intent, &plan.operations)?;
            }
            let sessions = selected.sessions;
            Ok(UndoReport { sessions, restored, conflicts: plan.conflicts, dropped, damaged })
        })
    }

    /// Does again what the newest undo took back, as long as nothing was changed since but by undo
    /// and redo: as often as there were undos. What the user changed since stays, as with
    /// [`Workspace::undo`]; an undo of which nothing but that is left is passed over. After those
    /// it gives back what [`Recovery::recover_call`](crate::Recovery::recover_call) put back,
    /// whatever was changed since in other files. For a session, so too the newest undo that took
    /// back changes of it, with those of other sessions that it took back.
    ///
    /// # Errors
    /// [`WorkspaceError::NothingToRedo`]; [`WorkspaceError::Busy`], failures of the file system:
    /// then nothing was restored.
    pub fn redo(&self, session: Option<&SessionId>) -> Result<UndoReport, WorkspaceError> {
        self.project.root_dir.check_alive()?;
        self.transactions.write_locked(|writer, context| {
            let history = History::new(writer.journal.lines()?);
            let mut stuck: Option<UndoReport> = None;
            for undo in history.redoable_undos(session) {
                let sessions = history.sessions_undone_by(undo);
                let (dropped, damaged) = (false, false);
                let selected =
                    SelectedChanges { records: vec![undo], sessions, replay: false, dropped, damaged };
                let plan = plan_undo(self.project.compare_inputs(), &history, &selected)?;
                let sessions = selected.sessions;
                let (restored, does) = (plan.restored_files(), plan.has_effect());
                if does {
                    context.execute(&mut writer.journal, plan.intent, &plan.operations)?;
                }
                let conflicts = plan.conflicts;
                let report = UndoReport { sessions, restored, conflicts, dropped, damaged };
                let report = match stuck.take() {
                    None => report,
                    Some(newer) => merge_reports(newer, report),
                };
                if does {
                    return Ok(report);
                }
                stuck = Some(report);
            }
            stuck.ok_or_else(|| WorkspaceError::NothingToRedo { session: session.cloned() })
        })
    }
}

/// Merges the reports of a redo that passed over newer undos.
fn merge_reports(newer: UndoReport, mut older: UndoReport) -> UndoReport {
    let known: HashSet<RelPath> = older.conflicts.iter().map(|(path, _)| path.clone()).collect();
    older.conflicts.extend(newer.conflicts.into_iter().filter(|(path, _)| !known.contains(path)));
    older.conflicts.sort();
    if older.restored.is_empty() {
        older.sessions = newer.sessions;
    }
    older
}

/// The state to which a file is restored, and the reason to stop there.
struct RestoreTarget {
    current: Option<(FileState, FileStat)>,
    target: Option<FileState>,
    conflict: Option<Conflict>,
}

/// The reason why a file isn't restored through all of its changes.
struct Conflict {
    reason: String,
    /// The newest change that isn't taken back.
    newest: ChangeId,
}

/// The effect of one change on a file.
struct UndoStep<'a> {
    change: ChangeId,
    file: &'a FileRecord,
    /// True if another session may have made the change.
    is_shared: bool,
}

/// The effects of the changes on one file, newest first.
#[derive(Default)]
struct UndoSteps<'a> {
    files: Vec<UndoStep<'a>>,
    /// True if an edit or a command is among them.
    of_session: bool,
    /// True if checks are.
    after_checks: bool,
}

impl UndoSteps<'_> {
    /// Returns true if the file is the session's: what only differed after checks may be a person's
    /// work, unless it came into being in one.
    fn are_ours(&self) -> bool {
        self.of_session || self.files.last().is_some_and(|oldest| oldest.file.before.is_none())
    }
}

/// The treatment of a file that isn't as it was left.
#[derive(Debug, Clone, Copy)]
struct DriftHandling {
    /// True if what comes to nothing in the end is no conflict.
    replay: bool,
    changed: &'static str,
}

/// Plans to take back these changes, newest first; nothing is written.
pub(crate) fn plan_undo(
    inputs: CompareInputs<'_>,
    history: &History,
    selected: &SelectedChanges<'_>,
) -> Result<UndoPlan, WorkspaceError> {
    let CompareInputs { root_dir, blob_store, .. } = inputs;
    let SelectedChanges { records, sessions, replay, .. } = selected;
    let is_redo = !replay && records.iter().all(|record| record.cause == ChangeCause::Undo);
    let changed = match (is_redo, records.first().is_some_and(|record| record.call.is_some())) {
        (true, true) => "it was changed after it was put back; kept as it is",
        (true, false) => "it was changed after the undo; kept as it is",
        (false, _) => "it was changed after the run; kept as it is",
    };
    let walk = DriftHandling { replay: *replay, changed };
    let mut files: BTreeMap<&RelPath, UndoSteps<'_>> = BTreeMap::new();
    for record in records {
        for file in &record.files {
            if !replay && history.is_undone(record.id, Some(&file.path)) {
                continue;
            }
            let steps = files.entry(&file.path).or_default();
            let is_shared = !replay && !record.beside.is_empty();
            steps.files.push(UndoStep { change: record.id, file, is_shared });
            steps.of_session |= is_shared || !record.cause.is_doubtful();
            steps.after_checks |= record.cause == ChangeCause::Check;
        }
    }
    let (files, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, steps)| steps.are_ours());
    let mut operations = Vec::new();
    let mut conflicts = BTreeMap::new();
    let mut obstructed = Vec::new();
    for (path, steps) in files {
        let Some(newest) = steps.files.first().map(|step| step.change) else { continue };
        let mut way = find_restore_target(root_dir, path, &steps.files, newest, walk)?;
        if way.current.is_none()
            && let Some((at, seen)) = find_obstacle(root_dir, path)?
        {
            obstructed.push(Obstructed { path, at, is_link: seen.is_link(), newest });
        }
        match restore_operation(blob_store, path, &way)? {
            Some(Ok(operation)) => operations.push(operation),
            Some(Err(reason)) => way.conflict = Some(Conflict { reason, newest }),
            None => {}
        }
        if let Some(mut conflict) = way.conflict {
            if conflict.reason == walk.changed && !is_redo && is_ignored_now(inputs, path) {
                IGNORED_CHANGED_REASON.clone_into(&mut conflict.reason);
            }
            conflicts.insert(path.clone(), conflict);
        }
    }
    drop_obstructed(&mut operations, obstructed, &mut conflicts);
    let (mut make, remove) = directories_to_restore(root_dir, records, *replay, &operations)?;
    let modes = plan_directory_permissions(root_dir, history, selected, &mut make, &mut conflicts)?;
    let session = sessions.first().or(records.first().map(|record| &record.session));
    let intent = ChangeIntent {
        session: session.cloned().ok_or(WorkspaceError::NothingToUndo { session: None })?,
        call: None,
        cause: if is_redo { ChangeCause::Redo } else { ChangeCause::Undo },
        description: None,
        undoes: records.iter().map(|record| record.id).collect(),
        left: conflicts
            .iter()
            .map(|(path, conflict)| LeftFile { path: path.clone(), newest: conflict.newest })
            .collect(),
        make,
        remove,
        settles_copy: false,
        modes,
    };
    let mut conflicts: BTreeMap<RelPath, String> =
        conflicts.into_iter().map(|(path, conflict)| (path, conflict.reason)).collect();
    // These aren't left for another try: they never were the session's to take back.
    conflicts.extend(others.into_iter().map(|(path, steps)| {
        let what = if steps.after_checks { "checks or commit hooks" } else { "a command in the background" };
        (path.clone(), format!("changed while {what} ran; kept"))
    }));
    Ok(UndoPlan { intent, operations, conflicts: conflicts.into_iter().collect() })
}

/// A file that something stands in the way of which isn't a directory.
struct Obstructed<'a> {
    path: &'a RelPath,
    at: RelPath,
    is_link: bool,
    newest: ChangeId,
}

/// Drops the operations on files in whose way something stands that stays.
fn drop_obstructed(
    operations: &mut Vec<Operation>,
    obstructed: Vec<Obstructed<'_>>,
    conflicts: &mut BTreeMap<RelPath, Conflict>,
) {
    let removed = paths_removed_by(operations);
    let mut blocked = HashSet::new();
    for Obstructed { path, is_link, newest, .. } in
        obstructed.into_iter().filter(|file| !removed.contains(&file.at))
    {
        if is_link || operations.iter().any(|operation| operation.path == *path) {
            let reason = format!("a {} stands in its way; kept", if is_link { "link" } else { "file" });
            conflicts.insert(path.clone(), Conflict { reason, newest });
        }
        blocked.insert(path);
    }
    operations.retain(|operation| !blocked.contains(&operation.path));
}

/// Returns the obstacle above the file that isn't a directory.
fn find_obstacle(root_dir: &RootDir, path: &RelPath) -> Result<Option<(RelPath, FileStat)>, WorkspaceError> {
    match root_dir.find_obstacle(path) {
        // Behind a directory that can't be entered nothing can be done, and nothing is known.
        Err(Errno::ACCESS) => Ok(None),
        other => other.map_err(|errno| root_dir.error_for("look at", path, errno)),
    }
}

fn paths_removed_by(operations: &[Operation]) -> HashSet<RelPath> {
    let gone = operations.iter().filter(|operation| operation.after.is_none());
    gone.map(|operation| operation.path.clone()).collect()
}

fn find_restore_target(
    root_dir: &RootDir,
    path: &RelPath,
    steps: &[UndoStep<'_>],
    newest: ChangeId,
    walk: DriftHandling,
) -> Result<RestoreTarget, WorkspaceError> {
    // Where no state's content is known, it isn't needed to tell them apart: a disk image isn't
    // read in vain.
    let unknown = steps.iter().all(|step| {
        [step.file.before, step.file.after].into_iter().flatten().all(|state| state.hash.is_none())
    });
    let untouched = |reason: String| RestoreTarget {
        current: None,
        target: None,
        conflict: Some(Conflict { reason, newest }),
    };
    let current =
        match if unknown { state_without_content(root_dir, path) } else { observe_file(root_dir, path) } {
            Ok(current) => current,
            // No file, whatever else: the engine sees whether the directory can make room.
            Err(
                WorkspaceError::NotAFile { kind: NotAFile::Directory, .. } | WorkspaceError::NotFound { .. },
            ) => None,
            Err(WorkspaceError::NotAFile { kind, .. }) => {
                return Ok(untouched(format!("it is {kind} now; kept as it is")));
            }
            Err(WorkspaceError::Denied { .. }) => {
                return Ok(untouched("it can't be read; kept as it is".to_owned()));
            }
            Err(other) => return Err(other),
        };
    if walk.replay && is_net_unchanged(steps) && !current.is_some_and(|(state, _)| is_as_left(&state, steps))
    {
        return Ok(RestoreTarget { target: current.map(|(state, _)| state), current, conflict: None });
    }
    let mut at = current.map(|(state, _)| state);
    let mut conflict = None;
    for UndoStep { change, file: step, is_shared } in steps {
        let is_whole = at == current.map(|(state, _)| state);
        let left = |whole: &str, partly: &str| {
            let reason = if is_whole { whole } else { partly };
            Some(Conflict { reason: reason.to_owned(), newest: *change })
        };
        if is_as_left_by(at.as_ref(), step) {
            if *is_shared {
                conflict = left(OTHERS_RAN_REASON, PARTLY_OTHERS_RAN_REASON);
                break;
            }
            at = step.before.map(|before| match (at, step.after) {
                // The change left the mode alone, so that the mode it has now is the user's.
                (Some(now), Some(after)) if after.mode == before.mode => {
                    FileState { mode: now.mode, ..before }
                }
                _ => before,
            });
        } else if !is_same(at.as_ref(), step.before.as_ref()) {
            conflict = left(walk.changed, PARTLY_CHANGED_REASON);
            break;
        }
    }
    Ok(RestoreTarget { current, target: at, conflict })
}

/// Returns the state of the path, with its content unread.
fn state_without_content(
    root_dir: &RootDir,
    path: &RelPath,
) -> Result<Option<(FileState, FileStat)>, WorkspaceError> {
    let look = root_dir.stat(path).map_err(|errno| root_dir.error_for("look at", path, errno))?;
    let Some(seen) = look else { return Ok(None) };
    if seen.is_link() {
        return observe_file(root_dir, path);
    }
    match seen.non_file_kind() {
        Some(kind) => Err(WorkspaceError::NotAFile { path: path.clone(), kind }),
        None => {
            let (kind, mode, size) = (FileKind::File, seen.permissions(), seen.size);
            Ok(Some((FileState { kind, mode, size, hash: None }, seen)))
        }
    }
}

/// Returns true if the changes cancel each other out, each starting from what the one before left:
/// anything that another process wrote in between would be lost with an undo.
fn is_net_unchanged(steps: &[UndoStep<'_>]) -> bool {
    let (Some(UndoStep { file: newest, .. }), Some(UndoStep { file: oldest, .. })) =
        (steps.first(), steps.last())
    else {
        return true;
    };
    let is_chain = steps.windows(2).all(|pair| match pair {
        [newer, older] => is_same(newer.file.before.as_ref(), older.file.after.as_ref()),
        _ => true,
    });
    is_chain
        && match (&oldest.before, &newest.after) {
            (None, None) => true,
            (Some(before), Some(after)) => before.has_same_content(after) && before.mode == after.mode,
            _ => false,
        }
}

/// Returns true if the newest of the changes left the file as it is.
fn is_as_left(now: &FileState, steps: &[UndoStep<'_>]) -> bool {
    steps.first().is_some_and(|newest| is_as_left_by(Some(now), newest.file))
}

/// Returns true if the file is as this change left it.
fn is_as_left_by(now: Option<&FileState>, step: &FileRecord) -> bool {
    match (now, &step.before, &step.after) {
        (None, _, None) => true,
        (Some(now), Some(before), Some(after)) if after.mode != before.mode && now.kind == FileKind::File => {
            now.has_same_content(after) && now.mode == after.mode
        }
        (Some(now), _, Some(after)) => now.has_same_content(after),
        _ => false,
    }
}

fn is_same(now: Option<&FileState>, then: Option<&FileState>) -> bool {
    match (now, then) {
        (None, None) => true,
        (Some(now), Some(then)) => now.has_same_content(then),
        _ => false,
    }
}

/// Returns the operation on the file, or the reason why its earlier content can't be restored.
fn restore_operation(
    blob_store: &BlobStore,
    path: &RelPath,
    way: &RestoreTarget,
) -> Result<Option<Result<Operation, String>>, WorkspaceError> {
    let operation = |after| Some(Ok(Operation { path: path.clone(), before: way.current, after }));
    let after = |state: FileState, source| FileAfter {
        state,
        source,
        mode: Some(state.mode),
        executable: false,
        like: None,
    };
    Ok(match (&way.current, way.target) {
        (None, None) => None,
        (Some(_), None) => operation(None),
        (Some((now, _)), Some(target)) if now.has_same_content(&target) => {
            let differs = now.mode != target.mode && now.kind == FileKind::File;
            match target.hash {
                _ if differs => operation(Some(after(target, NewContent::Unchanged))),
                // Only the size is known to be the same.
                None => Some(Err(TOO_LARGE_REASON.to_owned())),
                Some(_) => None,
            }
        }
        (_, Some(target)) => match target.hash {
            Some(hash) => match blob_store.verify(&hash)? {
                BlobCondition::Whole => operation(Some(after(target, NewContent::Blob(hash)))),
                BlobCondition::Damaged => {
                    Some(Err("its earlier content is damaged; kept as it is".to_owned()))
                }
                BlobCondition::Missing => Some(Err("its earlier content isn't kept any more".to_owned())),
            },
            None => Some(Err(TOO_LARGE_REASON.to_owned())),
        },
    })
}

/// Plans the permissions that directories get; those of a directory that is to be made again go
/// along with it.
fn plan_directory_permissions(
    root_dir: &RootDir,
    history: &History,
    selected: &SelectedChanges<'_>,
    make: &mut [DirRecord],
    conflicts: &mut BTreeMap<RelPath, Conflict>,
) -> Result<Vec<DirModeRecord>, WorkspaceError> {
    let replay = selected.replay;
    let mut steps: BTreeMap<&RelPath, Vec<(&DirModeRecord, &ChangeRecord)>> = BTreeMap::new();
    for record in &selected.records {
        let dirs = record.modes.iter().filter(|dir| replay || !history.is_undone(record.id, Some(&dir.path)));
        for dir in dirs {
            steps.entry(&dir.path).or_default().push((dir, record));
        }
    }
    let mut modes = Vec::new();
    for (path, steps) in steps {
        let made = make.iter_mut().find(|dir| dir.path == *path);
        let there = match root_dir.stat(path) {
            Err(Errno::ACCESS) => continue,
            other => other.map_err(|errno| root_dir.error_for("look at", path, errno))?,
        };
        let now = match (&made, there.filter(FileStat::is_dir)) {
            (Some(DirRecord { mode: Some(mode), .. }), _) => *mode,
            (_, Some(seen)) => seen.permissions(),
            _ => continue,
        };
        let ends =
            steps.first().zip(steps.last()).map(|((newest, _), (oldest, _))| (newest.after, oldest.before));
        if replay && ends.is_some_and(|(after, before)| after == before && now != after) {
            continue;
        }
        let mut at = now;
        for (step, record) in steps {
            let left = |reason: &str| Conflict { reason: reason.to_owned(), newest: record.id };
            if at != step.after && at != step.before {
                conflicts.insert(path.clone(), left("its permissions were changed since; kept as they are"));
                break;
            }
            let doubt = match record.cause.is_doubtful() {
                true => Some("its permissions changed while checks or a command in the background ran; kept"),
                false => (!replay && !record.beside.is_empty()).then_some(OTHERS_RAN_REASON),
            };
            if let Some(reason) = doubt.filter(|_| at == step.after) {
                conflicts.insert(path.clone(), left(reason));
                break;
            }
            at = step.before;
        }
        match made {
            Some(made) => made.mode = Some(at),
            None if at != now => modes.push(DirModeRecord { path: path.clone(), before: now, after: at }),
            None => {}
        }
    }
    Ok(modes)
}

/// Returns directories to make again, and those to remove if they are empty in the end.
fn directories_to_restore(
    root_dir: &RootDir,
    records: &[&ChangeRecord],
    replay: bool,
    operations: &[Operation],
) -> Result<(Vec<DirRecord>, Vec<DirRecord>), WorkspaceError> {
    let mut make = BTreeMap::new();
    let mut remove = BTreeMap::new();
    // Newest first: what an older change says of a directory counts more.
    for record in records {
        let check = record.cause.is_doubtful() || !replay && !record.beside.is_empty();
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
    let cleared = paths_removed_by(operations);
    let mut missing = Vec::new();
    for (path, dir) in make {
        let there = match root_dir.stat(&path) {
            Err(Errno::ACCESS) => continue,
            other => other.map_err(|errno| root_dir.error_for("look at", &path, errno))?,
        };
        let in_the_way = match there {
            Some(_) => Some(path.clone()),
            None => find_obstacle(root_dir, &path)?.map(|(at, _)| at),
        };
        if in_the_way.is_none_or(|at| cleared.contains(&at)) {
            missing.push(dir);
        }
    }
    // Only what is there now can go, and comes back as it is now when the undo itself is taken
    // back.
    let mut there = Vec::new();
    for path in remove.into_keys() {
        let seen = match root_dir.stat(&path) {
            Err(Errno::ACCESS) => continue,
            other => other.map_err(|errno| root_dir.error_for("look at", &path, errno))?,
        };
        if let Some(seen) = seen
            && seen.is_dir()
        {
            there.push(DirRecord { path, mode: Some(seen.permissions()) });
        }
    }
    Ok((missing, there))
}
