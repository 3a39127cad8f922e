//! The tool with which an agent ends its work.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, ToolSpec};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::Value;

use super::definition::complete_task_schema;
use super::role::AgentOutputSpec;

/// The name of the tool.
pub(crate) const COMPLETE_TASK: &str = "complete_task";
/// The result of a call after the first valid one.
pub(crate) const ALREADY_COMPLETE_TEXT: &str =
    "not run: the task is complete already by an earlier call of this turn";

/// Ends an agent's work with its output. The session takes the output from the call's arguments
/// when the call has completed.
pub(crate) struct CompleteTaskTool {
    output: AgentOutputSpec,
}

impl CompleteTaskTool {
    pub(crate) fn new(output: AgentOutputSpec) -> Self {
        Self { output }
    }
}

impl Tool for CompleteTaskTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: COMPLETE_TASK.to_owned(),
            description: format!(
                "Ends your work and hands in its result as `{}`. Call it once, alone in its turn.",
                self.output.name
            ),
            input_schema: complete_task_schema(&self.output),
        }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _input: &Value) -> String {
        "complete the task".to_owned()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        _context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            Ok(match self.output.output_from_arguments(&input) {
                Ok(_) => ToolOutput::text("The result was taken, and the task is complete."),
                Err(wrong) => ToolOutput::failure(format!(
                    "not complete: {wrong}. Call {COMPLETE_TASK} again with all of it."
                )),
            })
        }
        .boxed()
    }
}
