//! The whole tree at one moment: taking it, storing it, and comparing two of them.

pub(crate) mod capture;
pub(crate) mod compare;
pub(crate) mod differences;
pub(crate) mod entry;
pub(crate) mod file_observation;
pub(crate) mod own_changes;
pub(crate) mod snapshots;
pub(crate) mod stored_tree;
pub(crate) mod tree;
pub(crate) mod tree_index;
