//! Decodes a Chat Completions response.
//!
//! Servers deviate from the protocol in many ways, each of which is handled here: whole calls in
//! one chunk, calls without index or id, one index or one id for several calls, arguments as an
//! object, `null` for nothing, thinking under three names, a whole `message` instead of a `delta`.

use journeyman_protocol::{StopReason, Tokens, Usage};
use serde_json::{Map, Value};

use super::super::message_builder::{MAX_BLOCKS, MessageBuilder};
use super::super::opaque_value::OpaqueValueKind;
use super::super::{json, provider_error};
use crate::codec::Decoder;
use crate::sse::SseEvent;
use crate::{Delta, ModelError, Reply};

/// The decoder of one response.
#[derive(Debug, Default)]
pub(super) struct ChatDecoder {
    assembly: MessageBuilder,
    /// The text or thinking block to which the last piece belonged.
    current: Option<CurrentBlock>,
    calls: Vec<PartialCall>,
    /// The first thinking block, which carries the reasoning details.
    thinking: Option<u32>,
    details: Vec<Map<String, Value>>,
    usage: Usage,
    model: String,
    refused: bool,
    stop: Option<StopReason>,
    /// True after `[DONE]`.
    done: bool,
    /// True if content followed a finish reason.
    went_on: bool,
}

#[derive(Debug, Clone, Copy)]
enum CurrentBlock {
    Text(u32),
    Thinking(u32),
}

/// A call that is being received.
#[derive(Debug, Default)]
struct PartialCall {
    /// The server's index, if it sends one.
    index: Option<u64>,
    /// The server's id, if it sends one.
    id: String,
    /// The call's block, once its name is known.
    block: Option<u32>,
    /// Arguments that arrived before the name.
    early_arguments: String,
}

impl Decoder for ChatDecoder {
    fn handle_event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            self.done |= !data.is_empty();
            return Ok(Vec::new());
        }
        self.assembly.add_to_digest(data);
        let chunk = json::parse_event(data)?;
        let is_error =
            json::get_text(&chunk, "object") == Some("error") || event.event.as_deref() == Some("error");
        if is_error || json::get_present(&chunk, "error").is_some() {
            return Err(provider_error::error_from_event(&chunk));
        }
        if let Some(model) = json::get_text(&chunk, "model") {
            model.clone_into(&mut self.model);
        }
        // Moonshot reports usage inside the choice, Groq in a member of its own.
        let choice = json::get_elements(&chunk, "choices")
            .iter()
            .find(|choice| json::get_count(choice, "index").unwrap_or(0) == 0);
        let elsewhere = || choice.and_then(|choice| json::get_present(choice, "usage"));
        let groq = || chunk.get("x_groq").and_then(|extra| json::get_present(extra, "usage"));
        if let Some(usage) = json::get_present(&chunk, "usage").or_else(elsewhere).or_else(groq) {
            self.usage = read_usage(usage);
        }
        if let Some(choice) = choice {
            self.assembly.begin_message();
            match self.stop {
                None => self.handle_choice(choice)?,
                Some(_) => self.handle_late_choice(choice)?,
            }
        }
        Ok(self.assembly.take_deltas())
    }

    fn is_complete(&self) -> bool {
        // Not `[DONE]`: some servers omit it, and a gateway sends it after a broken response too.
        self.stop.is_some()
    }

    fn may_go_on(&self) -> bool {
        !self.done && (self.went_on || self.assembly.is_empty())
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn end_blocks(&mut self) -> Result<Vec<Delta>, ModelError> {
        for at in 0..self.calls.len() {
            self.open_nameless_call(at)?;
        }
        if !self.details.is_empty() {
            let details =
                Value::Array(std::mem::take(&mut self.details).into_iter().map(Value::Object).collect());
            let signature = OpaqueValueKind::Chat.add_prefix(&details.to_string());
            match self.thinking {
                Some(block) => self.assembly.attach_signature(block, signature)?,
                None => self.assembly.add_hidden_thinking(signature)?,
            }
        }
        self.assembly.close_all_blocks();
        Ok(self.assembly.take_deltas())
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        let stop = self.stop.take();
        let stop =
            stop.ok_or_else(|| ModelError::Protocol("the answer ended without a finish reason".to_owned()))?;
        let stop = if self.refused && stop == StopReason::EndTurn { StopReason::Refusal } else { stop };
        let (message, stop) = self.assembly.finish(stop);
        Ok(Reply { message, stop, usage: self.usage, model: std::mem::take(&mut self.model) })
    }
}

impl ChatDecoder {
    fn handle_choice(&mut self, choice: &Value) -> Result<(), ModelError> {
        if let Some(error) = json::get_present(choice, "error") {
            return Err(provider_error::error_from_event(error));
        }
        let delta = json::get_present(choice, "delta").or_else(|| json::get_present(choice, "message"));
        if let Some(delta) = delta {
            self.handle_delta(delta)?;
        }
        if let Some(reason) = json::get_text(choice, "finish_reason") {
            self.handle_finish_reason(reason)?;
        }
        Ok(())
    }

    /// Handles a choice after a finish reason: gateways of Gemini give one in every chunk. A whole
    /// `message` is a repetition, and without content nothing else counts.
    fn handle_late_choice(&mut self, choice: &Value) -> Result<(), ModelError> {
        let Some(delta) = json::get_present(choice, "delta") else { return Ok(()) };
        self.handle_delta(delta)?;
        if !self.assembly.has_deltas() {
            return Ok(());
        }
        self.went_on = true;
        json::get_text(choice, "finish_reason").map_or(Ok(()), |reason| self.handle_finish_reason(reason))
    }

    fn handle_delta(&mut self, delta: &Value) -> Result<(), ModelError> {
        self.handle_reasoning(delta)?;
        match delta.get("content") {
            Some(Value::String(text)) => self.append_text(text)?,
            Some(Value::Array(parts)) => parts.iter().try_for_each(|part| self.handle_content_part(part))?,
            _ => {}
        }
        if let Some(refusal) = json::get_text(delta, "refusal") {
            self.refused = true;
            self.append_text(refusal)?;
        }
        for (place, call) in json::get_elements(delta, "tool_calls").iter().enumerate() {
            self.handle_call(call, place)?;
        }
        if let Some(function) = json::get_present(delta, "function_call") {
            self.handle_call(&serde_json::json!({"index": 0, "function": function}), 0)?;
        }
        Ok(())
    }

    fn handle_reasoning(&mut self, delta: &Value) -> Result<(), ModelError> {
        let details = json::get_elements(delta, "reasoning_details");
        for detail in details {
            self.add_reasoning_detail(detail)?;
        }
        let named =
            ["reasoning_content", "reasoning", "thinking"].iter().find_map(|key| json::get_text(delta, key));
        match named {
            Some(text) => self.append_thinking(text),
            None => {
                let shown =
                    |detail| json::get_text(detail, "text").or_else(|| json::get_text(detail, "summary"));
                let texts: Vec<&str> = details.iter().filter_map(shown).collect();
                self.append_thinking(&texts.concat())
            }
        }
    }

    /// Collects reasoning details, which arrive in pieces of the same type and index and are sent
    /// back joined.
    fn add_reasoning_detail(&mut self, detail: &Value) -> Result<(), ModelError> {
        let Some(members) = detail.as_object() else { return Ok(()) };
        self.assembly.count_bytes(detail.to_string().len())?;
        let detail = members;
        let same = |known: &&mut Map<String, Value>| {
            known.get("type") == detail.get("type")
                && known.get("index") == detail.get("index")
                && detail.contains_key("index")
        };
        let Some(known) = self.details.iter_mut().rev().find(same) else {
            if self.details.len() >= MAX_BLOCKS {
                let limit = format!("a reply of more than {MAX_BLOCKS} reasoning details");
                return Err(ModelError::Protocol(limit));
            }
            self.details.push(detail.clone());
            return Ok(());
        };
        for (key, value) in detail {
            match (known.get_mut(key), value) {
                (_, Value::Null) => {}
                (Some(Value::String(text)), Value::String(more))
                    if matches!(key.as_str(), "text" | "summary" | "data" | "signature") =>
                {
                    text.push_str(more);
                }
                _ => {
                    known.insert(key.clone(), value.clone());
                }
            }
        }
        Ok(())
    }

    fn append_thinking(&mut self, text: &str) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.current {
            Some(CurrentBlock::Thinking(block)) => block,
            _ => {
                self.close_current();
                let block = self.assembly.open_thinking()?;
                self.thinking.get_or_insert(block);
                self.current = Some(CurrentBlock::Thinking(block));
                block
            }
        };
        self.assembly.append_text(block, text)
    }

    fn append_text(&mut self, text: &str) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.current {
            Some(CurrentBlock::Text(block)) => block,
            _ => {
                self.close_current();
                let block = self.assembly.open_text()?;
                self.current = Some(CurrentBlock::Text(block));
                block
            }
        };
        self.assembly.append_text(block, text)
    }

    /// Handles a part of a content that is a list, as Mistral's thinking models send it.
    fn handle_content_part(&mut self, part: &Value) -> Result<(), ModelError> {
        match json::get_text(part, "type").unwrap_or_default() {
            "text" => self.append_text(json::get_text(part, "text").unwrap_or_default()),
            "thinking" => match part.get("thinking") {
                Some(Value::String(text)) => self.append_thinking(text),
                _ => json::get_elements(part, "thinking").iter().try_for_each(|inner| {
                    self.append_thinking(json::get_text(inner, "text").unwrap_or_default())
                }),
            },
            _ => Ok(()),
        }
    }

    fn close_current(&mut self) {
        match self.current.take() {
            Some(CurrentBlock::Text(block) | CurrentBlock::Thinking(block)) => {
                self.assembly.close_block(block)
            }
            None => {}
        }
    }

    fn handle_call(&mut self, piece: &Value, place: usize) -> Result<(), ModelError> {
        let function = json::get_present(piece, "function").unwrap_or(&Value::Null);
        let name = json::get_text(function, "name").unwrap_or_default();
        let id = json::get_text(piece, "id").unwrap_or_default();
        let arguments = json::get_arguments(function, "arguments");
        let index = json::get_count(piece, "index");
        let known =
            self.find_call(index, id, name, place).filter(|at| !self.is_new_call(*at, id, name, &arguments));
        let at = match known {
            Some(at) => at,
            None if self.calls.len() >= MAX_BLOCKS => {
                return Err(ModelError::Protocol(format!("a reply of more than {MAX_BLOCKS} calls")));
            }
            None => {
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                self.calls.len().saturating_sub(1)
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let block = match call.block {
            Some(block) => block,
            None if name.is_empty() => {
                call.early_arguments.push_str(&arguments);
                return self.assembly.count_bytes(arguments.len());
            }
            None => {
                let (id, early_arguments) = (call.id.clone(), std::mem::take(&mut call.early_arguments));
                self.close_current();
                let block = self.assembly.open_call(&id, name)?;
                if let Some(call) = self.calls.get_mut(at) {
                    call.block = Some(block);
                }
                self.assembly.append_arguments(block, &early_arguments)?;
                block
            }
        };
        // Some servers end a call by repeating it as a whole.
        if name.is_empty() || arguments != self.assembly.arguments_so_far(block) {
            self.assembly.append_arguments(block, &arguments)?;
        }
        if let Some(extra) = json::get_present(piece, "extra_content") {
            self.assembly.attach_signature(block, OpaqueValueKind::Chat.add_prefix(&extra.to_string()))?;
        }
        Ok(())
    }

    /// Opens a call that ended without a name. The tool's result will say that no such tool exists.
    fn open_nameless_call(&mut self, at: usize) -> Result<(), ModelError> {
        let Some(call) = self.calls.get_mut(at).filter(|call| call.block.is_none()) else { return Ok(()) };
        let (id, early_arguments) = (call.id.clone(), std::mem::take(&mut call.early_arguments));
        self.close_current();
        let block = self.assembly.open_call(&id, "")?;
        if let Some(call) = self.calls.get_mut(at) {
            call.block = Some(block);
        }
        self.assembly.append_arguments(block, &early_arguments)
    }

    /// Returns the call to which a piece seems to belong.
    fn find_call(&self, index: Option<u64>, id: &str, name: &str, place: usize) -> Option<usize> {
        match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None if !name.is_empty() => None,
            // Without index, id and name, a piece continues the call at its position in the list,
            // or the last call.
            None => {
                let last = self.calls.len().checked_sub(1)?;
                Some(if place > 0 { place.min(last) } else { last })
            }
        }
    }

    /// Returns true if a piece with a name begins another call in spite of its index: it has
    /// another id, or, without ids, the call is complete and another object begins.
    fn is_new_call(&self, at: usize, id: &str, name: &str, arguments: &str) -> bool {
        let Some(call) = self.calls.get(at) else { return false };
        if name.is_empty() {
            return false;
        }
        if !id.is_empty() && !call.id.is_empty() {
            return id != call.id;
        }
        let so_far = call.block.map_or("", |block| self.assembly.arguments_so_far(block));
        arguments.trim_start().starts_with('{') && is_complete_object(so_far)
    }

    fn handle_finish_reason(&mut self, reason: &str) -> Result<(), ModelError> {
        let stop = match reason {
            // Some gateways write the word for nothing.
            "null" => return Ok(()),
            "stop" | "eos" | "end_turn" | "eos_token" => StopReason::EndTurn,
            "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
            "length" | "max_tokens" | "model_length" => StopReason::MaxTokens,
            "stop_sequence" => StopReason::StopSequence,
            "content_filter" | "refusal" | "safety" => StopReason::Refusal,
            "error" | "network_error" => {
                let message = "the server ended the answer with an error and gave no reason".to_owned();
                return Err(ModelError::Stream { message, retryable: true });
            }
            "insufficient_system_resource" => {
                let message = "the server ran out of resources for the answer".to_owned();
                return Err(ModelError::Overloaded { message });
            }
            other => StopReason::Other(other.to_owned()),
        };
        self.stop = Some(stop);
        Ok(())
    }
}

/// Returns true if arguments are a complete object, so that nothing can follow.
fn is_complete_object(arguments: &str) -> bool {
    matches!(serde_json::from_str(arguments), Ok(Value::Object(_)))
}

/// Reads the usage. Most servers include the cached tokens in the input and the thinking in the
/// output.
fn read_usage(usage: &Value) -> Usage {
    let count = |path: &[&str]| json::get_count_at(usage, path);
    let input = count(&["prompt_tokens"]).unwrap_or(0);
    // The members of OpenAI, DeepSeek and Moonshot.
    let cached = count(&["prompt_tokens_details", "cached_tokens"])
        .or_else(|| count(&["prompt_cache_hit_tokens"]))
        .or_else(|| count(&["cached_tokens"]))
        .unwrap_or(0);
    let written = count(&["prompt_tokens_details", "cache_write_tokens"]).unwrap_or(0);
    let thinking = count(&["completion_tokens_details", "reasoning_tokens"]).unwrap_or(0);
    let mut output = count(&["completion_tokens"]).unwrap_or(0);
    // xAI counts thinking separately from the output, which its total shows.
    if thinking > 0 && count(&["total_tokens"]) == Some(input.saturating_add(output).saturating_add(thinking))
    {
        output = output.saturating_add(thinking);
    }
    Usage {
        input: Tokens(input.saturating_sub(cached).saturating_sub(written)),
        cache_read: Tokens(cached),
        cache_write: Tokens(written),
        output: Tokens(output),
        thinking: Tokens(thinking),
        ..Usage::default()
    }
}
