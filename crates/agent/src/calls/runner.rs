//! A call's way: validated, judged, approved if need be, written down, run. Exactly one result a call.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use journeyman_context::fenced;
use journeyman_policy::Call;
use journeyman_protocol::{
    Block, CallId, CallRecord, CallState, CallTransition, Decision, Effects, Event, GuardViolation, RelPath,
    ToolUse, TurnPhase,
};
use journeyman_tools::{Registry, ToolContext, ToolError, ToolLimits, ToolOutput};
use journeyman_workspace::Trial;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::approval::authorize::{Assessed, Judged};
use crate::calls::finished::Finished;
use crate::session::turn::Worker;
use crate::transcript::log::{Item, LiveSink};
use crate::transcript::record::Record;
use crate::transcript::stream_redactor::Holdback;

/// Calls that one reply may make. More than this is a model in a loop; the rest are refused with the reason.
pub(crate) const MAX_CALLS: usize = 64;
/// Bytes of a result that people see in the event; the model sees the whole.
const PREVIEW: usize = 2_000;
/// Bytes of a result as the log has it: an image, or a text that no model's window holds. The store takes no entry of
/// more than 16 MiB.
const MAX_RESULT: usize = 12 * 1024 * 1024;
/// Bytes of what a tool tells people in a form of its own.
const MAX_CUSTOM: usize = 64 * 1024;
/// How long a call that was told to end may take for it. A command's processes are killed at once; this is for
/// tools that have something to put away.
const GRACE: Duration = Duration::from_secs(5);
/// How long the end of a call may wait to be written while others still run: what people watch should not lag, and
/// ten quick calls should not cost ten fsyncs.
const LINGER: Duration = Duration::from_millis(100);

/// A call that may run.
pub(crate) struct Ready {
    pub(crate) call: ToolUse,
    pub(crate) effects: Effects,
    pub(crate) read_only: bool,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// What is to be said beside its result: hooks' and people's notes.
    pub(crate) context: Vec<String>,
    /// For one that is tried out in a layer first: what is said of it if nothing is lost.
    pub(crate) trial: Option<Box<Judged>>,
    /// That layer.
    pub(crate) layer: Option<Trial>,
}

impl Ready {
    /// The same call, to be asked about.
    pub(crate) fn again(&self) -> Self {
        let (call, effects) = (self.call.clone(), self.effects.clone());
        let (read_only, limit) = (self.read_only, self.limit);
        Self { call, effects, read_only, limit, context: Vec::new(), trial: None, layer: None }
    }

    /// Whether the two may not overlap: one of them may change what the other looks at or changes.
    fn conflicts(&self, other: &Self) -> bool {
        if self.read_only && other.read_only {
            return false;
        }
        let anywhere = |ready: &Self| {
            ready.effects.command.is_some()
                || (ready.effects.writes.is_empty() && ready.effects.reads.is_empty())
        };
        if anywhere(self) || anywhere(other) {
            return true;
        }
        let touches = |ready: &Self, path: &RelPath| {
            ready.effects.reads.contains(path) || ready.effects.writes.contains(path)
        };
        self.effects.writes.iter().any(|path| touches(other, path))
            || other.effects.writes.iter().any(|path| touches(self, path))
    }
}

impl Worker {
    /// Runs the calls of the last reply that have no result yet. Afterwards each has one, whatever happened.
    pub(crate) async fn run_calls(&mut self, stop: &CancellationToken) -> Result<(), AgentError> {
        self.at(TurnPhase::ToolPending);
        let ran = self.run_all(stop).await;
        if let Err(error) = &ran {
            // The transcript stays one that every provider takes, also when the task ends here.
            self.close_calls(&format!("not run: {error}"));
        }
        self.at(TurnPhase::PostTool);
        ran
    }

    async fn run_all(&mut self, stop: &CancellationToken) -> Result<(), AgentError> {
        let open = self.state.calls.iter().enumerate().filter(|(_, open)| open.result.is_none());
        let open: Vec<(usize, ToolUse)> = open.map(|(place, open)| (place, open.call.clone())).collect();
        let (mut ready, mut asked) = (Vec::new(), Vec::new());
        for (place, call) in open {
            if place >= MAX_CALLS {
                let text =
                    format!("not run: one reply may make at most {MAX_CALLS} calls; make fewer at a time");
                self.settle(&call, Finished::refused(CallState::Failed, text));
                continue;
            }
            match self.assess(&call, stop).await {
                Assessed::Run(one) => ready.push(one),
                Assessed::Ask(one, question) => asked.push((one, question)),
                Assessed::Done(finished) => self.settle(&call, finished),
            }
        }
        if !asked.is_empty() {
            for answer in self.ask_all(asked, stop).await? {
                match answer {
                    Ok(one) => ready.push(one),
                    Err(refused) if self.is_open(&refused.call.id) => {
                        self.settle(&refused.call, refused.finished);
                    }
                    Err(_) => {}
                }
            }
            let order: Vec<CallId> = self.state.calls.iter().map(|open| open.call.id.clone()).collect();
            ready.sort_by_key(|one| order.iter().position(|id| *id == one.call.id));
        }
        self.at(TurnPhase::PreTool);
        self.execute_all(ready, stop).await
    }

    /// One line for people: what a call does.
    pub(crate) fn summary(&self, call: &ToolUse) -> String {
        let Ok(tool) = self.registry.get(&call.name) else { return call.name.clone() };
        // A tool shortens what it says; half a secret is one too.
        let mut input = call.input.clone();
        self.parts.redactor.redact_json(&mut input);
        tool.summary(&input)
    }

    /// Runs calls, those that can't get into each other's way together. Intent is on disk before the effect.
    async fn execute_all(&mut self, ready: Vec<Ready>, stop: &CancellationToken) -> Result<(), AgentError> {
        let cancel = stop.child_token();
        let permits = Arc::new(Semaphore::new(self.settings.concurrency.max(1)));
        let label = self.step_label(&ready);
        let mut waiting = ready;
        let mut running: Vec<Ready> = Vec::new();
        let mut ends = FuturesUnordered::new();
        let mut failed = None;
        let mut unwritten = false;
        loop {
            if stop.is_cancelled() {
                for one in waiting.drain(..) {
                    self.settle(&one.call, Finished::interrupted());
                }
            }
            let next = if failed.is_none() { free(&mut waiting, &running) } else { Vec::new() };
            if !next.is_empty() {
                match self.intend(&next, &label, stop).await {
                    Ok(()) => {}
                    Err(error) => {
                        // What runs is ended and gets its result; what was about to run never does.
                        cancel.cancel();
                        failed = Some(error);
                        continue;
                    }
                }
                for mut one in next {
                    if one.trial.is_some() {
                        match self.lay().await {
                            Ok(layer) => one.layer = Some(layer),
                            Err(why) => {
                                self.settle(&one.call, Finished::refused(CallState::Failed, why));
                                continue;
                            }
                        }
                    }
                    let (context, live) = self.context(&one, &cancel);
                    let registry = Arc::clone(&self.registry);
                    let task =
                        Execution { registry, call: one.call.clone(), limit: one.limit, context, live };
                    ends.push(task.run(Arc::clone(&permits)));
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
                        if let Err(error) = self.finish(one, finished, stop).await {
                            cancel.cancel();
                            failed = Some(error);
                        }
                        unwritten = true;
                    }
                }
                () = tokio::time::sleep(LINGER), if unwritten && failed.is_none() => {
                    unwritten = false;
                    if let Err(error) = self.flush().await {
                        cancel.cancel();
                        failed = Some(error);
                    }
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Puts on disk that calls are about to run, and the tree's state before the first that may change it.
    async fn intend(
        &mut self,
        next: &[Ready],
        label: &str,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        if !stop.is_cancelled() && next.iter().any(|one| !one.read_only) {
            self.record_step(label).await?;
        }
        for one in next {
            self.change(&one.call, CallState::Executing, None, None, None);
        }
        self.at(TurnPhase::ToolExecuting);
        self.flush().await
    }

    /// What a call works with, and the end of its live output.
    fn context(&mut self, ready: &Ready, cancel: &CancellationToken) -> (ToolContext, LiveOutput) {
        let call = &ready.call.id;
        // What it leaves in a layer counts when that is landed.
        let (workspace, seen) = match &ready.layer {
            Some(layer) => (layer.workspace(), Arc::default()),
            None => (&self.parts.workspace, Arc::clone(&self.seen)),
        };
        let workspace = Arc::clone(workspace);
        let live = LiveOutput { sink: self.log.live_sink(), call: call.clone(), held: Arc::default() };
        let output = live.clone();
        let (log, custom, tool) = (self.log.clone(), call.clone(), self.tool_of(call));
        if self.background.as_ref().is_some_and(|it| it.list().iter().any(|one| one.running)) {
            // What it changes isn't known before it ends.
            self.parts.index.doubt();
        }
        let context = ToolContext {
            workspace,
            sandbox: Arc::clone(&self.parts.sandbox),
            toolchains: Arc::clone(&self.parts.toolchains),
            session: self.session.clone(),
            call: call.clone(),
            cancel: cancel.child_token(),
            output: Arc::new(move |text| output.push(&text)),
            emit: Arc::new(move |kind: &str, data| {
                let (call, tool, kind) = (custom.clone(), tool.clone(), kind.to_owned());
                let bytes = serde_json::to_vec(&data).map_or(0, |bytes| bytes.len());
                if bytes.saturating_add(kind.len()) > MAX_CUSTOM {
                    let message =
                        format!("an event of {tool} with {bytes} bytes is too long and was left out");
                    return log.emit(Event::Warning { message });
                }
                log.emit(Event::ToolCustomEvent { call, tool, kind, data });
            }),
            limits: ToolLimits::default(),
            index: Arc::clone(&self.parts.index),
            may_show: self.may_show(),
            seen,
            outputs: Arc::clone(&self.outputs),
            background: self.background(),
            needs: self.settings.needs,
        };
        (context, live)
    }

    /// What a search may show of: what `read_file` would be allowed to read without a question.
    pub(crate) fn may_show(&self) -> Arc<dyn Fn(&RelPath) -> bool + Send + Sync> {
        let (policy, mode) = (self.parts.policy.clone(), self.settings.mode);
        if policy.rules().is_empty() {
            return Arc::new(|_| true);
        }
        Arc::new(move |path| {
            let effects = Effects { reads: vec![path.clone()], ..Effects::default() };
            let call = Call { tool: "read_file", agent: None, mode, effects: &effects, sandbox: None };
            policy.judge(&call).decision == Decision::Allow
        })
    }

    fn tool_of(&self, call: &CallId) -> String {
        let open = self.state.calls.iter().find(|open| open.call.id == *call);
        open.map(|open| open.call.name.clone()).unwrap_or_default()
    }

    /// Lets the hooks see a result, and keeps it.
    async fn finish(
        &mut self,
        mut ready: Ready,
        mut finished: Finished,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        if let Some(trial) = ready.layer.take() {
            match self.end_trial(ready, trial, finished, stop).await? {
                Some(ended) => (ready, finished) = ended,
                None => return Ok(()),
            }
        } else if finished.abandoned && !ready.read_only {
            self.clear_up(&ready.call, &mut finished).await;
        }
        self.parts.index.changed(finished.changes.iter().map(|change| &change.path));
        if finished.abandoned && !ready.read_only {
            self.parts.index.doubt();
        }
        let notes = self.post_tool(&ready, &mut finished, stop).await;
        for note in ready.context.into_iter().chain(notes) {
            finished.parts.push(journeyman_protocol::ResultPart::Text { text: note });
        }
        self.observe(&ready.call, ready.read_only, &finished);
        self.settle(&ready.call, finished);
        self.note_todos();
        self.note_seen();
        Ok(())
    }

    /// Writes a call's end and its result down, together.
    pub(crate) fn settle(&mut self, call: &ToolUse, mut finished: Finished) {
        let violations = std::mem::take(&mut finished.violations).into_iter();
        let violations =
            violations.map(|one| GuardViolation { call: Some(call.id.clone()), ..one }).collect();
        self.note_violations(None, violations);
        for change in &finished.changes {
            self.log.emit(Event::FileEdited { call: call.id.clone(), change: change.clone() });
        }
        if !finished.changes.is_empty() {
            let files: Vec<String> = finished.changes.iter().map(|change| change.path.to_string()).collect();
            self.tally.edits.push(format!("{}: {}", call.name, files.join(", ")));
        }
        // Half a secret is one too: redacted before it is cut.
        let preview = shortened(&self.parts.redactor.redact(&finished.text()));
        if finished.state == CallState::Failed {
            let (call, tool, error) = (call.id.clone(), call.name.clone(), preview.clone());
            self.log.emit(Event::ToolError { call, tool, error });
        }
        let (state, duration_ms) = (finished.state, finished.duration_ms);
        let (id, tool) = (call.id.clone(), call.name.clone());
        let end = CallTransition {
            call: id.clone(),
            tool: tool.clone(),
            state,
            note: finished.note.clone(),
            by: finished.by.clone(),
            verdict: finished.verdict.clone(),
        };
        let block = self.block_of(call, finished);
        let record = self.end_call(end, block);
        self.log.emit(Event::ToolEnd { call: id, tool, state, preview, duration_ms });
        if let Some(record) = record {
            self.log.emit(Event::ToolExecuted { record });
        }
    }

    /// Writes a call's end and its result down in one piece: a call that has ended and has no result would be taken
    /// up again after a crash, and run twice. Gives the call's record.
    pub(crate) fn end_call(&mut self, end: CallTransition, block: Block) -> Option<CallRecord> {
        let now = self.parts.clock.now();
        let call = end.call.clone();
        let end = Record::Call(end);
        self.state.apply(end.clone(), now);
        let open = self.state.calls.iter().find(|open| open.call.id == call);
        let record = open.map(|open| open.record.clone());
        let result = Record::Result { call, block };
        self.state.apply(result.clone(), now);
        self.log.push(vec![Item::from(end), Item::from(result)]);
        record
    }

    /// Whether a call is a block of the transcript, which has to have its result as one. Asked of the transcript: the
    /// session may have been opened again with a model of the other kind.
    pub(crate) fn takes_result(&self, call: &CallId) -> bool {
        self.state.messages.last().is_some_and(|last| last.tool_uses().any(|made| made.id == *call))
    }

    /// A result as the model is given it, or that it is too long for the log.
    fn block_of(&self, call: &ToolUse, finished: Finished) -> Block {
        let block = self.whole_block_of(call, finished);
        let bytes = serde_json::to_vec(&block).map_or(0, |bytes| bytes.len());
        if bytes <= MAX_RESULT {
            return block;
        }
        let text =
            format!("the call ran, and its result of {bytes} bytes is too long to be kept; ask for less");
        self.result_block(&call.id, &call.name, &text)
    }

    fn whole_block_of(&self, call: &ToolUse, finished: Finished) -> Block {
        if !self.takes_result(&call.id) {
            // Fenced: what a file or a command says can't pass for the next result, or for the user.
            let text = fenced("result", &[("of", &call.name)], &finished.text());
            return Block::text(self.parts.redactor.redact(&text));
        }
        let is_error = finished.is_error();
        let mut content = finished.parts;
        for part in &mut content {
            if let journeyman_protocol::ResultPart::Text { text } = part
                && let std::borrow::Cow::Owned(clean) = self.parts.redactor.redact(text)
            {
                *text = clean;
            }
        }
        Block::ToolResult { id: call.id.clone(), content, is_error }
    }
}

/// Takes out those that wait for nobody: neither for one that runs nor for an earlier one that waits.
fn free(waiting: &mut Vec<Ready>, running: &[Ready]) -> Vec<Ready> {
    let mut free: Vec<Ready> = Vec::new();
    let mut blocked: Vec<Ready> = Vec::new();
    for one in waiting.drain(..) {
        let others = running.iter().chain(&free).chain(&blocked);
        let in_the_way = others.into_iter().any(|other| one.conflicts(other));
        if in_the_way { blocked.push(one) } else { free.push(one) }
    }
    *waiting = blocked;
    free
}

/// A call under way.
struct Execution {
    registry: Arc<Registry>,
    call: ToolUse,
    limit: Duration,
    context: ToolContext,
    live: LiveOutput,
}

impl Execution {
    /// Runs the call to its result, whatever that is.
    async fn run(self, permits: Arc<Semaphore>) -> (CallId, Finished) {
        let Self { registry, call, limit, context, live } = self;
        let id = call.id.clone();
        let cancel = context.cancel.clone();
        // Waiting for a place is over at once when the task is.
        let permit = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            permit = permits.acquire() => permit.ok(),
        };
        if permit.is_none() {
            return (id, Finished::interrupted());
        }
        let started = Instant::now();
        let running = tokio::spawn(async move {
            let called = async {
                let tool = registry.get(&call.name)?;
                tool.call(&context, call.input).await
            };
            // A tool may be anybody's. One that panics costs its call, not the session and the other results.
            let caught = AssertUnwindSafe(called).catch_unwind().await;
            caught.unwrap_or_else(|_| Err(ToolError::Stopped("the tool panicked".to_owned())))
        });
        let mut task = Task { running, abandoned: false };
        let (result, timed_out) = tokio::select! {
            biased;
            done = &mut task.running => (joined(done), false),
            () = cancel.cancelled() => (task.put_away().await, false),
            () = tokio::time::sleep(limit) => {
                cancel.cancel();
                (task.put_away().await, true)
            }
        };
        live.end();
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let abandoned = task.abandoned;
        let finished = match result {
            Ok(output) => ended(output, cancel.is_cancelled(), timed_out.then_some(limit)),
            Err(error) if timed_out => {
                let limit = crate::session::turn::seconds(limit);
                Finished::refused(CallState::Failed, format!("ended at its time limit of {limit}: {error}"))
            }
            Err(error) => {
                let was_stopped = matches!(error, ToolError::Cancelled | ToolError::Stopped(_));
                let state = match cancel.is_cancelled() && was_stopped {
                    true => CallState::Interrupted,
                    false => CallState::Failed,
                };
                Finished::refused(state, error.to_string())
            }
        };
        (id, Finished { duration_ms, abandoned, ..finished })
    }
}

/// The task that a call runs in; it ends with whoever waits for it.
struct Task {
    running: JoinHandle<Result<ToolOutput, ToolError>>,
    abandoned: bool,
}

impl Task {
    /// Waits a little for a call that was told to end, and then ends it.
    async fn put_away(&mut self) -> Result<ToolOutput, ToolError> {
        if let Ok(done) = tokio::time::timeout(GRACE, &mut self.running).await {
            return joined(done);
        }
        self.abandoned = true;
        self.running.abort();
        Err(ToolError::Stopped("it did not end when it was told to, and was ended".to_owned()))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.running.abort();
    }
}

fn joined(
    done: Result<Result<ToolOutput, ToolError>, tokio::task::JoinError>,
) -> Result<ToolOutput, ToolError> {
    done.unwrap_or_else(|died| Err(ToolError::Stopped(died.to_string())))
}

fn ended(output: ToolOutput, cancelled: bool, timed_out: Option<Duration>) -> Finished {
    let ToolOutput { mut parts, changes, is_error, violations } = output;
    if !is_error {
        // It came to its own end in the moment in which it was told to end: that is what happened.
        return Finished { violations, ..Finished::ran(CallState::Completed, parts, changes) };
    }
    if let Some(limit) = timed_out {
        let text = format!("ended at its time limit of {}", crate::session::turn::seconds(limit));
        parts.push(journeyman_protocol::ResultPart::Text { text });
    }
    let state = match timed_out.is_none() && cancelled {
        true => CallState::Interrupted,
        false => CallState::Failed,
    };
    Finished { violations, ..Finished::ran(state, parts, changes) }
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

/// Head of a text that people see in an event.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(PREVIEW) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}
