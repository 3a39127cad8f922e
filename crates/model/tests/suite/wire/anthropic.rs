//! Anthropic Messages.

use super::*;
use crate::{Effort, Thinking};

const BASE: &str = "https://api.anthropic.com";

/// Thinking with a signature, redacted thinking, text with a character of four bytes, two calls
/// (the second without arguments), pings, unknown events and members, usage with caches.
const FULL: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"cache_creation":{"ephemeral_5m_input_tokens":300},"output_tokens":1,"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Two files "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"to read."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB/sig=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: some_future_event
data: {"type":"some_future_event","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Läuft "}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"🦀"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_01A","name":"read_file","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"src/"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"lib.rs\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_01B","name":"list","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89,"output_tokens_details":{"thinking_tokens":21}}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// An answer of one text block.
fn told(text: &str, stop: &str) -> String {
    format!(
        r#"data: {{"type":"message_start","message":{{"model":"m","usage":{{"input_tokens":1,"output_tokens":1}}}}}}

data: {{"type":"content_block_start","index":0,"content_block":{{"type":"text","text":""}}}}

data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}

data: {{"type":"content_block_stop","index":0}}

data: {{"type":"message_delta","delta":{{"stop_reason":"{stop}"}},"usage":{{"output_tokens":3}}}}

data: {{"type":"message_stop"}}

"#
    )
}

#[test]
fn a_full_answer() {
    let (deltas, reply) = decode_split_everywhere(Wire::Anthropic, FULL).unwrap();
    assert_eq!(
        reply,
        Reply {
            message: assistant(vec![
                thinking("Two files to read.", Some("anthropic:EqQB/sig==")),
                thinking("", Some("anthropic-redacted:EmwKAhgB")),
                Block::text("Läuft 🦀"),
                call("toolu_01A", "read_file", json!({"path": "src/lib.rs"})),
                call("toolu_01B", "list", json!({})),
            ]),
            stop: StopReason::ToolUse,
            usage: usage(12, 4000, 300, 89, 21),
            model: "claude-sonnet-4-5-20250929".to_owned(),
        }
    );
    assert_eq!(
        deltas,
        [
            Delta::MessageStart,
            Delta::Thinking { block: 0, text: "Two files ".to_owned() },
            Delta::Thinking { block: 0, text: "to read.".to_owned() },
            Delta::BlockEnd { block: 0 },
            Delta::BlockEnd { block: 1 },
            Delta::Text { block: 2, text: "Läuft ".to_owned() },
            Delta::Text { block: 2, text: "🦀".to_owned() },
            Delta::BlockEnd { block: 2 },
            Delta::CallStart { block: 3, id: CallId::new("toolu_01A"), name: "read_file".to_owned() },
            Delta::CallArguments { block: 3, fragment: "{\"path\": \"src/".to_owned() },
            Delta::CallArguments { block: 3, fragment: "lib.rs\"}".to_owned() },
            Delta::BlockEnd { block: 3 },
            Delta::CallStart { block: 4, id: CallId::new("toolu_01B"), name: "list".to_owned() },
            Delta::BlockEnd { block: 4 },
        ]
    );
}

#[test]
fn stop_reasons() {
    let cases = [
        ("end_turn", StopReason::EndTurn),
        ("tool_use", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::Paused),
        ("compaction", StopReason::Other("compaction".to_owned())),
    ];
    for (word, expected) in cases {
        let reply = reply(Wire::Anthropic, &told("hi", word));
        assert_eq!((reply.message, reply.stop), (Message::assistant_text("hi"), expected), "{word}");
    }
}

#[test]
fn an_empty_answer_has_no_blocks() {
    let reply = reply(Wire::Anthropic, &told("", "end_turn"));
    assert_eq!(reply.message, assistant(vec![]));
}

#[test]
fn a_stream_without_message_stop_is_whole_after_its_stop_reason() {
    let stream = FULL.split("event: message_stop").next().unwrap();
    assert_eq!(decode(Wire::Anthropic, stream), decode(Wire::Anthropic, FULL));
}

#[test]
fn a_stream_cut_off_anywhere_is_no_reply() {
    let whole = FULL.find("event: message_delta").unwrap();
    let stream = &FULL.as_bytes()[..whole];
    for end in 0..=stream.len() {
        let cut = read(Wire::Anthropic, [&stream[..end]]);
        assert!(cut.as_ref().is_err_and(ModelError::is_retryable), "cut at {end}: {cut:?}");
    }
}

#[test]
fn arguments_cut_off_by_the_output_limit_are_malformed() {
    let cut = FULL
        .replace(r#"lib.rs\"}"#, "lib")
        .split("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":4")
        .next()
        .unwrap()
        .to_owned();
    let end = r#"data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":64}}

data: {"type":"message_stop"}

"#;
    let answer = reply(Wire::Anthropic, &format!("{cut}{end}"));
    assert_eq!(answer.stop, StopReason::MaxTokens);
    let call = answer.message.tool_uses().next().unwrap();
    assert_eq!(call.input, json!("{\"path\": \"src/lib"));
    assert!(call.malformed.as_ref().unwrap().starts_with("the output limit cut the arguments off: EOF"));
    // Not a byte of them came: that is not `no arguments`.
    let none = format!(
        "{}{end}",
        cut.replace(r#"{\"path\": \"src/"#, "").replace(r#""partial_json":"lib""#, r#""partial_json":"""#)
    );
    let answer = reply(Wire::Anthropic, &none);
    let call = answer.message.tool_uses().next().unwrap();
    assert_eq!(call.input, json!(""));
    assert_eq!(call.malformed.as_deref(), Some("the output limit cut the arguments off"));
}

#[test]
fn arguments_that_are_not_an_object_are_malformed() {
    let cases = [
        (r#"{\"path\": src}"#, "the arguments are not valid JSON: expected value"),
        (r#"[1]"#, "the arguments are an array, not a JSON object"),
        (r#"{} {}"#, "the arguments are not valid JSON: trailing characters"),
    ];
    for (raw, why) in cases {
        let stream = FULL.replace(r#"{\"path\": \"src/"#, raw).replace(r#"lib.rs\"}"#, "");
        let answer = reply(Wire::Anthropic, &stream);
        let call = answer.message.tool_uses().next().unwrap();
        assert_eq!(call.input, Value::String(raw.replace('\\', "")));
        assert!(call.malformed.as_ref().unwrap().starts_with(why), "{:?}", call.malformed);
    }
}

#[test]
fn errors_inside_the_stream() {
    let begun = FULL.split("event: content_block_stop").next().unwrap();
    let cases = [
        (
            r#"{"type":"overloaded_error","message":"Overloaded"}"#,
            ModelError::Overloaded { message: "Overloaded".to_owned() },
        ),
        (
            r#"{"type":"api_error","message":"Internal server error"}"#,
            ModelError::Stream { message: "Internal server error".to_owned(), retryable: true },
        ),
        (
            r#"{"type":"rate_limit_error","message":"slow"}"#,
            ModelError::RateLimited { message: "slow".to_owned() },
        ),
        (
            r#"{"type":"invalid_request_error","message":"no"}"#,
            ModelError::Stream { message: "no".to_owned(), retryable: false },
        ),
    ];
    for (error, expected) in cases {
        let stream = format!("{begun}event: error\ndata: {{\"type\":\"error\",\"error\":{error}}}\n\n");
        assert_eq!(decode(Wire::Anthropic, &stream), Err(expected));
    }
}

#[test]
fn blocks_out_of_order_are_refused() {
    let start =
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#;
    let delta = r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}"#;
    let stop = r#"data: {"type":"content_block_stop","index":0}"#;
    let late = r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}"#;
    for lines in [[start, start, ""], [start, delta, ""], [start, stop, late]] {
        let outcome = decode(Wire::Anthropic, &(lines.join("\n\n") + "\n\n"));
        assert!(matches!(outcome, Err(ModelError::Protocol(_))), "{outcome:?}");
    }
}

#[test]
fn a_server_that_streams_no_arguments() {
    let stream = FULL.replace(r#""name":"list","input":{}"#, r#""name":"list","input":{"under":"src"}"#);
    let answer = reply(Wire::Anthropic, &stream);
    assert_eq!(answer.message.tool_uses().nth(1).unwrap().input, json!({"under": "src"}));
}

#[test]
fn blocks_of_unknown_kinds_are_left_out() {
    let stream = FULL.replace(
        r#""content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}"#,
        r#""content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#,
    );
    let answer = reply(Wire::Anthropic, &stream);
    assert_eq!(answer.message.content.len(), 4);
}

#[test]
fn a_rich_request() {
    let png =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aVBORw=="}});
    let ephemeral = json!({"type": "ephemeral"});
    let encoded = codec(Wire::Anthropic, BASE).encode(&rich_request("claude-sonnet-4-5")).unwrap();
    assert_eq!(encoded.path, "/v1/messages");
    assert_eq!(
        encoded.body,
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 32000,
            "stream": true,
            "tools": [
                {"name": "read_file", "description": "Reads a file.", "input_schema": read_file_spec().input_schema},
                {
                    "name": "list",
                    "description": "Lists.",
                    "input_schema": {"type": "object", "properties": {}},
                    "cache_control": ephemeral,
                },
            ],
            "system": [
                {"type": "text", "text": "You are a journeyman.", "cache_control": ephemeral},
                {"type": "text", "text": "Today is a day."},
            ],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "What is in this image?"},
                    png,
                    {"type": "text", "text": "And in the files?"},
                ]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "I'll look."},
                    {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a.rs", "limit": 5}},
                    {"type": "tool_use", "id": "call_2", "name": "read_file", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [
                        {"type": "text", "text": "fn a() {}"},
                        png,
                    ]},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": [{"type": "text", "text": "no path given"}],
                        "is_error": true,
                    },
                    {"type": "text", "text": "Go on."},
                    {"type": "text", "text": "Still there?"},
                ]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "call_3", "name": "read_file", "input": {"_malformed": "{\"path\": "}},
                ]},
                {"role": "user", "content": [{
                    "type": "tool_result",
                    "tool_use_id": "call_3",
                    "content": [{"type": "text", "text": "(no output)"}],
                    "cache_control": ephemeral,
                }]},
            ],
        })
    );
    validate(&encoded.body);
}

#[test]
fn headers_carry_key_and_version() {
    let codec = codec(Wire::Anthropic, BASE);
    assert_eq!(codec.auth_headers(&crate::Secret::new("k")), [("x-api-key", "k".to_owned())]);
    assert_eq!(codec.fixed_headers(), [("anthropic-version", "2023-06-01".to_owned())]);
}

#[test]
fn at_most_four_cache_markers_and_the_latest_of_the_system() {
    let mut request = rich_request("claude-sonnet-4-5");
    request.system = (0..4).map(|part| SystemPart::cached(format!("part {part}"))).collect();
    let body = encode(Wire::Anthropic, BASE, &request);
    let marked: Vec<bool> =
        list(&body["system"]).iter().map(|part| part.get("cache_control").is_some()).collect();
    assert_eq!(marked, [false, false, true, true]);
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
    validate(&body);
}

#[test]
fn output_limits() {
    let cases = [
        ("claude-3-haiku-20240307", None, 4_096),
        ("claude-3-5-sonnet-20241022", None, 8_192),
        ("claude-3-7-sonnet-latest", None, 32_000),
        ("claude-opus-4-1-20250805", None, 32_000),
        ("anthropic.claude-sonnet-4-6", None, 32_000),
        ("glm-4.6", None, 8_192),
        ("claude-opus-4-5", Some(Tokens(77)), 77),
    ];
    for (model, max_output, expected) in cases {
        let request = ModelRequest {
            model: model.to_owned(),
            max_output,
            messages: vec![Message::user_text("hi")],
            ..ModelRequest::default()
        };
        assert_eq!(encode(Wire::Anthropic, BASE, &request)["max_tokens"], json!(expected), "{model}");
    }
}

#[test]
fn thinking_in_the_form_that_the_model_knows() {
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let effort = |word: &str| json!({"effort": word});
    let cases = [
        ("claude-opus-4-6", Thinking::Effort(Effort::Low), adaptive.clone(), effort("low")),
        ("claude-sonnet-5", Thinking::Budget(8_000), adaptive.clone(), effort("medium")),
        ("us.anthropic.claude-opus-4-7-v1", Thinking::Budget(100_000), adaptive, effort("high")),
        ("claude-sonnet-4-5-20250929", Thinking::Effort(Effort::Medium), budget(8_192), Value::Null),
        ("claude-sonnet-4-5-20250929", Thinking::Budget(10), budget(1_024), Value::Null),
        ("claude-sonnet-4-20250514", Thinking::Budget(90_000), budget(30_976), Value::Null),
        ("kimi-k2", Thinking::Budget(2_000), budget(2_000), Value::Null),
        ("claude-3-5-haiku-latest", Thinking::Effort(Effort::High), Value::Null, Value::Null),
    ];
    for (model, thinking, form, config) in cases {
        let request = ModelRequest {
            model: model.to_owned(),
            messages: vec![Message::user_text("hi")],
            thinking: Some(thinking),
            temperature: Some(0.5),
            top_p: Some(0.5),
            ..ModelRequest::default()
        };
        let body = encode(Wire::Anthropic, BASE, &request);
        assert_eq!(body["thinking"], form, "{model}");
        assert_eq!(body["output_config"], config, "{model}");
        let samples = if form.is_null() { json!(0.5) } else { Value::Null };
        assert_eq!((&body["temperature"], &body["top_p"]), (&samples, &samples), "{model}");
        validate(&body);
    }
}

#[test]
fn a_budget_needs_the_thinking_of_the_turn_that_is_being_answered() {
    let with = |signature: &str| ModelRequest {
        model: "claude-sonnet-4-5".to_owned(),
        thinking: Some(Thinking::Effort(Effort::Low)),
        messages: vec![
            Message::user_text("hi"),
            assistant(vec![thinking("hm", Some(signature)), call("a", "list", json!({}))]),
            user(vec![Block::result(CallId::new("a"), "x", false)]),
        ],
        ..ModelRequest::default()
    };
    assert_eq!(encode(Wire::Anthropic, BASE, &with("gemini:x"))["thinking"], Value::Null);
    let body = encode(Wire::Anthropic, BASE, &with("anthropic:x"));
    assert_eq!(body["thinking"]["budget_tokens"], json!(1_024));
    assert_eq!(
        body["messages"][1]["content"][0],
        json!({"type": "thinking", "thinking": "hm", "signature": "x"})
    );
}

#[test]
fn a_paused_turn_goes_back_without_the_white_space_at_its_end() {
    let request = ModelRequest {
        model: "claude-opus-4-1".to_owned(),
        messages: vec![Message::user_text("hi"), Message::assistant_text("so far \n")],
        ..ModelRequest::default()
    };
    let body = encode(Wire::Anthropic, BASE, &request);
    assert_eq!(body["messages"][1]["content"], json!([{"type": "text", "text": "so far"}]));
}

#[test]
fn a_decoded_reply_goes_back_unchanged() {
    let answer = reply(Wire::Anthropic, FULL);
    let request = go_on(rich_request("claude-sonnet-4-5"), &answer);
    let body = encode(Wire::Anthropic, BASE, &request);
    validate(&body);
    let messages = list(&body["messages"]);
    assert_eq!(
        messages[messages.len() - 2]["content"],
        json!([
            {"type": "thinking", "thinking": "Two files to read.", "signature": "EqQB/sig=="},
            {"type": "redacted_thinking", "data": "EmwKAhgB"},
            {"type": "text", "text": "Läuft 🦀"},
            {"type": "tool_use", "id": "toolu_01A", "name": "read_file", "input": {"path": "src/lib.rs"}},
            {"type": "tool_use", "id": "toolu_01B", "name": "list", "input": {}},
        ])
    );
    assert_stable_prefix(Wire::Anthropic, BASE, &request, "messages", "cache_control");
}

#[test]
fn names_of_models() {
    let body = json!({"data": [{"type": "model", "id": "claude-a"}, {"id": "claude-b"}, {"x": 1}], "has_more": false});
    assert_eq!(codec(Wire::Anthropic, BASE).parse_model_names(&body), ["claude-a", "claude-b"]);
    assert!(codec(Wire::Anthropic, BASE).parse_model_names(&json!([1])).is_empty());
}

/// What the API refuses, as far as its documents say so.
pub(super) fn validate(body: &Value) {
    assert!(body["max_tokens"].as_u64().is_some_and(|limit| limit > 0));
    assert!(body.to_string().matches("cache_control").count() <= 4);
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        assert!(budget >= 1_024 && budget < body["max_tokens"].as_u64().unwrap());
        assert_eq!(body["temperature"], Value::Null);
    }
    let id_is_legal = |id: &str| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    let mut open: Vec<String> = Vec::new();
    for (place, message) in list(&body["messages"]).iter().enumerate() {
        let expected = if place % 2 == 0 { "user" } else { "assistant" };
        assert_eq!(message["role"], expected, "turns alternate");
        let content = list(&message["content"]);
        assert!(!content.is_empty());
        let mut results = Vec::new();
        let mut calls = Vec::new();
        for block in content {
            match string(&block["type"]) {
                "text" => assert!(!string(&block["text"]).trim().is_empty()),
                "tool_use" => {
                    assert!(id_is_legal(string(&block["id"])) && id_is_legal(string(&block["name"])));
                    assert!(block["input"].is_object());
                    calls.push(string(&block["id"]).to_owned());
                }
                "tool_result" => {
                    assert_eq!(
                        results.len(),
                        content.iter().position(|other| other == block).unwrap(),
                        "results first"
                    );
                    results.push(string(&block["tool_use_id"]).to_owned());
                    for part in list(&block["content"]) {
                        assert!(part["type"] == "image" || !string(&part["text"]).is_empty());
                    }
                }
                "thinking" => assert!(!string(&block["signature"]).is_empty()),
                "redacted_thinking" => assert!(!string(&block["data"]).is_empty()),
                "image" => assert_eq!(block["source"]["type"], "base64"),
                other => panic!("{other}"),
            }
        }
        assert_eq!(results, open, "each call has its result in the next message");
        open = calls;
    }
    assert!(open.is_empty());
}

/// The API refuses images in a result that is an error, and with them the whole conversation.
#[test]
fn an_error_with_an_image_stays_one_that_the_api_accepts() {
    let result = |text: &str| {
        let Block::ToolResult { id, content, .. } = result_with_image("call_1", text) else { panic!() };
        let blocks = vec![Block::ToolResult { id, content, is_error: true }];
        let messages = vec![
            Message::user_text("Look."),
            assistant(vec![call("call_1", "screenshot", json!({}))]),
            user(blocks),
        ];
        let request = ModelRequest { messages, ..ModelRequest::default() };
        encode(Wire::Anthropic, "https://api.anthropic.com", &request)["messages"][2]["content"][0].clone()
    };
    for (text, marked) in [("no such window", "Error: no such window"), ("Error: gone", "Error: gone")] {
        let result = result(text);
        assert_eq!(result["is_error"], Value::Null, "{result}");
        assert_eq!(result["content"][0], json!({"type": "text", "text": marked}));
        assert_eq!(result["content"][1]["type"], "image");
    }
}

/// The input of a call is not lost if the server ends the message without ending the block.
#[test]
fn a_message_that_ends_before_its_blocks_keeps_the_input_of_a_call() {
    let stream = concat!(
        r#"data: {"type":"message_start","message":{"model":"m"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"list","input":{"under":"src"}}}"#,
        "\n\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        "\n\n",
        r#"data: {"type":"message_stop"}"#,
        "\n\n",
    );
    let reply = reply(Wire::Anthropic, stream);
    let calls: Vec<_> = reply.message.tool_uses().map(|call| &call.input).collect();
    assert_eq!(calls, [&json!({"under": "src"})]);
}
