//! What the workspace costs beside git and bare system calls on the same tree in the same run:
//! `cargo run --release -p journeyman-workspace --example workspace_cost --
//! [look|edit|copy|bulk]... [DIR]`, or all of it by `cargo xtask bench workspace`.
//!
//! Trees are made anew, with the real git and no network, in `DIR` or the temporary directory. What
//! is compared is measured in turns, and each figure is the median of its repetitions. It ends with
//! 1 where a bound is missed in three rounds of four, so that a busy machine alone doesn't do it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]

mod bulk;
mod copy;
mod edit;
mod figures;
mod look;
mod place;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use figures::Verdicts;
use place::Place;

/// The sizes of trees that the bounds are stated for.
const SMALL: usize = 5_000;
const LARGE: usize = 80_000;

fn main() -> ExitCode {
    journeyman_sandbox::run_helper_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, dir, rest @ ..] = arguments.as_slice()
        && word == place::ONCE
    {
        return place::once(Path::new(dir), rest);
    }
    if let [word, dir, files] = arguments.as_slice()
        && word == "keep"
    {
        // For a profiler: a tree that stays, and what `once DIR loop` works on.
        let files = files.parse().unwrap();
        println!("{}", Place::new(Path::new(dir), files).stay().display());
        return ExitCode::SUCCESS;
    }
    let (words, dirs): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| ["look", "edit", "copy", "bulk"].contains(&word.as_str()));
    let base = dirs.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let wants = |what: &str| words.is_empty() || words.iter().any(|word| *word == what);
    let mut verdicts = Verdicts::default();
    if wants("edit") {
        edit::run(&base, &mut verdicts);
    }
    for files in [SMALL, LARGE] {
        if wants("look") || (files == SMALL && (wants("copy") || wants("bulk"))) {
            let place = Place::new(&base, files);
            if wants("look") {
                look::run(&place, &mut verdicts);
            }
            if wants("copy") && files == SMALL {
                copy::run(&place, &mut verdicts);
            }
            if wants("bulk") && files == SMALL {
                bulk::run(&place);
            }
        }
    }
    verdicts.end()
}
