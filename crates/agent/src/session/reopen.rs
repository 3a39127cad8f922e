//! Opens a session again: closes or continues the work that was cut off.
//!
//! A call whose effect may have begun gets one error result that states what the workspace's
//! journal shows. A call that had not begun is judged again and, where needed, asked about again.
//! So no call runs twice, and every call gets a result.

use std::sync::Arc;

use journeyman_protocol::{ErrorPhase, Event, Message, ResumeStrategy, Role, RunOutcome, TurnPhase};

use super::opening::list_files;
use super::shared::CutOffPolicy;
use super::stages::Session;
use super::task_begin::TaskBegin;
use crate::hooks::StartedBy;
use crate::recovery::cut_off::{CutOffWork, close_cut_off_calls, dropped_messages, record_own_changes};
use crate::transcript::record::Record;

/// The point where a task that was cut off continues.
pub(super) enum ResumePoint {
    /// The task had not taken its messages into the transcript.
    Open,
    /// The next action is a model request. A partial reply is discarded.
    Ask,
    /// The newest reply is on record, and the work after it is not.
    AfterReply,
}

impl Session {
    /// Takes over from the process that held the session before. Returns the task to continue, if
    /// any.
    pub(crate) async fn reopen(&mut self, cut_off: CutOffPolicy) -> Option<TaskBegin> {
        let strategy = match self.cx.transcript.state().task {
            // A candidate run starts with an open task that no process has worked on.
            Some(_)
                if self.cx.transcript.state().candidate.is_some()
                    && (
                        self.cx.transcript.state().counters.turns,
                        self.cx.transcript.state().counters.step,
                    ) == (0, 0) =>
            {
                ResumeStrategy::Candidate
            }
            Some(_) => ResumeStrategy::Crash,
            None => ResumeStrategy::Manual,
        };
        let changed = self.take_over_setting();
        let CutOffWork { sealed, changes, events } = close_cut_off_calls(&mut self.cx, &self.inbox).await;
        let seen = Arc::clone(self.runner.seen_files());
        seen.restore(self.cx.transcript.state().seen.values().cloned());
        if let Some(task) = &self.cx.transcript.state().task {
            self.checkpoints.restore_checkpoint(task.checkpoint);
        }
        record_own_changes(&mut self.cx, &seen, changes).await;
        self.hooks.set_start(StartedBy::Resume);
        self.cx.transcript.emit(Event::AgentResumed { strategy, interrupted: sealed, changed });
        if let Err(error) = self.copy_updates.enter_copy(&mut self.cx).await {
            self.cx.transcript.emit_warning(ErrorPhase::Lifecycle, error.to_string());
        }
        events.into_iter().for_each(|event| self.cx.transcript.emit(event));
        match list_files(&self.cx).await {
            // Registers the checks' command lines with policy.
            Ok(listing) => drop(self.verification.find_checks(&self.cx, &mut self.approvals, &listing)),
            Err(error) => self.cx.transcript.emit_warning(ErrorPhase::Lifecycle, error.to_string()),
        }
        self.supervision.remind_at_start(&mut self.cx);
        let given_up = dropped_messages(&self.cx, cut_off);
        let begin = match (&self.cx.transcript.state().task, cut_off) {
            (None, _) if given_up.is_empty() => None,
            (Some(_), CutOffPolicy::Continue) => Some(TaskBegin::Resume),
            _ => {
                self.cx
                    .transcript
                    .close_calls("not run: the task was closed when the session was opened again");
                self.cx.transcript.take_queued(Vec::new(), given_up);
                let unverified = self.cx.transcript.state().unverified_since();
                self.cx.transcript.record(Record::Ended { outcome: RunOutcome::Interrupted, unverified });
                None
            }
        };
        // The log reports a failed write and retries it.
        self.cx.transcript.flush().await.ok();
        begin
    }

    /// Applies the settings that the session is opened with, and returns a line for each
    /// difference.
    fn take_over_setting(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        let mut now = self.requests.current_setting(&self.cx);
        if let Some(was) = &self.cx.transcript.state().setting {
            if was.model == now.model && !was.tool_calling {
                // An earlier run found that this model takes no tools.
                now.tool_calling = false;
                self.requests.use_text_protocol();
            }
            if was.model != now.model {
                changed.push(format!("model: {} → {}", was.model, now.model));
            }
            if was.asked.keep != now.asked.keep {
                let word = |keep| if keep { "stays in its copy" } else { "is landed" };
                changed.push(format!("its work: {} → {}", word(was.asked.keep), word(now.asked.keep)));
            }
            if was.mode != now.mode {
                changed.push(format!("mode: {} → {}", was.mode.name(), now.mode.name()));
            }
        }
        if self.cx.transcript.state().setting.as_ref() != Some(&now) {
            self.requests.record_setting(&mut self.cx, now);
        }
        changed
    }

    /// Finds the point where a task that was cut off continues.
    pub(super) fn resume_point(&mut self) -> ResumePoint {
        let state = self.cx.transcript.state();
        if state.task.as_ref().is_some_and(|task| !task.opened) && self.cx.shared.has_work() {
            // The transcript ends with the previous task, which is finished.
            return ResumePoint::Open;
        }
        self.cx.transcript.set_phase(TurnPhase::PreModel);
        let state = self.cx.transcript.state();
        let settled = state.is_settled();
        let answered = state.messages.last().is_none_or(|last| last.role == Role::User);
        let last = state.messages.iter().rev().find(|message| message.role == Role::Assistant);
        let last_text = last.map(Message::text).unwrap_or_default();
        self.replies.restore_text(last_text);
        if settled && answered { ResumePoint::Ask } else { ResumePoint::AfterReply }
    }
}
