//! Runs the cases one after the other; each has the machine for itself, and uses its cores as it likes.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A case's name, and what it does.
pub(crate) type Case = (&'static str, fn());

/// Runs the cases that the command line names, all without one. Understands what `cargo test` passes on.
pub(crate) fn run(groups: &[&[Case]]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let chosen = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part.as_str()));
    let cases: Vec<Case> =
        groups.iter().flat_map(|cases| cases.iter()).copied().filter(|(name, _)| chosen(name)).collect();
    if arguments.iter().any(|word| word == "--list") {
        cases.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("running {} tests", cases.len());
    let mut failed = Vec::new();
    for (name, case) in cases.iter().copied() {
        // On a thread with its name, which a panic then shows.
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(case).unwrap();
        let ok = thread.join().is_ok();
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        if !ok {
            failed.push(name);
        }
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("test result: {word}. {} passed; {} failed", cases.len() - failed.len(), failed.len());
    failed.iter().for_each(|name| println!("    {name}"));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether commands can be confined here; if not, says so, or fails where nothing may be skipped.
pub(crate) fn confined() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sandbox = journeyman_sandbox::Sandbox::new(journeyman_sandbox::SandboxSettings::default());
    match runtime.block_on(sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL)) {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("JM_REQUIRE_ALL").is_none(), "JM_REQUIRE_ALL is set, and {error}");
            println!("skipped: {error}");
            false
        }
    }
}

/// Does all jobs, as many at once as there are cores, and gives what they say, in their order.
pub(crate) fn each<J: Sync, T: Send>(jobs: &[J], work: impl Fn(&J) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let at_once = 3 * std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::SeqCst);
                    let Some(job) = jobs.get(place) else { return };
                    let said = work(job);
                    done.lock().unwrap().push((place, said));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, said)| said).collect()
}
