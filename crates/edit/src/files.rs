//! Access to the files that a reply names.

use std::borrow::Cow;
use std::collections::BTreeMap;

use journeyman_protocol::RelPath;

/// The files that edits are for. The caller implements it over its work tree, a snapshot or a map;
/// asking the same twice should be cheap and give the same.
pub trait Files {
    /// A file's text; `None` where there is no such file.
    ///
    /// # Errors
    /// [`FileProblem`] where there is something that can't be edited as text.
    fn text(&self, path: &RelPath) -> Result<Option<Cow<'_, str>>, FileProblem>;

    /// The version of the file that the model was last shown, where it isn't the present one: a
    /// base for a three-way merge.
    fn last_shown_text(&self, _path: &RelPath) -> Option<Cow<'_, str>> {
        None
    }

    /// Files in which a text may be that isn't where the model said. The few dozen that are nearest
    /// by name, kind and place to the file that was named are looked into.
    fn other_paths(&self) -> Vec<RelPath> {
        Vec::new()
    }
}

/// Why a file's text can't be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// Its bytes aren't text.
    #[error("the file isn't text; it can only be written whole, by a command")]
    Binary,
    /// It is too large to edit.
    #[error("the file has {bytes} bytes; at most {limit} are edited")]
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
        /// The bound in bytes.
        limit: u64,
    },
    /// It can't be read, or must not be.
    #[error("{0}")]
    Unreadable(String),
}

impl Files for BTreeMap<RelPath, String> {
    fn text(&self, path: &RelPath) -> Result<Option<Cow<'_, str>>, FileProblem> {
        Ok(self.get(path).map(|text| Cow::Borrowed(text.as_str())))
    }

    fn other_paths(&self) -> Vec<RelPath> {
        self.keys().cloned().collect()
    }
}

/// Returns true if there is such a file, as far as can be told.
pub(crate) fn exists(files: &dyn Files, path: &RelPath) -> bool {
    !matches!(files.text(path), Ok(None))
}
