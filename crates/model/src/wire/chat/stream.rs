//! Reads a Chat Completions answer.
//!
//! Servers take liberties here, and each one below is somebody's habit: calls whole in one chunk, calls
//! without index or id, one index or one id for several calls, arguments as an object, `null` for nothing,
//! thinking under three names, a whole `message` in place of a `delta`.

use journeyman_protocol::{StopReason, Tokens, Usage};
use serde_json::{Map, Value};

use super::super::assembly::{Assembly, MAX_BLOCKS};
use super::super::proof::Seal;
use super::super::{failure, json};
use crate::codec::Decoder;
use crate::sse::SseEvent;
use crate::{Delta, ModelError, Reply};

/// The reader of one answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    assembly: Assembly,
    /// The text or thinking block that the last piece went to.
    current: Option<Current>,
    calls: Vec<Call>,
    /// The first thinking block, which carries the details.
    thinking: Option<u32>,
    details: Vec<Map<String, Value>>,
    usage: Usage,
    model: String,
    refused: bool,
    stop: Option<StopReason>,
}

#[derive(Debug, Clone, Copy)]
enum Current {
    Text(u32),
    Thinking(u32),
}

/// A call underway.
#[derive(Debug, Default)]
struct Call {
    /// The server's index, if it gives any.
    index: Option<u64>,
    /// The server's id, if it gives any.
    id: String,
    /// Its block, once its name is known.
    block: Option<u32>,
    /// Arguments that came before the name.
    early: String,
}

impl Decoder for Reader {
    fn event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        self.assembly.heard(data);
        let chunk = json::event(data)?;
        let is_error =
            json::text(&chunk, "object") == Some("error") || event.event.as_deref() == Some("error");
        if is_error || json::present(&chunk, "error").is_some() {
            return Err(failure::streamed(&chunk));
        }
        if let Some(model) = json::text(&chunk, "model") {
            model.clone_into(&mut self.model);
        }
        // Moonshot counts inside the choice, Groq in a member of its own.
        let choice = json::elements(&chunk, "choices")
            .iter()
            .find(|choice| json::count(choice, "index").unwrap_or(0) == 0);
        let elsewhere = || choice.and_then(|choice| json::present(choice, "usage"));
        let groq = || chunk.get("x_groq").and_then(|extra| json::present(extra, "usage"));
        if let Some(usage) = json::present(&chunk, "usage").or_else(elsewhere).or_else(groq) {
            self.usage = read_usage(usage);
        }
        if let Some(choice) = choice {
            self.assembly.begin();
            if self.stop.is_none() {
                self.choice(choice)?;
            }
        }
        Ok(self.assembly.take_deltas())
    }

    fn is_complete(&self) -> bool {
        // Not `[DONE]`: some servers don't send it, and a gateway sends it after a broken answer too.
        self.stop.is_some()
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

impl Reader {
    fn choice(&mut self, choice: &Value) -> Result<(), ModelError> {
        if let Some(error) = json::present(choice, "error") {
            return Err(failure::streamed(error));
        }
        let delta = json::present(choice, "delta").or_else(|| json::present(choice, "message"));
        if let Some(delta) = delta {
            self.reasoning(delta)?;
            match delta.get("content") {
                Some(Value::String(text)) => self.text(text)?,
                Some(Value::Array(parts)) => parts.iter().try_for_each(|part| self.part(part))?,
                _ => {}
            }
            if let Some(refusal) = json::text(delta, "refusal") {
                self.refused = true;
                self.text(refusal)?;
            }
            for (place, call) in json::elements(delta, "tool_calls").iter().enumerate() {
                self.call(call, place)?;
            }
            if let Some(function) = json::present(delta, "function_call") {
                self.call(&serde_json::json!({"index": 0, "function": function}), 0)?;
            }
        }
        if let Some(reason) = json::text(choice, "finish_reason") {
            self.end(reason)?;
        }
        Ok(())
    }

    fn reasoning(&mut self, delta: &Value) -> Result<(), ModelError> {
        let details = json::elements(delta, "reasoning_details");
        for detail in details {
            self.detail(detail)?;
        }
        let named =
            ["reasoning_content", "reasoning", "thinking"].iter().find_map(|key| json::text(delta, key));
        match named {
            Some(text) => self.thinking(text),
            None => {
                let shown = |detail| json::text(detail, "text").or_else(|| json::text(detail, "summary"));
                let texts: Vec<&str> = details.iter().filter_map(shown).collect();
                self.thinking(&texts.concat())
            }
        }
    }

    /// Details come in pieces of the same type and index; they go back put together.
    fn detail(&mut self, detail: &Value) -> Result<(), ModelError> {
        let Some(members) = detail.as_object() else { return Ok(()) };
        self.assembly.weigh(detail.to_string().len())?;
        let detail = members;
        let same = |known: &&mut Map<String, Value>| {
            known.get("type") == detail.get("type")
                && known.get("index") == detail.get("index")
                && detail.contains_key("index")
        };
        let Some(known) = self.details.iter_mut().rev().find(same) else {
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

    fn thinking(&mut self, text: &str) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.current {
            Some(Current::Thinking(block)) => block,
            _ => {
                self.close_current();
                let block = self.assembly.open_thinking()?;
                self.thinking.get_or_insert(block);
                self.current = Some(Current::Thinking(block));
                block
            }
        };
        self.assembly.text(block, text)
    }

    fn text(&mut self, text: &str) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.current {
            Some(Current::Text(block)) => block,
            _ => {
                self.close_current();
                let block = self.assembly.open_text()?;
                self.current = Some(Current::Text(block));
                block
            }
        };
        self.assembly.text(block, text)
    }

    /// A part of a content that is a list, as Mistral's thinking models write it.
    fn part(&mut self, part: &Value) -> Result<(), ModelError> {
        match json::text(part, "type").unwrap_or_default() {
            "text" => self.text(json::text(part, "text").unwrap_or_default()),
            "thinking" => match part.get("thinking") {
                Some(Value::String(text)) => self.thinking(text),
                _ => json::elements(part, "thinking")
                    .iter()
                    .try_for_each(|inner| self.thinking(json::text(inner, "text").unwrap_or_default())),
            },
            _ => Ok(()),
        }
    }

    fn close_current(&mut self) {
        match self.current.take() {
            Some(Current::Text(block) | Current::Thinking(block)) => self.assembly.close(block),
            None => {}
        }
    }

    fn call(&mut self, piece: &Value, place: usize) -> Result<(), ModelError> {
        let function = json::present(piece, "function").unwrap_or(&Value::Null);
        let name = json::text(function, "name").unwrap_or_default();
        let id = json::text(piece, "id").unwrap_or_default();
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        };
        let index = json::count(piece, "index");
        let known = self
            .known_call(index, id, name, place)
            .filter(|at| !self.begins_another(*at, id, name, &arguments));
        let at = match known {
            Some(at) => at,
            None if self.calls.len() >= MAX_BLOCKS => {
                return Err(ModelError::Protocol(format!("a reply of more than {MAX_BLOCKS} calls")));
            }
            None => {
                self.calls.push(Call { index, ..Call::default() });
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
                call.early.push_str(&arguments);
                return self.assembly.weigh(arguments.len());
            }
            None => {
                let (id, early) = (call.id.clone(), std::mem::take(&mut call.early));
                self.close_current();
                let block = self.assembly.open_call(&id, name)?;
                if let Some(call) = self.calls.get_mut(at) {
                    call.block = Some(block);
                }
                self.assembly.arguments(block, &early)?;
                block
            }
        };
        // Some servers end a call by saying all of it once more.
        if name.is_empty() || arguments != self.assembly.arguments_so_far(block) {
            self.assembly.arguments(block, &arguments)?;
        }
        if let Some(extra) = json::present(piece, "extra_content") {
            self.assembly.prove(block, Seal::Chat.close(&extra.to_string()))?;
        }
        Ok(())
    }

    /// A call that has ended without a name is one all the same: the model is told that no tool is called so.
    fn open_nameless(&mut self, at: usize) -> Result<(), ModelError> {
        let Some(call) = self.calls.get_mut(at).filter(|call| call.block.is_none()) else { return Ok(()) };
        let (id, early) = (call.id.clone(), std::mem::take(&mut call.early));
        self.close_current();
        let block = self.assembly.open_call(&id, "")?;
        if let Some(call) = self.calls.get_mut(at) {
            call.block = Some(block);
        }
        self.assembly.arguments(block, &early)
    }

    /// The call that a piece seems to belong to.
    fn known_call(&self, index: Option<u64>, id: &str, name: &str, place: usize) -> Option<usize> {
        match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None if !name.is_empty() => None,
            // Neither index, id nor name: it goes on with the call at its place in the list, or the last.
            None => {
                let last = self.calls.len().checked_sub(1)?;
                Some(if place > 0 { place.min(last) } else { last })
            }
        }
    }

    /// Whether a piece with a name begins a further call in spite of its index: it has another id, or, where
    /// there are none, the call is whole and a further object begins.
    fn begins_another(&self, at: usize, id: &str, name: &str, arguments: &str) -> bool {
        let Some(call) = self.calls.get(at) else { return false };
        if name.is_empty() {
            return false;
        }
        if !id.is_empty() && !call.id.is_empty() {
            return id != call.id;
        }
        let so_far = call.block.map_or("", |block| self.assembly.arguments_so_far(block));
        arguments.trim_start().starts_with('{') && is_whole(so_far)
    }

    fn end(&mut self, reason: &str) -> Result<(), ModelError> {
        let stop = match reason {
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
        for at in 0..self.calls.len() {
            self.open_nameless(at)?;
        }
        if !self.details.is_empty() {
            let details =
                Value::Array(std::mem::take(&mut self.details).into_iter().map(Value::Object).collect());
            let proof = Seal::Chat.close(&details.to_string());
            match self.thinking {
                Some(block) => self.assembly.prove(block, proof)?,
                None => self.assembly.hidden(proof)?,
            }
        }
        self.assembly.close_all();
        self.stop = Some(stop);
        Ok(())
    }
}

/// Whether arguments are an object already, so that nothing can follow.
fn is_whole(arguments: &str) -> bool {
    matches!(serde_json::from_str(arguments), Ok(Value::Object(_)))
}

/// Most servers' input count holds the cached tokens and their output count the thinking.
fn read_usage(usage: &Value) -> Usage {
    let count = |path: &[&str]| json::count_at(usage, path);
    let input = count(&["prompt_tokens"]).unwrap_or(0);
    // OpenAI's place, DeepSeek's, Moonshot's.
    let cached = count(&["prompt_tokens_details", "cached_tokens"])
        .or_else(|| count(&["prompt_cache_hit_tokens"]))
        .or_else(|| count(&["cached_tokens"]))
        .unwrap_or(0);
    let written = count(&["prompt_tokens_details", "cache_write_tokens"]).unwrap_or(0);
    let thinking = count(&["completion_tokens_details", "reasoning_tokens"]).unwrap_or(0);
    let mut output = count(&["completion_tokens"]).unwrap_or(0);
    // xAI counts thinking beside the rest; its total tells.
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
    }
}
