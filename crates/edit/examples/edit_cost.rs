//! How long placing and reading take: `cargo xtask bench edit` runs it. Fails where a bound is
//! missed.
//!
//! Each figure is the median of many runs beside their least. Placing is what [`replace`] does,
//! whether an edit leaves a file that parses apart; a miss includes the words of its refusal.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a program that prints figures"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use journeyman_edit::{
    AllowedDifferences, EditOp, Format, Hunk, LineKind, OpContext, PatchHunk, PatchLine, Replace,
    ReplySource, apply_hunk, apply_ops, read_reply,
};
use journeyman_protocol::RelPath;

#[path = "../tests/suite/hostile_replies/texts.rs"]
mod texts;
use texts::REPEATED;

/// Milliseconds of an exact edit in 10,000 lines.
const EXACT: f64 = 0.2;
/// Milliseconds of a miss with its explanation in 10,000 lines.
const MISS: f64 = 10.0;
/// Milliseconds of anything in 100,000 lines.
const ANYTHING: f64 = 100.0;
/// Twice the lines may take so many times as long.
const GROWTH: f64 = 3.0;
/// Shorter times than this, in milliseconds, say nothing about growth.
const TOO_SHORT: f64 = 0.05;
/// Megabytes of a reply that are read in a second.
const READING: f64 = 200.0;
/// Bytes of that reply.
const REPLY: usize = 5_000_000;
/// Milliseconds of 1,000 parts of lines in [`LARGE`] lines: each is looked for in the whole file,
/// to know that it is the only one, at some gigabytes a second.
const SCANS: f64 = 1_000.0;
/// Bytes of a text that is made to cost much, and milliseconds that it may take in any format.
const HOSTILE: usize = 1 << 20;
const HOSTILE_MS: f64 = 500.0;
/// Four times the bytes may take so many times as long; shorter times than so many milliseconds
/// tell nothing.
const HOSTILE_GROWTH: f64 = 10.0;
const HOSTILE_TELLING: f64 = 40.0;

const SMALL: usize = 10_000;
const LARGE: usize = 100_000;
/// Growth is measured from here to [`LARGE`]: neither fits into a core's own cache, which a smaller
/// file does.
const HALF: usize = LARGE / 2;
const RUNS: usize = 41;

fn main() -> ExitCode {
    let mut missed = Vec::new();
    placing(&mut missed);
    many_hunks(&mut missed);
    reading(&mut missed);
    hostile(&mut missed);
    for what in &missed {
        println!("missed: {what}");
    }
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Median and least milliseconds.
fn time(runs: usize, mut run: impl FnMut()) -> (f64, f64) {
    let mut took: Vec<f64> = (0..runs)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    took.sort_by(f64::total_cmp);
    let at = |place: usize| took.get(place).copied().unwrap_or_default();
    (at(took.len() / 2), at(0))
}

/// What is looked for in which file.
struct Search {
    name: &'static str,
    /// The bound in a file of [`SMALL`] lines, where it is lower than that of all.
    small: f64,
    make: fn(usize) -> (String, String, String),
}

fn code(lines: usize) -> String {
    let line = |n: usize| format!("{}let value_{n} = compute({}, {n});\n", " ".repeat(4 * (n % 4)), n % 7);
    (0..lines).map(line).collect()
}

/// Lines from the middle of [`code`], each made by `line`.
fn quoted(lines: usize, count: usize, line: impl Fn(usize) -> String) -> String {
    (lines / 2..lines / 2 + count).map(line).collect()
}

const SEARCHES: [Search; 15] = [
    Search {
        name: "exact",
        small: EXACT,
        make: |n| {
            let middle = n / 2;
            (code(n), format!("let value_{middle} = compute({}, {middle});", middle % 7), "x".to_owned())
        },
    },
    Search {
        name: "exact, 20 lines",
        small: EXACT,
        make: |n| {
            let search =
                code(n).lines().skip(n / 2).take(20).fold(String::new(), |all, line| all + line + "\n");
            (code(n), search.clone(), search + "x\n")
        },
    },
    Search {
        name: "indentation",
        small: MISS,
        make: |n| {
            let search = quoted(n, 20, |n| format!("\tlet value_{n} = compute({}, {n});\n", n % 7));
            (code(n), search.clone(), search + "\tx\n")
        },
    },
    Search {
        name: "a stale context line",
        small: MISS,
        make: |n| {
            let search = quoted(n, 20, |m| {
                let name = if m == n / 2 + 3 { "older" } else { "compute" };
                format!("{}let value_{m} = {name}({}, {m});\n", " ".repeat(4 * (m % 4)), m % 7)
            });
            (code(n), search.clone(), search + "x\n")
        },
    },
    Search {
        name: "elision",
        small: MISS,
        make: |n| {
            let line =
                |n: usize| format!("{}let value_{n} = compute({}, {n});\n", " ".repeat(4 * (n % 4)), n % 7);
            let (from, to) = (line(n / 2), line(n / 2 + 30));
            (code(n), format!("{from}...\n{to}"), format!("{from}...\nx\n{to}"))
        },
    },
    Search {
        name: "miss, every line a little off",
        small: MISS,
        make: |n| {
            (
                code(n),
                quoted(n, 20, |n| format!("    let value_{n} = calculate({}, {n});\n", n % 7)),
                "y\n".to_owned(),
            )
        },
    },
    Search {
        name: "miss, one line",
        small: MISS,
        make: |n| (code(n), format!("let value_{} = calculate(1);", n / 2), "y".to_owned()),
    },
    Search {
        name: "miss, nothing alike",
        small: MISS,
        make: |n| {
            (
                code(n),
                quoted(n, 20, |n| format!("SELECT {n} FROM table_{n} WHERE id > {n};\n")),
                "y\n".to_owned(),
            )
        },
    },
    Search {
        name: "miss, 500 lines",
        small: ANYTHING,
        make: |n| {
            (
                code(n),
                quoted(n, 500, |n| format!("    let value_{n} = calculate({}, {n});\n", n % 7)),
                "y\n".to_owned(),
            )
        },
    },
    Search {
        name: "one line over and over",
        small: ANYTHING,
        make: |n| ("a;\n".repeat(n), "a;\n".repeat(500), "y\n".to_owned()),
    },
    Search {
        name: "one line over and over, the last another",
        small: ANYTHING,
        make: |n| ("a;\n".repeat(n), "a;\n".repeat(500) + "b;\n", "y\n".to_owned()),
    },
    Search {
        name: "two lines in turns, the middle another",
        small: ANYTHING,
        make: |n| {
            (
                "a;\nb;\n".repeat(n / 2),
                "a;\nb;\n".repeat(100) + "c;\n" + &"a;\nb;\n".repeat(100),
                "y\n".to_owned(),
            )
        },
    },
    Search {
        name: "blank lines",
        small: ANYTHING,
        make: |n| ("\n".repeat(n), "\n\n\nx\n\n\n".repeat(20), "y\n".to_owned()),
    },
    Search {
        name: "dots in turns with one line",
        small: ANYTHING,
        make: |n| ("a;\n".repeat(n), "a;\n...\n".repeat(100) + "b;\n", "a;\n...\n".repeat(100) + "c;\n"),
    },
    Search {
        name: "one long line",
        small: ANYTHING,
        make: |n| ("ab ".repeat(n * 10), "ab  ".repeat(5_000) + "c", "y".to_owned()),
    },
];

fn placing(missed: &mut Vec<String>) {
    println!("| ms: median (least) | {SMALL} lines | asked | {LARGE} lines | asked | growth | asked |");
    println!("|---|---|---|---|---|---|---|");
    for Search { name, small, make } in SEARCHES {
        let of = |lines: usize, runs: usize| {
            let (file, search, replace) = make(lines);
            let hunk = Hunk::new(&search, &replace);
            time(runs, || match apply_hunk(&file, &hunk) {
                Ok(applied) => assert!(applied.text != file),
                Err(refusal) => assert!(!refusal.to_string().is_empty()),
            })
        };
        let (few, few_least) = of(SMALL, RUNS);
        let (_, half) = of(HALF, RUNS / 2);
        let (many, many_least) = of(LARGE, RUNS / 2);
        let growth = many_least / half;
        println!(
            "| {name} | {few:.3} ({few_least:.3}) | {small} | {many:.2} ({many_least:.2}) | {ANYTHING} | {growth:.1} | {GROWTH} |"
        );
        if few > small {
            missed.push(format!("{name} in {SMALL} lines: {few:.3} ms, asked {small}"));
        }
        if many > ANYTHING {
            missed.push(format!("{name} in {LARGE} lines: {many:.1} ms, asked {ANYTHING}"));
        }
        if growth > GROWTH && half > TOO_SHORT {
            missed.push(format!("{name}: twice the lines take {growth:.1} times as long, asked {GROWTH}"));
        }
    }
}

/// Makes a step at a line.
type Step = fn(usize) -> EditOp;

/// Many steps in one file: what they look up in it is made once.
fn many_hunks(missed: &mut Vec<String>) {
    println!(
        "\n| ms: median of all hunks | lines | 10 | 100 | 1,000 | asked of 1,000 |\n|---|---|---|---|---|---|"
    );
    let path = RelPath::parse("a.txt").unwrap();
    let context = OpContext { path: &path, shown: None, allow: AllowedDifferences::default() };
    let text = |n: usize| format!("{}let value_{n} = compute({}, {n});", " ".repeat(4 * (n % 4)), n % 7);
    let kinds: [(&str, f64, Step); 3] = [
        ("part of a line", SCANS, |n| {
            let search = format!("value_{n} = ");
            EditOp::Replace(Replace { search, replace: "x = ".to_owned(), ..Replace::default() })
        }),
        ("hunk of a patch", ANYTHING, |n| EditOp::Patch(hunk(n, ""))),
        ("hunk with blanks at an end", ANYTHING, |n| EditOp::Patch(hunk(n, "  "))),
    ];
    for lines in [SMALL, LARGE] {
        let file: String = (0..lines).map(|n| text(n) + "\n").collect();
        for (name, asked, make) in kinds {
            let took = [10, 100, 1_000].map(|count| {
                let steps: Vec<EditOp> = (1..=count).map(|nth| make(nth * (lines / (count + 1)))).collect();
                let (median, _) = time(5, || {
                    let outcome = apply_ops(Some(&file), &steps, &context);
                    assert_eq!(outcome.notes.len(), count, "{:?}", outcome.failed.first());
                });
                median
            });
            let [ten, hundred, thousand] = took;
            println!("| {name} | {lines} | {ten:.2} | {hundred:.2} | {thousand:.1} | {asked} |");
            if thousand > asked {
                missed.push(format!("1,000 times {name} in {lines} lines: {thousand:.1} ms, asked {asked}"));
            }
        }
    }
}

fn hunk(n: usize, blanks: &str) -> PatchHunk {
    let own =
        |n: usize| format!("{}let value_{n} = compute({}, {n});{blanks}", " ".repeat(4 * (n % 4)), n % 7);
    let line = |kind, text: String| PatchLine { kind, text };
    let lines = vec![
        line(LineKind::Context, own(n)),
        line(LineKind::Remove, own(n + 1)),
        line(LineKind::Add, "x".to_owned()),
        line(LineKind::Context, own(n + 2)),
    ];
    PatchHunk { lines, ..PatchHunk::default() }
}

/// Replies of [`REPLY`] bytes: prose between edits as models write them, and edits alone.
fn replies() -> Vec<(Format, &'static str, String)> {
    let prose =
        "Here is what I would change, and why: `a < b` isn't what was meant (see the test).\n".repeat(40);
    // Long enough that not too many of them fill the reply.
    let old = "    let a = 1 < 2;\n    call(a, \"text\");\n".repeat(300);
    let new = "    let a = 2 < 3;\n    call(a, \"text\");\n".repeat(300);
    let edit = format!(
        "<edit>\n<file>src/a.rs</file>\n<search>\n{old}</search>\n<replace>\n{new}</replace>\n</edit>\n"
    );
    let blocks = format!("src/a.rs\n```rust\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n");
    let lines = |prefix: &str, text: &str| {
        text.lines().fold(String::new(), |mut all, line| {
            writeln!(all, "{prefix}{line}").unwrap();
            all
        })
    };
    let (minus, plus) = (lines("-", &old), lines("+", &new));
    let udiff =
        format!("```diff\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n fn a() {{\n{minus}{plus}```\n");
    let section = format!("@@ fn a() {{\n fn a() {{\n{minus}{plus}");
    let whole = format!("src/a.rs\n```rust\nfn a() {{\n{}}}\n```\n", new);
    let lazy = format!("src/a.rs\n```rust\n// ... existing code ...\nfn a() {{\n{}}}\n```\n", new);
    let call = serde_json::json!({"path": "src/a.rs", "old_string": old, "new_string": new}).to_string();
    let filled = |one: &str| one.repeat(REPLY / one.len());
    let mut all = Vec::new();
    for (format, one) in [
        (Format::Edit, edit),
        (Format::Blocks, blocks),
        (Format::Udiff, udiff),
        (Format::Whole, whole),
        (Format::Lazy, lazy),
    ] {
        all.push((format, "edits and prose", filled(&format!("{prose}{one}"))));
        all.push((format, "edits alone", filled(&one)));
    }
    all.push((
        Format::Patch,
        "edits alone",
        format!("*** Begin Patch\n*** Update File: src/a.rs\n{}*** End Patch\n", filled(&section)),
    ));
    let calls = vec![call.as_str(); REPLY / call.len()].join(",");
    all.push((Format::Tool, "edits alone", format!("{{\"edits\":[{calls}]}}")));
    all
}

fn reading(missed: &mut Vec<String>) {
    println!(
        "\n| MB/s: median (most) | {} MB of | as named | told from the reply | asked |\n\
         |---|---|---|---|---|",
        REPLY / 1_000_000
    );
    let path = RelPath::parse("src/a.rs").unwrap();
    let files: BTreeMap<RelPath, String> = BTreeMap::from([(path, "fn a() {\n}\n".to_owned())]);
    for (format, what, reply) in replies() {
        let source = ReplySource { reply: &reply, path: None, finished: true, files: &files };
        let speed = |named: Option<Format>| {
            let whole = read_reply(&source, named);
            if whole.edits.is_empty() || !whole.problems.is_empty() {
                let why = whole.problems.first().map_or("no edit".to_owned(), ToString::to_string);
                println!("{format}, {what}: not read: {why}");
                return (0.0, 0.0);
            }
            let (median, least) = time(9, || drop(read_reply(&source, named)));
            (reply.len() as f64 / median / 1e3, reply.len() as f64 / least / 1e3)
        };
        let ((median, most), (told, told_most)) = (speed(Some(format)), speed(None));
        println!("| {format} | {what} | {median:.0} ({most:.0}) | {told:.0} ({told_most:.0}) | {READING} |");
        if median < READING {
            missed.push(format!("reading {format}, {what}: {median:.0} MB/s, asked {READING}"));
        }
    }
}

/// Texts that are made to cost much take time with their size alone.
fn hostile(missed: &mut Vec<String>) {
    let files: BTreeMap<RelPath, String> = BTreeMap::new();
    let formats: Vec<Option<Format>> = Format::ALL.into_iter().map(Some).chain([None]).collect();
    let mut slowest: Vec<(f64, String)> = Vec::new();
    for (before, part, after) in REPEATED {
        let text = |bytes: usize| format!("{before}{}{after}", part.repeat(bytes / part.len()));
        let (small, large) = (text(HOSTILE / 4), text(HOSTILE));
        for format in &formats {
            let whole = |reply: &str| {
                let source = ReplySource { reply, path: None, finished: true, files: &files };
                time(3, || drop(read_reply(&source, *format))).1
            };
            let named = format.map_or("no format", Format::name);
            let (took, less) = (whole(&large), whole(&small));
            let what = format!("{before:?} {part:?} {after:?} as {named}: {took:.1} ms, a quarter {less:.1}");
            if took > HOSTILE_MS || (took > HOSTILE_TELLING && took > HOSTILE_GROWTH * less) {
                missed.push(what.clone());
            }
            slowest.push((took, what));
        }
    }
    slowest.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("\n{} readings of {HOSTILE} bytes made to cost much; the slowest:\n", slowest.len());
    for (_, what) in slowest.iter().take(5) {
        println!("- {what}");
    }
}
