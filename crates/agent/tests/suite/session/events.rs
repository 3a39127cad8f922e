//! What subscribers see.

use std::sync::Arc;

use journeyman_agent::{ChecksSetting, EventFilter, RunSettings, Since, load_events};
use journeyman_model::Delta;
use journeyman_protocol::{Envelope, Event, Mode, Seq};
use serde_json::json;
use tokio::sync::Notify;

use crate::session::support::bench::{Bench, Session, auto, confined, in_mode};
use crate::session::support::model::{Told, calls, piece, says};
use crate::session::support::tools::{Meet, Trail};

cases![
    entries_are_numbered_and_deltas_are_not,
    the_way_of_a_run,
    every_event_survives_json,
    offsets_say_where_a_piece_belongs,
    a_restart_voids_what_was_streamed,
    one_that_lags_misses_no_entry_and_sees_none_twice,
    one_that_lags_sees_no_delta_of_a_block_that_it_has,
    one_that_comes_late_sees_only_what_follows,
    it_ends_with_the_session,
];

fn write(path: &str) -> serde_json::Value {
    json!({ "path": path, "content": "new\n" })
}

/// A run with edits, commands, output, checks, feedback and text.
async fn busy() -> (Bench, Session) {
    let mut bench = Bench::new(&[]);
    let told = Told::new([
        calls([
            ("c1", "write_file", write("a.txt")),
            ("c2", "run_command", json!({ "command": "echo said" })),
        ])
        .after(vec![piece("first "), piece("this")]),
        says("written").after(vec![piece("writ"), piece("ten")]),
        calls([("c3", "write_file", write("b.txt"))]),
        says("repaired"),
    ]);
    let settings = RunSettings { checks: ChecksSetting::Custom(vec!["test -f b.txt".to_owned()]), ..auto() };
    let mut session = bench.start(&told, settings);
    session.handle.send("do it").await.unwrap();
    session.done().await;
    (bench, session)
}

/// The log's own view of a session's events.
async fn logged(bench: &Bench, session: &Session) -> Vec<Envelope> {
    load_events(&*bench.log, session.handle.id(), Seq::START, usize::MAX).await.unwrap()
}

fn numbered(shown: &[Arc<Envelope>]) -> Vec<Envelope> {
    shown.iter().filter(|envelope| envelope.seq.is_some()).map(|envelope| (**envelope).clone()).collect()
}

async fn entries_are_numbered_and_deltas_are_not() {
    if !confined().await {
        return;
    }
    let (bench, session) = busy().await;
    for envelope in &session.shown {
        assert_eq!(envelope.seq.is_none(), envelope.event.is_live_only(), "{envelope:?}");
        assert_eq!(envelope.channel, envelope.event.channel());
    }
    assert!(session.shown.iter().any(|envelope| envelope.seq.is_none()));
    let seqs: Vec<u64> = session.shown.iter().filter_map(|envelope| envelope.seq).map(|seq| seq.0).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    assert_eq!(numbered(&session.shown), logged(&bench, &session).await);
    let all: Vec<u64> = bench.log.entries().iter().map(|entry| entry.seq.0).collect();
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
}

async fn the_way_of_a_run() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([calls([("c1", "write_file", write("a.txt"))]), says("written")]);
    let settings = RunSettings { checks: ChecksSetting::Off, ..in_mode(Mode::Edit) };
    let mut session = bench.start(&told, settings);
    session.handle.send("do it").await.unwrap();
    session.done().await;
    let kinds: Vec<&str> = session.shown.iter().map(|envelope| envelope.event.kind()).collect();
    let way = [
        "run_started",
        "state_changed",
        "context_packed",
        "turn_phase_changed",
        "turn_started",
        "turn_phase_changed",
        "turn_finished",
        "token_usage",
        "cost",
        "tool_start",
        "turn_phase_changed",
        "turn_phase_changed",
        "checkpoint",
        "turn_phase_changed",
        "file_edited",
        "tool_end",
        "tool_executed",
        "turn_phase_changed",
        "step_complete",
        "turn_phase_changed",
        "turn_started",
        "turn_phase_changed",
        "turn_finished",
        "token_usage",
        "cost",
        "step_complete",
        "state_changed",
        "turn_phase_changed",
        "done",
    ];
    assert_eq!(kinds, way);
}

async fn every_event_survives_json() {
    if !confined().await {
        return;
    }
    let (_bench, session) = busy().await;
    for envelope in &session.shown {
        let json = serde_json::to_string(&**envelope).unwrap();
        assert_eq!(&serde_json::from_str::<Envelope>(&json).unwrap(), &**envelope, "{json}");
        assert!(json.contains(&format!("\"event\":\"{}\"", envelope.event.kind())), "{json}");
    }
}

/// The pieces of a block, put together by their offsets, are a prefix of the whole.
async fn offsets_say_where_a_piece_belongs() {
    let mut bench = Bench::new(&[]);
    let other = |text: &str| Delta::Thinking { block: 1, text: text.to_owned() };
    let deltas = vec![piece("größ"), other("hm"), piece("er"), other(" ja"), piece(" als")];
    let mut session = bench.start(&Told::new([says("größer als").after(deltas)]), auto());
    session.handle.send("do it").await.unwrap();
    session.done().await;
    let mut blocks = [String::new(), String::new()];
    for envelope in &session.shown {
        let (Event::TextDelta { block, offset, text } | Event::ThinkingDelta { block, offset, text }) =
            &envelope.event
        else {
            continue;
        };
        let so_far = &mut blocks[*block as usize];
        assert_eq!(so_far.len() as u64, *offset);
        so_far.push_str(text);
    }
    assert_eq!(blocks, ["größer als", "hm ja"]);
}

async fn a_restart_voids_what_was_streamed() {
    let mut bench = Bench::new(&[]);
    let reason = "the connection broke".to_owned();
    let restart = Delta::Restart { attempt: 2, of: 4, wait_ms: 10, reason: reason.clone() };
    let told = Told::new([says("right").after(vec![piece("wrung "), restart, piece("right")])]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    let report = session.done().await;
    assert_eq!(report.text, "right");
    let shown: Vec<&Event> = session.shown.iter().map(|envelope| &envelope.event).collect();
    let retry = Event::Retry { attempt: 2, of: 4, wait_ms: 10, reason };
    let place = shown.iter().position(|event| **event == retry).unwrap();
    let first_piece = |events: &[&Event]| {
        events.iter().find_map(|event| match event {
            Event::TextDelta { offset, text, .. } => Some((*offset, text.trim().to_owned())),
            _ => None,
        })
    };
    assert_eq!(first_piece(&shown[..place]), Some((0, "wrung".to_owned())));
    assert_eq!(first_piece(&shown[place..]), Some((0, "right".to_owned())));
    assert!(!bench.log.text().contains("wrung"));
}

/// More pieces than a subscriber may fall behind.
fn flood() -> Vec<Delta> {
    (0..5_000).map(|number| piece(&format!("{number} "))).collect()
}

async fn one_that_lags_misses_no_entry_and_sees_none_twice() {
    let mut bench = Bench::new(&[]);
    let list = |id| calls([(id, "list_files", json!({}))]);
    let told = Told::new([list("c1").after(flood()), list("c2"), says("done").after(flood())]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    // Nobody listens until all is over.
    session.handle.wait_until_finished().await.unwrap();
    session.done().await;
    assert_eq!(numbered(&session.shown), logged(&bench, &session).await);
}

/// A block that was re-read from the log is whole; its pieces, still on their way, would double it.
async fn one_that_lags_sees_no_delta_of_a_block_that_it_has() {
    let gate = Arc::new(Notify::new());
    let trail = Arc::new(Trail::default());
    let wait = Meet { name: "wait", read_only: true, barrier: None, gate: Some(Arc::clone(&gate)), trail };
    let mut bench = Bench::new(&[]).with_tool(wait);
    let told = Told::new([
        calls([("c1", "wait", json!({}))]).after(flood()),
        says("last").after(vec![piece("last ")]),
    ]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    // It finds that it lags, and begins to re-read, while the first turn is not over.
    session.until(|event| matches!(event, Event::RunStarted { .. })).await;
    gate.notify_one();
    session.handle.wait_until_finished().await.unwrap();
    session.done().await;
    let mut finished = 0;
    for envelope in &session.shown {
        match &envelope.event {
            Event::TurnFinished { .. } => finished += 1,
            Event::TextDelta { text, .. } => {
                assert!(finished < if text.starts_with("last") { 2 } else { 1 }, "{text} comes late");
            }
            _ => {}
        }
    }
    assert_eq!(numbered(&session.shown), logged(&bench, &session).await);
}

async fn one_that_comes_late_sees_only_what_follows() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("one"), says("two").after(flood())]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    session.done().await;
    let cut = session.shown.last().unwrap().seq.unwrap();
    let mut late = Session {
        events: session.handle.subscribe(EventFilter::all(), Since::Now),
        shown: Vec::new(),
        ..session
    };
    late.handle.send("and this").await.unwrap();
    late.handle.wait_until_finished().await.unwrap();
    late.done().await;
    let all = logged(&bench, &late).await;
    let expected: Vec<Envelope> = all.into_iter().filter(|envelope| envelope.seq > Some(cut)).collect();
    assert_eq!(numbered(&late.shown), expected);
    assert!(cut > Seq::START);
}

async fn it_ends_with_the_session() {
    let mut bench = Bench::new(&[]);
    let mut session = bench.start(&Told::new([says("done")]), auto());
    session.handle.send("do it").await.unwrap();
    session.done().await;
    let Session { handle, mut events, .. } = session;
    drop(handle);
    assert_eq!(events.next().await.unwrap(), None);
    assert_eq!(events.next().await.unwrap(), None);
}
