//! `jm sessions` and `jm show`.

use journeyman_protocol::Event;
use serde_json::json;

use crate::support::{House, Server, call, needs, polite_edit, say};

#[test]
fn no_sessions_yet_is_no_error() {
    let house = House::new();
    let ran = house.jm(&["sessions"]).run().expect(0);
    ran.says(&["no sessions yet"]);
    assert_eq!(ran.stdout, "");
    assert_eq!(house.jm(&["sessions", "--json"]).run().expect(0).stdout, "");
    house.jm(&["show"]).run().expect(2).says(&["no session was run in this directory"]);
}

#[test]
fn sessions_are_listed_newest_first_here_or_everywhere() {
    let house = House::with_greeter();
    let elsewhere = house.at("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let server = Server::chat([say("One."), say("Two."), say("Three.")]);
    server.run(&house, &["first task\nand its second line"]).run().expect(4);
    server.run(&house, &["second task"]).run().expect(4);
    server.run(&house, &["third task", "-C", elsewhere.to_str().unwrap()]).run().expect(4);

    let listed = house.sessions();
    let titles: Vec<&str> = listed.iter().map(|session| session["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["second task", "first task"]);
    for session in &listed {
        assert_eq!(session["status"], "no_changes");
        assert_eq!(session["root"], house.project().canonicalize().unwrap().to_str().unwrap());
    }
    let text = house.jm(&["sessions"]).run().expect(0).stdout;
    assert_eq!(text.lines().count(), 2);
    assert!(text.starts_with(&format!("  1  {}", listed[0]["id"].as_str().unwrap())), "{text}");
    house.jm(&["show", "2"]).run().expect(0).prints(&["first task"]);
    house.jm(&["show", "3"]).run().expect(2).says(&["there is no session 3 in this directory, which has 2"]);

    let all = house.jm(&["sessions", "--all"]).run().expect(0);
    all.prints(&["third task", "elsewhere", "second task", "first task"]);
    assert_eq!(house.jm(&["sessions", "--all", "--limit", "1"]).run().expect(0).stdout.lines().count(), 1);
}

#[test]
fn a_session_is_shown_as_text_and_as_events() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([
        say("I'll look.").and("read_file", json!({"path": "greet.sh"})),
        call("edit_file", polite_edit()),
        say("Polite now."),
    ]);
    let report = server.run(&house, &["--json", "make the greeting polite"]).run().expect(0).report();
    let session = report.session.to_string();

    for word in ["last", &session, &session[..15]] {
        let shown = house.jm(&["show", word]).run().expect(0);
        shown.prints(&[
            "make the greeting polite",
            "I'll look.",
            "+    echo \"Hello, $1!\"",
            "verified",
            &session,
        ]);
        assert_eq!(shown.stderr, "", "the events are the result here");
    }
    let events = house.jm(&["show", "--json", &session]).run().expect(0).events();
    assert!(matches!(&events[0].event, Event::RunStarted { task, .. } if task == "make the greeting polite"));
    assert!(matches!(&events.last().unwrap().event, Event::Done { report: its } if **its == report));
}

#[test]
fn a_word_that_names_no_session_or_several_is_refused() {
    let house = House::with_greeter();
    let server = Server::chat([say("One."), say("Two.")]);
    server.run(&house, &["one"]).run().expect(4);
    server.run(&house, &["two"]).run().expect(4);
    let shared = house.sessions()[0]["id"].as_str().unwrap()[..3].to_owned();
    house.jm(&["show", &shared]).run().expect(2).says(&["is the beginning of 2 sessions", "more of the id"]);
    for unknown in ["zzzz", "../../etc/passwd", "%", "'; drop table entries; --"] {
        house.jm(&["show", unknown]).run().expect(2).says(&["no session begins with", unknown]);
    }
    assert_eq!(house.sessions().len(), 2);
}
