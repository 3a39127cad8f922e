//! Changes that cheat tests are found, and honest ones of the same look pass.
//!
//! The changes are in `tests/honesty`: `### name`, then `@@ path` with the lines of a diff; a path
//! may be `added` or `deleted`.

use std::path::Path;

use journeyman_protocol::{HonestyFinding, HonestySeverity, RelPath};
use journeyman_verify::guards::{ChangedFile, find_dishonest_changes};
use proptest::prelude::*;

/// A change and its name.
struct Case {
    name: String,
    files: Vec<ChangedFile>,
}

fn read_cases(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/honesty").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.split("### ").skip(1).map(read_case).collect()
}

fn read_case(text: &str) -> Case {
    let (name, rest) = text.split_once('\n').unwrap();
    let files = rest.split("@@ ").skip(1).map(|file| {
        let (head, body) = file.split_once('\n').unwrap();
        let (path, state) = head.split_once(' ').unwrap_or((head, ""));
        let (mut old, mut new) = (String::new(), String::new());
        for line in body.lines() {
            let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
            if sign != "+" {
                old.push_str(rest);
                old.push('\n');
            }
            if sign != "-" {
                new.push_str(rest);
                new.push('\n');
            }
        }
        ChangedFile {
            path: RelPath::parse(path).unwrap(),
            old: (state != "added").then_some(old),
            new: (state != "deleted").then_some(new),
        }
    });
    Case { name: name.to_owned(), files: files.collect() }
}

fn blocks(findings: &[HonestyFinding]) -> bool {
    findings.iter().any(|one| one.severity == HonestySeverity::Blocking)
}

/// Returns the cases that block, and those that don't.
fn judge(file: &str) -> (Vec<String>, Vec<String>) {
    let (mut blocked, mut passed) = (Vec::new(), Vec::new());
    for case in read_cases(file) {
        let findings = find_dishonest_changes(&case.files);
        let shown: Vec<String> = findings.iter().map(|one| format!("{:?} {one}", one.severity)).collect();
        let line = format!("{}\n    {}", case.name, shown.join("\n    "));
        if blocks(&findings) { blocked.push(line) } else { passed.push(line) }
    }
    (blocked, passed)
}

#[test]
fn every_way_to_cheat_a_test_suite_is_flagged() {
    let (blocked, missed) = judge("cheats.diff");
    assert!(blocked.len() + missed.len() >= 60);
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn honest_changes_of_the_same_look_are_not_blocked() {
    let (blocked, passed) = judge("honest.diff");
    assert!(blocked.len() + passed.len() >= 60);
    assert!(blocked.len() <= 3, "{} blocked:\n{}", blocked.len(), blocked.join("\n"));
}

/// Texts of any kind, and texts that look like tests.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "def test_a():\n",
        "    assert f(1) == 3\n",
        "it('a', () => {",
        "expect(x).toBe(1);",
        "});\n",
        "#[test]\n",
        "fn a() {",
        "assert_eq!(a, b);",
        "}\n",
        "func TestA(t *testing.T) {\n",
        "if a != b { t.Error(1) }\n",
        "@Test void a() {",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "\"",
        "'",
        "# noqa",
        "// @ts-ignore\n",
        "\u{0}",
        "é",
        "\n",
        "    ",
        "key = [1,\n",
        "- run: x || true\n",
        "<a b='c'>",
        "</a>",
        "try:\n",
        "except:\n",
        "    pass\n",
        "1994",
        "return 3\n",
        "skip",
        ":",
        "=",
        "\r",
        "\u{1b}[31m",
    ]);
    prop_oneof![any::<String>(), prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_texts_are_read_without_a_panic(
        old in prop::option::of(any_text()),
        new in prop::option::of(any_text()),
        path in prop::sample::select(vec![
            "tests/test_a.py", "a.test.ts", "src/a.rs", "a_test.go", "ATest.java", "tests/a.c", "a_spec.rb", "ATest.php",
            "test/a.exs", "package.json", "Cargo.toml", "ci.yml", ".github/workflows/a.yml", "pom.xml", "Makefile", "a.sh",
            "tests/a.snap", "Test.kt", "ATests.swift", ".eslintignore", "setup.cfg",
        ]),
    ) {
        let file = ChangedFile { path: RelPath::parse(path).unwrap(), old, new };
        let found = find_dishonest_changes(std::slice::from_ref(&file));
        prop_assert!(found.len() <= 100);
        prop_assert!(found.iter().all(|one| one.message.len() < 2_000), "{found:?}");
        // An unchanged file has no findings, whatever it holds.
        let same = ChangedFile { old: file.new.clone(), ..file };
        prop_assert_eq!(find_dishonest_changes(&[same]), Vec::new());
    }
}

#[test]
fn texts_that_are_made_to_cost_much_are_bounded() {
    let many = |piece: &str, count: usize| piece.repeat(count);
    for text in [
        many("def test_a():\n    assert f(1) == 3\n", 5_000),
        many("((((", 100_000),
        many("it('a', () => {", 10_000),
        many("expect(x).toBe(1);\n", 20_000),
        many("# noqa\n", 30_000),
        many("key: [\n", 30_000),
        many("<a>", 100_000),
        many("\"", 200_000),
        many("x = 1\n", 60_000),
    ] {
        for path in
            ["tests/test_a.py", "a.test.js", "package.json", "Makefile", "pom.xml", "a.yml", "test/a.exs"]
        {
            let file = ChangedFile {
                path: RelPath::parse(path).unwrap(),
                old: Some(text.clone()),
                new: Some(text.replace('1', "2").replace("noqa", "fmt")),
            };
            let found = find_dishonest_changes(&[file]);
            assert!(found.len() <= 100, "{path}: {}", found.len());
        }
    }
}

#[test]
#[ignore = "prints"]
fn dump() {
    for file in std::env::var("JM_HONESTY").unwrap_or_default().split(',') {
        let (blocked, passed) = judge(file);
        println!("== {file}: {} blocked, {} not", blocked.len(), passed.len());
        if std::env::var("JM_QUIET").is_err() {
            println!("BLOCKED\n{}\nNOT\n{}", blocked.join("\n"), passed.join("\n"));
        }
    }
}

#[test]
#[ignore = "prints"]
fn timing() {
    let many = |piece: &str, count: usize| piece.repeat(count);
    let only = std::env::var("JM_ONLY").unwrap_or_default();
    for (name, text) in [
        ("tests", many("def test_a():\n    assert f(1) == 3\n", 5_000)),
        ("open", many("((((", 100_000)),
        ("it", many("it('a', () => {", 10_000)),
        ("expect", many("expect(x).toBe(1);\n", 20_000)),
        ("noqa", many("# noqa\n", 3_000)),
        ("noqa2", many("# noqa\n", 30_000)),
        ("key", many("key: [\n", 30_000)),
        ("tag", many("<a>", 100_000)),
        ("quote", many("\"", 200_000)),
        ("assign", many("x = 1\n", 60_000)),
    ] {
        if !name.starts_with(&only) {
            continue;
        }
        for path in
            ["tests/test_a.py", "a.test.js", "package.json", "Makefile", "pom.xml", "a.yml", "test/a.exs"]
        {
            let begun = std::time::Instant::now();
            let file = ChangedFile {
                path: RelPath::parse(path).unwrap(),
                old: Some(text.clone()),
                new: Some(text.replace('1', "2").replace("noqa", "fmt")),
            };
            let found = find_dishonest_changes(&[file]);
            if begun.elapsed().as_millis() > 900 {
                eprintln!("{name} {path}: {} {:?}", found.len(), begun.elapsed());
            }
        }
    }
}
