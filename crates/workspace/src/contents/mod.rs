//! Kept contents of files: where they lie among the blobs, and how much of the disk they may take.

pub(crate) mod blob_usage;
pub(crate) mod pack_index;
pub(crate) mod quota;
pub(crate) mod store;
