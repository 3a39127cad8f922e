//! Trying again: what for, how often, how long to wait, and what is said at the end.

use crate::loopback;

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use journeyman_model::{
    Delta, Endpoint, HttpModel, HttpRequest, HttpResponse, ModelError, Secret, Transport, Wire, connect,
    connect_with,
};
use journeyman_protocol::UnixMillis;
use loopback::{
    Act, FIRST, KEY, REST, Server, answer, chunk, drain, end, error_body, failure, hello, request, restarts,
    stream_head,
};

#[tokio::test]
async fn a_rate_limit_passes_after_the_wait_it_asks_for() {
    let limited = answer(429, "retry-after-ms: 30\r\n", &error_body("slow down"));
    let server = Server::start(vec![limited, hello()]).await;
    let (deltas, error) = drain(&server.model()).await;
    assert_eq!(error, None);
    let reason = "the provider's rate limit is reached: slow down".to_owned();
    assert_eq!(deltas[0], Delta::Restart { attempt: 2, of: 5, wait_ms: 30, reason });
    assert!(matches!(deltas.last(), Some(Delta::Done(reply)) if reply.message.text() == "Hello wörld"));
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].body, seen[1].body, "the same request again");
    assert_eq!(server.connections(), 1, "an error's body is read to its end");
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let mid_stream = "data: {\"error\":{\"message\":\"upstream gone\",\"code\":502}}\n\n";
    let statuses = [408, 409, 429, 500, 502, 503, 504, 520, 529];
    let mut cases: Vec<(String, Vec<Act>)> = statuses
        .iter()
        .map(|status| (status.to_string(), answer(*status, "", &error_body("not now"))))
        .collect();
    cases.push(("reset".to_owned(), vec![Act::Reset]));
    cases.push(("closed".to_owned(), vec![Act::Close]));
    cases.push(("broken stream".to_owned(), vec![stream_head(), chunk(FIRST), Act::Close]));
    cases.push(("cut stream".to_owned(), vec![stream_head(), chunk(FIRST), end()]));
    cases.push(("error event".to_owned(), vec![stream_head(), chunk(FIRST), chunk(mid_stream), end()]));
    for (what, first) in cases {
        let server = Server::start(vec![first, hello()]).await;
        let (deltas, error) = drain(&server.model()).await;
        assert_eq!(error, None, "{what}");
        assert_eq!(restarts(&deltas).len(), 1, "{what}: {deltas:?}");
        assert_eq!(server.seen().len(), 2, "{what}");
        // What came before the restart is void; what comes after is whole.
        let restart = deltas.iter().position(|delta| matches!(delta, Delta::Restart { .. })).unwrap();
        let text: String = deltas[restart..]
            .iter()
            .filter_map(|delta| if let Delta::Text { text, .. } = delta { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!(text, "Hello wörld", "{what}");
    }
}

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again() {
    for status in [400, 401, 403, 404, 413, 422, 501] {
        let server = Server::start(vec![answer(status, "retry-after: 1\r\n", &error_body("no"))]).await;
        let (deltas, error) = drain(&server.model()).await;
        let error = error.unwrap();
        assert!(!error.is_retryable(), "{status}: {error:?}");
        assert_eq!(deltas, vec![], "{status}");
        let asked = server.seen().iter().filter(|seen| seen.line.starts_with("POST")).count();
        assert_eq!(asked, 1, "{status}");
    }
}

#[tokio::test]
async fn it_gives_up_and_says_how_often_it_tried() {
    let server = Server::start(vec![answer(500, "", &error_body("boom"))]).await;
    let (deltas, error) = drain(&server.model()).await;
    let attempts: Vec<(u32, u32)> = deltas
        .iter()
        .map(|delta| match delta {
            Delta::Restart { attempt, of, .. } => (*attempt, *of),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(attempts, [(2, 5), (3, 5), (4, 5), (5, 5)]);
    let error = error.unwrap();
    assert!(matches!(
        error.root_cause(),
        ModelError::Http { status: 500, .. } | ModelError::Overloaded { .. }
    ));
    assert!(error.to_string().starts_with("gave up after 5 attempts; the last: "), "{error}");
    assert!(!error.is_retryable());
    assert_eq!(server.seen().len(), 5);
}

/// Headers of a canned answer.
type Headers = &'static [(&'static str, &'static str)];
/// A canned answer: status, headers, body.
type Answer = (u16, Headers, String);

/// A transport without a network, for tests in which the clock of the runtime stands still.
struct Canned(Mutex<Vec<Answer>>);

impl Canned {
    fn model(answers: &[Answer], clock: Option<journeyman_protocol::Clock>) -> HttpModel {
        let mut endpoint = Endpoint::new("test", Wire::Chat, "http://model.test");
        endpoint.retry.clock = clock;
        let answers = answers.iter().rev().cloned().collect();
        connect_with(endpoint, "tiny", Arc::new(Self(Mutex::new(answers)))).unwrap()
    }
}

impl Transport for Canned {
    fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ModelError>> {
        let (status, headers, body) = self.0.lock().unwrap().pop().expect("no further request");
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let body = stream::iter([Ok(body.into())]).boxed();
        Box::pin(async move { Ok(HttpResponse { status, headers, body }) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_limit_is_an_error_that_says_so() {
    let model = Canned::model(&[(429, &[("retry-after", "3600")], error_body("daily limit"))], None);
    assert_eq!(
        failure(&model).await.to_string(),
        "the provider's rate limit is reached: daily limit; the provider asks to wait 3600 s, longer than the \
         300 s this client waits at most; try again later"
    );
}

#[tokio::test(start_paused = true)]
async fn waits_are_as_long_as_they_say() {
    const LATER: &str = "Wed, 21 Oct 2015 07:28:30 GMT";
    let cases: [(Headers, Option<UnixMillis>, u64); 3] = [
        (&[("retry-after", "2")], None, 2_000),
        (&[("retry-after", LATER), ("date", "Wed, 21 Oct 2015 07:28:00 GMT")], None, 30_000),
        (&[("retry-after", LATER)], Some(UnixMillis(1_445_412_490_000)), 20_000),
    ];
    for (headers, now, expected) in cases {
        let answers = [(503, headers, "{}".to_owned()), (200, &[][..], [FIRST, REST].concat())];
        let model = Canned::model(&answers, now.map(|now| journeyman_protocol::Clock::new(move || now)));
        let before = tokio::time::Instant::now();
        let (deltas, error) = drain(&model).await;
        assert_eq!(error, None);
        assert!(
            matches!(deltas[0], Delta::Restart { wait_ms, .. } if wait_ms == expected),
            "{:?}",
            deltas[0]
        );
        let waited = u64::try_from(before.elapsed().as_millis()).unwrap();
        assert!((expected..=expected + 1).contains(&waited), "{waited} ms for {headers:?}");
    }
}

/// Half a second, doubled up to 32 s, and each wait anywhere below: never all at the same moment.
#[tokio::test(start_paused = true)]
async fn waits_of_its_own_are_jittered_and_bounded() {
    let bounds = [500, 1_000, 2_000, 4_000];
    let mut runs = Vec::new();
    for seed in 0..20 {
        let mut endpoint = Endpoint::new("test", Wire::Chat, "http://model.test");
        endpoint.retry.seed = seed;
        let answers = vec![(500, &[][..], "{}".to_owned()); 5];
        let model = connect_with(endpoint, "tiny", Arc::new(Canned(Mutex::new(answers)))).unwrap();
        let (deltas, error) = drain(&model).await;
        assert!(matches!(error, Some(ModelError::GaveUp { attempts: 5, .. })));
        let waits: Vec<u64> = deltas
            .iter()
            .filter_map(
                |delta| if let Delta::Restart { wait_ms, .. } = delta { Some(*wait_ms) } else { None },
            )
            .collect();
        assert!(
            waits.len() == 4 && waits.iter().zip(bounds).all(|(wait, bound)| *wait <= bound),
            "{waits:?}"
        );
        runs.push(waits);
    }
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), 20, "each seed waits differently");
}

#[tokio::test]
async fn a_refused_key_says_which_variable_to_look_at() {
    let echo = error_body(&format!("Incorrect API key provided: {KEY}."));
    let server = Server::start(vec![answer(401, "", &echo)]).await;
    let error = failure(&server.model()).await;
    let text = error.to_string();
    assert!(matches!(error, ModelError::Unauthorized { .. }), "{error:?}");
    assert!(text.contains("Incorrect API key provided: [secret]."), "{text}");
    assert!(text.ends_with("check the key in TEST_API_KEY"), "{text}");
}

#[tokio::test]
async fn a_key_is_hidden_also_with_signs_in_it_that_nobody_sees() {
    let (head, tail) = KEY.split_at(9);
    for between in ["\u{200b}", "\u{2060}\u{feff}", "\u{202e}", "\u{1b}[31m", "\u{7}", "\u{ad}", "\u{fe0e}"] {
        let echo = error_body(&format!("Incorrect API key provided: {head}{between}{tail}."));
        let server = Server::start(vec![answer(401, "", &echo)]).await;
        let text = failure(&server.model()).await.to_string();
        assert!(text.contains("Incorrect API key provided: [secret]."), "{between:?}: {text:?}");
    }
}

/// A key in a header of one's own stands after its scheme, and one in a URL's query after its name;
/// providers repeat the key alone.
#[tokio::test]
async fn a_key_is_hidden_without_what_stands_before_it() {
    let echo = error_body("Incorrect API key provided: header-key-0123, query-key-0123.");
    let server = Server::start(vec![answer(401, "", &echo)]).await;
    let mut endpoint = server.endpoint();
    endpoint.base_url.push_str("/v1?key=query-key-0123&api-version=2026-01-01");
    endpoint.headers.insert("Authorization".to_owned(), "Bearer header-key-0123".to_owned());
    let text = failure(&connect(endpoint, "tiny").unwrap()).await.to_string();
    assert!(text.contains("Incorrect API key provided: [secret], [secret]."), "{text}");
}

#[tokio::test]
async fn no_key_is_an_error_before_anything_else_happens() {
    let server = Server::start(vec![hello()]).await;
    let mut endpoint = server.endpoint();
    endpoint.key = None;
    let error = connect(endpoint, "tiny").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no key for test: set TEST_API_KEY, or use a local model such as ollama/NAME"
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_unknown_model_comes_with_the_near_names() {
    let unknown = r#"{"error":{"message":"The model `tiny` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#;
    let list = r#"{"data":[{"id":"tiny-1"},{"id":"huge-9"},{"id":"tiny-2"}]}"#;
    let server = Server::start(vec![answer(404, "", unknown), answer(200, "", list)]).await;
    let error = failure(&server.model()).await;
    let ModelError::UnknownModel { provider_message, available } = error else { panic!("{error:?}") };
    assert!(provider_message.contains("does not exist"), "{provider_message}");
    assert_eq!(available, ["tiny-1", "tiny-2"]);
    assert_eq!(server.seen()[1].line, "GET /v1/models HTTP/1.1");
    assert_eq!(server.seen()[1].header("authorization"), Some(format!("Bearer {KEY}").as_str()));

    let broken = Server::start(vec![answer(404, "", unknown), vec![Act::Close]]).await;
    let error = failure(&broken.model()).await;
    assert!(matches!(error, ModelError::UnknownModel { available, .. } if available.is_empty()));
}

#[tokio::test]
async fn the_models_of_a_provider_can_be_listed() {
    let list = r#"{"object":"list","data":[{"id":"b"},{"id":"a"}]}"#;
    let server = Server::start(vec![answer(200, "", list), answer(200, "", "not json")]).await;
    let model = server.model();
    assert_eq!(model.list_models().await.unwrap(), ["b", "a"]);
    assert!(matches!(model.list_models().await, Err(ModelError::Protocol(_))));
}

#[tokio::test]
async fn a_provider_without_tools_refuses_them_before_sending() {
    let server = Server::start(vec![hello()]).await;
    let mut endpoint = server.endpoint();
    endpoint.tools = false;
    let model = connect(endpoint, "tiny").unwrap();
    let mut request = request();
    let tool = journeyman_protocol::ToolSpec {
        name: "look".to_owned(),
        description: "Looks.".to_owned(),
        input_schema: serde_json::json!({"type": "object"}),
    };
    request.tools = [tool].into();
    let (_, error) = loopback::drain_request(&model, &request, Default::default()).await;
    assert!(matches!(error, Some(ModelError::ToolsUnsupported { .. })), "{error:?}");
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn long_errors_are_cut_and_odd_ones_survive() {
    let long = error_body(&"é".repeat(100_000));
    let bodies =
        [long, "\u{0}\u{7}".to_owned(), String::new(), "[[[[".to_owned(), "{\"error\":null}".to_owned()];
    for body in bodies {
        for status in [400, 401, 404, 599] {
            let server = Server::start(vec![answer(status, "", &body)]).await;
            let mut endpoint = server.endpoint();
            endpoint.retry.max_attempts = 1;
            let error = failure(&connect(endpoint, "tiny").unwrap()).await;
            assert!(error.to_string().len() < 5_000, "{status}");
        }
    }
}

#[test]
fn a_key_shows_itself_nowhere() {
    let mut endpoint =
        Endpoint::new("test", Wire::Gemini, "https://user:password-1@host.test/v1?key=query-key-1");
    endpoint.key = Some(Secret::new(format!(" {KEY}\n")));
    endpoint.headers.insert("x-token".to_owned(), "header-secret-1".to_owned());
    assert_eq!(endpoint.key.as_ref().unwrap().reveal(), KEY);
    let shown = format!("{endpoint:?} {:?}", connect(endpoint.clone(), "m").unwrap());
    for secret in [KEY, "password-1", "query-key-1", "header-secret-1"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
