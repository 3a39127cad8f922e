//! Checks that failed before a task, on the files as they are.

use std::borrow::Cow;
use std::fmt::Write as _;

use journeyman_protocol::{Evidence, TokenCounter as _, Tokens, clip_to_bytes};

use crate::TokenEstimator;
use crate::feedback::push_failure;

/// Checks that are shown, and the least tokens of each: with fewer only its first lines fit.
const MAX_CHECKS: usize = 4;
const MIN_CHECK_TOKENS: u64 = 120;
/// A task with more words says by itself what it is about.
const MAX_WORDS: usize = 40;
/// Words of a task that is about what fails.
const FAILURE_WORDS: [&str; 24] = [
    "fail", "fails", "failed", "failing", "failure", "failures", "error", "errors", "broken", "breaks",
    "red", "green", "pass", "passes", "check", "checks", "test", "tests", "build", "builds", "compile",
    "compiles", "lint", "ci",
];
/// Findings of a check that are looked up, and maximum bytes of each.
const MAX_LOOKED_UP: usize = 4;
const MAX_LOOKED_UP_BYTES: usize = 400;

/// Words the failures for the first message, within a budget, and tells how many of them are shown;
/// empty without any.
pub(crate) fn known_failures_text(failures: &[Evidence], budget: Tokens) -> (String, usize) {
    let mut out = String::new();
    let shown = failures.len().min(MAX_CHECKS).min(usize::try_from(budget.0 / MIN_CHECK_TOKENS).unwrap_or(0));
    if shown == 0 {
        return (out, shown);
    }
    out.push_str(
        "These checks of the project failed before the task, on the files as they are now (what git ignores, and tools, \
         may be other ones since):\n",
    );
    let room = budget.0.saturating_sub(TokenEstimator.count(&out).0);
    for check in failures.iter().take(shown) {
        push_failure(&mut out, check, Tokens(room / shown as u64));
    }
    if let Some(more) = failures.len().checked_sub(shown).filter(|more| *more > 0) {
        let _infallible = writeln!(out, "\nand {more} more");
    }
    (out, shown)
}

/// Returns the text by which code is looked up for a task: with the findings of failed checks,
/// if the task is about what fails and says little else.
#[must_use]
pub fn lookup_text<'t>(task: &'t str, failures: &[Evidence]) -> Cow<'t, str> {
    let words: Vec<&str> =
        task.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_about_failures =
        || words.iter().any(|word| FAILURE_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)));
    if failures.is_empty() || words.len() > MAX_WORDS || !is_about_failures() {
        return Cow::Borrowed(task);
    }
    let mut text = task.to_owned();
    for found in failures.iter().flat_map(|check| check.diagnostics.iter().take(MAX_LOOKED_UP)) {
        text.push('\n');
        if let Some(path) = &found.path {
            let _infallible = write!(text, "{path}:{} ", found.line.unwrap_or(1));
        }
        for part in found.test.iter().chain([&found.message]) {
            text.push_str(clip_to_bytes(part, MAX_LOOKED_UP_BYTES));
            text.push(' ');
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CheckKind, CheckOutcome, Diagnostic, RelPath, Severity};

    use super::*;

    fn failed(command: &str, output: &str) -> Evidence {
        let outcome = CheckOutcome::Failed { exit_code: Some(1), reason: "exit code 1".to_owned() };
        let found = Diagnostic {
            path: Some(RelPath::parse("src/shop.py").unwrap()),
            line: Some(12),
            test: Some("test_open".to_owned()),
            ..Diagnostic::new(Severity::Error, "assert 3 == 4")
        };
        let (output, diagnostics) = (output.to_owned(), vec![found]);
        Evidence { output, diagnostics, ..Evidence::new(CheckKind::Test, command, outcome) }
    }

    #[test]
    fn failures_are_told_within_a_budget() {
        let failures: Vec<Evidence> =
            (0..6).map(|at| failed(&format!("make t{at}"), &"a line of output\n".repeat(500))).collect();
        for budget in [0, 100, 300, 1_200] {
            let (text, shown) = known_failures_text(&failures, Tokens(budget));
            assert_eq!(text.matches("\n## ").count(), shown);
            // The headings and notes of a check are beyond its share.
            assert!(TokenEstimator.count(&text).0 <= budget + 160, "{budget}: {text}");
            assert_eq!(text.contains("src/shop.py:12 error in test `test_open`"), budget >= 300, "{text}");
        }
        assert!(known_failures_text(&failures, Tokens(1_200)).0.contains("and 2 more"));
        assert_eq!(known_failures_text(&[], Tokens(1_200)), (String::new(), 0));
    }

    #[test]
    fn only_a_short_task_about_failures_is_looked_up_with_them() {
        let failures = [failed("pytest", "")];
        let with = "fix the failing tests\nsrc/shop.py:12 test_open assert 3 == 4 ";
        assert_eq!(lookup_text("fix the failing tests", &failures), with);
        for task in ["add a discount", &"the tests of this and that ".repeat(20)] {
            assert_eq!(lookup_text(task, &failures), task);
        }
        assert_eq!(lookup_text("fix the failing tests", &[]), "fix the failing tests");
    }
}
