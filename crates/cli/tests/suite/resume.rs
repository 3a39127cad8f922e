//! `jm resume`: what was cut off is finished, what had ended goes on.

use journeyman_protocol::{CallState, CopyState, Event, Mode, RunOutcome};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    House, Jm, KEY, POLITE, Seen, Server, Step, Wire, call, is_running, needs, needs_sandbox, polite_edit,
    say, wait_until,
};

/// `jm resume` without any word about the model: the session knows.
fn resume(house: &House, arguments: &[&str]) -> Jm {
    let all: Vec<&str> = ["resume"].iter().chain(arguments).copied().collect();
    house.jm(&all).env("JM_API_KEY", KEY)
}

/// Runs until the model is asked for the `count`-th time, and kills it there. Gives the session's
/// id.
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
    for words in ["cut off", "None of its changes to tracked files are in place", "more.txt", "greet.sh"] {
        assert!(told.contains(words), "`{words}` is not in\n{told}");
    }
    assert!(!told.contains("safe to do it again"), "{told}");
    assert_eq!(house.tree(), before);
    let events = ran.events();
    assert_eq!(events[0].event.kind(), "agent_resumed", "{:?}", events[0]);
    let interrupted = events.iter().find_map(|envelope| match &envelope.event {
        Event::AgentResumed { interrupted, .. } => Some(interrupted.clone()),
        _ => None,
    });
    let interrupted = interrupted.unwrap();
    assert_eq!(interrupted.len(), 1);
    assert_eq!(interrupted[0].state, CallState::Interrupted);
    let Event::Done { report } = &events.last().unwrap().event else { panic!("no report") };
    assert_eq!(report.outcome, RunOutcome::Unverified);
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
        assert!(asked.contains(words), "`{words}` is not in\n{asked}");
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
    assert_eq!(house.sessions()[0]["status"], "no_changes");
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
    let ran = resume(&house, &flags).run().expect(0);
    ran.says(&["other than before: model: custom/tiny → custom/other", "mode: edit → plan"]);
    assert_eq!(server.seen()[1].body["model"], "other");
    assert!(!server.seen()[1].tools().contains(&"write_file".to_owned()), "plan mode offers no writers");
}

#[test]
fn the_checks_that_were_asked_for_hold() {
    if !needs(&["make"]) {
        return;
    }
    // The flags of the run, those of the resumption, and how it ends. The project's own check would
    // pass.
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
        (&["zzz"][..], "no session begins with `zzz`"),
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

/// It is killed before the model is asked for the first time, while a hook keeps it from that.
#[test]
fn a_session_that_is_killed_in_its_first_moments_knows_how_it_was_to_run() {
    let sleep = format!("sleep 922.{}", std::process::id());
    let house = House::with_greeter();
    house.configure(&format!(
        "[[hooks.SessionStart]]\nhooks = [{{ type = \"command\", command = \"{sleep}\" }}]\n"
    ));
    let plan = json!({ "plan": {
        "strategy": "Say it politely.",
        "steps": [{ "what": "Change the greeting.", "files": ["greet.sh"] }],
        "checks": [],
    } });
    let server = Server::chat([call("edit_file", polite_edit()), call("complete_task", plan)]);
    let before = house.tree();
    let flags = ["--mode", "plan", "--no-check", "--isolate", "--no-land", "look around"];
    let running = server.run(&house, &flags).start();
    wait_until("the hook runs", || is_running(&sleep));
    running.signal(Signal::KILL);
    running.gone();
    assert_eq!(server.seen().len(), 0);
    let listed = house.sessions();
    assert_eq!((listed.len(), &listed[0]["status"]), (1, &json!("cut_off")));
    let setting = house.state_of(listed[0]["id"].as_str().unwrap()).setting.unwrap();
    assert_eq!((setting.model.as_str(), setting.mode), ("custom/tiny", Mode::Plan));
    assert_eq!((setting.asked.isolate, setting.asked.keep), (Some(true), true));

    house.configure("");
    resume(&house, &[]).run().expect(11);
    assert!(!server.seen()[0].tools().contains(&"write_file".to_owned()), "plan mode offers no writers");
    assert_eq!(house.tree(), before, "a plan changes nothing");
}

/// A run in a copy that is killed when its edit is made; gives its session.
fn killed_in_its_copy(house: &House, server: &Server, flags: &[&str]) -> String {
    let all = [&["--isolate", "--check", "true"], flags, &["be polite"]].concat();
    killed_at(house, server, 2, &all)
}

fn edits_and_stalls() -> Server {
    let edit: Step = call("edit_file", polite_edit()).into();
    Server::chat([edit, Step::Stall, say("Done.").into(), say("Still done.").into(), say("As ever.").into()])
}

#[test]
fn work_that_was_to_stay_in_its_copy_stays_there_until_a_flag_says_otherwise() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let server = edits_and_stalls();
    let session = killed_in_its_copy(&house, &server, &["--no-land"]);
    let report = resume(&house, &["--json"]).run().expect(0).report();
    assert_eq!((report.outcome, report.copy.unwrap().state), (RunOutcome::Verified, CopyState::Kept));
    assert_eq!(house.tree(), before, "it was not to be landed");
    // It has ended, and its work waits.
    let words = ["nothing to finish", &format!("jm land {session}"), &format!("jm discard {session}")];
    resume(&house, &[]).run().expect(2).says(&words);
    for flags in [&["--commit"][..], &["--in-place"]] {
        let all = [&["--last", "go on"], flags].concat();
        resume(&house, &all).run().expect(2).says(&["was to stay in its copy", "--land"]);
    }
    let again = resume(&house, &["--last", "go on", "--json"]).run().expect(0).report();
    assert_eq!(again.copy.unwrap().state, CopyState::Kept, "what was asked first still holds");
    assert_eq!(house.tree(), before);
    let ran = resume(&house, &["--last", "go on", "--land"]).run().expect(0);
    ran.says(&["its work: stays in its copy → is landed"]).prints(&["landed"]);
    assert_eq!(house.read("greet.sh"), POLITE);
}

#[test]
fn what_a_run_was_to_become_it_becomes_also_when_it_was_cut_off() {
    if !needs_sandbox() || !needs(&["git"]) {
        return;
    }
    let house = House::with_repository();
    let before = house.tree();
    let server = edits_and_stalls();
    killed_in_its_copy(&house, &server, &["--branch", "polite"]);
    let as_a_person = |jm: Jm| {
        let jm = jm.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let jm = jm.env("GIT_AUTHOR_NAME", "Jo").env("GIT_AUTHOR_EMAIL", "jo@example.org");
        jm.env("GIT_COMMITTER_NAME", "Jo").env("GIT_COMMITTER_EMAIL", "jo@example.org")
    };
    as_a_person(resume(&house, &[])).run().expect(0).prints(&["landed on branch polite"]);
    assert_eq!(house.tree(), before, "it goes onto its branch and nowhere else");
    assert_eq!(house.git(&["show", "polite:greet.sh"]), POLITE);

    // In the project itself, beside what the user had changed before.
    house.write("mine.txt", "mine\n");
    let server = edits_and_stalls();
    killed_at(&house, &server, 2, &["--commit", "--check", "true", "be polite"]);
    assert_eq!(house.read("greet.sh"), POLITE);
    as_a_person(resume(&house, &[])).run().expect(0).prints(&["committed"]);
    assert_eq!(house.git(&["show", "HEAD:greet.sh"]), POLITE);
    assert_eq!(house.git(&["status", "--porcelain"]), "?? mine.txt\n");
}

/// A run of two candidates that is killed when both have made their edit.
fn killed_candidates(house: &House, flags: &[&str]) -> (Server, String, Vec<String>) {
    let server = Server::answering(|nth, seen: &Seen| -> Step {
        match seen.body["messages"].to_string().contains("\"assistant\"") {
            false => call("edit_file", polite_edit()).into(),
            true if nth <= 4 => Step::Stall,
            true => say("Done.").into(),
        }
    });
    let all = [&["--candidates", "2", "--check", "true"], flags, &["be polite"]].concat();
    let running = server.run(house, &all).start();
    server.wait_for(4);
    running.signal(Signal::KILL);
    running.gone();
    let sessions = house.sessions();
    let ids: Vec<String> = sessions.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    let (candidates, parents): (Vec<String>, Vec<String>) =
        ids.into_iter().partition(|id| house.state_of(id).candidate.is_some());
    assert_eq!((candidates.len(), parents.len()), (2, 1));
    (server, parents[0].clone(), candidates)
}

#[test]
fn a_candidate_is_finished_as_one_and_its_run_is_not_done_once_more() {
    if !needs_sandbox() {
        return;
    }
    for flags in [&[][..], &["--land"]] {
        let house = House::with_greeter();
        let before = house.tree();
        let (server, parent, candidates) = killed_candidates(&house, flags);
        let [one, two] = [candidates[0].as_str(), candidates[1].as_str()];
        let words = ["was given to candidates", one, two, "jm land", "jm discard --all"];
        for which in [&[][..], &[parent.as_str()], &["--last", "go on"], &[parent.as_str(), "go on"]] {
            resume(&house, which).run().expect(2).says(&words);
        }
        assert_eq!(server.seen().len(), 4, "nobody was asked");
        for candidate in &candidates {
            let ran = resume(&house, &[candidate]).run().expect(0);
            let commands = [format!("jm land {candidate}"), format!("jm discard {candidate}")];
            ran.prints(&["kept in its copy", &commands[0], &commands[1]]);
            ran.says(&[&format!("jm candidates {parent}")]);
        }
        assert_eq!(house.tree(), before, "nobody took one");
        let listed = house.jm(&["candidates", &parent]).run().expect(0);
        listed.prints(&["[1]", "[2]", "verified", "kept"]);
        resume(&house, &[&candidates[0], "go on", "--land"]).run().expect(0).prints(&["landed"]);
        assert_eq!(house.read("greet.sh"), POLITE);
        resume(&house, &[&parent, "--close"]).run().expect(0);
        assert_eq!(house.sessions().iter().filter(|one| one["status"] == "cut_off").count(), 0);
    }
}

#[test]
fn what_a_command_did_to_ignored_files_is_told_when_it_is_cut_off() {
    if !needs_sandbox() || !needs(&["git"]) {
        return;
    }
    let sleep = format!("sleep 923.{}", std::process::id());
    let house = House::with_greeter();
    house.git(&["init", "-q"]);
    house.write(".gitignore", "ledger\nold\n");
    house.write("old", "untouched\n");
    let command = format!("echo paid >> ledger; echo more > more.txt; {sleep}");
    let server = Server::chat([call("run_command", json!({ "command": command })), say("I'll look first.")]);
    let running = server.run(&house, &["pay"]).start();
    wait_until("the command runs", || is_running(&sleep));
    running.signal(Signal::KILL);
    running.gone();
    wait_until("the command is gone", || !is_running(&sleep));
    resume(&house, &[]).run().expect(4);
    let told = server.seen()[1].newest();
    assert!(
        told.contains("Ignored files are not tracked: changed while it ran and left so: ledger."),
        "{told}"
    );
    assert!(!told.contains("safe to do it again"), "{told}");
    assert_eq!(house.read("ledger"), "paid\n");
}

#[test]
fn a_run_whose_state_is_taken_away_stops_and_says_what_stays() {
    let house = House::with_greeter();
    let (state, elsewhere) = (house.at("state"), house.at("taken"));
    let server = Server::answering(move |nth, _: &Seen| -> Step {
        if nth == 2 {
            std::fs::rename(&state, &elsewhere).unwrap();
        }
        match nth {
            1 => call("edit_file", polite_edit()).into(),
            2 => call("write_file", json!({ "path": "more.txt", "content": "more\n" })).into(),
            _ => say("Done.").into(),
        }
    });
    let ran = server.run(&house, &["--no-check", "be polite"]).run().expect(1);
    ran.says(&["was removed or replaced while it was in use", "the project's files stay as they are now"]);
    for advice in ["jm resume", "jm undo", "there is no checkpoint"] {
        assert!(!ran.stderr.contains(advice) && !ran.stdout.contains(advice), "{}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(house.read("greet.sh"), POLITE, "what it had done stays");
    assert!(!house.project().join("more.txt").exists());
    assert_eq!(server.seen().len(), 2, "nobody was asked any more");
}

#[test]
fn a_model_of_a_provider_is_not_asked_at_an_address_that_was_configured_since() {
    let house = House::with_greeter();
    let (server, other) = (Server::chat([say("One."), say("Two.")]), Server::chat([say("No.")]));
    let provider = format!(
        "[providers.work]\nwire = \"chat\"\nbase_url = \"{}\"\nkey_env = [\"WORK_KEY\"]\n",
        server.url()
    );
    house.configure(&format!("model = \"work/tiny\"\n{provider}"));
    house.jm(&["run", "look around"]).env("WORK_KEY", KEY).run().expect(4);
    let elsewhere = format!("model = \"m\"\nwire = \"chat\"\nbase_url = \"{}\"\n{provider}", other.url());
    house.configure(&elsewhere);
    house.jm(&["resume", "--last", "go on"]).env("WORK_KEY", KEY).run().expect(4);
    assert_eq!((server.seen().len(), other.seen().len()), (2, 0));
}
