//! What a model answers, piece by piece, and the seam every model stands behind.

use futures_util::stream::BoxStream;
use journeyman_protocol::{CallId, Message, StopReason, Usage};
use tokio_util::sync::CancellationToken;

use crate::{ModelError, ModelRequest};

/// A reply as it comes in. A stream of these ends with exactly one [`Delta::Done`] or one error; only
/// `Done` commits anything.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// The provider has begun to answer.
    MessageStart,
    /// More of a text block.
    Text {
        /// The block's place in the message, from 0.
        block: u32,
        /// What follows the text so far.
        text: String,
    },
    /// More of a thinking block.
    Thinking {
        /// The block's place in the message, from 0.
        block: u32,
        /// What follows the thinking so far.
        text: String,
    },
    /// A tool call begins.
    CallStart {
        /// The block's place in the message, from 0.
        block: u32,
        /// The call's id, as in the finished message.
        id: CallId,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments, as raw JSON text.
    CallArguments {
        /// The block's place in the message, from 0.
        block: u32,
        /// What follows the arguments so far.
        fragment: String,
    },
    /// A block is whole.
    BlockEnd {
        /// The block's place in the message, from 0.
        block: u32,
    },
    /// The stream broke, or never began, and is tried again: everything streamed so far is void.
    Restart {
        /// The attempt that follows, from 2.
        attempt: u32,
        /// How many attempts there are at most.
        of: u32,
        /// How long the wait before it is, in milliseconds.
        wait_ms: u64,
        /// What went wrong, in words.
        reason: String,
    },
    /// The reply, whole.
    Done(Box<Reply>),
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The assistant's message. Block indices of the deltas are indices into its content.
    pub message: Message,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What it cost, in tokens.
    pub usage: Usage,
    /// The model that answered, by the provider's own name (often more exact than the one asked for).
    pub model: String,
}

/// A reply in pieces: any number of deltas, then one [`Delta::Done`] or one error, then nothing.
pub type DeltaStream<'a> = BoxStream<'a, Result<Delta, ModelError>>;

/// Anything that answers requests: a wire client, a script, a decorator around another.
pub trait Model: Send + Sync {
    /// The model as people name it: `provider/name`.
    fn name(&self) -> String;

    /// Asks, and streams the answer. Nothing is sent before the stream is polled. Cancelling ends it at
    /// the next poll with [`ModelError::Cancelled`]; dropping it closes the connection.
    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a>;
}
