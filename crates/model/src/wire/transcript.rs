//! The shape that every provider requires of a conversation.
//!
//! Turns alternate and begin with the user; each call of an assistant turn has exactly one result
//! in the user turn right after it; the results come first there, in the order of the calls.
//! Anthropic and Gemini refuse anything else; for the OpenAI protocols the shape does no harm, and
//! one rule is simpler than four.

use std::collections::HashMap;

use journeyman_protocol::{Block, CallId, Message, ResultPart, Role, ToolUse};
use serde_json::{Map, Value};

use crate::ModelError;

/// The text of an empty result. Providers refuse empty texts.
const EMPTY_RESULT_TEXT: &str = "(no output)";

/// Consecutive messages of one role, joined.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) role: Role,
    pub(super) blocks: Vec<&'a Block>,
}

impl<'a> Turn<'a> {
    /// Returns the calls of the turn, in order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &'a ToolUse> + '_ {
        self.blocks
            .iter()
            .filter_map(|block| if let Block::ToolUse(call) = block { Some(call) } else { None })
    }
}

/// Returns the turns of a conversation. `is_own_thinking` decides whether a thinking block is sent
/// back to this provider; other thinking is omitted, and so are texts of white space, which some
/// providers refuse.
///
/// # Errors
/// [`ModelError::Protocol`] if no provider accepts the conversation: it is empty, it begins with
/// the assistant, a call has no result or several, a result has no call, or a block has the wrong
/// role.
pub(super) fn join_turns<'a>(
    messages: &'a [Message],
    is_own_thinking: impl Fn(&Block) -> bool,
) -> Result<Vec<Turn<'a>>, ModelError> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for run in messages.chunk_by(|one, next| one.role == next.role) {
        let Some(role) = run.first().map(|message| message.role) else { continue };
        let mut blocks = Vec::new();
        for block in run.iter().flat_map(|message| &message.content) {
            check_role(role, block)?;
            let said = match block {
                Block::Text { text } => !text.trim().is_empty(),
                Block::Thinking { .. } => is_own_thinking(block),
                _ => true,
            };
            if said {
                blocks.push(block);
            }
        }
        // Thinking alone is not a turn: it has nothing that the next turn answers.
        if blocks.iter().all(|block| matches!(block, Block::Thinking { .. })) {
            continue;
        }
        match turns.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks),
            _ => turns.push(Turn { role, blocks }),
        }
    }
    match turns.first() {
        None => return Err(invalid_transcript_error("the conversation is empty")),
        Some(first) if first.role == Role::Assistant => {
            return Err(invalid_transcript_error(
                "the conversation begins with the assistant; its first message is the user's",
            ));
        }
        Some(_) => {}
    }
    order_results(&mut turns)?;
    Ok(turns)
}

fn invalid_transcript_error(why: impl Into<String>) -> ModelError {
    ModelError::Protocol(why.into())
}

fn check_role(role: Role, block: &Block) -> Result<(), ModelError> {
    let what = match (role, block) {
        (Role::User, Block::Thinking { .. }) => "a user message holds thinking",
        (Role::User, Block::ToolUse(_)) => "a user message holds a tool call",
        (Role::Assistant, Block::ToolResult { .. }) => "an assistant message holds a tool result",
        (Role::Assistant, Block::Image(_)) => "an assistant message holds an image",
        _ => return Ok(()),
    };
    Err(invalid_transcript_error(format!("{what}, which no provider takes")))
}

/// Moves the results of each user turn to its beginning in the order of the calls, and checks that
/// they match.
fn order_results(turns: &mut [Turn<'_>]) -> Result<(), ModelError> {
    let mut open: Vec<&CallId> = Vec::new();
    for turn in turns {
        if turn.role == Role::Assistant {
            open = turn.calls().map(|call| &call.id).collect();
            continue;
        }
        let mut places = HashMap::with_capacity(open.len());
        for (place, id) in open.iter().enumerate() {
            if places.insert(*id, place).is_some() {
                return Err(invalid_transcript_error(format!("two calls of one message have the id `{id}`")));
            }
        }
        let mut answered = vec![false; open.len()];
        for block in &turn.blocks {
            let Block::ToolResult { id, .. } = block else { continue };
            match places.get(id).and_then(|place| answered.get_mut(*place)) {
                None => {
                    return Err(invalid_transcript_error(format!(
                        "the tool result `{id}` answers no call of the message before it"
                    )));
                }
                Some(true) => {
                    return Err(invalid_transcript_error(format!("the tool call `{id}` has two results")));
                }
                Some(seen) => *seen = true,
            }
        }
        if let Some((id, _)) = open.iter().zip(&answered).find(|(_, seen)| !**seen) {
            return Err(missing_result_error(id));
        }
        turn.blocks.sort_by_key(|block| match block {
            Block::ToolResult { id, .. } => places.get(id).copied().unwrap_or(usize::MAX),
            _ => usize::MAX,
        });
        open.clear();
    }
    open.first().map_or(Ok(()), |id| Err(missing_result_error(id)))
}

fn missing_result_error(id: &CallId) -> ModelError {
    invalid_transcript_error(format!("the tool call `{id}` has no result in the message after it"))
}

/// Returns the input of a call as an object, which Anthropic, Gemini and strict servers require.
/// Invalid arguments are sent back as the model wrote them, under a member that says so.
pub(super) fn input_object(call: &ToolUse) -> Value {
    match &call.input {
        Value::Object(_) => call.input.clone(),
        other => {
            let mut wrapped = Map::new();
            wrapped.insert("_malformed".to_owned(), other.clone());
            Value::Object(wrapped)
        }
    }
}

/// Joins a result's texts, for protocols that accept one text only. `flag_error` marks the failure
/// in the text if the protocol has no member for it; `images` is the text that stands for images.
pub(super) fn result_text(content: &[ResultPart], flag_error: bool, images: &str) -> String {
    let mut text = String::new();
    let mut shown = 0_usize;
    for part in content {
        match part {
            ResultPart::Text { text: more } if more.is_empty() => {}
            ResultPart::Text { text: more } => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(more);
            }
            ResultPart::Image(_) => shown = shown.saturating_add(1),
        }
    }
    if text.is_empty() && shown == 0 {
        text.push_str(EMPTY_RESULT_TEXT);
    }
    let says_so = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if flag_error && !says_so {
        text.insert_str(0, "Error: ");
    }
    if shown > 0 && !images.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(images);
    }
    text
}
