//! A model on the loopback that streams a long reply of many small tokens, over the four wire
//! protocols.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

/// Tokens of the long reply; a token is four letters.
pub(super) const TOKENS: usize = 10_000;
/// Time between two tokens: 200 a second.
pub(super) const TOKEN_INTERVAL: Duration = Duration::from_millis(5);
/// The words that ask for the long reply; other requests get a short one.
pub(super) const LONG_REQUEST: &str = "say much";
/// The answer to any other request: an object, because one program asks for that beside.
const SHORT_REPLY: &str = r#"{"title":"bench","isNewTopic":false,"model_choice":"flash","reasoning":"plain","complexity_reasoning":"plain","complexity_score":1}"#;

/// The model, and how far its long replies are.
pub(super) struct Model {
    pub(super) port: u16,
    /// Tokens of long replies that were sent.
    sent: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wire {
    Messages,
    Chat,
    Responses,
    Gemini,
}

impl Model {
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                // A client that goes away ends its own reply alone.
                std::thread::spawn(move || serve(stream, &counter).ok());
            }
        });
        Ok(Self { port, sent })
    }

    /// Returns the tokens of long replies that were sent since the last look.
    pub(super) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn forget(&self) {
        self.sent.store(0, Ordering::Relaxed);
    }
}

fn serve(mut stream: TcpStream, sent: &AtomicUsize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some((path, body)) = read_request(&mut reader)? {
        let plain_path = path.split('?').next().unwrap_or_default();
        let wire = match plain_path.rsplit('/').next().unwrap_or_default() {
            "messages" => Wire::Messages,
            "completions" => Wire::Chat,
            "responses" => Wire::Responses,
            method if method.ends_with("enerateContent") => Wire::Gemini,
            _ => {
                // Whatever else is asked, such as for lists of models, isn't there.
                let nothing =
                    "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
                stream.write_all(nothing.as_bytes())?;
                continue;
            }
        };
        let is_streamed = match wire {
            Wire::Gemini => plain_path.contains("stream"),
            _ => body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        };
        let has_tools = body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
        let is_long = is_streamed && has_tools && newest_message(&body).contains(LONG_REQUEST);
        match (is_streamed, is_long) {
            (true, true) => stream_reply(&mut stream, wire, (0..TOKENS).map(word), TOKEN_INTERVAL, sent)?,
            (true, false) => {
                let none = AtomicUsize::new(0);
                let words = std::iter::once(SHORT_REPLY.to_owned());
                stream_reply(&mut stream, wire, words, Duration::ZERO, &none)?;
            }
            (false, _) => {
                let body = whole_reply(wire).to_string();
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )?;
            }
        }
    }
    Ok(())
}

/// Reads one request: its path and its body; `None` at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<(String, Value)>> {
    let (mut path, mut length, mut is_chunked) = (String::new(), 0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if path.is_empty() {
            path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        is_chunked |= lower.starts_with("transfer-encoding:") && lower.contains("chunked");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    while is_chunked {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or_default();
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk)?;
        chunk.truncate(size);
        is_chunked = size > 0;
        body.extend(chunk);
    }
    Ok(Some((path, serde_json::from_slice(&body).unwrap_or_default())))
}

/// Returns the text of the newest message of a request.
fn newest_message(body: &Value) -> String {
    let list = ["messages", "input", "contents"].iter().find_map(|name| body.get(*name)?.as_array());
    let list = list.map(Vec::as_slice).unwrap_or_default();
    // The newest of a person: some programs add messages of their own behind.
    let is_user = |message: &&Value| message.get("role").is_some_and(|role| role == "user");
    list.iter().rev().filter(is_user).take(2).map(ToString::to_string).collect()
}

fn stream_reply(
    stream: &mut TcpStream,
    wire: Wire,
    words: impl Iterator<Item = String>,
    interval: Duration,
    sent: &AtomicUsize,
) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )?;
    let mut send = |name: &str, data: &Value| {
        let event = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
        let event = format!("{event}data: {data}\n\n");
        write!(stream, "{:x}\r\n{event}\r\n", event.len())
    };
    for (name, data) in wire.head() {
        send(name, &data)?;
    }
    let mut whole = String::new();
    for word in words {
        let (name, data) = wire.piece(&word);
        send(name, &data)?;
        whole.push_str(&word);
        sent.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(interval);
    }
    for (name, data) in wire.tail(&whole) {
        send(name, &data)?;
    }
    if wire == Wire::Chat {
        let done = "data: [DONE]\n\n";
        write!(stream, "{:x}\r\n{done}\r\n", done.len())?;
    }
    write!(stream, "0\r\n\r\n")
}

fn chat_chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({ "id": "b", "object": "chat.completion.chunk", "created": 1, "model": "bench",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

fn gemini_piece(text: &str, finish: Option<&str>) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": [{ "text": text }] }, "index": 0 });
    if let (Some(finish), Some(fields)) = (finish, candidate.as_object_mut()) {
        fields.insert("finishReason".to_owned(), finish.into());
    }
    json!({ "candidates": [candidate], "modelVersion": "bench",
        "usageMetadata": { "promptTokenCount": 1000, "candidatesTokenCount": TOKENS, "totalTokenCount": TOKENS + 1000 } })
}

fn response(status: &str, output: &[Value]) -> Value {
    json!({ "id": "r", "object": "response", "created_at": 1, "model": "bench", "status": status, "output": output,
        "usage": { "input_tokens": 1000, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": TOKENS,
            "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": TOKENS + 1000 } })
}

fn item(status: &str, content: &Value) -> Value {
    json!({ "type": "message", "id": "m", "role": "assistant", "status": status, "content": content })
}

impl Wire {
    fn head(self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Messages => vec![
                (
                    "message_start",
                    json!({ "type": "message_start", "message": { "id": "m", "type": "message",
                    "role": "assistant", "model": "bench", "content": [], "stop_reason": null, "stop_sequence": null,
                    "usage": { "input_tokens": 1000, "output_tokens": 1 } } }),
                ),
                (
                    "content_block_start",
                    json!({ "type": "content_block_start", "index": 0,
                    "content_block": { "type": "text", "text": "" } }),
                ),
            ],
            Self::Chat => vec![("", chat_chunk(&json!({ "role": "assistant", "content": "" }), None))],
            Self::Responses => vec![
                (
                    "response.created",
                    json!({ "type": "response.created", "response": response("in_progress", &[]) }),
                ),
                (
                    "response.output_item.added",
                    json!({ "type": "response.output_item.added", "output_index": 0,
                    "item": item("in_progress", &json!([])) }),
                ),
                (
                    "response.content_part.added",
                    json!({ "type": "response.content_part.added", "item_id": "m",
                    "output_index": 0, "content_index": 0,
                    "part": { "type": "output_text", "text": "", "annotations": [] } }),
                ),
            ],
            Self::Gemini => Vec::new(),
        }
    }

    fn piece(self, word: &str) -> (&'static str, Value) {
        match self {
            Self::Messages => (
                "content_block_delta",
                json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "text_delta", "text": word } }),
            ),
            Self::Chat => ("", chat_chunk(&json!({ "content": word }), None)),
            Self::Responses => (
                "response.output_text.delta",
                json!({ "type": "response.output_text.delta",
                "item_id": "m", "output_index": 0, "content_index": 0, "delta": word }),
            ),
            Self::Gemini => ("", gemini_piece(word, None)),
        }
    }

    fn tail(self, whole: &str) -> Vec<(&'static str, Value)> {
        let content = json!([{ "type": "output_text", "text": whole, "annotations": [] }]);
        match self {
            Self::Messages => vec![
                ("content_block_stop", json!({ "type": "content_block_stop", "index": 0 })),
                (
                    "message_delta",
                    json!({ "type": "message_delta",
                    "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                    "usage": { "output_tokens": TOKENS } }),
                ),
                ("message_stop", json!({ "type": "message_stop" })),
            ],
            Self::Chat => vec![
                ("", chat_chunk(&json!({}), Some("stop"))),
                (
                    "",
                    json!({ "id": "b", "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": TOKENS,
                    "total_tokens": TOKENS + 1000 } }),
                ),
            ],
            Self::Responses => vec![
                (
                    "response.output_text.done",
                    json!({ "type": "response.output_text.done", "item_id": "m",
                    "output_index": 0, "content_index": 0, "text": whole }),
                ),
                (
                    "response.output_item.done",
                    json!({ "type": "response.output_item.done", "output_index": 0,
                    "item": item("completed", &content) }),
                ),
                (
                    "response.completed",
                    json!({ "type": "response.completed",
                    "response": response("completed", &[item("completed", &content)]) }),
                ),
            ],
            Self::Gemini => vec![("", gemini_piece("", Some("STOP")))],
        }
    }
}

fn whole_reply(wire: Wire) -> Value {
    match wire {
        Wire::Messages => json!({ "id": "m", "type": "message", "role": "assistant", "model": "bench",
            "stop_reason": "end_turn", "stop_sequence": null, "content": [{ "type": "text", "text": SHORT_REPLY }],
            "usage": { "input_tokens": 5, "output_tokens": 2 } }),
        Wire::Chat => json!({ "id": "b", "object": "chat.completion", "created": 1, "model": "bench",
            "choices": [{ "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": SHORT_REPLY } }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 } }),
        Wire::Responses => {
            let content = json!([{ "type": "output_text", "text": SHORT_REPLY, "annotations": [] }]);
            response("completed", &[item("completed", &content)])
        }
        Wire::Gemini => gemini_piece(SHORT_REPLY, Some("STOP")),
    }
}

/// A token of four letters, another one each time; some end a paragraph. None has a letter that is
/// typed.
pub(super) fn word(token: usize) -> String {
    // The constants of a well-known generator: the words only have to look like no repetition.
    let noise = (token as u32).wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let letter = |shift: u32| char::from(b'a' + u8::try_from((noise >> shift) % 23).unwrap_or(0));
    let end = if token % 60 == 59 { "\n\n" } else { " " };
    format!("{}{}{}{end}", letter(8), letter(14), letter(20))
}
