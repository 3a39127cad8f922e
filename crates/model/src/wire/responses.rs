//! OpenAI Responses, `POST /v1/responses`.
//!
//! Source: OpenAI's API reference. Nothing is stored at the provider (`store: false`), so thinking
//! arrives encrypted and is sent back with the conversation.

mod stream;

use journeyman_protocol::{Block, ImageData, ResultPart, Role};
use serde_json::{Value, json};

use super::legal_names;
use super::opaque_value::OpaqueValueKind;
use super::openai_server::OpenAiServer;
use super::transcript::{self, Turn};
use super::{effort, json, provider_error};
use crate::codec::{Codec, Decoder, EncodedRequest};
use crate::{ModelError, ModelRequest, Secret};

/// The text that stands for the images of a result.
const IMAGES_PLACEHOLDER: &str = "(the image follows)";

/// Maximum length of a `prompt_cache_key`.
pub(super) const MAX_CACHE_KEY_CHARS: usize = 64;

/// The codec of the protocol.
#[derive(Debug)]
pub(super) struct ResponsesCodec {
    host: OpenAiServer,
}

impl ResponsesCodec {
    /// Creates the codec for the server at a base URL.
    pub(super) fn new(base_url: &str) -> Self {
        Self { host: OpenAiServer::from_base_url(base_url) }
    }
}

impl Codec for ResponsesCodec {
    fn encode(&self, request: &ModelRequest) -> Result<EncodedRequest, ModelError> {
        let turns = transcript::join_turns(&request.messages, is_own_thinking)?;
        let mut body = json::new_object([
            ("model", json!(request.model)),
            ("stream", json!(true)),
            ("store", json!(false)),
        ]);
        let mut add = |key: &str, value: Value| {
            body.insert(key.to_owned(), value);
        };
        if is_reasoning_model(&request.model) {
            add("include", json!(["reasoning.encrypted_content"]));
            if let Some(thinking) = request.thinking {
                add("reasoning", json!({"effort": effort::effort_name(thinking), "summary": "auto"}));
            }
        }
        if let Some(limit) = request.max_output {
            add("max_output_tokens", json!(limit.0));
        }
        if let Some(temperature) = request.temperature {
            add("temperature", json!(temperature));
        }
        if let Some(top_p) = request.top_p {
            add("top_p", json!(top_p));
        }
        if let Some(session) = &request.session {
            add("prompt_cache_key", json!(json::truncate_str(session, MAX_CACHE_KEY_CHARS)));
        }
        if !request.tools.is_empty() {
            // Strict schemas are the default here and require what ours don't guarantee (that every
            // member is required).
            let tools = request.tools.iter().map(|tool| {
                json!({
                    "type": "function",
                    "name": legal_names::legal_tool_name(&tool.name),
                    "description": tool.description,
                    "parameters": tool.input_schema,
                    "strict": false,
                })
            });
            add("tools", tools.collect());
        }
        let instructions = system_text(request);
        if !instructions.is_empty() {
            add("instructions", Value::String(instructions));
        }
        let mut input = Vec::new();
        for turn in &turns {
            match turn.role {
                Role::User => self.encode_user_turn(turn, &mut input),
                Role::Assistant => self.encode_assistant_turn(turn, &mut input),
            }
        }
        add("input", Value::Array(input));
        Ok(EncodedRequest { path: "/v1/responses".to_owned(), body: Value::Object(body) })
    }

    fn auth_headers(&self, key: &Secret) -> Vec<(&'static str, String)> {
        self.host.auth_headers(key.reveal())
    }

    fn fixed_headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::ResponsesDecoder::default())
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ModelError {
        provider_error::error_from_status(status, body)
    }

    fn models_path(&self) -> &'static str {
        "/v1/models"
    }

    fn parse_model_names(&self, body: &Value) -> Vec<String> {
        openai_model_names(body)
    }
}

/// Returns the names in OpenAI's list of models. Some servers send a bare array, or name the list
/// `models`.
pub(super) fn openai_model_names(body: &Value) -> Vec<String> {
    let data = json::get_elements(body, "data");
    let models = if data.is_empty() { json::get_elements(body, "models") } else { data };
    let models = if models.is_empty() { body.as_array().map_or(&[][..], Vec::as_slice) } else { models };
    models
        .iter()
        .filter_map(|model| json::get_text(model, "id").or_else(|| json::get_text(model, "name")))
        .map(str::to_owned)
        .collect()
}

/// Returns the system prompt as one text.
pub(super) fn system_text(request: &ModelRequest) -> String {
    let parts: Vec<&str> =
        request.system.iter().map(|part| part.text.as_str()).filter(|text| !text.trim().is_empty()).collect();
    parts.join("\n\n")
}

/// Returns true if the model thinks. OpenAI's older models and its chat models refuse requests for
/// encrypted thinking; models of other names belong to servers that ignore such requests.
fn is_reasoning_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !(name.starts_with("gpt-3")
        || name.starts_with("gpt-4")
        || name.starts_with("chatgpt-")
        || name.ends_with("-chat-latest"))
}

/// Returns true if this protocol produced the thinking block, so that the block is sent back.
fn is_own_thinking(block: &Block) -> bool {
    let Block::Thinking { signature, .. } = block else { return false };
    let sealed = signature.as_deref();
    OpaqueValueKind::Responses.strip_prefix(sealed).is_some()
        || OpaqueValueKind::ResponsesPhase.strip_prefix(sealed).is_some()
}

pub(super) fn data_url(image: &ImageData) -> String {
    format!("data:{};base64,{}", image.media_type, image.data)
}

fn input_image(image: &ImageData) -> Value {
    json!({"type": "input_image", "detail": "auto", "image_url": data_url(image)})
}

impl ResponsesCodec {
    fn encode_user_turn(&self, turn: &Turn<'_>, input: &mut Vec<Value>) {
        let mut content = Vec::new();
        for block in &turn.blocks {
            match block {
                Block::ToolResult { id, content: parts, is_error } => {
                    input.push(json!({
                        "type": "function_call_output",
                        "call_id": legal_names::legal_call_id(id.as_str(), self.host.id_rule()),
                        "output": transcript::result_text(parts, *is_error, IMAGES_PLACEHOLDER),
                    }));
                    content.extend(parts.iter().filter_map(|part| match part {
                        ResultPart::Image(image) => Some(input_image(image)),
                        ResultPart::Text { .. } => None,
                    }));
                }
                Block::Text { text } => content.push(json!({"type": "input_text", "text": text})),
                Block::Image(image) => content.push(input_image(image)),
                Block::Thinking { .. } | Block::ToolUse(_) => {}
            }
        }
        if !content.is_empty() {
            input.push(json!({"type": "message", "role": "user", "content": content}));
        }
    }

    fn encode_assistant_turn(&self, turn: &Turn<'_>, input: &mut Vec<Value>) {
        for block in &turn.blocks {
            match block {
                Block::Text { text } => {
                    let content = json!([{"type": "output_text", "text": text}]);
                    input.push(json!({"type": "message", "role": "assistant", "content": content}));
                }
                Block::Thinking { signature, .. } => {
                    let sealed = signature.as_deref();
                    if let Some(phase) = OpaqueValueKind::ResponsesPhase.strip_prefix(sealed) {
                        set_phase(input, phase);
                    } else if let Some(item) = OpaqueValueKind::Responses
                        .strip_prefix(sealed)
                        .and_then(|item| serde_json::from_str(item).ok())
                    {
                        input.push(item);
                    }
                }
                Block::ToolUse(call) => input.push(json!({
                    "type": "function_call",
                    "call_id": legal_names::legal_call_id(call.id.as_str(), self.host.id_rule()),
                    "name": legal_names::legal_tool_name(&call.name),
                    "arguments": encode_arguments(&call.input),
                })),
                Block::Image(_) | Block::ToolResult { .. } => {}
            }
        }
    }
}

/// Sets the phase (`commentary`, `final_answer`) of the preceding message, without which OpenAI's
/// newer models perform worse.
fn set_phase(input: &mut [Value], phase: &str) {
    if let Some(Value::Object(message)) = input.last_mut()
        && message.get("role").and_then(Value::as_str) == Some("assistant")
    {
        message.insert("phase".to_owned(), Value::String(phase.to_owned()));
    }
}

/// Returns arguments as OpenAI accepts them: any text, so that invalid arguments are sent back as
/// the model wrote them.
pub(super) fn encode_arguments(input: &Value) -> String {
    match input {
        Value::String(raw) => raw.clone(),
        other => other.to_string(),
    }
}
