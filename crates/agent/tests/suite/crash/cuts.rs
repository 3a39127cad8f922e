//! Killed at every durable boundary and at random instants.

use std::time::Duration;

use crate::crash::child::Kill;
use crate::crash::parallel::each;
use crate::crash::parent::{End, cut_off, reference};

blocking_cases![without_a_crash, at_durable_boundaries, at_steps_of_the_tree, at_random_instants];

/// In the suite every so many-th boundary is tried; `JM_CRASH_ALL` tries each.
const STRIDE: usize = 12;
/// Random instants in the suite; `JM_CRASH_RUNS` says otherwise.
const RUNS: u64 = 20;
/// The first of the suite's seeds; `JM_SEED` runs one alone.
const FIRST_SEED: u64 = 1;

fn without_a_crash() {
    let reference = reference();
    println!(
        "  {} writes to the log, {} steps of the tree, {} ms",
        reference.said.writes,
        reference.said.steps,
        reference.took.as_millis()
    );
}

fn stride() -> usize {
    if std::env::var_os("JM_CRASH_ALL").is_some() { 1 } else { STRIDE }
}

fn none_wrong(found: Vec<Vec<String>>) {
    let runs = found.len();
    let wrong: Vec<String> =
        found.into_iter().filter(|it| !it.is_empty()).map(|it| it.join("\n    ")).collect();
    assert!(wrong.is_empty(), "{} of {runs} runs went wrong:\n{}", wrong.len(), wrong.join("\n"));
    println!("  {runs} runs");
}

/// Before and after every write to the log. Every third is cut off a second time, soon after it was
/// opened again.
fn at_durable_boundaries() {
    let writes = reference().said.writes;
    let kills = (1..=writes).flat_map(|write| [Kill::BeforeWrite(write), Kill::AfterWrite(write)]);
    let plans: Vec<Vec<End>> = kills
        .enumerate()
        .map(|(number, kill)| match number % 3 {
            0 => vec![End::Planned(kill), End::Planned(Kill::BeforeWrite(2 + number % 4))],
            _ => vec![End::Planned(kill)],
        })
        .collect();
    // A stride that has no factor in common with what alternates, so that all kinds come up.
    let plans: Vec<Vec<End>> =
        plans.into_iter().step_by(if stride() == 1 { 1 } else { STRIDE - 1 }).collect();
    none_wrong(each(&plans, |ends| cut_off(ends)));
}

/// At every step of what changes the tree: staging, journal, renames, sealing.
fn at_steps_of_the_tree() {
    let steps = reference().said.steps;
    let plans: Vec<Vec<End>> = (1..=steps)
        .map(|step| match step % 4 {
            // Killed in the midst of putting right what the first kill left.
            0 => vec![End::Planned(Kill::AtStep(step)), End::Planned(Kill::AtStep(1 + step % 5))],
            _ => vec![End::Planned(Kill::AtStep(step))],
        })
        .step_by(if stride() == 1 { 1 } else { STRIDE - 1 })
        .collect();
    none_wrong(each(&plans, |ends| cut_off(ends)));
}

fn at_random_instants() {
    let seeds: Vec<u64> = match std::env::var("JM_SEED") {
        Ok(seed) => vec![seed.parse().expect("JM_SEED is a number")],
        Err(_) => {
            let runs = std::env::var("JM_CRASH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
            (FIRST_SEED..FIRST_SEED + runs).collect()
        }
    };
    let took = reference().took;
    none_wrong(each(&seeds, |seed| {
        let mut random = fastrand::Rng::with_seed(*seed);
        let mut ends = vec![End::After(took.mul_f64(random.f64() * 1.1))];
        while random.u8(..3) == 0 {
            ends.push(End::After(took.mul_f64(random.f64() * 0.4)));
        }
        let mut problems = cut_off(&ends);
        if !problems.is_empty() {
            problems.push(format!("JM_SEED={seed}"));
        }
        problems
    }));
    assert!(took > Duration::ZERO);
}
