//! The streamed reply of a model, and the [`Model`] trait.

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use journeyman_protocol::{Block, CallId, Message, StopReason, Usage};
use tokio_util::sync::CancellationToken;

use crate::{ModelError, ModelRequest, ServerLimits};

/// An item of a streamed reply. A stream ends with exactly one [`Delta::Done`] or one error; the
/// reply counts only after `Done`.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// The provider began to reply.
    MessageStart,
    /// A text block continues.
    Text {
        /// The block's index in the message, from 0.
        block: u32,
        /// The text that follows the block's text so far.
        text: String,
    },
    /// A thinking block continues.
    Thinking {
        /// The block's index in the message, from 0.
        block: u32,
        /// The text that follows the block's text so far.
        text: String,
    },
    /// A tool call begins.
    CallStart {
        /// The block's index in the message, from 0.
        block: u32,
        /// The call's id, as in the finished message.
        id: CallId,
        /// The tool's name.
        name: String,
    },
    /// The arguments of a call continue, as raw JSON text.
    CallArguments {
        /// The block's index in the message, from 0.
        block: u32,
        /// The text that follows the arguments so far.
        fragment: String,
    },
    /// A block is complete.
    BlockEnd {
        /// The block's index in the message, from 0.
        block: u32,
    },
    /// The stream broke or never began, and is attempted again: everything streamed so far is void.
    Restart {
        /// The number of the next attempt, from 2.
        attempt: u32,
        /// Maximum number of attempts.
        of: u32,
        /// The wait before the next attempt, in milliseconds.
        wait_ms: u64,
        /// The failure, for people.
        reason: String,
    },
    /// The tokens that the provider has reported of an attempt that fails. Its error or the restart
    /// comes next. The usage of the reply doesn't contain them.
    Usage(Usage),
    /// The complete reply.
    Done(Box<Reply>),
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The assistant's message. Block indices of the deltas are indices into its content.
    pub message: Message,
    /// The reason for which the model stopped.
    pub stop: StopReason,
    /// Tokens used.
    pub usage: Usage,
    /// The provider's name of the model that replied (often more exact than the requested name).
    pub model: String,
}

/// A streamed reply: any number of deltas, then one [`Delta::Done`] or one error, then nothing.
pub type DeltaStream<'a> = BoxStream<'a, Result<Delta, ModelError>>;

/// Streams a reply that is complete at once, or an error. The reply is made when the stream is
/// first polled, unless the stream is cancelled by then.
pub fn stream_whole_reply<'a>(
    cancel: CancellationToken,
    reply: impl FnOnce() -> Result<Reply, ModelError> + Send + 'a,
) -> DeltaStream<'a> {
    let items = stream::once(async move {
        if cancel.is_cancelled() {
            return vec![Err(ModelError::Cancelled)];
        }
        match reply() {
            Ok(reply) => reply_into_deltas(reply).into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    });
    items.flat_map(stream::iter).boxed()
}

fn reply_into_deltas(reply: Reply) -> Vec<Delta> {
    let mut deltas = vec![Delta::MessageStart];
    for (block, content) in (0..).zip(&reply.message.content) {
        match content {
            Block::Text { text } => deltas.push(Delta::Text { block, text: text.clone() }),
            Block::Thinking { text, .. } => deltas.push(Delta::Thinking { block, text: text.clone() }),
            Block::ToolUse(call) => {
                deltas.push(Delta::CallStart { block, id: call.id.clone(), name: call.name.clone() });
                deltas.push(Delta::CallArguments { block, fragment: call.input.to_string() });
            }
            _ => {}
        }
        deltas.push(Delta::BlockEnd { block });
    }
    deltas.push(Delta::Done(Box::new(reply)));
    deltas
}

/// A model that replies to requests: an HTTP client, a script, or a wrapper of another model.
pub trait Model: Send + Sync {
    /// Returns the model's name as `provider/name`.
    fn name(&self) -> String;

    /// Sends the request and streams the reply. Nothing is sent before the stream is polled.
    /// Cancellation ends the stream at the next poll with [`ModelError::Cancelled`]; dropping the
    /// stream closes the connection.
    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a>;

    /// Asks the server for the model's limits, for a few seconds at most. `None` if the server
    /// doesn't return them.
    fn query_limits(&self) -> BoxFuture<'_, Option<ServerLimits>> {
        Box::pin(std::future::ready(None))
    }
}
