//! Errors of the index.

use std::path::{Path, PathBuf};

/// An error of the index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The system reported an error.
    #[error("{action} `{path}`: {error}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file of the index has other content than was written.
    #[error("the index's file `{path}` is damaged ({what}); it is made anew")]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// A description of the damage.
        what: &'static str,
    },
    /// More data than the format can hold.
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
