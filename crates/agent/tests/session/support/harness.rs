//! Runs the cases. The standard harness can't: its `main` is not ours, and the sandbox needs the first word.

use std::collections::VecDeque;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A case's name, and what it does.
pub(crate) type Case = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// Cases that run at once: they mostly wait for processes and disks.
const AT_ONCE: usize = 4;
/// A case that hasn't ended by then never will. Only so that a hang has a name.
const HANGS: Duration = Duration::from_secs(120);

/// Runs the cases that the command line names, all without one. Understands what `cargo test` passes on.
/// After all of them, where commands can be confined, every kind of event must have been seen.
pub(crate) fn run(groups: &[&[Case]]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let chosen = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part.as_str()));
    let cases: Vec<Case> =
        groups.iter().flat_map(|cases| cases.iter()).copied().filter(|(name, _)| chosen(name)).collect();
    if arguments.iter().any(|word| word == "--list") {
        for (name, _) in &cases {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    println!("running {} tests", cases.len());
    let count = cases.len();
    let waiting = Mutex::new(VecDeque::from(cases));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, case)) = next(&waiting) {
                    let ok = passes(name, case);
                    println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
                    if !ok {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if names.is_empty() && runtime().block_on(super::bench::confined()) {
        let unseen = super::schema::unseen();
        let ok = unseen.is_empty();
        println!("test every_kind_of_event_was_seen ... {}", if ok { "ok" } else { "FAILED" });
        if !ok {
            eprintln!("no test emits {unseen:?}");
            failed.push("every_kind_of_event_was_seen");
        }
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("test result: {word}. {} passed; {} failed", count - failed.len(), failed.len());
    for name in &failed {
        println!("    {name}");
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn next(waiting: &Mutex<VecDeque<Case>>) -> Option<Case> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Runs a case on a thread with its name, which a panic then shows, and on a runtime like the program's.
fn passes(name: &'static str, case: fn() -> Pin<Box<dyn Future<Output = ()>>>) -> bool {
    let body = move || {
        runtime().block_on(async { tokio::time::timeout(HANGS, case()).await.expect("the case hangs") });
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
    thread.join().is_ok()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
