//! Reads and follows the events of a session from its log, also while the session runs.

use std::time::Duration;

use journeyman_agent::EventPages;
use journeyman_protocol::{Envelope, Seq, SessionId};
use journeyman_store::Store as _;

use crate::state::{StateDirs, now};
use crate::{Context as _, HostError};

/// Time between two looks for a process that works on the followed session.
const HOLDER_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Receives events one after the other; an error ends the reading.
pub type ShowEvent<'a> = dyn FnMut(&Envelope) -> Result<(), HostError> + 'a;

/// Shows all events after an entry. Returns the last entry of the log.
///
/// # Errors
/// [`HostError`] where the log can't be read or an event can't be shown.
pub async fn read_events(
    state: &StateDirs,
    session: &SessionId,
    after: Seq,
    show: &mut ShowEvent<'_>,
) -> Result<Seq, HostError> {
    let mut pages = EventPages::new(&*state.store, session, after);
    while let Some(page) = pages.next().await? {
        page.iter().try_for_each(&mut *show)?;
    }
    Ok(pages.position())
}

/// Shows the events after an entry, and those that are added until no process works on the session.
///
/// # Errors
/// As [`read_events`].
pub async fn follow_events(
    state: &StateDirs,
    session: &SessionId,
    mut after: Seq,
    show: &mut ShowEvent<'_>,
) -> Result<(), HostError> {
    loop {
        // Checked before the entries are read: a holder writes all entries before it releases the
        // session.
        let is_held = state.store.lease_holder(session, now()).await.context("the session log")?.is_some();
        after = read_events(state, session, after, show).await?;
        if !is_held {
            return Ok(());
        }
        tokio::select! {
            biased;
            last = state.store.wait_for_entry(session, after) => {
                // The last entry may be a record, which isn't shown.
                let shown = read_events(state, session, after, show).await?;
                after = shown.max(last.context("the session log")?);
            }
            () = tokio::time::sleep(HOLDER_POLL_INTERVAL) => {}
        }
    }
}
