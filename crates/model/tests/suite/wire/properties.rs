//! Hostile input: nothing panics, and what isn't whole is no reply.

use proptest::prelude::*;

use super::super::message_builder::{MAX_BLOCKS, MAX_MESSAGE_BYTES};
use super::*;
use crate::sse::SseEvent;

/// The streams that hostile events are made of, in pieces.
const STREAMS: [(Wire, &str); 4] = [
    (Wire::Anthropic, include_str!("streams/anthropic.txt")),
    (Wire::Responses, include_str!("streams/responses.txt")),
    (Wire::Chat, include_str!("streams/chat.txt")),
    (Wire::Gemini, include_str!("streams/gemini.txt")),
];

fn events(stream: &str) -> Vec<SseEvent> {
    let mut parsed = VecDeque::new();
    SseParser::new().push(stream.as_bytes(), &mut parsed).unwrap();
    parsed.into()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "message_start",
            "text",
            "tool_use",
            "message",
            "function_call",
            "reasoning",
            "STOP"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let keys = prop::sample::select(vec![
            "type",
            "index",
            "output_index",
            "delta",
            "content_block",
            "message",
            "item",
            "response",
            "choices",
            "tool_calls",
            "function",
            "name",
            "arguments",
            "id",
            "call_id",
            "content",
            "candidates",
            "parts",
            "text",
            "functionCall",
            "args",
            "finishReason",
            "finish_reason",
            "usage",
            "error",
            "thoughtSignature",
            "summary",
            "reasoning_details",
            "usageMetadata",
            "stop_reason",
            "status",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..5).prop_map(|members| Value::Object(
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

/// Feeds a decoder until it refuses, then asks for the reply.
fn feed(wire: Wire, events: &[SseEvent]) {
    let mut decoder = codec(wire, "").decoder();
    for event in events {
        if decoder.handle_event(event).is_err() {
            return;
        }
    }
    let complete = decoder.is_complete();
    let ended = decoder.end_blocks();
    let outcome = ended.and_then(|_| decoder.finish());
    assert!(complete || outcome.is_err(), "an incomplete answer has no reply");
    if let Ok(reply) = outcome {
        for call in reply.message.tool_uses() {
            assert_eq!(call.malformed.is_none(), call.input.is_object());
        }
    }
}

proptest! {
    // No file of found cases: one that matters becomes a test with a name.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_event_data(data in prop::collection::vec(".{0,40}", 1..6)) {
        for wire in Wire::ALL {
            let events: Vec<SseEvent> = data.iter().map(|data| SseEvent { event: None, data: data.clone() }).collect();
            feed(wire, &events);
        }
    }

    #[test]
    fn any_json_in_any_event(values in prop::collection::vec(any_json(), 1..6), named in prop::option::of("[a-z_.]{0,20}")) {
        for wire in Wire::ALL {
            let events: Vec<SseEvent> =
                values.iter().map(|value| SseEvent { event: named.clone(), data: value.to_string() }).collect();
            feed(wire, &events);
        }
    }

    /// Real events repeated, left out, out of order, and with a member replaced.
    #[test]
    fn real_events_in_disorder(order in prop::collection::vec((0_usize..12, prop::option::of((any::<prop::sample::Index>(), any_json()))), 0..14)) {
        for (wire, stream) in STREAMS {
            let events = events(stream);
            let shuffled: Vec<SseEvent> = order.iter().map(|(place, change)| {
                let event = events[place % events.len()].clone();
                let (Some((at, value)), Ok(mut whole)) = (change, serde_json::from_str::<Value>(&event.data)) else { return event };
                replace(&mut whole, at, value);
                SseEvent { event: event.event, data: whole.to_string() }
            }).collect();
            feed(wire, &shuffled);
        }
    }

    #[test]
    fn any_error_body(status in 100_u16..600, body in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        any_json().prop_map(|value| value.to_string().into_bytes()),
        any_json().prop_map(|value| json!({"error": value}).to_string().into_bytes()),
    ]) {
        for wire in Wire::ALL {
            prop_assert!(!codec(wire, "").parse_error(status, &body).to_string().is_empty());
        }
    }

    #[test]
    fn any_list_of_models_and_any_schema(value in any_json()) {
        for wire in Wire::ALL {
            let _ = codec(wire, "").parse_model_names(&value).len();
        }
        if let Some(converted) = super::super::gemini_schema::convert_parameters(&value) {
            prop_assert_eq!(converted.get("properties").is_some(), true);
        }
    }

    /// Any conversation of texts and answered calls is legal for every provider.
    #[test]
    fn any_legal_conversation(turns in prop::collection::vec((".{0,8}", prop::collection::vec((".{0,12}", any_json(), ".{0,8}", any::<bool>()), 0..4)), 1..6)) {
        let mut messages = vec![Message::user_text("hi")];
        for (text, calls) in turns {
            let mut content = vec![Block::text(text.clone())];
            let mut results = vec![Block::text(text)];
            for (place, (id, input, output, is_error)) in calls.into_iter().enumerate() {
                let id = format!("{id}{place}");
                content.push(call(&id, &output, input));
                results.insert(0, Block::result(CallId::new(id), output, is_error));
            }
            messages.push(assistant(content));
            messages.push(user(results));
        }
        messages.push(Message::user_text("go on"));
        let request = ModelRequest { model: "claude-opus-4-1".to_owned(), messages, ..rich_request("m") };
        anthropic::validate(&encode(Wire::Anthropic, "", &request));
        chat::validate(&encode(Wire::Chat, "", &request));
        chat::validate(&encode(Wire::Chat, "https://api.mistral.ai/v1", &request));
        responses::validate(&encode(Wire::Responses, "", &request));
        gemini::validate(&encode(Wire::Gemini, "", &request));
    }
}

/// Replaces one of all values in a document.
fn replace(whole: &mut Value, at: &prop::sample::Index, value: &Value) {
    fn pointers(value: &Value, path: &str, all: &mut Vec<String>) {
        all.push(path.to_owned());
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(key, member)| pointers(member, &format!("{path}/{key}"), all))
            }
            Value::Array(elements) => {
                elements
                    .iter()
                    .enumerate()
                    .for_each(|(place, element)| pointers(element, &format!("{path}/{place}"), all));
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    pointers(whole, "", &mut all);
    if let Some(target) = whole.pointer_mut(&all[at.index(all.len())]) {
        *target = value.clone();
    }
}

#[test]
fn the_short_streams_are_whole_and_split_anywhere() {
    for (wire, stream) in STREAMS {
        let answer = decode_split_everywhere(wire, stream).unwrap().1;
        assert_eq!(answer.stop, StopReason::ToolUse, "{wire}");
        assert_eq!(answer.message.tool_uses().next().unwrap().input, json!({"under": "日本"}), "{wire}");
        assert_eq!((answer.usage.input, answer.usage.output), (Tokens(9), Tokens(20)), "{wire}");
    }
}

#[test]
fn a_reply_of_too_many_blocks_is_refused() {
    let mut decoder = codec(Wire::Gemini, "").decoder();
    let event = |text: &str| SseEvent {
        event: None,
        data: format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"{text}"}}}}]}}}}]}}"#
        ),
    };
    for _ in 0..MAX_BLOCKS {
        decoder.handle_event(&event("list")).unwrap();
    }
    assert!(matches!(decoder.handle_event(&event("list")), Err(ModelError::Protocol(_))));
}

#[test]
fn a_reply_of_too_many_bytes_is_refused() {
    let mut decoder = codec(Wire::Chat, "").decoder();
    let piece = "x".repeat(4 * 1024 * 1024);
    let event =
        SseEvent { event: None, data: format!(r#"{{"choices":[{{"delta":{{"content":"{piece}"}}}}]}}"#) };
    let taken = (0..).take_while(|_| decoder.handle_event(&event).is_ok()).count();
    assert_eq!(taken, MAX_MESSAGE_BYTES / piece.len());
}
