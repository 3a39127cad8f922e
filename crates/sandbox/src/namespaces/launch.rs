//! Starting a job, and the agent's part in it from then on.

use std::time::Instant;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::job::{Job, start_job};
use super::watcher::Watcher;
use crate::capture::{OutputChunk, OutputCollector};
use crate::spill::SpillWriter;
use crate::{SandboxError, SandboxSettings};

/// A command that was started, and its watcher.
pub(super) struct LaunchedJob {
    pub(super) watcher: Watcher,
    pub(super) live: mpsc::Receiver<OutputChunk>,
    /// Ends the command when it is cancelled; it is cancelled with the caller's token.
    pub(super) stop: CancellationToken,
}

/// Starts a job, its output collected.
pub(super) fn launch_job(
    settings: &SandboxSettings,
    job: Job,
    cancel: &CancellationToken,
    begun: Instant,
) -> Result<LaunchedJob, SandboxError> {
    let (mut collector, live) = OutputCollector::new(&job.limits, job.streams, job.live);
    let stop = cancel.child_token();
    let spilling = job.spill.as_ref().map(SpillWriter::create).transpose()?;
    let mut job = job;
    let started = match start_job(settings, &mut job) {
        Ok(started) => started,
        Err(error) => {
            spilling.into_iter().for_each(SpillWriter::abandon);
            return Err(error);
        }
    };
    collector.spill_to(spilling);
    let watcher = Watcher::new(started, job, collector, stop.clone(), begun)?;
    Ok(LaunchedJob { watcher, live, stop })
}

/// Starts a job that can't be cancelled, and whose live output is dropped.
pub(super) fn launch_unattended(settings: &SandboxSettings, mut job: Job) -> Result<Watcher, SandboxError> {
    let (collector, _live) = OutputCollector::new(&job.limits, job.streams, job.live);
    Watcher::new(start_job(settings, &mut job)?, job, collector, CancellationToken::new(), Instant::now())
}
