//! The whole tree at one moment: taking it, storing it, and comparing two of them.

pub(crate) mod compare;
pub(crate) mod own_changes;
pub(crate) mod stored;
pub(crate) mod tree;
