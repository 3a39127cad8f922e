//! A copy's changes for people: as a diff, and as figures.

use std::collections::HashSet;

use journeyman_protocol::{FileChangeKind, RelPath};
use journeyman_text_diff::count_changed_lines;

use crate::checkpoints::ChangedContent;
use crate::error::WorkspaceError;
use crate::files::diff::{Diff, DiffSide, FileDiff, file_diff, git_mode, quote_path};
use crate::landing::Landings;
use crate::landing::changes::{CopyChange, CopyChanges};
use crate::limits::MAX_DIFF_FILE_BYTES;
use crate::snapshot::entry::FileState;

/// The size of changes, to compare them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DiffStat {
    /// Files added, changed, deleted or given another name; a new name counts once.
    pub files: usize,
    /// Lines that are there now and weren't.
    pub added: usize,
    /// Lines that were there and aren't now.
    pub removed: usize,
}

impl Landings<'_> {
    /// Returns the changes as a unified diff in git's form, of at most `max_bytes` bytes; a file
    /// that has only another name is shown as renamed.
    ///
    /// # Errors
    /// [`WorkspaceError::Lost`] when contents are gone, failures of the blobs.
    pub fn diff(&self, changes: &CopyChanges, max_bytes: usize) -> Result<Diff, WorkspaceError> {
        let mut diff = Diff::default();
        for (change, renamed) in shown_changes(changes) {
            let piece = match renamed {
                Some(from) => rename_diff(from, &change.path),
                None => {
                    let (before, after) = self.read_sides(change)?;
                    file_diff(&change.path, diff_side(&before), diff_side(&after))
                }
            };
            diff.add(&change.path, &piece, max_bytes);
        }
        Ok(diff)
    }

    /// Returns both contents of each of those changes that can be read.
    ///
    /// # Errors
    /// As [`Landings::diff`].
    pub fn contents(&self, changes: &CopyChanges) -> Result<Vec<ChangedContent>, WorkspaceError> {
        let mut contents = Vec::new();
        for change in &changes.files {
            let (before, after) = self.read_sides(change)?;
            let bytes = |side: Option<DiffContent>| side.map(|content| content.bytes);
            contents.extend(ChangedContent::from_sides(change.path.clone(), bytes(before), bytes(after)));
        }
        Ok(contents)
    }

    /// Counts the files and lines of those changes. A line counts with its end, so that a line feed
    /// added to the last line removes one line and adds one, as git counts. Binary files, and those
    /// over [`MAX_DIFF_FILE_BYTES`], have no lines.
    ///
    /// # Errors
    /// As [`Landings::diff`].
    pub fn diff_stat(&self, changes: &CopyChanges) -> Result<DiffStat, WorkspaceError> {
        let mut stat = DiffStat::default();
        for (change, renamed) in shown_changes(changes) {
            stat.files += 1;
            if renamed.is_some() {
                continue;
            }
            let (before, after) = self.read_sides(change)?;
            if let (Some(before), Some(after)) =
                (line_counted_bytes(before.as_ref()), line_counted_bytes(after.as_ref()))
            {
                let counts = count_changed_lines(before, after);
                stat.added += counts.added;
                stat.removed += counts.removed;
            }
        }
        Ok(stat)
    }

    /// Reads both contents of a change.
    fn read_sides(
        &self,
        change: &CopyChange,
    ) -> Result<(Option<DiffContent>, Option<DiffContent>), WorkspaceError> {
        let content = |state: &Option<FileState>| -> Result<Option<DiffContent>, WorkspaceError> {
            let Some(state) = state else { return Ok(None) };
            let largest = self.workspace.project.limits().kept_file_bytes.min(MAX_DIFF_FILE_BYTES as u64);
            let bytes = match state.hash {
                Some(hash) if state.size <= largest => {
                    let lost = || WorkspaceError::Lost { what: change.path.to_string() };
                    Some(self.workspace.project.blob_store.get(&hash)?.ok_or_else(lost)?)
                }
                _ => None,
            };
            Ok(Some(DiffContent { mode: git_mode(state), bytes }))
        };
        Ok((content(&change.before)?, content(&change.after)?))
    }
}

/// One side of a change.
struct DiffContent {
    mode: u32,
    /// `None` when it is too large to be shown.
    bytes: Option<Vec<u8>>,
}

/// Returns the changes, each with its earlier name if it has one, without the removals that belong
/// to a rename.
fn shown_changes(changes: &CopyChanges) -> impl Iterator<Item = (&CopyChange, Option<&RelPath>)> {
    let gone: HashSet<&RelPath> =
        changes.files.iter().filter(|file| file.after.is_none()).map(|file| &file.path).collect();
    let moved: HashSet<&RelPath> = changes
        .files
        .iter()
        .filter_map(|file| file.from.as_ref())
        .filter(|from| gone.contains(from))
        .collect();
    changes.files.iter().filter_map(move |file| {
        let is_source = file.after.is_none() && moved.contains(&file.path);
        let renamed = file.from.as_ref().filter(|from| moved.contains(from));
        (!is_source).then_some((file, renamed))
    })
}

fn rename_diff(from: &RelPath, to: &RelPath) -> FileDiff {
    let text = format!(
        "diff --git {} {}\nsimilarity index 100%\nrename from {}\nrename to {}\n",
        quote_path("a/", from),
        quote_path("b/", to),
        quote_path("", from),
        quote_path("", to)
    );
    FileDiff { text, kind: FileChangeKind::Added, added: 0, removed: 0, opaque: false }
}

fn diff_side(content: &Option<DiffContent>) -> Option<DiffSide<'_>> {
    content.as_ref().map(|content| DiffSide { mode: content.mode, bytes: content.bytes.as_deref() })
}

/// Returns the bytes whose lines are counted; `None` if there are none.
fn line_counted_bytes(content: Option<&DiffContent>) -> Option<&[u8]> {
    match content {
        None => Some(&[]),
        Some(content) => content.bytes.as_deref().filter(|bytes| !bytes.contains(&0)),
    }
}
