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
    let lines: Vec<&str> = output.lines().map(|line| line.trim().trim_matches('=').trim()).collect();
    let parts = CountedParts::of_output(output, &lines);
    let mut all = PrintedCounts::default();
    // Automake's log begins with the counts of its summary.
    let mut is_log = output.contains("Testsuite summary for ");
    let mut rest = lines.as_slice();
    while let Some((line, after)) = rest.split_first() {
        let place = lines.len() - rest.len();
        if let Some((more, length)) = count_column(rest) {
            all.add(more);
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        rest = after;
        is_log &= !line.starts_with("Testsuite summary for ");
        is_log |= line.ends_with("test-suite.log") && !line.starts_with("See ");
        if is_log && line.starts_with("# ") || parts.is_counted_elsewhere(place, line) {
            continue;
        }
        // Go and Gradle print packages and tasks, and XCTest a suite within another.
        all.is_rough |= line.starts_with("ok  \t") || line.contains("[no test files]");
        if let Some(more) = count_roughly(line) {
            all.is_rough = true;
            all.add(more);
        } else if let Some(more) =
            count_on_line(line).or_else(|| parse_playwright_counts(line).filter(|_| parts.has_playwright))
        {
            let failed = if line.starts_with("Files=") { parts.perl_failed } else { 0 };
            let passed = more.passed.saturating_sub(failed);
            all.add(TestCounts { passed, failed: more.failed.saturating_add(failed), ..more });
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

/// The runners in an output whose counts another one's include.
struct CountedParts {
    /// True if libtest prints results: the lines before count ignored tests too.
    has_results: bool,
    /// True if Surefire prints the sum after each class.
    has_sum: bool,
    /// True if CTest counts the programs, whose own runners print counts as well.
    has_ctest: bool,
    has_playwright: bool,
    /// The tests that Perl's `prove` lists as failed, before a sum without them.
    perl_failed: u64,
    /// The line of nextest's summary, before which it prints the output of each failed test.
    nextest: Option<usize>,
}

impl CountedParts {
    fn of_output(output: &str, lines: &[&str]) -> Self {
        let is_playwright = |line: &&str| {
            line.starts_with("Running ") && line.contains(" using ") && line.contains(" worker")
        };
        Self {
            has_results: output.contains("test result: "),
            has_sum: lines.iter().any(|line| line.contains("Tests run: ") && !is_surefire_class(line)),
            has_ctest: output.contains(" tests failed out of "),
            has_playwright: lines.iter().any(is_playwright),
            perl_failed: lines
                .iter()
                .filter(|line| line.contains("(Wstat: "))
                .filter_map(|line| number_after(line, " Failed: "))
                .fold(0, u64::saturating_add),
            nextest: lines.iter().rposition(|line| line.starts_with("Summary [")),
        }
    }

    /// Returns true if a line counts tests that another line counts as well.
    fn is_counted_elsewhere(&self, place: usize, line: &str) -> bool {
        let is_single_result = || {
            line.starts_with("test result: ")
                && parse_rust_counts(line).is_some_and(|it| it.passed.saturating_add(it.failed) == 1)
        };
        self.has_results && line.starts_with("running ")
            || self.has_sum && is_surefire_class(line)
            || self.has_ctest && (line.starts_with("[  ") || parse_catch2_counts(line).is_some())
            || self.nextest.is_some_and(|summary| place < summary) && is_single_result()
    }
}

fn is_surefire_class(line: &str) -> bool {
    line.contains("Tests run: ") && line.contains("Time elapsed")
}

/// Reads a column of labelled counts, and returns its number of lines: `Total: 3`, `Passed: 1` and
/// `Skipped: 1` of uvu, where those that are skipped aren't in the total; `Total tests: 3` of .NET.
fn count_column(lines: &[&str]) -> Option<(TestCounts, usize)> {
    let first = lines.first()?;
    let uvu = first.strip_prefix("Total: ").map(str::trim);
    let total: u64 = uvu.or_else(|| first.strip_prefix("Total tests: "))?.parse().ok()?;
    let labelled = |label: &str| {
        lines.iter().skip(1).take(3).find_map(|line| line.strip_prefix(label)?.trim().parse::<u64>().ok())
    };
    let (passed, failed) = (labelled("Passed:"), labelled("Failed:"));
    let skipped = labelled("Skipped:").unwrap_or(0);
    if uvu.is_some() {
        let passed = passed?;
        return Some((TestCounts { passed, failed: total.saturating_sub(passed), skipped }, 3));
    }
    let counts = TestCounts { passed: passed.unwrap_or(0), failed: failed.unwrap_or(0), skipped };
    let length = 1 + [passed, failed, labelled("Skipped:")].into_iter().flatten().count();
    Some((counts, length))
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
/// (skipped=2)` and `FAILED (failures=1, errors=1)`. Expected failures are successes.
fn parse_follow_up_counts(line: &str) -> Option<TestCounts> {
    let inner = line.strip_prefix("OK (").or_else(|| line.strip_prefix("FAILED ("))?.strip_suffix(')')?;
    let of = |name: &str| {
        let counts = inner.split(", ").filter_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        counts.filter_map(|count| count.parse().ok()).fold(0, u64::saturating_add)
    };
    let failed = of("failures").saturating_add(of("errors")).saturating_add(of("unexpected successes"));
    new_test_counts(0, failed, of("skipped"))
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
    let readers: [fn(&str) -> Option<TestCounts>; 9] = [
        parse_rust_counts,
        parse_javascript_counts,
        parse_native_counts,
        parse_catch2_counts,
        parse_go_counts,
        parse_sentence_counts,
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

/// Reads node's two reporters, tape, Mocha, AVA, Jest, Vitest, Bun, Deno and Karma.
fn parse_javascript_counts(line: &str) -> Option<TestCounts> {
    if let Some(rest) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) {
        // tape's counts stand in a column.
        let (word, count) = rest.split_once(' ')?;
        let count = count.trim_start().parse().ok()?;
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
            "failing" | "fail" | "test failed" | "tests failed" => return new_test_counts(0, count, 0),
            "pending" | "skip" | "test skipped" | "tests skipped" | "test todo" | "tests todo" => {
                return new_test_counts(0, 0, count);
            }
            "pass" | "test passed" | "tests passed" | "known failure" | "known failures" => {
                return new_test_counts(count, 0, 0);
            }
            _ => {}
        }
    }
    if let Some(rest) = line.strip_prefix("TOTAL: ") {
        let (passed, failed) = (number_before(rest, "SUCCESS"), number_before(rest, "FAILED"));
        return passed.or(failed).and_then(|_| new_test_counts(passed.unwrap_or(0), failed.unwrap_or(0), 0));
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

/// Reads CTest, GoogleTest and Perl's `prove`, whose sum has the failed tests too.
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

/// Reads Catch2 and doctest: `test cases: 3 | 1 passed | 2 failed`.
fn parse_catch2_counts(line: &str) -> Option<TestCounts> {
    if let Some(rest) = line.strip_prefix("All tests passed (") {
        return new_test_counts(number_before(rest, "test")?, 0, 0);
    }
    let rest = line.strip_prefix("[doctest] ").unwrap_or(line).strip_prefix("test cases:")?;
    let of = |word: &str| {
        let counts = rest.split('|').filter_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok());
        counts.fold(0, u64::saturating_add)
    };
    new_test_counts(of("passed").saturating_add(of("failed as expected")), of("failed"), of("skipped"))
}

/// Reads Ginkgo's `FAIL! -- 1 Passed | 1 Failed | 0 Pending | 0 Skipped`, and gotestsum's `DONE 8
/// tests, 1 skipped, 3 failures in 0.5s`.
fn parse_go_counts(line: &str) -> Option<TestCounts> {
    if let Some((_, rest)) = line.split_once("! -- ").filter(|(word, _)| matches!(*word, "FAIL" | "SUCCESS"))
    {
        let of = |word| number_before(rest, word).unwrap_or(0);
        return new_test_counts(of("Passed"), of("Failed"), of("Pending").saturating_add(of("Skipped")));
    }
    let rest = line.strip_prefix("DONE ")?;
    let either = |one, many| number_before(rest, one).or_else(|| number_before(rest, many));
    let all = either("test", "tests")?;
    let (failed, skipped) =
        (either("failure", "failures").unwrap_or(0), either("skipped", "skip").unwrap_or(0));
    new_test_counts(all.saturating_sub(failed).saturating_sub(skipped), failed, skipped)
}

/// Reads Alcotest's `1 failure! in 0.001s. 5 tests run.`, and Common Test's `Failed 1 tests. Passed
/// 2 tests.`
fn parse_sentence_counts(line: &str) -> Option<TestCounts> {
    if let Some(rest) = line.strip_suffix(" tests run.").or_else(|| line.strip_suffix(" test run.")) {
        let all: u64 = rest.rsplit(' ').next()?.parse().ok()?;
        let failed = number_before(rest, "failure!").or_else(|| number_before(rest, "failures!"));
        let is_known = failed.is_some() || line.starts_with("Test Successful in ");
        let failed = failed.unwrap_or(0);
        return new_test_counts(all.saturating_sub(failed), failed, 0).filter(|_| is_known);
    }
    let all_passed = line.strip_prefix("All ").and_then(|rest| rest.strip_suffix(" tests passed."));
    if let Some(count) = all_passed {
        return new_test_counts(count.parse().ok()?, 0, 0);
    }
    let of = |label: &str| {
        let parts = line.split(". ").filter(|part| part.trim_end_matches('.').ends_with(" tests"));
        parts.filter_map(|part| number_after(part.trim().strip_prefix(label)?, " ")).next()
    };
    let (failed, skipped, passed) = (of("Failed"), of("Skipped"), of("Passed"));
    passed.or(failed).or(skipped)?;
    new_test_counts(passed.unwrap_or(0), failed.unwrap_or(0), skipped.unwrap_or(0))
}

/// Reads a line of Playwright's summary, whose words others print as well.
fn parse_playwright_counts(line: &str) -> Option<TestCounts> {
    let (count, word) = line.split_once(' ')?;
    let count = count.parse().ok()?;
    match word.split(" (").next()? {
        "passed" | "flaky" => new_test_counts(count, 0, 0),
        "failed" | "interrupted" => new_test_counts(0, count, 0),
        "skipped" | "did not run" => new_test_counts(0, 0, count),
        _ => None,
    }
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

/// Reads counts with a label before each: Surefire, PHPUnit, .NET and EUnit.
fn parse_labelled_counts(line: &str) -> Option<TestCounts> {
    let sum = |labels: &[&str]| {
        labels.iter().filter_map(|label| number_after(line, label)).fold(0, u64::saturating_add)
    };
    if let Some(rest) = line.strip_prefix("OK (")
        && let Some((count, _)) = rest.split_once(" test")
    {
        return new_test_counts(count.parse().ok()?, 0, 0);
    }
    let is_eunit = line.starts_with("Failed: ");
    if line.contains("Failed:") && line.contains("Passed:") && (line.contains("Total:") || is_eunit) {
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

/// Reads counts with a word after each: RSpec's `3 examples, 1 failure`, Jasmine's `3 specs`,
/// minitest's `2 runs, 0 assertions, 0 failures, 0 errors, 2 skips`, ExUnit's `1 doctest, 3 tests,
/// 0 failures`, Bats.
fn parse_counted_words(line: &str) -> Option<TestCounts> {
    let (mut all, mut failed, mut skipped) = (None::<u64>, None::<u64>, 0_u64);
    for part in line.split(", ") {
        let (count, word) = part.split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        match word.split(' ').next().unwrap_or_default().trim_end_matches('s') {
            "run" | "test" | "example" | "spec" | "doctest" | "property" | "propertie" | "feature" => {
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

    /// Compares the counts of outputs: passed, failed and skipped tests.
    fn assert_counts(cases: &[(&str, (u64, u64, u64))]) {
        for (output, (passed, failed, skipped)) in cases {
            assert_eq!(
                count_tests(output).exact_counts(),
                new_test_counts(*passed, *failed, *skipped),
                "{output}"
            );
        }
    }

    #[test]
    fn counts_of_each_runner() {
        assert_counts(&[
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
            (
                "t/a.t (Wstat: 256 (exited 1) Tests: 3 Failed: 1)\n  Failed test:  2\nFiles=1, Tests=3,  0 wallclock secs\nResult: FAIL",
                (2, 1, 0),
            ),
            ("running 3 tests from ./a_test.ts\nFAILED | 1 passed | 1 failed | 1 ignored (5ms)", (1, 1, 1)),
            (" 2 pass\n 1 skip\n 1 fail\nRan 4 tests across 1 file. [8.00ms]", (2, 1, 1)),
            ("# tests 3\n# pass 1\n# fail 1\n# cancelled 1", (1, 2, 0)),
        ]);
    }

    #[test]
    fn counts_that_others_look_like_or_include() {
        assert_counts(&[
            ("Ran 3 tests in 0.1s\n\nOK (skipped=1, expected failures=1)", (2, 0, 1)),
            ("Ran 3 tests in 0.1s\n\nFAILED (errors=1, unexpected successes=1)", (1, 2, 0)),
            // uvu, and .NET's longer form.
            ("  Total:     3\n  Passed:    1\n  Skipped:   1\n  Duration:  4.21ms", (1, 2, 1)),
            ("  Total:     2\n  Passed:    2\n  Skipped:   0\n  Duration:  4.21ms", (2, 0, 0)),
            (
                "Total tests: 4\n     Passed: 2\n     Failed: 1\n    Skipped: 1\n Total time: 0.8 Seconds",
                (2, 1, 1),
            ),
            ("5 specs, 3 failures, 1 pending spec", (1, 3, 1)),
            ("  2 tests failed\n  1 known failure\n  1 test skipped", (1, 2, 1)),
            ("1..2\n# tests 2\n# pass  1\n# fail  1", (1, 1, 0)),
            (
                "Firefox 1.0: Executed 5 of 5 (1 FAILED) (0.01 secs / 0 secs)\nTOTAL: 1 FAILED, 4 SUCCESS",
                (4, 1, 0),
            ),
            (
                "Running 5 tests using 1 worker\n  2 failed\n    a.spec.js:2:30 › adds ───\n  1 flaky\n  1 skipped\n  1 passed (5.3s)",
                (2, 2, 1),
            ),
            (
                "test cases: 3 | 1 passed | 1 failed | 1 failed as expected\nassertions: 5 | 2 passed | 3 failed",
                (2, 1, 0),
            ),
            ("[doctest] test cases: 3 | 1 passed | 2 failed | 4 skipped", (1, 2, 4)),
            ("All tests passed (5 assertions in 3 test cases)", (3, 0, 0)),
            // CTest runs the programs, whose tests are parts of its own.
            (
                "[  PASSED  ] 0 tests.\n[  FAILED  ] 1 test, listed below:\n\n50% tests passed, 1 tests failed out of 2",
                (1, 1, 0),
            ),
            (
                "Ran 2 of 2 Specs in 0.002 seconds\nFAIL! -- 1 Passed | 1 Failed | 1 Pending | 0 Skipped",
                (1, 1, 1),
            ),
            ("DONE 8 tests, 1 skipped, 3 failures in 0.511s", (4, 3, 1)),
            ("DONE 1 test in 0.5s", (1, 0, 0)),
            ("1 failure! in 0.001s. 5 tests run.", (4, 1, 0)),
            ("Test Successful in 0.001s. 5 tests run.", (5, 0, 0)),
            ("  Failed 1 tests. Skipped 2 (1, 1) tests. Passed 3 tests. ", (3, 1, 2)),
            ("All 3 tests passed.", (3, 0, 0)),
            ("  Failed: 1.  Skipped: 0.  Passed: 2.", (2, 1, 0)),
            // The output of a failed test, and of one that failed before it passed.
            (
                "running 1 test\ntest a ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n     Summary [   0.021s] 2 tests run: 2 passed (1 flaky), 0 skipped\n\nrunning 1 test\ntest result: ok. 1 passed; 0 failed",
                (3, 0, 0),
            ),
        ]);
    }

    #[test]
    fn packages_and_tasks_are_counted_roughly() {
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
