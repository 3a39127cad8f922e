//! JavaScript and TypeScript: tsc, eslint, jest, vitest, mocha, node's own test runner.

use journeyman_protocol::{Diagnostic, RelPath, Severity, clip_to_bytes};

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, parse_location, parse_number, parse_parenthesised_location, parse_severity};

/// Maximum lines of a matcher's message, which has two to four before its code frame.
const MAX_MESSAGE_LINES: usize = 4;
/// Maximum bytes of a test's title.
const MAX_TITLE_BYTES: usize = 300;

/// Reads what the usual tools of the JavaScript world print.
#[derive(Default)]
pub(super) struct JavaScriptReader {
    /// The file that eslint's rows belong to.
    file: Option<RelPath>,
    /// `path:line` alone on a line, as node prints above a syntax error.
    before: Option<(String, u32)>,
    failure: Option<PendingFailure>,
    tap: Option<TapFailure>,
}

/// A failed test or an uncaught error, waiting for the first frame in the project.
struct PendingFailure {
    test: Option<String>,
    lines: Vec<String>,
    full: bool,
}

/// A `not ok` line and what its YAML block says.
struct TapFailure {
    test: String,
    place: Option<(String, u32, Option<u32>)>,
    message: Vec<String>,
    in_message: bool,
    only_through_subtests: bool,
}

impl LineReader for JavaScriptReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if self.tap.is_some() {
            return self.read_tap_line(line.trim(), findings);
        }
        let text = line.trim_start();
        if let Some(name) = text.strip_prefix("not ok ").and_then(|rest| rest.split_once(" - ")) {
            let test = name.1.to_owned();
            self.tap = Some(TapFailure {
                test,
                place: None,
                message: Vec::new(),
                in_message: false,
                only_through_subtests: false,
            });
            return true;
        }
        if read_typescript_error(line, findings) || self.read_eslint_line(line, findings) {
            return true;
        }
        // Bun and AVA name a failed test after, or before, all that they say about it.
        if let Some(title) = ["(fail) ", "✘ [fail]: "].iter().find_map(|mark| text.strip_prefix(mark)) {
            self.flush_failure(findings);
            let title = title.rsplit_once(" [").filter(|it| it.1.ends_with("ms]")).map_or(title, |it| it.0);
            findings.add_error(Some(title), "the test fails");
            return true;
        }
        if let Some(title) = parse_failed_test_title(line) {
            self.flush_failure(findings);
            self.failure =
                Some(PendingFailure { test: Some(title.to_owned()), lines: Vec::new(), full: false });
            return true;
        }
        if let Some(frame) = parse_frame(text) {
            return self.read_frame(frame, findings);
        }
        // Deno says first that it is an error.
        let error = text.strip_prefix("error: ").unwrap_or(text);
        let error = error.strip_prefix("(in promise) ").unwrap_or(error);
        if is_error_line(error) {
            return self.read_error_line(error, findings);
        }
        if let Some(found) = parse_location(line)
            && found.rest.is_empty()
            && found.column.is_none()
            && !found.path.contains(char::is_whitespace)
        {
            self.before = Some((found.path.to_owned(), found.line));
            return true;
        }
        self.read_message_line(text);
        false
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.flush_tap(findings);
        self.flush_failure(findings);
    }
}

impl JavaScriptReader {
    /// Reads eslint's stylish format: a path on a line of its own, then indented rows.
    fn read_eslint_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if !line.starts_with(' ') {
            self.file = None;
            let may_be_path = line.len() <= MAX_TITLE_BYTES
                && !line.contains([' ', ':', '('])
                && line.rsplit('/').next().is_some_and(|name| name.contains('.'));
            if may_be_path {
                self.file = findings.locate(line);
            }
            return self.file.is_some();
        }
        let Some(path) = &self.file else { return false };
        let Some((line_number, rest)) = parse_number(line.trim_start()) else { return false };
        let Some((column, rest)) = rest.strip_prefix(':').and_then(parse_number) else { return false };
        let rest = rest.trim_start();
        let (severity, rest) = if let Some(rest) = rest.strip_prefix("error ") {
            (Severity::Error, rest)
        } else if let Some(rest) = rest.strip_prefix("warning ") {
            (Severity::Warning, rest)
        } else {
            return false;
        };
        let (message, rule) = match rest.trim().rsplit_once("  ") {
            Some((message, rule)) => (message.trim(), Some(rule.trim().to_owned())),
            None => (rest.trim(), None),
        };
        findings.push(Diagnostic {
            path: Some(path.clone()),
            line: Some(line_number),
            column: Some(column),
            code: rule,
            ..Diagnostic::new(severity, message)
        });
        true
    }

    /// Reads errors such as `AssertionError [ERR_ASSERTION]: …` and `TypeError: …`.
    fn read_error_line(&mut self, text: &str, findings: &mut Findings<'_>) -> bool {
        if let Some((path, line)) = self.before.take()
            && findings.locate(&path).is_some()
        {
            let test = self.failure.take().and_then(|failure| failure.test);
            let place = Location { path: &path, line, column: None, rest: "" };
            findings.add_error_at(place, test.as_deref(), text);
            return true;
        }
        match &mut self.failure {
            Some(failure) if failure.lines.is_empty() => failure.lines.push(text.to_owned()),
            Some(failure) if failure.test.is_some() => self.read_message_line(text),
            _ => {
                self.flush_failure(findings);
                self.failure = Some(PendingFailure { test: None, lines: vec![text.to_owned()], full: false });
            }
        }
        true
    }

    fn read_message_line(&mut self, text: &str) {
        let Some(failure) = &mut self.failure else { return };
        let code_frame = text.starts_with(['>', '|'])
            || parse_number(text).is_some_and(|(_, rest)| rest.trim_start().starts_with('|'));
        // Hspec's blocks look like Mocha's.
        let is_hspec_end = text.starts_with("To rerun use: ");
        failure.full |= code_frame || is_hspec_end || failure.lines.len() >= MAX_MESSAGE_LINES;
        if !failure.full && !text.is_empty() {
            failure.lines.push(text.to_owned());
        }
    }

    /// Reads a stack frame: the first one in the project is the failure's location.
    fn read_frame(&mut self, found: Location<'_>, findings: &mut Findings<'_>) -> bool {
        let ours = !found.path.contains("node_modules/") && findings.locate(found.path).is_some();
        match self.failure.take() {
            Some(failure) if ours && !failure.lines.is_empty() => {
                findings.add_error_at(found, failure.test.as_deref(), &failure.lines.join("; "));
            }
            other => {
                self.failure = other;
                if let Some(failure) = &mut self.failure {
                    failure.full = true;
                }
            }
        }
        true
    }

    fn flush_failure(&mut self, findings: &mut Findings<'_>) {
        let Some(failure) = self.failure.take() else { return };
        let told = failure.test.as_deref().is_some_and(|test| findings.has_test(test));
        // RSpec's headings look like Mocha's.
        let is_rspec =
            failure.lines.iter().any(|line| line.starts_with("# ") || line.starts_with("Failure/Error:"));
        if told || is_rspec {
            return;
        }
        if failure.lines.is_empty() {
            if failure.test.is_some() {
                findings.add_error(failure.test.as_deref(), "the test fails");
            }
        } else {
            findings.add_error(failure.test.as_deref(), &failure.lines.join("; "));
        }
    }

    fn read_tap_line(&mut self, text: &str, findings: &mut Findings<'_>) -> bool {
        let ends =
            text == "..." || text.starts_with("ok ") || text.starts_with("not ok ") || text.starts_with('#');
        if ends {
            self.flush_tap(findings);
            // The line that ended an unfinished block begins something of its own.
            return text == "..." || !text.starts_with("not ok ") || self.read_line(text, findings);
        }
        let Some(tap) = &mut self.tap else { return false };
        if let Some(at) = text.strip_prefix("location: ") {
            let at = at.trim_matches('\'');
            tap.place = parse_location(at).map(|found| (found.path.to_owned(), found.line, found.column));
        } else if let Some(failure) = text.strip_prefix("failureType: ") {
            tap.only_through_subtests = failure.contains("subtestsFailed");
        } else if let Some(error) = text.strip_prefix("error: ") {
            tap.in_message = error.starts_with('|');
            if !tap.in_message {
                tap.message.push(error.trim_matches('\'').to_owned());
            }
        } else if ["code:", "name:", "stack:", "expected:", "actual:"].iter().any(|key| text.starts_with(key))
        {
            tap.in_message = false;
        } else if tap.in_message && !text.is_empty() && tap.message.len() < MAX_MESSAGE_LINES {
            tap.message.push(text.to_owned());
        }
        true
    }

    fn flush_tap(&mut self, findings: &mut Findings<'_>) {
        let Some(tap) = self.tap.take().filter(|tap| !tap.only_through_subtests) else { return };
        let message =
            if tap.message.is_empty() { "the test fails".to_owned() } else { tap.message.join("; ") };
        match &tap.place {
            Some((path, line, column)) => {
                let place = Location { path, line: *line, column: *column, rest: "" };
                findings.add_error_at(place, Some(&tap.test), &message);
            }
            None => findings.add_error(Some(&tap.test), &message),
        }
    }
}

/// Reads `a.ts(3,5): error TS2322: …`, or `a.ts:3:5 - error TS2322: …` of the pretty format.
fn read_typescript_error(line: &str, findings: &mut Findings<'_>) -> bool {
    let read = |found: Option<Location<'_>>, separator: &str, findings: &mut Findings<'_>| {
        let found = found?;
        let (severity, code, message) = parse_severity(found.rest.strip_prefix(separator)?)?;
        let code = code.filter(|code| code.starts_with("TS"))?;
        let path = findings.locate(found.path);
        let inside = path.is_some();
        findings.push(Diagnostic {
            path,
            line: inside.then_some(found.line),
            column: found.column.filter(|_| inside),
            code: Some(code.to_owned()),
            ..Diagnostic::new(severity, message)
        });
        Some(())
    };
    if !line.contains(" TS") {
        return false;
    }
    read(parse_parenthesised_location(line), ": ", findings)
        .or_else(|| read(parse_location(line), " - ", findings))
        .is_some()
}

/// Returns the title of a failed test: jest's `●`, vitest's `FAIL a > b`, mocha's `1) a`, node's
/// `✖`, Deno's `a => ./a_test.ts:4:6`.
fn parse_failed_test_title(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let indented = text.len() < line.len();
    let found = text
        .strip_prefix("● ")
        .or_else(|| text.strip_prefix("✖ ").filter(|rest| !is_summary_line(rest)).map(strip_duration))
        .or_else(|| text.strip_prefix("FAIL  ").filter(|rest| rest.contains(" > ")))
        .or_else(|| {
            let (title, place) = text.split_once(" => ").filter(|_| !indented)?;
            let place = parse_location(place.strip_prefix("./")?)?;
            (place.column.is_some() && place.rest.is_empty()).then_some(title)
        })
        .or_else(|| {
            let (_, rest) = parse_number(text).filter(|_| indented)?;
            rest.strip_prefix(") ")
        })?;
    (!found.is_empty()).then(|| clip_to_bytes(found, MAX_TITLE_BYTES))
}

/// Returns true for summary lines that eslint and node's reporter mark like failures.
fn is_summary_line(rest: &str) -> bool {
    rest.ends_with("failing tests:") || (rest.contains(" problem") && parse_number(rest).is_some())
}

/// Returns a title without the `(0.3ms)` after it.
fn strip_duration(title: &str) -> &str {
    title.rsplit_once(" (").filter(|(_, time)| time.ends_with("ms)")).map_or(title, |(title, _)| title)
}

/// Reads `at f (/p/a.js:5:17)`, `at /p/a.js:5:17` and `❯ a.test.ts:5:17`.
fn parse_frame(text: &str) -> Option<Location<'_>> {
    let rest = text.strip_prefix("at ").or_else(|| text.strip_prefix("❯ "))?;
    let inner = match rest.rsplit_once('(') {
        Some((_, inner)) => inner,
        None => rest.rsplit(' ').next()?,
    };
    parse_location(inner).filter(|found| found.column.is_some())
}

/// Returns true for `SomethingError: …`, possibly with a code in brackets.
pub(super) fn is_error_line(text: &str) -> bool {
    let Some((head, _)) = text.split_once(": ") else { return false };
    let name = head.split(" [").next().unwrap_or(head);
    name.ends_with("Error") && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}
