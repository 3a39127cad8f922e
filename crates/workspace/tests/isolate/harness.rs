//! Runs the cases one after the other.

use std::process::ExitCode;

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
