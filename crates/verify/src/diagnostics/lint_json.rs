//! JSON of compilers and linters: rustc and clippy, ESLint, ruff, mypy, pyright, GCC, SARIF.

use journeyman_protocol::Severity;
use serde_json::Value;

use super::findings::Findings;
use super::json_values::{list_at, new_lint_diagnostic, number_at, severity_from_json, text_at};

/// Reads a document; returns false for a document of an unknown tool.
pub(super) fn read_document(value: &Value, findings: &mut Findings<'_>) -> bool {
    if let Some(message) = value.pointer("/message").filter(|message| message.is_object()) {
        // Cargo wraps the compiler's message in one of its own.
        return text_at(value, "/reason") == Some("compiler-message")
            && read_rustc_message(message, findings);
    }
    if text_at(value, "/reason").is_some() && value.get("package_id").is_some() {
        return true;
    }
    if value.get("spans").is_some() {
        return read_rustc_message(value, findings);
    }
    if let Some(all) = value.get("generalDiagnostics").and_then(Value::as_array) {
        for one in all {
            read_pyright_diagnostic(one, findings);
        }
        return true;
    }
    if value.get("runs").is_some_and(Value::is_array) {
        return read_sarif_log(value, findings);
    }
    if value.get("severity").is_some() && text_at(value, "/file").is_some() {
        return read_mypy_diagnostic(value, findings);
    }
    let Some(all) = value.as_array().filter(|all| !all.is_empty()) else { return false };
    // Each, without stopping at the first.
    all.iter()
        .filter(|one| {
            read_eslint_file(one, findings)
                || read_ruff_diagnostic(one, findings)
                || read_gcc_diagnostic(one, findings)
        })
        .count()
        > 0
}

/// Words in rustc's own count of its messages.
const SUMMARY_PHRASES: [&str; 2] = ["aborting due to", "generated "];

fn read_rustc_message(message: &Value, findings: &mut Findings<'_>) -> bool {
    let Some(text) = text_at(message, "/message") else { return false };
    let is_summary = list_at(message, "/spans").is_empty()
        && (SUMMARY_PHRASES.iter().any(|words| text.contains(words))
            || text_at(message, "/level") == Some("failure-note"));
    if is_summary {
        return true;
    }
    let span =
        list_at(message, "/spans").iter().find(|span| span.get("is_primary") == Some(&Value::Bool(true)));
    let path = span.and_then(|span| findings.locate(text_at(span, "/file_name")?));
    let place = span.map_or((None, None), |span| {
        (number_at(span, "/line_start", 0), number_at(span, "/column_start", 0))
    });
    let text = match span.and_then(|span| text_at(span, "/label")) {
        Some(label) => format!("{text}; {label}"),
        None => text.to_owned(),
    };
    let severity = severity_from_json(message.get("level"));
    findings.push(new_lint_diagnostic(path, place, severity, text_at(message, "/code/code"), &text));
    true
}

fn read_pyright_diagnostic(one: &Value, findings: &mut Findings<'_>) {
    let Some(message) = text_at(one, "/message") else { return };
    let path = text_at(one, "/file").and_then(|file| findings.locate(file));
    let place = (number_at(one, "/range/start/line", 1), number_at(one, "/range/start/character", 1));
    findings.push(new_lint_diagnostic(
        path,
        place,
        severity_from_json(one.get("severity")),
        text_at(one, "/rule"),
        message,
    ));
}

fn read_mypy_diagnostic(one: &Value, findings: &mut Findings<'_>) -> bool {
    let Some(message) = text_at(one, "/message") else { return false };
    let path = text_at(one, "/file").and_then(|file| findings.locate(file));
    let place = (number_at(one, "/line", 0), number_at(one, "/column", 1));
    findings.push(new_lint_diagnostic(
        path,
        place,
        severity_from_json(one.get("severity")),
        text_at(one, "/code"),
        message,
    ));
    true
}

fn read_eslint_file(file: &Value, findings: &mut Findings<'_>) -> bool {
    let (Some(name), Some(messages)) =
        (text_at(file, "/filePath"), file.get("messages").and_then(Value::as_array))
    else {
        return false;
    };
    let path = findings.locate(name);
    for one in messages {
        let place = (number_at(one, "/line", 0), number_at(one, "/column", 0));
        let severity = severity_from_json(one.get("severity"));
        let message = text_at(one, "/message").unwrap_or_default();
        findings.push(new_lint_diagnostic(path.clone(), place, severity, text_at(one, "/ruleId"), message));
    }
    true
}

fn read_ruff_diagnostic(one: &Value, findings: &mut Findings<'_>) -> bool {
    let (Some(name), Some(message)) = (text_at(one, "/filename"), text_at(one, "/message")) else {
        return false;
    };
    let path = findings.locate(name);
    let place = (number_at(one, "/location/row", 0), number_at(one, "/location/column", 0));
    findings.push(new_lint_diagnostic(path, place, Severity::Error, text_at(one, "/code"), message));
    true
}

fn read_gcc_diagnostic(one: &Value, findings: &mut Findings<'_>) -> bool {
    let (Some(kind), Some(message)) = (one.get("kind"), text_at(one, "/message")) else { return false };
    let path = text_at(one, "/locations/0/caret/file").and_then(|file| findings.locate(file));
    let place =
        (number_at(one, "/locations/0/caret/line", 0), number_at(one, "/locations/0/caret/column", 0));
    findings.push(new_lint_diagnostic(
        path,
        place,
        severity_from_json(Some(kind)),
        text_at(one, "/option"),
        message,
    ));
    true
}

/// Reads SARIF, the interchange format of static analysers.
fn read_sarif_log(value: &Value, findings: &mut Findings<'_>) -> bool {
    const LOCATION_POINTER: &str = "/locations/0/physicalLocation";
    let results = list_at(value, "/runs").iter().flat_map(|run| list_at(run, "/results"));
    for one in results {
        let Some(message) = text_at(one, "/message/text") else { continue };
        let path = text_at(one, &format!("{LOCATION_POINTER}/artifactLocation/uri"))
            .and_then(|uri| findings.locate(uri));
        let place = (
            number_at(one, &format!("{LOCATION_POINTER}/region/startLine"), 0),
            number_at(one, &format!("{LOCATION_POINTER}/region/startColumn"), 0),
        );
        // The standard's level of a result that names none.
        let severity = one.get("level").map_or(Severity::Warning, |level| severity_from_json(Some(level)));
        findings.push(new_lint_diagnostic(path, place, severity, text_at(one, "/ruleId"), message));
    }
    value.get("version").is_some()
}
