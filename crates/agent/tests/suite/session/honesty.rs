//! A change that makes the project's tests say less is not verified, whatever its checks say.

use std::time::Duration;

use journeyman_agent::{Checks, RunSettings, StrengthSettings};
use journeyman_protocol::{Event, HonestyKind, RunOutcome, RunReport};
use serde_json::json;

use crate::session::support::bench::{Bench, auto, confined};
use crate::session::support::model::{Told, calls, says};

cases![
    a_skipped_test_keeps_a_run_from_being_verified,
    a_finding_that_the_user_accepted_does_not_block,
    a_special_case_for_an_unchanged_test_is_found,
    a_real_fix_is_verified,
];

const PRODUCT: &str = "def total(prices):\n    return sum(prices[1:])\n";
const FIXED: &str = "def total(prices):\n    return sum(prices)\n";
const TESTS: &str = "import unittest\n\nfrom shop import total\n\n\nclass TotalTest(unittest.TestCase):\n    def test_none(self):\n        self.assertEqual(total([]), 0)\n\n    def test_two(self):\n        self.assertEqual(total([10, 20]), 30)\n";

/// Runs a task in which the model writes one file of a small project in Python.
async fn run(path: &str, content: &str, accepted: &[&str]) -> Option<(RunReport, Vec<Event>)> {
    if !confined().await || std::process::Command::new("python3").arg("--version").output().is_err() {
        return None;
    }
    let mut bench = Bench::new(&[("shop.py", PRODUCT), ("test_shop.py", TESTS)]);
    let settings = RunSettings {
        checks: Checks::Custom(vec!["python3 -m unittest -q".to_owned()]),
        accepted_findings: accepted.iter().map(|text| text.parse().unwrap()).collect(),
        strength: StrengthSettings { budget: Duration::from_secs(60), ..StrengthSettings::default() },
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
