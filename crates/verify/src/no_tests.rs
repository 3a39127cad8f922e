//! Counting of the tests that a test command ran, by what the known runners print.

/// The tests that an output tells of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    /// Tests that ran; `None` where the output has no count of a known runner.
    pub(crate) ran: Option<u64>,
    /// Tests that were skipped or ignored.
    pub(crate) left_out: u64,
}

impl TestCounts {
    fn add(&mut self, ran: u64, left_out: u64) {
        self.ran = Some(self.ran.unwrap_or(0).saturating_add(ran));
        self.left_out = self.left_out.saturating_add(left_out);
    }
}

/// Adds up the counts of all runners in an output. An output with two kinds of counts for one run
/// counts a test twice, which doesn't matter: none is none.
pub(crate) fn count(output: &str) -> TestCounts {
    let mut counts = TestCounts::default();
    // Where libtest prints results, these decide: what it says before counts ignored tests too.
    let has_results = output.contains("test result: ");
    let lines = output.lines().map(|line| line.trim().trim_matches('=').trim());
    for line in lines.filter(|line| !(has_results && line.starts_with("running "))) {
        if let Some((ran, left_out)) = count_in(line) {
            counts.add(ran, left_out);
        } else if let Some(skipped) = skipped_of_counted(line) {
            counts.ran = counts.ran.map(|ran| ran.saturating_sub(skipped));
            counts.left_out = counts.left_out.saturating_add(skipped);
        }
    }
    counts
}

/// Returns the number of skipped tests on a line that follows a count which includes them:
/// unittest's `OK (skipped=2)`.
fn skipped_of_counted(line: &str) -> Option<u64> {
    let inner = line.strip_prefix("OK (").or_else(|| line.strip_prefix("FAILED ("))?;
    after(inner, "skipped=")
}

/// Returns the tests that a line says ran, and those that were left out.
fn count_in(line: &str) -> Option<(u64, u64)> {
    const NONE: [&str; 6] = [
        "No tests found, exiting with code 0",
        "No test files found, exiting with code 0",
        "No tests were found!!!",
        "[no test files]",
        "[no tests to run]",
        "no tests ran",
    ];
    if NONE.iter().any(|none| line.contains(none)) {
        return Some((0, 0));
    }
    // Go names packages, with the time or with `(cached)`.
    if line.starts_with("ok  \t") {
        return Some((1, 0));
    }
    // libtest.
    if let Some(result) = line.strip_prefix("test result: ") {
        let ran = ["passed", "failed", "measured"].iter().filter_map(|word| before(result, word)).sum();
        return Some((ran, before(result, "ignored").unwrap_or(0)));
    }
    if let Some(rest) = line.strip_prefix("running ") {
        return Some((rest.split_once(" test")?.0.parse().ok()?, 0));
    }
    // unittest: the number on one line, what was skipped on another.
    if let Some(rest) = line.strip_prefix("Ran ") {
        return Some((rest.split_once(" test")?.0.parse().ok()?, 0));
    }
    // node's two reporters.
    if let Some(rest) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) {
        let (word, count) = rest.split_once(' ')?;
        let count = count.parse().ok()?;
        return match word {
            "pass" | "fail" => Some((count, 0)),
            "skipped" | "todo" => Some((0, count)),
            _ => None,
        };
    }
    // Mocha.
    if let Some((count, _)) = line.split_once(" passing (") {
        return Some((count.parse().ok()?, 0));
    }
    if let Some(count) = line.strip_suffix(" pending") {
        return Some((0, count.parse().ok()?));
    }
    // Maven's Surefire.
    if let Some(at) = line.find("Tests run: ") {
        let rest = line.get(at..)?;
        let all = after(rest, "Tests run: ")?;
        let skipped = after(rest, "Skipped: ").unwrap_or(0);
        return Some((all.saturating_sub(skipped), skipped));
    }
    // CTest.
    if let Some((_, all)) = line.split_once(" tests failed out of ") {
        return Some((all.split_whitespace().next()?.parse().ok()?, 0));
    }
    // Jest and Vitest.
    if let Some(rest) = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests  ")) {
        let ran = before(rest, "passed").unwrap_or(0) + before(rest, "failed").unwrap_or(0);
        let left_out = before(rest, "skipped").unwrap_or(0) + before(rest, "todo").unwrap_or(0);
        return (ran + left_out > 0 || before(rest, "total").is_some()).then_some((ran, left_out));
    }
    pytest_summary(line)
}

/// Reads pytest's last line, `1 failed, 2 passed, 1 skipped in 0.12s`.
fn pytest_summary(line: &str) -> Option<(u64, u64)> {
    let (counts, time) = line.rsplit_once(" in ")?;
    if !time.starts_with(|c: char| c.is_ascii_digit()) || !time.contains('s') {
        return None;
    }
    if counts.ends_with(" collected") {
        return before(counts, "test").or_else(|| before(counts, "tests")).map(|_| (0, 0));
    }
    let ran: u64 = ["passed", "failed", "xpassed", "xfailed", "error", "errors"]
        .iter()
        .filter_map(|word| before(counts, word))
        .sum();
    let left_out = before(counts, "skipped").unwrap_or(0) + before(counts, "deselected").unwrap_or(0);
    (ran + left_out > 0).then_some((ran, left_out))
}

/// Returns the number before a word.
fn before(text: &str, word: &str) -> Option<u64> {
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
fn after(text: &str, start: &str) -> Option<u64> {
    let rest = text.get(text.find(start)? + start.len()..)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok()
}
