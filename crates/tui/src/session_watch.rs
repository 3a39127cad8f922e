//! The events of a session that another process works on.

use journeyman_protocol::{Envelope, SessionId};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

/// The watched session. Dropping it ends the watching.
pub(crate) struct SessionWatch {
    /// The session.
    pub(crate) session: SessionId,
    /// The session's events.
    pub(crate) events: mpsc::UnboundedReceiver<Envelope>,
    /// Ends the reading when it is dropped.
    #[expect(dead_code, reason = "it is there to be dropped")]
    pub(crate) stop: DropGuard,
}

impl SessionWatch {
    /// Waits for the next event, forever where no more come. Cancel-safe.
    pub(crate) async fn next_event(&mut self) -> Envelope {
        match self.events.recv().await {
            Some(envelope) => envelope,
            // The job that sends them says why it ended.
            None => std::future::pending().await,
        }
    }
}
