//! The speed of counting, and the error of estimates by kind of file: the figures of `cargo xtask
//! bench context --only counting`. Takes files, one a line, on standard input.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use journeyman_context::counting::Counter;
use journeyman_protocol::{Message, ModelLimits, TokenCounter as _, Tokenizer};

/// Bytes that texts seen before have to be counted at, a second.
const ASKED_BYTES_PER_SECOND: f64 = 20e6;
/// Files of fewer bytes say little about an error.
const MIN_FILE_BYTES: usize = 400;
/// Runs of each measurement; the fastest counts.
const RUNS: usize = 5;

struct File {
    kind: String,
    text: String,
}

fn main() -> ExitCode {
    let files = read_files();
    let bytes: usize = files.iter().map(|file| file.text.len()).sum();
    println!("{} files, {:.1} MB", files.len(), bytes as f64 / 1e6);
    for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
        let began = Instant::now();
        let counter = counter(&tokenizer);
        counter.count("x");
        println!("first count, {tokenizer}: {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
    }
    println!(
        "\n| counter | texts not seen before, MB/s | seen before, MB/s | whole transcript again, MB/s |"
    );
    println!("|---|---|---|---|");
    let messages: Vec<Message> = files.iter().map(|file| Message::user_text(file.text.as_str())).collect();
    let mut is_met = true;
    for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k, Tokenizer::default()] {
        let fresh = fastest(|| {
            let counter = counter(&tokenizer);
            measure(|| files.iter().map(|file| counter.count(&file.text).0).sum())
        });
        let warm = counter(&tokenizer);
        let count_all = || files.iter().map(|file| warm.count(&file.text).0).sum();
        count_all();
        let seen = fastest(|| measure(count_all));
        let again = fastest(|| measure(|| messages.iter().map(|it| warm.count_message(it).0).sum()));
        let speed = |time: Duration| bytes as f64 / time.as_secs_f64();
        is_met &= speed(seen) >= ASKED_BYTES_PER_SECOND;
        let [fresh, seen, again] = [fresh, seen, again].map(|time| speed(time) / 1e6);
        println!("| {tokenizer} | {fresh:.0} | {seen:.0} | {again:.0} |");
    }
    print_errors(&files);
    if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read_files() -> Vec<File> {
    let paths = std::io::stdin().lock().lines().map_while(Result::ok);
    let read = |path: String| {
        let text = std::fs::read_to_string(&path).ok()?;
        let kind = Path::new(&path).extension()?.to_str()?.to_owned();
        (text.len() >= MIN_FILE_BYTES).then_some(File { kind, text })
    };
    paths.filter_map(read).collect()
}

fn counter(tokenizer: &Tokenizer) -> Counter {
    Counter::new(&ModelLimits { tokenizer: tokenizer.clone(), ..ModelLimits::conservative_default(false) })
}

fn measure(count: impl Fn() -> u64) -> Duration {
    let began = Instant::now();
    std::hint::black_box(count());
    began.elapsed()
}

fn fastest(run: impl Fn() -> Duration) -> Duration {
    (0..RUNS).map(|_| run()).min().unwrap_or_default()
}

/// Prints how far the estimate is from `o200k`, by the files' extensions.
fn print_errors(files: &[File]) {
    let exact = counter(&Tokenizer::O200k);
    let estimate = counter(&Tokenizer::Estimate { percent: 100 });
    let mut kinds: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for file in files {
        let counts = (exact.count(&file.text).0 as f64, estimate.count(&file.text).0 as f64);
        kinds.entry(&file.kind).or_default().push(counts);
        kinds.entry("all").or_default().push(counts);
    }
    println!(
        "\n| kind | files | o200k tokens | estimate, all together | mean error a file | 95 % of files within |"
    );
    println!("|---|---|---|---|---|---|");
    for (kind, counts) in kinds.iter().filter(|(_, counts)| counts.len() >= 3) {
        let real: f64 = counts.iter().map(|(real, _)| real).sum();
        let estimated: f64 = counts.iter().map(|(_, estimated)| estimated).sum();
        let mut errors: Vec<f64> =
            counts.iter().map(|(real, estimated)| (estimated / real - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let most = errors.get((errors.len() - 1) * 95 / 100).copied().unwrap_or_default();
        println!(
            "| {kind} | {} | {real:.0} | {:+.1} % | {:.1} % | {:.1} % |",
            counts.len(),
            (estimated / real - 1.0) * 100.0,
            mean * 100.0,
            most * 100.0
        );
    }
}
