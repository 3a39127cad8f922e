//! The context of landing, and the newest report of a session's runs.

use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Event, RunReport, Seq, SessionId};
use journeyman_store::Store;

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
    /// The last entry of the session's log that the user knows of, if they are asked: a session that
    /// has gone on since is neither landed nor discarded.
    pub known_end: Option<Seq>,
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
