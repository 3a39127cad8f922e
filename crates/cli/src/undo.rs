//! `jm undo`.

use std::path::Path;

use anyhow::Context as _;
use journeyman_agent::config::Environment;
use journeyman_agent::{STATUS_FORKED, State};
use journeyman_protocol::{FileChange, FileChangeKind, RelPath, SessionId, UnixMillis};
use journeyman_store::{SessionSummary, Store as _};
use journeyman_workspace::{CheckpointId, UndoReport, UndoTarget, Workspace, WorkspaceError};

use crate::args::UndoArgs;
use crate::color;
use crate::edge::{Failure, House, root};
use crate::sessions::{Claim, STATUS_IMPORTED, find};
use crate::stdout::say;

/// Sessions among which the newest that was opened is looked for.
const LOOKED_AT: usize = 100;

pub(crate) async fn undo(environment: &Environment, args: &UndoArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let (session, place) = match &args.session {
        None => {
            let place = root(environment, args.directory.as_deref())?;
            let newest = house.store.sessions(Some(&place.display().to_string()), LOOKED_AT).await;
            // One that was made and never opened here has changed nothing.
            let opened = |session: &SessionSummary| {
                session.status != STATUS_FORKED && session.status != STATUS_IMPORTED
            };
            (newest.context("the session log")?.into_iter().find(opened), place)
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
    let Some(session) = session else {
        // Whatever the journal of this project still knows.
        return tell(&taken_back(&workspace, UndoTarget::LastRun, Seals::default())?);
    };
    let claim = Claim::take(&house, &session.id, "undo").await?;
    let done = take_back(&house, &workspace, &session.id, args.session.is_some()).await;
    claim.give_back().await;
    tell(&done?)
}

async fn take_back(
    house: &House,
    workspace: &Workspace,
    session: &SessionId,
    named: bool,
) -> Result<UndoReport, Failure> {
    let seals = bring_to_an_end(house, workspace, session).await?;
    // What the newest session left half done is what is to go first, whatever was done before it.
    let target = if named || !seals.restored.is_empty() {
        UndoTarget::Session(session.clone())
    } else {
        UndoTarget::LastRun
    };
    taken_back(workspace, target, seals)
}

/// What sealing calls that were cut off did.
#[derive(Default)]
struct Seals {
    restored: Vec<FileChange>,
    left: Vec<(RelPath, String)>,
}

/// Brings to an end what a session's process left half done when it was cut off; nothing for one that ended.
async fn bring_to_an_end(
    house: &House,
    workspace: &Workspace,
    session: &SessionId,
) -> Result<Seals, Failure> {
    let mut seals = Seals::default();
    let calls = workspace.cut_off_calls(session).context("what the session left half done")?;
    let state = State::load(&*house.store, session).await?;
    if state.task.as_ref().is_some_and(|task| task.checking) {
        // What checks did is journaled as theirs, and goes back with the rest.
        workspace.seal_checks(session).context("what the session's checks left")?;
    }
    let checkpoint = state.task.as_ref().and_then(|task| task.checkpoint).unwrap_or_default();
    for call in calls {
        let open = state.calls.iter().find(|open| open.call.id == call);
        let started = open.and_then(|open| open.record.started()).unwrap_or(UnixMillis(0));
        let sealed = workspace
            .seal_call(&CheckpointId(checkpoint), session, &call, started)
            .context("what the session's last call left")?;
        seals.restored.extend(sealed.restored);
        seals.left.extend(sealed.left.into_iter().map(|(change, reason)| (change.path, reason)));
    }
    Ok(seals)
}

fn taken_back(workspace: &Workspace, target: UndoTarget, seals: Seals) -> Result<UndoReport, Failure> {
    let session = match &target {
        UndoTarget::Session(session) => Some(session.clone()),
        UndoTarget::LastRun | UndoTarget::To(_) => None,
    };
    let mut report = match (workspace.undo(target), session) {
        // All there was to take back went back with the call that was cut off.
        (Err(WorkspaceError::NothingToUndo { .. }), Some(session)) if !seals.restored.is_empty() => {
            UndoReport { session, restored: Vec::new(), conflicts: Vec::new() }
        }
        (report, _) => report.context("undo")?,
    };
    for change in seals.restored {
        report.restored.retain(|other| other.path != change.path);
        report.restored.push(change);
    }
    report.restored.sort_by(|one, other| one.path.cmp(&other.path));
    for (path, reason) in seals.left {
        if !report.conflicts.iter().any(|(other, _)| *other == path) {
            report.conflicts.push((path, reason));
        }
    }
    Ok(report)
}

fn tell(report: &UndoReport) -> Result<u8, Failure> {
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
