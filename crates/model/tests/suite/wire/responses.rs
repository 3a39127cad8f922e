//! OpenAI Responses.

use super::*;
use crate::{Effort, Thinking};

const BASE: &str = "https://api.openai.com/v1";

/// Thinking in two summary parts with its encrypted form, a message with a phase, two calls at
/// once.
const FULL: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-5-2025-08-07","output":[]}}

event: response.in_progress
data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","model":"gpt-5-2025-08-07"}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA-early"}}

event: response.reasoning_summary_part.added
data: {"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Two "}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"files."}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"Read both."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","status":"completed","summary":[{"type":"summary_text","text":"Two files."},{"type":"summary_text","text":"Read both."}],"encrypted_content":"gAAA-final"}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}}

event: response.content_part.added
data: {"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Läuft "}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"🦀"}

event: response.output_text.done
data: {"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"Läuft 🦀"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","phase":"commentary","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Läuft 🦀"}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_A","name":"read_file"}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_B","name":"list"}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\":"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"{}"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"\"a.rs\"}"}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"path\":\"a.rs\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"a.rs\"}","call_id":"call_A","name":"read_file"}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":3,"item":{"id":"fc_2","type":"function_call","status":"completed","arguments":"{}","call_id":"call_B","name":"list"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"gpt-5-2025-08-07","output":[{"id":"rs_1","type":"reasoning","summary":[]}],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":32},"total_tokens":150}}}

"#;

const REASONING: &str = r#"responses:{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Two files."},{"type":"summary_text","text":"Read both."}],"encrypted_content":"gAAA-final"}"#;

#[test]
fn a_full_answer() {
    let (deltas, reply) = decode_split_everywhere(Wire::Responses, FULL).unwrap();
    assert_eq!(
        reply,
        Reply {
            message: assistant(vec![
                thinking("Two files.\n\nRead both.", Some(REASONING)),
                Block::text("Läuft 🦀"),
                thinking("", Some("responses-phase:commentary")),
                call("call_A", "read_file", json!({"path": "a.rs"})),
                call("call_B", "list", json!({})),
            ]),
            stop: StopReason::ToolUse,
            usage: usage(36, 64, 0, 50, 32),
            model: "gpt-5-2025-08-07".to_owned(),
        }
    );
    let fragment = |block: u32, fragment: &str| Delta::CallArguments { block, fragment: fragment.to_owned() };
    assert_eq!(
        deltas,
        [
            Delta::MessageStart,
            Delta::Thinking { block: 0, text: "Two ".to_owned() },
            Delta::Thinking { block: 0, text: "files.".to_owned() },
            Delta::Thinking { block: 0, text: "\n\n".to_owned() },
            Delta::Thinking { block: 0, text: "Read both.".to_owned() },
            Delta::BlockEnd { block: 0 },
            Delta::Text { block: 1, text: "Läuft ".to_owned() },
            Delta::Text { block: 1, text: "🦀".to_owned() },
            Delta::BlockEnd { block: 1 },
            Delta::BlockEnd { block: 2 },
            Delta::CallStart { block: 3, id: CallId::new("call_A"), name: "read_file".to_owned() },
            Delta::CallStart { block: 4, id: CallId::new("call_B"), name: "list".to_owned() },
            fragment(3, "{\"path\":"),
            fragment(4, "{}"),
            fragment(3, "\"a.rs\"}"),
            Delta::BlockEnd { block: 3 },
            Delta::BlockEnd { block: 4 },
        ]
    );
}

#[test]
fn a_stream_cut_off_anywhere_is_no_reply() {
    let whole = FULL.find("event: response.completed").unwrap();
    for end in 0..=whole {
        let cut = read(Wire::Responses, [&FULL.as_bytes()[..end]]);
        assert!(cut.as_ref().is_err_and(ModelError::is_retryable), "cut at {end}: {cut:?}");
    }
}

#[test]
fn items_that_were_not_streamed_are_taken_from_where_they_are_whole() {
    let done_alone = r#"data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hi"}]}}

data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"a","name":"list","arguments":"{}"}}

data: {"type":"response.completed","response":{"model":"m","status":"completed"}}

"#;
    let end_alone = r#"data: {"type":"response.completed","response":{"model":"m","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"a","name":"list","arguments":"{}"}]}}

"#;
    for stream in [done_alone, end_alone] {
        let answer = reply(Wire::Responses, stream);
        assert_eq!(answer.message, assistant(vec![Block::text("hi"), call("a", "list", json!({}))]));
        assert_eq!(answer.stop, StopReason::ToolUse);
    }
}

#[test]
fn thinking_in_the_clear_and_thinking_without_its_encrypted_form() {
    let stream = r#"data: {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

data: {"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"hm"}

data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}}

data: {"type":"response.output_item.done","output_index":1,"item":{"id":"rs_2","type":"reasoning","summary":[]}}

data: {"type":"response.completed","response":{"status":"completed","model":"m"}}

"#;
    assert_eq!(reply(Wire::Responses, stream).message, assistant(vec![thinking("hm", None)]));
}

#[test]
fn ends() {
    let text = r#"data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hi"}]}}

"#;
    let cases = [
        (r#""status":"completed""#, StopReason::EndTurn),
        (
            r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#,
            StopReason::MaxTokens,
        ),
        (r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#, StopReason::Refusal),
        (r#""status":"incomplete","incomplete_details":{"reason":"x"}"#, StopReason::Other("x".to_owned())),
    ];
    for (members, expected) in cases {
        let stream =
            format!("{text}data: {{\"type\":\"response.incomplete\",\"response\":{{{members}}}}}\n\n");
        assert_eq!(reply(Wire::Responses, &stream).stop, expected, "{members}");
    }
    let refusal = r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}

data: {"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"I can't."}

data: {"type":"response.completed","response":{"status":"completed"}}

"#;
    let answer = reply(Wire::Responses, refusal);
    assert_eq!((answer.message, answer.stop), (Message::assistant_text("I can't."), StopReason::Refusal));
}

#[test]
fn arguments_cut_off_by_the_output_limit_are_malformed() {
    let stream = r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"list","arguments":""}}

data: {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"un"}

data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}

"#;
    let answer = reply(Wire::Responses, stream);
    let call = answer.message.tool_uses().next().unwrap();
    assert_eq!(call.input, json!("{\"un"));
    assert!(call.malformed.as_ref().unwrap().starts_with("the output limit cut the arguments off"));
}

#[test]
fn errors_inside_the_stream() {
    let begun = FULL.split("event: response.output_item.done").next().unwrap();
    let streamed =
        |message: &str, retryable: bool| ModelError::Stream { message: message.to_owned(), retryable };
    let cases = [
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}"#,
            streamed("boom", true),
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}"#,
            ModelError::RateLimited { message: "slow".to_owned() },
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}"#,
            ModelError::ContextTooLong {
                message: "Your input exceeds the context window of this model.".to_owned(),
            },
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"insufficient_quota","message":"pay"}}}"#,
            ModelError::QuotaExceeded { message: "pay".to_owned() },
        ),
        (
            r#"{"type":"error","code":"server_is_overloaded","message":"busy"}"#,
            ModelError::Overloaded { message: "busy".to_owned() },
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
            streamed("no", false),
        ),
        (r#"{"error":{"message":"from a gateway"}}"#, streamed("from a gateway", true)),
    ];
    for (event, expected) in cases {
        assert_eq!(decode(Wire::Responses, &format!("{begun}data: {event}\n\n")), Err(expected), "{event}");
    }
}

#[test]
fn a_rich_request() {
    let image =
        json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aVBORw=="});
    let function = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "read_file", "arguments": arguments});
    let output =
        |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let request = ModelRequest {
        session: Some("session-1".to_owned()),
        thinking: Some(Thinking::Effort(Effort::Medium)),
        max_output: Some(Tokens(5_000)),
        ..rich_request("gpt-5")
    };
    let encoded = codec(Wire::Responses, BASE).encode(&request).unwrap();
    assert_eq!(encoded.path, "/v1/responses");
    assert_eq!(
        encoded.body,
        json!({
            "model": "gpt-5",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "medium", "summary": "auto"},
            "max_output_tokens": 5000,
            "prompt_cache_key": "session-1",
            "tools": [
                {
                    "type": "function",
                    "name": "read_file",
                    "description": "Reads a file.",
                    "parameters": read_file_spec().input_schema,
                    "strict": false,
                },
                {
                    "type": "function",
                    "name": "list",
                    "description": "Lists.",
                    "parameters": {"type": "object", "properties": {}},
                    "strict": false,
                },
            ],
            "instructions": "You are a journeyman.\n\nToday is a day.",
            "input": [
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "What is in this image?"},
                    image,
                    {"type": "input_text", "text": "And in the files?"},
                ]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I'll look."}]},
                function("call_1", "{\"path\":\"a.rs\",\"limit\":5}"),
                function("call_2", "{}"),
                output("call_1", "fn a() {}\n(the image follows)"),
                output("call_2", "Error: no path given"),
                {"type": "message", "role": "user", "content": [
                    image,
                    {"type": "input_text", "text": "Go on."},
                    {"type": "input_text", "text": "Still there?"},
                ]},
                function("call_3", "{\"path\": "),
                output("call_3", "(no output)"),
            ],
        })
    );
    validate(&encoded.body);
    assert_stable_prefix(Wire::Responses, BASE, &request, "input", "");
}

#[test]
fn models_that_do_not_think_are_not_asked_to() {
    let cases = [
        ("gpt-4o", false),
        ("gpt-4.1-mini", false),
        ("gpt-5-chat-latest", false),
        ("gpt-5", true),
        ("o3", true),
        ("openai/gpt-oss-20b", true),
    ];
    for (model, thinks) in cases {
        let request = ModelRequest {
            model: model.to_owned(),
            messages: vec![Message::user_text("hi")],
            thinking: Some(Thinking::Effort(Effort::High)),
            ..ModelRequest::default()
        };
        let body = encode(Wire::Responses, BASE, &request);
        assert_eq!(
            (body.get("include").is_some(), body.get("reasoning").is_some()),
            (thinks, thinks),
            "{model}"
        );
    }
}

#[test]
fn a_decoded_reply_goes_back_unchanged() {
    let answer = reply(Wire::Responses, FULL);
    let request = go_on(rich_request("gpt-5"), &answer);
    let body = encode(Wire::Responses, BASE, &request);
    validate(&body);
    let input = list(&body["input"]);
    assert_eq!(
        input[input.len() - 6..],
        [
            json!({
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Two files."}, {"type": "summary_text", "text": "Read both."}],
                "encrypted_content": "gAAA-final",
            }),
            json!({
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Läuft 🦀"}],
                "phase": "commentary",
            }),
            json!({"type": "function_call", "call_id": "call_A", "name": "read_file", "arguments": "{\"path\":\"a.rs\"}"}),
            json!({"type": "function_call", "call_id": "call_B", "name": "list", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "call_A", "output": "done"}),
            json!({"type": "function_call_output", "call_id": "call_B", "output": "done"}),
        ]
    );
    assert_stable_prefix(Wire::Responses, BASE, &request, "input", "");
}

#[test]
fn names_of_models() {
    let body = json!({"object": "list", "data": [{"id": "gpt-a"}]});
    assert_eq!(codec(Wire::Responses, BASE).parse_model_names(&body), ["gpt-a"]);
}

/// What the API refuses, as far as its documents say so.
pub(super) fn validate(body: &Value) {
    assert_eq!(body["store"], json!(false));
    let mut open: Vec<&str> = Vec::new();
    let mut thinking_before = false;
    for item in list(&body["input"]) {
        let kind = string(&item["type"]);
        assert!(
            !thinking_before || matches!(kind, "message" | "function_call" | "reasoning"),
            "thinking needs what came of it"
        );
        thinking_before = kind == "reasoning";
        match kind {
            "message" => {
                let part = if item["role"] == "assistant" { "output_text" } else { "input_text" };
                if item["role"] == "user" {
                    assert!(open.is_empty(), "every call is answered before anything else");
                }
                for content in list(&item["content"]) {
                    assert!(content["type"] == part || content["image_url"].is_string());
                }
            }
            "reasoning" => {
                assert!(item["summary"].is_array() && item["encrypted_content"].is_string());
                assert!(item.get("status").is_none() && item.get("content").is_none());
            }
            "function_call" => {
                assert!(item["arguments"].is_string() && string(&item["call_id"]).len() <= 64);
                open.push(string(&item["call_id"]));
            }
            "function_call_output" => {
                let id = string(&item["call_id"]);
                assert!(item["output"].is_string() && open.contains(&id));
                open.retain(|other| *other != id);
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.is_empty());
}

/// llama.cpp's server sends items without `output_index`.
#[test]
fn items_that_are_not_numbered_are_told_apart_by_name() {
    let mut unnumbered = FULL.to_owned();
    for number in 0..8 {
        unnumbered = unnumbered.replace(&format!("\"output_index\":{number},"), "");
        unnumbered = unnumbered.replace(&format!("\"output_index\": {number},"), "");
        unnumbered = unnumbered.replace(&format!(",\"output_index\":{number}"), "");
    }
    assert!(!unnumbered.contains("output_index"), "{unnumbered}");
    assert_eq!(
        decode_split_everywhere(Wire::Responses, &unnumbered),
        decode_split_everywhere(Wire::Responses, FULL)
    );
}

/// A call must not run without the arguments that it came with.
#[test]
fn arguments_as_an_object_are_not_lost() {
    let item = r#"{"type":"function_call","call_id":"c","name":"list","arguments":{"under":"src"}}"#;
    let added = r#"{"type":"function_call","call_id":"c","name":"list","arguments":""}"#;
    let done = format!(r#"data: {{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let starts = [
        format!(r#"data: {{"type":"response.output_item.added","output_index":0,"item":{item}}}"#),
        format!(r#"data: {{"type":"response.output_item.added","output_index":0,"item":{added}}}"#),
    ];
    let end = r#"data: {"type":"response.completed","response":{"status":"completed","output":[]}}"#;
    for start in starts {
        let reply = reply(Wire::Responses, &format!("{start}\n\n{done}\n\n{end}\n\n"));
        let calls: Vec<_> = reply.message.tool_uses().map(|call| &call.input).collect();
        assert_eq!(calls, [&json!({"under": "src"})], "{start}");
    }
}

/// As for blocks: each item is held in memory and searched.
#[test]
fn items_without_end_are_refused() {
    let item = "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"new\"}}\n\n";
    let error = decode(Wire::Responses, &item.repeat(5_000)).unwrap_err();
    assert_eq!(error.to_string(), "not what the protocol allows: a reply of more than 4096 items");
}
