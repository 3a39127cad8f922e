//! The trait of the readers of single formats.

use super::findings::Findings;

/// One format's reader.
pub(super) trait Reader {
    /// Looks at one line; true when it belongs to this format and nobody else need look.
    fn line(&mut self, line: &str, findings: &mut Findings<'_>) -> bool;

    /// Gives what was held back for lines that didn't come.
    fn finish(&mut self, findings: &mut Findings<'_>);
}
