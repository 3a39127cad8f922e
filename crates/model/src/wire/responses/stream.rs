//! Decodes a Responses response.

use std::collections::HashMap;

use journeyman_protocol::{StopReason, Tokens, Usage};
use serde_json::{Value, json};

use super::super::message_builder::{MAX_BLOCKS, MessageBuilder};
use super::super::opaque_value::OpaqueValueKind;
use super::super::{json, provider_error};
use crate::codec::Decoder;
use crate::sse::SseEvent;
use crate::{Delta, ModelError, Reply};

/// The decoder of one response.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    assembly: MessageBuilder,
    /// The server's open items, by its own index.
    items: HashMap<u64, OutputItem>,
    /// The indices of items by name, for servers that send no index.
    indices_by_name: HashMap<String, u64>,
    usage: Usage,
    model: String,
    refused: bool,
    stop: Option<StopReason>,
}

/// An item of the server's output.
#[derive(Debug)]
enum OutputItem {
    /// A message, with the blocks of its parts by their own index.
    Message(HashMap<u64, u32>),
    /// Thinking: its block once there is text, and the index of the current part.
    Reasoning {
        block: Option<u32>,
        part: Option<u64>,
    },
    Call(u32),
    /// A kind of item that this version does not support.
    Unknown,
    Ended,
}

impl Decoder for ResponsesDecoder {
    fn handle_event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" || self.stop.is_some() {
            return Ok(Vec::new());
        }
        self.assembly.add_to_digest(data);
        let value = json::parse_event(data)?;
        let kind = json::get_text(&value, "type").or(event.event.as_deref()).unwrap_or_default();
        match kind {
            "response.created" | "response.in_progress" => self.begin_response(&value),
            "response.output_item.added" => {
                let index = self.new_item_index(&value);
                self.handle_item_added(index, get_item(&value)?)?;
            }
            "response.output_text.delta" => self.append_message_text(&value, "delta")?,
            "response.refusal.delta" => {
                self.refused = true;
                self.append_message_text(&value, "delta")?;
            }
            "response.reasoning_summary_text.delta" => self.append_thinking(&value, "summary_index")?,
            "response.reasoning_text.delta" => self.append_thinking(&value, "content_index")?,
            "response.function_call_arguments.delta" => self.append_arguments(&value, "delta", false)?,
            "response.function_call_arguments.done" => self.append_arguments(&value, "arguments", true)?,
            "response.output_item.done" => {
                let index = self.item_index(&value).unwrap_or_else(|_| self.new_item_index(&value));
                self.handle_item_done(index, get_item(&value)?)?;
            }
            "response.completed" | "response.done" | "response.incomplete" => {
                self.handle_response_end(&value)?
            }
            "response.failed" => {
                let response = json::get_present(&value, "response").unwrap_or(&value);
                return Err(provider_error::error_from_event(response));
            }
            "error" => return Err(provider_error::error_from_event(&value)),
            // A gateway's error has no type.
            "" if json::get_present(&value, "error").is_some() => {
                return Err(provider_error::error_from_event(&value));
            }
            _ => {}
        }
        Ok(self.assembly.take_deltas())
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        let stop = self.stop.take();
        let stop =
            stop.ok_or_else(|| ModelError::Protocol("the answer ended before it was complete".to_owned()))?;
        let stop = if self.refused && stop == StopReason::EndTurn { StopReason::Refusal } else { stop };
        let (message, stop) = self.assembly.finish(stop);
        Ok(Reply { message, stop, usage: self.usage, model: std::mem::take(&mut self.model) })
    }
}

fn get_item(value: &Value) -> Result<&Value, ModelError> {
    json::get_present(value, "item")
        .ok_or_else(|| ModelError::Protocol("an event of an output item without the item".to_owned()))
}

/// Returns the names by which an event may refer to an item.
fn item_names(value: &Value) -> impl Iterator<Item = &str> {
    let item = json::get_present(value, "item");
    let inner = |key| item.and_then(|item| json::get_text(item, key));
    [json::get_text(value, "item_id"), inner("id"), inner("call_id")].into_iter().flatten()
}

impl ResponsesDecoder {
    /// Returns the index of an item that begins. llama.cpp's server sends none: there the order
    /// counts.
    fn new_item_index(&mut self, value: &Value) -> u64 {
        let next = self.items.keys().max().map_or(0, |last| last.saturating_add(1));
        let index = json::get_count(value, "output_index").unwrap_or(next);
        for name in item_names(value) {
            self.indices_by_name.insert(name.to_owned(), index);
        }
        index
    }

    /// Returns the index of the item that an event continues: by number, else by name, else the
    /// newest open item.
    fn item_index(&self, value: &Value) -> Result<u64, ModelError> {
        let open = || {
            self.items.iter().filter(|(_, item)| !matches!(item, OutputItem::Ended)).map(|(index, _)| *index)
        };
        json::get_count(value, "output_index")
            .or_else(|| item_names(value).find_map(|name| self.indices_by_name.get(name).copied()))
            .or_else(|| open().max())
            .ok_or_else(|| ModelError::Protocol("an event of an output item that hasn't begun".to_owned()))
    }

    fn begin_response(&mut self, value: &Value) {
        self.assembly.begin_message();
        if let Some(model) =
            json::get_present(value, "response").and_then(|response| json::get_text(response, "model"))
        {
            model.clone_into(&mut self.model);
        }
    }

    fn handle_item_added(&mut self, index: u64, item: &Value) -> Result<(), ModelError> {
        if self.items.contains_key(&index) {
            return Err(ModelError::Protocol(format!("output item {index} begins twice")));
        }
        if self.items.len() >= MAX_BLOCKS {
            return Err(ModelError::Protocol(format!("a reply of more than {MAX_BLOCKS} items")));
        }
        let begun = match json::get_text(item, "type").unwrap_or_default() {
            "message" => OutputItem::Message(HashMap::new()),
            "reasoning" => OutputItem::Reasoning { block: None, part: None },
            "function_call" => {
                let id = json::get_text(item, "call_id")
                    .or_else(|| json::get_text(item, "id"))
                    .unwrap_or_default();
                let block = self.assembly.open_call(id, json::get_text(item, "name").unwrap_or_default())?;
                self.assembly.append_arguments(block, &json::get_arguments(item, "arguments"))?;
                OutputItem::Call(block)
            }
            _ => OutputItem::Unknown,
        };
        self.items.insert(index, begun);
        Ok(())
    }

    fn item_at(&mut self, value: &Value) -> Result<&mut OutputItem, ModelError> {
        let index = self.item_index(value)?;
        let item = self.items.get_mut(&index);
        item.ok_or_else(|| ModelError::Protocol(format!("output item {index} goes on before it begins")))
    }

    fn append_message_text(&mut self, value: &Value, member: &str) -> Result<(), ModelError> {
        let part = json::get_count(value, "content_index").unwrap_or(0);
        let Some(text) = json::get_text(value, member) else { return Ok(()) };
        let OutputItem::Message(parts) = self.item_at(value)? else { return Ok(()) };
        let block = match parts.get(&part) {
            Some(block) => *block,
            None => {
                let block = self.assembly.open_text()?;
                if let OutputItem::Message(parts) = self.item_at(value)? {
                    parts.insert(part, block);
                }
                block
            }
        };
        self.assembly.append_text(block, text)
    }

    fn append_thinking(&mut self, value: &Value, part_key: &str) -> Result<(), ModelError> {
        let Some(text) = json::get_text(value, "delta") else { return Ok(()) };
        let newest = json::get_count(value, part_key).unwrap_or(0);
        let OutputItem::Reasoning { block, part } = self.item_at(value)? else { return Ok(()) };
        let (known, before) = (*block, part.replace(newest));
        let place = match known {
            Some(place) => place,
            None => {
                let place = self.assembly.open_thinking()?;
                if let OutputItem::Reasoning { block, .. } = self.item_at(value)? {
                    *block = Some(place);
                }
                place
            }
        };
        if before.is_some_and(|before| before != newest) {
            self.assembly.append_text(place, "\n\n")?;
        }
        self.assembly.append_text(place, text)
    }

    fn append_arguments(&mut self, value: &Value, member: &str, whole: bool) -> Result<(), ModelError> {
        let OutputItem::Call(block) = *self.item_at(value)? else { return Ok(()) };
        let text = json::get_arguments(value, member);
        if whole {
            self.assembly.set_arguments(block, &text)
        } else {
            self.assembly.append_arguments(block, &text)
        }
    }

    /// Handles the complete item that is repeated at its end. Content that was not streamed is
    /// taken from it.
    fn handle_item_done(&mut self, index: u64, item: &Value) -> Result<(), ModelError> {
        if !self.items.contains_key(&index) {
            self.handle_item_added(index, item)?;
        }
        let ended = self.items.insert(index, OutputItem::Ended);
        match ended {
            Some(OutputItem::Message(parts)) => self.handle_message_done(parts, item),
            Some(OutputItem::Reasoning { block, .. }) => self.handle_reasoning_done(block, item),
            Some(OutputItem::Call(block)) => {
                let arguments = json::get_arguments(item, "arguments");
                if !arguments.is_empty() {
                    self.assembly.set_arguments(block, &arguments)?;
                }
                self.assembly.close_block(block);
                Ok(())
            }
            Some(OutputItem::Unknown | OutputItem::Ended) | None => Ok(()),
        }
    }

    fn handle_message_done(&mut self, mut parts: HashMap<u64, u32>, item: &Value) -> Result<(), ModelError> {
        for (place, content) in json::get_elements(item, "content").iter().enumerate() {
            let text = match json::get_text(content, "type").unwrap_or_default() {
                "output_text" => json::get_text(content, "text"),
                "refusal" => {
                    self.refused = true;
                    json::get_text(content, "refusal")
                }
                _ => None,
            };
            let place = u64::try_from(place).unwrap_or(u64::MAX);
            if let Some(text) = text
                && !parts.contains_key(&place)
            {
                let block = self.assembly.open_text()?;
                self.assembly.append_text(block, text)?;
                parts.insert(place, block);
            }
        }
        let mut blocks: Vec<u32> = parts.into_values().collect();
        blocks.sort_unstable();
        for block in &blocks {
            self.assembly.close_block(*block);
        }
        match json::get_text(item, "phase") {
            Some(phase) if !blocks.is_empty() => {
                self.assembly.add_hidden_thinking(OpaqueValueKind::ResponsesPhase.add_prefix(phase))
            }
            _ => Ok(()),
        }
    }

    fn handle_reasoning_done(&mut self, block: Option<u32>, item: &Value) -> Result<(), ModelError> {
        let summary = json::get_elements(item, "summary");
        let signature = json::get_text(item, "encrypted_content").map(|encrypted| {
            // Only the members that are accepted as input: others (a status, plain contents) are
            // refused.
            let mut kept = json::new_object([("type", json!("reasoning"))]);
            if let Some(id) = json::get_text(item, "id") {
                kept.insert("id".to_owned(), json!(id));
            }
            kept.insert("summary".to_owned(), Value::Array(summary.to_vec()));
            kept.insert("encrypted_content".to_owned(), json!(encrypted));
            OpaqueValueKind::Responses.add_prefix(&Value::Object(kept).to_string())
        });
        let block = match block {
            Some(block) => block,
            None => {
                let content = json::get_elements(item, "content");
                let texts = if summary.is_empty() { content } else { summary };
                let texts: Vec<&str> = texts.iter().filter_map(|part| json::get_text(part, "text")).collect();
                if texts.is_empty() && signature.is_none() {
                    return Ok(());
                }
                let block = self.assembly.open_thinking()?;
                self.assembly.append_text(block, &texts.join("\n\n"))?;
                block
            }
        };
        if let Some(signature) = signature {
            self.assembly.attach_signature(block, signature)?;
        }
        self.assembly.close_block(block);
        Ok(())
    }

    fn handle_response_end(&mut self, value: &Value) -> Result<(), ModelError> {
        self.begin_response(value);
        let Some(response) = json::get_present(value, "response") else {
            return Err(ModelError::Protocol("the end of the answer without the response".to_owned()));
        };
        match json::get_text(response, "status") {
            Some("failed" | "cancelled") => return Err(provider_error::error_from_event(response)),
            // Servers that imitate the protocol may send the items here only.
            _ if self.items.is_empty() => {
                for (place, item) in json::get_elements(response, "output").iter().enumerate() {
                    self.handle_item_done(u64::try_from(place).unwrap_or(u64::MAX), item)?;
                }
            }
            _ => {}
        }
        self.assembly.close_all_blocks();
        if let Some(usage) = json::get_present(response, "usage") {
            self.usage = read_usage(usage);
        }
        let incomplete =
            response.get("incomplete_details").and_then(|details| json::get_text(details, "reason"));
        self.stop = Some(match incomplete {
            Some("max_output_tokens" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            Some(other) => StopReason::Other(other.to_owned()),
            None if json::get_text(response, "status") == Some("incomplete") => {
                StopReason::Other("incomplete".to_owned())
            }
            None => StopReason::EndTurn,
        });
        Ok(())
    }
}

/// Reads the usage. OpenAI includes the cached tokens in the input and the thinking in the output.
fn read_usage(usage: &Value) -> Usage {
    let count = |path: &[&str]| json::get_count_at(usage, path).unwrap_or(0);
    let cached = count(&["input_tokens_details", "cached_tokens"]);
    let written = count(&["input_tokens_details", "cache_write_tokens"]);
    Usage {
        input: Tokens(count(&["input_tokens"]).saturating_sub(cached).saturating_sub(written)),
        cache_read: Tokens(cached),
        cache_write: Tokens(written),
        output: Tokens(count(&["output_tokens"])),
        thinking: Tokens(count(&["output_tokens_details", "reasoning_tokens"])),
        ..Usage::default()
    }
}
