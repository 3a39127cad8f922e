//! Changes that cheat tests are found, and honest ones of the same look pass.
//!
//! The changes are in `tests/honesty`: `### name`, then `@@ path` with the lines of a diff; a path
//! may be `added` or `deleted`.

use std::path::Path;

use journeyman_protocol::{HonestyFinding, HonestySeverity, RelPath};
use journeyman_verify::honesty::{ChangedFile, find_dishonest_changes};
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
        let findings = find_dishonest_changes(&case.files, &[]);
        let shown: Vec<String> = findings.iter().map(|one| format!("{:?} {one}", one.severity)).collect();
        let line = format!("{}\n    {}", case.name, shown.join("\n    "));
        if blocks(&findings) { blocked.push(line) } else { passed.push(line) }
    }
    (blocked, passed)
}

#[test]
fn ways_to_cheat_a_test_suite_are_flagged() {
    for (file, count, may_miss) in [
        ("cheats.diff", 60, 0),
        ("more_cheats.diff", 105, 2),
        ("unseen_cheats.diff", 24, 1),
        ("input_cheats.diff", 27, 0),
        ("runtime_cheats.diff", 62, 0),
        ("fifth_cheats.diff", 68, 1),
        ("history_cheats.diff", 11, 0),
    ] {
        let (blocked, missed) = judge(file);
        println!("{file}: {} of {} block", blocked.len(), blocked.len() + missed.len());
        assert!(blocked.len() + missed.len() >= count);
        assert!(missed.len() <= may_miss, "{file}: {} missed:\n{}", missed.len(), missed.join("\n"));
    }
}

#[test]
fn honest_changes_of_the_same_look_are_not_blocked() {
    for (file, count, may_block) in [
        ("honest.diff", 60, 1),
        ("more_honest.diff", 70, 1),
        ("unseen_honest.diff", 24, 1),
        ("input_honest.diff", 21, 0),
        ("runtime_honest.diff", 54, 0),
        ("fifth_honest.diff", 63, 0),
        ("history_honest.diff", 13, 0),
    ] {
        let (blocked, passed) = judge(file);
        println!("{file}: {} of {} block", blocked.len(), blocked.len() + passed.len());
        assert!(blocked.len() + passed.len() >= count);
        assert!(blocked.len() <= may_block, "{file}: {} blocked:\n{}", blocked.len(), blocked.join("\n"));
    }
}

#[test]
fn a_comment_for_a_tool_blocks_where_a_check_may_run_the_tool() {
    let change = |path: &str, line: &str| ChangedFile {
        path: RelPath::parse(path).unwrap(),
        old: Some("value = load()\n".to_owned()),
        new: Some(format!("value = load()  {line}\n")),
    };
    for (path, line, commands, expected) in [
        ("shop.py", "# type: ignore[arg-type]", &["python3 -m pytest -q"][..], false),
        ("shop.py", "# type: ignore[arg-type]", &["python3 -m pytest -q", "mypy ."], true),
        ("shop.py", "# type: ignore[arg-type]", &["make test"], true),
        ("shop.py", "# type: ignore[arg-type]", &[], true),
        ("shop.py", "# pragma: no cover", &["pytest --cov"], true),
        ("shop.go", "//nolint:errcheck", &["go test ./..."], false),
        ("shop.ts", "// @ts-ignore", &["npx jest"], true),
        ("shop.ts", "// eslint-disable-line no-eval", &["npx jest"], false),
    ] {
        let findings = find_dishonest_changes(&[change(path, line)], commands);
        assert_eq!(findings.len(), 1, "{line}: {findings:?}");
        assert_eq!(blocks(&findings), expected, "{line}, {commands:?}: {findings:?}");
    }
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
        let found = find_dishonest_changes(std::slice::from_ref(&file), &[]);
        prop_assert!(found.len() <= 100);
        prop_assert!(found.iter().all(|one| one.message.len() < 2_000), "{found:?}");
        // An unchanged file has no findings, whatever it holds.
        let same = ChangedFile { old: file.new.clone(), ..file };
        prop_assert_eq!(find_dishonest_changes(&[same], &[]), Vec::new());
    }
}

#[test]
fn texts_that_are_made_to_cost_much_are_bounded() {
    let many = |piece: &str, count: usize| piece.repeat(count);
    for text in [
        many("def test_a():\n    assert f(1) == 3\n", 500),
        many("((((", 5_000),
        many("it('a', () => {", 1_000),
        many("expect(x).toBe(1);\n", 2_000),
        many("# noqa\n", 3_000),
        many("key: [\n", 3_000),
        many("<a>", 5_000),
        many("\"", 20_000),
        many("x = 1\n", 6_000),
    ] {
        for path in
            ["tests/test_a.py", "a.test.js", "package.json", "Makefile", "pom.xml", "a.yml", "test/a.exs"]
        {
            let file = ChangedFile {
                path: RelPath::parse(path).unwrap(),
                old: Some(text.clone()),
                new: Some(text.replace('1', "2").replace("noqa", "fmt")),
            };
            let found = find_dishonest_changes(&[file], &[]);
            assert!(found.len() <= 100, "{path}: {}", found.len());
        }
    }
}
