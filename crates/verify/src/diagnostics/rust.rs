//! rustc and cargo: compiler messages, panics, failed tests.

use journeyman_protocol::{Diagnostic, Severity};

use super::findings::Findings;
use super::place::{Place, is_code, place, severity};
use super::reader::Reader;

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
pub(super) struct Rust {
    /// A message whose location has not been printed yet.
    message: Option<Message>,
    /// True if the newest finding may still get its caret's label.
    wants_label: bool,
    panic: Option<Panic>,
    /// The test whose captured output this is.
    section: Option<String>,
    failed: Vec<String>,
}

struct Message {
    severity: Severity,
    code: Option<String>,
    text: String,
    /// True if it is one only where a place follows.
    needs_place: bool,
}

struct Panic {
    test: Option<String>,
    place: Option<(String, u32, Option<u32>)>,
    lines: Vec<String>,
}

impl Reader for Rust {
    fn line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if self.panic.is_some() {
            return self.panic_line(line, findings);
        }
        if let Some(rest) = line.strip_prefix("thread '") {
            return self.panic_begins(rest, findings);
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
            findings.error(Some(test), error);
            return true;
        }
        if line.starts_with(['e', 'w'])
            && let Some((severity, code, text)) = severity(line)
        {
            self.flush_message(findings);
            let code = code.map(str::to_owned);
            let noise = SUMMARY_LINES.iter().any(|summary| text.starts_with(summary))
                || (severity == Severity::Warning && text.contains(" generated "));
            self.message =
                (!noise).then(|| Message { severity, code, text: text.to_owned(), needs_place: false });
            self.wants_label = false;
            return true;
        }
        if let Some(rest) = line.trim_start().strip_prefix("--> ") {
            self.placed(rest, findings);
            return true;
        }
        if let Some((code, text)) = line.split_once(' ').filter(|(word, _)| is_code(word)) {
            // ruff prints its findings in rustc's format, except for the heading.
            self.flush_message(findings);
            let (code, text) = (Some(code.to_owned()), text.trim_start_matches("[*] ").to_owned());
            self.message = Some(Message { severity: Severity::Error, code, text, needs_place: true });
            return false;
        }
        self.label(line, findings)
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.flush_message(findings);
        self.flush_panic(findings);
        for test in std::mem::take(&mut self.failed) {
            if !findings.has_test(&test) {
                name_failed_test(&test, findings);
            }
        }
    }
}

impl Rust {
    /// `  --> src/lib.rs:4:32` after a message.
    fn placed(&mut self, rest: &str, findings: &mut Findings<'_>) {
        let Some(message) = self.message.take() else { return };
        let found = place(rest);
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
    fn label(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
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
    fn panic_begins(&mut self, rest: &str, findings: &mut Findings<'_>) -> bool {
        let Some((name, rest)) = rest.split_once('\'') else { return false };
        let Some((_, rest)) = rest.split_once("panicked at ") else { return false };
        let test = if name == "main" { self.section.clone() } else { Some(name.to_owned()) };
        if let Some((message, at)) = rest.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', ")) {
            match place(at) {
                Some(place) => findings.error_at(place, test.as_deref(), message),
                None => findings.error(test.as_deref(), message),
            }
            return true;
        }
        let place = place(rest).map(|place| (place.path.to_owned(), place.line, place.column));
        self.panic = Some(Panic { test, place, lines: Vec::new() });
        true
    }

    fn panic_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
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
                let place = Place { path, line: *line, column: *column, rest: "" };
                findings.error_at(place, panic.test.as_deref(), &message);
            }
            None => findings.error(panic.test.as_deref(), &message),
        }
    }
}

/// Adds a failed test that printed nothing else; a doc test's name contains its location.
fn name_failed_test(test: &str, findings: &mut Findings<'_>) {
    let doc_test = test.split_once(" - ").and_then(|(path, rest)| {
        let (_, line) = rest.rsplit_once("(line ")?;
        Some(Place { path, line: line.strip_suffix(')')?.parse().ok()?, column: None, rest: "" })
    });
    match doc_test {
        Some(place) => findings.error_at(place, Some(test), "the doc test fails"),
        None => findings.error(Some(test), "the test fails"),
    }
}
