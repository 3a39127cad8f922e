//! Several hooks of one event, closures and commands.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use journeyman_agent::hooks::{
    GateDecision, HookCommand, HookEvent, Hooks, HooksBuilder, PreToolAnswer, PreToolDecision, PreToolResult,
    TurnEndDecision,
};
use journeyman_model::ModelRequest;
use journeyman_protocol::{Block, Message};
use serde_json::json;

use super::support::{Project, bash, before, configured, denied, pipe, result};

#[tokio::test]
async fn deny_beats_ask_beats_approve_and_the_first_of_a_kind_gives_the_reason() {
    let project = Project::new();
    let say = |word: &str, reason: &str| {
        let json =
            json!({"hookSpecificOutput": {"permissionDecision": word, "permissionDecisionReason": reason}});
        configured("PreToolUse", "", &format!("echo '{json}'"), "")
    };
    for (answers, decision) in [
        (vec![("allow", "a"), ("ask", "b"), ("deny", "c"), ("deny", "d")], denied("c")),
        (vec![("allow", "a"), ("ask", "b"), ("ask", "c")], PreToolDecision::Ask { reason: "b".to_owned() }),
        (vec![("allow", "a"), ("allow", "b")], PreToolDecision::Approve { reason: "a".to_owned() }),
    ] {
        let config: String = answers.iter().map(|(word, reason)| say(word, reason)).collect();
        assert_eq!(
            before(&project, &project.hooks(&config), bash("ls")).await.decision,
            decision,
            "{answers:?}"
        );
    }
}

#[tokio::test]
async fn commands_of_an_event_run_at_once_and_answer_in_order() {
    let project = Project::new();
    let path = pipe(&project, "meet");
    // Each waits for the other, so that one after the other would never end.
    let hooks = project.hooks(
        &[
            configured("PreToolUse", "", "cat meet", ""),
            configured("PreToolUse", "Bash", "echo met > meet; echo second", ""),
            configured("PreToolUse", "Bash|Edit", "echo met > meet; echo second", ""),
        ]
        .concat(),
    );
    let said = before(&project, &hooks, bash("ls")).await;
    assert_eq!(said.notes.context, ["met", "second"], "one that is configured twice runs once");
    drop(path);
}

#[tokio::test]
async fn closures_run_in_order_before_commands_and_the_first_that_decides_stops_them() {
    let project = Project::new();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let ran = Arc::clone(&ran);
        move || ran.lock().unwrap().push(name)
    };
    let (first, second, third) = (note("first"), note("second"), note("third"));
    let hooks = project
        .builder(&configured("PreToolUse", "", "touch ran; echo never >&2; exit 2", ""))
        .on_pre_tool(move |_, _, _| {
            first();
            PreToolDecision::Go
        })
        .on_pre_tool_async(move |_, call, _| {
            second();
            Box::pin(async move { denied(&format!("not {}", call.name)).into() })
        })
        .on_pre_tool(move |_, _, _| {
            third();
            PreToolDecision::Go
        })
        .build();
    assert_eq!(before(&project, &hooks, bash("ls")).await.decision, denied("not run_command"));
    assert_eq!(*ran.lock().unwrap(), ["first", "second"]);
    assert!(!project.root().join("ran").exists());
}

#[tokio::test]
async fn a_closure_that_asks_or_approves_is_overruled_by_a_command_that_denies() {
    let project = Project::new();
    let deny = configured("PreToolUse", "", "echo no >&2; exit 2", "");
    for decision in [
        PreToolDecision::Ask { reason: "hm".to_owned() },
        PreToolDecision::Approve { reason: "ok".to_owned() },
    ] {
        let given = decision.clone();
        let hooks = project.builder(&deny).on_pre_tool(move |_, _, _| given.clone()).build();
        assert_eq!(before(&project, &hooks, bash("ls")).await.decision, denied("no"), "{decision:?}");
    }
    let done = PreToolDecision::Result { text: "cached".to_owned(), is_error: false };
    let given = done.clone();
    let hooks = project.builder(&deny).on_pre_tool(move |_, _, _| given.clone()).build();
    assert_eq!(before(&project, &hooks, bash("ls")).await.decision, done);
}

#[tokio::test]
async fn amended_arguments_go_on_to_the_next_hook() {
    let project = Project::new();
    let hooks = project
        .builder(&configured("PreToolUse", "", "cat > seen.json", ""))
        .on_pre_tool(|_, _, _| PreToolAnswer {
            input: Some(json!({"command": "ls -l"})),
            ..PreToolAnswer::default()
        })
        .on_pre_tool(|_, call, _| match call.input["command"].as_str() {
            Some("ls -l") => PreToolDecision::Go,
            other => denied(&format!("{other:?}")),
        })
        .build();
    let said = before(&project, &hooks, bash("ls")).await;
    assert_eq!((said.decision, said.input), (PreToolDecision::Go, Some(json!({"command": "ls -l"}))));
    assert_eq!(project.read_json("seen.json")["tool_input"], json!({"command": "ls -l"}));
}

#[tokio::test]
async fn a_closure_that_panics_or_hangs_costs_its_call_and_nothing_else() {
    let project = Project::new();
    let (call, effects) = bash("ls");
    let hooks = HooksBuilder::new()
        .closure_timeout(Duration::from_millis(50))
        .on_pre_tool(|_, call, _| {
            assert_ne!(call.name, "run_command");
            PreToolDecision::Go
        })
        .on_post_tool(|_, _, result| {
            result.set_text("half");
            assert!(result.is_error);
            Vec::new()
        })
        .on_turn_end_async(|_, _| Box::pin(std::future::pending()))
        .on_prompt_async(|_, _| Box::pin(std::future::pending()))
        .build();
    let at = project.at();
    assert_eq!(
        hooks.run_pre_tool(&at, &call, &effects).await.decision,
        denied("a pre_tool hook of the program panicked")
    );
    let mut result = result("whole", false);
    let notes = hooks.run_post_tool(&at, &call, &effects, &mut result).await;
    assert_eq!((notes.warnings.len(), result.text().as_str()), (1, "whole"));
    let said = hooks.run_turn_end(&at, "", 0).await;
    assert_eq!((said.decision, said.notes.warnings.len()), (TurnEndDecision::Stop, 1));
    assert!(hooks.run_prompt(&at, "").await.denied.unwrap().contains("did not answer within 0.05 s"));
}

#[tokio::test]
async fn closures_change_results_requests_and_replies_in_turn() {
    let project = Project::new();
    let hooks = HooksBuilder::new()
        .on_post_tool(|_, _, result| {
            result.set_text(format!("{}!", result.text()));
            vec!["one".to_owned()]
        })
        .on_post_tool_async(|_, _, result| {
            Box::pin(async move {
                result.set_text(result.text().to_uppercase());
                vec!["two".to_owned()]
            })
        })
        .on_pre_model(|_, request| {
            request.temperature = Some(0.0);
            GateDecision::GO_WITHOUT_CONTEXT
        })
        .on_post_model(|_, reply| reply.content.push(Block::text("-- signed")))
        .build();
    let at = project.at();
    let (call, effects) = bash("ls");
    let mut changed = result("ok", false);
    let notes = hooks.run_post_tool(&at, &call, &effects, &mut changed).await;
    assert_eq!((changed.text().as_str(), notes.context), ("OK!", vec!["one".to_owned(), "two".to_owned()]));
    let mut request = ModelRequest::default();
    hooks.run_pre_model(&at, &mut request).await;
    assert_eq!(request.temperature, Some(0.0));
    let mut reply = Message::assistant_text("hello");
    hooks.run_post_model(&at, &mut reply).await;
    assert_eq!(reply.text(), "hello\n-- signed");
}

#[tokio::test]
async fn without_hooks_nothing_is_said() {
    let project = Project::new();
    let hooks = Hooks::none();
    assert!(HookEvent::ALL.into_iter().all(|event| hooks.has_no_hook_at(event)));
    assert_eq!(before(&project, &hooks, bash("ls")).await, PreToolResult::default());
    let hooks = HooksBuilder::new().commands([HookCommand::new(HookEvent::TurnEnd, "exit 0")]).build();
    let filled: Vec<HookEvent> =
        HookEvent::ALL.into_iter().filter(|event| !hooks.has_no_hook_at(*event)).collect();
    assert_eq!(filled, [HookEvent::TurnEnd]);
}

/// The session's actor may move between threads while a hook runs.
#[test]
fn waiting_for_hooks_can_move_between_threads() {
    fn sendable<T: Send>(_: T) {}
    let project = Project::new();
    let (hooks, at, (call, effects)) = (Hooks::none(), project.at(), bash("ls"));
    let (mut result, mut request, mut reply) =
        (result("", false), ModelRequest::default(), Message::assistant_text(""));
    sendable(hooks.run_prompt(&at, ""));
    sendable(hooks.run_pre_tool(&at, &call, &effects));
    sendable(hooks.run_post_tool(&at, &call, &effects, &mut result));
    sendable(hooks.run_pre_model(&at, &mut request));
    sendable(hooks.run_post_model(&at, &mut reply));
    sendable(hooks.run_post_append(&at, &[]));
    sendable(hooks.run_turn_end(&at, "", 0));
    sendable(hooks.run_session_end(&at, ""));
}
