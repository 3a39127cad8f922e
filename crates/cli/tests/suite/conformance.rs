//! Cases of the behaviour that sessions are held to, with real processes: they are killed, opened
//! again by another process, and refused to a second one. The other cases are in the agent's own
//! tests (`session/conformance`).

use std::sync::{Mutex, mpsc};

use journeyman_protocol::{CallState, Envelope, Event, ResumeStrategy, RunOutcome, Seq};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    House, KEY, Person, Server, Step, call, is_running, needs, needs_sandbox, say, wait_until,
};

/// The events of the newest session, as its log has them.
fn log(house: &House) -> Vec<Envelope> {
    house.jm(&["show", "--json"]).run().expect(0).events()
}

fn ends_of(events: &[Envelope], state: CallState) -> usize {
    events
        .iter()
        .filter(|one| matches!(one.event, Event::ToolEnd { state: ended, .. } if ended == state))
        .count()
}

#[test]
fn case_07_configured_hooks_hold_after_a_session_is_resumed() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.write("secret.txt", "the plan\n");
    house.configure(
        "[[hooks.PreToolUse]]\nmatcher = \"Read\"\n\
         hooks = [{ type = \"command\", command = \"grep -q secret.txt && { echo 'not this file' >&2; exit 2; } || true\" }]\n\
         [[hooks.SessionStart]]\nmatcher = \"resume\"\n\
         hooks = [{ type = \"command\", command = \"echo Mind the gap.\" }]\n",
    );
    let read = || -> Step { call("read_file", json!({ "path": "secret.txt" })).into() };
    let other = call("read_file", json!({ "path": "greet.sh" }));
    let server = Server::chat([read(), Step::Stall, read(), other.into(), say("Not that one.").into()]);
    let running = server.run(&house, &["--no-check", "read it"]).start();
    server.wait_for(2);
    running.signal(Signal::KILL);
    running.gone();
    let denied = |request: usize| {
        let said = server.seen()[request].newest();
        assert!(said.contains("denied by a hook: not this file") && !said.contains("the plan"), "{said}");
    };
    denied(1);
    assert!(!server.seen()[1].body.to_string().contains("Mind the gap."));
    house.jm(&["resume"]).env("JM_API_KEY", KEY).run().expect(4);
    // The request that was cut off is made again, with what the hook adds now; then the same call
    // is denied again, and another one is not.
    let seen = server.seen();
    assert_eq!(seen.len(), 5);
    let heard: Vec<bool> = seen.iter().map(|one| one.body.to_string().contains("Mind the gap.")).collect();
    assert_eq!(heard, [false, false, false, true, true]);
    denied(3);
    assert!(!seen[4].newest().contains("denied"), "{}", seen[4].newest());
}

#[test]
fn case_35_kill_9_while_a_call_awaits_approval_or_executes() {
    if !needs(&["setsid"]) || !needs_sandbox() {
        return;
    }
    // A person is asked when the process dies: nothing has run, and a person is asked again.
    let house = House::with_greeter();
    let touch = call("run_command", json!({ "command": "touch -f one" }));
    let server = Server::chat([touch, say("Done.")]);
    let run = server.run(&house, &["--no-check", "make a file"]).env("NO_COLOR", "1");
    let mut person = Person::start(run.command());
    person.sees("run_command `touch -f one`");
    person.sees("[y]es");
    person.kills();
    person.ends();
    assert!(!house.project().join("one").exists());
    let resumed = house.jm(&["resume"]).env("JM_API_KEY", KEY).env("NO_COLOR", "1");
    let mut person = Person::start(resumed.command());
    person.sees("run_command `touch -f one`");
    person.sees("[y]es");
    assert!(!house.project().join("one").exists());
    person.types("y\n");
    assert_eq!(person.ends().0, 4);
    assert!(house.project().join("one").exists());
    assert_eq!(settled(&house), [CallState::Completed]);

    // A command runs, another call waits: the command is not run again and has one result, the
    // other one runs.
    let sleep = format!("sleep 935.{}", std::process::id());
    let house = House::with_greeter();
    let command = json!({ "command": format!("echo begun >> ran.txt; {sleep}") });
    let both = call("run_command", command).and("read_file", json!({ "path": "greet.sh" }));
    let server = Server::chat([both, say("I see.")]);
    let running = server.run(&house, &["--no-check", "--mode", "auto", "wait"]).start();
    wait_until("the command runs", || is_running(&sleep));
    running.signal(Signal::KILL);
    running.gone();
    wait_until("the command is gone", || !is_running(&sleep));
    house.jm(&["resume"]).env("JM_API_KEY", KEY).run().expect(4);
    assert_eq!(server.seen().len(), 2);
    let said = server.seen()[1].newest();
    assert!(said.contains("cut off: "), "{said}");
    assert!(!is_running(&sleep), "it is not run again");
    let events = log(&house);
    let resumed = events.iter().find_map(|envelope| match &envelope.event {
        Event::AgentResumed { strategy, interrupted, .. } => Some((*strategy, interrupted.clone())),
        _ => None,
    });
    let (strategy, interrupted) = resumed.unwrap();
    assert_eq!(strategy, ResumeStrategy::Crash);
    let reported: Vec<CallState> = interrupted.iter().map(|call| call.state).collect();
    assert_eq!(reported, [CallState::Interrupted], "the list of what was closed");
    let mut states = settled(&house);
    states.sort_unstable_by_key(|state| format!("{state:?}"));
    assert_eq!(states, [CallState::Completed, CallState::Interrupted]);
}

/// The states in which the calls of the newest session ended, each of which has exactly one result.
fn settled(house: &House) -> Vec<CallState> {
    let session = house.sessions()[0]["id"].as_str().unwrap().to_owned();
    let state = house.state_of(&session);
    let mut answered: Vec<String> = Vec::new();
    let mut made: Vec<String> = Vec::new();
    for message in &state.messages {
        made.extend(message.tool_uses().map(|call| call.id.to_string()));
        for block in &message.content {
            if let journeyman_protocol::Block::ToolResult { id, .. } = block {
                answered.push(id.to_string());
            }
        }
    }
    made.sort_unstable();
    answered.sort_unstable();
    assert_eq!(made, answered);
    let ended = |envelope: Envelope| match envelope.event {
        Event::ToolEnd { state, .. } => Some(state),
        _ => None,
    };
    let ends: Vec<CallState> = log(house).into_iter().filter_map(ended).collect();
    assert_eq!(ends.len(), made.len(), "one end a call");
    ends
}

#[test]
fn case_38_numbers_rise_over_kill_9_and_an_old_bookmark_replays_what_came_after_it() {
    let house = House::with_greeter();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let server = Server::answering(move |number, _| match number {
        1 => call("read_file", json!({ "path": "greet.sh" })).into(),
        2 => call("list_files", json!({})).into(),
        3 => Step::Stall,
        4 => {
            gate.lock().unwrap().recv().unwrap();
            say("Done.").into()
        }
        _ => say("Hello.").into(),
    });
    let running = server.run(&house, &["--no-check", "--stream-json", "look around"]).start();
    // Somebody has seen so much when the process dies, and more is in the log.
    let line = running.line_with("\"tool_end\"");
    let seen: Envelope = serde_json::from_str(&line).unwrap();
    let bookmark = seen.seq.unwrap();
    server.wait_for(3);
    running.signal(Signal::KILL);
    running.gone();
    let before = log(&house);
    assert!(before.last().unwrap().seq.unwrap() > bookmark);

    let resumed = house.jm(&["resume", "--stream-json"]).env("JM_API_KEY", KEY).start();
    server.wait_for(4);
    // Subscribed while the new process is at work: first what is in the log, then what happens.
    let follower = house.jm(&["show", "--follow", "--json"]).start();
    follower.line_with("\"agent_resumed\"");
    open.send(()).unwrap();
    let ran = resumed.wait().expect(4).events();
    let followed = follower.wait().expect(0).events();
    let whole = log(&house);
    assert_eq!(whole[..before.len()], before, "what was in the log stays");
    assert!(whole.windows(2).all(|pair| pair[0].seq < pair[1].seq), "numbers rise over the restart");
    let after = |events: &[Envelope], from: Seq| -> Vec<Envelope> {
        events.iter().filter(|envelope| envelope.seq.is_some_and(|seq| seq > from)).cloned().collect()
    };
    assert_eq!(
        after(&followed, bookmark),
        after(&whole, bookmark),
        "each once, in order, and the live ones after"
    );
    // The new process shows its own events alone, with the numbers that the log gives them.
    let shown = after(&ran, Seq::START);
    assert_eq!(shown.first().unwrap().event.kind(), "agent_resumed");
    assert_eq!(shown, after(&whole, before.last().unwrap().seq.unwrap()));
    assert_eq!(ends_of(&whole, CallState::Completed), 2);
}

#[test]
fn case_44_no_key_is_kept_and_a_second_process_is_refused() {
    let house = House::with_greeter();
    let header = "hdr-planted-77c1e0b25d9a4f3e";
    let server = Server::chat([
        call("run_command", json!({ "command": "env; cat /proc/self/environ" })).into(),
        Step::Stall,
        say("Done.").into(),
    ]);
    house.configure(&format!(
        "[providers.mine]\nwire = \"chat\"\nbase_url = \"{}\"\nkey_env = [\"MY_KEY\"]\nheaders = {{ x-team = \"{header}\" }}\n",
        server.url()
    ));
    let jm = |arguments: &[&str]| house.jm(arguments).env("MY_KEY", KEY);
    let flags = ["run", "--model", "mine/tiny", "--no-check", "--mode", "auto", "look around"];
    let running = jm(&flags).start();
    server.wait_for(2);
    // Two more processes, at once, while the first one works: both are refused, and nothing is
    // asked of the model.
    let seen = server.seen();
    assert_eq!(
        (seen[0].header("authorization"), seen[0].header("x-team")),
        (Some(format!("Bearer {KEY}").as_str()), Some(header))
    );
    let others: Vec<_> = (0..2).map(|_| jm(&["resume", "--last", "hello"]).start()).collect();
    for other in others {
        other.wait().expect(2).says(&["is still running"]);
    }
    assert_eq!(server.seen().len(), 2);
    running.signal(Signal::KILL);
    running.gone();
    for secret in [KEY, header] {
        assert_eq!(house.state_files_holding(secret), Vec::<std::path::PathBuf>::new(), "after kill -9");
    }
    // Of two that open it again at the same time one gets it.
    let resumed: Vec<_> = (0..2).map(|_| jm(&["resume", "--json"]).start()).collect();
    let mut codes: Vec<i32> = resumed.into_iter().map(|one| one.wait().code()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [2, RunOutcome::Unverified.exit_code().into()]);
    assert_eq!(server.seen().len(), 3);
    for secret in [KEY, header] {
        assert_eq!(house.state_files_holding(secret), Vec::<std::path::PathBuf>::new());
    }
}
