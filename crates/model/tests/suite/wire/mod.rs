//! Tests of the wire protocols: streams decoded, requests encoded, and both held against the rules
//! of their providers. They live here for their length and are part of the library's own tests for
//! their reach.

mod anthropic;
mod chat;
mod chat_calls;
mod failures;
mod gemini;
mod names;
mod properties;
mod responses;
mod schema;
mod shape;

use std::collections::VecDeque;

use journeyman_protocol::{
    Block, CallId, ImageData, Message, ResultPart, Role, StopReason, Tokens, ToolSpec, ToolUse, Usage,
};
use serde_json::{Value, json};

use super::codec;
use crate::sse::SseParser;
use crate::{Delta, ModelError, ModelRequest, Reply, SystemPart, Wire};

/// What a whole stream gives.
type Outcome = Result<(Vec<Delta>, Reply), ModelError>;

/// Reads a stream that comes in these pieces, as the transport does.
fn read<'a>(wire: Wire, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = codec(wire, "http://localhost").decoder();
    let mut parser = SseParser::new();
    let mut events = VecDeque::new();
    let mut deltas = Vec::new();
    for piece in pieces {
        parser.push(piece, &mut events).unwrap();
        while let Some(event) = events.pop_front() {
            deltas.extend(decoder.handle_event(&event)?);
        }
    }
    parser.finish(&mut events).unwrap();
    while let Some(event) = events.pop_front() {
        deltas.extend(decoder.handle_event(&event)?);
    }
    if !decoder.is_complete() {
        assert!(decoder.finish().is_err(), "an incomplete answer has no reply");
        return Err(ModelError::EndedEarly { url: String::new(), reason: String::new() });
    }
    deltas.extend(decoder.end_blocks()?);
    decoder.finish().map(|reply| (deltas, reply))
}

/// As [`decode`], also split in two at every byte.
fn decode_split_everywhere(wire: Wire, stream: &str) -> Outcome {
    let bytes = stream.as_bytes();
    let whole = decode(wire, stream);
    for at in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(read(wire, [head, tail]), whole, "split at byte {at}");
    }
    whole
}

/// Reads a stream whole, and sees that it gives the same byte by byte and however its lines end.
fn decode(wire: Wire, stream: &str) -> Outcome {
    let bytes = stream.as_bytes();
    let whole = read(wire, [bytes]);
    assert_eq!(read(wire, bytes.chunks(1)), whole, "byte by byte");
    let carriage_returns = stream.replace('\n', "\r\n");
    assert_eq!(read(wire, [carriage_returns.as_bytes()]), whole, "with CRLF");
    let commented = stream.replace("\n\n", "\n\n: keep-alive\n\n");
    assert_eq!(read(wire, [commented.as_bytes()]), whole, "with comments");
    // The deltas tell the same as the reply.
    if let Ok((deltas, reply)) = &whole {
        check_deltas(deltas, reply);
    }
    whole
}

/// The reply alone.
fn reply(wire: Wire, stream: &str) -> Reply {
    decode(wire, stream).unwrap().1
}

fn check_deltas(deltas: &[Delta], reply: &Reply) {
    assert_eq!(deltas.first(), Some(&Delta::MessageStart));
    let mut seen = 0;
    for (place, block) in reply.message.content.iter().enumerate() {
        let place = u32::try_from(place).unwrap();
        let (mut text, mut arguments, mut started, mut ended) = (String::new(), String::new(), None, 0);
        for delta in deltas {
            match delta {
                Delta::Text { block, text: more } | Delta::Thinking { block, text: more }
                    if *block == place =>
                {
                    text.push_str(more);
                }
                Delta::CallStart { block, id, name } if *block == place => started = Some((id, name)),
                Delta::CallArguments { block, fragment } if *block == place => arguments.push_str(fragment),
                Delta::BlockEnd { block } if *block == place => ended += 1,
                _ => continue,
            }
            seen += 1;
        }
        assert_eq!(ended, 1, "block {place} ends once");
        match block {
            Block::Text { text: whole } | Block::Thinking { text: whole, .. } => assert_eq!(&text, whole),
            Block::ToolUse(call) => {
                assert_eq!(started, Some((&call.id, &call.name)));
                match &call.input {
                    Value::String(raw) => assert_eq!(&arguments, raw),
                    Value::Object(members) if members.is_empty() => {
                        assert!(["", "{}", "null"].contains(&arguments.as_str()))
                    }
                    input => assert_eq!(&serde_json::from_str::<Value>(&arguments).unwrap(), input),
                }
            }
            other => panic!("a reply holds {other:?}"),
        }
    }
    assert_eq!(seen + 1, deltas.len(), "no delta is of a block that isn't there");
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse(ToolUse {
        id: CallId::new(id),
        name: name.to_owned(),
        input,
        malformed: None,
        signature: None,
    })
}

fn thinking(text: &str, signature: Option<&str>) -> Block {
    Block::Thinking { text: text.to_owned(), signature: signature.map(str::to_owned) }
}

fn assistant(content: Vec<Block>) -> Message {
    Message { role: Role::Assistant, content }
}

fn user(content: Vec<Block>) -> Message {
    Message { role: Role::User, content }
}

fn usage(input: u64, cache_read: u64, cache_write: u64, output: u64, thinking: u64) -> Usage {
    Usage {
        input: Tokens(input),
        cache_read: Tokens(cache_read),
        cache_write: Tokens(cache_write),
        output: Tokens(output),
        thinking: Tokens(thinking),
        ..Usage::default()
    }
}

fn image() -> ImageData {
    ImageData { media_type: "image/png".to_owned(), data: "aVBORw==".to_owned() }
}

fn result_with_image(id: &str, text: &str) -> Block {
    Block::ToolResult {
        id: CallId::new(id),
        content: vec![ResultPart::Text { text: text.to_owned() }, ResultPart::Image(image())],
        is_error: false,
    }
}

fn read_file_spec() -> ToolSpec {
    ToolSpec {
        name: "read_file".to_owned(),
        description: "Reads a file.".to_owned(),
        input_schema: json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file."},
                "limit": {"type": ["integer", "null"], "minimum": 1, "default": null},
            },
            "required": ["path"],
            "additionalProperties": false,
        }),
    }
}

/// A conversation with everything in it: images from a person and a tool, two calls at once with
/// results in the wrong order, an error, arguments that aren't JSON, empty blocks, thinking of
/// another provider.
fn rich_request(model: &str) -> ModelRequest {
    let malformed = Block::ToolUse(ToolUse {
        id: CallId::new("call_3"),
        name: "read_file".to_owned(),
        input: Value::String("{\"path\": ".to_owned()),
        malformed: Some("the arguments are not valid JSON".to_owned()),
        signature: None,
    });
    ModelRequest {
        model: model.to_owned(),
        system: vec![
            SystemPart::cached("You are a journeyman."),
            SystemPart { text: "Today is a day.".to_owned(), cache: false },
            SystemPart::default(),
        ],
        messages: vec![
            user(vec![Block::text("What is in this image?"), Block::Image(image())]),
            Message::user_text("And in the files?"),
            assistant(vec![
                thinking("of some other provider", Some("elsewhere:c2ln")),
                Block::text("I'll look."),
                Block::text(" \n"),
                call("call_1", "read_file", json!({"path": "a.rs", "limit": 5})),
                call("call_2", "read_file", json!({})),
            ]),
            user(vec![
                Block::text("Go on."),
                Block::result(CallId::new("call_2"), "no path given", true),
                result_with_image("call_1", "fn a() {}"),
            ]),
            assistant(vec![Block::text("")]),
            Message::user_text("Still there?"),
            assistant(vec![malformed]),
            user(vec![Block::ToolResult { id: CallId::new("call_3"), content: Vec::new(), is_error: false }]),
        ],
        tools: [
            read_file_spec(),
            ToolSpec {
                name: "list".to_owned(),
                description: "Lists.".to_owned(),
                input_schema: json!({"type": "object", "properties": {}}),
            },
        ]
        .into(),
        ..ModelRequest::default()
    }
}

/// The body of an encoded request.
fn encode(wire: Wire, base: &str, request: &ModelRequest) -> Value {
    codec(wire, base).encode(request).unwrap().body
}

/// The conversation that goes on after a reply: each of its calls answered.
fn go_on(mut request: ModelRequest, reply: &Reply) -> ModelRequest {
    request.messages.push(reply.message.clone());
    let results: Vec<Block> =
        reply.message.tool_uses().map(|call| Block::result(call.id.clone(), "done", false)).collect();
    request.messages.push(if results.is_empty() { Message::user_text("And now?") } else { user(results) });
    request
}

/// The elements of an array that must be one.
fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not an array: {value}"))
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}

/// Each prefix of a conversation that ends with a user's turn, encoded: the messages of the shorter
/// one must be the first of the longer one, byte for byte, but for what moves by design.
fn assert_stable_prefix(wire: Wire, base: &str, request: &ModelRequest, messages: &str, moving: &str) {
    let mut shorter: Option<Vec<String>> = None;
    for end in 1..=request.messages.len() {
        let ends_turn = request.messages[end - 1].role == Role::User
            && request.messages.get(end).is_none_or(|next| next.role == Role::Assistant);
        if !ends_turn {
            continue;
        }
        let part = ModelRequest { messages: request.messages[..end].to_vec(), ..request.clone() };
        let mut body = encode(wire, base, &part);
        assert_eq!(body, encode(wire, base, &part), "equal requests give equal bodies");
        let mut turns = list(&body[messages]).to_vec();
        remove(&mut turns, moving);
        let turns: Vec<String> = turns.iter().map(Value::to_string).collect();
        if let Some(shorter) = &shorter {
            // An assistant turn that says nothing is left out, and the turns around it become one.
            let whole = shorter.len() - usize::from(turns.get(shorter.len() - 1) != shorter.last());
            assert!(turns.starts_with(&shorter[..whole]), "{turns:#?}\n{shorter:#?}");
        }
        shorter = Some(turns);
        body.as_object_mut().unwrap().shift_remove(messages);
        let text = encode(wire, base, &part).to_string();
        assert!(text.starts_with(&body.to_string()[..body.to_string().len() - 1]), "the messages come last");
    }
}

fn remove(values: &mut [Value], key: &str) {
    for value in values {
        match value {
            Value::Object(members) => {
                members.shift_remove(key);
                for member in members.values_mut() {
                    remove(std::slice::from_mut(member), key);
                }
            }
            Value::Array(inner) => remove(inner, key),
            _ => {}
        }
    }
}
