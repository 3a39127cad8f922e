//! The turns of a task: the order in which the stages run.

use std::sync::Arc;
use std::time::Instant;

use journeyman_protocol::{AgentState, RunOutcome, Termination};
use tokio_util::sync::CancellationToken;

use super::agent_end::completed_agent_end;
use super::incoming_messages::QueuedSelection;
use super::limits::end_if_limit_reached;
use super::model_exchange::ExchangeEnd;
use super::reopen::{ResumePoint, find_resume_point};
use super::running_session::Session;
use super::task_begin::TaskBegin;
use super::task_end::TaskEnd;
use crate::AgentError;
use crate::hooks::change_review::ChangeReview;
use crate::supervision::SupervisedStep;

impl Session {
    /// Runs turns until the task ends.
    pub(super) async fn run_turns(
        &mut self,
        begin: TaskBegin,
        stop: &CancellationToken,
    ) -> Result<TaskEnd, AgentError> {
        if let Some(end) = self.begin_turns(begin, stop).await? {
            return Ok(end);
        }
        loop {
            if stop.is_cancelled() {
                return Ok(TaskEnd::interrupted());
            }
            if let Some(end) = self.required_task_end() {
                return Ok(end);
            }
            self.answer_compaction_request(stop).await;
            let started = Instant::now();
            let exchanged = self.model_exchange().run(stop).await?;
            if self.room.take_results_removed() {
                self.supervision.forget_results();
            }
            match exchanged {
                ExchangeEnd::Replied => {}
                ExchangeEnd::AskAgain => continue,
                ExchangeEnd::Interrupted => return Ok(TaskEnd::interrupted()),
            }
            let end = self.handle_reply(stop).await?;
            self.cx.transcript.end_step(started.elapsed());
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    /// Begins a task, or continues it where it was cut off. `Some` ends it.
    async fn begin_turns(
        &mut self,
        begin: TaskBegin,
        stop: &CancellationToken,
    ) -> Result<Option<TaskEnd>, AgentError> {
        let resumes = begin == TaskBegin::Resume;
        if resumes {
            self.cx.transcript.set_agent_state(AgentState::Working);
            self.resume_background_agents(stop).await;
        }
        let point = match resumes {
            true => find_resume_point(&mut self.cx, &mut self.replies),
            false => ResumePoint::Open,
        };
        match point {
            ResumePoint::Open => self.task_opening().run(stop).await.map(|()| None),
            ResumePoint::Ask => {
                self.run_resume_hooks().await;
                Ok(None)
            }
            ResumePoint::AfterReply => {
                self.run_resume_hooks().await;
                self.handle_reply(stop).await
            }
        }
    }

    /// Runs the session-start hooks of a session that is resumed within a task. Their context comes
    /// with the next results, because a request that was cut off is sent again unchanged.
    async fn run_resume_hooks(&mut self) {
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        let context = self.hooks.run_session_start(&mut self.cx, review).await;
        self.hooks.keep_context(context);
    }

    /// Handles a complete reply. `Some` ends the task; `None` means that the model is asked again.
    async fn handle_reply(&mut self, stop: &CancellationToken) -> Result<Option<TaskEnd>, AgentError> {
        if self.cx.transcript.state().is_settled() {
            self.finish_turn(stop).await
        } else {
            self.run_calls(stop).await
        }
    }

    /// Runs the calls of a reply, and checks the run's progress.
    async fn run_calls(&mut self, stop: &CancellationToken) -> Result<Option<TaskEnd>, AgentError> {
        self.tool_step().run(stop).await?;
        if stop.is_cancelled() {
            return Ok(Some(TaskEnd::interrupted()));
        }
        if let Some(end) = self.approvals.end_if_too_many_unanswered() {
            return Ok(Some(end));
        }
        let running = self.runner.take_agents_changed()
            || self.runner.has_running_commands()
            || self.has_background_agents();
        let seen = Arc::clone(self.runner.seen_files());
        let may_show = self.approvals.visible_file_filter(&self.cx);
        let step = SupervisedStep { seen: &seen, running, may_show };
        let stalled = self.supervision.supervise_step(&mut self.cx, step).await?;
        // An output that came with the step that stalled counts.
        let end = completed_agent_end(&self.cx).or(stalled).or_else(|| self.required_task_end());
        if end.is_none() {
            self.incoming_messages().take(QueuedSelection::All).await;
        }
        Ok(end)
    }

    /// Returns the end of an agent's task after a turn without calls: only a call of
    /// `complete_task` completes the task.
    fn end_without_completion() -> TaskEnd {
        let why = "the model stopped without handing in a result (it did not call `complete_task`)";
        TaskEnd::new(RunOutcome::Error, why).with_termination(Termination::NoCompleteTaskCall)
    }

    /// Verifies the changes, unless the model, a person or a hook has more to say.
    async fn finish_turn(&mut self, stop: &CancellationToken) -> Result<Option<TaskEnd>, AgentError> {
        if self.replies.continue_reply(&mut self.cx) {
            return Ok(None);
        }
        if self.required_task_end().is_some() {
            self.stop_background_agents().await;
        } else {
            loop {
                self.wait_for_background_agents(stop).await?;
                let are_running = self.has_background_agents();
                if self.incoming_messages().take(QueuedSelection::IfAwaited).await {
                    return Ok(None);
                }
                // The message that ended the wait may be withdrawn, or refused by a hook.
                if stop.is_cancelled() || !are_running {
                    break;
                }
            }
        }
        if stop.is_cancelled() {
            return Ok(Some(TaskEnd::interrupted()));
        }
        if let Some(end) = self.replies.end_if_cut_off() {
            return Ok(Some(end));
        }
        if self.cx.role().is_some() {
            return Ok(Some(Self::end_without_completion()));
        }
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        let (seen, text) = (self.runner.seen_files(), self.replies.last_text());
        if self.hooks.run_turn_end(&mut self.cx, review, seen, text, stop).await {
            return Ok(None);
        }
        match self.turn_verification().run(stop).await? {
            None if stop.is_cancelled() => Ok(Some(TaskEnd::interrupted())),
            None => Ok(self.supervision.check_progress(&mut self.cx)),
            end => Ok(end),
        }
    }

    /// Returns the task's end if a hook or a limit stops it. Messages that arrive later stay queued
    /// for the next task, because this one won't answer them.
    fn required_task_end(&self) -> Option<TaskEnd> {
        completed_agent_end(&self.cx)
            .or_else(|| self.hooks.requested_end())
            .or_else(|| end_if_limit_reached(&self.cx))
    }
}
