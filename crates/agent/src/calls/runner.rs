//! The tool runner: prepares calls, selects calls that may run together, and owns background
//! commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use journeyman_protocol::{
    CallId, Event, FileChange, GuardViolation, MessageKind, RelPath, ReminderCategory,
};
use journeyman_sandbox::Outcome;
use journeyman_tools::{Background, BackgroundExit, Outputs, Registry, Seen, ToolContext, ToolLimits};
use tokio_util::sync::CancellationToken;

use super::execution::{Execution, LiveOutput};
use crate::approval::ask::Approvals;
use crate::approval::judgement::ApprovedCall;
use crate::session::context::Context;
use crate::session::inbox::Inbox;
use crate::transcript::reminder;

/// Maximum calls of one reply. A model that makes more is in a loop; the rest are refused with this
/// reason.
pub(crate) const MAX_CALLS: usize = 64;
/// Maximum bytes of a tool's custom event.
const MAX_CUSTOM: usize = 64 * 1024;
/// Maximum number of files named in a notice.
const MOST_NAMED: usize = 10;
/// Maximum bytes of a checkpoint's label.
const MAX_LABEL: usize = journeyman_workspace::limits::LABEL_BYTES;

/// Runs tools, and owns the state that they share within a session.
pub(crate) struct ToolRunner {
    registry: Arc<Registry>,
    inbox: Arc<Inbox>,
    seen: Arc<Seen>,
    outputs: Arc<Outputs>,
    background: Option<Arc<Background>>,
    /// One line for each call of the task that changed files.
    edits: Vec<String>,
}

impl ToolRunner {
    pub(crate) fn new(registry: Arc<Registry>, inbox: Arc<Inbox>) -> Self {
        let (seen, outputs) = (Arc::default(), Arc::default());
        Self { registry, inbox, seen, outputs, background: None, edits: Vec::new() }
    }

    /// Forgets the last task's edits.
    pub(crate) fn begin_task(&mut self) {
        self.edits.clear();
    }

    /// Returns the registry of tools.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the versions of files that the session has seen.
    pub(crate) fn seen(&self) -> &Arc<Seen> {
        &self.seen
    }

    /// Returns one line for each call of the task that changed files.
    pub(crate) fn edits(&self) -> &[String] {
        &self.edits
    }

    /// Records that a call of `tool` changed files.
    pub(crate) fn keep_edit(&mut self, tool: &str, changes: &[FileChange]) {
        if !changes.is_empty() {
            let files: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
            self.edits.push(format!("{tool}: {}", files.join(", ")));
        }
    }

    /// Returns true while a command runs in the background.
    pub(crate) fn has_running_commands(&self) -> bool {
        self.background.as_ref().is_some_and(|it| it.list().iter().any(|one| one.running))
    }

    /// Prepares the execution of a call.
    pub(crate) fn begin(
        &mut self,
        cx: &Context,
        ready: &ApprovedCall,
        may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
        cancel: &CancellationToken,
    ) -> Execution {
        let call = &ready.call.id;
        // In a layer, files seen by the call don't count for the session.
        let (workspace, seen) = match &ready.layer {
            Some(layer) => (layer.workspace(), Arc::default()),
            None => (&cx.workspace, Arc::clone(&self.seen)),
        };
        let workspace = Arc::clone(workspace);
        let live = LiveOutput::new(cx.transcript.log().live_sink(), call.clone());
        let output = live.clone();
        let (log, custom, tool) = (cx.transcript.log().clone(), call.clone(), tool_of(cx, call));
        if self.has_running_commands() {
            // The changes of a background command are unknown until it ends.
            cx.index.doubt();
        }
        let context = ToolContext {
            workspace,
            sandbox: Arc::clone(&cx.sandbox),
            toolchains: Arc::clone(&cx.toolchains),
            session: cx.session.clone(),
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
            index: Arc::clone(&cx.index),
            may_show,
            seen,
            outputs: Arc::clone(&self.outputs),
            background: self.background(cx),
            needs: cx.settings.needs,
        };
        let registry = Arc::clone(&self.registry);
        Execution { registry, call: ready.call.clone(), limit: ready.limit, context, live }
    }

    /// Returns the session's background commands. The model is told when one of them ends.
    fn background(&mut self, cx: &Context) -> Arc<Background> {
        if let Some(background) = &self.background {
            return Arc::clone(background);
        }
        let inbox = Arc::clone(&self.inbox);
        let runtime = tokio::runtime::Handle::current();
        let notice = move |exit: BackgroundExit| {
            let inbox = Arc::clone(&inbox);
            runtime.spawn(async move {
                let text = reminder::wrapped(&ended(&exit));
                // The log reports a refused write itself. The model can still ask for the command's
                // output.
                inbox.take(MessageKind::System, ReminderCategory::General, text).await.ok();
            });
        };
        // Command numbers start after the number of earlier calls, so that they stay unique after a
        // restart.
        let count = cx.transcript.state().call_ids.len() as u64;
        let background = Arc::new(Background::new(notice).after(count));
        self.background = Some(Arc::clone(&background));
        background
    }

    /// Stops the background commands, and waits until their changes are journaled.
    pub(crate) async fn stop_background(&mut self, cx: &mut Context) {
        if let Some(background) = self.background.take() {
            background.close().await;
            note_violations_of(cx, &background);
        }
    }

    /// Records guard violations of background commands, also of those that still run.
    pub(crate) async fn note_background_violations(&self, cx: &mut Context) {
        if let Some(background) = self.background.clone() {
            if let Err(error) = background.check_running().await {
                cx.transcript.emit(Event::Warning { message: error.to_string() });
            }
            note_violations_of(cx, &background);
        }
    }
}

fn tool_of(cx: &Context, call: &CallId) -> String {
    let open = cx.transcript.state().calls.iter().find(|open| open.call.id == *call);
    open.map(|open| open.call.name.clone()).unwrap_or_default()
}

fn note_violations_of(cx: &mut Context, background: &Background) {
    let mut by_call: BTreeMap<Option<CallId>, Vec<GuardViolation>> = BTreeMap::new();
    for one in background.take_violations() {
        by_call.entry(one.call.clone()).or_default().push(one);
    }
    for violations in by_call.into_values() {
        cx.transcript.note_violations(None, violations);
    }
}

/// Returns the label of the checkpoint before this step: the step's number and its changing calls.
pub(crate) fn step_label(cx: &Context, approvals: &Approvals, ready: &[ApprovedCall]) -> String {
    let changing = ready.iter().filter(|one| !one.read_only);
    let summaries: Vec<String> = changing
        .map(|one| approvals.summary(cx, &one.call).lines().next().unwrap_or_default().to_owned())
        .collect();
    let mut label = format!("step {}: {}", cx.next_step(), summaries.join(", "));
    label.retain(|character| !character.is_control());
    label.truncate(label.floor_char_boundary(MAX_LABEL));
    label
}

/// Removes the calls that conflict neither with a running call nor with an earlier waiting call.
pub(crate) fn take_free(waiting: &mut Vec<ApprovedCall>, running: &[ApprovedCall]) -> Vec<ApprovedCall> {
    let mut free: Vec<ApprovedCall> = Vec::new();
    let mut blocked: Vec<ApprovedCall> = Vec::new();
    for one in waiting.drain(..) {
        let others = running.iter().chain(&free).chain(&blocked);
        let in_the_way = others.into_iter().any(|other| one.conflicts(other));
        if in_the_way { blocked.push(one) } else { free.push(one) }
    }
    *waiting = blocked;
    free
}

/// Returns the notice for the model about a background command that ended.
fn ended(exit: &BackgroundExit) -> String {
    let how = match &exit.outcome {
        Outcome::Exited(code) => format!("ended with exit code {code}"),
        Outcome::Signaled(signal) => format!("was killed by signal {signal}"),
        Outcome::TimedOut => "was killed at its time limit".to_owned(),
        Outcome::Cancelled => "was stopped".to_owned(),
        excess @ (Outcome::OutputLimit | Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit) => {
            format!("was killed for {}", excess.excess().unwrap_or_default())
        }
        Outcome::SetupFailed(why) => format!("did not run: {why}"),
    };
    let mut text = format!("The background command {} ({}) {how}.", exit.id, exit.command);
    if let Some(problem) = &exit.problem {
        text.push_str(&format!(" {problem}"));
    }
    if !exit.changes.is_empty() {
        let files: Vec<String> =
            exit.changes.iter().take(MOST_NAMED).map(|change| change.path.to_string()).collect();
        text.push_str(&format!(" It changed {} files: {}.", exit.changes.len(), files.join(", ")));
    }
    if !exit.tail.trim().is_empty() {
        text.push_str(&format!(" The end of its output:\n{}", exit.tail.trim_end()));
    }
    text
}
