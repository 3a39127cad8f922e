//! Random edits, commands, outside changes, checkpoints, undo and crashes, against a model of plain
//! maps: the tree, and what is said of it, are always what the model says.
//!
//! The suite runs a few hundred sequences, always the same; `JM_CASES` says how many more there are
//! to be, as `cargo xtask soak workspace` does. A sequence that fails is made as short as it goes
//! before it is shown; `JM_SEED` runs one alone.

mod acts;
mod real;
mod shrink;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use acts::{Act, sequence};
use real::Run;

/// How many sequences the suite runs.
const CASES: u64 = 300;
/// How often the soak says where it is.
const TELL: u64 = 500;

/// Runs a sequence; `Err` says at which act it went wrong, and how.
pub(crate) fn run(acts: &[Act]) -> Result<(), String> {
    let whole = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new();
        for (place, act) in acts.iter().enumerate() {
            run.act(act).map_err(|wrong| format!("at {place}, {act:?}: {wrong}"))?;
        }
        Ok(())
    }));
    whole.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        Err(said.unwrap_or_else(|| "a panic".to_owned()))
    })
}

fn check(seed: u64) {
    let acts = sequence(seed);
    if let Err(wrong) = run(&acts) {
        let shortest = shrink::shortest(acts);
        let why = run(&shortest).err().unwrap_or(format!("not every time: {wrong}"));
        panic!("seed {seed}: {} acts: {shortest:#?}\n{why}", shortest.len());
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_tree_is_what_the_model_says() {
    if let Some(seed) = number("JM_SEED") {
        return check(seed);
    }
    let cases = number("JM_CASES").unwrap_or(CASES);
    let from = number("JM_FROM").unwrap_or(0);
    let (next, begun) = (AtomicU64::new(0), Instant::now());
    let work = || {
        loop {
            let case = next.fetch_add(1, Ordering::Relaxed);
            if case >= cases {
                break;
            }
            check(from + case);
            if case % TELL == TELL - 1 {
                println!("{} of {cases} sequences, {} s", case + 1, begun.elapsed().as_secs());
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let acts: usize = (from..from + cases).map(|seed| sequence(seed).len()).sum();
    println!("{cases} sequences of {acts} acts in {} s", begun.elapsed().as_secs());
}
