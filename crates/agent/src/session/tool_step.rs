//! A step: authorizes, records and runs the calls of one reply, and records their results.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use journeyman_protocol::{CallId, CallState, Mode, Plan, ResultPart, ToolUse, TurnPhase, Usage};
use journeyman_tools::ForeignUsage;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::budget::SharedBudget;
use super::context::SessionContext;
use crate::AgentError;
use crate::agents::complete_task::{ALREADY_COMPLETE_TEXT, COMPLETE_TASK};
use crate::approval::approvals::Approvals;
use crate::approval::authorization::{ApprovedCall, Authorization};
use crate::approval::authorizer::{Authorizer, find_unjudged_target};
use crate::approval::call_diff::foresee_failure;
use crate::approval::overlay_preview::{OverlayPreviews, finish_preview};
use crate::calls::call_end::record_call_end;
use crate::calls::edit_scope::revert_beyond_scope;
use crate::calls::finished_call::FinishedCall;
use crate::calls::runner::{MAX_CALLS_PER_REPLY, ToolRunner, checkpoint_label, take_runnable_calls};
use crate::hooks::change_review::ChangeReview;
use crate::hooks::dispatch::HookDispatch;
use crate::isolation::checkpoints::Checkpoints;
use crate::planning::record_plan;
use crate::recovery::cut_off_work::undo_partial_effects;
use crate::supervision::Supervision;
use crate::transcript::record::Record;
use crate::transcript::running_transcript::CallChange;

/// Time after a call's end before it is written while other calls run. Short enough that observers
/// don't lag; long enough that ten quick calls don't cost ten fsyncs.
const RESULT_WRITE_DELAY: Duration = Duration::from_millis(100);

/// The stages that the calls of one reply go through.
pub(super) struct ToolStep<'a> {
    pub(super) cx: &'a mut SessionContext,
    pub(super) checkpoints: &'a mut Checkpoints,
    pub(super) approvals: &'a mut Approvals,
    pub(super) previews: &'a mut OverlayPreviews,
    pub(super) hooks: &'a mut HookDispatch,
    pub(super) runner: &'a mut ToolRunner,
    pub(super) supervision: &'a mut Supervision,
}

impl ToolStep<'_> {
    /// Runs the calls of the last reply that have no result yet. On return every call has a result,
    /// also after an error.
    pub(super) async fn run(&mut self, stop: &CancellationToken) -> Result<(), AgentError> {
        self.cx.transcript.set_phase(TurnPhase::ToolPending);
        let ran = self.authorize_and_run(stop).await;
        if let Err(error) = &ran {
            // Providers refuse a transcript with unanswered calls, so calls are closed also when
            // the task ends here.
            self.cx.transcript.close_calls(&format!("not run: {error}"));
        }
        self.cx.transcript.set_phase(TurnPhase::PostTool);
        ran
    }

    async fn authorize_and_run(&mut self, stop: &CancellationToken) -> Result<(), AgentError> {
        let open =
            self.cx.transcript.state().calls.iter().enumerate().filter(|(_, open)| open.result.is_none());
        let open: Vec<(usize, ToolUse)> = open.map(|(place, open)| (place, open.call.clone())).collect();
        let (mut ready, mut asked) = (Vec::new(), Vec::new());
        for (place, call) in open {
            if place >= MAX_CALLS_PER_REPLY {
                let text = format!(
                    "not run: one reply may make at most {MAX_CALLS_PER_REPLY} calls; make fewer at a time"
                );
                record_call_end(self.cx, &call, FinishedCall::without_output(CallState::Failed, text));
                continue;
            }
            match self.authorize(&call, stop).await {
                Authorization::Run(one) => ready.push(one),
                Authorization::Ask(one, question) => asked.push((one, question)),
                Authorization::Done(finished) => record_call_end(self.cx, &call, finished),
            }
        }
        // Another call of the reply may make the place that an edit looks for.
        if let [(one, question)] = asked.as_slice()
            && ready.iter().all(|other| other.read_only)
            && let Some(failed) = foresee_failure(self.runner.registry(), self.cx, one, question).await
        {
            record_call_end(self.cx, &one.call, failed);
            asked.clear();
        }
        if !asked.is_empty() {
            for answer in self.approvals.ask_about_calls(self.cx, asked, stop).await? {
                match answer {
                    Ok(one) => ready.push(one),
                    Err(refused) if self.cx.transcript.state().is_open(&refused.call.id) => {
                        record_call_end(self.cx, &refused.call, refused.finished);
                    }
                    Err(_) => {}
                }
            }
            let order: Vec<CallId> =
                self.cx.transcript.state().calls.iter().map(|open| open.call.id.clone()).collect();
            ready.sort_by_key(|one| order.iter().position(|id| *id == one.call.id));
        }
        self.cx.transcript.set_phase(TurnPhase::PreTool);
        self.run_approved(ready, stop).await
    }

    async fn authorize(&mut self, call: &ToolUse, stop: &CancellationToken) -> Authorization {
        let mut authorizer = Authorizer {
            registry: Arc::clone(self.runner.registry()),
            approvals: self.approvals,
            previews: self.previews,
            hooks: self.hooks,
            checkpoints: self.checkpoints,
        };
        authorizer.authorize(self.cx, call, stop).await
    }

    /// Runs calls, in parallel where they don't conflict. Each call is recorded on disk before it
    /// takes effect.
    async fn run_approved(
        &mut self,
        ready: Vec<ApprovedCall>,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let cancel = stop.child_token();
        let permits = Arc::new(Semaphore::new(self.cx.settings.concurrency.max(1)));
        let label = checkpoint_label(self.cx, self.approvals, &ready);
        let mut waiting = ready;
        let mut running: Vec<ApprovedCall> = Vec::new();
        let mut ends = FuturesUnordered::new();
        let mut failed = None;
        let mut unwritten = false;
        loop {
            if stop.is_cancelled() {
                for one in waiting.drain(..) {
                    record_call_end(self.cx, &one.call, FinishedCall::interrupted());
                }
            }
            let next =
                if failed.is_none() { take_runnable_calls(&mut waiting, &running) } else { Vec::new() };
            if !next.is_empty() {
                match self.record_intent(&next, &label, stop).await {
                    Ok(()) => {}
                    Err(error) => {
                        // Cancels running calls, which still get their results. Calls that had not
                        // begun never run.
                        cancel.cancel();
                        failed = Some(error);
                        continue;
                    }
                }
                for mut one in next {
                    if let Err(why) = self.prepare_start(&mut one).await {
                        let finished = FinishedCall::without_output(CallState::Failed, why);
                        record_call_end(self.cx, &one.call, finished);
                        continue;
                    }
                    let may_show = self.approvals.visible_file_filter(self.cx);
                    let execution = self.runner.prepare_call(self.cx, &one, may_show, &cancel);
                    ends.push(execution.run(Arc::clone(&permits)));
                    running.push(one);
                }
                unwritten = false;
            }
            tokio::select! {
                biased;
                end = ends.next() => {
                    let Some((id, finished)) = end else { break };
                    if let Some(place) = running.iter().position(|one| one.call.id == id) {
                        let one = running.swap_remove(place);
                        if let Err(error) = self.finish_call(one, finished, stop).await {
                            cancel.cancel();
                            failed = Some(error);
                        }
                        unwritten = true;
                    }
                }
                () = tokio::time::sleep(RESULT_WRITE_DELAY), if unwritten && failed.is_none() => {
                    unwritten = false;
                    if let Err(error) = self.cx.transcript.flush().await {
                        cancel.cancel();
                        failed = Some(error);
                    }
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Looks again at a call that is about to start, because earlier calls of the reply have run
    /// since it was approved, and mounts its layer. The error is the reason not to start the call.
    async fn prepare_start(&mut self, one: &mut ApprovedCall) -> Result<(), String> {
        if one.call.name == COMPLETE_TASK && self.cx.transcript.state().completed.is_some() {
            return Err(ALREADY_COMPLETE_TEXT.to_owned());
        }
        if let Some(target) = find_unjudged_target(self.cx, one) {
            return Err(format!(
                "not run: since the call was judged, its path has become a link to `{target}`; make the call again"
            ));
        }
        if one.preview.is_some() {
            one.layer = Some(self.previews.mount_layer(self.cx).await?);
        }
        Ok(())
    }

    /// Records on disk that calls are about to run, and records a checkpoint first if one of them
    /// may change files.
    async fn record_intent(
        &mut self,
        next: &[ApprovedCall],
        label: &str,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        // A plan's agents change nothing either.
        let may_change =
            |one: &ApprovedCall| !one.read_only || (one.starts_agents && self.cx.settings.mode != Mode::Plan);
        if !stop.is_cancelled() && next.iter().any(may_change) {
            self.checkpoints.record_step(self.cx, label).await?;
        }
        for one in next {
            self.cx.transcript.change_call(&one.call, CallState::Executing, CallChange::default());
        }
        self.cx.transcript.set_phase(TurnPhase::ToolExecuting);
        self.cx.transcript.flush().await
    }

    /// Passes a result to the hooks and records it.
    async fn finish_call(
        &mut self,
        mut ready: ApprovedCall,
        mut finished: FinishedCall,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let seen = Arc::clone(self.runner.seen_files());
        let may_change = !ready.read_only || ready.starts_agents;
        if let Some(trial) = ready.layer.take() {
            match finish_preview(self.cx, self.approvals, &seen, ready, trial, finished, stop).await? {
                Some(ended) => (ready, finished) = ended,
                None => return Ok(()),
            }
        } else if finished.abandoned && may_change {
            undo_partial_effects(self.cx, self.checkpoints, &seen, &ready.call, &mut finished).await;
        }
        self.cx.index.note_changed(finished.changes.iter().map(|change| &change.path));
        revert_beyond_scope(self.cx, self.approvals, &seen, &ready.call, &mut finished).await;
        if finished.abandoned && may_change {
            self.cx.index.note_unknown_changes();
        }
        let review = ChangeReview { approvals: self.approvals, checkpoints: self.checkpoints };
        let notes = self.hooks.run_post_tool(self.cx, review, &seen, &ready, &mut finished, stop).await;
        for note in ready.context.into_iter().chain(notes) {
            finished.parts.push(ResultPart::Text { text: note });
        }
        let running = self.runner.has_running_commands();
        self.supervision.observe_call(self.cx, &ready.call, ready.read_only, running, &finished);
        self.runner.record_edit(self.cx, &ready.call.name, &finished.changes);
        self.record_agent_work(&ready.call, finished.state);
        self.record_foreign_usage(finished.foreign_usage);
        record_call_end(self.cx, &ready.call, finished);
        self.runner.record_output(self.cx, &ready.call.id);
        self.supervision.record_todo_changes(self.cx);
        self.cx.transcript.record_seen_files(&seen);
        Ok(())
    }

    /// Adds the tokens that a call used of another model to the task's counters and the shared
    /// budget.
    fn record_foreign_usage(&mut self, used: Option<ForeignUsage>) {
        let Some(ForeignUsage { usage, usd }) = used else { return };
        let mut counters = self.cx.transcript.state().counters;
        counters.foreign += usage;
        counters.delegated =
            counters.delegated.saturating_add(SharedBudget::to_nanodollars(usd.unwrap_or_default()));
        counters.unpriced |= usd.is_none() && usage != Usage::default();
        self.cx.transcript.record(Record::Counters(counters));
        self.cx.record_usage(&usage, usd);
    }

    /// Records an agent's output with the call that gave it, and the cost and changes of agents
    /// that ended.
    fn record_agent_work(&mut self, call: &ToolUse, state: CallState) {
        let is_completion = call.name == COMPLETE_TASK && state == CallState::Completed;
        if let Some(role) = self.cx.role().filter(|_| is_completion)
            && let Ok(output) = role.output.output_from_arguments(&call.input)
        {
            let role = self.cx.role().filter(|role| role.parent.is_none());
            let plan = role.and_then(|role| Plan::from_output(&output, &role.task()));
            self.cx.transcript.record(Record::Completed { output });
            if let Some(plan) = plan {
                record_plan(self.cx, &plan);
            }
        }
        self.runner.record_agents_work(self.cx);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use journeyman_model::Price;
    use journeyman_protocol::{Block, Event, Tokens};
    use journeyman_tools::{Registry, ToolOutput};
    use serde_json::{Value, json};

    use super::*;
    use crate::hooks::Hooks;
    use crate::session::limits::{end_if_limit_reached, spent_usd};
    use crate::supervision::schedule::Schedule;
    use crate::supervision::todos::SharedTodoList;
    use crate::test_context::{ClosureTool, TestContext, call};

    /// Runs the calls of one reply with the built-in tools and `test_tool`.
    async fn run(
        test: &mut TestContext,
        tool: ClosureTool,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let mut registry = Registry::with_builtin_at(&test.root);
        registry.add(Box::new(tool));
        let registry = Arc::new(registry);
        let todos = Arc::new(SharedTodoList::new(crate::Clock::new(|| journeyman_protocol::UnixMillis(1))));
        let mut step = ToolStep {
            cx: &mut test.cx,
            checkpoints: &mut test.checkpoints,
            approvals: &mut test.approvals,
            previews: &mut OverlayPreviews::new(Arc::clone(&registry)),
            hooks: &mut HookDispatch::new(Hooks::none()),
            runner: &mut ToolRunner::new(registry, Arc::clone(&test.inbox)),
            supervision: &mut Supervision::new(todos, Arc::new(Schedule::default()), 0),
        };
        step.run(stop).await
    }

    /// Returns the results of the newest message: the call, and true for a failure.
    fn results(test: &TestContext) -> Vec<(String, bool)> {
        let last = test.cx.transcript.state().messages.last().unwrap();
        let result = |block: &Block| match block {
            Block::ToolResult { id, is_error, .. } => Some((id.to_string(), *is_error)),
            _ => None,
        };
        last.content.iter().filter_map(result).collect()
    }

    fn answering() -> ClosureTool {
        ClosureTool::new("test_tool", |_| async { Ok(ToolOutput::text("here".to_owned())) })
    }

    #[tokio::test]
    async fn results_stand_in_the_order_of_the_calls() {
        let mut test = TestContext::new(&[]).await;
        let write = json!({ "path": "a.rs", "content": "one\n" });
        test.record_reply(&[
            call("c1", "write_file", write),
            call("c2", "test_tool", Value::Null),
            call("c3", "no_such_tool", Value::Null),
        ]);
        run(&mut test, answering(), &CancellationToken::new()).await.unwrap();
        let expected = [("c1".to_owned(), false), ("c2".to_owned(), false), ("c3".to_owned(), true)];
        assert_eq!(results(&test), expected);
        assert_eq!(std::fs::read_to_string(test.root.join("a.rs")).unwrap(), "one\n");
        assert!(test.checkpoints.checkpoint_before_task().is_some(), "the tree is recorded before a change");
    }

    #[tokio::test]
    async fn an_intent_is_on_record_before_the_tool_runs() {
        let mut test = TestContext::new(&[]).await;
        test.record_reply(&[call("c1", "test_tool", Value::Null)]);
        let log = test.cx.transcript.log().clone();
        let unwritten = Arc::new(AtomicUsize::new(usize::MAX));
        let seen = Arc::clone(&unwritten);
        let tool = ClosureTool::new("test_tool", move |_| {
            seen.store(log.unwritten_count(), Ordering::SeqCst);
            async { Ok(ToolOutput::text("here".to_owned())) }
        });
        run(&mut test, tool, &CancellationToken::new()).await.unwrap();
        assert_eq!(unwritten.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_stopped_step_runs_nothing_and_answers_every_call() {
        let mut test = TestContext::new(&[]).await;
        test.record_reply(&[call("c1", "test_tool", Value::Null), call("c2", "test_tool", Value::Null)]);
        let stop = CancellationToken::new();
        stop.cancel();
        let tool = ClosureTool::new("test_tool", |_| async { panic!("nothing is to run") });
        run(&mut test, tool, &stop).await.unwrap();
        assert_eq!(results(&test), [("c1".to_owned(), true), ("c2".to_owned(), true)]);
    }

    #[tokio::test]
    async fn calls_above_the_limit_of_a_reply_are_refused() {
        let mut test = TestContext::new(&[]).await;
        let calls: Vec<ToolUse> = (0..=MAX_CALLS_PER_REPLY)
            .map(|number| call(&format!("c{number}"), "test_tool", Value::Null))
            .collect();
        test.record_reply(&calls);
        run(&mut test, answering(), &CancellationToken::new()).await.unwrap();
        let failed: Vec<String> =
            results(&test).into_iter().filter_map(|(id, is_error)| is_error.then_some(id)).collect();
        assert_eq!(failed, [format!("c{MAX_CALLS_PER_REPLY}")]);
        let ends = test.events().await.iter().filter(|it| matches!(it, Event::ToolEnd { .. })).count();
        assert_eq!(ends, MAX_CALLS_PER_REPLY + 1);
    }

    #[tokio::test]
    async fn what_another_model_used_counts_to_the_task() {
        let mut test = TestContext::new(&[]).await;
        test.cx.settings.price = Some(Price { input: 1_000.0, ..Price::FREE });
        test.cx.settings.budget_usd = Some(0.5);
        let tool = |usd| {
            ClosureTool::new("test_tool", move |_| async move {
                let usage = Usage { input: Tokens(1_000), ..Usage::default() };
                let foreign_usage = Some(ForeignUsage { usage, usd });
                Ok(ToolOutput { foreign_usage, ..ToolOutput::text("done") })
            })
        };
        test.record_reply(&[call("c1", "test_tool", Value::Null)]);
        run(&mut test, tool(Some(0.25)), &CancellationToken::new()).await.unwrap();
        let counters = test.cx.transcript.state().counters;
        assert_eq!((counters.total_usage().input, counters.usage.input), (Tokens(1_000), Tokens(0)));
        assert_eq!(spent_usd(&test.cx), Some(0.25), "by its own price, not by the model's");
        test.record_reply(&[call("c2", "test_tool", Value::Null)]);
        run(&mut test, tool(Some(0.25)), &CancellationToken::new()).await.unwrap();
        assert!(end_if_limit_reached(&test.cx).is_some());
        test.record_reply(&[call("c3", "test_tool", Value::Null)]);
        run(&mut test, tool(None), &CancellationToken::new()).await.unwrap();
        assert_eq!(spent_usd(&test.cx), None, "a part of it is unknown");
        assert!(end_if_limit_reached(&test.cx).is_some(), "the known part counts");
    }
}
