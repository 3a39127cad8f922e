//! Agents that work in the background while the session that started them continues.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_protocol::ToolUse;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The agents of one session that work in the background. They end with the task.
#[derive(Default)]
pub(crate) struct BackgroundAgents {
    jobs: Mutex<JoinSet<()>>,
    cancels: Mutex<Vec<CancellationToken>>,
    /// Number of agents that have not ended.
    running: Arc<watch::Sender<usize>>,
    /// The calls whose agents worked when the program ended.
    cut_off: Mutex<Vec<ToolUse>>,
}

impl BackgroundAgents {
    /// Runs an agent, which `cancel` stops.
    pub(super) fn start(&self, cancel: CancellationToken, job: impl Future<Output = ()> + Send + 'static) {
        let mut cancels = lock(&self.cancels);
        if !self.is_running() {
            cancels.clear();
        }
        cancels.push(cancel);
        let running = RunningGuard::new(&self.running);
        let mut jobs = lock(&self.jobs);
        // Frees those that have ended.
        while jobs.try_join_next().is_some() {}
        jobs.spawn(async move {
            job.await;
            drop(running);
        });
    }

    /// Returns true while an agent works.
    pub(crate) fn is_running(&self) -> bool {
        *self.running.borrow() > 0
    }

    /// Waits until every agent has ended.
    pub(crate) async fn wait_until_ended(&self) {
        // The sender is held by this object.
        self.running.subscribe().wait_for(|running| *running == 0).await.ok();
    }

    /// Stops every agent. Each ends its work and reports.
    pub(crate) fn cancel(&self) {
        lock(&self.cancels).drain(..).for_each(|cancel| cancel.cancel());
    }

    /// Ends every agent at once.
    pub(crate) fn abort(&self) {
        lock(&self.jobs).abort_all();
    }

    /// Sets the calls whose agents worked when the program ended.
    pub(crate) fn set_cut_off_calls(&self, calls: Vec<ToolUse>) {
        *lock(&self.cut_off) = calls;
    }

    /// Takes the calls whose agents worked when the program ended.
    pub(crate) fn take_cut_off_calls(&self) -> Vec<ToolUse> {
        std::mem::take(&mut *lock(&self.cut_off))
    }
}

/// Counts an agent until it is dropped.
struct RunningGuard(Arc<watch::Sender<usize>>);

impl RunningGuard {
    fn new(running: &Arc<watch::Sender<usize>>) -> Self {
        running.send_modify(|running| *running += 1);
        Self(Arc::clone(running))
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running = running.saturating_sub(1));
    }
}

/// Locks a mutex despite poisoning: every change under these locks is complete or absent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
