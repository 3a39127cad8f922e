//! Scripted models: what a script may say, how it streams, and what a bad one is told.

use crate::loopback;

use journeyman_model::{Delta, Model as _, ModelError, ModelRequest, ScriptedModel};
use journeyman_protocol::{Block, CallId, Message, Role, StopReason, Tokens, ToolUse, Usage};
use loopback::{drain, drain_request, request};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_reply_streams_in_pieces_that_add_up() {
    let script = r#"{"replies": [{
        "thinking": "Let me see: where could the bug be?",
        "text": "I'll read the parser, and then the tests beside it.",
        "calls": [
            {"name": "read_file", "input": {"path": "src/a_rather_long_name_of_a_file.rs"}},
            {"name": "list_files", "id": "mine"}
        ]
    }]}"#;
    let model = ScriptedModel::parse(script).unwrap();
    let (deltas, error) = drain(&model).await;
    assert_eq!(error, None);
    assert_eq!(deltas[0], Delta::MessageStart);

    let (mut thinking, mut text, mut arguments, mut starts, mut ends) = Default::default();
    for delta in &deltas {
        match delta {
            Delta::Thinking { block: 0, text: more } => String::push_str(&mut thinking, more),
            Delta::Text { block: 1, text: more } => String::push_str(&mut text, more),
            Delta::CallArguments { block: 2, fragment } => String::push_str(&mut arguments, fragment),
            Delta::CallStart { block, id, name } => {
                Vec::push(&mut starts, (*block, id.as_str().to_owned(), name.clone()))
            }
            Delta::BlockEnd { block } => Vec::push(&mut ends, *block),
            _ => {}
        }
    }
    assert_eq!(thinking, "Let me see: where could the bug be?");
    assert_eq!(text, "I'll read the parser, and then the tests beside it.");
    assert_eq!(arguments, r#"{"path":"src/a_rather_long_name_of_a_file.rs"}"#);
    assert_eq!(
        starts,
        [(2, "call_1_1".to_owned(), "read_file".to_owned()), (3, "mine".to_owned(), "list_files".to_owned())]
    );
    assert_eq!(ends, [0, 1, 2, 3]);
    assert!(deltas.iter().filter(|delta| matches!(delta, Delta::Text { .. })).count() > 1);

    let Some(Delta::Done(reply)) = deltas.last() else { panic!("{deltas:?}") };
    let call = |id: &str, name: &str, input| {
        Block::ToolUse(ToolUse {
            id: CallId::new(id),
            name: name.to_owned(),
            input,
            malformed: None,
            signature: None,
        })
    };
    assert_eq!(
        reply.message,
        Message {
            role: Role::Assistant,
            content: vec![
                Block::Thinking { text: thinking.clone(), signature: None },
                Block::text(text),
                call("call_1_1", "read_file", json!({"path": "src/a_rather_long_name_of_a_file.rs"})),
                call("mine", "list_files", json!({})),
            ],
        }
    );
    assert_eq!(reply.stop, StopReason::ToolUse);
    assert!(reply.usage.input > Tokens(0) && reply.usage.output > reply.usage.thinking);
}

#[tokio::test]
async fn usage_and_stop_are_as_the_script_says() {
    let script = r#"{"name": "demo", "replies": [
        {"text": "a", "usage": {"input": 7, "output": 3, "cache_read": 90}, "stop": "max_tokens"},
        {"stop": {"other": "strange"}}
    ]}"#;
    let model = ScriptedModel::parse(script).unwrap();
    assert_eq!(model.name(), "demo");
    let first = loopback::reply(&model).await;
    assert_eq!(
        first.usage,
        Usage { input: Tokens(7), output: Tokens(3), cache_read: Tokens(90), ..Usage::default() }
    );
    assert_eq!(first.stop, StopReason::MaxTokens);
    assert_eq!(model.remaining(), 1);
    let second = loopback::reply(&model).await;
    assert_eq!((second.stop, second.message.content), (StopReason::Other("strange".to_owned()), vec![]));
    let (_, error) = drain(&model).await;
    assert_eq!(error.unwrap().to_string(), "script: it has 2 replies and this is request 3; add a reply");
}

#[tokio::test]
async fn an_expectation_looks_at_the_newest_message_and_its_tool_results() {
    let script = r#"{"replies": [{"expect": "2 tests failed", "text": "I see."}]}"#;
    let ask = |newest: Vec<Block>| ModelRequest {
        messages: vec![
            Message::user_text("2 tests failed"),
            Message::assistant_text("2 tests failed"),
            Message { role: Role::User, content: newest },
        ],
        ..request()
    };
    let model = ScriptedModel::parse(script).unwrap();
    let held =
        ask(vec![Block::text("Go on."), Block::result(CallId::new("1"), "exit 1: 2 tests failed", true)]);
    let (_, error) = drain_request(&model, &held, CancellationToken::new()).await;
    assert_eq!(error, None);

    let model = ScriptedModel::parse(script).unwrap();
    let (deltas, error) =
        drain_request(&model, &ask(vec![Block::text("all passed")]), CancellationToken::new()).await;
    assert_eq!(deltas, vec![]);
    assert_eq!(
        error.unwrap().to_string(),
        "script: reply 1 expects the newest message to contain\n  `2 tests failed`\nbut the message is\n  `all passed`"
    );
}

#[tokio::test]
async fn cancelling_ends_a_script_too() {
    let model = ScriptedModel::parse(r#"{"replies": [{"text": "a"}]}"#).unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (deltas, error) = drain_request(&model, &request(), cancel).await;
    assert_eq!((deltas, error), (vec![], Some(ModelError::Cancelled)));
}

#[test]
fn a_bad_script_is_told_where() {
    let cases = [
        ("", "line 1 column 0"),
        ("{\"replies\": [\n  {\"txt\": \"a\"}\n]}", "unknown field `txt`, expected one of"),
        ("{\"replies\": [\n  {\"txt\": \"a\"}\n]}", "line 2 column"),
        ("{\"replies\": [{\"calls\": [{\"input\": {}}]}]}", "missing field `name`"),
        ("[]", "line 1"),
        ("{}", "missing field `replies`"),
    ];
    for (script, expected) in cases {
        let error = ScriptedModel::parse(script).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    let error = ScriptedModel::load(&path).unwrap_err().to_string();
    assert!(error.contains("script.json"), "{error}");
    std::fs::write(&path, "{").unwrap();
    let error = ScriptedModel::load(&path).unwrap_err().to_string();
    assert!(error.contains("script.json") && error.contains("line 1"), "{error}");
}
