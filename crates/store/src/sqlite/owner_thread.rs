//! The thread that owns the connection.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::group_commit::{Change, ChangeSize};
use super::log_connection::{LogConnection, POLL_INTERVAL};

/// A call for the thread, with the channel for its result inside.
pub(super) enum Job {
    /// A read, run by itself.
    Look(Box<dyn FnOnce(&mut LogConnection) + Send>),
    /// Runs in one transaction with other waiting changes.
    Change(Box<dyn Change>),
}

/// Maximum number of queued calls; a further caller blocks its thread. Callers await each result,
/// so only more sessions than this, all writing at once, reach the bound.
const MAX_QUEUED_JOBS: usize = 1024;
/// Stack size of the thread. SQLite needs less than 100 KiB for statements as simple as ours.
const STACK_BYTES: usize = 512 * 1024;
/// Maximum changes of a transaction: no caller waits for more than about two transactions.
const MAX_GROUP_CHANGES: usize = 256;
/// Bytes of payload from which on no further change joins a transaction: SQLite writes them in well
/// under a second.
const MAX_GROUP_BYTES: u64 = 8 * 1024 * 1024;

/// The running thread. Dropping it finishes the queued calls and joins the thread.
#[derive(Debug)]
pub(super) struct OwnerThread {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl OwnerThread {
    pub(super) fn start(mut log: LogConnection) -> io::Result<Self> {
        let (jobs, queue) = sync_channel(MAX_QUEUED_JOBS);
        let thread = Builder::new()
            .name("session-log".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || serve_jobs(&mut log, &queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Queues a call, or returns it if the thread has ended.
    pub(super) fn submit(&self, job: Job) -> Result<(), Job> {
        match &self.jobs {
            Some(jobs) => jobs.send(job).map_err(|refused| refused.0),
            None => Err(job),
        }
    }
}

fn serve_jobs(log: &mut LogConnection, queue: &Receiver<Job>) {
    let mut next = None;
    loop {
        let job = match next.take() {
            Some(job) => Ok(job),
            None if log.is_watched() => queue.recv_timeout(POLL_INTERVAL),
            None => queue.recv().map_err(RecvTimeoutError::from),
        };
        match job {
            Ok(Job::Look(look)) => look(log),
            Ok(Job::Change(change)) => {
                let (group, other) = collect_group(change, queue);
                log.write(group);
                next = other;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        // After sending the result, so that no caller waits for it.
        log.checkpoint_long_log();
        log.poll();
    }
}

/// Collects the changes that wait after the first one, in order, and the other call that ends the
/// group, if there is one: calls take effect in the order in which they were made.
fn collect_group(first: Box<dyn Change>, queue: &Receiver<Job>) -> (Vec<Box<dyn Change>>, Option<Job>) {
    let mut bytes = weigh_change(&*first);
    let mut group = vec![first];
    while group.len() < MAX_GROUP_CHANGES && bytes < MAX_GROUP_BYTES {
        match queue.try_recv() {
            Ok(Job::Change(change)) => {
                bytes = bytes.saturating_add(weigh_change(&*change));
                group.push(change);
            }
            Ok(other) => return (group, Some(other)),
            Err(_) => break,
        }
    }
    (group, None)
}

/// Returns the bytes that count towards the bound of a group. A change that copies or deletes a
/// session fills its group, so that no others wait for it.
fn weigh_change(change: &dyn Change) -> u64 {
    match change.info().weight {
        ChangeSize::Payload(bytes) => bytes,
        ChangeSize::WholeSession => MAX_GROUP_BYTES,
    }
}

impl Drop for OwnerThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was reported by the call that caused it.
            drop(thread.join());
        }
    }
}
