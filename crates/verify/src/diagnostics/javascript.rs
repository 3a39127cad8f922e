//! JavaScript and TypeScript: tsc, eslint, jest, vitest, mocha, node's own test runner.

use journeyman_protocol::{Diagnostic, RelPath, Severity};

use super::findings::Findings;
use super::javascript_titles::{MAX_TITLE_BYTES, PendingFailure, TitleLine, TitleReader};
use super::line_reader::LineReader;
use super::location::{Location, parse_location, parse_number, parse_parenthesised_location, parse_severity};

/// Maximum lines of a matcher's message, which has two to four before its code frame.
const MAX_MESSAGE_LINES: usize = 4;

/// Reads what the usual tools of the JavaScript world print.
#[derive(Default)]
pub(super) struct JavaScriptReader {
    /// The file that eslint's rows belong to.
    file: Option<RelPath>,
    /// `path:line` alone on a line, as node prints above a syntax error.
    before: Option<(String, u32)>,
    failure: Option<PendingFailure>,
    titles: TitleReader,
    /// Tests that node marks in its list; it says more about them below, if it says anything.
    marked: Vec<String>,
}

impl LineReader for JavaScriptReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let text = line.trim_start();
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
        match self.titles.read_line(line, findings) {
            TitleLine::Failure(failure) => {
                self.flush_failure(findings);
                self.failure = Some(failure);
                return true;
            }
            TitleLine::Part => {
                self.flush_failure(findings);
                return true;
            }
            TitleLine::Other(None) => {}
            TitleLine::Other(before) => self.failure = before,
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
        self.flush_failure(findings);
        if self.titles.in_details {
            return;
        }
        for test in std::mem::take(&mut self.marked) {
            if !findings.has_test(&test) {
                findings.add_error(Some(&test), "the test fails");
            }
        }
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
                let lines = vec![text.to_owned()];
                self.failure = Some(PendingFailure { lines, ..PendingFailure::default() });
            }
        }
        true
    }

    fn read_message_line(&mut self, text: &str) {
        let Some(failure) = &mut self.failure else { return };
        let code_frame = text.starts_with(['>', '|'])
            || parse_number(text).is_some_and(|(_, rest)| rest.trim_start().starts_with('|'));
        // Hspec's blocks look like Mocha's, and node goes on with its list.
        let is_end = ["To rerun use: ", "ℹ ", "▶ ", "✔ ", "﹣ "].iter().any(|mark| text.starts_with(mark));
        failure.is_full |= code_frame || is_end || failure.lines.len() >= MAX_MESSAGE_LINES;
        if !failure.is_full && !text.is_empty() {
            failure.lines.push(text.to_owned());
        }
    }

    /// Reads a stack frame: the first one in the project is the failure's location.
    fn read_frame(&mut self, found: Location<'_>, findings: &mut Findings<'_>) -> bool {
        let ours = !found.path.contains("node_modules/") && findings.locate(found.path).is_some();
        match self.failure.take() {
            Some(failure) if ours && !failure.lines.is_empty() && !failure.is_ignored => {
                findings.add_error_at(found, failure.test.as_deref(), &failure.lines.join("; "));
            }
            other => {
                self.failure = other;
                if let Some(failure) = &mut self.failure {
                    failure.is_full = true;
                }
            }
        }
        true
    }

    fn flush_failure(&mut self, findings: &mut Findings<'_>) {
        let Some(failure) = self.failure.take().filter(|failure| !failure.is_ignored) else { return };
        let told = failure.test.as_deref().is_some_and(|test| findings.has_test(test));
        // RSpec's headings look like Mocha's.
        let is_rspec =
            failure.lines.iter().any(|line| line.starts_with("# ") || line.contains("Failure/Error:"));
        // A suite of node's fails through its tests.
        let is_parent =
            failure.lines.first().is_some_and(|line| line.contains("subtest") && line.ends_with(" failed'"));
        if told || is_rspec || is_parent {
            return;
        }
        if failure.lines.is_empty() && failure.is_marked {
            self.marked.extend(failure.test);
        } else if !failure.lines.is_empty() || failure.test.is_some() || failure.file.is_some() {
            let message = match failure.lines.is_empty() {
                true => "the test fails".to_owned(),
                false => failure.lines.join("; "),
            };
            let error = Diagnostic::new(Severity::Error, message);
            findings.push(Diagnostic { test: failure.test, path: failure.file, ..error });
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

/// Reads `at f (/p/a.js:5:17)`, `at /p/a.js:5:17`, `❯ a.test.ts:5:17`, and `at tests/A.php:4` of
/// Pest.
fn parse_frame(text: &str) -> Option<Location<'_>> {
    let rest = text.strip_prefix("at ").or_else(|| text.strip_prefix("❯ "))?;
    let inner = match rest.rsplit_once('(') {
        Some((_, inner)) => inner,
        None => rest.rsplit(' ').next()?,
    };
    let is_frame = |found: &Location<'_>| {
        found.column.is_some() || found.path.ends_with(".php") && found.rest.is_empty()
    };
    parse_location(inner).filter(is_frame)
}

/// Returns true for `SomethingError: …`, possibly with a code in brackets.
pub(super) fn is_error_line(text: &str) -> bool {
    let Some((head, _)) = text.split_once(": ") else { return false };
    let name = head.split(" [").next().unwrap_or(head);
    name.ends_with("Error") && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}
