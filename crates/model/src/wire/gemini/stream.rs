//! Decodes a Gemini response.

use journeyman_protocol::{StopReason, Tokens, Usage};
use serde_json::Value;

use super::super::assembly::Assembly;
use super::super::signature::OpaqueKind;
use super::super::{failure, json};
use crate::codec::Decoder;
use crate::sse::SseEvent;
use crate::{Delta, ModelError, Reply};

/// The decoder of one response.
#[derive(Debug, Default)]
pub(super) struct GeminiDecoder {
    assembly: Assembly,
    current: Option<CurrentPart>,
    usage: Usage,
    model: String,
    stop: Option<StopReason>,
}

/// The block to which the last piece of text belonged.
#[derive(Debug, Clone, Copy)]
enum CurrentPart {
    Text(u32),
    Thinking(u32),
}

impl Decoder for GeminiDecoder {
    fn event(&mut self, event: &SseEvent) -> Result<Vec<Delta>, ModelError> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        self.assembly.add_to_digest(data);
        let chunk = json::event(data)?;
        let first = chunk.as_array().and_then(|all| all.first()).unwrap_or(&chunk);
        if json::present(first, "error").is_some() {
            return Err(failure::from_event(&chunk));
        }
        self.assembly.begin();
        if let Some(model) = json::text(&chunk, "modelVersion") {
            model.clone_into(&mut self.model);
        }
        if let Some(usage) = json::present(&chunk, "usageMetadata") {
            self.usage = read_usage(usage);
        }
        if self.stop.is_some() {
            return Ok(self.assembly.take_deltas());
        }
        let is_first = |candidate: &&Value| json::count(candidate, "index").unwrap_or(0) == 0;
        if let Some(candidate) = json::elements(&chunk, "candidates").iter().find(is_first) {
            for part in candidate.get("content").map_or(&[][..], |content| json::elements(content, "parts")) {
                self.part(part)?;
            }
            if let Some(reason) = json::text(candidate, "finishReason") {
                self.end(reason, json::text(candidate, "finishMessage"))?;
            }
        } else if let Some(reason) =
            chunk.get("promptFeedback").and_then(|feedback| json::text(feedback, "blockReason"))
            && reason != "BLOCK_REASON_UNSPECIFIED"
        {
            self.stop = Some(StopReason::Refusal);
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
            stop.ok_or_else(|| ModelError::Protocol("the answer ended without a finish reason".to_owned()))?;
        let (message, stop) = self.assembly.finish(stop);
        Ok(Reply { message, stop, usage: self.usage, model: std::mem::take(&mut self.model) })
    }
}

impl GeminiDecoder {
    fn part(&mut self, part: &Value) -> Result<(), ModelError> {
        let signature =
            json::text(part, "thoughtSignature").or_else(|| json::text(part, "thought_signature"));
        if let Some(call) = json::present(part, "functionCall") {
            return self.call(call, signature);
        }
        let text = json::text(part, "text").unwrap_or_default();
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
            self.assembly.text(block, text)?;
            if let Some(signature) = signature {
                // A signature ends the block that it signs.
                self.assembly.attach_signature(block, OpaqueKind::Gemini.close(signature))?;
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
            self.assembly.text(block, text)?;
        }
        if let Some(signature) = signature {
            self.close_current();
            self.assembly.add_hidden_thinking(OpaqueKind::Gemini.close(signature))?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, signature: Option<&str>) -> Result<(), ModelError> {
        self.close_current();
        // A call without a name is kept: the model is told that no such tool exists.
        let name = json::text(call, "name").unwrap_or_default();
        let block = self.assembly.open_call(json::text(call, "id").unwrap_or_default(), name)?;
        if let Some(arguments) = json::present(call, "args") {
            self.assembly.arguments(block, &arguments.to_string())?;
        }
        if let Some(signature) = signature {
            self.assembly.attach_signature(block, OpaqueKind::Gemini.close(signature))?;
        }
        self.assembly.close(block);
        Ok(())
    }

    fn close_current(&mut self) {
        match self.current.take() {
            Some(CurrentPart::Text(block) | CurrentPart::Thinking(block)) => self.assembly.close(block),
            None => {}
        }
    }

    fn end(&mut self, reason: &str, message: Option<&str>) -> Result<(), ModelError> {
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
        self.assembly.close_all();
        self.current = None;
        self.stop = Some(stop);
        Ok(())
    }
}

/// Reads the usage. Gemini includes the cached tokens in the input, and counts thinking separately
/// from the output.
fn read_usage(usage: &Value) -> Usage {
    let count = |key: &str| json::count(usage, key).unwrap_or(0);
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
