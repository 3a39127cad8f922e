//! The right to write a session: one process at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use journeyman_protocol::SessionId;
use journeyman_store::{Store, StoreError};

use crate::{AgentError, Clock};

/// How long the right holds unless it is renewed. A process that died is noticed by other means at once, so this is
/// only for one that hangs: long enough to outlast a suspended laptop's first seconds.
const TTL: Duration = Duration::from_secs(10 * 60);
/// How often it is renewed: twice before it runs out, and once every few seconds for a thousand sessions.
const RENEW: Duration = Duration::from_secs(4 * 60);

/// A session's lease, taken when the session is created or opened again.
pub(crate) struct Lease {
    store: Arc<dyn Store>,
    session: SessionId,
    holder: String,
    clock: Arc<dyn Clock>,
    taken: AtomicBool,
}

impl Lease {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session: SessionId,
        holder: String,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { store, session, holder, clock, taken: AtomicBool::new(false) }
    }

    /// Whether it was taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }

    /// What the store is told of it when the session begins with it.
    pub(crate) fn terms(&self) -> (String, u64) {
        (self.holder.clone(), millis(TTL))
    }

    /// The session has begun with it.
    pub(crate) fn begun(&self) {
        self.taken.store(true, Ordering::Release);
    }

    /// Takes or renews it.
    pub(crate) async fn take(&self) -> Result<(), AgentError> {
        self.store.lease(&self.session, &self.holder, self.clock.now(), millis(TTL)).await?;
        self.taken.store(true, Ordering::Release);
        Ok(())
    }

    /// Renews it for as long as this is polled. Ends when somebody else has the session.
    pub(crate) async fn keep(&self) -> StoreError {
        loop {
            tokio::time::sleep(RENEW).await;
            if !self.is_taken() {
                continue;
            }
            // A store that fails otherwise may work again; the log tells people of it.
            if let Err(AgentError::Store(error @ StoreError::Leased { .. })) = self.take().await {
                return error;
            }
        }
    }

    /// Gives it back.
    pub(crate) async fn give_back(&self) {
        if self.taken.swap(false, Ordering::AcqRel) {
            // Whoever comes next waits for it to run out, or finds this process gone.
            self.store.release(&self.session, &self.holder).await.ok();
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
