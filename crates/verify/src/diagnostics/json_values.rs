//! Values within JSON documents, and diagnostics made of them.

use journeyman_protocol::{Diagnostic, RelPath, Severity};
use serde_json::Value;

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

/// Creates a diagnostic of a linter in `path`, which may lie outside of the project.
pub(super) fn new_lint_diagnostic(
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

/// Returns the severity that a tool's word or number means.
pub(super) fn severity_from_json(value: Option<&Value>) -> Severity {
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

/// Returns a duration that is not negative, in whole milliseconds.
pub(super) fn whole_milliseconds(duration: f64) -> Option<u64> {
    let seconds = std::time::Duration::try_from_secs_f64(duration / 1_000.0).ok()?;
    u64::try_from(seconds.as_millis()).ok()
}
