//! Which sandbox is used, who may choose it, and what is said of it.

use serde_json::{Value, json};

use crate::support::{House, Server, call, needs, needs_sandbox, say};

fn doctor(house: &House, flags: &[&str]) -> Value {
    let flags: Vec<&str> = ["doctor", "--json"].iter().chain(flags).copied().collect();
    serde_json::from_str(&house.jm(&flags).run().stdout).unwrap()
}

fn row(report: &Value, tier: &str) -> Value {
    let rows = report["sandbox"]["tiers"].as_array().unwrap();
    rows.iter().find(|row| row["tier"] == tier).unwrap().clone()
}

#[test]
fn doctor_tells_of_every_sandbox_and_which_is_used() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    let report = doctor(&house, &[]);
    let used = row(&report, "namespaces");
    assert_eq!((&used["used"], &used["allowed"], &used["works"]), (&json!(true), &json!(true), &json!(true)));
    assert!(used["enforced"].as_array().unwrap().len() >= 7, "{used}");
    let none = row(&report, "none");
    assert_eq!((&none["used"], &none["allowed"]), (&json!(false), &json!(false)));
    assert!(none["needs"].as_str().unwrap().contains("sandbox.allow = [\"none\"]"), "{none}");
    assert_eq!(none["not_enforced"].as_array().unwrap().len(), 7);
    for tier in report["sandbox"]["tiers"].as_array().unwrap() {
        // What doesn't work says why, and what helps.
        assert!(tier["works"] == true || tier["reason"].is_string(), "{tier}");
    }
    house.jm(&["doctor"]).run().prints(&[
        "namespaces  is used",
        "container   not configured",
        "not enforced: writes outside the project",
    ]);
}

#[test]
fn one_that_is_preferred_is_used_and_root_needs_leave_for_it() {
    if !needs_sandbox() || !needs(&["bwrap"]) {
        return;
    }
    let house = House::new();
    house.configure("[sandbox]\nprefer = \"bubblewrap\"\n");
    let root = doctor(&house, &[])["sandbox"]["root"] == true;
    let used = |flags: &[&str]| doctor(&house, flags)["sandbox"]["tier"].clone();
    assert_eq!(used(&[]), if root { "namespaces" } else { "bubblewrap" });
    assert_eq!(used(&["--allow-root"]), "bubblewrap");
    house.configure("[sandbox]\nprefer = \"bubblewrap\"\nallow_root = true\n");
    assert_eq!(used(&[]), "bubblewrap");
    house.configure("[sandbox]\nprefer = \"none\"\n");
    house
        .jm(&["exec", "--", "true"])
        .run()
        .expect(2)
        .says(&["`none` isn't allowed", "sandbox.allow = [\"none\"]"]);
}

#[test]
fn exec_says_what_a_weaker_one_does_not_enforce() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.configure("[sandbox]\nallow = [\"none\"]\nprefer = \"none\"\nallow_root = true\n");
    let ran = house.jm(&["exec", "--", "sh", "-c", "echo ran"]).run().expect(0);
    ran.prints(&["ran"]).says(&["sandbox: none. Not enforced: writes outside the project"]);
}

/// Also in the mode that asks for least: what isn't confined is a person's to allow.
#[test]
fn an_unconfined_command_is_asked_about_each_time() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.configure("[sandbox]\nallow = [\"none\"]\nprefer = \"none\"\nallow_root = true\n");
    let before = house.tree();
    let command = |command: &str| call("run_command", json!({ "command": command }));
    let server =
        Server::chat([command("touch one"), command("touch two"), command("touch three"), say("Well.")]);
    let ran = server.run(&house, &["--mode", "auto", "--no-check", "make files"]).run().expect(6);
    ran.says(&["sandbox: none. Not enforced"]);
    for request in &server.seen()[1..] {
        assert!(request.newest().contains("nobody can be asked"), "{}", request.newest());
    }
    assert_eq!(house.tree(), before);
}
