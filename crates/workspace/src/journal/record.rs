//! The values in the journal's lines.

use journeyman_protocol::{CallId, ContentHash, FileChange, FileChangeKind, RelPath, SessionId, UnixMillis};
use serde::{Deserialize, Serialize};

use crate::change::{ChangeId, CheckpointId};
use crate::files::paths::is_beneath;
use crate::snapshot::entry::FileState;
use crate::transaction::sibling::sibling_name;

/// The cause of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeCause {
    /// A change set.
    Edit,
    /// A command, found by comparing the tree.
    Command,
    /// Found by comparing the tree after checks, while a person may have been working.
    Check,
    /// Found by comparing the tree after a command that ran in the background, while a person may
    /// have been working.
    Background,
    /// The changes of a running command to a file before an edit replaced it.
    Meanwhile,
    /// A command that was cut off, found by comparing the tree afterwards. It is taken back at
    /// once.
    CutOff,
    /// Taking other changes back.
    Undo,
    /// Taking an undo back.
    Redo,
    /// Changes of a copy, brought into the tree.
    Landing,
}

impl ChangeCause {
    /// Returns true if what differed may as well be a person's work.
    pub(crate) fn is_doubtful(self) -> bool {
        matches!(self, Self::Check | Self::Background)
    }

    /// Returns true if it takes other changes back, and does nothing of its own.
    pub(crate) fn is_undo_or_redo(self) -> bool {
        matches!(self, Self::Undo | Self::Redo)
    }

    /// Returns true if it is carried out by a transaction, and not found to have happened.
    pub(crate) fn is_transaction(self) -> bool {
        matches!(self, Self::Edit | Self::Undo | Self::Redo | Self::Landing)
    }
}

/// One file of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    pub(crate) path: RelPath,
    pub(crate) before: Option<FileState>,
    /// The state after the change. The mode of a new file is the system's choice, and 0 here.
    pub(crate) after: Option<FileState>,
    /// The short-lived name of the new content, and then of the old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sibling: Option<RelPath>,
}

/// A directory of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirRecord {
    pub(crate) path: RelPath,
    /// The directory's permission bits, where they matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
}

/// Permission bits of a directory that a change set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirModeRecord {
    pub(crate) path: RelPath,
    pub(crate) before: u32,
    pub(crate) after: u32,
}

impl DirModeRecord {
    pub(crate) fn file_change(&self) -> FileChange {
        FileChange { path: self.path.clone(), kind: FileChangeKind::Modified }
    }
}

/// A file or directory that an undo didn't restore to the state before all that it takes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftFile {
    pub(crate) path: RelPath,
    /// The newest of its changes that the undo didn't take back, nor any older one.
    pub(crate) newest: ChangeId,
}

/// A change, as the journal holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeRecord {
    pub(crate) id: ChangeId,
    pub(crate) session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<CallId>,
    pub(crate) cause: ChangeCause,
    /// When, where a clock was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<UnixMillis>,
    /// The reason for it, in the words of who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) files: Vec<FileRecord>,
    /// Directories that it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made: Vec<DirRecord>,
    /// Directories that it removed, or removes at its end if they are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) removed: Vec<DirRecord>,
    /// Directories that it removes to make room for a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cleared: Vec<DirRecord>,
    /// Directories whose permissions it set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) modes: Vec<DirModeRecord>,
    /// The changes that it takes back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) undoes: Vec<ChangeId>,
    /// The files of those changes that it left as they are, or restored in part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<LeftFile>,
    /// Other sessions whose commands ran during this change, and may have made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) beside: Vec<SessionId>,
    /// True if it is the landing of the session's copy and left nothing in it, so that the copy
    /// isn't needed any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) settles_copy: bool,
}

impl ChangeRecord {
    /// Returns the outermost of the directories that make room, each with the name that it has
    /// until the change is complete.
    pub(crate) fn dirs_set_aside(&self) -> impl Iterator<Item = (&DirRecord, RelPath)> {
        let is_inner = |dir: &DirRecord| self.cleared.iter().any(|top| is_beneath(&dir.path, &top.path));
        let tops = self.cleared.iter().filter(move |dir| !is_inner(dir));
        tops.filter_map(|dir| {
            // Files are counted from 0, so that no file has this name.
            Some((dir, sibling_name(&dir.path, dir.path.parent().as_ref(), self.id, usize::MAX).ok()?))
        })
    }

    /// Returns the directories whose permissions the change sets, with those before and after.
    pub(crate) fn permission_changes(&self) -> impl Iterator<Item = (&RelPath, u32, u32)> {
        self.modes.iter().map(|dir| (&dir.path, dir.before, dir.after))
    }

    /// Returns `top` and the record's directories beneath it, outermost first.
    pub(crate) fn dirs_cleared_with<'a>(&'a self, top: &'a DirRecord) -> Vec<&'a DirRecord> {
        let with = |dir: &&DirRecord| dir.path == top.path || is_beneath(&dir.path, &top.path);
        self.cleared.iter().filter(with).collect()
    }
}

/// Returns the place of `path` after `top`, which is it or above it, was moved.
pub(crate) fn path_after_move(path: &RelPath, top: &RelPath, to: &RelPath) -> Option<RelPath> {
    let rest = path.as_bytes().strip_prefix(top.as_bytes())?;
    RelPath::parse([to.as_bytes(), rest].concat()).ok()
}

/// A checkpoint, as the journal holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckpointRecord {
    pub(crate) id: CheckpointId,
    pub(crate) session: SessionId,
    pub(crate) label: String,
    /// When, where a clock was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<UnixMillis>,
    pub(crate) tree: ContentHash,
}

/// A summary of lines that were dropped from the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DroppedLines {
    /// Every change up to this number is gone.
    pub(crate) through: u64,
    /// The sessions whose changes, that were in effect, were among them: the newest, at most
    /// `MAX_DROPPED_SESSIONS`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sessions: Vec<SessionId>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalLine {
    /// A change is about to begin, or (of a command) has happened.
    Change(ChangeRecord),
    /// All its files are in place.
    Placed(ChangeId),
    /// The change is complete, and its temporary files are removed.
    Done(ChangeId),
    /// The change never happened.
    Void(ChangeId),
    /// A checkpoint.
    Checkpoint(CheckpointRecord),
    /// Earlier lines were dropped, but for checkpoints that are still needed.
    Dropped(DroppedLines),
    /// Damaged lines stood here; they had numbers up to this one, as far as is known.
    Damaged(u64),
}

impl JournalLine {
    pub(crate) fn id(&self) -> u64 {
        match self {
            Self::Dropped(dropped) => dropped.through,
            Self::Change(record) => record.id.0,
            Self::Placed(id) | Self::Done(id) | Self::Void(id) => id.0,
            Self::Checkpoint(record) => record.id.0,
            Self::Damaged(through) => *through,
        }
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        !matches!(self, Self::Change(_) | Self::Placed(_) | Self::Damaged(_))
    }
}
