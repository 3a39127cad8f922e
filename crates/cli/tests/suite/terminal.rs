//! A person at the terminal: what is asked, and what becomes of the answer.

use serde_json::json;

use crate::support::{House, Person, Reply, Server, call, needs, polite_edit, say};

fn touch(name: &str) -> Reply {
    call("run_command", json!({"command": format!("touch -f {name}")}))
}

/// `jm run` at a terminal, in the mode that is built in there.
fn at_the_terminal(server: &Server, house: &House, flags: &[&str]) -> Person {
    Person::start(server.run(house, flags).env("NO_COLOR", "1").command())
}

#[test]
fn commands_are_asked_for_and_edits_are_not() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("edit_file", polite_edit()), touch("made"), say("Done.")]);
    let mut person = at_the_terminal(&server, &house, &["--no-check", "make a file"]);
    person.sees("mode edit");
    person.sees("May I run this?");
    assert!(house.read("greet.sh").contains("Hello"), "the edit needed nobody");
    assert!(!house.project().join("made").exists(), "not before the answer");
    person.sees("say what to do instead:");
    person.types("y\n");
    assert_eq!(person.ends().0, 4);
    assert!(house.project().join("made").exists());
}

#[test]
fn an_answer_reaches_the_model() {
    if !needs(&["setsid"]) {
        return;
    }
    // What is typed, whether the command runs, and what the model is told.
    for (answer, runs, told) in [
        ("y\n", true, "exit code 0"),
        ("yes, and keep it small\n", true, "The user allowed this and says: and keep it small"),
        ("always, it is quick\n", true, "The user allowed this and says: it is quick"),
        ("n\n", false, "denied by the user"),
        ("no: not now\n", false, "denied by the user: not now"),
        ("\nno\n", false, "denied by the user"),
        ("write it with write_file\n", false, "write it with write_file"),
        ("a file is no use\n", false, "a file is no use"),
    ] {
        let house = House::with_greeter();
        let server = Server::chat([touch("made"), say("I see.")]);
        let mut person = at_the_terminal(&server, &house, &["make a file"]);
        person.sees("say what to do instead:");
        person.types(answer);
        person.ends();
        assert_eq!(house.project().join("made").exists(), runs, "{answer:?}");
        let newest = server.seen()[1].newest();
        assert!(newest.contains(told), "{answer:?}: {newest}");
    }
}

#[test]
fn several_questions_come_one_after_the_other() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let [one, two, three] =
        ["one", "two", "three"].map(|name| json!({"command": format!("touch -f {name}")}));
    let calls = call("run_command", one.clone())
        .and("run_command", two)
        .and("run_command", three)
        .and("run_command", one);
    let server = Server::chat([calls, say("Done.")]);
    let mut person = at_the_terminal(&server, &house, &["--no-check", "make files"]);
    person.sees("touch -f one");
    person.sees("would allow, in this session: run_command `touch -f one`");
    person.sees("say what to do instead:");
    person.types("a\n");
    person.sees("touch -f two");
    person.sees("say what to do instead:");
    person.types("n\n");
    person.sees("touch -f three");
    person.sees("say what to do instead:");
    person.types("y\n");
    let (code, screen) = person.ends();
    assert_eq!(code, 4);
    assert_eq!(screen.matches("May I run this?").count(), 3, "the rule answers the fourth\n{screen}");
    let made = ["one", "two", "three"].map(|name| house.project().join(name).exists());
    assert_eq!(made, [true, false, true]);
}

#[test]
fn what_reaches_beyond_the_project_is_never_allowed_for_good() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("run_command", json!({"command": "git push"})), say("Then not.")]);
    let mut person = at_the_terminal(&server, &house, &["publish it"]);
    person.sees("[y]es  [n]o  or say what to do instead:");
    person.types("a\n");
    person.sees("asked about every time");
    person.sees("say what to do instead:");
    person.types("n\n");
    let (_, screen) = person.ends();
    assert!(!screen.contains("[a]lways"), "{screen}");
}

#[test]
fn a_question_that_nobody_answers_counts_as_denied_where_that_is_configured() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    house.configure("[session]\napproval_timeout = \"1ms\"\n");
    let server = Server::chat([touch("made"), say("I see.")]);
    let (_, screen) = at_the_terminal(&server, &house, &["make a file"]).ends();
    assert!(screen.contains("denied by timeout"), "{screen}");
    assert!(
        server.seen()[1].newest().contains("nobody answered within 1 ms"),
        "{}",
        server.seen()[1].newest()
    );
    assert!(!house.project().join("made").exists());
}

#[test]
fn always_means_this_command_in_this_session() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([touch("one"), touch("one"), touch("two"), say("Done.")]);
    let mut person = at_the_terminal(&server, &house, &["--no-check", "make files"]);
    person.sees("say what to do instead:");
    person.types("a\n");
    person.sees("touch -f two");
    person.sees("say what to do instead:");
    person.types("n\n");
    let (_, screen) = person.ends();
    assert_eq!(screen.matches("May I run this?").count(), 2, "{screen}");
    assert!(!house.project().join("two").exists());
}

#[test]
fn control_c_is_heard_while_a_question_is_open() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([touch("made"), say("Done.")]);
    let mut person = at_the_terminal(&server, &house, &["make a file"]);
    person.sees("say what to do instead:");
    person.types("\x03");
    assert_eq!(person.ends().0, 130);
    assert!(!house.project().join("made").exists());
    assert_eq!(house.sessions()[0]["status"], "interrupted");
}

#[test]
fn a_terminal_that_machines_read_asks_nothing() {
    if !needs(&["setsid"]) {
        return;
    }
    for flag in ["--json", "--stream-json", "--quiet"] {
        let house = House::with_greeter();
        let server = Server::chat([touch("made"), say("I see.")]);
        let (code, screen) =
            at_the_terminal(&server, &house, &[flag, "--mode", "edit", "make a file"]).ends();
        assert_eq!(code, 6, "{flag}: {screen}");
        assert!(!screen.contains("May I run this?"), "{flag}: {screen}");
    }
}

#[test]
fn trust_is_asked_for_once_and_again_when_the_file_changes() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    house.write(".journeyman/config.toml", "checks = [\"true\"]\n");
    let server = Server::chat((0..3).map(|_| say("Done.")));
    let run = || at_the_terminal(&server, &house, &["look around"]);

    let mut person = run();
    person.sees("checks");
    person.sees("trust it?");
    person.types("\n");
    assert_eq!(person.ends().0, 2, "no answer is a no");
    assert_eq!(server.seen().len(), 0);

    let mut person = run();
    person.sees("trust it?");
    person.types("y\n");
    assert_eq!(person.ends().0, 4);

    let (code, screen) = run().ends();
    assert_eq!(code, 4);
    assert!(!screen.contains("trust it?"), "{screen}");
    // What was trusted at the terminal holds without one.
    server.run(&house, &["look around"]).run().expect(4);

    house.write(".journeyman/config.toml", "checks = [\"touch pwned\"]\n");
    server.run(&house, &["look around"]).run().expect(2).says(&["--trust-project"]);
    let mut person = run();
    person.sees("trust it?");
    person.types("n\n");
    assert_eq!(person.ends().0, 2);
}
