//! Tests of the events that subscribers see.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use futures_util::StreamExt as _;
use journeyman_protocol::CallId;

use super::super::core::lock;
use super::*;

fn seqs(shown: &[Arc<Envelope>]) -> Vec<u64> {
    shown.iter().filter_map(|envelope| envelope.seq).map(|seq| seq.0).collect()
}

fn on_a_thread_of_its_own<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// One event of each channel, by number.
fn event(number: u64) -> Event {
    match number % 3 {
        0 => Event::Warning { message: number.to_string() },
        1 => Event::TurnStarted { turn: 1 },
        _ => {
            Event::PermissionDecided { call: CallId::new("c"), allowed: true, by: "user".into(), note: None }
        }
    }
}

/// Returns the events of a log after a position that a filter lets through.
fn expected(entries: &[Entry], filter: &EventFilter, after: Seq) -> Vec<u64> {
    entries
        .iter()
        .filter(|entry| entry.seq > after)
        .filter(|entry| entry.channel.is_some_and(|channel| filter.includes(channel, &entry.kind)))
        .map(|entry| entry.seq.0)
        .collect()
}

fn filters() -> Vec<EventFilter> {
    vec![
        EventFilter::all(),
        EventFilter::all().channels([Channel::Progress]),
        EventFilter::all().channels([Channel::Control, Channel::Monitor]),
        EventFilter::all().kinds(["warning", "turn_started"]),
        EventFilter::all().channels([Channel::Monitor]).kinds(["warning", "turn_started"]),
        EventFilter::all().channels([]),
    ]
}

/// Writers and subscribers on threads of their own; the timeline is so short that everybody falls
/// behind at times.
#[test]
fn no_gap_and_no_duplicate_while_everybody_writes() {
    const WRITERS: u64 = 3;
    const BATCHES: u64 = 150;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    on_a_thread_of_its_own(store.create(&session(), "/", "", UnixMillis(1))).unwrap();
    let bounds = SubscriberBufferLimits { envelopes: 40, keep: 20, ..SubscriberBufferLimits::default() };
    let log = log_over(Arc::clone(&store), Seq::START, bounds);
    let done = AtomicBool::new(false);
    let seen: Vec<(EventFilter, Option<Seq>, Seq, Vec<u64>)> = thread::scope(|scope| {
        let watchers: Vec<_> = (0..8)
            .map(|number: usize| {
                let filters = filters();
                let filter = filters[number % filters.len()].clone();
                let log = &log;
                scope.spawn(move || {
                    while log.position() < Seq(number as u64 * 20) {
                        thread::yield_now();
                    }
                    let since = number.is_multiple_of(2).then_some(Seq(number as u64 * 5));
                    let mut events = log.subscribe(filter.clone(), since.map_or(Since::Now, Since::Seq));
                    let after = log.position();
                    let mut shown = Vec::new();
                    on_a_thread_of_its_own(async {
                        while let Some(envelope) = events.next().await.unwrap() {
                            shown.push(envelope);
                        }
                    });
                    (filter, since, after, seqs(&shown))
                })
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let log = &log;
                scope.spawn(move || {
                    on_a_thread_of_its_own(async {
                        for batch in 0..BATCHES {
                            let items = (0..=batch % 4).map(|number| match (writer + number) % 5 {
                                0 => keeps("kept"),
                                _ => event(batch + number).into(),
                            });
                            log.emit(delta(0, 0, "live"));
                            log.push_and_flush(items.collect()).await.unwrap();
                        }
                    });
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::SeqCst);
        log.close();
        watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect()
    });
    let entries = on_a_thread_of_its_own(store.read(&session(), Seq::START, usize::MAX)).unwrap();
    assert_eq!(entries.len() as u64, log.position().0);
    for (filter, since, after, shown) in seen {
        match since {
            Some(since) => assert_eq!(shown, expected(&entries, &filter, since), "{filter:?} since {since}"),
            None => {
                let all = expected(&entries, &filter, Seq::START);
                assert!(all.ends_with(&shown), "{filter:?} now: {shown:?}");
                assert!(
                    shown.len() >= expected(&entries, &filter, after).len(),
                    "{filter:?} came at {after}"
                );
            }
        }
    }
}

#[tokio::test]
async fn every_bookmark_gives_the_rest_of_the_log() {
    let bench = Bench::small().await;
    for number in 0..40 {
        bench.log.push(vec![event(number).into(), keeps("kept")]);
        if number % 7 == 0 {
            bench.log.flush().await.unwrap();
        }
    }
    bench.log.flush().await.unwrap();
    let entries = bench.entries().await;
    let mut future: Vec<(Subscription, Seq)> = Vec::new();
    for since in (0..=entries.len() as u64 + 3).map(Seq) {
        for filter in filters() {
            let mut events = bench.log.subscribe(filter.clone(), Since::Seq(since));
            assert_eq!(
                seqs(&drain(&mut events).await),
                expected(&entries, &filter, since),
                "{filter:?} {since}"
            );
            if since > bench.log.position() {
                future.push((events, since));
            }
        }
        let read = crate::load_events(&*bench.store, &session(), since, 7).await.unwrap();
        let read: Vec<u64> = read.iter().map(|envelope| envelope.seq.unwrap().0).collect();
        let all = expected(&entries, &EventFilter::all(), since);
        assert_eq!(read, all[..all.len().min(7)]);
    }
    // Bookmarks of what has not come yet hold as well.
    bench.log.push_and_flush((0..5).map(event).map(LogEntry::from).collect()).await.unwrap();
    let entries = bench.entries().await;
    for (mut events, since) in future {
        let filter = events.filter().clone();
        assert_eq!(seqs(&drain(&mut events).await), expected(&entries, &filter, since), "{filter:?} {since}");
    }
}

#[tokio::test]
async fn one_that_falls_behind_is_told_once_and_misses_no_entry() {
    let bench = Bench::small().await;
    let mut slow = bench.log.subscribe(EventFilter::all().channels([Channel::Progress]), Since::Now);
    let mut total = Vec::new();
    for round in 0..3 {
        for number in 0..30 {
            bench.log.emit(delta(0, 0, "lost"));
            bench.log.push_and_flush(vec![event(number).into()]).await.unwrap();
        }
        bench.log.push_and_flush(vec![Event::TurnStarted { turn: 9 }.into()]).await.unwrap();
        let shown = drain(&mut slow).await;
        let lagged: Vec<Seq> = shown
            .iter()
            .filter_map(|envelope| match envelope.event {
                Event::Lagged { after } => Some(after),
                _ => None,
            })
            .collect();
        assert_eq!(lagged, [Seq(round * 31)], "first the marker, then what it stands for");
        assert!(matches!(shown[0].event, Event::Lagged { .. }));
        total.extend(seqs(&shown));
    }
    let filter = EventFilter::all().channels([Channel::Progress]);
    assert_eq!(total, expected(&bench.entries().await, &filter, Seq::START));
    bench.log.push_and_flush(vec![Event::TurnStarted { turn: 10 }.into()]).await.unwrap();
    assert_eq!(drained(&mut slow).await, ["turn_started"], "live again");
}

#[tokio::test]
async fn one_that_is_behind_slows_nobody_and_takes_little() {
    let bench =
        Bench::bounded(SubscriberBufferLimits { bytes: 64 * 1024, ..SubscriberBufferLimits::default() })
            .await;
    let slow = bench.subscribe(Since::Now);
    let mut fast = bench.subscribe(Since::Now);
    let long = "x".repeat(1_000);
    for number in 0..1_000 {
        bench.log.emit(delta(0, number * 1_000, &long));
        drain(&mut fast).await;
    }
    let timeline = lock(&bench.log.shared.timeline);
    assert!(timeline.held_bytes() <= 64 * 1024);
    drop(timeline);
    assert_eq!(bench.log.count_subscribers_behind(), 1);
    drop(slow);
    assert_eq!(bench.log.count_subscribers_behind(), 0);
    assert_eq!(lock(&bench.log.shared.timeline).held_bytes(), 0);
}

#[tokio::test]
async fn a_session_at_rest_keeps_nothing() {
    let bench = Bench::new().await;
    let mut events = bench.subscribe(Since::Now);
    for number in 0..2_000 {
        bench.log.emit(delta(0, number * 4, "text"));
    }
    assert_eq!(bench.log.count_subscribers_behind(), 1);
    assert_eq!(drain(&mut events).await.len(), 2_000);
    assert_eq!(bench.log.count_subscribers_behind(), 0);
    assert_eq!(lock(&bench.log.shared.timeline).held_bytes(), 0, "what all have taken is let go");
    bench.log.release_memory();
    assert_eq!(lock(&bench.log.shared.timeline).capacity(), 0);
}

#[tokio::test]
async fn who_comes_in_the_middle_of_a_block_gets_its_text_so_far() {
    let bench = Bench::new().await;
    bench.log.push_and_flush(vec![says("before")]).await.unwrap();
    bench.log.emit(Event::ThinkingStart { block: 0 });
    bench.log.emit(Event::ThinkingDelta { block: 0, offset: 0, text: "hm".into() });
    bench.log.emit(Event::ThinkingEnd { block: 0, text: "hm".into() });
    bench.log.emit(Event::TextStart { block: 1 });
    bench.log.emit(delta(1, 0, "Grüße "));
    bench.log.emit(delta(1, 8, "an "));
    bench.log.emit(Event::ThinkingDelta { block: 2, offset: 0, text: "so".into() });
    let mut now = bench.subscribe(Since::Now);
    let mut all = bench.subscribe(Since::Seq(Seq::START));
    let mut none = bench.log.subscribe(EventFilter::all().kinds(["warning"]), Since::Now);
    bench.log.emit(delta(1, 11, "alle"));
    let live = ["1@0 Grüße an ", "thinking 2@0 so", "1@11 alle"];
    assert_eq!(drained(&mut now).await, live);
    assert_eq!(drained(&mut all).await, [&["before"], &live[..]].concat());
    assert!(drained(&mut none).await.is_empty());
    let retry = Event::Retry { attempt: 2, of: 3, wait_ms: 1, reason: "it broke".into() };
    bench.log.push_and_flush(vec![retry.into()]).await.unwrap();
    assert!(drained(&mut bench.subscribe(Since::Now)).await.is_empty(), "what was streamed is void");
    bench.log.emit(delta(1, 0, "anew"));
    assert_eq!(drained(&mut bench.subscribe(Since::Now)).await, ["1@0 anew"]);
    bench.log.emit(Event::TextEnd { block: 1, text: "anew".into() });
    assert!(drained(&mut bench.subscribe(Since::Now)).await.is_empty(), "its end has all of it");
}

#[tokio::test]
async fn one_that_falls_behind_in_the_middle_of_a_block_gets_its_text_so_far() {
    let bench = Bench::small().await;
    let mut slow = bench.subscribe(Since::Now);
    for number in 0..20 {
        bench.log.emit(delta(0, number, "x"));
    }
    let whole = format!("0@0 {}", "x".repeat(20));
    assert_eq!(drained(&mut slow).await, ["lagged 0".to_owned(), whole]);
    bench.log.emit(delta(0, 20, "y"));
    assert_eq!(drained(&mut slow).await, ["0@20 y"]);
}

#[tokio::test]
async fn one_that_reads_history_while_the_session_goes_on_is_never_told_that_it_is_behind() {
    let bench = Bench::small().await;
    // Several pages of it.
    let long = |number: u64| says(format!("{number} {}", "x".repeat(2_000)));
    bench.log.push_and_flush((0..300).map(long).collect()).await.unwrap();
    let mut events = bench.subscribe(Since::Seq(Seq::START));
    let mut shown = vec![events.next().await.unwrap().unwrap()];
    bench.log.push_and_flush((300..600).map(long).collect()).await.unwrap();
    shown.extend(drain(&mut events).await);
    assert_eq!(seqs(&shown), (1..=600).collect::<Vec<u64>>());
    assert_eq!(shown.len(), 600);
}

#[tokio::test]
async fn a_store_that_can_not_be_read_costs_a_subscriber_nothing_but_time() {
    let bench = Bench::new().await;
    bench.log.push_and_flush((0..3).map(event).map(LogEntry::from).collect()).await.unwrap();
    let mut events = bench.subscribe(Since::Seq(Seq::START));
    bench.store.failing_reads.store(2, Ordering::SeqCst);
    assert!(events.next().await.is_err());
    assert!(events.next().await.is_err());
    assert_eq!(seqs(&drain(&mut events).await), [1, 2, 3]);
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_reads_loses_nothing() {
    let bench = Bench::new().await;
    let long = |number: u64| says(format!("{number} {}", "x".repeat(2_000)));
    bench.log.push_and_flush((0..500).map(long).collect()).await.unwrap();
    let mut events = bench.subscribe(Since::Seq(Seq::START));
    let mut shown = Vec::new();
    while shown.len() < 500 {
        bench.store.endless_reads.store(1, Ordering::SeqCst);
        shown.extend(drain(&mut events).await);
        bench.store.endless_reads.store(0, Ordering::SeqCst);
        if shown.len() < 500 {
            shown.extend(events.next().await.unwrap());
        }
    }
    assert_eq!(seqs(&shown), (1..=500).collect::<Vec<u64>>());
    assert!(events.next().now_or_never().is_none(), "live, with nothing to tell");
    bench.log.push_and_flush(vec![says("live")]).await.unwrap();
    assert_eq!(drained(&mut events).await, ["live"]);
}

#[tokio::test]
async fn after_the_end_what_is_left_is_given_and_history_can_be_read() {
    let Bench { store, log } = Bench::new().await;
    let mut events = log.subscribe(EventFilter::all(), Since::Now);
    let sink = log.live_sink();
    log.push_and_flush(vec![says("a")]).await.unwrap();
    let late = log.clone();
    drop(log);
    assert_eq!(drained(&mut events).await, ["a"]);
    late.push_and_flush(vec![says("b")]).await.unwrap();
    late.close();
    sink.send(delta(0, 0, "nobody hears this, and nothing breaks"));
    assert_eq!(events.next().await.unwrap().map(|envelope| words(&envelope.event)), Some("b".into()));
    let rest: Vec<_> = events.into_stream().collect().await;
    assert_eq!(rest.len(), 1, "the live event was shown before anybody knew of the end");
    let history: Vec<_> =
        late.subscribe(EventFilter::all(), Since::Seq(Seq::START)).into_stream().collect().await;
    assert_eq!(history.len(), 2);
    drop(store);
}
