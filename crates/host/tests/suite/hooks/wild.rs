//! Scripts as they are found in the wild.

use journeyman_agent::hooks::{HookNotes, PreToolDecision, PreToolResult, SessionStartKind, TurnEndDecision};
use journeyman_model::ModelRequest;
use journeyman_protocol::{Effects, Message, SessionId, UnixMillis};
use serde_json::json;

use super::support::{Project, bash, before, call, configured, denied, edit, has_python, result};

const BLOCK_RM: &str = r#"#!/usr/bin/env python3
import json, re, sys
data = json.load(sys.stdin)
if data.get("tool_name") != "Bash":
    sys.exit(0)
command = data.get("tool_input", {}).get("command", "")
if re.search(r"\brm\s+.*-[a-z]*r[a-z]*f", command):
    print("BLOCKED: rm -rf is not allowed; move it to ./trash instead", file=sys.stderr)
    sys.exit(2)
sys.exit(0)
"#;

const PROTECT: &str = r#"#!/usr/bin/env python3
import json, sys
data = json.load(sys.stdin)
path = data["tool_input"].get("file_path", "")
if path.endswith(".env") or "/migrations/" in path:
    print(json.dumps({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": path.split("/")[-1] + " is protected"}}))
"#;

#[tokio::test]
async fn a_script_that_blocks_rm_by_exit_code_2_blocks_it_and_nothing_else() {
    if !has_python() {
        return;
    }
    let project = Project::new().script(".claude/hooks/block.py", BLOCK_RM);
    let command = "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/block.py";
    let hooks = project.hooks(&configured("PreToolUse", "Bash", command, ", timeout = 30"));
    let said = before(&project, &hooks, bash("rm -rf build")).await;
    assert_eq!(said.decision, denied("BLOCKED: rm -rf is not allowed; move it to ./trash instead"));
    assert_eq!(before(&project, &hooks, bash("cargo test")).await, PreToolResult::default());
}

#[tokio::test]
async fn a_json_denial_names_the_file_by_its_absolute_path() {
    if !has_python() {
        return;
    }
    let project = Project::new().script("hooks/protect.py", PROTECT);
    let hooks =
        project.hooks(&configured("PreToolUse", "Edit|Write|MultiEdit", "python3 hooks/protect.py", ""));
    assert_eq!(before(&project, &hooks, edit("config/.env")).await.decision, denied(".env is protected"));
    assert_eq!(before(&project, &hooks, edit("src/lib.rs")).await.decision, PreToolDecision::Go);
    // The model's own word for the argument doesn't lead past the guard.
    let (_, effects) = edit(".env");
    let slip = call("write_file", json!({"filename": ".env", "contents": "x"}));
    assert_eq!(before(&project, &hooks, (slip, effects)).await.decision, denied(".env is protected"));
}

#[tokio::test]
async fn json_answers_decide() {
    let cases: &[(&str, PreToolDecision)] = &[
        (
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"prod?"}}"#,
            PreToolDecision::Ask { reason: "prod?".to_owned() },
        ),
        (
            r#"{"hookSpecificOutput":{"permissionDecision":"allow","permissionDecisionReason":"docs"}}"#,
            PreToolDecision::Approve { reason: "docs".to_owned() },
        ),
        (r#"{"decision":"block","reason":"no"}"#, denied("no")),
        (r#"{"decision":"approve","reason":"yes"}"#, PreToolDecision::Approve { reason: "yes".to_owned() }),
        // The newer form wins.
        (
            r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no"}}"#,
            denied("no"),
        ),
        (r#"{"continue":false,"stopReason":"budget spent"}"#, denied("budget spent")),
        (r#"{"suppressOutput":true}"#, PreToolDecision::Go),
        ("{}", PreToolDecision::Go),
    ];
    let project = Project::new();
    for (json, decision) in cases {
        let hooks = project.hook("PreToolUse", &format!("cat > /dev/null; echo '{json}'"));
        assert_eq!(before(&project, &hooks, bash("ls")).await.decision, *decision, "{json}");
    }
    let unknown = project.hook("PreToolUse", r#"echo '{"decision":"perhaps"}'"#);
    let said = before(&project, &unknown, bash("ls")).await;
    assert!(
        matches!(said.decision, PreToolDecision::Ask { .. }),
        "a person sees an unknown decision: {said:?}"
    );
}

#[tokio::test]
async fn continue_false_stops_the_run_and_says_why() {
    let project = Project::new();
    let hooks = project
        .hook("PreToolUse", r#"echo '{"continue":false,"stopReason":"enough","systemMessage":"look"}'"#);
    let said = before(&project, &hooks, bash("ls")).await;
    assert_eq!(
        (said.notes.stop.as_deref(), said.notes.notices.as_slice()),
        (Some("enough"), &["look".to_owned()][..])
    );
}

#[tokio::test]
async fn updated_input_and_context_come_back_in_our_own_names() {
    let project = Project::new();
    let json = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "additionalContext": "node 22 is in use",
        "updatedInput": {"command": "ls -la", "timeout": 1500, "description": "List"},
    }});
    let hooks = project.hook("PreToolUse", &format!("echo '{json}'"));
    let said = before(&project, &hooks, bash("ls")).await;
    assert_eq!(said.input, Some(json!({"command": "ls -la", "timeout_s": 2})));
    assert_eq!(said.notes.context, ["node 22 is in use"]);

    let moved = json!({"hookSpecificOutput": {"updatedInput": {
        "file_path": project.root().join("src/b.rs"), "old_string": "a", "new_string": "c",
    }}});
    let hooks = project.hook("PreToolUse", &format!("echo '{moved}'"));
    let said = before(&project, &hooks, edit("src/a.rs")).await;
    assert_eq!(said.input, Some(json!({"path": "src/b.rs", "search": "a", "replace": "c"})));
    assert_eq!(said.decision, PreToolDecision::Go);
}

#[tokio::test]
async fn stdin_carries_claude_codes_fields_or_ours_by_the_name_of_the_event() {
    let project = Project::new();
    let hooks = project.hook("PreToolUse", "cat > seen.json");
    before(&project, &hooks, bash("ls")).await;
    assert_eq!(
        project.read_json("seen.json"),
        json!({
            "session_id": SessionId::new(UnixMillis(1), 1).as_str(), "transcript_path": "/state/session.jsonl",
            "cwd": project.root(), "permission_mode": "acceptEdits", "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "c1",
        })
    );
    let hooks = project.hooks(&configured("pre_tool", "edit_file", "cat > seen.json", ""));
    before(&project, &hooks, edit("a")).await;
    let seen = project.read_json("seen.json");
    assert_eq!(
        (&seen["hook_event_name"], &seen["permission_mode"], &seen["tool_name"], &seen["tool_input"]),
        (
            &json!("pre_tool"),
            &json!("edit"),
            &json!("edit_file"),
            &json!({"path": "a", "search": "a", "replace": "b"})
        )
    );
}

#[tokio::test]
async fn a_command_gets_the_users_environment_without_secrets() {
    let project = Project::new();
    let hooks = project.hooks(&format!(
        "secrets = [\"STAGING_TOKEN\"]\n{}",
        configured("pre_tool", "", "env > seen; pwd -P >> seen", "")
    ));
    before(&project, &hooks, bash("ls")).await;
    let seen = project.read("seen");
    let root = project.root().display().to_string();
    let has = |line: &str| seen.lines().any(|it| it == line);
    assert!(has("MINE=kept") && has(&format!("JOURNEYMAN_PROJECT_DIR={root}")), "{seen}");
    assert!(has(&format!("CLAUDE_PROJECT_DIR={root}")) && has(&root), "{seen}");
    assert!(!seen.contains("key-of-a-provider") && !seen.contains("listed-by-the-user"), "{seen}");
}

#[tokio::test]
async fn only_matching_tools_run_a_hook() {
    let project = Project::new();
    for (matcher, runs) in [
        ("Bash", true),
        ("run_command", true),
        ("Edit|Write", false),
        ("*", true),
        ("", true),
        ("mcp__.*", false),
    ] {
        let hooks = project.hooks(&configured("PreToolUse", matcher, "echo no >&2; exit 2", ""));
        let said = before(&project, &hooks, bash("ls")).await;
        assert_eq!(said.decision == denied("no"), runs, "{matcher}");
    }
    let hooks = project.hooks(&configured("PreToolUse", "mcp__.*__delete.*", "echo no >&2; exit 2", ""));
    let mcp = (call("mcp__files__delete_all", json!({})), Effects::default());
    assert_eq!(before(&project, &hooks, mcp).await.decision, denied("no"));
}

#[tokio::test]
async fn a_formatter_runs_after_good_edits_and_says_what_it_did() {
    let project = Project::new().script(
        "fmt.sh",
        "#!/bin/sh\nfile=$(sed -n 's/.*\"file_path\":\"\\([^\"]*\\)\".*/\\1/p')\necho formatted >> \"$file\"\necho \"formatted $(basename \"$file\")\"\n",
    );
    std::fs::write(project.root().join("a.rs"), "x\n").unwrap();
    let hooks = project.hooks(&configured("PostToolUse", "Edit|Write", "./fmt.sh", ""));
    let (call, effects) = edit("a.rs");
    let notes = hooks.run_post_tool(&project.at(), &call, &effects, &mut result("Edited a.rs", false)).await;
    assert_eq!(notes, HookNotes { context: vec!["formatted a.rs".to_owned()], ..HookNotes::default() });
    assert_eq!(project.read("a.rs"), "x\nformatted\n");
    let notes = hooks.run_post_tool(&project.at(), &call, &effects, &mut result("no such text", true)).await;
    assert_eq!((notes, project.read("a.rs").as_str()), (HookNotes::default(), "x\nformatted\n"));
    let (call, effects) = bash("ls");
    let notes = hooks.run_post_tool(&project.at(), &call, &effects, &mut result("", false)).await;
    assert_eq!(notes, HookNotes::default());
}

#[tokio::test]
async fn a_hook_after_a_call_gives_feedback_and_changes_results_and_never_denies() {
    let project = Project::new();
    let (call, effects) = bash("make");
    let after = async |event: &str, command: &str, is_error| {
        let mut result = result("out", is_error);
        let hooks = project.hook(event, command);
        let notes = hooks.run_post_tool(&project.at(), &call, &effects, &mut result).await;
        (notes, result.text())
    };
    let context = |text: &str| HookNotes { context: vec![text.to_owned()], ..HookNotes::default() };
    let same = "out".to_owned();
    assert_eq!(
        after("PostToolUse", "echo 'lint: 2 errors' >&2; exit 2", false).await,
        (context("lint: 2 errors"), same.clone())
    );
    assert_eq!(
        after("PostToolUse", r#"echo '{"decision":"block","reason":"fix it"}'"#, false).await,
        (context("fix it"), same.clone())
    );
    assert_eq!(
        after("PostToolUse", r#"echo '{"hookSpecificOutput":{"updatedToolOutput":"less"}}'"#, false).await,
        (HookNotes::default(), "less".to_owned())
    );
    assert_eq!(after("PostToolUseFailure", "echo seen", true).await, (context("seen"), same.clone()));
    assert_eq!(after("PostToolUseFailure", "echo seen", false).await, (HookNotes::default(), same.clone()));
    let (notes, text) = after("post_tool", "no-such-program-here", true).await;
    assert_eq!((notes.warnings.len(), notes.context.len(), text), (1, 0, same));
    after("PostToolUse", "cat > seen.json", false).await;
    let seen = project.read_json("seen.json");
    assert_eq!(seen["tool_response"]["stdout"], json!("out"));
    assert_eq!(seen["tool_response"]["success"], json!(true));
}

#[tokio::test]
async fn a_stop_hook_sends_the_model_back_to_work_once() {
    let project = Project::new().script(
        "stop.sh",
        "#!/bin/sh\ninput=$(cat)\ncase $input in *'\"stop_hook_active\":true'*) exit 0;; esac\n\
         echo '{\"decision\":\"block\",\"reason\":\"run the tests first\"}'\n",
    );
    let hooks = project.hook("Stop", "./stop.sh");
    let first = hooks.run_turn_end(&project.at(), "done", 0).await;
    assert_eq!(first.decision, TurnEndDecision::GoOn { reason: "run the tests first".to_owned() });
    assert_eq!(hooks.run_turn_end(&project.at(), "done", 1).await.decision, TurnEndDecision::Stop);
    let hooks = project.hook("Stop", "echo 'todo is not empty' >&2; exit 2");
    let said = hooks.run_turn_end(&project.at(), "done", 0).await;
    assert_eq!(said.decision, TurnEndDecision::GoOn { reason: "todo is not empty".to_owned() });
    let hooks = project.hook("Stop", r#"echo '{"continue":false,"decision":"block","reason":"x"}'"#);
    assert_eq!(hooks.run_turn_end(&project.at(), "done", 0).await.decision, TurnEndDecision::Stop);
    // A broken one doesn't keep a turn from ending.
    let hooks = project.hook("Stop", "exit 127");
    let said = hooks.run_turn_end(&project.at(), "done", 0).await;
    assert_eq!((said.decision, said.notes.warnings.len()), (TurnEndDecision::Stop, 1));
}

#[tokio::test]
async fn prompts_and_session_starts_get_context_and_prompts_can_be_refused() {
    let project = Project::new();
    let hooks = project.hooks(
        &[
            configured(
                "UserPromptSubmit",
                "",
                "grep -q password && { echo 'has a password' >&2; exit 2; }; echo 'on main'",
                "",
            ),
            configured("SessionStart", "startup", "echo 'branch main'", ""),
            configured(
                "SessionStart",
                "resume",
                r#"echo '{"hookSpecificOutput":{"additionalContext":"again"}}'"#,
                "",
            ),
        ]
        .concat(),
    );
    let at = project.at();
    let said = hooks.run_prompt(&at, "add a test").await;
    assert_eq!((said.denied, said.notes.context), (None, vec!["on main".to_owned()]));
    assert_eq!(hooks.run_prompt(&at, "my password is x").await.denied.as_deref(), Some("has a password"));
    assert_eq!(hooks.run_session_start(&at, SessionStartKind::Startup).await.context, ["branch main"]);
    assert_eq!(hooks.run_session_start(&at, SessionStartKind::Resume).await.context, ["again"]);
}

#[tokio::test]
async fn the_other_events_reach_commands_too() {
    let project = Project::new();
    let hooks = project.hooks(
        &[
            configured("pre_model", "", "cat > pre_model.json", ""),
            configured("post_model", "", "cat > post_model.json", ""),
            configured("post_append", "", "cat > post_append.json", ""),
            configured("SessionEnd", "exit", "cat > session_end.json", ""),
        ]
        .concat(),
    );
    let at = project.at();
    let mut request = ModelRequest { messages: vec![Message::user_text("hi")], ..ModelRequest::default() };
    assert_eq!(hooks.run_pre_model(&at, &mut request).await.denied, None);
    assert_eq!(project.read_json("pre_model.json")["messages"], json!([Message::user_text("hi")]));
    hooks.run_post_model(&at, &mut Message::assistant_text("hello")).await;
    assert_eq!(project.read_json("post_model.json")["message"], json!(Message::assistant_text("hello")));
    hooks.run_post_append(&at, &[Message::user_text("more")]).await;
    assert_eq!(project.read_json("post_append.json")["messages"], json!([Message::user_text("more")]));
    hooks.run_session_end(&at, "exit").await;
    assert_eq!(project.read_json("session_end.json")["reason"], json!("exit"));
}
