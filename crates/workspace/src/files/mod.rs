//! Single files of the tree: reading beneath the root, listing, texts and their encodings, diffs.

pub(crate) mod content;
pub(crate) mod diff;
pub(crate) mod directory;
pub(crate) mod hashes;
pub(crate) mod listing;
pub(crate) mod paths;
pub(crate) mod portable_names;
pub(crate) mod remove;
pub(crate) mod root_dir;
pub(crate) mod stat;
