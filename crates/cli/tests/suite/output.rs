//! What goes where: the result to stdout, progress to stderr, colour only to a terminal.

use std::process::Stdio;

use journeyman_protocol::{Event, Seq};
use serde_json::json;

use crate::support::{House, Reply, Server, call, needs, needs_sandbox, on_a_terminal, polite_edit, say};

/// Clears the screen, sets a colour and a title, rings the bell, and turns the text around.
const HOSTILE: &str = "\u{1b}[2J\u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}desrever\r";

fn repair() -> Vec<Reply> {
    vec![
        say("I'll look at it.").and("read_file", json!({"path": "greet.sh"})),
        call("edit_file", polite_edit()),
        say("Polite now."),
    ]
}

#[test]
fn the_result_is_on_stdout_and_progress_on_stderr() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat(repair());
    let ran = server.run(&house, &["make it polite"]).run().expect(0);
    let session = house.sessions()[0]["id"].as_str().unwrap().to_owned();
    ran.prints(&[
        "-    echo \"hello $1\"\n+    echo \"Hello, $1!\"\n",
        "tests: make test — passed",
        "verified",
        "420 tokens in (120 cached, 28 %), 30 out",
        &format!("take it back with: jm undo {session}"),
    ]);
    ran.says(&["custom/tiny", "mode auto", "I'll look at it.", "greet.sh", "make test"]);
    assert!(!ran.stderr.contains("take it back"), "the result is not progress");
}

#[test]
fn without_a_terminal_there_is_no_escape_sequence_anywhere() {
    let house = House::with_greeter();
    house.write("hostile.txt", HOSTILE);
    let server = Server::chat([
        say(HOSTILE).and("read_file", json!({"path": "hostile.txt"})).and(HOSTILE, json!({HOSTILE: HOSTILE})),
        call("edit_file", json!({"path": "hostile.txt", "search": "red", "replace": HOSTILE})),
        say(HOSTILE),
    ]);
    let mut all = vec![server.run(&house, &["--no-check", HOSTILE]).run()];
    let commands: &[&[&str]] = &[
        &["show"],
        &["sessions"],
        &["doctor"],
        &["config"],
        &["config", "--keys"],
        &["--help"],
        &["run", "--help"],
        &["run", "--model", "nobody/x", "t"],
        &["run", "--no-such-flag"],
        &["export", "last", "--format", "markdown"],
        &["context", "--text", "what is in hostile.txt?"],
        &["undo"],
        &["show", HOSTILE],
    ];
    all.extend(commands.iter().map(|arguments| house.jm(arguments).run()));
    // What a project's own file holds comes out in the error.
    let foreign = House::new();
    foreign.write(".journeyman/config.toml", "\"\\u001b[2J\\u0007\\u202e\" = 1\n");
    all.push(foreign.jm(&["config"]).run().expect(2));
    foreign.write(".journeyman/config.toml", "instructions = \"\\u009b31m\\u202e\"\n");
    all.push(foreign.jm(&["config"]).run().expect(0));
    for ran in all {
        for text in [&ran.stdout, &ran.stderr] {
            let found = text.find(['\u{1b}', '\u{9b}', '\u{7}', '\u{202e}', '\r']);
            assert_eq!(found, None, "{}", text.escape_debug());
        }
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let house = House::new();
    let shown = |setting: Option<(&str, &str)>| {
        let jm = house.jm(&["config", "--keys"]).env("TERM", "xterm");
        let jm = match setting {
            Some((name, value)) => jm.env(name, value),
            None => jm,
        };
        on_a_terminal(jm.command())
    };
    assert!(shown(None).contains("\u{1b}[1mmodel\u{1b}[0m"), "bold on a terminal");
    assert!(shown(Some(("NO_COLOR", ""))).contains('\u{1b}'), "an empty NO_COLOR says nothing");
    for setting in [("NO_COLOR", "1"), ("NO_COLOR", "0"), ("TERM", "dumb")] {
        let text = shown(Some(setting));
        assert!(text.contains("model: text") && !text.contains('\u{1b}'), "{setting:?}: {text}");
    }
}

#[test]
fn the_flag_for_colour_is_above_the_environment() {
    let house = House::new();
    let always = house.jm(&["--color", "always", "config", "--keys"]).env("NO_COLOR", "1").run().expect(0);
    assert!(always.stdout.contains("\u{1b}[1mmodel\u{1b}[0m"), "also in a pipe: {}", always.stdout);
    let never = house.jm(&["config", "--keys", "--color=never"]).env("TERM", "xterm");
    let text = on_a_terminal(never.command());
    assert!(text.contains("model: text") && !text.contains('\u{1b}'), "{text}");
    let unknown = house.jm(&["config", "--color", "blue"]).run().expect(2);
    assert!(unknown.stderr.contains("auto, always or never"), "{}", unknown.stderr);
}

#[test]
fn verbose_shows_the_output_of_commands_that_succeed() {
    if !needs_sandbox() {
        return;
    }
    let run = |flags: &[&str]| {
        let house = House::with_greeter();
        let command = json!({"command": "echo one; echo two"});
        let server = Server::chat([call("run_command", command), say("Done.")]);
        server.run(&house, &[flags, &["--no-check", "--mode", "auto", "count"]].concat()).run().stderr
    };
    let (normal, verbose) = (run(&[]), run(&["-v"]));
    assert!(!normal.contains("    two"), "{normal}");
    assert!(verbose.contains("    one\n    two\n"), "{verbose}");
    assert!(
        House::new().jm(&["run", "-v", "-q", "x"]).run().expect(2).stderr.contains("cannot be used with")
    );
}

#[test]
fn flags_before_a_task_need_no_command() {
    let house = House::with_greeter();
    let server = Server::chat([say("A greeter.")]);
    let url = server.url();
    let flags = ["--base-url", &url, "--wire", server.wire.name(), "--model", "tiny", "--mode", "ask"];
    let ran = house.jm(&[&flags[..], &["--json", "what is it?"]].concat()).env("JM_API_KEY", "x").run();
    assert!(ran.stdout.contains("A greeter."), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn quiet_leaves_stderr_empty() {
    if !needs(&["make"]) {
        return;
    }
    for flags in [&["--quiet"][..], &["-q", "--json"], &["-q", "--stream-json"]] {
        let house = House::with_greeter();
        let server = Server::chat(repair());
        let ran = server.run(&house, &[flags, &["make it polite"]].concat()).run().expect(0);
        assert_eq!(ran.stderr, "", "{flags:?}");
        assert!(ran.stdout.contains("verified"), "{flags:?}");
    }
}

#[test]
fn json_is_one_object_on_one_line() {
    let house = House::with_greeter();
    let server = Server::chat([say("Two\nlines \u{1f600} and \"quotes\".")]);
    let report = server.run(&house, &["--json", "look around"]).run().expect(4).report();
    assert_eq!(report.text, "Two\nlines \u{1f600} and \"quotes\".");
    assert_eq!((report.diff.as_str(), report.undo), ("", None));
}

#[test]
fn every_line_of_stream_json_is_an_event() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat(repair());
    let ran = server.run(&house, &["--stream-json", "make it polite"]).run().expect(0);
    let events = ran.events();
    assert_eq!(events[0].event.kind(), "run_started");
    let Event::Done { report } = &events.last().unwrap().event else { panic!("the last is the report") };
    assert_eq!(report.exit_code, 0);
    for envelope in &events {
        assert_eq!(envelope.seq.is_none(), envelope.event.is_live_only(), "{envelope:?}");
        assert_eq!(envelope.channel, envelope.event.channel());
        assert_eq!(envelope.session, report.session);
    }
    let seqs: Vec<Seq> = events.iter().filter_map(|envelope| envelope.seq).collect();
    assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");

    let streamed: String = events
        .iter()
        .filter_map(|envelope| match &envelope.event {
            Event::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(streamed, "I'll look at it.Polite now.", "the text comes as it is said");

    // What was shown live is what the log holds.
    let logged = house.jm(&["show", "--json"]).run().expect(0).events();
    let kept: Vec<_> = events.into_iter().filter(|envelope| envelope.seq.is_some()).collect();
    assert_eq!(logged, kept);
}

#[test]
fn a_reader_that_goes_away_causes_no_panic() {
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    server.run(&house, &["look around"]).run().expect(4);
    let commands: &[&[&str]] = &[
        &["sessions"],
        &["sessions", "--json"],
        &["show"],
        &["show", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["config"],
        &["config", "--keys"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ];
    for arguments in commands {
        // A pipe whose reading end is closed before anything is written.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = house.jm(arguments).command();
        let output = command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output();
        let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_error_that_nobody_reads_keeps_its_exit_code() {
    let house = House::with_greeter();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = house.jm(&["run", "--model", "nobody/x", "look around"]).command();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn a_run_whose_reader_goes_away_is_finished_all_the_same() {
    if !needs_sandbox() {
        return;
    }
    for flag in ["--json", "--stream-json", "--quiet"] {
        let house = House::with_greeter();
        let server = Server::chat(repair());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = server.run(&house, &[flag, "--check", "true", "make it polite"]).command();
        let output = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{flag}: {stderr}");
        assert!(!stderr.contains("panicked"), "{flag}: {stderr}");
        assert!(house.read("greet.sh").contains("Hello"));
    }
}
