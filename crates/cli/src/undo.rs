//! `jm undo` and `jm redo`.

use std::path::Path;

use anyhow::Context as _;
use journeyman_agent::{STATUS_FORKED, State};
use journeyman_host::config::Environment;
use journeyman_protocol::{FileChange, FileChangeKind, RelPath, SessionId, UnixMillis};
use journeyman_store::{SessionSummary, Store as _};
use journeyman_workspace::{CheckpointId, UndoReport, UndoTarget, Workspace, WorkspaceError};

use crate::args::{RedoArgs, UndoArgs};
use crate::color;
use crate::edge::{Failure, House, root};
use crate::sessions::{Claim, STATUS_IMPORTED, find};
use crate::stdout::say;

/// Sessions among which the newest that was opened is looked for.
const LOOKED_AT: usize = 100;

pub(crate) async fn undo(environment: &Environment, args: &UndoArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    if let Some(number) = args.to {
        return undo_to(&house, &root(environment, args.directory.as_deref())?, CheckpointId(number)).await;
    }
    let (session, place) = match &args.session {
        None => {
            let place = root(environment, args.directory.as_deref())?;
            let newest = here(&house, &place).await?.into_iter().find(|session| {
                // One that was made and never opened here has changed nothing.
                session.status != STATUS_FORKED && session.status != STATUS_IMPORTED
            });
            (newest, place)
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
    let by_apply = || later_than(&workspace, session.as_ref());
    let Some(session) = session.as_ref().filter(|_| args.session.is_some() || !by_apply()) else {
        // Whatever the journal of this project still knows: what `jm apply` did is there, under an id of its own.
        let done = taken_back(&workspace, UndoTarget::LastRun, Seals::default())?;
        return Ok(tell(&done, Doing::Undo));
    };
    if args.session.is_none() {
        refuse_copy(&workspace, &session.id)?;
    }
    let claim = Claim::take(&house, &session.id, "undo").await?;
    let done = take_back(&house, &workspace, &session.id, args.session.is_some()).await;
    claim.give_back().await;
    // One whose work is in a copy may have landed some before.
    let done = done.or_else(|failure| refuse_copy(&workspace, &session.id).and(Err(failure)))?;
    Ok(tell(&done, Doing::Undo))
}

/// Whether the newest change that can be taken back was made after the session began, and not by it.
fn later_than(workspace: &Workspace, session: Option<&SessionSummary>) -> bool {
    match (workspace.newest_undoable(), session) {
        (Ok(Some(newest)), Some(session)) => newest > session.id,
        _ => false,
    }
}

/// What a session did in its copy isn't in the user's files, so there is nothing to take back in them.
fn refuse_copy(workspace: &Workspace, session: &SessionId) -> Result<(), Failure> {
    let copies = workspace.copies().context("looking for its copy")?;
    if copies.iter().all(|copy| copy.session != *session) {
        return Ok(());
    }
    Err(Failure::usage(format_args!(
        "the newest work of session {session} is in a copy; your files have nothing of it. To drop it: jm discard \
         {session}. To take back what a session changed in your files, name it: jm undo ID"
    )))
}

/// Takes back everything since a checkpoint, whichever session changed it: none of them may be at work.
async fn undo_to(house: &House, place: &Path, checkpoint: CheckpointId) -> Result<u8, Failure> {
    let workspace = house.workspace(place)?;
    let sessions = here(house, place).await?;
    let claims = claim_all(house, &sessions, "undo").await?;
    let done = async {
        let mut seals = Seals::default();
        for session in &sessions {
            seals.add(bring_to_an_end(house, &workspace, &session.id).await?);
        }
        taken_back(&workspace, UndoTarget::To(checkpoint), seals)
    };
    let done = done.await;
    for claim in claims {
        claim.give_back().await;
    }
    Ok(tell(&done?, Doing::UndoTo(checkpoint)))
}

/// `jm redo`.
pub(crate) async fn redo(environment: &Environment, args: &RedoArgs) -> Result<u8, Failure> {
    let house = House::open(environment)?;
    let place = root(environment, args.directory.as_deref())?;
    let workspace = house.workspace(&place)?;
    let claims = claim_all(&house, &here(&house, &place).await?, "redo").await?;
    let done = workspace.redo();
    for claim in claims {
        claim.give_back().await;
    }
    Ok(tell(&Done { report: done.context("redo")?, steps: 1 }, Doing::Redo))
}

/// The sessions of a directory, newest first.
async fn here(house: &House, place: &Path) -> Result<Vec<SessionSummary>, Failure> {
    let found = house.store.sessions(Some(&place.display().to_string()), LOOKED_AT).await;
    Ok(found.context("the session log")?)
}

/// The right to all these sessions at once: refused while any of them is at work.
async fn claim_all<'a>(
    house: &'a House,
    sessions: &[SessionSummary],
    command: &str,
) -> Result<Vec<Claim<'a>>, Failure> {
    let mut claims = Vec::with_capacity(sessions.len());
    for session in sessions {
        match Claim::take(house, &session.id, command).await {
            Ok(claim) => claims.push(claim),
            Err(refusal) => {
                for claim in claims {
                    claim.give_back().await;
                }
                return Err(refusal);
            }
        }
    }
    Ok(claims)
}

async fn take_back(
    house: &House,
    workspace: &Workspace,
    session: &SessionId,
    named: bool,
) -> Result<Done, Failure> {
    let seals = bring_to_an_end(house, workspace, session).await?;
    // What the newest session left half done is what is to go first, whatever was done before it.
    let target = if named || !seals.restored.is_empty() {
        UndoTarget::Session(session.clone())
    } else {
        UndoTarget::LastRun
    };
    match workspace.newest_undoable() {
        // The journal doesn't know the newest run any more, but the log does.
        Err(WorkspaceError::HistoryDamaged { .. }) if target == UndoTarget::LastRun => {
            taken_back(workspace, UndoTarget::Session(session.clone()), seals)
        }
        _ => taken_back(workspace, target, seals),
    }
}

/// What sealing calls that were cut off did.
#[derive(Default)]
struct Seals {
    restored: Vec<FileChange>,
    /// How many calls something was put back of: each by a step of its own.
    steps: usize,
    left: Vec<(RelPath, String)>,
    sessions: Vec<SessionId>,
}

impl Seals {
    fn add(&mut self, other: Self) {
        self.restored.extend(other.restored);
        self.steps += other.steps;
        self.left.extend(other.left);
        self.sessions.extend(other.sessions);
    }
}

/// Brings to an end what a session's process left half done when it was cut off; nothing for one that ended.
async fn bring_to_an_end(
    house: &House,
    workspace: &Workspace,
    session: &SessionId,
) -> Result<Seals, Failure> {
    let mut seals = Seals { sessions: vec![session.clone()], ..Seals::default() };
    let calls = workspace.cut_off_calls(session).context("what the session left half done")?;
    let state = State::load(&*house.store, session).await?;
    if state.task.as_ref().is_some_and(|task| task.checking) {
        // What checks did is journaled as theirs, and goes back with the rest.
        workspace.seal_checks(session).context("what the session's checks left")?;
    }
    let checkpoint = state.task.as_ref().and_then(|task| task.checkpoint).unwrap_or_default();
    for call in calls {
        let open = state.calls.iter().find(|open| open.call.id == call);
        let started = open.and_then(|open| open.record.started_at()).unwrap_or(UnixMillis(0));
        let sealed = workspace
            .seal_call(&CheckpointId(checkpoint), session, &call, started)
            .context("what the session's last call left")?;
        seals.steps += usize::from(!sealed.restored.is_empty());
        seals.restored.extend(sealed.restored);
        seals.left.extend(sealed.left.into_iter().map(|(change, reason)| (change.path, reason)));
    }
    Ok(seals)
}

/// What was taken back or done again.
struct Done {
    report: UndoReport,
    /// How many steps of the opposite command lead back.
    steps: usize,
}

fn taken_back(workspace: &Workspace, target: UndoTarget, seals: Seals) -> Result<Done, Failure> {
    let mut report = match workspace.undo(target) {
        // All there was to take back went back with the calls that were cut off.
        Err(WorkspaceError::NothingToUndo { .. } | WorkspaceError::NothingSince { .. })
            if !seals.restored.is_empty() =>
        {
            UndoReport {
                sessions: seals.sessions,
                restored: Vec::new(),
                conflicts: Vec::new(),
                dropped: false,
                damaged: false,
            }
        }
        report => report.context("undo")?,
    };
    let steps = seals.steps + usize::from(!report.restored.is_empty());
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
    Ok(Done { report, steps })
}

/// What is told of.
#[derive(Debug, Clone, Copy)]
enum Doing {
    Undo,
    UndoTo(CheckpointId),
    Redo,
}

fn tell(Done { report, steps }: &Done, doing: Doing) -> u8 {
    let paint = color::stdout();
    for change in &report.restored {
        let what = match (change.kind, doing) {
            (FileChangeKind::Added, Doing::Undo | Doing::UndoTo(_)) => "brought back",
            (FileChangeKind::Modified, Doing::Undo | Doing::UndoTo(_)) => "restored",
            (FileChangeKind::Deleted, _) => "removed",
            (FileChangeKind::Added, Doing::Redo) => "added",
            (FileChangeKind::Modified, Doing::Redo) => "changed",
        };
        say!("{what} {}", change.path);
    }
    for (path, reason) in &report.conflicts {
        say!("{} {path}: {reason}", paint.yellow("kept"));
    }
    if report.dropped {
        let kept = paint.yellow("kept");
        say!("{kept} older changes of this session: their earlier contents aren't stored any more");
    }
    if report.damaged {
        let kept = paint.yellow("kept");
        say!(
            "{kept} what damaged lines of the journal may have recorded: the undo is incomplete; see: jm doctor"
        );
    }
    let whose = match report.sessions.as_slice() {
        [session] => format!("session {session}"),
        sessions => format!("{} sessions", sessions.len()),
    };
    let count = report.restored.len();
    let files = if count == 1 { "file" } else { "files" };
    match doing {
        Doing::Undo => say!("{whose}: {count} {files} taken back"),
        Doing::UndoTo(checkpoint) => say!("{whose}: {count} {files} taken back to checkpoint {checkpoint}"),
        Doing::Redo => say!("{whose}: {count} {files} done again"),
    }
    if count > 0 {
        let other = if matches!(doing, Doing::Redo) { "undo" } else { "redo" };
        let times = if *steps > 1 { format!(", {steps} times") } else { String::new() };
        say!("{}", paint.dim(&format!("take that back with: jm {other}{times}")));
    }
    // Something was left as it is: the caller should know.
    u8::from(!report.conflicts.is_empty() || report.dropped || report.damaged)
}
