//! `jm check`, `jm checks` and `jm setup`: a project's own checks without a model or a key.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{House, POLITE, Ran, Server, call, needs, say};

/// A linter of a Makefile that says where a line ends in a blank.
const LINTED: &[(&str, &str)] = &[
    (
        "package.json",
        r#"{"scripts":{"lint":"sh lint.sh","lint:fix":"sh fix.sh","test":"sh test.sh","build":"false"}}"#,
    ),
    ("lint.sh", "! grep -n 'x$' words.txt\n"),
    ("fix.sh", "sed -i 's/x$/y/' words.txt\n"),
    ("test.sh", "grep y words.txt\n"),
    ("words.txt", "one x\n"),
];

fn object(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", ran.stdout, ran.stderr))
}

#[test]
fn results_are_printed_and_have_exit_codes() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let failed = house.jm(&["check", "-C", "."]).run().expect(3);
    for part in ["✗ tests", "make test", "greet.sh:3", "1 check failed"] {
        assert!(failed.stdout.contains(part), "{part}: {}", failed.stdout);
    }
    house.write("greet.sh", POLITE);
    let passed = house.jm(&["check", "-C", "."]).run().expect(0);
    assert!(
        passed.stdout.contains("✓ tests") && passed.stdout.contains("1 check passed"),
        "{}",
        passed.stdout
    );
    let answer = object(&house.jm(&["check", "-C", ".", "--json"]).run().expect(0));
    assert_eq!((answer["verdict"].as_str(), answer["exit_code"].as_u64()), (Some("passed"), Some(0)));
    let nothing = house.jm(&["check", "-C", ".", "--kind", "lint"]).run().expect(4);
    assert!(nothing.stdout.contains("no check is left to run"), "{}", nothing.stdout);
    house.jm(&["check", "-C", ".", "--check", "echo no; exit 7"]).run().expect(3);
    house.jm(&["check", "nowhere"]).run().expect(2).says(&["nowhere"]);
    house.jm(&["check", "--changed"]).run().expect(2).says(&["no git repository"]);
}

#[test]
fn checks_are_listed_with_reasons() {
    let house = House::new();
    LINTED.iter().for_each(|(path, text)| house.write(path, text));
    let answer = object(&house.jm(&["checks", "-C", ".", "--json"]).run());
    let build = answer["checks"].as_array().unwrap().iter().find(|one| one["kind"] == "build").unwrap();
    assert_eq!(build["runs"], false);
    assert!(build["left_out"].as_str().unwrap().contains("--kind build"), "{build}");
    let empty = House::new();
    empty.jm(&["checks", "-C", "."]).run().expect(1).says(&["no check was found"]);
}

#[test]
fn repairs_of_linters_can_be_undone() {
    if !needs(&["npm", "sh"]) {
        return;
    }
    let house = House::new();
    LINTED.iter().for_each(|(path, text)| house.write(path, text));
    let failed = house.jm(&["check", "-C", "."]).run().expect(3);
    failed.says(&["jm check --fix"]);
    assert!(failed.stdout.contains("not run because lint failed first"), "{}", failed.stdout);
    house.jm(&["check", "-C", ".", "--fix"]).run().expect(0).says(&["changed 1 file: words.txt"]);
    assert_eq!(house.read("words.txt"), "one y\n");
    house.jm(&["undo", "-C", "."]).run().expect(0);
    assert_eq!(house.read("words.txt"), "one x\n");
}

#[test]
fn only_what_differs_from_the_last_commit_is_checked() {
    if !needs(&["make", "git"]) {
        return;
    }
    let house = House::with_repository();
    let nothing = house.jm(&["check", "--changed"]).run().expect(4);
    assert!(nothing.stdout.contains("no file differs from the last commit"), "{}", nothing.stdout);
    house.write("greet.sh", POLITE);
    house.jm(&["check", "--changed"]).run().expect(0);
}

/// A project whose package isn't installed yet. It lies in the project, so that no network is
/// needed.
fn house_to_set_up() -> House {
    let house = House::new();
    house.write("package.json", r#"{"scripts":{"test":"node t.js"},"dependencies":{"own":"file:./own"}}"#);
    house.write("own/package.json", r#"{"name":"own","version":"1.0.0"}"#);
    house.write("own/index.js", "module.exports = 1;\n");
    house.write("t.js", "process.exit(require('own') === 1 ? 0 : 1);\n");
    house.write(".gitignore", "node_modules/\n");
    house
}

#[test]
fn a_session_sets_up_what_its_checks_need_if_that_is_allowed() {
    if !needs(&["npm"]) {
        return;
    }
    let (edit, asked) =
        (json!({ "path": "notes.md", "content": "Installed by a session.\n" }), "write it down");
    let house = house_to_set_up();
    let server = Server::chat([call("write_file", edit.clone()), say("Done.")]);
    let refused = server.run(&house, &[asked, "--mode", "edit", "--json"]).run().expect(4);
    let reason = "`npm install --no-audit --no-fund` would fetch what is missing, but it was not allowed";
    assert!(refused.stdout.contains(reason), "{}", refused.stdout);
    assert!(!house.project().join("node_modules").exists());

    let house = house_to_set_up();
    let server = Server::chat([call("write_file", edit), say("Done.")]);
    let ran = server.run(&house, &[asked, "--mode", "auto", "--in-place", "--json"]).run().expect(0);
    let commands: Vec<String> = ran.report().evidence.iter().map(|one| one.command.clone()).collect();
    assert_eq!(commands, ["npm test"]);
    assert!(house.project().join("node_modules/own").exists());
    house.jm(&["check", "-C", "."]).run().expect(0);
}

#[test]
fn setup_proposes_runs_once_and_names_what_it_cannot_fetch() {
    if !needs(&["npm"]) {
        return;
    }
    let house = house_to_set_up();
    let blocked = house.jm(&["check", "-C", "."]).run().expect(4);
    assert!(blocked.stdout.contains("jm setup"), "{}", blocked.stdout);
    let planned = object(&house.jm(&["setup", "-C", ".", "--dry-run", "--json"]).run().expect(0));
    assert_eq!(planned["steps"][0]["network"], serde_json::json!(["npm"]));
    house.jm(&["setup", "-C", "."]).run().expect(6).says(&["jm setup --yes"]);
    house.jm(&["setup", "-C", ".", "--yes"]).run().expect(0);
    let again = house.jm(&["setup", "-C", "."]).run().expect(0);
    assert!(again.stdout.contains("nothing is missing"), "{}", again.stdout);
    house.jm(&["check", "-C", "."]).run().expect(0);
}

#[test]
fn watching_runs_again_what_a_change_affects() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let mut watching = Command::new(env!("CARGO_BIN_EXE_jm"))
        .args(["check", "-C", ".", "--watch", "--json"])
        .current_dir(house.project())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", house.at("home"))
        .env("XDG_STATE_HOME", house.at("state"))
        .env("XDG_CONFIG_HOME", house.at("config"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["verdict"], "failed");
    house.write("greet.sh", POLITE);
    assert_eq!(next()["verdict"], "passed");
    kill_process(Pid::from_child(&watching), Signal::INT).unwrap();
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}
