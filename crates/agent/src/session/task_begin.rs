//! The two ways for a task to begin.

/// The two ways for a task to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskBegin {
    /// With the queued messages.
    Message,
    /// At the point where it was cut off.
    Resume,
}
