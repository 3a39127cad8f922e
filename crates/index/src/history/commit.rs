//! A commit of the history.

/// Maximum source files of a commit that counts; a larger one says little about each.
pub const MAX_COUNTED_FILES: usize = 30;

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// Author time, in milliseconds since 1970.
    pub time: u64,
    /// Its author.
    pub author: String,
    /// Its message, cut at the maximum.
    pub message: String,
    /// The files that it changed, by their position in the paths of the history.
    pub files: Vec<u32>,
}
