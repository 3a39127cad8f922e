//! The clients against a real model server: llama.cpp's, as `.ci/run` starts it, with a model so
//! small that it answers nonsense. Real streams and real tokens are the point; what they say is
//! not.
//!
//! The server's address is in `JM_TEST_MODEL_URL`.

use futures_util::StreamExt as _;
use journeyman_model::{Delta, Endpoint, Model as _, ModelRequest, SystemPart, Wire, connect};
use journeyman_protocol::{Message, Role, StopReason, Tokens, ToolSpec};
use journeyman_testkit::skip;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// What the server wants after its address for each protocol it speaks.
const WIRES: [(Wire, &str); 3] = [(Wire::Chat, "/v1"), (Wire::Responses, "/v1"), (Wire::Anthropic, "")];

fn server() -> Option<String> {
    let address = std::env::var("JM_TEST_MODEL_URL").ok().filter(|address| !address.is_empty());
    if address.is_none() {
        skip("JM_TEST_MODEL_URL names no model server");
    }
    address
}

fn request() -> ModelRequest {
    ModelRequest {
        system: vec![SystemPart::cached("You answer in one short sentence.")],
        messages: vec![
            Message::user_text("What is the capital of France?"),
            Message::assistant_text("Paris."),
            Message::user_text("And of Italy?"),
        ],
        max_output: Some(Tokens(24)),
        temperature: Some(0.0),
        ..ModelRequest::default()
    }
}

/// Streams one reply; gives the text as it was streamed and the reply itself.
async fn ask(base_url: &str, wire: Wire, request: &ModelRequest) -> (String, journeyman_model::Reply) {
    let model = connect(Endpoint::new("llama.cpp", wire, base_url), "smollm2").unwrap();
    let mut deltas = model.stream(request, CancellationToken::new());
    let mut streamed = String::new();
    let mut pieces = 0;
    while let Some(delta) = deltas.next().await {
        match delta.unwrap() {
            Delta::Text { text, .. } => {
                streamed.push_str(&text);
                pieces += 1;
            }
            Delta::Done(reply) => {
                assert!(pieces > 1, "{wire}: the reply came in one piece, so nothing was streamed");
                return (streamed, *reply);
            }
            _ => {}
        }
    }
    panic!("{wire}: the stream ended without a reply");
}

#[tokio::test]
async fn a_real_server_streams_over_every_protocol_it_speaks() {
    let Some(address) = server() else { return };
    for (wire, suffix) in WIRES {
        let (streamed, reply) = ask(&format!("{address}{suffix}"), wire, &request()).await;
        assert_eq!(reply.message.role, Role::Assistant, "{wire}");
        assert_eq!(reply.message.text(), streamed, "{wire}: what was streamed is what was said");
        assert!(!streamed.trim().is_empty(), "{wire}");
        assert!(
            matches!(reply.stop, StopReason::EndTurn | StopReason::MaxTokens),
            "{wire}: {:?}",
            reply.stop
        );
        assert!(reply.usage.output.0 > 0 && reply.usage.output.0 <= 24, "{wire}: {:?}", reply.usage);
        assert!(reply.usage.total_input().0 > 10, "{wire}: {:?}", reply.usage);
    }
}

#[tokio::test]
async fn a_real_server_takes_tools() {
    let Some(address) = server() else { return };
    let tool = ToolSpec {
        name: "read_file".to_owned(),
        description: "Reads a file.".to_owned(),
        input_schema: json!({
            "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"],
        }),
    };
    for (wire, suffix) in WIRES {
        let request = ModelRequest { tools: [tool.clone()].into(), ..request() };
        let model =
            connect(Endpoint::new("llama.cpp", wire, format!("{address}{suffix}")), "smollm2").unwrap();
        let mut deltas = model.stream(&request, CancellationToken::new());
        let mut done = false;
        while let Some(delta) = deltas.next().await {
            // Whatever so small a model makes of a tool, the stream has to be read to its end.
            done = matches!(delta.unwrap_or_else(|error| panic!("{wire}: {error}")), Delta::Done(_));
        }
        assert!(done, "{wire}");
    }
}

#[tokio::test]
async fn cancelling_a_real_stream_ends_it() {
    let Some(address) = server() else { return };
    let model = connect(Endpoint::new("llama.cpp", Wire::Chat, format!("{address}/v1")), "smollm2").unwrap();
    let long = ModelRequest {
        messages: vec![Message::user_text("Write a long story.")],
        max_output: Some(Tokens(2_000)),
        ..ModelRequest::default()
    };
    let cancel = CancellationToken::new();
    let mut deltas = model.stream(&long, cancel.clone());
    let mut error = None;
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Text { .. }) => cancel.cancel(),
            Ok(Delta::Done(_)) => panic!("it went on to the end"),
            Ok(_) => {}
            Err(stopped) => error = Some(stopped),
        }
    }
    assert_eq!(error, Some(journeyman_model::ModelError::Cancelled));
}
