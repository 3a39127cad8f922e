//! Cassettes: what is recorded, what isn't, and what a replay accepts.

use crate::loopback;

use std::sync::Arc;
use std::time::Duration;

use journeyman_model::{
    Endpoint, HttpModel, HttpTransport, ModelError, Recorder, Replayer, Wire, connect_with,
};
use journeyman_protocol::Message;
use loopback::{
    Act, FIRST, KEY, REST, Server, answer, chunk, drain, drain_request, end, error_body, failure, hello,
    reply, request, stream_head,
};
use tokio_util::sync::CancellationToken;

fn recording(server: &Server, path: &std::path::Path) -> HttpModel {
    recording_at(server.endpoint(), path)
}

fn recording_at(endpoint: Endpoint, path: &std::path::Path) -> HttpModel {
    let transport = Arc::new(HttpTransport::new(&endpoint));
    let recorder = Recorder::create(path, None).unwrap();
    connect_with(endpoint, "tiny", Arc::new(recorder.wrap_transport(transport))).unwrap()
}

/// A model on a cassette, as a machine without key and network has it.
fn replaying(path: &std::path::Path) -> (HttpModel, Replayer) {
    let replayer = Replayer::load(path).unwrap();
    let mut endpoint = Endpoint::new("test", Wire::Chat, "http://127.0.0.1:1");
    endpoint.key_env = vec!["TEST_API_KEY".to_owned()];
    (connect_with(endpoint, "tiny", Arc::new(replayer.clone())).unwrap(), replayer)
}

#[tokio::test]
async fn a_replay_gives_what_the_recording_gave() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.jsonl");
    // A character cut in two, a rate limit, a broken stream, a time-out: each as it was.
    let cut = REST.find('ö').unwrap() + 1;
    let split = vec![
        stream_head(),
        chunk(FIRST),
        chunk(&REST.as_bytes()[..cut]),
        Act::Pause(Duration::from_millis(10)),
        chunk(&REST.as_bytes()[cut..]),
        end(),
    ];
    let server = Server::start(vec![
        answer(429, "retry-after-ms: 5\r\n", &error_body("slow down")),
        split,
        vec![stream_head(), chunk(FIRST), Act::Close],
        vec![Act::Reset],
        vec![Act::Hang],
        hello(),
    ])
    .await;
    let mut endpoint = server.endpoint();
    endpoint.deadlines.first_byte = Duration::from_millis(200);
    let model = recording_at(endpoint, &path);
    let live = [drain(&model).await, drain(&model).await];
    assert_eq!(server.seen().len(), 6);
    drop(server);

    let (model, replayer) = replaying(&path);
    assert_eq!(replayer.remaining(), 6);
    let replayed = [drain(&model).await, drain(&model).await];
    assert_eq!(without_waits(replayed), without_waits(live));
    assert_eq!(replayer.remaining(), 0);
    assert_eq!(failure(&model).await, ModelError::ReplayExhausted { exchanges: 6 });
}

/// A replay doesn't wait, and names its own address.
fn without_waits(
    runs: [(Vec<journeyman_model::Delta>, Option<ModelError>); 2],
) -> Vec<(Vec<journeyman_model::Delta>, Option<ModelError>)> {
    let mut runs = Vec::from(runs);
    for (deltas, _) in &mut runs {
        for delta in deltas {
            if let journeyman_model::Delta::Restart { wait_ms, reason, .. } = delta {
                *wait_ms = 0;
                let host = reason.find("127.0.0.1:").map(|start| start..reason.find("/v1").unwrap());
                if let Some(host) = host {
                    reason.replace_range(host, "host");
                }
            }
        }
    }
    runs
}

#[tokio::test]
async fn the_cassette_holds_every_byte_and_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.jsonl");
    let server =
        Server::start(vec![hello(), answer(401, "x-echo: 1\r\n", &error_body(&format!("bad key {KEY}")))])
            .await;
    let mut endpoint = server.endpoint();
    endpoint.headers.insert("x-team-token".to_owned(), "team-secret-1".to_owned());
    endpoint.base_url =
        format!("{}?key=query-secret-1", server.url().replace("http://", "http://user:password-1@"));
    let model = recording_at(endpoint, &path);
    reply(&model).await;
    failure(&model).await;

    let text = std::fs::read_to_string(&path).unwrap();
    for secret in [KEY, "team-secret-1", "query-secret-1", "password-1", "uthorization"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["version"], 1);
    assert_eq!(lines[0]["request"]["method"], "POST");
    assert_eq!(lines[0]["request"]["body"]["model"], "tiny");
    let pieces: Vec<&str> = lines[0]["response"]["chunks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|piece| piece["text"].as_str().unwrap())
        .collect();
    assert_eq!(pieces.concat(), [FIRST, REST].concat());
    assert!(lines[1]["response"]["chunks"].to_string().contains("bad key [secret]"));

    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_request_that_departs_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.jsonl");
    let server = Server::start(vec![hello()]).await;
    reply(&recording(&server, &path)).await;

    let (model, replayer) = replaying(&path);
    let mut other = request();
    other.messages = vec![Message::user_text("Say goodbye.")];
    let (_, error) = drain_request(&model, &other, CancellationToken::new()).await;
    let Some(ModelError::ReplayMismatch { exchange: 1, diff }) = error else { panic!("{error:?}") };
    let expected = "content\n    recorded: \"Say hello.\"\n    now:      \"Say goodbye.\"";
    assert!(diff.contains("body.messages[0].") && diff.contains(expected), "{diff}");
    assert_eq!(replayer.remaining(), 1, "a refused request doesn't use the exchange up");
    assert_eq!(reply(&model).await.message.text(), "Hello wörld");
}

#[tokio::test]
async fn a_cancelled_exchange_is_recorded_as_far_as_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.jsonl");
    let server = Server::start(vec![vec![stream_head(), chunk(FIRST), Act::Hang]]).await;
    let model = recording(&server, &path);
    let cancel = CancellationToken::new();
    let trigger = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        trigger.cancel();
    });
    let (deltas, error) = drain_request(&model, &request(), cancel).await;
    assert_eq!(error, Some(ModelError::Cancelled));
    let line: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(line["error"]["kind"], "dropped");
    assert_eq!(line["response"]["chunks"][0]["text"], FIRST);

    let (model, _) = replaying(&path);
    let (replayed, error) = drain(&model).await;
    assert_eq!(replayed[..deltas.len()], deltas[..]);
    assert!(error.is_some());
}

#[test]
fn a_cassette_replaces_a_cassette_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for precious in ["my diary", "{\"version\": 3}\n", "{}"] {
        std::fs::write(&path, precious).unwrap();
        let error = Recorder::create(&path, None).unwrap_err().to_string();
        assert!(error.contains("is not a cassette"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), precious);
    }
    std::fs::write(&path, TAPE).unwrap();
    Recorder::create(&path, None).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    assert!(Recorder::create(folder.path().join("no/such/folder"), None).is_err());
}

const TAPE: &str = r#"{"version":1,"index":0,"request":{"method":"POST","url":"http://h/v1/chat/completions","body":{}},"response":{"status":200,"chunks":[{"text":"data: [DONE]\n\n"}]}}"#;

#[tokio::test]
async fn a_cassette_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape.jsonl");
    let refused = [
        ("not json", "line 1 is no recorded exchange"),
        ("{\"version\":1}", "line 1 is no recorded exchange"),
        (&TAPE.replace("\"version\":1", "\"version\":2"), "line 1 has version 2"),
        (&format!("{TAPE}\n\n{}", &TAPE[..60]), "line 3 is no recorded exchange"),
        (&TAPE.replace("200", "-1"), "line 1 is no recorded exchange"),
        (&"[".repeat(100_000), "line 1 is no recorded exchange"),
    ];
    for (text, expected) in refused {
        std::fs::write(&path, text).unwrap();
        let error = Replayer::load(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    std::fs::write(&path, b"\xff\xfe").unwrap();
    assert!(Replayer::load(&path).is_err());

    // What can be read is compared, and played without a panic whatever it holds.
    std::fs::write(&path, TAPE).unwrap();
    let (model, _) = replaying(&path);
    let (_, error) = drain(&model).await;
    assert!(matches!(error, Some(ModelError::ReplayMismatch { .. })), "{error:?}");
    let body = live_body().await;
    let hostile = [
        r#"[{"base64":"***"}]"#,
        r#"[{"base64":"/////w=="}]"#,
        r#"[{"text":"data: {\"choices\":7}\n\n"},{"text":"data: [DONE]\n\n"}]"#,
        "[]",
    ];
    for chunks in hostile {
        let request = r#"{"method":"POST","url":"http://h/v1/chat/completions","body":"#;
        let tape = format!(
            r#"{{"version":1,"index":0,"request":{request}{body}}},"response":{{"status":200,"chunks":{chunks}}}}}"#
        );
        std::fs::write(&path, tape).unwrap();
        let (model, _) = replaying(&path);
        let (_, error) = drain(&model).await;
        assert!(error.is_some(), "{chunks}");
    }
}

/// The body that the test's request has on the wire.
async fn live_body() -> serde_json::Value {
    let server = Server::start(vec![hello()]).await;
    reply(&server.model()).await;
    server.seen()[0].body.clone()
}
