//! Classifies the error bodies of providers.
//!
//! Providers agree on little: some name the error in `type`, some in `code` or `status`, some only
//! in prose. So the machine-readable words are tested first, then known phrases, then the status.

use serde_json::Value;

use super::json;
use crate::ModelError;
use crate::error::strip_invisible;

/// Maximum length of a provider's message in an error, in bytes.
const MAX_PROVIDER_MESSAGE_BYTES: usize = 2_000;

/// An error in the form of a provider.
#[derive(Debug)]
pub(super) struct ProviderError {
    status: Option<u16>,
    /// True if the body has a member `error`.
    is_named: bool,
    /// `type`, `code`, `status` and `reason`, in lower case.
    words: Vec<String>,
    message: String,
    /// Words, message and details in lower case, to search for phrases.
    all: String,
}

/// The part of the exchange in which an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorOrigin {
    Refused(u16),
    Streaming,
}

/// Returns the error of a response without success.
pub(super) fn error_from_status(status: u16, body: &[u8]) -> ModelError {
    let body = String::from_utf8_lossy(body);
    let failure = match serde_json::from_str::<Value>(&body) {
        Ok(value) => ProviderError::from_json(&value),
        Err(_) => ProviderError::from_plain_text(&body),
    };
    // With a status of success, only a document that has an error is one.
    if status < 400 && !failure.is_named {
        return ModelError::Http { status, message: failure.message };
    }
    failure.into_error(ErrorOrigin::Refused(status))
}

/// Returns the error inside a stream, from the event or the object under its `error`.
pub(super) fn error_from_event(value: &Value) -> ModelError {
    ProviderError::from_json(value).into_error(ErrorOrigin::Streaming)
}

impl ProviderError {
    /// Parses `{"error": {…}}`, `{"error": "…"}`, `[{"error": {…}}]`, `{"message": …}`, `{"detail":
    /// …}`.
    fn from_json(value: &Value) -> Self {
        let outer = value.as_array().and_then(|all| all.first()).unwrap_or(value);
        let named = json::get_present(outer, "error");
        let error = named.unwrap_or(outer);
        let mut words = Vec::new();
        let mut status = None;
        let fields = [error, outer];
        for key in ["type", "code", "status", "reason", "error_type"] {
            for field in fields {
                match field.get(key) {
                    Some(Value::String(word)) => {
                        status = status.or_else(|| word.parse().ok());
                        words.push(word.to_ascii_lowercase());
                    }
                    Some(Value::Number(number)) => {
                        status = status.or_else(|| number.as_u64().and_then(|code| u16::try_from(code).ok()));
                    }
                    _ => {}
                }
            }
        }
        let message = message_of(error).or_else(|| message_of(outer)).unwrap_or_else(|| error.to_string());
        // A gateway's own message often says less than that of the provider behind it.
        let behind = error.pointer("/metadata/raw").and_then(Value::as_str).unwrap_or_default();
        let message = if behind.is_empty() || message.contains(behind) {
            message
        } else {
            format!("{message}: {behind}")
        };
        // The whole body is not searched: some servers repeat the request in it, which may contain
        // any text.
        let details = json::get_present(error, "details").map(Value::to_string).unwrap_or_default();
        let all = format!("{} {message} {details}", words.join(" ")).to_lowercase();
        Self { status, is_named: named.is_some(), words, message: to_one_line(&message), all }
    }

    /// Creates an error from text that is not JSON: a proxy's page, or plain text.
    fn from_plain_text(body: &str) -> Self {
        let title = body
            .split_once("<title>")
            .and_then(|(_, rest)| rest.split_once("</title>"))
            .map(|(title, _)| title);
        let message = title.map_or_else(|| strip_tags(body), str::to_owned);
        let message = to_one_line(&message);
        let message = if message.is_empty() { "no message".to_owned() } else { message };
        // Only what is shown is searched: the rest may be a request that a server repeats.
        let all = message.to_lowercase();
        Self { status: None, is_named: false, words: Vec::new(), message, all }
    }

    fn has_word(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }

    fn has_phrase(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.all.contains(phrase))
    }

    fn into_error(self, when: ErrorOrigin) -> ModelError {
        let status = match when {
            ErrorOrigin::Refused(status) if status >= 400 => status,
            // After a status of success, the code is all there is; 0 means no status.
            _ => self.status.filter(|code| (400..600).contains(code)).unwrap_or(0),
        };
        if self.is_too_long(status) {
            return ModelError::ContextTooLong { message: self.message };
        }
        if matches!(status, 0 | 400 | 404 | 422 | 500 | 501) && self.has_phrase(NO_TOOLS_PHRASES) {
            return ModelError::ToolsUnsupported { message: self.message };
        }
        if self.is_unknown_model(status) {
            return ModelError::UnknownModel { provider_message: self.message, available: Vec::new() };
        }
        if status == 402 || self.has_word(QUOTA_WORDS) || self.has_phrase(QUOTA_PHRASES) {
            return ModelError::QuotaExceeded { message: self.message };
        }
        let moderated = status == 403 && self.has_phrase(&["flagged", "moderation"]);
        if !moderated
            && (matches!(status, 401 | 403)
                || self.has_word(INVALID_KEY_WORDS)
                || self.has_phrase(&["api key not valid"]))
        {
            return ModelError::Unauthorized { message: self.message, advice: None };
        }
        if status == 429 || self.has_word(RATE_LIMIT_WORDS) {
            return ModelError::RateLimited { message: self.message };
        }
        if matches!(status, 503 | 529) || self.has_word(OVERLOAD_WORDS) {
            return ModelError::Overloaded { message: self.message };
        }
        match when {
            ErrorOrigin::Refused(sent) => {
                ModelError::Http { status: if status == 0 { sent } else { status }, message: self.message }
            }
            ErrorOrigin::Streaming => {
                // The server accepted the request, so an error in its response is the server's
                // unless it says otherwise.
                let retryable = !self.has_word(INVALID_REQUEST_WORDS)
                    && (!(400..500).contains(&status) || crate::error::is_retryable_status(status));
                ModelError::Stream { message: self.message, retryable }
            }
        }
    }

    fn is_too_long(&self, status: u16) -> bool {
        // A rate limit in tokens has a similar message, always with status 429. With that status,
        // OpenAI also refuses a request that is larger than a whole minute's tokens.
        match status {
            413 => true,
            429 => self.has_phrase(&["request too large for"]),
            _ => self.has_phrase(TOO_LONG_PHRASES),
        }
    }

    fn is_unknown_model(&self, status: u16) -> bool {
        match status {
            404 => self.has_phrase(&["model"]),
            0 | 400 | 403 | 422 => self.has_phrase(UNKNOWN_MODEL_PHRASES),
            _ => false,
        }
    }
}

fn message_of(value: &Value) -> Option<String> {
    if let Value::String(text) = value {
        return Some(text.clone());
    }
    ["message", "detail", "error", "msg", "title"].iter().find_map(|key| match value.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Array(faults)) => Some(faults.iter().map(format_fault).collect::<Vec<_>>().join("; ")),
        Some(nested @ Value::Object(_)) => message_of(nested).or_else(|| Some(nested.to_string())),
        _ => None,
    })
}

/// Formats an entry of a validating server's list of faults: place and problem, without the input
/// that it repeats.
fn format_fault(format_fault: &Value) -> String {
    let what = message_of(format_fault).unwrap_or_else(|| format_fault.to_string());
    let place: Vec<String> = json::get_elements(format_fault, "loc")
        .iter()
        .map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned))
        .collect();
    if place.is_empty() { what } else { format!("{}: {what}", place.join(".")) }
}

/// Returns the text of a page, with a blank for each tag; text without tags stays as it is.
fn strip_tags(body: &str) -> String {
    if !body.trim_start().starts_with('<') {
        return body.to_owned();
    }
    let pieces = body.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    pieces.collect::<Vec<_>>().join(" ")
}

/// Returns one line of limited length without invisible characters.
fn to_one_line(message: &str) -> String {
    let seen = strip_invisible(message);
    let words: Vec<&str> = seen.split_whitespace().collect();
    json::truncate_with_ellipsis(&words.join(" "), MAX_PROVIDER_MESSAGE_BYTES)
}

/// Phrases that say that the request or its response exceeds the context, of (in order) OpenAI and
/// compatible servers, Anthropic, Gemini, llama.cpp, Ollama, LM Studio, vLLM, xAI, Moonshot,
/// MiniMax, Zhipu, Together, Groq, GitHub Copilot, Bedrock, Vertex AI, Nova, LM Studio, Cohere,
/// DashScope, TGI.
const TOO_LONG_PHRASES: &[&str] = &[
    "context_length_exceeded",
    "maximum context length",
    "exceeds the context window",
    "exceeded the context window",
    "exceeds context window",
    "context length exceeded",
    "string_above_max_length",
    "prompt is too long",
    "exceed context limit",
    "request_too_large",
    "model_context_window_exceeded",
    "exceeds the maximum number of tokens",
    "exceed_context_size",
    "exceeds the available context size",
    "exceeds the context length",
    "exceeds the maximum context length",
    "greater than the context length",
    "longer than the maximum model length",
    "longer than the model's context length",
    "maximum prompt length",
    "exceeded model token limit",
    "context window exceeds limit",
    "prompt exceeds max length",
    "tokens + `max_new_tokens` must be",
    "reduce the length of the messages",
    "reduce the length of your prompt",
    "prompt token count of",
    "input is too long for",
    "input token count exceeds",
    "but the model only supports up to",
    "number of input tokens exceeds maximum length",
    "when context the overflows",
    "reached context length of",
    "context length is only",
    "tokens in the prompt cannot exceed",
    "range of input length should be",
    "`inputs` must have less than",
];

/// Phrases that say that the model, its template or its server can't call tools, of Ollama,
/// OpenRouter, vLLM, llama.cpp, Gemini, Groq and others.
const NO_TOOLS_PHRASES: &[&str] = &[
    "does not support tool",
    "doesn't support tool",
    "do not support tool",
    "not support tools",
    "endpoints found that support tool use",
    "tool choice requires --enable-auto-tool-choice",
    "tools param requires --jinja",
    "tool calling is not supported",
    "`tool calling` is not supported",
    "tool use is not supported",
    "tools are not supported",
    "`tools` is not supported",
    "tools is not supported",
    "function calling is not enabled",
    "function calling is not supported",
    "function calling is unsupported",
    "does not support function",
    "doesn't support function",
];

/// Phrases that say that the model is unknown, if the status is not 404.
const UNKNOWN_MODEL_PHRASES: &[&str] = &[
    "model_not_found",
    "model not found",
    "model not exist",
    "model does not exist",
    "model doesn't exist",
    "unknown model",
    "invalid model",
    "is not a valid model",
    "unsupported model",
    "no such model",
    "not found for api version",
];

const QUOTA_WORDS: &[&str] = &[
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
];
/// Gemini says "you exceeded your current quota" for a quota per minute too; only the daily quota
/// is used up.
const QUOTA_PHRASES: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "insufficient_quota",
    "requestsperday",
    "tokensperday",
    "used all available credits",
];
const INVALID_KEY_WORDS: &[&str] = &[
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "invalid_authentication",
    "permission_denied",
    "unauthenticated",
    "api_key_invalid",
];
const RATE_LIMIT_WORDS: &[&str] = &[
    "rate_limit_error",
    "rate_limit_exceeded",
    "rate_limit_reached_error",
    "resource_exhausted",
    "too_many_requests",
];
const OVERLOAD_WORDS: &[&str] = &[
    "overloaded_error",
    "overloaded",
    "engine_overloaded_error",
    "engine_overloaded",
    "server_overloaded",
    "server_is_overloaded",
    "slow_down",
    "unavailable",
    "unavailable_error",
    "service_unavailable",
];
/// Words for an error in the request itself, which a retry meets again.
const INVALID_REQUEST_WORDS: &[&str] = &[
    "invalid_request_error",
    "invalid_request",
    "invalid_argument",
    "invalid_prompt",
    "bad_request",
    "badrequesterror",
    "not_found_error",
    "failed_precondition",
    "content_policy_violation",
    "cyber_policy",
    "image_parse_error",
    "invalid_image",
    "invalid_base64_image",
];
