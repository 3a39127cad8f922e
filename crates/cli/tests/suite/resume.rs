//! `jm resume`: what was cut off is finished, what had ended goes on.

use journeyman_protocol::{CallState, Event, Outcome};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    House, Jm, KEY, POLITE, Server, Step, Wire, call, is_running, needs, needs_sandbox, polite_edit, say,
    wait_until,
};

/// `jm resume` without any word about the model: the session knows.
fn resume(house: &House, arguments: &[&str]) -> Jm {
    let all: Vec<&str> = ["resume"].iter().chain(arguments).copied().collect();
    house.jm(&all).env("JM_API_KEY", KEY)
}

/// Runs until the model is asked for the `count`-th time, and kills it there. Gives the session's id.
fn killed_at(house: &House, server: &Server, count: usize, arguments: &[&str]) -> String {
    let running = server.run(house, arguments).start();
    server.wait_for(count);
    running.signal(Signal::KILL);
    running.gone();
    house.sessions()[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    if !needs(&["make"]) {
        return;
    }
    for wire in Wire::ALL {
        let house = House::with_greeter();
        let steps: [Step; 3] =
            [call("edit_file", polite_edit()).into(), Step::Stall, say("Polite now.").into()];
        let server = Server::start(wire, steps);
        let session = killed_at(&house, &server, 2, &["make the greeting polite"]);
        assert_eq!(house.read("greet.sh"), POLITE, "the edit was made");
        assert_eq!(house.sessions()[0]["status"], "cut_off");
        house.jm(&["show"]).run().expect(0).prints(&["the session was cut off", "jm resume"]);

        let ran = resume(&house, &[]).run().expect(0);
        ran.says(&["opened again", "its task was cut off"]).prints(&["verified", &session]);
        let seen = server.seen();
        assert_eq!(seen.len(), 3, "{}", wire.name());
        assert_eq!(seen[2].body, seen[1].body, "the model is asked the same, byte for byte");
        assert_eq!(house.read("greet.sh"), POLITE);
        assert_eq!(house.sessions()[0]["status"], "verified");

        let events = house.jm(&["show", "--json"]).run().expect(0).events();
        let count = |kind: &str| events.iter().filter(|envelope| envelope.event.kind() == kind).count();
        assert_eq!((count("run_started"), count("agent_resumed"), count("done")), (1, 1, 1));
        assert_eq!(count("tool_end"), 1, "one end a call, over both processes");
        house.jm(&["undo"]).run().expect(0).prints(&["restored greet.sh"]);
    }
}

#[test]
fn a_command_that_was_cut_off_is_taken_back_and_the_model_told() {
    if !needs_sandbox() {
        return;
    }
    let sleep = format!("sleep 921.{}", std::process::id());
    let house = House::with_greeter();
    let before = house.tree();
    let command = format!("echo gone > greet.sh; echo more > more.txt; {sleep}");
    let server = Server::chat([call("run_command", json!({ "command": command })), say("I'll leave it.")]);
    let running = server.run(&house, &["wait a while"]).start();
    wait_until("the command runs", || is_running(&sleep));
    running.signal(Signal::KILL);
    running.gone();
    wait_until("the command is gone", || !is_running(&sleep));

    let ran = resume(&house, &["--last", "--stream-json"]).run().expect(4);
    let told = server.seen()[1].newest();
    for words in ["cut off", "safe to do it again", "more.txt", "greet.sh"] {
        assert!(told.contains(words), "«{words}» is not in\n{told}");
    }
    assert_eq!(house.tree(), before);
    let events = ran.events();
    assert_eq!(events[0].event.kind(), "agent_resumed", "{:?}", events[0]);
    let sealed = events.iter().find_map(|envelope| match &envelope.event {
        Event::AgentResumed { sealed, .. } => Some(sealed.clone()),
        _ => None,
    });
    let sealed = sealed.unwrap();
    assert_eq!(sealed.len(), 1);
    assert_eq!(sealed[0].state, CallState::Sealed);
    let Event::Done { report } = &events.last().unwrap().event else { panic!("no report") };
    assert_eq!(report.outcome, Outcome::Unverified);
}

#[test]
fn what_a_person_saved_while_the_command_ran_is_named_and_can_be_had_again() {
    if !needs_sandbox() {
        return;
    }
    let sleep = format!("sleep 922.{}", std::process::id());
    let house = House::with_greeter();
    let command = format!("echo more > more.txt; {sleep}");
    let write = call("write_file", json!({"path": "later.txt", "content": "later\n"}));
    let server = Server::chat([call("run_command", json!({ "command": command })), write, say("Done.")]);
    let running = server.run(&house, &["--no-check", "wait a while"]).start();
    wait_until("the command runs", || is_running(&sleep));
    house.write("notes.txt", "a person's, while the command ran\n");
    running.signal(Signal::KILL);
    running.gone();
    wait_until("the command is gone", || !is_running(&sleep));

    let resumed = resume(&house, &["--last"]).run().expect(4);
    resumed.says(&[
        "put back, also what a person may have changed",
        "more.txt, notes.txt",
        "`jm redo` gives it back",
    ]);
    let told = server.seen()[1].newest();
    assert!(told.contains("also what a person may have changed while it ran: more.txt, notes.txt"), "{told}");
    assert!(!house.tree().contains_key(std::path::Path::new("notes.txt")));
    // The session went on and changed files; what was put back is there all the same.
    house.jm(&["redo"]).run().expect(0).prints(&["added notes.txt", "added more.txt", "2 files done again"]);
    assert_eq!(house.read("notes.txt"), "a person's, while the command ran\n");
    assert_eq!(house.read("later.txt"), "later\n");
}

#[test]
fn a_session_that_had_ended_goes_on_with_a_message() {
    let house = House::with_greeter();
    let server = Server::chat([say("It greets."), say("In a shell."), say("You are welcome.")]);
    let first = server.run(&house, &["--json", "what does it do?"]).run().expect(4).report();
    let session = first.session.to_string();

    let second = resume(&house, &["--json", &session[..14], "and where?"]).run().expect(4).report();
    assert_eq!((second.text.as_str(), second.session.to_string()), ("In a shell.", session.clone()));
    let third = resume(&house, &["--last", "-", "--json"]).input("thanks").run().expect(4).report();
    assert_eq!(third.text, "You are welcome.");

    let asked = server.seen()[2].body["messages"].to_string();
    for words in ["what does it do?", "It greets.", "and where?", "In a shell.", "thanks"] {
        assert!(asked.contains(words), "«{words}» is not in\n{asked}");
    }
    assert_eq!(house.sessions().len(), 1);
    // From anywhere, without its being said where.
    let server = Server::chat([say("Here.")]);
    let url = server.url();
    let flags = ["--base-url", &url, "--wire", "chat", "--model", "tiny", "where are you?"];
    let all: Vec<&str> = [session.as_str()].iter().chain(&flags).copied().collect();
    resume(&house, &all).dir(house.at("home")).run().expect(4).prints(&["Here."]);
}

#[test]
fn a_message_goes_along_with_the_task_that_was_cut_off() {
    let house = House::with_greeter();
    let read: Step = call("read_file", json!({"path": "greet.sh"})).into();
    let server = Server::chat([read, Step::Stall, say("I see.").into(), say("And that too.").into()]);
    killed_at(&house, &server, 2, &["--no-check", "look around"]);
    let report = resume(&house, &["--last", "--json", "mind the tests"]).run().expect(4).report();
    let newest = |place: usize| server.seen()[place].newest();
    assert!((2..server.seen().len()).any(|place| newest(place).contains("mind the tests")));
    assert!(["I see.", "And that too."].contains(&report.text.as_str()), "{}", report.text);
    assert_eq!(house.sessions()[0]["status"], "unverified");
}

#[test]
fn a_task_that_was_cut_off_can_be_given_up() {
    let house = House::with_greeter();
    let read: Step = call("read_file", json!({"path": "greet.sh"})).into();
    let server = Server::chat([read, Step::Stall, say("Something else, then.").into()]);
    let session = killed_at(&house, &server, 2, &["look around"]);
    resume(&house, &["--close"]).run().expect(0).says(&["its task is closed", "MESSAGE"]);
    assert_eq!(server.seen().len(), 2, "nothing was asked");
    assert_eq!(house.sessions()[0]["status"], "interrupted");
    let again = resume(&house, &[&session]).run().expect(2);
    again.says(&["nothing to finish", "its last task ended (interrupted)", "MESSAGE"]);
    resume(&house, &["--last", "do something else"]).run().expect(4).prints(&["Something else, then."]);
    assert!(server.seen()[2].newest().contains("do something else"));
}

#[test]
fn what_is_given_up_and_what_follows_can_be_said_at_once() {
    let house = House::with_greeter();
    let server = Server::chat([Step::Stall, say("Hello.").into()]);
    killed_at(&house, &server, 1, &["look around"]);
    let ran = resume(&house, &["--last", "--close", "just say hello"]).run().expect(4);
    ran.prints(&["Hello."]);
    assert!(server.seen()[1].newest().contains("just say hello"));
}

#[test]
fn a_session_that_runs_is_left_alone() {
    let house = House::with_greeter();
    let server = Server::chat([Step::Stall]);
    let running = server.run(&house, &["look around"]).start();
    server.wait_for(1);
    let pid = house.sessions()[0]["holder"].as_str().unwrap().to_owned();
    assert!(pid.starts_with("jm run, process "), "{pid}");
    for command in [
        &["resume"][..],
        &["resume", "--last", "hello"],
        &["undo"],
        &["snapshot", "last", "here"],
        &["delete", "--yes", "last"],
    ] {
        let ran = house.jm(command).env("JM_API_KEY", KEY).run().expect(2);
        ran.says(&["is still running", &pid, "jm show --follow"]);
    }
    assert_eq!(server.seen().len(), 1);
    running.signal(Signal::INT);
    running.wait().expect(130);
    assert_eq!(house.sessions()[0]["holder"], json!(null), "it is given back");
}

#[test]
fn what_is_other_than_before_is_said() {
    let house = House::with_greeter();
    let server = Server::chat([Step::Stall, say("A plan.").into(), say("Here it is.").into()]);
    killed_at(&house, &server, 1, &["--mode", "edit", "look around"]);
    let url = server.url();
    let flags =
        ["--base-url", &url, "--wire", "chat", "--model", "other", "--mode", "plan", "--last", "go on"];
    let ran = resume(&house, &flags).run().expect(4);
    ran.says(&["other than before: model: custom/tiny → custom/other", "mode: edit → plan"]);
    assert_eq!(server.seen()[1].body["model"], "other");
    assert!(!server.seen()[1].tools().contains(&"write_file".to_owned()), "plan mode offers no writers");
}

#[test]
fn the_checks_that_were_asked_for_hold() {
    if !needs(&["make"]) {
        return;
    }
    // The flags of the run, those of the resumption, and how it ends. The project's own check would pass.
    for (flags, more, code) in [
        (&["--no-check"][..], &[][..], 4),
        (&["--check", "false"], &[], 3),
        (&["--check", "false"], &["--check", "true"], 0),
        (&[], &[], 0),
    ] {
        let house = House::with_greeter();
        let edit: Step = call("edit_file", polite_edit()).into();
        let server = Server::chat([edit, Step::Stall, say("Done.").into(), say("Still done.").into()]);
        let all: Vec<&str> = flags.iter().copied().chain(["make it polite"]).collect();
        killed_at(&house, &server, 2, &all);
        let all: Vec<&str> = more.iter().copied().chain(["--max-iterations", "1"]).collect();
        let ran = resume(&house, &all).run();
        assert_eq!(ran.code(), code, "{flags:?} {more:?}\n{}", ran.stderr);
    }
}

#[test]
fn what_can_not_be_resumed_is_said() {
    let house = House::with_greeter();
    resume(&house, &[]).run().expect(2).says(&["no session was run in this directory"]);
    let server = Server::chat([say("Hello.")]);
    server.run(&house, &["look around"]).run().expect(4);
    for (arguments, words) in [
        (&["zzz"][..], "no session begins with «zzz»"),
        (&["now add a test"], "jm resume --last"),
        (&["--last", "one", "two"], "--last stands for the session"),
        (&["--last", " "], "the message is empty"),
        (&[], "nothing to finish: its last task ended (unverified)"),
        (&["--close"], "nothing to finish"),
        (&["--last", "-"], "the message is empty"),
    ] {
        resume(&house, arguments).run().expect(2).says(&[words]);
    }
    assert_eq!(server.seen().len(), 1);
    std::fs::rename(house.project(), house.at("moved")).unwrap();
    let session = house.jm(&["sessions", "--all", "--json"]).dir(house.at("home")).run().expect(0);
    let session: serde_json::Value = serde_json::from_str(session.stdout.trim()).unwrap();
    let id = session["id"].as_str().unwrap();
    let ran = resume(&house, &[id, "go on"]).dir(house.at("home")).run().expect(2);
    ran.says(&["cannot work in", "-C"]);
}

#[test]
fn control_c_leaves_a_message_that_waits_for_the_next_time() {
    let house = House::with_greeter();
    let server = Server::chat([Step::Stall, Step::Stall, say("Later it is.").into()]);
    killed_at(&house, &server, 1, &["look around"]);
    let running = resume(&house, &["--last", "one more thing"]).start();
    server.wait_for(2);
    running.signal(Signal::INT);
    running.wait().expect(130);
    assert_eq!(house.sessions()[0]["status"], "interrupted");
    // It was sent while the task was asking the model already, or just before that.
    let state = house.state_of(house.sessions()[0]["id"].as_str().unwrap());
    let ran = resume(&house, &[]).run();
    if state.queue.is_empty() {
        ran.expect(2).says(&["nothing to finish"]);
    } else {
        ran.expect(4).prints(&["Later it is."]);
        assert!(server.seen()[2].newest().contains("one more thing"));
    }
}
