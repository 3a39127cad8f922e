//! Warm containers, for the next command of the same kind.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::plan::ContainerPlan;
use super::warm_container::WarmContainer;

/// Maximum idle containers, each with its memory for `/tmp`: the kinds that a session alternates
/// between.
const MAX_IDLE_CONTAINERS: usize = 3;

/// Containers that nothing runs in. Dropped, they end.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<PooledContainer>>);

/// A container that is being checked, and then free; the channel closes if the check fails.
#[derive(Debug)]
struct PooledContainer {
    plan: ContainerPlan,
    warm: oneshot::Receiver<WarmContainer>,
}

impl Pool {
    /// Takes a container with just this plan, if there is one.
    pub(super) async fn take(&self, plan: &ContainerPlan) -> Option<WarmContainer> {
        loop {
            let found = {
                let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let at = waiting.iter().rposition(|one| one.plan == *plan)?;
                waiting.remove(at)
            };
            // One whose runtime ended while it was looked over, or that a command left things in,
            // never comes.
            if let Ok(warm) = found.warm.await {
                return Some(warm);
            }
        }
    }

    /// Returns a container without processes of a command to the pool. A background task checks it.
    pub(super) fn put_back(self: &Arc<Self>, warm: WarmContainer) {
        let (sender, receiver) = oneshot::channel();
        let waiting = PooledContainer { plan: warm.plan.clone(), warm: receiver };
        let too_many = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(waiting);
            (all.len() > MAX_IDLE_CONTAINERS).then(|| all.remove(0))
        };
        drop(too_many);
        tokio::spawn(async move {
            if warm.is_clean().await {
                // The receiver may be gone; then the container ends.
                sender.send(warm).ok();
            } else {
                drop(sender);
                warm.remove().await.ok();
            }
        });
    }
}
