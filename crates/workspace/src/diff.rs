//! Unified diffs as git writes and reads them.

use journeyman_protocol::RelPath;

/// Differences as text, bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// The unified diff; whole files only, so that what is there applies.
    pub text: String,
    /// Whether files were left out for the limit.
    pub truncated: bool,
    /// Lines added in all files, also in those left out.
    pub added: usize,
    /// Lines removed in all files, also in those left out.
    pub removed: usize,
}

/// The difference between two contents of one file.
#[must_use]
pub fn unified_diff(_path: &RelPath, _old: Option<&[u8]>, _new: Option<&[u8]>) -> String {
    String::new()
}
