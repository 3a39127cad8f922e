//! What an edit does to a file's syntax.

use journeyman_protocol::RelPath;

/// Where a text doesn't parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The 1-based line.
    pub line: u32,
    /// What is wrong, in a few words.
    pub message: String,
}

/// Where the new text doesn't parse, if the old one did.
pub(crate) fn broken_by(_path: &RelPath, _old: &str, _new: &str) -> Option<Finding> {
    None
}
