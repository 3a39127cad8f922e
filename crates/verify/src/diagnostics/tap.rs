//! The Test Anything Protocol, as node, tape, Mocha, Vitest and others print it.

use super::findings::Findings;
use super::line_reader::LineReader;
use super::location::{Location, parse_location, parse_number};

/// Maximum lines of a message, of which the first ones say what differs.
const MAX_MESSAGE_LINES: usize = 4;

/// Reads failed tests: a `not ok` line, and the YAML block or the lines below it.
#[derive(Default)]
pub(super) struct TapReader {
    failure: Option<TapFailure>,
    /// The newest comment, by which tape names the test of the assertions below; `None` outside of
    /// TAP.
    comment: Option<String>,
}

/// A `not ok` line and what stands below it.
struct TapFailure {
    test: String,
    place: Option<(String, u32, Option<u32>)>,
    message: Vec<String>,
    part: TapPart,
    /// True for a parent that fails through its subtests, and for a test that is still to do.
    is_no_failure: bool,
}

/// The part of a failure that a line belongs to.
#[derive(PartialEq, Eq)]
enum TapPart {
    /// Below the line, where a block may begin.
    Plain,
    /// Within the block, at one of its keys.
    Keys,
    /// Within the text of the error.
    Message,
}

impl LineReader for TapReader {
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool {
        let text = line.trim();
        if self.failure.is_some() {
            // What a failure says is indented.
            let ends = !text.is_empty() && !line.starts_with([' ', '\t'])
                || ["ok ", "not ok "].iter().any(|mark| text.starts_with(mark))
                || text == "..."
                || text.starts_with("# ");
            if !ends {
                self.read_part(text, findings);
                return true;
            }
            self.flush(findings);
            if text == "..." {
                return true;
            }
        }
        if let Some(rest) = text.strip_prefix("not ok ") {
            self.failure = Some(self.begin_failure(rest, findings));
            return true;
        }
        if text.starts_with("TAP version ") {
            self.comment = Some(String::new());
        } else if let (Some(comment), Some(said)) = (&mut self.comment, line.strip_prefix("# ")) {
            *comment = said.trim().to_owned();
        }
        text.starts_with("ok ")
    }

    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.flush(findings);
    }
}

impl TapReader {
    /// Reads `2 - adds # time=4.9ms {`, after `not ok`.
    fn begin_failure(&self, rest: &str, findings: &Findings<'_>) -> TapFailure {
        let unnumbered = parse_number(rest).map_or(rest, |(_, rest)| rest).trim_start();
        let (name, directive) = unnumbered.split_once(" # ").unwrap_or((unnumbered, ""));
        let described = name.strip_prefix("- ");
        let name = described.unwrap_or(name).trim().replace("\\#", "#");
        let test = match &self.comment {
            // Assertions of different tests have the same words.
            Some(comment) if described.is_none() && !comment.is_empty() => format!("{comment} > {name}"),
            _ => name,
        };
        let file = findings.locate(&test).map(|path| path.to_string());
        let directive = directive.to_ascii_uppercase();
        TapFailure {
            test: file.unwrap_or(test),
            place: None,
            message: Vec::new(),
            part: TapPart::Plain,
            is_no_failure: ["TODO", "SKIP"].iter().any(|mark| directive.starts_with(mark))
                || directive.ends_with('{'),
        }
    }

    fn read_part(&mut self, text: &str, findings: &Findings<'_>) {
        let Some(failure) = &mut self.failure else { return };
        let has_room = failure.message.len() < MAX_MESSAGE_LINES && !text.is_empty();
        if failure.part == TapPart::Plain {
            if text == "---" {
                failure.part = TapPart::Keys;
            } else if let Some(place) = text.strip_prefix("at ").and_then(parse_place) {
                let is_own = !place.path.contains("node_modules/") && findings.locate(place.path).is_some();
                if is_own && failure.place.is_none() {
                    failure.place = Some((place.path.to_owned(), place.line, place.column));
                }
            } else if has_room && !failure.message.iter().any(|said| said == text) {
                failure.message.push(text.to_owned());
            }
            return;
        }
        let value = |keys: &[&str]| keys.iter().find_map(|key| text.strip_prefix(key)).map(str::trim);
        if let Some(at) = value(&["location: ", "at: "]) {
            let place = parse_place(at.trim_matches(['\'', '"']));
            failure.place = place.map(|found| (found.path.to_owned(), found.line, found.column));
        } else if let Some(kind) = value(&["failureType: "]) {
            failure.is_no_failure |= kind.contains("subtestsFailed");
        } else if let Some(error) = value(&["error: ", "message: "]) {
            failure.part = if error.starts_with('|') { TapPart::Message } else { TapPart::Keys };
            let said = error.trim_end_matches(',').trim_matches(['\'', '"']);
            if failure.part == TapPart::Keys && !said.is_empty() {
                failure.message.push(said.to_owned());
            }
        } else if value(&["code:", "name:", "stack:", "expected:", "actual:", "operator:"]).is_some() {
            failure.part = TapPart::Keys;
        } else if failure.part == TapPart::Message && has_room {
            failure.message.push(text.to_owned());
        }
    }

    fn flush(&mut self, findings: &mut Findings<'_>) {
        let Some(failure) = self.failure.take().filter(|failure| !failure.is_no_failure) else { return };
        let message = match failure.message.is_empty() {
            true => "the test fails".to_owned(),
            false => failure.message.join("; "),
        };
        match &failure.place {
            Some((path, line, column)) => {
                let place = Location { path, line: *line, column: *column, rest: "" };
                findings.add_error_at(place, Some(&failure.test), &message);
            }
            None => findings.add_error(Some(&failure.test), &message),
        }
    }
}

/// Reads `/p/a.js:1:49`, or a frame with that in parentheses.
fn parse_place(text: &str) -> Option<Location<'_>> {
    let inner = text.rsplit_once('(').map_or(text, |(_, inner)| inner).trim_end_matches(')');
    parse_location(inner).filter(|found| found.rest.is_empty())
}
