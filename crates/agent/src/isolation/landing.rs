//! What becomes of a copy when its session is over: landed, kept, or discarded.

use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Envelope, Event, RunOutcome, RunReport, Seq, SessionId};
use journeyman_store::Store;
use journeyman_workspace::DiffStat;
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use super::{Committer, Isolation, LandReport, LandWish, Proof};
use crate::transcript::log::events;
use crate::{AgentError, Clock};

/// Events read at once.
const PAGE: usize = 500;

/// What landing works with.
#[derive(Clone)]
pub struct LandContext {
    /// Where the logs are kept.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What must never be shown or kept.
    pub redactor: Arc<Redactor>,
    /// Who lands, for people, such as `jm land, process 123`.
    pub holder: String,
    /// What copies are made of and with.
    pub isolation: Isolation,
    /// How merged results are proven.
    pub proof: Proof,
    /// What commits are made with; without it none are.
    pub committer: Option<Committer>,
}

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

/// The newest report of a session's runs; `None` where none has ended.
///
/// # Errors
/// The store's.
pub async fn last_report(store: &dyn Store, session: &SessionId) -> Result<Option<RunReport>, AgentError> {
    let (mut after, mut newest) = (Seq::START, None);
    loop {
        let page = events(store, session, after, PAGE).await?;
        let Some(last) = page.last().and_then(|envelope| envelope.seq) else { return Ok(newest) };
        after = last;
        for envelope in page {
            if let Event::Done { report } = envelope.event {
                newest = Some(*report);
            }
        }
    }
}
