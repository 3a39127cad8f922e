//! Reads an Anthropic answer.

use std::collections::HashMap;

use journeyman_protocol::{StopReason, Tokens, Usage};
use serde_json::Value;

use super::super::assembly::Assembly;
use super::super::proof::Seal;
use super::super::{failure, json};
use crate::codec::Decoder;
use crate::sse::SseEvent;
use crate::{Delta, ModelError, Reply};

/// The reader of one answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    assembly: Assembly,
    /// The server's blocks that have begun, by its own index.
    blocks: HashMap<u64, Part>,
    usage: Usage,
    model: String,
    stop: Option<StopReason>,
    ended: bool,
}

/// A block of the server.
#[derive(Debug)]
enum Part {
    /// Text that hasn't said anything yet; a block that never does is none.
    SilentText,
    Text(u32),
    Thinking(u32),
    Redacted,
    Call {
        block: u32,
        initial: String,
    },
    /// A kind of block that this version doesn't know (server tools and what comes after them).
    Unknown,
    Ended,
}

impl Decoder for Reader {
    fn event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError> {
        if event.data.trim().is_empty() || self.ended {
            return Ok(Vec::new());
        }
        self.assembly.heard(&event.data);
        let value = json::event(&event.data)?;
        let kind = json::text(&value, "type").or(event.event.as_deref()).unwrap_or_default();
        match kind {
            "message_start" => self.start(&value),
            "content_block_start" => self.block_start(&value)?,
            "content_block_delta" => self.block_delta(&value)?,
            "content_block_stop" => self.block_stop(index(&value)?)?,
            "message_delta" => self.message_delta(&value),
            "message_stop" => self.ended = true,
            "error" => return Err(failure::streamed(&value)),
            _ => {}
        }
        Ok(self.assembly.take_deltas())
    }

    fn is_complete(&self) -> bool {
        // Some servers leave `message_stop` out; the reason and the end of every block say as much.
        self.ended || (self.stop.is_some() && self.assembly.all_closed())
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

fn index(value: &Value) -> Result<u64, ModelError> {
    json::count(value, "index")
        .ok_or_else(|| ModelError::Protocol("an event of a content block without its index".to_owned()))
}

impl Reader {
    fn start(&mut self, value: &Value) {
        self.assembly.begin();
        let Some(message) = json::present(value, "message") else { return };
        if let Some(model) = json::text(message, "model") {
            model.clone_into(&mut self.model);
        }
        if let Some(usage) = json::present(message, "usage") {
            self.count(usage);
        }
    }

    fn block_start(&mut self, value: &Value) -> Result<(), ModelError> {
        let index = index(value)?;
        let Some(block) = json::present(value, "content_block") else { return Ok(()) };
        let part = match json::text(block, "type").unwrap_or_default() {
            "text" => match json::text(block, "text") {
                None => Part::SilentText,
                Some(text) => {
                    let place = self.assembly.open_text()?;
                    self.assembly.text(place, text)?;
                    Part::Text(place)
                }
            },
            "thinking" => {
                let place = self.assembly.open_thinking()?;
                self.assembly.text(place, json::text(block, "thinking").unwrap_or_default())?;
                self.assembly.prove_more(
                    place,
                    Seal::Anthropic,
                    json::text(block, "signature").unwrap_or_default(),
                )?;
                Part::Thinking(place)
            }
            "redacted_thinking" => {
                let data = json::text(block, "data").unwrap_or_default();
                self.assembly.hidden(Seal::AnthropicRedacted.close(data))?;
                Part::Redacted
            }
            "tool_use" => {
                let id = json::text(block, "id").unwrap_or_default();
                let name = json::text(block, "name").unwrap_or_default();
                // Servers that don't stream arguments put them here; the others put `{}`.
                let initial = json::present(block, "input")
                    .filter(|input| input.as_object().is_none_or(|members| !members.is_empty()))
                    .map(Value::to_string)
                    .unwrap_or_default();
                Part::Call { block: self.assembly.open_call(id, name)?, initial }
            }
            _ => Part::Unknown,
        };
        if self.blocks.insert(index, part).is_some() {
            return Err(ModelError::Protocol(format!("content block {index} begins twice")));
        }
        Ok(())
    }

    fn block_delta(&mut self, value: &Value) -> Result<(), ModelError> {
        let index = index(value)?;
        let Some(delta) = json::present(value, "delta") else { return Ok(()) };
        let part = self.blocks.get_mut(&index);
        let part = part
            .ok_or_else(|| ModelError::Protocol(format!("content block {index} goes on before it begins")))?;
        match (part, json::text(delta, "type").unwrap_or_default()) {
            (part @ Part::SilentText, "text_delta") => {
                if let Some(text) = json::text(delta, "text") {
                    let place = self.assembly.open_text()?;
                    self.assembly.text(place, text)?;
                    *part = Part::Text(place);
                }
            }
            (Part::Text(block), "text_delta") => {
                self.assembly.text(*block, json::text(delta, "text").unwrap_or_default())?;
            }
            (Part::Thinking(block), "thinking_delta") => {
                self.assembly.text(*block, json::text(delta, "thinking").unwrap_or_default())?;
            }
            (Part::Thinking(block), "signature_delta") => {
                let more = json::text(delta, "signature").unwrap_or_default();
                self.assembly.prove_more(*block, Seal::Anthropic, more)?;
            }
            (Part::Call { block, .. }, "input_json_delta") => {
                self.assembly.arguments(*block, json::text(delta, "partial_json").unwrap_or_default())?;
            }
            (Part::Ended, _) => {
                return Err(ModelError::Protocol(format!("content block {index} goes on after its end")));
            }
            _ => {}
        }
        Ok(())
    }

    fn block_stop(&mut self, index: u64) -> Result<(), ModelError> {
        let Some(part) = self.blocks.get_mut(&index) else { return Ok(()) };
        match std::mem::replace(part, Part::Ended) {
            Part::Text(block) | Part::Thinking(block) => self.assembly.close(block),
            Part::Call { block, initial } => {
                if self.assembly.arguments_so_far(block).is_empty() {
                    self.assembly.arguments(block, &initial)?;
                }
                self.assembly.close(block);
            }
            Part::SilentText | Part::Redacted | Part::Unknown | Part::Ended => {}
        }
        Ok(())
    }

    fn message_delta(&mut self, value: &Value) {
        if let Some(word) = value.get("delta").and_then(|delta| json::text(delta, "stop_reason")) {
            self.stop = Some(stop_reason(word));
        }
        if let Some(usage) = json::present(value, "usage") {
            self.count(usage);
        }
    }

    /// Counts are cumulative, and some servers send zeros first or last: the largest is the newest.
    fn count(&mut self, usage: &Value) {
        let newest = |known: &mut Tokens, path: &[&str]| {
            if let Some(count) = json::count_at(usage, path) {
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
