//! Opens a session again: closes or continues the work that was cut off.
//!
//! A call whose effect may have begun gets one error result that states what the workspace's
//! journal shows. A call that had not begun is judged again and, where needed, asked about again.
//! So no call runs twice, and every call gets a result.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use journeyman_protocol::{
    CallId, ErrorPhase, Event, Message, MessageKind, ReminderCategory, ResumeStrategy, Role, RunOutcome,
    SessionId, TurnPhase,
};

use super::context::SessionContext;
use super::inbox::Inbox;
use super::model_exchange::ReplyProgress;
use super::shared_state::CutOffPolicy;
use super::task_begin::TaskBegin;
use super::task_opening::list_files;
use crate::AgentError;
use crate::agents::delegation::DelegatingSession;
use crate::approval::approvals::Approvals;
use crate::calls::runner::ToolRunner;
use crate::hooks::SessionStartKind;
use crate::hooks::dispatch::HookDispatch;
use crate::isolation::checkpoints::Checkpoints;
use crate::isolation::copy_updates::CopyUpdates;
use crate::recovery::cut_off_work::{
    CutOffWork, close_cut_off_calls, find_dropped_messages, record_own_changes,
};
use crate::recovery::unfinished_agents::{UnfinishedAgent, find_calls, find_unfinished_agents};
use crate::request::builder::RequestBuilder;
use crate::supervision::Supervision;
use crate::transcript::record::Record;
use crate::transcript::reminder::wrap_reminder;
use crate::verification::Verification;

/// The point where a task that was cut off continues.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResumePoint {
    /// The task had not taken its messages into the transcript.
    Open,
    /// The next action is a model request. A partial reply is discarded.
    Ask,
    /// The newest reply is logged, and the work after it is not.
    AfterReply,
}

/// The stages that take over a session from the process that held it before.
pub(super) struct Reopening<'a> {
    pub(super) cx: &'a mut SessionContext,
    pub(super) inbox: &'a Inbox,
    pub(super) requests: &'a mut RequestBuilder,
    pub(super) approvals: &'a mut Approvals,
    pub(super) runner: &'a ToolRunner,
    pub(super) hooks: &'a mut HookDispatch,
    pub(super) supervision: &'a mut Supervision,
    pub(super) verification: &'a mut Verification,
    pub(super) checkpoints: &'a mut Checkpoints,
    pub(super) copy_updates: &'a mut CopyUpdates,
    /// The parts that the session shares with its agents, some of which may continue.
    pub(super) delegation: Option<&'a DelegatingSession>,
}

impl Reopening<'_> {
    /// Takes over from the process that held the session before. Returns the task to continue, if
    /// any.
    pub(super) async fn run(&mut self, cut_off: CutOffPolicy) -> Option<TaskBegin> {
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
        let changed = self.apply_changed_settings();
        let going_on = self.find_agents_that_go_on(cut_off).await;
        let CutOffWork { sealed, changes, events } =
            close_cut_off_calls(self.cx, self.inbox, self.runner.registry(), &going_on).await;
        let seen = Arc::clone(self.runner.seen_files());
        seen.restore(self.cx.transcript.state().seen.values().cloned());
        if let Some(task) = &self.cx.transcript.state().task {
            self.checkpoints.resume_from_checkpoint(task.checkpoint);
        }
        record_own_changes(self.cx, &seen, changes).await;
        self.hooks.set_start_kind(SessionStartKind::Resume);
        self.cx.transcript.emit(Event::AgentResumed { strategy, interrupted: sealed, changed });
        if let Err(error) = self.copy_updates.enter_copy(self.cx).await {
            self.cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, error.to_string());
        }
        events.into_iter().for_each(|event| self.cx.transcript.emit(event));
        match list_files(self.cx).await {
            // Registers the checks' command lines with policy.
            Ok(listing) => drop(self.verification.find_checks(self.cx, self.approvals, &listing)),
            Err(error) => self.cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, error.to_string()),
        }
        self.supervision.remind_of_todos_at_start(self.cx);
        let given_up = find_dropped_messages(self.cx, cut_off);
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

    /// Returns the calls whose agents continue, and registers these agents with the session's
    /// delegation.
    async fn find_agents_that_go_on(&mut self, cut_off: CutOffPolicy) -> HashSet<CallId> {
        match self.continue_or_report_agents(cut_off).await {
            Ok(calls) => calls,
            Err(error) => {
                self.cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, error.to_string());
                HashSet::new()
            }
        }
    }

    async fn continue_or_report_agents(
        &mut self,
        cut_off: CutOffPolicy,
    ) -> Result<HashSet<CallId>, AgentError> {
        let Some(delegation) = self.delegation else { return Ok(HashSet::new()) };
        if self.cx.transcript.state().task.is_none() {
            return Ok(HashSet::new());
        }
        let store = Arc::clone(self.cx.transcript.log().store());
        let unfinished = find_unfinished_agents(&*store, &self.cx.session).await?;
        let state = self.cx.transcript.state();
        let has_result =
            |(call, agent): &(&CallId, &UnfinishedAgent)| agent.in_background && !state.is_open(call);
        let (background, agents): (Vec<_>, Vec<_>) = unfinished.iter().filter(has_result).unzip();
        let background: Vec<CallId> = background.into_iter().cloned().collect();
        if cut_off == CutOffPolicy::Continue {
            let calls = find_calls(&*store, &self.cx.session, &background).await?;
            delegation.background.set_cut_off_calls(calls);
            let sessions = unfinished.into_iter().map(|(call, agent)| (call, agent.session));
            let sessions: HashMap<CallId, SessionId> = sessions.collect();
            let calls = sessions.keys().cloned().collect();
            delegation.set_unfinished_agents(sessions);
            return Ok(calls);
        }
        for agent in agents {
            let text = format!(
                "The background task {} of the agent `{}` was cut off when the program ended. What it changed \
                 until then may be in place.",
                agent.session, agent.name
            );
            let text = wrap_reminder(&text);
            self.inbox.accept(MessageKind::System, ReminderCategory::General, text).await?;
        }
        Ok(HashSet::new())
    }

    /// Applies the settings that the session is opened with, and returns a line for each
    /// difference.
    fn apply_changed_settings(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        let mut now = self.requests.current_setting(self.cx);
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
            self.requests.record_setting(self.cx, now);
        }
        changed
    }
}

/// Finds the point where a task that was cut off continues.
pub(super) fn find_resume_point(cx: &mut SessionContext, replies: &mut ReplyProgress) -> ResumePoint {
    let state = cx.transcript.state();
    if state.task.as_ref().is_some_and(|task| !task.opened) && cx.shared.has_work() {
        // The transcript ends with the previous task, which is finished.
        return ResumePoint::Open;
    }
    cx.transcript.set_phase(TurnPhase::PreModel);
    let state = cx.transcript.state();
    let settled = state.is_settled();
    let answered = state.messages.last().is_none_or(|last| last.role == Role::User);
    let last = state.messages.iter().rev().find(|message| message.role == Role::Assistant);
    replies.restore_text(last.map(Message::text).unwrap_or_default());
    if settled && answered { ResumePoint::Ask } else { ResumePoint::AfterReply }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CallId, CallState, Mode};
    use journeyman_tools::Registry;
    use serde_json::json;

    use super::*;
    use crate::hooks::Hooks;
    use crate::supervision::schedule::Schedule;
    use crate::supervision::todos::SharedTodoList;
    use crate::test_context::{TestContext, call, user_message};
    use crate::transcript::running_transcript::CallChange;

    async fn reopen(test: &mut TestContext, cut_off: CutOffPolicy) -> Option<TaskBegin> {
        let todos =
            Arc::new(SharedTodoList::disabled(crate::Clock::new(|| journeyman_protocol::UnixMillis(1))));
        let mut reopening = Reopening {
            cx: &mut test.cx,
            inbox: &test.inbox,
            requests: &mut RequestBuilder::new(Arc::new(Registry::default()), true),
            approvals: &mut test.approvals,
            runner: &ToolRunner::new(Arc::new(Registry::default()), Arc::clone(&test.inbox)),
            hooks: &mut HookDispatch::new(Hooks::none()),
            supervision: &mut Supervision::new(todos, Arc::new(Schedule::default()), 0),
            verification: &mut Verification::new(Arc::new(|_: &str| None)),
            checkpoints: &mut test.checkpoints,
            copy_updates: &mut CopyUpdates::default(),
            delegation: None,
        };
        reopening.run(cut_off).await
    }

    /// Returns the strategy, the closed calls, and the differences of the settings of the newest
    /// takeover.
    async fn resumed(test: &mut TestContext) -> (ResumeStrategy, Vec<CallId>, Vec<String>) {
        let events = test.events().await.into_iter().rev();
        let mut resumed = events.filter_map(|event| match event {
            Event::AgentResumed { strategy, interrupted, changed } => {
                Some((strategy, interrupted.into_iter().map(|record| record.id).collect(), changed))
            }
            _ => None,
        });
        resumed.next().unwrap()
    }

    /// A task that was cut off after a reply with one call that had begun and one that had not.
    async fn cut_off_in_calls() -> TestContext {
        let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
        test.cx.transcript.record(Record::Began);
        test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        test.cx.transcript.add_user_text("do it");
        let calls = [
            call("c1", "write_file", json!({ "path": "a.rs", "content": "two\n" })),
            call("c2", "read_file", json!({ "path": "a.rs" })),
        ];
        test.record_reply(&calls);
        test.cx.transcript.change_call(&calls[0], CallState::Executing, CallChange::default());
        test.checkpoints.begin_task();
        test
    }

    #[tokio::test]
    async fn a_finished_session_is_taken_over_with_nothing_to_continue() {
        let mut test = TestContext::new(&[]).await;
        assert_eq!(reopen(&mut test, CutOffPolicy::Continue).await, None);
        assert_eq!(resumed(&mut test).await, (ResumeStrategy::Manual, Vec::new(), Vec::new()));
        test.assert_survives_restart().await;
    }

    #[tokio::test]
    async fn calls_that_had_begun_are_closed_and_the_others_run_when_the_task_goes_on() {
        let mut test = cut_off_in_calls().await;
        assert_eq!(reopen(&mut test, CutOffPolicy::Continue).await, Some(TaskBegin::Resume));
        let (strategy, closed, _) = resumed(&mut test).await;
        assert_eq!((strategy, closed), (ResumeStrategy::Crash, vec![CallId::new("c1")]));
        let state = test.cx.transcript.state();
        assert!(!state.is_open(&CallId::new("c1")) && state.is_open(&CallId::new("c2")));
        let point = find_resume_point(&mut test.cx, &mut ReplyProgress::default());
        assert_eq!(point, ResumePoint::AfterReply, "a call of the reply is open");
        assert!(
            test.checkpoints.checkpoint_before_task().is_some(),
            "changes are compared with the task's beginning"
        );
        test.assert_survives_restart().await;
    }

    #[tokio::test]
    async fn a_task_that_is_given_up_is_closed_with_all_its_calls() {
        let mut test = cut_off_in_calls().await;
        let checkpoint = test.cx.transcript.state().unverified_since();
        assert_eq!(reopen(&mut test, CutOffPolicy::Close).await, None);
        let state = test.assert_survives_restart().await;
        assert!(state.is_settled() && state.task.is_none());
        assert_eq!((state.outcome, state.unverified), (Some(RunOutcome::Interrupted), checkpoint));
        let point = find_resume_point(&mut test.cx, &mut ReplyProgress::default());
        assert_eq!(point, ResumePoint::Ask, "every call has its result");
    }

    #[tokio::test]
    async fn a_task_continues_where_its_log_ends() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.record(Record::Began);
        test.cx.transcript.record(Record::Queued(user_message(1, "do it")));
        test.cx.shared.add_queued(user_message(1, "do it"));
        let mut replies = ReplyProgress::default();
        assert_eq!(
            find_resume_point(&mut test.cx, &mut replies),
            ResumePoint::Open,
            "its message isn't taken yet"
        );
        test.cx.transcript.add_user_text("do it");
        assert_eq!(find_resume_point(&mut test.cx, &mut replies), ResumePoint::Ask);
        let message =
            Message { role: Role::Assistant, content: vec![journeyman_protocol::Block::text("done")] };
        test.cx.transcript.record(Record::Message {
            message,
            taken: Vec::new(),
            stop: None,
            calls: Vec::new(),
        });
        assert_eq!(find_resume_point(&mut test.cx, &mut replies), ResumePoint::AfterReply);
        assert_eq!(replies.last_text(), "done");
    }

    #[tokio::test]
    async fn differences_of_the_settings_are_told_once() {
        let mut test = TestContext::new(&[]).await;
        reopen(&mut test, CutOffPolicy::Continue).await;
        test.cx.settings.mode = Mode::Ask;
        reopen(&mut test, CutOffPolicy::Continue).await;
        let (_, _, changed) = resumed(&mut test).await;
        assert_eq!(changed, ["mode: edit → ask"]);
        reopen(&mut test, CutOffPolicy::Continue).await;
        assert_eq!(resumed(&mut test).await.2, Vec::<String>::new());
    }
}
