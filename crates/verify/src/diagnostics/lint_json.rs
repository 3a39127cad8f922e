//! JSON of compilers and linters: rustc and clippy, ESLint, ruff, mypy, pyright, GCC, SARIF.

use journeyman_protocol::Severity;
use serde_json::Value;

use super::findings::Findings;
use super::json_values::{lint, list_at, number_at, severity_of, text_at};

/// Reads a document; returns false for a document of an unknown tool.
pub(super) fn read(value: &Value, findings: &mut Findings<'_>) -> bool {
    if let Some(message) = value.pointer("/message").filter(|message| message.is_object()) {
        // Cargo wraps the compiler's message in one of its own.
        return text_at(value, "/reason") == Some("compiler-message") && rustc(message, findings);
    }
    if text_at(value, "/reason").is_some() && value.get("package_id").is_some() {
        return true;
    }
    if value.get("spans").is_some() {
        return rustc(value, findings);
    }
    if let Some(all) = value.get("generalDiagnostics").and_then(Value::as_array) {
        for one in all {
            pyright(one, findings);
        }
        return true;
    }
    if value.get("runs").is_some_and(Value::is_array) {
        return sarif(value, findings);
    }
    if value.get("severity").is_some() && text_at(value, "/file").is_some() {
        return mypy(value, findings);
    }
    let Some(all) = value.as_array().filter(|all| !all.is_empty()) else { return false };
    // Each, without stopping at the first.
    all.iter().filter(|one| eslint(one, findings) || ruff(one, findings) || gcc(one, findings)).count() > 0
}

/// Words in rustc's own count of its messages.
const SUMMARIES: [&str; 2] = ["aborting due to", "generated "];

fn rustc(message: &Value, findings: &mut Findings<'_>) -> bool {
    let Some(text) = text_at(message, "/message") else { return false };
    let is_summary = list_at(message, "/spans").is_empty()
        && (SUMMARIES.iter().any(|words| text.contains(words))
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
    let severity = severity_of(message.get("level"));
    findings.push(lint(path, place, severity, text_at(message, "/code/code"), &text));
    true
}

fn pyright(one: &Value, findings: &mut Findings<'_>) {
    let Some(message) = text_at(one, "/message") else { return };
    let path = text_at(one, "/file").and_then(|file| findings.locate(file));
    let place = (number_at(one, "/range/start/line", 1), number_at(one, "/range/start/character", 1));
    findings.push(lint(path, place, severity_of(one.get("severity")), text_at(one, "/rule"), message));
}

fn mypy(one: &Value, findings: &mut Findings<'_>) -> bool {
    let Some(message) = text_at(one, "/message") else { return false };
    let path = text_at(one, "/file").and_then(|file| findings.locate(file));
    let place = (number_at(one, "/line", 0), number_at(one, "/column", 1));
    findings.push(lint(path, place, severity_of(one.get("severity")), text_at(one, "/code"), message));
    true
}

fn eslint(file: &Value, findings: &mut Findings<'_>) -> bool {
    let (Some(name), Some(messages)) =
        (text_at(file, "/filePath"), file.get("messages").and_then(Value::as_array))
    else {
        return false;
    };
    let path = findings.locate(name);
    for one in messages {
        let place = (number_at(one, "/line", 0), number_at(one, "/column", 0));
        let severity = severity_of(one.get("severity"));
        let message = text_at(one, "/message").unwrap_or_default();
        findings.push(lint(path.clone(), place, severity, text_at(one, "/ruleId"), message));
    }
    true
}

fn ruff(one: &Value, findings: &mut Findings<'_>) -> bool {
    let (Some(name), Some(message)) = (text_at(one, "/filename"), text_at(one, "/message")) else {
        return false;
    };
    let path = findings.locate(name);
    let place = (number_at(one, "/location/row", 0), number_at(one, "/location/column", 0));
    findings.push(lint(path, place, Severity::Error, text_at(one, "/code"), message));
    true
}

fn gcc(one: &Value, findings: &mut Findings<'_>) -> bool {
    let (Some(kind), Some(message)) = (one.get("kind"), text_at(one, "/message")) else { return false };
    let path = text_at(one, "/locations/0/caret/file").and_then(|file| findings.locate(file));
    let place =
        (number_at(one, "/locations/0/caret/line", 0), number_at(one, "/locations/0/caret/column", 0));
    findings.push(lint(path, place, severity_of(Some(kind)), text_at(one, "/option"), message));
    true
}

/// Reads SARIF, the interchange format of static analysers.
fn sarif(value: &Value, findings: &mut Findings<'_>) -> bool {
    const PLACE: &str = "/locations/0/physicalLocation";
    let results = list_at(value, "/runs").iter().flat_map(|run| list_at(run, "/results"));
    for one in results {
        let Some(message) = text_at(one, "/message/text") else { continue };
        let path =
            text_at(one, &format!("{PLACE}/artifactLocation/uri")).and_then(|uri| findings.locate(uri));
        let place = (
            number_at(one, &format!("{PLACE}/region/startLine"), 0),
            number_at(one, &format!("{PLACE}/region/startColumn"), 0),
        );
        // The standard's level of a result that names none.
        let severity = one.get("level").map_or(Severity::Warning, |level| severity_of(Some(level)));
        findings.push(lint(path, place, severity, text_at(one, "/ruleId"), message));
    }
    value.get("version").is_some()
}
