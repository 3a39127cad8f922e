//! `path:line[:column]: message`, as most compilers and linters print, gcc and clang among them.

use journeyman_protocol::{Diagnostic, RelPath, Severity};

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, is_code, parse_location, parse_severity};

/// Reads lines that no other reader claimed.
pub(super) struct GenericReader;

impl LineReader for GenericReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if read_linker_error(line, findings)
            || read_failed_assertion(line, findings)
            || read_coverage_error(line, findings)
        {
            return true;
        }
        let Some(found) = parse_location(line).filter(|found| !found.path.contains(char::is_whitespace))
        else {
            return false;
        };
        let Some(message) = found.rest.strip_prefix(": ").or_else(|| found.rest.strip_prefix(" - ")) else {
            return false;
        };
        let Some(path) = findings.locate(found.path) else { return false };
        findings.push(parse_message(found, path, message.trim()));
        true
    }

    fn finish(&mut self, _: &mut Findings<'_>) {}
}

/// Splits severity and code off `message`, wherever the tool prints them.
fn parse_message(found: Location<'_>, path: RelPath, message: &str) -> Diagnostic {
    let (severity, code, message) = parse_severity(message).unwrap_or((Severity::Error, None, message));
    let (code, message) = match code {
        Some(code) => (Some(code), message),
        None => match message.split_once(' ') {
            Some((word, rest)) if is_code(word.trim_end_matches(':')) => {
                (Some(word.trim_end_matches(':')), rest)
            }
            _ => split_trailing_code(message),
        },
    };
    Diagnostic {
        path: Some(path),
        line: Some(found.line),
        column: found.column,
        code: code.map(str::to_owned),
        ..Diagnostic::new(severity, message)
    }
}

/// Splits off a code such as `… [return-value]` of mypy and `… [-Wunused]` of gcc.
fn split_trailing_code(message: &str) -> (Option<&str>, &str) {
    let split = message.strip_suffix(']').and_then(|rest| rest.rsplit_once(" ["));
    match split {
        Some((text, code)) if !code.is_empty() && !code.contains(char::is_whitespace) => {
            (Some(code), text.trim_end())
        }
        _ => (None, message),
    }
}

/// Reads `main.c:(.text+0x5): undefined reference to 'f'`, which has the file but no line.
fn read_linker_error(line: &str, findings: &mut Findings<'_>) -> bool {
    let Some((before, message)) = line.split_once("): undefined reference to ") else { return false };
    let path = before.split_once(":(").and_then(|(path, _)| findings.locate(path.rsplit(": ").next()?));
    findings.push(Diagnostic {
        path,
        ..Diagnostic::new(Severity::Error, format!("undefined reference to {message}"))
    });
    true
}

/// Reads that too little is covered, by which a run fails whose tests pass: pytest-cov, Jest, nyc,
/// Vitest, SimpleCov, JaCoCo.
fn read_coverage_error(line: &str, findings: &mut Findings<'_>) -> bool {
    const COVERAGE_ERRORS: [(&str, &str); 6] = [
        ("Required test coverage of ", " not reached"),
        ("Coverage failure: ", " less than fail-under"),
        ("coverage threshold for ", " not met"),
        ("Coverage for ", " does not meet "),
        ("overage (", " below the expected minimum coverage"),
        ("Rule violated for ", " expected minimum is "),
    ];
    let is_error = COVERAGE_ERRORS
        .iter()
        .any(|(start, end)| line.split_once(start).is_some_and(|(_, rest)| rest.contains(end)));
    if is_error {
        let message = ["ERROR: ", "FAIL ", "[ERROR] "].iter().find_map(|mark| line.trim().strip_prefix(mark));
        findings.add_error(None, message.unwrap_or(line.trim()));
    }
    is_error
}

/// Reads `prog: test.c:12: main: Assertion 'x == 1' failed.`
fn read_failed_assertion(line: &str, findings: &mut Findings<'_>) -> bool {
    if !line.contains("Assertion ") || !line.contains(" failed") {
        return false;
    }
    let Some((_, rest)) = line.split_once(": ") else { return false };
    let Some(found) = parse_location(rest).filter(|found| findings.locate(found.path).is_some()) else {
        return false;
    };
    findings.add_error_at(found, None, found.rest.trim_start_matches(':'));
    true
}
