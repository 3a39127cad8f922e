//! Each of the four clients against a server that speaks its wire format and sends it in awkward
//! pieces.

use crate::loopback;

use journeyman_model::{Delta, HttpModel, ModelError, Reply, Wire, connect};
use journeyman_protocol::{Block, CallId, Message, Role, StopReason, Tokens, ToolUse, Usage};
use loopback::{Act, KEY, Server, chunk, drain, drain_request, end, reply, request, restarts, stream_head};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A short answer with thinking and one call, how its request looks, and what it says.
struct Case {
    wire: Wire,
    stream: &'static str,
    line: &'static str,
    header: (&'static str, String),
    /// Where in the body the conversation is.
    messages: &'static str,
    /// An event that breaks the answer off.
    overloaded: &'static str,
}

fn cases() -> [Case; 4] {
    let bearer = format!("Bearer {KEY}");
    [
        Case {
            wire: Wire::Anthropic,
            stream: include_str!("wire/streams/anthropic.txt"),
            line: "POST /v1/messages HTTP/1.1",
            header: ("x-api-key", KEY.to_owned()),
            messages: "messages",
            overloaded: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
        },
        Case {
            wire: Wire::Responses,
            stream: include_str!("wire/streams/responses.txt"),
            line: "POST /v1/responses HTTP/1.1",
            header: ("authorization", bearer.clone()),
            messages: "input",
            overloaded: "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"busy\"}\n\n",
        },
        Case {
            wire: Wire::Chat,
            stream: include_str!("wire/streams/chat.txt"),
            line: "POST /v1/chat/completions HTTP/1.1",
            header: ("authorization", bearer),
            messages: "messages",
            overloaded: "data: {\"error\":{\"code\":503,\"message\":\"busy\"}}\n\n",
        },
        Case {
            wire: Wire::Gemini,
            stream: include_str!("wire/streams/gemini.txt"),
            line: "POST /v1beta/models/tiny:streamGenerateContent?alt=sse HTTP/1.1",
            header: ("x-goog-api-key", KEY.to_owned()),
            messages: "contents",
            overloaded: "data: {\"error\":{\"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}\n\n",
        },
    ]
}

impl Case {
    fn model(&self, server: &Server) -> HttpModel {
        let mut endpoint = server.endpoint();
        endpoint.wire = self.wire;
        connect(endpoint, "tiny").unwrap()
    }

    /// What the streams all say, with each provider's own ids and proofs taken out.
    fn check(&self, mut reply: Reply) {
        for block in &mut reply.message.content {
            match block {
                Block::Thinking { signature, .. } => *signature = None,
                Block::ToolUse(call) => {
                    assert!(!call.id.as_str().is_empty());
                    call.id = CallId::new("id");
                    call.signature = None;
                }
                _ => {}
            }
        }
        reply.usage.thinking = Tokens(0);
        let call = ToolUse {
            id: CallId::new("id"),
            name: "list".to_owned(),
            input: json!({"under": "日本"}),
            malformed: None,
            signature: None,
        };
        let thinking = Block::Thinking { text: "Überlegt…".to_owned(), signature: None };
        let expected = Reply {
            message: Message { role: Role::Assistant, content: vec![thinking, Block::ToolUse(call)] },
            stop: StopReason::ToolUse,
            usage: Usage { input: Tokens(9), output: Tokens(20), ..Usage::default() },
            model: reply.model.clone(),
        };
        assert!(!reply.model.is_empty());
        assert_eq!(reply, expected, "{}", self.wire);
    }
}

/// A chunked answer of these pieces. It goes out in one write, because a write for each would wait
/// for the other side's acknowledgement; the client still gets it chunk by chunk.
fn pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Act> {
    let chunks = pieces.into_iter().filter(|piece| !piece.is_empty()).map(chunk);
    let acts = [stream_head()].into_iter().chain(chunks).chain([end()]);
    let bytes = acts.flat_map(|act| if let Act::Send(bytes) = act { bytes } else { Vec::new() }).collect();
    vec![Act::Send(bytes)]
}

/// The stream with CRLF, comments between and within events, and events that mean nothing.
fn dressed(stream: &str) -> String {
    stream
        .replace("\n\n", "\n\n: keep-alive\n\n:\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n")
        .replace("data: {", ": a comment\nid: 7\nretry: 10\ndata:{")
        .replace('\n', "\r\n")
}

#[tokio::test]
async fn byte_by_byte() {
    for case in cases() {
        for stream in [case.stream.to_owned(), dressed(case.stream)] {
            let server = Server::start(vec![pieces(stream.as_bytes().chunks(1))]).await;
            case.check(reply(&case.model(&server)).await);
        }
    }
}

#[tokio::test]
async fn cut_in_two_where_it_hurts() {
    for case in cases() {
        let stream = dressed(case.stream);
        let bytes = stream.as_bytes();
        // Inside each character of several bytes, around each line's end, and now and then
        // elsewhere.
        let hurts = |at: &usize| {
            !stream.is_char_boundary(*at)
                || bytes[*at] == b'\n'
                || bytes[*at] == b'\r'
                || at.is_multiple_of(61)
        };
        let cuts: Vec<usize> = (1..bytes.len()).filter(hurts).collect();
        let scripts = cuts.iter().map(|at| pieces([&bytes[..*at], &bytes[*at..]])).collect();
        let server = Server::start(scripts).await;
        let model = case.model(&server);
        for _ in &cuts {
            case.check(reply(&model).await);
        }
        assert_eq!(server.seen().len(), cuts.len(), "each answer came at the first attempt");
    }
}

#[tokio::test]
async fn the_request_is_the_provider_s_and_the_next_one_begins_like_it() {
    for case in cases() {
        let server = Server::start(vec![pieces([case.stream.as_bytes()])]).await;
        let model = case.model(&server);
        let mut request = request();
        for _ in 0..2 {
            let (mut deltas, error) = drain_request(&model, &request, CancellationToken::new()).await;
            let Some(Delta::Done(reply)) = deltas.pop() else { panic!("no reply: {error:?}") };
            let id = reply.message.tool_uses().next().unwrap().id.clone();
            request.messages.push(reply.message);
            request
                .messages
                .push(Message { role: Role::User, content: vec![Block::result(id, "a.rs", false)] });
        }
        let seen = server.seen();
        for request in &seen {
            assert_eq!(request.line, case.line);
            assert_eq!(request.header(case.header.0), Some(case.header.1.as_str()), "{}", case.wire);
        }
        let turns = |place: usize| -> Vec<Value> {
            let mut turns = seen[place].body[case.messages].as_array().unwrap().clone();
            // The cache marker moves on by design.
            if let Some(marked) = turns[0]["content"].get_mut(0).and_then(Value::as_object_mut) {
                marked.shift_remove("cache_control");
            }
            turns
        };
        assert!(turns(1).len() > turns(0).len() && turns(1).starts_with(&turns(0)), "{}", case.wire);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_begun_anew_and_counts_for_nothing() {
    for case in cases() {
        let cut = case.stream.match_indices("\n\n").nth(1).unwrap().0 + 2;
        let (begun, rest) = case.stream.split_at(cut);
        let broken = pieces([begun.as_bytes(), case.overloaded.as_bytes()]);
        let closed = pieces([begun.as_bytes(), &rest.as_bytes()[..7]]);
        let server = Server::start(vec![broken, closed, pieces([case.stream.as_bytes()])]).await;
        let (mut deltas, error) = drain(&case.model(&server)).await;
        let Some(Delta::Done(reply)) = deltas.pop() else { panic!("no reply: {error:?}") };
        case.check(*reply);
        let restarts = restarts(&deltas);
        assert_eq!(restarts.len(), 2, "{}: {restarts:?}", case.wire);
        assert_eq!(restarts[0], ModelError::Overloaded { message: "busy".to_owned() }.to_string());
    }
}
