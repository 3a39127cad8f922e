//! The turn loop: asks the model, runs its calls, and verifies when it stops. This file orders the
//! stages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use journeyman_model::{ModelError, Reply};
use journeyman_protocol::{
    AgentState, ErrorSeverity, Event, MessageKind, RunOutcome, RunReport, StopReason, ToolUse, TurnPhase,
};
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::first_message::blocks;
use super::reopen::ResumePoint;
use super::stages::{Progress, Session};
use super::step::Step;
use super::task_begin::TaskBegin;
use super::task_end::TaskEnd;
use crate::AgentError;
use crate::clock::seconds;
use crate::hooks::unseen::ChangeReview;
use crate::request::reply::{calls_of, thinking_of};
use crate::request::stream::stream;
use crate::transcript::record::{MessageId, Record, TaskCounters};

/// Calls refused because there was no one to ask before the run ends. After three refusals a model
/// has no other way to go on.
const MAX_UNANSWERED: u32 = 3;
/// Maximum consecutive replies that the output limit may cut off before the run ends.
const MAX_CUT_OFF: u32 = 3;
/// Maximum bytes of a reply, as logged: about a million tokens. The store takes entries of up to 16
/// MiB, and in the text protocol an entry has the reply's calls as well.
const MAX_REPLY: usize = 4 * 1024 * 1024;
impl Session {
    /// Runs one task to its end.
    pub(crate) async fn task(&mut self, begin: TaskBegin) -> RunReport {
        let started = Instant::now();
        self.progress = Progress::default();
        self.approvals.begin_task();
        self.runner.begin_task();
        self.hooks.begin_task();
        self.supervision.begin_task();
        self.verification.begin_task();
        self.checkpoints.forget_comparison();
        let stop = self.cx.shared.arm();
        let deadline = tokio::time::sleep(self.cx.settings.timeout);
        tokio::pin!(deadline);
        let mut out_of_time = false;
        let ended = {
            let work = self.work(begin, &stop);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    ended = &mut work => break ended,
                    () = &mut deadline, if !out_of_time => {
                        out_of_time = true;
                        stop.cancel();
                    }
                }
            }
        };
        let end = match ended {
            Ok(end) if out_of_time && end.outcome == RunOutcome::Interrupted => TaskEnd::new(
                RunOutcome::Limit,
                format!("time ran out after {}", seconds(self.cx.settings.timeout)),
            ),
            Ok(end) => end,
            Err(error) => {
                let (severity, phase, message) = (ErrorSeverity::Error, error.phase(), error.to_string());
                self.cx.transcript.emit(Event::Error { severity, phase, message });
                TaskEnd::new(RunOutcome::Error, error.to_string())
            }
        };
        self.cx.shared.disarm();
        self.report(end, started.elapsed()).await
    }

    /// Runs the model loop until the task ends.
    async fn work(&mut self, begin: TaskBegin, stop: &CancellationToken) -> Result<TaskEnd, AgentError> {
        match begin {
            TaskBegin::Message => self.open().await?,
            TaskBegin::WhereItWas => {
                self.cx.transcript.set_state(AgentState::Working);
                match self.resume_point() {
                    ResumePoint::Open => self.open().await?,
                    ResumePoint::Ask => {}
                    ResumePoint::AfterReply => {
                        if let Some(end) = self.after_reply(stop).await? {
                            return Ok(end);
                        }
                    }
                }
            }
        }
        loop {
            if stop.is_cancelled() {
                return Ok(TaskEnd::interrupted());
            }
            if let Some(end) = self.spent() {
                return Ok(end);
            }
            let step = Instant::now();
            match self.ask(stop).await {
                Ok(reply) => self.accept(&reply).await?,
                Err(AgentError::Model(ModelError::Cancelled)) => return Ok(TaskEnd::interrupted()),
                // A hook that was interrupted by the user didn't deny the request.
                Err(AgentError::HookDenied { .. }) if stop.is_cancelled() => {
                    return Ok(TaskEnd::interrupted());
                }
                Err(AgentError::Model(ModelError::ToolsUnsupported { .. }))
                    if self.requests.tool_calling() =>
                {
                    self.requests.fall_back_to_text(&mut self.cx);
                    continue;
                }
                Err(error) => return Err(error),
            }
            let end = self.after_reply(stop).await?;
            self.step_done(step.elapsed());
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    /// Handles a complete reply: runs its calls, or verifies and ends the task.
    async fn after_reply(&mut self, stop: &CancellationToken) -> Result<Option<TaskEnd>, AgentError> {
        if !self.cx.transcript.state().is_settled() {
            let mut step = Step {
                cx: &mut self.cx,
                checkpoints: &mut self.checkpoints,
                approvals: &mut self.approvals,
                previews: &mut self.previews,
                hooks: &mut self.hooks,
                runner: &mut self.runner,
                supervision: &mut self.supervision,
            };
            step.run(stop).await?;
            if stop.is_cancelled() {
                return Ok(Some(TaskEnd::interrupted()));
            }
            if self.approvals.unanswered() >= MAX_UNANSWERED {
                return Ok(Some(permission_needed()));
            }
            let running = self.runner.has_running_commands();
            let seen = Arc::clone(self.runner.seen());
            let stalled = self.supervision.look_around(&mut self.cx, &seen, running).await?;
            let end = stalled.or_else(|| self.spent());
            if end.is_none() {
                self.take_messages(QueuedSelection::All).await;
            }
            return Ok(end);
        }
        if self.continues()
            || (self.spent().is_none() && self.take_messages(QueuedSelection::IfAnybodySpoke).await)
        {
            return Ok(None);
        }
        if self.progress.cut_off >= MAX_CUT_OFF {
            let why = "the model's replies were cut off by its output limit again and again";
            return Ok(Some(TaskEnd::new(RunOutcome::Limit, why)));
        }
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        let (seen, text) = (self.runner.seen(), &self.progress.last_text);
        if self.hooks.sends_back(&mut self.cx, review, seen, text, stop).await {
            return Ok(None);
        }
        match self.verify(stop).await? {
            None if stop.is_cancelled() => Ok(Some(TaskEnd::interrupted())),
            None => Ok(self.supervision.check_progress(&mut self.cx)),
            end => Ok(end),
        }
    }

    /// Sends one model request and streams the reply to subscribers.
    async fn ask(&mut self, stop: &CancellationToken) -> Result<Reply, AgentError> {
        self.cx.transcript.set_phase(TurnPhase::PreModel);
        self.requests.put_in_words(&mut self.cx);
        let turns = self.cx.transcript.state().books.turns.saturating_add(1);
        self.cx.transcript.note(Record::Books(TaskCounters { turns, ..self.cx.transcript.state().books }));
        self.cx.transcript.emit(Event::TurnStarted { turn: turns });
        let mut request = self.requests.build(&mut self.cx);
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        // Hooks may change the request, but not the transcript.
        let (said, allowed) = match self.hooks.pre_model(&mut self.cx, review, &mut request, stop).await {
            Ok(said) => (said, Ok(())),
            Err(denied) => (None, Err(denied)),
        };
        self.cx.transcript.set_phase(TurnPhase::StreamingModel);
        let model = Arc::clone(&self.cx.model);
        let written = self.cx.transcript.flush().await;
        let result = match allowed.and(written) {
            Ok(()) => stream(&mut self.cx, &mut self.checkpoints, &*model, &request, stop).await,
            Err(error) => Err(error),
        };
        self.cx.transcript.return_messages(said.unwrap_or(request.messages));
        result
    }

    /// Records a complete reply and its usage.
    async fn accept(&mut self, reply: &Reply) -> Result<(), AgentError> {
        let mut message = reply.message.clone();
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        self.hooks.post_model(&mut self.cx, review, &mut message).await;
        let bytes = serde_json::to_vec(&message).map_or(0, |bytes| bytes.len());
        if bytes > MAX_REPLY {
            let why = format!("the reply has {bytes} bytes; no model's output limit allows that");
            return Err(ModelError::Protocol(why).into());
        }
        let text = message.text();
        let mut books = self.cx.transcript.state().books;
        books.usage += reply.usage;
        self.cx.transcript.note(Record::Books(books));
        self.progress.cut_off =
            if reply.stop == StopReason::MaxTokens { self.progress.cut_off + 1 } else { 0 };
        if !text.trim().is_empty() {
            self.progress.last_text = self.cx.redactor.redact(&text).into_owned();
        }
        let tool_calling = self.requests.tool_calling();
        let calls = calls_of(self.cx.transcript.state(), tool_calling, &mut message, &text);
        let thinking = thinking_of(&message);
        // Empty replies are recorded too, for their stop reason. They don't become messages,
        // because no provider takes them.
        self.cx.transcript.note(Record::Message {
            message,
            taken: Vec::new(),
            stop: Some(reply.stop.clone()),
            calls,
        });
        let turn = books.turns;
        self.cx.transcript.emit(Event::TurnFinished {
            turn,
            stop: reply.stop.clone(),
            usage: reply.usage,
            text,
            thinking,
        });
        self.cx.transcript.emit(Event::TokenUsage { turn, usage: reply.usage });
        let usd = self.cx.settings.price.as_ref().map(|price| price.cost(&books.usage));
        if let (Some(shared_budget), Some(price)) = (&self.cx.settings.shared_budget, &self.cx.settings.price)
        {
            shared_budget.spend(price.cost(&reply.usage));
        }
        self.cx.transcript.emit(Event::Cost { usage: books.usage, usd });
        let begun: Vec<ToolUse> =
            self.cx.transcript.state().calls.iter().map(|open| open.call.clone()).collect();
        for call in begun {
            let summary = self.approvals.summary(&self.cx, &call);
            let ToolUse { id, name: tool, input, .. } = call;
            self.cx.transcript.emit(Event::ToolStart { call: id, tool, input, summary });
        }
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        self.hooks.post_append(&mut self.cx, review).await;
        Ok(())
    }

    /// Returns true if the model has more to say although it made no call. Tells it so if it was
    /// cut off.
    fn continues(&mut self) -> bool {
        match self.cx.transcript.state().stop {
            Some(StopReason::Paused) => true,
            Some(StopReason::MaxTokens) if self.progress.cut_off < MAX_CUT_OFF => {
                let text = "Your reply was cut off by the output limit. Go on from where it stopped, in smaller steps.";
                self.cx.transcript.say(text);
                true
            }
            _ => false,
        }
    }

    /// Takes queued messages into the transcript. Returns true if that added content for the model.
    async fn take_messages(&mut self, which: QueuedSelection) -> bool {
        let waiting = self.cx.shared.waiting();
        let spoke = waiting.iter().any(|queued| queued.kind == MessageKind::User);
        let context = self.hooks.take_context();
        if which == QueuedSelection::IfAnybodySpoke && !spoke {
            self.hooks.keep_context(context);
            return false;
        }
        let taken: Vec<MessageId> = waiting.iter().map(|queued| queued.id).collect();
        for queued in &waiting {
            self.supervision.observe_message(queued.kind, &queued.text);
        }
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        let (kept, more, _denied) = self.hooks.screen(&mut self.cx, review, waiting).await;
        let words = kept.into_iter().map(|queued| queued.text).chain(context).chain(more);
        let content = blocks(words);
        let any = !content.is_empty();
        self.cx.transcript.take(content, taken);
        any
    }

    /// Counts a step: a model reply with its calls.
    fn step_done(&mut self, took: Duration) {
        let books = TaskCounters {
            step: self.cx.transcript.state().books.step.saturating_add(1),
            ..self.cx.transcript.state().books
        };
        self.cx.transcript.note(Record::Books(books));
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.cx.transcript.emit(Event::StepComplete { step: books.step, duration_ms });
    }

    /// Returns the task's end if a hook or a limit stops it. Messages that arrive later stay queued
    /// for the next task, because this one won't answer them.
    fn spent(&self) -> Option<TaskEnd> {
        self.hooks.stop().or_else(|| limit(&self.cx))
    }
}

/// Returns the task's end if a limit is reached.
fn limit(cx: &Context) -> Option<TaskEnd> {
    if cx.transcript.state().books.turns >= cx.settings.max_turns {
        let why = format!("the limit of {} turns was reached (--max-turns)", cx.settings.max_turns);
        return Some(TaskEnd::new(RunOutcome::Limit, why));
    }
    let own = cx.settings.price.as_ref().map(|price| price.cost(&cx.transcript.state().books.usage))?;
    let spent =
        cx.settings.shared_budget.as_ref().map_or(own, |shared_budget| shared_budget.spent().max(own));
    let budget = cx.settings.budget_usd?;
    (spent >= budget).then(|| {
        let why = format!("the budget of ${budget:.2} was spent (${spent:.4}; --budget)");
        TaskEnd::new(RunOutcome::Limit, why)
    })
}

/// The queued messages to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuedSelection {
    /// All, because a model request follows in any case.
    All,
    /// All if one of them is from a person, or else none.
    IfAnybodySpoke,
}

fn permission_needed() -> TaskEnd {
    TaskEnd::new(
        RunOutcome::PermissionNeeded,
        "a permission was needed and there was nobody to ask; run it in a terminal, or with a wider --mode",
    )
}
