//! The `Tool` trait, its context and its output.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use journeyman_protocol::{
    CallId, EditDiff, Effects, FileChange, GuardViolation, RelPath, ResultPart, SandboxNeeds, SessionId,
    ToolSpec, Usage,
};
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_workspace::Workspace;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{Background, Outputs, Seen, SharedIndex, ToolError};

/// Default maximum duration of a call: the slowest built-in ones read a large tree once.
pub const CALL_TIME: Duration = Duration::from_secs(120);

/// Something a model may call.
pub trait Tool: Send + Sync {
    /// Name, description and schema, as the model is told them. The same every time.
    fn spec(&self) -> ToolSpec;

    /// Returns the exact effects of a call with `input`, which `policy` judges.
    ///
    /// # Errors
    /// [`ToolError`] when the arguments don't fit; the call then can't be made.
    fn effects(&self, input: &Value) -> Result<Effects, ToolError>;

    /// One line for people: what a call with `input` does. Never fails, whatever `input` is.
    fn summary(&self, input: &Value) -> String;

    /// Returns true if no call of it changes anything, so that calls may run together.
    fn is_read_only(&self) -> bool;

    /// Returns true if a call asks a person something. Agents, which nobody answers, don't get the
    /// tool.
    fn asks_person(&self) -> bool {
        false
    }

    /// Returns true if a call gives a task to an agent, which makes calls of its own. They are
    /// judged for themselves, and may change files.
    fn starts_agents(&self) -> bool {
        false
    }

    /// Returns true if a call with `input` is better tried out in a layer over the tree, to be
    /// landed or dropped afterwards: it may destroy what undoing can't bring back. Asked for calls
    /// that may run at all.
    fn tries_out(&self, _workspace: &Workspace, _input: &Value) -> bool {
        false
    }

    /// Returns the changes that a call with `input` would make, as a unified diff for the person
    /// who is asked about the call. `None` where that isn't known without making the call.
    ///
    /// # Errors
    /// Where the call has no chance: what it would fail with.
    fn diff(&self, _workspace: &Workspace, _input: &Value) -> Result<Option<String>, ToolError> {
        Ok(None)
    }

    /// Returns the maximum duration of a call before it is cancelled; `None` for no limit. A tool
    /// that ends its work itself, as `run_command` does, has a longer one than that.
    fn limit(&self) -> Option<Duration> {
        Some(CALL_TIME)
    }

    /// Makes the call.
    ///
    /// # Errors
    /// [`ToolError`], in words for the model.
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Takes an event: its kind and its data.
pub type Emit = Arc<dyn Fn(&str, Value) + Send + Sync>;

/// The environment of a call.
#[derive(Clone)]
pub struct ToolContext {
    /// The project's files.
    pub workspace: Arc<Workspace>,
    /// The sandbox of commands.
    pub sandbox: Arc<Sandbox>,
    /// The host's compilers and interpreters.
    pub toolchains: Arc<Toolchains>,
    /// The session; changes are journaled for it.
    pub session: SessionId,
    /// The call; changes are journaled for it, and its output is held by this name.
    pub call: CallId,
    /// Ends the call early.
    pub cancel: CancellationToken,
    /// Takes live output as it comes, cleaned; for people.
    pub output: Arc<dyn Fn(String) + Send + Sync>,
    /// Takes events of the tool's own: a kind, and data of whatever form.
    pub emit: Emit,
    /// Bounds.
    pub limits: ToolLimits,
    /// The files that the session has read and written.
    pub seen: Arc<Seen>,
    /// The index of the whole code base.
    pub index: Arc<SharedIndex>,
    /// True if a file may be shown that no call named: what a rule keeps from being read isn't
    /// found either.
    pub may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
    /// Long outputs of the session's commands.
    pub outputs: Arc<Outputs>,
    /// The session's commands in the background.
    pub background: Arc<Background>,
    /// Confinement without which no command runs.
    pub needs: SandboxNeeds,
}

/// Bounds of calls and their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLimits {
    /// Bytes of a result, other than a file's text.
    pub result_bytes: usize,
    /// Bytes of a file's text in one result.
    pub read_bytes: usize,
    /// Lines of a file's text in one result.
    pub read_lines: u64,
    /// Bytes of the largest text file that is read at all.
    pub file_bytes: u64,
    /// Bytes of the largest image.
    pub image_bytes: u64,
    /// Seconds a command may take unless the call says otherwise.
    pub command_seconds: u64,
    /// Seconds a call may ask for.
    pub command_most_seconds: u64,
    /// Bytes of a command's output that stay reachable, half from its beginning and half from its
    /// end.
    pub output_bytes: usize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            // Some 8,000 tokens: a long test log's head and tail fit, and ten results fit any
            // model.
            result_bytes: 30_000,
            // Some 18,000 tokens: most source files whole.
            read_bytes: 64 * 1024,
            // As many lines as people have in a file they still call a file.
            read_lines: 2_000,
            // The edit engine's limit; larger files are generated.
            file_bytes: 8 * 1024 * 1024,
            // The least of the providers' own limits.
            image_bytes: 5 * 1024 * 1024,
            // A test run; long enough to be rarely hit, short enough to notice a hang.
            command_seconds: 120,
            // A build from scratch; what takes longer is not for a turn.
            command_most_seconds: 600,
            // A verbose build log, whole.
            output_bytes: 4 * 1024 * 1024,
        }
    }
}

/// The output of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The result for the model.
    pub parts: Vec<ResultPart>,
    /// The files that the call changed.
    pub changes: Vec<FileChange>,
    /// The lines that differ in the file that the call replaced, for people.
    pub diff: Option<EditDiff>,
    /// True if the model should take it as a failure, such as a command's exit code that isn't 0.
    pub is_error: bool,
    /// Guarded files and repositories that the call made, changed or deleted. The result names them
    /// too.
    pub violations: Vec<GuardViolation>,
    /// Number of lines that a command printed; `None` for other tools.
    pub output_lines: Option<u64>,
    /// The use of a model that isn't the session's; `None` for tools that ask none.
    pub foreign_usage: Option<ForeignUsage>,
}

/// The use that a call made of a model that isn't the session's.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ForeignUsage {
    /// The tokens.
    pub usage: Usage,
    /// US dollars; `None` where nobody said how many.
    pub usd: Option<f64>,
}

impl ToolOutput {
    /// A result of one text that changed nothing.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![ResultPart::Text { text: text.into() }],
            changes: Vec::new(),
            diff: None,
            is_error: false,
            violations: Vec::new(),
            output_lines: None,
            foreign_usage: None,
        }
    }

    /// A result that the model should take as a failure.
    #[must_use]
    pub fn failure(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The same with the files that were changed, and a word on names among them that other systems
    /// can't have.
    #[must_use]
    pub fn with_changes(mut self, workspace: &Workspace, changes: Vec<FileChange>) -> Self {
        let told = names_told(workspace, &changes);
        if let Some(ResultPart::Text { text }) = self.parts.last_mut().filter(|_| !told.is_empty()) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&told);
        }
        self.changes = changes;
        self
    }
}

/// Returns one line for each added name that causes trouble on other systems.
pub(crate) fn names_told(workspace: &Workspace, changes: &[FileChange]) -> String {
    let troubles = workspace.commands().name_troubles(changes);
    troubles.iter().map(|(path, trouble)| format!("[note: {path}: {trouble}]\n")).collect()
}

/// Runs slow, blocking work beside the session's other tasks.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(ToolError::Stopped(error.to_string())))
}
