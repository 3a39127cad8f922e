//! A call's way: validated, judged, approved if need be, written down, run. Exactly one result a call.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use journeyman_context::fenced;
use journeyman_protocol::{
    AgentState, Block, CallId, CallState, Decision, Effects, Event, Level, Message, Mode, Needs, RelPath,
    ResultPart, Role, ToolUse, Transition, Verdict,
};
use journeyman_tools::{Registry, ToolContext, ToolError, ToolLimits, ToolOutput};
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::approvals::Answer;
use crate::holdback::Holdback;
use crate::log::LiveSink;
use crate::record::Record;
use crate::turn::Worker;

/// How many reading calls run at once (row B5 of the requirements).
const CONCURRENT_READERS: usize = 3;
/// Calls that one reply may make. More than this is a model in a loop; the rest are refused with the reason.
const MAX_CALLS: usize = 64;
/// Bytes of a result that people see in the event; the model sees the whole.
const PREVIEW: usize = 2_000;

/// A call that may run.
struct Ready {
    index: usize,
    call: ToolUse,
    read_only: bool,
}

/// A call's one result.
pub(crate) struct Finished {
    state: CallState,
    parts: Vec<ResultPart>,
    note: Option<String>,
    changes: Vec<journeyman_protocol::FileChange>,
    duration_ms: u64,
}

impl Finished {
    fn refused(state: CallState, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            state,
            parts: vec![ResultPart::Text { text: text.clone() }],
            note: Some(text),
            changes: Vec::new(),
            duration_ms: 0,
        }
    }

    fn interrupted() -> Self {
        Self::refused(CallState::Sealed, "not run: interrupted by the user")
    }

    fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .map(|part| match part {
                ResultPart::Text { text } => text.as_str(),
                ResultPart::Image(_) => "[image]",
            })
            .collect();
        texts.join("\n")
    }
}

impl Worker {
    /// Runs the calls of one reply and puts their results, in call order, into the transcript.
    pub(crate) async fn run_calls(
        &mut self,
        calls: Vec<ToolUse>,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let mut results: Vec<Option<Finished>> = Vec::new();
        results.resize_with(calls.len(), || None);
        let ran = self.run_all(&calls, &mut results, stop).await;
        if let Err(error) = &ran {
            // The transcript stays one that every provider takes, also when the task ends here.
            let waiting: Vec<usize> =
                results.iter().enumerate().filter(|(_, it)| it.is_none()).map(|(index, _)| index).collect();
            for index in waiting {
                if let Some(call) = calls.get(index) {
                    let sealed = Finished::refused(CallState::Sealed, format!("not run: {error}"));
                    self.settle(&mut results, index, call, sealed);
                }
            }
        }
        self.answer(&calls, results);
        ran
    }

    async fn run_all(
        &mut self,
        calls: &[ToolUse],
        results: &mut [Option<Finished>],
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let mut ready = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            self.announce(call);
            let outcome = match index < MAX_CALLS {
                true => self.admit(index, call, stop).await?,
                false => Err(Finished::refused(
                    CallState::Failed,
                    format!("not run: one reply may make at most {MAX_CALLS} calls; make fewer at a time"),
                )),
            };
            match outcome {
                Ok(admitted) => ready.push(admitted),
                Err(refused) => self.settle(results, index, call, refused),
            }
        }
        for group in grouped(ready) {
            self.run_group(group, calls, results, stop).await?;
        }
        Ok(())
    }

    /// Tells of a call before anything is decided.
    fn announce(&mut self, call: &ToolUse) {
        let summary = self.summary(call);
        self.log.emit(Event::ToolStart {
            call: call.id.clone(),
            tool: call.name.clone(),
            input: call.input.clone(),
            summary,
        });
        self.change(call, CallState::Pending, None, None);
    }

    fn summary(&self, call: &ToolUse) -> String {
        let Ok(tool) = self.registry.get(&call.name) else { return call.name.clone() };
        // A tool shortens what it says; half a secret is one too.
        let mut input = call.input.clone();
        self.parts.redactor.redact_json(&mut input);
        tool.summary(&input)
    }

    fn change(&mut self, call: &ToolUse, state: CallState, note: Option<String>, verdict: Option<Verdict>) {
        let transition = Transition { call: call.id.clone(), tool: call.name.clone(), state, note, verdict };
        self.log.record(Record::Call(transition));
    }

    /// Validates and judges a call, asking a person if it has to be: it may run, or has its result already.
    async fn admit(
        &mut self,
        index: usize,
        call: &ToolUse,
        stop: &CancellationToken,
    ) -> Result<Result<Ready, Finished>, AgentError> {
        if stop.is_cancelled() {
            return Ok(Err(Finished::interrupted()));
        }
        if let Some(why) = &call.malformed {
            let text =
                format!("not run: the arguments are not valid JSON ({why}). Send the call again, whole.");
            return Ok(Err(Finished::refused(CallState::Failed, text)));
        }
        let tool = match self.registry.get(&call.name) {
            Ok(tool) => tool,
            Err(error) => return Ok(Err(Finished::refused(CallState::Failed, error.to_string()))),
        };
        let effects = match tool.effects(&call.input) {
            Ok(effects) => effects,
            Err(error) => return Ok(Err(Finished::refused(CallState::Failed, error.to_string()))),
        };
        let read_only = tool.is_read_only();
        let effects = self.seen_through_links(effects);
        let verdict = self.judge(&effects, read_only).await;
        self.permit(call, &effects, verdict, stop)
            .await
            .map(|permitted| permitted.map(|()| Ready { index, call: call.clone(), read_only }))
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
    async fn judge(&self, effects: &Effects, read_only: bool) -> Verdict {
        let mode = self.settings.mode;
        if read_only {
            return self.parts.policy.judge(mode, effects, None);
        }
        let enforcement = self.parts.sandbox.enforcement().await.ok();
        let confined = enforcement.as_ref().is_some_and(|it| it.unmet(&Needs::ALL).is_none());
        // `auto` holds while the sandbox meets every need, as policy judges it; without one it is `edit`, also
        // for a user who allowed unconfined commands: a wider mode never asks for what a narrower one allows.
        let mode = if mode == Mode::Auto && !confined { Mode::Edit } else { mode };
        self.parts.policy.judge(mode, effects, enforcement.as_ref())
    }

    /// Whether a check may run; the reason where it may not. A check isn't the model's call, so an allowed one
    /// leaves no trace of its own.
    pub(crate) async fn permit_check(
        &mut self,
        call: &ToolUse,
        effects: &Effects,
        verdict: Verdict,
        stop: &CancellationToken,
    ) -> Result<Option<String>, AgentError> {
        if verdict.decision == Decision::Allow {
            return Ok(None);
        }
        let permitted = self.permit(call, effects, verdict, stop).await?;
        Ok(permitted.err().map(|refused| refused.text()))
    }

    async fn permit(
        &mut self,
        call: &ToolUse,
        effects: &Effects,
        verdict: Verdict,
        stop: &CancellationToken,
    ) -> Result<Result<(), Finished>, AgentError> {
        let key = session_key(call, effects);
        match verdict.decision {
            Decision::Allow => {
                self.change(call, CallState::Approved, None, Some(verdict));
                Ok(Ok(()))
            }
            Decision::Deny => {
                let text = format!("denied: {}", verdict.reason);
                self.change(call, CallState::Denied, Some(text.clone()), Some(verdict));
                Ok(Err(Finished::refused(CallState::Denied, text)))
            }
            Decision::Ask if verdict.level < Level::System && self.allowed.contains(&key) => {
                let note = Some("allowed for this session".to_owned());
                self.change(call, CallState::Approved, note, Some(verdict));
                Ok(Ok(()))
            }
            Decision::Ask if !self.can_ask() => {
                self.tally.unanswered += 1;
                let text = format!(
                    "denied: {} needs a person's permission ({}) and nobody can be asked here. \
                     Go on without it if you can.",
                    call.name, verdict.reason
                );
                self.decided(call, false, "headless", None);
                self.change(call, CallState::Denied, Some(text.clone()), Some(verdict));
                Ok(Err(Finished::refused(CallState::Denied, text)))
            }
            Decision::Ask => self.ask_person(call, key, verdict, stop).await,
        }
    }

    async fn ask_person(
        &mut self,
        call: &ToolUse,
        key: String,
        verdict: Verdict,
        stop: &CancellationToken,
    ) -> Result<Result<(), Finished>, AgentError> {
        self.change(call, CallState::ApprovalRequired, None, Some(verdict.clone()));
        let answer = self.shared.ask(&call.id);
        self.log.emit(Event::PermissionRequired {
            call: call.id.clone(),
            tool: call.name.clone(),
            input: call.input.clone(),
            summary: self.summary(call),
            rule: (verdict.level < Level::System).then(|| key.clone()),
            verdict,
        });
        self.log.emit(Event::StateChanged { state: AgentState::Paused });
        self.log.flush().await?;
        let answer = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            answer = answer => answer.ok(),
        };
        self.log.emit(Event::StateChanged { state: AgentState::Working });
        match answer {
            Some(answer @ (Answer::Allow | Answer::AllowForSession)) => {
                if answer == Answer::AllowForSession {
                    self.allowed.push(key);
                }
                self.decided(call, true, "user", None);
                self.change(call, CallState::Approved, None, None);
                Ok(Ok(()))
            }
            Some(Answer::Deny { note }) => {
                let text = match &note {
                    Some(note) => format!("denied by the user: {note}"),
                    None => "denied by the user; don't try it again another way without asking".to_owned(),
                };
                self.decided(call, false, "user", note);
                self.change(call, CallState::Denied, Some(text.clone()), None);
                Ok(Err(Finished::refused(CallState::Denied, text)))
            }
            None => {
                self.shared.withdraw();
                self.decided(call, false, "interrupt", None);
                Ok(Err(Finished::interrupted()))
            }
        }
    }

    fn decided(&mut self, call: &ToolUse, allowed: bool, by: &str, note: Option<String>) {
        self.log.emit(Event::PermissionDecided { call: call.id.clone(), allowed, by: by.to_owned(), note });
    }

    /// Runs calls that may overlap. Their intent is on disk before the first of them begins.
    async fn run_group(
        &mut self,
        group: Vec<Ready>,
        calls: &[ToolUse],
        results: &mut [Option<Finished>],
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        if stop.is_cancelled() {
            for ready in group {
                self.settle(results, ready.index, &ready.call, Finished::interrupted());
            }
            return Ok(());
        }
        if group.iter().any(|ready| !ready.read_only) {
            self.recorded().await?;
        }
        for ready in &group {
            self.change(&ready.call, CallState::Executing, None, None);
        }
        self.log.flush().await?;
        let contexts: Vec<(Ready, (ToolContext, LiveOutput))> = group
            .into_iter()
            .map(|ready| {
                let context = self.context(&ready.call.id, stop);
                (ready, context)
            })
            .collect();
        let registry = Arc::clone(&self.registry);
        let mut running =
            stream::iter(contexts.into_iter().map(|(ready, context)| execute(&registry, ready, context)))
                .buffered(CONCURRENT_READERS);
        let mut done = Vec::new();
        while let Some(finished) = running.next().await {
            done.push(finished);
        }
        drop(running);
        for (index, finished) in done {
            if let Some(call) = calls.get(index) {
                self.settle(results, index, call, finished);
            }
        }
        Ok(())
    }

    /// What a call works with, and the end of its live output.
    fn context(&self, call: &CallId, stop: &CancellationToken) -> (ToolContext, LiveOutput) {
        let live = LiveOutput { sink: self.log.live_sink(), call: call.clone(), held: Arc::default() };
        let output = live.clone();
        let context = ToolContext {
            workspace: Arc::clone(&self.parts.workspace),
            sandbox: Arc::clone(&self.parts.sandbox),
            toolchains: Arc::clone(&self.parts.toolchains),
            session: self.session.clone(),
            call: call.clone(),
            cancel: stop.clone(),
            output: Arc::new(move |text| output.push(&text)),
            emit: Arc::new(|_, _| {}),
            limits: ToolLimits::default(),
            seen: Arc::clone(&self.seen),
            outputs: Arc::clone(&self.outputs),
            background: Arc::clone(&self.background),
            needs: self.settings.needs,
        };
        (context, live)
    }

    /// Writes a call's end into the log and keeps its result.
    fn settle(&mut self, results: &mut [Option<Finished>], index: usize, call: &ToolUse, finished: Finished) {
        for change in &finished.changes {
            self.log.emit(Event::FileEdited { call: call.id.clone(), change: change.clone() });
        }
        if !finished.changes.is_empty() {
            let files: Vec<String> = finished.changes.iter().map(|change| change.path.to_string()).collect();
            self.tally.edits.push(format!("{}: {}", call.name, files.join(", ")));
        }
        self.log.emit(Event::ToolEnd {
            call: call.id.clone(),
            tool: call.name.clone(),
            state: finished.state,
            // Half a secret is one too: redacted before it is cut.
            preview: shortened(&self.parts.redactor.redact(&finished.text())),
            duration_ms: finished.duration_ms,
        });
        if finished.state != CallState::Denied {
            self.change(call, finished.state, finished.note.clone(), None);
        }
        if let Some(slot) = results.get_mut(index) {
            *slot = Some(finished);
        }
    }

    /// One user message with every result, in call order.
    fn answer(&mut self, calls: &[ToolUse], results: Vec<Option<Finished>>) {
        let content = calls
            .iter()
            .zip(results)
            .map(|(call, finished)| {
                let finished = finished
                    .unwrap_or_else(|| Finished::refused(CallState::Sealed, "not run: the turn ended first"));
                if self.settings.tool_calling {
                    let is_error = finished.state != CallState::Completed;
                    Block::ToolResult { id: call.id.clone(), content: finished.parts, is_error }
                } else {
                    // Fenced: what a file or a command says can't pass for the next result, or for the user.
                    Block::text(fenced("result", &[("of", &call.name)], &finished.text()))
                }
            })
            .collect();
        self.push(Message { role: Role::User, content });
    }
}

/// Runs one call to its result, whatever that is.
async fn execute(
    registry: &Registry,
    ready: Ready,
    (context, live): (ToolContext, LiveOutput),
) -> (usize, Finished) {
    if context.cancel.is_cancelled() {
        return (ready.index, Finished::interrupted());
    }
    let started = Instant::now();
    let cancel = context.cancel.clone();
    let result = match registry.get(&ready.call.name) {
        Ok(tool) => {
            // A tool may be anybody's. One that panics costs its call, not the session and the other results.
            let called = AssertUnwindSafe(tool.call(&context, ready.call.input)).catch_unwind();
            called.await.unwrap_or_else(|_| Err(ToolError::Stopped("the tool panicked".to_owned())))
        }
        Err(error) => Err(error),
    };
    live.end();
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let finished = match result {
        Ok(ToolOutput { parts, changes, is_error }) => {
            let state = match (cancel.is_cancelled(), is_error) {
                (true, _) => CallState::Sealed,
                (false, true) => CallState::Failed,
                (false, false) => CallState::Completed,
            };
            Finished { state, parts, note: None, changes, duration_ms }
        }
        Err(error) => {
            let state = if cancel.is_cancelled() { CallState::Sealed } else { CallState::Failed };
            Finished { duration_ms, ..Finished::refused(state, error.to_string()) }
        }
    };
    (ready.index, finished)
}

/// A running call's output for people, held back until it can be searched for secrets.
#[derive(Clone)]
struct LiveOutput {
    sink: LiveSink,
    call: CallId,
    held: Arc<Mutex<Holdback>>,
}

impl LiveOutput {
    fn push(&self, text: &str) {
        let shown = self.held.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        self.show(shown);
    }

    fn end(&self) {
        let rest = self.held.lock().unwrap_or_else(PoisonError::into_inner).rest();
        self.show(rest);
    }

    fn show(&self, text: Option<String>) {
        if let Some(text) = text {
            self.sink.send(Event::ToolOutput { call: self.call.clone(), text });
        }
    }
}

/// Neighbouring readers together; every call that writes or runs a command alone, in order.
fn grouped(ready: Vec<Ready>) -> Vec<Vec<Ready>> {
    let mut groups: Vec<Vec<Ready>> = Vec::new();
    for call in ready {
        match groups.last_mut() {
            Some(group) if call.read_only && group.last().is_some_and(|last| last.read_only) => {
                group.push(call);
            }
            _ => groups.push(vec![call]),
        }
    }
    groups
}

/// What «allow for this session» covers: this very call of a command, or this tool on these very files.
fn session_key(call: &ToolUse, effects: &Effects) -> String {
    match &effects.command {
        Some(_) => format!("{} $ {}", call.name, call.input),
        None => format!("{} > {:?}", call.name, effects.writes),
    }
}

/// Head of a text that people see in an event.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(PREVIEW) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}
