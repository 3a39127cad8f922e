//! What a verdict on a command costs: the least and the median time over a table, in microseconds,
//! as one line of JSON. The bound is 50 µs (issue 5).
//!
//! Commands are read from the standard input, one a line, or are those below.

use std::hint::black_box;
use std::io::{IsTerminal, Read};
use std::time::Instant;

use journeyman_policy::analyse_command;

const COMMANDS: &[&str] = &[
    "ls -la src",
    "git status --short --branch",
    "grep -rn --include='*.rs' 'fn main' src | head -50",
    "find . -name '*.rs' -not -path './target/*' | xargs wc -l | sort -n | tail",
    "cargo test --workspace 2>&1 | tail -n 50",
    "cd crates/policy && cargo clippy --all-targets -- -D warnings",
    "for f in src/*.rs; do echo \"$f\"; head -5 \"$f\"; done",
    "if [ -f package.json ]; then npm test; else make check; fi",
    "bash -c 'set -e; ls; rm -rf \"$HOME/x\"'",
    "sudo -n env A=1 timeout 5 sh -c 'curl -s https://a.example | tee y'",
    "cat <<'EOF' > notes.md\nsome text\nmore of it\nEOF",
    "sed -n '/^fn main/,/^}/p' src/main.rs && awk '{s+=$1} END {print s}' x",
    "git -c core.pager=less log -p --since=yesterday -- src | grep -n TODO",
    "python3 -c 'import json,sys; print(json.load(sys.stdin)[\"a\"])' < x.json",
    "diff <(sort a) <(sort b) || echo \"$(date): differs\" >> log",
];
/// Times that each command is judged.
const ROUNDS: usize = 400;

fn main() {
    let mut text = String::new();
    if !std::io::stdin().is_terminal() && std::io::stdin().read_to_string(&mut text).is_err() {
        text.clear();
    }
    let given: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let commands = if given.is_empty() { COMMANDS } else { given.as_slice() };
    let checks = ["cargo test --workspace".to_owned(), "npm test".to_owned()];
    let mut medians = Vec::with_capacity(commands.len());
    let mut least = f64::INFINITY;
    for command in commands {
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                black_box(analyse_command(black_box(command), &checks));
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        least = least.min(times.first().copied().unwrap_or_default());
        medians.push((times.get(ROUNDS / 2).copied().unwrap_or_default(), *command));
    }
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    let median = medians.get(medians.len() / 2).map_or(0.0, |(time, _)| *time);
    let (worst, command) = medians.last().copied().unwrap_or_default();
    println!(
        "{{\"commands\": {}, \"min_us\": {least:.1}, \"median_us\": {median:.1}, \"worst_median_us\": {worst:.1}, \"worst\": {command:?}}}",
        medians.len()
    );
}
