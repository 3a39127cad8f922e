//! Whether a call may run: validated, judged, looked at by hooks, asked for if need be.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::OptionFuture;
use futures_util::stream::FuturesUnordered;
use journeyman_policy::{Call, Layer, Rules, is_by_rule};
use journeyman_protocol::{
    AgentState, CallId, CallRecord, CallState, CallTransition, Decision, Effects, Enforcement, Event, Level,
    Mode, RelPath, SandboxNeeds, ToolUse, TurnPhase, Verdict,
};
use journeyman_tools::CALL_TIME;
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::approval::overlay_preview::Trying;
use crate::calls::finished::Finished;
use crate::calls::runner::Ready;
use crate::hooks::PreTool;
use crate::session::shared::{Answer, Decided};
use crate::session::turn::Worker;
use crate::transcript::record::Record;

/// Who decides where a hook does.
const HOOK: &str = "hook";
/// What the log says of a call that an earlier answer allows.
const EARLIER: &str = "allowed from now on, earlier in this session";

/// What becomes of a call before it runs.
pub(crate) enum Assessed {
    /// It may run.
    Run(Ready),
    /// A person decides.
    Ask(Ready, Question),
    /// It has its result already.
    Done(Finished),
}

/// A call that a person, or the lack of one, refused.
pub(crate) struct Refused {
    pub(crate) call: ToolUse,
    pub(crate) finished: Finished,
}

/// What policy says of a call, and what that rests on.
#[derive(Clone)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    /// The mode it was judged in.
    pub(crate) mode: Mode,
    /// What confines it.
    pub(crate) sandbox: Option<Enforcement>,
}

/// What a person is asked.
pub(crate) struct Question {
    pub(crate) judged: Judged,
    /// The rules that «from now on» would make; `None` where that is never offered.
    pub(crate) rules: Option<Rules>,
}

/// A question's answer as it came, with its place among the questions.
type Heard = (usize, Option<Decided>);

impl Worker {
    /// Validates and judges a call.
    pub(crate) async fn assess(&mut self, call: &ToolUse, stop: &CancellationToken) -> Assessed {
        if stop.is_cancelled() {
            return Assessed::Done(Finished::interrupted());
        }
        if let Some(why) = &call.malformed {
            let text =
                format!("not run: the arguments are not valid JSON ({why}). Send the call again, whole.");
            return Assessed::Done(Finished::refused(CallState::Failed, text));
        }
        match self.judged(call).await {
            Ok((ready, judged)) => self.hooked(ready, judged, stop).await,
            Err(refused) => Assessed::Done(refused),
        }
    }

    /// What a call would do, and what policy says of it.
    async fn judged(&mut self, call: &ToolUse) -> Result<(Ready, Judged), Finished> {
        let failed =
            |error: journeyman_tools::ToolError| Finished::refused(CallState::Failed, error.to_string());
        let tool = self.registry.get(&call.name).map_err(failed)?;
        let effects = tool.effects(&call.input).map_err(failed)?;
        let read_only = tool.is_read_only();
        let effects = self.seen_through_links(effects);
        let mut judged = self.judge(&call.name, &effects, read_only).await;
        let limit = match tool.limit() {
            // What a tool has that says nothing of its own.
            Some(CALL_TIME) => self.settings.tool_timeout,
            Some(own) => own,
            None => Duration::MAX,
        };
        let trial = match self.trying(call, &effects, &judged.verdict).await {
            Trying::First(contained) => Some(contained),
            Trying::No => None,
            Trying::Cannot(why) => {
                judged.verdict.reason.push_str(&format!("; it can't be tried out first: {why}"));
                None
            }
        };
        let (call, context) = (call.clone(), Vec::new());
        Ok((Ready { call, effects, read_only, limit, context, trial, layer: None }, judged))
    }

    /// Adds the files that the named ones really are: a link to a guarded file is as guarded as the file.
    fn seen_through_links(&self, mut effects: Effects) -> Effects {
        let real: Vec<RelPath> = effects
            .writes
            .iter()
            .filter_map(|path| self.parts.workspace.canonical(path).ok())
            .filter(|path| !effects.writes.contains(path))
            .collect();
        effects.writes.extend(real);
        effects
    }

    /// What policy says. The sandbox is only asked what it enforces when something is to change: the first
    /// answer costs a few milliseconds.
    pub(crate) async fn judge(&self, tool: &str, effects: &Effects, read_only: bool) -> Judged {
        let mode = self.settings.mode;
        if read_only {
            return self.judge_in(tool, effects, mode, None);
        }
        let sandbox = self.parts.sandbox.enforcement(&self.settings.needs).await.ok();
        let confined = sandbox.as_ref().is_some_and(|it| it.first_unmet(&SandboxNeeds::ALL).is_none());
        // `auto` holds while the sandbox meets every need, as policy judges it; without one it is `edit`, also
        // for a user who allowed unconfined commands: a wider mode never asks for what a narrower one allows.
        let mode = if mode == Mode::Auto && !confined { Mode::Edit } else { mode };
        self.judge_in(tool, effects, mode, sandbox)
    }

    pub(crate) fn judge_in(
        &self,
        tool: &str,
        effects: &Effects,
        mode: Mode,
        sandbox: Option<Enforcement>,
    ) -> Judged {
        let call = Call { tool, agent: None, mode, effects, sandbox: sandbox.as_ref() };
        let verdict = self.parts.policy.judge(&call);
        Judged { verdict, mode, sandbox }
    }

    /// Lets the hooks look at a call that policy doesn't deny. What they change is judged anew.
    async fn hooked(&mut self, mut ready: Ready, mut judged: Judged, stop: &CancellationToken) -> Assessed {
        if judged.verdict.decision == Decision::Deny {
            return self.admit(ready, judged);
        }
        let looked = self.pre_tool(&ready, stop).await;
        ready.context = looked.context;
        if let Some(input) = looked.input {
            let amended = ToolUse { input, ..ready.call.clone() };
            match self.judged(&amended).await {
                Ok((again, anew)) => {
                    ready = Ready { context: ready.context, ..again };
                    judged = anew;
                }
                Err(refused) => return Assessed::Done(refused),
            }
        }
        match looked.decision {
            PreTool::Go => {}
            PreTool::Approve { .. } if is_a_hooks_to_approve(&judged.verdict) => {
                ready.trial = None;
                self.change(&ready.call, CallState::Approved, None, Some(HOOK), Some(judged.verdict));
                return Assessed::Run(ready);
            }
            PreTool::Approve { .. } => {}
            PreTool::Ask { reason } => {
                ready.trial = None;
                let verdict = &mut judged.verdict;
                if verdict.decision == Decision::Allow {
                    (verdict.decision, verdict.reason) = (Decision::Ask, reason);
                }
            }
            PreTool::Deny { reason } => {
                let text = format!("denied by a hook: {reason}");
                self.decided(&ready.call, false, HOOK, Some(reason));
                return Assessed::Done(Finished::denied(text, HOOK).saying(ready.context));
            }
            PreTool::Result { text, is_error } => {
                let state = if is_error { CallState::Failed } else { CallState::Completed };
                return Assessed::Done(Finished::refused(state, text).saying(ready.context));
            }
        }
        self.admit(ready, judged)
    }

    /// Whether a judged call runs, is asked for, or is refused.
    fn admit(&mut self, ready: Ready, judged: Judged) -> Assessed {
        if ready.trial.is_some() && judged.verdict.decision != Decision::Deny {
            let reason =
                format!("{}; it is tried out first, and lands when that is allowed", judged.verdict.reason);
            let verdict = Verdict { decision: Decision::Allow, reason, ..judged.verdict };
            self.change(&ready.call, CallState::Approved, None, None, Some(verdict));
            return Assessed::Run(ready);
        }
        match judged.verdict.decision {
            Decision::Allow => {
                let verdict = judged.verdict;
                let in_session = |rule: &String| rule.starts_with(Layer::Session.name());
                let note = verdict.rules.iter().any(in_session).then(|| EARLIER.to_owned());
                self.change(&ready.call, CallState::Approved, note, None, Some(verdict));
                Assessed::Run(ready)
            }
            Decision::Deny => {
                let verdict = judged.verdict;
                let text = format!("denied: {}", verdict.reason);
                Assessed::Done(Finished { verdict: Some(verdict), ..Finished::denied(text, "policy") })
            }
            Decision::Ask => self.ask_or_not(ready, judged),
        }
    }

    fn ask_or_not(&mut self, mut ready: Ready, judged: Judged) -> Assessed {
        let before = self.state.calls.iter().find(|open| open.call.id == ready.call.id);
        let approved = |record: &CallRecord| record.state == CallState::Approved && by_a_person(record);
        if let Some(open) = before.filter(|open| approved(&open.record)) {
            // A person said yes before the program was cut off, and the log has it. What a wider mode or a hook
            // allowed then is asked for now.
            let note = open.record.approval.as_ref().and_then(|approval| approval.note.as_deref());
            ready.context.extend(note.map(said));
            return Assessed::Run(ready);
        }
        if self.can_ask() {
            let (tool, effects) = (ready.call.name.as_str(), &ready.effects);
            let call =
                Call { tool, agent: None, mode: judged.mode, effects, sandbox: judged.sandbox.as_ref() };
            let rules = self.parts.policy.propose(&call).ok();
            return Assessed::Ask(ready, Question { judged, rules });
        }
        let verdict = judged.verdict;
        self.tally.unanswered += 1;
        let text = format!(
            "denied: {} needs a person's permission ({}) and nobody can be asked here. \
             Go on without it if you can.",
            ready.call.name, verdict.reason
        );
        self.decided(&ready.call, false, "headless", None);
        Assessed::Done(Finished { verdict: Some(verdict), ..Finished::denied(text, "headless") })
    }

    /// Whether a check may run; the reason where it may not. A check isn't the model's call, so an allowed one
    /// leaves no trace of its own.
    pub(crate) async fn permit_check(
        &mut self,
        call: ToolUse,
        effects: Effects,
        judged: Judged,
        stop: &CancellationToken,
    ) -> Result<Option<String>, AgentError> {
        if judged.verdict.decision == Decision::Allow {
            return Ok(None);
        }
        let limit = self.settings.tool_timeout;
        let (read_only, context) = (false, Vec::new());
        let ready = Ready { call, effects, read_only, limit, context, trial: None, layer: None };
        match self.admit(ready, judged) {
            Assessed::Run(_) => Ok(None),
            Assessed::Done(refused) => Ok(Some(refused.text())),
            Assessed::Ask(ready, question) => {
                let mut answered = self.ask_all(vec![(ready, question)], stop).await?;
                Ok(answered.pop().and_then(|answer| answer.err().map(|refused| refused.finished.text())))
            }
        }
    }

    /// Asks for several calls at once, and waits until each is answered. Who may run comes back as `Ok`.
    pub(crate) async fn ask_all(
        &mut self,
        asked: Vec<(Ready, Question)>,
        stop: &CancellationToken,
    ) -> Result<Vec<Result<Ready, Box<Refused>>>, AgentError> {
        let mut waiting: FuturesUnordered<_> = FuturesUnordered::new();
        for (place, (ready, question)) in asked.iter().enumerate() {
            let answer = self.put(ready, question);
            waiting.push(async move { (place, answer.await.ok()) });
        }
        self.become_(AgentState::Paused);
        self.at(TurnPhase::AwaitingApproval);
        self.flush().await?;
        let deadline: OptionFuture<_> = self.settings.approval_timeout.map(tokio::time::sleep).into();
        tokio::pin!(deadline);
        let mut open: Vec<Option<(Ready, Question)>> = asked.into_iter().map(Some).collect();
        let mut answered = Vec::new();
        while open.iter().any(Option::is_some) {
            let heard: Option<Heard> = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                heard = waiting.next() => heard,
                Some(()) = &mut deadline => None,
            };
            match heard {
                Some((place, Some(decided))) => {
                    self.hear(place, decided, &mut open, &mut answered);
                    // On record before its effect, and before anybody else is told.
                    self.flush().await?;
                }
                // Withdrawn, such as by an interrupt.
                Some((place, None)) if !stop.is_cancelled() => {
                    self.give_up(&mut open, Some(place), "interrupt", &mut answered);
                }
                _ => {
                    let by = if stop.is_cancelled() { "interrupt" } else { "timeout" };
                    self.give_up(&mut open, None, by, &mut answered);
                }
            }
        }
        self.become_(AgentState::Working);
        answered.sort_by_key(|(place, _)| *place);
        Ok(answered.into_iter().map(|(_, answer)| answer).collect())
    }

    /// Opens one question.
    fn put(&mut self, ready: &Ready, question: &Question) -> tokio::sync::oneshot::Receiver<Decided> {
        let verdict = question.judged.verdict.clone();
        self.change(&ready.call, CallState::ApprovalRequired, None, None, Some(verdict.clone()));
        let answer = self.shared.ask(&ready.call.id);
        self.log.emit(Event::PermissionRequired {
            call: ready.call.id.clone(),
            tool: ready.call.name.clone(),
            input: ready.call.input.clone(),
            summary: self.summary(&ready.call),
            verdict,
            rule: question.rules.as_ref().map(Rules::to_toml),
        });
        answer
    }

    /// Takes one answer; an answer for all of a kind answers the other questions of that kind as well.
    fn hear(
        &mut self,
        place: usize,
        decided: Decided,
        open: &mut [Option<(Ready, Question)>],
        answered: &mut Vec<Placed>,
    ) {
        let Some((mut ready, question)) = open.get_mut(place).and_then(Option::take) else { return };
        let Decided { answer, by } = decided;
        match answer {
            Answer::Deny { note } => {
                let text = match &note {
                    Some(note) => format!("denied by the user: {note}"),
                    None => "denied by the user; don't try it again another way without asking".to_owned(),
                };
                self.decided(&ready.call, false, &by, note);
                if self.is_open(&ready.call.id) {
                    // At once: after a crash nobody is asked again for what they have said no to.
                    self.settle(&ready.call, Finished::denied(text.clone(), &by));
                }
                let finished = Finished::denied(text, &by);
                answered.push((place, Err(Box::new(Refused { call: ready.call, finished }))));
            }
            Answer::Allow { note } => {
                self.allow(&mut ready, note, &by);
                answered.push((place, Ok(ready)));
            }
            Answer::AllowRule { note } => {
                self.allow(&mut ready, note, &by);
                answered.push((place, Ok(ready)));
                let Some(rules) = question.rules else { return };
                self.note(Record::Allowed { rule: rules.to_toml() });
                self.parts.policy = std::mem::take(&mut self.parts.policy).with_rules(rules);
                for (other, slot) in open.iter_mut().enumerate() {
                    let covered = slot.as_ref().is_some_and(|(ready, asked)| self.covers(ready, asked));
                    if covered && let Some((mut ready, _)) = slot.take() {
                        self.shared.withdraw(&ready.call.id);
                        self.allow(&mut ready, None, &by);
                        answered.push((other, Ok(ready)));
                    }
                }
            }
        }
    }

    /// Whether a call that is asked about is allowed by now. What a hook asks about is for a person to say.
    fn covers(&self, ready: &Ready, asked: &Question) -> bool {
        let Judged { mode, sandbox, .. } = asked.judged.clone();
        let now = self.judge_in(&ready.call.name, &ready.effects, mode, sandbox);
        asked.rules.is_some() && now.verdict.decision == Decision::Allow
    }

    fn allow(&mut self, ready: &mut Ready, note: Option<String>, by: &str) {
        self.decided(&ready.call, true, by, note.clone());
        self.change(&ready.call, CallState::Approved, note.clone(), Some(by), None);
        ready.context.extend(note.as_deref().map(said));
    }

    /// Whether a call of the model waits for its result.
    pub(crate) fn is_open(&self, call: &CallId) -> bool {
        self.state.calls.iter().any(|open| open.call.id == *call && open.result.is_none())
    }

    /// Closes open questions that nobody answers any more: one of them, or all.
    fn give_up(
        &mut self,
        open: &mut [Option<(Ready, Question)>],
        only: Option<usize>,
        by: &str,
        answered: &mut Vec<Placed>,
    ) {
        for (place, slot) in open.iter_mut().enumerate() {
            if only.is_some_and(|only| only != place) {
                continue;
            }
            let Some((ready, _)) = slot.take() else { continue };
            self.shared.withdraw(&ready.call.id);
            self.decided(&ready.call, false, by, None);
            let finished = match by {
                "timeout" => {
                    let waited = self.settings.approval_timeout.unwrap_or(Duration::ZERO);
                    let waited = crate::session::turn::seconds(waited);
                    Finished::denied(format!("denied: nobody answered within {waited}"), by)
                }
                _ => Finished::interrupted(),
            };
            answered.push((place, Err(Box::new(Refused { call: ready.call, finished }))));
        }
    }

    /// Tells who decided what.
    pub(crate) fn decided(&mut self, call: &ToolUse, allowed: bool, by: &str, note: Option<String>) {
        self.log.emit(Event::PermissionDecided { call: call.id.clone(), allowed, by: by.to_owned(), note });
    }

    /// Writes a step of a call's life down.
    pub(crate) fn change(
        &mut self,
        call: &ToolUse,
        state: CallState,
        note: Option<String>,
        by: Option<&str>,
        verdict: Option<Verdict>,
    ) {
        let (call, tool) = (call.id.clone(), call.name.clone());
        let by = by.map(str::to_owned);
        self.note(Record::Call(CallTransition { call, tool, state, note, by, verdict }));
    }
}

/// An answer with the place of its question.
type Placed = (usize, Result<Ready, Box<Refused>>);

/// What the model is told beside the result of a call that a person allowed with a note.
fn said(note: &str) -> String {
    format!("The user allowed this and says: {note}")
}

/// Whether whoever allowed a call was asked.
fn by_a_person(record: &CallRecord) -> bool {
    let approval = record.approval.as_ref();
    approval.is_some_and(|it| it.allowed == Some(true) && it.by.as_deref().is_some_and(|by| by != HOOK))
}

/// Whether a hook may say yes in place of a person: to what the mode asks about, and to no rule's question.
fn is_a_hooks_to_approve(verdict: &Verdict) -> bool {
    verdict.decision == Decision::Ask && verdict.level < Level::System && !is_by_rule(verdict)
}
