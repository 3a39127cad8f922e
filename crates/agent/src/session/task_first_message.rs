//! The message that begins a task.

use journeyman_protocol::{Block, MessageKind};

use crate::AgentError;
use crate::transcript::record::{MessageId, QueuedMessage};

/// The content of a task's first message.
#[derive(Default)]
pub(super) struct TaskFirstMessage {
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

/// Moves the images out of messages, as blocks.
pub(super) fn take_images(messages: &mut [QueuedMessage]) -> Vec<Block> {
    let images = messages.iter_mut().flat_map(|queued| std::mem::take(&mut queued.images));
    images.map(Block::Image).collect()
}

/// Returns the texts of all waiting messages from a person, joined by blank lines.
pub(super) fn user_text(waiting: &[QueuedMessage]) -> String {
    let spoken = waiting.iter().filter(|queued| queued.kind == MessageKind::User);
    let spoken: Vec<&str> = spoken.map(|queued| queued.text.as_str()).collect();
    spoken.join("\n\n")
}

/// Returns true if a task asks something and demands no change: it ends with a question, or begins
/// by asking for an explanation. "Can you fix it?" demands a change.
#[must_use]
pub fn is_question(task: &str) -> bool {
    /// Beginnings of requests that are put as questions.
    const POLITE_REQUEST_BEGINNINGS: [&str; 8] =
        ["can you", "could you", "would you", "will you", "please", "can we", "could we", "shall we"];
    const EXPLANATION_VERBS: [&str; 5] = ["explain", "describe", "summarize", "summarise", "tell"];
    let task = task.trim().to_lowercase();
    if task.split_whitespace().next().is_some_and(|first| EXPLANATION_VERBS.contains(&first)) {
        return true;
    }
    let Some(question) = task.strip_suffix(['?', '？']) else { return false };
    let last = question.rsplit(['.', '!', '?', '\n', ';']).next().unwrap_or(question).trim_start();
    !POLITE_REQUEST_BEGINNINGS.iter().any(|request| last.starts_with(request))
}

#[cfg(test)]
mod tests {
    use super::is_question;

    #[test]
    fn a_question_demands_no_change() {
        for question in ["Why does `a` fail?", "explain the parser", "Fix nothing. What is this?\n", "如何？"]
        {
            assert!(is_question(question), "{question}");
        }
        for task in
            ["fix the test", "Can you fix it?", "It fails. Could you look into it?", "What? Fix it.", ""]
        {
            assert!(!is_question(task), "{task}");
        }
    }
}
