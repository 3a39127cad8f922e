//! What can go wrong with an index.

use std::path::{Path, PathBuf};

/// Why something of the index couldn't be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The system refused.
    #[error("{action} «{path}»: {error}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A file of the index isn't what was written.
    #[error("the index's file «{path}» is damaged ({what}); it is made anew")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// More than the format can hold.
    #[error("too much for one part of the index: {0}")]
    TooMuch(&'static str),
}

impl IndexError {
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |error| Self::Io { action, path, error }
    }

    pub(crate) fn damaged(path: impl AsRef<Path>, what: &'static str) -> Self {
        Self::Damaged { path: path.as_ref().to_owned(), what }
    }
}
