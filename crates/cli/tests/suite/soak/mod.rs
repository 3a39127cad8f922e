//! `jm` is ended at random instants while it runs, resumes, takes back and lands; then everything
//! that it says is compared with the files, and with what the model's server saw. It knows nothing
//! of the engine's inside.
//!
//! A few seeds are in the suite. `cargo xtask soak runs` plays them by the hundred; `JM_SOAK_SEED`
//! plays one and says all that happened.

mod scenario;
mod words;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{needs, needs_sandbox};

/// The short version: so many first seeds play each scenario once.
const FIRST_SEEDS: u64 = 16;
/// Seeds of the short version beside these: two runs at once, of which violations were found.
const FOUND_SEEDS: [u64; 3] = [47, 79, 271];
/// Cases that are played at once.
const THREADS: usize = 2;

/// Something that must not be.
#[derive(Debug, Clone)]
pub struct Violation {
    pub kind: &'static str,
    pub text: String,
}

/// Counts of what was done, for the table.
#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<String, u64>,
    violations: Vec<(u64, &'static str, Violation)>,
}

impl Table {
    fn add(&mut self, seed: u64, played: scenario::Played) {
        for what in played.counted {
            *self.rows.entry(what).or_default() += 1;
        }
        *self.rows.entry(format!("scenario: {}", played.scenario)).or_default() += 1;
        let violations = played.violations.into_iter();
        self.violations.extend(violations.map(|violation| (seed, played.scenario, violation)));
    }

    fn print(&self, cases: usize) {
        println!("| cases | {cases} |\n|---|---|");
        self.rows.iter().for_each(|(what, count)| println!("| {what} | {count} |"));
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        self.violations.iter().for_each(|(_, _, one)| *kinds.entry(one.kind).or_default() += 1);
        println!("| violations | {} |", self.violations.len());
        kinds.iter().for_each(|(kind, count)| println!("| violation: {kind} | {count} |"));
        for (seed, scenario, violation) in &self.violations {
            println!("seed {seed} ({scenario}): {}: {}", violation.kind, violation.text.trim_end());
        }
    }
}

#[test]
fn what_is_said_after_a_random_end_is_true() {
    if !needs(&["git", "make"]) || !needs_sandbox() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds: Vec<u64> = match (number("JM_SOAK_SEED"), number("JM_SOAK_RUNS")) {
        (Some(seed), _) => vec![seed],
        (None, Some(runs)) => (0..runs).collect(),
        (None, None) => (0..FIRST_SEEDS).chain(FOUND_SEEDS).collect(),
    };
    let (next, table) = (AtomicUsize::new(0), Mutex::new(Table::default()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let played = scenario::play(seed);
                    table.lock().unwrap().add(seed, played);
                }
            });
        }
    });
    let table = table.into_inner().unwrap();
    table.print(seeds.len());
    assert!(table.violations.is_empty(), "{} violations", table.violations.len());
}
