//! Anthropic Messages, `POST /v1/messages`.
//!
//! Source: Anthropic's API reference, version 2023-06-01, with extended and adaptive thinking,
//! prompt caching and streaming. Other servers speak a part of the protocol, so requests use as few
//! members as possible.

mod stream;

use journeyman_protocol::{Block, ImageData, ResultPart, Role};
use serde_json::{Map, Value, json};

use super::legal_names::{self, IdRule};
use super::opaque_value::OpaqueValueKind;
use super::transcript::{self, Turn};
use super::{effort, json, provider_error};
use crate::codec::{Codec, Decoder, EncodedRequest};
use crate::{ModelError, ModelRequest, Secret, Thinking};

/// The version of the protocol.
const VERSION: &str = "2023-06-01";

/// Default `max_tokens`, which the protocol requires. 32,000 is the smallest limit of any Claude
/// since 3.7 (Opus 4); the smaller numbers are the limits of older models. For models of other
/// names, 8,192 is what all servers that imitate the protocol accept.
const MAX_TOKENS_CLAUDE_3_7: u64 = 32_000;
const MAX_TOKENS_CLAUDE_3_5: u64 = 8_192;
const MAX_TOKENS_CLAUDE_3: u64 = 4_096;
const MAX_TOKENS_OTHER: u64 = 8_192;

/// Minimum thinking budget of the protocol.
const MIN_THINKING_BUDGET: u64 = 1_024;
/// Minimum tokens that are left for the answer if thinking counts against the limit.
const MIN_ANSWER_TOKENS: u64 = 1_024;

/// Number of cache markers for system parts. A request may carry four; one is for the tools and one
/// for the conversation.
const MAX_SYSTEM_CACHE_MARKERS: usize = 2;

/// The codec of the protocol.
#[derive(Debug)]
pub(super) struct AnthropicCodec;

impl Codec for AnthropicCodec {
    fn encode(&self, request: &ModelRequest) -> Result<EncodedRequest, ModelError> {
        let turns = transcript::join_turns(&request.messages, is_own_thinking)?;
        let limit = request.max_output.map_or_else(|| default_max_tokens(&request.model), |tokens| tokens.0);
        let mut body = json::new_object([
            ("model", json!(request.model)),
            ("max_tokens", json!(limit)),
            ("stream", json!(true)),
        ]);
        let thinks = request
            .thinking
            .is_some_and(|thinking| add_thinking(&mut body, thinking, &request.model, limit, &turns));
        // A thinking model accepts no other temperature than its default.
        if !thinks {
            if let Some(temperature) = request.temperature {
                body.insert("temperature".to_owned(), json!(temperature));
            }
            if let Some(top_p) = request.top_p {
                body.insert("top_p".to_owned(), json!(top_p));
            }
        }
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), encode_tools(request));
        }
        let system = encode_system(request);
        if !system.is_empty() {
            body.insert("system".to_owned(), Value::Array(system));
        }
        body.insert("messages".to_owned(), Value::Array(encode_messages(&turns)));
        Ok(EncodedRequest { path: "/v1/messages".to_owned(), body: Value::Object(body) })
    }

    fn auth_headers(&self, key: &Secret) -> Vec<(&'static str, String)> {
        vec![("x-api-key", key.reveal().to_owned())]
    }

    fn fixed_headers(&self) -> Vec<(&'static str, String)> {
        vec![("anthropic-version", VERSION.to_owned())]
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::AnthropicDecoder::default())
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ModelError {
        provider_error::error_from_status(status, body)
    }

    fn models_path(&self) -> &'static str {
        "/v1/models?limit=1000"
    }

    fn parse_model_names(&self, body: &Value) -> Vec<String> {
        json::get_elements(body, "data")
            .iter()
            .filter_map(|model| json::get_text(model, "id"))
            .map(str::to_owned)
            .collect()
    }
}

fn default_max_tokens(model: &str) -> u64 {
    match claude_version(model) {
        None => MAX_TOKENS_OTHER,
        Some(version) if version >= (3, 7) => MAX_TOKENS_CLAUDE_3_7,
        Some(version) if version >= (3, 5) => MAX_TOKENS_CLAUDE_3_5,
        Some(_) => MAX_TOKENS_CLAUDE_3,
    }
}

/// Returns the version of a Claude model.
fn claude_version(model: &str) -> Option<(u32, u32)> {
    if model.contains("claude") { effort::model_version(model) } else { None }
}

/// Adds thinking to the request in the form that the model supports, and returns true if it did:
/// adaptive with an effort since Claude 4.6 (newer models refuse budgets), a budget before and for
/// models of other names, nothing for a Claude before 3.7, which can't think.
fn add_thinking(
    body: &mut Map<String, Value>,
    thinking: Thinking,
    model: &str,
    limit: u64,
    turns: &[Turn<'_>],
) -> bool {
    match claude_version(model) {
        Some(version) if version >= (4, 6) => {
            // Since Claude 4.7, thinking is hidden by default.
            body.insert("thinking".to_owned(), json!({"type": "adaptive", "display": "summarized"}));
            body.insert("output_config".to_owned(), json!({"effort": effort::effort_name(thinking)}));
            true
        }
        Some(version) if version < (3, 7) => false,
        _ => {
            let most = limit.saturating_sub(MIN_ANSWER_TOKENS);
            if most < MIN_THINKING_BUDGET || is_thinking_missing(turns) {
                return false;
            }
            let budget = u64::from(effort::budget_tokens(thinking)).clamp(MIN_THINKING_BUDGET, most);
            body.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": budget}));
            true
        }
    }
}

/// Returns true if the turn whose calls are answered lacks its thinking. With a thinking budget,
/// the API requires that this turn begins with thinking. If another model made the calls, the
/// request goes without thinking.
fn is_thinking_missing(turns: &[Turn<'_>]) -> bool {
    let newest = turns.iter().rev().find(|turn| turn.role == Role::Assistant);
    newest.is_some_and(|turn| {
        let answered_last = turns
            .last()
            .is_some_and(|last| last.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. })));
        answered_last && !turn.blocks.iter().any(|block| is_own_thinking(block))
    })
}

/// Returns true if this protocol produced the thinking block, so that the block is sent back.
fn is_own_thinking(block: &Block) -> bool {
    let Block::Thinking { signature, .. } = block else { return false };
    let sealed = signature.as_deref();
    OpaqueValueKind::Anthropic.strip_prefix(sealed).is_some()
        || OpaqueValueKind::AnthropicRedacted.strip_prefix(sealed).is_some()
}

fn set_cache_marker(block: &mut Value) {
    if let Some(members) = block.as_object_mut() {
        members.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

fn encode_tools(request: &ModelRequest) -> Value {
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({"name": legal_names::legal_tool_name(&tool.name), "description": tool.description, "input_schema": tool.input_schema}))
        .collect();
    if let Some(last) = tools.last_mut() {
        set_cache_marker(last);
    }
    Value::Array(tools)
}

fn encode_system(request: &ModelRequest) -> Vec<Value> {
    let parts = request.system.iter().filter(|part| !part.text.trim().is_empty());
    let mut markers = parts.clone().filter(|part| part.cache).count();
    parts
        .map(|part| {
            let mut block = json!({"type": "text", "text": part.text});
            if part.cache {
                // The latest markers cover the most.
                if markers <= MAX_SYSTEM_CACHE_MARKERS {
                    set_cache_marker(&mut block);
                }
                markers = markers.saturating_sub(1);
            }
            block
        })
        .collect()
}

fn encode_messages(turns: &[Turn<'_>]) -> Vec<Value> {
    let newest_user = turns.iter().rposition(|turn| turn.role == Role::User);
    let last = turns.len().saturating_sub(1);
    turns
        .iter()
        .enumerate()
        .map(|(place, turn)| {
            let mut content: Vec<Value> =
                turn.blocks.iter().filter_map(|block| encode_block(block)).collect();
            if Some(place) == newest_user
                && let Some(newest) = content.last_mut()
            {
                set_cache_marker(newest);
            }
            let role = match turn.role {
                Role::User => "user",
                Role::Assistant => {
                    if place == last {
                        trim_last_text(&mut content);
                    }
                    "assistant"
                }
            };
            json!({"role": role, "content": content})
        })
        .collect()
}

/// Trims white space at the end of a conversation that ends with the assistant's text (a paused
/// turn), which the API requires.
fn trim_last_text(content: &mut [Value]) {
    if let Some(Value::String(text)) = content.last_mut().and_then(|block| block.get_mut("text")) {
        text.truncate(text.trim_end().len());
    }
}

fn encode_block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Image(image) => encode_image(image),
        Block::Thinking { text, signature } => {
            let sealed = signature.as_deref();
            if let Some(data) = OpaqueValueKind::AnthropicRedacted.strip_prefix(sealed) {
                json!({"type": "redacted_thinking", "data": data})
            } else {
                json!({"type": "thinking", "thinking": text, "signature": OpaqueValueKind::Anthropic.strip_prefix(sealed)?})
            }
        }
        Block::ToolUse(call) => json!({
            "type": "tool_use",
            "id": legal_names::legal_call_id(call.id.as_str(), IdRule::Common),
            "name": legal_names::legal_tool_name(&call.name),
            "input": transcript::input_object(call),
        }),
        Block::ToolResult { id, content, is_error } => {
            let mut parts: Vec<Value> = content
                .iter()
                .filter_map(|part| match part {
                    ResultPart::Text { text } if text.trim().is_empty() => None,
                    ResultPart::Text { text } => Some(json!({"type": "text", "text": text})),
                    ResultPart::Image(image) => Some(encode_image(image)),
                })
                .collect();
            // The API refuses images in a result that is an error, so the text says that it is one.
            let said = *is_error && content.iter().any(|part| matches!(part, ResultPart::Image(_)));
            if said {
                parts.retain(|part| part.get("source").is_some());
                parts.insert(0, json!({"type": "text", "text": transcript::result_text(content, true, "")}));
            }
            if parts.is_empty() {
                parts.push(json!({"type": "text", "text": transcript::result_text(&[], false, "")}));
            }
            let mut result = json!({
                "type": "tool_result",
                "tool_use_id": legal_names::legal_call_id(id.as_str(), IdRule::Common),
                "content": parts,
            });
            if *is_error
                && !said
                && let Some(members) = result.as_object_mut()
            {
                members.insert("is_error".to_owned(), Value::Bool(true));
            }
            result
        }
    })
}

fn encode_image(image: &ImageData) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}})
}
