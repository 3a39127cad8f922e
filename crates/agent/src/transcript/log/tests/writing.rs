//! Tests of writing, and of what becomes of entries when the store fails.

use std::sync::atomic::Ordering;

use tokio::sync::Semaphore;

use super::store::Fault;
use super::*;
use crate::AgentError;

fn lost(result: Result<(), AgentError>) -> bool {
    matches!(result, Err(AgentError::LostSession { .. }))
}

#[tokio::test]
async fn what_is_queued_is_one_append_in_order() {
    let bench = Bench::new().await;
    let mut all = bench.subscribe(Since::Now);
    bench.log.push(vec![says("a"), keeps("b")]);
    bench.log.emit(Event::Warning { message: "c".to_owned() });
    assert_eq!((bench.log.unwritten_count(), bench.log.position()), (3, Seq::START));
    assert!(drained(&mut all).await.is_empty(), "shown before it is durable");
    bench.log.flush().await.unwrap();
    bench.log.flush().await.unwrap();
    assert_eq!(bench.written().await, ["a", "b", "c"]);
    assert_eq!((bench.log.unwritten_count(), bench.log.position()), (0, Seq(3)));
    assert_eq!(bench.store.appends.load(Ordering::SeqCst), 1);
    assert_eq!(drained(&mut all).await, ["a", "c"]);
}

#[tokio::test]
async fn a_store_that_recovers_gets_everything_in_order_and_once() {
    for fault in [Fault::Before, Fault::Failed, Fault::Refused] {
        let bench = Bench::new().await;
        let mut all = bench.subscribe(Since::Now);
        bench.store.fail([fault; 3]);
        for (number, word) in ["a", "b", "c"].into_iter().enumerate() {
            assert!(bench.log.push_and_flush(vec![says(word), keeps(word)]).await.is_err());
            assert_eq!(bench.log.unwritten_count(), 2 * number + 2);
        }
        let failures = ["storage failure, 2 wait", "storage failure, 4 wait", "storage failure, 6 wait"];
        assert_eq!(drained(&mut all).await, failures);
        bench.log.flush().await.unwrap();
        assert_eq!(bench.written().await, ["a", "a", "b", "b", "c", "c"]);
        assert_eq!(drained(&mut all).await, ["a", "b", "c"]);
        assert_eq!((bench.log.unwritten_count(), bench.log.position()), (0, Seq(6)));
    }
}

#[tokio::test]
async fn what_was_written_though_the_store_said_otherwise_is_not_written_again() {
    for fault in [Fault::After, Fault::Lied, Fault::Panic] {
        let bench = Bench::new().await;
        let mut all = bench.subscribe(Since::Now);
        bench.store.fail([fault]);
        let first = bench.log.push_and_flush(vec![says("a"), keeps("b")]).await;
        assert_eq!(first.is_ok(), fault != Fault::Panic, "the log looks at once, where it can");
        bench.log.push_and_flush(vec![says("c")]).await.unwrap();
        assert_eq!(bench.written().await, ["a", "b", "c"]);
        assert_eq!(drained(&mut all).await, ["a", "c"]);
    }
}

#[tokio::test]
async fn an_outcome_stays_open_until_the_store_tells_it() {
    for (fault, reads, probes) in
        [(Fault::After, 2, 0), (Fault::After, 0, 2), (Fault::Before, 0, 2), (Fault::After, 1, 1)]
    {
        let bench = Bench::new().await;
        bench.store.fail([fault]);
        bench.store.failing_reads.store(reads, Ordering::SeqCst);
        bench.store.failing_probes.store(probes, Ordering::SeqCst);
        assert!(bench.log.push_and_flush(vec![says("a")]).await.is_err());
        assert!(bench.log.write_or_remove(vec![says("b")]).await.is_err(), "nobody can tell yet");
        assert_eq!(
            bench.log.unwritten_count(),
            1,
            "what is behind it is taken out: the store never heard of it"
        );
        bench.log.push_and_flush(vec![says("c")]).await.unwrap();
        assert_eq!(bench.written().await, ["a", "c"], "{fault:?} {reads} {probes}");
    }
}

#[tokio::test]
async fn an_offer_that_is_refused_is_not_made() {
    for (fault, probes) in [(Fault::Before, 0), (Fault::Refused, 0), (Fault::Failed, 0), (Fault::Failed, 1)] {
        let bench = Bench::new().await;
        bench.store.failing_probes.store(probes, Ordering::SeqCst);
        bench.log.push(vec![says("before")]);
        bench.store.fail([fault]);
        assert!(bench.log.write_or_remove(vec![keeps("offered"), says("offered")]).await.is_err());
        assert_eq!(bench.log.unwritten_count(), 1);
        bench.log.push(vec![says("after")]);
        bench.log.flush().await.unwrap();
        assert_eq!(bench.written().await, ["before", "after"]);
    }
}

#[tokio::test]
async fn an_offer_that_was_written_after_all_was_made() {
    let bench = Bench::new().await;
    bench.store.fail([Fault::After]);
    bench.log.write_or_remove(vec![keeps("offered")]).await.unwrap();
    assert_eq!(bench.written().await, ["offered"]);
}

/// Entries written for somebody else, before or behind an entry, don't concern whoever offers it.
#[tokio::test]
async fn an_offer_that_went_along_with_another_append_was_made() {
    let bench = Bench::new().await;
    let gate = Arc::new(Semaphore::new(0));
    *bench.store.gate.lock().unwrap() = Some(Arc::clone(&gate));
    bench.store.fail([Fault::None, Fault::None, Fault::Refused]);
    let mut first = Box::pin(bench.log.push_and_flush(vec![says("a")]));
    assert!(first.as_mut().now_or_never().is_none());
    tokio::task::yield_now().await;
    // Both wait for the first; the second takes the offer along.
    let mut second = Box::pin(bench.log.push_and_flush(vec![says("b")]));
    assert!(second.as_mut().now_or_never().is_none());
    let mut offer = Box::pin(bench.log.write_or_remove(vec![says("c")]));
    assert!(offer.as_mut().now_or_never().is_none());
    gate.add_permits(1);
    first.await.unwrap();
    while bench.store.appends.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    bench.log.push(vec![says("d")]);
    gate.add_permits(10);
    second.await.unwrap();
    offer.await.unwrap();
    assert_eq!(
        (bench.store.appends.load(Ordering::SeqCst), bench.log.unwritten_count()),
        (3, 1),
        "what failed is d"
    );
    bench.log.flush().await.unwrap();
    assert_eq!(bench.written().await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn an_offer_of_what_the_store_never_takes_stops_nobody_else() {
    let bench = Bench::new().await;
    bench.log.push(vec![says("before")]);
    let huge = "x".repeat(journeyman_store::MAX_ENTRY_BYTES);
    assert!(bench.log.write_or_remove(vec![keeps(huge)]).await.is_err());
    bench.log.flush().await.unwrap();
    assert_eq!(bench.written().await, ["before"]);
}

#[tokio::test]
async fn another_writer_ends_the_writing() {
    let bench = Bench::new().await;
    let mut all = bench.subscribe(Since::Now);
    bench.log.push_and_flush(vec![says("a")]).await.unwrap();
    bench.store.intrude(&session(), "theirs").await;
    assert!(lost(bench.log.push_and_flush(vec![says("b")]).await));
    let appends = bench.store.appends.load(Ordering::SeqCst);
    assert!(lost(bench.log.push_and_flush(vec![says("c")]).await));
    assert!(lost(bench.log.write_or_remove(vec![says("d")]).await));
    assert!(lost(bench.log.flush().await));
    assert_eq!(bench.store.appends.load(Ordering::SeqCst), appends, "it tries nothing more");
    assert_eq!((bench.entries().await.len(), bench.log.unwritten_count()), (2, 1));
    assert_eq!(drained(&mut all).await, ["a", "storage failure, 1 wait"]);
    let message = bench.log.flush().await.unwrap_err().to_string();
    assert!(message.contains("another process writes") && message.contains("after entry 1"), "{message}");
}

#[tokio::test]
async fn another_writer_after_an_uncertain_append_is_noticed() {
    for (fault, ours) in [(Fault::After, 2), (Fault::Before, 1)] {
        let bench = Bench::new().await;
        bench.log.push_and_flush(vec![says("a")]).await.unwrap();
        bench.store.fail([fault]);
        bench.store.failing_probes.store(1, Ordering::SeqCst);
        assert!(bench.log.push_and_flush(vec![says("b")]).await.is_err());
        bench.store.intrude(&session(), "theirs").await;
        assert!(lost(bench.log.push_and_flush(vec![says("c")]).await));
        assert_eq!(bench.log.position(), Seq(ours), "what of it was ours");
        assert_eq!(bench.entries().await.len() as u64, ours + 1);
    }
}

#[tokio::test]
async fn a_log_that_became_shorter_is_not_written() {
    let bench = Bench::new().await;
    let log = log_over(Arc::clone(&bench.store) as _, Seq(3), SubscriberBufferLimits::default());
    assert!(lost(log.push_and_flush(vec![says("a")]).await));
    assert!(bench.entries().await.is_empty());
}

#[tokio::test]
async fn who_stops_waiting_changes_nothing() {
    let bench = Bench::new().await;
    let gate = Arc::new(Semaphore::new(0));
    *bench.store.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let mut all = bench.subscribe(Since::Now);
    bench.store.fail([Fault::None, Fault::After, Fault::Before]);
    for word in ["a", "b", "c"] {
        let mut commit = Box::pin(bench.log.push_and_flush(vec![says(word)]));
        // The store has the first of them and doesn't answer; the others wait behind it.
        for _ in 0..5 {
            assert!(commit.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(bench.store.appends.load(Ordering::SeqCst), 1);
    gate.add_permits(100);
    bench.log.flush().await.unwrap();
    assert_eq!(bench.written().await, ["a", "b", "c"]);
    assert_eq!(drained(&mut all).await.concat().replace("storage failure, 1 wait", ""), "abc");
}

#[tokio::test]
async fn an_append_that_nobody_waits_for_is_shown() {
    let bench = Bench::new().await;
    let gate = Arc::new(Semaphore::new(0));
    *bench.store.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let mut all = bench.subscribe(Since::Now);
    assert!(bench.log.push_and_flush(vec![says("a")]).now_or_never().is_none());
    gate.add_permits(1);
    assert_eq!(words(&all.next().await.unwrap().unwrap().event), "a");
}

#[tokio::test]
async fn the_last_append_is_shown_before_the_end() {
    let Bench { store, log } = Bench::new().await;
    let gate = Arc::new(Semaphore::new(0));
    *store.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let mut all = log.subscribe(EventFilter::all(), Since::Now);
    assert!(log.push_and_flush(vec![says("a")]).now_or_never().is_none());
    drop(log);
    gate.add_permits(1);
    assert_eq!(words(&all.next().await.unwrap().unwrap().event), "a");
    assert_eq!(all.next().await.unwrap(), None);
}

#[tokio::test]
async fn what_is_pushed_together_is_written_together() {
    let bench = Bench::new().await;
    let pairs = async |from: u64| {
        for number in from..from + 50 {
            bench.log.push(vec![keeps(format!("{number}")), keeps(format!("{number}"))]);
            if number % 3 == 0 {
                bench.log.flush().await.unwrap();
            } else {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::join!(pairs(0), pairs(100), pairs(200));
    bench.log.flush().await.unwrap();
    let written = bench.written().await;
    assert_eq!(written.len(), 300);
    assert!(written.chunks(2).all(|pair| pair[0] == pair[1]), "{written:?}");
}

#[tokio::test]
async fn a_secret_reaches_neither_the_log_nor_anybody() {
    let bench = Bench::new().await;
    let mut all = bench.subscribe(Since::Now);
    let text = format!("the key is {SECRET}.");
    let message = journeyman_protocol::Message::assistant_text(text.clone());
    bench.log.emit(Event::TextDelta { block: 0, offset: 0, text: text.clone() });
    bench.log.emit(Event::TextEnd { block: 0, text: text.clone() });
    bench.log.live_sink().send(Event::StorageFailure { message: text.clone(), waiting: 0 });
    let error = Event::Error {
        severity: journeyman_protocol::ErrorSeverity::Warn,
        phase: journeyman_protocol::ErrorPhase::Model,
        message: text.clone(),
    };
    bench
        .log
        .push_and_flush(vec![says(text.clone()), error.into(), Record::message(message).into()])
        .await
        .unwrap();
    let shown = drain(&mut all).await;
    assert_eq!(shown.len(), 5);
    assert!(!format!("{shown:?}").contains(SECRET));
    let stored: Vec<u8> = bench.entries().await.into_iter().flat_map(|entry| entry.payload).collect();
    let stored = String::from_utf8(stored).unwrap();
    assert!(stored.contains("the key is") && !stored.contains(SECRET));
}
