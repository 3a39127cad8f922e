//! Whatever a CLI writes: no panic, no lost bounds, no session that is a flag.

use proptest::prelude::*;

use crate::bounds::{
    MAX_CHANGED_PATHS, MAX_ID_OR_PATH_BYTES, MAX_PARSED_LINE_BYTES, MAX_SENTENCE_BYTES, MAX_SESSION_ID_BYTES,
    MAX_TEXT_BYTES, MAX_TOOL_OUTPUT_BYTES, MAX_UNKNOWN_LINE_BYTES,
};
use crate::sample::request;
use crate::{
    AcpOptions, Adapter, CliDefinition, CliOutputFormat, ConfiguredCli, DelegateEvent, JsonPaths, Outcome,
    builtin_adapters,
};

/// The first line of a run and its last one, with `@` for the message, of each built-in CLI that
/// tells events by lines.
const FIRST_AND_LAST_LINES: &[(&str, &str, &str)] = &[
    (
        "claude",
        r#"{"type":"system","subtype":"init","session_id":"s-1"}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"@","session_id":"s-1","total_cost_usd":0.5}"#,
    ),
    (
        "codex",
        r#"{"type":"thread.started","thread_id":"s-1"}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2},"note":"@"}"#,
    ),
    (
        "gemini",
        r#"{"type":"init","session_id":"s-1"}"#,
        r#"{"type":"result","status":"success","note":"@","stats":{"input_tokens":1}}"#,
    ),
    (
        "opencode",
        r#"{"type":"step_start","sessionID":"s-1","part":{}}"#,
        r#"{"type":"step_finish","sessionID":"s-1","part":{"reason":"stop","note":"@"}}"#,
    ),
];

#[test]
fn a_last_line_that_is_hard_to_read_is_no_failure() {
    for (name, first, last) in FIRST_AND_LAST_LINES {
        let adapter = crate::builtin_adapter(name).unwrap();
        let end = |last: &[u8], exit| {
            let mut conversation = adapter.start_conversation(&request("x"));
            conversation.receive_line(first.as_bytes());
            conversation.receive_line(last);
            conversation.end(Some(exit), "").failure.map(|failure| failure.kind)
        };
        let long = last.replace('@', &"x".repeat(MAX_PARSED_LINE_BYTES));
        let mut lines: Vec<Vec<u8>> =
            [r"\ud83d", "\t"].map(|bad| last.replace('@', bad).into_bytes()).to_vec();
        lines.push(
            last.replace('@', "~").bytes().map(|byte| if byte == b'~' { 0xff } else { byte }).collect(),
        );
        lines.push(format!("\u{feff}{last}").into_bytes());
        lines.push(format!("(node:1) Warning: {last}").into_bytes());
        lines.push(long.into_bytes());
        lines.push(last.replace("\"@\"", "NaN").into_bytes());
        for line in lines {
            let start = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
            assert_eq!(end(&line, 0), None, "{name}: {start}");
        }
        // A stream that is cut off is a failure, and so is an exit code.
        let half = &last.as_bytes()[..last.len() / 2];
        assert_eq!(end(half, 0), Some(crate::FailureKind::CutOff), "{name}");
        assert_eq!(
            end(last.replace("\"@\"", "NaN").as_bytes(), 1),
            Some(crate::FailureKind::CutOff),
            "{name}"
        );
    }
}

/// Words that the output of the CLIs has, of which lines are put together.
const WORDS: &[&str] = &[
    "type",
    "subtype",
    "system",
    "init",
    "session_id",
    "sessionID",
    "thread_id",
    "assistant",
    "user",
    "result",
    "message",
    "content",
    "text",
    "tool_use",
    "tool_result",
    "id",
    "name",
    "input",
    "command",
    "file_path",
    "is_error",
    "error",
    "status",
    "usage",
    "input_tokens",
    "output_tokens",
    "total_cost_usd",
    "cost",
    "item.started",
    "item.completed",
    "item",
    "command_execution",
    "file_change",
    "agent_message",
    "changes",
    "path",
    "turn.completed",
    "turn.failed",
    "thread.started",
    "part",
    "state",
    "tool",
    "callID",
    "step_finish",
    "tokens",
    "stats",
    "role",
    "tool_name",
    "tool_id",
    "parameters",
    "write_file",
    "success",
    "method",
    "params",
    "session/update",
    "session/request_permission",
    "update",
    "sessionUpdate",
    "agent_message_chunk",
    "tool_call",
    "tool_call_update",
    "toolCallId",
    "options",
    "optionId",
    "kind",
    "protocolVersion",
    "sessionId",
    "stopReason",
    "end_turn",
    "api_retry",
    "attempt",
    "error_status",
    "--flag",
    "s-1",
];

fn adapters() -> Vec<Box<dyn Adapter>> {
    let place = |name: &str| Some(name.to_owned());
    let paths = JsonPaths {
        text: place("message.text"),
        message: place("message"),
        session: place("session_id"),
        input_tokens: place("usage.input_tokens"),
        output_tokens: place("usage.output_tokens"),
        cost: place("cost"),
        error: place("error"),
    };
    let mut adapters = builtin_adapters();
    for output in [
        CliOutputFormat::Text,
        CliOutputFormat::JsonLines(paths),
        CliOutputFormat::Acp(AcpOptions::default()),
    ] {
        let (name, command) = ("mine".to_owned(), vec!["mine".to_owned()]);
        let definition = CliDefinition { name, command, output, ..CliDefinition::default() };
        let configured = ConfiguredCli::new(definition).map(|cli| Box::new(cli) as Box<dyn Adapter>);
        adapters.extend(configured);
    }
    assert_eq!(adapters.len(), 7);
    adapters
}

fn json() -> impl Strategy<Value = String> {
    let word = proptest::sample::select(WORDS).prop_map(|word| format!("\"{word}\""));
    let leaf = prop_oneof![
        4 => word.clone(),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_map(|number| format!("{number:?}")),
        1 => (0_i64..4).prop_map(|number| number.to_string()),
        1 => Just("null".to_owned()),
        1 => any::<bool>().prop_map(|truth| truth.to_string()),
        1 => any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let member = (word.clone(), inner.clone()).prop_map(|(name, value)| format!("{name}:{value}"));
        prop_oneof![
            proptest::collection::vec(inner, 0..5).prop_map(|all| format!("[{}]", all.join(","))),
            proptest::collection::vec(member, 0..8).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    })
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => json().prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..200),
        1 => (json(), any::<proptest::sample::Index>()).prop_map(|(text, end)| {
            let end = end.index(text.len() + 1);
            text.into_bytes().into_iter().take(end).collect()
        }),
    ]
}

/// Asserts that an event keeps its bounds.
fn check_event(event: &DelegateEvent) {
    let within = |text: &str, bytes: usize| assert!(text.len() <= bytes, "{} bytes of {bytes}", text.len());
    match event {
        DelegateEvent::Session(id) => within(id, MAX_SESSION_ID_BYTES),
        DelegateEvent::Text(text) | DelegateEvent::Thought(text) => within(text, MAX_TEXT_BYTES),
        DelegateEvent::ToolStart { id, tool, summary } => {
            within(id, MAX_ID_OR_PATH_BYTES);
            within(tool, MAX_SENTENCE_BYTES);
            within(summary, MAX_SENTENCE_BYTES);
        }
        DelegateEvent::ToolEnd { id, output, .. } => {
            within(id, MAX_ID_OR_PATH_BYTES);
            within(output, MAX_TOOL_OUTPUT_BYTES);
        }
        DelegateEvent::FilesChanged(paths) => {
            assert!(paths.len() <= MAX_CHANGED_PATHS + 1, "{} paths", paths.len());
            paths.iter().for_each(|path| within(path, MAX_ID_OR_PATH_BYTES));
        }
        DelegateEvent::Usage { cost, .. } => assert!(cost.is_none_or(|cost| cost >= 0.0)),
        DelegateEvent::Warning(text) => within(text, MAX_SENTENCE_BYTES),
        DelegateEvent::Unknown(text) => within(text, MAX_UNKNOWN_LINE_BYTES),
    }
}

fn check_outcome(outcome: &Outcome) {
    assert!(outcome.message.len() <= MAX_TEXT_BYTES);
    if let Some(session) = &outcome.session {
        assert!(session.starts_with(|first: char| first.is_ascii_alphanumeric()), "{session}");
    }
    if let Some(failure) = &outcome.failure {
        assert!(!failure.message.is_empty());
        assert!(failure.message.len() <= 2 * MAX_SENTENCE_BYTES);
    }
}

proptest! {
    #[test]
    fn nothing_that_is_written_breaks_a_reader(
        lines in proptest::collection::vec(line(), 0..12),
        exit in proptest::option::of(-1_i32..130),
        stderr in "(.|\n){0,60}",
    ) {
        for adapter in adapters() {
            let mut conversation = adapter.start_conversation(&request("Do it."));
            for line in &lines {
                let step = conversation.receive_line(line);
                step.events.iter().for_each(check_event);
                prop_assert!(step.reply.is_empty() || step.reply.ends_with(b"\n"));
            }
            check_outcome(&conversation.end(exit, &stderr));
        }
    }
}

#[test]
fn long_fields_are_cut() {
    let long = "é".repeat(MAX_PARSED_LINE_BYTES / 4);
    let line = |text: &str| {
        let place = r#"{"path":"P","kind":"add"}"#.replace('P', text);
        [
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"L"}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"L","name":"L","input":{"command":"L"}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"L","content":"L"}]}}"#,
            r#"{"type":"item.completed","item":{"id":"L","type":"command_execution","command":"L","aggregated_output":"L"}}"#,
            r#"{"type":"message","role":"assistant","content":"L"}"#,
            r#"{"type":"tool_use","tool_name":"write_file","tool_id":"L","parameters":{"file_path":"L"}}"#,
            r#"{"type":"tool_result","tool_id":"L","status":"success","output":"L"}"#,
            r#"{"type":"text","sessionID":"L","part":{"text":"L"}}"#,
            r#"{"type":"tool_use","part":{"tool":"write","callID":"L","state":{"status":"completed","input":{"filePath":"L"},"output":"L","title":"L"}}}"#,
            r#"{"type":"error","error":{"data":{"message":"L"}}}"#,
            r#"{"type":"turn.failed","error":{"message":"L"}}"#,
            r#"{"type":"system","subtype":"init","session_id":"L"}"#,
            r#"{"message":{"text":"L"},"error":"L"}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"L","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"L"}}}}"#,
            r#"{"type":"L"}"#,
        ]
        .map(|line| line.replace('L', text))
        .into_iter()
        .chain([format!(
            r#"{{"type":"item.completed","item":{{"id":"x","type":"file_change","changes":[{}]}}}}"#,
            vec![place; 2].join(",")
        )])
    };
    for adapter in adapters() {
        let mut conversation = adapter.start_conversation(&request("Do it."));
        for line in line(&long).chain(line(&long.repeat(5))) {
            conversation.receive_line(line.as_bytes()).events.iter().for_each(check_event);
        }
        check_outcome(&conversation.end(Some(1), &long));
    }
}
