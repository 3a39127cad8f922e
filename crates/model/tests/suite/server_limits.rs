//! Limits that servers tell: the questions, and answers of any kind.

use std::time::Duration;

use journeyman_model::{Endpoint, HttpModel, Model as _, ServerLimits, Wire, connect};
use journeyman_protocol::Tokens;
use journeyman_testkit::skip;
use serde_json::{Value, json};

use crate::loopback::{Act, Server, answer, error_body};

fn model(server: &Server, provider: &str) -> HttpModel {
    connect(Endpoint::new(provider, Wire::Chat, format!("{}/v1", server.url())), "tiny").unwrap()
}

fn good(body: &Value) -> Vec<Act> {
    answer(200, "", &body.to_string())
}

fn told(window: u64, is_final: bool) -> Option<ServerLimits> {
    Some(ServerLimits { window: Tokens(window), max_output: None, is_final })
}

#[tokio::test]
async fn each_server_is_asked_in_its_own_way() {
    let not_found = || answer(404, "", &error_body("no such path"));
    let props = json!({ "default_generation_settings": { "n_ctx": 16_384, "params": {} }, "total_slots": 1 });
    let studio = json!({ "data": [{ "id": "tiny", "loaded_context_length": 12_000 }] });
    let vllm = json!({ "data": [{ "id": "tiny", "max_model_len": 40_960 }] });
    let groq = json!({ "data": [{ "id": "tiny", "context_window": 131_072, "active": true }] });
    let bare = json!({ "data": [{ "id": "tiny", "owned_by": "library" }] });
    let version = json!({ "version": "0.20.1" });
    let none_loaded = json!({ "models": [] });
    let loaded = json!({ "models": [{ "name": "tiny:latest", "context_length": 32_768 }] });
    let shown = json!({ "parameters": "num_ctx 8192", "model_info": { "llama.context_length": 131_072 } });
    let cases = [
        ("llamacpp", vec![good(&props)], vec!["GET /props HTTP/1.1"], told(16_384, true)),
        ("lmstudio", vec![good(&studio)], vec!["GET /api/v0/models HTTP/1.1"], told(12_000, true)),
        ("vllm", vec![good(&vllm)], vec!["GET /v1/models HTTP/1.1"], told(40_960, true)),
        ("ollama", vec![good(&loaded)], vec!["GET /api/ps HTTP/1.1"], told(32_768, true)),
        (
            "ollama",
            vec![good(&none_loaded), good(&shown)],
            vec!["GET /api/ps HTTP/1.1", "POST /api/show HTTP/1.1"],
            told(8_192, false),
        ),
        (
            "ollama",
            vec![not_found(), good(&shown)],
            vec!["GET /api/ps HTTP/1.1", "POST /api/show HTTP/1.1"],
            told(8_192, false),
        ),
        ("groq", vec![good(&groq)], vec!["GET /v1/models HTTP/1.1"], told(131_072, true)),
        (
            "custom",
            vec![good(&bare), good(&props)],
            vec!["GET /v1/models HTTP/1.1", "GET /props HTTP/1.1"],
            told(16_384, true),
        ),
        (
            "custom",
            vec![not_found(), not_found(), good(&studio)],
            vec!["GET /v1/models HTTP/1.1", "GET /props HTTP/1.1", "GET /api/v0/models HTTP/1.1"],
            told(12_000, true),
        ),
        (
            "custom",
            vec![good(&bare), not_found(), not_found(), good(&version), good(&none_loaded), good(&shown)],
            vec![
                "GET /v1/models HTTP/1.1",
                "GET /props HTTP/1.1",
                "GET /api/v0/models HTTP/1.1",
                "GET /api/version HTTP/1.1",
                "GET /api/ps HTTP/1.1",
                "POST /api/show HTTP/1.1",
            ],
            told(8_192, false),
        ),
        (
            "custom",
            vec![good(&bare)],
            vec![
                "GET /v1/models HTTP/1.1",
                "GET /props HTTP/1.1",
                "GET /api/v0/models HTTP/1.1",
                "GET /api/version HTTP/1.1",
            ],
            None,
        ),
    ];
    for (provider, scripts, lines, limits) in cases {
        let server = Server::start(scripts).await;
        assert_eq!(model(&server, provider).query_limits().await, limits, "{provider}");
        let seen: Vec<String> = server.seen().into_iter().map(|request| request.line).collect();
        assert_eq!(seen, lines, "{provider}");
    }
}

#[tokio::test]
async fn what_is_no_answer_tells_nothing() {
    let absurd = |window: Value| good(&json!({ "default_generation_settings": { "n_ctx": window } }));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for script in [
        absurd(json!(0)),
        absurd(json!(-1)),
        absurd(json!(12)),
        absurd(json!(1e300)),
        absurd(json!(u64::MAX)),
        absurd(json!("16384")),
        answer(200, "", &deep),
        answer(200, "", "<html>"),
        answer(500, "", &error_body("loading")),
        answer(301, "location: /props\r\n", ""),
        vec![Act::Reset],
        vec![Act::Close],
    ] {
        let server = Server::start(vec![script.clone()]).await;
        assert_eq!(model(&server, "llamacpp").query_limits().await, None, "{script:?}");
    }
    let endless = [
        Act::Send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_vec()),
        Act::Send(vec![b' '; 9 << 20]),
        Act::Hang,
    ];
    let server = Server::start(vec![endless.to_vec()]).await;
    assert_eq!(model(&server, "llamacpp").query_limits().await, None, "more than it reads");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_not_waited_for() {
    let server = Server::start(vec![vec![Act::Hang]]).await;
    let model = model(&server, "ollama");
    let began = tokio::time::Instant::now();
    assert_eq!(model.query_limits().await, None);
    assert!(began.elapsed() <= Duration::from_secs(6));
}

#[tokio::test]
async fn a_real_llama_cpp_tells_its_window() {
    let Ok(address) = std::env::var("JM_TEST_MODEL_URL") else {
        skip("JM_TEST_MODEL_URL names no model server");
        return;
    };
    for provider in ["llamacpp", "custom"] {
        let endpoint = Endpoint::new(provider, Wire::Chat, format!("{address}/v1"));
        let limits = connect(endpoint, "smollm2").unwrap().query_limits().await.unwrap();
        assert!(limits.is_final && (1_024..=131_072).contains(&limits.window.0), "{provider}: {limits:?}");
    }
}
