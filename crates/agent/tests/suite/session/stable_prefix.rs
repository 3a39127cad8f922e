//! The part of requests that providers keep.

use std::sync::Mutex;

use journeyman_model::{ModelRequest, Wire, request_body};
use serde_json::{Value, json};

use crate::session::support::bench::{Bench, auto};
use crate::session::support::model::{Told, calls, says};

cases![every_request_of_fifty_turns_begins_with_the_one_before_on_every_wire];

const TURNS: usize = 50;

async fn every_request_of_fifty_turns_begins_with_the_one_before_on_every_wire() {
    let files: Vec<(String, String)> =
        (0..TURNS).map(|number| (format!("src/f{number}.rs"), format!("fn f{number}() {{}}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut bench = Bench::new(&files);
    let next = Mutex::new(0);
    let told = Told::by(move |_| {
        let mut next = next.lock().unwrap();
        let number = *next;
        *next += 1;
        if number == TURNS - 1 {
            return says("all were read");
        }
        let (id, other) = (format!("c{number}"), format!("d{number}"));
        // Reads, edits, commands, unknown tools and bad arguments: whatever becomes of a call.
        let path = format!("src/f{number}.rs");
        let second = match number % 5 {
            0 => ("edit_file", json!({ "path": path, "old": "{}", "new": "{ }" })),
            1 => ("run_command", json!({ "command": format!("echo {number}") })),
            2 => ("no_such_tool", json!({})),
            3 => ("read_file", json!({ "pth": 1 })),
            _ => ("todo_write", json!({ "todos": [{ "title": format!("step {number}") }] })),
        };
        calls([(id.as_str(), "read_file", json!({ "path": path })), (other.as_str(), second.0, second.1)])
    });
    let session = bench.start(&told, auto());
    session.handle.send("Read all files.").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let requests = told.requests();
    assert!(requests.len() >= TURNS, "{}", requests.len());
    for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini] {
        for pair in requests.windows(2) {
            assert_continues(wire, &pair[0], &pair[1]);
        }
    }
}

/// The later request has the earlier one's system prompt, tools and messages, byte for byte, but
/// for the marks of a cache, which move to the newest message; and the mark is there where the
/// protocol has one.
fn assert_continues(wire: Wire, earlier: &ModelRequest, later: &ModelRequest) {
    let [mut earlier, mut later] = [earlier, later].map(|request| request_body(wire, request).unwrap());
    if wire == Wire::Anthropic {
        let marks = later.to_string().matches("cache_control").count();
        assert!((2..=4).contains(&marks), "{marks} marks");
    }
    let list = match wire {
        Wire::Anthropic | Wire::Chat => "messages",
        Wire::Responses => "input",
        Wire::Gemini => "contents",
    };
    let [before, after] = [&mut earlier, &mut later].map(|body| {
        let messages = body.as_object_mut().unwrap().remove(list).unwrap();
        let mut messages = messages.as_array().unwrap().clone();
        messages.iter_mut().for_each(remove_marks);
        messages.iter().map(Value::to_string).collect::<Vec<_>>()
    });
    assert_eq!(earlier.to_string(), later.to_string(), "{wire:?}: what comes before the messages");
    assert!(after.starts_with(&before), "{wire:?}: {before:#?}\n{after:#?}");
}

fn remove_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(remove_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_marks),
        _ => {}
    }
}
