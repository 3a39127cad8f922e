//! Changes: what a caller asks for, and what it gets back.

use std::fmt;

use journeyman_protocol::{CallId, ContentHash, FileChange, RelPath, SessionId};
use serde::{Deserialize, Serialize};

/// Names a journaled change of one project. Later ones are greater; it says nothing about time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeId(pub u64);

impl ChangeId {
    /// The id of a change set that changed nothing, and so isn't journaled.
    pub const NONE: Self = Self(0);
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names a checkpoint of one project. It shares the order of [`ChangeId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointId(pub u64);

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The state that a change expects; in any other state, nothing is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedState {
    /// Any state: a file, another path, or nothing.
    Anything,
    /// No file.
    Absent,
    /// A file with this content, as [`FileContent::hash`](crate::files::content::FileContent::hash)
    /// gave it.
    Hash(ContentHash),
}

/// One requested change of a [`ChangeSet`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The file has this content afterwards. Missing directories are made; a link that stays inside
    /// keeps pointing where it does, and what it points to is replaced. Mode, owner and attributes
    /// are kept.
    Write {
        /// The file.
        path: RelPath,
        /// All its bytes.
        content: Vec<u8>,
        /// The state that the file must have before.
        expected: ExpectedState,
    },
    /// The file, or the link itself, is gone afterwards.
    Delete {
        /// The file.
        path: RelPath,
        /// The state that the file must have before; [`ExpectedState::Absent`] is refused as a
        /// conflict.
        expected: ExpectedState,
    },
    /// The file, or the link itself, has another name afterwards. Nothing may have that name
    /// already.
    Rename {
        /// The file.
        from: RelPath,
        /// The file's new name.
        to: RelPath,
    },
    /// Whoever may read the file may execute it afterwards, or nobody may.
    SetExecutable {
        /// The file.
        path: RelPath,
        /// Which of both.
        executable: bool,
    },
}

/// Changes that happen together or not at all, in the order given: later ones see what earlier ones
/// did.
#[derive(Debug, Clone)]
pub struct ChangeSet {
    /// The tool call that asks for them.
    pub call: Option<CallId>,
    /// The session it belongs to.
    pub session: SessionId,
    /// The reason for the changes, in the words of who asks for them; kept in the journal, cut to
    /// [`MAX_DESCRIPTION_BYTES`](crate::limits::MAX_DESCRIPTION_BYTES).
    pub description: Option<String>,
    /// The requested changes.
    pub changes: Vec<Change>,
}

/// The result of a change set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedChanges {
    /// The change's id in the journal; [`ChangeId::NONE`] if the tree was already as requested.
    pub id: ChangeId,
    /// The files that differ now, sorted. Links are resolved: these are the files that hold the
    /// content.
    pub changes: Vec<FileChange>,
}

/// The changes to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoTarget {
    /// The changes of the newest session that has any.
    LastRun,
    /// The changes of this session.
    Session(SessionId),
    /// All changes in the journal since this checkpoint, whichever session made them.
    To(CheckpointId),
}

/// The result of an undo or redo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoReport {
    /// The sessions whose changes they were, the newest first; at least one.
    pub sessions: Vec<SessionId>,
    /// The files that differ now, sorted; the kind says what was done just now, so that a file
    /// which the run added is `Deleted` by the undo and `Added` by the redo.
    pub restored: Vec<FileChange>,
    /// The files that were kept as they are, each with the reason.
    pub conflicts: Vec<(RelPath, String)>,
    /// True if older changes of these sessions stay because they aren't kept any more.
    pub dropped: bool,
    /// True if lines of the journal that may have recorded changes of these sessions are damaged:
    /// what they recorded stays.
    pub damaged: bool,
}
