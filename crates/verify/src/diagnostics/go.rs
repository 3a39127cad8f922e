//! Go: `go test`, `go vet`, `go build`.

use std::collections::{HashMap, HashSet};

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, parse_location};

/// Maximum further lines of a failure: test helpers print several lines, of which the first ones
/// say what differs.
const MAX_FAILURE_LINES: usize = 6;

/// Maximum number of lines that are held for tests of which the result comes later.
const MAX_HELD_LINES: usize = 2_000;

/// Reads what the go command, gotestsum and Ginkgo print.
#[derive(Default)]
pub(super) struct GoReader {
    test: Option<String>,
    /// The state of the newest test, to which its lines belong.
    state: TestState,
    /// Lines of tests that still run: only those of a failed one are failures.
    held: Vec<HeldLine>,
    failed: Vec<String>,
    panic: Option<String>,
    more: usize,
    ginkgo: GinkgoFailures,
}

/// The state of the test that lines belong to.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum TestState {
    #[default]
    Failed,
    /// With `-v` the output comes before the result.
    Running,
    Passed,
}

/// A line that a test logged, with its further lines.
struct HeldLine {
    test: String,
    path: String,
    line: u32,
    column: Option<u32>,
    message: String,
}

/// The failures of Ginkgo, which says what differs first, and sums up at the end.
#[derive(Default)]
struct GinkgoFailures {
    message: Vec<String>,
    in_message: bool,
    /// Messages by their place as it is printed.
    messages: HashMap<String, String>,
    /// The newest test of the list at the end, which waits for its place.
    named: Option<String>,
    is_any: bool,
}

impl LineReader for GoReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let text = line.trim_start();
        if self.read_test_mark(line, findings) || self.ginkgo.read_line(text, findings) {
            return true;
        }
        if let Some(message) = line.strip_prefix("panic: ") {
            self.panic = Some(message.trim_end_matches(" [recovered]").to_owned());
            return true;
        }
        if self.panic.is_some() && line.starts_with('\t') {
            return self.read_panic_frame(text, findings);
        }
        // A test that runs may print such a heading itself.
        let is_package = line.starts_with("# ") && self.state != TestState::Running;
        if line.starts_with("FAIL\t") || line.starts_with("ok  \t") || is_package {
            self.release_held(None, findings);
            (self.test, self.state) = (None, TestState::Failed);
            return line.starts_with("FAIL\t") || line.starts_with("ok  \t");
        }
        let found = parse_location(text.strip_prefix("vet: ").unwrap_or(text))
            .filter(|place| place.path.ends_with(".go") && place.rest.starts_with(':'));
        if let Some(place) = found {
            let indented = line.len() > text.len();
            let message = place.rest.trim_start_matches(':').trim();
            let message = if message.is_empty() { "the test fails" } else { message };
            self.add_logged(place, indented, message, findings);
            self.more = if indented { MAX_FAILURE_LINES } else { 0 };
            return true;
        }
        if self.more > 0 && line.starts_with("        ") {
            match (self.state, self.held.last_mut()) {
                (TestState::Failed, _) => findings.extend_last(text),
                (TestState::Running, Some(held)) => held.message = format!("{}; {text}", held.message),
                _ => {}
            }
            self.more -= 1;
            return true;
        }
        self.more = 0;
        false
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        if let Some(message) = self.panic.take() {
            findings.add_error(self.test.as_deref(), &format!("panic: {message}"));
        }
        self.release_held(None, findings);
        let failed = std::mem::take(&mut self.failed);
        let parents: HashSet<&str> =
            failed.iter().filter_map(|name| name.rsplit_once('/')).map(|(parent, _)| parent).collect();
        for name in &failed {
            // One function runs all tests of Ginkgo's.
            let is_parent = parents.contains(name.as_str()) || self.ginkgo.is_any;
            if !findings.has_test(name) && !is_parent {
                findings.add_error(Some(name), "the test fails");
            }
        }
    }
}

impl GoReader {
    /// Reads the beginning or the result of a test: `=== RUN TestX`, `--- FAIL: TestX (0.00s)`, and
    /// `=== FAIL: pkg TestX (0.00s)` of gotestsum.
    fn read_test_mark(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let text = line.trim_start();
        let result = |mark: &str| {
            let plain = text.strip_prefix("--- ").and_then(|rest| rest.strip_prefix(mark));
            let gotestsum = || line.strip_prefix("=== ")?.strip_prefix(mark)?.split_once(' ').map(|it| it.1);
            let rest = plain.or_else(gotestsum)?;
            Some(rest.split(" (").next().unwrap_or(rest).to_owned())
        };
        let state = if let Some(name) = result("FAIL: ") {
            self.release_held(Some(&name), findings);
            self.failed.push(name.clone());
            self.test = Some(name);
            TestState::Failed
        } else if let Some(name) = result("PASS: ").or_else(|| result("SKIP: ")) {
            self.held.retain(|held| held.test != name);
            self.test = Some(name);
            TestState::Passed
        } else {
            let marks = ["=== RUN ", "=== CONT ", "=== NAME "];
            let Some(name) = marks.iter().find_map(|mark| line.strip_prefix(mark)) else { return false };
            self.test = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
            TestState::Running
        };
        (self.state, self.more) = (state, 0);
        true
    }

    /// Adds what a test logged; it is a failure if the test is.
    fn add_logged(
        &mut self,
        place: Location<'_>,
        indented: bool,
        message: &str,
        findings: &mut Findings<'_>,
    ) {
        match &self.test {
            Some(test) if indented && self.state == TestState::Running => {
                if self.held.len() < MAX_HELD_LINES {
                    let (path, message) = (place.path.to_owned(), message.to_owned());
                    let Location { line, column, .. } = place;
                    self.held.push(HeldLine { test: test.clone(), path, line, column, message });
                }
            }
            Some(_) if indented && self.state == TestState::Passed => {}
            test => findings.add_error_at(place, test.as_deref().filter(|_| indented), message),
        }
    }

    /// Adds the held lines of one test, or of all.
    fn release_held(&mut self, test: Option<&str>, findings: &mut Findings<'_>) {
        let is_released = |held: &mut HeldLine| test.is_none_or(|test| held.test == test);
        for held in self.held.extract_if(.., is_released) {
            let place = Location { path: &held.path, line: held.line, column: held.column, rest: "" };
            findings.add_error_at(place, Some(&held.test), &held.message);
        }
    }

    /// Ends a failed test whose lines were read separately from those of other tests.
    pub(super) fn end_failed_test(&mut self, test: &str, findings: &mut Findings<'_>) {
        self.release_held(Some(test), findings);
        if !self.failed.iter().any(|failed| failed == test) {
            self.failed.push(test.to_owned());
        }
        (self.test, self.state, self.more) = (None, TestState::Failed, 0);
    }

    /// Reads a frame such as `\t/p/x.go:12 +0x1d`: the first one in the project is the panic's
    /// location.
    fn read_panic_frame(&mut self, text: &str, findings: &mut Findings<'_>) -> bool {
        let is_timeout = self.panic.as_ref().is_some_and(|panic| panic.starts_with("test timed out after "));
        if is_timeout && let Some((name, _)) = text.split_once(" (").filter(|_| text.ends_with("s)")) {
            // `running tests:`, and one on each line.
            self.failed.push(name.to_owned());
            (self.test, self.state) = (Some(name.to_owned()), TestState::Failed);
            return true;
        }
        let Some(place) = parse_location(text).filter(|place| place.path.ends_with(".go")) else {
            return false;
        };
        if findings.locate(place.path).is_some()
            && let Some(message) = self.panic.take()
        {
            findings.add_error_at(place, self.test.as_deref(), &format!("panic: {message}"));
        }
        true
    }
}

impl GinkgoFailures {
    /// Reads `[FAILED] Expected …` up to `In [It] at: /p/a_test.go:13 @ …`, and `[FAIL] Calc [It]
    /// adds` with its place on the next line.
    fn read_line(&mut self, text: &str, findings: &mut Findings<'_>) -> bool {
        let marks = ["[FAIL] ", "[PANICKED!] ", "[TIMEDOUT] ", "[Fail] ", "[Panic!] "];
        if let Some(name) = marks.iter().find_map(|mark| text.strip_prefix(mark)) {
            // Below a test's own heading there is no place of the failure, but what differs.
            self.named = Some(name.trim().to_owned());
            return true;
        }
        if let Some(name) = self.named.take()
            && let Some(place) =
                parse_location(text).filter(|it| it.rest.is_empty() && it.path.ends_with(".go"))
        {
            self.is_any = true;
            let message = self.messages.get(text).map_or("the test fails", String::as_str);
            findings.add_error_at(place, Some(&name), message);
            return true;
        }
        if let Some(message) = text.strip_prefix("[FAILED] ") {
            self.in_message = !message.ends_with(" seconds]");
            self.message = vec![message.to_owned()];
            return self.in_message;
        }
        if !self.in_message {
            return false;
        }
        if let Some(at) = text.strip_prefix("In [").and_then(|rest| rest.split_once("] at: ")) {
            let place = at.1.split(" @ ").next().unwrap_or(at.1);
            self.messages.entry(place.to_owned()).or_insert_with(|| self.message.join("; "));
            self.in_message = false;
        } else if self.message.len() < MAX_FAILURE_LINES && !text.is_empty() {
            self.message.push(text.to_owned());
        } else {
            self.in_message = self.message.len() < MAX_FAILURE_LINES;
        }
        true
    }
}
