//! The context of landing, and the newest report of a session's runs.

use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Event, RunReport, Seq, SessionId};
use journeyman_store::{SessionSummary, Store, StoreError};

use super::Isolation;
use super::check_runner::CheckRunner;
use super::commit::Committer;
use crate::transcript::log::load_events;
use crate::{AgentError, Clock};

/// Number of events read at once.
const PAGE_ENTRIES: usize = 500;

/// The resources that landing needs.
#[derive(Clone)]
pub struct LandContext {
    /// The store of the logs.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Clock,
    /// Redacts secrets that must never be shown or stored.
    pub redactor: Arc<Redactor>,
    /// The name of the landing process for people, such as `jm land, process 123`.
    pub holder: String,
    /// The means of making copies.
    pub isolation: Isolation,
    /// The means of checking merged results.
    pub proof: CheckRunner,
    /// The means of committing. Without a committer no commits are made.
    pub committer: Option<Committer>,
    /// The last entry of the session's log that the user knows of, if they are asked: a session
    /// that has gone on since is neither landed nor discarded.
    pub known_end: Option<Seq>,
}

impl LandContext {
    /// Returns the session among those that were found, if it ends as the user knows it.
    pub(super) fn select_session(
        &self,
        session: &SessionId,
        found: Vec<SessionSummary>,
    ) -> Result<SessionSummary, StoreError> {
        let summary = found.into_iter().find(|found| found.id == *session);
        let summary = summary.ok_or_else(|| StoreError::UnknownSession { session: session.clone() })?;
        match self.known_end {
            Some(expected) if expected != summary.last => {
                Err(StoreError::Conflict { session: session.clone(), expected, found: summary.last })
            }
            _ => Ok(summary),
        }
    }
}

/// Returns the newest report of a session's runs, or `None` if no run has ended.
///
/// # Errors
/// Errors of the store.
pub async fn load_last_report(
    store: &dyn Store,
    session: &SessionId,
) -> Result<Option<RunReport>, AgentError> {
    let (mut after, mut newest) = (Seq::START, None);
    loop {
        let page = load_events(store, session, after, PAGE_ENTRIES).await?;
        let Some(last) = page.last().and_then(|envelope| envelope.seq) else { return Ok(newest) };
        after = last;
        for envelope in page {
            if let Event::Done { report } = envelope.event {
                newest = Some(*report);
            }
        }
    }
}
