//! Messages and reminders.

use std::sync::Arc;

use journeyman_agent::{AgentError, ChecksSetting, Record, RunSettings};
use journeyman_protocol::{MessageKind, ReminderCategory, RunOutcome};
use serde_json::json;
use tokio::sync::Notify;

use crate::session::support::bench::{Bench, auto, id};
use crate::session::support::log::Failing;
use crate::session::support::model::{Told, calls, result, says};
use crate::session::support::tools::{Meet, Trail};

cases![
    case_15_a_user_message_wakes_a_reminder_waits_all_in_order,
    case_16_a_flush_that_fails_keeps_messages_and_doubles_none,
    case_37_a_message_in_mid_turn_is_never_stranded,
];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, todos: None, ..auto() }
}

async fn case_15_a_user_message_wakes_a_reminder_waits_all_in_order() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("one"), says("two")]);
    let session = bench.start(&told, settings());
    session.handle.send("first").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let before = bench.log.appends();
    session.handle.remind(ReminderCategory::General, "be brief").await.unwrap();
    session.handle.send_as(MessageKind::System, "the build is green").await.unwrap();
    session.handle.send_as(MessageKind::Reminder, "and polite").await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!((told.requests().len(), session.handle.status().queued), (1, 3), "they wake nobody");
    assert_eq!(bench.log.appends(), before + 3, "each is durable when it is sent");
    session.handle.send("second").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let heard = told.requests()[1].messages.last().unwrap().clone();
    let texts: Vec<String> = heard
        .content
        .iter()
        .map(|block| serde_json::to_value(block).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts.len(), 4, "{texts:?}");
    let wrapped = |text: &str, content: &str| {
        text.starts_with(&format!("<system-reminder>\n{content}\n")) && text.ends_with("</system-reminder>")
    };
    assert!(wrapped(&texts[0], "be brief") && wrapped(&texts[2], "and polite"), "{texts:?}");
    assert_eq!((texts[1].as_str(), texts[3].as_str()), ("the build is green", "second"));
    // All of them go into the transcript in one entry.
    let taken: Vec<usize> = bench
        .log
        .records()
        .iter()
        .filter_map(|record| match record {
            Record::Message { taken, .. } if !taken.is_empty() => Some(taken.len()),
            _ => None,
        })
        .collect();
    assert_eq!(taken, [1, 4]);
    // A flush of nothing writes nothing.
    let quiet = bench.log.appends();
    session.handle.interrupt();
    tokio::task::yield_now().await;
    assert_eq!(bench.log.appends(), quiet);
}

async fn case_16_a_flush_that_fails_keeps_messages_and_doubles_none() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("answered")]);
    let session = bench.start(&told, settings());
    session.handle.remind(ReminderCategory::General, "be brief").await.unwrap();
    // The message is on record; what takes it into the transcript is refused.
    bench.log.fail(Failing::Once(3));
    session.handle.send("do it").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().outcome, RunOutcome::Error);
    assert_eq!(told.requests().len(), 0);
    session.handle.send("carry on").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "answered");
    let heard: String = told.requests()[0].messages.iter().map(|message| message.text()).collect();
    for words in ["do it", "be brief", "carry on"] {
        assert_eq!(heard.matches(words).count(), 1, "{words}: {heard}");
    }
    let said: String = bench.state().await.messages.iter().map(|message| message.text()).collect();
    assert_eq!(said.matches("do it").count(), 1, "{said}");
    // One that is refused itself is not sent.
    bench.log.fail(Failing::From(bench.log.appends() + 1));
    assert!(matches!(session.handle.send("lost").await, Err(AgentError::Store(_))));
    assert_eq!(session.handle.status().queued, 0);
    bench.log.fail(Failing::Never);
    assert_eq!(bench.state().await.queue.len(), 0);
    assert_eq!(*session.handle.id(), id());
}

async fn case_37_a_message_in_mid_turn_is_never_stranded() {
    let gate = Arc::new(Notify::new());
    let trail = Arc::new(Trail::default());
    let wait = Meet { name: "wait", read_only: true, barrier: None, gate: Some(Arc::clone(&gate)), trail };
    let mut bench = Bench::new(&[]).with_tool(wait);
    let told = Told::new([calls([("c1", "wait", json!({}))]), says("heard").when(&gate), says("that too")]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    // While a tool runs: it goes along with the results.
    session.handle.send("one").await.unwrap();
    gate.notify_one();
    told.asked(2).await;
    let heard = &told.requests()[1];
    assert_eq!(
        (result(heard, "c1").as_str(), heard.messages.last().unwrap().text().as_str()),
        ("c1 was here", "one")
    );
    // While the model speaks its last words: it is a further turn.
    session.handle.send("two").await.unwrap();
    gate.notify_one();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "that too");
    assert_eq!(told.requests()[2].messages.last().unwrap().text(), "two");
    assert_eq!(session.handle.status().queued, 0);
}
