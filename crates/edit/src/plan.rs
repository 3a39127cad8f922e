//! The result of planning a reply.

use journeyman_protocol::RelPath;

use crate::change::AppliedOp;
use crate::formats::Format;
use crate::outcome::Strategy;
use crate::syntax_check::SyntaxFault;

/// The kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It comes to be.
    Create,
    /// Its content changes.
    Modify,
    /// It gets another path, and perhaps another content.
    Rename,
    /// It goes.
    Delete,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileChange {
    /// The path it has now, or will be created at.
    pub path: RelPath,
    /// The path it will have, where that changes.
    pub to: Option<RelPath>,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The content before, where there was one.
    pub before: Option<String>,
    /// The content after; `None` where the file goes.
    pub after: Option<String>,
    /// Placement of each step.
    pub notes: Vec<AppliedOp>,
    /// The first syntax error of the new content, if the old content had none.
    pub broken: Option<SyntaxFault>,
}

impl FileChange {
    /// The loosest step by which a part of it was placed.
    #[must_use]
    pub fn strategy(&self) -> Option<Strategy> {
        self.notes.iter().filter_map(|note| note.strategy).max()
    }
}

/// A file that is as the reply wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnchangedFile {
    /// The file.
    pub path: RelPath,
    /// Applied before, or no change asked for: in words.
    pub reason: String,
}

/// Something that could not be done.
#[derive(Debug, Clone, PartialEq)]
pub struct EditFailure {
    /// The file, if one is named.
    pub path: Option<RelPath>,
    /// The failure as one word, as [`Refusal::kind`](crate::Refusal::kind) gives it.
    pub kind: &'static str,
    /// The failure and the remedy, in words for the model.
    pub message: String,
    /// The first line (1-based) and the text of the region that is most like the search text.
    pub nearest: Option<(u32, String)>,
}

/// The result of planning a reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EditPlan {
    /// The format it was read in; `None` where it has no edit.
    pub format: Option<Format>,
    /// The changes, in the order in which it can be: creations, changes, renames, deletions.
    pub changes: Vec<FileChange>,
    /// The files that are as they are wanted.
    pub unchanged: Vec<UnchangedFile>,
    /// The edits that can't be made.
    pub failed: Vec<EditFailure>,
    /// The text around the edits.
    pub prose: String,
    pub(crate) partial: bool,
}

impl EditPlan {
    /// The changes to make: none where something failed, unless a part is better than nothing.
    #[must_use]
    pub fn changes_to_write(&self) -> &[FileChange] {
        if self.failed.is_empty() || self.partial { &self.changes } else { &[] }
    }

    /// Returns true if what can be done is kept where not everything can.
    pub(crate) fn is_partial(&self) -> bool {
        self.partial
    }
}
