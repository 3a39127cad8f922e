//! Decodes a Gemini response.

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
pub(super) struct GeminiDecoder {
    assembly: MessageBuilder,
    current: Option<CurrentPart>,
    usage: Usage,
    model: String,
    stop: Option<StopReason>,
    /// True if content followed a finish reason.
    went_on: bool,
}

/// The block to which the last piece of text belonged.
#[derive(Debug, Clone, Copy)]
enum CurrentPart {
    Text(u32),
    Thinking(u32),
}

impl Decoder for GeminiDecoder {
    fn handle_event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        self.assembly.add_to_digest(data);
        let chunk = json::parse_event(data)?;
        let first = chunk.as_array().and_then(|all| all.first()).unwrap_or(&chunk);
        if json::get_present(first, "error").is_some() {
            return Err(provider_error::error_from_event(&chunk));
        }
        self.assembly.begin_message();
        if let Some(model) = json::get_text(&chunk, "modelVersion") {
            model.clone_into(&mut self.model);
        }
        if let Some(usage) = json::get_present(&chunk, "usageMetadata") {
            self.usage = read_usage(usage);
        }
        // Some models and gateways give a finish reason in every chunk.
        let is_late = self.stop.is_some();
        let is_first = |candidate: &&Value| json::get_count(candidate, "index").unwrap_or(0) == 0;
        if let Some(candidate) = json::get_elements(&chunk, "candidates").iter().find(is_first) {
            for part in
                candidate.get("content").map_or(&[][..], |content| json::get_elements(content, "parts"))
            {
                self.handle_part(part)?;
            }
            self.went_on |= is_late && self.assembly.has_deltas();
            let counts = !is_late || self.assembly.has_deltas();
            if let Some(reason) = json::get_text(candidate, "finishReason").filter(|_| counts) {
                self.handle_finish_reason(reason, json::get_text(candidate, "finishMessage"))?;
            }
        } else if let Some(reason) =
            chunk.get("promptFeedback").and_then(|feedback| json::get_text(feedback, "blockReason"))
            && !is_late
            && reason != "BLOCK_REASON_UNSPECIFIED"
        {
            self.stop = Some(StopReason::Refusal);
        }
        Ok(self.assembly.take_deltas())
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn may_go_on(&self) -> bool {
        self.went_on || self.assembly.is_empty()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn end_blocks(&mut self) -> Result<Vec<Delta>, ModelError> {
        self.assembly.close_all_blocks();
        Ok(self.assembly.take_deltas())
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        let stop = self.stop.take();
        let stop =
            stop.ok_or_else(|| ModelError::Protocol("the answer ended without a finish reason".to_owned()))?;
        let (message, stop) = self.assembly.finish(stop);
        Ok(Reply { message, stop, usage: self.usage, model: std::mem::take(&mut self.model) })
    }
}

impl GeminiDecoder {
    fn handle_part(&mut self, part: &Value) -> Result<(), ModelError> {
        let signature =
            json::get_text(part, "thoughtSignature").or_else(|| json::get_text(part, "thought_signature"));
        if let Some(call) = json::get_present(part, "functionCall") {
            return self.handle_call(call, signature);
        }
        let text = json::get_text(part, "text").unwrap_or_default();
        if part.get("thought") == Some(&Value::Bool(true)) {
            if text.is_empty() && signature.is_none() {
                return Ok(());
            }
            let block = match self.current {
                Some(CurrentPart::Thinking(block)) => block,
                _ => {
                    self.close_current();
                    let block = self.assembly.open_thinking()?;
                    self.current = Some(CurrentPart::Thinking(block));
                    block
                }
            };
            self.assembly.append_text(block, text)?;
            if let Some(signature) = signature {
                // A signature ends the block that it signs.
                self.assembly.attach_signature(block, OpaqueValueKind::Gemini.add_prefix(signature))?;
                self.close_current();
            }
            return Ok(());
        }
        if !text.is_empty() {
            let block = match self.current {
                Some(CurrentPart::Text(block)) => block,
                _ => {
                    self.close_current();
                    let block = self.assembly.open_text()?;
                    self.current = Some(CurrentPart::Text(block));
                    block
                }
            };
            self.assembly.append_text(block, text)?;
        }
        if let Some(signature) = signature {
            self.close_current();
            self.assembly.add_hidden_thinking(OpaqueValueKind::Gemini.add_prefix(signature))?;
        }
        Ok(())
    }

    fn handle_call(&mut self, call: &Value, signature: Option<&str>) -> Result<(), ModelError> {
        self.close_current();
        // A call without a name is kept: the model is told that no such tool exists.
        let name = json::get_text(call, "name").unwrap_or_default();
        let block = self.assembly.open_call(json::get_text(call, "id").unwrap_or_default(), name)?;
        if let Some(arguments) = json::get_present(call, "args") {
            self.assembly.append_arguments(block, &arguments.to_string())?;
        }
        if let Some(signature) = signature {
            self.assembly.attach_signature(block, OpaqueValueKind::Gemini.add_prefix(signature))?;
        }
        self.assembly.close_block(block);
        Ok(())
    }

    fn close_current(&mut self) {
        match self.current.take() {
            Some(CurrentPart::Text(block) | CurrentPart::Thinking(block)) => self.assembly.close_block(block),
            None => {}
        }
    }

    fn handle_finish_reason(&mut self, reason: &str, message: Option<&str>) -> Result<(), ModelError> {
        let stop = match reason {
            "FINISH_REASON_UNSPECIFIED" => return Ok(()),
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "MODEL_ARMOR" => StopReason::Refusal,
            // The model produced an invalid call and the server dropped it. Nothing of it can be
            // shown to the model, and another sample is nearly always valid.
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
                let message =
                    message.map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}"));
                return Err(ModelError::Stream { message, retryable: true });
            }
            other => StopReason::Other(other.to_owned()),
        };
        self.stop = Some(stop);
        Ok(())
    }
}

/// Reads the usage. Gemini includes the cached tokens in the input, and counts thinking separately
/// from the output.
fn read_usage(usage: &Value) -> Usage {
    let count = |key: &str| json::get_count(usage, key).unwrap_or(0);
    let cached = count("cachedContentTokenCount");
    let thinking = count("thoughtsTokenCount");
    Usage {
        input: Tokens(
            count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount")).saturating_sub(cached),
        ),
        cache_read: Tokens(cached),
        cache_write: Tokens(0),
        output: Tokens(count("candidatesTokenCount").saturating_add(thinking)),
        thinking: Tokens(thinking),
        ..Usage::default()
    }
}
