//! Everything at once, at random, and repeatable.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::store::Fault;
use super::*;

/// Seeds of the short run; `JM_LOG_SEEDS` asks for more.
const SEEDS: u64 = 2_000;

/// The fate of each entry that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppendFate {
    /// It has to be in the log in the end.
    Due,
    /// It was refused, and must not be.
    Refused,
    /// The store could not say; or nobody waited for the answer.
    Open,
}

struct Watcher {
    events: Subscription,
    filter: EventFilter,
    /// Everything after this is due to it.
    since: Seq,
    shown: Vec<u64>,
}

struct Run {
    bench: Bench,
    random: fastrand::Rng,
    /// By number, which is also the order.
    fates: BTreeMap<u64, AppendFate>,
    groups: Vec<Vec<u64>>,
    watchers: Vec<Watcher>,
    number: u64,
}

impl Run {
    fn items(&mut self) -> (Vec<u64>, Vec<LogEntry>) {
        let count = self.random.u64(1..4);
        let numbers: Vec<u64> = (self.number..self.number + count).collect();
        self.number += count;
        let items = numbers
            .iter()
            .map(|number| match self.random.u8(..3) {
                0 => keeps(number.to_string()),
                _ => says(number.to_string()),
            })
            .collect();
        self.groups.push(numbers.clone());
        (numbers, items)
    }

    fn fate(&mut self, numbers: &[u64], fate: AppendFate) {
        self.fates.extend(numbers.iter().map(|number| (*number, fate)));
    }

    async fn step(&mut self) {
        match self.random.u8(..17) {
            0..3 => {
                let (numbers, items) = self.items();
                self.fate(&numbers, AppendFate::Due);
                self.bench.log.push(items);
            }
            3..5 => drop(self.bench.log.flush().await),
            5..7 => {
                let (numbers, items) = self.items();
                self.fate(&numbers, AppendFate::Due);
                drop(self.bench.log.push_and_flush(items).await);
            }
            7..9 => {
                let (numbers, items) = self.items();
                let offered = self.bench.log.write_or_remove(items).await;
                let fate = match offered {
                    Ok(()) => AppendFate::Due,
                    Err(crate::AgentError::InDoubt { .. }) => AppendFate::Open,
                    Err(_) => AppendFate::Refused,
                };
                self.fate(&numbers, fate);
            }
            9 => self.give_up_waiting().await,
            15 => self.all_at_once().await,
            10 => {
                let faults =
                    [Fault::Before, Fault::After, Fault::Failed, Fault::Refused, Fault::Panic, Fault::None];
                let count = self.random.usize(1..4);
                let faults: Vec<Fault> =
                    (0..count).map(|_| faults[self.random.usize(..faults.len())]).collect();
                self.bench.store.fail(faults);
                let mut fails = || self.random.usize(..2) * self.random.usize(..3);
                self.bench.store.failing_reads.store(fails(), Ordering::SeqCst);
                self.bench.store.failing_probes.store(fails(), Ordering::SeqCst);
                self.bench.store.slowness.store(self.random.usize(..4), Ordering::SeqCst);
            }
            11 => {
                for _ in 0..self.random.u8(..12) {
                    self.bench.log.emit(delta(0, 0, "live"));
                }
            }
            12 => self.come_or_go(),
            13 | 14 => {
                let Some(watcher) = self.random.choice(self.watchers.iter_mut()) else { return };
                let most = fastrand::Rng::with_seed(self.number).usize(..20);
                watch(watcher, most);
            }
            _ => self.bench.log.release_memory(),
        }
    }

    /// Begins to write and goes away, sooner or later.
    async fn give_up_waiting(&mut self) {
        let (numbers, items) = self.items();
        let offers = self.random.bool();
        self.fate(&numbers, if offers { AppendFate::Open } else { AppendFate::Due });
        let log = self.bench.log.clone();
        let mut write: futures_util::future::BoxFuture<'_, _> =
            if offers { log.write_or_remove(items).boxed() } else { log.push_and_flush(items).boxed() };
        let mut polls = 0;
        let limit = self.random.u8(1..5);
        while polls < limit && (&mut write).now_or_never().is_none() {
            polls += 1;
            tokio::task::yield_now().await;
        }
    }

    /// Three write together, as an actor and the handles of a session do.
    async fn all_at_once(&mut self) {
        let (((first, a), (second, b)), (third, c)) = ((self.items(), self.items()), self.items());
        let log = &self.bench.log;
        let later = async {
            tokio::task::yield_now().await;
            log.push(c);
        };
        let (offered, committed, ()) = tokio::join!(log.write_or_remove(a), log.push_and_flush(b), later);
        drop(committed);
        // It may be in doubt when it is answered, and be settled by the other one.
        let fate = if offered.is_ok() { AppendFate::Due } else { AppendFate::Open };
        self.fate(&first, fate);
        self.fate(&second, AppendFate::Due);
        self.fate(&third, AppendFate::Due);
    }

    fn come_or_go(&mut self) {
        if self.watchers.len() > 5 {
            let place = self.random.usize(..self.watchers.len());
            self.watchers.swap_remove(place);
            return;
        }
        let filter = match self.random.u8(..3) {
            0 => EventFilter::all(),
            1 => EventFilter::all().channels([Channel::Monitor]),
            _ => EventFilter::all().kinds(["text_delta"]),
        };
        let position = self.bench.log.position();
        let since = self.random.bool().then(|| Seq(self.random.u64(..=position.0)));
        let events = self.bench.log.subscribe(filter.clone(), since.map_or(Since::Now, Since::Seq));
        let since = since.unwrap_or(position);
        self.watchers.push(Watcher { events, filter, since, shown: Vec::new() });
    }

    /// In the end the store is well, everybody catches up, and all of it is right.
    async fn check(mut self) {
        self.bench.store.clear_faults();
        self.bench.log.flush().await.unwrap();
        assert_eq!(self.bench.log.unwritten_count(), 0);
        let entries = self.bench.entries().await;
        assert_eq!(self.bench.log.position().0, entries.len() as u64);
        let written: Vec<u64> = entries.iter().map(|entry| short(entry).parse().unwrap()).collect();
        assert!(written.is_sorted_by(|a, b| a < b), "in order and once: {written:?}");
        for (number, fate) in &self.fates {
            let is_written = written.binary_search(number).is_ok();
            match fate {
                AppendFate::Due => assert!(is_written, "{number} is missing in {written:?}"),
                AppendFate::Refused => assert!(!is_written, "{number} was refused, and is in {written:?}"),
                AppendFate::Open => {}
            }
        }
        for group in &self.groups {
            let there = group.iter().filter(|number| written.binary_search(number).is_ok()).count();
            assert!(there == 0 || there == group.len(), "{group:?} was split: {written:?}");
        }
        for watcher in &mut self.watchers {
            watch(watcher, usize::MAX);
            let due: Vec<u64> = entries
                .iter()
                .filter(|entry| entry.seq > watcher.since)
                .filter(|entry| {
                    entry.channel.is_some_and(|channel| watcher.filter.includes(channel, &entry.kind))
                })
                .map(|entry| entry.seq.0)
                .collect();
            assert_eq!(watcher.shown, due, "{:?} since {}", watcher.filter, watcher.since);
        }
        assert_eq!(self.bench.log.count_subscribers_behind(), 0);
    }
}

/// Takes at most so many events.
fn watch(watcher: &mut Watcher, most: usize) {
    for _ in 0..most {
        let Some(next) = watcher.events.next().now_or_never() else { return };
        // A store that can't be read now is read again.
        let Ok(next) = next else { continue };
        let envelope = next.expect("the session is not over");
        watcher.shown.extend(envelope.seq.map(|seq| seq.0));
    }
}

#[test]
fn whatever_happens_the_log_is_right() {
    let seeds = std::env::var("JM_LOG_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    // Panics of the store are part of the play, and thousands of them would hide the one that
    // counts.
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let told = panic.payload_as_str().is_some_and(|words| words.contains("as it was told"));
        if !told {
            shown(panic);
        }
    }));
    for seed in 0..seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let run = std::panic::AssertUnwindSafe(|| {
            runtime.block_on(async {
                let mut run = Run {
                    bench: Bench::small().await,
                    random: fastrand::Rng::with_seed(seed),
                    fates: BTreeMap::new(),
                    groups: Vec::new(),
                    watchers: Vec::new(),
                    number: 0,
                };
                for _ in 0..40 {
                    run.step().await;
                }
                run.check().await;
            });
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
