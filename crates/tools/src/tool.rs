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

use crate::{BackgroundCommands, Outputs, SeenFiles, SharedIndex, ToolError};

/// Default maximum duration of a call: the slowest built-in tools read a large tree once.
pub const DEFAULT_CALL_TIME: Duration = Duration::from_secs(120);

/// A tool that a model may call.
pub trait Tool: Send + Sync {
    /// Returns name, description and schema for the model. The result is always the same.
    fn spec(&self) -> ToolSpec;

    /// Returns the exact effects of a call with `input`, which `policy` judges.
    ///
    /// # Errors
    /// [`ToolError`] if the arguments don't fit the schema, so that the call can't be made.
    fn effects(&self, input: &Value) -> Result<Effects, ToolError>;

    /// Describes a call with `input` in one line for people. Never fails.
    fn summary(&self, input: &Value) -> String;

    /// Returns true if no call changes anything, so that calls may run at the same time.
    fn is_read_only(&self) -> bool;

    /// Returns true if a call asks a person something. Agents don't get such tools, because nobody
    /// answers them.
    fn asks_person(&self) -> bool {
        false
    }

    /// Returns true if a call starts an agent. The agent's own calls are judged separately, and may
    /// change files.
    fn starts_agents(&self) -> bool {
        false
    }

    /// Returns true if a call with `input` should first run in a layer over the tree, because it
    /// may destroy what an undo can't restore. Only used for calls that are allowed.
    fn needs_preview(&self, _workspace: &Workspace, _input: &Value) -> bool {
        false
    }

    /// Returns the changes that a call with `input` would make, as a unified diff for the person
    /// who approves the call. `None` if they aren't known without making the call.
    ///
    /// # Errors
    /// The error that the call would fail with.
    fn diff(&self, _workspace: &Workspace, _input: &Value) -> Result<Option<String>, ToolError> {
        Ok(None)
    }

    /// Returns the maximum duration of a call before it is cancelled; `None` for no limit. A tool
    /// that ends its work itself, as `run_command` does, returns a longer duration than its own
    /// limit.
    fn time_limit(&self) -> Option<Duration> {
        Some(DEFAULT_CALL_TIME)
    }

    /// Makes the call.
    ///
    /// # Errors
    /// [`ToolError`] with a message for the model.
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Receives a tool's events: kind and data.
pub type EmitEvent = Arc<dyn Fn(&str, Value) + Send + Sync>;

/// The environment of a call.
#[derive(Clone)]
pub struct ToolContext {
    /// The project's files.
    pub workspace: Arc<Workspace>,
    /// The sandbox that commands run in.
    pub sandbox: Arc<Sandbox>,
    /// The host's compilers and interpreters.
    pub toolchains: Arc<Toolchains>,
    /// The session for which changes are journaled.
    pub session: SessionId,
    /// The call for which changes are journaled, and by whose id its output is kept.
    pub call: CallId,
    /// Cancels the call.
    pub cancel: CancellationToken,
    /// Receives live output, cleaned, for people.
    pub output: Arc<dyn Fn(String) + Send + Sync>,
    /// Receives events that are specific to the tool, with any data.
    pub emit: EmitEvent,
    /// Bounds.
    pub limits: ToolLimits,
    /// The files that the session has read and written.
    pub seen: Arc<SeenFiles>,
    /// The index of the whole code base.
    pub index: Arc<SharedIndex>,
    /// Returns true if a file may be shown that no call named, so that searches don't find files
    /// that a rule withholds.
    pub may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
    /// The long outputs of the session's commands.
    pub outputs: Arc<Outputs>,
    /// The session's commands in the background.
    pub background: Arc<BackgroundCommands>,
    /// The confinement that commands need; without it they don't run.
    pub needs: SandboxNeeds,
}

/// Bounds of calls and their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLimits {
    /// Maximum bytes of a result, other than a file's text.
    pub result_bytes: usize,
    /// Maximum bytes of a file's text in one result.
    pub read_bytes: usize,
    /// Maximum lines of a file's text in one result.
    pub read_lines: u64,
    /// Maximum bytes of a text file that is read at all.
    pub file_bytes: u64,
    /// Maximum bytes of an image.
    pub image_bytes: u64,
    /// Default time limit of a command, in seconds.
    pub command_seconds: u64,
    /// Maximum time limit that a call may request, in seconds.
    pub command_most_seconds: u64,
    /// Maximum bytes kept of a command's output, half from its beginning and half from its end.
    pub output_bytes: usize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            // Some 8,000 tokens: the head and tail of a long test log fit, and ten results fit any
            // model.
            result_bytes: 30_000,
            // Some 18,000 tokens: most source files fit whole.
            read_bytes: 64 * 1024,
            // More lines than most source files have.
            read_lines: 2_000,
            // The edit engine's limit; larger files are generated.
            file_bytes: 8 * 1024 * 1024,
            // The smallest of the providers' own limits.
            image_bytes: 5 * 1024 * 1024,
            // Enough for a test run; short enough to notice a hang.
            command_seconds: 120,
            // Enough for a build from scratch.
            command_most_seconds: 600,
            // Enough for a verbose build log.
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
    /// The changed lines of the file that the call replaced, for people.
    pub diff: Option<EditDiff>,
    /// True if the model should take the result as a failure, such as an exit code other than 0.
    pub is_error: bool,
    /// Guarded files and repositories that the call created, changed or deleted. The result names
    /// them, too.
    pub violations: Vec<GuardViolation>,
    /// Number of lines that a command printed; `None` for other tools.
    pub output_lines: Option<u64>,
    /// Usage of a model other than the session's; `None` for tools that call none.
    pub foreign_usage: Option<ForeignUsage>,
}

/// The usage of a model other than the session's by a call.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ForeignUsage {
    /// The tokens.
    pub usage: Usage,
    /// Cost in US dollars; `None` if unknown.
    pub usd: Option<f64>,
}

impl ToolOutput {
    /// Returns a result of one text, without changes.
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

    /// Returns a result that the model should take as a failure.
    #[must_use]
    pub fn failure(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds the changed files, and a warning about new file names that other systems can't have.
    #[must_use]
    pub fn with_changes(mut self, workspace: &Workspace, changes: Vec<FileChange>) -> Self {
        let told = describe_problem_names(workspace, &changes);
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

/// Returns a line for each new file name that causes trouble on other systems.
pub(crate) fn describe_problem_names(workspace: &Workspace, changes: &[FileChange]) -> String {
    let troubles = workspace.command_observer().name_troubles(changes);
    troubles.iter().map(|(path, trouble)| format!("[note: {path}: {trouble}]\n")).collect()
}

/// Runs blocking work on a thread for such work.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(ToolError::Stopped(error.to_string())))
}
