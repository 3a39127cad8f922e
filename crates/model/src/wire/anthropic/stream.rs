//! Decodes an Anthropic response.

use std::collections::HashMap;

use journeyman_protocol::{StopReason, Tokens, Usage};
use serde_json::Value;

use super::super::message_builder::MessageBuilder;
use super::super::opaque_value::OpaqueValueKind;
use super::super::{json, provider_error};
use crate::codec::Decoder;
use crate::sse::SseEvent;
use crate::{Delta, ModelError, Reply};

/// The decoder of one response.
#[derive(Debug, Default)]
pub(super) struct AnthropicDecoder {
    assembly: MessageBuilder,
    /// The server's open blocks, by its own index.
    blocks: HashMap<u64, OpenBlock>,
    usage: Usage,
    model: String,
    stop: Option<StopReason>,
    ended: bool,
}

/// A block of the server.
#[derive(Debug)]
enum OpenBlock {
    /// A text block that has no text yet. A block that stays empty is dropped.
    EmptyText,
    Text(u32),
    Thinking(u32),
    Redacted,
    Call {
        block: u32,
        initial: String,
    },
    /// A kind of block that this version does not support (server tools and later additions).
    Unknown,
    Ended,
}

impl Decoder for AnthropicDecoder {
    fn handle_event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError> {
        if event.data.trim().is_empty() || self.ended {
            return Ok(Vec::new());
        }
        self.assembly.add_to_digest(&event.data);
        let value = json::parse_event(&event.data)?;
        let kind = json::get_text(&value, "type").or(event.event.as_deref()).unwrap_or_default();
        match kind {
            "message_start" => self.handle_message_start(&value),
            "content_block_start" => self.handle_block_start(&value)?,
            "content_block_delta" => self.handle_block_delta(&value)?,
            "content_block_stop" => self.handle_block_stop(block_index(&value)?)?,
            "message_delta" => self.handle_message_delta(&value),
            "message_stop" => {
                let open: Vec<u64> = self.blocks.keys().copied().collect();
                open.into_iter().try_for_each(|index| self.handle_block_stop(index))?;
                self.ended = true;
            }
            "error" => return Err(provider_error::error_from_event(&value)),
            _ => {}
        }
        Ok(self.assembly.take_deltas())
    }

    fn is_complete(&self) -> bool {
        // Some servers omit `message_stop`; the stop reason and the end of every block mean the
        // same.
        self.ended || (self.stop.is_some() && self.assembly.has_all_blocks_closed())
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        let missing = || ModelError::Protocol("the answer ended without a stop reason".to_owned());
        if !self.is_complete() {
            return Err(missing());
        }
        let stop = self.stop.take().ok_or_else(missing)?;
        let (message, stop) = self.assembly.finish(stop);
        Ok(Reply { message, stop, usage: self.usage, model: std::mem::take(&mut self.model) })
    }
}

fn block_index(value: &Value) -> Result<u64, ModelError> {
    json::get_count(value, "index")
        .ok_or_else(|| ModelError::Protocol("an event of a content block without its index".to_owned()))
}

impl AnthropicDecoder {
    fn handle_message_start(&mut self, value: &Value) {
        self.assembly.begin_message();
        let Some(message) = json::get_present(value, "message") else { return };
        if let Some(model) = json::get_text(message, "model") {
            model.clone_into(&mut self.model);
        }
        if let Some(usage) = json::get_present(message, "usage") {
            self.update_usage(usage);
        }
    }

    fn handle_block_start(&mut self, value: &Value) -> Result<(), ModelError> {
        let index = block_index(value)?;
        let Some(block) = json::get_present(value, "content_block") else { return Ok(()) };
        let part = match json::get_text(block, "type").unwrap_or_default() {
            "text" => match json::get_text(block, "text") {
                None => OpenBlock::EmptyText,
                Some(text) => {
                    let place = self.assembly.open_text()?;
                    self.assembly.append_text(place, text)?;
                    OpenBlock::Text(place)
                }
            },
            "thinking" => {
                let place = self.assembly.open_thinking()?;
                self.assembly.append_text(place, json::get_text(block, "thinking").unwrap_or_default())?;
                self.assembly.append_signature(
                    place,
                    OpaqueValueKind::Anthropic,
                    json::get_text(block, "signature").unwrap_or_default(),
                )?;
                OpenBlock::Thinking(place)
            }
            "redacted_thinking" => {
                let data = json::get_text(block, "data").unwrap_or_default();
                self.assembly.add_hidden_thinking(OpaqueValueKind::AnthropicRedacted.add_prefix(data))?;
                OpenBlock::Redacted
            }
            "tool_use" => {
                let id = json::get_text(block, "id").unwrap_or_default();
                let name = json::get_text(block, "name").unwrap_or_default();
                // Servers that don't stream arguments put them here; others put `{}`.
                let initial = json::get_present(block, "input")
                    .filter(|input| input.as_object().is_none_or(|members| !members.is_empty()))
                    .map(Value::to_string)
                    .unwrap_or_default();
                OpenBlock::Call { block: self.assembly.open_call(id, name)?, initial }
            }
            _ => OpenBlock::Unknown,
        };
        if self.blocks.insert(index, part).is_some() {
            return Err(ModelError::Protocol(format!("content block {index} begins twice")));
        }
        Ok(())
    }

    fn handle_block_delta(&mut self, value: &Value) -> Result<(), ModelError> {
        let index = block_index(value)?;
        let Some(delta) = json::get_present(value, "delta") else { return Ok(()) };
        let part = self.blocks.get_mut(&index);
        let part = part
            .ok_or_else(|| ModelError::Protocol(format!("content block {index} goes on before it begins")))?;
        match (part, json::get_text(delta, "type").unwrap_or_default()) {
            (part @ OpenBlock::EmptyText, "text_delta") => {
                if let Some(text) = json::get_text(delta, "text") {
                    let place = self.assembly.open_text()?;
                    self.assembly.append_text(place, text)?;
                    *part = OpenBlock::Text(place);
                }
            }
            (OpenBlock::Text(block), "text_delta") => {
                self.assembly.append_text(*block, json::get_text(delta, "text").unwrap_or_default())?;
            }
            (OpenBlock::Thinking(block), "thinking_delta") => {
                self.assembly.append_text(*block, json::get_text(delta, "thinking").unwrap_or_default())?;
            }
            (OpenBlock::Thinking(block), "signature_delta") => {
                let more = json::get_text(delta, "signature").unwrap_or_default();
                self.assembly.append_signature(*block, OpaqueValueKind::Anthropic, more)?;
            }
            (OpenBlock::Call { block, .. }, "input_json_delta") => {
                self.assembly
                    .append_arguments(*block, json::get_text(delta, "partial_json").unwrap_or_default())?;
            }
            (OpenBlock::Ended, _) => {
                return Err(ModelError::Protocol(format!("content block {index} goes on after its end")));
            }
            _ => {}
        }
        Ok(())
    }

    fn handle_block_stop(&mut self, index: u64) -> Result<(), ModelError> {
        let Some(part) = self.blocks.get_mut(&index) else { return Ok(()) };
        match std::mem::replace(part, OpenBlock::Ended) {
            OpenBlock::Text(block) | OpenBlock::Thinking(block) => self.assembly.close_block(block),
            OpenBlock::Call { block, initial } => {
                if self.assembly.arguments_so_far(block).is_empty() {
                    self.assembly.append_arguments(block, &initial)?;
                }
                self.assembly.close_block(block);
            }
            OpenBlock::EmptyText | OpenBlock::Redacted | OpenBlock::Unknown | OpenBlock::Ended => {}
        }
        Ok(())
    }

    fn handle_message_delta(&mut self, value: &Value) {
        if let Some(word) = value.get("delta").and_then(|delta| json::get_text(delta, "stop_reason")) {
            self.stop = Some(stop_reason(word));
        }
        if let Some(usage) = json::get_present(value, "usage") {
            self.update_usage(usage);
        }
    }

    /// Updates the usage. Counts are cumulative, and some servers send zeros first or last, so the
    /// largest is the newest.
    fn update_usage(&mut self, usage: &Value) {
        let newest = |known: &mut Tokens, path: &[&str]| {
            if let Some(count) = json::get_count_at(usage, path) {
                known.0 = known.0.max(count);
            }
        };
        newest(&mut self.usage.input, &["input_tokens"]);
        newest(&mut self.usage.cache_read, &["cache_read_input_tokens"]);
        newest(&mut self.usage.cache_write, &["cache_creation_input_tokens"]);
        newest(&mut self.usage.output, &["output_tokens"]);
        newest(&mut self.usage.thinking, &["output_tokens_details", "thinking_tokens"]);
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Paused,
        other => StopReason::Other(other.to_owned()),
    }
}
