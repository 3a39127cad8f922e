//! Python: tracebacks, syntax errors, unittest and pytest.

use journeyman_protocol::{Diagnostic, Severity};

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, parse_location, parse_number};

/// Maximum further lines of an error: unittest prints a diff of the values after it.
const MAX_ERROR_LINES: usize = 4;
/// Maximum lines of pytest's explanation in `E` lines, of which the first ones say what differs.
const MAX_EXPLANATION_LINES: usize = 4;

/// Maximum lines between unittest's heading and the traceback: a rule, a line of the test's
/// documentation and a reason.
const MAX_HEADING_LINES: usize = 4;
/// Headings of errors around a test.
const PYTEST_STAGES: [&str; 2] = ["ERROR at setup of ", "ERROR at teardown of "];

/// Reads what Python, unittest and pytest print.
#[derive(Default)]
pub(super) struct PythonReader {
    test: Option<String>,
    in_traceback: bool,
    /// The innermost frame in the project's own code.
    frame: Option<(String, u32)>,
    /// The number of further lines that belong to the newest finding's message.
    more: usize,
    /// pytest's `E` lines, waiting for their place.
    explanation: Vec<String>,
    /// True below a rule of `=`, where unittest names a failed test.
    is_below_rule: bool,
    /// The number of further lines that may stand between unittest's heading and the traceback.
    heading_lines: usize,
}

impl LineReader for PythonReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if let Some(explained) = line.strip_prefix("E  ") {
            self.add_explanation(explained.trim(), findings);
            return true;
        }
        if !self.explanation.is_empty() && !line.is_empty() {
            return self.end_explanation(line, findings);
        }
        if self.more > 0 {
            self.more = if line.is_empty() || line.starts_with("---") || line.starts_with("===") {
                0
            } else {
                findings.extend_last(line);
                self.more - 1
            };
            return true;
        }
        let is_below_rule = std::mem::replace(&mut self.is_below_rule, line.starts_with("====="));
        if line.ends_with("Traceback (most recent call last):") {
            self.heading_lines = 0;
            self.in_traceback = true;
            self.frame = None;
            return true;
        }
        if let Some(frame) = parse_frame(line.trim_start()) {
            self.enter_frame(frame, findings);
            self.in_traceback = true;
            return true;
        }
        if self.in_traceback && !line.is_empty() {
            return self.read_traceback_line(line, findings);
        }
        if self.heading_lines > 0 && !line.is_empty() && !self.is_below_rule {
            self.heading_lines -= 1;
            return true;
        }
        if self.read_heading(line) {
            let is_unittest = is_below_rule && !line.starts_with('_');
            self.heading_lines = if is_unittest { MAX_HEADING_LINES } else { 0 };
            return true;
        }
        if let Some(name) = line.strip_prefix("UNEXPECTED SUCCESS: ").filter(|_| is_below_rule) {
            findings.add_error(name_unittest(name).as_deref(), "the test passes, and was expected to fail");
            return true;
        }
        self.read_summary_line(line, findings)
            || read_compile_error(line, findings)
            || self.read_pytest_location(line, findings)
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.report_explanation(None, findings);
    }
}

impl PythonReader {
    /// Remembers the innermost frame that is in the project.
    fn enter_frame(&mut self, (path, line): (&str, u32), findings: &Findings<'_>) {
        if findings.locate(path).is_some() && !path.contains("site-packages/") {
            self.frame = Some((path.to_owned(), line));
        }
    }

    fn report_error(&mut self, message: &str, findings: &mut Findings<'_>) {
        match &self.frame {
            Some((path, line)) => {
                let place = Location { path, line: *line, column: None, rest: "" };
                findings.add_error_at(place, self.test.as_deref(), message);
            }
            None => findings.add_error(self.test.as_deref(), message),
        }
    }

    /// Reads a source line, or the exception that ends the traceback.
    fn read_traceback_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        if line.starts_with([' ', '\t']) {
            return true;
        }
        self.in_traceback = false;
        if !is_exception_line(line) {
            return false;
        }
        self.report_error(line, findings);
        self.frame = None;
        self.more = MAX_ERROR_LINES;
        true
    }

    fn add_explanation(&mut self, explained: &str, findings: &Findings<'_>) {
        if let Some(frame) = parse_frame(explained) {
            self.enter_frame(frame, findings);
        } else if self.explanation.len() < MAX_EXPLANATION_LINES && !explained.is_empty() {
            self.explanation.push(explained.to_owned());
        }
    }

    /// Reads the first line after pytest's explanation: usually `tests/x.py:12: AssertionError`.
    fn end_explanation(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let at =
            parse_location(line).filter(|place| place.path.ends_with(".py") && place.rest.starts_with(':'));
        self.report_explanation(at, findings);
        at.is_some() || self.read_heading(line) || self.read_summary_line(line, findings)
    }

    fn report_explanation(&mut self, at: Option<Location<'_>>, findings: &mut Findings<'_>) {
        if self.explanation.is_empty() {
            return;
        }
        let message = std::mem::take(&mut self.explanation).join("; ");
        match at {
            Some(place) => findings.add_error_at(place, self.test.as_deref(), &message),
            None => self.report_error(&message, findings),
        }
        self.frame = None;
    }

    /// Reads the name of the failing test: `FAIL: test_add (tests.test_m.T.test_add)`, or pytest's
    /// underlined name.
    fn read_heading(&mut self, line: &str) -> bool {
        let unittest = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "));
        if let Some(name) = unittest.and_then(name_unittest) {
            self.test = Some(name);
            return true;
        }
        if line.starts_with("___") && line.ends_with("___") {
            let name = line.trim_matches(['_', ' ']);
            let name = PYTEST_STAGES.iter().find_map(|stage| name.strip_prefix(stage)).unwrap_or(name);
            // A file that can't be collected is not a test.
            self.test = (!name.starts_with("ERROR collecting ")).then(|| name.to_owned());
            self.frame = None;
            return true;
        }
        false
    }

    /// Reads `FAILED tests/x.py::TestA::test_b - AssertionError: …` of pytest's short summary.
    fn read_summary_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let Some(rest) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) else {
            return false;
        };
        let (node, message) = split_node(rest);
        let (path, test) = node.split_once("::").unwrap_or((node, ""));
        if !path.ends_with(".py") {
            return false;
        }
        let located = findings.locate(path);
        // The values of its parameters may have any characters.
        let (bare, values) = test.split_at(test.find('[').unwrap_or(test.len()));
        let bare = &*bare.replace("::", ".");
        let name = format!("{bare}{values}");
        let told = match &located {
            Some(path) if name.is_empty() => findings.has_error_in(path),
            _ => [name.as_str(), bare].iter().any(|test| findings.has_test_in(located.as_ref(), test)),
        };
        if !told {
            findings.push(Diagnostic {
                path: located,
                test: (!name.is_empty()).then_some(name),
                ..Diagnostic::new(Severity::Error, message)
            });
        }
        true
    }

    /// Reads `tests/test_x.py:3: in <module>` above pytest's explanation of an import error.
    fn read_pytest_location(&mut self, line: &str, findings: &Findings<'_>) -> bool {
        let Some(place) = parse_location(line).filter(|place| place.path.ends_with(".py")) else {
            return false;
        };
        if !place.rest.starts_with(": in ") {
            return false;
        }
        self.enter_frame((place.path, place.line), findings);
        true
    }
}

/// Returns the whole name of `test_add (tests.test_m.T.test_add)`, or of `test_add
/// (tests.test_m.T)` of older versions, with the values of a subtest behind it: `[message] (i=1)`.
fn name_unittest(text: &str) -> Option<String> {
    let (name, owner) = text.split_once(" (").filter(|(name, _)| !name.contains(' '))?;
    let (owner, values) = owner.split_once(')')?;
    let full = if owner.ends_with(name) { owner.to_owned() } else { format!("{owner}.{name}") };
    Some(format!("{full} {}", values.trim()).trim_end().to_owned())
}

/// Splits `tests/x.py::test_b[c - d] - AssertionError: …` of pytest into the test and the message.
fn split_node(rest: &str) -> (&str, &str) {
    let before_message = rest.find(" - ");
    let in_values = rest.find('[').filter(|at| before_message.is_some_and(|message| *at < message));
    let end = match in_values {
        Some(at) => rest.get(at..).and_then(|values| values.find("] - ")).map(|end| at + end + 1),
        None => before_message,
    };
    match end.and_then(|end| rest.split_at_checked(end)) {
        Some((node, message)) => (node, message.trim_start_matches(" - ")),
        None => (rest, "the test fails"),
    }
}

/// Reads `File "a.py", line 3, in f`.
fn parse_frame(text: &str) -> Option<(&str, u32)> {
    let (path, rest) = text.strip_prefix("File \"")?.split_once("\", line ")?;
    parse_number(rest).map(|(line, _)| (path, line))
}

/// Returns true for `ValueError: …` and `pkg.errors.Strange`: a dotted name, alone or before a
/// colon.
fn is_exception_line(line: &str) -> bool {
    let name = line.split(": ").next().unwrap_or_default().trim_end_matches(':');
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
        && !name.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Reads `Sorry: IndentationError: … (a.py, line 2)` of `py_compile`.
fn read_compile_error(line: &str, findings: &mut Findings<'_>) -> bool {
    let Some((message, at)) = line.strip_prefix("Sorry: ").and_then(|rest| rest.rsplit_once(" (")) else {
        return false;
    };
    let Some((path, line)) = at.trim_end_matches(')').rsplit_once(", line ") else { return false };
    let Some((line, _)) = parse_number(line) else { return false };
    findings.add_error_at(Location { path, line, column: None, rest: "" }, None, message);
    true
}
