//! Speed of analysis, by language, on one core: `cargo run --release -p journeyman-syntax --example
//! speed -- FOLDER…`. Figures are MB of source in a second of processor time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use journeyman_syntax::analysis::{analyse, analyse_tree};
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::outline;
use journeyman_syntax::parse::parse;

/// Maximum bytes read of each language.
const MOST: usize = 2 << 20;

#[derive(Default)]
struct Sum {
    files: usize,
    bytes: usize,
    refused: usize,
    broken: usize,
    parsing: Duration,
    outlining: Duration,
    walking: Duration,
    all: Duration,
    symbols: usize,
    references: usize,
    imports: usize,
}

/// Returns this thread's processor time, or else the wall-clock time.
fn now() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let told = told.and_then(|line| line.split_whitespace().next()?.parse().ok());
    thread_local! {
        static START: Instant = Instant::now();
    }
    told.map_or_else(|| START.with(Instant::elapsed), Duration::from_nanos)
}

fn main() {
    let mut open: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let mut sums: BTreeMap<Language, Sum> = BTreeMap::new();
    while let Some(path) = open.pop() {
        if path.is_dir() && !path.is_symlink() {
            open.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else {
            one(&path, &mut sums);
        }
    }
    println!("MB/s of parsing, of the outline alone, of the walk for all, and of all with parsing");
    println!(
        "{:<16} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "language", "files", "MB", "parse", "outline", "walk", "ALL"
    );
    for (language, sum) in &sums {
        let rate = |time: Duration| sum.bytes as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{:<16} {:>6} {:>7.2} {:>7.1} {:>7.1} {:>7.1} {:>7.1} refused {} broken {} symbols {} references {} imports {}",
            language.name(),
            sum.files,
            sum.bytes as f64 / 1e6,
            rate(sum.parsing),
            rate(sum.outlining),
            rate(sum.walking),
            rate(sum.all),
            sum.refused,
            sum.broken,
            sum.symbols,
            sum.references,
            sum.imports,
        );
    }
}

fn one(path: &Path, sums: &mut BTreeMap<Language, Sum>) {
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let Some(language) = Language::detect(&path.to_string_lossy(), &text) else { return };
    let sum = sums.entry(language).or_default();
    if sum.bytes > MOST {
        return;
    }
    let start = now();
    let Ok(all) = analyse(language, &text) else {
        sum.refused += 1;
        return;
    };
    sum.all += now() - start;
    sum.symbols += all.symbols.len();
    sum.references += all.references.len();
    sum.imports += all.imports.len();
    sum.broken += usize::from(all.broken);
    sum.files += 1;
    sum.bytes += text.len();
    let start = now();
    let Ok(tree) = parse(language, &text) else { return };
    sum.parsing += now() - start;
    let start = now();
    let symbols = outline(&tree, &text);
    sum.outlining += now() - start;
    let start = now();
    let again = analyse_tree(&tree, &text);
    sum.walking += now() - start;
    assert_eq!(
        (symbols.len(), again.symbols.len()),
        (all.symbols.len(), all.symbols.len()),
        "{}",
        path.display()
    );
}
