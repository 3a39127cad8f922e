//! Runs slow work on other threads than the session's.

use crate::AgentError;

/// Runs slow file work on Tokio's threads for blocking work.
///
/// # Errors
/// [`AgentError::Background`] where the work panicked.
pub(crate) async fn run_blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AgentError> {
    tokio::task::spawn_blocking(work).await.map_err(|died| background_error(what, &died))
}

/// Describes the death of a background task.
pub(crate) fn background_error(what: &'static str, died: &tokio::task::JoinError) -> AgentError {
    AgentError::Background { what, reason: died.to_string() }
}
