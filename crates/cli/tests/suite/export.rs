//! `jm export` in the forms of other programs.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{House, Server, Step, call, is_running, needs_sandbox, polite_edit, say, wait_until};

/// A session with calls in it. The model is asked over Chat Completions.
fn talk(house: &House) {
    let server = Server::chat([
        say("I'll look.").and("read_file", json!({"path": "greet.sh"})),
        call("edit_file", polite_edit()),
        call("read_file", json!({"path": "nowhere.sh"})),
        say("Done, with ```three``` ticks."),
    ]);
    server.run(house, &["--no-check", "make the greeting polite"]).run().expect(4);
}

fn exported(house: &House, format: &str) -> Value {
    let ran = house.jm(&["export", "last", "--format", format]).run().expect(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_conversation_has_the_form_of_each_api() {
    let house = House::with_greeter();
    talk(&house);

    let anthropic = exported(&house, "anthropic");
    assert_eq!(anthropic["model"], "tiny");
    assert!(anthropic["system"][0]["text"].is_string(), "{}", anthropic["system"]);
    let roles = |messages: &Value| -> Vec<String> {
        messages.as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap().to_owned()).collect()
    };
    let turns = ["user", "assistant", "user", "assistant", "user", "assistant", "user", "assistant"];
    assert_eq!(roles(&anthropic["messages"]), turns);
    let call = &anthropic["messages"][1]["content"][1];
    assert_eq!((&call["type"], &call["name"]), (&json!("tool_use"), &json!("read_file")));
    let result = &anthropic["messages"][2]["content"][0];
    assert_eq!((&result["type"], &result["tool_use_id"]), (&json!("tool_result"), &call["id"]));
    assert_eq!(anthropic["messages"][6]["content"][0]["is_error"], true);
    assert!(!anthropic.to_string().contains("cache_control"), "marks are about requests");

    let openai = exported(&house, "openai");
    let turns =
        ["system", "user", "assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant"];
    assert_eq!(roles(&openai["messages"]), turns);
    assert_eq!(openai["messages"][2]["tool_calls"][0]["function"]["name"], "read_file");
    let members: Vec<&String> = openai.as_object().unwrap().keys().collect();
    assert_eq!(members, ["model", "messages"]);

    let text = house.jm(&["export", "last", "--format", "markdown"]).run().expect(0);
    text.prints(&[
        "# make the greeting polite\n",
        "## User\n",
        "## Model\n\nI'll look.\n",
        "**read_file**\n",
        "```json\n",
        "*failed:*",
        "Done, with ```three``` ticks.",
    ]);
}

#[test]
fn a_call_that_was_cut_off_does_not_make_it_invalid() {
    if !needs_sandbox() {
        return;
    }
    let sleep = format!("sleep 931.{}", std::process::id());
    let house = House::with_greeter();
    let server = Server::chat([Step::from(call("run_command", json!({ "command": sleep })))]);
    let running = server.run(&house, &["wait"]).start();
    wait_until("the command runs", || is_running(&sleep));
    running.signal(Signal::KILL);
    running.gone();
    for format in ["anthropic", "openai"] {
        assert!(exported(&house, format)["messages"].to_string().contains("cut off here"), "{format}");
    }
}

#[test]
fn a_file_is_new_and_ones_own() {
    let house = House::with_greeter();
    talk(&house);
    for format in ["jsonl", "anthropic", "openai", "markdown"] {
        let path = house.at(&format!("tmp/{format}"));
        let place = path.to_str().unwrap();
        let ran = house.jm(&["export", "last", "--format", format, "-o", place]).run().expect(0);
        assert_eq!(ran.stdout, "");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{format}");
        let written = std::fs::read(&path).unwrap();
        house
            .jm(&["export", "last", "--format", format, "-o", place])
            .run()
            .expect(2)
            .says(&["is there already"]);
        assert_eq!(std::fs::read(&path).unwrap(), written);
    }
    house.jm(&["export", "last", "--format", "html"]).run().expect(2).says(&["html"]);
    house.jm(&["export", "zzz"]).run().expect(2).says(&["`zzz`"]);
}
