//! Lands, keeps or discards a copy when its session is over.

use std::collections::BTreeSet;

use journeyman_protocol::{Envelope, RelPath, RunOutcome, RunReport, SessionId};
use journeyman_workspace::DiffStat;
use tokio_util::sync::CancellationToken;

use super::commit_options::CommitOptions;
use super::land_context::LandContext;
use super::land_request::{LandReport, LandRequest};
use super::landing_session::LandingSession;
use crate::AgentError;

/// Settles the copy of a run after its session is closed. Verified work is landed with the options
/// `wish`, everything else is kept, and a copy without changes is removed. Without a `wish`
/// everything is kept. Adds the place of the work to the report, and returns the events that were
/// written into the session's log.
///
/// # Errors
/// Errors of the store, [`WorkspaceError::Busy`](journeyman_workspace::WorkspaceError::Busy), and
/// failures of the trees. The copy is kept then.
pub async fn finish_copy(
    context: &LandContext,
    report: &mut RunReport,
    request: Option<&LandRequest>,
    stop: &CancellationToken,
) -> Result<Vec<Envelope>, AgentError> {
    if report.copy.is_none() {
        return Ok(Vec::new());
    }
    let session = report.session.clone();
    let landing_session = LandingSession::open(context, &session).await?;
    let settled = match request {
        Some(request) if report.outcome == RunOutcome::Verified => {
            landing_session.land(request, Some(report), stop).await.map(|landed| {
                landed.amend_run_report(report);
                landed.events
            })
        }
        _ => landing_session.keep_copy(report).await.map(|(_, told)| told),
    };
    landing_session.close().await;
    settled
}

/// Lands the copy of a session that nobody has open, and removes it. The user's own changes stay.
/// If files had to be merged, the checks must pass on the merged copy first.
///
/// # Errors
/// As [`finish_copy`];
/// [`WorkspaceError::UnknownCopy`](journeyman_workspace::WorkspaceError::UnknownCopy).
pub async fn land_copy(
    context: &LandContext,
    session: &SessionId,
    request: &LandRequest,
    stop: &CancellationToken,
) -> Result<LandReport, AgentError> {
    let landing_session = LandingSession::open(context, session).await?;
    let landed = landing_session.land(request, None, stop).await;
    landing_session.close().await;
    landed
}

/// Keeps the copy of a session whose change is compared with others; removes a copy without
/// changes.
pub(crate) async fn keep_copy(
    context: &LandContext,
    report: &mut RunReport,
) -> Result<(DiffStat, Vec<Envelope>), AgentError> {
    let session = report.session.clone();
    let landing_session = LandingSession::open(context, &session).await?;
    let kept = landing_session.keep_copy(report).await;
    landing_session.close().await;
    kept
}

/// Removes a session's copy with all its changes. Returns the number of changed files.
///
/// # Errors
/// As [`land_copy`].
pub async fn discard_copy(context: &LandContext, session: &SessionId) -> Result<u64, AgentError> {
    let landing_session = LandingSession::open(context, session).await?;
    let discarded = landing_session.discard_copy().await;
    landing_session.close().await;
    discarded
}

/// Commits the verified changes that a run made in the user's own tree. `before` lists the files
/// that were uncommitted when the run began. Adds the commit, or the reason why there is none, to
/// the report, and returns the events that were written into the session's log.
///
/// # Errors
/// Errors of the store.
pub async fn commit_run(
    context: &LandContext,
    report: &mut RunReport,
    request: &CommitOptions,
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
    let landing_session = LandingSession::open(context, &session).await?;
    let committed = landing_session.commit_run(request, report, before.iter().cloned().collect(), stop).await;
    landing_session.close().await;
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
