//! `jm fork`, `jm snapshot`, `jm import`, `jm delete`: sessions as a whole.

use std::fs::File;
use std::io::{BufReader, IsTerminal as _};
use std::path::Path;

use anyhow::Context as _;
use journeyman_agent::{AgentError, ForkPoint, candidates, fork as branch, snapshot as name_place};
use journeyman_host::config::Environment;
use journeyman_protocol::{Seq, SessionId};
use journeyman_sandbox::clean;
use journeyman_store::{ImportAs, SessionSummary, Store as _, StoreError, import as take_in};

use crate::args::{DeleteArgs, ForkArgs, ImportArgs, SnapshotArgs};
use crate::edge::{Failure, House, now};
use crate::land::copies_of;
use crate::sessions::{Claim, STATUS_IMPORTED, find};
use crate::stdout::say;
use crate::{color, prompt};

pub(crate) async fn fork(environment: &Environment, args: &ForkArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let parent = find(&house, environment, &args.session).await?;
    let point = match &args.at {
        None => ForkPoint::End,
        Some(place) => match place.parse() {
            Ok(seq) => ForkPoint::Seq(Seq(seq)),
            Err(_) => ForkPoint::Snapshot(place.clone()),
        },
    };
    let child = new_id();
    let at = branch(&*house.store, &parent.id, &point, &child, &now).await.map_err(misplaced)?;
    if args.json {
        say!("{}", serde_json::json!({ "id": child, "parent": parent.id, "at": at }));
        return Ok(0);
    }
    say!("{child}");
    tell!("a copy of {} up to entry {at}; the files are as they are", parent.id);
    tell!("go on with it: jm resume {child} \"MESSAGE\"");
    Ok(0)
}

pub(crate) async fn snapshot(environment: &Environment, args: &SnapshotArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let session = find(&house, environment, &args.session).await?;
    let claim = Claim::take(&house, &session.id, "snapshot").await?;
    let named = name_place(&*house.store, &session.id, &args.name, &now).await;
    claim.give_back().await;
    let at = named.map_err(misplaced)?;
    say!("entry {at} of session {} is «{}»", session.id, args.name);
    Ok(0)
}

/// A place that isn't there is the caller's mistake.
fn misplaced(error: AgentError) -> Failure {
    match error {
        AgentError::UnknownSnapshot { .. }
        | AgentError::SnapshotName { .. }
        | AgentError::NothingToFork { .. } => Failure::usage(error),
        other => other.into(),
    }
}

fn new_id() -> SessionId {
    SessionId::new(now(), fastrand::u64(..))
}

pub(crate) async fn import(environment: &Environment, args: &ImportArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let name = if args.copy { ImportAs::Copy(new_id()) } else { ImportAs::Itself };
    let taken = if args.file.as_os_str() == "-" {
        take_in(&*house.store, &mut BufReader::new(std::io::stdin()), name, now()).await
    } else {
        let path = environment.cwd.join(&args.file);
        let file = File::open(&path)
            .map_err(|error| Failure::usage(format_args!("cannot read {}: {error}", path.display())))?;
        take_in(&*house.store, &mut BufReader::new(file), name, now()).await
    };
    let id = taken.map_err(|error| match error {
        StoreError::SessionExists { session } => Failure::usage(format_args!(
            "session {session} is here already; --copy takes it in under a new id"
        )),
        StoreError::BadExport { .. } => Failure::usage(error),
        other => Failure::Error(anyhow::Error::new(other).context("the session log")),
    })?;
    house.store.set_status(&id, STATUS_IMPORTED, now()).await.context("the session log")?;
    say!("{id}");
    tell!("look at it: jm show {id}");
    tell!("go on with it: jm resume {id} -C DIRECTORY \"MESSAGE\"");
    Ok(0)
}

pub(crate) async fn delete(environment: &Environment, args: &DeleteArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let mut sessions: Vec<SessionSummary> = Vec::new();
    for word in &args.sessions {
        let found = find(&house, environment, word).await?;
        if sessions.iter().all(|session| session.id != found.id) {
            sessions.push(found);
        }
    }
    for session in &sessions {
        let copies = copies_of(&house, Path::new(&session.root));
        let candidates = candidates::started(&*house.store, &session.id).await?.unwrap_or_default();
        if copies.iter().any(|copy| candidates.contains(&copy.session)) {
            return Err(Failure::usage(format_args!(
                "work of the candidates of session {id} is kept in copies; land one or discard them all (jm discard \
                 --all {id}) first",
                id = session.id
            )));
        }
        if copies.iter().any(|copy| copy.session == session.id) {
            return Err(Failure::usage(format_args!(
                "the work of session {id} is kept in its copy; land it (jm land {id}) or discard it (jm discard {id}) \
                 first",
                id = session.id
            )));
        }
    }
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage("nobody can be asked here; --yes removes without asking"));
        }
        for session in &sessions {
            tell!("  {}  {}", session.id, clean(session.title.as_bytes()));
        }
        let question = match sessions.len() {
            1 => "Remove this session for good? What it changed in the project stays. [y/N] ".to_owned(),
            many => {
                format!(
                    "Remove these {many} sessions for good? What they changed in the project stays. [y/N] "
                )
            }
        };
        if !prompt::confirm(&question).context("asking")? {
            tell!("nothing was removed");
            return Ok(1);
        }
    }
    let paint = color::stdout();
    for session in sessions {
        // Taken first, so that nobody begins to write what is about to be gone.
        let claim = Claim::take(&house, &session.id, "delete").await?;
        let removed = house.store.delete(&session.id).await;
        claim.give_back().await;
        removed.context("the session log")?;
        say!("removed {}  {}", session.id, paint.dim(&clean(session.title.as_bytes())));
    }
    Ok(0)
}
