//! Ctrl-C.

use std::collections::BTreeMap;

use journeyman_protocol::{Block, CallId, CallState, Event, Message};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{House, Running, Server, Step, call, is_running, needs_sandbox, say, wait_until};

/// A run that sits in a command which would take a quarter of an hour. The odd number tells its
/// process from any other.
fn sleeping(house: &House, server: &Server, sleep: &str) -> Running {
    let running = server.run(house, &["--stream-json", "wait a while"]).start();
    running.line_with("\"tool_start\"");
    wait_until("the command runs", || is_running(sleep));
    running
}

#[test]
fn once_stops_cleanly() {
    if !needs_sandbox() {
        return;
    }
    for (place, signal) in [Signal::INT, Signal::TERM].into_iter().enumerate() {
        let sleep = format!("sleep 911.{}{place}", std::process::id());
        let house = House::with_greeter();
        let before = house.tree();
        let calls =
            call("run_command", json!({ "command": sleep })).and("read_file", json!({"path": "greet.sh"}));
        let server = Server::chat([calls, say("That took long.")]);
        let running = sleeping(&house, &server, &sleep);
        running.signal(signal);
        let ran = running.wait().expect(130);

        let last = ran.events().pop().unwrap().event;
        let Event::Done { report } = last else { panic!("no report") };
        assert_eq!(report.summary, "interrupted");
        assert!(!is_running(&sleep), "nothing outlives the run");
        assert_eq!(house.tree(), before);
        assert_eq!(server.seen().len(), 1, "nothing more was asked");
        let session = &house.sessions()[0];
        assert_eq!(session["status"], "interrupted");
        every_call_is_answered(&house, session["id"].as_str().unwrap());
    }
}

/// Every call ended, the one that ran as cut off; in the transcript each has exactly one result.
fn every_call_is_answered(house: &House, session: &str) {
    let shown = house.jm(&["show", session, "--json"]).run().expect(0);
    let mut states: BTreeMap<CallId, CallState> = BTreeMap::new();
    for envelope in shown.events() {
        if let Event::ToolEnd { call, state, .. } = envelope.event {
            assert_eq!(states.insert(call, state), None, "one end a call");
        }
    }
    assert_eq!(states.len(), 2);
    assert!(states.values().any(|state| *state == CallState::Interrupted), "{states:?}");

    let state = house.state_of(session);
    assert_eq!(state.calls, []);
    let calls: Vec<CallId> =
        state.messages.iter().flat_map(Message::tool_uses).map(|call| call.id.clone()).collect();
    let results: Vec<CallId> = state
        .messages
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| if let Block::ToolResult { id, .. } = block { Some(id.clone()) } else { None })
        .collect();
    assert_eq!(calls, results, "one result a call, in call order");
}

#[test]
fn twice_stops_at_once() {
    if !needs_sandbox() {
        return;
    }
    let sleep = format!("sleep 912.{}", std::process::id());
    let house = House::with_greeter();
    let server = Server::chat([call("run_command", json!({ "command": sleep })), say("That took long.")]);
    let running = sleeping(&house, &server, &sleep);
    running.signal(Signal::INT);
    running.signal(Signal::INT);
    running.wait().expect(130);
    wait_until("the command is gone", || !is_running(&sleep));
    // Whatever the log holds can be shown.
    house.jm(&["show"]).run().expect(0);
}

#[test]
fn a_model_that_says_nothing_is_left_at_once() {
    let house = House::with_greeter();
    let before = house.tree();
    let server = Server::chat([Step::Stall]);
    let running = server.run(&house, &["look around"]).start();
    server.wait_for(1);
    running.signal(Signal::INT);
    let ran = running.wait().expect(130);
    ran.says(&["stopping"]);
    ran.prints(&["interrupted"]);
    assert_eq!(house.tree(), before);
    assert_eq!(house.sessions()[0]["status"], "interrupted");
}

#[test]
fn a_check_that_runs_is_stopped_and_nothing_is_called_verified() {
    if !needs_sandbox() {
        return;
    }
    let sleep = format!("sleep 913.{}", std::process::id());
    let house = House::with_greeter();
    let write = call("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::chat([write, say("Done.")]);
    let running = server.run(&house, &["--json", "--check", &sleep, "make a file"]).start();
    wait_until("the check runs", || is_running(&sleep));
    running.signal(Signal::INT);
    let report = running.wait().expect(130).report();
    assert_eq!(report.summary, "interrupted");
    assert!(report.evidence.iter().all(|evidence| !evidence.outcome.has_passed()), "{:?}", report.evidence);
    assert!(report.undo.is_some(), "the file is there, and how to take it back is said");
    wait_until("the check is gone", || !is_running(&sleep));
}

#[test]
fn a_run_that_is_killed_leaves_no_process_and_a_session_that_can_be_undone() {
    if !needs_sandbox() {
        return;
    }
    let sleep = format!("sleep 914.{}", std::process::id());
    let house = House::with_greeter();
    let before = house.tree();
    let write = call("write_file", json!({"path": "new.txt", "content": "new\n"}));
    // What the command had changed by then is taken back too.
    let command = format!("echo gone > greet.sh; echo more > more.txt; {sleep}");
    let server = Server::chat([write, call("run_command", json!({ "command": command })), say("Done.")]);
    let running = server.run(&house, &["make a file and wait"]).start();
    wait_until("the command runs", || is_running(&sleep));
    house.jm(&["undo"]).run().expect(2).says(&["is still running", "jm run, process"]);
    house.jm(&["sessions"]).run().expect(0).prints(&["running"]);
    running.signal(Signal::KILL);
    running.gone();
    wait_until("the command is gone", || !is_running(&sleep));

    let shown = house.jm(&["show"]).run().expect(0);
    shown.prints(&["make a file and wait", "the session was cut off"]);
    house.jm(&["sessions"]).run().expect(0).prints(&["cut off"]);
    let undone = house.jm(&["undo"]).run().expect(0);
    undone.prints(&["removed new.txt", "removed more.txt", "restored greet.sh", "with: jm redo, 2 times"]);
    assert_eq!(house.tree(), before);
    house.jm(&["redo"]).run().expect(0).prints(&["added new.txt"]);
    house.jm(&["redo"]).run().expect(0).prints(&["added more.txt", "changed greet.sh"]);
    house.jm(&["undo"]).run().expect(0);
    assert_eq!(house.tree(), before);
    // And the next run is none the worse.
    let server = Server::chat([say("Hello.")]);
    server.run(&house, &["look around"]).run().expect(4);
}
