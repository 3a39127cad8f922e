//! Messages while the session works, and after.

use std::sync::Arc;

use futures_util::StreamExt as _;
use journeyman_agent::{AgentError, EventFilter, RunSettings, Since, UserMessage};
use journeyman_model::{DeltaStream, Model, ModelRequest};
use journeyman_protocol::{Block, Event, ImageData, RunOutcome, Tokens};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::session::support::bench::{Bench, Session, assert_settled, auto};
use crate::session::support::model::{Told, calls, result, says};
use crate::session::support::tools::{Meet, Trail};

cases![
    one_in_mid_turn_comes_with_the_results,
    images_follow_the_text_that_they_came_with,
    one_after_the_last_word_is_a_further_turn,
    several_come_in_order_and_none_is_lost,
    every_task_has_its_own_report,
    a_report_can_be_asked_for_again,
    a_task_that_cannot_be_packed_ends_nothing_but_itself,
    a_session_that_died_says_so,
];

/// A session whose model calls a tool that waits for the gate.
fn gated(bench: Bench) -> (Bench, Arc<Notify>) {
    let gate = Arc::new(Notify::new());
    let trail = Arc::new(Trail::default());
    let wait = Meet { name: "wait", read_only: true, barrier: None, gate: Some(Arc::clone(&gate)), trail };
    (bench.with_tool(wait), gate)
}

async fn one_in_mid_turn_comes_with_the_results() {
    let (mut bench, gate) = gated(Bench::new(&[]));
    let told = Told::new([calls([("c1", "wait", json!({}))]), says("heard")]);
    let session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    session.handle.send("be careful").await.unwrap();
    gate.notify_one();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!((report.text.as_str(), report.turns), ("heard", 2));
    let heard = &told.requests()[1];
    assert_eq!(result(heard, "c1"), "c1 was here");
    assert_eq!(heard.messages.last().unwrap().text(), "be careful");
    assert_settled(&bench);
}

async fn images_follow_the_text_that_they_came_with() {
    let image = |data: &str| ImageData { media_type: "image/png".to_owned(), data: data.to_owned() };
    let message = |text: &str, data: &[&str]| UserMessage {
        text: text.to_owned(),
        images: data.iter().map(|it| image(it)).collect(),
    };
    let images = |told: &Told, request: usize| -> Vec<ImageData> {
        let newest = told.requests()[request].messages.last().unwrap().content.clone();
        let at = newest.iter().position(|block| matches!(block, Block::Image(_))).unwrap_or(newest.len());
        let found = newest[at..].iter().map(|block| match block {
            Block::Image(image) => image.clone(),
            other => panic!("{other:?} follows an image"),
        });
        found.collect()
    };
    let (mut bench, gate) = gated(Bench::new(&[]));
    let told = Told::new([calls([("c1", "wait", json!({}))]), says("seen")]);
    let session = bench.start(&told, auto());
    session.handle.send(message("what is in these?", &["YQ==", "Yg=="])).await.unwrap();
    told.asked(1).await;
    session.handle.send(message("and in this?", &["Yw=="])).await.unwrap();
    gate.notify_one();
    session.handle.wait_until_finished().await.unwrap();
    assert!(told.requests()[0].messages[0].text().contains("what is in these?"));
    assert_eq!(images(&told, 0), [image("YQ=="), image("Yg==")]);
    assert_eq!(told.requests()[1].messages.last().unwrap().text(), "and in this?");
    assert_eq!(images(&told, 1), [image("Yw==")]);
    let huge = message("and in this?", &["x".repeat(9 * 1024 * 1024).as_str()]);
    let refused = session.handle.send(huge).await;
    assert!(matches!(refused, Err(AgentError::MessageTooLong { .. })), "{refused:?}");
    assert_settled(&bench);
}

async fn one_after_the_last_word_is_a_further_turn() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("done"), says("that too")]);
    let session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    session.handle.send("and this").await.unwrap();
    // A further turn of the task, or a task of its own where that had just ended.
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.text, "that too");
    assert_eq!(told.requests()[1].messages.last().unwrap().text(), "and this");
}

async fn several_come_in_order_and_none_is_lost() {
    let (mut bench, gate) = gated(Bench::new(&[]));
    let told = Told::new([calls([("c1", "wait", json!({}))]), says("heard")]);
    let session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    let words: Vec<String> = (0..50).map(|number| format!("word {number}")).collect();
    for word in &words {
        session.handle.send(word.clone()).await.unwrap();
    }
    gate.notify_one();
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(told.requests()[1].messages.last().unwrap().text(), words.join("\n"));
}

async fn every_task_has_its_own_report() {
    let mut bench = Bench::new(&[]);
    let list = calls([("c1", "list_files", json!({}))]);
    let told = Told::new([list, says("one"), says("two"), says("three")]);
    let mut session = bench.start(&told, auto());
    for (task, text, turns) in [("first", "one", 2), ("second", "two", 1), ("third", "three", 1)] {
        session.handle.send(task).await.unwrap();
        let report = session.handle.wait_until_finished().await.unwrap();
        assert_eq!((report.text.as_str(), report.turns), (text, turns));
        assert_eq!(session.done().await, *report);
    }
    // The conversation goes on: the model hears all that was said.
    let said: Vec<String> = told.requests()[3].messages.iter().map(|message| message.text()).collect();
    assert!(said[0].contains("first"));
    assert_eq!(said[1..], ["", "", "one", "second", "two", "third"]);
}

async fn a_report_can_be_asked_for_again() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("one"), says("two")]);
    let Session { handle, .. } = bench.start(&told, auto());
    handle.send("first").await.unwrap();
    // Both wait for the same task, and one comes after it.
    let (one, other) = tokio::join!(handle.wait_until_finished(), handle.wait_until_finished());
    assert!(Arc::ptr_eq(&one.unwrap(), &other.unwrap()));
    assert_eq!(handle.wait_until_finished().await.unwrap().text, "one");
    handle.send("second").await.unwrap();
    assert_eq!(handle.wait_until_finished().await.unwrap().text, "two");
}

async fn a_task_that_cannot_be_packed_ends_nothing_but_itself() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("answered")]);
    let settings = RunSettings { context_budget: Tokens(5_000), ..auto() };
    let session = bench.start(&told, settings);
    for task in ["", "  \n", &"many words ".repeat(20_000)] {
        session.handle.send(task).await.unwrap();
        let report = session.handle.wait_until_finished().await.unwrap();
        assert_eq!((report.outcome, report.turns), (RunOutcome::Error, 0));
        assert!(report.summary.starts_with("the task "), "{}", report.summary);
    }
    session.handle.send("do it").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.text, "answered", "{}", report.summary);
    let tasks = bench.log.events().iter().filter(|event| matches!(event, Event::RunStarted { .. })).count();
    assert_eq!(tasks, 4);
}

/// Has a bug.
struct Panics;

impl Model for Panics {
    fn name(&self) -> String {
        "test/panics".to_owned()
    }

    fn stream<'a>(&'a self, _request: &'a ModelRequest, _cancel: CancellationToken) -> DeltaStream<'a> {
        futures_util::stream::once(async { panic!("a bug, as the test wants it") }).boxed()
    }
}

/// Nobody waits for a session that will never answer.
async fn a_session_that_died_says_so() {
    let mut bench = Bench::new(&[]);
    let Session { handle, mut events, .. } = bench.start(&Arc::new(Panics), auto());
    handle.send("do it").await.unwrap();
    assert!(matches!(handle.wait_until_finished().await, Err(AgentError::Ended)));
    assert!(matches!(handle.send("and this").await, Err(AgentError::Ended)));
    while events.next().await.unwrap().is_some() {}
    assert_eq!(handle.subscribe(EventFilter::all(), Since::Now).next().await.unwrap(), None);
}
