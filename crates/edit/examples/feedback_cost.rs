//! How long a refusal takes with all that it says, also for texts made to be slow:
//! `cargo run --release -p journeyman-edit --example feedback_cost`. Processor time, the least
//! of five runs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use journeyman_edit::{
    ApplyOptions, Edit, EditOp, Hunk, MAX_FEEDBACK_BYTES, Replace, find_place, plan_edits,
};
use journeyman_protocol::RelPath;

/// A file, the version that was shown, and a search text with its replacement.
struct Case {
    name: &'static str,
    file: String,
    base: Option<String>,
    search: String,
    replacement: String,
}

fn case(name: &'static str, file: String, search: String) -> Case {
    Case { name, file, base: None, search, replacement: "something else\n".to_owned() }
}

fn code(lines: usize) -> String {
    let line = |n: usize| format!("{}let value_{n} = compute({}, {n});\n", " ".repeat(4 * (n % 4)), n % 7);
    (0..lines).map(line).collect()
}

fn cases(lines: usize) -> Vec<Case> {
    let file = code(lines);
    let middle = lines / 2;
    let asked = |count: usize, name: &str| -> String {
        (middle..middle + count).map(|n| format!("    let value_{n} = {name}({}, {n});\n", n % 7)).collect()
    };
    let other_base: String = file.lines().map(|line| format!("{line} // before\n")).collect();
    let swapped: String = (0..lines).map(|n| format!("row {};\n", (n * 7919) % lines)).collect();
    let rows: String = (0..lines).map(|n| format!("row {n};\n")).collect();
    let same = "a = b(c, d);\n".repeat(lines);
    let merge = |name, file: &str, base: String, search: String| Case {
        base: Some(base),
        ..case(name, file.to_owned(), search)
    };
    vec![
        case("a miss of 20 lines", file.clone(), asked(20, "calculate")),
        case("a miss of 400 lines", file.clone(), asked(400.min(lines / 2), "calculate")),
        case("one line, nowhere", file.clone(), "SELECT name FROM users;\n".to_owned()),
        case("equal lines, several places", same.clone(), "a = b(c, d);\n".repeat(3)),
        case("equal lines, a miss of 400", same.clone(), format!("{}x = y;\n", "a = b(c, d);\n".repeat(400))),
        case("nearly equal lines", same.clone(), "a = b(c, e);\n".repeat(400)),
        case(
            "long lines",
            format!("{}\n", "let a = b; ".repeat(60)).repeat(lines / 16),
            "let a = c; ".repeat(60),
        ),
        case("one line", "let a = b; ".repeat(lines * 3), "let a = c; ".repeat(200)),
        case(
            "characters of more bytes",
            "let größe = „ä“; // ☃\n".repeat(lines),
            "let größe = „ö“; // ☃\n".repeat(9),
        ),
        merge("another version, not in it", &file, other_base.clone(), asked(20, "calculate")),
        merge(
            "another version, all lines changed",
            &file,
            other_base.clone(),
            other_base.lines().take(5).collect::<Vec<_>>().join("\n"),
        ),
        merge(
            "another version, lines in another order",
            &swapped,
            rows.clone(),
            rows.lines().take(400).collect::<Vec<_>>().join("\n"),
        ),
        merge(
            "another version, equal lines",
            &same,
            format!("{}x;\n{}", "a = b(c, d);\n".repeat(lines / 2), "a = b(c, d);\n".repeat(lines / 3)),
            "a = b(c, d);\nx;\n".to_owned(),
        ),
    ]
}

fn least(mut run: impl FnMut()) -> Duration {
    let once = |_| {
        let (begun, used) = (Instant::now(), processor_time());
        run();
        let used = processor_time().zip(used).map(|(now, then)| now.saturating_sub(then));
        used.unwrap_or_else(|| begun.elapsed())
    };
    (0..5).map(once).min().unwrap_or_default()
}

/// What this thread has used, where the system says so: on a busy machine a clock says little.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(stat.split(' ').next()?.parse().ok()?))
}

fn main() {
    for lines in [10_000, 100_000] {
        println!("{lines} lines");
        for case in cases(lines) {
            let hunk = Hunk { base: case.base.as_deref(), ..Hunk::new(&case.search, &case.replacement) };
            let mut kind = "placed";
            let took = least(|| {
                if let Err(refusal) = find_place(&case.file, &hunk) {
                    kind = refusal.kind();
                    assert!(refusal.to_string().len() <= MAX_FEEDBACK_BYTES);
                }
            });
            println!("  {:42} {:8.2} ms  {kind}", case.name, took.as_secs_f64() * 1e3);
        }
        with_others(lines);
    }
}

/// The same with 48 other files to look into.
fn with_others(lines: usize) {
    let Ok(path) = RelPath::parse("a.rs") else { return };
    let search = "    let value_5 = calculate(5, 5);\n".to_owned();
    let mut files: BTreeMap<RelPath, String> =
        (0..48).filter_map(|n| Some((RelPath::parse(format!("src/{n}.rs")).ok()?, code(1_000)))).collect();
    files.insert(path.clone(), code(lines));
    let op = EditOp::Replace(Replace { search, replace: "x\n".to_owned(), ..Replace::default() });
    let edits = [Edit { path, ops: vec![op], description: None }];
    let took = least(|| assert!(!plan_edits(&edits, &ApplyOptions::default(), &files).feedback().is_empty()));
    println!("  {:42} {:8.2} ms", "a miss beside 48 files of 1,000 lines", took.as_secs_f64() * 1e3);
}
