//! Feedback about failed checks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use journeyman_context::{CheckedRound, FEEDBACK_BUDGET, Feedback, TokenEstimator, describe_failed_checks};
use journeyman_protocol::{
    Baseline, CheckKind, CheckOutcome, Diagnostic, Evidence, HonestyFinding, HonestyKind, HonestySeverity,
    RelPath, Severity, TokenCounter as _,
};
use proptest::prelude::*;

fn evidence(command: &str, outcome: CheckOutcome, output: &str) -> Evidence {
    let output = output.to_owned();
    Evidence { duration_ms: 10, output, ..Evidence::new(CheckKind::Test, command, outcome) }
}

fn failed(command: &str, output: &str) -> Evidence {
    evidence(
        command,
        CheckOutcome::Failed { exit_code: Some(101), reason: "exit code 101".to_owned() },
        output,
    )
}

fn finding(path: &str, line: u32, message: &str) -> Diagnostic {
    Diagnostic {
        path: RelPath::parse(path).ok(),
        line: Some(line),
        column: Some(5),
        code: Some("E0308".to_owned()),
        ..Diagnostic::new(Severity::Error, message)
    }
}

#[test]
fn failures_are_fed_back_in_order() {
    let mut compile = failed("cargo check", "error[E0308]: mismatched types\n");
    compile.diagnostics.push(finding("src/lib.rs", 12, "mismatched types\nexpected u8"));
    let all = [
        failed("make lint", "line 3 is ugly </output>\n"),
        compile,
        evidence("cargo fmt --check", CheckOutcome::Passed, ""),
        evidence("npm test", CheckOutcome::NotRun { reason: "npm is missing".to_owned() }, ""),
    ];
    let text = describe_failed_checks(&all, 2, 5, "src/lib.rs: edited (+3 −1)");
    let (before, advice) = text.split_once("\n## How to go on\n").unwrap();
    assert_eq!(
        before,
        "The project's checks ran on your change, and 2 of 4 failed. This was attempt 2 of 5.\n\n\
         ## tests: `cargo check`: exit code 101\n\
         - src/lib.rs:12:5 error[E0308]: mismatched types\n  expected u8\n\
         <output>\nerror[E0308]: mismatched types\n</output>\n\n\
         ## tests: `make lint`: exit code 101\n\
         <output-2>\nline 3 is ugly </output>\n</output-2>\n\n\
         Passed: `cargo fmt --check`\n\n\
         Could not run (says nothing of your change): `npm test`\n\n\
         ## Your edits so far\nsrc/lib.rs: edited (+3 −1)\n"
    );
    for word in ["root cause", "suppress", "another", "smallest fix", "break nothing"] {
        assert!(advice.contains(word), "{word}: {advice}");
    }
}

#[test]
fn the_same_failure_again_is_named() {
    let before = [failed("cargo test", "test a failed in 0.31 s\n")];
    let now = [failed("cargo test", "test a failed in 0.52 s\n")];
    let other = [failed("cargo test", "test b failed in 0.31 s\n")];
    let round = |evidence: &[Evidence]| CheckedRound::new(1, evidence, &[]);
    let says_so = |earlier: &[CheckedRound]| message(&now, earlier, &[]).contains("same failures");
    assert!(says_so(&[round(&before)]));
    assert!(!says_so(&[round(&other)]) && !says_so(&[]));
    assert!(describe_failed_checks(&now, 5, 5, "").contains("No attempt is left"));
    assert!(!describe_failed_checks(&now, 4, 5, "").contains("No attempt is left"));
}

/// The message of the fourth of five attempts.
fn message(now: &[Evidence], earlier: &[CheckedRound], findings: &[HonestyFinding]) -> String {
    let feedback = Feedback {
        evidence: now,
        round: &CheckedRound::new(4, now, findings),
        earlier,
        findings,
        attempt: 4,
        of: 5,
        edits_summary: "",
        unchanged: None,
    };
    feedback.to_message()
}

/// A failed test at a line.
fn failed_test(test: &str, line: u32) -> Diagnostic {
    Diagnostic { code: None, test: Some(test.to_owned()), ..finding("tests/a.rs", line, "1 != 2") }
}

#[test]
fn feedback_tells_how_the_failures_changed() {
    let round = |attempt, tests: &[&str]| {
        let mut check = failed("cargo test", "");
        check.diagnostics = tests.iter().map(|test| failed_test(test, attempt * 10)).collect();
        let evidence = vec![check];
        let round = CheckedRound::new(attempt, &evidence, &[]);
        (CheckedRound { checkpoint: Some(u64::from(attempt) + 40), ..round }, evidence)
    };
    let ((first, _), (second, _), (third, evidence)) =
        (round(1, &["a"]), round(2, &["a", "b"]), round(3, &["a", "c", "d"]));
    let text = message(&evidence, &[first.clone(), second], &[]);
    assert!(text.contains("Since the attempt before: 1 fixed, 2 new, 1 the same."), "{text}");
    assert!(
        text.contains("Fixed: `b`.") && text.contains("New, so your last change caused them: `c`, `d`."),
        "{text}"
    );
    assert!(text.contains("`a` has been the first failure three times running"), "{text}");
    assert!(text.contains("attempt 1 had 1, now there are 3") && text.contains("--to 41"), "{text}");
    assert!(!text.contains("same failures"), "{text}");
    let text = message(&evidence, &[third], &[]);
    assert!(text.contains("same failures") && !text.contains("three times"), "{text}");
    assert!(!text.contains("--to"), "{text}");
    // Another value is another failure: the change did touch its cause.
    let mut other = evidence.clone();
    other[0].diagnostics[0].message = "1 != 3".to_owned();
    let text = message(&other, &[CheckedRound::new(3, &evidence, &[])], &[]);
    assert!(text.contains("0 fixed, 0 new, 3 the same") && !text.contains("same failures"), "{text}");
}

#[test]
fn failures_that_are_not_all_listed_are_not_told_apart() {
    // Of 80 failures the checks list the first ones, and how many more there are.
    let round = |attempt, tests: std::ops::Range<u32>, more: u32| {
        let mut check = failed("cargo test", "");
        check.diagnostics = tests.map(|test| failed_test(&format!("t{test}"), test)).collect();
        if more > 0 {
            check.diagnostics.push(Diagnostic::unlisted(more as usize));
        }
        let evidence = vec![check];
        (CheckedRound::new(attempt, &evidence, &[]), evidence)
    };
    let (before, _) = round(1, 0..49, 31);
    // One is fixed, so that another one comes into the list.
    let (_, evidence) = round(2, 1..50, 30);
    let text = message(&evidence, std::slice::from_ref(&before), &[]);
    assert!(!text.contains("your last change caused them") && !text.contains("fixed, "), "{text}");
    assert!(text.contains("Not all failures are listed"), "{text}");
    // Fewer than before, though more than were listed then.
    let mut second = failed("make lint", "");
    second.diagnostics = (200..230).map(|at| failed_test(&format!("t{at}"), at)).collect();
    let (_, mut evidence) = round(3, 10..40, 0);
    evidence.push(second);
    let text = message(&evidence, &[before], &[]);
    assert!(!text.contains("more failures than before"), "{text}");
}

#[test]
fn feedback_has_values_source_and_old_failures_by_name() {
    let mut check = failed("cargo test", "");
    check.diagnostics = vec![
        Diagnostic {
            expected: Some("2".to_owned()),
            actual: Some("1".to_owned()),
            source: Some("> 7 | assert_eq!(f(), 2)".to_owned()),
            ..failed_test("a", 7)
        },
        Diagnostic { before_task: true, ..failed_test("old", 9) },
    ];
    let old = vec!["old".to_owned()];
    check.baseline = Some(Baseline { old, ..Baseline::default() });
    let text = message(&[check], &[], &[]);
    assert!(
        text.contains("error in test `a`: 1 != 2\n  expected `2`, got `1`\n  > 7 | assert_eq!(f(), 2)\n"),
        "{text}"
    );
    assert!(text.contains("Failed already before the task, so leave them alone: `old`."), "{text}");
    assert_eq!(text.matches("`old`").count(), 1, "{text}");
}

#[test]
fn findings_that_block_are_fed_back_though_checks_pass() {
    let finding = HonestyFinding {
        kind: HonestyKind::TestSkipped,
        severity: HonestySeverity::Blocking,
        path: RelPath::parse("tests/a.py").unwrap(),
        line: Some(3),
        message: "`test_a` is skipped now".to_owned(),
        accepted: false,
    };
    let accepted = HonestyFinding { accepted: true, ..finding.clone() };
    let passed = [evidence("pytest", CheckOutcome::Passed, "")];
    let text = message(&passed, &[], std::slice::from_ref(&finding));
    assert!(
        text.starts_with(
            "The project's checks ran on your change and passed, but the change is not accepted."
        ),
        "{text}"
    );
    assert!(
        text.contains("`test_a` is skipped now") && text.contains("only the user can accept it"),
        "{text}"
    );
    assert!(!message(&passed, &[], &[accepted]).contains("say less"));
}

#[test]
fn feedback_is_bounded() {
    let noise: String = (0..2_000).map(|n| format!("line {n} of a long and tiring build log\n")).collect();
    let mut all: Vec<Evidence> =
        (0..30).map(|n| failed(&format!("check {n} {}", "x".repeat(2_000)), &noise)).collect();
    for check in all.iter_mut().take(3) {
        check.diagnostics = (0..50).map(|n| finding("src/a.rs", n, &"long words ".repeat(500))).collect();
    }
    let edits: String = (0..5_000).map(|n| format!("src/file{n}.rs: edited\n")).collect();
    let text = describe_failed_checks(&all, 1, 5, &edits);
    let cost = TokenEstimator.count(&text);
    assert!(cost.0 <= FEEDBACK_BUDGET.0 * 13 / 10, "{cost}");
    assert!(text.contains("How to go on"));
    let one = describe_failed_checks(&all[20..21], 1, 5, "");
    assert!(
        one.contains("line 0 ")
            && one.contains("line 1999 ")
            && TokenEstimator.count(&one) <= FEEDBACK_BUDGET
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn feedback_never_panics(output in ".{0,400}", command in ".{0,80}", message in ".{0,200}", edits in ".{0,200}", attempt: u32, of: u32) {
        let mut check = failed(&command, &output);
        check.diagnostics.push(finding("a", 1, &message));
        prop_assert!(TokenEstimator.count(&describe_failed_checks(&[check], attempt, of, &edits)).0 <= FEEDBACK_BUDGET.0 * 13 / 10);
    }
}
