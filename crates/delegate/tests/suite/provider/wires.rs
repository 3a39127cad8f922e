//! The four wire protocols, as far as the CLIs read them.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use super::tools::{Call, Input};

/// The answer to a request without tools. Gemini asks for this object to choose a model; for the
/// others it is a title.
pub(crate) const SIDE_ANSWER: &str =
    r#"{"reasoning":"plain","model_choice":"flash","complexity_reasoning":"plain","complexity_score":1}"#;

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

impl Wire {
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        match path.rsplit('/').next().unwrap_or_default() {
            "messages" => Some(Self::Anthropic),
            "completions" => Some(Self::Chat),
            "responses" => Some(Self::Responses),
            method if method.ends_with("enerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    pub(crate) fn is_streamed(self, path: &str, body: &Value) -> bool {
        match self {
            Self::Gemini => path.contains("stream"),
            _ => body["stream"] == true,
        }
    }

    /// Sends the head and the beginning of a text.
    pub(crate) fn begin(self, socket: &mut TcpStream, text: &str) -> Option<()> {
        let mut events = self.events(text, &[]);
        // What ends the message stays away.
        events.truncate(match self {
            Self::Anthropic => 3,
            Self::Chat | Self::Gemini => 1,
            Self::Responses => 4,
        });
        if self == Self::Gemini {
            events[0].1["candidates"][0].as_object_mut().unwrap().remove("finishReason");
        }
        send_events(socket, &events)
    }

    /// Sends a whole message.
    pub(crate) fn answer(
        self,
        socket: &mut TcpStream,
        streamed: bool,
        text: &str,
        calls: &[Call],
    ) -> Option<()> {
        if !streamed {
            return super::send(socket, 200, &self.whole(text));
        }
        send_events(socket, &self.events(text, calls))?;
        if self == Self::Chat {
            send_chunk(socket, "data: [DONE]\n\n")?;
        }
        socket.write_all(b"0\r\n\r\n").ok()
    }

    /// The message in one piece.
    fn whole(self, text: &str) -> Value {
        match self {
            Self::Anthropic => json!({
                "id": "msg", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                "content": [{ "type": "text", "text": text }],
                "usage": { "input_tokens": 5, "output_tokens": 2 },
            }),
            Self::Chat => json!({
                "id": "c", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{
                    "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": text },
                }],
                "usage": { "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 },
            }),
            Self::Responses => response("completed", &[message_item(text)]),
            Self::Gemini => {
                let mut event = gemini_event(&[json!({ "text": text })]);
                event.as_object_mut().unwrap().remove("usageMetadata");
                event
            }
        }
    }

    fn events(self, text: &str, calls: &[Call]) -> Vec<(&'static str, Value)> {
        match self {
            Self::Anthropic => anthropic_events(text, calls),
            Self::Chat => chat_events(text, calls),
            Self::Responses => responses_events(text, calls),
            Self::Gemini => {
                let mut parts = vec![json!({ "text": text })];
                for call in calls {
                    parts.push(json!({ "functionCall": { "name": call.name, "args": fields(call) } }));
                }
                vec![("", gemini_event(&parts))]
            }
        }
    }
}

/// The body of an error with a status, which all clients understand.
pub(crate) fn refusal(status: u16) -> Value {
    let (kind, words) = match status {
        401 => ("authentication_error", "Incorrect API key provided"),
        _ => ("overloaded_error", "come back later"),
    };
    json!({ "type": "error", "error": { "type": kind, "message": words, "code": status } })
}

fn send_events(socket: &mut TcpStream, events: &[(&str, Value)]) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).ok()?;
    for (name, data) in events {
        let event = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
        send_chunk(socket, &format!("{event}data: {data}\n\n"))?;
    }
    Some(())
}

fn send_chunk(socket: &mut TcpStream, text: &str) -> Option<()> {
    socket.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).ok()
}

fn fields(call: &Call) -> Value {
    match &call.input {
        Input::Fields(fields) => fields.clone(),
        Input::Text(text) => json!(text),
    }
}

fn gemini_event(parts: &[Value]) -> Value {
    json!({
        "candidates": [{
            "content": { "role": "model", "parts": parts }, "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 110, "cachedContentTokenCount": 10, "candidatesTokenCount": 20,
            "totalTokenCount": 130,
        },
        "modelVersion": "m",
    })
}

fn anthropic_events(text: &str, calls: &[Call]) -> Vec<(&'static str, Value)> {
    let mut events = vec![(
        "message_start",
        json!({ "message": {
            "id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 100, "cache_read_input_tokens": 10, "output_tokens": 1 },
        } }),
    )];
    let mut block = |index: usize, start: Value, delta: Value| {
        events.push(("content_block_start", json!({ "index": index, "content_block": start })));
        events.push(("content_block_delta", json!({ "index": index, "delta": delta })));
        events.push(("content_block_stop", json!({ "index": index })));
    };
    block(0, json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }));
    for (at, call) in calls.iter().enumerate() {
        let id = format!("toolu_{}_{at}", next_number());
        block(
            at + 1,
            json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": fields(call).to_string() }),
        );
    }
    let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
    events.push((
        "message_delta",
        json!({ "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 20 } }),
    ));
    events.push(("message_stop", json!({})));
    for (name, data) in &mut events {
        data["type"] = json!(name);
    }
    events
}

fn chat_events(text: &str, calls: &[Call]) -> Vec<(&'static str, Value)> {
    let delta = |delta: Value, reason: Option<&str>| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
    let mut data = vec![delta(json!({ "role": "assistant", "content": text }), None)];
    for (at, call) in calls.iter().enumerate() {
        let function = json!({ "name": call.name, "arguments": fields(call).to_string() });
        let id = format!("call_{}_{at}", next_number());
        let call = json!({ "index": at, "id": id, "type": "function", "function": function });
        data.push(delta(json!({ "tool_calls": [call] }), None));
    }
    data.push(delta(json!({}), Some(if calls.is_empty() { "stop" } else { "tool_calls" })));
    data.push(json!({
        "choices": [],
        "usage": {
            "prompt_tokens": 110, "prompt_tokens_details": { "cached_tokens": 10 }, "completion_tokens": 20,
            "total_tokens": 130,
        },
    }));
    for event in &mut data {
        event["id"] = json!("c");
        event["object"] = json!("chat.completion.chunk");
        event["created"] = json!(1);
        event["model"] = json!("m");
    }
    data.into_iter().map(|event| ("", event)).collect()
}

fn message_item(text: &str) -> Value {
    json!({
        "type": "message", "id": "msg", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
    })
}

fn response(status: &str, output: &[Value]) -> Value {
    json!({
        "id": "resp", "object": "response", "created_at": 1, "model": "m", "status": status, "output": output,
        "usage": {
            "input_tokens": 110, "input_tokens_details": { "cached_tokens": 10 }, "output_tokens": 20,
            "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 130,
        },
    })
}

fn responses_events(text: &str, calls: &[Call]) -> Vec<(&'static str, Value)> {
    let mut items = vec![message_item(text)];
    for (at, call) in calls.iter().enumerate() {
        let id = format!("{}_{at}", next_number());
        let call_id = format!("call_{id}");
        items.push(match &call.input {
            Input::Fields(fields) => json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": call_id, "name": call.name,
                "arguments": fields.to_string(), "status": "completed",
            }),
            Input::Text(text) => json!({
                "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": call_id, "name": call.name,
                "input": text, "status": "completed",
            }),
        });
    }
    let mut events = vec![("response.created", json!({ "response": response("in_progress", &[]) }))];
    for (at, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        if at == 0 {
            begun["content"] = json!([]);
        }
        events.push(("response.output_item.added", json!({ "output_index": at, "item": begun })));
        if at == 0 {
            let part = json!({ "type": "output_text", "text": "", "annotations": [] });
            let of = |mut event: Value| {
                event["item_id"] = json!("msg");
                event["output_index"] = json!(0);
                event["content_index"] = json!(0);
                event
            };
            events.push(("response.content_part.added", of(json!({ "part": part }))));
            events.push(("response.output_text.delta", of(json!({ "delta": text }))));
            events.push(("response.output_text.done", of(json!({ "text": text }))));
        }
        events.push(("response.output_item.done", json!({ "output_index": at, "item": item })));
    }
    events.push(("response.completed", json!({ "response": response("completed", &items) })));
    for (number, (name, data)) in events.iter_mut().enumerate() {
        data["type"] = json!(name);
        data["sequence_number"] = json!(number);
    }
    events
}

/// Ids of calls differ between requests, as a provider's do.
fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
