//! `command_output` and `stop_command`: reading and stopping a background command.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, ToolSpec};
use journeyman_sandbox::Outcome;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::background::{BackgroundEnd, JobUpdate};
use crate::excerpt::to_one_line;
use crate::recording::push_changes;
use crate::run_command::describe_end;
use crate::tool_interface::ToolInterface;
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Maximum time that a call may wait for output: well below any limit of a call, and long enough
/// that waiting for a build takes few calls.
const MAX_WAIT_SECONDS: u64 = 60;
/// Maximum bytes of a command's id in a summary.
const MAX_SUMMARY_BYTES: usize = 40;

#[derive(Deserialize, JsonSchema)]
struct ReadCommandOutputArguments {
    id: String,
    /// Wait so long for any, at most 60
    wait_s: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct StopCommandArguments {
    id: String,
}

/// The `command_output` tool: reads the output of a background command.
pub(crate) struct ReadCommandOutput {
    shape: ToolInterface,
}

/// The `stop_command` tool: ends a background command.
pub(crate) struct StopCommand {
    shape: ToolInterface,
}

impl ReadCommandOutput {
    pub(crate) fn new() -> Self {
        let description = "New output of a background command, and whether it runs.";
        Self {
            shape: ToolInterface::for_arguments::<ReadCommandOutputArguments>(
                "command_output",
                description,
                None,
            ),
        }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let ReadCommandOutputArguments { id, wait_s } = self.shape.read_arguments(&input)?;
        let job = context.background.get(&id)?;
        let seconds = wait_s.unwrap_or_default().min(MAX_WAIT_SECONDS);
        if seconds > 0 {
            tokio::select! {
                biased;
                () = job.wait_for_update() => {}
                () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
                () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
            }
        }
        let JobUpdate { output, end } = job.take_update();
        Ok(job_report(&job.id, &output, end.as_ref()))
    }
}

impl StopCommand {
    pub(crate) fn new() -> Self {
        let description = "Kills a background command.";
        Self {
            shape: ToolInterface::for_arguments::<StopCommandArguments>("stop_command", description, None),
        }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let StopCommandArguments { id } = self.shape.read_arguments(&input)?;
        let job = context.background.get(&id)?;
        let ran = job.stop();
        job.wait_for_end().await;
        let JobUpdate { output, end } = job.take_update();
        let mut result = job_report(&job.id, &output, end.as_ref());
        if let Some(end) = end.filter(|_| ran) {
            // The kill was requested, so it is no error. There is no notice, so this reports the
            // changes.
            result.is_error = end.problem.is_some();
            result.changes = end.changes;
        }
        Ok(result)
    }
}

/// Returns the result that reports a command's output and end.
fn job_report(id: &str, output: &str, end: Option<&BackgroundEnd>) -> ToolOutput {
    let mut text = match end {
        None => format!("{id} runs"),
        Some(end) => format!("{id} ended: {}", describe_end(&end.outcome)),
    };
    if output.trim().is_empty() {
        text.push_str(", no new output\n");
    } else {
        text.push('\n');
        text.push_str(output);
        if !output.ends_with('\n') {
            text.push('\n');
        }
    }
    if let Some(end) = end {
        push_changes(&mut text, &end.changes);
        text.extend(end.problem.as_deref());
    }
    let is_error = end.is_some_and(|end| end.outcome != Outcome::Exited(0) || end.problem.is_some());
    ToolOutput { is_error, ..ToolOutput::text(text) }
}

impl Tool for ReadCommandOutput {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        self.shape.read_arguments::<ReadCommandOutputArguments>(input).map(|_| Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        match self.shape.read_arguments::<ReadCommandOutputArguments>(input) {
            Ok(ReadCommandOutputArguments { id, .. }) => {
                format!("read the output of {}", to_one_line(&id, MAX_SUMMARY_BYTES))
            }
            Err(_) => "read a command's output".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(context, input).boxed()
    }
}

impl Tool for StopCommand {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        // The session started the command itself, and that call was judged.
        self.shape.read_arguments::<StopCommandArguments>(input).map(|_| Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        match self.shape.read_arguments::<StopCommandArguments>(input) {
            Ok(StopCommandArguments { id }) => format!("stop {}", to_one_line(&id, MAX_SUMMARY_BYTES)),
            Err(_) => "stop a command".to_owned(),
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
