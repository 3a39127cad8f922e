//! rustc and cargo: compiler messages, panics, failed tests.

use journeyman_protocol::{Diagnostic, Severity};

use super::findings::Findings;
use super::javascript::is_error_line;
use super::line_reader::LineReader;
use super::location::{Location, is_code, parse_location, parse_severity};

/// Maximum lines of a panic's message: an assertion prints three lines.
const MAX_PANIC_LINES: usize = 6;
/// Summaries that cargo prints after the findings.
const SUMMARY_LINES: [&str; 10] = [
    "could not compile",
    "aborting due to",
    "test failed, to rerun",
    "doctest failed, to rerun",
    "bench failed, to rerun",
    "build failed",
    "test run failed",
    "process didn't exit successfully",
    "failed to run custom build command",
    "Recipe ",
];

/// Reads what rustc, cargo and the test harness print.
#[derive(Default)]
pub(super) struct RustReader {
    /// A message whose location has not been printed yet.
    message: Option<CompilerMessage>,
    /// True if the newest finding may still get its caret's label.
    wants_label: bool,
    panic: Option<PendingPanic>,
    /// The test whose captured output this is.
    section: Option<String>,
    failed: Vec<String>,
}

struct CompilerMessage {
    severity: Severity,
    code: Option<String>,
    text: String,
    /// True if it is one only where a place follows.
    needs_place: bool,
}

struct PendingPanic {
    test: Option<String>,
    place: Option<(String, u32, Option<u32>)>,
    lines: Vec<String>,
}

impl LineReader for RustReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if self.panic.is_some() {
            return self.read_panic_line(line, findings);
        }
        if let Some(rest) = line.strip_prefix("thread '") {
            return self.begin_panic(rest, findings);
        }
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.section = Some(name.to_owned());
            return true;
        }
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.failed.push(name.to_owned());
            return true;
        }
        if let (Some(test), Some(error)) = (&self.section, line.strip_prefix("Error: ")) {
            findings.add_error(Some(test), error);
            return true;
        }
        // Elixir indents its messages, which have a place.
        let (message, needs_place) = match line.strip_prefix("    ") {
            Some(message) => (message, true),
            None => (line, false),
        };
        if message.starts_with(['e', 'w'])
            && let Some((severity, code, text)) = parse_severity(message)
            && !is_error_line(text)
        {
            self.flush_message(findings);
            let code = code.map(str::to_owned);
            let noise = SUMMARY_LINES.iter().any(|summary| text.starts_with(summary))
                || (severity == Severity::Warning && text.contains(" generated "));
            self.message =
                (!noise).then(|| CompilerMessage { severity, code, text: text.to_owned(), needs_place });
            self.wants_label = false;
            return true;
        }
        let text = line.trim_start();
        // Gleam and Elixir draw the frame of the source.
        if let Some(rest) = ["--> ", "┌─ ", "└─ "].iter().find_map(|mark| text.strip_prefix(mark)) {
            self.read_location(rest, findings);
            return true;
        }
        if let Some((code, text)) = line.split_once(' ').filter(|(word, _)| is_code(word)) {
            // ruff prints its findings in rustc's format, except for the heading.
            self.flush_message(findings);
            let (code, text) = (Some(code.to_owned()), text.trim_start_matches("[*] ").to_owned());
            self.message = Some(CompilerMessage { severity: Severity::Error, code, text, needs_place: true });
            return false;
        }
        self.read_label(line, findings)
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.flush_message(findings);
        self.flush_panic(findings);
        for test in std::mem::take(&mut self.failed) {
            if !findings.has_test(&test) {
                add_failed_test(&test, findings);
            }
        }
    }
}

impl RustReader {
    /// `  --> src/lib.rs:4:32` after a message.
    fn read_location(&mut self, rest: &str, findings: &mut Findings<'_>) {
        let Some(message) = self.message.take() else { return };
        let found = parse_location(rest);
        let path = found.and_then(|place| findings.locate(place.path));
        let inside = found.filter(|_| path.is_some());
        findings.push(Diagnostic {
            path,
            line: inside.map(|place| place.line),
            column: inside.and_then(|place| place.column),
            code: message.code,
            ..Diagnostic::new(message.severity, message.text)
        });
        self.wants_label = true;
    }

    /// `  |   ^^^ what is wrong here` under the source line: the most telling part of many
    /// messages.
    fn read_label(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if !self.wants_label || !line.trim_start().starts_with('|') {
            return false;
        }
        if let Some((_, label)) = line.rsplit_once('^') {
            findings.extend_last(label);
            self.wants_label = false;
        }
        true
    }

    fn flush_message(&mut self, findings: &mut Findings<'_>) {
        if let Some(message) = self.message.take()
            && message.severity == Severity::Error
            && !message.needs_place
        {
            findings
                .push(Diagnostic { code: message.code, ..Diagnostic::new(message.severity, message.text) });
        }
    }

    /// Reads `tests::one' (9260) panicked at src/lib.rs:6:20:`, or the one-line form of compilers
    /// before 1.73.
    fn begin_panic(&mut self, rest: &str, findings: &mut Findings<'_>) -> bool {
        let Some((name, rest)) = rest.split_once('\'') else { return false };
        let Some((_, rest)) = rest.split_once("panicked at ") else { return false };
        let test = if name == "main" { self.section.clone() } else { Some(name.to_owned()) };
        if let Some((message, at)) = rest.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', ")) {
            match parse_location(at) {
                Some(place) => findings.add_error_at(place, test.as_deref(), message),
                None => findings.add_error(test.as_deref(), message),
            }
            return true;
        }
        let place = parse_location(rest).map(|place| (place.path.to_owned(), place.line, place.column));
        self.panic = Some(PendingPanic { test, place, lines: Vec::new() });
        true
    }

    fn read_panic_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let ends = line.is_empty() || line.starts_with("note: ") || line.starts_with("stack backtrace:");
        match &mut self.panic {
            Some(panic) if !ends && panic.lines.len() < MAX_PANIC_LINES => {
                panic.lines.push(line.trim().to_owned());
            }
            _ => self.flush_panic(findings),
        }
        true
    }

    fn flush_panic(&mut self, findings: &mut Findings<'_>) {
        let Some(panic) = self.panic.take() else { return };
        let message = if panic.lines.is_empty() { "panicked".to_owned() } else { panic.lines.join("; ") };
        match &panic.place {
            Some((path, line, column)) => {
                let place = Location { path, line: *line, column: *column, rest: "" };
                findings.add_error_at(place, panic.test.as_deref(), &message);
            }
            None => findings.add_error(panic.test.as_deref(), &message),
        }
    }
}

/// Adds a failed test that printed nothing else; a doc test's name contains its location.
fn add_failed_test(test: &str, findings: &mut Findings<'_>) {
    let doc_test = test.split_once(" - ").and_then(|(path, rest)| {
        let (_, line) = rest.rsplit_once("(line ")?;
        Some(Location { path, line: line.strip_suffix(')')?.parse().ok()?, column: None, rest: "" })
    });
    match doc_test {
        Some(place) => findings.add_error_at(place, Some(test), "the doc test fails"),
        None => findings.add_error(Some(test), "the test fails"),
    }
}
