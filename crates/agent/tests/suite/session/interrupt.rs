//! An interrupt stops what runs, whatever that is, and leaves a transcript that goes on.

use std::sync::Arc;

use journeyman_agent::{Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, RunSettings};
use journeyman_protocol::{Block, CallId, CallState, Event, Mode, RunOutcome};
use journeyman_tools::{ToolContext, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::session::support::bench::{Bench, Session, assert_settled, auto, confined, in_mode};
use crate::session::support::model::{Step, Told, calls, deaf, piece, result, says, stalls};
use crate::session::support::processes::{Marker, eventually};
use crate::session::support::tools::Does;

cases![
    while_idle_it_changes_nothing,
    before_the_task_begins,
    while_the_model_streams,
    while_a_model_does_not_listen,
    while_a_command_runs_and_others_wait,
    while_a_person_is_asked,
    while_checks_run,
    what_was_interrupted_is_verified_when_the_session_goes_on,
    a_call_that_ends_well_in_that_moment_has_ended_well,
    dropping_the_handle_ends_the_command,
];

/// The next message on the same handle is answered, and the model gets a transcript that it can
/// take.
async fn goes_on(bench: &Bench, session: &mut Session, told: &Told) {
    let before = told.requests().len();
    session.handle.send("and now this").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.text, "answered", "{report:?}");
    let requests = told.requests();
    assert_eq!(requests.len(), before + 1);
    assert!(requests[before].messages.last().unwrap().text().ends_with("and now this"));
    assert_settled(bench);
}

async fn interrupted(session: &Session) {
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(
        (report.outcome, report.exit_code, report.summary.as_str()),
        (RunOutcome::Interrupted, 130, "interrupted")
    );
}

async fn while_idle_it_changes_nothing() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("first"), says("answered")]);
    let mut session = bench.start(&told, auto());
    session.handle.interrupt();
    session.handle.send("do it").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "first");
    session.handle.interrupt();
    goes_on(&bench, &mut session, &told).await;
}

/// Ctrl-C right after Enter: the task is on its way to the session, which has not begun it.
async fn before_the_task_begins() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("answered")]);
    let mut session = bench.start(&told, auto());
    let mut status = session.handle.watch_status();
    // A task of its own: it is woken before the session is, and so has its turn first.
    let handle = session.handle.clone();
    let at_once = tokio::spawn(async move {
        status.wait_for(|status| status.queued > 0).await.unwrap();
        handle.interrupt();
    });
    session.handle.send("do it").await.unwrap();
    at_once.await.unwrap();
    interrupted(&session).await;
    assert_eq!(told.requests().len(), 0);
    goes_on(&bench, &mut session, &told).await;
}

async fn while_the_model_streams() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([stalls().after(vec![piece("I will n")]), says("answered")]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    session.handle.interrupt();
    interrupted(&session).await;
    assert_eq!(bench.log.messages().last().unwrap().text(), "I will n", "the part that arrived is kept");
    goes_on(&bench, &mut session, &told).await;
}

async fn while_a_model_does_not_listen() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([deaf(), says("answered")]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    session.handle.interrupt();
    interrupted(&session).await;
    goes_on(&bench, &mut session, &told).await;
}

/// A command that says that it runs and then sleeps, and calls that wait behind it.
fn sleeps(marker: &Marker) -> Step {
    calls([
        ("read", "list_files", json!({})),
        ("sleep", "run_command", json!({ "command": format!("echo begun; exec {}", marker.command()) })),
        ("write", "write_file", json!({ "path": "queued.txt", "content": "queued\n" })),
        ("run", "run_command", json!({ "command": "echo x > queued-too.txt" })),
        ("look", "list_files", json!({})),
    ])
}

fn begun(event: &Event) -> bool {
    matches!(event, Event::ToolOutput { text, .. } if text.contains("begun"))
}

async fn while_a_command_runs_and_others_wait() {
    if !confined().await {
        return;
    }
    let marker = Marker::new();
    let mut bench = Bench::new(&[]);
    let told = Told::new([sleeps(&marker), says("answered")]);
    let settings = RunSettings { checks: ChecksSetting::Off, ..auto() };
    let mut session = bench.start(&told, settings);
    session.handle.send("do it").await.unwrap();
    session.until(begun).await;
    session.handle.interrupt();
    interrupted(&session).await;
    assert_eq!(marker.alive(), 0);
    assert_eq!([bench.file("queued.txt"), bench.file("queued-too.txt")], [None, None]);
    let ran = |call| bench.log.states(call).contains(&CallState::Executing);
    assert_eq!(["read", "sleep", "write", "run", "look"].map(ran), [true, true, false, false, false]);
    let ended = |call| bench.log.states(call).pop().unwrap();
    assert_eq!(ended("read"), CallState::Completed);
    for call in ["sleep", "write", "run", "look"] {
        assert_eq!(ended(call), CallState::Interrupted, "{call}");
    }
    goes_on(&bench, &mut session, &told).await;
    let heard = &told.requests()[1];
    assert!(result(heard, "sleep").starts_with("interrupted\nbegun"), "{}", result(heard, "sleep"));
    assert_eq!(result(heard, "write"), "not run: interrupted by the user");
}

async fn while_a_person_is_asked() {
    let mut bench = Bench::new(&[]);
    let touch = |id| (id, "run_command", json!({ "command": "touch made" }));
    let told = Told::new([calls([touch("c1"), touch("c2")]), says("answered")]);
    let settings = RunSettings { approver: Approver::Handle, ..in_mode(Mode::Ask) };
    let mut session = bench.start(&told, settings);
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    session.handle.interrupt();
    assert!(
        !session.handle.decide(&CallId::new("c1"), PermissionAnswer::allow()),
        "an answer after the interrupt"
    );
    interrupted(&session).await;
    assert!(!session.handle.decide(&CallId::new("c1"), PermissionAnswer::allow()), "an answer after the end");
    assert_eq!(bench.log.states("c1").last(), Some(&CallState::Interrupted));
    let asked = [CallState::Pending, CallState::ApprovalRequired, CallState::Interrupted];
    assert_eq!(bench.log.states("c2"), asked);
    goes_on(&bench, &mut session, &told).await;
}

async fn while_checks_run() {
    if !confined().await {
        return;
    }
    let marker = Marker::new();
    let mut bench = Bench::new(&[]);
    let write = calls([("c1", "write_file", json!({ "path": "a.txt", "content": "a\n" }))]);
    let told = Told::new([write, says("written")]);
    let settings = RunSettings { checks: ChecksSetting::Custom(vec![marker.command()]), ..auto() };
    let mut session = bench.start(&told, settings);
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::CheckStarted { .. })).await;
    eventually("the check", || marker.alive() > 0).await;
    session.handle.interrupt();
    interrupted(&session).await;
    assert_eq!(marker.alive(), 0);
    assert_settled(&bench);
}

/// The newest task changed nothing, but nothing has verified what the one before it did.
async fn what_was_interrupted_is_verified_when_the_session_goes_on() {
    if !confined().await {
        return;
    }
    for (passes, outcome) in [(true, RunOutcome::Verified), (false, RunOutcome::ChecksFail)] {
        let marker = Marker::new();
        let mut bench = Bench::new(&[("b.txt", "b\n")]);
        let write = calls([("c1", "write_file", json!({ "path": "a.txt", "content": "a\n" }))]);
        let told = Told::new([write, says("written"), says("so be it"), says("nothing to add"), says("bye")]);
        let check = format!("test -e ready || exec {}; test {passes} = true", marker.command());
        let settings =
            RunSettings { checks: ChecksSetting::Custom(vec![check]), max_iterations: 0, ..auto() };
        let mut session = bench.start(&told, settings.clone());
        session.handle.send("do it").await.unwrap();
        session.until(|event| matches!(event, Event::CheckStarted { .. })).await;
        eventually("the check", || marker.alive() > 0).await;
        session.handle.interrupt();
        interrupted(&session).await;
        session.handle.close().await;
        drop(session);
        std::fs::write(bench.root.join("ready"), "").unwrap();

        let session = bench.resume(&told, settings, CutOffPolicy::Continue).await.unwrap();
        session.handle.send("go on").await.unwrap();
        let report = session.handle.wait_until_finished().await.unwrap();
        assert_eq!(report.outcome, outcome, "{}", report.summary);
        let changed: Vec<String> = report.changes.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(changed, ["a.txt", "ready"]);
        assert!(report.diff.contains("+++ b/a.txt"), "{}", report.diff);
        // What is verified need not be verified again; what failed is looked at until it passes, or
        // is gone.
        session.handle.send("and now?").await.unwrap();
        let report = session.handle.wait_until_finished().await.unwrap();
        let expected = if passes { RunOutcome::Unverified } else { RunOutcome::ChecksFail };
        assert_eq!(report.outcome, expected, "{}", report.summary);
        for name in ["a.txt", "ready"] {
            std::fs::remove_file(bench.root.join(name)).unwrap();
        }
        session.handle.send("and now?").await.unwrap();
        let report = session.handle.wait_until_finished().await.unwrap();
        assert!(report.summary.contains("nothing to verify"), "{}", report.summary);
        assert_settled(&bench);
    }
}

async fn a_call_that_ends_well_in_that_moment_has_ended_well() {
    let started = Arc::new(Notify::new());
    let told_to_start = Arc::clone(&started);
    let slow = move |context: ToolContext, _: Value| {
        let started = Arc::clone(&told_to_start);
        async move {
            started.notify_one();
            context.cancel.cancelled().await;
            Ok(ToolOutput::text("exit code 0"))
        }
    };
    let mut bench = Bench::new(&[]).with_tool(Does::reading("slow", slow).writing());
    let told = Told::new([calls([("c1", "slow", json!({}))]), says("answered")]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    started.notified().await;
    session.handle.interrupt();
    interrupted(&session).await;
    assert_eq!(bench.log.states("c1").last(), Some(&CallState::Completed));
    goes_on(&bench, &mut session, &told).await;
    let heard = &told.requests()[1];
    let is_error = |block: &Block| matches!(block, Block::ToolResult { is_error: true, .. });
    assert!(!heard.messages.iter().flat_map(|message| &message.content).any(is_error), "{heard:?}");
    assert_eq!(result(heard, "c1"), "exit code 0");
}

async fn dropping_the_handle_ends_the_command() {
    if !confined().await {
        return;
    }
    let marker = Marker::new();
    let mut bench = Bench::new(&[]);
    let told = Told::new([sleeps(&marker)]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    session.until(begun).await;
    let Session { handle, mut events, .. } = session;
    drop(handle);
    while events.next().await.unwrap().is_some() {}
    eventually("the end of the command", || marker.alive() == 0).await;
    assert_eq!(bench.file("queued.txt"), None);
}
