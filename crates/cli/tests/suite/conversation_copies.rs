//! The conversation of a session that works in a copy: reviewed, landed, dropped, gone back in.

use serde_json::json;

use super::conversation::chat;
use crate::support::{House, Output, Person, Reply, Server, call, needs, needs_sandbox, polite_edit, say};

#[test]
fn work_in_a_copy_is_landed_in_the_review_and_the_session_goes_on() {
    if !needs(&["setsid", "make"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let before = house.read("greet.sh");
    let server = Server::chat([
        call("edit_file", polite_edit()),
        say("The greeting is polite now."),
        say("There is nothing left to do."),
    ]);
    let mut person = chat(&server, &house, &["--isolate", "make it polite"]);
    person.sees("this is in a copy");
    assert_eq!(house.read("greet.sh"), before);
    person.types("/diff\r");
    person.sees("verified in its copy");
    person.sees("l lands");
    person.types("l");
    person.sees("landed: 1 file");
    assert!(house.read("greet.sh").contains("Hello"));
    person.types("is that all?\r");
    person.sees("There is nothing left to do.");
    person.sees("say what to do");
    person.types("/undo\r");
    person.sees("taken back");
    assert_eq!(house.read("greet.sh"), before);
    person.types("\x04");
    let (code, bytes) = person.ends();
    assert_eq!(code, 0, "{bytes}");
    assert_eq!(house.sessions()[0]["copy"], json!(null), "the second copy had nothing in it\n{bytes}");
}

#[test]
fn unverified_work_in_a_copy_takes_a_second_key_to_land_or_to_drop() {
    if !needs(&["setsid"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let before = house.read("greet.sh");
    let server = Server::chat([call("edit_file", polite_edit()), say("The greeting is polite now.")]);
    let mut person = chat(&server, &house, &["--isolate", "--no-check", "make it polite"]);
    person.sees("this is in a copy");
    person.types("/diff\r");
    person.sees("not verified as it is");
    person.types("l");
    person.sees("y lands it all the same");
    person.types("j");
    person.sees("nothing was decided");
    person.types("d");
    person.sees("y drops 1 changed file");
    person.types("y");
    person.sees("dropped: 1 changed file");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert_eq!(house.read("greet.sh"), before);
    assert_eq!(house.sessions()[0]["copy"], json!(null));
}

#[test]
fn a_hunk_taken_back_in_a_copy_makes_it_unverified() {
    if !needs(&["setsid", "make"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let create = call("write_file", json!({"path": "notes.txt", "content": "polite\n"}));
    let server = Server::chat([call("edit_file", polite_edit()), create, say("Polite, with notes.")]);
    let mut person = chat(&server, &house, &["--isolate", "make it polite"]);
    person.sees("this is in a copy");
    person.types("/diff\r");
    person.sees("2 files, 2 hunks");
    person.sees("l lands");
    person.types("\tx");
    person.sees("taken back;");
    person.types("l");
    person.sees("y lands it all the same");
    person.types("y");
    person.sees("landed: 1 file");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(house.read("greet.sh").contains("Hello"));
    assert!(!house.project().join("notes.txt").exists());
}

#[test]
fn the_files_of_a_copy_go_back_to_an_earlier_message() {
    if !needs(&["setsid"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let server = serve_two_tasks([]);
    let mut person = chat_of_two_tasks(&server, &house);
    person.types("/back\r");
    person.sees("conversation, in a new copy");
    person.types("\t\t\r");
    person.sees("taken back: 1 file");
    person.types("/land unverified\r");
    person.sees("landed: 1 file");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(house.read("greet.sh").contains("Hello"), "it was there at that message");
    assert!(!house.project().join("notes.txt").exists());
}

#[test]
fn a_conflict_is_said_in_the_review_and_settled_there() {
    if !needs(&["setsid", "make"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("edit_file", polite_edit()), say("The greeting is polite now.")]);
    let mut person = chat(&server, &house, &["--isolate", "make it polite"]);
    person.sees("this is in a copy");
    let mine = house.read("greet.sh").replace("hello", "good day");
    assert_ne!(mine, house.read("greet.sh"));
    house.write("greet.sh", &mine);
    person.types("/diff\r");
    person.sees("keeps it from being landed: greet.sh");
    person.types("l");
    person.sees("t takes the copy's");
    assert_eq!(house.read("greet.sh"), mine);
    person.types("t");
    person.sees("landed: 1 file");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(house.read("greet.sh").contains("Hello"));
}

#[test]
fn work_that_stays_in_its_copy_is_named_with_what_takes_it() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let before = house.read("greet.sh");
    let server = Server::chat([call("edit_file", polite_edit()), say("The greeting is polite now.")]);
    let jm = server.command(&house, &["chat"], &["--isolate", "--no-check"]);
    let ran = jm.input("make it polite\n/diff\n/land\n/land nowhere\n/discard\n").run();
    ran.prints(&[
        "this is in a copy",
        "not verified as it is",
        "echo \"Hello, $1!\"",
        "not landed: nothing verified it",
        "/land unverified lands it all the same",
        "/land takes nothing, or one of unverified, markers, yours, theirs",
        "/discard all drops every change",
    ]);
    let id = house.sessions()[0]["id"].as_str().unwrap().to_owned();
    ran.says(&[&format!("jm land {id}"), &format!("jm discard {id}")]);
    assert_eq!(house.read("greet.sh"), before);
    house.jm(&["land", "--unverified"]).run().expect(0);
    assert!(house.read("greet.sh").contains("Hello"));
}

#[test]
fn work_that_another_process_adds_is_neither_landed_nor_dropped_unseen() {
    if !needs(&["setsid"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let before = house.read("greet.sh");
    let create = call("write_file", json!({"path": "notes.txt", "content": "polite\n"}));
    let server = Server::chat([
        call("edit_file", polite_edit()),
        say("The greeting is polite now."),
        create,
        say("There are notes."),
    ]);
    let mut person = chat(&server, &house, &["--isolate", "--no-check", "make it polite"]);
    person.sees("this is in a copy");
    // The session is closed for the review, and stays so until the next message.
    person.types("/diff\r");
    person.sees("1 file, 1 hunk");
    // Pasted, so that it is drawn as one.
    person.types("q\x1b[200~a draft\x1b[201~");
    person.sees("a draft");
    person.types("\x15");
    let id = house.sessions()[0]["id"].as_str().unwrap().to_owned();
    server.command(&house, &["resume", &id, "write notes"], &[]).run();
    for command in ["/land unverified\r", "/discard all\r"] {
        person.types(command);
        person.sees("has gone on in another process meanwhile");
    }
    assert_eq!(house.read("greet.sh"), before);
    assert!(!house.project().join("notes.txt").exists());
    person.types("/diff\r");
    person.sees("2 files, 2 hunks");
    person.types("ly");
    person.sees("landed: 2 files");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(house.project().join("notes.txt").exists());
}

#[test]
fn a_message_for_a_session_that_another_process_has_taken_comes_back() {
    if !needs(&["setsid"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([
        call("edit_file", polite_edit()),
        say("The greeting is polite now."),
        call("run_command", json!({"command": "touch -f one"})),
        say("There is a file."),
    ]);
    let mut first = chat(&server, &house, &["--isolate", "--no-check", "make it polite"]);
    first.sees("this is in a copy");
    // The session is closed for the review, and stays so until the next message.
    first.types("/diff\r");
    first.sees("1 file, 1 hunk");
    // Pasted, so that it is drawn as one.
    first.types("q\x1b[200~a draft\x1b[201~");
    first.sees("a draft");
    first.types("\x15");
    let jm = server.command(&house, &["resume"], &[]).env("TERM", "xterm-256color");
    let mut second = Person::start_at(jm.command(), 80, Output::Shown);
    second.sees("make it polite");
    second.types("\r");
    second.sees("say what to do");
    second.types("make a file\r");
    second.sees("touch -f one");
    second.sees(" details");
    first.types("is it mine?\r");
    first.sees("another process works on this session");
    first.sees("› is it mine?");
    second.types("y");
    second.sees("There is a file.");
    second.sees("say what to do");
    second.types("\x04");
    second.ends();
    first.sees("the other process is done");
    first.types("\x03\x04");
    first.ends();
    assert_eq!(house.sessions().len(), 1, "no other session was begun");
    assert_eq!(server.seen().len(), 4);
}

#[test]
fn conversation_and_files_of_a_copy_go_back_together() {
    if !needs(&["setsid"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let server = serve_two_tasks([say("Another way.")]);
    let mut person = chat_of_two_tasks(&server, &house);
    person.types("/back\r");
    person.sees("conversation and files");
    person.types("\r");
    person.sees("back to before: write notes");
    person.sees("taken back: 1 file");
    // The message is there to be written anew.
    person.types("\x15do it otherwise\r");
    person.sees("Another way.");
    person.sees("say what to do");
    let sent = server.seen()[4].body.to_string();
    assert!(sent.contains("The greeting is polite now.") && !sent.contains("There are notes."), "{sent}");
    person.types("/land unverified\r");
    person.sees("landed: 1 file");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(house.read("greet.sh").contains("Hello"), "it was there at that message");
    assert!(!house.project().join("notes.txt").exists());
    let copies: Vec<_> = house.sessions().iter().map(|session| session["copy"].clone()).collect();
    assert_eq!(copies, [json!(null), json!(null)], "the copy went along, and was landed");
}

#[test]
fn a_copy_goes_back_to_one_of_its_checkpoints_and_forth() {
    if !needs(&["setsid"]) || !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let server = serve_two_tasks([]);
    let mut person = chat(&server, &house, &["--isolate", "--no-check"]);
    person.sees("say what to do");
    person.types("/checkpoints\r");
    person.sees("there are no checkpoints yet");
    person.types("make it polite\r");
    person.sees("this is in a copy");
    person.types("write notes\r");
    person.sees("There are notes.");
    person.sees("this is in a copy");
    person.types("/checkpoints\r");
    person.sees("Take the copy back to a checkpoint");
    // The newest comes first: the one before the notes.
    person.types("\r");
    person.sees("taken back: 1 file");
    person.types("/redo\r");
    person.sees("changed again: 1 file");
    // All that the session did goes back, and comes again.
    person.types("/undo\r");
    person.sees("taken back: 2 files");
    person.types("/redo\r");
    person.sees("changed again: 2 files");
    person.types("/checkpoints\r");
    person.sees("Take the copy back to a checkpoint");
    person.types("\r");
    person.sees("taken back: 1 file");
    person.types("/land unverified\r");
    person.sees("landed: 1 file");
    person.types("\x04");
    assert_eq!(person.ends().0, 0);
    assert!(house.read("greet.sh").contains("Hello"));
    assert!(!house.project().join("notes.txt").exists());
}

/// A model that makes the greeting polite and writes notes, and then says more.
fn serve_two_tasks<const MORE: usize>(more: [Reply; MORE]) -> Server {
    let create = call("write_file", json!({"path": "notes.txt", "content": "polite\n"}));
    let replies = [
        call("edit_file", polite_edit()),
        say("The greeting is polite now."),
        create,
        say("There are notes."),
    ];
    Server::chat(replies.into_iter().chain(more))
}

/// Gives a session two tasks, whose changes stay in its copy.
fn chat_of_two_tasks(server: &Server, house: &House) -> Person {
    let mut person = chat(server, house, &["--isolate", "--no-check", "make it polite"]);
    person.sees("this is in a copy");
    person.types("write notes\r");
    person.sees("There are notes.");
    person.sees("this is in a copy");
    person
}
