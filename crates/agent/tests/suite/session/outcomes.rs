//! Every way a task can end, and the report that says so.

use std::time::Duration;

use journeyman_agent::{ChecksSetting, RunSettings};
use journeyman_model::{ModelError, Price};
use journeyman_protocol::{
    Block, FileChange, FileChangeKind, Mode, RelPath, RunOutcome, RunReport, SessionId, StopReason, Tokens,
    UnixMillis, Usage,
};
use journeyman_workspace::WorkspaceError;
use serde_json::json;

use crate::session::support::bench::{Bench, assert_settled, auto, confined, in_mode};
use crate::session::support::log::Failing;
use crate::session::support::model::{self, Step, Told, USAGE, calls, fails, says, stopped};
use crate::session::support::processes::Marker;

cases![
    every_way_to_end,
    time_is_a_limit_too,
    the_report_is_the_last_entry_of_the_log,
    a_log_that_fails_is_an_error,
    the_evidence_is_of_the_last_round,
    ignored_files_that_a_script_removed_are_told_and_given_back,
    money_is_counted_and_limits,
    a_run_that_only_reads_leaves_nothing_to_undo,
    a_run_that_writes_can_be_undone,
    a_second_task_reports_its_own_changes_only,
];

/// What a run does, and the report's fields.
struct Row {
    name: &'static str,
    steps: Vec<Step>,
    settings: RunSettings,
    /// RunOutcome, exit code, summary.
    end: (RunOutcome, u8, &'static str),
    text: &'static str,
    changes: &'static [(&'static str, FileChangeKind)],
    /// Turns, rounds of feedback, replies that were paid for.
    counts: (u32, u32, u64),
}

fn write(id: &str, path: &str) -> Step {
    calls([(id, "write_file", json!({ "path": path, "content": "new\n" }))])
}

fn cut_off(text: &str) -> Step {
    stopped(vec![Block::text(text)], StopReason::MaxTokens)
}

fn checked(command: &str) -> RunSettings {
    RunSettings { checks: ChecksSetting::Custom(vec![command.to_owned()]), ..auto() }
}

const ADDED: FileChangeKind = FileChangeKind::Added;

fn verified() -> Vec<Row> {
    vec![
        Row {
            name: "verified",
            steps: vec![write("c1", "a.txt"), says("written")],
            settings: checked("test -f a.txt"),
            end: (RunOutcome::Verified, 0, "verified by `test -f a.txt`"),
            text: "written",
            changes: &[("a.txt", ADDED)],
            counts: (2, 0, 2),
        },
        Row {
            name: "verified after feedback",
            steps: vec![write("c1", "a.txt"), says("written"), write("c2", "b.txt"), says("repaired")],
            settings: checked("test -f b.txt"),
            end: (RunOutcome::Verified, 0, "verified by `test -f b.txt`"),
            text: "repaired",
            changes: &[("a.txt", ADDED), ("b.txt", ADDED)],
            counts: (4, 1, 4),
        },
    ]
}

fn failing() -> Vec<Row> {
    vec![
        Row {
            name: "checks fail without feedback",
            steps: vec![write("c1", "a.txt"), says("written")],
            settings: RunSettings { max_iterations: 0, ..checked("false") },
            end: (RunOutcome::ChecksFail, 3, "finished, but checks fail"),
            text: "written",
            changes: &[("a.txt", ADDED)],
            counts: (2, 0, 2),
        },
        Row {
            name: "checks fail after feedback",
            steps: vec![write("c1", "a.txt"), says("written"), says("it can't be done"), says("really not")],
            settings: RunSettings { max_iterations: 2, ..checked("false") },
            end: (RunOutcome::ChecksFail, 3, "finished, but checks fail after 2 rounds of feedback"),
            text: "really not",
            changes: &[("a.txt", ADDED)],
            counts: (4, 2, 4),
        },
    ]
}

fn unverified() -> Vec<Row> {
    vec![
        Row {
            name: "no check wanted",
            steps: vec![write("c1", "a.txt"), says("written")],
            settings: RunSettings { checks: ChecksSetting::Off, ..auto() },
            end: (RunOutcome::Unverified, 4, "finished; no check was run (--no-check)"),
            text: "written",
            changes: &[("a.txt", ADDED)],
            counts: (2, 0, 2),
        },
        Row {
            name: "no check found",
            steps: vec![write("c1", "a.txt"), says("written")],
            settings: RunSettings { checks: ChecksSetting::Found, ..auto() },
            end: (
                RunOutcome::Unverified,
                4,
                "finished; no check was found in the project, so nothing verified it (name one with --check)",
            ),
            text: "written",
            changes: &[("a.txt", ADDED)],
            counts: (2, 0, 2),
        },
        Row {
            name: "nothing changed",
            steps: vec![says("nothing to do")],
            settings: checked("false"),
            end: (RunOutcome::Unverified, 4, "finished; no file changed, so there was nothing to verify"),
            text: "nothing to do",
            changes: &[],
            counts: (1, 0, 1),
        },
        Row {
            name: "plan mode",
            steps: vec![says("the plan")],
            settings: in_mode(Mode::Plan),
            end: (RunOutcome::Answered, 0, "answered; nothing is changed in plan mode"),
            text: "the plan",
            changes: &[],
            counts: (1, 0, 1),
        },
    ]
}

fn cut_short() -> Vec<Row> {
    vec![
        Row {
            name: "turns",
            steps: vec![write("c1", "a.txt"), write("c2", "b.txt"), write("c3", "c.txt")],
            settings: RunSettings { max_turns: 2, ..auto() },
            end: (RunOutcome::Limit, 5, "the limit of 2 turns was reached (--max-turns)"),
            text: "",
            changes: &[("a.txt", ADDED), ("b.txt", ADDED)],
            counts: (2, 0, 2),
        },
        Row {
            name: "replies cut off",
            steps: vec![cut_off("one"), cut_off("two"), cut_off("three"), says("never said")],
            settings: auto(),
            end: (
                RunOutcome::Limit,
                5,
                "the reply was cut off at the output limit (10 tokens), 3 times in a row; --max-output-tokens may \
                 raise it",
            ),
            text: "three",
            changes: &[],
            counts: (3, 0, 3),
        },
        Row {
            name: "a cut-off reply goes on",
            steps: vec![cut_off("one"), cut_off("two"), says("three"), says("never said")],
            settings: auto(),
            end: (RunOutcome::Unverified, 4, "finished; no file changed, so there was nothing to verify"),
            text: "three",
            changes: &[],
            counts: (3, 0, 3),
        },
    ]
}

fn permission_needed() -> Vec<Row> {
    let touch = |id: &str| calls([(id, "run_command", json!({ "command": "touch -f made" }))]);
    vec![
        Row {
            name: "permission needed three times",
            steps: vec![touch("c1"), touch("c2"), touch("c3"), says("never said")],
            settings: in_mode(Mode::Edit),
            end: (
                RunOutcome::PermissionNeeded,
                6,
                "a permission was needed and there was nobody to ask; run it in a terminal, or with a wider --mode",
            ),
            text: "",
            changes: &[],
            counts: (3, 0, 3),
        },
        Row {
            name: "permission needed and given up",
            steps: vec![touch("c1"), says("it needs a command")],
            settings: in_mode(Mode::Edit),
            end: (
                RunOutcome::PermissionNeeded,
                6,
                "a permission was needed and there was nobody to ask; nothing was changed",
            ),
            text: "it needs a command",
            changes: &[],
            counts: (2, 0, 2),
        },
        Row {
            name: "permission needed and another way found",
            steps: vec![touch("c1"), write("c2", "made"), says("written instead")],
            settings: RunSettings { mode: Mode::Edit, ..checked("test -f made") },
            end: (RunOutcome::Verified, 0, "verified by `test -f made`"),
            text: "written instead",
            changes: &[("made", ADDED)],
            counts: (3, 0, 3),
        },
    ]
}

fn errors() -> Vec<Row> {
    vec![
        Row {
            name: "an error after a change",
            steps: vec![write("c1", "a.txt"), fails(ModelError::Protocol("it hung up".to_owned()))],
            settings: auto(),
            end: (RunOutcome::Error, 1, "not what the protocol allows: it hung up"),
            text: "",
            changes: &[("a.txt", ADDED)],
            counts: (2, 0, 1),
        },
        Row {
            name: "an error before the reply",
            steps: vec![fails(ModelError::Overloaded { message: "later".to_owned() })],
            settings: auto(),
            end: (RunOutcome::Error, 1, "the provider is overloaded: later"),
            text: "",
            changes: &[],
            counts: (1, 0, 0),
        },
    ]
}

async fn every_way_to_end() {
    if !confined().await {
        return;
    }
    let rows = [verified(), failing(), unverified(), cut_short(), permission_needed(), errors()];
    for row in rows.into_iter().flatten() {
        let mut bench = Bench::new(&[]);
        let mut report = (*bench.run(&Told::new(row.steps), row.settings).await).clone();
        assert_eq!(report.diff.is_empty(), row.changes.is_empty(), "{}: {}", row.name, report.diff);
        let change = |(path, kind): &(&str, FileChangeKind)| FileChange {
            path: RelPath::parse(path).unwrap(),
            kind: *kind,
        };
        assert_eq!(report.diffstat.len(), row.changes.len(), "{}", row.name);
        report.diffstat.clear();
        // What varies is looked at elsewhere.
        (report.duration_ms, report.diff, report.evidence) = (0, String::new(), Vec::new());
        assert_eq!(report.tree.take().is_some(), report.outcome == RunOutcome::Verified, "{}", row.name);
        let session = SessionId::new(UnixMillis(1_700_000_000_000), 7);
        let expected = RunReport {
            undo: (!row.changes.is_empty()).then(|| format!("jm undo {session}")),
            session,
            outcome: row.end.0,
            exit_code: row.end.1,
            summary: row.end.2.to_owned(),
            context_exceeded: false,
            text: row.text.to_owned(),
            changes: row.changes.iter().map(change).collect(),
            diff: String::new(),
            diffstat: Vec::new(),
            violations: Vec::new(),
            findings: Vec::new(),
            strength: None,
            evidence: Vec::new(),
            tree: None,
            iterations: row.counts.1,
            turns: row.counts.0,
            usage: times(row.counts.2),
            cost_usd: None,
            model: "test/told".to_owned(),
            copy: None,
            commit: None,
            agent: None,
            plan: None,
            candidates: Vec::new(),
            duration_ms: 0,
        };
        assert_eq!(report, expected, "{}", row.name);
        assert_settled(&bench);
    }
}

fn times(replies: u64) -> Usage {
    let by = |tokens: Tokens| Tokens(tokens.0 * replies);
    Usage { input: by(USAGE.input), output: by(USAGE.output), ..Usage::default() }
}

/// Whatever the task is at when its time is over: nothing has begun, the model thinks, a command
/// runs.
async fn time_is_a_limit_too() {
    let marker = Marker::new();
    let command = marker.command();
    for (milliseconds, time) in [(0, "0 s"), (1, "1 ms"), (10, "10 ms"), (100, "100 ms")] {
        for step in [model::stalls(), calls([("c1", "run_command", json!({ "command": command }))])] {
            let mut bench = Bench::new(&[]);
            let settings = RunSettings { timeout: Duration::from_millis(milliseconds), ..auto() };
            let report = bench.run(&Told::new([step, model::stalls()]), settings).await;
            let summary = format!("time ran out after {time}");
            let ended = (report.outcome, report.exit_code, report.summary.clone());
            assert_eq!(ended, (RunOutcome::Limit, 5, summary));
            assert_eq!(marker.alive(), 0);
            assert_settled(&bench);
        }
    }
}

async fn the_report_is_the_last_entry_of_the_log() {
    let mut bench = Bench::new(&[]);
    let settings = RunSettings { checks: ChecksSetting::Off, ..in_mode(Mode::Edit) };
    let report = bench.run(&Told::new([write("c1", "a.txt"), says("written")]), settings).await;
    let last = bench.log.events().pop().unwrap();
    assert_eq!(last, journeyman_protocol::Event::Done { report: Box::new((*report).clone()) });
    assert!(report.diff.contains("+++ b/a.txt") && report.diff.contains("\n+new\n"), "{}", report.diff);
}

async fn a_log_that_fails_is_an_error() {
    // The first is the message's own.
    let mut bench = Bench::failing(&[], Failing::From(2));
    let told = Told::new([says("never said")]);
    let report = bench.run(&told, auto()).await;
    assert_eq!((report.outcome, report.exit_code, told.requests().len()), (RunOutcome::Error, 1, 0));
    assert!(report.summary.starts_with("the session log could not be written"), "{}", report.summary);
}

async fn the_evidence_is_of_the_last_round() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[]);
    let commands = vec!["test -f b.txt".to_owned(), "echo seen; test -f a.txt".to_owned()];
    let settings = RunSettings { checks: ChecksSetting::Custom(commands), ..auto() };
    let told = Told::new([write("c1", "a.txt"), says("one"), write("c2", "b.txt"), says("two")]);
    let report = bench.run(&told, settings).await;
    let ran: Vec<(&str, bool)> =
        report.evidence.iter().map(|one| (one.command.as_str(), one.outcome.has_passed())).collect();
    assert_eq!(ran, [("test -f b.txt", true), ("echo seen; test -f a.txt", true)]);
    assert_eq!(report.summary, "verified by `test -f b.txt`, `echo seen; test -f a.txt`");
    // What failed is fed back in words, with the command that failed.
    let fed_back = told.requests()[2].messages.last().unwrap().text();
    assert!(fed_back.contains("test -f b.txt"), "{fed_back}");
}

async fn ignored_files_that_a_script_removed_are_told_and_given_back() {
    if !confined().await {
        return;
    }
    let script = "for file in .e* *.sqlite; do rm $file; done\n";
    let mut bench = Bench::new(&[
        (".gitignore", ".env\n*.sqlite\n"),
        (".env", "KEY=1"),
        ("a.sqlite", "rows"),
        ("w.sh", script),
    ]);
    let told = Told::new([calls([("c1", "run_command", json!({ "command": "sh w.sh" }))]), says("done")]);
    let report = bench.run(&told, auto()).await;
    assert_eq!(
        report.summary,
        "finished; only ignored files changed, so there was nothing to verify; ignored files of the run: \
         .env (deleted), a.sqlite (deleted)"
    );
    assert!(report.undo.is_some());
    assert_eq!(bench.undo().unwrap(), [".env", "a.sqlite"]);
}

/// The run stops before the request that would come after the budget is spent.
async fn money_is_counted_and_limits() {
    // A reply costs $0.0001 + $0.00002.
    let price = Price { input: 1.0, output: 2.0, cache_read: 0.0, cache_write: 0.0 };
    let read = |id: &str| calls([(id, "list_files", json!({}))]);
    let rows: [(Option<f64>, RunOutcome, u32, &str); 3] = [
        (None, RunOutcome::Unverified, 3, "finished; no file changed, so there was nothing to verify"),
        (Some(1.0), RunOutcome::Unverified, 3, "finished; no file changed, so there was nothing to verify"),
        (Some(0.0002), RunOutcome::Limit, 2, "the budget of $0.00 was spent ($0.0002; --budget)"),
    ];
    for (budget_usd, outcome, turns, summary) in rows {
        let mut bench = Bench::new(&[]);
        let settings = RunSettings { price: Some(price), budget_usd, ..auto() };
        let report = bench.run(&Told::new([read("c1"), read("c2"), says("read")]), settings).await;
        assert_eq!((report.outcome, report.turns, report.summary.as_str()), (outcome, turns, summary));
        let cost = report.cost_usd.unwrap();
        assert!((cost - 0.00012 * f64::from(turns)).abs() < 1e-12, "{cost}");
    }
}

async fn a_run_that_only_reads_leaves_nothing_to_undo() {
    let mut bench = Bench::new(&[("a.txt", "text\n"), ("src/b.txt", "more\n")]);
    let told = Told::new([
        calls([
            ("c1", "read_file", json!({ "path": "a.txt" })),
            ("c2", "list_files", json!({})),
            ("c3", "search_text", json!({ "pattern": "more" })),
        ]),
        says("read"),
    ]);
    let report = bench.run(&told, auto()).await;
    assert_eq!((report.outcome, report.undo.as_deref()), (RunOutcome::Unverified, None));
    assert!(matches!(bench.undo(), Err(WorkspaceError::NothingToUndo { .. })));
}

async fn a_run_that_writes_can_be_undone() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "old\n")]);
    let edit = json!({ "path": "a.txt", "search": "old", "replace": "new" });
    let told = Told::new([
        calls([
            ("c1", "edit_file", edit),
            ("c2", "write_file", json!({ "path": "b.txt", "content": "b\n" })),
            ("c3", "run_command", json!({ "command": "echo c > c.txt" })),
        ]),
        says("written"),
    ]);
    let report = bench.run(&told, auto()).await;
    assert_eq!(report.outcome, RunOutcome::Verified, "{} {}", report.summary, told.heard());
    assert_eq!(bench.file("c.txt").as_deref(), Some("c\n"));
    let mut restored = bench.undo().unwrap();
    restored.sort();
    assert_eq!(restored, ["a.txt", "b.txt", "c.txt"]);
    let tree = ["a.txt", "b.txt", "c.txt"].map(|name| bench.file(name));
    assert_eq!(tree, [Some("old\n".to_owned()), None, None]);
}

async fn a_second_task_reports_its_own_changes_only() {
    let mut bench = Bench::new(&[("a.txt", "old\n")]);
    let edit = json!({ "path": "a.txt", "search": "old", "replace": "new" });
    let told = Told::new([
        calls([("c1", "edit_file", edit)]),
        says("one"),
        write("c2", "b.txt"),
        says("two"),
        says("three"),
    ]);
    let session = bench.start(&told, RunSettings { checks: ChecksSetting::Off, ..auto() });
    let mut reports = Vec::new();
    for task in ["first", "second", "third"] {
        session.handle.send(task).await.unwrap();
        reports.push(session.handle.wait_until_finished().await.unwrap());
    }
    let changed = |report: &RunReport| -> Vec<String> {
        report.changes.iter().map(|change| change.path.to_string()).collect()
    };
    assert_eq!(changed(&reports[0]), ["a.txt"]);
    assert_eq!(changed(&reports[1]), ["b.txt"]);
    assert!(!reports[1].diff.contains("a.txt"), "{}", reports[1].diff);
    assert_eq!((changed(&reports[2]).len(), reports[2].diff.as_str()), (0, ""));
    assert_eq!(reports[2].undo, None);
}
