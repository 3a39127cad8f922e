//! The tool runner: prepares calls, selects calls that may run together, and owns background
//! commands.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use journeyman_policy::secrets::{is_settings_file, secret_settings};
use journeyman_protocol::{
    CallId, Effects, Event, FileChange, GuardViolation, MessageKind, RelPath, ReminderCategory,
};
use journeyman_sandbox::Outcome;
use journeyman_tools::{
    BackgroundCommands, BackgroundExit, Outputs, RecallCallback, Registry, SeenFiles, ToolContext, ToolLimits,
};
use tokio_util::sync::CancellationToken;

use super::execution::{CallExecution, LiveOutput};
use crate::agents::definition::TASK_TOOL;
use crate::approval::approvals::Approvals;
use crate::approval::authorization::ApprovedCall;
use crate::session::context::SessionContext;
use crate::session::inbox::Inbox;
use crate::transcript::log_reader::read_result;
use crate::transcript::record::Record;
use crate::transcript::reminder;

/// Maximum calls of one reply. A model that makes more is in a loop; the rest are refused with this
/// reason.
pub(crate) const MAX_CALLS_PER_REPLY: usize = 64;
/// Maximum bytes of a tool's custom event.
const MAX_CUSTOM_EVENT_BYTES: usize = 64 * 1024;
/// Maximum bytes of an output in the log. Of a longer one the beginning and the end are kept.
const MAX_LOGGED_OUTPUT_BYTES: usize = 1024 * 1024;
/// Maximum number of files named in the record of an edit.
const MAX_RECORDED_EDIT_FILES: usize = 20;
/// Maximum number of files named in a notice.
const MAX_NOTICE_FILES: usize = 10;
/// Maximum bytes of a checkpoint's label.
const MAX_CHECKPOINT_LABEL_BYTES: usize = journeyman_workspace::limits::MAX_LABEL_BYTES;

/// Runs tools, and owns the state that they share within a session.
pub(crate) struct ToolRunner {
    registry: Arc<Registry>,
    inbox: Arc<Inbox>,
    seen_files: Arc<SeenFiles>,
    outputs: Option<Arc<Outputs>>,
    background_commands: Option<Arc<BackgroundCommands>>,
    /// Number of calls of the task that changed files.
    edits: usize,
    /// Number of these calls before checks last failed.
    checked_edits: usize,
    /// True if agents changed files since [`ToolRunner::take_agents_changed`] was last called.
    agents_changed: bool,
}

impl ToolRunner {
    pub(crate) fn new(registry: Arc<Registry>, inbox: Arc<Inbox>) -> Self {
        Self {
            registry,
            inbox,
            seen_files: Arc::default(),
            outputs: None,
            background_commands: None,
            edits: 0,
            checked_edits: 0,
            agents_changed: false,
        }
    }

    /// Forgets the last task's edits.
    pub(crate) fn begin_task(&mut self) {
        self.edits = 0;
        self.checked_edits = 0;
    }

    /// Returns the registry of tools.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the versions of files that the session has seen.
    pub(crate) fn seen_files(&self) -> &Arc<SeenFiles> {
        &self.seen_files
    }

    /// Returns true if calls changed files since the task began or since checks last failed.
    pub(crate) fn has_new_edits(&self) -> bool {
        self.edits > self.checked_edits
    }

    /// Marks all changes so far as checked, because checks failed on them.
    pub(crate) fn mark_edits_checked(&mut self) {
        self.checked_edits = self.edits;
    }

    /// Records that a call of `tool` changed files.
    pub(crate) fn record_edit(&mut self, cx: &mut SessionContext, tool: &str, changes: &[FileChange]) {
        if changes.is_empty() {
            return;
        }
        self.edits += 1;
        let files = changes.iter().take(MAX_RECORDED_EDIT_FILES).map(|change| change.path.to_string());
        let files = files.collect::<Vec<_>>().join(", ");
        let more = match changes.len().saturating_sub(MAX_RECORDED_EDIT_FILES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        cx.transcript.record(Record::Edited { summary: format!("{tool}: {files}{more}") });
    }

    /// Records the usage and the changed files of agents that have ended.
    pub(crate) fn record_agents_work(&mut self, cx: &mut SessionContext) {
        let changes = cx.take_agents_work();
        cx.index.note_changed(changes.iter().map(|change| &change.path));
        self.agents_changed |= !changes.is_empty();
        self.record_edit(cx, TASK_TOOL, &changes);
    }

    /// Returns true if agents have changed files since this was last asked.
    pub(crate) fn take_agents_changed(&mut self) -> bool {
        std::mem::take(&mut self.agents_changed)
    }

    /// Returns true while a command runs in the background.
    pub(crate) fn has_running_commands(&self) -> bool {
        self.background_commands.as_ref().is_some_and(|it| it.list().iter().any(|one| one.running))
    }

    /// Prepares the execution of a call.
    pub(crate) fn prepare_call(
        &mut self,
        cx: &SessionContext,
        ready: &ApprovedCall,
        may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
        cancel: &CancellationToken,
    ) -> CallExecution {
        let call = &ready.call.id;
        // In a layer, files seen by the call don't count for the session.
        let (workspace, seen) = match &ready.layer {
            Some(layer) => (layer.workspace(), Arc::default()),
            None => (&cx.workspace, Arc::clone(&self.seen_files)),
        };
        let workspace = Arc::clone(workspace);
        let live = LiveOutput::new(cx.transcript.log().live_sink(), call.clone());
        let output = live.clone();
        let (log, custom, tool) = (cx.transcript.log().clone(), call.clone(), tool_name_of(cx, call));
        if self.has_running_commands() {
            // The changes of a background command are unknown until it ends.
            cx.index.note_unknown_changes();
        }
        let context = ToolContext {
            workspace,
            sandbox: Arc::clone(&cx.sandbox),
            toolchains: Arc::clone(&cx.toolchains),
            session: cx.journal_session().clone(),
            call: call.clone(),
            cancel: cancel.child_token(),
            output: Arc::new(move |text| output.push(&text)),
            emit: Arc::new(move |kind: &str, data| {
                let (call, tool, kind) = (custom.clone(), tool.clone(), kind.to_owned());
                let bytes = serde_json::to_vec(&data).map_or(0, |bytes| bytes.len());
                if bytes.saturating_add(kind.len()) > MAX_CUSTOM_EVENT_BYTES {
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
            outputs: self.outputs(cx),
            background: self.background_commands(cx),
            needs: cx.settings.needs,
        };
        let registry = Arc::clone(&self.registry);
        let settings = known_settings(&context, &ready.effects);
        CallExecution { registry, call: ready.call.clone(), limit: ready.time_limit, context, live, settings }
    }

    /// Returns the outputs and results that the model can read again.
    fn outputs(&mut self, cx: &SessionContext) -> Arc<Outputs> {
        let outputs = self.outputs.get_or_insert_with(|| {
            let (store, session) = (Arc::clone(cx.transcript.log().store()), cx.session.clone());
            let recall: RecallCallback = Arc::new(move |call| {
                let (store, session) = (Arc::clone(&store), session.clone());
                // A log that can't be read is reported by the next write.
                async move { read_result(&*store, &session, &call).await.ok().flatten() }.boxed()
            });
            Arc::new(Outputs::with_recall(recall))
        });
        Arc::clone(outputs)
    }

    /// Records the whole output of a call whose result has only its ends, so that it outlives the
    /// process.
    pub(crate) fn record_output(&self, cx: &mut SessionContext, call: &CallId) {
        let Some(text) = self.outputs.as_ref().and_then(|outputs| outputs.take_unlogged(call)) else {
            return;
        };
        let text = cx.redactor.redact(&text);
        let text = truncate_middle(&text, MAX_LOGGED_OUTPUT_BYTES).into_owned();
        cx.transcript.record(Record::Output { call: call.clone(), text });
    }

    /// Returns the session's background commands. The model gets a notice when a command ends.
    fn background_commands(&mut self, cx: &SessionContext) -> Arc<BackgroundCommands> {
        if let Some(background) = &self.background_commands {
            return Arc::clone(background);
        }
        let inbox = Arc::clone(&self.inbox);
        let runtime = tokio::runtime::Handle::current();
        let notice = move |exit: BackgroundExit| {
            let inbox = Arc::clone(&inbox);
            runtime.spawn(async move {
                let text = reminder::wrap_reminder(&background_exit_notice(&exit));
                // The log reports a refused write itself. The model can still ask for the command's
                // output.
                inbox.accept(MessageKind::System, ReminderCategory::General, text).await.ok();
            });
        };
        // Command numbers start after the number of earlier calls, so that they stay unique after a
        // restart.
        let count = cx.transcript.state().call_ids.len() as u64;
        let background = Arc::new(BackgroundCommands::new(notice).with_numbers_after(count));
        self.background_commands = Some(Arc::clone(&background));
        background
    }

    /// Stops the background commands, and waits until their changes are journaled.
    pub(crate) async fn stop_background_commands(&mut self, cx: &mut SessionContext) {
        if let Some(background) = self.background_commands.take() {
            background.close().await;
            record_background_violations_of(cx, &background);
        }
    }

    /// Records guard violations of background commands, also of those that still run.
    pub(crate) async fn record_background_violations(&self, cx: &mut SessionContext) {
        if let Some(background) = self.background_commands.clone() {
            if let Err(error) = background.check_guarded_files().await {
                cx.transcript.emit(Event::Warning { message: error.to_string() });
            }
            record_background_violations_of(cx, &background);
        }
    }
}

/// Returns the secrets in the files of settings that a call names; `None` if it names none.
fn known_settings(context: &ToolContext, effects: &Effects) -> Option<Vec<String>> {
    let paths = effects.reads.iter().chain(&effects.writes);
    let mut files = paths.filter(|path| is_settings_file(&path.to_string())).peekable();
    files.peek()?;
    let read = |path| context.workspace.read(path, context.limits.file_bytes).ok();
    let texts = files.filter_map(read);
    Some(texts.flat_map(|content| secret_settings(content.text().unwrap_or_default())).collect())
}

/// Returns the beginning and the end of a text that is too long.
fn truncate_middle(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let head = text.get(..text.floor_char_boundary(limit / 2)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - limit / 2)..).unwrap_or_default();
    let left_out = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}\n[{left_out} bytes are not kept]\n{tail}"))
}

fn tool_name_of(cx: &SessionContext, call: &CallId) -> String {
    let open = cx.transcript.state().calls.iter().find(|open| open.call.id == *call);
    open.map(|open| open.call.name.clone()).unwrap_or_default()
}

fn record_background_violations_of(cx: &mut SessionContext, background: &BackgroundCommands) {
    let mut by_call: BTreeMap<Option<CallId>, Vec<GuardViolation>> = BTreeMap::new();
    for one in background.take_violations() {
        by_call.entry(one.call.clone()).or_default().push(one);
    }
    for violations in by_call.into_values() {
        cx.transcript.record_violations(None, violations);
    }
}

/// Returns the label of the checkpoint before this step: the step's number and its changing calls.
pub(crate) fn checkpoint_label(cx: &SessionContext, approvals: &Approvals, ready: &[ApprovedCall]) -> String {
    let changing = ready.iter().filter(|one| !one.read_only);
    let summaries: Vec<String> = changing
        .map(|one| approvals.summarize_call(cx, &one.call).lines().next().unwrap_or_default().to_owned())
        .collect();
    let mut label = format!("step {}: {}", cx.current_step(), summaries.join(", "));
    label.retain(|character| !character.is_control());
    label.truncate(label.floor_char_boundary(MAX_CHECKPOINT_LABEL_BYTES));
    label
}

/// Removes the calls that conflict neither with a running call nor with an earlier waiting call.
pub(crate) fn take_runnable_calls(
    waiting: &mut Vec<ApprovedCall>,
    running: &[ApprovedCall],
) -> Vec<ApprovedCall> {
    let mut free: Vec<ApprovedCall> = Vec::new();
    let mut blocked: Vec<ApprovedCall> = Vec::new();
    for one in waiting.drain(..) {
        let others = running.iter().chain(&free).chain(&blocked);
        let in_the_way = others.into_iter().any(|other| one.conflicts_with(other));
        if in_the_way { blocked.push(one) } else { free.push(one) }
    }
    *waiting = blocked;
    free
}

/// Returns the notice for the model about a background command that ended.
fn background_exit_notice(exit: &BackgroundExit) -> String {
    let how = match &exit.outcome {
        Outcome::Exited(code) => format!("ended with exit code {code}"),
        Outcome::Signaled(signal) => format!("was killed by signal {signal}"),
        Outcome::TimedOut => "was killed at its time limit".to_owned(),
        Outcome::Cancelled => "was stopped".to_owned(),
        excess @ (Outcome::OutputLimit | Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit) => {
            format!("was killed for {}", excess.exceeded_limit().unwrap_or_default())
        }
        Outcome::SetupFailed(why) => format!("did not run: {why}"),
    };
    let mut text = format!("The background command {} ({}) {how}.", exit.id, exit.command);
    if let Some(problem) = &exit.problem {
        text.push_str(&format!(" {problem}"));
    }
    if !exit.changes.is_empty() {
        let files: Vec<String> =
            exit.changes.iter().take(MAX_NOTICE_FILES).map(|change| change.path.to_string()).collect();
        text.push_str(&format!(" It changed {} files: {}.", exit.changes.len(), files.join(", ")));
    }
    if !exit.tail.trim().is_empty() {
        text.push_str(&format!(" The end of its output:\n{}", exit.tail.trim_end()));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use journeyman_protocol::{CallState, ResultPart};
    use journeyman_tools::{ToolError, ToolOutput};
    use serde_json::{Value, json};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::calls::finished_call::FinishedCall;
    use crate::test_context::{ClosureTool, TestContext, approved, call};

    /// Runs one call of a tool with a time limit.
    async fn run(
        test: &mut TestContext,
        tool: ClosureTool,
        limit: Duration,
        cancelled: bool,
    ) -> FinishedCall {
        let mut registry = Registry::default();
        registry.add(Box::new(tool));
        let mut runner = ToolRunner::new(Arc::new(registry), Arc::clone(&test.inbox));
        let made = call("c1", "test_tool", Value::Null);
        test.record_reply(std::slice::from_ref(&made));
        let ready = ApprovedCall { time_limit: limit, ..approved(made, &[]) };
        let cancel = CancellationToken::new();
        let execution = runner.prepare_call(&test.cx, &ready, Arc::new(|_| true), &cancel);
        if cancelled {
            tokio::spawn(async move { cancel.cancel() });
        }
        execution.run(Arc::new(Semaphore::new(1))).await.1
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn only_calls_that_touch_the_same_files_wait_for_each_other() {
        let write = |id: &str, path: &str| approved(call(id, "write_file", json!({})), &[path]);
        let read = |id: &str, path: &str| {
            let mut ready = approved(call(id, "read_file", json!({})), &[]);
            ready.effects.reads.push(RelPath::parse(path).unwrap());
            ready
        };
        let command = |id: &str| {
            let mut ready = approved(call(id, "run_command", json!({})), &["unused"]);
            ready.effects.command = Some("make".to_owned());
            ready
        };
        let ids = |calls: &[ApprovedCall]| calls.iter().map(|it| it.call.id.to_string()).collect::<Vec<_>>();
        let mut waiting = vec![
            read("1 reads a", "a"),
            read("2 reads a", "a"),
            write("3 writes a", "a"),
            write("4 writes b", "b"),
            read("5 reads a", "a"),
            command("6 runs"),
            read("7 reads c", "c"),
        ];
        let mut running = take_runnable_calls(&mut waiting, &[]);
        assert_eq!(ids(&running), ["1 reads a", "2 reads a", "4 writes b"]);
        // A call doesn't overtake an earlier one that it conflicts with.
        assert_eq!(ids(&waiting), ["3 writes a", "5 reads a", "6 runs", "7 reads c"]);
        running.clear();
        assert_eq!(ids(&take_runnable_calls(&mut waiting, &running)), ["3 writes a"]);
        assert_eq!(ids(&take_runnable_calls(&mut waiting, &running)), ["5 reads a"]);
        assert_eq!(ids(&take_runnable_calls(&mut waiting, &running)), ["6 runs"]);
        assert_eq!(ids(&take_runnable_calls(&mut waiting, &running)), ["7 reads c"]);
    }

    #[tokio::test]
    async fn no_result_shows_the_secrets_of_a_file_of_settings() {
        let test = TestContext::new(&[]).await;
        test.write(".env", "DB_HOST=db\nDB_PASSWORD=letmein\nPORT=1\n");
        std::os::unix::fs::symlink(".env", test.root.join("notes.md")).unwrap();
        let registry = Arc::new(Registry::with_builtin_at(&test.root));
        let mut runner = ToolRunner::new(registry, Arc::clone(&test.inbox));
        let edit =
            |search: &str| json!({ "path": ".env", "edits": [{ "search": search, "replace": "PORT=2" }] });
        for (id, tool, input, shown) in [
            ("1", "read_file", json!({ "path": "notes.md" }), "DB_HOST=db"),
            ("2", "edit_file", edit("DB_PASSWORD=guessed\nPORT=1"), "DB_PASSWORD"),
            ("3", "edit_file", edit("PORT=1"), "PORT=2"),
        ] {
            let ready = approved(call(id, tool, input), &["notes.md", ".env"]);
            let execution =
                runner.prepare_call(&test.cx, &ready, Arc::new(|_| true), &CancellationToken::new());
            let finished = execution.run(Arc::new(Semaphore::new(1))).await.1;
            let diff = finished.diff.as_ref().map_or("", |diff| diff.text.as_str());
            let said =
                format!("{}\n{}\n{diff}", finished.text(), finished.note.as_deref().unwrap_or_default());
            assert!(said.contains(shown) && !said.contains("letmein"), "{said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_at_its_time_limit() {
        let mut test = TestContext::new(&[]).await;
        let obedient = ClosureTool::new("test_tool", |context| async move {
            context.cancel.cancelled().await;
            Err(ToolError::Cancelled)
        });
        let finished = run(&mut test, obedient, Duration::from_secs(60), false).await;
        assert_eq!((finished.state, finished.abandoned), (CallState::Failed, false));
        assert!(finished.text().starts_with("ended at its time limit of 60 s"), "{}", finished.text());
        let deaf = ClosureTool::new("test_tool", |_| std::future::pending());
        let finished = run(&mut test, deaf, Duration::from_secs(60), false).await;
        assert_eq!((finished.state, finished.abandoned), (CallState::Failed, true));
    }

    #[tokio::test]
    async fn a_cancelled_call_is_interrupted_unless_it_succeeded() {
        let mut test = TestContext::new(&[]).await;
        let stops = ClosureTool::new("test_tool", |context| async move {
            context.cancel.cancelled().await;
            Err(ToolError::Cancelled)
        });
        assert_eq!(run(&mut test, stops, HOUR, true).await.state, CallState::Interrupted);
        let ends = ClosureTool::new("test_tool", |context| async move {
            context.cancel.cancelled().await;
            Ok(ToolOutput::text("done all the same".to_owned()))
        });
        assert_eq!(run(&mut test, ends, HOUR, true).await.state, CallState::Completed);
    }

    #[tokio::test]
    async fn a_panicking_tool_fails_its_call_alone() {
        let mut test = TestContext::new(&[]).await;
        let panics = ClosureTool::new("test_tool", |_| async { panic!("a bug in the tool") });
        let finished = run(&mut test, panics, HOUR, false).await;
        assert_eq!(finished.state, CallState::Failed);
        assert!(finished.text().contains("the tool panicked"), "{}", finished.text());
    }

    #[tokio::test]
    async fn a_tools_own_event_is_logged_up_to_its_size() {
        let mut test = TestContext::new(&[]).await;
        let emits = ClosureTool::new("test_tool", |context| async move {
            (context.emit)("progress", json!({ "percent": 50 }));
            (context.emit)("progress", Value::String("x".repeat(MAX_CUSTOM_EVENT_BYTES)));
            Ok(ToolOutput::text("done".to_owned()))
        });
        let finished = run(&mut test, emits, HOUR, false).await;
        assert_eq!(finished.parts, [ResultPart::Text { text: "done".to_owned() }]);
        let events = test.events().await;
        let [Event::ToolCustomEvent { tool, kind, data, .. }, Event::Warning { message }] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(
            (tool.as_str(), kind.as_str(), data),
            ("test_tool", "progress", &json!({ "percent": 50 }))
        );
        assert!(message.contains("too long"), "{message}");
    }
}
