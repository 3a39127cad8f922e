//! New sessions from others' logs.

use std::sync::Arc;

use journeyman_agent::{AgentError, ChecksSetting, CutOffPolicy, ForkPoint, RunSettings, State, fork};
use journeyman_protocol::{CallState, MessageKind, RunOutcome, Seq, SessionId};
use serde_json::json;
use tokio::sync::Notify;

use crate::session::support::bench::{Bench, NOW, auto, id};
use crate::session::support::model::{Told, calls, says};
use crate::session::support::tools::{Meet, Trail};

cases![
    in_the_middle_of_a_task,
    at_every_place_of_a_log,
    of_a_fork,
    of_nothing,
    a_pinned_text_that_waits_is_told_in_the_fork
];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, ..auto() }
}

fn child(number: u64) -> SessionId {
    SessionId::new(NOW, number)
}

async fn in_the_middle_of_a_task() {
    let gate = Arc::new(Notify::new());
    let trail = Arc::new(Trail::default());
    let wait = Meet { name: "wait", read_only: true, barrier: None, gate: Some(Arc::clone(&gate)), trail };
    let mut bench = Bench::new(&[]).with_tool(wait);
    let told = Told::new([calls([("c1", "wait", json!({}))]), says("the parent's end")]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    bench.log.executing("c1").await;
    session.handle.send_as(MessageKind::System, "for the parent").await.unwrap();
    let before = bench.log.entries();
    let at = fork(&*bench.log, &id(), &ForkPoint::End, &child(8), &journeyman_agent::Clock::new(|| NOW))
        .await
        .unwrap();
    assert!(at < before.last().unwrap().seq, "the last place at which no call was open");
    assert_eq!(bench.log.entries(), before);

    let other = Told::new([says("the child's end")]);
    let forked = bench.resume_id(&other, settings(), child(8), CutOffPolicy::Continue).await.unwrap();
    forked.handle.send("something else").await.unwrap();
    assert_eq!(forked.handle.wait_until_finished().await.unwrap().text, "the child's end");
    let heard = &other.requests()[0];
    assert!(heard.messages.iter().all(|message| message.tool_uses().next().is_none()), "{heard:?}");
    let text = format!("{:?}", heard.messages);
    assert!(text.contains("do it") && text.contains("something else") && !text.contains("for the parent"));

    gate.notify_one();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "the parent's end");
    assert_eq!(bench.log.states("c1").last(), Some(&CallState::Completed));
    let parent = bench.state().await;
    assert_eq!((parent.lineage.len(), parent.outcome), (0, Some(RunOutcome::Unverified)));
}

/// Wherever it is forked, the child begins where every call is answered, and answers.
async fn at_every_place_of_a_log() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let read = |id| (id, "read_file", json!({ "path": "a.txt" }));
    let told = Told::new([calls([read("c1"), read("c2")]), calls([read("c3")]), says("one"), says("two")]);
    let session = bench.start(&told, settings());
    for task in ["first", "second"] {
        session.handle.send(task).await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
    }
    let entries = bench.log.entries();
    let mut places = Vec::new();
    for (number, entry) in (100..).zip(&entries) {
        let forked = fork(
            &*bench.log,
            &id(),
            &ForkPoint::Seq(entry.seq),
            &child(number),
            &journeyman_agent::Clock::new(|| NOW),
        )
        .await;
        let at = match forked {
            Ok(at) => at,
            Err(AgentError::NothingToFork { .. }) if places.is_empty() => continue,
            Err(error) => panic!("at {}: {error}", entry.seq),
        };
        assert!(at <= entry.seq);
        let state = State::load(&*bench.log, &child(number)).await.unwrap();
        assert!(state.is_settled() && state.task.is_none() && state.queue.is_empty(), "at {}", entry.seq);
        let told = Told::new([says("here")]);
        let forked = bench.resume_id(&told, settings(), child(number), CutOffPolicy::Continue).await.unwrap();
        forked.handle.send("and?").await.unwrap();
        assert_eq!(forked.handle.wait_until_finished().await.unwrap().text, "here", "at {}", entry.seq);
        places.push(at);
    }
    assert!(places.windows(2).all(|pair| pair[0] <= pair[1]), "{places:?}");
    assert_eq!(places.last(), entries.last().map(|entry| &entry.seq), "the end is such a place");
    assert_eq!(bench.log.entries(), entries);
}

async fn of_a_fork() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([says("one")]), settings());
    session.handle.send("first").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    fork(&*bench.log, &id(), &ForkPoint::End, &child(8), &journeyman_agent::Clock::new(|| NOW))
        .await
        .unwrap();
    fork(&*bench.log, &child(8), &ForkPoint::End, &child(9), &journeyman_agent::Clock::new(|| NOW))
        .await
        .unwrap();
    let state = State::load(&*bench.log, &child(9)).await.unwrap();
    assert_eq!(state.lineage, [id(), child(8)]);
    assert_eq!(state.messages, bench.state().await.messages);
    let taken =
        fork(&*bench.log, &id(), &ForkPoint::End, &child(9), &journeyman_agent::Clock::new(|| NOW)).await;
    assert!(matches!(taken, Err(AgentError::Store(_))), "{taken:?}");
}

async fn a_pinned_text_that_waits_is_told_in_the_fork() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([says("one")]), settings());
    session.handle.send("first").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    session.handle.pin("never touch quay-77").await.unwrap();
    fork(&*bench.log, &id(), &ForkPoint::End, &child(8), &journeyman_agent::Clock::new(|| NOW))
        .await
        .unwrap();
    drop(session);
    let other = Told::new([says("two")]);
    let forked = bench.resume_id(&other, settings(), child(8), CutOffPolicy::Continue).await.unwrap();
    assert_eq!(forked.handle.pinned().await.unwrap(), ["never touch quay-77"]);
    forked.handle.send("second").await.unwrap();
    forked.handle.wait_until_finished().await.unwrap();
    let heard = format!("{:?}", other.requests()[0].messages);
    assert!(heard.contains("never touch quay-77") && heard.contains("second"), "{heard}");
}

async fn of_nothing() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("one")]);
    let unknown =
        fork(&*bench.log, &id(), &ForkPoint::End, &child(8), &journeyman_agent::Clock::new(|| NOW)).await;
    assert!(matches!(unknown, Err(AgentError::Store(_))), "{unknown:?}");
    let session = bench.start(&told, settings());
    session.handle.send("first").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let early =
        fork(&*bench.log, &id(), &ForkPoint::Seq(Seq(1)), &child(8), &journeyman_agent::Clock::new(|| NOW))
            .await;
    assert!(matches!(early, Err(AgentError::NothingToFork { .. })), "{early:?}");
}
