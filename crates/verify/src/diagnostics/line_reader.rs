//! The trait of the line readers.

use super::findings::Findings;

/// Reads the lines of one output format.
pub(super) trait LineReader {
    /// Reads a line; returns true if the line belongs to this format, so that no other reader gets
    /// it.
    fn read_line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool;

    /// Adds the finding that was held back for lines that never came.
    fn finish(&mut self, findings: &mut Findings<'_>);
}
