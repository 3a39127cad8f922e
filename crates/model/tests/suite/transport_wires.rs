//! Each wire protocol over a real connection: split anywhere, cut off anywhere, recorded and
//! replayed.

use crate::loopback;

use std::sync::Arc;

use journeyman_model::{
    Delta, HttpModel, HttpTransport, Recorder, Replayer, Reply, Secret, Wire, connect, connect_with,
};
use journeyman_protocol::{Block, StopReason, Tokens};
use loopback::{Act, KEY, Server, chunk, drain, end, reply, stream_head};
use serde_json::json;

/// The protocols, each with an answer: thinking, then one call whose arguments come in two pieces.
const WIRES: [(Wire, &str); 4] = [
    (Wire::Anthropic, include_str!("wire/streams/anthropic.txt")),
    (Wire::Responses, include_str!("wire/streams/responses.txt")),
    (Wire::Chat, include_str!("wire/streams/chat.txt")),
    (Wire::Gemini, include_str!("wire/streams/gemini.txt")),
];

/// A model that tries once.
fn model(server: &Server, wire: Wire) -> HttpModel {
    let mut endpoint = server.endpoint();
    endpoint.wire = wire;
    endpoint.retry.max_attempts = 1;
    connect(endpoint, "tiny").unwrap()
}

fn whole(stream: &str) -> Vec<Act> {
    vec![stream_head(), chunk(stream), end()]
}

fn expect_the_call(wire: Wire, reply: &Reply) {
    assert_eq!(reply.stop, StopReason::ToolUse, "{wire}");
    assert_eq!(reply.usage.output, Tokens(20), "{wire}");
    let calls: Vec<_> =
        reply.message.tool_uses().map(|call| (call.name.as_str(), call.input.clone())).collect();
    assert_eq!(calls, [("list", json!({"under": "日本"}))], "{wire}");
    let thought = matches!(&reply.message.content[0], Block::Thinking { text, .. } if text == "Überlegt…");
    assert!(thought, "{wire}: {:?}", reply.message);
}

/// Two writes on the socket, parted at each byte in turn; lines end in CRLF, comments keep the line
/// warm.
#[tokio::test]
async fn each_protocol_may_be_split_at_every_byte() {
    for (wire, stream) in WIRES {
        let stream = stream.replace("\n\n", "\n\n: keep-alive\n\n").replace('\n', "\r\n");
        let bytes = stream.as_bytes();
        let scripts = (0..=bytes.len())
            .map(|at| {
                let (head, tail) = bytes.split_at(at);
                let pieces = [head, tail].into_iter().filter(|piece| !piece.is_empty()).map(chunk);
                std::iter::once(stream_head()).chain(pieces).chain([end()]).collect()
            })
            .collect();
        let server = Server::start(scripts).await;
        let model = model(&server, wire);
        for at in 0..=bytes.len() {
            let (deltas, error) = drain(&model).await;
            assert_eq!(error, None, "{wire} split at {at}");
            let Some(Delta::Done(reply)) = deltas.last() else { panic!("{wire} split at {at}: {deltas:?}") };
            expect_the_call(wire, reply);
        }
        assert_eq!(server.connections(), 1, "{wire}: each answer is read to its end");
    }
}

/// Wherever a stream is cut off, what comes out is an error that is worth another attempt, or,
/// where only what follows the message was lost, the whole message.
#[tokio::test]
async fn no_protocol_takes_a_part_for_the_whole() {
    /// A prime, so that the cuts fall on other places in every line.
    const STRIDE: usize = 7;
    for (wire, stream) in WIRES {
        let server = Server::start(vec![whole(stream)]).await;
        let full = reply(&model(&server, wire)).await;
        let cuts: Vec<usize> = (0..stream.len()).step_by(STRIDE).collect();
        let cut = |&at: &usize| vec![stream_head(), chunk(&stream.as_bytes()[..at.max(1)]), end()];
        let server = Server::start(cuts.iter().map(cut).collect()).await;
        let model = model(&server, wire);
        for at in cuts {
            match drain(&model).await {
                (_, Some(error)) => assert!(error.is_retryable(), "{wire} cut at {at}: {error:?}"),
                (deltas, None) => {
                    let Some(Delta::Done(part)) = deltas.last() else { panic!("{wire} cut at {at}") };
                    assert_eq!(
                        (&part.message, &part.stop),
                        (&full.message, &full.stop),
                        "{wire} cut at {at}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn each_protocol_is_replayed_as_it_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    for (wire, stream) in WIRES {
        let path = folder.path().join(wire.name());
        let server = Server::start(vec![whole(stream)]).await;
        let mut endpoint = server.endpoint();
        endpoint.wire = wire;
        let live =
            Recorder::create(&path, None).unwrap().wrap_transport(Arc::new(HttpTransport::new(&endpoint)));
        let recorded = drain(&connect_with(endpoint.clone(), "tiny", Arc::new(live)).unwrap()).await;
        assert!(!std::fs::read_to_string(&path).unwrap().contains(KEY), "{wire}");

        endpoint.key = Some(Secret::new("another-key-altogether"));
        let replayer = Arc::new(Replayer::load(&path).unwrap());
        let replayed = drain(&connect_with(endpoint, "tiny", replayer).unwrap()).await;
        assert_eq!(replayed, recorded, "{wire}");
        assert_eq!(server.seen().len(), 1, "{wire}: a replay asks nobody");
    }
}
