//! Subscriptions, a store that fails, numbers over restarts, a damaged file.

use std::sync::Arc;

use journeyman_agent::{ChecksSetting, CutOffPolicy, EventFilter, RunSettings, Since, load_events};
use journeyman_protocol::{Channel, Envelope, Event, RunOutcome, Seq};
use journeyman_store::{Entry, SqliteStore, Store, StoreError};
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
    RunSettings { checks: ChecksSetting::Off, ..auto() }
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
    let whole = load_events(&*bench.log, &id(), Seq::START, usize::MAX).await.unwrap();
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
    let bookmark = session.handle.last_position();
    ask(&session, "second").await;
    let whole = load_events(&*bench.log, &id(), Seq::START, usize::MAX).await.unwrap();
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
    assert_eq!(session.done().await.outcome, RunOutcome::Error);
    session.handle.send("second").await.unwrap();
    assert_eq!(session.done().await.text, "never said");
    assert_eq!(session.handle.status().unwritten, 0);
    session.handle.close().await;
    while let Some(envelope) = session.events.next().await.unwrap() {
        session.shown.push(envelope);
    }
    // The whole sequence, of what the store refused and of what came after: in the log as it was
    // shown, in order, nothing lost and nothing doubled.
    let kept = load_events(&*bench.log, &id(), Seq::START, usize::MAX).await.unwrap();
    let shown = session.shown.iter().filter(|envelope| envelope.seq.is_some());
    let shown: Vec<Envelope> = shown.map(|envelope| (**envelope).clone()).collect();
    assert_eq!(shown, kept);
    let kinds: Vec<&str> = kept.iter().map(|envelope| envelope.event.kind()).collect();
    let first = [
        "run_started",
        "state_changed",
        "context_packed",
        "turn_phase_changed",
        "turn_started",
        "turn_phase_changed",
        "error",
        "state_changed",
        "turn_phase_changed",
        "done",
    ];
    let second = [
        "run_started",
        "state_changed",
        "turn_phase_changed",
        "turn_started",
        "turn_phase_changed",
        "turn_finished",
        "token_usage",
        "cost",
        "checkpoint",
        "step_complete",
        "state_changed",
        "turn_phase_changed",
        "done",
    ];
    assert_eq!(kinds, [&first[..], &second].concat());
    assert!(kept.windows(2).all(|pair| pair[0].seq < pair[1].seq));
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
    let whole = load_events(&*bench.log, &id(), Seq::START, usize::MAX).await.unwrap();
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
    let read_at = async |name: &str, file: &[u8], journal: &[u8]| -> Result<Vec<Entry>, StoreError> {
        let copy = directory.join(name);
        std::fs::create_dir(&copy).unwrap();
        std::fs::write(copy.join("sessions.db"), file).unwrap();
        std::fs::write(copy.join("sessions.db-wal"), journal).unwrap();
        SqliteStore::open(&copy.join("sessions.db"))?.read(&id(), Seq::START, usize::MAX).await
    };
    let mut wholes = 0;
    for cut in [0, 1, 100, 4096, bytes.len() / 2, bytes.len() - 1, bytes.len() - 4096] {
        match read_at(&format!("cut-{cut}"), &bytes[..cut], &journal).await {
            // The journal has the pages that the file lacks.
            Ok(read) => {
                assert_eq!(read, entries, "cut at {cut} it opens and is another log");
                wholes += 1;
            }
            Err(StoreError::Damaged { .. }) => {}
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
    assert!(wholes > 0 && wholes < 7, "{wholes}");
    // The last entry was being written when the power went: all that was complete is there.
    let commits = commits_of(&journal);
    assert!(commits.len() > 5, "{commits:?}");
    let mut kept = 0;
    for (number, (end, next)) in
        commits.iter().zip(commits.iter().skip(1).chain([&journal.len()])).enumerate()
    {
        let mut found = Vec::new();
        for (kind, cut) in [("complete", *end), ("torn", end + (next - end) / 2), ("last", next.max(&1) - 1)]
        {
            let read = read_at(&format!("{kind}-{number}"), &bytes, &journal[..cut.max(*end)]).await;
            match read {
                Ok(read) => {
                    assert_eq!(read, entries[..read.len()], "cut at {cut}: a beginning of the log");
                    found.push(Some(read.len()));
                }
                Err(StoreError::UnknownSession { .. }) => found.push(None),
                Err(error) => panic!("cut at {cut}: {error}"),
            }
        }
        assert!(found.iter().all(|one| *one == found[0]), "the same commits, the same entries: {found:?}");
        let count = found[0].unwrap_or(0);
        assert!(count >= kept, "after commit {number} it has less than before");
        kept = count;
    }
    assert_eq!(kept, entries.len());
}

/// The ends of the commits in a SQLite journal. A frame's header has the size of the database if
/// the frame is the last one of a commit, else 0
/// (<https://www.sqlite.org/fileformat2.html#walformat>).
fn commits_of(journal: &[u8]) -> Vec<usize> {
    let number =
        |at: usize| journal.get(at..at + 4).map(|bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
    let frame = 24 + number(8).unwrap() as usize;
    let frames = (32..journal.len()).step_by(frame);
    frames.filter(|at| number(at + 4).is_some_and(|size| size > 0)).map(|at| at + frame).collect()
}
