//! Reads what CMake, CTest, Meson, Autoconf, Automake and make say themselves; the compilers and
//! tests that they run have readers of their own.

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, parse_number};

/// Maximum lines of a message, of which the last ones are kept for a test's output.
const MAX_MESSAGE_LINES: usize = 6;

/// Reads the errors of build tools, and the tests that their runners list as failed.
#[derive(Default)]
pub(super) struct BuildToolReader {
    part: Part,
    /// Failed tests in order, each with its reason.
    failed: Vec<(String, String)>,
}

/// The part of an output that the reader is in.
#[derive(Default)]
enum Part {
    #[default]
    Other,
    /// CMake's error, whose lines are indented.
    CmakeError { place: Option<(String, u32)>, lines: Vec<String> },
    /// CTest's list after `The following tests FAILED:`.
    CtestFailures,
    /// Meson's list after `Summary of Failures:`.
    MesonFailures,
    /// After a failed test of Automake's: the first line, or the heading of what it printed.
    AutomakeHeading { test: String },
    /// Lines that the test printed.
    AutomakeTest { test: String, lines: Vec<String> },
}

impl LineReader for BuildToolReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if let Some(claimed) = self.read_in_part(line, findings) {
            return claimed;
        }
        if let Some(rest) = line.strip_prefix("CMake Error") {
            self.part = begin_cmake_error(rest);
            return true;
        }
        match line.trim_end() {
            "The following tests FAILED:" => self.part = Part::CtestFailures,
            "Summary of Failures:" => self.part = Part::MesonFailures,
            _ => {
                if let Some(test) = line.strip_prefix("FAIL: ").filter(|name| is_test_name(name)) {
                    self.add_failed(test, "the test fails");
                    self.part = Part::AutomakeHeading { test: test.to_owned() };
                    return true;
                }
                return read_error(line, findings) || is_automake_notice(line);
            }
        }
        true
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.end_cmake_error(findings);
        for (test, reason) in std::mem::take(&mut self.failed) {
            if !findings.has_test(&test) {
                findings.add_error(Some(&test), &reason);
            }
        }
    }
}

impl BuildToolReader {
    /// Reads a line as one of the current part; `None` if it belongs to none.
    fn read_in_part(&mut self, line: &str, findings: &mut Findings<'_>) -> Option<bool> {
        match &mut self.part {
            Part::Other => return None,
            Part::CmakeError { lines, .. } => {
                if line.is_empty() || line.starts_with("  ") {
                    if !line.is_empty() && lines.len() < MAX_MESSAGE_LINES {
                        lines.push(line.trim().to_owned());
                    }
                    return Some(true);
                }
                self.end_cmake_error(findings);
                return None;
            }
            Part::CtestFailures => {
                if let Some((test, reason)) = parse_ctest_failure(line) {
                    self.add_failed(test, reason);
                    return Some(true);
                }
            }
            Part::MesonFailures => {
                if line.is_empty() {
                    return Some(true);
                }
                if let Some((test, reason)) = parse_meson_failure(line) {
                    self.add_failed(test, &reason);
                    return Some(true);
                }
            }
            Part::AutomakeHeading { test } => {
                let is_rule = !line.is_empty() && line.bytes().all(|byte| byte == b'=');
                if is_rule && line.len() == "FAIL: ".len() + test.len() {
                    self.part = Part::AutomakeTest { test: std::mem::take(test), lines: Vec::new() };
                    return Some(true);
                }
            }
            Part::AutomakeTest { test, lines } => {
                let after = line.strip_prefix("FAIL ").and_then(|rest| rest.strip_prefix(test.as_str()));
                if after.is_none_or(|rest| !rest.starts_with(" (")) {
                    if lines.len() >= MAX_MESSAGE_LINES {
                        lines.remove(0);
                    }
                    lines.extend((!line.is_empty()).then(|| line.trim().to_owned()));
                    // It may have a place, which another reader finds.
                    return Some(false);
                }
                let (test, message) = (std::mem::take(test), lines.join("; "));
                self.part = Part::Other;
                if !message.is_empty() {
                    self.add_failed(&test, &message);
                }
                return Some(true);
            }
        }
        self.part = Part::Other;
        None
    }

    /// Adds a failed test, or another reason for a known one.
    fn add_failed(&mut self, test: &str, reason: &str) {
        match self.failed.iter_mut().find(|(known, _)| known == test) {
            Some((_, known)) if reason != "the test fails" => *known = reason.to_owned(),
            Some(_) => {}
            None => self.failed.push((test.to_owned(), reason.to_owned())),
        }
    }

    fn end_cmake_error(&mut self, findings: &mut Findings<'_>) {
        let Part::CmakeError { place, lines } = std::mem::take(&mut self.part) else { return };
        let message = lines.join(" ");
        match place {
            _ if message.is_empty() => {}
            Some((path, line)) => {
                let place = Location { path: &path, line, column: None, rest: "" };
                findings.add_error_at(place, None, &message);
            }
            None => findings.add_error(None, &message),
        }
    }
}

/// Reads ` at CMakeLists.txt:4 (find_package):` or `: message`, after `CMake Error`.
fn begin_cmake_error(rest: &str) -> Part {
    let place = rest.strip_prefix(" at ").and_then(|at| {
        let (path, after) = at.split_once(':')?;
        Some((path.to_owned(), parse_number(after)?.0))
    });
    let said = rest.strip_prefix(": ").filter(|said| !said.is_empty());
    Part::CmakeError { place, lines: said.map(str::to_owned).into_iter().collect() }
}

/// Reads `2 - two (Failed)`.
fn parse_ctest_failure(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = parse_number(line.trim_start())?;
    let (test, reason) = rest.strip_prefix(" - ")?.trim_end().rsplit_once(" (")?;
    let (reason, _) = reason.split_once(')')?;
    let reason = if reason == "Failed" { "the test fails" } else { reason };
    Some((test.trim_end(), reason))
}

/// Reads `2/2 two FAIL            0.02s   exit status 1`.
fn parse_meson_failure(line: &str) -> Option<(&str, String)> {
    let (_, rest) = parse_number(line.trim_start())?;
    let (_, rest) = parse_number(rest.strip_prefix('/')?)?;
    let states = ["FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS", "INTERRUPT"];
    let (test, state, after) = states.into_iter().find_map(|state| {
        let (test, after) = rest.split_once(&format!(" {state} "))?;
        Some((test.trim(), state, after))
    })?;
    let detail = after.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    let reason = match (state, detail.is_empty()) {
        ("FAIL", true) => "the test fails".to_owned(),
        ("FAIL", false) => detail,
        (state, _) => state.to_lowercase(),
    };
    Some((test, reason))
}

/// Returns true for a name of one of Automake's tests, which is a file.
fn is_test_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(char::is_whitespace) && !name.ends_with(':')
}

/// Reads `configure: error: no compiler` and `make[1]: *** No rule to make target 'x'.  Stop.`; a
/// command that failed has given the reason for `make: *** [Makefile:9: x] Error 1` itself.
fn read_error(line: &str, findings: &mut Findings<'_>) -> bool {
    if let Some(message) = line.strip_prefix("configure: error: ") {
        findings.add_error(None, &format!("configure: {message}"));
        return true;
    }
    let Some((program, message)) = line.split_once(": *** ") else { return false };
    let is_make = ["make", "gmake", "mingw32-make"].contains(&program.split('[').next().unwrap_or_default());
    if !is_make || message.starts_with('[') || message.starts_with("Waiting for ") {
        return false;
    }
    findings.add_error(None, message.trim_end_matches("Stop.").trim_end());
    true
}

/// Returns true for `configure.ac:3: installing './compile'`, which only looks like an error.
fn is_automake_notice(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(_, said)| said.starts_with("installing '") && said.ends_with('\''))
}
