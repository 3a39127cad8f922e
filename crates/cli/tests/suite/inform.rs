//! The commands that only tell: help, version, completions, doctor.

use std::io::Write as _;
use std::process::{Command, Stdio};

use journeyman_protocol::{Seq, SessionId, UnixMillis};
use journeyman_store::{NewEntry, SqliteStore, Store as _};
use serde_json::Value;

use crate::support::{House, has_program, needs_sandbox};

#[test]
fn version_and_help() {
    let house = House::new();
    let version = house.jm(&["--version"]).run().expect(0);
    assert_eq!(version.stdout, format!("jm {}\n", env!("CARGO_PKG_VERSION")));
    let commands = [
        "run",
        "resume",
        "demo",
        "doctor",
        "sessions",
        "show",
        "undo",
        "fork",
        "snapshot",
        "export",
        "import",
        "delete",
        "config",
        "completions",
    ];
    house.jm(&["--help"]).run().expect(0).prints(&commands);
    for command in commands {
        assert!(house.jm(&[command, "--help"]).run().expect(0).stderr.is_empty(), "{command}");
    }
    house.jm(&[]).run().expect(2).says(&["Usage: jm"]);
    house.jm(&["rum"]).run().expect(2).says(&["run"]);
    assert!(!house.at("state").exists());
}

#[test]
fn the_help_of_run_names_every_exit_code() {
    let help = House::new().jm(&["run", "--help"]).run().expect(0).stdout;
    let codes = help.split_once("Exit codes:").expect("a section of its own").1;
    for code in ["0  verified", "1  error", "2  usage", "3  ", "4  ", "5  ", "6  ", "130  interrupted"] {
        assert!(codes.lines().any(|line| line.trim_start().starts_with(code)), "{code}\n{codes}");
    }
}

#[test]
fn flags_that_exclude_each_other_or_mean_nothing_are_usage_errors() {
    let house = House::new();
    let cases: &[&[&str]] = &[
        &["--json", "--stream-json", "t"],
        &["--check", "true", "--no-check", "t"],
        &["--record", "a", "--replay", "b", "t"],
        &["--max-turns", "many", "t"],
        &["--max-turns", "0", "t"],
        &["--timeout", "soon", "t"],
        &["--timeout", "-1s", "t"],
        &["--budget", "-1", "t"],
        &["--mode", "yolo", "t"],
        &["--check", " ", "t"],
        &["--base-url", "http://127.0.0.1:9", "t"],
        &["--base-url", "http://127.0.0.1:9", "--wire", "chat", "t"],
        &["--base-url", "http://127.0.0.1:9", "--wire", "soap", "--model", "m", "t"],
        &["--base-url", "not a url", "--wire", "chat", "--model", "m", "t"],
    ];
    for flags in cases {
        let ran = house.jm(&[&["run"], *flags].concat()).run().expect(2);
        assert!(ran.stderr.starts_with("error:"), "{flags:?}: {}", ran.stderr);
        assert!(!ran.stdout.contains("session"), "{}", ran.stdout);
    }
    assert!(!house.at("state").exists());
}

#[test]
fn completions_for_each_shell() {
    let house = House::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = house.jm(&["completions", shell]).run().expect(0);
        ran.prints(&["stream-json", "sessions"]);
        if ["bash", "zsh", "fish"].contains(&shell) && has_program(shell) {
            let mut child = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(ran.stdout.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success(), "{shell} can't read it");
        }
    }
    house.jm(&["completions", "tcsh"]).run().expect(2).says(&["tcsh"]);
}

#[test]
fn doctor_says_what_works_and_never_a_keys_value() {
    if !needs_sandbox() {
        return;
    }
    let keys = [
        ("OPENAI_API_KEY", "sk-planted-a-0123456789abcdef"),
        ("ANTHROPIC_API_KEY", "sk-ant-planted-b-0123456789"),
        ("HF_TOKEN", "hf_plantedc0123456789"),
        ("JM_API_KEY", "planted-d"),
    ];
    let house = House::new();
    for flags in [&["doctor", "--json"][..], &["doctor"]] {
        let jm = keys.iter().fold(house.jm(flags), |jm, (name, value)| jm.env(name, value));
        let ran = jm.run().expect(0);
        for (name, value) in keys {
            assert!(!ran.stdout.contains(value) && !ran.stderr.contains(value), "{name}");
            assert!(name == "JM_API_KEY" || ran.stdout.contains(name), "{name} is set and not named");
        }
        if flags.len() == 1 {
            ran.prints(&["tier: namespaces", "OPENAI_API_KEY is set", "no network", "git"]);
            continue;
        }
        assert_eq!(ran.stdout.lines().count(), 1);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(report["sandbox"]["tier"], "namespaces");
        assert_eq!(report["state"]["directory"], house.state().to_str().unwrap());
        let key_of = |name: &str| {
            let keys = report["keys"].as_array().unwrap();
            keys.iter().find(|key| key["provider"] == name).unwrap().clone()
        };
        assert_eq!(key_of("openai")["set"], serde_json::json!(["OPENAI_API_KEY"]));
        assert_eq!(key_of("gemini")["set"], serde_json::json!([]));
        assert_eq!(key_of("ollama")["local"], true);
    }
}

#[test]
fn doctor_names_a_state_directory_that_cannot_be_used() {
    let house = House::new();
    std::fs::write(house.at("state"), "a file\n").unwrap();
    let ran = house.jm(&["doctor"]).run().expect(1);
    ran.prints(&[house.state().to_str().unwrap()]);
}

#[test]
fn doctor_goes_on_with_what_can_be_read_of_a_damaged_log() {
    let house = House::new();
    let repair = || house.jm(&["doctor", "--repair"]).run().expect(0);
    repair().prints(&["is whole"]);
    let path = house.state().join("sessions.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let id = SessionId::new(UnixMillis(1_700_000_000_000), 1);
    runtime.block_on(async {
        let store = SqliteStore::open(&path).unwrap();
        store.create(&id, house.project().to_str().unwrap(), "a task", UnixMillis(1)).await.unwrap();
        let note =
            NewEntry { channel: None, kind: "note".into(), at: UnixMillis(1), payload: vec![b'x'; 900] };
        store.append(&id, Seq::START, vec![note; 20]).await.unwrap();
    });
    repair().prints(&["is whole"]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 4096);
    std::fs::write(&path, bytes).unwrap();
    house.jm(&["sessions"]).run().expect(1).says(&["damaged", "jm doctor --repair"]);
    repair().prints(&["saved 1 sessions", id.as_str(), "lost", "sessions.db-damaged-"]);
    house.jm(&["sessions"]).run().expect(0).prints(&["a task"]);
}
