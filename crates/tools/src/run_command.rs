//! `run_command`: a shell command in the sandbox.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_policy::{analyse, in_directory};
use journeyman_protocol::{Effects, FileChange, FileChangeKind, Level, RelPath, ResultPart, ToolSpec};
use journeyman_sandbox::{Completed, Limits, Outcome, Request, Streams, WriteMode, clean};
use journeyman_workspace::StatKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::{middle, shown};
use crate::guard::{Guard, Trespass};
use crate::read_file::OUTPUT;
use crate::shape::{Shape, not_found};
use crate::tool::in_background;
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// A longer command is a program; it belongs into a file. The system refuses single arguments over 128 KiB.
const COMMAND_BYTES: usize = 64 * 1024;
/// Live output shown of one command; the result has what counts.
const LIVE_BYTES: usize = 256 * 1024;
/// Changed files named in a result.
const MOST_NAMED: usize = 20;
/// A command is cut to this many bytes in a summary.
const SUMMARY_BYTES: usize = 200;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    command: String,
    /// Default 120, at most 600
    timeout_s: Option<u64>,
    directory: Option<String>,
}

/// Runs commands.
pub(crate) struct RunCommand {
    shape: Shape,
}

/// A call with everything decided.
struct Wish {
    command: String,
    directory: Option<RelPath>,
    seconds: Option<u64>,
}

impl Wish {
    /// The command as policy judges it: with the directory, which may hold anything.
    fn judged(&self) -> String {
        match &self.directory {
            Some(directory) => in_directory(&directory.to_string(), &self.command),
            None => self.command.clone(),
        }
    }

    /// Whether the command is known to read only. Then the sandbox lets it do no more.
    fn only_reads(&self) -> bool {
        analyse(&self.judged(), &[]).level == Level::ReadOnly
    }
}

impl RunCommand {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Runs a shell command in the project, in a sandbox without network. Nothing outlives it; \
                           there is no terminal. Don't use it to read or edit files.";
        Self { shape: Shape::of::<Arguments>("run_command", description, root) }
    }

    fn wish(&self, input: &Value) -> Result<Wish, ToolError> {
        let arguments: Arguments = self.shape.read(input)?;
        let directory = self.shape.directory("directory", arguments.directory.as_deref())?;
        let command = arguments.command;
        if command.trim().is_empty() {
            return Err(self.shape.refuse("`command` is empty"));
        }
        if command.contains('\0') {
            return Err(self.shape.refuse("`command` has a NUL character, which no command can hold"));
        }
        if command.len() > COMMAND_BYTES {
            let problem = format!(
                "`command` has {} bytes, at most {COMMAND_BYTES}; write a script file",
                command.len()
            );
            return Err(self.shape.refuse(problem));
        }
        Ok(Wish { command, directory, seconds: arguments.timeout_s.filter(|seconds| *seconds > 0) })
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let wish = self.wish(&input)?;
        if context.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let (workspace, directory) = (Arc::clone(&context.workspace), wish.directory.clone());
        let (before, guard) = in_background(move || {
            if let Some(directory) = directory
                && !workspace.stat(&directory)?.is_some_and(|stat| stat.kind == StatKind::Directory)
            {
                return Err(not_found(&workspace, directory));
            }
            let before = workspace.command_begin()?;
            let guard = Guard::before(workspace.root(), &before);
            Ok((before, guard))
        })
        .await?;
        let limits = &context.limits;
        let seconds = wish.seconds.unwrap_or(limits.command_seconds).min(limits.command_most_seconds);
        let only_reads = wish.only_reads();
        let mut request = request(context, &wish, Duration::from_secs(seconds));
        request.write = if only_reads { WriteMode::ReadOnly } else { WriteMode::Direct };
        request.protected.extend(guard.protected.iter().cloned());
        let ended = confined(context, request).await;
        let (workspace, session, call) =
            (Arc::clone(&context.workspace), context.session.clone(), context.call.clone());
        let (changes, trespass) = in_background(move || {
            // First what changed: that opens directories again which the command closed. What was planted goes
            // away even if that fails.
            let changes = workspace.command_end(before, &session, Some(&call));
            let trespass = if only_reads { Trespass::default() } else { guard.after(&workspace)? };
            Ok((changes?, trespass))
        })
        .await?;
        let completed = ended?;
        let refusal = trespass.refusal(&changes);
        let is_error = completed.outcome != Outcome::Exited(0) || refusal.is_some();
        let mut text = report(context, completed, seconds, &changes);
        text.extend(refusal);
        Ok(ToolOutput { parts: vec![ResultPart::Text { text }], changes, is_error })
    }
}

/// The command as the sandbox takes it.
fn request(context: &ToolContext, wish: &Wish, wall: Duration) -> Request {
    let root = context.workspace.root();
    let mut request = Request::shell(root, &wish.command).with_toolchains(&context.toolchains);
    if let Some(directory) = &wish.directory {
        request.cwd = root.join(directory.as_path());
    }
    request.needs = context.needs;
    request.streams = Streams::Merged;
    request.limits = Limits { wall, output_bytes: context.limits.output_bytes, ..Limits::default() };
    request
}

/// Runs the command, showing its output as it comes.
async fn confined(context: &ToolContext, request: Request) -> Result<Completed, ToolError> {
    let mut running = context.sandbox.spawn(request, context.cancel.clone()).await?;
    let mut room = LIVE_BYTES;
    while let Some(chunk) = running.next().await {
        let Some(left) = room.checked_sub(chunk.bytes.len()) else { break };
        room = left;
        (context.output)(clean(&chunk.bytes));
    }
    Ok(running.wait().await?)
}

/// The result's text: how it ended, its output, what it changed. No times, so that a recorded session plays
/// back the same.
fn report(context: &ToolContext, completed: Completed, seconds: u64, changes: &[FileChange]) -> String {
    let mut report = match &completed.outcome {
        Outcome::Exited(code) => format!("exit code {code}"),
        Outcome::Signaled(signal) => format!("killed by signal {signal}"),
        Outcome::TimedOut => format!(
            "killed at its time limit of {seconds} s (timeout_s may be up to {})",
            context.limits.command_most_seconds
        ),
        Outcome::Cancelled => "interrupted".to_owned(),
        Outcome::OutputLimit => "killed for flooding its output".to_owned(),
        Outcome::SetupFailed(reason) => format!("the command did not run: {reason}"),
    };
    let output = completed.combined.text;
    if output.trim().is_empty() {
        report.push_str(", no output\n");
    } else {
        report.push('\n');
        push_output(&mut report, context, output);
    }
    push_changes(&mut report, changes);
    report
}

/// Appends the output, or its head and tail; then the whole of it stays reachable.
fn push_output(report: &mut String, context: &ToolContext, output: String) {
    let Some(cut) = middle(&output, context.limits.result_bytes) else {
        report.push_str(&output);
        if !output.ends_with('\n') {
            report.push('\n');
        }
        return;
    };
    let (head, tail) =
        (output.get(..cut.start).unwrap_or_default(), output.get(cut.end..).unwrap_or_default());
    let left_out = output.get(cut.clone()).unwrap_or_default();
    let first = head.lines().count() + usize::from(head.ends_with('\n'));
    report.push_str(head);
    report.push_str(&format!(
        "\n[{} bytes left out, about {} lines; read_file with path {OUTPUT}{} and offset {} has them]\n",
        left_out.len(),
        left_out.lines().count(),
        context.call,
        first.max(1),
    ));
    report.push_str(tail);
    if !tail.ends_with('\n') {
        report.push('\n');
    }
    context.outputs.hold(&context.call, output);
}

fn push_changes(report: &mut String, changes: &[FileChange]) {
    if changes.is_empty() {
        return;
    }
    let named = changes.iter().take(MOST_NAMED).map(|change| {
        let kind = match change.kind {
            FileChangeKind::Added => "added",
            FileChangeKind::Modified => "modified",
            FileChangeKind::Deleted => "deleted",
        };
        format!("{} ({kind})", change.path)
    });
    let named: Vec<String> = named.collect();
    report.push_str(&format!("[files changed: {}", named.join(", ")));
    if changes.len() > named.len() {
        report.push_str(&format!(" and {} more", changes.len() - named.len()));
    }
    report.push_str("]\n");
}

impl Tool for RunCommand {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects { command: Some(self.wish(input)?.judged()), ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.wish(input) {
            Ok(Wish { command, directory: Some(directory), .. }) => {
                format!("run {} (in {directory})", shown(command.trim(), SUMMARY_BYTES))
            }
            Ok(Wish { command, .. }) => format!("run {}", shown(command.trim(), SUMMARY_BYTES)),
            Err(_) => "run a command".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(context, input).boxed()
    }
}
