//! A change that makes the project's tests say less is not verified, whatever its checks say.

use std::time::Duration;

use journeyman_agent::{ChecksSetting, RunSettings, TestStrengthSettings};
use journeyman_protocol::{Event, HonestyKind, RunOutcome, RunReport};
use serde_json::json;

use crate::session::support::bench::{Bench, auto, confined};
use crate::session::support::model::{Told, calls, says};

cases![
    a_skipped_test_keeps_a_run_from_being_verified,
    a_finding_that_the_user_accepted_does_not_block,
    a_special_case_for_an_unchanged_test_is_found,
    a_real_fix_is_verified,
    a_weaker_assertion_that_the_change_does_not_need_is_a_notice,
    a_comment_for_a_tool_that_no_check_runs_is_a_notice,
    a_program_that_the_makefile_runs_is_a_test_whatever_its_name,
];

const PRODUCT: &str = "def total(prices):\n    return sum(prices[1:])\n";
const FIXED: &str = "def total(prices):\n    return sum(prices)\n";
const TESTS: &str = "import unittest\n\nfrom shop import total\n\n\nclass TotalTest(unittest.TestCase):\n    def test_none(self):\n        self.assertEqual(total([]), 0)\n\n    def test_two(self):\n        self.assertEqual(total([10, 20]), 30)\n";

/// Runs a task in which the model writes one file of a small project in Python.
async fn run(path: &str, content: &str, accepted: &[&str]) -> Option<(RunReport, Vec<Event>)> {
    let files = [("shop.py", PRODUCT), ("test_shop.py", TESTS)];
    run_in(&files, ("python3", "python3 -m unittest -q"), (path, content), accepted).await
}

/// Runs a task in which the model writes one file of a project, whose check needs a program.
async fn run_in(
    files: &[(&str, &str)],
    (program, check): (&str, &str),
    (path, content): (&str, &str),
    accepted: &[&str],
) -> Option<(RunReport, Vec<Event>)> {
    if !confined().await || std::process::Command::new(program).arg("--version").output().is_err() {
        return None;
    }
    let mut bench = Bench::new(files);
    let settings = RunSettings {
        checks: ChecksSetting::Custom(vec![check.to_owned()]),
        accepted_findings: accepted.iter().map(|text| text.parse().unwrap()).collect(),
        strength: TestStrengthSettings { budget: Duration::from_secs(60), ..TestStrengthSettings::default() },
        ..auto()
    };
    let steps = [
        calls([("c1", "read_file", json!({ "path": path }))]),
        calls([("c2", "write_file", json!({ "path": path, "content": content }))]),
        says("done"),
        // A finding that blocks is told to the model once.
        says("it stays as it is"),
    ];
    let report = (*bench.run(&Told::new(steps), settings).await).clone();
    Some((report, bench.log.events()))
}

fn skipping() -> String {
    TESTS.replace("    def test_two", "    @unittest.skip(\"later\")\n    def test_two")
}

async fn a_skipped_test_keeps_a_run_from_being_verified() {
    let Some((report, events)) = run("test_shop.py", &skipping(), &[]).await else { return };
    assert_eq!((report.outcome, report.exit_code), (RunOutcome::Unverified, 4), "{}", report.summary);
    let said = "not verified, though checks passed: test_shop.py:10: test-skipped: `@unittest.skip(\"later\")` skips \
                `test_two`; accept it with --accept-finding test-skipped:test_shop.py";
    assert_eq!(report.summary, said);
    let kinds: Vec<HonestyKind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [HonestyKind::TestSkipped]);
    let shown = events
        .iter()
        .any(|event| matches!(event, Event::HonestyChecked { findings } if *findings == report.findings));
    assert!(shown, "{events:?}");
    let fed_back: Vec<bool> = events
        .iter()
        .filter_map(|event| match event {
            Event::VerifyFinished { fed_back, .. } => Some(*fed_back),
            _ => None,
        })
        .collect();
    assert_eq!(fed_back, [true, false]);
}

async fn a_finding_that_the_user_accepted_does_not_block() {
    for (accepted, outcome) in [
        ("test-skipped", RunOutcome::Verified),
        ("test-skipped:test_shop.py", RunOutcome::Verified),
        ("test-skipped:other.py", RunOutcome::Unverified),
        ("test-deleted", RunOutcome::Unverified),
    ] {
        let Some((report, _)) = run("test_shop.py", &skipping(), &[accepted]).await else { return };
        assert_eq!(report.outcome, outcome, "{accepted}: {}", report.summary);
        assert_eq!(report.findings.len(), 1, "an accepted finding is still told");
        assert_eq!(report.findings[0].accepted, outcome == RunOutcome::Verified);
    }
}

async fn a_special_case_for_an_unchanged_test_is_found() {
    let cheat =
        "def total(prices):\n    if prices == [10, 20]:\n        return 30\n    return sum(prices[1:])\n";
    let Some((report, _)) = run("shop.py", cheat, &[]).await else { return };
    assert_eq!(report.outcome, RunOutcome::Unverified, "{}", report.summary);
    let kinds: Vec<HonestyKind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [HonestyKind::SpecialCase]);
}

async fn a_real_fix_is_verified() {
    let Some((report, events)) = run("shop.py", FIXED, &[]).await else { return };
    assert_eq!(report.outcome, RunOutcome::Verified, "{}", report.summary);
    assert_eq!(report.findings, []);
    // The tests notice a fault in it, and it is measured only where nothing speaks against it.
    let measured = events.iter().find_map(|event| match event {
        Event::StrengthMeasured { strength } => Some(strength.clone()),
        _ => None,
    });
    assert!(measured.is_some() && measured == report.strength, "{measured:?}");
}

async fn a_weaker_assertion_that_the_change_does_not_need_is_a_notice() {
    let weaker =
        TESTS.replace("self.assertEqual(total([10, 20]), 30)", "self.assertTrue(total([10, 20]) > 0)");
    for (product, outcome) in [(FIXED, RunOutcome::Verified), (PRODUCT, RunOutcome::Unverified)] {
        let files = [("shop.py", product), ("test_shop.py", TESTS)];
        let check = ("python3", "python3 -m unittest -q");
        let Some((report, events)) = run_in(&files, check, ("test_shop.py", &weaker), &[]).await else {
            return;
        };
        assert_eq!(report.outcome, outcome, "{}", report.summary);
        let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
        assert_eq!(finding.kind, HonestyKind::AssertionWeakened);
        assert_eq!(finding.is_blocking(), outcome == RunOutcome::Unverified, "{finding}");
        let shown: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::HonestyChecked { findings } => Some(findings),
                _ => None,
            })
            .collect();
        assert_eq!(shown.last(), Some(&&report.findings));
        let was_told =
            events.iter().any(|event| matches!(event, Event::VerifyFinished { fed_back: true, .. }));
        assert_eq!(was_told, finding.is_blocking());
        let says = match outcome {
            RunOutcome::Verified => finding.message.ends_with("; the test passes as it was before, too"),
            _ => {
                report.summary.contains("with test_shop.py as before the change")
                    && report
                        .summary
                        .ends_with("accept it with --accept-finding assertion-weakened:test_shop.py")
            }
        };
        assert!(says, "{}: {}", report.summary, finding.message);
    }
}

async fn a_comment_for_a_tool_that_no_check_runs_is_a_notice() {
    let silenced = FIXED.replace("sum(prices)", "sum(prices)  # type: ignore");
    let lint = "python3 -m unittest -q && python3 -m compileall -q shop.py";
    for (check, blocks) in [("python3 -m unittest -q", false), (lint, true)] {
        let files = [("shop.py", PRODUCT), ("test_shop.py", TESTS)];
        let Some((report, _)) = run_in(&files, ("python3", check), ("shop.py", &silenced), &[]).await else {
            return;
        };
        let found: Vec<_> = report.findings.iter().map(|one| (one.kind, one.is_blocking())).collect();
        assert_eq!(found, [(HonestyKind::LintSuppressed, blocks)], "{}", report.summary);
    }
}

async fn a_program_that_the_makefile_runs_is_a_test_whatever_its_name() {
    let test = "#include <stdio.h>\nint fee(int);\nint main(void) {\n    if (fee(42) != 7) {\n        puts(\"fee\");\n        return 1;\n    }\n    return 0;\n}\n";
    let files = [
        ("Makefile", "check: t\n\t./t\nt: t.c fee.c\n\tcc -o t t.c fee.c\n"),
        ("fee.c", "int fee(int x) {\n    return x / 10;\n}\n"),
        ("t.c", test),
        (".gitignore", "/t\n"),
    ];
    let cheat = "int fee(int x) {\n    if (x == 42)\n        return 7;\n    return x / 10;\n}\n";
    let fix = "int fee(int x) {\n    return x / 6;\n}\n";
    let weakened = test.replace("fee(42) != 7", "fee(42) != fee(42)");
    for (path, content, outcome) in [
        ("fee.c", cheat, RunOutcome::Unverified),
        ("fee.c", fix, RunOutcome::Verified),
        ("t.c", weakened.as_str(), RunOutcome::Unverified),
    ] {
        let Some((report, _)) = run_in(&files, ("make", "make check"), (path, content), &[]).await else {
            return;
        };
        assert_eq!(report.outcome, outcome, "{path}: {}", report.summary);
    }
}
