//! The durability of writes.

/// The moment from which a blob survives a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before the call returns.
    Now,
    /// After the next [`Blobs::sync`](crate::Blobs::sync): many blobs share one wait for the disk.
    Later,
}
