//! Gemini.

use super::*;
use crate::{Effort, Thinking};

const BASE: &str = "https://generativelanguage.googleapis.com";

/// A thought summary, text with a signature of its own, two calls of which the first is signed.
const FULL: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"**Two** ","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":110,"thoughtsTokenCount":10},"modelVersion":"gemini-3-pro-preview","responseId":"r-1"}

data: {"candidates":[{"content":{"parts":[{"text":"files.","thought":true}],"role":"model"},"index":0}],"modelVersion":"gemini-3-pro-preview","responseId":"r-1"}

data: {"candidates":[{"content":{"parts":[{"text":"Läuft "}],"role":"model"},"index":0}],"modelVersion":"gemini-3-pro-preview","responseId":"r-1"}

data: {"candidates":[{"content":{"parts":[{"text":"🦀"},{"text":"","thoughtSignature":"c2lnMA=="}],"role":"model"},"index":0}],"responseId":"r-1"}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"read_file","args":{"path":"a.rs"},"id":"fc-1"},"thoughtSignature":"c2lnMQ=="},{"functionCall":{"name":"list","args":{}}}],"role":"model"},"index":0}],"responseId":"r-1"}

data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0,"safetyRatings":[]}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":20,"thoughtsTokenCount":10,"totalTokenCount":130},"modelVersion":"gemini-3-pro-preview","responseId":"r-1"}

"#;

fn signed(id: &str, name: &str, input: Value, signature: &str) -> Block {
    let Block::ToolUse(call) = call(id, name, input) else { unreachable!() };
    Block::ToolUse(ToolUse { signature: Some(signature.to_owned()), ..call })
}

fn chunk(candidate: &str) -> String {
    format!("data: {{\"candidates\":[{candidate}],\"responseId\":\"r\"}}\n\n")
}

#[test]
fn a_full_answer() {
    let (deltas, reply) = decode_split_everywhere(Wire::Gemini, FULL).unwrap();
    let made_up = reply.message.tool_uses().nth(1).unwrap().id.clone();
    assert!(made_up.as_str().starts_with("jm_"));
    assert_eq!(
        reply,
        Reply {
            message: assistant(vec![
                thinking("**Two** files.", None),
                Block::text("Läuft 🦀"),
                thinking("", Some("gemini:c2lnMA==")),
                signed("fc-1", "read_file", json!({"path": "a.rs"}), "gemini:c2lnMQ=="),
                call(made_up.as_str(), "list", json!({})),
            ]),
            stop: StopReason::ToolUse,
            usage: usage(40, 60, 0, 30, 10),
            model: "gemini-3-pro-preview".to_owned(),
        }
    );
    assert_eq!(
        deltas,
        [
            Delta::MessageStart,
            Delta::Thinking { block: 0, text: "**Two** ".to_owned() },
            Delta::Thinking { block: 0, text: "files.".to_owned() },
            Delta::BlockEnd { block: 0 },
            Delta::Text { block: 1, text: "Läuft ".to_owned() },
            Delta::Text { block: 1, text: "🦀".to_owned() },
            Delta::BlockEnd { block: 1 },
            Delta::BlockEnd { block: 2 },
            Delta::CallStart { block: 3, id: CallId::new("fc-1"), name: "read_file".to_owned() },
            Delta::CallArguments { block: 3, fragment: "{\"path\":\"a.rs\"}".to_owned() },
            Delta::BlockEnd { block: 3 },
            Delta::CallStart { block: 4, id: made_up, name: "list".to_owned() },
            Delta::CallArguments { block: 4, fragment: "{}".to_owned() },
            Delta::BlockEnd { block: 4 },
        ]
    );
}

#[test]
fn a_stream_cut_off_before_its_finish_reason_is_no_reply() {
    let whole = FULL.rfind("data: ").unwrap();
    for end in 0..=whole {
        let cut = read(Wire::Gemini, [&FULL.as_bytes()[..end]]);
        assert!(cut.as_ref().is_err_and(ModelError::is_retryable), "cut at {end}: {cut:?}");
    }
}

#[test]
fn finish_reasons() {
    let cases = [
        ("STOP", StopReason::EndTurn),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("SAFETY", StopReason::Refusal),
        ("RECITATION", StopReason::Refusal),
        ("PROHIBITED_CONTENT", StopReason::Refusal),
        ("SPII", StopReason::Refusal),
        ("TOO_MANY_TOOL_CALLS", StopReason::Other("TOO_MANY_TOOL_CALLS".to_owned())),
    ];
    for (word, expected) in cases {
        let stream =
            chunk(&format!(r#"{{"content":{{"parts":[{{"text":"hi"}}]}},"finishReason":"{word}"}}"#));
        let answer = reply(Wire::Gemini, &stream);
        assert_eq!((answer.message, answer.stop), (Message::assistant_text("hi"), expected), "{word}");
    }
    let garbled =
        chunk(r#"{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(default_api.x"}"#);
    assert_eq!(
        decode(Wire::Gemini, &garbled),
        Err(ModelError::Stream {
            message: "MALFORMED_FUNCTION_CALL: print(default_api.x".to_owned(),
            retryable: true
        })
    );
}

#[test]
fn a_blocked_prompt_is_a_refusal() {
    let stream = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"},\"usageMetadata\":{\"promptTokenCount\":7}}\n\n";
    let answer = reply(Wire::Gemini, stream);
    assert_eq!(
        (answer.message, answer.stop, answer.usage),
        (assistant(vec![]), StopReason::Refusal, usage(7, 0, 0, 0, 0))
    );
}

#[test]
fn errors_inside_the_stream() {
    let begun = FULL.split_inclusive("\n\n").next().unwrap();
    let cases = [
        (
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
            ModelError::Overloaded { message: "The model is overloaded.".to_owned() },
        ),
        (
            r#"[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}]"#,
            ModelError::RateLimited { message: "Resource has been exhausted".to_owned() },
        ),
        (
            r#"{"error":{"code":500,"message":"Internal error","status":"INTERNAL"}}"#,
            ModelError::Stream { message: "Internal error".to_owned(), retryable: true },
        ),
        (
            r#"{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT"}}"#,
            ModelError::Stream { message: "Bad".to_owned(), retryable: false },
        ),
    ];
    for (event, expected) in cases {
        assert_eq!(decode(Wire::Gemini, &format!("{begun}data: {event}\n\n")), Err(expected), "{event}");
    }
}

#[test]
fn a_rich_request() {
    let png = json!({"inlineData": {"mimeType": "image/png", "data": "aVBORw=="}});
    let request = ModelRequest {
        max_output: Some(Tokens(9)),
        temperature: Some(0.5),
        top_p: Some(0.5),
        thinking: Some(Thinking::Effort(Effort::Medium)),
        ..rich_request("gemini-2.5-pro")
    };
    let encoded = codec(Wire::Gemini, BASE).encode(&request).unwrap();
    assert_eq!(encoded.path, "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    assert_eq!(
        encoded.body,
        json!({
            "generationConfig": {
                "maxOutputTokens": 9,
                "temperature": 0.5,
                "topP": 0.5,
                "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 8192},
            },
            "tools": [{"functionDeclarations": [
                {"name": "read_file", "description": "Reads a file.", "parameters": {
                    "type": "object",
                    "required": ["path"],
                    "properties": {
                        "path": {"type": "string", "description": "The file."},
                        "limit": {"type": "integer", "minimum": 1, "nullable": true},
                    },
                }},
                {"name": "list", "description": "Lists."},
            ]}],
            "systemInstruction": {"parts": [{"text": "You are a journeyman."}, {"text": "Today is a day."}]},
            "contents": [
                {"role": "user", "parts": [
                    {"text": "What is in this image?"},
                    png,
                    {"text": "And in the files?"},
                ]},
                {"role": "model", "parts": [
                    {"text": "I'll look."},
                    {"functionCall": {"id": "call_1", "name": "read_file", "args": {"path": "a.rs", "limit": 5}}},
                    {"functionCall": {"id": "call_2", "name": "read_file", "args": {}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {
                        "id": "call_1",
                        "name": "read_file",
                        "response": {"output": "fn a() {}\n(the image follows)"},
                    }},
                    {"functionResponse": {"id": "call_2", "name": "read_file", "response": {"error": "no path given"}}},
                    png,
                    {"text": "Go on."},
                    {"text": "Still there?"},
                ]},
                {"role": "model", "parts": [
                    {"functionCall": {"id": "call_3", "name": "read_file", "args": {"_malformed": "{\"path\": "}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "call_3", "name": "read_file", "response": {"output": "(no output)"}}},
                ]},
            ],
        })
    );
    validate(&encoded.body);
    assert_stable_prefix(Wire::Gemini, BASE, &request, "contents", "");
}

#[test]
fn thinking_by_level_or_budget() {
    let cases = [
        (
            "gemini-3-pro-preview",
            Thinking::Effort(Effort::Low),
            json!({"includeThoughts": true, "thinkingLevel": "low"}),
        ),
        ("gemini-3.1-flash", Thinking::Budget(77), json!({"includeThoughts": true, "thinkingBudget": 77})),
        (
            "gemini-2.5-flash",
            Thinking::Effort(Effort::High),
            json!({"includeThoughts": true, "thinkingBudget": 24576}),
        ),
        (
            "gemini-flash-latest",
            Thinking::Effort(Effort::Low),
            json!({"includeThoughts": true, "thinkingBudget": 1024}),
        ),
    ];
    for (model, thinking, expected) in cases {
        let request = ModelRequest {
            model: model.to_owned(),
            thinking: Some(thinking),
            messages: vec![Message::user_text("hi")],
            ..ModelRequest::default()
        };
        let body = encode(Wire::Gemini, BASE, &request);
        assert_eq!(body["generationConfig"]["thinkingConfig"], expected, "{model}");
    }
}

#[test]
fn calls_of_other_models_pass_where_signatures_are_checked() {
    let body = encode(Wire::Gemini, BASE, &rich_request("gemini-3-pro-preview"));
    let signatures = |turn: usize| -> Vec<Value> {
        let parts =
            list(&body["contents"][turn]["parts"]).iter().filter(|part| part.get("functionCall").is_some());
        parts.map(|part| part["thoughtSignature"].clone()).collect()
    };
    assert_eq!(signatures(1), [json!("skip_thought_signature_validator"), Value::Null]);
    assert_eq!(signatures(3), [json!("skip_thought_signature_validator")]);
}

#[test]
fn a_decoded_reply_goes_back_unchanged() {
    let answer = reply(Wire::Gemini, FULL);
    let request = go_on(rich_request("gemini-3-pro-preview"), &answer);
    let body = encode(Wire::Gemini, BASE, &request);
    validate(&body);
    let contents = list(&body["contents"]);
    assert_eq!(
        contents[contents.len() - 2..],
        [
            json!({"role": "model", "parts": [
                {"text": "Läuft 🦀"},
                {"text": "", "thoughtSignature": "c2lnMA=="},
                {
                    "functionCall": {"id": "fc-1", "name": "read_file", "args": {"path": "a.rs"}},
                    "thoughtSignature": "c2lnMQ==",
                },
                {"functionCall": {"name": "list", "args": {}}},
            ]}),
            json!({"role": "user", "parts": [
                {"functionResponse": {"id": "fc-1", "name": "read_file", "response": {"output": "done"}}},
                {"functionResponse": {"name": "list", "response": {"output": "done"}}},
            ]}),
        ]
    );
    assert_stable_prefix(Wire::Gemini, BASE, &request, "contents", "");
}

#[test]
fn a_signed_thought_goes_back_with_its_text() {
    let stream = chunk(
        r#"{"content":{"parts":[{"text":"hm","thought":true,"thoughtSignature":"s"},{"text":"yes"}]},"finishReason":"STOP"}"#,
    );
    let answer = reply(Wire::Gemini, &stream);
    assert_eq!(answer.message, assistant(vec![thinking("hm", Some("gemini:s")), Block::text("yes")]));
    let body = encode(Wire::Gemini, BASE, &go_on(rich_request("gemini-3"), &answer));
    let contents = list(&body["contents"]);
    assert_eq!(
        contents[contents.len() - 2]["parts"],
        json!([{"text": "hm", "thought": true, "thoughtSignature": "s"}, {"text": "yes"}])
    );
}

#[test]
fn paths_keys_and_names_of_models() {
    let path = |model: &str| {
        let request = ModelRequest {
            model: model.to_owned(),
            messages: vec![Message::user_text("hi")],
            ..ModelRequest::default()
        };
        codec(Wire::Gemini, BASE).encode(&request).unwrap().path
    };
    assert_eq!(path("models/g"), "/v1beta/models/g:streamGenerateContent?alt=sse");
    assert_eq!(path("tunedModels/g"), "/v1beta/tunedModels/g:streamGenerateContent?alt=sse");
    assert_eq!(path("a b?c#d"), "/v1beta/models/a%20b%3Fc%23d:streamGenerateContent?alt=sse");
    assert_eq!(
        codec(Wire::Gemini, BASE).auth_headers(&crate::Secret::new("k")),
        [("x-goog-api-key", "k".to_owned())]
    );
    let body = json!({"models": [
        {"name": "models/gemini-a", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/gemini-b"},
    ]});
    assert_eq!(codec(Wire::Gemini, BASE).parse_model_names(&body), ["gemini-a", "gemini-b"]);
}

/// What the API refuses, as far as its documents say so.
pub(super) fn validate(body: &Value) {
    let mut open: Vec<(Option<&str>, &str)> = Vec::new();
    for (place, turn) in list(&body["contents"]).iter().enumerate() {
        assert_eq!(turn["role"], if place % 2 == 0 { "user" } else { "model" }, "turns alternate");
        let parts = list(&turn["parts"]);
        assert!(!parts.is_empty());
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for part in parts {
            if let Some(call) = part.get("functionCall") {
                assert!(call["args"].is_object());
                calls.push((call["id"].as_str(), string(&call["name"])));
            } else if let Some(result) = part.get("functionResponse") {
                assert!(result["response"].is_object());
                results.push((result["id"].as_str(), string(&result["name"])));
            } else if let Some(text) = part.get("text") {
                assert!(!string(text).is_empty() || part.get("thoughtSignature").is_some());
            } else {
                assert!(part["inlineData"]["data"].is_string());
            }
        }
        assert_eq!(results, open, "as many responses as calls, in their order");
        open = calls;
    }
    assert!(open.is_empty());
}

#[test]
fn a_call_without_a_name_is_a_call() {
    let answer = reply(
        Wire::Gemini,
        r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"args":{"path":"a.rs"},"id":"fc-1"}}],"role":"model"},"finishReason":"STOP","index":0}],"responseId":"r-1"}

"#,
    );
    let calls: Vec<(&str, &str)> =
        answer.message.tool_uses().map(|call| (call.id.as_str(), call.name.as_str())).collect();
    assert_eq!((calls, answer.stop), (vec![("fc-1", "")], StopReason::ToolUse));
}

#[test]
fn content_goes_on_after_a_finish_reason() {
    let chunk = |parts: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
        )
    };
    let stream = [
        chunk(""),
        chunk(r#"{"text":"I lo"}"#),
        chunk(r#"{"text":"ok."}"#),
        chunk(r#"{"functionCall":{"name":"list","args":{}}}"#),
        chunk(""),
    ];
    let reply = reply(Wire::Gemini, &stream.concat());
    assert_eq!(reply.message.text(), "I look.");
    assert_eq!((reply.message.content.len(), reply.stop), (2, StopReason::ToolUse));
}
