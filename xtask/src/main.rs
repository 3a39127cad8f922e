//! `cargo xtask`: the tree's own checks, benchmarks and heavy tests.
//!
//! - `cargo xtask check` is everything CI runs, in the order that fails fastest: `lint`, which
//!   needs no programs beside Rust's and a C++ compiler, and `test`.
//! - `cargo xtask house` is the tree's own rules alone: who may use whom, sizes, licences, who
//!   starts processes.
//! - `cargo xtask docs` writes the parts of the pages under `docs/` that are generated from the
//!   code.
//! - `cargo xtask words` prints names and sentences that `docs/glossary.md` has other words for.
//! - `cargo xtask cycles [CRATE]` prints the files that import each other in a cycle.
//! - `cargo xtask bench NAME` prints the figures of `docs/benchmarks.md`.
//! - `cargo xtask fuzz TARGET|all` feeds the readers of models' text with anything.
//! - `cargo xtask soak NAME` runs a heavy test in full, of which the suite has a few seeds.

mod bench;
mod cycles;
mod dependencies;
mod fuzz;
mod licences;
mod processes;
mod sizes;
mod soak;
mod test_programs;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, anyhow, bail};

const USAGE: &str = "usage: cargo xtask check | lint | test | house | words | docs | cycles [CRATE] | bench turns|start|version|search|verdict|session|agents|workspace|sandbox|context|delegate|edit|index|notice|recall|symbols|tui|all [--beside DIR | OPTIONS] | soak session|crash|workspace|sandbox|damage|runs|all [--cases N] | fuzz TARGET|all [--minutes N]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["check"] => lint().and_then(|()| test()),
        ["lint"] => lint(),
        ["test"] => test(),
        ["house"] => check_tree(),
        ["words"] => words::print(&root()),
        ["docs"] => docs(),
        ["cycles"] => cycles::print(&root(), None),
        ["cycles", name] => cycles::print(&root(), Some(*name)),
        ["bench", name, options @ ..] => bench::run(name, options),
        ["fuzz"] => fuzz::run("all", None),
        ["fuzz", name] => fuzz::run(name, None),
        ["fuzz", name, "--minutes", minutes] => fuzz::run(name, Some(*minutes)),
        ["soak", name] => soak::run(name, None),
        ["soak", name, "--cases", cases] => soak::run(name, Some(*cases)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Formatting, the tree's own rules, Clippy and documentation, with the fuzz targets.
fn lint() -> anyhow::Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    step("the tree's own rules");
    check_tree()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[])?;
    // A workspace of its own, which a change of a library's types breaks like any other caller.
    let fuzz = ["--manifest-path", "fuzz/Cargo.toml"];
    cargo(&[&["fmt"], &fuzz[..], &["--check"]].concat(), &[])?;
    let in_target = ["--locked", "--target-dir", "target", "--", "-D", "warnings"];
    cargo(&[&["clippy"], &fuzz[..], &in_target].concat(), &[])?;
    cargo(&["doc", "--workspace", "--no-deps", "--locked"], &[("RUSTDOCFLAGS", "-D warnings")])
}

/// All tests.
fn test() -> anyhow::Result<()> {
    // In each of the programs that run at once. Many tests wait for a program or a time limit:
    // with one a core, cores are idle meanwhile.
    let threads = match std::env::var("RUST_TEST_THREADS") {
        Ok(wanted) => wanted.parse().context("RUST_TEST_THREADS is no number")?,
        Err(_) => 3 * std::thread::available_parallelism()?.get() / 2,
    };
    step("building and running the tests");
    test_programs::run(cargo_command(), threads)?;
    cargo(&["test", "--workspace", "--locked", "--doc"], &[])
}

/// Writes the generated parts of the pages under `docs/`. The tests that write them compare them
/// otherwise.
fn docs() -> anyhow::Result<()> {
    let update = [("UPDATE_DOCS", "1")];
    cargo(&["test", "--locked", "--package", "journeyman-protocol", "--test", "docs"], &update)?;
    cargo(&["test", "--locked", "--package", "journeyman-host", "--test", "suite", "answers::"], &update)?;
    cargo(&["test", "--locked", "--package", "journeyman", "--bin", "jm", "reference::"], &update)
}

fn check_tree() -> anyhow::Result<()> {
    let root = &root();
    let rules = [
        dependencies::broken_rules,
        licences::broken_rules,
        sizes::broken_rules,
        processes::broken_rules,
        words::broken_rules,
        cycles::broken_rules,
    ];
    // At once: three of them parse the whole tree.
    let broken = std::thread::scope(|scope| {
        let judging = rules.map(|broken_rules| scope.spawn(move || broken_rules(root)));
        let judged =
            judging.into_iter().map(|rule| rule.join().map_err(|_| anyhow!("a rule has panicked"))?);
        judged.collect::<anyhow::Result<Vec<_>>>()
    })?
    .concat();
    for rule in &broken {
        eprintln!("  {rule}");
    }
    if broken.is_empty() { Ok(()) } else { bail!("{} of the tree's rules are broken", broken.len()) }
}

fn cargo(args: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<()> {
    step(&format!("cargo {}", args.join(" ")));
    let mut command = cargo_command();
    command.args(args).envs(environment.iter().copied());
    let status = command.status().context("cargo could not be started")?;
    if status.success() { Ok(()) } else { bail!("cargo {} failed ({status})", args.join(" ")) }
}

/// Returns a call of cargo in the repository's root.
fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What `cargo run` says of this program: build scripts that read it would run again, and what
    // depends on them would be built anew, whenever cargo is called with and without it in turn.
    let own = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    own.for_each(|name| {
        command.env_remove(name);
    });
    command.current_dir(root());
    command
}

fn step(what: &str) {
    eprintln!("── {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependency_table_holds() {
        assert_eq!(dependencies::broken_rules(&root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn licences_are_permissive() {
        assert_eq!(licences::broken_rules(&root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn every_way_out_of_the_sandbox_is_known() {
        assert_eq!(processes::broken_rules(&root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn no_crate_has_file_cycles() {
        assert_eq!(cycles::broken_rules(&root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn files_and_functions_are_small() {
        assert_eq!(sizes::broken_rules(&root()).unwrap(), Vec::<String>::new());
    }
}
