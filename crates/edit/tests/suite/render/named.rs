//! A change with its names as text.

use journeyman_edit::FileChange;

/// A change with its names as text.
pub(super) struct Named<'a> {
    pub(super) path: &'a str,
    pub(super) to: Option<&'a str>,
    pub(super) change: &'a FileChange,
}
