//! A reply takes time with its length, not with the square of it.

mod texts;

use std::collections::BTreeMap;

use journeyman_edit::{ReplySource, read_reply};
use journeyman_protocol::RelPath;
use rustix::time::{ClockId, clock_gettime};

use texts::REPEATED;

/// Bytes of a short and of a long reply, and how many times as long the long one may take: eight
/// times where the time grows with the length, 64 times with its square.
const SHORT: usize = 6 << 10;
const LONG: usize = 8 * SHORT;
const MAX_GROWTH: u128 = 28;
/// Microseconds of the long one below which nothing can be said.
const MIN_MICROS: u128 = 8_000;

/// Microseconds of this thread's processor time.
fn processor_time() -> u128 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u128::try_from(time.tv_sec).unwrap() * 1_000_000 + u128::try_from(time.tv_nsec).unwrap() / 1_000
}

/// The processor time of reading the reply: the least of a few readings.
fn cost(reply: &str) -> u128 {
    let files: BTreeMap<RelPath, String> = BTreeMap::new();
    let source = ReplySource { reply, path: None, finished: true, files: &files };
    let read = |_| {
        let began = processor_time();
        drop(read_reply(&source, None));
        processor_time() - began
    };
    (0..3).map(read).min().unwrap()
}

#[test]
fn a_reply_made_to_cost_much_takes_time_with_its_length() {
    let nested = |bytes: usize| format!("{}{}", "{\n".repeat(bytes / 4), "}\n".repeat(bytes / 4));
    let mut cases = vec![("one value in the other".to_owned(), [SHORT, LONG].map(nested))];
    for (before, part, after) in REPEATED {
        let text = |bytes: usize| format!("{before}{}{after}", part.repeat(bytes / part.len()));
        cases.push((format!("{before:?} {part:?} {after:?}"), [SHORT, LONG].map(text)));
    }
    let slow: Vec<String> = cases
        .into_iter()
        .filter_map(|(name, texts)| {
            let [short, long] = texts.map(|text| cost(&text));
            let is_slow = long > MIN_MICROS && long > short * MAX_GROWTH;
            is_slow.then(|| format!("{name}: {short} and {long} µs"))
        })
        .collect();
    assert!(slow.is_empty(), "{slow:#?}");
}
