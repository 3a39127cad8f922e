//! Limits of calls, interrupts, and what is cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_agent::{Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, RunSettings};
use journeyman_protocol::{
    AgentState, CallId, CallState, Event, Mode, ResumeStrategy, RunOutcome, TurnPhase,
};
use journeyman_tools::{ToolError, ToolOutput};
use serde_json::json;
use tokio::sync::Notify;

use crate::session::support::bench::{Bench, Session, assert_settled, auto, confined, in_mode};
use crate::session::support::model::{Step, Told, call, calls, calls_of, piece, result, says, stalls};
use crate::session::support::processes::Marker;
use crate::session::support::tools::Does;

cases![
    case_25_never_more_than_three_and_a_failure_blocks_nobody,
    case_26_calls_that_wait_are_settled_and_never_run,
    case_35_a_call_cut_off_is_asked_again_or_closed,
    case_36_an_interrupt_anywhere_leaves_a_session_that_goes_on,
];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, ..auto() }
}

fn asking() -> RunSettings {
    RunSettings { approver: Approver::Handle, checks: ChecksSetting::Off, ..in_mode(Mode::Ask) }
}

async fn case_25_never_more_than_three_and_a_failure_blocks_nobody() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, peak) = (Arc::clone(&now), Arc::clone(&most));
    let busy = Does::reading("busy", move |context, _| {
        let (now, most) = (Arc::clone(&running), Arc::clone(&peak));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            match context.call.as_str() {
                "c4" => Err(ToolError::Stopped("it broke".to_owned())),
                name => Ok(ToolOutput::text(format!("{name} is done"))),
            }
        }
    });
    let mut bench = Bench::new(&[]).with_tool(busy);
    let ids: Vec<String> = (0..12).map(|number| format!("c{number}")).collect();
    let all = ids.iter().map(|id| call(id, "busy", json!({}))).collect();
    let told = Told::new([calls_of(all), says("done")]);
    bench.run(&told, settings()).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
    for id in &ids {
        let text = result(&told.requests()[1], id);
        let expected =
            if id == "c4" { "the call was cut off: it broke".to_owned() } else { format!("{id} is done") };
        assert_eq!(text, expected);
    }
}

/// Waits at a gate, and says when it is there.
fn gated(gate: &Arc<Notify>, begun: &Arc<Notify>) -> Does {
    let (gate, begun) = (Arc::clone(gate), Arc::clone(begun));
    Does::reading("wait", move |context, _| {
        let (gate, begun) = (Arc::clone(&gate), Arc::clone(&begun));
        async move {
            begun.notify_one();
            tokio::select! {
                () = gate.notified() => Ok(ToolOutput::text("done")),
                () = context.cancel.cancelled() => Err(ToolError::Cancelled),
            }
        }
    })
}

async fn case_26_calls_that_wait_are_settled_and_never_run() {
    let (gate, begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut bench = Bench::new(&[]).with_tool(gated(&gate, &begun).writing());
    let ids = ["c1", "c2", "c3", "c4", "c5"];
    let told = Told::new([
        calls_of(ids.map(|id| call(id, "wait", json!({ "path": "a.txt" }))).to_vec()),
        says("on"),
    ]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    begun.notified().await;
    session.handle.interrupt();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().outcome, RunOutcome::Interrupted);
    let ran = ids.map(|id| bench.log.states(id).contains(&CallState::Executing));
    assert_eq!(ran, [true, false, false, false, false]);
    for id in ids {
        assert_eq!(bench.log.states(id).last(), Some(&CallState::Interrupted), "{id}");
    }
    gate.notify_one();
    session.handle.send("go on").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "on");
    assert_eq!(result(&told.requests()[1], "c5"), "not run: interrupted by the user");
}

async fn case_35_a_call_cut_off_is_asked_again_or_closed() {
    asked_again().await;
    if confined().await {
        a_call_that_ran_is_closed().await;
    }
}

/// The machine dies while a person is asked: the person is asked again, and nothing has happened.
async fn asked_again() {
    let mut bench = Bench::new(&[]);
    let write = calls([("c1", "write_file", json!({ "path": "a.txt", "content": "a\n" }))]);
    let told = Told::new([write, says("written")]);
    let mut session = bench.start(&told, asking());
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    bench.crash().await;
    drop(session);
    let mut session = bench.resume(&told, asking(), CutOffPolicy::Continue).await.unwrap();
    let resumed = session.until(|event| matches!(event, Event::AgentResumed { .. })).await;
    let Event::AgentResumed { strategy, interrupted, .. } = resumed else { unreachable!() };
    assert_eq!((strategy, interrupted.len()), (ResumeStrategy::Crash, 0));
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    assert!(session.handle.decide(&CallId::new("c1"), PermissionAnswer::allow()));
    assert_eq!(session.done().await.text, "written");
    assert_eq!(bench.file("a.txt").as_deref(), Some("a\n"));
    assert_settled(&bench);
}

/// It dies while a command runs: the command is not run again, and the model is told what is known.
async fn a_call_that_ran_is_closed() {
    let marker = Marker::new();
    let mut bench = Bench::new(&[]);
    let command = format!("echo begun; exec {}", marker.command());
    let told = Told::new([
        calls([
            ("read", "list_files", json!({})),
            ("sleep", "run_command", json!({ "command": command })),
            ("after", "list_files", json!({})),
        ]),
        says("I see"),
    ]);
    let mut session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::ToolOutput { text, .. } if text.contains("begun"))).await;
    bench.crash().await;
    drop(session);
    let mut session = bench.resume(&told, settings(), CutOffPolicy::Continue).await.unwrap();
    let resumed = session.until(|event| matches!(event, Event::AgentResumed { .. })).await;
    let Event::AgentResumed { interrupted, .. } = resumed else { unreachable!() };
    let interrupted: Vec<(String, CallState)> =
        interrupted.iter().map(|one| (one.id.to_string(), one.state)).collect();
    assert_eq!(interrupted, [("sleep".to_owned(), CallState::Interrupted)]);
    assert_eq!(session.done().await.text, "I see");
    let heard = &told.requests()[1];
    assert!(result(heard, "sleep").starts_with("cut off: "), "{}", result(heard, "sleep"));
    assert_eq!(bench.log.states("sleep").iter().filter(|state| **state == CallState::Executing).count(), 1);
    assert_eq!(bench.log.states("after").last(), Some(&CallState::Completed), "what had not begun is run");
    assert_settled(&bench);
}

/// The next message on the same handle is answered, from a transcript that every provider takes.
async fn goes_on(bench: &Bench, session: &Session, told: &Told, place: &str) {
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Interrupted, "{place}");
    let status = session.handle.status();
    assert_eq!((status.state, status.turn_phase), (AgentState::Ready, TurnPhase::Ready), "{place}");
    assert_settled(bench);
    session.handle.send("and now this").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "answered", "{place}");
    let requests = told.requests();
    assert!(requests.last().unwrap().messages.last().unwrap().text().ends_with("and now this"), "{place}");
    assert_settled(bench);
}

async fn case_36_an_interrupt_anywhere_leaves_a_session_that_goes_on() {
    // Idle: nothing to stop.
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("answered")]);
    let session = bench.start(&told, settings());
    session.handle.interrupt();
    session.handle.send("and now this").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "answered");
    // In mid-stream.
    let mut bench = Bench::new(&[]);
    let told = Told::new([stalls().after(vec![piece("I w")]), says("answered")]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    session.handle.interrupt();
    goes_on(&bench, &session, &told, "stream").await;
    // While a tool runs, and others wait behind it.
    for writes in [false, true] {
        let (gate, begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let tool = gated(&gate, &begun);
        let tool = if writes { tool.writing() } else { tool };
        let mut bench = Bench::new(&[]).with_tool(tool);
        let waits: Step = calls_of(["c1", "c2", "c3", "c4"].map(|id| call(id, "wait", json!({}))).to_vec());
        let told = Told::new([waits, says("answered")]);
        let session = bench.start(&told, settings());
        session.handle.send("do it").await.unwrap();
        begun.notified().await;
        session.handle.interrupt();
        goes_on(&bench, &session, &told, "tools").await;
    }
    // While a person is asked: their answer comes too late.
    let mut bench = Bench::new(&[]);
    let write = |id| (id, "write_file", json!({ "path": "a.txt", "content": id }));
    let told = Told::new([calls([write("c1"), write("c2")]), says("answered")]);
    let mut session = bench.start(&told, asking());
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    session.handle.interrupt();
    assert!(
        !session.handle.decide(&CallId::new("c1"), PermissionAnswer::allow()),
        "a late answer is refused"
    );
    goes_on(&bench, &session, &told, "approval").await;
    assert!(!session.handle.decide(&CallId::new("c2"), PermissionAnswer::allow()));
    assert_eq!(bench.file("a.txt"), None);
}
