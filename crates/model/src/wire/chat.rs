//! OpenAI Chat Completions, `POST /v1/chat/completions`, which most other servers speak.
//!
//! Source: OpenAI's API reference, and the documents of DeepSeek, OpenRouter, Mistral, vLLM,
//! llama.cpp and Ollama where they extend it. The request depends on the [`Host`]: an unknown
//! server gets only what all of them understand (`max_tokens`, arguments that are an object, no
//! cache key). `strict` of a tool is omitted, because its default is right here.

mod stream;

use journeyman_protocol::{Block, ResultPart, Role, ToolUse};
use serde_json::{Map, Value, json};

use super::legal_names;
use super::opaque_value::OpaqueValueKind;
use super::openai_server::OpenAiServer;
use super::responses::{MAX_CACHE_KEY_CHARS, data_url, encode_arguments, openai_model_names, system_text};
use super::transcript::{self, Turn};
use super::{effort, json, provider_error};
use crate::codec::{Codec, Decoder, EncodedRequest};
use crate::{ModelError, ModelRequest, Secret, Thinking};

/// The text that stands for the images of a result.
const IMAGES_PLACEHOLDER: &str = "(the image follows in the next message)";

/// The assistant's text between a result and the user's text, for models that require one.
const BRIDGE_TEXT: &str = "Noted.";

/// The codec of the protocol.
#[derive(Debug)]
pub(super) struct ChatCodec {
    host: OpenAiServer,
}

impl ChatCodec {
    /// Creates the codec for the server at a base URL.
    pub(super) fn new(base_url: &str) -> Self {
        Self { host: OpenAiServer::from_base_url(base_url) }
    }
}

impl Codec for ChatCodec {
    fn encode(&self, request: &ModelRequest) -> Result<EncodedRequest, ModelError> {
        let turns = transcript::join_turns(&request.messages, |block| self.is_own_thinking(block))?;
        let mut body = json::new_object([("model", json!(request.model)), ("stream", json!(true))]);
        let mut add = |key: &str, value: Value| {
            body.insert(key.to_owned(), value);
        };
        // Mistral refuses the member and reports usage anyway.
        if self.host != OpenAiServer::Mistral {
            add("stream_options", json!({"include_usage": true}));
        }
        if let Some(limit) = request.max_output {
            let key = if matches!(self.host, OpenAiServer::OpenAi { .. }) {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            add(key, json!(limit.0));
        }
        if let Some(temperature) = request.temperature {
            add("temperature", json!(temperature));
        }
        if let Some(top_p) = request.top_p {
            add("top_p", json!(top_p));
        }
        match (self.host, request.thinking) {
            (OpenAiServer::OpenRouter, Some(Thinking::Budget(tokens))) => {
                add("reasoning", json!({"max_tokens": tokens}))
            }
            (OpenAiServer::OpenRouter, Some(thinking)) => {
                add("reasoning", json!({"effort": effort::effort_name(thinking)}))
            }
            (_, Some(thinking)) => add("reasoning_effort", json!(effort::effort_name(thinking))),
            (_, None) => {}
        }
        if let (OpenAiServer::OpenAi { .. }, Some(session)) = (self.host, &request.session) {
            add("prompt_cache_key", json!(json::truncate_str(session, MAX_CACHE_KEY_CHARS)));
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                json!({"type": "function", "function": {
                    "name": legal_names::legal_tool_name(&tool.name),
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }})
            });
            add("tools", tools.collect());
        }
        let mut messages = Vec::new();
        let system = system_text(request);
        if !system.is_empty() {
            messages.push(json!({"role": "system", "content": system}));
        }
        let bridges = self.host.refuses_user_after_result(&request.model);
        for turn in &turns {
            match turn.role {
                Role::User => self.encode_user_turn(turn, bridges, &mut messages),
                Role::Assistant => messages.push(self.encode_assistant_turn(turn)),
            }
        }
        add("messages", Value::Array(messages));
        Ok(EncodedRequest { path: "/v1/chat/completions".to_owned(), body: Value::Object(body) })
    }

    fn auth_headers(&self, key: &Secret) -> Vec<(&'static str, String)> {
        self.host.auth_headers(key.reveal())
    }

    fn fixed_headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::ChatDecoder::default())
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

impl ChatCodec {
    /// Returns true if a thinking block is sent back to this server. By default it is not: OpenAI
    /// has no place for thinking, and most templates of local models drop it.
    fn is_own_thinking(&self, block: &Block) -> bool {
        let Block::Thinking { text, signature } = block else { return false };
        match self.host {
            OpenAiServer::ReasoningRequired => !text.is_empty(),
            OpenAiServer::OpenAi { .. } | OpenAiServer::Mistral => false,
            // Only a server that sent details can use them.
            OpenAiServer::OpenRouter | OpenAiServer::Other => {
                OpaqueValueKind::Chat.strip_prefix(signature.as_deref()).is_some()
            }
        }
    }

    /// Encodes a user's turn; `bridges` if the user's own text can't follow a result.
    fn encode_user_turn(&self, turn: &Turn<'_>, bridges: bool, messages: &mut Vec<Value>) {
        let mut parts = Vec::new();
        for block in &turn.blocks {
            match block {
                Block::ToolResult { id, content, is_error } => {
                    messages.push(json!({
                        "role": "tool",
                        "tool_call_id": legal_names::legal_call_id(id.as_str(), self.host.id_rule()),
                        "content": transcript::result_text(content, *is_error, IMAGES_PLACEHOLDER),
                    }));
                    parts.extend(content.iter().filter_map(|part| match part {
                        ResultPart::Image(image) => Some(image_part(&data_url(image))),
                        ResultPart::Text { .. } => None,
                    }));
                }
                Block::Text { text } => parts.push(json!({"type": "text", "text": text})),
                Block::Image(image) => parts.push(image_part(&data_url(image))),
                Block::Thinking { .. } | Block::ToolUse(_) => {}
            }
        }
        if parts.is_empty() {
            return;
        }
        if bridges && messages.last().is_some_and(|last| last.get("tool_call_id").is_some()) {
            messages.push(json!({"role": "assistant", "content": BRIDGE_TEXT}));
        }
        // Many servers and templates accept a plain string only; parts are for images.
        let texts: Option<Vec<&str>> =
            parts.iter().map(|part| part.get("text").and_then(Value::as_str)).collect();
        let plain = texts.map(|texts| texts.join("\n\n"));
        let content = plain.map_or(Value::Array(parts), Value::String);
        messages.push(json!({"role": "user", "content": content}));
    }

    fn encode_assistant_turn(&self, turn: &Turn<'_>) -> Value {
        let mut texts = Vec::new();
        let mut thinking = String::new();
        let mut details = Vec::new();
        let mut calls = Vec::new();
        for block in &turn.blocks {
            match block {
                Block::Text { text } => texts.push(text.as_str()),
                Block::Thinking { text, signature } => {
                    thinking.push_str(text);
                    if let Some(Value::Array(more)) = decode_opaque_json(signature.as_deref()) {
                        details.extend(more);
                    }
                }
                Block::ToolUse(call) => calls.push(self.encode_call(call)),
                Block::Image(_) | Block::ToolResult { .. } => {}
            }
        }
        let content = if texts.is_empty() { Value::Null } else { Value::String(texts.join("\n\n")) };
        let mut message = json::new_object([("role", json!("assistant")), ("content", content)]);
        // Such a server requires the member with every call, even without thinking.
        if self.host == OpenAiServer::ReasoningRequired && !calls.is_empty() {
            message.insert("reasoning_content".to_owned(), Value::String(thinking));
        }
        if !details.is_empty() && self.host != OpenAiServer::ReasoningRequired {
            message.insert("reasoning_details".to_owned(), Value::Array(details));
        }
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        Value::Object(message)
    }

    fn encode_call(&self, call: &ToolUse) -> Value {
        // OpenAI accepts any text. Servers that fill a template from the arguments fail if they are
        // not JSON.
        let arguments = match self.host {
            OpenAiServer::OpenAi { .. } => encode_arguments(&call.input),
            _ => transcript::input_object(call).to_string(),
        };
        let mut encoded = Map::new();
        encoded.insert(
            "id".to_owned(),
            json!(legal_names::legal_call_id(call.id.as_str(), self.host.id_rule())),
        );
        encoded.insert("type".to_owned(), json!("function"));
        encoded.insert(
            "function".to_owned(),
            json!({"name": legal_names::legal_tool_name(&call.name), "arguments": arguments}),
        );
        let extra = decode_opaque_json(call.signature.as_deref()).filter(Value::is_object);
        if let (OpenAiServer::Other | OpenAiServer::OpenRouter, Some(extra)) = (self.host, extra) {
            encoded.insert("extra_content".to_owned(), extra);
        }
        Value::Object(encoded)
    }
}

fn decode_opaque_json(sealed: Option<&str>) -> Option<Value> {
    serde_json::from_str(OpaqueValueKind::Chat.strip_prefix(sealed)?).ok()
}

fn image_part(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}
