//! JSON of test runners: Jest, Vitest, RSpec.

use journeyman_protocol::{Diagnostic, Severity, TestCounts};
use serde_json::Value;

use super::findings::Findings;
use super::json_values::{list_at, number_at, text_at, whole_milliseconds};
use super::line_readers::read_lines;
use super::location::{Location, parse_location};

/// Maximum lines of a matcher's message, which has two to four.
const MAX_MESSAGE_LINES: usize = 8;

/// Reads a document; returns false for a document of an unknown runner.
pub(super) fn read_document(value: &Value, findings: &mut Findings<'_>) -> bool {
    if value.get("testResults").is_some_and(Value::is_array) {
        for file in list_at(value, "/testResults") {
            read_jest_file(file, findings);
        }
        return true;
    }
    if value.get("examples").is_some_and(Value::is_array) && value.get("summary").is_some() {
        for example in list_at(value, "/examples") {
            read_rspec_example(example, findings);
        }
        return true;
    }
    false
}

fn read_jest_file(file: &Value, findings: &mut Findings<'_>) {
    let name = text_at(file, "/name").unwrap_or_default();
    let tests = list_at(file, "/assertionResults");
    for test in tests {
        let mut counts = TestCounts::default();
        match text_at(test, "/status") {
            Some("passed") => counts.passed = 1,
            Some("failed") => {
                counts.failed = 1;
                read_jest_test(name, test, findings);
            }
            _ => counts.skipped = 1,
        }
        findings.add_test_counts(counts);
    }
    // A file that can't be loaded has no test.
    if tests.is_empty()
        && text_at(file, "/status") == Some("failed")
        && let Some(message) = text_at(file, "/message")
    {
        let found = parse_failure(message, findings);
        let path = found.path.clone().or_else(|| findings.locate(name));
        findings.push(Diagnostic { path, test: None, ..found });
    }
}

fn read_jest_test(file: &str, test: &Value, findings: &mut Findings<'_>) {
    let names = list_at(test, "/ancestorTitles").iter().filter_map(Value::as_str);
    let names: Vec<&str> = names.chain(text_at(test, "/title")).collect();
    let message = text_at(test, "/failureMessages/0").unwrap_or("the test fails");
    let mut found = parse_failure(message, findings);
    if found.path.is_none()
        && let Some(line) = number_at(test, "/location/line", 0)
    {
        found = findings.with_location(found, Location { path: file, line, column: None, rest: "" });
    }
    if found.path.is_none() {
        found.path = findings.locate(file);
    }
    let duration = test.get("duration").and_then(Value::as_f64);
    findings.add_failed_test(Diagnostic {
        test: Some(names.join(" > ")),
        duration_ms: duration.and_then(whole_milliseconds),
        ..found
    });
}

fn read_rspec_example(example: &Value, findings: &mut Findings<'_>) {
    let mut counts = TestCounts::default();
    match text_at(example, "/status") {
        Some("passed") => counts.passed = 1,
        Some("pending") => counts.skipped = 1,
        _ => {
            counts.failed = 1;
            let path = text_at(example, "/file_path").unwrap_or_default();
            let line = number_at(example, "/line_number", 0).unwrap_or_default();
            let message = text_at(example, "/exception/message").unwrap_or("the test fails").trim();
            let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let error = Diagnostic::new(Severity::Error, lines.join("; "));
            let backtrace = list_at(example, "/exception/backtrace").iter().filter_map(Value::as_str);
            // The first frame in the project is the failing assertion.
            let frame = backtrace
                .filter_map(parse_location)
                .find(|frame| !frame.path.contains("/gems/") && findings.locate(frame.path).is_some());
            let at = frame.unwrap_or(Location { path, line, column: None, rest: "" });
            let error = findings.with_location(error, Location { column: None, ..at });
            let seconds = example.get("run_time").and_then(Value::as_f64);
            findings.add_failed_test(Diagnostic {
                test: text_at(example, "/full_description").map(str::to_owned),
                duration_ms: seconds.and_then(|seconds| whole_milliseconds(seconds * 1_000.0)),
                ..error
            });
        }
    }
    findings.add_test_counts(counts);
}

/// Reads the text of one failure as the output of its runner: its message, and the first location
/// in the project.
pub(super) fn parse_failure(text: &str, findings: &Findings<'_>) -> Diagnostic {
    let text = journeyman_sandbox::clean_output(text.as_bytes());
    let mut nested = findings.new_nested();
    read_lines(&text, &mut nested);
    nested.into_first_located().unwrap_or_else(|| parse_plain_failure(&text, findings))
}

/// Reads a failure without a known format: its first lines, and the first line that is only a
/// location in the project.
fn parse_plain_failure(text: &str, findings: &Findings<'_>) -> Diagnostic {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_frame = |line: &&str| parse_location(line).is_some_and(|found| found.rest.is_empty());
    let message: Vec<&str> = lines().filter(|line| !is_frame(line)).take(MAX_MESSAGE_LINES).collect();
    let message = if message.is_empty() { "the test fails".to_owned() } else { message.join("; ") };
    let frame = lines().filter_map(parse_location).find(|found| findings.locate(found.path).is_some());
    let error = Diagnostic::new(Severity::Error, message);
    match frame {
        Some(frame) => findings.with_location(error, frame),
        None => error,
    }
}
