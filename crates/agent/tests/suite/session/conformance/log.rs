//! Subscriptions, a store that fails, numbers over restarts, a damaged file.

use std::sync::Arc;

use journeyman_agent::{Checks, CutOffPolicy, EventFilter, RunSettings, Since, events};
use journeyman_protocol::{Channel, Envelope, Event, RunOutcome, Seq};
use journeyman_store::{SqliteStore, Store};
use serde_json::json;

use crate::session::support::bench::{Bench, Session, auto, id};
use crate::session::support::log::Failing;
use crate::session::support::model::{Told, calls, says};
use crate::session::support::processes::eventually;

cases![
    case_12_a_subscription_gets_its_kinds_only_in_order,
    case_13_a_bookmark_replays_what_came_after_it,
    case_14_what_the_store_refuses_is_kept_and_written_later,
    case_38_numbers_rise_over_restarts_and_a_bookmark_holds,
    case_43_a_damaged_file_is_never_silently_empty,
];

fn settings() -> RunSettings {
    RunSettings { checks: Checks::Off, ..auto() }
}

async fn ask(session: &Session, text: &str) {
    session.handle.send(text).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
}

/// Everything that a subscription gives until the session's end.
async fn all(mut events: journeyman_agent::Subscription) -> Vec<Arc<Envelope>> {
    let mut all = Vec::new();
    while let Some(envelope) = events.next().await.unwrap() {
        all.push(envelope);
    }
    all
}

fn told() -> Arc<Told> {
    let list = |id| calls([(id, "list_files", json!({}))]);
    Told::new([list("c1"), says("one"), list("c2"), says("two")])
}

async fn case_12_a_subscription_gets_its_kinds_only_in_order() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&told(), settings());
    let kinds = session.handle.subscribe(EventFilter::all().kinds(["tool_start", "tool_end"]), Since::Now);
    let monitor = session.handle.subscribe(EventFilter::all().channels([Channel::Monitor]), Since::Now);
    let both = EventFilter::all().channels([Channel::Control]).kinds(["tool_end"]);
    let nothing = session.handle.subscribe(both, Since::Now);
    ask(&session, "first").await;
    ask(&session, "second").await;
    session.handle.close().await;
    let names: Vec<&str> = all(kinds).await.iter().map(|envelope| envelope.event.kind()).collect();
    assert_eq!(names, ["tool_start", "tool_end", "tool_start", "tool_end"]);
    let shown = all(monitor).await;
    assert!(shown.iter().all(|envelope| envelope.channel == Channel::Monitor));
    let whole = events(&*bench.log, &id(), Seq::START, usize::MAX).await.unwrap();
    let of_monitor: Vec<Envelope> =
        whole.into_iter().filter(|envelope| envelope.channel == Channel::Monitor).collect();
    let shown: Vec<Envelope> = shown.iter().map(|envelope| (**envelope).clone()).collect();
    assert_eq!(shown, of_monitor);
    assert_eq!(all(nothing).await.len(), 0);
}

async fn case_13_a_bookmark_replays_what_came_after_it() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&told(), settings());
    ask(&session, "first").await;
    let bookmark = session.handle.bookmark();
    ask(&session, "second").await;
    let whole = events(&*bench.log, &id(), Seq::START, usize::MAX).await.unwrap();
    let places: Vec<Seq> = whole.iter().filter_map(|envelope| envelope.seq).collect();
    let from = [Seq::START, Seq(1), bookmark].into_iter().chain(places.iter().copied());
    let open: Vec<_> =
        from.map(|seq| (seq, session.handle.subscribe(EventFilter::all(), Since::Seq(seq)))).collect();
    session.handle.close().await;
    for (seq, events) in open {
        let given: Vec<Seq> = all(events).await.iter().filter_map(|envelope| envelope.seq).collect();
        let later: Vec<Seq> = places.iter().copied().filter(|place| *place > seq).collect();
        assert_eq!(given, later, "after {seq}");
    }
}

async fn case_14_what_the_store_refuses_is_kept_and_written_later() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("never said"), says("two")]);
    let mut session = bench.start(&told, settings());
    bench.log.fail(Failing::From(2));
    session.handle.send("first").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Error);
    assert_eq!(told.requests().len(), 0, "the turn stops before its effect");
    let waiting = session.handle.status().unwritten;
    assert!(waiting > 1, "{waiting}");
    let failure = session.until(|event| matches!(event, Event::StorageFailure { .. })).await;
    assert!(matches!(failure, Event::StorageFailure { waiting, .. } if waiting > 1), "{failure:?}");
    assert_eq!(bench.log.events(), [], "nothing of it is in the log yet");
    bench.log.fail(Failing::Never);
    // It recovers by itself: nobody has to send anything.
    eventually("the retry", || session.handle.status().unwritten == 0).await;
    let kinds: Vec<String> = bench.log.events().iter().map(|event| event.kind().to_owned()).collect();
    for kind in ["run_started", "error", "done", "state_changed"] {
        assert!(kinds.iter().any(|one| one == kind), "{kind} is lost: {kinds:?}");
    }
    assert_eq!(kinds.iter().filter(|kind| *kind == "done").count(), 1, "nothing is doubled");
    assert_eq!(session.done().await.outcome, RunOutcome::Error);
    let told = session.handle.send("second").await;
    assert!(told.is_ok());
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "never said");
}

async fn case_38_numbers_rise_over_restarts_and_a_bookmark_holds() {
    let mut bench = Bench::new(&[]);
    let told = told();
    let mut session = bench.start(&told, settings());
    ask(&session, "first").await;
    // Somebody has seen half of it when the machine dies.
    let seen = session.until(|event| matches!(event, Event::ToolEnd { .. })).await;
    let bookmark = session.shown.last().unwrap().seq.unwrap();
    assert!(matches!(seen, Event::ToolEnd { .. }));
    bench.crash().await;
    drop(session);
    let session = bench.resume(&told, settings(), CutOffPolicy::Continue).await.unwrap();
    let replay = session.handle.subscribe(EventFilter::all(), Since::Seq(bookmark));
    ask(&session, "second").await;
    session.handle.close().await;
    let given: Vec<Envelope> = all(replay)
        .await
        .iter()
        .map(|envelope| (**envelope).clone())
        .filter(|one| one.seq.is_some())
        .collect();
    let whole = events(&*bench.log, &id(), Seq::START, usize::MAX).await.unwrap();
    let later: Vec<Envelope> = whole.iter().filter(|one| one.seq > Some(bookmark)).cloned().collect();
    assert_eq!(given, later);
    assert!(whole.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    let resumed = given.iter().position(|one| matches!(one.event, Event::AgentResumed { .. })).unwrap();
    let ended: Vec<usize> =
        (0..given.len()).filter(|place| matches!(given[*place].event, Event::Done { .. })).collect();
    assert!(ended.len() == 2 && ended[0] < resumed && resumed < ended[1], "{ended:?} {resumed}");
}

async fn case_43_a_damaged_file_is_never_silently_empty() {
    let open = |directory: &std::path::Path| -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&directory.join("sessions.db")).unwrap())
    };
    let mut bench = Bench::with_log(&[], open, Failing::Never);
    let session = bench.start(&told(), settings());
    ask(&session, "first").await;
    session.handle.close().await;
    let (entries, directory) = (bench.log.entries(), bench.outside.clone());
    let place = directory.join("sessions.db");
    // Nothing writes any more: the two files are what a crash at this moment leaves.
    drop(session);
    let bytes = std::fs::read(&place).unwrap();
    let wal = directory.join("sessions.db-wal");
    let journal = std::fs::read(&wal).unwrap_or_default();
    for cut in [1, 100, 4096, bytes.len() / 2, bytes.len() - 1, bytes.len() - 4096] {
        let copy = directory.join(format!("cut-{cut}"));
        std::fs::create_dir(&copy).unwrap();
        let file = copy.join("sessions.db");
        std::fs::write(&file, &bytes[..cut]).unwrap();
        if !journal.is_empty() {
            std::fs::write(copy.join("sessions.db-wal"), &journal).unwrap();
        }
        let read = match SqliteStore::open(&file) {
            Err(_) => continue,
            Ok(store) => store.read(&id(), Seq::START, usize::MAX).await,
        };
        match read {
            Err(_) => {}
            Ok(read) => assert_eq!(read, entries, "cut at {cut} it opens and is another log"),
        }
    }
    // The last entry was being written when the power went: what was complete is there.
    for cut in [journal.len() / 2, journal.len().saturating_sub(1)] {
        if journal.is_empty() {
            break;
        }
        let copy = directory.join(format!("torn-{cut}"));
        std::fs::create_dir(&copy).unwrap();
        let file = copy.join("sessions.db");
        std::fs::write(&file, &bytes).unwrap();
        std::fs::write(copy.join("sessions.db-wal"), &journal[..cut]).unwrap();
        let Ok(store) = SqliteStore::open(&file) else { continue };
        match store.read(&id(), Seq::START, usize::MAX).await {
            Ok(read) => assert_eq!(read, entries[..read.len()], "a beginning of the log"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
