//! Recording of a command's changes: the tree before it, the guarded files, the journal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_policy::GUARD_RULES;
use journeyman_protocol::{CallId, FileChange, FileChangeKind, GuardViolation, RelPath, SessionId};
use journeyman_sandbox::{CompletedCommand, Request};
use journeyman_workspace::{ForbiddenChanges, GuardedState, TreeSnapshot, Workspace, WorkspaceError};

use crate::background::Job;
use crate::tool::{describe_problem_names, run_blocking};
use crate::violations::violation_message;
use crate::{SeenFiles, ToolContext, ToolError};

/// Maximum number of changed files named in a note.
const MAX_NAMED_FILES: usize = 20;

/// The state before a command, for reporting and journaling its changes. [`CommandRecording::end`]
/// has to be called even if the command failed, because it undoes forbidden changes.
pub struct CommandRecording {
    workspace: Arc<Workspace>,
    session: SessionId,
    call: CallId,
    seen: Arc<SeenFiles>,
    before: TreeSnapshot,
    /// Absent for a command that can't write.
    guard: Option<Arc<Mutex<GuardedState>>>,
}

/// The kind of a command whose changes are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RecordedKind {
    /// True if the command goes on after its call.
    pub(crate) background: bool,
    /// True if the sandbox prevents all writes.
    pub(crate) only_reads: bool,
}

/// A command's changes, or the error of recording them, and the forbidden changes.
pub(crate) type RecordingResult = (Result<Vec<FileChange>, WorkspaceError>, ForbiddenChanges);

/// The changes that a command made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedChanges {
    /// The changed files.
    pub changes: Vec<FileChange>,
    /// Guarded files and repositories that the command created, changed or deleted.
    pub violations: Vec<GuardViolation>,
    /// Lines on changes that could not be recorded, can't be undone, or were forbidden; empty if
    /// there are none.
    pub notes: String,
    /// True if changes were forbidden or could not be recorded.
    pub is_error: bool,
}

impl RecordedChanges {
    /// Returns the changed files and the notes as lines for the model; empty if there are none.
    #[must_use]
    pub fn describe(&self, workspace: &Workspace) -> String {
        let mut text = String::new();
        push_changes(&mut text, &self.changes);
        text.push_str(&describe_problem_names(workspace, &self.changes));
        text.push_str(&self.notes);
        text
    }
}

impl CommandRecording {
    /// Records the tree before a command of this call that may write.
    ///
    /// # Errors
    /// A tree that can't be read, or a journal that can't be written.
    pub async fn begin(context: &ToolContext) -> Result<Self, ToolError> {
        Self::begin_as(context, RecordedKind::default()).await
    }

    pub(crate) async fn begin_as(context: &ToolContext, kind: RecordedKind) -> Result<Self, ToolError> {
        let workspace = Arc::clone(&context.workspace);
        let (session, call) = (context.session.clone(), context.call.clone());
        let seen = Arc::clone(&context.seen);
        run_blocking(move || {
            let before = if kind.background {
                workspace.command_observer().begin_background(&session, &call)?
            } else if kind.only_reads {
                // Such a command can't write, so a crash leaves nothing to restore.
                workspace.command_observer().begin()?
            } else {
                workspace.command_observer().begin_call(&session, &call)?
            };
            let guarded = || GuardedState::capture_for_recovery(&workspace, &before, GUARD_RULES);
            let guard = if kind.only_reads { None } else { Some(Arc::new(Mutex::new(guarded()?))) };
            Ok(Self { workspace, session, call, seen, before, guard })
        })
        .await
    }

    /// Makes the sandbox deny the changes that the command may not make, as far as it can.
    pub fn restrict_request(&self, request: &mut Request) {
        request.witness = self.before.process_lock();
        if let Some(guard) = &self.guard {
            request.protected.extend_from_slice(lock_guard(guard).protected_paths());
        }
        request.linked = self.before.hard_links().paths().cloned().collect();
    }

    /// Lets the monitor of a background command check guarded files, too.
    pub(crate) fn watch_guarded_files(&self, job: &Job) {
        if let Some(guard) = &self.guard {
            job.watch_guarded(&self.workspace, guard);
        }
    }

    /// Returns the files whose changes can't be undone.
    pub(crate) fn paths_not_undoable(&self) -> Vec<RelPath> {
        self.before.not_undoable_files()
    }

    /// Undoes forbidden changes and journals all others. `completed` is the command's end; `None`
    /// if the command never ran.
    ///
    /// # Errors
    /// An error if the task that does this was aborted.
    pub async fn end(self, completed: Option<&CompletedCommand>) -> Result<RecordedChanges, ToolError> {
        let unkept = self.paths_not_undoable();
        let kept = completed.is_none_or(|completed| completed.enforcement.protected_kept);
        let (changes, aftermath) = self.close(kept).await?;
        let (changes, unrecorded) = journaled_changes(changes);
        let is_error = unrecorded.is_some() || !aftermath.is_clean();
        let mut notes = unrecorded.unwrap_or_default();
        notes.extend(lost_files_note(&changes, &unkept));
        notes.extend(violation_message(&aftermath));
        Ok(RecordedChanges { changes, violations: aftermath.violations, notes, is_error })
    }

    /// Ends the recording as [`CommandRecording::end`] does, but returns the parts. `kept` tells
    /// that the sandbox protected the guarded paths.
    pub(crate) async fn close(self, kept: bool) -> Result<RecordingResult, ToolError> {
        run_blocking(move || {
            let Self { workspace, session, call, seen, before, guard } = self;
            // The command could write nothing, so all differences are external changes.
            if guard.is_none() && before.process_lock().is_none() {
                return Ok((Ok(Vec::new()), ForbiddenChanges::default()));
            }
            let end = || workspace.command_observer().end(before, &session, Some(&call));
            let (changes, aftermath) = match guard {
                Some(guard) => lock_guard(&guard).revert_and_journal(&workspace, kept, end),
                None => (end(), ForbiddenChanges::default()),
            };
            if let Ok(changes) = &changes {
                seen.note_changes(&workspace, changes);
            }
            Ok((changes, aftermath))
        })
        .await
    }
}

fn lock_guard(guard: &Mutex<GuardedState>) -> MutexGuard<'_, GuardedState> {
    guard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if the sandbox protected the guarded paths, or nothing ran.
pub(crate) fn was_guard_enforced<E>(ended: &Result<CompletedCommand, E>) -> bool {
    ended.as_ref().map_or(true, |completed| completed.enforcement.protected_kept)
}

/// Returns the changes, and a message if they could not be recorded.
pub(crate) fn journaled_changes(
    changes: Result<Vec<FileChange>, WorkspaceError>,
) -> (Vec<FileChange>, Option<String>) {
    match changes {
        Ok(changes) => (changes, None),
        Err(error) => (Vec::new(), Some(format!("error: what it changed could not be recorded: {error}\n"))),
    }
}

/// Returns a sentence on changed or deleted files that an undo can't restore.
pub(crate) fn lost_files_note(changes: &[FileChange], unkept: &[RelPath]) -> Option<String> {
    let is_lost =
        |change: &&FileChange| change.kind != FileChangeKind::Added && unkept.contains(&change.path);
    let lost: Vec<String> = changes.iter().filter(is_lost).map(|change| change.path.to_string()).collect();
    let named = lost.get(..lost.len().min(MAX_NAMED_FILES)).unwrap_or_default().join(", ");
    let more = lost.len().saturating_sub(MAX_NAMED_FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!lost.is_empty()).then(|| format!("[undo can't bring back {} of them: {named}{more}]\n", lost.len()))
}

/// Appends a line with the changed files, if there are any.
pub(crate) fn push_changes(report: &mut String, changes: &[FileChange]) {
    if changes.is_empty() {
        return;
    }
    let named = changes.iter().take(MAX_NAMED_FILES).map(|change| {
        let kind = match change.kind {
            FileChangeKind::Added => "added",
            FileChangeKind::Modified => "modified",
            FileChangeKind::Deleted => "deleted",
        };
        format!("{} ({kind})", change.path)
    });
    let named: Vec<String> = named.collect();
    report.push_str(&format!("[files changed: {}", named.join(", ")));
    if changes.len() > named.len() {
        report.push_str(&format!(" and {} more", changes.len() - named.len()));
    }
    report.push_str("]\n");
}
