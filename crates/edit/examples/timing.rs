//! How long placing and reading take on large inputs: `cargo run --release --example timing`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use journeyman_edit::{Format, ReplySource, detect, parse_blocks, read_reply, replace};
use journeyman_protocol::RelPath;

fn best(mut run: impl FnMut()) -> Duration {
    (0..5)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    for lines in [10_000, 100_000] {
        let file: String = (0..lines)
            .map(|n| format!("{}let value_{n} = compute({}, {n});\n", " ".repeat(4 * (n % 4)), n % 7))
            .collect();
        let middle = lines / 2;
        let exact = format!("let value_{middle} = compute({}, {middle});\n", middle % 7);
        let shifted: String =
            (middle..middle + 20).map(|n| format!("\tlet value_{n} = compute({}, {n});\n", n % 7)).collect();
        let missing: String = (middle..middle + 20)
            .map(|n| format!("    let value_{n} = calculate({}, {n});\n", n % 7))
            .collect();
        let same = "a;\n".repeat(lines);
        println!("{lines} lines, {} bytes", file.len());
        println!("  exact      {:?}", best(|| assert!(replace(&file, &exact, "x\n", false).is_ok())));
        println!("  indented   {:?}", best(|| drop(replace(&file, &shifted, "x\n", false))));
        println!("  miss       {:?}", best(|| assert!(replace(&file, &missing, "y\n", false).is_err())));
        println!(
            "  miss, text {:?}",
            best(|| {
                replace(&file, &missing, "y\n", false).unwrap_err_or_empty();
            })
        );
        println!(
            "  equal lines{:?}",
            best(|| assert!(replace(&same, &"a;\n".repeat(500), "y\n", false).is_err()))
        );
        let lines_of = |from: usize, len: usize| -> String {
            file.lines().skip(from).take(len).map(|line| format!("{line}\n")).collect()
        };
        let stale = lines_of(middle, 20).replace(&format!("let value_{}", middle + 7), "let another");
        let edited = stale.replace(&format!("let value_{}", middle + 9), "let changed");
        println!("  stale line {:?}", best(|| assert!(replace(&file, &stale, &edited, false).is_ok())));
        let long = lines_of(middle, 400).replace("compute", "calculate");
        println!("  long miss  {:?}", best(|| assert!(replace(&file, &long, "y\n", false).is_err())));
        let elided = format!("{}...\n{}", lines_of(middle, 2), lines_of(middle + 100, 2));
        let elided_new = elided.replace(&format!("value_{middle} "), "changed ");
        println!("  elision    {:?}", best(|| assert!(replace(&file, &elided, &elided_new, false).is_ok())));
        let curly = file.replace("compute", "\u{201c}compute\u{201d}").replace("let", "l\u{e9}t");
        println!("  unicode    {:?}", best(|| assert!(replace(&curly, &missing, "y\n", false).is_err())));
        let blocks = "begin\n    one\n    two\nend\n".repeat(lines / 4);
        let block = "begin\n    one\n    too\nend\n";
        println!("  candidates {:?}", best(|| assert!(replace(&blocks, block, "x\n", false).is_err())));
        let escaped = missing.replace('\n', "\\n");
        println!("  escapes    {:?}", best(|| assert!(replace(&file, &escaped, "y", false).is_err())));
        println!(
            "  near miss  {:?}",
            best(|| drop(replace(&same, &format!("{}b;\n", "a;\n".repeat(500)), "a;\n", false)))
        );
    }
    let line = "let x = compute(\"a\", 1); ".repeat(40_000);
    let (one, other) = (format!("a\n{line}\nb\n"), format!("a\n{line}x\nb\n"));
    println!("lines of 1 MB {:?}", best(|| assert!(replace(&one, &other, "y\n", false).is_err())));
    let block = "Now:\n<edit>\n<file>a/b.rs</file>\n<search>\nlet a = 1 < 2;\n</search>\n<replace>\nlet a = 2 < 3;\n</replace>\n</edit>\n";
    let reply = format!("{}{}", "prose < with > brackets\n".repeat(200_000), block.repeat(400));
    let hostile = [
        ("reply", reply),
        ("opens", "<edit>\n<file>a</file>\n<search>".repeat(100_000)),
        ("closes", format!("<edit>\n<file>a</file>\n<replace>{}", "</replace>\n</edit>\nx".repeat(100_000))),
        ("calls", "<call tool=\"x\">{".repeat(200_000)),
        ("brackets", "<".repeat(4_000_000)),
        ("faults", "<edit>\n<file>a</file>\nx\n</edit>".repeat(100_000)),
    ];
    for (name, text) in hostile {
        let took = best(|| drop(parse_blocks(&text)));
        println!("{name:9} {:5.1} MB in {took:?}", text.len() as f64 / 1e6);
    }
    parse();
}

/// 5 MB of model text in each format, and texts that are made to cost much.
fn parse() {
    let code: String =
        (0..170).map(|n| format!("    let value_{n} = compute({}, {n}); // some remark\n", n % 7)).collect();
    let change = code.replace("compute", "work_out");
    let prose = "Then the next part is changed so that it is worked out once and kept.\n".repeat(4);
    let marked =
        |prefix: &str, text: &str| text.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
    let json = serde_json::json!({"path": "a.rs", "old_string": code, "new_string": change}).to_string();
    let one = |format: Format| match format {
        Format::Edit => {
            format!(
                "{prose}<edit>\n<file>a.rs</file>\n<search>\n{code}</search>\n<replace>\n{change}</replace>\n</edit>\n"
            )
        }
        Format::Blocks => {
            format!("{prose}\na.rs\n```rust\n<<<<<<< SEARCH\n{code}=======\n{change}>>>>>>> REPLACE\n```\n")
        }
        Format::Udiff => {
            format!(
                "--- a/a.rs\n+++ b/a.rs\n@@ -1,170 +1,170 @@\n{}{}",
                marked("-", &code),
                marked("+", &change)
            )
        }
        Format::Patch => {
            format!("*** Update File: a.rs\n@@ fn a\n{}{}", marked("-", &code), marked("+", &change))
        }
        Format::Tool => format!("{json},"),
        _ => format!("{prose}\na.rs\n```rust\n{code}{change}```\n"),
    };
    for format in Format::ALL {
        let part = one(format);
        let body = part.repeat(5_000_000 / part.len());
        let text = match format {
            Format::Tool => format!("[{}]", body.trim_end_matches(',')),
            Format::Patch => format!("*** Begin Patch\n{body}*** End Patch\n"),
            _ => body,
        };
        let megabytes = text.len() as f64 / 1e6;
        println!(
            "parse {format:7}{:6.0} MB/s",
            megabytes / best(|| drop(taken(&text, Some(format)))).as_secs_f64()
        );
        println!(
            "  detect     {:6.0} MB/s",
            megabytes / best(|| assert!(detect(&text).is_some())).as_secs_f64()
        );
    }
    for (name, part) in [
        ("openers", "<<<<<<< SEARCH\n"),
        ("dividers", "=======\n"),
        ("closers", ">>>>>>> REPLACE\n"),
        ("conflicts", "<<<<<<< HEAD\n"),
        ("fences", "```\n"),
        ("named", "a.rs\n```rust\n"),
        ("markdown", "a.md\n```md\nx\n```\n```\n"),
        ("pairs", "<old_text>a</old_text>"),
        ("brackets", "[{"),
        ("tags", "<edit><file>a</file><search>"),
        ("file tags", "<file path=\"a\">\n"),
    ] {
        for format in Format::ALL {
            let times: Vec<f64> = [50_000, 200_000]
                .iter()
                .map(|count| {
                    let text = format!("<<<<<<< SEARCH\n{}", part.repeat(*count));
                    best(|| drop(taken(&text, Some(format)))).as_secs_f64() * 1e3
                })
                .collect();
            if let [small, large] = times.as_slice()
                && *large > 20.0
            {
                println!("{name:10} as {format:7} {small:7.1} ms, four times as much {large:7.1} ms");
            }
        }
    }
}

fn taken(text: &str, format: Option<Format>) -> journeyman_edit::ParsedReply {
    let files: BTreeMap<RelPath, String> = BTreeMap::new();
    read_reply(&ReplySource { reply: text, path: None, finished: true, files: &files }, format)
}

trait ErrorText {
    fn unwrap_err_or_empty(self) -> String;
}

impl<T, E: std::fmt::Display> ErrorText for Result<T, E> {
    fn unwrap_err_or_empty(self) -> String {
        self.err().map(|error| error.to_string()).unwrap_or_default()
    }
}
