//! The thread that owns the connection.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::log::Log;

/// One call, with its way to answer in it.
pub(super) type Job = Box<dyn FnOnce(&mut Log) + Send>;

/// Calls that may wait before the next caller does. Callers await each answer, so this is never reached
/// but by one that has gone wild.
const QUEUE: usize = 256;
/// SQLite needs less than 100 KiB for statements as simple as ours.
const STACK_BYTES: usize = 512 * 1024;

/// A running thread; dropping it lets the thread finish its calls and waits for it.
#[derive(Debug)]
pub(super) struct Owner {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Owner {
    pub(super) fn start(mut log: Log) -> io::Result<Self> {
        let (jobs, queue) = sync_channel(QUEUE);
        let thread = Builder::new()
            .name("session-log".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || work(&mut log, &queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Queues a call, or gives it back if the thread has ended.
    pub(super) fn submit(&self, job: Job) -> Result<(), Job> {
        match &self.jobs {
            Some(jobs) => jobs.send(job).map_err(|refused| refused.0),
            None => Err(job),
        }
    }
}

fn work(log: &mut Log, queue: &Receiver<Job>) {
    while let Ok(job) = queue.recv() {
        job(log);
        // After the answer, so that no caller waits for it.
        log.settle();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported by the call that met it.
            drop(thread.join());
        }
    }
}
