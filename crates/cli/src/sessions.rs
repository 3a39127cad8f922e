//! `jm sessions`, `jm fork`, `jm snapshot`, `jm import` and `jm delete`: sessions as a whole.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use journeyman_agent::{AgentError, ForkPoint, fork as fork_session, snapshot as add_snapshot};
use journeyman_host::config::Environment;
use journeyman_host::landing::check_nothing_kept;
use journeyman_host::sessions::{
    STATUS_IMPORTED, SessionClaim, SessionState, find_session, kept_copies, new_session_id, session_state,
};
use journeyman_host::state::{format_minute, now, project_root};
use journeyman_host::{Context as _, HostError};
use journeyman_protocol::Seq;
use journeyman_sandbox::clean;
use journeyman_store::{ImportAs, SessionSummary, Store as _, StoreError, import as import_session};
use journeyman_workspace::CopyInfo;

use crate::args::{DeleteArgs, ForkArgs, ImportArgs, SessionsArgs, SnapshotArgs};
use crate::runtime::open_state;
use crate::stdout::say;
use crate::{color, prompt};

pub(crate) async fn list(environment: &Environment, args: &SessionsArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let here = project_root(environment, None)?.display().to_string();
    let only = if args.all { None } else { Some(here.as_str()) };
    let sessions = dirs.store.sessions(only, args.limit).await.context("the session log")?;
    if sessions.is_empty() && !args.json {
        let more = if args.all { "" } else { " here; --all lists those of other directories" };
        tell!("no sessions yet{more}");
    }
    let paint = color::stdout();
    let mut copies: HashMap<String, Vec<CopyInfo>> = HashMap::new();
    for session in sessions {
        let kept = copies
            .entry(session.root.clone())
            .or_insert_with(|| kept_copies(&dirs, Path::new(&session.root)))
            .iter()
            .find(|copy| copy.session == session.id)
            .map(|copy| copy.tier.to_string());
        let SessionState { status, holder } = session_state(&dirs, &session).await?;
        if args.json {
            let object = serde_json::json!({
                "id": session.id, "root": session.root, "title": session.title, "status": status, "holder": holder,
                "created": session.created, "updated": session.updated, "last": session.last,
                "copy": kept,
            });
            say!("{object}");
            continue;
        }
        let place = if args.all { format!("  {}", clean(session.root.as_bytes())) } else { String::new() };
        say!(
            "{}  {}  {:<17}  {}{}{}",
            paint.bold(session.id.as_str()),
            paint.dim(&format_minute(session.updated)),
            status.replace('_', " "),
            clean(session.title.as_bytes()),
            if kept.is_some() { paint.yellow("  (kept in its copy)") } else { String::new() },
            paint.dim(&place)
        );
    }
    Ok(0)
}

pub(crate) async fn fork(environment: &Environment, args: &ForkArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let parent = find_session(&dirs, environment, &args.session).await?;
    let point = match &args.at {
        None => ForkPoint::End,
        Some(place) => match place.parse() {
            Ok(seq) => ForkPoint::Seq(Seq(seq)),
            Err(_) => ForkPoint::Snapshot(place.clone()),
        },
    };
    let child = new_session_id();
    let at = fork_session(&*dirs.store, &parent.id, &point, &child, &now).await.map_err(as_usage)?;
    if args.json {
        say!("{}", serde_json::json!({ "id": child, "parent": parent.id, "at": at }));
        return Ok(0);
    }
    say!("{child}");
    tell!("a copy of {} up to entry {at}; the files are as they are", parent.id);
    tell!("go on with it: jm resume {child} \"MESSAGE\"");
    Ok(0)
}

pub(crate) async fn snapshot(environment: &Environment, args: &SnapshotArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = find_session(&dirs, environment, &args.session).await?;
    let claim = SessionClaim::take(&dirs, &session.id, "snapshot").await?;
    let named = add_snapshot(&*dirs.store, &session.id, &args.name, &now).await;
    claim.release().await;
    let at = named.map_err(as_usage)?;
    say!("entry {at} of session {} is `{}`", session.id, args.name);
    Ok(0)
}

/// A place that doesn't exist is the caller's mistake.
fn as_usage(error: AgentError) -> HostError {
    match error {
        AgentError::UnknownSnapshot { .. }
        | AgentError::SnapshotName { .. }
        | AgentError::NothingToFork { .. } => HostError::usage(error),
        other => other.into(),
    }
}

pub(crate) async fn import(environment: &Environment, args: &ImportArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let name = if args.copy { ImportAs::Copy(new_session_id()) } else { ImportAs::Itself };
    let taken = if args.file.as_os_str() == "-" {
        import_session(&*dirs.store, &mut BufReader::new(std::io::stdin()), name, now()).await
    } else {
        let path = environment.cwd.join(&args.file);
        let file = File::open(&path)
            .map_err(|error| HostError::usage(format_args!("cannot read {}: {error}", path.display())))?;
        import_session(&*dirs.store, &mut BufReader::new(file), name, now()).await
    };
    let id = taken.map_err(|error| match error {
        StoreError::SessionExists { session } => HostError::usage(format_args!(
            "session {session} is here already; --copy takes it in under a new id"
        )),
        error @ StoreError::BadExport { .. } => HostError::usage(error),
        other => other.into(),
    })?;
    dirs.store.set_status(&id, STATUS_IMPORTED, now()).await.context("the session log")?;
    say!("{id}");
    tell!("look at it: jm show {id}");
    tell!("go on with it: jm resume {id} -C DIRECTORY \"MESSAGE\"");
    Ok(0)
}

pub(crate) async fn delete(environment: &Environment, args: &DeleteArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let mut sessions: Vec<SessionSummary> = Vec::new();
    for word in &args.sessions {
        let found = find_session(&dirs, environment, word).await?;
        if sessions.iter().all(|session| session.id != found.id) {
            sessions.push(found);
        }
    }
    for session in &sessions {
        check_nothing_kept(&dirs, &session.id, Path::new(&session.root)).await?;
    }
    if !args.yes {
        for session in &sessions {
            tell!("  {}  {}", session.id, clean(session.title.as_bytes()));
        }
        let question = match sessions.len() {
            1 => "Remove this session for good? What it changed in the project stays. [y/N] ".to_owned(),
            many => format!(
                "Remove these {many} sessions for good? What they changed in the project stays. [y/N] "
            ),
        };
        if !prompt::confirm_removal(&question, "removes", "removed")? {
            return Ok(1);
        }
    }
    let paint = color::stdout();
    for session in sessions {
        // Taken first, so that nobody begins to write what is about to be gone.
        let claim = SessionClaim::take(&dirs, &session.id, "delete").await?;
        let removed = dirs.store.delete(&session.id).await;
        claim.release().await;
        removed.context("the session log")?;
        say!("removed {}  {}", session.id, paint.dim(&clean(session.title.as_bytes())));
    }
    Ok(0)
}
