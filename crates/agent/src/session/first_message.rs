//! The message that begins a task.

use journeyman_protocol::{Block, MessageKind};

use crate::AgentError;
use crate::transcript::record::{MessageId, QueuedMessage};

/// The content of a task's first message.
#[derive(Default)]
pub(super) struct FirstMessage {
    pub(super) content: Vec<Block>,
    /// Messages that stay queued for the next task.
    pub(super) left_queued: Vec<MessageId>,
    /// The reason to end the task before the first model request, if any.
    pub(super) refused: Option<AgentError>,
}

/// Returns texts as blocks. Blank texts are skipped because no provider takes them.
pub(super) fn text_blocks(texts: impl IntoIterator<Item = String>) -> Vec<Block> {
    texts.into_iter().filter(|text| !text.trim().is_empty()).map(Block::text).collect()
}

/// Returns the texts of all waiting messages from a person, joined by blank lines.
pub(super) fn user_text(waiting: &[QueuedMessage]) -> String {
    let spoken = waiting.iter().filter(|queued| queued.kind == MessageKind::User);
    let spoken: Vec<&str> = spoken.map(|queued| queued.text.as_str()).collect();
    spoken.join("\n\n")
}
