//! Test runners that name a failed test on a line of its own: GoogleTest's results, doctest,
//! Alcotest, Common Test.

use std::collections::HashSet;

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::parse_location;

/// Maximum lines of a message.
const MAX_MESSAGE_LINES: usize = 4;

/// Reads marks of failed tests, of which other readers may have read more.
#[derive(Default)]
pub(super) struct MarkedTestReader {
    /// Failed tests in order, each with what is said about it.
    failed: Vec<(String, Vec<String>)>,
    known: HashSet<String>,
    /// True if the lines are what is said about the newest one.
    in_message: bool,
    /// doctest's test, below the rule above it.
    doctest: Option<DoctestCase>,
}

/// A test of doctest's: its name, with the subcases that it was in.
struct DoctestCase {
    name: String,
    in_title: bool,
}

impl LineReader for MarkedTestReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if self.read_doctest(line, findings) {
            return true;
        }
        if let Some(test) = parse_mark(line) {
            self.in_message = !line.starts_with("[  FAILED  ] ");
            if self.known.insert(test.clone()) {
                self.failed.push((test, Vec::new()));
            }
            return true;
        }
        let text = line.trim();
        self.in_message &= !text.starts_with("Logs saved to ") && !text.starts_with("──");
        let Some((_, message)) = self.failed.last_mut().filter(|_| self.in_message) else { return false };
        let is_frame = text.is_empty() || text.starts_with(['┌', '└', '│']) || text.starts_with("%%% ");
        if !is_frame && message.len() < MAX_MESSAGE_LINES {
            message.push(text.to_owned());
        }
        // It may have a place, which another reader finds.
        false
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        for (test, message) in std::mem::take(&mut self.failed) {
            if !findings.has_test(&test) {
                let said = if message.is_empty() { "the test fails".to_owned() } else { message.join("; ") };
                findings.add_error(Some(&test), &said);
            }
        }
    }
}

impl MarkedTestReader {
    /// Reads `TEST CASE:  adds`, its subcases and `a.cc:4: ERROR: CHECK( … ) is NOT correct!`.
    fn read_doctest(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if let Some(name) = line.strip_prefix("TEST CASE:") {
            self.doctest = Some(DoctestCase { name: name.trim().to_owned(), in_title: true });
            return true;
        }
        let Some(case) = &mut self.doctest else { return false };
        if line.starts_with("===") {
            self.doctest = None;
            return false;
        }
        if case.in_title && line.starts_with("  ") {
            case.name = format!("{} > {}", case.name, line.trim());
            return true;
        }
        case.in_title = false;
        if let Some(values) = line.strip_prefix("  values: ") {
            findings.extend_last(values);
            return true;
        }
        let found = parse_location(line).and_then(|place| {
            let message = place.rest.strip_prefix(": ")?;
            let message = message.strip_prefix("FATAL ").unwrap_or(message).strip_prefix("ERROR: ")?;
            Some((place, message))
        });
        let Some((place, message)) = found else { return false };
        findings.add_error_at(place, Some(&case.name), message);
        true
    }
}

/// Reads `[  FAILED  ] Calc.Adds (0 ms)`, `│ [FAIL]   sums   0   adds  │`, and `%%% calc_SUITE ==>
/// adds: FAILED`.
fn parse_mark(line: &str) -> Option<String> {
    if let Some(rest) = line.strip_prefix("[  FAILED  ] ") {
        let name = rest.split([' ', ',']).next()?;
        return name.contains('.').then(|| name.to_owned());
    }
    if let Some(rest) = line.strip_prefix("│ [FAIL] ") {
        let rest = rest.trim_end_matches('│').trim();
        let (suite, rest) = rest.split_once("  ")?;
        let (number, title) = rest.trim().split_once(' ')?;
        number.parse::<u32>().ok()?;
        return Some(format!("{suite} > {}", title.trim()));
    }
    let (suite, test) = line.strip_prefix("%%% ")?.strip_suffix(": FAILED")?.split_once(" ==> ")?;
    Some(format!("{suite} > {test}"))
}
