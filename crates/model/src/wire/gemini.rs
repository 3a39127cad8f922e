//! Gemini, `POST /v1beta/models/MODEL:streamGenerateContent`.
//!
//! Source: Google's API reference for the Gemini API, with its pages on thinking, thought
//! signatures and function calling.

mod stream;

use std::collections::HashMap;

use journeyman_protocol::{Block, ImageData, ResultPart, Role};
use serde_json::{Map, Value, json};

use super::legal_names::{self, IdRule};
use super::opaque_value::OpaqueValueKind;
use super::transcript::{self, Turn};
use super::{effort, gemini_schema, json, provider_error};
use crate::codec::{Codec, Decoder, EncodedRequest};
use crate::{ModelError, ModelRequest, Secret, Thinking};

/// The value that Google documents for calls without a thought signature because another model made
/// them: Gemini 3 refuses a step whose first call has none.
const PLACEHOLDER_SIGNATURE: &str = "skip_thought_signature_validator";
/// The first version that requires a signature with calls, and a thinking level instead of a
/// budget.
const THINKING_LEVELS_SINCE: (u32, u32) = (3, 0);

/// The codec of the protocol.
#[derive(Debug)]
pub(super) struct GeminiCodec;

impl Codec for GeminiCodec {
    fn encode(&self, request: &ModelRequest) -> Result<EncodedRequest, ModelError> {
        let turns = transcript::join_turns(&request.messages, is_own_thinking)?;
        let mut body = Map::new();
        let generation = generation_config(request);
        if !generation.is_empty() {
            body.insert("generationConfig".to_owned(), Value::Object(generation));
        }
        if !request.tools.is_empty() {
            let declarations: Vec<Value> = request
                .tools
                .iter()
                .map(|tool| {
                    let mut declaration = json::new_object([
                        ("name", json!(legal_names::legal_tool_name(&tool.name))),
                        ("description", json!(tool.description)),
                    ]);
                    if let Some(parameters) = gemini_schema::convert_parameters(&tool.input_schema) {
                        declaration.insert("parameters".to_owned(), parameters);
                    }
                    Value::Object(declaration)
                })
                .collect();
            body.insert("tools".to_owned(), json!([{"functionDeclarations": declarations}]));
        }
        let system: Vec<Value> = request
            .system
            .iter()
            .filter(|part| !part.text.trim().is_empty())
            .map(|part| json!({"text": part.text}))
            .collect();
        if !system.is_empty() {
            body.insert("systemInstruction".to_owned(), json!({"parts": system}));
        }
        let strict = is_at_least_version(&request.model, THINKING_LEVELS_SINCE);
        let mut calls = HashMap::new();
        let contents: Vec<Value> = turns.iter().map(|turn| encode_turn(turn, strict, &mut calls)).collect();
        body.insert("contents".to_owned(), Value::Array(contents));
        Ok(EncodedRequest { path: request_path(&request.model), body: Value::Object(body) })
    }

    fn auth_headers(&self, key: &Secret) -> Vec<(&'static str, String)> {
        vec![("x-goog-api-key", key.reveal().to_owned())]
    }

    fn fixed_headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::GeminiDecoder::default())
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ModelError {
        provider_error::error_from_status(status, body)
    }

    fn models_path(&self) -> &'static str {
        "/v1beta/models?pageSize=1000"
    }

    fn parse_model_names(&self, body: &Value) -> Vec<String> {
        json::get_elements(body, "models")
            .iter()
            .filter(|model| {
                // The list also has embedding and image models. A list without methods is used as a
                // whole.
                let methods = json::get_elements(model, "supportedGenerationMethods");
                methods.is_empty() || methods.iter().any(|method| method.as_str() == Some("generateContent"))
            })
            .filter_map(|model| json::get_text(model, "name"))
            .map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned())
            .collect()
    }
}

fn is_at_least_version(model: &str, version: (u32, u32)) -> bool {
    model.contains("gemini") && effort::model_version(model).is_some_and(|its| its >= version)
}

/// Returns the path for a model, which may be named with its collection (`models/…`,
/// `tunedModels/…`) or without.
fn request_path(model: &str) -> String {
    let mut escaped = String::new();
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/@".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    let collection = if escaped.contains('/') { "" } else { "models/" };
    format!("/v1beta/{collection}{escaped}:streamGenerateContent?alt=sse")
}

fn generation_config(request: &ModelRequest) -> Map<String, Value> {
    let mut generation = Map::new();
    let mut add = |key: &str, value: Value| {
        generation.insert(key.to_owned(), value);
    };
    if let Some(limit) = request.max_output {
        add("maxOutputTokens", json!(limit.0));
    }
    if let Some(temperature) = request.temperature {
        add("temperature", json!(temperature));
    }
    if let Some(top_p) = request.top_p {
        add("topP", json!(top_p));
    }
    if let Some(thinking) = request.thinking {
        let by_level = is_at_least_version(&request.model, THINKING_LEVELS_SINCE)
            && matches!(thinking, Thinking::Effort(_));
        add(
            "thinkingConfig",
            if by_level {
                json!({"includeThoughts": true, "thinkingLevel": effort::effort_name(thinking)})
            } else {
                json!({"includeThoughts": true, "thinkingBudget": effort::budget_tokens(thinking)})
            },
        );
    }
    generation
}

/// Returns true if this protocol produced the thinking block, so that the block is sent back.
fn is_own_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { signature, .. } if OpaqueValueKind::Gemini.strip_prefix(signature.as_deref()).is_some())
}

/// Encodes a turn. `calls` collects the names of the calls, which their results repeat.
fn encode_turn<'a>(turn: &Turn<'a>, strict: bool, calls: &mut HashMap<&'a str, &'a str>) -> Value {
    let mut parts = Vec::new();
    let mut images = Vec::new();
    let mut first_call = true;
    for block in &turn.blocks {
        match block {
            Block::Text { text } => parts.push(json!({"text": text})),
            Block::Image(image) => parts.push(inline_data(image)),
            Block::Thinking { text, signature } => {
                let Some(signature) = OpaqueValueKind::Gemini.strip_prefix(signature.as_deref()) else {
                    continue;
                };
                // Without text, the block is the signature of the preceding text. It often arrives
                // in a part of its own, and is accepted back in that form.
                let mut part = json::new_object([("text", json!(text))]);
                if !text.is_empty() {
                    part.insert("thought".to_owned(), Value::Bool(true));
                }
                part.insert("thoughtSignature".to_owned(), json!(signature));
                parts.push(Value::Object(part));
            }
            Block::ToolUse(call) => {
                calls.insert(call.id.as_str(), &call.name);
                let mut function = id_member(call.id.as_str());
                function.insert("name".to_owned(), json!(legal_names::legal_tool_name(&call.name)));
                function.insert("args".to_owned(), transcript::input_object(call));
                let mut part = json::new_object([("functionCall", Value::Object(function))]);
                let signature = OpaqueValueKind::Gemini.strip_prefix(call.signature.as_deref());
                let needed = (strict && first_call).then_some(PLACEHOLDER_SIGNATURE);
                if let Some(signature) = signature.or(needed) {
                    part.insert("thoughtSignature".to_owned(), json!(signature));
                }
                first_call = false;
                parts.push(Value::Object(part));
            }
            Block::ToolResult { id, content, is_error } => {
                let mut function = id_member(id.as_str());
                let name = calls.get(id.as_str()).copied().unwrap_or_default();
                function.insert("name".to_owned(), json!(legal_names::legal_tool_name(name)));
                // Google documents these two keys for a function's result.
                let key = if *is_error { "error" } else { "output" };
                let text = transcript::result_text(content, false, "(the image follows)");
                function.insert("response".to_owned(), json!({ key: text }));
                parts.push(json!({"functionResponse": function}));
                images.extend(content.iter().filter_map(|part| match part {
                    ResultPart::Image(image) => Some(inline_data(image)),
                    ResultPart::Text { .. } => None,
                }));
            }
        }
        // The responses stay together; their images come right after them.
        if !images.is_empty() && !matches!(block, Block::ToolResult { .. }) {
            let at = parts.len().saturating_sub(1);
            parts.splice(at..at, images.drain(..));
        }
    }
    parts.append(&mut images);
    let role = if turn.role == Role::User { "user" } else { "model" };
    json!({"role": role, "parts": parts})
}

/// Returns the id of a call or its result, unless this crate generated it.
fn id_member(id: &str) -> Map<String, Value> {
    if legal_names::is_generated_id(id) {
        Map::new()
    } else {
        json::new_object([("id", json!(legal_names::legal_call_id(id, IdRule::Common)))])
    }
}

fn inline_data(image: &ImageData) -> Value {
    json!({"inlineData": {"mimeType": image.media_type, "data": image.data}})
}
