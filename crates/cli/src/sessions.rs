//! `jm sessions`, and what every command does that works on one: find it, and see that nobody else has it.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use journeyman_host::config::Environment;
use journeyman_protocol::SessionId;
use journeyman_sandbox::clean;
use journeyman_store::{STATUS_NEW, SessionSummary, Store as _, StoreError};
use journeyman_workspace::CopyInfo;

use crate::args::SessionsArgs;
use crate::edge::{Failure, House, log_of, now, root};
use crate::land::copies_of;
use crate::stdout::say;
use crate::{color, summary};

/// How long a command that only puts something in order keeps others away, in milliseconds. It gives the session
/// back when it is done, and a process that dies loses it at once.
const CLAIM_MS: u64 = 10 * 60 * 1000;

/// The status of a session that came from elsewhere and wasn't opened here yet.
pub(crate) const STATUS_IMPORTED: &str = "imported";
/// The state of a session that some process has.
pub(crate) const RUNNING: &str = "running";
/// The state of one that nobody has and that has no end.
pub(crate) const CUT_OFF: &str = "cut_off";

pub(crate) async fn list(environment: &Environment, args: &SessionsArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let here = root(environment, None)?.display().to_string();
    let only = if args.all { None } else { Some(here.as_str()) };
    let sessions = house.store.sessions(only, args.limit).await.context("the session log")?;
    if sessions.is_empty() && !args.json {
        let more = if args.all { "" } else { " here; --all lists those of other directories" };
        tell!("no sessions yet{more}");
    }
    let paint = color::stdout();
    let mut copies: HashMap<String, Vec<CopyInfo>> = HashMap::new();
    for session in sessions {
        let kept = copies
            .entry(session.root.clone())
            .or_insert_with(|| copies_of(&house, Path::new(&session.root)))
            .iter()
            .find(|copy| copy.session == session.id)
            .map(|copy| copy.tier.to_string());
        let (status, holder) = state(&house, &session).await?;
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
            paint.dim(&summary::minute(session.updated)),
            status.replace('_', " "),
            clean(session.title.as_bytes()),
            if kept.is_some() { paint.yellow("  (kept in its copy)") } else { String::new() },
            paint.dim(&place)
        );
    }
    Ok(0)
}

/// What a session is doing, or how its last task ended; and who has it, if anybody.
pub(crate) async fn state(
    house: &House,
    session: &SessionSummary,
) -> Result<(String, Option<String>), Failure> {
    let holder = match house.store.holder(&session.id, now()).await {
        // Deleted since it was listed.
        Err(StoreError::UnknownSession { .. }) => None,
        held => held.context("the session log")?,
    };
    let status = match &holder {
        Some(_) => RUNNING.to_owned(),
        None if session.status == STATUS_NEW => CUT_OFF.to_owned(),
        None => session.status.clone(),
    };
    Ok((status, holder))
}

/// Finds the one session that a word names.
pub(crate) async fn find(
    house: &House,
    environment: &Environment,
    word: &str,
) -> Result<SessionSummary, Failure> {
    // A search would begin an empty log, and then nobody would be told any more that this one is gone.
    let is_there = log_of(&house.state_dir).is_some();
    if word == "last" {
        let here = root(environment, None)?.display().to_string();
        let newest = match is_there {
            true => house.store.sessions(Some(&here), 1).await.context("the session log")?,
            false => Vec::new(),
        };
        return newest.into_iter().next().ok_or_else(|| {
            Failure::usage("no session was run in this directory; `jm sessions --all` lists all")
        });
    }
    let mut found = match is_there {
        true => house.store.find(word).await.context("the session log")?,
        false => Vec::new(),
    };
    match (found.pop(), found.is_empty()) {
        (Some(session), true) => Ok(session),
        (Some(_), false) => Err(Failure::usage(format_args!(
            "«{word}» is the beginning of {} sessions; give more of the id",
            found.len() + 1
        ))),
        (None, _) => Err(Failure::usage(format_args!(
            "no session begins with «{word}»; `jm sessions --all` lists all"
        ))),
    }
}

/// The right to a session, for a command that must not come between a run and its log.
pub(crate) struct Claim<'a> {
    house: &'a House,
    session: SessionId,
    holder: String,
}

impl<'a> Claim<'a> {
    /// Refused while another process has the session, with who has it.
    pub(crate) async fn take(house: &'a House, session: &SessionId, command: &str) -> Result<Self, Failure> {
        let holder = holder(command);
        let taken = house.store.lease(session, &holder, now(), CLAIM_MS).await;
        taken.map_err(refused)?;
        Ok(Self { house, session: session.clone(), holder })
    }

    pub(crate) async fn give_back(self) {
        // It ends with the process, too.
        self.house.store.release(&self.session, &self.holder).await.ok();
    }
}

/// Who holds a session's lease, in words for whoever finds it held.
pub(crate) fn holder(command: &str) -> String {
    format!("jm {command}, process {}", std::process::id())
}

/// Why a session can't be had.
pub(crate) fn refused(error: StoreError) -> Failure {
    match error {
        StoreError::Leased { session, holder, .. } => Failure::usage(format_args!(
            "session {session} is still running: {holder}, has it. Stop it first (Ctrl-C where it runs), or follow it \
             with `jm show --follow {session}`",
            holder = clean(holder.as_bytes())
        )),
        other => Failure::Error(anyhow::Error::new(other).context("the session log")),
    }
}
