//! Undoes and redoes the changes of sessions.

use std::path::{Path, PathBuf};

use journeyman_agent::{SESSION_STATUS_FORKED, SESSION_STATUS_IMPORTED, State};
use journeyman_protocol::{
    CommitReport, Envelope, Event, FileChange, GuardViolation, RelPath, Seq, SessionId, UnixMillis,
};
use journeyman_store::{SessionSummary, Store as _};
use journeyman_workspace::{CheckpointId, UndoReport, UndoTarget, Workspace, WorkspaceError};

use crate::config::Environment;
use crate::events::read_events;
use crate::format::printable;
use crate::landing::gone_on_error;
use crate::root::find_root;
use crate::sessions::{SessionClaim, describe_session, find_session_of, list_user_sessions};
use crate::state::StateDirs;
use crate::{Confirmations, Context as _, HostError};

/// Maximum number of sessions searched for the newest one that was opened.
const MAX_SEARCHED_SESSIONS: usize = 100;

/// The files that an undo or redo changed.
#[derive(Debug)]
pub struct UndoResult {
    /// The files, and what could not be taken back.
    pub report: UndoReport,
    /// The sessions whose changes were taken back or made again.
    pub sessions: Vec<SessionSummary>,
    /// The number of steps of the opposite command that lead back.
    pub steps: usize,
    /// Guarded paths that commands changed which were cut off, each with what became of it.
    pub violations: Vec<GuardViolation>,
    /// The commits of the changes that were taken back. An undo is of files: they stay.
    pub commits: Vec<CommitReport>,
}

/// Undoes the newest run of the project, or the session that `word` names. `directory` takes the
/// place of the current directory, or of the session's own. A person at `prompts` is asked where
/// the newest run changed nothing, so that an earlier one would be taken back. Returns `None` if
/// they say no.
///
/// # Errors
/// [`HostError::Usage`] while another process works on the session, and where the work is in a
/// copy.
pub async fn undo_session(
    environment: &Environment,
    state: &StateDirs,
    word: Option<&str>,
    directory: Option<&Path>,
    prompts: Option<&dyn Confirmations>,
) -> Result<Option<UndoResult>, HostError> {
    let (session, root) = match word {
        None => {
            let root = find_root(environment, directory)?;
            let newest = list_project_sessions(state, &root).await?.into_iter().find(|session| {
                // A session that was forked or imported and never opened has changed nothing here.
                session.status != SESSION_STATUS_FORKED && session.status != SESSION_STATUS_IMPORTED
            });
            (newest, root)
        }
        Some(word) => {
            let session = find_session_of(state, environment, directory, word).await?;
            let root = find_root(environment, Some(directory.unwrap_or(Path::new(&session.root))))?;
            (Some(session), root)
        }
    };
    let workspace = state.open_workspace(&root)?;
    let is_named = word.is_some();
    let Some(session) = session.filter(|session| is_named || !has_later_change(&workspace, session)) else {
        // The journal also has the changes of `jm apply`, under an id of its own.
        let undone = undo_last_run(state, &workspace, None, RecoveredCalls::default()).await?;
        return Ok(Some(undone.with_sessions(state).await.with_commits(state).await));
    };
    let mut agreed = None;
    if !is_named {
        check_not_in_copy(&workspace, &session.id)?;
        if let Some(prompts) = prompts
            && let Some(older) = find_older_undo(state, &workspace, &session).await?
        {
            if !prompts.confirm_older_undo(&session, &older).context("asking")? {
                return Ok(None);
            }
            agreed = Some(older.id);
        }
    }
    let claim = SessionClaim::take(state, &session.id, "undo").await?;
    let undone = undo_claimed(state, &workspace, &session.id, is_named, agreed.as_ref()).await;
    claim.release().await;
    // A session whose work is in a copy may have landed some before.
    let undone = undone.or_else(|error| check_not_in_copy(&workspace, &session.id).and(Err(error)))?;
    Ok(Some(undone.with_sessions(state).await.with_commits(state).await))
}

/// Returns the earlier session whose changes would go back because the newest changed nothing.
async fn find_older_undo(
    state: &StateDirs,
    workspace: &Workspace,
    newest: &SessionSummary,
) -> Result<Option<SessionSummary>, HostError> {
    // The undo reports damage. Interrupted calls are undone first.
    let Ok(Some(older)) = workspace.history().newest_undoable_session() else { return Ok(None) };
    let cut_off = workspace.recovery().cut_off_calls(&newest.id).is_ok_and(|calls| !calls.is_empty());
    if older == newest.id || cut_off {
        return Ok(None);
    }
    find_session_by_id(state, &older).await
}

async fn find_session_by_id(state: &StateDirs, id: &SessionId) -> Result<Option<SessionSummary>, HostError> {
    let found = state.store.find_sessions(id.as_str()).await.context("the session log")?;
    Ok(found.into_iter().find(|found| found.id == *id))
}

/// Undoes the newest run that changed something, while its session is claimed. If the person has
/// `agreed` to a session, no other is undone.
async fn undo_last_run(
    state: &StateDirs,
    workspace: &Workspace,
    agreed: Option<&SessionId>,
    recovered: RecoveredCalls,
) -> Result<UndoResult, HostError> {
    let newest = workspace.history().newest_undoable_session().context("undo")?;
    let Some(newest) = newest else { return undo_to_target(workspace, UndoTarget::LastRun, recovered) };
    if agreed.is_some_and(|agreed| *agreed != newest) {
        return Err(gone_on_error(&newest));
    }
    let undo = async { undo_to_target(workspace, UndoTarget::Session(newest.clone()), recovered) };
    match find_session_by_id(state, &newest).await? {
        Some(session) => SessionClaim::hold(state, &session.id, "undo", undo).await,
        // `jm apply` is no session.
        None => undo.await,
    }
}

/// Undoes all changes since a checkpoint, of any session. No session may be running.
///
/// # Errors
/// [`HostError::Usage`] while a process works on a session of the project.
pub async fn undo_to_checkpoint(
    environment: &Environment,
    state: &StateDirs,
    checkpoint: CheckpointId,
    directory: Option<&Path>,
) -> Result<UndoResult, HostError> {
    let (workspace, sessions) = open_project(environment, state, directory).await?;
    let claims = SessionClaim::take_all(state, &sessions, "undo").await?;
    let undone = async {
        let mut recovered = RecoveredCalls::default();
        for session in &sessions {
            recovered.merge(recover_session(state, &workspace, &session.id).await?);
        }
        undo_to_target(&workspace, UndoTarget::To(checkpoint), recovered)
    };
    let undone = undone.await;
    SessionClaim::release_all(claims).await;
    Ok(undone?.with_sessions(state).await.with_commits(state).await)
}

/// Redoes the changes that the newest undo took back, of any session or of the one that `word`
/// names. `directory` takes the place of the current directory, or of the session's own.
///
/// # Errors
/// [`HostError::Usage`] while a process works on a session of the project.
pub async fn redo(
    environment: &Environment,
    state: &StateDirs,
    word: Option<&str>,
    directory: Option<&Path>,
) -> Result<UndoResult, HostError> {
    let session = match word {
        Some(word) => Some(find_session_of(state, environment, directory, word).await?),
        None => None,
    };
    let own = session.as_ref().map(|session| Path::new(&session.root));
    let (workspace, sessions) = open_project(environment, state, directory.or(own)).await?;
    let claims = SessionClaim::take_all(state, &sessions, "redo").await?;
    let redone = workspace.redo(session.as_ref().map(|session| &session.id));
    SessionClaim::release_all(claims).await;
    let redone = UndoResult {
        report: redone.context("redo")?,
        sessions: Vec::new(),
        steps: 1,
        violations: Vec::new(),
        commits: Vec::new(),
    };
    Ok(redone.with_sessions(state).await)
}

impl UndoResult {
    /// Describes the sessions whose changes these are.
    #[must_use]
    pub fn describe_sessions(&self) -> String {
        match (self.sessions.as_slice(), self.report.sessions.as_slice()) {
            ([session], [_]) => describe_session(session),
            (_, [session]) => format!("session {session}"),
            (_, sessions) => format!("{} sessions", sessions.len()),
        }
    }

    /// Returns true if something of the changes was left as it is.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        !self.report.conflicts.is_empty() || self.report.dropped || self.report.damaged
    }

    /// Looks up the sessions of the report. One that is deleted, or that was none (`jm apply`), is
    /// left out.
    async fn with_sessions(mut self, state: &StateDirs) -> Self {
        for id in &self.report.sessions {
            let found = state.store.find_sessions(id.as_str()).await.unwrap_or_default();
            self.sessions.extend(found.into_iter().find(|session| session.id == *id));
        }
        self
    }

    /// Looks up the commits of the sessions. A log that can't be read has none.
    async fn with_commits(mut self, state: &StateDirs) -> Self {
        let mut commits = Vec::new();
        let mut note = |envelope: &Envelope| {
            if let Event::Committed { commit } = &envelope.event {
                commits.push(commit.clone());
            }
            Ok(())
        };
        for session in &self.sessions {
            read_events(state, &session.id, Seq::START, &mut note).await.ok();
        }
        self.commits = commits;
        self
    }

    /// Describes for each commit that it remains, and how to revert it.
    pub fn commit_notes(&self) -> impl Iterator<Item = String> {
        self.commits.iter().map(|CommitReport { id, branch, subject }| {
            let short = id.get(..12).unwrap_or(id);
            let on = branch.as_ref().map_or_else(String::new, |branch| format!(" on {branch}"));
            printable(&format_args!(
                "commit {short}{on} stays ({subject}); to take it back: git revert {short}"
            ))
        })
    }
}

async fn open_project(
    environment: &Environment,
    state: &StateDirs,
    directory: Option<&Path>,
) -> Result<(Workspace, Vec<SessionSummary>), HostError> {
    let root: PathBuf = find_root(environment, directory)?;
    Ok((state.open_workspace(&root)?, list_project_sessions(state, &root).await?))
}

/// Returns the sessions of a directory, newest first.
async fn list_project_sessions(state: &StateDirs, root: &Path) -> Result<Vec<SessionSummary>, HostError> {
    // An agent's changes are journaled for the root session.
    list_user_sessions(state, Some(&root.display().to_string()), MAX_SEARCHED_SESSIONS).await
}

/// Returns true if the newest change that can be taken back was made after the session began, and
/// not by the session.
fn has_later_change(workspace: &Workspace, session: &SessionSummary) -> bool {
    matches!(workspace.history().newest_undoable_session(), Ok(Some(newest)) if newest > session.id)
}

/// Returns an error if the session's changes are in an isolated copy, not in the project.
fn check_not_in_copy(workspace: &Workspace, session: &SessionId) -> Result<(), HostError> {
    let copies = workspace.copies().list().context("looking for its copy")?;
    if copies.iter().all(|copy| copy.session != *session) {
        return Ok(());
    }
    Err(HostError::usage(format_args!(
        "the newest work of session {session} is in a copy; your files have nothing of it. To drop it: jm discard \
         {session}. To take back what a session changed in your files, name it: jm undo ID"
    )))
}

async fn undo_claimed(
    state: &StateDirs,
    workspace: &Workspace,
    session: &SessionId,
    is_named: bool,
    agreed: Option<&SessionId>,
) -> Result<UndoResult, HostError> {
    let recovered = recover_session(state, workspace, session).await?;
    // The journal may not know the newest run any more, but the log does.
    let is_damaged =
        matches!(workspace.history().newest_undoable_session(), Err(WorkspaceError::HistoryDamaged { .. }));
    // Interrupted calls of the newest session are undone first.
    if is_named || is_damaged || !recovered.restored.is_empty() {
        return undo_to_target(workspace, UndoTarget::Session(session.clone()), recovered);
    }
    undo_last_run(state, workspace, agreed, recovered).await
}

/// The result of settling calls that were cut off.
#[derive(Default)]
pub(crate) struct RecoveredCalls {
    restored: Vec<FileChange>,
    /// The number of calls of which something was put back, each by a step of its own.
    steps: usize,
    left: Vec<(RelPath, String)>,
    sessions: Vec<SessionId>,
    violations: Vec<GuardViolation>,
}

impl RecoveredCalls {
    fn merge(&mut self, other: Self) {
        self.restored.extend(other.restored);
        self.steps += other.steps;
        self.left.extend(other.left);
        self.sessions.extend(other.sessions);
        self.violations.extend(other.violations);
    }
}

/// Settles the calls and checks that a session's process was cut off in.
async fn recover_session(
    state: &StateDirs,
    workspace: &Workspace,
    session: &SessionId,
) -> Result<RecoveredCalls, HostError> {
    let mut recovered = RecoveredCalls { sessions: vec![session.clone()], ..RecoveredCalls::default() };
    let calls = workspace.recovery().cut_off_calls(session).context("what the session left half done")?;
    let log = State::load(&*state.store, session).await?;
    if log.task.as_ref().is_some_and(|task| task.checking) {
        // Changes by checks are journaled as theirs, and go back with the rest.
        let sealed =
            workspace.recovery().recover_checks(session).context("what the session's checks left")?;
        recovered.violations.extend(sealed.violations);
    }
    let checkpoint = log.task.as_ref().and_then(|task| task.checkpoint).unwrap_or_default();
    for call in calls {
        let open = log.calls.iter().find(|open| open.call.id == call);
        let started = open.and_then(|open| open.record.started_at()).unwrap_or(UnixMillis(0));
        let sealed = workspace
            .recovery()
            .recover_call(&CheckpointId(checkpoint), session, &call, started)
            .context("what the session's last call left")?;
        recovered.steps += usize::from(!sealed.restored.is_empty());
        recovered.violations.extend(sealed.violations);
        recovered.restored.extend(sealed.restored);
        recovered.left.extend(sealed.left.into_iter().map(|(change, reason)| (change.path, reason)));
    }
    Ok(recovered)
}

pub(crate) fn undo_to_target(
    workspace: &Workspace,
    target: UndoTarget,
    recovered: RecoveredCalls,
) -> Result<UndoResult, HostError> {
    let mut report = match workspace.undo(target) {
        // Everything went back already, with the calls that were cut off.
        Err(WorkspaceError::NothingToUndo { .. } | WorkspaceError::NothingSince { .. })
            if !(recovered.restored.is_empty() && recovered.violations.is_empty()) =>
        {
            UndoReport {
                sessions: recovered.sessions,
                restored: Vec::new(),
                conflicts: Vec::new(),
                dropped: false,
                damaged: false,
            }
        }
        report => report.context("undo")?,
    };
    let steps = recovered.steps + usize::from(!report.restored.is_empty());
    for change in recovered.restored {
        report.restored.retain(|other| other.path != change.path);
        report.restored.push(change);
    }
    report.restored.sort_by(|one, other| one.path.cmp(&other.path));
    for (path, reason) in recovered.left {
        if !report.conflicts.iter().any(|(other, _)| *other == path) {
            report.conflicts.push((path, reason));
        }
    }
    let violations = recovered.violations;
    Ok(UndoResult { report, sessions: Vec::new(), steps, violations, commits: Vec::new() })
}
