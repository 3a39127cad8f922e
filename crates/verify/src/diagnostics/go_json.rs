//! The events of `go test -json`.

use std::collections::{HashMap, HashSet};

use journeyman_protocol::TestCounts;
use serde_json::Value;

use super::findings::Findings;
use super::go::GoReader;
use super::json_values::{text_at, whole_milliseconds};
use super::line_reader::LineReader as _;

/// Maximum bytes of output that are held for tests which still run.
const MAX_HELD_BYTES: usize = 1 << 20;

/// A test, or a package where the second name is empty.
type OutputOwner = (String, String);

/// Groups the output by tests, which run at the same time.
#[derive(Default)]
pub(super) struct GoEventReader {
    held: HashMap<OutputOwner, String>,
    held_bytes: usize,
    /// Tests that fail through their subtests, which are the ones that count.
    failed_parents: HashSet<OutputOwner>,
    reader: GoReader,
}

impl GoEventReader {
    /// Reads one event; returns false for another document.
    pub(super) fn read(&mut self, value: &Value, findings: &mut Findings<'_>) -> bool {
        let (Some(action), Some(package)) =
            (text_at(value, "/Action"), text_at(value, "/Package").or_else(|| text_at(value, "/ImportPath")))
        else {
            return false;
        };
        let test = text_at(value, "/Test").unwrap_or_default();
        let owner = (package.to_owned(), test.to_owned());
        let mut counts = TestCounts::default();
        match action {
            "output" | "build-output" => {
                let output = text_at(value, "/Output").unwrap_or_default();
                if self.held_bytes.saturating_add(output.len()) <= MAX_HELD_BYTES {
                    self.held_bytes += output.len();
                    self.held.entry(owner).or_default().push_str(output);
                }
                return true;
            }
            "fail" | "build-fail" => {
                counts.failed = u64::from(!self.failed_parents.remove(&owner));
                if let Some((parent, _)) = test.rsplit_once('/') {
                    self.failed_parents.insert((package.to_owned(), parent.to_owned()));
                }
                let output = self.take_output(&owner);
                for line in output.lines() {
                    self.reader.read_line(line, findings);
                }
                if !test.is_empty() {
                    self.reader.end_failed_test(test, findings);
                    if let Some(seconds) = value.get("Elapsed").and_then(Value::as_f64)
                        && let Some(duration) = whole_milliseconds(seconds * 1_000.0)
                    {
                        findings.set_duration(test, duration);
                    }
                }
            }
            "pass" => {
                counts.passed = 1;
                self.take_output(&owner);
            }
            "skip" => {
                counts.skipped = 1;
                self.take_output(&owner);
            }
            _ => return true,
        }
        if !test.is_empty() {
            findings.add_test_counts(counts);
        }
        true
    }

    /// Reads the output of tests that never ended, as after a panic.
    pub(super) fn finish(&mut self, findings: &mut Findings<'_>) {
        let mut left: Vec<(OutputOwner, String)> = self.held.drain().collect();
        left.sort();
        for (_, output) in left {
            for line in output.lines() {
                self.reader.read_line(line, findings);
            }
        }
        self.reader.finish(findings);
    }

    fn take_output(&mut self, owner: &OutputOwner) -> String {
        let output = self.held.remove(owner).unwrap_or_default();
        self.held_bytes = self.held_bytes.saturating_sub(output.len());
        output
    }
}
