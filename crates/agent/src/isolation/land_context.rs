//! What landing works with, and the newest report of a session that landed or didn't.

use std::sync::Arc;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Event, RunReport, Seq, SessionId};
use journeyman_store::Store;

use super::Isolation;
use super::commit::Committer;
use super::proof::Proof;
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
