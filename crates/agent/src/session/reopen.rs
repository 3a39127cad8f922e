//! Opening a session again: what was cut off is closed or taken up.
//!
//! A call whose effect may have begun gets one error result that says what is known from the workspace's journal;
//! a call that hadn't begun is judged and asked for again. So nothing runs twice, and nothing is left unanswered.

use std::sync::Arc;

use journeyman_protocol::{ErrorPhase, Event, Message, ResumeStrategy, Role, RunOutcome, TurnPhase};

use super::opening::list_files;
use super::shared::CutOff;
use super::stages::Session;
use super::task_begin::Begin;
use crate::hooks::StartedBy;
use crate::recovery::cut_off::{CutOffWork, given_up, own_changes, seal_cut_off};
use crate::transcript::record::Record;

/// Where a task that was cut off goes on.
pub(super) enum ResumePoint {
    /// The task had not taken what it is about.
    Open,
    /// The model is asked: what came of a reply before is void.
    Ask,
    /// The newest reply is on record, and what follows it isn't.
    AfterReply,
}

impl Session {
    /// Takes over from the process that had the session before. Gives what to go on with, if anything is.
    pub(crate) async fn reopen(&mut self, cut_off: CutOff) -> Option<Begin> {
        let strategy = match self.cx.transcript.state().task {
            // It was made with its task open, and nobody has worked on it yet.
            Some(_)
                if self.cx.transcript.state().candidate.is_some()
                    && (self.cx.transcript.state().books.turns, self.cx.transcript.state().books.step)
                        == (0, 0) =>
            {
                ResumeStrategy::Candidate
            }
            Some(_) => ResumeStrategy::Crash,
            None => ResumeStrategy::Manual,
        };
        let changed = self.take_over_setting();
        let CutOffWork { sealed, changes, events } = seal_cut_off(&mut self.cx, &self.inbox).await;
        let seen = Arc::clone(self.runner.seen());
        seen.restore(self.cx.transcript.state().seen.values().cloned());
        if let Some(task) = &self.cx.transcript.state().task {
            self.checkpoints.restore(task.checkpoint);
        }
        own_changes(&mut self.cx, &seen, changes).await;
        self.hooks.starts(StartedBy::Resume);
        self.cx.transcript.emit(Event::AgentResumed { strategy, interrupted: sealed, changed });
        self.copy_updates.announce(&self.cx);
        events.into_iter().for_each(|event| self.cx.transcript.emit(event));
        match list_files(&self.cx).await {
            // Policy knows the checks by name.
            Ok(listing) => drop(self.verification.find(&self.cx, &mut self.approvals, &listing)),
            Err(error) => self.cx.transcript.warn(ErrorPhase::Lifecycle, error.to_string()),
        }
        self.supervision.remind_at_start(&mut self.cx);
        let given_up = given_up(&self.cx, cut_off);
        let begin = match (&self.cx.transcript.state().task, cut_off) {
            (None, _) if given_up.is_empty() => None,
            (Some(_), CutOff::Continue) => Some(Begin::WhereItWas),
            _ => {
                self.cx
                    .transcript
                    .close_calls("not run: the task was closed when the session was opened again");
                self.cx.transcript.take(Vec::new(), given_up);
                let unverified = self.cx.transcript.state().unverified_since();
                self.cx.transcript.note(Record::Ended { outcome: RunOutcome::Interrupted, unverified });
                None
            }
        };
        // What can't be written now is told by the log, and written when it can be.
        self.cx.transcript.flush().await.ok();
        begin
    }

    /// The settings hold that the session is opened with; what is different is said.
    fn take_over_setting(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        let mut now = self.requests.setting(&self.cx);
        if let Some(was) = &self.cx.transcript.state().setting {
            if was.model == now.model && !was.tool_calling {
                // It was found to take no tools.
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
            self.requests.set(&mut self.cx, now);
        }
        changed
    }

    /// Finds where a task that was cut off goes on.
    pub(super) fn resume_point(&mut self) -> ResumePoint {
        let state = self.cx.transcript.state();
        if state.task.as_ref().is_some_and(|task| !task.opened) && self.cx.shared.has_work() {
            // The transcript ends with the task before it, which is over.
            return ResumePoint::Open;
        }
        self.cx.transcript.set_phase(TurnPhase::PreModel);
        let state = self.cx.transcript.state();
        let answered = state.messages.last().is_none_or(|last| last.role == Role::User);
        let last = state.messages.iter().rev().find(|message| message.role == Role::Assistant);
        self.progress.last_text = last.map(Message::text).unwrap_or_default();
        if state.is_settled() && answered { ResumePoint::Ask } else { ResumePoint::AfterReply }
    }
}
