//! Approvals: judges calls by policy, and asks a person where policy says so.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::OptionFuture;
use futures_util::stream::FuturesUnordered;
use journeyman_policy::secrets::is_settings_file;
use journeyman_policy::{Call, CallingAgent, Policy, RuleLayer, Rules};
use journeyman_protocol::{
    AgentState, CallRecord, CallState, Decision, Effects, Enforcement, Event, Mode, RelPath, RunOutcome,
    SandboxNeeds, ToolUse, TurnPhase, Verdict,
};
use journeyman_tools::Registry;
use journeyman_verify::test_files::is_test_file;
use tokio_util::sync::CancellationToken;

use super::ask_user;
use super::authorization::{ApprovedCall, Authorization, JudgedCall, PermissionQuestion, RefusedCall};
use super::call_diff::diff_call;
use super::decision_record::{describe_note, emit_decision, record_approval};
use super::lasting_answers::{LastingAnswer, LastingAnswers};
use crate::AgentError;
use crate::agents::role::{AgentRole, EditScope};
use crate::calls::call_end::record_call_end;
use crate::calls::finished_call::FinishedCall;
use crate::durations::format_duration;
use crate::session::context::SessionContext;
use crate::session::shared_state::{AuthoredAnswer, PermissionAnswer};
use crate::session::task_end::TaskEnd;
use crate::transcript::running_transcript::CallChange;

/// Number of calls refused because there was no one to ask after which the run ends. After three
/// refusals a model has no other way to continue.
const MAX_UNANSWERED_CALLS: u32 = 3;
/// The tool names under which checks, and the step that fetches what they need, are authorized:
/// rules use these names.
pub(crate) const CHECK_TOOL: &str = "check";
pub(crate) const SETUP_TOOL: &str = "setup";
/// The author name of a hook's decision.
pub(crate) const HOOK_AUTHOR: &str = "hook";
/// The author name of a refusal by an agent's definition.
pub(crate) const AGENT_AUTHOR: &str = "agent";
/// The note in the log for a call that an earlier answer allows.
const ALLOWED_EARLIER_NOTE: &str = "allowed from now on, earlier in this session";

/// The answer to a question, if there is one, with the question's index.
type IndexedAnswer = (usize, Option<AuthoredAnswer>);

/// The policy, and the open questions that it leaves to a person.
pub(crate) struct Approvals {
    pub(super) policy: Policy,
    registry: Arc<Registry>,
    /// The agent that makes the calls; `None` for the session that a person started.
    agent: Option<Arc<AgentRole>>,
    /// The lasting answers in this session, its agents and the sessions above.
    pub(super) lasting: LastingAnswers,
    /// Number of lasting answers that the policy has.
    pub(super) lasting_count: usize,
    /// Number of calls of the task that were refused because there was no one to ask.
    unanswered_count: u32,
}

impl Approvals {
    pub(crate) fn new(policy: Policy, registry: Arc<Registry>) -> Self {
        Self {
            policy,
            registry,
            agent: None,
            lasting: LastingAnswers::default(),
            lasting_count: 0,
            unanswered_count: 0,
        }
    }

    /// Sets the role of the agent that makes the calls, if any.
    pub(crate) fn with_role(mut self, role: Option<Arc<AgentRole>>) -> Self {
        self.agent = role;
        self
    }

    /// Resets the count of unanswered questions.
    pub(crate) fn begin_task(&mut self) {
        self.unanswered_count = 0;
    }

    /// Returns the number of calls of the task that were refused because there was no one to ask.
    pub(crate) fn unanswered_count(&self) -> u32 {
        self.unanswered_count
    }

    /// Returns the task's end if too many calls were refused because there was no one to ask.
    pub(crate) fn end_if_too_many_unanswered(&self) -> Option<TaskEnd> {
        let why = "a permission was needed and there was nobody to ask; run it in a terminal, or with a wider --mode";
        (self.unanswered_count >= MAX_UNANSWERED_CALLS)
            .then(|| TaskEnd::new(RunOutcome::PermissionNeeded, why))
    }

    /// Refuses a call because there is no one to ask.
    pub(crate) fn refuse_unanswerable(
        &mut self,
        cx: &SessionContext,
        call: &ToolUse,
        verdict: Verdict,
        text: String,
    ) -> FinishedCall {
        self.unanswered_count += 1;
        if let Some(budget) = &cx.settings.shared_budget {
            budget.record_unanswered_call();
        }
        emit_decision(cx, call, false, "headless", None);
        FinishedCall { verdict: Some(verdict), ..FinishedCall::denied(text, "headless") }
    }

    /// Returns the agent that makes the calls; `None` for the session that a person started.
    pub(crate) fn calling_agent(&self) -> Option<CallingAgent<'_>> {
        self.agent.as_ref().map(|role| role.calling_agent())
    }

    /// Returns the rules that a lasting answer about a call would make.
    pub(crate) fn propose_rules(&self, call: &Call<'_>) -> Option<Rules> {
        self.policy.propose_rules(call).ok()
    }

    /// Registers the project's own check commands with policy.
    pub(crate) fn register_checks(&mut self, commands: Vec<String>) {
        self.policy = std::mem::take(&mut self.policy).with_checks(commands);
    }

    /// Returns a predicate for the files that a search may show: those that `read_file` may read
    /// without asking. A link to settings is left out, because their values are masked by the
    /// file's name.
    pub(crate) fn visible_file_filter(
        &self,
        cx: &SessionContext,
    ) -> Arc<dyn Fn(&RelPath) -> bool + Send + Sync> {
        let (policy, agent, mode) = (self.policy.clone(), self.agent.clone(), cx.settings.mode);
        let workspace = Arc::clone(&cx.workspace);
        Arc::new(move |path| {
            let agent = agent.as_ref().map(|role| role.calling_agent());
            let may_read = |path: &RelPath| policy.allows_reading(path, mode, agent);
            // What can't be resolved can't be read.
            let real = workspace.canonicalize(path).ok().filter(|real| real != path);
            may_read(path) && real.is_none_or(|real| may_read(&real) && !is_settings_file(&real.to_string()))
        })
    }

    /// Returns a one-line summary of a call for people.
    pub(crate) fn summarize_call(&self, cx: &SessionContext, call: &ToolUse) -> String {
        let Ok(tool) = self.registry.get(&call.name) else { return call.name.clone() };
        // Redacted before the tool shortens the input, because a part of a secret would not be
        // recognized.
        let mut input = call.input.clone();
        cx.redactor.redact_json(&mut input);
        tool.summary(&input)
    }

    /// Judges a call by policy. The sandbox is probed only for calls that may change something,
    /// because the first probe takes a few milliseconds.
    pub(crate) async fn judge_call(
        &self,
        cx: &SessionContext,
        tool: &str,
        effects: &Effects,
        read_only: bool,
    ) -> JudgedCall {
        let mode = cx.settings.mode;
        if read_only {
            return self.judge_in_mode(tool, effects, mode, None);
        }
        let sandbox = cx.sandbox.enforcement(&cx.settings.needs).await.ok();
        let confined = sandbox.as_ref().is_some_and(|it| it.first_unmet(&SandboxNeeds::ALL).is_none());
        // `auto` requires a sandbox that meets every need, and is `edit` otherwise, also for a user
        // who allowed unconfined commands: a wider mode never asks for what a narrower mode allows.
        let mode = if mode == Mode::Auto && !confined { Mode::Edit } else { mode };
        self.judge_in_mode(tool, effects, mode, sandbox)
    }

    pub(crate) fn judge_in_mode(
        &self,
        tool: &str,
        effects: &Effects,
        mode: Mode,
        sandbox: Option<Enforcement>,
    ) -> JudgedCall {
        let agent = self.calling_agent();
        let call = Call { tool, agent, mode, effects, sandbox: sandbox.as_ref() };
        let mut verdict = self.policy.judge(&call);
        if let Some(path) = self.find_edit_beyond_scope(effects) {
            verdict.decision = Decision::Deny;
            verdict.reason = format!("this agent may change files of tests alone, and `{path}` is none");
        }
        JudgedCall { verdict, mode, sandbox }
    }

    /// Returns a file that the call writes and that the agent may not change.
    fn find_edit_beyond_scope<'a>(&self, effects: &'a Effects) -> Option<&'a RelPath> {
        self.filter_beyond_scope(effects.writes.iter()).next()
    }

    /// Returns the files among `paths` that the agent may not change.
    pub(crate) fn filter_beyond_scope<'a>(
        &self,
        paths: impl Iterator<Item = &'a RelPath>,
    ) -> impl Iterator<Item = &'a RelPath> {
        let edits = self.agent.as_ref().map(|role| role.edits).unwrap_or_default();
        paths.filter(move |path| match edits {
            EditScope::All => false,
            EditScope::TestFiles => !is_test_file(&path.to_string()),
        })
    }

    /// Turns a verdict into the next action: run the call, ask a person, or refuse the call.
    pub(crate) fn apply_verdict(
        &mut self,
        cx: &mut SessionContext,
        ready: ApprovedCall,
        judged: JudgedCall,
    ) -> Authorization {
        if ready.preview.is_some() && judged.verdict.decision != Decision::Deny {
            let reason =
                format!("{}; it is tried out first, and lands when that is allowed", judged.verdict.reason);
            let verdict = Verdict { decision: Decision::Allow, reason, ..judged.verdict };
            cx.transcript.change_call(&ready.call, CallState::Approved, verdict.into());
            return Authorization::Run(ready);
        }
        if ready.call.name == ask_user::TOOL_NAME && judged.verdict.decision != Decision::Deny {
            return authorize_question(cx, ready, judged);
        }
        match judged.verdict.decision {
            Decision::Allow => {
                let verdict = judged.verdict;
                let in_session = |rule: &String| rule.starts_with(RuleLayer::Session.name());
                let note = verdict.rules.iter().any(in_session).then(|| ALLOWED_EARLIER_NOTE.to_owned());
                let change = CallChange { note, by: None, verdict: Some(verdict) };
                cx.transcript.change_call(&ready.call, CallState::Approved, change);
                Authorization::Run(ready)
            }
            Decision::Deny => {
                let verdict = judged.verdict;
                let text = format!("denied: {}", verdict.reason);
                Authorization::Done(FinishedCall {
                    verdict: Some(verdict),
                    ..FinishedCall::denied(text, "policy")
                })
            }
            Decision::Ask => self.ask_or_refuse(cx, ready, judged),
        }
    }

    fn ask_or_refuse(
        &mut self,
        cx: &mut SessionContext,
        mut ready: ApprovedCall,
        judged: JudgedCall,
    ) -> Authorization {
        let before = cx.transcript.state().calls.iter().find(|open| open.call.id == ready.call.id);
        let approved =
            |record: &CallRecord| record.state == CallState::Approved && is_approved_by_person(record);
        if let Some(open) = before.filter(|open| approved(&open.record)) {
            // A person approved the call before the program was cut off, and the log has the
            // answer. Approvals by a wider mode or a hook don't count here.
            let note = open.record.approval.as_ref().and_then(|approval| approval.note.as_deref());
            ready.context.extend(note.map(describe_note));
            return Authorization::Run(ready);
        }
        if cx.can_ask() {
            let (tool, effects) = (ready.call.name.as_str(), &ready.effects);
            let call = Call {
                tool,
                agent: self.calling_agent(),
                mode: judged.mode,
                effects,
                sandbox: judged.sandbox.as_ref(),
            };
            let rules = self.propose_rules(&call);
            return Authorization::Ask(ready, PermissionQuestion { judged, rules, diff: None });
        }
        let verdict = judged.verdict;
        let why = format!("needs a person's permission ({}) and nobody can be asked here", verdict.reason);
        // The result of a call is for the model, the reason why a check didn't run for people.
        let text = match ready.call.name.as_str() {
            CHECK_TOOL | SETUP_TOOL => format!("it {why}"),
            name => format!("denied: {name} {why}. Go on without it if you can."),
        };
        Authorization::Done(self.refuse_unanswerable(cx, &ready.call, verdict, text))
    }

    /// Asks policy, and a person if needed, for permission to run a check. Returns the reason if
    /// the check may not run. A check isn't a call of the model, so an allowed check leaves no
    /// record.
    pub(crate) async fn authorize_check(
        &mut self,
        cx: &mut SessionContext,
        call: ToolUse,
        effects: Effects,
        judged: JudgedCall,
        stop: &CancellationToken,
    ) -> Result<Option<String>, AgentError> {
        if judged.verdict.decision == Decision::Allow {
            return Ok(None);
        }
        let limit = cx.settings.tool_timeout;
        let (read_only, context) = (false, Vec::new());
        let ready = ApprovedCall {
            call,
            effects,
            read_only,
            starts_agents: false,
            time_limit: limit,
            context,
            preview: None,
            layer: None,
        };
        match self.apply_verdict(cx, ready, judged) {
            Authorization::Run(_) => Ok(None),
            Authorization::Done(refused) => Ok(Some(refused.text())),
            Authorization::Ask(ready, question) => {
                let mut answered = self.ask_about_calls(cx, vec![(ready, question)], stop).await?;
                Ok(answered.pop().and_then(|answer| answer.err().map(|refused| refused.finished.text())))
            }
        }
    }

    /// Asks about several calls at once and waits until all are answered. `Ok` holds the calls that
    /// may run.
    pub(crate) async fn ask_about_calls(
        &mut self,
        cx: &mut SessionContext,
        asked: Vec<(ApprovedCall, PermissionQuestion)>,
        stop: &CancellationToken,
    ) -> Result<Vec<Result<ApprovedCall, Box<RefusedCall>>>, AgentError> {
        let waiting: FuturesUnordered<_> = FuturesUnordered::new();
        for (place, (ready, question)) in asked.iter().enumerate() {
            let diff = match &question.diff {
                Some(diff) => Some(diff.clone()),
                None => diff_call(&self.registry, cx, &ready.call).await.ok().flatten(),
            };
            let answer = self.open_question(cx, ready, question, diff);
            waiting.push(async move { (place, answer.await.ok()) });
        }
        self.wait_for_answers(cx, waiting, asked, stop).await
    }

    /// Waits until each question has an answer, or is withdrawn.
    async fn wait_for_answers(
        &mut self,
        cx: &mut SessionContext,
        mut waiting: FuturesUnordered<impl Future<Output = IndexedAnswer>>,
        asked: Vec<(ApprovedCall, PermissionQuestion)>,
        stop: &CancellationToken,
    ) -> Result<Vec<Result<ApprovedCall, Box<RefusedCall>>>, AgentError> {
        cx.transcript.set_agent_state(AgentState::Paused);
        cx.transcript.set_phase(TurnPhase::AwaitingApproval);
        cx.transcript.flush().await?;
        let deadline: OptionFuture<_> = cx.settings.approval_timeout.map(tokio::time::sleep).into();
        tokio::pin!(deadline);
        let mut open: Vec<Option<(ApprovedCall, PermissionQuestion)>> = asked.into_iter().map(Some).collect();
        let mut answered = Vec::new();
        // An answer at another session of the same tree may cover a question here.
        let mut lasting = self.lasting.watch();
        lasting.mark_changed();
        while open.iter().any(Option::is_some) {
            let heard: Option<IndexedAnswer> = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                Ok(()) = lasting.changed() => {
                    self.allow_covered_calls(cx, &mut open, &mut answered);
                    cx.transcript.flush().await?;
                    continue;
                }
                heard = waiting.next() => heard,
                Some(()) = &mut deadline => None,
            };
            match heard {
                Some((place, Some(decided))) => {
                    self.apply_answer(cx, place, decided, &mut open, &mut answered);
                    // Recorded before the call takes effect and before later answers.
                    cx.transcript.flush().await?;
                }
                // The question was withdrawn, such as by an interrupt.
                Some((place, None)) if !stop.is_cancelled() => {
                    self.close_questions(cx, &mut open, Some(place), "interrupt", &mut answered);
                }
                _ => {
                    let by = if stop.is_cancelled() { "interrupt" } else { "timeout" };
                    self.close_questions(cx, &mut open, None, by, &mut answered);
                }
            }
        }
        cx.transcript.set_agent_state(AgentState::Working);
        answered.sort_by_key(|(place, _)| *place);
        Ok(answered.into_iter().map(|(_, answer)| answer).collect())
    }

    /// Opens a question about one call.
    fn open_question(
        &self,
        cx: &mut SessionContext,
        ready: &ApprovedCall,
        question: &PermissionQuestion,
        diff: Option<String>,
    ) -> tokio::sync::oneshot::Receiver<AuthoredAnswer> {
        let verdict = question.judged.verdict.clone();
        cx.transcript.change_call(&ready.call, CallState::ApprovalRequired, verdict.clone().into());
        let answer = cx.shared.open_question(&ready.call.id);
        cx.transcript.emit(Event::PermissionRequired {
            call: ready.call.id.clone(),
            tool: ready.call.name.clone(),
            input: ready.call.input.clone(),
            summary: self.summarize_call(cx, &ready.call),
            verdict,
            rule: question.rules.as_ref().map(Rules::to_toml),
            diff,
        });
        answer
    }

    /// Applies one answer. A lasting answer also settles the other open questions that its rule
    /// covers.
    fn apply_answer(
        &mut self,
        cx: &mut SessionContext,
        place: usize,
        decided: AuthoredAnswer,
        open: &mut [Option<(ApprovedCall, PermissionQuestion)>],
        answered: &mut Vec<IndexedOutcome>,
    ) {
        let Some((mut ready, question)) = open.get_mut(place).and_then(Option::take) else { return };
        let AuthoredAnswer { answer, by } = decided;
        if ready.call.name == ask_user::TOOL_NAME {
            return record_question_answer(cx, ready.call, place, AuthoredAnswer { answer, by }, answered);
        }
        match answer {
            PermissionAnswer::Answer { text } => {
                let answer = PermissionAnswer::Deny { note: Some(text) };
                let denied = AuthoredAnswer { answer, by };
                if let Some(slot) = open.get_mut(place) {
                    *slot = Some((ready, question));
                    self.apply_answer(cx, place, denied, open, answered);
                }
            }
            PermissionAnswer::Deny { .. } | PermissionAnswer::NoAnswer { .. } => {
                let (text, note) = describe_denial(answer);
                emit_decision(cx, &ready.call, false, &by, note);
                if cx.transcript.state().is_open(&ready.call.id) {
                    // Recorded at once, so that no one is asked again after a crash about a call
                    // they denied.
                    record_call_end(cx, &ready.call, FinishedCall::denied(text.clone(), &by));
                }
                let finished = FinishedCall::denied(text, &by);
                answered.push((place, Err(Box::new(RefusedCall { call: ready.call, finished }))));
            }
            PermissionAnswer::Allow { note } => {
                record_approval(cx, &mut ready, note, &by);
                answered.push((place, Ok(ready)));
            }
            PermissionAnswer::AllowRule { note } => {
                record_approval(cx, &mut ready, note, &by);
                answered.push((place, Ok(ready)));
                let Some(rules) = question.rules else { return };
                let session = cx.session.clone();
                self.lasting.add(LastingAnswer { rules, session, by });
                self.allow_covered_calls(cx, open, answered);
            }
        }
    }

    /// Closes open questions without an answer: the one at index `only`, or all.
    fn close_questions(
        &self,
        cx: &SessionContext,
        open: &mut [Option<(ApprovedCall, PermissionQuestion)>],
        only: Option<usize>,
        by: &str,
        answered: &mut Vec<IndexedOutcome>,
    ) {
        for (place, slot) in open.iter_mut().enumerate() {
            if only.is_some_and(|only| only != place) {
                continue;
            }
            let Some((ready, _)) = slot.take() else { continue };
            cx.shared.withdraw_question(&ready.call.id);
            emit_decision(cx, &ready.call, false, by, None);
            let finished = match by {
                "timeout" => {
                    let waited = cx.settings.approval_timeout.unwrap_or(Duration::ZERO);
                    let waited = format_duration(waited);
                    FinishedCall::denied(format!("denied: nobody answered within {waited}"), by)
                }
                _ => FinishedCall::interrupted(),
            };
            answered.push((place, Err(Box::new(RefusedCall { call: ready.call, finished }))));
        }
    }
}

/// Asks a person a question of the model. If nobody can be asked, the call's result says so.
fn authorize_question(cx: &mut SessionContext, ready: ApprovedCall, judged: JudgedCall) -> Authorization {
    let open = cx.transcript.state().calls.iter().find(|open| open.call.id == ready.call.id);
    let approval = open.and_then(|open| open.record.approval.clone());
    if let Some(answer) = approval.filter(|it| it.allowed == Some(true)).and_then(|it| it.note) {
        // The answer is logged, but the program ended before the model got the result.
        return Authorization::Done(answered_call(&answer));
    }
    if cx.can_ask() {
        return Authorization::Ask(ready, PermissionQuestion { judged, rules: None, diff: None });
    }
    cx.unanswered_question = Some(ask_user::question_line(&ready.call.input));
    emit_decision(cx, &ready.call, false, "headless", None);
    Authorization::Done(FinishedCall::without_output(CallState::Failed, ask_user::NOBODY_TO_ASK_TEXT))
}

/// Records a person's answer to a question of the model as the result of its call.
fn record_question_answer(
    cx: &mut SessionContext,
    call: ToolUse,
    place: usize,
    decided: AuthoredAnswer,
    answered: &mut Vec<IndexedOutcome>,
) {
    let AuthoredAnswer { answer, by } = decided;
    let finished = match ask_user::answer_text(answer) {
        Ok(text) => {
            emit_decision(cx, &call, true, &by, Some(text.clone()));
            let change = CallChange { note: Some(text.clone()), by: Some(&by), verdict: None };
            cx.transcript.change_call(&call, CallState::Approved, change);
            answered_call(&text)
        }
        Err(reason) => {
            emit_decision(cx, &call, false, &by, Some(reason.clone()));
            FinishedCall::denied(reason, &by)
        }
    };
    if cx.transcript.state().is_open(&call.id) {
        record_call_end(cx, &call, finished);
    }
    let finished = FinishedCall::interrupted();
    answered.push((place, Err(Box::new(RefusedCall { call, finished }))));
}

fn answered_call(answer: &str) -> FinishedCall {
    FinishedCall::without_output(CallState::Completed, format!("The user answers: {answer}"))
}

/// Returns the result of a denied call for the model, and the note for the log.
fn describe_denial(answer: PermissionAnswer) -> (String, Option<String>) {
    match answer {
        PermissionAnswer::NoAnswer { reason } => (format!("no answer ({reason}): denied"), Some(reason)),
        PermissionAnswer::Deny { note: Some(note) } => (format!("denied by the user: {note}"), Some(note)),
        _ => ("denied by the user; don't try it again another way without asking".to_owned(), None),
    }
}

/// The outcome of a question, with the question's index.
pub(super) type IndexedOutcome = (usize, Result<ApprovedCall, Box<RefusedCall>>);

/// Returns true if a person (not a hook or a rule) approved the call.
fn is_approved_by_person(record: &CallRecord) -> bool {
    let approval = record.approval.as_ref();
    approval
        .is_some_and(|it| it.allowed == Some(true) && it.by.as_deref().is_some_and(|by| by != HOOK_AUTHOR))
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::CallId;
    use serde_json::json;

    use super::*;
    use crate::session::settings::Approver;
    use crate::test_context::{TestContext, approved, call};

    /// Creates a context in which a person answers, in the mode that asks about each change.
    async fn with_person() -> TestContext {
        let mut test = TestContext::new(&[]).await;
        test.cx.settings.approver = Approver::Handle;
        test.cx.settings.mode = Mode::Ask;
        test
    }

    /// Opens the question about a call that writes a file.
    async fn question(test: &mut TestContext, id: &str, path: &str) -> (ApprovedCall, PermissionQuestion) {
        let call = call(id, "write_file", json!({ "path": path, "content": "x" }));
        let ready = approved(call, &[path]);
        let judged = test.approvals.judge_call(&test.cx, &ready.call.name, &ready.effects, false).await;
        match test.approvals.apply_verdict(&mut test.cx, ready, judged) {
            Authorization::Ask(ready, question) => (ready, question),
            Authorization::Run(_) | Authorization::Done(_) => panic!("{path} is to be asked about"),
        }
    }

    #[tokio::test]
    async fn unanswerable_calls_are_refused_and_end_the_task_at_the_third() {
        let mut test = TestContext::new(&[]).await;
        test.cx.settings.mode = Mode::Ask;
        for count in 1..=MAX_UNANSWERED_CALLS {
            assert_eq!(test.approvals.end_if_too_many_unanswered(), None, "before refusal {count}");
            let ready = approved(call("c1", "write_file", json!({ "path": "a", "content": "" })), &["a"]);
            let judged = test.approvals.judge_call(&test.cx, "write_file", &ready.effects, false).await;
            let Authorization::Done(refused) = test.approvals.apply_verdict(&mut test.cx, ready, judged)
            else {
                panic!("nobody can be asked")
            };
            assert_eq!((refused.state, refused.by.as_deref()), (CallState::Denied, Some("headless")));
        }
        assert_eq!(
            test.approvals.end_if_too_many_unanswered().unwrap().outcome,
            RunOutcome::PermissionNeeded
        );
        test.approvals.begin_task();
        assert_eq!(test.approvals.end_if_too_many_unanswered(), None, "a task counts anew");
    }

    #[tokio::test]
    async fn a_lasting_answer_settles_the_other_questions_of_its_rule() {
        let mut test = with_person().await;
        test.record_reply(&[
            call("c1", "run_command", json!({ "command": "cargo test" })),
            call("c2", "run_command", json!({ "command": "cargo test" })),
            call("c3", "run_command", json!({ "command": "cargo bench" })),
        ]);
        let mut asked = Vec::new();
        for (id, command) in [("c1", "cargo test"), ("c2", "cargo test"), ("c3", "cargo bench")] {
            let mut ready = approved(call(id, "run_command", json!({ "command": command })), &[]);
            ready.effects.command = Some(command.to_owned());
            let judged = test.approvals.judge_call(&test.cx, "run_command", &ready.effects, false).await;
            match test.approvals.apply_verdict(&mut test.cx, ready, judged) {
                Authorization::Ask(ready, question) => asked.push((ready, question)),
                _ => panic!("{command} is to be asked about"),
            }
        }
        let shared = Arc::clone(&test.cx.shared);
        let stop = CancellationToken::new();
        let answers = async {
            let mut status = shared.status.subscribe();
            status.wait_for(|status| status.asked.len() == 3).await.unwrap();
            let by = "ada".to_owned();
            let lasting = AuthoredAnswer { answer: PermissionAnswer::allow_rule(), by: by.clone() };
            assert!(shared.answer_question(&CallId::new("c1"), lasting));
            status.wait_for(|status| status.asked == [CallId::new("c3")]).await.unwrap();
            assert!(shared.answer_question(
                &CallId::new("c3"),
                AuthoredAnswer { answer: PermissionAnswer::deny(), by }
            ));
        };
        let (answered, ()) =
            tokio::join!(test.approvals.ask_about_calls(&mut test.cx, asked, &stop), answers);
        let allowed: Vec<bool> = answered.unwrap().iter().map(Result::is_ok).collect();
        assert_eq!(allowed, [true, true, false]);
        assert!(test.cx.transcript.state().is_open(&CallId::new("c1")));
        assert!(!test.cx.transcript.state().is_open(&CallId::new("c3")), "a denial is on record at once");
        assert_eq!(test.reloaded_state().await.allowed.len(), 1, "the rule survives a restart");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unanswered_question_is_a_denial_after_its_time() {
        let mut test = with_person().await;
        test.cx.settings.approval_timeout = Some(Duration::from_secs(90));
        test.record_reply(&[call("c1", "write_file", json!({ "path": "a", "content": "x" }))]);
        let asked = question(&mut test, "c1", "a").await;
        let stop = CancellationToken::new();
        let mut answered = test.approvals.ask_about_calls(&mut test.cx, vec![asked], &stop).await.unwrap();
        let Some(Err(refused)) = answered.pop() else { panic!("nobody answered") };
        assert_eq!(refused.finished.text(), "denied: nobody answered within 90 s");
        assert_eq!(test.cx.shared.status.borrow().asked, [], "the question is withdrawn");
    }

    #[tokio::test]
    async fn an_answer_on_record_is_not_asked_for_again() {
        let mut test = with_person().await;
        test.record_reply(&[call("c1", "write_file", json!({ "path": "a", "content": "x" }))]);
        let (mut ready, _) = question(&mut test, "c1", "a").await;
        record_approval(&mut test.cx, &mut ready, Some("only this once".to_owned()), "ada");
        let again = approved(ready.call, &["a"]);
        let judged = test.approvals.judge_call(&test.cx, "write_file", &again.effects, false).await;
        let Authorization::Run(ready) = test.approvals.apply_verdict(&mut test.cx, again, judged) else {
            panic!("a person has allowed it")
        };
        assert_eq!(ready.context, ["The user allowed this and says: only this once"]);
    }

    #[tokio::test]
    async fn an_interrupt_ends_the_wait_for_answers() {
        let mut test = with_person().await;
        test.record_reply(&[call("c1", "write_file", json!({ "path": "a", "content": "x" }))]);
        let asked = question(&mut test, "c1", "a").await;
        let stop = CancellationToken::new();
        stop.cancel();
        let mut answered = test.approvals.ask_about_calls(&mut test.cx, vec![asked], &stop).await.unwrap();
        let Some(Err(refused)) = answered.pop() else { panic!("the task was stopped") };
        assert_eq!(refused.finished.state, CallState::Interrupted);
    }
}
