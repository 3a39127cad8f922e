//! What comes back when a session is opened again, and what is said of it.

use std::sync::Arc;

use journeyman_agent::isolation::CommitOptions;
use journeyman_agent::{
    AgentError, Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, RecordedSettings, RunSettings,
    StartOptions, State,
};
use journeyman_protocol::{CallId, CallState, Event, Mode, RelPath, RunOutcome};
use journeyman_store::{NewEntry, StoreError};
use serde_json::json;
use tokio::sync::Notify;

use crate::session::support::bench::{Bench, NOW, Session, assert_settled, auto, id, in_mode};
use crate::session::support::log::Failing;
use crate::session::support::model::{Told, calls, result, says, stalls};
use crate::session::support::tools::{Meet, Trail};

cases![
    everything_comes_back,
    another_model_and_mode_are_said,
    the_books_go_on_after_a_crash,
    a_task_that_was_cut_off_can_be_closed,
    a_message_that_waited_is_answered,
    the_first_append_says_how_the_session_is_set,
    a_task_that_had_not_begun_can_be_given_up,
    what_cannot_be_opened_says_why,
    whoever_loses_the_session_stops,
];

fn settings(mode: Mode) -> RunSettings {
    RunSettings { approver: Approver::Handle, checks: ChecksSetting::Off, ..in_mode(mode) }
}

async fn ask(session: &Session, text: &str) -> String {
    session.handle.send(text).await.unwrap();
    session.handle.wait_until_finished().await.unwrap().text.clone()
}

async fn everything_comes_back() {
    let mut bench = Bench::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let told = Told::new([
        calls([
            ("todo", "todo_write", json!({ "todos": [{ "id": "1", "title": "write it down" }] })),
            ("read", "read_file", json!({ "path": "a.txt" })),
            ("write", "write_file", json!({ "path": "c.txt", "content": "c\n" })),
        ]),
        says("one"),
    ]);
    let mut session = bench.start(&told, settings(Mode::Ask));
    session.handle.send("first").await.unwrap();
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    assert!(session.handle.decide(&CallId::new("write"), PermissionAnswer::allow_rule()));
    session.handle.wait_until_finished().await.unwrap();
    let place = session.handle.snapshot("here").await.unwrap();
    session.handle.close().await;
    drop(session);
    let before = bench.state().await;
    assert_eq!((before.counters.step, before.todos.len(), before.allowed.len()), (2, 1, 1));
    assert!(!before.seen.is_empty());

    // It has read a.txt, may write c.txt, and counts on.
    let again = Told::new([
        calls([
            ("seen", "edit_file", json!({ "path": "a.txt", "search": "one", "replace": "two" })),
            ("allowed", "write_file", json!({ "path": "c.txt", "content": "c again\n" })),
            ("todos", "todo_read", json!({})),
        ]),
        says("two"),
    ]);
    let mut session = bench.resume(&again, settings(Mode::Ask), CutOffPolicy::Continue).await.unwrap();
    assert_eq!(session.handle.status().step, 2);
    session.handle.send("second").await.unwrap();
    let asked = session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    let Event::PermissionRequired { call, .. } = asked else { unreachable!() };
    assert_eq!(call.as_str(), "seen", "the other is allowed by the rule");
    assert!(session.handle.decide(&call, PermissionAnswer::allow()));
    assert_eq!(session.done().await.text, "two");
    let heard = &again.requests()[1];
    assert_eq!(bench.file("a.txt").as_deref(), Some("two\n"), "{}", result(heard, "seen"));
    assert_eq!(bench.file("c.txt").as_deref(), Some("c again\n"), "{}", result(heard, "allowed"));
    assert!(result(heard, "todos").contains("write it down"));
    let first = &again.requests()[0];
    assert_eq!(first.system, told.requests()[0].system, "the prompt is the same, byte for byte");
    assert_eq!(first.messages[..before.messages.len()], before.messages);
    let after = bench.state().await;
    assert_eq!((after.counters.step, after.snapshots.get("here")), (4, Some(&place)));
}

async fn another_model_and_mode_are_said() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([says("one")]), settings(Mode::Ask));
    ask(&session, "first").await;
    session.handle.close().await;
    drop(session);
    let script = r#"{"replies": [{"text": "two"}]}"#;
    let other = Arc::new(journeyman_model::ScriptedModel::parse(script).unwrap());
    let mut session = bench.resume(&other, settings(Mode::Plan), CutOffPolicy::Continue).await.unwrap();
    let resumed = session.until(|event| matches!(event, Event::AgentResumed { .. })).await;
    let Event::AgentResumed { changed, .. } = resumed else { unreachable!() };
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(changed[0].starts_with("model: test/told → "), "{changed:?}");
    assert_eq!(changed[1], "mode: ask → plan");
    assert_eq!(ask(&session, "second").await, "two");
    session.handle.close().await;
    // The third time nothing is different.
    let script = Arc::new(journeyman_model::ScriptedModel::parse(r#"{"replies": []}"#).unwrap());
    let mut session = bench.resume(&script, settings(Mode::Plan), CutOffPolicy::Continue).await.unwrap();
    let resumed = session.until(|event| matches!(event, Event::AgentResumed { .. })).await;
    assert!(matches!(resumed, Event::AgentResumed { changed, .. } if changed.is_empty()));
}

async fn the_books_go_on_after_a_crash() {
    let mut bench = Bench::new(&[]);
    let list = |id| calls([(id, "list_files", json!({}))]);
    let told = Told::new([list("c1"), list("c2"), stalls()]);
    let limited = || RunSettings { max_turns: 4, ..settings(Mode::Ask) };
    let session = bench.start(&told, limited());
    session.handle.send("do it").await.unwrap();
    told.asked(3).await;
    bench.crash().await;
    drop(session);
    // Three were asked for; what was being said when it ended is void.
    let told = Told::new([list("c3"), says("never said")]);
    let session = bench.resume(&told, limited(), CutOffPolicy::Continue).await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!((report.outcome, report.turns), (RunOutcome::Limit, 4), "{}", report.summary);
    assert_eq!(told.requests().len(), 1);
    assert_eq!(bench.log.states("c1"), bench.log.states("c2"));
    assert_settled(&bench);
}

async fn a_task_that_was_cut_off_can_be_closed() {
    let gate = Arc::new(Notify::new());
    let trail = Arc::new(Trail::default());
    let wait = Meet { name: "wait", read_only: true, barrier: None, gate: Some(gate), trail };
    let mut bench = Bench::new(&[]).with_tool(wait);
    let told = Told::new([
        calls([
            ("c1", "wait", json!({})),
            ("c2", "write_file", json!({ "path": "a.txt", "content": "a\n" })),
        ]),
        says("answered"),
    ]);
    let mut session = bench.start(&told, settings(Mode::Edit));
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::ToolStart { .. })).await;
    bench.log.executing("c1").await;
    bench.crash().await;
    drop(session);
    let session = bench.resume(&told, settings(Mode::Edit), CutOffPolicy::Close).await.unwrap();
    assert_eq!(ask(&session, "and now this").await, "answered");
    let heard = &told.requests()[1];
    assert!(result(heard, "c1").starts_with("cut off: "), "{}", result(heard, "c1"));
    assert!(result(heard, "c2").starts_with("not run: "), "{}", result(heard, "c2"));
    assert_eq!(bench.log.states("c1").last(), Some(&CallState::Interrupted));
    assert_eq!(bench.state().await.outcome, Some(RunOutcome::Unverified));
    assert_settled(&bench);
}

async fn a_message_that_waited_is_answered() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("answered")]);
    let session = bench.start(&told, settings(Mode::Ask));
    session.handle.send("do it").await.unwrap();
    // Its first entries are how it is set, and the message.
    bench.crash_after(2).await;
    drop(session);
    assert_eq!(bench.state().await.queue.len(), 1);
    let told = Told::new([says("answered after all")]);
    let session = bench.resume(&told, settings(Mode::Ask), CutOffPolicy::Continue).await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "answered after all");
    assert!(told.requests()[0].messages[0].text().contains("do it"));
}

/// However early it is cut off, it is opened again as it was asked for.
async fn the_first_append_says_how_the_session_is_set() {
    let mut bench = Bench::failing(&[], Failing::From(2));
    let asked = StartOptions {
        base_url: Some("http://localhost:1".to_owned()),
        checks: Some(ChecksSetting::Off),
        isolate: Some(true),
        keep: true,
        commit: Some(CommitOptions {
            branch: Some("b".to_owned()),
            message: None,
            ..CommitOptions::default()
        }),
        uncommitted: Some(vec![RelPath::parse("mine.txt").unwrap()]),
        ..StartOptions::default()
    };
    let settings = RunSettings { asked: asked.clone(), tool_calling: false, ..settings(Mode::Plan) };
    let session = bench.start(&Told::new([says("never said")]), settings);
    session.handle.send("do it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let kinds: Vec<String> = bench.log.entries().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, ["setting", "queued"]);
    let state = bench.state().await;
    let model = "test/told".to_owned();
    assert_eq!(state.setting, Some(RecordedSettings { model, mode: Mode::Plan, tool_calling: false, asked }));
    assert_eq!(state.queue.len(), 1);
}

async fn a_task_that_had_not_begun_can_be_given_up() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([says("never said")]), settings(Mode::Ask));
    session.handle.send("do it").await.unwrap();
    bench.crash_after(2).await;
    drop(session);
    let told = Told::new([says("answered")]);
    let session = bench.resume(&told, settings(Mode::Ask), CutOffPolicy::Close).await.unwrap();
    assert_eq!(ask(&session, "something else").await, "answered");
    let said = told.requests()[0].messages[0].text();
    assert!(said.contains("something else") && !said.contains("do it"), "{said}");
    assert_eq!(told.requests().len(), 1);
    assert!(bench.state().await.queue.is_empty());
}

async fn what_cannot_be_opened_says_why() {
    let mut bench = Bench::new(&[]);
    let unknown = bench.resume(&Told::new([]), auto(), CutOffPolicy::Continue).await;
    assert!(
        matches!(unknown, Err(AgentError::Store(StoreError::UnknownSession { .. }))),
        "{:?}",
        unknown.err()
    );
    let session = bench.start(&Told::new([says("one")]), auto());
    ask(&session, "first").await;
    // Somebody holds it.
    let mut parts = bench.parts(&Told::new([]));
    parts.holder = "somebody else".to_owned();
    let leased = journeyman_agent::resume(parts, auto(), id(), CutOffPolicy::Continue).await;
    let text = leased.unwrap_err().to_string();
    assert!(text.contains("the test"), "it says who: {text}");
}

/// Another process takes the session over: the first one's next write is refused, and it writes
/// nothing more.
async fn whoever_loses_the_session_stops() {
    let mut bench = Bench::new(&[]);
    let gate = Arc::new(Notify::new());
    let told = Told::new([says("one").when(&gate), says("never said")]);
    let session = bench.start(&told, auto());
    session.handle.send("first").await.unwrap();
    told.asked(1).await;
    let last = State::load(&*bench.log, &id()).await.unwrap().last;
    let entry = NewEntry {
        channel: None,
        kind: "cleared".to_owned(),
        at: NOW,
        payload: br#"{"record":"cleared"}"#.to_vec(),
    };
    bench.log.inner().append(&id(), last, vec![entry]).await.unwrap();
    gate.notify_one();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Error);
    assert!(report.summary.contains("another process writes session"), "{}", report.summary);
    let sent = session.handle.send("second").await;
    assert!(matches!(sent, Err(AgentError::LostSession { .. })), "{sent:?}");
    assert_eq!(bench.log.inner().read(&id(), last, 10).await.unwrap().len(), 1);
}
