//! The titles of failed tests of JavaScript's runners, above what they say about each.

use journeyman_protocol::{RelPath, clip_to_bytes};

use super::findings::Findings;
use super::location::{parse_location, parse_number};

/// Maximum bytes of a test's title.
pub(super) const MAX_TITLE_BYTES: usize = 300;
/// Maximum number of titles of one test: of the suites around it, and its own.
const MAX_NESTED_TITLES: usize = 64;
/// Indentation of the second title below `  1) a suite` of Mocha; each further one has two more.
const NESTED_TITLE_INDENT: usize = 7;

/// A failed test or an uncaught error, waiting for the first frame in the project.
#[derive(Default)]
pub(super) struct PendingFailure {
    pub(super) test: Option<String>,
    pub(super) lines: Vec<String>,
    pub(super) is_full: bool,
    /// The file, where no frame is in the project.
    pub(super) file: Option<RelPath>,
    /// True in node's list, where a suite has a mark as well.
    pub(super) is_marked: bool,
    /// True for a test that is still to do.
    pub(super) is_ignored: bool,
}

impl PendingFailure {
    pub(super) fn of_test(title: &str) -> Self {
        let test = clip_to_bytes(title.trim(), MAX_TITLE_BYTES).to_owned();
        Self { test: Some(test), ..Self::default() }
    }
}

/// The meaning of a line to the reader of titles.
pub(super) enum TitleLine {
    /// It is the title of a failed test, or ends it.
    Failure(PendingFailure),
    /// It is a part of a title, or may be one.
    Part,
    /// It is no title; there may be a failure before it.
    Other(Option<PendingFailure>),
}

/// Reads the titles of failed tests.
#[derive(Default)]
pub(super) struct TitleReader {
    heading: Option<NumberedHeading>,
    /// The file of tests that jest names above its failures.
    suite: Option<RelPath>,
    /// True below the heading of what node says about its failures.
    pub(super) in_details: bool,
    /// The newest failed test of Playwright's, which may be tried again.
    retried: Option<String>,
    /// True within Playwright's list of tests that passed when they were tried again.
    in_flaky: bool,
}

/// `1) a title`, of which the lines below tell whose it is.
struct NumberedHeading {
    titles: Vec<String>,
    indent: usize,
}

impl TitleReader {
    /// Reads the title of a failed test: jest's `●`, vitest's `FAIL a > b`, Pest's `FAILED  A > b`,
    /// node's `✖`, Deno's `a => ./a_test.ts:4:6`, Karma's `Chrome 1.0 (Linux) a FAILED`, and the
    /// numbered ones of Mocha, Jasmine and Playwright.
    pub(super) fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> TitleLine {
        let before = match self.heading.take() {
            Some(heading) => match self.read_below_heading(heading, line) {
                TitleLine::Other(before) => before,
                read => return read,
            },
            None => None,
        };
        if before.is_some() {
            return TitleLine::Other(before);
        }
        let text = line.trim_start();
        if let Some(failure) = self.read_playwright_line(text, findings) {
            return TitleLine::Failure(failure);
        }
        if let Some(path) = line.strip_prefix("FAIL ").filter(|rest| !rest.contains(" > ")) {
            let path = path.split(" (").next().unwrap_or(path).rsplit(' ').next().unwrap_or(path);
            self.suite = findings.locate(path);
        }
        if let Some(title) = text.strip_prefix("● ") {
            return TitleLine::Failure(self.begin_jest_failure(title));
        }
        // gotestsum marks packages, with two spaces.
        let is_test = |rest: &&str| !rest.starts_with(' ') && !is_summary_line(rest);
        if let Some(title) = text.strip_prefix("✖ ").filter(is_test) {
            return TitleLine::Failure(begin_node_failure(title, self.in_details, findings));
        }
        self.in_details |= text == "✖ failing tests:";
        if let Some(title) = parse_title(line) {
            return TitleLine::Failure(PendingFailure::of_test(title));
        }
        parse_numbered_heading(line).map_or(TitleLine::Other(None), |heading| self.read_heading(heading))
    }

    /// jest says `Test suite failed to run` of a file, and warns of settings in the same form.
    fn begin_jest_failure(&self, title: &str) -> PendingFailure {
        let is_warning = title.ends_with("Warning:");
        if is_warning || title == "Test suite failed to run" || title == "Validation Error:" {
            let file = self.suite.clone();
            return PendingFailure { file, is_ignored: is_warning, ..PendingFailure::default() };
        }
        PendingFailure::of_test(title)
    }

    fn read_heading(&mut self, heading: NumberedHeading) -> TitleLine {
        let title = heading.titles.concat();
        if title.contains(" › ") {
            let title = name_playwright_test(&title);
            self.retried = Some(title.clone());
            return TitleLine::Failure(PendingFailure::of_test(&title));
        }
        if heading.indent == 2 && title.ends_with(':') {
            return TitleLine::Failure(PendingFailure::of_test(title.trim_end_matches(':')));
        }
        self.heading = Some(heading);
        TitleLine::Part
    }

    /// Reads the line below a numbered title, or below several of them. Mocha marks tests in its
    /// list in the same way, without a line of theirs.
    fn read_below_heading(&mut self, mut heading: NumberedHeading, line: &str) -> TitleLine {
        let text = line.trim();
        let indent = line.len() - line.trim_start().len();
        let expected = NESTED_TITLE_INDENT + 2 * (heading.titles.len() - 1);
        let is_nested = heading.indent == 2 && indent == expected && !text.is_empty();
        if is_nested && heading.titles.len() < MAX_NESTED_TITLES {
            heading.titles.push(text.trim_end_matches(':').to_owned());
            if text.ends_with(':') {
                return TitleLine::Failure(PendingFailure::of_test(&heading.titles.join(" > ")));
            }
            self.heading = Some(heading);
            return TitleLine::Part;
        }
        let mut titles = heading.titles.into_iter();
        let mut failure = PendingFailure::of_test(&titles.next().unwrap_or_default());
        // The lines of Hspec look like titles at first.
        failure.lines = titles.collect();
        if heading.indent == 0 && text == "Message:" {
            return TitleLine::Failure(failure);
        }
        let is_message = heading.indent > 0 && indent >= heading.indent + 3;
        TitleLine::Other((is_message || !failure.lines.is_empty()).then_some(failure))
    }

    /// Reads that Playwright tries a test again, and forgets those that passed then.
    fn read_playwright_line(&mut self, text: &str, findings: &mut Findings<'_>) -> Option<PendingFailure> {
        let retried = self.retried.as_deref()?;
        if text.starts_with("Retry #") && text.contains("──") {
            return Some(PendingFailure::of_test(retried));
        }
        if let Some(word) = parse_number(text).and_then(|(_, rest)| rest.strip_prefix(' ')) {
            self.in_flaky = word == "flaky";
        } else if self.in_flaky && text.contains(" › ") {
            findings.forget_test(&name_playwright_test(text));
        }
        None
    }
}

/// Begins the failure of a test that node marks. Its list names suites too, and tests of which the
/// details follow below; a file that can't be loaded has its path as its name.
fn begin_node_failure(title: &str, in_details: bool, findings: &Findings<'_>) -> PendingFailure {
    let directive = [" # TODO", " # SKIP"].iter().find_map(|mark| title.find(mark));
    let title = strip_duration(title.get(..directive.unwrap_or(title.len())).unwrap_or(title));
    let file = findings.locate(title).map(|path| path.to_string());
    PendingFailure {
        is_marked: !in_details,
        is_ignored: directive.is_some(),
        ..PendingFailure::of_test(file.as_deref().unwrap_or(title))
    }
}

/// Returns a title that stands on a line of its own kind.
fn parse_title(line: &str) -> Option<&str> {
    let text = line.trim();
    let indented = line.starts_with([' ', '\t']);
    let found = text
        .strip_prefix("FAIL  ")
        .filter(|rest| rest.contains(" > "))
        // The class of the exception stands at the right.
        .or_else(|| text.strip_prefix("FAILED  ").filter(|rest| rest.contains(" > "))?.split("  ").next())
        .or_else(|| {
            let (title, place) = text.split_once(" => ").filter(|_| !indented)?;
            let place = parse_location(place.strip_prefix("./")?)?;
            (place.column.is_some() && place.rest.is_empty()).then_some(title)
        })
        .or_else(|| {
            let (browser, title) = text.strip_suffix(" FAILED")?.split_once(") ").filter(|_| !indented)?;
            let (_, system) = browser.rsplit_once(" (")?;
            let is_system = ["Linux", "Mac OS", "Windows", "Ubuntu"].iter().any(|it| system.starts_with(it));
            is_system.then_some(title)
        })?;
    (!found.is_empty()).then(|| clip_to_bytes(found, MAX_TITLE_BYTES))
}

/// Reads `  1) a title`.
fn parse_numbered_heading(line: &str) -> Option<NumberedHeading> {
    let text = line.trim_start();
    let (_, rest) = parse_number(text)?;
    let title = rest.strip_prefix(") ")?.trim();
    let title = clip_to_bytes(title, MAX_TITLE_BYTES).to_owned();
    (!title.is_empty()).then(|| NumberedHeading { titles: vec![title], indent: line.len() - text.len() })
}

/// Returns `[chromium] › a.spec.js › adds` of `[chromium] › a.spec.js:2:30 › adds ─────`: lines
/// move.
fn name_playwright_test(title: &str) -> String {
    let title = title.trim_end_matches(['─', ' ']);
    let parts = title.split(" › ").map(|part| match parse_location(part) {
        Some(place) if place.column.is_some() && place.rest.is_empty() => place.path,
        _ => part,
    });
    parts.collect::<Vec<_>>().join(" › ")
}

/// Returns true for summary lines that eslint and node's reporter mark like failures.
fn is_summary_line(rest: &str) -> bool {
    rest.ends_with("failing tests:") || (rest.contains(" problem") && parse_number(rest).is_some())
}

/// Returns a title without the `(0.3ms)` after it.
fn strip_duration(title: &str) -> &str {
    title.rsplit_once(" (").filter(|(_, time)| time.ends_with("ms)")).map_or(title, |(title, _)| title)
}
