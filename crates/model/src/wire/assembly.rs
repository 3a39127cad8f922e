//! Blocks and deltas from streamed pieces.

use journeyman_protocol::{Block, CallId, Message, Role, StopReason, ToolUse};
use serde_json::{Map, Value};

use super::names::{self, Digest};
use super::proof::Seal;
use crate::{Delta, ModelError};

/// The most blocks of one message. The busiest real replies have some dozens (parallel calls); a reply of
/// thousands is a server gone wrong, and each block costs an entry everywhere it goes.
pub(super) const MAX_BLOCKS: usize = 4_096;
/// The most bytes of one message, all texts, arguments and proofs together. The longest output any provider
/// sells is 128,000 tokens, below 1 MiB; encrypted thinking is some times that. The rest is headroom.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// A message underway.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    drafts: Vec<Draft>,
    deltas: Vec<Delta>,
    bytes: usize,
    begun: bool,
    answer: Digest,
}

#[derive(Debug)]
struct Draft {
    piece: Piece,
    open: bool,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Thinking { text: String, proof: Option<String> },
    Call { id: CallId, name: String, arguments: String, proof: Option<String> },
}

impl Assembly {
    /// Takes note of an event as it came: ids that have to be made up depend on it.
    pub(super) fn heard(&mut self, data: &str) {
        self.answer.update(data);
    }

    /// The answer has begun; only the first time counts.
    pub(super) fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            self.deltas.push(Delta::MessageStart);
        }
    }

    /// The deltas since the last time.
    pub(super) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// Whether every block begun has ended.
    pub(super) fn all_closed(&self) -> bool {
        self.drafts.iter().all(|draft| !draft.open)
    }

    /// Begins a text block.
    pub(super) fn open_text(&mut self) -> Result<u32, ModelError> {
        self.open(Piece::Text(String::new()))
    }

    /// Begins a thinking block.
    pub(super) fn open_thinking(&mut self) -> Result<u32, ModelError> {
        self.open(Piece::Thinking { text: String::new(), proof: None })
    }

    /// Begins a call. Without an id, or with one that another call of this message has, it gets its own.
    pub(super) fn open_call(&mut self, id: &str, name: &str) -> Result<u32, ModelError> {
        let place = self.drafts.len();
        let taken = |wanted: &str| {
            self.drafts
                .iter()
                .any(|draft| matches!(&draft.piece, Piece::Call { id, .. } if id.as_str() == wanted))
        };
        let id = match id {
            "" => names::made_up_id(self.answer, place),
            id if taken(id) => format!("{id}_{place}"),
            id => id.to_owned(),
        };
        self.weigh(id.len().saturating_add(name.len()))?;
        let id = CallId::new(id);
        let piece =
            Piece::Call { id: id.clone(), name: name.to_owned(), arguments: String::new(), proof: None };
        let block = self.open(piece)?;
        self.deltas.push(Delta::CallStart { block, id, name: name.to_owned() });
        Ok(block)
    }

    /// A thinking block that shows nothing and only carries a proof. It is whole at once.
    pub(super) fn hidden(&mut self, proof: String) -> Result<(), ModelError> {
        let block = self.open_thinking()?;
        self.prove(block, proof)?;
        self.close(block);
        Ok(())
    }

    fn open(&mut self, piece: Piece) -> Result<u32, ModelError> {
        if self.drafts.len() >= MAX_BLOCKS {
            return Err(ModelError::Protocol(format!("a reply of more than {MAX_BLOCKS} blocks")));
        }
        self.begin();
        let block = u32::try_from(self.drafts.len()).unwrap_or(u32::MAX);
        self.drafts.push(Draft { piece, open: true });
        Ok(block)
    }

    /// Counts bytes that are kept, also those beside the message.
    pub(super) fn weigh(&mut self, more: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > MAX_MESSAGE_BYTES { Err(too_long()) } else { Ok(()) }
    }

    fn draft(&mut self, block: u32) -> Option<&mut Draft> {
        self.drafts.get_mut(usize::try_from(block).ok()?)
    }

    /// More of a text or thinking block.
    pub(super) fn text(&mut self, block: u32, more: &str) -> Result<(), ModelError> {
        if more.is_empty() {
            return Ok(());
        }
        self.weigh(more.len())?;
        let delta = match self.draft(block).map(|draft| &mut draft.piece) {
            Some(Piece::Text(text)) => {
                text.push_str(more);
                Delta::Text { block, text: more.to_owned() }
            }
            Some(Piece::Thinking { text, .. }) => {
                text.push_str(more);
                Delta::Thinking { block, text: more.to_owned() }
            }
            _ => return Err(ModelError::Protocol("text for a block that isn't text".to_owned())),
        };
        self.deltas.push(delta);
        Ok(())
    }

    /// More of a call's arguments.
    pub(super) fn arguments(&mut self, block: u32, more: &str) -> Result<(), ModelError> {
        if more.is_empty() {
            return Ok(());
        }
        self.weigh(more.len())?;
        match self.draft(block).map(|draft| &mut draft.piece) {
            Some(Piece::Call { arguments, .. }) => arguments.push_str(more),
            _ => return Err(ModelError::Protocol("arguments for a block that isn't a call".to_owned())),
        }
        self.deltas.push(Delta::CallArguments { block, fragment: more.to_owned() });
        Ok(())
    }

    /// A call's arguments once more and whole, as some protocols end them. They stand; what of them wasn't
    /// streamed yet still is.
    pub(super) fn whole_arguments(&mut self, block: u32, whole: &str) -> Result<(), ModelError> {
        let so_far = self.arguments_so_far(block);
        if so_far == whole {
            return Ok(());
        }
        match whole.strip_prefix(so_far).map(str::to_owned) {
            Some(rest) => self.arguments(block, &rest),
            None => {
                self.weigh(whole.len())?;
                if let Some(Draft { piece: Piece::Call { arguments, .. }, .. }) = self.draft(block) {
                    whole.clone_into(arguments);
                }
                Ok(())
            }
        }
    }

    /// A call's arguments until now.
    pub(super) fn arguments_so_far(&self, block: u32) -> &str {
        let place = usize::try_from(block).unwrap_or(usize::MAX);
        match self.drafts.get(place).map(|draft| &draft.piece) {
            Some(Piece::Call { arguments, .. }) => arguments,
            _ => "",
        }
    }

    /// What a block's provider wants back with it.
    pub(super) fn prove(&mut self, block: u32, given: String) -> Result<(), ModelError> {
        self.weigh(given.len())?;
        match self.draft(block).map(|draft| &mut draft.piece) {
            Some(Piece::Thinking { proof, .. } | Piece::Call { proof, .. }) => *proof = Some(given),
            _ => return Err(ModelError::Protocol("a signature for a block of text".to_owned())),
        }
        Ok(())
    }

    /// More of a proof that comes in pieces.
    pub(super) fn prove_more(&mut self, block: u32, seal: Seal, more: &str) -> Result<(), ModelError> {
        match self.draft(block).map(|draft| &mut draft.piece) {
            Some(Piece::Thinking { proof: Some(proof), .. }) => {
                proof.push_str(more);
                self.weigh(more.len())
            }
            _ if more.is_empty() => Ok(()),
            _ => self.prove(block, seal.close(more)),
        }
    }

    /// A block is whole; only the first time counts.
    pub(super) fn close(&mut self, block: u32) {
        if let Some(draft) = self.draft(block)
            && draft.open
        {
            draft.open = false;
            self.deltas.push(Delta::BlockEnd { block });
        }
    }

    /// All blocks are whole.
    pub(super) fn close_all(&mut self) {
        for block in 0..u32::try_from(self.drafts.len()).unwrap_or(u32::MAX) {
            self.close(block);
        }
    }

    /// The message, and the reason it stopped as its content tells: calls wait for their results even where
    /// the provider says plain «stop», and without calls there is nothing to wait for.
    pub(super) fn finish(&mut self, stop: StopReason) -> (Message, StopReason) {
        let drafts = std::mem::take(&mut self.drafts);
        let calls = drafts.iter().any(|draft| matches!(draft.piece, Piece::Call { .. }));
        let stop = match stop {
            StopReason::EndTurn | StopReason::StopSequence if calls => StopReason::ToolUse,
            StopReason::ToolUse if !calls => StopReason::EndTurn,
            other => other,
        };
        // Of a reply that was cut off, only the last block can be incomplete. One that only carries a proof
        // may have been added after it.
        let cut_off = match &stop {
            StopReason::MaxTokens => Some("the output limit cut the arguments off"),
            StopReason::Refusal | StopReason::Other(_) => Some("the reply was broken off"),
            _ => None,
        };
        let shows = |draft: &Draft| !matches!(&draft.piece, Piece::Thinking { text, .. } if text.is_empty());
        let last = drafts.iter().rposition(shows).unwrap_or(0);
        let content = drafts
            .into_iter()
            .enumerate()
            .map(|(place, draft)| draft.piece.into_block(cut_off.filter(|_| place == last)))
            .collect();
        (Message { role: Role::Assistant, content }, stop)
    }
}

fn too_long() -> ModelError {
    let limit = MAX_MESSAGE_BYTES / (1024 * 1024);
    ModelError::Protocol(format!("a reply of more than {limit} MiB"))
}

impl Piece {
    fn into_block(self, cut_off: Option<&str>) -> Block {
        match self {
            Self::Text(text) => Block::Text { text },
            Self::Thinking { text, proof } => Block::Thinking { text, signature: proof },
            Self::Call { id, name, arguments, proof } => {
                let (input, malformed) = parse_arguments(arguments, cut_off);
                Block::ToolUse(ToolUse { id, name, input, malformed, signature: proof })
            }
        }
    }
}

/// A call's input from its arguments as text. No text at all is how providers say «no arguments», and some
/// write `null`; but not where the reply was cut off.
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
        Ok(other) => format!("the arguments are {}, not a JSON object", kind(&other)),
        Err(error) => match cut_off {
            Some(why) => format!("{why}: {error}"),
            None => format!("the arguments are not valid JSON: {error}"),
        },
    };
    (Value::String(raw), Some(why))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
