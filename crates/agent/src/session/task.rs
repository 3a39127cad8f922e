//! Runs one task: begins the stages, runs the turns until the deadline, and reports.

use std::time::Instant;

use journeyman_protocol::{ErrorSeverity, Event, RunOutcome, RunReport};
use tokio_util::sync::CancellationToken;

use super::agent_end::{end_for_limit, timed_out_end};
use super::budget::Spending;
use super::deadline::wait_for_work_time;
use super::limits::task_spending;
use super::model_exchange::ReplyProgress;
use super::running_session::Session;
use super::task_begin::TaskBegin;
use super::task_end::TaskEnd;

impl Session {
    /// Runs one task to its end.
    pub(crate) async fn run_task(&mut self, begin: TaskBegin) -> RunReport {
        let started = Instant::now();
        self.begin_task(begin);
        let stop = self.cx.shared.start_task();
        let end = match self.cx.transcript.state().last_turn.filter(|_| begin == TaskBegin::Resume) {
            Some(reason) => end_for_limit(&self.cx, reason),
            None => self.run_until_deadline(begin, &stop).await,
        };
        self.stop_background_agents().await;
        let end = self.grant_last_turn(end, &stop).await;
        let end = self.verify_agent_work(end, &stop).await;
        self.cx.shared.end_task();
        self.task_reporter().finish(end, started.elapsed()).await
    }

    /// Runs the turns until the task ends or its time is over. What runs then is stopped, and every
    /// call has its result.
    async fn run_until_deadline(&mut self, begin: TaskBegin, stop: &CancellationToken) -> TaskEnd {
        let running = stop.child_token();
        let deadline = wait_for_work_time(self.cx.settings.timeout, self.cx.shared.status.subscribe());
        tokio::pin!(deadline);
        let mut is_over = false;
        let ended = {
            let turns = self.run_turns(begin, &running);
            tokio::pin!(turns);
            loop {
                tokio::select! {
                    ended = &mut turns => break ended,
                    () = &mut deadline, if !is_over => {
                        is_over = true;
                        running.cancel();
                    }
                }
            }
        };
        match ended {
            Ok(end) if is_over && !stop.is_cancelled() && end.outcome == RunOutcome::Interrupted => {
                timed_out_end(&self.cx)
            }
            Ok(end) => end,
            Err(error) => {
                let end = TaskEnd::failed(&error);
                let (severity, phase, message) = (ErrorSeverity::Error, error.phase(), end.summary.clone());
                self.cx.transcript.emit(Event::Error { severity, phase, message });
                end
            }
        }
    }

    /// Verifies what an agent that a person started has changed. What an agent of a session changes
    /// is verified with that session's own changes.
    async fn verify_agent_work(&mut self, end: TaskEnd, stop: &CancellationToken) -> TaskEnd {
        let is_root = self.cx.role().is_some_and(|role| role.parent.is_none());
        if !is_root || end.outcome != RunOutcome::Answered {
            return end;
        }
        // Without changes there is nothing to verify. If the changes can't be read, verification
        // reports the error.
        if self.checkpoints.unverified_changes(&mut self.cx).await.is_ok_and(|changes| changes.is_empty()) {
            return end;
        }
        match self.turn_verification().run(stop).await {
            Ok(Some(verified)) => {
                TaskEnd { termination: end.termination, recovered: end.recovered, ..verified }
            }
            Ok(None) if stop.is_cancelled() => TaskEnd::interrupted(),
            Ok(None) => {
                let why = "the agent completed its task, and what it changed is not verified";
                TaskEnd { outcome: RunOutcome::Unverified, summary: why.to_owned(), ..end }
            }
            Err(error) => {
                let why = format!("the agent completed its task, and its changes can't be verified: {error}");
                TaskEnd { outcome: RunOutcome::Unverified, summary: why, ..end }
            }
        }
    }

    /// Makes every stage forget the last task.
    fn begin_task(&mut self, begin: TaskBegin) {
        self.replies = ReplyProgress::default();
        self.cx.unanswered_question = None;
        self.approvals.begin_task();
        self.runner.begin_task();
        self.hooks.begin_task();
        self.supervision.begin_task();
        self.verification.begin_task();
        self.checkpoints.forget_comparison();
        if let Some(budget) = &self.cx.settings.shared_budget {
            // A task that was cut off counts on.
            budget.begin_task(match begin {
                TaskBegin::Resume => task_spending(&self.cx),
                TaskBegin::Message => Spending::default(),
            });
        }
    }
}
