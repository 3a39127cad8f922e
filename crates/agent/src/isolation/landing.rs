//! What becomes of a copy when its session is over: landed, kept, or discarded.

use std::collections::BTreeSet;

use journeyman_protocol::{Envelope, RelPath, RunOutcome, RunReport, SessionId};
use journeyman_workspace::DiffStat;
use tokio_util::sync::CancellationToken;

use super::commit_wish::CommitWish;
use super::desk::Desk;
use super::land_context::LandContext;
use super::wish::{LandReport, LandWish};
use crate::AgentError;

/// Brings the end of a run that worked in a copy about, once its session is closed: verified work is landed as `wish`
/// says, all else is kept, and a copy in which nothing was changed goes. With no `wish` everything is kept. Puts into
/// the report where the work is; gives what was written into the session's log.
///
/// # Errors
/// The store's; [`WorkspaceError::Busy`](journeyman_workspace::WorkspaceError::Busy); failures of the trees. The copy is kept then.
pub async fn settle(
    context: &LandContext,
    report: &mut RunReport,
    wish: Option<&LandWish>,
    stop: &CancellationToken,
) -> Result<Vec<Envelope>, AgentError> {
    if report.copy.is_none() {
        return Ok(Vec::new());
    }
    let session = report.session.clone();
    let desk = Desk::open(context, &session).await?;
    let settled = match wish {
        Some(wish) if report.outcome == RunOutcome::Verified => {
            desk.land(wish, Some(report), stop).await.map(|landed| {
                landed.amend(report);
                landed.events
            })
        }
        _ => desk.keep(report).await.map(|(_, told)| told),
    };
    desk.close().await;
    settled
}

/// Lands the copy of a session that nobody has open, and removes it. What the user changed meanwhile stays: where
/// files had to be merged, the checks pass on the merged copy first.
///
/// # Errors
/// As [`settle`]; [`WorkspaceError::UnknownCopy`](journeyman_workspace::WorkspaceError::UnknownCopy).
pub async fn land(
    context: &LandContext,
    session: &SessionId,
    wish: &LandWish,
    stop: &CancellationToken,
) -> Result<LandReport, AgentError> {
    let desk = Desk::open(context, session).await?;
    let landed = desk.land(wish, None, stop).await;
    desk.close().await;
    landed
}

/// As [`settle`] with no wish, for a session whose change is to be compared with others.
pub(crate) async fn keep(
    context: &LandContext,
    report: &mut RunReport,
) -> Result<(DiffStat, Vec<Envelope>), AgentError> {
    let session = report.session.clone();
    let desk = Desk::open(context, &session).await?;
    let kept = desk.keep(report).await;
    desk.close().await;
    kept
}

/// Removes a session's copy with all that was changed in it; gives how many files that were.
///
/// # Errors
/// As [`land`].
pub async fn discard(context: &LandContext, session: &SessionId) -> Result<u64, AgentError> {
    let desk = Desk::open(context, session).await?;
    let discarded = desk.discard().await;
    desk.close().await;
    discarded
}

/// Commits what a run changed in the user's own tree, where it is verified. `before` is what was [uncommitted] when it
/// began. Puts the commit, or why there is none, into the report; gives what was written into the session's log.
///
/// # Errors
/// The store's.
pub async fn commit_run(
    context: &LandContext,
    report: &mut RunReport,
    wish: &CommitWish,
    before: &BTreeSet<RelPath>,
    stop: &CancellationToken,
) -> Result<Vec<Envelope>, AgentError> {
    if report.changes.is_empty() {
        return Ok(Vec::new());
    }
    if report.outcome != RunOutcome::Verified {
        report.summary = format!("{}; not committed, for nothing verified it", report.summary);
        return Ok(Vec::new());
    }
    let session = report.session.clone();
    let desk = Desk::open(context, &session).await?;
    let committed = desk.commit_run(wish, report, before.iter().cloned().collect(), stop).await;
    desk.close().await;
    match committed {
        Ok((commit, told)) => {
            report.commit = Some(commit);
            Ok(told)
        }
        Err(AgentError::Git(error)) => {
            report.summary = format!("{}; not committed: {error}", report.summary);
            report.outcome =
                if error.needs_person() { RunOutcome::PermissionNeeded } else { RunOutcome::Error };
            report.exit_code = report.outcome.exit_code();
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}
