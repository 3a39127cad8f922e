//! Assembles a message and its deltas from streamed pieces.

use journeyman_protocol::{Block, CallId, Message, Role, StopReason, ToolUse};
use serde_json::{Map, Value};

use super::legal_names::{self, IdDigest};
use super::opaque_value::OpaqueValueKind;
use crate::{Delta, ModelError};

/// Maximum number of blocks of a message. The largest real replies have some dozens (parallel
/// calls); thousands of blocks mean a faulty server.
pub(super) const MAX_BLOCKS: usize = 4_096;
/// Maximum size of a message: all texts, arguments and signatures together. The longest output that
/// a provider sells is 128,000 tokens, below 1 MiB; encrypted thinking is some times larger.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// A message that is being assembled.
#[derive(Debug, Default)]
pub(super) struct MessageBuilder {
    drafts: Vec<BlockBuilder>,
    deltas: Vec<Delta>,
    bytes: usize,
    begun: bool,
    answer: IdDigest,
}

#[derive(Debug)]
struct BlockBuilder {
    piece: BlockContent,
    open: bool,
    /// True if the server has said that the block is complete.
    complete: bool,
}

#[derive(Debug)]
enum BlockContent {
    Text(String),
    Thinking { text: String, signature: Option<String> },
    Call { id: CallId, name: String, arguments: String, signature: Option<String> },
}

impl MessageBuilder {
    /// Adds an event's data to the digest from which missing call ids are generated.
    pub(super) fn add_to_digest(&mut self, data: &str) {
        self.answer.update(data);
    }

    /// Records that the response began; later calls have no effect.
    pub(super) fn begin_message(&mut self) {
        if !self.begun {
            self.begun = true;
            self.deltas.push(Delta::MessageStart);
        }
    }

    /// Returns true if there are deltas since [`MessageBuilder::take_deltas`].
    pub(super) fn has_deltas(&self) -> bool {
        !self.deltas.is_empty()
    }

    /// Returns true if no block has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Returns the deltas since the last call.
    pub(super) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// Returns true if all blocks have ended.
    pub(super) fn has_all_blocks_closed(&self) -> bool {
        self.drafts.iter().all(|block_builder| !block_builder.open)
    }

    /// Begins a text block.
    pub(super) fn open_text(&mut self) -> Result<u32, ModelError> {
        self.open_block(BlockContent::Text(String::new()))
    }

    /// Begins a thinking block.
    pub(super) fn open_thinking(&mut self) -> Result<u32, ModelError> {
        self.open_block(BlockContent::Thinking { text: String::new(), signature: None })
    }

    /// Begins a call. If the id is missing or used by another call of the message, a new id is
    /// generated.
    pub(super) fn open_call(&mut self, id: &str, name: &str) -> Result<u32, ModelError> {
        let place = self.drafts.len();
        let taken = |wanted: &str| {
            self.drafts
                .iter()
                .any(|block_builder| matches!(&block_builder.piece, BlockContent::Call { id, .. } if id.as_str() == wanted))
        };
        let id = match id {
            "" => legal_names::generate_call_id(self.answer, place),
            id if taken(id) => format!("{id}_{place}"),
            id => id.to_owned(),
        };
        self.count_bytes(id.len().saturating_add(name.len()))?;
        let id = CallId::new(id);
        let piece = BlockContent::Call {
            id: id.clone(),
            name: name.to_owned(),
            arguments: String::new(),
            signature: None,
        };
        let block = self.open_block(piece)?;
        self.deltas.push(Delta::CallStart { block, id, name: name.to_owned() });
        Ok(block)
    }

    /// Adds a complete thinking block without text that only carries a signature.
    pub(super) fn add_hidden_thinking(&mut self, signature: String) -> Result<(), ModelError> {
        let block = self.open_thinking()?;
        self.attach_signature(block, signature)?;
        self.close_block(block);
        Ok(())
    }

    fn open_block(&mut self, piece: BlockContent) -> Result<u32, ModelError> {
        if self.drafts.len() >= MAX_BLOCKS {
            return Err(ModelError::Protocol(format!("a reply of more than {MAX_BLOCKS} blocks")));
        }
        self.begin_message();
        let block = u32::try_from(self.drafts.len()).unwrap_or(u32::MAX);
        self.drafts.push(BlockBuilder { piece, open: true, complete: false });
        Ok(block)
    }

    /// Counts kept bytes, also those outside the message, and fails above the maximum.
    pub(super) fn count_bytes(&mut self, more: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > MAX_MESSAGE_BYTES { Err(too_long_error()) } else { Ok(()) }
    }

    fn block_builder(&mut self, block: u32) -> Option<&mut BlockBuilder> {
        self.drafts.get_mut(usize::try_from(block).ok()?)
    }

    /// Appends to a text or thinking block.
    pub(super) fn append_text(&mut self, block: u32, more: &str) -> Result<(), ModelError> {
        if more.is_empty() {
            return Ok(());
        }
        self.count_bytes(more.len())?;
        let delta = match self.block_builder(block).map(|block_builder| &mut block_builder.piece) {
            Some(BlockContent::Text(text)) => {
                text.push_str(more);
                Delta::Text { block, text: more.to_owned() }
            }
            Some(BlockContent::Thinking { text, .. }) => {
                text.push_str(more);
                Delta::Thinking { block, text: more.to_owned() }
            }
            _ => return Err(ModelError::Protocol("text for a block that isn't text".to_owned())),
        };
        self.deltas.push(delta);
        Ok(())
    }

    /// Appends to a call's arguments.
    pub(super) fn append_arguments(&mut self, block: u32, more: &str) -> Result<(), ModelError> {
        if more.is_empty() {
            return Ok(());
        }
        self.count_bytes(more.len())?;
        match self.block_builder(block).map(|block_builder| &mut block_builder.piece) {
            Some(BlockContent::Call { arguments, .. }) => arguments.push_str(more),
            _ => return Err(ModelError::Protocol("arguments for a block that isn't a call".to_owned())),
        }
        self.deltas.push(Delta::CallArguments { block, fragment: more.to_owned() });
        Ok(())
    }

    /// Sets a call's complete arguments, which some protocols repeat at the end. The part that was
    /// not streamed yet is streamed now.
    pub(super) fn set_arguments(&mut self, block: u32, whole: &str) -> Result<(), ModelError> {
        let so_far = self.arguments_so_far(block);
        if so_far == whole {
            return Ok(());
        }
        match whole.strip_prefix(so_far).map(str::to_owned) {
            Some(rest) => self.append_arguments(block, &rest),
            None => {
                self.count_bytes(whole.len())?;
                if let Some(BlockBuilder { piece: BlockContent::Call { arguments, .. }, .. }) =
                    self.block_builder(block)
                {
                    whole.clone_into(arguments);
                }
                Ok(())
            }
        }
    }

    /// Returns a call's arguments so far.
    pub(super) fn arguments_so_far(&self, block: u32) -> &str {
        let place = usize::try_from(block).unwrap_or(usize::MAX);
        match self.drafts.get(place).map(|block_builder| &block_builder.piece) {
            Some(BlockContent::Call { arguments, .. }) => arguments,
            _ => "",
        }
    }

    /// Attaches the provider's signature to a block.
    pub(super) fn attach_signature(&mut self, block: u32, given: String) -> Result<(), ModelError> {
        self.count_bytes(given.len())?;
        match self.block_builder(block).map(|block_builder| &mut block_builder.piece) {
            Some(BlockContent::Thinking { signature, .. } | BlockContent::Call { signature, .. }) => {
                *signature = Some(given)
            }
            _ => return Err(ModelError::Protocol("a signature for a block of text".to_owned())),
        }
        Ok(())
    }

    /// Appends to a signature that arrives in pieces.
    pub(super) fn append_signature(
        &mut self,
        block: u32,
        seal: OpaqueValueKind,
        more: &str,
    ) -> Result<(), ModelError> {
        match self.block_builder(block).map(|block_builder| &mut block_builder.piece) {
            Some(BlockContent::Thinking { signature: Some(signature), .. }) => {
                signature.push_str(more);
                self.count_bytes(more.len())
            }
            _ if more.is_empty() => Ok(()),
            _ => self.attach_signature(block, seal.add_prefix(more)),
        }
    }

    /// Ends a block that is complete; later calls have no effect.
    pub(super) fn close_block(&mut self, block: u32) {
        self.end_block(block, true);
    }

    fn end_block(&mut self, block: u32, complete: bool) {
        if let Some(block_builder) = self.block_builder(block)
            && block_builder.open
        {
            block_builder.open = false;
            block_builder.complete = complete;
            self.deltas.push(Delta::BlockEnd { block });
        }
    }

    /// Ends all blocks at the end of the reply.
    pub(super) fn close_all_blocks(&mut self) {
        for block in 0..u32::try_from(self.drafts.len()).unwrap_or(u32::MAX) {
            self.end_block(block, false);
        }
    }

    /// Returns the message and the stop reason that its content implies: calls wait for their
    /// results even if the provider says plain "stop", and without calls there is nothing to wait
    /// for.
    pub(super) fn finish(&mut self, stop: StopReason) -> (Message, StopReason) {
        let drafts = std::mem::take(&mut self.drafts);
        let calls =
            drafts.iter().any(|block_builder| matches!(block_builder.piece, BlockContent::Call { .. }));
        let stop = match stop {
            StopReason::EndTurn | StopReason::StopSequence if calls => StopReason::ToolUse,
            StopReason::ToolUse if !calls => StopReason::EndTurn,
            other => other,
        };
        // In a reply that was cut off, the last block can be incomplete, and those that the server
        // hadn't ended. A block that only carries a signature may follow the last.
        let cut_off = match &stop {
            StopReason::MaxTokens => Some("the output limit cut the arguments off"),
            StopReason::Refusal | StopReason::Other(_) => Some("the reply was broken off"),
            _ => None,
        };
        let shows = |block_builder: &BlockBuilder| !matches!(&block_builder.piece, BlockContent::Thinking { text, .. } if text.is_empty());
        let last = drafts.iter().rposition(shows).unwrap_or(0);
        let content = drafts
            .into_iter()
            .enumerate()
            .map(|(place, block_builder)| {
                let cut_off = cut_off.filter(|_| place == last || !block_builder.complete);
                block_builder.piece.into_block(cut_off)
            })
            .collect();
        (Message { role: Role::Assistant, content }, stop)
    }
}

fn too_long_error() -> ModelError {
    let limit = MAX_MESSAGE_BYTES / (1024 * 1024);
    ModelError::Protocol(format!("a reply of more than {limit} MiB"))
}

impl BlockContent {
    fn into_block(self, cut_off: Option<&str>) -> Block {
        match self {
            Self::Text(text) => Block::Text { text },
            Self::Thinking { text, signature } => Block::Thinking { text, signature },
            Self::Call { id, name, arguments, signature } => {
                let (input, malformed) = parse_arguments(arguments, cut_off);
                Block::ToolUse(ToolUse { id, name, input, malformed, signature })
            }
        }
    }
}

/// Parses a call's arguments. Providers send an empty text or `null` for no arguments, which is not
/// valid if the reply was cut off.
fn parse_arguments(raw: String, cut_off: Option<&str>) -> (Value, Option<String>) {
    let trimmed = raw.trim();
    if trimmed.is_empty() || trimmed == "null" {
        return match cut_off {
            None => (Value::Object(Map::new()), None),
            Some(why) => (Value::String(raw), Some(why.to_owned())),
        };
    }
    let why = match serde_json::from_str::<Value>(trimmed) {
        Ok(object @ Value::Object(_)) => return (object, None),
        Ok(other) => format!("the arguments are {}, not a JSON object", json_type_name(&other)),
        Err(error) => match cut_off {
            Some(why) => format!("{why}: {error}"),
            None => format!("the arguments are not valid JSON: {error}"),
        },
    };
    (Value::String(raw), Some(why))
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
