//! The whole tree at one moment.

/// The tree before a command: give it back to [`Workspace::command_end`](crate::Workspace::command_end).
#[derive(Debug, Clone)]
pub struct TreeSnapshot;
