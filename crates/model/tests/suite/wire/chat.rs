//! OpenAI Chat Completions and the habits of those who imitate it.

use super::*;
use crate::{Effort, Thinking};

const OPENAI: &str = "https://api.openai.com/v1";
const LOCAL: &str = "http://localhost:8080";

/// Thinking, text and two calls whose arguments come interleaved, as OpenAI, DeepSeek and vLLM
/// write them.
const FULL: &str = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x-2025","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"Two "},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"files."},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"Läuft "},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"🦀"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_A","type":"function","function":{"name":"read_file","arguments":""}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_B","type":"function","function":{"name":"list","arguments":"{\"un"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"der\":\"src\"}"}},{"index":0,"function":{"arguments":"\"a.rs\"}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":12}}}

data: [DONE]

"#;

/// A stream of these deltas and a reason.
pub(super) fn stream(deltas: &[&str], reason: &str) -> String {
    let mut text = String::new();
    for delta in deltas {
        text.push_str(&format!(
            "data: {{\"id\":\"c1\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n"
        ));
    }
    text.push_str(&format!(
        "data: {{\"id\":\"c1\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
    ));
    text
}

#[test]
fn a_full_answer() {
    let (deltas, reply) = decode_split_everywhere(Wire::Chat, FULL).unwrap();
    assert_eq!(
        reply,
        Reply {
            message: assistant(vec![
                thinking("Two files.", None),
                Block::text("Läuft 🦀"),
                call("call_A", "read_file", json!({"path": "a.rs"})),
                call("call_B", "list", json!({"under": "src"})),
            ]),
            stop: StopReason::ToolUse,
            usage: usage(36, 64, 0, 30, 12),
            model: "gpt-x-2025".to_owned(),
        }
    );
    let fragment = |block: u32, fragment: &str| Delta::CallArguments { block, fragment: fragment.to_owned() };
    assert_eq!(
        deltas,
        [
            Delta::MessageStart,
            Delta::Thinking { block: 0, text: "Two ".to_owned() },
            Delta::Thinking { block: 0, text: "files.".to_owned() },
            Delta::BlockEnd { block: 0 },
            Delta::Text { block: 1, text: "Läuft ".to_owned() },
            Delta::Text { block: 1, text: "🦀".to_owned() },
            Delta::BlockEnd { block: 1 },
            Delta::CallStart { block: 2, id: CallId::new("call_A"), name: "read_file".to_owned() },
            Delta::CallStart { block: 3, id: CallId::new("call_B"), name: "list".to_owned() },
            fragment(3, "{\"un"),
            fragment(2, "{\"path\":"),
            fragment(3, "der\":\"src\"}"),
            fragment(2, "\"a.rs\"}"),
            Delta::BlockEnd { block: 2 },
            Delta::BlockEnd { block: 3 },
        ]
    );
}

#[test]
fn a_stream_cut_off_before_its_finish_reason_is_no_reply() {
    let whole = FULL.find("data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":0,\"delta\":{},").unwrap();
    for end in 0..=whole {
        let cut = read(Wire::Chat, [&FULL.as_bytes()[..end]]);
        assert!(cut.as_ref().is_err_and(ModelError::is_retryable), "cut at {end}: {cut:?}");
    }
    let done = format!("{}data: [DONE]\n\n", &FULL[..whole]);
    assert!(decode(Wire::Chat, &done).unwrap_err().is_retryable(), "[DONE] alone ends nothing");
}

#[test]
fn thinking_under_its_many_names() {
    let cases: &[(&str, Option<&str>)] = &[
        (r#"{"reasoning_content":"hm"}"#, None),
        (r#"{"reasoning":"hm"}"#, None),
        (r#"{"reasoning":"hm","reasoning_content":"hm"}"#, None),
        (r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#, None),
        (
            r#"{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","index":0,"format":"x"}]}"#,
            Some(r#"chat:[{"type":"reasoning.text","text":"hm","index":0,"format":"x"}]"#),
        ),
        (
            r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"hm","index":0}]}"#,
            Some(r#"chat:[{"type":"reasoning.summary","summary":"hm","index":0}]"#),
        ),
    ];
    for (delta, signature) in cases {
        let answer = reply(Wire::Chat, &stream(&[delta, r#"{"content":"yes"}"#], "stop"));
        assert_eq!(
            answer.message,
            assistant(vec![thinking("hm", *signature), Block::text("yes")]),
            "{delta}"
        );
    }
}

#[test]
fn reasoning_details_are_put_together_and_go_back() {
    let stream = stream(
        &[
            r#"{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"signature":null}]}"#,
            r#"{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","signature":"s","index":0}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"e","id":"r1","index":1}]}"#,
            r#"{"content":"","tool_calls":[{"index":0,"id":"t","function":{"name":"list","arguments":"{}"}}]}"#,
        ],
        "tool_calls",
    );
    let answer = reply(Wire::Chat, &stream);
    let details = json!([
        {"type": "reasoning.text", "text": "ab", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "e", "id": "r1", "index": 1},
    ]);
    let request = go_on(rich_request("anthropic/claude"), &answer);
    let body = encode(Wire::Chat, "https://openrouter.ai/api/v1", &request);
    let messages = list(&body["messages"]);
    assert_eq!(messages[messages.len() - 2]["reasoning_details"], details);
    validate(&body);
    for base in [OPENAI, "https://api.mistral.ai/v1", "https://api.deepseek.com"] {
        assert!(!encode(Wire::Chat, base, &request).to_string().contains("reasoning_details"), "{base}");
    }
}

#[test]
fn encrypted_details_alone_are_a_hidden_block() {
    let stream = stream(
        &[
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"e","index":0}]}"#,
            r#"{"content":"yes"}"#,
        ],
        "stop",
    );
    let add_hidden_thinking =
        thinking("", Some(r#"chat:[{"type":"reasoning.encrypted","data":"e","index":0}]"#));
    assert_eq!(reply(Wire::Chat, &stream).message, assistant(vec![Block::text("yes"), add_hidden_thinking]));
}

#[test]
fn stop_reasons() {
    let cases = [
        ("stop", StopReason::EndTurn),
        ("tool_calls", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("eos", StopReason::EndTurn),
        ("banana", StopReason::Other("banana".to_owned())),
    ];
    for (word, expected) in cases {
        let answer = reply(Wire::Chat, &stream(&[r#"{"content":"hi"}"#], word));
        assert_eq!((answer.message, answer.stop), (Message::assistant_text("hi"), expected), "{word}");
    }
    let refused = reply(Wire::Chat, &stream(&[r#"{"refusal":"I can't help with that."}"#], "stop"));
    assert_eq!(refused.stop, StopReason::Refusal);
    assert_eq!(refused.message, Message::assistant_text("I can't help with that."));
}

#[test]
fn arguments_cut_off_by_the_output_limit_are_malformed() {
    let piece = |arguments: &str| {
        format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"list","arguments":"{arguments}"}}}}]}}"#
        )
    };
    for (arguments, raw) in [(r#"{\"un"#, "{\"un"), ("", "")] {
        let answer = reply(Wire::Chat, &stream(&[&piece(arguments)], "length"));
        let call = answer.message.tool_uses().next().unwrap();
        assert_eq!((answer.stop, &call.input), (StopReason::MaxTokens, &json!(raw)));
        assert!(call.malformed.as_ref().unwrap().starts_with("the output limit cut the arguments off"));
    }
}

#[test]
fn usage_in_every_place() {
    let cases = [
        (
            r#""usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":4}"#,
            usage(6, 4, 0, 2, 0),
        ),
        (r#""usage":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":4}"#, usage(6, 4, 0, 2, 0)),
        (
            r#""usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":5}}"#,
            usage(2, 3, 5, 2, 0),
        ),
        (r#""x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":2}}"#, usage(10, 0, 0, 2, 0)),
        (
            r#""usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":7}}"#,
            usage(10, 0, 0, 9, 7),
        ),
        (
            r#""usage":{"prompt_tokens":10.0,"completion_tokens":null,"prompt_tokens_details":null}"#,
            usage(10, 0, 0, 0, 0),
        ),
        (r#""usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":5}}"#, usage(0, 5, 0, 0, 0)),
    ];
    for (member, expected) in cases {
        let text = stream(&[r#"{"content":"hi"}"#], "stop")
            .replace("data: [DONE]", &format!("data: {{\"choices\":[],{member}}}\n\ndata: [DONE]"));
        assert_eq!(reply(Wire::Chat, &text).usage, expected, "{member}");
    }
    let moonshot = r#"data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":1}}]}

"#;
    assert_eq!(reply(Wire::Chat, moonshot).usage, usage(3, 0, 0, 1, 0));
}

#[test]
fn errors_inside_the_stream() {
    let begun = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let streamed =
        |message: &str, retryable: bool| ModelError::Stream { message: message.to_owned(), retryable };
    let cases = [
        (r#"{"error":{"message":"boom","type":"server_error"}}"#, streamed("boom", true)),
        (r#"{"error":"boom"}"#, streamed("boom", true)),
        (
            r#"{"error":{"code":502,"message":"Provider error"},"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#,
            streamed("Provider error", true),
        ),
        (
            r#"{"error":{"code":429,"message":"slow"}}"#,
            ModelError::RateLimited { message: "slow".to_owned() },
        ),
        (r#"{"error":{"message":"bad","type":"BadRequestError","code":400}}"#, streamed("bad", false)),
        (
            r#"{"object":"error","message":"old vLLM","type":"InternalServerError","code":500}"#,
            streamed("old vLLM", true),
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#,
            streamed("the server ended the answer with an error and gave no reason", true),
        ),
        (
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
            ModelError::ContextTooLong {
                message: "This model's maximum context length is 8192 tokens.".to_owned(),
            },
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}"#,
            ModelError::Overloaded { message: "the server ran out of resources for the answer".to_owned() },
        ),
    ];
    for (event, expected) in cases {
        assert_eq!(decode(Wire::Chat, &format!("{begun}data: {event}\n\n")), Err(expected), "{event}");
    }
    let garbled = decode(Wire::Chat, &format!("{begun}data: {{\"choices\":[{{\n\n")).unwrap_err();
    assert!(matches!(garbled, ModelError::Stream { retryable: true, .. }), "{garbled:?}");
}

/// The messages of the rich request, as every server gets them.
fn rich_messages(malformed: &str) -> Value {
    let url = json!({"url": "data:image/png;base64,aVBORw=="});
    let function = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}});
    json!([
        {"role": "system", "content": "You are a journeyman.\n\nToday is a day."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is in this image?"},
            {"type": "image_url", "image_url": url},
            {"type": "text", "text": "And in the files?"},
        ]},
        {"role": "assistant", "content": "I'll look.", "tool_calls": [
            function("call_1", "{\"path\":\"a.rs\",\"limit\":5}"),
            function("call_2", "{}"),
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "fn a() {}\n(the image follows in the next message)"},
        {"role": "tool", "tool_call_id": "call_2", "content": "Error: no path given"},
        {"role": "user", "content": [
            {"type": "image_url", "image_url": url},
            {"type": "text", "text": "Go on."},
            {"type": "text", "text": "Still there?"},
        ]},
        {"role": "assistant", "content": null, "tool_calls": [function("call_3", malformed)]},
        {"role": "tool", "tool_call_id": "call_3", "content": "(no output)"},
    ])
}

fn rich_tools() -> Value {
    json!([
        {"type": "function", "function": {
            "name": "read_file",
            "description": "Reads a file.",
            "parameters": read_file_spec().input_schema,
        }},
        {"type": "function", "function": {
            "name": "list",
            "description": "Lists.",
            "parameters": {"type": "object", "properties": {}},
        }},
    ])
}

#[test]
fn a_rich_request_to_openai() {
    let request = ModelRequest {
        max_output: Some(Tokens(900)),
        temperature: Some(0.5),
        thinking: Some(Thinking::Budget(9_000)),
        session: Some("s".repeat(70)),
        ..rich_request("gpt-5")
    };
    let encoded = codec(Wire::Chat, OPENAI).encode(&request).unwrap();
    assert_eq!(encoded.path, "/v1/chat/completions");
    assert_eq!(
        encoded.body,
        json!({
            "model": "gpt-5",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_completion_tokens": 900,
            "temperature": 0.5,
            "reasoning_effort": "high",
            "prompt_cache_key": "s".repeat(64),
            "tools": rich_tools(),
            "messages": rich_messages("{\"path\": "),
        })
    );
    validate(&encoded.body);
}

#[test]
fn a_rich_request_to_a_server_that_is_not_known() {
    let request =
        ModelRequest { max_output: Some(Tokens(900)), session: Some("s".to_owned()), ..rich_request("qwen") };
    let body = encode(Wire::Chat, LOCAL, &request);
    assert_eq!(
        body,
        json!({
            "model": "qwen",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 900,
            "tools": rich_tools(),
            "messages": rich_messages("{\"_malformed\":\"{\\\"path\\\": \"}"),
        })
    );
    validate(&body);
    assert_stable_prefix(Wire::Chat, LOCAL, &request, "messages", "");
}

#[test]
fn a_plain_conversation_is_plain_strings() {
    let request = ModelRequest {
        model: "m".to_owned(),
        messages: vec![Message::user_text("a"), Message::user_text("b")],
        ..ModelRequest::default()
    };
    let body = encode(Wire::Chat, LOCAL, &request);
    assert_eq!(
        body,
        json!({
            "model": "m",
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": "a\n\nb"}],
        })
    );
}

#[test]
fn what_servers_of_their_own_mind_get() {
    let request = ModelRequest { thinking: Some(Thinking::Effort(Effort::Low)), ..rich_request("m") };
    let mistral = encode(Wire::Chat, "https://api.mistral.ai/v1", &request);
    assert_eq!(mistral["stream_options"], Value::Null);
    for message in list(&mistral["messages"]) {
        let ids = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]);
        for id in ids.chain(message.get("tool_call_id")) {
            assert!(
                string(id).len() == 9 && string(id).bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{id}"
            );
        }
    }
    validate(&mistral);
    // Mistral refuses a user's message right after a result.
    let roles = |body: &Value| -> Vec<String> {
        list(&body["messages"]).iter().map(|message| string(&message["role"]).to_owned()).collect()
    };
    for base in ["https://api.mistral.ai/v1", LOCAL, "https://openrouter.ai/api/v1"] {
        let said = roles(&encode(
            Wire::Chat,
            base,
            &ModelRequest { model: "Devstral-Small".to_owned(), ..request.clone() },
        ));
        let refused = said.windows(2).any(|pair| pair == ["tool", "user"]);
        assert!(!refused && said.windows(2).any(|pair| pair == ["tool", "assistant"]), "{base}: {said:?}");
    }
    let said = roles(&encode(Wire::Chat, LOCAL, &request));
    assert!(said.windows(2).any(|pair| pair == ["tool", "user"]), "{said:?}");
    let router = "https://openrouter.ai/api/v1";
    assert_eq!(encode(Wire::Chat, router, &request)["reasoning"], json!({"effort": "low"}));
    let budget = ModelRequest { thinking: Some(Thinking::Budget(5_000)), ..request };
    assert_eq!(encode(Wire::Chat, router, &budget)["reasoning"], json!({"max_tokens": 5000}));
}

#[test]
fn thinking_goes_back_only_where_it_must() {
    let answer = reply(Wire::Chat, FULL);
    let request = go_on(rich_request("m"), &answer);
    for base in [OPENAI, LOCAL, "https://api.mistral.ai/v1", "https://openrouter.ai/api/v1"] {
        let body = encode(Wire::Chat, base, &request);
        assert!(!body.to_string().contains("reasoning_content"), "{base}");
        validate(&body);
    }
    for base in ["https://api.deepseek.com", "https://api.moonshot.ai/v1"] {
        let body = encode(Wire::Chat, base, &request);
        validate(&body);
        let given: Vec<&Value> = list(&body["messages"])
            .iter()
            .filter(|message| message["role"] == "assistant")
            .map(|message| &message["reasoning_content"])
            .collect();
        // Every message with calls has the member, also those of other models.
        assert_eq!(given, [&json!("of some other provider"), &json!(""), &json!("Two files.")], "{base}");
    }
}

#[test]
fn what_a_call_carries_extra_goes_back_with_it() {
    let piece = r#"{"tool_calls":[{"index":0,"id":"a","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"list","arguments":"{}"}}]}"#;
    let answer = reply(Wire::Chat, &stream(&[piece], "tool_calls"));
    let request = go_on(rich_request("gemini"), &answer);
    let last_call = |base: &str| {
        let body = encode(Wire::Chat, base, &request);
        let messages = list(&body["messages"]);
        messages[messages.len() - 2]["tool_calls"][0]["extra_content"].clone()
    };
    assert_eq!(
        last_call("https://generativelanguage.googleapis.com/v1beta/openai"),
        json!({"google": {"thought_signature": "s"}})
    );
    assert_eq!(last_call(OPENAI), Value::Null);
}

#[test]
fn keys_and_names_of_models() {
    let key = crate::Secret::new("k");
    assert_eq!(codec(Wire::Chat, OPENAI).auth_headers(&key), [("authorization", "Bearer k".to_owned())]);
    assert_eq!(
        codec(Wire::Chat, "https://x.openai.azure.com/openai/v1").auth_headers(&key),
        [("api-key", "k".to_owned())]
    );
    let names = |body: Value| codec(Wire::Chat, LOCAL).parse_model_names(&body);
    assert_eq!(names(json!({"object": "list", "data": [{"id": "a"}, {"id": "b"}]})), ["a", "b"]);
    assert_eq!(names(json!([{"id": "a"}])), ["a"]);
    assert_eq!(names(json!({"models": [{"name": "a"}]})), ["a"]);
    assert!(names(json!("no")).is_empty());
}

/// What the protocol refuses, as far as its documents say so.
pub(super) fn validate(body: &Value) {
    let mut open: Vec<&str> = Vec::new();
    let messages = list(&body["messages"]);
    for (place, message) in messages.iter().enumerate() {
        match string(&message["role"]) {
            "system" => assert_eq!(place, 0),
            "user" => {
                assert!(open.is_empty(), "every call is answered before anything else");
                match &message["content"] {
                    Value::String(text) => assert!(!text.is_empty()),
                    parts => {
                        for part in list(parts) {
                            assert!(part["type"] == "text" || part["image_url"]["url"].is_string());
                        }
                    }
                }
            }
            "assistant" => {
                assert!(open.is_empty());
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                assert!(message["content"].is_string() || !calls.is_empty());
                for call in calls {
                    assert!(
                        call["function"]["name"].is_string() && call["function"]["arguments"].is_string()
                    );
                    open.push(string(&call["id"]));
                }
            }
            "tool" => {
                assert!(message["content"].is_string());
                let id = string(&message["tool_call_id"]);
                assert!(open.contains(&id));
                open.retain(|other| *other != id);
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.is_empty());
}

/// As gateways of Gemini send it.
#[test]
fn content_goes_on_after_a_finish_reason() {
    let chunk = |delta: &str, reason: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":\"{reason}\"}}]}}\n\n"
        )
    };
    let call = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"list","arguments":"{}"}}]}"#;
    let stream = [
        chunk(r#"{"reasoning_content":"hm"}"#, "stop"),
        chunk(r#"{"content":"I lo"}"#, "stop"),
        chunk(r#"{"content":"ok."}"#, "stop"),
        chunk(call, "length"),
        chunk(r#"{"content":""}"#, "stop"),
        "data: {\"choices\":[{\"index\":0,\"message\":{\"content\":\"I look.\"},\"finish_reason\":\"stop\"}]}\n\n".to_owned(),
    ];
    let reply = reply(Wire::Chat, &stream.concat());
    assert_eq!(reply.message.text(), "I look.");
    assert_eq!(reply.message.content.len(), 3, "{reply:?}");
    assert_eq!(reply.stop, StopReason::MaxTokens);
}
