//! JSON and XML documents within an output, whichever tool printed them.

use journeyman_protocol::{Diagnostic, RelPath, Severity};
use serde_json::Value;

use super::findings::Findings;
use super::go_json::GoEvents;
use super::{junit, lint_json, test_json};

/// Maximum number of places at which an output is tried as a JSON document over several lines: each
/// costs up to the length of the rest.
const MAX_ATTEMPTS: usize = 32;
/// Maximum number of documents read from an output; a stream of events has one a line.
const MAX_DOCUMENTS: usize = 200_000;

/// Reads the documents of one output.
#[derive(Default)]
pub(super) struct Documents {
    attempts: usize,
    documents: usize,
    go: GoEvents,
}

impl Documents {
    /// Reads a document that begins at `text`, and returns its length; `None` if none does, or none
    /// of a known tool.
    pub(super) fn read(&mut self, text: &str, findings: &mut Findings<'_>) -> Option<usize> {
        let begin = text.trim_start_matches([' ', '\t']);
        let indent = text.len() - begin.len();
        let length = match begin.as_bytes().first()? {
            b'{' | b'[' => self.read_json(begin, findings)?,
            b'<' => junit::read_at(begin, findings)?,
            _ => return None,
        };
        Some(indent + length)
    }

    /// Gives what was held back for documents that didn't come.
    pub(super) fn finish(&mut self, findings: &mut Findings<'_>) {
        self.go.finish(findings);
    }

    fn read_json(&mut self, text: &str, findings: &mut Findings<'_>) -> Option<usize> {
        if self.documents >= MAX_DOCUMENTS {
            return None;
        }
        let line = text.lines().next().unwrap_or_default().trim_end();
        let (value, length) = match serde_json::from_str(line) {
            Ok(value) => (value, line.len()),
            // Only a line that is cut within a value can begin a longer document.
            Err(error) if error.is_eof() => self.read_long_json(text)?,
            Err(_) => return None,
        };
        self.documents += 1;
        let is_known = self.go.read(&value, findings)
            || lint_json::read(&value, findings)
            || test_json::read(&value, findings);
        is_known.then_some(length)
    }

    fn read_long_json(&mut self, text: &str) -> Option<(Value, usize)> {
        if self.attempts >= MAX_ATTEMPTS {
            return None;
        }
        self.attempts += 1;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        Some((value, values.byte_offset()))
    }
}

/// Returns the text at a JSON pointer.
pub(super) fn text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

/// Returns the number at a JSON pointer, plus `more`: some tools count lines from 0.
pub(super) fn number_at(value: &Value, pointer: &str, more: u32) -> Option<u32> {
    let number = u32::try_from(value.pointer(pointer)?.as_u64()?).ok()?;
    number.checked_add(more).filter(|number| *number > 0)
}

/// Returns the list at a JSON pointer; empty if there is none.
pub(super) fn list_at<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A diagnostic of a linter in `path`, which may lie outside of the project.
pub(super) fn lint(
    path: Option<RelPath>,
    (line, column): (Option<u32>, Option<u32>),
    severity: Severity,
    code: Option<&str>,
    message: &str,
) -> Diagnostic {
    Diagnostic {
        line: line.filter(|_| path.is_some()),
        column: column.filter(|_| path.is_some() && line.is_some()),
        path,
        code: code.map(str::to_owned),
        ..Diagnostic::new(severity, message)
    }
}

/// Reads a severity by the word or the number that a tool uses.
pub(super) fn severity_of(value: Option<&Value>) -> Severity {
    match value {
        Some(Value::Number(number)) if number.as_u64() == Some(1) => Severity::Warning,
        Some(Value::String(word)) => match word.to_ascii_lowercase().as_str() {
            "warning" | "warn" | "convention" | "refactor" => Severity::Warning,
            "note" | "info" | "information" | "help" | "hint" | "failure-note" | "none" => Severity::Note,
            _ => Severity::Error,
        },
        _ => Severity::Error,
    }
}
