//! `jm show --follow`.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{House, Server, Step, call, say};

#[test]
fn a_session_of_another_process_is_followed_to_its_end() {
    let house = House::with_greeter();
    let read: Step = call("read_file", json!({"path": "greet.sh"})).into();
    let server = Server::chat([read, Step::Stall]);
    let running = server.run(&house, &["look around"]).start();
    server.wait_for(2);
    let lines = house.jm(&["show", "--follow", "--json"]).start();
    lines.line_with("\"tool_end\"");
    let text = house.jm(&["show", "-f"]).start();
    text.line_with("task: look around");
    running.signal(Signal::INT);
    running.wait().expect(130);
    let events = lines.wait().expect(0).events();
    assert_eq!(events.last().unwrap().event.kind(), "done");
    text.wait().expect(0).prints(&["read greet.sh", "interrupted"]);
    // What is shown afterwards is the same.
    let shown = house.jm(&["show", "--json"]).run().expect(0).events();
    assert_eq!(shown, events);
}

#[test]
fn following_ends_when_nobody_has_the_session() {
    let house = House::with_greeter();
    let server = Server::chat([say("Hello."), say("Hello again.")]);
    server.run(&house, &["look around"]).run().expect(4);
    house.jm(&["show", "--follow"]).run().expect(0).prints(&["Hello.", "task: look around"]);

    let stalled = Server::chat([Step::Stall]);
    let running = stalled.run(&house, &["wait"]).start();
    stalled.wait_for(1);
    let followed = house.jm(&["show", "--follow"]).start();
    followed.line_with("task: wait");
    running.signal(Signal::KILL);
    running.gone();
    followed.wait().expect(0).prints(&["the session was cut off"]);
}
