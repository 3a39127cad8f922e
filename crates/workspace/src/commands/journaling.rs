//! Journaling what commands and checks did.

use journeyman_protocol::{CallId, FileChange, SessionId};

use crate::change::ChangeId;
use crate::error::WorkspaceError;
use crate::journal::record::{ChangeCause, ChangeRecord, DirModeRecord, FileRecord, JournalLine};
use crate::journal::{Journal, LineDurability};
use crate::snapshot::differences::{Difference, TreeDifferences};

/// The session, call and cause of a difference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeOrigin<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) call: Option<&'a CallId>,
    pub(crate) cause: ChangeCause,
}

impl ChangeOrigin<'_> {
    /// Journals differences as one change that has happened; nothing where there are none.
    pub(crate) fn journal_differences(
        self,
        journal: &mut Journal,
        found: TreeDifferences,
    ) -> Result<Vec<FileChange>, WorkspaceError> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let TreeDifferences { files, made, removed, modes, beside } = found;
        let id = ChangeId(journal.next_id());
        let mut changes: Vec<FileChange> = files.iter().map(Difference::file_change).collect();
        changes.extend(modes.iter().map(DirModeRecord::file_change));
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let files = files.into_iter().map(|difference| FileRecord {
            path: difference.path,
            before: difference.before,
            after: difference.after,
            sibling: None,
        });
        let record = ChangeRecord {
            id,
            session: self.session.clone(),
            call: self.call.cloned(),
            cause: self.cause,
            at: journal.timestamp(),
            description: None,
            files: files.collect(),
            made,
            removed,
            cleared: Vec::new(),
            modes,
            undoes: Vec::new(),
            left: Vec::new(),
            beside,
            settles_copy: false,
        };
        journal.append(&[JournalLine::Change(record), JournalLine::Done(id)], LineDurability::Now)?;
        Ok(changes)
    }
}
