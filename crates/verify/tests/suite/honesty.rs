//! Changes that cheat tests are found, and honest ones of the same look pass.
//!
//! The changes are in `tests/honesty`: `### name`, then `@@ path` with the lines of a diff; a path
//! may be `added` or `deleted`.

use std::path::Path;

use journeyman_protocol::{HonestyFinding, HonestySeverity, RelPath};
use journeyman_verify::guards::{ChangedFile, find_dishonest_changes};

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
