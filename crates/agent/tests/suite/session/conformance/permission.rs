//! Who may do what, approvals, secrets, one writer.

use std::sync::Arc;

use journeyman_agent::hooks::{HooksBuilder, PreToolDecision};
use journeyman_agent::{AgentError, Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, RunSettings};
use journeyman_protocol::{AgentState, CallId, CallState, Event, Mode, RunOutcome, Seq, TurnPhase};
use journeyman_store::{NewEntry, SqliteStore, Store, StoreError};
use serde_json::json;

use crate::session::support::bench::{Bench, NOW, auto, confined, id, in_mode};
use crate::session::support::log::Failing;
use crate::session::support::model::{Told, calls, result, says};

cases![
    case_17_a_denial_beats_everything_and_a_question_is_asked_in_auto,
    case_18_plan_mode_reads_and_changes_nothing,
    case_19_an_unknown_mode_refuses,
    case_20_an_approved_call_runs_and_the_model_goes_on,
    case_21_a_denied_call_does_not_run_and_the_model_hears_why,
    case_44_no_secret_is_kept_and_one_process_writes,
];

fn asking(mode: Mode) -> RunSettings {
    RunSettings { approver: Approver::Handle, checks: ChecksSetting::Off, ..in_mode(mode) }
}

async fn case_17_a_denial_beats_everything_and_a_question_is_asked_in_auto() {
    if !confined().await {
        return;
    }
    // Denied: by policy whatever a hook says, by a hook whatever the mode and another hook say.
    let hooks = HooksBuilder::new()
        .on_pre_tool(|_, _, _| PreToolDecision::Approve { reason: "all of it".to_owned() })
        .on_pre_tool(|_, call, _| match call.name.as_str() {
            "search_text" => PreToolDecision::Deny { reason: "not this tool".to_owned() },
            "read_file" => PreToolDecision::Ask { reason: "somebody has to look".to_owned() },
            _ => PreToolDecision::Go,
        });
    let mut bench = Bench::new(&[("a.txt", "right\n")]).with_hooks(hooks.build());
    let told = Told::new([
        calls([
            ("git", "write_file", json!({ "path": ".git/config", "content": "" })),
            ("denied", "search_text", json!({ "pattern": "right" })),
            ("asked", "read_file", json!({ "path": "a.txt" })),
            ("absent", "no_such_tool", json!({})),
            ("push", "run_command", json!({ "command": "git push origin main" })),
        ]),
        says("done"),
    ]);
    let mut session = bench.start(&told, asking(Mode::Auto));
    session.handle.send("do it").await.unwrap();
    let mut asked = Vec::new();
    loop {
        let wanted = |event: &Event| matches!(event, Event::PermissionRequired { .. } | Event::Done { .. });
        let Event::PermissionRequired { call, verdict, .. } = session.until(wanted).await else { break };
        asked.push((call.to_string(), verdict.reason.clone()));
        assert!(session.handle.decide(&call, PermissionAnswer::deny()));
    }
    // What reaches outside is a person's to decide: no hook's approval reaches there.
    let names: Vec<&str> = asked.iter().map(|(call, _)| call.as_str()).collect();
    assert_eq!(names, ["asked", "push"]);
    assert!(asked[0].1.contains("somebody has to look"), "{asked:?}");
    let heard = &told.requests()[1];
    assert!(result(heard, "git").starts_with("denied: .git/config"), "{}", result(heard, "git"));
    assert_eq!(result(heard, "denied"), "denied by a hook: not this tool");
    assert!(result(heard, "absent").starts_with("there is no tool `no_such_tool`"));
    let ran = ["git", "denied", "asked", "absent", "push"]
        .map(|call| bench.log.states(call).contains(&CallState::Executing));
    assert_eq!(ran, [false; 5]);
}

async fn case_18_plan_mode_reads_and_changes_nothing() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "right\n")]);
    let told = Told::new([
        calls([
            ("read", "read_file", json!({ "path": "a.txt" })),
            ("write", "write_file", json!({ "path": "b.txt", "content": "" })),
            ("unclassified", "run_command", json!({ "command": "./what-is-this" })),
        ]),
        says("planned"),
    ]);
    bench.run(&told, asking(Mode::Plan)).await;
    let heard = &told.requests()[1];
    assert!(result(heard, "read").contains("right"));
    for call in ["write", "unclassified"] {
        assert!(result(heard, call).starts_with("denied: plan mode only reads"), "{}", result(heard, call));
    }
    assert_eq!(bench.file("b.txt"), None);
    // In the mode that asks, what nobody can classify is asked for.
    let mut bench = Bench::new(&[]);
    let unknown = || calls([("c1", "run_command", json!({ "command": "./what-is-this" }))]);
    let mut session = bench.start(&Told::new([unknown(), says("done")]), asking(Mode::Edit));
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    assert!(session.handle.decide(&CallId::new("c1"), PermissionAnswer::deny()));
    session.done().await;
}

async fn case_19_an_unknown_mode_refuses() {
    assert!("custom".parse::<Mode>().is_err());
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([says("one")]), asking(Mode::Ask));
    session.handle.send("first").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    session.handle.close().await;
    let setting = json!({ "record": "setting", "model": "m", "mode": "custom", "tool_calling": true });
    let last = bench.state().await.last;
    let entry = NewEntry {
        channel: None,
        kind: "setting".to_owned(),
        at: NOW,
        payload: serde_json::to_vec(&setting).unwrap(),
    };
    // Past the bench, which would find it.
    bench.log.inner().append(&id(), last, vec![entry]).await.unwrap();
    let refused = bench.resume(&Told::new([]), asking(Mode::Ask), CutOffPolicy::Continue).await;
    let Err(AgentError::NewerRecord { kind, seq, .. }) = refused else { panic!("it falls back to a mode") };
    assert_eq!((kind.as_str(), seq), ("setting", Seq(last.0 + 1)));
}

async fn case_20_an_approved_call_runs_and_the_model_goes_on() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[]);
    let touch = calls([("c1", "run_command", json!({ "command": "touch -f made" }))]);
    let told = Told::new([touch, says("made")]);
    let mut session = bench.start(&told, asking(Mode::Edit));
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    let status = session.handle.status();
    assert_eq!((status.state, status.turn_phase), (AgentState::Paused, TurnPhase::AwaitingApproval));
    assert_eq!(status.asked, [CallId::new("c1")]);
    assert_eq!(bench.file("made"), None);
    assert!(session.handle.decide_as(&CallId::new("c1"), PermissionAnswer::allow(), "the web page"));
    let decided = session.until(|event| matches!(event, Event::PermissionDecided { .. })).await;
    let expected = Event::PermissionDecided {
        call: CallId::new("c1"),
        allowed: true,
        by: "the web page".to_owned(),
        note: None,
    };
    assert_eq!(decided, expected);
    assert_eq!(session.done().await.text, "made");
    assert_eq!(bench.file("made").as_deref(), Some(""));
}

async fn case_21_a_denied_call_does_not_run_and_the_model_hears_why() {
    let mut bench = Bench::new(&[]);
    let touch = calls([("c1", "run_command", json!({ "command": "touch -f made" }))]);
    let told = Told::new([touch, says("then not")]);
    let mut session = bench.start(&told, asking(Mode::Edit));
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    let note = Some("use the Makefile".to_owned());
    assert!(session.handle.decide(&CallId::new("c1"), PermissionAnswer::Deny { note }));
    assert!(!session.handle.decide(&CallId::new("c1"), PermissionAnswer::allow()), "the first answer stands");
    assert_eq!(session.done().await.text, "then not");
    assert_eq!(told.requests().len(), 2);
    assert_eq!(result(&told.requests()[1], "c1"), "denied by the user: use the Makefile");
    assert_eq!(bench.file("made"), None);
}

async fn case_44_no_secret_is_kept_and_one_process_writes() {
    let secret = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz0123456789";
    let open = |directory: &std::path::Path| -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&directory.join("sessions.db")).unwrap())
    };
    let mut bench = Bench::with_log(&[], open, Failing::Never);
    bench.secrets.push(secret.to_owned());
    let told = Told::new([says(&format!("the key is {secret}"))]);
    let session = bench.start(&told, auto());
    session.handle.send(format!("log in with {secret}")).await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().outcome, RunOutcome::Unverified);
    for file in files_below(&bench.outside) {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{} has the key", file.display());
    }
    // Another process, as another store is one.
    let other = SqliteStore::open(&bench.outside.join("sessions.db")).unwrap();
    let refused = other.acquire_lease(&id(), "somebody else", NOW, 1_000).await;
    let Err(StoreError::Leased { holder, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(holder, "the test");
    let mut parts = bench.parts(&told);
    (parts.store, parts.holder) = (Arc::new(other), "somebody else".to_owned());
    let refused = journeyman_agent::resume(parts, auto(), id(), CutOffPolicy::Continue).await;
    let Err(AgentError::Store(StoreError::Leased { .. })) = refused else { panic!("the second got in") };
    // Once the first is closed, it may.
    session.handle.close().await;
    let mut parts = bench.parts(&Told::new([]));
    parts.store = Arc::new(SqliteStore::open(&bench.outside.join("sessions.db")).unwrap());
    parts.holder = "somebody else".to_owned();
    assert!(journeyman_agent::resume(parts, auto(), id(), CutOffPolicy::Continue).await.is_ok());
}

/// Every file below a directory.
pub(crate) fn files_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files
}
