//! Access to the tree of one project: contained paths, atomic writes, a journal, checkpoints and
//! undo.
//!
//! A [`Workspace`] is one tree with its state directory. It [reads](Workspace::read) and
//! [lists](Workspace::list) files, and [applies](Workspace::apply) a [`ChangeSet`] as a whole or
//! not at all, also across a crash.
//!
//! | job | access |
//! |---|---|
//! | observe commands and checks to undo their changes | [`Workspace::command_observer`] |
//! | settle commands that a crash cut off | [`Workspace::recovery`] |
//! | make, list and compare checkpoints | [`Workspace::checkpoint`], [`Workspace::history`] |
//! | undo and redo | [`Workspace::undo`], [`Workspace::redo`] |
//! | work in a copy of the tree | [`Workspace::copies`] |
//! | compare a copy, land its changes | [`Workspace::landings`], [`Workspace::land`] |
//! | run a command in an overlay first | [`Workspace::previews`] |
//! | find repositories, and move away one that a command made | [`Workspace::repositories`] |
//!
//! Paths are [`RelPath`](journeyman_protocol::RelPath)s, resolved beneath the root by the kernel;
//! links may stay inside and never lead out. Contents that an undo needs are kept in the
//! [`Blobs`](journeyman_store::Blobs). Every bound is in [`limits`].
//!
//! ```
//! use std::sync::Arc;
//! use journeyman_protocol::{RelPath, SessionId, UnixMillis};
//! use journeyman_store::Blobs;
//! use journeyman_workspace::{Change, ChangeSet, ExpectedState, Options, UndoTarget, Workspace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (root, state) = (dir.path().join("project"), dir.path().join("state"));
//! # std::fs::create_dir(&root)?;
//! let blobs = Arc::new(Blobs::open(&state.join("blobs"), 1 << 30)?);
//! let options = Options::new(state.join("project"), blobs);
//! let workspace = Workspace::open(&root, options)?;
//!
//! let path = RelPath::parse("src/main.rs")?;
//! let content = b"fn main() {}\n".to_vec();
//! let change = Change::Write { path: path.clone(), content, expected: ExpectedState::Absent };
//! let session = SessionId::new(UnixMillis(1), 7);
//! workspace.apply(ChangeSet { call: None, session, description: None, changes: vec![change] })?;
//! assert_eq!(workspace.read(&path, 1024)?.text(), Some("fn main() {}\n"));
//!
//! workspace.undo(UndoTarget::LastRun)?;
//! assert!(workspace.stat(&path)?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! The crate doesn't run commands, doesn't know sessions' contents or models, and never touches
//! git's own directory. Snapshots don't cover ignored files; a command's changes to small ones can
//! be undone within [bounds](limits::MAX_KEPT_IGNORED_BYTES), but not files that it adds there or
//! that tools make again. Owners and extended attributes that a command changes aren't kept. Of
//! files over [`limits::DEFAULT_KEPT_FILE_BYTES`] only size, time and inode are compared. A file
//! that a command made unreadable is named as changed and can't be restored.

mod change;
mod checkpoints;
mod checkup;
mod commands;
mod contents;
mod copies;
mod delivered_files;
mod error;
pub mod failpoint;
mod files;
mod guarded;
mod hard_links;
mod ignored;
mod journal;
mod landing;
pub mod limits;
mod mutex;
mod options;
mod preview;
mod project;
mod repositories;
mod rules;
mod snapshot;
mod state;
mod transaction;
mod undo;
mod walk;
mod workspace;

pub use change::{
    AppliedChanges, Change, ChangeId, ChangeSet, CheckpointId, ExpectedState, UndoReport, UndoTarget,
};
pub use checkpoints::{ChangedContent, CheckpointInfo, ProjectHistory};
pub use checkup::{Checkup, CheckupReport, Damage, list_landed_copies, list_projects};
pub use commands::observe::CommandObserver;
pub use commands::recovery::{RecoveredCall, Recovery};
pub use commands::tree_snapshot::TreeSnapshot;
pub use contents::quota::StorageUsage;
pub use copies::Copies;
pub use copies::info::{CopyInfo, CopyTools, RefreshReport};
pub use copies::isolated::IsolatedCopy;
pub use copies::tier::IsolationTier;
pub use delivered_files::DeliveredFiles;
pub use error::{ActualState, EncodeError, NotAFile, WorkspaceError};
pub use files::content::{DecodedText, Encoding, FileBody, FileContent, LineEnding};
pub use files::diff::{Diff, DiffFileStat, edit_diff, unified_diff};
pub use files::listing::{ListOptions, Listing, Stat, StatKind};
pub use files::portable_names::NameTrouble;
pub use files::remove::{remove_tree, remove_trees_of_ended_processes};
pub use guarded::{ForbiddenChanges, GuardedState};
pub use hard_links::HardLinks;
pub use ignored::ignored_changes::{IgnoredChange, IgnoredChanges};
pub use journeyman_protocol::Clock;
pub use journeyman_protocol::GuardRules;
pub use landing::Landings;
pub use landing::changes::{CopyChanges, LandOptions, LandingReport, OnConflict};
pub use landing::diff::DiffStat;
pub use limits::Limits;
pub use options::Options;
pub use preview::uncovered::DestructiveChange;
pub use preview::{OverlayChanges, OverlayLanding, OverlayRun, Previews, UncoveredPath};
pub use workspace::Workspace;
