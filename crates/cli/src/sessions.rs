//! `jm sessions`, `jm show`, `jm undo`.

use std::path::Path;

use anyhow::Context as _;
use journeyman_agent::config::Environment;
use journeyman_agent::{envelope_of, record_of};
use journeyman_protocol::{Event, FileChangeKind, Seq};
use journeyman_sandbox::clean;
use journeyman_store::{STATUS_NEW, SessionSummary, Store as _};
use journeyman_workspace::{UndoTarget, Workspace};

use crate::args::{SessionsArgs, ShowArgs, UndoArgs};
use crate::color;
use crate::cut_off;
use crate::edge::{Failure, House, root};
use crate::render::Renderer;
use crate::stdout::{self, say};
use crate::summary::{self, Seen};

/// Entries read at once.
const PAGE: usize = 500;

pub(crate) async fn list(environment: &Environment, args: &SessionsArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let here = root(environment, None)?.display().to_string();
    let only = if args.all { None } else { Some(here.as_str()) };
    let sessions = house.store.sessions(only, args.limit).await.context("the session log")?;
    if sessions.is_empty() && !args.json {
        let more = if args.all { "" } else { " here; --all lists those of other directories" };
        eprintln!("no sessions yet{more}");
    }
    let paint = color::stdout();
    for session in sessions {
        if args.json {
            let object = serde_json::json!({
                "id": session.id, "root": session.root, "title": session.title, "status": session.status,
                "created": session.created, "updated": session.updated, "last": session.last,
            });
            say!("{object}");
            continue;
        }
        let place = if args.all { format!("  {}", clean(session.root.as_bytes())) } else { String::new() };
        // A session that has no end yet: it is running, or was cut off.
        let status = if session.status == STATUS_NEW { "unfinished" } else { &session.status };
        say!(
            "{}  {}  {:<17}  {}{}",
            paint.bold(session.id.as_str()),
            paint.dim(&summary::minute(session.updated)),
            status,
            clean(session.title.as_bytes()),
            paint.dim(&place)
        );
    }
    Ok(0)
}

/// Finds the one session that a word names.
async fn find(house: &House, environment: &Environment, word: &str) -> Result<SessionSummary, Failure> {
    if word == "last" {
        let here = root(environment, None)?.display().to_string();
        let newest = house.store.sessions(Some(&here), 1).await.context("the session log")?;
        return newest.into_iter().next().ok_or_else(|| {
            Failure::usage("no session was run in this directory; `jm sessions --all` lists all")
        });
    }
    let mut found = house.store.find(word).await.context("the session log")?;
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

pub(crate) async fn show(environment: &Environment, args: &ShowArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let session = find(&house, environment, &args.session).await?;
    let mut renderer = Renderer::to_stdout(color::stdout());
    let mut after = Seq::START;
    let mut report = None;
    loop {
        let page = house.store.read(&session.id, after, PAGE).await.context("the session log")?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for entry in &page {
            if let Some(envelope) = envelope_of(&session.id, entry) {
                if args.json {
                    say!("{}", serde_json::to_string(&envelope).context("an event")?);
                    continue;
                }
                renderer.show(&envelope.event);
                if let Event::RunStarted { task, .. } = &envelope.event {
                    renderer.note(&clean(format!("task: {task}").as_bytes()));
                }
                if let Event::Done { report: done } = envelope.event {
                    report = Some(done);
                }
            } else if record_of(entry).is_none() && !args.json {
                renderer.note(&format!("entry {} ({}) is from a newer version", entry.seq, entry.kind));
            }
        }
    }
    renderer.end();
    match report {
        Some(report) if !args.json => {
            stdout::write(&format!("\n{}", summary::text(&report, Seen::Yes, color::stdout())))
        }
        None if !args.json => say!("\nthe session has no end: it is running, or was cut off"),
        _ => {}
    }
    Ok(0)
}

pub(crate) async fn undo(environment: &Environment, args: &UndoArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let (session, place) = match &args.session {
        None => {
            let place = root(environment, args.directory.as_deref())?;
            let newest = house.store.sessions(Some(&place.display().to_string()), 1).await;
            (newest.context("the session log")?.into_iter().next(), place)
        }
        Some(word) => {
            let session = find(&house, environment, word).await?;
            let place = match &args.directory {
                Some(_) => root(environment, args.directory.as_deref())?,
                None => root(environment, Some(Path::new(&session.root)))?,
            };
            (Some(session), place)
        }
    };
    let workspace = house.workspace(&place)?;
    if let Some(session) = &session {
        cut_off::recover(&house, &workspace, session).await?;
    }
    let target = match (&args.session, session) {
        (Some(_), Some(session)) => UndoTarget::Session(session.id),
        _ => UndoTarget::LastRun,
    };
    take_back(&workspace, target)
}

fn take_back(workspace: &Workspace, target: UndoTarget) -> Result<u8, Failure> {
    let report = workspace.undo(target).context("undo")?;
    let paint = color::stdout();
    for change in &report.restored {
        let what = match change.kind {
            FileChangeKind::Added => "brought back",
            FileChangeKind::Modified => "restored",
            FileChangeKind::Deleted => "removed",
        };
        say!("{what} {}", change.path);
    }
    for (path, reason) in &report.conflicts {
        say!("{} {path}: {reason}", paint.yellow("kept"));
    }
    let count = report.restored.len();
    say!("session {}: {count} file{} taken back", report.session, if count == 1 { "" } else { "s" });
    // Something was left as it is: the caller should know.
    Ok(u8::from(!report.conflicts.is_empty()))
}
