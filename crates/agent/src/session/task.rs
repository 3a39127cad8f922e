//! Runs one task: begins the stages, runs the turns until the deadline, and reports.

use std::time::Instant;

use journeyman_protocol::{ErrorSeverity, Event, RunOutcome, RunReport};

use super::exchange::ReplyProgress;
use super::stages::Session;
use super::task_begin::TaskBegin;
use super::task_end::TaskEnd;
use crate::durations::format_duration;

impl Session {
    /// Runs one task to its end.
    pub(crate) async fn run_task(&mut self, begin: TaskBegin) -> RunReport {
        let started = Instant::now();
        self.begin_task();
        let stop = self.cx.shared.start_task();
        let timeout = self.cx.settings.timeout;
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let mut timed_out = false;
        let ended = {
            let turns = self.run_turns(begin, &stop);
            tokio::pin!(turns);
            loop {
                tokio::select! {
                    ended = &mut turns => break ended,
                    () = &mut deadline, if !timed_out => {
                        timed_out = true;
                        stop.cancel();
                    }
                }
            }
        };
        let end = match ended {
            Ok(end) if timed_out && end.outcome == RunOutcome::Interrupted => {
                TaskEnd::new(RunOutcome::Limit, format!("time ran out after {}", format_duration(timeout)))
            }
            Ok(end) => end,
            Err(error) => {
                let end = TaskEnd::failed(&error);
                let (severity, phase, message) = (ErrorSeverity::Error, error.phase(), end.summary.clone());
                self.cx.transcript.emit(Event::Error { severity, phase, message });
                end
            }
        };
        self.cx.shared.end_task();
        self.report().finish(end, started.elapsed()).await
    }

    /// Makes every stage forget the last task.
    fn begin_task(&mut self) {
        self.replies = ReplyProgress::default();
        self.approvals.begin_task();
        self.runner.begin_task();
        self.hooks.begin_task();
        self.supervision.begin_task();
        self.verification.begin_task();
        self.checkpoints.forget_comparison();
    }
}
