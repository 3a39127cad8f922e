//! Messages on their way into the transcript: durable when they are sent, and never stranded.

use std::sync::Arc;

use journeyman_agent::{AgentError, ChecksSetting, CutOffPolicy, EventFilter, RunSettings, Since, State};
use journeyman_protocol::{MessageKind, ReminderCategory};
use journeyman_store::{SqliteStore, Store};
use serde_json::json;
use tokio::sync::Notify;

use crate::session::support::bench::{Bench, Session, auto, id};
use crate::session::support::log::Failing;
use crate::session::support::model::{Told, calls, result, says};
use crate::session::support::tools::{Meet, Trail};

cases![
    one_is_durable_when_send_returns,
    one_sent_at_any_moment_is_answered_once,
    one_sent_while_the_session_closes_is_refused_or_kept,
    a_reminder_goes_along_and_prolongs_nothing,
    a_session_that_begins_with_a_reminder,
    a_reminder_that_waits_is_not_added_again,
];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, todos: None, ..auto() }
}

async fn one_is_durable_when_send_returns() {
    let open = |directory: &std::path::Path| -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&directory.join("sessions.db")).unwrap())
    };
    let mut bench = Bench::with_log(&[], open, Failing::Never);
    let gate = Arc::new(Notify::new());
    let told = Told::new([says("one").when(&gate), says("two")]);
    let session = bench.start(&told, settings());
    session.handle.send("message 0").await.unwrap();
    let mut names = Vec::new();
    for number in 1..20 {
        let kind = [MessageKind::User, MessageKind::System, MessageKind::Reminder][number % 3];
        names.push(session.handle.send_as(kind, format!("message {number}")).await.unwrap());
        // Another process looks, through a file of its own.
        let other = SqliteStore::open(&bench.outside.join("sessions.db")).unwrap();
        let state = State::load(&other, &id()).await.unwrap();
        let text = format!("{:?} {:?}", state.queue, state.messages);
        assert!(text.contains(&format!("message {number}")), "{number} is not on disk");
    }
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    gate.notify_one();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "two");
}

/// The model heard it, once.
fn heard_once(told: &Told, words: &str) -> bool {
    let last = told.requests().pop().unwrap();
    let text: Vec<String> = last.messages.iter().map(|message| message.text()).collect();
    text.join("\n").lines().filter(|line| *line == words).count() == 1
}

/// A second message at every event of the task before, its end among them, and some polls later.
async fn one_sent_at_any_moment_is_answered_once() {
    let mut bench = Bench::new(&[]);
    let told = Told::by(|request| {
        let last = request.messages.last().unwrap().text();
        if last.contains("first") && !last.contains("second") && request.messages.len() % 4 == 1 {
            calls([("c", "list_files", json!({}))])
        } else {
            says("answered")
        }
    });
    let session = bench.start(&told, settings());
    let mut tried = 0;
    for moment in 0..25_usize {
        for polls in 0..8 {
            tried += 1;
            let (first, second) = (format!("first {tried}"), format!("second {tried}"));
            let mut events = session.handle.subscribe(EventFilter::all(), Since::Now);
            session.handle.send(first.clone()).await.unwrap();
            for _ in 0..moment {
                let envelope = events.next().await.unwrap().unwrap();
                if envelope.event.kind() == "done" {
                    break;
                }
            }
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
            session.handle.send(second.clone()).await.unwrap();
            assert_eq!(
                session.handle.wait_until_finished().await.unwrap().text,
                "answered",
                "{moment} {polls}"
            );
            assert_eq!(session.handle.status().queued, 0, "{moment} {polls}");
            assert!(heard_once(&told, &second), "{moment} {polls}");
        }
    }
    assert_eq!(tried, 200);
}

async fn one_sent_while_the_session_closes_is_refused_or_kept() {
    let mut kept = 0;
    for polls in 0..20 {
        let mut bench = Bench::new(&[]);
        let told = Told::by(|_| says("answered"));
        let session = bench.start(&told, settings());
        session.handle.send("first").await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
        let closing = session.handle.clone();
        let closed = tokio::spawn(async move { closing.close().await });
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
        let sent = session.handle.send("second").await;
        closed.await.unwrap();
        drop(session);
        let again = bench.resume(&told, settings(), CutOffPolicy::Continue).await.unwrap();
        match sent {
            Ok(_) => {
                kept += 1;
                // It may have been answered before the end.
                let answered = again.handle.status().queued == 0;
                if !answered {
                    again.handle.wait_until_finished().await.unwrap();
                }
                assert!(heard_once(&told, "second"), "{polls}");
            }
            Err(AgentError::Ended) => {
                let state = bench.state().await;
                assert_eq!(state.queue.len(), 0);
                assert!(!format!("{:?}", state.messages).contains("second"), "{polls}: refused, and there");
            }
            Err(error) => panic!("{error}"),
        }
    }
    println!("{kept} of 20 were kept");
}

async fn a_reminder_goes_along_and_prolongs_nothing() {
    let gate = Arc::new(Notify::new());
    let trail = Arc::new(Trail::default());
    let wait = Meet { name: "wait", read_only: true, barrier: None, gate: Some(Arc::clone(&gate)), trail };
    let mut bench = Bench::new(&[]).with_tool(wait);
    let told = Told::new([calls([("c1", "wait", json!({}))]), says("one").when(&gate), says("two")]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    session.handle.remind(ReminderCategory::General, "mind the gap").await.unwrap();
    session.handle.send_as(MessageKind::System, "[from:Zoë] hello").await.unwrap();
    gate.notify_one();
    told.asked(2).await;
    // With the results, in order.
    let heard = &told.requests()[1];
    assert_eq!(result(heard, "c1"), "c1 was here");
    let text = heard.messages.last().unwrap().text();
    assert!(text.find("mind the gap").unwrap() < text.find("[from:Zoë] hello").unwrap(), "{text}");
    // While the model says its last words: nothing that has to be answered.
    session.handle.remind(ReminderCategory::General, "and the door").await.unwrap();
    gate.notify_one();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!((report.text.as_str(), report.turns), ("one", 2));
    assert_eq!(session.handle.status().queued, 1);
    session.handle.send("next").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    assert!(told.requests()[2].messages.last().unwrap().text().contains("and the door"));
}

async fn a_session_that_begins_with_a_reminder() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("one")]);
    let Session { handle, .. } = bench.start(&told, settings());
    handle.remind(ReminderCategory::General, "be brief").await.unwrap();
    handle.send("do it").await.unwrap();
    assert_eq!(handle.wait_until_finished().await.unwrap().text, "one");
    let text = told.requests()[0].messages[0].text();
    assert!(text.contains("do it") && text.contains("be brief"), "{text}");
}

async fn a_reminder_that_waits_is_not_added_again() {
    let gate = Arc::new(Notify::new());
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let look = || calls([("c1", "read_file", json!({ "path": "a.txt" }))]);
    let told = Told::new([look().when(&gate), look().when(&gate), says("done")]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    // Each of the first two replies takes so long that the clock strikes more than once.
    for asked in 1..=2 {
        told.asked(asked).await;
        let mut ids = Vec::new();
        for text in ["mind the gap", "mind the gap", "and the door", "mind the gap"] {
            ids.push(session.handle.remind(ReminderCategory::General, text).await.unwrap());
        }
        assert!(ids[0] == ids[1] && ids[0] == ids[3] && ids[0] != ids[2], "{ids:?}");
        gate.notify_one();
    }
    session.handle.wait_until_finished().await.unwrap();
    for heard in &told.requests()[1..] {
        let text = heard.messages.last().unwrap().text();
        assert_eq!(text.matches("mind the gap").count(), 1, "{text}");
    }
}
