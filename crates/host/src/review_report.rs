//! The report of a session's last task for a pull request: Markdown for people, SARIF for tools.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use journeyman_protocol::{
    CheckOutcome, Diagnostic, Evidence, FileChangeKind, HonestyFinding, HonestySeverity, RunOutcome,
    RunReport, Severity,
};
use serde_json::{Map, Value, json};

use crate::format::{format_seconds, printable};
use crate::session_evidence::{ProofState, SessionEvidence, TaskEvidence, describe_tests, short_hash};
use crate::{Context as _, HostError};

/// Maximum number of changed files that are listed.
const MAX_REPORTED_FILES: usize = 200;
/// Maximum number of diagnostics and findings of one kind that are listed in Markdown.
const MAX_LISTED_PROBLEMS: usize = 20;

/// Returns the report as Markdown.
///
/// # Errors
/// [`HostError::Usage`] where no task of the session has ended.
pub fn to_markdown(ledger: &SessionEvidence) -> Result<String, HostError> {
    let (task, report) = last_ended_task(ledger)?;
    let mut out = format!("# {}\n\n", escape_markdown(first_line(&task.task)));
    let asked = task.task.trim();
    if asked.lines().count() > 1 {
        out.push_str("## Asked\n\n");
        for line in asked.lines() {
            let _infallible = writeln!(out, "> {}", escape_markdown(line));
        }
        out.push('\n');
    }
    let _infallible = writeln!(out, "**{}**\n", escape_markdown(&capitalize(&report.summary)));
    if let Some(proof) = ledger.proof.describe() {
        let _infallible = writeln!(out, "{}.\n", capitalize(&proof));
    }
    push_changes(&mut out, report);
    push_checks(&mut out, ledger, task, report);
    push_findings(&mut out, &report.findings);
    push_evidence_gaps(&mut out, ledger, report);
    if let Some(undo) = &report.undo {
        let _infallible = writeln!(out, "## Undo\n\n`{}` takes the change back.", undo.replace('`', "'"));
    }
    Ok(out)
}

/// Writes a report into a new file.
///
/// # Errors
/// [`HostError::Failed`] where the file exists already or can't be written.
pub fn write_report_file(path: &Path, text: &str) -> Result<(), HostError> {
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    let mut created = created.context(format!("{} (give a new file)", path.display()))?;
    created.write_all(text.as_bytes()).context(path.display().to_string())
}

/// Returns the remaining diagnostics and findings as SARIF 2.1.0.
///
/// # Errors
/// [`HostError::Usage`] where no task of the session has ended.
pub fn to_sarif(ledger: &SessionEvidence) -> Result<Value, HostError> {
    let (_, report) = last_ended_task(ledger)?;
    let mut rules: Vec<String> = Vec::new();
    let mut results = Vec::new();
    for check in report.evidence.iter().filter(|check| check.outcome.has_failed()) {
        for one in &check.diagnostics {
            let rule = one.code.clone().or_else(|| one.test.clone());
            let rule = rule.unwrap_or_else(|| check.kind.to_string());
            let level = match one.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            let place = (one.path.as_ref().and_then(|path| path.as_str()), one.line, one.column);
            results.push(sarif_result(&mut rules, &rule, level, &sarif_message(check, one), place));
        }
    }
    for finding in &report.findings {
        let level = match finding.severity {
            HonestySeverity::Blocking if !finding.accepted => "error",
            HonestySeverity::Blocking => "note",
            HonestySeverity::Notice => "warning",
        };
        let place = (finding.path.as_str(), finding.line, None);
        results.push(sarif_result(&mut rules, finding.kind.name(), level, &finding.message, place));
    }
    let rules: Vec<Value> = rules.iter().map(|id| json!({ "id": id })).collect();
    Ok(json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Journeyman",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    }))
}

fn last_ended_task(ledger: &SessionEvidence) -> Result<(&TaskEvidence, &RunReport), HostError> {
    ledger.last_report().ok_or_else(|| {
        HostError::usage(format_args!(
            "no task of session {} has ended; jm resume goes on with it",
            ledger.session
        ))
    })
}

fn push_changes(out: &mut String, report: &RunReport) {
    if report.changes.is_empty() {
        out.push_str("No file was changed.\n\n");
        return;
    }
    out.push_str("## Changes\n\n");
    for change in report.changes.iter().take(MAX_REPORTED_FILES) {
        let kind = match change.kind {
            FileChangeKind::Added => "added",
            FileChangeKind::Modified => "modified",
            FileChangeKind::Deleted => "deleted",
        };
        let size = report.diffstat.iter().find(|stat| stat.path == change.path);
        let size = size.map(|stat| format!(" (+{} −{})", stat.added, stat.removed)).unwrap_or_default();
        let _infallible = writeln!(out, "- {} {kind}{size}", format_code(&change.path.to_string()));
    }
    if let Some(more) = report.changes.len().checked_sub(MAX_REPORTED_FILES).filter(|more| *more > 0) {
        let _infallible = writeln!(out, "- … and {more} more");
    }
    out.push('\n');
}

fn push_checks(out: &mut String, ledger: &SessionEvidence, task: &TaskEvidence, report: &RunReport) {
    out.push_str("## Checks\n\n");
    if report.evidence.is_empty() {
        out.push_str("No check ran.\n\n");
        return;
    }
    out.push_str("| check | result | tests | time | tree |\n|---|---|---|---|---|\n");
    for one in &report.evidence {
        let result = match &one.outcome {
            CheckOutcome::Passed => "passed".to_owned(),
            CheckOutcome::Failed { reason, .. } => format!("**failed** ({})", escape_markdown(reason)),
            CheckOutcome::NotRun { reason } => format!("not run ({})", escape_markdown(reason)),
        };
        // A bar would end the cell, even within code.
        let code = |text: &str| format_code(text).replace('|', "\\|");
        let mut name = code(&one.command);
        if let Some(directory) = &one.directory {
            let _infallible = write!(name, " in {}", code(&directory.to_string()));
        }
        if one.original_tests {
            name.push_str(" with the original tests");
        }
        if one.affected_only {
            name.push_str(", affected tests only");
        }
        let tests = one.tests.map(describe_tests).unwrap_or_default();
        let tree = one.tree.map(|tree| format!("`{}`", short_hash(&tree))).unwrap_or_default();
        let _infallible =
            writeln!(out, "| {name} | {result} | {tests} | {} | {tree} |", format_seconds(one.duration_ms));
    }
    let rounds = task.rounds.len();
    if rounds > 1 {
        let _infallible =
            writeln!(out, "\nThe last of {rounds} rounds; `jm show {} --evidence` has all.", ledger.session);
    }
    out.push('\n');
    let failed = report.evidence.iter().filter(|one| one.outcome.has_failed());
    let left: Vec<&Diagnostic> = failed.flat_map(|one| &one.diagnostics).collect();
    for one in left.iter().take(MAX_LISTED_PROBLEMS) {
        let place = one.path.as_ref().map(|path| match one.line {
            Some(line) => format!("{} ", format_code(&format!("{path}:{line}"))),
            None => format!("{} ", format_code(&path.to_string())),
        });
        let test = one.test.as_ref().map(|test| format!("{}: ", format_code(test))).unwrap_or_default();
        let _infallible =
            writeln!(out, "- {}{test}{}", place.unwrap_or_default(), escape_markdown(&one.message));
    }
    if let Some(more) = left.len().checked_sub(MAX_LISTED_PROBLEMS).filter(|more| *more > 0) {
        let _infallible = writeln!(out, "- … and {more} more");
    }
    if !left.is_empty() {
        out.push('\n');
    }
}

fn push_findings(out: &mut String, findings: &[HonestyFinding]) {
    if findings.is_empty() {
        return;
    }
    out.push_str("## Places where tests or checks say less\n\n");
    for finding in findings.iter().take(MAX_LISTED_PROBLEMS) {
        let state = if finding.accepted { " (accepted by the user)" } else { "" };
        let _infallible = writeln!(out, "- {}{state}", escape_markdown(&finding.to_string()));
    }
    if let Some(more) = findings.len().checked_sub(MAX_LISTED_PROBLEMS).filter(|more| *more > 0) {
        let _infallible = writeln!(out, "- … and {more} more");
    }
    out.push('\n');
}

/// Appends a list of what the checks don't prove.
fn push_evidence_gaps(out: &mut String, ledger: &SessionEvidence, report: &RunReport) {
    let mut gaps = Vec::new();
    for one in &report.evidence {
        if let CheckOutcome::NotRun { reason } = &one.outcome {
            gaps.push(format!("{} did not run: {}", format_code(&one.command), escape_markdown(reason)));
        }
        if let Some(tests) = one.tests.filter(|tests| tests.skipped > 0) {
            gaps.push(format!("{} skipped {} of its tests", format_code(&one.command), tests.skipped));
        }
        if !one.flaky.is_empty() {
            gaps.push(format!(
                "flaky in {}: {}",
                format_code(&one.command),
                escape_markdown(&one.flaky.join(", "))
            ));
        }
        if let Some(old) = one.baseline.as_ref().map(|baseline| &baseline.old).filter(|old| !old.is_empty()) {
            gaps.push(format!("failed before the task already: {}", escape_markdown(&old.join(", "))));
        }
    }
    if report.outcome == RunOutcome::Verified && !report.evidence.iter().any(has_passed_tests) {
        gaps.push("no test ran: types and lint alone say little of what the code does".to_owned());
    }
    if let ProofState::TreeChanged { .. } = ledger.proof {
        gaps.push("the files changed after they were verified".to_owned());
    }
    if gaps.is_empty() {
        return;
    }
    out.push_str("## Not covered\n\n");
    for gap in gaps {
        let _infallible = writeln!(out, "- {gap}");
    }
    out.push('\n');
}

fn has_passed_tests(one: &Evidence) -> bool {
    use journeyman_protocol::CheckKind::{Custom, Test};
    matches!(one.kind, Test | Custom) && one.outcome.has_passed()
}

fn sarif_message(check: &Evidence, one: &Diagnostic) -> String {
    let mut text = match &one.test {
        Some(test) => format!("{test}: {}", one.message),
        None => one.message.clone(),
    };
    if text.trim().is_empty() {
        text = format!("`{}` fails", check.command);
    }
    text
}

fn sarif_result(
    rules: &mut Vec<String>,
    rule: &str,
    level: &str,
    message: &str,
    (path, line, column): (Option<&str>, Option<u32>, Option<u32>),
) -> Value {
    let index = rules.iter().position(|known| known == rule).unwrap_or_else(|| {
        rules.push(rule.to_owned());
        rules.len() - 1
    });
    let mut result = json!({
        "ruleId": rule, "ruleIndex": index, "level": level, "message": { "text": printable(message) },
    });
    if let (Some(path), Some(fields)) = (path, result.as_object_mut()) {
        let mut place =
            json!({ "artifactLocation": { "uri": to_uri_reference(path), "uriBaseId": "%SRCROOT%" } });
        if let (Some(line), Some(place)) = (line, place.as_object_mut()) {
            let mut region = Map::new();
            region.insert("startLine".to_owned(), json!(line));
            if let Some(column) = column.filter(|column| *column > 0) {
                region.insert("startColumn".to_owned(), json!(column));
            }
            place.insert("region".to_owned(), Value::Object(region));
        }
        fields.insert("locations".to_owned(), json!([{ "physicalLocation": place }]));
    }
    result
}

/// Encodes a path as a relative reference (RFC 3986).
fn to_uri_reference(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or("Task")
}

/// Escapes text for one line of Markdown.
fn escape_markdown(text: &str) -> String {
    let mut out = String::new();
    for character in printable(text).replace(['\n', '\t'], " ").chars() {
        if "\\`*_[]<>#|@!&".contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

/// Formats a command or path as inline code.
fn format_code(text: &str) -> String {
    format!("`{}`", printable(text).replace(['\n', '\t'], " ").replace('`', "'"))
}

fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests;
