//! The way to a server and back: connections, deadlines, broken streams, proxies, cancellation.

use crate::loopback;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use journeyman_model::{
    Deadline, Delta, Endpoint, HttpRequest, HttpResponse, Model, ModelError, ModelRequest, Transport, Wire,
    connect, connect_with,
};
use journeyman_protocol::{StopReason, Tokens, Usage};
use loopback::{
    Act, FIRST, KEY, REST, Server, answer, chunk, drain, end, error_body, failure, hello, reply, request,
    stream_head,
};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_reply_arrives_and_the_request_says_who_asks() {
    let server = Server::start(vec![hello()]).await;
    let reply = reply(&server.model()).await;
    assert_eq!(reply.message.text(), "Hello wörld");
    assert_eq!(reply.stop, StopReason::EndTurn);
    assert_eq!((reply.usage.input, reply.usage.output), (Tokens(3), Tokens(2)));

    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert!(seen[0].header("user-agent").unwrap().starts_with("journeyman/"));
    assert_eq!(seen[0].body["model"], "tiny");
}

#[tokio::test]
async fn one_connection_serves_all_turns() {
    let server = Server::start(vec![hello()]).await;
    let model = server.model();
    for _ in 0..5 {
        reply(&model).await;
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn the_pieces_of_a_stream_may_be_cut_anywhere() {
    let whole = [FIRST, REST].concat();
    let mut acts = vec![stream_head()];
    acts.extend(whole.as_bytes().iter().map(|&byte| chunk([byte])));
    acts.push(end());
    let server = Server::start(vec![acts]).await;
    assert_eq!(reply(&server.model()).await.message.text(), "Hello wörld");
}

#[tokio::test]
async fn a_body_without_length_ends_with_its_connection() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    let acts = vec![Act::Send([head, FIRST, REST].concat().into_bytes()), Act::Close];
    let server = Server::start(vec![acts]).await;
    assert_eq!(reply(&server.model()).await.message.text(), "Hello wörld");
}

/// A server that keeps the connection open after the protocol's end doesn't keep the reply.
#[tokio::test]
async fn a_whole_reply_does_not_wait_for_the_end_of_the_connection() {
    let server = Server::start(vec![vec![stream_head(), chunk(FIRST), chunk(REST), Act::Hang]]).await;
    assert_eq!(reply(&server.model()).await.message.text(), "Hello wörld");
}

#[tokio::test]
async fn each_deadline_is_named() {
    let silent = vec![Act::Hang];
    let head_only = vec![stream_head(), Act::Hang];
    let stalled = vec![stream_head(), chunk(FIRST), Act::Hang];
    let endless: Vec<Act> = std::iter::once(stream_head())
        .chain((0..400).flat_map(|_| [chunk(": keep-alive\n\n"), Act::Pause(Duration::from_millis(10))]))
        .collect();
    let short = Duration::from_millis(60);
    let cases = [
        (silent, Deadline::FirstByte, "timed out waiting for the first byte after 60 ms from "),
        (head_only, Deadline::FirstByte, "timed out waiting for the first byte after 60 ms from "),
        (stalled, Deadline::Idle, "timed out waiting for the next byte after 60 ms from "),
        (endless, Deadline::Total, "timed out waiting for the whole reply after 60 ms from "),
    ];
    for (acts, which, text) in cases {
        let server = Server::start(vec![acts]).await;
        let mut endpoint = server.endpoint();
        endpoint.retry.max_attempts = 1;
        match which {
            Deadline::Connect => {}
            Deadline::FirstByte => endpoint.deadlines.first_byte = short,
            Deadline::Idle => endpoint.deadlines.idle = short,
            Deadline::Total => endpoint.deadlines.total = short,
        }
        let error = failure(&connect(endpoint, "tiny").unwrap()).await;
        let url = format!("{}/v1/chat/completions", server.url());
        assert_eq!(error, ModelError::Timeout { which, after: short, url: url.clone() });
        assert_eq!(error.to_string(), format!("{text}{url}"));
        assert!(error.is_retryable());
    }
}

/// A proxy that takes a connection and never says that it has made the next one.
#[tokio::test]
async fn the_connect_deadline_covers_the_way_through_a_proxy() {
    let proxy = Server::start(vec![vec![Act::Hang]]).await;
    let mut endpoint = Endpoint::new("test", Wire::Chat, "https://model.test/v1");
    endpoint.proxy.https = Some(proxy.url());
    endpoint.ca_file = Some(loopback::tls::file("authority.pem"));
    endpoint.deadlines.connect = Duration::from_millis(60);
    endpoint.retry.max_attempts = 1;
    let error = failure(&connect(endpoint, "tiny").unwrap()).await;
    assert_eq!(
        error.to_string(),
        "timed out waiting for a connection after 60 ms from https://model.test/v1/chat/completions"
    );
    assert_eq!(proxy.seen()[0].line, "CONNECT model.test:443 HTTP/1.1");
}

#[tokio::test]
async fn https_trusts_whom_it_is_told_to_trust() {
    let address = loopback::tls::serve_once(&[FIRST, REST].concat());
    let connected = |host: &str, authority: &str| {
        let base = format!("https://{host}:{}", address.port());
        let mut endpoint = Endpoint::new("test", Wire::Chat, base);
        endpoint.ca_file = Some(loopback::tls::file(authority));
        connect(endpoint, "tiny").unwrap()
    };
    let (deltas, error) = drain(&connected("localhost", "stranger.pem")).await;
    let error = error.unwrap();
    assert!(!error.is_retryable() && error.to_string().contains("certificate"), "{error}");
    assert!(error.to_string().ends_with("in SSL_CERT_FILE"), "{error}");
    assert_eq!(deltas, vec![], "trust doesn't come with time");

    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(reply(&connected(host, "authority.pem")).await.message.text(), "Hello wörld");
    }
    let error = failure(&connected("localhost", "no-such-file.pem")).await.to_string();
    assert!(error.contains("no trusted certificates") && error.contains("no-such-file.pem"), "{error}");
}

/// Servers close idle connections; the next turn must not pay for that with a failed attempt.
#[tokio::test]
async fn a_connection_closed_while_idle_costs_no_attempt() {
    let closing = [hello(), vec![Act::Close]].concat();
    let server = Server::start(vec![closing]).await;
    let model = server.model();
    for _ in 0..3 {
        let (deltas, error) = drain(&model).await;
        assert_eq!((error, loopback::restarts(&deltas)), (None, vec![]));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((server.connections(), server.seen().len()), (3, 3));
}

#[tokio::test]
async fn a_broken_stream_commits_nothing() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    let done_missing = REST.split("data: {\"choices\":[{\"index\":0,\"delta\":{},").next().unwrap();
    let cases = [
        ("reset before the head", vec![Act::Reset]),
        ("closed before the head", vec![Act::Close]),
        (
            "reset in the body",
            vec![stream_head(), chunk(FIRST), Act::Pause(Duration::from_millis(20)), Act::Reset],
        ),
        ("closed in the body", vec![stream_head(), chunk(FIRST), Act::Close]),
        ("shorter than it said", vec![Act::Send([head, FIRST].concat().into_bytes()), Act::Close]),
        ("ended without its end", vec![stream_head(), chunk(FIRST), chunk(done_missing), end()]),
        ("ended in the middle of an event", vec![stream_head(), chunk(&FIRST[..40]), end()]),
        ("nothing at all", vec![stream_head(), end()]),
    ];
    for (what, acts) in cases {
        let server = Server::start(vec![acts]).await;
        let mut endpoint = server.endpoint();
        endpoint.retry.max_attempts = 1;
        let error = failure(&connect(endpoint, "tiny").unwrap()).await;
        let expected = matches!(error, ModelError::EndedEarly { .. } | ModelError::Connection { .. });
        assert!(expected && error.is_retryable(), "{what}: {error:?}");
    }
}

/// A server that never stops, without the network's cost.
struct Endless;

impl Transport for Endless {
    fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>> {
        let mebibyte = bytes::Bytes::from([": ", &"x".repeat(1024 * 1024 - 3), "\n"].concat());
        let body = stream::repeat(Ok(mebibyte)).boxed();
        Box::pin(async move { Ok(HttpResponse { status: 200, headers: Vec::new(), body }) })
    }
}

#[tokio::test]
async fn an_answer_without_end_is_an_error() {
    let endpoint = Endpoint::new("test", Wire::Chat, "http://model.test");
    let (deltas, error) = drain(&connect_with(endpoint, "tiny", Arc::new(Endless)).unwrap()).await;
    assert_eq!(deltas, vec![]);
    assert_eq!(
        error.unwrap().to_string(),
        "not what the protocol allows: http://model.test/v1/chat/completions answers without an end"
    );
}

/// A server that sends this and then nothing more, or ends the connection.
struct Says {
    text: String,
    hangs: bool,
}

impl Transport for Says {
    fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>> {
        let said = stream::iter([Ok(bytes::Bytes::from(self.text.clone()))]);
        let body = if self.hangs { said.chain(stream::pending()).boxed() } else { said.boxed() };
        Box::pin(async move { Ok(HttpResponse { status: 200, headers: Vec::new(), body }) })
    }
}

fn model_that_says(wire: Wire, text: &str, hangs: bool) -> impl Model + use<> {
    let mut endpoint = Endpoint::new("test", wire, "http://model.test");
    endpoint.retry.max_attempts = 1;
    connect_with(endpoint, "tiny", Arc::new(Says { text: text.to_owned(), hangs })).unwrap()
}

#[tokio::test]
async fn the_usage_of_a_reply_that_fails_comes_before_the_error() {
    let start = concat!(
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"I see\"}}\n\n",
    );
    let usage = Usage { input: Tokens(25), output: Tokens(1), ..Usage::default() };
    let (mut deltas, error) = drain(&model_that_says(Wire::Anthropic, start, false)).await;
    assert_eq!(deltas.pop(), Some(Delta::Usage(usage)));
    assert!(matches!(error, Some(ModelError::EndedEarly { .. })), "{error:?}");

    let model = model_that_says(Wire::Anthropic, start, true);
    let (request, cancel) = (request(), CancellationToken::new());
    let mut stream = model.stream(&request, cancel.clone());
    while !matches!(stream.next().await, Some(Ok(Delta::Text { .. }))) {}
    cancel.cancel();
    assert_eq!(stream.next().await, Some(Ok(Delta::Usage(usage))));
    assert_eq!(stream.next().await, Some(Err(ModelError::Cancelled)));
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn the_usage_of_an_attempt_that_fails_comes_before_the_restart() {
    let start = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n";
    let mut endpoint = Endpoint::new("test", Wire::Anthropic, "http://model.test");
    endpoint.retry.max_attempts = 2;
    let says = Says { text: start.to_owned(), hangs: false };
    let (deltas, error) = drain(&connect_with(endpoint, "tiny", Arc::new(says)).unwrap()).await;
    let usage = Delta::Usage(Usage { input: Tokens(25), output: Tokens(1), ..Usage::default() });
    let seen: Vec<&Delta> = deltas.iter().filter(|delta| **delta != Delta::MessageStart).collect();
    assert!(
        matches!(seen.as_slice(), [first, Delta::Restart { .. }, last] if *first == &usage && *last == &usage),
        "{deltas:?}"
    );
    assert!(matches!(error, Some(ModelError::GaveUp { attempts: 2, .. })), "{error:?}");
}

/// A reply that is whole isn't requested, and paid for, once more because of what came after it.
#[tokio::test]
async fn a_whole_reply_survives_a_cut_in_what_follows_it() {
    let anthropic = concat!(
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hello wörld\"}}\n\n",
        "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
    );
    let (chat, _) = REST.split_once("data: {\"choices\":[],").unwrap();
    let cases = [
        (Wire::Chat, [FIRST, chat, "data: {\"choices\":[],\"usa"].concat()),
        (Wire::Chat, [FIRST, chat, "data: [DO"].concat()),
        (Wire::Anthropic, [anthropic, "data: {\"type\":\"mess"].concat()),
    ];
    for (wire, text) in cases {
        for hangs in [false, true] {
            assert_eq!(reply(&model_that_says(wire, &text, hangs)).await.message.text(), "Hello wörld");
        }
    }
}

/// Some servers say that a reply ended by itself when it reached the limit.
#[tokio::test]
async fn a_reply_that_fills_the_output_limit_was_cut_off() {
    for (limit, stop) in
        [(Some(2), StopReason::MaxTokens), (Some(3), StopReason::EndTurn), (None, StopReason::EndTurn)]
    {
        let model = model_that_says(Wire::Chat, &[FIRST, REST].concat(), false);
        let request = ModelRequest { max_output: limit.map(Tokens), ..request() };
        let (deltas, error) = loopback::drain_request(&model, &request, CancellationToken::new()).await;
        assert_eq!(error, None);
        let Some(Delta::Done(reply)) = deltas.last() else { panic!("{deltas:?}") };
        assert_eq!(reply.stop, stop, "{limit:?}");
    }
}

#[tokio::test]
async fn a_document_in_place_of_a_stream_is_shown() {
    let cases = [
        ("application/json", error_body("wrong door"), "wrong door"),
        ("text/html; charset=utf-8", "<html>Welcome to the proxy</html>".to_owned(), "Welcome"),
    ];
    for (kind, body, expected) in cases {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        let server = Server::start(vec![vec![Act::Send([head, body].concat().into_bytes())]]).await;
        let error = failure(&server.model()).await.to_string();
        assert!(error.contains("instead of an event stream") && error.contains(expected), "{error}");
        assert_eq!(server.seen().len(), 1);
    }
}

/// Gateways that accept a request before they pass it on report its failure in a document.
#[tokio::test]
async fn an_error_in_place_of_a_stream_is_what_it_says() {
    let document = |body: &str| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        vec![Act::Send([&head, body].concat().into_bytes())]
    };
    let busy = document(r#"{"error":{"code":429,"message":"Provider returned error"}}"#);
    let broken = document(r#"{"error":{"code":502,"message":"Provider returned error"}}"#);
    let server = Server::start(vec![busy, broken, hello()]).await;
    assert_eq!(reply(&server.model()).await.message.text(), "Hello wörld");

    let long = document(&error_body("This model's maximum context length is 8192 tokens."));
    let error = failure(&Server::start(vec![long]).await.model()).await;
    assert!(matches!(error, ModelError::ContextTooLong { .. }), "{error}");

    let whole = r#"{"choices":[{"message":{"content":"the maximum context length"}}]}"#;
    let error = failure(&Server::start(vec![document(whole)]).await.model()).await;
    assert!(matches!(error, ModelError::Protocol(_)), "{error}");
}

#[tokio::test]
async fn cancelling_ends_a_stream_at_once_and_closes_its_connection() {
    let server = Server::start(vec![vec![stream_head(), chunk(FIRST), Act::Hang]]).await;
    let model = server.model();
    let request = request();
    let cancel = CancellationToken::new();
    let mut stream = model.stream(&request, cancel.clone());
    while !matches!(stream.next().await, Some(Ok(Delta::Text { .. }))) {}
    let canceller = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    });
    assert_eq!(stream.next().await, Some(Err(ModelError::Cancelled)));
    assert_eq!(stream.next().await, None);
    server.client_gone().await;
    canceller.await.unwrap();
}

#[tokio::test]
async fn cancelling_ends_every_wait() {
    let refused = answer(503, "retry-after: 60\r\n", &error_body("later"));
    for (what, acts) in [("the head", vec![Act::Hang]), ("the next attempt", refused)] {
        let server = Server::start(vec![acts]).await;
        let cancel = CancellationToken::new();
        let trigger = cancel.clone();
        let canceller = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            trigger.cancel();
        });
        let (_, error) = loopback::drain_request(&server.model(), &request(), cancel).await;
        assert_eq!(error, Some(ModelError::Cancelled), "{what}");
        canceller.await.unwrap();
    }
    let server = Server::start(vec![hello()]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (deltas, error) = loopback::drain_request(&server.model(), &request(), cancel).await;
    assert_eq!((deltas, error), (vec![], Some(ModelError::Cancelled)));
    assert_eq!(server.seen().len(), 0, "nothing is sent after a cancellation");
}

#[tokio::test]
async fn dropping_the_stream_closes_its_connection() {
    let server = Server::start(vec![vec![stream_head(), chunk(FIRST), Act::Hang]]).await;
    let model = server.model();
    let request = request();
    let mut stream = model.stream(&request, CancellationToken::new());
    while !matches!(stream.next().await, Some(Ok(Delta::Text { .. }))) {}
    drop(stream);
    server.client_gone().await;
}

#[tokio::test]
async fn a_proxy_is_used_for_all_but_loopback_and_the_hosts_named() {
    let proxy = Server::start(vec![hello()]).await;
    let with_proxy = |base: &str, no_proxy: &str| {
        let mut endpoint = Endpoint::new("test", Wire::Chat, base);
        endpoint.proxy.http = Some(proxy.url().replace("http://", "http://user:proxy-password@"));
        endpoint.proxy.no_proxy = no_proxy.to_owned();
        endpoint.retry.max_attempts = 1;
        endpoint
    };
    let shown = format!("{:?}", with_proxy("http://model.test", "x").proxy);
    assert!(!shown.contains("proxy-password"), "{shown}");

    let model = connect(with_proxy("http://model.test/v1", "other.test"), "tiny").unwrap();
    assert_eq!(reply(&model).await.message.text(), "Hello wörld");
    let seen = proxy.seen();
    assert_eq!(seen[0].line, "POST http://model.test/v1/chat/completions HTTP/1.1");
    assert!(seen[0].header("proxy-authorization").is_some());

    let direct = Server::start(vec![hello()]).await;
    for base in [direct.url(), format!("http://localhost:{}", direct.address.port())] {
        reply(&connect(with_proxy(&base, ""), "tiny").unwrap()).await;
    }
    assert_eq!((direct.seen().len(), proxy.seen().len()), (2, 1));

    let model = connect(with_proxy("http://model.invalid", "model.invalid"), "tiny").unwrap();
    let error = failure(&model).await;
    assert!(matches!(error, ModelError::Connection { .. }), "{error:?}");
    assert_eq!(proxy.seen().len(), 1, "a named host is reached directly");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = Server::start(vec![hello()]).await;
    let location = format!("location: {}/v1/chat/completions\r\n", target.url());
    let server = Server::start(vec![answer(307, &location, "")]).await;
    let error = failure(&server.model()).await;
    assert!(matches!(error, ModelError::Http { status: 307, .. }), "{error:?}");
    assert_eq!(target.seen().len(), 0, "the key would have gone with it");
}

#[tokio::test]
async fn nobody_at_home() {
    // Port 1 belongs to a service that nobody runs.
    let cases = [
        ("ollama", true, "is ollama running? Start it with `ollama serve`"),
        ("test", false, "nothing listens there"),
    ];
    for (provider, local, advice) in cases {
        let mut endpoint = Endpoint::new(provider, Wire::Chat, "http://127.0.0.1:1");
        endpoint.local = local;
        let (deltas, error) = drain(&connect(endpoint, "tiny").unwrap()).await;
        let error = error.unwrap().to_string();
        assert!(error.starts_with("no connection to http://127.0.0.1:1/v1/chat/completions: "), "{error}");
        let reason = error.rsplit("completions: ").next().unwrap();
        assert_eq!(reason, format!("Connection refused (os error 111); {advice}"));
        assert_eq!(deltas, vec![], "waiting doesn't start a server");
    }
}

#[tokio::test]
async fn a_base_url_that_is_none_is_refused_at_once() {
    for base in ["", "localhost:11434", "ftp://x", "http://"] {
        let error = connect(Endpoint::new("mine", Wire::Chat, base), "tiny").unwrap_err();
        assert!(matches!(error, ModelError::Endpoint { .. }), "{base}: {error}");
    }
    let mut endpoint = Endpoint::new("mine", Wire::Chat, "http://127.0.0.1");
    endpoint.headers.insert("x-team".to_owned(), "a\nb-secret-value".to_owned());
    let error = connect(endpoint, "tiny").unwrap_err().to_string();
    assert!(error.contains("`x-team`") && !error.contains("b-secret"), "{error}");
}
