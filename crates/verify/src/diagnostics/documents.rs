//! JSON and XML documents within an output, whichever tool printed them.

use serde_json::Value;

use super::findings::Findings;
use super::go_json::GoEventReader;
use super::{junit, lint_json, test_json};

/// Maximum number of places at which an output is tried as a JSON document over several lines: each
/// costs up to the length of the rest.
const MAX_MULTILINE_ATTEMPTS: usize = 32;
/// Maximum number of documents read from an output; a stream of events has one a line.
const MAX_DOCUMENTS: usize = 200_000;

/// Reads the documents of one output.
#[derive(Default)]
pub(super) struct DocumentReader {
    attempts: usize,
    documents: usize,
    go: GoEventReader,
}

impl DocumentReader {
    /// Reads a document that begins at `text`, and returns its length; `None` if none does, or none
    /// of a known tool.
    pub(super) fn read(&mut self, text: &str, findings: &mut Findings<'_>) -> Option<usize> {
        let begin = text.trim_start_matches([' ', '\t']);
        let indent = text.len() - begin.len();
        let length = match begin.as_bytes().first()? {
            b'{' | b'[' => self.read_json(begin, findings)?,
            b'<' => junit::read_report_at(begin, findings)?,
            _ => return None,
        };
        Some(indent + length)
    }

    /// Adds the findings that were held back for documents that never came.
    pub(super) fn finish(&mut self, findings: &mut Findings<'_>) {
        self.go.finish(findings);
    }

    fn read_json(&mut self, text: &str, findings: &mut Findings<'_>) -> Option<usize> {
        if self.documents >= MAX_DOCUMENTS {
            return None;
        }
        let line = text.lines().next().unwrap_or_default().trim_end();
        let (value, length) = match serde_json::from_str(line) {
            Ok(value) => (value, line.len()),
            // Only a line that is cut within a value can begin a longer document.
            Err(error) if error.is_eof() => self.read_multiline_json(text)?,
            Err(_) => return None,
        };
        self.documents += 1;
        let is_known = self.go.read(&value, findings)
            || lint_json::read_document(&value, findings)
            || test_json::read_document(&value, findings);
        is_known.then_some(length)
    }

    fn read_multiline_json(&mut self, text: &str) -> Option<(Value, usize)> {
        if self.attempts >= MAX_MULTILINE_ATTEMPTS {
            return None;
        }
        self.attempts += 1;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        Some((value, values.byte_offset()))
    }
}
