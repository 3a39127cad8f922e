//! Forks, snapshots, imports and deletes whole sessions.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use journeyman_agent::agents::{AgentParent, agent_parent, list_descendant_agents};
use journeyman_agent::{
    AgentError, ForkPoint, SESSION_STATUS_IMPORTED, UndoneCompaction, fork, snapshot, undo_compaction,
};
use journeyman_protocol::{Seq, SessionId};
use journeyman_store::{ImportAs, SessionSummary, Store as _, StoreError, import};
use serde::Serialize;

use crate::config::Environment;
use crate::landing::{check_no_kept_work, gone_on_error};
use crate::sessions::{SessionClaim, find_session, new_session_id};
use crate::state::{StateDirs, now};
use crate::{Context as _, HostError};

/// A session that begins with the entries of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForkedSession {
    /// The new session.
    pub id: SessionId,
    /// The session that it begins as.
    pub parent: SessionId,
    /// The last entry that both have.
    pub at: Seq,
}

/// Forks the session that `word` names: at its end, at the number of an entry, or at a snapshot.
///
/// # Errors
/// [`HostError::Usage`] where there is no such session or place.
pub async fn fork_session(
    environment: &Environment,
    state: &StateDirs,
    word: &str,
    at: Option<&str>,
) -> Result<ForkedSession, HostError> {
    let parent = find_session(state, environment, word).await?.id;
    let point = match at.map(|place| (place, place.parse())) {
        None => ForkPoint::End,
        Some((_, Ok(seq))) => ForkPoint::Seq(Seq(seq)),
        Some((name, Err(_))) => ForkPoint::Snapshot(name.to_owned()),
    };
    let id = new_session_id();
    let at = fork(&*state.store, &parent, &point, &id, &journeyman_agent::Clock::new(now))
        .await
        .map_err(into_usage_error)?;
    Ok(ForkedSession { id, parent, at })
}

/// Creates a snapshot `name` at the last entry of the session that `word` names. Returns the
/// session and the entry.
///
/// # Errors
/// [`HostError::Usage`] for a wrong name, and while another process works on the session.
pub async fn create_snapshot(
    environment: &Environment,
    state: &StateDirs,
    word: &str,
    name: &str,
) -> Result<(SessionId, Seq), HostError> {
    if name.parse::<u64>().is_ok() {
        return Err(HostError::usage(format_args!(
            "`{name}` can't name a snapshot: `jm fork --at {name}` begins at the entry of that number"
        )));
    }
    let session = find_session(state, environment, word).await?.id;
    let claim = SessionClaim::take(state, &session, "snapshot").await?;
    let named = snapshot(&*state.store, &session, name, &journeyman_agent::Clock::new(now)).await;
    claim.release().await;
    Ok((session, named.map_err(into_usage_error)?))
}

/// Undoes the last compaction of a session. Returns the undone compaction.
///
/// # Errors
/// [`HostError::Usage`] while another process works on the session, and where no compaction holds.
pub async fn undo_session_compaction(
    state: &StateDirs,
    session: &SessionId,
) -> Result<UndoneCompaction, HostError> {
    let claim = SessionClaim::take(state, session, "compact").await?;
    let undone = undo_compaction(&*state.store, session, &journeyman_agent::Clock::new(now))
        .await
        .map_err(into_usage_error);
    claim.release().await;
    undone
}

/// Describes which messages an undone compaction restored, and which not.
#[must_use]
pub fn describe_undone_compaction(undone: &UndoneCompaction, id: &SessionId) -> String {
    let UndoneCompaction { at, earlier } = undone;
    let hold = match earlier {
        0 => {
            return format!(
                "the conversation of session {id} is whole again: what entry {at} had left out is back"
            );
        }
        1 => "an earlier compaction still holds".to_owned(),
        many => format!("{many} earlier compactions still hold"),
    };
    format!(
        "what entry {at} had left out of the conversation of session {id} is back; {hold}. jm compact --undo {id} takes \
         the newest one back"
    )
}

/// Converts "no such entry" into a usage error.
fn into_usage_error(error: AgentError) -> HostError {
    match error {
        AgentError::UnknownSnapshot { .. }
        | AgentError::SnapshotName { .. }
        | AgentError::NotShortened { .. }
        | AgentError::NothingToFork { .. } => HostError::usage(error),
        other => other.into(),
    }
}

/// Imports the exported session of a file, or of standard input for `-`, with its agents. With
/// `is_copy` they get new ids.
///
/// # Errors
/// As [`import_session`], and [`HostError::Usage`] for a file that can't be read.
pub async fn import_session_file(
    environment: &Environment,
    state: &StateDirs,
    file: &Path,
    is_copy: bool,
) -> Result<SessionId, HostError> {
    let name = if is_copy { ImportAs::Copy(new_session_id()) } else { ImportAs::Itself };
    if file.as_os_str() == "-" {
        return import_session(state, &mut BufReader::new(std::io::stdin()), name).await;
    }
    let path = environment.cwd.join(file);
    let file = File::open(&path)
        .map_err(|error| HostError::usage(format_args!("cannot read {}: {error}", path.display())))?;
    import_session(state, &mut BufReader::new(file), name).await
}

/// Imports an exported session with its agents, under their own or new ids.
///
/// # Errors
/// [`HostError::Usage`] for a text that is no export, and for a session that exists already.
pub async fn import_session(
    state: &StateDirs,
    source: &mut (dyn BufRead + Send),
    name: ImportAs,
) -> Result<SessionId, HostError> {
    let status = Some(SESSION_STATUS_IMPORTED);
    let imported = import(&*state.store, source, name, status, now()).await.map_err(|error| match error {
        StoreError::SessionExists { session } => HostError::usage(format_args!(
            "session {session} is here already; --copy takes it in under a new id"
        )),
        error @ StoreError::BadExport { .. } => HostError::usage(error),
        other => other.into(),
    })?;
    Ok(imported.session)
}

/// Finds the sessions that `words` name, each once, whose work is not kept in a copy.
///
/// # Errors
/// [`HostError::Usage`] where a word names no session, for a session whose work is kept, and for an
/// agent of a session that is none of them.
pub async fn find_deletable(
    environment: &Environment,
    state: &StateDirs,
    words: &[String],
) -> Result<Vec<SessionSummary>, HostError> {
    let mut sessions: Vec<SessionSummary> = Vec::new();
    for word in words {
        let found = find_session(state, environment, word).await?;
        if sessions.iter().all(|session| session.id != found.id) {
            sessions.push(found);
        }
    }
    for session in &sessions {
        check_no_kept_work(state, &session.id, Path::new(&session.root)).await?;
        if let Some(parent) = find_remaining_root(state, &session.id, &sessions).await? {
            return Err(HostError::usage(format_args!(
                "session {} is an agent of session {parent}, and is deleted with it: jm delete {parent}",
                session.id
            )));
        }
    }
    Ok(sessions)
}

/// Returns the root session of an agent, if the root exists and isn't among `deleted`.
async fn find_remaining_root(
    state: &StateDirs,
    session: &SessionId,
    deleted: &[SessionSummary],
) -> Result<Option<SessionId>, HostError> {
    let Some(AgentParent { root, .. }) = agent_parent(&*state.store, session).await? else {
        return Ok(None);
    };
    let is_deleted = deleted.iter().any(|deleted| deleted.id == root);
    match state.store.read(&root, Seq::START, 1).await {
        Ok(_) if !is_deleted => {
            let agents = list_descendant_agents(&*state.store, &root).await?;
            Ok(agents.contains(session).then_some(root))
        }
        Ok(_) | Err(StoreError::UnknownSession { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes a session and its agents from the log. Returns the number of the agents.
///
/// # Errors
/// [`HostError::Usage`] while another process works on the session, for one that has gone on since
/// it was found, and for one whose work is kept.
pub async fn delete_session(state: &StateDirs, session: &SessionSummary) -> Result<usize, HostError> {
    let SessionSummary { id, root, .. } = session;
    SessionClaim::hold(state, id, "delete", async {
        // A person may have been asked since it was found.
        let found = state.store.find_sessions(id.as_str()).await.context("the session log")?;
        if found.iter().any(|found| found.id == *id && found.last != session.last) {
            return Err(gone_on_error(id));
        }
        check_no_kept_work(state, id, Path::new(root)).await?;
        delete_with_agents(state, id).await
    })
    .await
}

/// Removes a claimed session and its agents. The session comes last: as long as it is there its
/// agents are found.
async fn delete_with_agents(state: &StateDirs, session: &SessionId) -> Result<usize, HostError> {
    let agents = list_descendant_agents(&*state.store, session).await?;
    for agent in agents.iter().rev() {
        let claim = SessionClaim::take(state, agent, "delete").await?;
        let removed = state.store.delete(agent).await;
        claim.release().await;
        removed.context("the session log")?;
    }
    state.store.delete(session).await.context("the session log")?;
    Ok(agents.len())
}

#[cfg(test)]
mod tests;
