//! The words that a task begins with.

use journeyman_protocol::{Block, MessageKind};

use crate::AgentError;
use crate::transcript::record::{MessageId, Queued};

/// A task's first words.
#[derive(Default)]
pub(super) struct FirstMessage {
    pub(super) content: Vec<Block>,
    /// Messages that are left for the next task.
    pub(super) waits: Vec<MessageId>,
    /// Why the task ends before the model is asked, where it does.
    pub(super) refused: Option<AgentError>,
}

/// Texts as a message has them. No provider takes an empty one.
pub(super) fn blocks(texts: impl IntoIterator<Item = String>) -> Vec<Block> {
    texts.into_iter().filter(|text| !text.trim().is_empty()).map(Block::text).collect()
}

/// What a person asked for: the words of all that waits from them.
pub(super) fn words(waiting: &[Queued]) -> String {
    let spoken = waiting.iter().filter(|queued| queued.kind == MessageKind::User);
    let spoken: Vec<&str> = spoken.map(|queued| queued.text.as_str()).collect();
    spoken.join("\n\n")
}
