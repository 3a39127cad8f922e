//! A CLI as one call of a session.

use std::time::Duration;

use journeyman_protocol::{FileChangeKind, Tokens};
use journeyman_tools::{Tool as _, ToolError};
use journeyman_workspace::UndoTarget;
use serde_json::json;

use crate::fake::{Bench, Setup, block_on, is_empty, sandbox, session_of, texts};

#[test]
fn a_task_edits_files_and_runs_a_command() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[("a.txt", "old\n")]);
    let prompt = "say I begin\nedit a.txt new\nedit b.txt second\nrun cat a.txt b.txt; exit 3\nstrange";
    let output = bench.call(prompt).unwrap();
    assert!(!output.is_error, "{:?}", output.parts);
    assert_eq!((bench.file("a.txt"), bench.file("b.txt")), (Some("new\n".into()), Some("second\n".into())));
    let mut changes: Vec<_> = output.changes.iter().map(|it| (it.path.to_string(), it.kind)).collect();
    changes.sort_by(|one, other| one.0.cmp(&other.0));
    let expected =
        [("a.txt".to_owned(), FileChangeKind::Modified), ("b.txt".to_owned(), FileChangeKind::Added)];
    assert_eq!(changes, expected);
    let [message, notes] = texts(&output)[..] else { panic!("{:?}", output.parts) };
    assert_eq!(message, "new\nsecond");
    assert!(
        notes.starts_with("[fake ended: exit code 0]\n[files changed: a.txt (modified), b.txt (added)]\n")
    );
    let used = output.foreign_usage.unwrap();
    assert_eq!((used.usage.input, used.usage.output, used.usd), (Tokens(100), Tokens(20), Some(0.25)));
    let expected =
        "I begin\n• edit a.txt\n• edit b.txt\n• bash cat a.txt b.txt; exit 3\n  failed: new second\n";
    assert_eq!(*bench.live.lock().unwrap(), expected);
    let expected = [
        "session",
        "tool_start",
        "tool_end",
        "files_changed",
        "tool_start",
        "tool_end",
        "files_changed",
        "tool_start",
        "tool_end",
        "unknown",
        "unknown",
        "usage",
    ];
    assert_eq!(bench.kinds(), expected, "unknown lines are kept");
    // What a command changed is taken back as what the session itself changed.
    bench.context.workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((bench.file("a.txt"), bench.file("b.txt")), (Some("old\n".into()), None));
}

#[test]
fn a_session_goes_on_by_its_id_and_ends_with_the_tool() {
    let Some(sandbox) = sandbox() else { return };
    let mut bench = Bench::new(&sandbox, &[]);
    let first = bench.call("edit a 1").unwrap();
    let id = session_of(&first);
    let more = json!({ "to": "fake", "prompt": "count", "resume": id });
    let second = bench.send(more.clone()).unwrap();
    assert_eq!(texts(&second)[0], "2 prompts in this session");
    for unknown in ["no-such-session", "--dangerous", ""] {
        let output = bench.send(json!({ "to": "fake", "prompt": "count", "resume": unknown })).unwrap();
        assert!(output.is_error && texts(&output)[0].starts_with("this session of the CLI is not kept"));
    }
    assert!(!is_empty(&bench.state));
    let Bench { tool, state, .. } = &mut bench;
    drop(tool.take());
    assert!(is_empty(state), "the homes end with the session");
}

#[test]
fn it_stops_at_once_when_it_is_cancelled_and_nothing_goes_on() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[]);
    let cancel = bench.context.cancel.clone();
    let live = std::sync::Arc::clone(&bench.live);
    let output = block_on(async {
        let call = bench.tool().call(
            &bench.context,
            json!({
                "to": "fake",
                "prompt": "edit a half\nleave while :; do date +%N > alive; done\nsleep 1000",
            }),
        );
        let stop = async {
            while !live.lock().unwrap().contains("sleeping") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        };
        tokio::join!(call, stop).0
    });
    let output = output.unwrap();
    assert!(output.is_error && texts(&output)[0].starts_with("fake failed: it was stopped"));
    assert_eq!(bench.file("a").as_deref(), Some("half\n"), "what it did so far is recorded");
    assert!(output.changes.iter().any(|change| change.path.to_string() == "a"));
    let before = bench.file("alive");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(bench.file("alive"), before, "no process is left");
    let cancelled = bench.call("edit b late");
    assert!(matches!(cancelled, Err(ToolError::Cancelled)), "{cancelled:?}");
}

#[test]
fn its_time_limit_ends_the_whole_tree() {
    let Some(sandbox) = sandbox() else { return };
    let time_limit = Some(Duration::from_secs(2));
    let bench = Bench::with(&sandbox, &[], Setup { time_limit, ..Setup::default() });
    let output = bench.call("leave while :; do date +%N > alive; done\nsleep 1000").unwrap();
    assert!(output.is_error);
    let [message, notes] = texts(&output)[..] else { panic!("{:?}", output.parts) };
    assert!(message.starts_with("fake failed: it was ended at its time limit"), "{message}");
    assert!(notes.starts_with("[fake ended: killed at its time limit]\n"), "{notes}");
    let before = bench.file("alive");
    assert!(before.is_some());
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(bench.file("alive"), before);
    // Its session is known all the same.
    let again = json!({ "to": "fake", "prompt": "count", "resume": session_of(&output) });
    assert_eq!(texts(&bench.send(again).unwrap())[0], "2 prompts in this session");
}

#[test]
fn a_crash_and_a_stream_that_is_cut_off_are_failures() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[]);
    for (prompt, expected, end) in [
        ("edit a 1\ncrash", "fake failed: it was killed by signal 6", "killed by signal 6"),
        ("edit a 2\ncut", "fake failed: it stopped early with exit code 0", "exit code 0"),
        ("fail the provider is down", "fake failed: the provider is down", "exit code 1"),
    ] {
        let output = bench.call(prompt).unwrap();
        assert!(output.is_error, "{prompt}");
        let [message, notes] = texts(&output)[..] else { panic!("{:?}", output.parts) };
        assert!(message.starts_with(expected), "{message}");
        assert!(notes.starts_with(&format!("[fake ended: {end}]\n")), "{notes}");
    }
    assert_eq!(bench.file("a").as_deref(), Some("2\n"));
}

#[test]
fn one_that_has_said_all_and_stays_is_ended() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[]);
    let output = bench.call("linger").unwrap();
    assert!(!output.is_error);
    assert_eq!(texts(&output)[0], "all said");
}

#[test]
fn what_can_not_be_run_says_what_to_do() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[]);
    for (input, expected) in [
        (
            json!({ "to": "missing", "prompt": "x" }),
            "missing (program `no-such-cli`) is not installed; install it with `npm install -g fake`. fake is installed",
        ),
        (json!({ "to": "other", "prompt": "x" }), "there is no CLI `other`; there are missing, fake"),
        (json!({ "to": "fake", "prompt": " " }), "`prompt` is empty"),
        (json!({ "to": "fake", "prompt": "a\0b" }), "`prompt` is empty, has a NUL character"),
    ] {
        let output = bench.send(input).unwrap();
        assert!(output.is_error && texts(&output)[0].starts_with(expected), "{:?}", output.parts);
    }
    let wrong =
        Setup { variables: vec![("FAKE_BASE_URL", "https://10.0.0.1".to_owned())], ..Setup::default() };
    let output = Bench::with(&sandbox, &[], wrong).call("say x").unwrap();
    assert!(texts(&output)[0].contains("FAKE_BASE_URL is `https://10.0.0.1/`"), "{:?}", output.parts);
    let flags = Setup { flags: vec!["--new-flag"], ..Setup::default() };
    let output = Bench::with(&sandbox, &[], flags).call("say x").unwrap();
    assert!(output.is_error && texts(&output)[0].contains("unexpected argument '--new-flag'"));
    assert!(texts(&output)[0].contains("Its version may be another one"), "{:?}", output.parts);
}

#[test]
fn policy_is_told_of_the_command_and_its_hosts() {
    let Some(sandbox) = sandbox() else { return };
    let bench = Bench::new(&sandbox, &[]);
    let input = json!({ "to": "fake", "prompt": "rm -rf / ; $(reboot)" });
    let effects = bench.tool().effects(&input).unwrap();
    assert_eq!(effects.command.as_deref(), Some("fake"));
    assert_eq!(effects.hosts, ["api.fake.test"]);
    assert_eq!(bench.tool().summary(&input), "give fake a task: rm -rf / ; $(reboot)");
}
