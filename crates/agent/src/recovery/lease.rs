//! Lease of a session: only one process may write it at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use journeyman_protocol::SessionId;
use journeyman_store::{Store, StoreError};

use crate::{AgentError, Clock};

/// Time after which an unrenewed lease expires. A process that died is noticed at once by other
/// means, so the expiry is only for a process that hangs. It outlasts the first seconds of a
/// resumed laptop.
const LEASE_DURATION: Duration = Duration::from_secs(10 * 60);
/// Interval of renewal: two renewals fit into a lease, and a thousand sessions renew about four
/// times a second.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(4 * 60);

/// A session's lease, taken when the session is created or opened again.
pub(crate) struct Lease {
    store: Arc<dyn Store>,
    session: SessionId,
    holder: String,
    clock: Clock,
    taken: AtomicBool,
}

impl Lease {
    pub(crate) fn new(store: Arc<dyn Store>, session: SessionId, holder: String, clock: Clock) -> Self {
        Self { store, session, holder, clock, taken: AtomicBool::new(false) }
    }

    /// Returns true if the session holds the lease.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }

    /// Returns the holder and the duration in milliseconds, with which the store creates the
    /// session.
    pub(crate) fn holder_and_duration(&self) -> (String, u64) {
        (self.holder.clone(), to_millis(LEASE_DURATION))
    }

    /// Marks the lease as taken, after the session was created with it.
    pub(crate) fn mark_taken(&self) {
        self.taken.store(true, Ordering::Release);
    }

    /// Takes or renews the lease.
    pub(crate) async fn acquire(&self) -> Result<(), AgentError> {
        self.store
            .acquire_lease(&self.session, &self.holder, self.clock.now(), to_millis(LEASE_DURATION))
            .await?;
        self.taken.store(true, Ordering::Release);
        Ok(())
    }

    /// Renews the lease for as long as the future is polled. Returns when another process holds the
    /// session.
    pub(crate) async fn renew_until_lost(&self) -> StoreError {
        loop {
            tokio::time::sleep(RENEWAL_INTERVAL).await;
            if !self.is_taken() {
                continue;
            }
            // Other failures of the store may pass, and the log reports them to people.
            if let Err(AgentError::Store(error @ StoreError::Leased { .. })) = self.acquire().await {
                return error;
            }
        }
    }

    /// Releases the lease.
    pub(crate) async fn release(&self) {
        if self.taken.swap(false, Ordering::AcqRel) {
            // After a failure, the next process waits for the expiry or finds this process gone.
            self.store.release_lease(&self.session, &self.holder).await.ok();
        }
    }
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
