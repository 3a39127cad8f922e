//! The messages of a conversation: typed, pasted, recalled, queued.

use serde_json::json;

use super::conversation::chat;
use crate::support::{House, KEY, Server, Step, call, needs, say};

#[test]
fn words_that_are_typed_while_a_message_comes_back_stay() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([
        Step::Begin(say("A reply that never ends, whatever is waited for.")),
        say("No.").into(),
    ]);
    let mut person = chat(&server, &house, &["say something"]);
    server.wait_for(1);
    person.sees("A reply");
    person.types("a second thing\r");
    person.sees("queued (Up takes it back): a second thing");
    person.types("\x1b[Awith more words");
    person.sees("› a second thing");
    person.types("\r");
    person.sees("queued (Up takes it back): a second thing");
    person.types("\x1b");
    person.sees("interrupted");
    person.sees("with more words");
    person.types("\x03\x04");
    person.ends();
}

#[test]
fn what_is_pasted_into_a_page_is_no_part_of_the_message() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say("Never asked.")]);
    let mut person = chat(&server, &house, &[]);
    person.sees("say what to do");
    person.types("?");
    person.sees("q closes");
    person.types("\x1b[200~lost words\x1b[201~/");
    person.types("\x1b[200~/pin TEXT\n\x1b[201~");
    person.sees("//pin TEXT");
    // The conversation ends because the message is empty.
    person.types("\rq\x04");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_message_of_an_earlier_session_comes_back_whole() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say("Hello."), say("Hello again.")]);
    let long = format!("make it {}polite", "very ".repeat(40));
    let message = format!("{long}\n\n- in German\n- in 漢字");
    server.run(&house, &["--no-check", &message]).run();
    let mut person = chat(&server, &house, &[]);
    person.sees("say what to do");
    person.types("\x1b[A");
    person.sees("in German");
    person.types("\r");
    person.sees("Hello again.");
    person.sees("say what to do");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(server.seen()[1].newest().contains(&message));
}

#[test]
fn a_search_in_the_history_that_is_given_up_leaves_the_text() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([say("Hello."), say("I see.")]);
    let mut person = chat(&server, &house, &["an earlier message"]);
    person.sees("Hello.");
    person.sees("say what to do");
    person.types("a draft\x12earlier");
    person.sees("search the history: earlier");
    person.types("\x03");
    person.sees("› a draft");
    person.types("\r");
    person.sees("I see.");
    person.sees("say what to do");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(server.seen()[1].newest().contains("a draft"));
}

#[test]
fn the_reason_of_a_refusal_may_be_pasted() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("run_command", json!({"command": "touch -f one"})), say("I see.")]);
    let mut person = chat(&server, &house, &["--no-check", "make a file"]);
    person.sees("touch -f one");
    person.sees(" details");
    person.types("n");
    person.sees("Enter sends the no");
    person.types("\x1b[200~use mktemp\ninstead\x1b[201~");
    person.sees("no: use mktemp instead");
    person.types("\r");
    person.sees("I see.");
    person.sees("say what to do");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(server.seen()[1].newest().contains("denied by the user: use mktemp instead"));
}

#[test]
fn a_message_with_a_secret_leaves_the_queue() {
    let house = House::with_greeter();
    let server = Server::chat([say("I have it."), say("And that too.")]);
    let jm = server.command(&house, &["chat"], &[]);
    let ran = jm.input(format!("use the key {KEY} here\nand then?\n")).run();
    assert!(ran.status.success(), "{}", ran.stderr);
    let (first, second) = ran.stdout.split_once("I have it.").unwrap();
    assert!(!first.contains(KEY) && second.contains("And that too."), "{}", ran.stdout);
}

#[test]
fn what_is_typed_as_a_page_is_left_is_no_answer() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("run_command", json!({"command": "touch -f one"})), say("I see.")]);
    let mut person = chat(&server, &house, &["--no-check", "make a file"]);
    person.sees("touch -f one");
    person.sees(" details");
    person.types("d");
    person.sees("q closes");
    person.types("qy");
    person.sees("› y");
    person.types("\x15");
    person.sees(" details");
    person.types("n\r");
    person.sees("I see.");
    person.sees("say what to do");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(!house.project().join("one").exists());
}
