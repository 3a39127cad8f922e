//! Landing or discarding work that was kept in a session's copy.

use std::path::{Path, PathBuf};

use journeyman_agent::isolation::{
    self as copies, CommitOptions, LandContext, LandOutcome, LandReport, LandRequest, UnverifiedPolicy,
};
use journeyman_agent::{AgentError, ChecksSetting, State, candidates};
use journeyman_protocol::{Seq, SessionId};
use journeyman_store::{Store as _, StoreError};
use journeyman_workspace::{Workspace, WorkspaceError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::builder::load_default_policy;
use crate::config::Environment;
use crate::delivery::confirm_unsandboxed_hooks;
use crate::project::ProjectContext;
use crate::root::find_root;
use crate::sessions::{COPIES_DIRECTORY, find_session, holder_name};
use crate::settings::{RunOptions, resolve_settings};
use crate::state::{StateDirs, find_session_log};
use crate::{Confirmations, Context as _, HostError};

/// A session whose work is kept in a copy of a project.
#[derive(Debug, Clone)]
pub struct KeptWork {
    /// The session.
    pub session: SessionId,
    /// The root of its project.
    pub root: PathBuf,
    /// The last entry of its log when it was found; `None` for a session that isn't in the log.
    pub last: Option<Seq>,
}

impl KeptWork {
    /// Finds the end of the log of a session whose work is kept.
    pub(crate) async fn new(state: &StateDirs, session: SessionId, root: PathBuf) -> Result<Self, HostError> {
        let found = state.store.find_sessions(session.as_str()).await.context("the session log")?;
        let last = found.into_iter().find(|found| found.id == session).map(|found| found.last);
        Ok(Self { session, root, last })
    }
}

/// Finds the session that `word` names, or the only session of the current directory whose work is
/// kept.
///
/// # Errors
/// [`HostError::Usage`] where no session or several sessions match, or the session's candidates
/// have the work.
pub async fn find_kept_work(
    state: &StateDirs,
    environment: &Environment,
    word: Option<&str>,
) -> Result<KeptWork, HostError> {
    if let Some(word) = word {
        let found = find_session(state, environment, word).await?;
        if candidates::list_started_candidates(&*state.store, &found.id).await?.is_some() {
            return Err(HostError::usage(format_args!(
                "session {id} has no copy of its own, its candidates have: jm candidates {id} compares them, jm land \
                 and jm discard take one, jm discard --all {id} drops them all",
                id = found.id
            )));
        }
        return Ok(KeptWork { session: found.id, root: PathBuf::from(found.root), last: Some(found.last) });
    }
    let here = find_root(environment, None)?;
    let copies = state.open_workspace(&here)?.copies().list().context("looking for copies")?;
    match copies.as_slice() {
        [only] => KeptWork::new(state, only.session.clone(), here).await,
        [] => Err(HostError::usage("no session's work is kept in a copy of this directory")),
        several => Err(HostError::usage(format_args!(
            "the work of {} sessions is kept in copies of this directory; say which: {}",
            several.len(),
            several.iter().map(|copy| copy.session.to_string()).collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// Finds a copy of the current directory whose session isn't in the log any more.
async fn find_orphaned_copy(
    environment: &Environment,
    state: &StateDirs,
    word: Option<&str>,
) -> Result<Option<KeptWork>, HostError> {
    let Some(word) = word.filter(|word| !word.is_empty()) else { return Ok(None) };
    // A word that several sessions begin with names none of their copies.
    let has_log = find_session_log(&state.dir).is_some();
    if has_log && !state.store.find_sessions(word).await.context("the session log")?.is_empty() {
        return Ok(None);
    }
    let here = find_root(environment, None)?;
    let copies = state.open_workspace(&here)?.copies().list().context("looking for copies")?;
    let mut found = copies.into_iter().filter(|copy| copy.session.as_str().starts_with(word));
    Ok(match (found.next(), found.next()) {
        (Some(only), None) => Some(KeptWork { session: only.session, root: here, last: None }),
        _ => None,
    })
}

/// Opens the session's project for landing, with the session's own checks.
///
/// # Errors
/// [`HostError`] where the configuration is wrong or needs trust, or the project can't be opened.
pub async fn open_land_context(
    environment: &Environment,
    state: &StateDirs,
    work: &KeptWork,
    trust_project: bool,
    command: &str,
    prompts: Option<&dyn Confirmations>,
) -> Result<LandContext, HostError> {
    let root = find_root(environment, Some(&work.root))?;
    let options = RunOptions { trust_project, ..RunOptions::default() };
    let settings = resolve_settings(environment, &root, &options, None, prompts)?;
    let asked = match State::load(&*state.store, &work.session).await {
        Ok(session) => session.setting.and_then(|setting| setting.asked.checks),
        Err(AgentError::Store(StoreError::UnknownSession { .. })) => None,
        Err(error) => return Err(error.into()),
    };
    let checks =
        asked.or_else(|| settings.config.checks.clone().map(ChecksSetting::Custom)).unwrap_or_default();
    let holder = holder_name(command);
    let project = ProjectContext::open(environment, state, &root, &settings.config, Vec::new(), holder)?;
    let policy = load_default_policy(&settings.config, None, environment, &root)?;
    Ok(LandContext { known_end: work.last, ..project.land_context(checks, policy) })
}

/// Lands the copy of one session. With `prompts`, asks the person about hooks outside of the
/// sandbox, and about work that nothing verified. Returns `None` where the person refuses.
///
/// # Errors
/// As [`land_work`], and where the person can't be reached.
pub async fn land_with_prompts(
    context: &LandContext,
    session: &SessionId,
    mut request: LandRequest,
    prompts: Option<&dyn Confirmations>,
    stop: &CancellationToken,
) -> Result<Option<LandReport>, HostError> {
    let Some(prompts) = prompts else { return land_work(context, session, &request, stop).await.map(Some) };
    if !request.dry_run {
        request.commit = confirm_commit(context, session, &request, prompts, stop).await?;
    }
    let report = land_work(context, session, &request, stop).await?;
    if report.end != LandOutcome::Unverified {
        return Ok(Some(report));
    }
    if !prompts.confirm_unverified(session).context("asking")? {
        return Ok(None);
    }
    request.unverified = UnverifiedPolicy::Land;
    land_work(context, session, &request, stop).await.map(Some)
}

/// Returns the commit of `request` after a person has seen what it would run without the sandbox.
async fn confirm_commit(
    context: &LandContext,
    session: &SessionId,
    request: &LandRequest,
    prompts: &dyn Confirmations,
    stop: &CancellationToken,
) -> Result<Option<CommitOptions>, HostError> {
    let (Some(commit), Some(committer)) = (&request.commit, &context.committer) else { return Ok(None) };
    let dry_run = LandRequest { dry_run: true, commit: None, ..request.clone() };
    let would_land = land_work(context, session, &dry_run, stop).await?;
    let paths: Vec<_> = would_land.changes.iter().map(|change| change.path.clone()).collect();
    let checked = committer.check_commit(commit, &paths, stop).await;
    Ok(Some(confirm_unsandboxed_hooks(commit, checked, &would_land.diff, prompts)?))
}

/// Lands the copy of one session.
///
/// # Errors
/// [`HostError::Usage`] where the session has no copy (any more); [`HostError::Failed`] for
/// failures of the disk.
pub async fn land_work(
    context: &LandContext,
    session: &SessionId,
    request: &LandRequest,
    stop: &CancellationToken,
) -> Result<LandReport, HostError> {
    copies::land_copy(context, session, request, stop).await.map_err(into_usage_error)
}

/// Returns a report as JSON, with the exit code of a program that ends with it.
///
/// # Errors
/// [`HostError::Failed`] for a report that JSON can't hold, which there is none of.
pub fn land_report_to_json(report: &LandReport) -> Result<Value, HostError> {
    let mut object = serde_json::to_value(report).context("the report")?;
    if let Some(fields) = object.as_object_mut() {
        fields.insert("exit_code".to_owned(), report.exit_code().into());
    }
    Ok(object)
}

/// Returns the flags with which `jm land` brings in what this report left in the copy.
#[must_use]
pub fn flags_to_land(report: &LandReport) -> &'static str {
    match report.end {
        LandOutcome::Unverified => " --unverified",
        LandOutcome::Conflicts => " --on-conflict markers|mine|theirs",
        LandOutcome::WouldLand if !report.copy.conflicts.is_empty() => " --on-conflict markers|mine|theirs",
        _ => "",
    }
}

/// The work that was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscardResult {
    /// This number of changed files.
    Files(u64),
    /// The copy of a session that isn't in the log any more.
    Orphan,
}

/// Finds the work that can be discarded: of the session that `word` names, which may be gone from
/// the log, or of the only session of the current directory whose work is kept.
///
/// # Errors
/// As [`find_kept_work`], and [`HostError::Usage`] where the session has no copy (any more).
pub async fn find_discardable(
    environment: &Environment,
    state: &StateDirs,
    word: Option<&str>,
) -> Result<KeptWork, HostError> {
    let work = match find_kept_work(state, environment, word).await {
        Err(unknown) => find_orphaned_copy(environment, state, word).await?.ok_or(unknown)?,
        Ok(work) => work,
    };
    let workspace = state.open_workspace(&find_root(environment, Some(&work.root))?)?;
    check_copies_exist(&workspace, std::slice::from_ref(&work.session))?;
    Ok(work)
}

/// Discards the copy of one session with the changes in it.
///
/// # Errors
/// As [`open_land_context`] and [`land_work`].
pub async fn discard_work(
    environment: &Environment,
    state: &StateDirs,
    work: &KeptWork,
) -> Result<DiscardResult, HostError> {
    // Nothing is run, so nothing of the project's configuration needs trust.
    let context = open_land_context(environment, state, work, true, "discard", None).await?;
    match copies::discard_copy(&context, &work.session).await {
        Err(AgentError::Store(StoreError::UnknownSession { .. })) => {
            let workspace = state.open_workspace(&find_root(environment, Some(&work.root))?)?;
            workspace.copies().discard(&work.session).context("removing the copy")?;
            Ok(DiscardResult::Orphan)
        }
        discarded => Ok(DiscardResult::Files(discarded.map_err(into_usage_error)?)),
    }
}

/// Refuses sessions that have no copy in the project.
fn check_copies_exist(workspace: &Workspace, sessions: &[SessionId]) -> Result<(), HostError> {
    let copies = workspace.copies().list().context("looking for copies")?;
    let Some(unknown) = sessions.iter().find(|id| copies.iter().all(|copy| copy.session != **id)) else {
        return Ok(());
    };
    let session = unknown.clone();
    Err(HostError::usage(match workspace.copies().is_landed(unknown).context("looking for copies")? {
        true => WorkspaceError::AlreadyLanded { session },
        false => WorkspaceError::UnknownCopy { session },
    }))
}

/// Converts "no such copy" and "it has gone on" into usage errors.
#[must_use]
pub fn into_usage_error(error: AgentError) -> HostError {
    match error {
        AgentError::Store(StoreError::Conflict { session, .. }) => gone_on_error(&session),
        AgentError::Workspace(
            error @ (WorkspaceError::UnknownCopy { .. } | WorkspaceError::AlreadyLanded { .. }),
        ) => HostError::usage(error),
        other => other.into(),
    }
}

/// Returns the error for a session that another process has worked on since the user looked at it.
pub(crate) fn gone_on_error(session: &SessionId) -> HostError {
    HostError::usage(format_args!(
        "session {session} has gone on in another process meanwhile, and nothing was done; look at it again (jm show \
         {session}) before you repeat the command"
    ))
}

/// Refuses to delete a session while its work, or its candidates' work, is kept in a copy.
///
/// # Errors
/// [`HostError::Usage`] naming what to do with the copy first.
pub async fn check_no_kept_work(
    state: &StateDirs,
    session: &SessionId,
    root: &Path,
) -> Result<(), HostError> {
    let candidates = candidates::list_started_candidates(&*state.store, session).await?.unwrap_or_default();
    let directory = state.project_dir(root).join(COPIES_DIRECTORY);
    if !candidates.iter().chain([session]).any(|id| directory.join(id.as_str()).exists()) {
        return Ok(());
    }
    let copies = state.open_workspace(root).and_then(|it| it.copies().list().context("looking for copies"));
    let copies = copies.map_err(|error| {
        HostError::usage(format_args!(
            "work of session {session} is kept in a copy, and its project can't be opened ({error}); bring {} back, \
             then land or discard the work first",
            root.display()
        ))
    })?;
    if copies.iter().any(|copy| candidates.contains(&copy.session)) {
        return Err(HostError::usage(format_args!(
            "work of the candidates of session {session} is kept in copies; land one or discard them all (jm discard \
             --all {session}) first"
        )));
    }
    if copies.iter().any(|copy| copy.session == *session) {
        return Err(HostError::usage(format_args!(
            "the work of session {session} is kept in its copy; land it (jm land {session}) or discard it (jm discard \
             {session}) first"
        )));
    }
    Ok(())
}
