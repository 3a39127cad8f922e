//! The operations of a transaction, and the means to carry them out.

use std::path::PathBuf;

use journeyman_protocol::{CallId, ContentHash, RelPath, SessionId};

use crate::change::ChangeId;
use crate::contents::store::BlobStore;
use crate::failpoint::Failpoint;
use crate::files::root_dir::RootDir;
use crate::files::stat::FileStat;
use crate::journal::record::{ChangeCause, DirModeRecord, DirRecord, FileRecord, LeftFile};
use crate::limits::Limits;
use crate::snapshot::entry::FileState;

/// The source of new content.
#[derive(Debug)]
pub(crate) enum NewContent {
    Bytes(Vec<u8>),
    Blob(ContentHash),
    /// A file outside the tree that is too large for the blobs; it is copied.
    File(PathBuf),
    /// The content stays; only the mode changes.
    Unchanged,
}

/// The state of a file after an operation.
#[derive(Debug)]
pub(crate) struct FileAfter {
    pub(crate) state: FileState,
    pub(crate) source: NewContent,
    /// The permission bits; `None` leaves a new file's to the system.
    pub(crate) mode: Option<u32>,
    /// Without `mode`: whether a new file is executable.
    pub(crate) executable: bool,
    /// The file whose owner and attributes a new one gets: the one that it was renamed from.
    pub(crate) like: Option<(RelPath, FileStat)>,
}

/// One file of a transaction.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Canonical.
    pub(crate) path: RelPath,
    pub(crate) before: Option<(FileState, FileStat)>,
    pub(crate) after: Option<FileAfter>,
}

impl Operation {
    /// Returns false if the file changes where it is: it gets other permissions, and has no other
    /// name whose permissions would change too.
    pub(crate) fn needs_sibling(&self) -> bool {
        let is_unchanged = matches!(&self.after, Some(FileAfter { source: NewContent::Unchanged, .. }));
        !is_unchanged || self.before.as_ref().is_some_and(|(_, seen)| seen.names > 1)
    }
}

/// The kind of an operation on one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Create,
    Replace,
    Remove,
    Chmod,
}

impl FileRecord {
    pub(crate) fn operation_kind(&self) -> OperationKind {
        match (&self.before, &self.after) {
            (None, _) => OperationKind::Create,
            (Some(_), None) => OperationKind::Remove,
            (Some(_), Some(_)) if self.is_mode_change() && self.sibling.is_none() => OperationKind::Chmod,
            (Some(_), Some(_)) => OperationKind::Replace,
        }
    }

    /// Returns true if the file gets other permissions alone.
    pub(crate) fn is_mode_change(&self) -> bool {
        let both = self.before.as_ref().zip(self.after.as_ref());
        both.is_some_and(|(before, after)| before.has_same_content(after) && before.hash.is_some())
    }
}

/// The origin of a change, and its parts besides files.
#[derive(Debug)]
pub(crate) struct ChangeIntent {
    pub(crate) session: SessionId,
    pub(crate) call: Option<CallId>,
    pub(crate) cause: ChangeCause,
    pub(crate) description: Option<String>,
    pub(crate) undoes: Vec<ChangeId>,
    pub(crate) left: Vec<LeftFile>,
    /// Directories to make, besides those that files need.
    pub(crate) make: Vec<DirRecord>,
    /// Directories to remove at the end if they are empty.
    pub(crate) remove: Vec<DirRecord>,
    /// True if nothing is left in the session's copy by it.
    pub(crate) settles_copy: bool,
    /// Directories that are there and get other permissions.
    pub(crate) modes: Vec<DirModeRecord>,
}

/// The means to carry out a transaction.
#[derive(Clone, Copy)]
pub(crate) struct TransactionContext<'a> {
    pub(crate) root_dir: &'a RootDir,
    pub(crate) blob_store: &'a BlobStore,
    pub(crate) limits: &'a Limits,
    pub(crate) failpoint: Option<&'a Failpoint>,
}
