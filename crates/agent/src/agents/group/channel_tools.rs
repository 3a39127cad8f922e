//! The tools with which members of a group talk.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, ToolSpec};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::channel::GroupChannel;

/// Names of the tools.
const SEND_MESSAGE: &str = "send_message";
const WAIT_FOR_MESSAGE: &str = "wait_for_message";
/// Maximum characters of a message in a summary.
const MAX_MESSAGE_SUMMARY_CHARS: usize = 80;
/// Maximum bytes of a message: findings and a piece of code, not a file.
const MAX_MESSAGE_BYTES: usize = 16 * 1024;
/// Default and maximum time to wait for a message.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);
const MAX_WAIT: Duration = Duration::from_secs(600);

/// Sends a message to other members.
pub(super) struct SendMessage {
    channel: GroupChannel,
    name: String,
}

impl SendMessage {
    pub(super) fn new(channel: GroupChannel, name: String) -> Self {
        Self { channel, name }
    }

    async fn send(&self, input: &Value) -> ToolOutput {
        let text = input.get("text").and_then(Value::as_str).unwrap_or_default().trim();
        if text.is_empty() || text.len() > MAX_MESSAGE_BYTES {
            return ToolOutput::failure(format!(
                "not sent: `text` has to have 1 to {MAX_MESSAGE_BYTES} bytes"
            ));
        }
        let delivery = match self.channel.0.send_message(&self.name, text).await {
            Ok(delivery) => delivery,
            Err(error) => return ToolOutput::failure(format!("not sent: {error}")),
        };
        let mut said = match delivery.to.as_slice() {
            [] => format!("delivered to nobody; there are: {}", self.channel.0.member_names().join(", ")),
            to => format!("delivered to: {}", to.join(", ")),
        };
        if !delivery.unknown.is_empty() {
            said.push_str(&format!("; there is no member {}", delivery.unknown.join(", ")));
        }
        for (name, error) in &delivery.failed {
            said.push_str(&format!("; not to {name}: {error}"));
        }
        ToolOutput { is_error: delivery.to.is_empty(), ..ToolOutput::text(said) }
    }
}

impl Tool for SendMessage {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SEND_MESSAGE.to_owned(),
            description: format!(
                "Sends a message to members of your group, in which you are `{}`: to those that it mentions as \
                 @name, or to all. Their messages come by themselves, as [from:name].",
                self.name
            ),
            input_schema: json!({
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
            }),
        }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, input: &Value) -> String {
        let text = input.get("text").and_then(Value::as_str).unwrap_or_default();
        let line: String =
            text.lines().next().unwrap_or_default().chars().take(MAX_MESSAGE_SUMMARY_CHARS).collect();
        format!("{SEND_MESSAGE}: {line}")
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        _context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move { Ok(self.send(&input).await) }.boxed()
    }
}

/// Waits for a message of another member.
pub(super) struct WaitForMessage {
    channel: GroupChannel,
    name: String,
    arrived: Arc<Notify>,
}

impl WaitForMessage {
    pub(super) fn new(channel: GroupChannel, name: String, arrived: Arc<Notify>) -> Self {
        Self { channel, name, arrived }
    }

    async fn wait(&self, context: &ToolContext, input: &Value) -> Result<ToolOutput, ToolError> {
        let seconds = input.get("timeout_s").and_then(Value::as_u64).map(Duration::from_secs);
        let time = seconds.unwrap_or(DEFAULT_WAIT).min(MAX_WAIT);
        if self.channel.0.member_names().iter().all(|other| *other == self.name) && !self.has_new_message() {
            return Ok(ToolOutput::failure("nobody else is in the group any more"));
        }
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(ToolError::Cancelled),
            () = self.arrived.notified() => Ok(ToolOutput::text("a message has come; it follows")),
            () = tokio::time::sleep(time) => {
                Ok(ToolOutput::failure(format!("no message came in {} s", time.as_secs())))
            }
        }
    }

    /// Returns true if a message came that nobody has waited for. It stays so.
    fn has_new_message(&self) -> bool {
        let has = self.arrived.notified().now_or_never().is_some();
        if has {
            self.arrived.notify_one();
        }
        has
    }
}

impl Tool for WaitForMessage {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: WAIT_FOR_MESSAGE.to_owned(),
            description: format!(
                "Waits for a message of another member, {} s unless told, where you can't go on without.",
                DEFAULT_WAIT.as_secs()
            ),
            input_schema: json!({
                "type": "object",
                "properties": { "timeout_s": { "type": "integer" } },
            }),
        }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _input: &Value) -> String {
        WAIT_FOR_MESSAGE.to_owned()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn time_limit(&self) -> Option<Duration> {
        None
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move { self.wait(context, &input).await }.boxed()
    }
}
