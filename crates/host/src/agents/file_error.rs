//! The error of a definition in a file.

/// A wrong field of a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct AgentFileError {
    /// The field.
    pub field: String,
    /// The reason.
    pub reason: String,
}

impl AgentFileError {
    pub(super) fn new(field: &str, reason: impl Into<String>) -> Self {
        Self { field: field.to_owned(), reason: reason.into() }
    }
}
