//! Tool calls in Chat Completions, with the habits of its many servers.

use super::chat::stream;
use super::*;

/// A call's id (`jm_` stands for any that was made up), name and input.
type Expected = (&'static str, &'static str, Value);

fn read_both() -> [Expected; 2] {
    [("call_A", "read_file", json!({"path": "a"})), ("call_B", "read_file", json!({"path": "b"}))]
}

#[test]
fn which_call_a_piece_belongs_to() {
    let [a, b] = read_both();
    let cases = vec![
        (
            "whole in one chunk",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}},{"index":1,"id":"call_B","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}}]}"#,
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "without index",
            vec![
                r#"{"tool_calls":[{"id":"call_A","function":{"name":"read_file","arguments":"{\"path\":"}}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"\"a\"}"}}]}"#,
                r#"{"tool_calls":[{"id":"call_B","function":{"name":"read_file","arguments":"{\"path\":"}}]}"#,
                r#"{"tool_calls":[{"id":"call_B","function":{"arguments":"\"b\"}"}}]}"#,
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "one index for both, ids apart",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"call_B","function":{"name":"read_file","arguments":"{\"path\":"}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"b\"}"}}]}"#,
            ],
            vec![a.clone(), b.clone()],
        ),
        (
            "id and name repeated with every fragment",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":"{\"path\""}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":":\"a\"}"}}]}"#,
            ],
            vec![a.clone()],
        ),
        (
            "said once more at the end",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}"#,
            ],
            vec![a.clone()],
        ),
    ];
    check(cases);
}

/// Some gateways write `"null"` where others write `null`; the reply goes on.
#[test]
fn a_finish_reason_that_is_the_word_null_ends_nothing() {
    let stream = concat!(
        r#"data: {"choices":[{"delta":{"content":"All"},"finish_reason":"null"}]}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{"content":" of it"},"finish_reason":"null"}]}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "\n\n",
    );
    let reply = reply(Wire::Chat, stream);
    assert_eq!((reply.message.text().as_str(), reply.stop), ("All of it", StopReason::EndTurn));
}

#[test]
fn what_a_call_may_lack() {
    let [a, _] = read_both();
    let cases = vec![
        (
            "one id for both",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}},{"index":1,"id":"call_A","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}}]}"#,
            ],
            vec![a.clone(), ("call_A_1", "read_file", json!({"path": "b"}))],
        ),
        (
            "arguments as an object, null and missing",
            vec![
                r#"{"content":"","tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":{"path":"a"}}},{"index":1,"id":"x","function":{"name":"list","arguments":null}},{"index":2,"id":"y","function":{"name":"list"}}]}"#,
            ],
            vec![a.clone(), ("x", "list", json!({})), ("y", "list", json!({}))],
        ),
        (
            "arguments before the name",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"arguments":"{\"path\""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":":\"a\"}"}}]}"#,
            ],
            vec![a.clone()],
        ),
        (
            "the old single function",
            vec![
                r#"{"function_call":{"name":"read_file","arguments":""}}"#,
                r#"{"function_call":{"arguments":"{\"path\":\"a\"}"}}"#,
            ],
            vec![("jm_", "read_file", json!({"path": "a"}))],
        ),
        (
            "no ids, the same index",
            vec![
                r#"{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}}]}"#,
            ],
            vec![("jm_", "read_file", json!({"path": "a"})), ("jm_", "read_file", json!({"path": "b"}))],
        ),
        (
            "no name, beside one that has one",
            vec![
                r#"{"tool_calls":[{"index":0,"id":"call_A","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}},{"index":1,"id":"x","function":{"arguments":"{\"path\""}}]}"#,
                r#"{"tool_calls":[{"index":1,"function":{"arguments":":\"b\"}"}}]}"#,
            ],
            vec![a.clone(), ("x", "", json!({"path": "b"}))],
        ),
        (
            "nothing at all",
            vec![r#"{"tool_calls":[{"index":0,"function":{}}]}"#],
            vec![("jm_", "", json!({}))],
        ),
    ];
    check(cases);
}

fn check(cases: Vec<(&str, Vec<&str>, Vec<Expected>)>) {
    for (habit, deltas, expected) in cases {
        let answer = reply(Wire::Chat, &stream(&deltas, "stop"));
        assert_eq!(answer.stop, StopReason::ToolUse, "{habit}");
        let calls: Vec<(&str, &str, Value)> = answer
            .message
            .tool_uses()
            .map(|call| (call.id.as_str(), call.name.as_str(), call.input.clone()))
            .collect();
        assert_eq!(calls.len(), expected.len(), "{habit}: {calls:?}");
        for ((id, name, input), (expected_id, expected_name, expected_input)) in calls.iter().zip(&expected) {
            assert_eq!((name, input), (expected_name, expected_input), "{habit}");
            assert!(id == expected_id || (*expected_id == "jm_" && id.starts_with("jm_")), "{habit}: {id}");
        }
        let mut ids: Vec<&str> = calls.iter().map(|(id, ..)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), calls.len(), "{habit}: ids are unique");
    }
}

#[test]
fn made_up_ids_differ_from_answer_to_answer_and_not_from_replay_to_replay() {
    let piece = r#"{"tool_calls":[{"index":0,"function":{"name":"list","arguments":"{}"}}]}"#;
    let id = |answer: &str| {
        let stream = stream(&[piece], "tool_calls").replace("\"c1\"", answer);
        reply(Wire::Chat, &stream).message.tool_uses().next().unwrap().id.clone()
    };
    assert_eq!(id("\"c1\""), id("\"c1\""));
    assert_ne!(id("\"c1\""), id("\"c2\""));
}

/// Of calls that arrive side by side, each is incomplete in a reply that was cut off.
#[test]
fn a_call_whose_arguments_had_not_begun_at_the_cut_does_not_run_without_them() {
    let stream = concat!(
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"list","arguments":""}},{"index":1,"id":"b","function":{"name":"list","arguments":"{}"}}]}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":2,"id":"c","function":{"name":"list","arguments":"{\"un"}}]},"finish_reason":"length"}]}"#,
        "\n\n",
    );
    let reply = reply(Wire::Chat, stream);
    let malformed: Vec<bool> = reply.message.tool_uses().map(|call| call.malformed.is_some()).collect();
    assert_eq!(malformed, [true, false, true]);
}

/// A reply has at most so many pieces of each kind, because each is held in memory and searched.
#[test]
fn reasoning_details_without_end_are_refused() {
    let details = vec!["{}"; 5_000].join(",");
    let stream = format!(r#"data: {{"choices":[{{"delta":{{"reasoning_details":[{details}]}}}}]}}"#);
    let error = decode(Wire::Chat, &format!("{stream}\n\n")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not what the protocol allows: a reply of more than 4096 reasoning details"
    );
}
