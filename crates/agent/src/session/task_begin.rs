//! What a task begins with.

/// What a task begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The messages that wait.
    Message,
    /// The place where the task was cut off.
    WhereItWas,
}
