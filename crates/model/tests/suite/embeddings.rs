//! Vectors over HTTP: what is sent, what is tried again, what is refused; and a real server.

use crate::loopback;

use journeyman_model::{EmbeddingsClient, Endpoint, MAX_TEXTS_PER_REQUEST, ModelError, Wire};
use journeyman_testkit::skip;
use loopback::{Act, KEY, Server, answer, error_body};
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn good() -> Vec<Act> {
    let body =
        json!({"data": [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.5]}]});
    answer(200, "content-type: application/json\r\n", &body.to_string())
}

fn embeddings(server: &Server) -> EmbeddingsClient {
    EmbeddingsClient::connect(server.endpoint(), "tiny").unwrap()
}

async fn ask(embeddings: &EmbeddingsClient) -> Result<Vec<Vec<f32>>, ModelError> {
    embeddings.embed(&["one", "two"], &CancellationToken::new()).await
}

#[tokio::test]
async fn texts_go_out_together_and_come_back_in_order() {
    let server = Server::start(vec![good()]).await;
    let embeddings = embeddings(&server);
    assert_eq!(embeddings.name(), "test/tiny");
    assert_eq!(ask(&embeddings).await.unwrap(), [vec![1.0, 0.5], vec![0.0, 1.0]]);
    let seen = server.seen();
    assert_eq!(seen[0].line, "POST /v1/embeddings HTTP/1.1");
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen[0].body, json!({"model": "tiny", "input": ["one", "two"], "encoding_format": "base64"}));
    assert_eq!(embeddings.embed(&[], &CancellationToken::new()).await, Ok(vec![]));
    let many = vec!["x"; MAX_TEXTS_PER_REQUEST + 1];
    assert!(embeddings.embed(&many, &CancellationToken::new()).await.is_err());
    assert_eq!(server.seen().len(), 1, "nothing was asked for them");
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_may_not_is_not() {
    for first in [
        answer(429, "retry-after-ms: 5\r\n", &error_body("slow down")),
        answer(503, "", &error_body("loading")),
        vec![Act::Reset],
        vec![Act::Close],
    ] {
        let server = Server::start(vec![first, good()]).await;
        assert_eq!(ask(&embeddings(&server)).await.unwrap().len(), 2);
        assert_eq!(server.seen().len(), 2);
    }
    for (status, said) in [(401, "key"), (400, "no such thing"), (501, "no such thing")] {
        let server = Server::start(vec![answer(status, "", &error_body("no such thing")), good()]).await;
        let told = ask(&embeddings(&server)).await.unwrap_err().to_string();
        assert!(told.contains(said) && !told.contains(KEY), "{told}");
        assert_eq!(server.seen().len(), 1);
    }
    let long = "input (900 tokens) is too large to process. increase the physical batch size";
    let server = Server::start(vec![answer(500, "", &error_body(long)), good()]).await;
    let error = ask(&embeddings(&server)).await.unwrap_err();
    assert!(matches!(error, ModelError::ContextTooLong { .. }), "{error}");
    assert_eq!(server.seen().len(), 1, "the same text is as long the next time");
    let server = Server::start(vec![answer(500, "", &error_body(&format!("about {KEY}")))]).await;
    let error = ask(&embeddings(&server)).await.unwrap_err();
    assert!(matches!(error, ModelError::GaveUp { attempts: 5, .. }), "{error}");
    assert!(!error.to_string().contains(KEY));
}

#[tokio::test]
async fn an_answer_without_usable_vectors_is_refused() {
    for body in [json!({"data": []}), json!({"data": [{"embedding": [1]}]}), json!("<html>")] {
        let server = Server::start(vec![answer(200, "", &body.to_string()), good()]).await;
        let error = ask(&embeddings(&server)).await.unwrap_err();
        assert!(matches!(error, ModelError::Protocol(_)), "{error}");
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn cancelling_ends_the_exchange() {
    let server = Server::start(vec![vec![Act::Hang]]).await;
    let embeddings = embeddings(&server);
    let cancel = CancellationToken::new();
    let (result, ()) = tokio::join!(embeddings.embed(&["one"], &cancel), async {
        while server.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(result, Err(ModelError::Cancelled));
    drop(embeddings);
    server.client_gone().await;
}

#[test]
fn a_protocol_without_vectors_is_refused_at_once() {
    for wire in [Wire::Anthropic, Wire::Gemini] {
        let told =
            EmbeddingsClient::connect(Endpoint::new("x", wire, "http://127.0.0.1:1"), "m").unwrap_err();
        assert!(told.to_string().contains("/embeddings"), "{told}");
    }
    let mut endpoint = Endpoint::new("x", Wire::Chat, "http://127.0.0.1:1");
    endpoint.key_env = vec!["X_KEY".to_owned()];
    assert!(matches!(EmbeddingsClient::connect(endpoint, "m"), Err(ModelError::NoKey { .. })));
}

/// The server that `.ci/run` starts, whose address is in `JM_TEST_EMBEDDINGS_URL`: llama.cpp's,
/// with a model that was made for something else. That the same text gives the same vector, and a
/// text like it one that is nearer than another's, is all that is asked of it.
#[tokio::test]
async fn a_real_server_gives_vectors() {
    let Some(address) = std::env::var("JM_TEST_EMBEDDINGS_URL").ok().filter(|url| !url.is_empty()) else {
        skip("JM_TEST_EMBEDDINGS_URL names no server");
        return;
    };
    let endpoint = Endpoint::new("llama.cpp", Wire::Chat, format!("{address}/v1"));
    let embeddings = EmbeddingsClient::connect(endpoint, "smollm2").unwrap();
    let texts = [
        "fn read_file(path)",
        "fn read_files(paths)",
        "The capital of France is Paris.",
        "fn read_file(path)",
    ];
    let vectors = embeddings.embed(&texts, &CancellationToken::new()).await.unwrap();
    assert_eq!(vectors.len(), 4);
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let [one, like, other, same] = [0, 1, 2, 3].map(|at| vectors[at].as_slice());
    assert!(one.len() > 100, "{}", one.len());
    assert!(cosine(one, same) > 0.999, "{}", cosine(one, same));
    assert!(cosine(one, like) > cosine(one, other), "{} {}", cosine(one, like), cosine(one, other));
}
