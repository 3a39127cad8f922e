//! Finds, lists and claims sessions.

use std::collections::HashMap;
use std::path::Path;

use journeyman_agent::agents::is_agent;
use journeyman_agent::candidates;
use journeyman_protocol::{RunOutcome, RunReport, Seq, SessionId, UnixMillis};
use journeyman_store::{SESSION_STATUS_READY, SessionSummary, Store as _, StoreError};
use journeyman_workspace::CopyInfo;
use serde::Serialize;

use crate::config::Environment;
use crate::format::{describe_age, outcome_name, preview};
use crate::root::find_root;
use crate::state::{StateDirs, find_session_log, now};
use crate::verified_trees::{CurrentTrees, read_last_report};
use crate::{Context as _, HostError};

/// Duration of a short command's claim, in milliseconds. The command releases the claim at its end,
/// and a process that dies loses the claim immediately.
const CLAIM_DURATION_MS: u64 = 10 * 60 * 1000;
/// Maximum number of sessions searched for the newest one with candidates.
const MAX_SEARCHED_SESSIONS: usize = 50;

/// The directory beneath a project's state that holds a directory for each session's copy.
pub(crate) const COPIES_DIRECTORY: &str = "work";

/// The state of a session that a process works on.
pub const SESSION_STATE_RUNNING: &str = "running";
/// The state of a session that no process works on and that has no end.
pub const SESSION_STATE_CUT_OFF: &str = "cut_off";
/// The state of a session whose last task changed nothing, such as one that answered a question.
pub const SESSION_STATE_NO_CHANGES: &str = "no_changes";

/// Makes the id of a new session.
#[must_use]
pub fn new_session_id() -> SessionId {
    SessionId::new(now(), fastrand::u64(..))
}

/// The state of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionState {
    /// [`SESSION_STATE_RUNNING`], [`SESSION_STATE_CUT_OFF`], or how the last task ended.
    pub status: String,
    /// The process that works on the session.
    pub holder: Option<String>,
}

/// Returns the state of a session.
///
/// # Errors
/// [`HostError::Failed`] where the log can't be read.
pub async fn session_state(state: &StateDirs, session: &SessionSummary) -> Result<SessionState, HostError> {
    let holder = match state.store.lease_holder(&session.id, now()).await {
        // Deleted since it was listed.
        Err(StoreError::UnknownSession { .. }) => None,
        holder => holder.context("the session log")?,
    };
    let status = match &holder {
        Some(_) => SESSION_STATE_RUNNING.to_owned(),
        None if session.status == SESSION_STATUS_READY => SESSION_STATE_CUT_OFF.to_owned(),
        None => session.status.clone(),
    };
    Ok(SessionState { status, holder })
}

/// A session in a list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedSession {
    /// The session.
    pub id: SessionId,
    /// The project's root.
    pub root: String,
    /// One line for people.
    pub title: String,
    /// As [`SessionState::status`]; [`SESSION_STATE_NO_CHANGES`] where that would be `unverified`,
    /// and there is nothing to verify.
    pub status: String,
    /// As [`SessionState::holder`].
    pub holder: Option<String>,
    /// The time of its creation.
    pub created: UnixMillis,
    /// The time of its last change.
    pub updated: UnixMillis,
    /// Its last entry.
    pub last: Seq,
    /// The kind of the copy that its work is kept in.
    pub copy: Option<String>,
    /// The number of files that the copy changes, where that is known with the copy closed.
    pub copy_changes: Option<usize>,
    /// True if the project's files are no longer those that the session verified; `None` where it
    /// verified nothing in the project.
    pub changed_since: Option<bool>,
}

/// A copy that a session's work is kept in.
#[derive(Debug, Clone)]
pub struct KeptCopy {
    /// The copy.
    pub info: CopyInfo,
    /// The number of files that it changes, where that is known with the copy closed.
    pub changes: Option<usize>,
}

/// Lists at most `limit` sessions, the newest first: those of one root, or of all.
///
/// # Errors
/// [`HostError::Failed`] where the log can't be read.
pub async fn list_sessions(
    state: &StateDirs,
    root: Option<&str>,
    limit: usize,
) -> Result<Vec<ListedSession>, HostError> {
    let mut copies: HashMap<String, Vec<KeptCopy>> = HashMap::new();
    let mut trees = CurrentTrees::new(state);
    let mut listed = Vec::new();
    for session in list_user_sessions(state, root, limit).await? {
        let kept = copies
            .entry(session.root.clone())
            .or_insert_with(|| list_kept_copies(state, Path::new(&session.root)))
            .iter()
            .find(|copy| copy.info.session == session.id);
        let copy_changes = kept.and_then(|copy| copy.changes);
        let copy = kept.map(|copy| copy.info.tier.to_string());
        let SessionState { status, holder } = session_state(state, &session).await?;
        let report = read_last_report(state, &session).await?;
        let changed_since = report.as_ref().and_then(|report| trees.has_changed(&session, report));
        let is_unchanged = report.is_some_and(|report| has_no_changes(&status, &report));
        let status = if is_unchanged { SESSION_STATE_NO_CHANGES.to_owned() } else { status };
        let SessionSummary { id, root, title, created, updated, last, .. } = session;
        listed.push(ListedSession {
            id,
            root,
            title,
            status,
            holder,
            created,
            updated,
            last,
            copy,
            copy_changes,
            changed_since,
        });
    }
    Ok(listed)
}

/// Returns true if a session's last task ended without changes to verify.
fn has_no_changes(status: &str, report: &RunReport) -> bool {
    status == outcome_name(RunOutcome::Unverified)
        && report.outcome == RunOutcome::Unverified
        && report.changes.is_empty()
        && report.undo.is_none()
}

/// Describes a session by its id, task and last use.
#[must_use]
pub fn describe_session(session: &SessionSummary) -> String {
    let age = describe_age(now(), session.updated);
    format!("session {} (\"{}\", {age})", session.id, preview(&session.title))
}

/// Finds the one session that `word` names in the current directory, as [`find_session_of`] does.
///
/// # Errors
/// [`HostError::Usage`] where no session or several sessions match.
pub async fn find_session(
    state: &StateDirs,
    environment: &Environment,
    word: &str,
) -> Result<SessionSummary, HostError> {
    find_session_of(state, environment, None, word).await
}

/// Finds the one session that `word` names: by the beginning of its id, by its number in the list
/// of `directory` or of the current one (1 is the newest), or as `last`, the newest.
///
/// # Errors
/// [`HostError::Usage`] where no session or several sessions match.
pub async fn find_session_of(
    state: &StateDirs,
    environment: &Environment,
    directory: Option<&Path>,
    word: &str,
) -> Result<SessionSummary, HostError> {
    if word.is_empty() {
        return Err(HostError::usage("the session's id is empty; `jm sessions` lists the sessions"));
    }
    // A query would create an empty log, and then no command could tell any more that the log is
    // gone.
    let log_exists = find_session_log(&state.dir).is_some();
    if word == "last" {
        return find_newest_session(state, &find_root(environment, directory)?).await;
    }
    if let Some(number) = parse_session_number(word) {
        return find_numbered_session(state, &find_root(environment, directory)?, number).await;
    }
    let mut found = match log_exists {
        true => state.store.find_sessions(word).await.context("the session log")?,
        false => Vec::new(),
    };
    match (found.pop(), found.is_empty()) {
        (Some(session), true) => Ok(session),
        (Some(_), false) => Err(HostError::usage(format_args!(
            "`{word}` is the beginning of {} sessions; give more of the id",
            found.len() + 1
        ))),
        (None, _) => Err(HostError::usage(format_args!(
            "no session begins with `{word}`; `jm sessions --all` lists all"
        ))),
    }
}

/// Returns the number that `word` is: session 1 of a directory is its newest. An id begins with a
/// zero.
fn parse_session_number(word: &str) -> Option<usize> {
    let is_number =
        word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit()) && !word.starts_with('0');
    word.parse().ok().filter(|_| is_number)
}

/// Returns the newest session of the project at `root`.
///
/// # Errors
/// [`HostError::Usage`] where there is none.
async fn find_newest_session(state: &StateDirs, root: &Path) -> Result<SessionSummary, HostError> {
    let newest = list_newest(state, root, 1).await?;
    newest.into_iter().next().ok_or_else(|| {
        HostError::usage("no session was run in this directory; `jm sessions --all` lists all")
    })
}

/// Returns the session that `jm sessions` lists under a number.
async fn find_numbered_session(
    state: &StateDirs,
    root: &Path,
    number: usize,
) -> Result<SessionSummary, HostError> {
    let mut listed = list_newest(state, root, number).await?;
    let count = listed.len();
    listed.pop().filter(|_| count == number).ok_or_else(|| {
        HostError::usage(format_args!(
            "there is no session {number} in this directory, which has {count}; `jm sessions` lists them"
        ))
    })
}

/// Returns at most `limit` sessions of a directory, the newest first.
pub(crate) async fn list_newest(
    state: &StateDirs,
    root: &Path,
    limit: usize,
) -> Result<Vec<SessionSummary>, HostError> {
    // A query would create an empty log, and then no command could tell any more that the log is
    // gone.
    if find_session_log(&state.dir).is_none() {
        return Ok(Vec::new());
    }
    list_user_sessions(state, Some(&root.display().to_string()), limit).await
}

/// Returns at most `limit` sessions that a person started (no agents), newest first.
///
/// # Errors
/// [`HostError::Failed`] where the session log can't be read.
pub async fn list_user_sessions(
    state: &StateDirs,
    root: Option<&str>,
    limit: usize,
) -> Result<Vec<SessionSummary>, HostError> {
    let mut asked = limit;
    loop {
        let page = state.store.sessions(root, asked).await.context("the session log")?;
        let is_all = page.len() < asked;
        let mut kept = Vec::with_capacity(limit.min(page.len()));
        for session in page {
            if kept.len() < limit && !is_agent(&*state.store, &session.id).await? {
                kept.push(session);
            }
        }
        if is_all || kept.len() == limit {
            return Ok(kept);
        }
        asked = asked.saturating_mul(4);
    }
}

/// Returns the newest session of the current directory whose task was given to candidates.
///
/// # Errors
/// [`HostError::Usage`] where there is none.
pub async fn find_newest_with_candidates(
    state: &StateDirs,
    environment: &Environment,
) -> Result<SessionSummary, HostError> {
    let here = find_root(environment, None)?.display().to_string();
    let sessions =
        state.store.sessions(Some(&here), MAX_SEARCHED_SESSIONS).await.context("the session log")?;
    for session in sessions {
        if candidates::list_started_candidates(&*state.store, &session.id).await?.is_some() {
            return Ok(session);
        }
    }
    Err(HostError::usage(
        "no task of this directory was given to candidates; jm run --candidates N \"TASK\" does",
    ))
}

/// Returns the copies of the project at `root`, without opening a project that can't have any.
#[must_use]
pub fn list_kept_copies(state: &StateDirs, root: &Path) -> Vec<KeptCopy> {
    if !state.project_dir(root).join(COPIES_DIRECTORY).is_dir() {
        return Vec::new();
    }
    // A project that can't be opened is reported by the commands that need it.
    let Ok(workspace) = state.open_workspace(root) else { return Vec::new() };
    let copies = workspace.copies().list().unwrap_or_default().into_iter();
    let with_changes = |info: CopyInfo| {
        let changes = workspace.landings().stored_changes(&info.session).ok().flatten();
        KeptCopy { info, changes: changes.map(|changes| changes.files().len()) }
    };
    copies.map(with_changes).collect()
}

/// Returns this process's name as a holder, shown to other processes.
#[must_use]
pub fn holder_name(command: &str) -> String {
    format!("jm {command}, process {}", std::process::id())
}

/// An exclusive claim on a session, so that a short command doesn't interfere with a run.
pub struct SessionClaim<'a> {
    state: &'a StateDirs,
    session: SessionId,
    holder: String,
}

impl<'a> SessionClaim<'a> {
    /// Claims a session.
    ///
    /// # Errors
    /// [`HostError::Usage`] while another process has the session, naming that process.
    pub async fn take(state: &'a StateDirs, session: &SessionId, command: &str) -> Result<Self, HostError> {
        let holder = holder_name(command);
        state.store.acquire_lease(session, &holder, now(), CLAIM_DURATION_MS).await?;
        Ok(Self { state, session: session.clone(), holder })
    }

    /// Does `work` on a session that is claimed meanwhile. Opening the session in `work` releases
    /// the claim earlier.
    ///
    /// # Errors
    /// [`HostError::Usage`] while another process has the session, and the error of `work`.
    pub async fn hold<T>(
        state: &StateDirs,
        session: &SessionId,
        command: &str,
        work: impl Future<Output = Result<T, HostError>>,
    ) -> Result<T, HostError> {
        let claim = SessionClaim::take(state, session, command).await?;
        let done = work.await;
        claim.release().await;
        done
    }

    /// Claims all of the sessions, or none.
    ///
    /// # Errors
    /// [`HostError::Usage`] while another process has one of them.
    pub async fn take_all(
        state: &'a StateDirs,
        sessions: &[SessionSummary],
        command: &str,
    ) -> Result<Vec<Self>, HostError> {
        let mut claims = Vec::with_capacity(sessions.len());
        for session in sessions {
            match Self::take(state, &session.id, command).await {
                Ok(claim) => claims.push(claim),
                Err(refusal) => {
                    Self::release_all(claims).await;
                    return Err(refusal);
                }
            }
        }
        Ok(claims)
    }

    /// Releases the claim.
    pub async fn release(self) {
        // The claim ends with the process, too.
        self.state.store.release_lease(&self.session, &self.holder).await.ok();
    }

    /// Releases the claims.
    pub async fn release_all(claims: Vec<Self>) {
        for claim in claims {
            claim.release().await;
        }
    }
}
