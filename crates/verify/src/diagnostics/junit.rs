//! JUnit's XML, which most test runners can write.

use journeyman_protocol::{Diagnostic, TestCounts};
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::findings::Findings;
use super::json_values::whole_milliseconds;
use super::location::Location;
use super::test_json::parse_failure;
use super::test_names::is_same_test;

/// Maximum depth of elements: suites nest a few levels.
const MAX_ELEMENT_DEPTH: usize = 64;
/// Maximum number of test cases read from one document.
const MAX_CASES: usize = 200_000;
/// Maximum number of failures whose text is read.
const MAX_FAILURES: usize = 500;
/// Maximum bytes of a failure's text, which ends with a stack trace.
const MAX_FAILURE_TEXT_BYTES: usize = 64 * 1024;
/// Maximum bytes between a report's declaration and its root.
const MAX_PROLOG_BYTES: usize = 1_000;

/// Reads a report that begins at `text`, as far as it is valid; returns its length, or `None` if no
/// report begins there.
pub(super) fn read_report_at(text: &str, findings: &mut Findings<'_>) -> Option<usize> {
    let is_declared = text.starts_with("<?xml") && {
        let prolog = journeyman_protocol::clip_to_bytes(text, MAX_PROLOG_BYTES);
        prolog.contains("<testsuite") || prolog.contains("<testrun")
    };
    (is_declared || text.starts_with("<testsuite")).then(|| read_report(text, findings))
}

/// Reads a report up to the end of its root, or to the first invalid part, and returns the length.
pub(super) fn read_report(text: &str, findings: &mut Findings<'_>) -> usize {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut cases = CaseReader::default();
    let mut depth = 0_usize;
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) => {
                depth += 1;
                cases.begin_element(&tag);
            }
            Event::Empty(tag) => {
                cases.begin_element(&tag);
                cases.end_element(tag.local_name().as_ref(), findings);
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                cases.end_element(tag.local_name().as_ref(), findings);
                if depth == 0 {
                    break;
                }
            }
            Event::Text(piece) => cases.add_text(&piece),
            Event::CData(piece) => cases.add_text(&piece),
            Event::GeneralRef(name) => {
                // An entity that the document defines itself stays out: it may be a bomb.
                match (name.resolve_char_ref(), resolve_predefined_entity(&name)) {
                    (Ok(Some(character)), _) => cases.add_text(character.encode_utf8(&mut [0; 4])),
                    (_, Some(known)) => cases.add_text(known),
                    _ => {}
                }
            }
            Event::Eof => break,
            _ => {}
        }
        if depth > MAX_ELEMENT_DEPTH || cases.count > MAX_CASES {
            break;
        }
    }
    usize::try_from(reader.buffer_position()).unwrap_or(text.len()).clamp(1, text.len().max(1))
}

/// The test case that is being read.
#[derive(Default)]
struct CaseReader {
    count: usize,
    failures: usize,
    case: Option<TestCase>,
    /// True within the element of a failure.
    in_failure: bool,
}

#[derive(Default)]
struct TestCase {
    test: String,
    file: Option<String>,
    line: Option<u32>,
    duration_ms: Option<u64>,
    state: CaseState,
    message: Option<String>,
    text: String,
}

#[derive(Default, PartialEq)]
enum CaseState {
    #[default]
    Passed,
    Failed,
    Skipped,
}

impl CaseReader {
    fn begin_element(&mut self, tag: &BytesStart<'_>) {
        match (tag.local_name().as_ref(), &mut self.case) {
            ("testcase", _) => {
                self.count += 1;
                self.case = Some(TestCase::from_tag(tag));
            }
            ("failure" | "error", Some(case)) => {
                self.in_failure = case.state != CaseState::Failed && self.failures < MAX_FAILURES;
                case.state = CaseState::Failed;
                if case.message.is_none() {
                    case.message = attribute(tag, "message").filter(|message| !message.trim().is_empty());
                }
            }
            ("skipped" | "disabled", Some(case)) if case.state == CaseState::Passed => {
                case.state = CaseState::Skipped;
            }
            _ => {}
        }
    }

    fn end_element(&mut self, name: &str, findings: &mut Findings<'_>) {
        match name {
            "failure" | "error" => self.in_failure = false,
            "testcase" => {
                let Some(case) = self.case.take() else { return };
                let mut counts = TestCounts::default();
                match case.state {
                    CaseState::Passed => counts.passed = 1,
                    CaseState::Skipped => counts.skipped = 1,
                    CaseState::Failed => {
                        counts.failed = 1;
                        self.failures += 1;
                        if self.failures <= MAX_FAILURES {
                            case.report_failure(findings);
                        }
                    }
                }
                findings.add_test_counts(counts);
            }
            _ => {}
        }
    }

    fn add_text(&mut self, piece: &str) {
        if let Some(case) = self.case.as_mut().filter(|_| self.in_failure) {
            let room = MAX_FAILURE_TEXT_BYTES.saturating_sub(case.text.len());
            case.text.push_str(journeyman_protocol::clip_to_bytes(piece, room));
        }
    }
}

impl TestCase {
    fn from_tag(tag: &BytesStart<'_>) -> Self {
        let name = attribute(tag, "name").unwrap_or_default();
        let test = match attribute(tag, "classname").filter(|class| !class.is_empty()) {
            // Some runners put the whole name into both.
            Some(class) if name.starts_with(&class) => name,
            Some(class) => format!("{class}.{name}"),
            None => name,
        };
        let seconds: Option<f64> = attribute(tag, "time").and_then(|time| time.parse().ok());
        Self {
            test,
            file: attribute(tag, "file").or_else(|| attribute(tag, "filepath")),
            line: attribute(tag, "line").and_then(|line| line.parse().ok()),
            duration_ms: seconds.and_then(|seconds| whole_milliseconds(seconds * 1_000.0)),
            ..Self::default()
        }
    }

    /// Adds the failure; its text is read as the runner's output.
    fn report_failure(self, findings: &mut Findings<'_>) {
        let said = match (&self.message, self.text.trim()) {
            (Some(message), "") => message.as_str(),
            (_, text) => text,
        };
        let mut found = parse_failure(said, findings);
        if let Some(message) = self.message {
            let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            found.message = lines.join("; ");
        }
        // PHPUnit begins with the name of the test.
        if let Some((first, rest)) = found.message.split_once("; ")
            && is_same_test(first, &self.test)
        {
            found.message = rest.to_owned();
        }
        if found.line.is_none()
            && let Some(file) = &self.file
        {
            found = findings.with_location(
                found,
                Location { path: file, line: self.line.unwrap_or_default(), column: None, rest: "" },
            );
        }
        findings.add_failed_test(Diagnostic {
            test: Some(self.test),
            duration_ms: self.duration_ms,
            ..found
        });
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let attributes = attributes.with_checks(false).filter_map(Result::ok);
    let found = attributes.into_iter().find(|attribute| attribute.key.as_ref() == name)?;
    Some(match found.normalized_value(XmlVersion::Implicit1_0) {
        Ok(value) => value.into_owned(),
        // An entity that the document defines itself.
        Err(_) => found.value.into_owned(),
    })
}
