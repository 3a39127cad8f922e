//! Connects a running session with a person: shows events and passes on input.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use journeyman_agent::{PermissionAnswer, SessionHandle, Subscription};
use journeyman_protocol::{CallId, Envelope, Event, RunOutcome, RunReport};
use journeyman_store::{Store, StoreError};

use crate::HostError;

/// Input of a person at a surface to a running session.
#[derive(Debug)]
pub enum SurfaceInput {
    /// The answer to a question about a tool call.
    Answer(CallId, PermissionAnswer),
    /// The request to stop.
    Interrupt,
}

/// A view of a running session: the terminal, a page, an editor.
pub trait Surface {
    /// Shows an event.
    ///
    /// # Errors
    /// The event can't be written where the surface writes.
    fn show(&mut self, envelope: &Envelope) -> Result<(), HostError>;

    /// Waits for the person's next input. The future can be dropped and asked for again; it never
    /// ends on a surface without a person.
    fn next_input(&mut self) -> Pin<Box<dyn Future<Output = SurfaceInput> + '_>> {
        Box::pin(std::future::pending())
    }
}

/// A closure is a surface without a person.
impl<F: FnMut(&Event)> Surface for F {
    fn show(&mut self, envelope: &Envelope) -> Result<(), HostError> {
        self(&envelope.event);
        Ok(())
    }
}

/// Shows a session until all of its tasks have ended, and returns the last report. The session
/// stays open.
///
/// # Errors
/// [`HostError`] where the session's log or the surface fails.
pub async fn watch_session(
    session: &SessionHandle,
    events: &mut Subscription,
    surface: &mut dyn Surface,
) -> Result<Arc<RunReport>, HostError> {
    let mut is_stopping = false;
    let mut ending = std::pin::pin!(session.wait_until_finished());
    loop {
        tokio::select! {
            biased;
            input = surface.next_input() => match input {
                SurfaceInput::Answer(call, answer) => { session.decide(&call, answer); }
                SurfaceInput::Interrupt => {
                    is_stopping = true;
                    session.interrupt();
                }
            },
            event = events.next() => {
                let Some(envelope) = event? else { return Ok(ending.await?) };
                surface.show(&envelope)?;
                if let Event::Done { report } = &envelope.event
                    && is_stopping
                {
                    // A queued message stays in the queue until the session is opened again.
                    return Ok(Arc::new((**report).clone()));
                }
            }
            // After the events: each is shown before the report that follows it. A log that refuses
            // its last entries never shows them; the report still comes.
            report = &mut ending => return Ok(report?),
        }
    }
}

/// Refuses a report whose session log is gone: such a session can't be resumed or undone.
pub(crate) async fn check_log_exists(store: &dyn Store, report: &RunReport) -> Result<(), HostError> {
    if report.outcome == RunOutcome::Error
        && let Err(StoreError::Gone { .. }) = store.find_sessions(report.session.as_str()).await
    {
        return Err(HostError::failed(&report.summary));
    }
    Ok(())
}
