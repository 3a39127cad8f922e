//! The conversation beside other processes that work on its sessions.

use serde_json::json;

use super::conversation::chat;
use crate::support::{House, Output, Person, Server, call, needs, needs_sandbox, polite_edit, say};

#[test]
fn a_session_of_another_process_is_watched_and_then_gone_on_with() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let question = call("run_command", json!({"command": "touch -f one"}));
    let server = Server::chat([question, say("It is done."), say("And here I am.")]);
    let mut first = chat(&server, &house, &["--no-check", "make a file"]);
    first.sees("touch -f one");
    first.sees(" details");
    let jm = server.command(&house, &["resume"], &[]).env("TERM", "xterm-256color");
    let mut second = Person::start_at(jm.command(), 80, Output::Shown);
    second.sees("make a file");
    second.types("\r");
    second.sees("another process works on this session");
    second.types("is it mine?\r");
    second.sees("/new begins one of your own");
    first.types("y");
    first.sees("It is done.");
    second.sees("It is done.");
    first.sees("say what to do");
    first.types("\x04");
    first.ends();
    second.sees("the other process is done");
    second.types("\r");
    second.sees("And here I am.");
    second.sees("say what to do");
    second.types("\x04");
    assert_eq!(second.ends().0, 0);
    assert!(server.seen()[2].newest().contains("is it mine?"));
    assert!(server.seen()[2].body.to_string().contains("It is done."), "it is the same session");
}

#[test]
fn work_in_the_copy_of_a_watched_session_is_landed_once_the_other_process_is_done() {
    if !needs(&["setsid"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let question = call("run_command", json!({"command": "touch -f one"}));
    let server = Server::chat([call("edit_file", polite_edit()), question, say("It is done.")]);
    let mut first = chat(&server, &house, &["--isolate", "--no-check", "make it polite"]);
    first.sees("touch -f one");
    first.sees(" details");
    let watch = || {
        let jm = server.command(&house, &["resume"], &[]).env("TERM", "xterm-256color");
        let mut person = Person::start_at(jm.command(), 80, Output::Shown);
        person.sees("make it polite");
        person.types("\r");
        person.sees("another process works on this session");
        person.sees("/new begins one of your own");
        person
    };
    let (mut second, mut third) = (watch(), watch());
    for command in ["/land unverified", "/diff", "/undo", "/checkpoints"] {
        second.types(command);
        second.sees(command);
        second.types("\r");
        second.sees("begins one of your own");
    }
    third.types("/new\r");
    third.sees("a new session");
    third.types("\x04");
    assert_eq!(third.ends().0, 0);
    first.types("n\r");
    first.sees("It is done.");
    first.sees("say what to do");
    first.types("\x04");
    first.ends();
    second.sees("the other process is done");
    second.types("/land unverified\r");
    second.sees("landed: 1 file");
    second.types("\x04");
    let (code, shown) = second.ends();
    assert_eq!(code, 0);
    for wrong in
        ["no copy to land", "no session is open", "nothing was said", "no checkpoints", "Esc stops it first"]
    {
        assert!(!shown.contains(wrong), "{wrong}");
    }
    assert!(house.read("greet.sh").contains("Hello"));
}

#[test]
fn a_session_whose_process_was_killed_is_no_longer_at_work() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("run_command", json!({"command": "touch -f one"}))]);
    let mut first = chat(&server, &house, &["--no-check", "make a file"]);
    first.sees("touch -f one");
    first.sees(" details");
    let jm = server.command(&house, &["resume"], &[]).env("TERM", "xterm-256color");
    let mut second = Person::start_at(jm.command(), 80, Output::Shown);
    second.sees("make a file");
    second.types("\r");
    second.sees("another process works on this session");
    first.kills();
    first.ends();
    second.sees("the other process is done");
    second.types("/resume\r");
    second.sees("Go on with a session");
    second.types("\x03\x04");
    assert_eq!(second.ends().0, 0);
}

#[test]
fn a_session_that_goes_on_is_held_against_other_processes() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say("The first answer.")]);
    server.run(&house, &["--no-check", "the first question"]).run();
    let resume = || {
        let jm = server.command(&house, &["resume"], &[]).env("TERM", "xterm-256color");
        let mut person = Person::start_at(jm.command(), 80, Output::Shown);
        person.sees("the first question");
        person.types("\r");
        person.sees("The first answer.");
        person
    };
    let mut first = resume();
    first.sees("say what to do");
    let mut second = resume();
    second.sees("another process works on this session");
    first.types("\x04");
    first.ends();
    second.sees("the other process is done");
    second.types("\x04");
    assert_eq!(second.ends().0, 0);
}
