//! A run that goes in circles is told so twice and then stopped; one that comes forward is left
//! alone.

use journeyman_agent::{ChecksSetting, RunSettings};
use journeyman_protocol::{Event, ReminderCategory, RunOutcome};
use serde_json::json;

use crate::session::support::bench::{Bench, auto};
use crate::session::support::model::{Told, call, calls_of, says};

cases![
    the_same_call_over_and_over_ends,
    two_calls_by_turns_end_too,
    a_hundred_similar_calls_that_advance_pass,
    it_can_be_turned_off,
];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, todos: None, ..auto() }
}

fn warnings(bench: &Bench) -> usize {
    let warning = |event: &Event| matches!(event, Event::ReminderSent { category, .. } if *category == ReminderCategory::Progress);
    bench.log.events().iter().filter(|event| warning(event)).count()
}

async fn the_same_call_over_and_over_ends() {
    let mut bench = Bench::new(&[("a.txt", "the same\n")]);
    let told = Told::by(|request| {
        let id = format!("c{}", request.messages.len());
        calls_of(vec![call(&id, "read_file", json!({ "path": "a.txt" }))])
    });
    let report = bench.run(&told, settings()).await;
    assert_eq!(report.outcome, RunOutcome::Limit, "{}", report.summary);
    assert_eq!(warnings(&bench), 2, "{}", report.summary);
    assert!(report.turns < 40, "{} turns: {}", report.turns, report.summary);
    assert!(!report.summary.contains("--max-turns"), "{}", report.summary);
    assert!(
        told.requests().last().unwrap().messages.iter().any(|one| one.text().contains("<system-reminder>"))
    );
}

/// Each undoes what the other did: the tree is where it was.
async fn two_calls_by_turns_end_too() {
    let mut bench = Bench::new(&[("a.txt", "one\n")]);
    let told = Told::by(|request| {
        let turn = request.messages.len() / 2;
        let (from, to) = if turn % 2 == 0 { ("one", "two") } else { ("two", "one") };
        let input = json!({ "path": "a.txt", "search": from, "replace": to });
        calls_of(vec![call(&format!("c{turn}"), "edit_file", input)])
    });
    let report = bench.run(&told, settings()).await;
    assert_eq!(report.outcome, RunOutcome::Limit, "{}", report.summary);
    assert_eq!(warnings(&bench), 2, "{}", report.summary);
    assert!(report.turns < 60, "{} turns", report.turns);
}

async fn a_hundred_similar_calls_that_advance_pass() {
    let mut bench = Bench::new(&[]);
    let step = |number: usize| {
        let input = json!({ "path": format!("part-{number}.txt"), "content": format!("part {number}\n") });
        calls_of(vec![call(&format!("c{number}"), "write_file", input)])
    };
    let told = Told::new((0..100).map(step).chain([says("done")]));
    let settings = RunSettings { max_turns: 200, ..settings() };
    let report = bench.run(&told, settings).await;
    assert_eq!(
        (report.outcome, report.text.as_str()),
        (RunOutcome::Unverified, "done"),
        "{}",
        report.summary
    );
    assert_eq!((report.changes.len(), warnings(&bench)), (100, 0));
}

async fn it_can_be_turned_off() {
    let mut bench = Bench::new(&[("a.txt", "the same\n")]);
    let read =
        |number: usize| calls_of(vec![call(&format!("c{number}"), "read_file", json!({ "path": "a.txt" }))]);
    let told = Told::new((0..60).map(read).chain([says("done")]));
    let settings = RunSettings { loop_guard: false, ..settings() };
    assert_eq!(bench.run(&told, settings).await.text, "done");
    assert_eq!(warnings(&bench), 0);
}
