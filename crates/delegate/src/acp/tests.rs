//! The client against an agent that the tests play.

use serde_json::json;

use super::*;
use crate::sample::request;
use crate::{Adapter, CliDefinition, CliOutputFormat, ConfiguredCli, DefinitionError};

fn agent(authentication: Option<&str>) -> Result<ConfiguredCli, DefinitionError> {
    let authentication = authentication.map(str::to_owned);
    ConfiguredCli::new(CliDefinition {
        name: "mine".to_owned(),
        command: vec!["mine".to_owned(), "acp".to_owned()],
        output: CliOutputFormat::Acp(AcpOptions { authentication }),
        ..CliDefinition::default()
    })
}

/// A client at work, its replies as JSON.
struct Client(Box<dyn Conversation>);

impl Client {
    fn receive(&mut self, message: &Value) -> (Vec<DelegateEvent>, Value) {
        let ConversationStep { events, reply, .. } = self.0.receive_line(message.to_string().as_bytes());
        (events, serde_json::from_slice(&reply).unwrap_or_default())
    }

    fn update(&mut self, update: &Value) -> Vec<DelegateEvent> {
        let params = json!({ "sessionId": "s-1", "update": update });
        self.receive(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).0
    }

    fn answer(&mut self, id: i64, result: &Value) -> (Vec<DelegateEvent>, Value) {
        self.receive(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// Goes on up to the prompt.
    fn open(cli: &ConfiguredCli, confined: bool) -> Self {
        let mut request = request("Do it.");
        request.confined = confined;
        let mut client = Self(cli.start_conversation(&request));
        client.answer(0, &json!({ "protocolVersion": 1 }));
        client.answer(2, &json!({ "sessionId": "s-1" }));
        client
    }
}

#[test]
fn the_run_begins_before_the_agent_says_a_word() -> Result<(), DefinitionError> {
    let command = agent(None)?.build_command(&request("Do it."));
    assert!(command.interactive);
    let greeting: Value = serde_json::from_slice(&command.stdin).unwrap_or_default();
    assert_eq!(greeting.pointer("/method"), Some(&json!("initialize")));
    assert_eq!(greeting.pointer("/params/protocolVersion"), Some(&json!(1)));
    let files = greeting.pointer("/params/clientCapabilities/fs");
    assert_eq!(files, Some(&json!({ "readTextFile": false, "writeTextFile": false })));
    Ok(())
}

#[test]
fn a_run_goes_from_the_session_to_the_answer() -> Result<(), DefinitionError> {
    let mut client = Client(agent(Some("key"))?.start_conversation(&request("Do it.")));
    let (_, asked) = client.answer(0, &json!({ "protocolVersion": 1, "authMethods": [] }));
    assert_eq!(asked["method"], "authenticate");
    assert_eq!(asked["params"]["methodId"], "key");
    let (_, asked) = client.answer(1, &json!({}));
    let expected = json!({ "cwd": "/work", "mcpServers": [] });
    assert_eq!((&asked["method"], &asked["params"]), (&json!("session/new"), &expected));
    let (events, asked) = client.answer(2, &json!({ "sessionId": "s-1" }));
    assert_eq!(events, [DelegateEvent::Session("s-1".to_owned())]);
    assert_eq!(asked["method"], "session/prompt");
    assert_eq!(asked["params"]["prompt"], json!([{ "type": "text", "text": "Do it." }]));
    let piece = |text: &str| json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    client.update(&piece("I do it."));
    let start = client.update(&json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Write a", "kind": "edit", "status": "pending",
    }));
    let (id, tool, summary) = ("t1".to_owned(), "edit".to_owned(), "Write a".to_owned());
    assert_eq!(start, [DelegateEvent::ToolStart { id: id.clone(), tool, summary }]);
    let more = client.update(&json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "in_progress",
        "locations": [{ "path": "/work/a" }],
    }));
    assert_eq!(more, []);
    let end = client.update(&json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed",
        "content": [{ "type": "content", "content": { "type": "text", "text": "ok" } }],
    }));
    let changed = DelegateEvent::FilesChanged(vec!["/work/a".to_owned()]);
    assert_eq!(end, [DelegateEvent::ToolEnd { id, failed: false, output: "ok".to_owned() }, changed]);
    client.update(&piece("Do"));
    client.update(&piece("ne."));
    client.update(&json!({
        "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 0.5, "currency": "USD" },
    }));
    let usage = json!({ "totalTokens": 9, "inputTokens": 5, "outputTokens": 4 });
    client.answer(3, &json!({ "stopReason": "end_turn", "usage": usage }));
    let outcome = client.0.end(Some(1), "it complains while it ends");
    assert_eq!((outcome.message.as_str(), outcome.failure), ("Done.", None));
    assert_eq!((outcome.usage.input, outcome.usage.output), (Tokens(5), Tokens(4)));
    assert_eq!((outcome.cost, outcome.session), (Some(0.5), Some("s-1".to_owned())));
    Ok(())
}

#[test]
fn the_history_of_a_session_is_not_told_again() -> Result<(), DefinitionError> {
    for (capabilities, method) in [
        (json!({ "loadSession": true }), "session/load"),
        (json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }), "session/resume"),
    ] {
        let mut request = request("More.");
        request.resume = Some("s-1");
        let mut client = Client(agent(None)?.start_conversation(&request));
        let answer = json!({ "protocolVersion": 1, "agentCapabilities": capabilities });
        let (_, asked) = client.answer(0, &answer);
        assert_eq!((&asked["method"], &asked["params"]["sessionId"]), (&json!(method), &json!("s-1")));
        let old = json!({ "type": "text", "text": "Old." });
        assert_eq!(client.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": old })), []);
        let (_, asked) = client.answer(2, &Value::Null);
        assert_eq!(asked["method"], "session/prompt");
    }
    let mut request = request("More.");
    request.resume = Some("s-1");
    let mut client = Client(agent(None)?.start_conversation(&request));
    client.answer(0, &json!({ "protocolVersion": 1 }));
    let failure = client.0.end(None, "").failure.map(|failure| failure.message);
    assert_eq!(failure, Some("it can't go on with a session".to_owned()));
    Ok(())
}

#[test]
fn permissions_are_given_where_nothing_can_come_of_it() -> Result<(), DefinitionError> {
    let cli = agent(None)?;
    for (confined, kind, path, expected) in [
        (true, "execute", "/work", "once"),
        (true, "edit", "/home/me/.profile", "once"),
        (false, "execute", "/work", "no"),
        (false, "edit", "/work/a", "once"),
        (false, "edit", "b", "once"),
        (false, "edit", "/home/me/.profile", "no"),
        (false, "edit", "/work/../home/me/.profile", "no"),
        (false, "edit", "../home/me/.profile", "no"),
        (false, "read", "/home/me/.netrc", "no"),
        (false, "fetch", "/work", "no"),
    ] {
        let mut client = Client::open(&cli, confined);
        let options = json!([
            { "optionId": "always", "name": "Always", "kind": "allow_always" },
            { "optionId": "once", "name": "Once", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ]);
        let locations = json!([{ "path": "/work/c" }, { "path": path }]);
        let mut tool = json!({ "toolCallId": "t1", "title": "ls", "kind": kind, "status": "pending" });
        tool["locations"] = locations.clone();
        let params = json!({ "sessionId": "s-1", "options": options, "toolCall": tool });
        let method = "session/request_permission";
        let (events, answer) =
            client.receive(&json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params }));
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": expected } });
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "q", "result": outcome }), "{confined} {kind}");
        assert!(matches!(&*events, [DelegateEvent::ToolStart { .. }]), "{events:?}");

        // What was told of the tool before counts, too.
        let mut client = Client::open(&cli, confined);
        client.update(&json!({
            "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ls", "kind": kind, "locations": locations,
        }));
        tool["locations"] = json!([]);
        let params = json!({ "sessionId": "s-1", "options": options, "toolCall": tool });
        let (_, answer) =
            client.receive(&json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params }));
        assert_eq!(answer["result"], outcome, "{confined} {kind} {path}");
    }
    Ok(())
}

#[test]
fn files_and_terminals_of_ours_are_refused() -> Result<(), DefinitionError> {
    let mut client = Client::open(&agent(None)?, true);
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "elicitation/create"] {
        let (_, answer) =
            client.receive(&json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": {} }));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(9), &json!(-32601)), "{method}");
    }
    Ok(())
}

#[test]
fn failures_have_their_kinds() -> Result<(), DefinitionError> {
    let cli = agent(None)?;
    let error = |code: i64, message: &str| json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": code, "message": message } });
    let stopped = |reason: &str| json!({ "jsonrpc": "2.0", "id": 3, "result": { "stopReason": reason } });
    for (message, kind) in [
        (error(-32000, "Authentication required"), FailureKind::NotAuthenticated),
        (error(-32603, "the API key is wrong: 401 Unauthorized"), FailureKind::NotAuthenticated),
        (error(-32603, "Internal error"), FailureKind::Reported),
        (error(429, "Rate limit exceeded"), FailureKind::Provider),
        (stopped("refusal"), FailureKind::Reported),
        (stopped("cancelled"), FailureKind::CutOff),
        (json!({ "jsonrpc": "2.0", "id": 3, "result": {} }), FailureKind::Reported),
        (json!({ "jsonrpc": "2.0", "id": 7, "result": {} }), FailureKind::CutOff),
    ] {
        let mut client = Client::open(&cli, true);
        client.receive(&message);
        let failure = client.0.end(None, "").failure.map(|failure| failure.kind);
        assert_eq!(failure, Some(kind), "{message}");
    }
    Ok(())
}

#[test]
fn a_model_is_chosen_in_the_session() -> Result<(), DefinitionError> {
    let cli = agent(None)?;
    let mut request = request("Do it.");
    request.model = Some("small");
    let opened = |options: Value| {
        let mut client = Client(cli.start_conversation(&request));
        client.answer(0, &json!({ "protocolVersion": 1 }));
        let (_, asked) = client.answer(2, &json!({ "sessionId": "s-1", "configOptions": options }));
        (client, asked)
    };
    let (mut client, asked) = opened(json!([
        { "id": "m", "name": "Mode", "category": "mode", "type": "select", "currentValue": "a", "options": [] },
        { "id": "x", "name": "Model", "category": "model", "type": "select", "currentValue": "large", "options": [] },
    ]));
    assert_eq!(asked["method"], "session/set_config_option");
    assert_eq!(asked["params"], json!({ "sessionId": "s-1", "configId": "x", "value": "small" }));
    let (_, asked) = client.answer(4, &json!({ "configOptions": [] }));
    assert_eq!(asked["method"], "session/prompt");
    let (client, _) = opened(json!([]));
    let failure = client.0.end(None, "").failure.map(|failure| failure.message);
    assert_eq!(failure, Some("it lets nobody choose a model".to_owned()));
    Ok(())
}
