//! The only door to the project tree: contained paths, atomic writes, journal, undo.

mod change;
mod content;
mod diff;
mod error;
pub mod limits;
mod listing;
mod snapshot;
mod workspace;

pub use change::{Applied, Change, ChangeId, ChangeSet, CheckpointId, Expected, UndoReport, UndoTarget};
pub use content::{Body, Encoding, FileContent, LineEnding, Text};
pub use diff::{Diff, unified_diff};
pub use error::{EncodeError, Found, NotAFile, WorkspaceError};
pub use limits::{Limits, Options};
pub use listing::{ListOptions, Listing, Stat, StatKind};
pub use snapshot::TreeSnapshot;
pub use workspace::Workspace;
