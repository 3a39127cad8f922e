//! The only door to the project tree: contained paths, atomic writes, journal, undo.

mod apply;
mod change;
mod compare;
mod content;
mod diff;
mod door;
mod error;
mod journal;
pub mod limits;
mod listing;
mod lock;
mod manifest;
mod recovery;
mod rename;
mod rules;
mod snapshot;
mod transaction;
mod undo;
mod walk;
mod workspace;

pub use change::{Applied, Change, ChangeId, ChangeSet, CheckpointId, Expected, UndoReport, UndoTarget};
pub use content::{Body, Encoding, FileContent, LineEnding, Text};
pub use diff::{Diff, unified_diff};
pub use error::{EncodeError, Found, NotAFile, WorkspaceError};
pub use limits::{Limits, Options};
pub use listing::{ListOptions, Listing, Stat, StatKind};
pub use snapshot::TreeSnapshot;
pub use workspace::Workspace;
