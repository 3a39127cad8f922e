//! Counts the tests that a test command ran, from the output of the known runners.

use journeyman_protocol::TestCounts;

use crate::package_prefixes::strip_package_prefixes;

/// The test counts in an output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PrintedCounts {
    /// The counts; `None` if the output has no count of a known runner.
    pub(crate) tests: Option<TestCounts>,
    /// True if a runner counted something other than tests.
    is_rough: bool,
}

impl PrintedCounts {
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
    let output = &*strip_package_prefixes(output);
    let mut all = PrintedCounts::default();
    // If libtest prints results, only these count: the lines before count ignored tests too.
    let has_results = output.contains("test result: ");
    // Surefire prints each class, and then the sum.
    let is_class = |line: &str| line.contains("Tests run: ") && line.contains("Time elapsed");
    let has_sum = output.lines().any(|line| line.contains("Tests run: ") && !is_class(line));
    // Automake's log begins with the counts of its summary.
    let mut is_log = output.contains("Testsuite summary for ");
    let lines = output.lines().map(|line| line.trim().trim_matches('=').trim());
    for line in lines {
        is_log &= !line.starts_with("Testsuite summary for ");
        is_log |= line.ends_with("test-suite.log") && !line.starts_with("See ");
        if is_log && line.starts_with("# ") {
            continue;
        }
        if has_results && line.starts_with("running ") || has_sum && is_class(line) {
            continue;
        }
        // Go and Gradle print packages and tasks, and XCTest a suite within another.
        all.is_rough |= line.starts_with("ok  \t") || line.contains("[no test files]");
        if let Some(more) = count_roughly(line) {
            all.is_rough = true;
            all.add(more);
        } else if let Some(more) = count_on_line(line) {
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

/// Returns true if a program of libtest's began to run tests and told no result: something ended it
/// early, with the success of its own making.
pub(crate) fn has_unfinished_run(output: &str) -> bool {
    let begins = |line: &&str| {
        let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(' '));
        count.is_some_and(|(count, word)| {
            matches!(word, "test" | "tests") && count.bytes().all(|b| b.is_ascii_digit())
        })
    };
    output.lines().map(str::trim).filter(begins).count() > output.matches("test result: ").count()
}

/// Returns the tests on a line that follows a count which includes them: unittest's `OK
/// (skipped=2)` and `FAILED (failures=1, errors=1)`.
fn parse_follow_up_counts(line: &str) -> Option<TestCounts> {
    let inner = line.strip_prefix("OK (").or_else(|| line.strip_prefix("FAILED ("))?;
    let of = |start: &str| number_after(inner, start).unwrap_or(0);
    new_test_counts(0, of("failures=").saturating_add(of("errors=")), of("skipped="))
}

/// Returns what a line counts that is no single test.
fn count_roughly(line: &str) -> Option<TestCounts> {
    if line.starts_with("ok  \t") && !line.contains("[no tests to run]") {
        return new_test_counts(1, 0, 0);
    }
    if line.starts_with("FAIL\t") && !line.ends_with(" failed]") {
        return new_test_counts(0, 1, 0);
    }
    if let Some(task) = line.strip_prefix("> Task :") {
        let (path, state) = task.split_once(' ').unwrap_or((task, ""));
        let name = path.rsplit(':').next().unwrap_or_default();
        let runs_tests = name == "test" || name.ends_with("Test");
        let has_run = u64::from(!matches!(state, "NO-SOURCE" | "SKIPPED" | "FAILED"));
        return runs_tests.then(|| new_test_counts(has_run, u64::from(state == "FAILED"), 0))?;
    }
    // XCTest.
    let rest = line.strip_prefix("Executed ").filter(|rest| rest.contains(" with "))?;
    let all: u64 = rest.split_once(" test")?.0.parse().ok()?;
    let failed = number_before(rest, "failures").or_else(|| number_before(rest, "failure"))?;
    let skipped = rest.split_once(" with ").and_then(|(_, rest)| {
        rest.split_once(" test").filter(|(_, rest)| rest.contains("skipped"))?.0.parse().ok()
    });
    let skipped = skipped.unwrap_or(0);
    new_test_counts(all.saturating_sub(failed).saturating_sub(skipped), failed, skipped)
}

/// Returns the tests that a line counts.
fn count_on_line(line: &str) -> Option<TestCounts> {
    const NO_TESTS_PHRASES: [&str; 11] = [
        "No tests found, exiting with code 0",
        "No test files found, exiting with code 0",
        "No tests were found!!!",
        "[no test files]",
        "[no tests to run]",
        "no tests ran",
        "No tests executed!",
        "There are no tests to run",
        "No test is available in ",
        "Tests  no tests",
        "] 0 tests from 0 test",
    ];
    if NO_TESTS_PHRASES.iter().any(|none| line.contains(none)) {
        return new_test_counts(0, 0, 0);
    }
    let readers: [fn(&str) -> Option<TestCounts>; 6] = [
        parse_rust_counts,
        parse_javascript_counts,
        parse_native_counts,
        parse_summary_line,
        parse_labelled_counts,
        parse_counted_words,
    ];
    readers.iter().find_map(|read| read(line)).or_else(|| parse_pytest_summary(line))
}

/// Reads libtest, nextest, and unittest, whose line has the same form.
fn parse_rust_counts(line: &str) -> Option<TestCounts> {
    if let Some(result) = line.strip_prefix("test result: ") {
        let of = |word| number_before(result, word).unwrap_or(0);
        return new_test_counts(of("passed").saturating_add(of("measured")), of("failed"), of("ignored"));
    }
    if line.starts_with("Summary [")
        && let Some((_, result)) = line.split_once(" run: ")
    {
        let of = |word| number_before(result, word).unwrap_or(0);
        return new_test_counts(of("passed"), of("failed").saturating_add(of("timed")), of("skipped"));
    }
    // Deno's line names the file too, and its result follows.
    if let Some(rest) = line.strip_prefix("running ") {
        let (count, word) = rest.split_once(' ')?;
        return new_test_counts(count.parse().ok().filter(|_| word.starts_with("test"))?, 0, 0)
            .filter(|_| !word.contains(" from "));
    }
    // unittest: the number on one line, what was skipped on another.
    let rest = line.strip_prefix("Ran ").filter(|rest| !rest.contains(" across "))?;
    new_test_counts(rest.split_once(" test")?.0.parse().ok()?, 0, 0)
}

/// Reads node's two reporters, Mocha, Jest, Vitest, Bun and Deno.
fn parse_javascript_counts(line: &str) -> Option<TestCounts> {
    if let Some(rest) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) {
        let (word, count) = rest.split_once(' ')?;
        let count = count.parse().ok()?;
        return match word {
            "pass" => new_test_counts(count, 0, 0),
            "fail" | "cancelled" => new_test_counts(0, count, 0),
            "skipped" | "todo" => new_test_counts(0, 0, count),
            _ => None,
        };
    }
    if let Some((count, _)) = line.split_once(" passing (") {
        return new_test_counts(count.parse().ok()?, 0, 0);
    }
    if let Some((count, word)) = line.split_once(' ')
        && let Ok(count) = count.parse()
    {
        match word {
            "failing" | "fail" => return new_test_counts(0, count, 0),
            "pending" | "skip" => return new_test_counts(0, 0, count),
            "pass" => return new_test_counts(count, 0, 0),
            _ => {}
        }
    }
    let deno = line.strip_prefix("ok | ").or_else(|| line.strip_prefix("FAILED | "));
    let jest = || line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests  "));
    let rest = deno.or_else(jest)?;
    let of = |word| number_before(rest, word);
    let skipped = [of("skipped"), of("todo"), of("ignored")];
    let some = [of("passed"), of("failed"), of("total")];
    let zero = |count: Option<u64>| count.unwrap_or(0);
    let is_count = some.iter().chain(&skipped).any(Option::is_some);
    let skipped = skipped.into_iter().map(zero).fold(0, u64::saturating_add);
    is_count.then(|| new_test_counts(zero(of("passed")), zero(of("failed")), skipped))?
}

/// Reads CTest, GoogleTest and Perl's `prove`.
fn parse_native_counts(line: &str) -> Option<TestCounts> {
    if let Some((head, all)) = line.split_once(" tests failed out of ") {
        let failed = head.rsplit(' ').next()?.parse().ok()?;
        let all: u64 = all.split_whitespace().next()?.parse().ok()?;
        return new_test_counts(all.saturating_sub(failed), failed, 0);
    }
    let google = |mark: &str| line.strip_prefix(mark)?.split_once(" test")?.0.parse().ok();
    if let Some(count) = google("[  PASSED  ] ") {
        return new_test_counts(count, 0, 0);
    }
    if let Some(count) = google("[  FAILED  ] ") {
        return new_test_counts(0, count, 0);
    }
    if let Some(count) = google("[  SKIPPED ] ") {
        return new_test_counts(0, 0, count);
    }
    let perl = line.strip_prefix("Files=").and_then(|rest| number_after(rest, "Tests="))?;
    new_test_counts(perl, 0, 0)
}

/// Reads a line of the summary of Automake, `# PASS:  1`, or of Meson, `Ok:                 1`.
fn parse_summary_line(line: &str) -> Option<TestCounts> {
    let (label, count) = line.split_once(": ")?;
    // Meson's counts stand in a column; others print the same labels.
    if !label.starts_with("# ") && !count.starts_with(' ') {
        return None;
    }
    let count = count.trim().parse().ok()?;
    match label {
        "# PASS" | "# XFAIL" | "Ok" | "Expected Fail" => new_test_counts(count, 0, 0),
        "# FAIL" | "# XPASS" | "# ERROR" | "Fail" | "Unexpected Pass" | "Timeout" => {
            new_test_counts(0, count, 0)
        }
        "# SKIP" | "Skipped" => new_test_counts(0, 0, count),
        _ => None,
    }
}

/// Reads counts with a label before each: Surefire, PHPUnit and .NET.
fn parse_labelled_counts(line: &str) -> Option<TestCounts> {
    let sum = |labels: &[&str]| {
        labels.iter().filter_map(|label| number_after(line, label)).fold(0, u64::saturating_add)
    };
    if let Some(rest) = line.strip_prefix("OK (")
        && let Some((count, _)) = rest.split_once(" test")
    {
        return new_test_counts(count.parse().ok()?, 0, 0);
    }
    if line.contains("Failed:") && line.contains("Passed:") && line.contains("Total:") {
        return new_test_counts(sum(&["Passed:"]), sum(&["Failed:"]), sum(&["Skipped:"]));
    }
    if let Some(rest) = line.strip_prefix("Test summary: total:") {
        return rest
            .contains("succeeded:")
            .then(|| new_test_counts(sum(&["succeeded:"]), sum(&["failed:"]), sum(&["skipped:"])))?;
    }
    let all = number_after(line, "Tests run: ").or_else(|| {
        line.strip_prefix("Tests: ").filter(|rest| rest.contains(", Assertions: "))?;
        number_after(line, "Tests: ")
    })?;
    let (failed, skipped) = (sum(&["Failures: ", "Errors: "]), sum(&["Skipped: ", "Incomplete: "]));
    new_test_counts(all.saturating_sub(skipped).saturating_sub(failed), failed, skipped)
}

/// Reads counts with a word after each: RSpec's `3 examples, 1 failure`, minitest's `2 runs, 0
/// assertions, 0 failures, 0 errors, 2 skips`, ExUnit's `1 doctest, 3 tests, 0 failures`, Bats.
fn parse_counted_words(line: &str) -> Option<TestCounts> {
    let (mut all, mut failed, mut skipped) = (None::<u64>, None::<u64>, 0_u64);
    for part in line.split(", ") {
        let (count, word) = part.split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        match word.split(' ').next().unwrap_or_default().trim_end_matches('s') {
            "run" | "test" | "example" | "doctest" | "property" | "propertie" | "feature" => {
                all = Some(all.unwrap_or(0).saturating_add(count));
            }
            "failure" | "error" => failed = Some(failed.unwrap_or(0).saturating_add(count)),
            "skip" | "skipped" | "pending" | "omission" | "excluded" => {
                skipped = skipped.saturating_add(count);
            }
            _ => {}
        }
    }
    let (all, failed) = (all?, failed?);
    new_test_counts(all.saturating_sub(failed).saturating_sub(skipped), failed, skipped)
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
    let rest = text.get(text.find(start)? + start.len()..)?.trim_start();
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
            (
                "Ok:                 1   \nExpected Fail:      1   \nFail:               1   \nUnexpected Pass:    0   \nSkipped:            2   \nTimeout:            1   ",
                (2, 2, 2),
            ),
            (
                "===\n   x 1: ./test-suite.log\n===\n\n# TOTAL: 3\n# PASS:  1\n# SKIP:  1\n# FAIL:  1\n\nFAIL: u\n===\n\n===\nTestsuite summary for x 1\n===\n# TOTAL: 3\n# PASS:  1\n# SKIP:  1\n# FAIL:  1\n===\nSee ./test-suite.log\n===",
                (1, 1, 1),
            ),
            (
                "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.05 s -- in a.ATest\n[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1",
                (2, 0, 1),
            ),
            ("[junit] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 sec", (2, 1, 0)),
            ("OK (3 tests, 5 assertions)", (3, 0, 0)),
            ("Tests: 5, Assertions: 5, Errors: 1, Failures: 1, Skipped: 1.", (2, 2, 1)),
            ("3 examples, 1 failure, 1 pending", (1, 1, 1)),
            ("5 runs, 4 assertions, 1 failures, 1 errors, 1 skips", (2, 2, 1)),
            ("1 doctest, 3 tests, 1 failure, 1 skipped", (2, 1, 1)),
            (
                "     Summary [   0.021s] 4 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 1 skipped",
                (2, 2, 1),
            ),
            (
                "Failed!  - Failed:     1, Passed:     2, Skipped:     1, Total:     4, Duration: 5 ms - a.dll",
                (2, 1, 1),
            ),
            ("Test summary: total: 4, failed: 1, succeeded: 2, skipped: 1, duration: 1.2s", (2, 1, 1)),
            (
                "[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test, listed below:\n[  FAILED  ] 1 test, listed below:",
                (2, 1, 1),
            ),
            ("All tests successful.\nFiles=1, Tests=2,  1 wallclock secs", (2, 0, 0)),
            ("running 3 tests from ./a_test.ts\nFAILED | 1 passed | 1 failed | 1 ignored (5ms)", (1, 1, 1)),
            (" 2 pass\n 1 skip\n 1 fail\nRan 4 tests across 1 file. [8.00ms]", (2, 1, 1)),
            ("# tests 3\n# pass 1\n# fail 1\n# cancelled 1", (1, 2, 0)),
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
        for (output, expected) in [
            (
                "> Task :app:compileTestJava\n> Task :app:test NO-SOURCE\n> Task :test",
                new_test_counts(1, 0, 0),
            ),
            ("> Task :processTestResources NO-SOURCE\n> Task :test NO-SOURCE", new_test_counts(0, 0, 0)),
            (
                "Executed 2 tests, with 1 test skipped and 0 failures (0 unexpected) in 0.1 (0.1) seconds",
                new_test_counts(1, 0, 1),
            ),
        ] {
            let counted = count_tests(output);
            assert_eq!((counted.tests, counted.exact_counts()), (expected, None), "{output}");
        }
    }
}
