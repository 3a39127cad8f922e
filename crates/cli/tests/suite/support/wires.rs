//! The four wire protocols, seen from the server: replies as streams, requests as what they mean.

use serde_json::{Value, json};

use super::Reply;

/// A protocol, by the word that `--wire` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// The version that the server says it answers with.
const MODEL: &str = "tiny-1";
/// Characters a streamed piece: short, so that every reply comes in several.
const PIECE: usize = 9;
/// Pieces of a very long text, whose characters a piece are as many as it takes.
const MAX_PIECES: usize = 500;

impl Wire {
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Responses, Self::Chat, Self::Gemini];

    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Gemini => "gemini",
        }
    }

    /// Where requests for the model `tiny` go.
    pub fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/messages",
            Self::Responses => "/v1/responses",
            Self::Chat => "/v1/chat/completions",
            Self::Gemini => "/v1beta/models/tiny:streamGenerateContent?alt=sse",
        }
    }

    /// The header that carries the key, and what it holds.
    pub fn key_header(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Anthropic => ("x-api-key", key.to_owned()),
            Self::Responses | Self::Chat => ("authorization", format!("Bearer {key}")),
            Self::Gemini => ("x-goog-api-key", key.to_owned()),
        }
    }

    /// The list of models.
    pub fn models(self, names: &[String]) -> Value {
        match self {
            Self::Gemini => {
                let models: Vec<Value> =
                    names.iter().map(|name| json!({ "name": format!("models/{name}") })).collect();
                json!({ "models": models })
            }
            _ => {
                let models: Vec<Value> =
                    names.iter().map(|name| json!({ "id": name, "object": "model" })).collect();
                json!({ "object": "list", "data": models })
            }
        }
    }

    /// The error of a refused request.
    pub fn error(self, status: u16, kind: &str, message: &str) -> String {
        match self {
            Self::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
            Self::Responses | Self::Chat => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
            }
            Self::Gemini => json!({"error": {"code": status, "message": message, "status": kind}}),
        }
        .to_string()
    }

    /// The events of a reply, each as it goes over the wire. `nth` keeps the ids of calls apart.
    pub fn events(self, reply: &Reply, nth: usize) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic(reply, nth),
            Self::Responses => responses(reply, nth),
            Self::Chat => chat(reply, nth),
            Self::Gemini => gemini(reply, nth),
        }
    }
}

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE.max(characters.len() / MAX_PIECES)).map(|piece| piece.iter().collect()).collect()
}

fn call_id(nth: usize, place: usize) -> String {
    format!("call_{nth}_{place}")
}

/// An event with its name in both places, as Anthropic and OpenAI send it.
fn named(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn anthropic(reply: &Reply, nth: usize) -> Vec<String> {
    let (fresh, cached, output) = reply.usage;
    let mut events = vec![
        named(&json!({"type": "message_start", "message": {
            "id": format!("msg_{nth}"), "type": "message", "role": "assistant", "content": [], "model": MODEL,
            "stop_reason": null,
            "usage": {"input_tokens": fresh, "cache_read_input_tokens": cached, "output_tokens": 1},
        }})),
        named(&json!({"type": "ping"})),
    ];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(named(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        for delta in deltas {
            events.push(named(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        events.push(named(&json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    if !reply.text.is_empty() {
        let deltas = pieces(&reply.text).into_iter().map(|text| json!({"type": "text_delta", "text": text}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (place, (name, arguments)) in reply.calls.iter().enumerate() {
        let deltas = pieces(arguments)
            .into_iter()
            .map(|part| json!({"type": "input_json_delta", "partial_json": part}));
        let start = json!({"type": "tool_use", "id": call_id(nth, place), "name": name, "input": {}});
        block(start, deltas.collect());
    }
    let stop = match (reply.cut_off, reply.calls.is_empty()) {
        (true, _) => "max_tokens",
        (false, false) => "tool_use",
        (false, true) => "end_turn",
    };
    events.push(named(&json!({
        "type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": output},
    })));
    events.push(named(&json!({"type": "message_stop"})));
    events
}

fn responses(reply: &Reply, nth: usize) -> Vec<String> {
    let (fresh, cached, output) = reply.usage;
    let id = format!("resp_{nth}");
    let mut events = vec![named(&json!({
        "type": "response.created", "response": {"id": id, "model": MODEL, "status": "in_progress", "output": []},
    }))];
    let mut index = 0;
    if !reply.text.is_empty() {
        let item = json!({"type": "message", "id": format!("m_{nth}"), "role": "assistant", "content": []});
        events
            .push(named(&json!({"type": "response.output_item.added", "output_index": index, "item": item})));
        for text in pieces(&reply.text) {
            events.push(named(&json!({
                "type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text,
            })));
        }
        let whole = json!({"type": "message", "id": format!("m_{nth}"), "role": "assistant",
            "content": [{"type": "output_text", "text": reply.text}]});
        events
            .push(named(&json!({"type": "response.output_item.done", "output_index": index, "item": whole})));
        index += 1;
    }
    for (place, (name, arguments)) in reply.calls.iter().enumerate() {
        let item = |arguments: &str| {
            json!({"type": "function_call", "id": format!("fc_{nth}_{place}"), "call_id": call_id(nth, place),
                "name": name, "arguments": arguments})
        };
        events.push(named(
            &json!({"type": "response.output_item.added", "output_index": index, "item": item("")}),
        ));
        for part in pieces(arguments) {
            events.push(named(&json!({
                "type": "response.function_call_arguments.delta", "output_index": index, "delta": part,
            })));
        }
        events.push(named(&json!({
            "type": "response.function_call_arguments.done", "output_index": index, "arguments": arguments,
        })));
        events.push(named(
            &json!({"type": "response.output_item.done", "output_index": index, "item": item(arguments)}),
        ));
        index += 1;
    }
    let usage = json!({
        "input_tokens": fresh + cached, "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
    });
    let mut response = json!({"id": id, "model": MODEL, "status": "completed", "usage": usage});
    let mut kind = "response.completed";
    if reply.cut_off {
        kind = "response.incomplete";
        response["status"] = json!("incomplete");
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    events.push(named(&json!({"type": kind, "response": response})));
    events
}

fn chat(reply: &Reply, nth: usize) -> Vec<String> {
    let (fresh, cached, output) = reply.usage;
    let chunk = |delta: Value, finish: Value| {
        data(&json!({
            "id": format!("chatcmpl-{nth}"), "object": "chat.completion.chunk", "model": MODEL,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }))
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    events.extend(pieces(&reply.text).iter().map(|text| chunk(json!({"content": text}), Value::Null)));
    for (place, (name, arguments)) in reply.calls.iter().enumerate() {
        let start = json!({"index": place, "id": call_id(nth, place), "type": "function",
            "function": {"name": name, "arguments": ""}});
        events.push(chunk(json!({"tool_calls": [start]}), Value::Null));
        for part in pieces(arguments) {
            let more = json!({"index": place, "function": {"arguments": part}});
            events.push(chunk(json!({"tool_calls": [more]}), Value::Null));
        }
    }
    let stop = match (reply.cut_off, reply.calls.is_empty()) {
        (true, _) => "length",
        (false, false) => "tool_calls",
        (false, true) => "stop",
    };
    events.push(chunk(json!({}), json!(stop)));
    events.push(data(&json!({
        "id": format!("chatcmpl-{nth}"), "object": "chat.completion.chunk", "model": MODEL, "choices": [],
        "usage": {"prompt_tokens": fresh + cached, "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": cached}},
    })));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn gemini(reply: &Reply, nth: usize) -> Vec<String> {
    let (fresh, cached, output) = reply.usage;
    let chunk = |parts: Vec<Value>| {
        data(&json!({
            "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}], "modelVersion": MODEL,
        }))
    };
    let mut events: Vec<String> =
        pieces(&reply.text).iter().map(|text| chunk(vec![json!({"text": text})])).collect();
    for (place, (name, arguments)) in reply.calls.iter().enumerate() {
        // Gemini sends arguments whole and as JSON: broken ones can't come over this wire.
        let args: Value = serde_json::from_str(arguments).expect("arguments for Gemini are JSON");
        let function = json!({"id": call_id(nth, place), "name": name, "args": args});
        events.push(chunk(vec![json!({ "functionCall": function })]));
    }
    let stop = if reply.cut_off { "MAX_TOKENS" } else { "STOP" };
    events.push(data(&json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": []}, "finishReason": stop}],
        "modelVersion": MODEL,
        "usageMetadata": {"promptTokenCount": fresh + cached, "cachedContentTokenCount": cached,
            "candidatesTokenCount": output},
    })));
    events
}

/// What a request's conversation holds after the model's own last words: the task, tool results,
/// feedback.
pub fn newest(body: &Value) -> String {
    let list = ["messages", "input", "contents"].iter().find_map(|key| body[*key].as_array());
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let begin = list.iter().rposition(is_the_models).map_or(0, |place| place + 1);
    let mut texts = Vec::new();
    list[begin..].iter().for_each(|item| strings(item, &mut texts));
    texts.join("\n")
}

fn is_the_models(item: &Value) -> bool {
    matches!(item["role"].as_str(), Some("assistant" | "model"))
        || matches!(item["type"].as_str(), Some("function_call" | "reasoning"))
}

/// The names of the tools that a request offers, in order.
pub fn tools(body: &Value) -> Vec<String> {
    let listed = body["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    listed
        .iter()
        .flat_map(|tool| match tool["functionDeclarations"].as_array() {
            Some(declared) => declared.iter().filter_map(name).collect::<Vec<_>>(),
            None => name(tool).or_else(|| name(&tool["function"])).into_iter().collect(),
        })
        .collect()
}

/// Every text within a value.
fn strings(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, texts)),
        Value::Object(members) => members.values().for_each(|member| strings(member, texts)),
        _ => {}
    }
}
