//! Counts the tests that a test command ran, from the output of the known runners.

use journeyman_protocol::TestCounts;

/// The test counts in an output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PrintedCounts {
    /// The counts; `None` if the output has no count of a known runner.
    pub(crate) tests: Option<TestCounts>,
    /// True if a runner counted something other than tests.
    is_rough: bool,
}

impl PrintedCounts {
    /// Returns the number of tests that ran, and of those that were skipped or ignored.
    pub(crate) fn ran_and_skipped(&self) -> (Option<u64>, u64) {
        let ran = self.tests.map(|tests| tests.passed.saturating_add(tests.failed));
        (ran, self.tests.map_or(0, |tests| tests.skipped))
    }

    /// Returns the counts if the runners count tests.
    pub(crate) fn exact_counts(&self) -> Option<TestCounts> {
        self.tests.filter(|_| !self.is_rough)
    }

    fn add(&mut self, more: TestCounts) {
        let tests = self.tests.get_or_insert_default();
        tests.passed = tests.passed.saturating_add(more.passed);
        tests.failed = tests.failed.saturating_add(more.failed);
        tests.skipped = tests.skipped.saturating_add(more.skipped);
    }
}

/// Returns counts of tests.
fn new_test_counts(passed: u64, failed: u64, skipped: u64) -> Option<TestCounts> {
    Some(TestCounts { passed, failed, skipped })
}

/// Adds up the counts of all runners in an output. An output with two kinds of counts for one run
/// counts its tests twice, which doesn't matter for finding runs without tests.
pub(crate) fn count_tests(output: &str) -> PrintedCounts {
    let mut all = PrintedCounts::default();
    // If libtest prints results, only these count: the lines before count ignored tests too.
    let has_results = output.contains("test result: ");
    let lines = output.lines().map(|line| line.trim().trim_matches('=').trim());
    for line in lines.filter(|line| !(has_results && line.starts_with("running "))) {
        // Go prints packages, with the time or with `(cached)`.
        all.is_rough |= line.starts_with("ok  \t") || line.contains("[no test files]");
        if let Some(more) = count_on_line(line) {
            all.add(more);
        } else if let Some(more) = parse_follow_up_counts(line)
            && let Some(tests) = &mut all.tests
        {
            let all_passed = tests.passed.saturating_sub(more.failed).saturating_sub(more.skipped);
            *tests = TestCounts { passed: all_passed, ..*tests };
            all.add(more);
        }
    }
    all
}

/// Returns the tests on a line that follows a count which includes them: unittest's `OK
/// (skipped=2)` and `FAILED (failures=1, errors=1)`.
fn parse_follow_up_counts(line: &str) -> Option<TestCounts> {
    let inner = line.strip_prefix("OK (").or_else(|| line.strip_prefix("FAILED ("))?;
    let of = |start: &str| number_after(inner, start).unwrap_or(0);
    new_test_counts(0, of("failures=").saturating_add(of("errors=")), of("skipped="))
}

/// Returns the tests that a line counts.
fn count_on_line(line: &str) -> Option<TestCounts> {
    const NO_TESTS_PHRASES: [&str; 6] = [
        "No tests found, exiting with code 0",
        "No test files found, exiting with code 0",
        "No tests were found!!!",
        "[no test files]",
        "[no tests to run]",
        "no tests ran",
    ];
    if NO_TESTS_PHRASES.iter().any(|none| line.contains(none)) {
        return new_test_counts(0, 0, 0);
    }
    if line.starts_with("ok  \t") {
        return new_test_counts(1, 0, 0);
    }
    // libtest.
    if let Some(result) = line.strip_prefix("test result: ") {
        let of = |word| number_before(result, word).unwrap_or(0);
        return new_test_counts(of("passed").saturating_add(of("measured")), of("failed"), of("ignored"));
    }
    if let Some(rest) = line.strip_prefix("running ") {
        return new_test_counts(rest.split_once(" test")?.0.parse().ok()?, 0, 0);
    }
    // unittest: the number on one line, what was skipped on another.
    if let Some(rest) = line.strip_prefix("Ran ") {
        return new_test_counts(rest.split_once(" test")?.0.parse().ok()?, 0, 0);
    }
    // node's two reporters.
    if let Some(rest) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) {
        let (word, count) = rest.split_once(' ')?;
        let count = count.parse().ok()?;
        return match word {
            "pass" => new_test_counts(count, 0, 0),
            "fail" => new_test_counts(0, count, 0),
            "skipped" | "todo" => new_test_counts(0, 0, count),
            _ => None,
        };
    }
    // Mocha.
    if let Some((count, _)) = line.split_once(" passing (") {
        return new_test_counts(count.parse().ok()?, 0, 0);
    }
    if let Some(count) = line.strip_suffix(" failing") {
        return new_test_counts(0, count.parse().ok()?, 0);
    }
    if let Some(count) = line.strip_suffix(" pending") {
        return new_test_counts(0, 0, count.parse().ok()?);
    }
    // Maven's Surefire.
    if let Some(at) = line.find("Tests run: ") {
        let rest = line.get(at..)?;
        let all = number_after(rest, "Tests run: ")?;
        let of = |start: &str| number_after(rest, start).unwrap_or(0);
        let (failed, skipped) = (of("Failures: ").saturating_add(of("Errors: ")), of("Skipped: "));
        return new_test_counts(all.saturating_sub(skipped).saturating_sub(failed), failed, skipped);
    }
    // CTest.
    if let Some((head, all)) = line.split_once(" tests failed out of ") {
        let failed = head.rsplit(' ').next()?.parse().ok()?;
        let all: u64 = all.split_whitespace().next()?.parse().ok()?;
        return new_test_counts(all.saturating_sub(failed), failed, 0);
    }
    // Jest and Vitest.
    if let Some(rest) = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests  ")) {
        let of = |word| number_before(rest, word);
        let some = [of("passed"), of("failed"), of("skipped"), of("todo"), of("total")];
        let zero = |count: Option<u64>| count.unwrap_or(0);
        let skipped = zero(of("skipped")).saturating_add(zero(of("todo")));
        return some
            .iter()
            .any(Option::is_some)
            .then(|| new_test_counts(zero(of("passed")), zero(of("failed")), skipped))?;
    }
    parse_pytest_summary(line)
}

/// Reads pytest's last line, `1 failed, 2 passed, 1 skipped in 0.12s`.
fn parse_pytest_summary(line: &str) -> Option<TestCounts> {
    let (words, time) = line.rsplit_once(" in ")?;
    if !time.starts_with(|c: char| c.is_ascii_digit()) || !time.contains('s') {
        return None;
    }
    if words.ends_with(" collected") {
        return number_before(words, "test")
            .or_else(|| number_before(words, "tests"))
            .and_then(|_| new_test_counts(0, 0, 0));
    }
    let sum =
        |all: &[&str]| all.iter().filter_map(|word| number_before(words, word)).fold(0, u64::saturating_add);
    let passed = sum(&["passed", "xpassed", "xfailed"]);
    let failed = sum(&["failed", "error", "errors"]);
    let skipped = sum(&["skipped", "deselected"]);
    (passed > 0 || failed > 0 || skipped > 0).then_some(TestCounts { passed, failed, skipped })
}

/// Returns the number before a word.
fn number_before(text: &str, word: &str) -> Option<u64> {
    let mut last = None;
    for token in text.split([' ', ',', ';', '|']).filter(|token| !token.is_empty()) {
        if token.trim_end_matches('.') == word {
            return last;
        }
        last = token.parse().ok();
    }
    None
}

/// Returns the number after a text.
fn number_after(text: &str, start: &str) -> Option<u64> {
    let rest = text.get(text.find(start)? + start.len()..)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_each_runner() {
        let cases = [
            ("test result: FAILED. 1 passed; 2 failed; 3 ignored; 0 measured; 0 filtered out", (1, 2, 3)),
            ("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)", (2, 2, 1)),
            ("== 1 failed, 2 passed, 1 skipped in 0.12s ==", (2, 1, 1)),
            ("# tests 3\n# pass 1\n# fail 1\n# skipped 1", (1, 1, 1)),
            ("Tests:       1 failed, 1 skipped, 2 passed, 4 total", (2, 1, 1)),
            ("      Tests  1 failed | 2 passed (3)", (2, 1, 0)),
            ("  2 passing (3ms)\n  1 failing\n  1 pending", (2, 1, 1)),
            ("[ERROR] Tests run: 4, Failures: 1, Errors: 1, Skipped: 1", (1, 2, 1)),
            ("67% tests passed, 1 tests failed out of 3", (2, 1, 0)),
        ];
        for (output, (passed, failed, skipped)) in cases {
            assert_eq!(
                count_tests(output).exact_counts(),
                new_test_counts(passed, failed, skipped),
                "{output}"
            );
        }
        assert_eq!(count_tests("ok  \tx/y\t0.1s").exact_counts(), None, "packages are no tests");
        assert_eq!(count_tests("hello").exact_counts(), None);
    }
}
