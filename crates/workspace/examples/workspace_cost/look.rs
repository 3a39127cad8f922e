//! Looking at a tree: checkpoints and the comparison around a command, beside `git status`.

use std::time::Duration;

use journeyman_protocol::CallId;
use journeyman_workspace::Workspace;

use crate::figures::{Contender, Contest, Verdicts, time};
use crate::place::{Place, checkpoint, session};

const STATUS: &str = "git status --porcelain";
const PLAIN: &str = "git status, untracked cache and fsmonitor off";
const ONE_PROCESS: &str = "checkpoint, in one process";
const FRESH: &str = "checkpoint, in a fresh process";
const AROUND: &str = "call_begin + command_end";
/// Longer than the coarsest granularity of file times that counts as racy, for git and for us.
const SETTLE: Duration = Duration::from_millis(1100);

fn rounds(place: &Place) -> usize {
    if place.files.len() > 20_000 { 15 } else { 41 }
}

/// A command that does nothing, looked at before and after.
fn around(workspace: &Workspace, number: u64) -> f64 {
    let call = CallId::new(format!("call{number}"));
    time(|| {
        let before = workspace.command_observer().begin_call(&session(1), &call).unwrap();
        assert!(workspace.command_observer().end(before, &session(1), Some(&call)).unwrap().is_empty());
    })
}

pub(crate) fn run(place: &Place, verdicts: &mut Verdicts) {
    std::thread::sleep(SETTLE);
    place.git(&["status", "--porcelain"]);
    let first = place.open();
    println!("  first checkpoint: {:.0} ms", time(|| checkpoint(&first)));
    drop(first);
    let memory = place.once(&["memory"]).stdout(std::process::Stdio::piped()).output().unwrap();
    let memory = String::from_utf8_lossy(&memory.stdout).trim().parse::<u64>().unwrap_or_default();
    println!("  peak memory of a process that makes one checkpoint more: {} MiB", memory / 1024);
    unchanged(place, verdicts);
    changed(place, verdicts);
    place.git(&["checkout", "-q", "."]);
}

fn unchanged(place: &Place, verdicts: &mut Verdicts) {
    println!("  nothing changed:");
    let workspace = place.open();
    workspace.checkpoint(&session(1), "warm").unwrap();
    let mut number = 0;
    let contest = Contest::run(
        rounds(place),
        vec![
            Contender::new(STATUS, || place.time_git(&["status", "--porcelain"])),
            Contender::new(PLAIN, || {
                let off = ["-c", "core.untrackedCache=false", "-c", "core.fsmonitor=false"];
                place.time_git(&[&off[..], &["status", "--porcelain"]].concat())
            }),
            Contender::new(ONE_PROCESS, || time(|| checkpoint(&workspace))),
            Contender::new(FRESH, || place.time_once(&["checkpoint"])),
            Contender::new(AROUND, || {
                number += 1;
                around(&workspace, number)
            }),
        ],
    );
    for ours in [ONE_PROCESS, FRESH, AROUND] {
        verdicts.ratio(&contest, ours, STATUS, 1.0);
        verdicts.ratio(&contest, ours, PLAIN, 1.0);
    }
}

fn changed(place: &Place, verdicts: &mut Verdicts) {
    println!("  10 files changed since the last look:");
    let workspace = place.open();
    workspace.checkpoint(&session(1), "warm").unwrap();
    let seed = std::cell::Cell::new(1);
    let change = || {
        seed.set(seed.get() + 1);
        place.change(10, seed.get());
    };
    let contest = Contest::run(
        rounds(place),
        vec![
            Contender::new(STATUS, || {
                change();
                place.time_git(&["status", "--porcelain"])
            }),
            Contender::new(ONE_PROCESS, || {
                change();
                time(|| checkpoint(&workspace))
            }),
            Contender::new(FRESH, || {
                change();
                place.time_once(&["checkpoint"])
            }),
            Contender::new(AROUND, || {
                change();
                around(&workspace, seed.get())
            }),
        ],
    );
    for ours in [ONE_PROCESS, FRESH, AROUND] {
        verdicts.ratio(&contest, ours, STATUS, 1.3);
    }
}
