//! Three-way merge of a file that the copy changed with the user's current version.
//!
//! Pure but for the contents that a merge needs: three states of a file go in (in the tree that the
//! copy was made from, in the user's tree, in the copy), and what has to happen comes out.

use std::path::PathBuf;

use journeyman_protocol::{ContentHash, RelPath};
use journeyman_text_diff::merge::{ConflictLabels, MAX_MERGE_BYTES, Merge, merge_texts};

use crate::error::WorkspaceError;
use crate::files::stat::FileStat;
use crate::snapshot::entry::{FileKind, FileState};
use crate::transaction::operation::{FileAfter, NewContent, Operation};
use crate::transaction::staging::executable_mode;

/// The beginning of the reasons for files that are too large.
const TOO_LARGE_REASON: &str = "it is larger than what is kept of a file";
/// The advice for a file that can't be landed.
const BY_HAND_ADVICE: &str = "it has to be taken from the copy by hand";
/// The reasons for files that can be landed, but not undone.
const DELETION_NOT_UNDOABLE: &str = "deleting it couldn't be undone";
const REPLACEMENT_NOT_UNDOABLE: &str = "replacing it couldn't be undone";

/// Returns true if a conflict's reason is only that landing it couldn't be undone.
pub(crate) fn is_beyond_undo(reason: &str) -> bool {
    [DELETION_NOT_UNDOABLE, REPLACEMENT_NOT_UNDOABLE].iter().any(|but| reason == too_large_reason(but))
}

/// The state of a name in the user's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CurrentFile {
    Nothing,
    /// A file or a link.
    File(FileState, FileStat),
    Directory,
    /// A path without content, or one that can't be read, with its description.
    Other(String),
}

impl CurrentFile {
    pub(crate) fn state(&self) -> Option<&FileState> {
        match self {
            Self::File(state, _) => Some(state),
            _ => None,
        }
    }

    fn before(&self) -> Option<(FileState, FileStat)> {
        match self {
            Self::File(state, seen) => Some((*state, *seen)),
            _ => None,
        }
    }
}

/// The source of contents.
pub(crate) trait ContentSource {
    /// Reads a kept content; `None` if it isn't kept (any more).
    fn kept_content(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, WorkspaceError>;

    /// Returns true if it is kept.
    fn is_kept(&self, hash: &ContentHash) -> Result<bool, WorkspaceError>;

    /// Returns the path of a file that was too large for the blobs; `None` if it wasn't kept.
    fn large_file(&self, hash: &ContentHash, size: u64) -> Option<PathBuf>;

    /// Reads the user's file, which was just seen as `state`.
    fn read_current(&self, path: &RelPath, state: &FileState) -> Result<Vec<u8>, WorkspaceError>;
}

/// The decision.
#[derive(Debug)]
pub(crate) enum MergeOutcome {
    /// The user's tree is as the copy is.
    Already,
    /// This; `merged` where lines of both sides were put together.
    Land { operations: Vec<Operation>, merged: bool },
    /// Both sides' changes don't go together.
    Conflict(LandingConflict),
}

/// The reason, and the operations that are possible all the same.
#[derive(Debug)]
pub(crate) struct LandingConflict {
    pub(crate) reason: String,
    /// The operations that make the user's tree as the copy is; `None` where that can't be done.
    pub(crate) theirs: Option<Vec<Operation>>,
    /// The operations that write conflict markers, where lines can have them.
    pub(crate) marked: Option<Vec<Operation>>,
}

/// One file's three states. `base` and `copy` may be of another name than the user's tree has it
/// under.
#[derive(Clone, Copy)]
pub(crate) struct MergeSides<'a> {
    pub(crate) base: Option<&'a FileState>,
    pub(crate) here: &'a CurrentFile,
    pub(crate) copy: Option<&'a FileState>,
}

/// Returns true if both are known to be the same, permissions included.
pub(crate) fn is_same(one: Option<&FileState>, other: Option<&FileState>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            is_same_content(one, other) && (one.kind == FileKind::Link || one.mode == other.mode)
        }
        _ => false,
    }
}

/// Returns true if both contents are known to be the same. A file without a hash can't be compared.
fn is_same_content(one: &FileState, other: &FileState) -> bool {
    one.kind == other.kind && one.hash.is_some() && one.hash == other.hash
}

/// The source of a merged file's content.
enum MergedContent {
    Copy,
    Here,
    Bytes(Vec<u8>),
}

/// Two sides put together.
enum MergedSides {
    To { content: MergedContent, mode: u32 },
    Apart { reason: String, marked: Option<Vec<u8>>, mode: u32 },
}

/// Decides on files.
pub(crate) struct FileMerger<'a, C> {
    pub(crate) contents: &'a C,
    pub(crate) labels: ConflictLabels<'a>,
    /// Files larger than this aren't kept.
    pub(crate) kept_file_bytes: u64,
}

impl<C: ContentSource> FileMerger<'_, C> {
    /// Merges a file that has one name on all sides.
    pub(crate) fn merge_file(
        &self,
        path: &RelPath,
        sides: MergeSides<'_>,
    ) -> Result<MergeOutcome, WorkspaceError> {
        let MergeSides { base, here, copy } = sides;
        if let CurrentFile::Other(what) = here {
            return Ok(conflict_outcome(format!("it is {what} here"), None, None));
        }
        let now = here.state();
        if is_same(now, copy) {
            return Ok(MergeOutcome::Already);
        }
        let Some(copy) = copy else { return Ok(self.merge_deletion(path, sides)) };
        let Some(after) = self.file_from_copy(path, now, copy)? else {
            return Ok(conflict_outcome(too_large_reason(BY_HAND_ADVICE), None, None));
        };
        let take = vec![write_operation(path, here, Some(after))];
        if is_same(now, base) {
            if now.is_some_and(|now| self.is_too_large(now) && !is_same_content(now, copy)) {
                return Ok(conflict_outcome(too_large_reason(REPLACEMENT_NOT_UNDOABLE), Some(take), None));
            }
            return Ok(MergeOutcome::Land { operations: take, merged: false });
        }
        let Some(now) = now else {
            let reason = match here {
                CurrentFile::Directory => "it is a directory here, and was changed in the copy",
                _ => "it was deleted here, and changed in the copy",
            };
            return Ok(conflict_outcome(reason, Some(take), None));
        };
        match self.merge_both(base, (path, now), copy)? {
            MergedSides::To { content, mode } => {
                let merged = matches!(content, MergedContent::Bytes(_));
                let state = FileState { mode, ..*now };
                let after = match content {
                    MergedContent::Here if mode == now.mode => return Ok(MergeOutcome::Already),
                    MergedContent::Here => FileAfter {
                        state,
                        source: NewContent::Unchanged,
                        mode: Some(mode),
                        executable: false,
                        like: None,
                    },
                    MergedContent::Bytes(bytes) => file_from_bytes(bytes, mode),
                    MergedContent::Copy => match self.file_from_copy(path, Some(now), copy)? {
                        Some(after) => with_mode(after, mode),
                        None => return Ok(conflict_outcome(too_large_reason(BY_HAND_ADVICE), None, None)),
                    },
                };
                Ok(MergeOutcome::Land { operations: vec![write_operation(path, here, Some(after))], merged })
            }
            MergedSides::Apart { reason, marked, mode } => {
                let marked =
                    marked.map(|bytes| vec![write_operation(path, here, Some(file_from_bytes(bytes, mode)))]);
                Ok(conflict_outcome(reason, Some(take), marked))
            }
        }
    }

    /// Merges a file that the copy deleted.
    fn merge_deletion(&self, path: &RelPath, sides: MergeSides<'_>) -> MergeOutcome {
        let Some(now) = sides.here.state() else { return MergeOutcome::Already };
        let gone = vec![write_operation(path, sides.here, None)];
        if !is_same(Some(now), sides.base) {
            return conflict_outcome("it was changed here, and deleted in the copy", Some(gone), None);
        }
        if self.is_too_large(now) {
            return conflict_outcome(too_large_reason(DELETION_NOT_UNDOABLE), Some(gone), None);
        }
        MergeOutcome::Land { operations: gone, merged: false }
    }

    /// Merges a file that the copy renamed. `base` is its state under the old name.
    pub(crate) fn merge_renamed(
        &self,
        (from, at_from): (&RelPath, &CurrentFile),
        to: &RelPath,
        sides: MergeSides<'_>,
    ) -> Result<MergeOutcome, WorkspaceError> {
        let MergeSides { base, here: at_to, copy } = sides;
        let Some(copy) = copy else { return self.merge_file(to, sides) };
        let gone = || at_from.state().map(|_| write_operation(from, at_from, None));
        if is_same(at_to.state(), Some(copy)) {
            return self.merge_file(from, MergeSides { base, here: at_from, copy: None });
        }
        let Some(take) = self.file_from_copy(to, None, copy)? else {
            return Ok(conflict_outcome(too_large_reason(BY_HAND_ADVICE), None, None));
        };
        let moved = |mut after: FileAfter| {
            // What the old name's file had of owner and attributes comes along.
            if let CurrentFile::File(FileState { kind: FileKind::File, .. }, seen) = at_from {
                after.like = Some((from.clone(), *seen));
            }
            gone().into_iter().chain([write_operation(to, at_to, Some(after))]).collect::<Vec<_>>()
        };
        if let (CurrentFile::Nothing, CurrentFile::File(..)) = (at_from, at_to) {
            // The user gave it the same name.
            return self.merge_file(to, sides);
        }
        if let CurrentFile::File(..) | CurrentFile::Other(_) = at_to {
            let theirs = matches!(at_to, CurrentFile::File(..)).then(|| moved(take));
            let reason = format!("`{from}` was given this name in the copy, and something else has it here");
            return Ok(conflict_outcome(reason, theirs, None));
        }
        let now = match at_from {
            CurrentFile::File(now, _) => now,
            CurrentFile::Nothing => {
                let reason = format!("`{from}` was given this name in the copy, and is gone here");
                return Ok(conflict_outcome(reason, Some(moved(take)), None));
            }
            CurrentFile::Directory | CurrentFile::Other(_) => {
                let reason = format!("`{from}` was given this name in the copy, and is no file here");
                return Ok(conflict_outcome(reason, None, None));
            }
        };
        if is_same(Some(now), base) {
            if self.is_too_large(now) {
                return Ok(conflict_outcome(
                    too_large_reason(DELETION_NOT_UNDOABLE),
                    Some(moved(take)),
                    None,
                ));
            }
            return Ok(MergeOutcome::Land { operations: moved(take), merged: false });
        }
        match self.merge_both(base, (from, now), copy)? {
            MergedSides::To { content, mode } => {
                let merged = matches!(content, MergedContent::Bytes(_));
                let after = match content {
                    MergedContent::Here if now.size > self.kept_file_bytes => {
                        let reason = too_large_reason("it isn't given another name");
                        return Ok(conflict_outcome(reason, None, None));
                    }
                    MergedContent::Here => self.moved_user_content(from, now, mode)?,
                    MergedContent::Bytes(bytes) => file_from_bytes(bytes, mode),
                    MergedContent::Copy => with_mode(take, mode),
                };
                Ok(MergeOutcome::Land { operations: moved(after), merged })
            }
            MergedSides::Apart { reason, marked, mode } => {
                let marked = marked.map(|bytes| moved(file_from_bytes(bytes, mode)));
                let reason = format!("{reason}; the copy has it from `{from}`");
                Ok(conflict_outcome(reason, Some(moved(take)), marked))
            }
        }
    }

    /// Returns the user's own content, to be written under another name.
    fn moved_user_content(
        &self,
        from: &RelPath,
        now: &FileState,
        mode: u32,
    ) -> Result<FileAfter, WorkspaceError> {
        let bytes = self.contents.read_current(from, now)?;
        let source = NewContent::Bytes(bytes);
        Ok(FileAfter {
            state: FileState { mode, ..*now },
            source,
            mode: Some(mode),
            executable: false,
            like: None,
        })
    }

    /// Puts both sides' content and permissions together. They differ.
    fn merge_both(
        &self,
        base: Option<&FileState>,
        (path, now): (&RelPath, &FileState),
        copy: &FileState,
    ) -> Result<MergedSides, WorkspaceError> {
        let mode = merged_mode(base, now, copy);
        let apart = |reason: &str| MergedSides::Apart { reason: reason.to_owned(), marked: None, mode };
        if now.kind != copy.kind {
            let reason = match now.kind {
                FileKind::Link => "it is a link here, and a file in the copy",
                FileKind::File => "it was changed here, and is a link in the copy",
            };
            return Ok(apart(reason));
        }
        if is_same_content(now, copy) {
            return Ok(MergedSides::To { content: MergedContent::Here, mode });
        }
        if now.kind == FileKind::Link {
            return Ok(apart("the link points elsewhere here than in the copy"));
        }
        let base = base.filter(|base| base.kind == FileKind::File);
        if let Some(base) = base {
            if is_same_content(now, base) {
                return Ok(match self.is_too_large(now) {
                    true => apart(&too_large_reason(REPLACEMENT_NOT_UNDOABLE)),
                    false => MergedSides::To { content: MergedContent::Copy, mode },
                });
            }
            if is_same_content(copy, base) {
                return Ok(MergedSides::To { content: MergedContent::Here, mode });
            }
        }
        let largest = [base, Some(now), Some(copy)].into_iter().flatten().map(|state| state.size).max();
        if largest.is_some_and(|size| size > MAX_MERGE_BYTES as u64) {
            return Ok(apart(
                "it was changed here and in the copy, and is too large to be merged line by line",
            ));
        }
        let base = match base.map(|base| base.hash) {
            None => Some(Vec::new()),
            Some(None) => None,
            Some(Some(hash)) => self.contents.kept_content(&hash)?,
        };
        let (Some(base), Some(theirs)) = (base, self.read_kept_content(copy)?) else {
            return Ok(apart("it was changed here and in the copy, and what both started from isn't kept"));
        };
        let ours = self.contents.read_current(path, now)?;
        Ok(match merge_texts(&base, &ours, &theirs) {
            // The user has the copy's changes already.
            Merge::Clean(bytes) if bytes == ours => MergedSides::To { content: MergedContent::Here, mode },
            Merge::Clean(bytes) => MergedSides::To { content: MergedContent::Bytes(bytes), mode },
            Merge::Refused(why) => apart(&format!("it was changed here and in the copy, and {why}")),
            Merge::Conflicts(conflicts) => {
                let reason = match conflicts.count() {
                    1 => "the same lines were changed here and in the copy".to_owned(),
                    count => format!("the same lines were changed here and in the copy, in {count} places"),
                };
                MergedSides::Apart { reason, marked: Some(conflicts.to_marked_text(&self.labels)), mode }
            }
        })
    }

    fn read_kept_content(&self, state: &FileState) -> Result<Option<Vec<u8>>, WorkspaceError> {
        state.hash.map_or(Ok(None), |hash| self.contents.kept_content(&hash))
    }

    fn is_too_large(&self, now: &FileState) -> bool {
        now.size > self.kept_file_bytes
    }

    /// Returns the file as the copy has it; `None` if it is too large to be kept, and neither in
    /// the tree (`now`) nor beside the copy.
    fn file_from_copy(
        &self,
        path: &RelPath,
        now: Option<&FileState>,
        copy: &FileState,
    ) -> Result<Option<FileAfter>, WorkspaceError> {
        let is_there = now.is_some_and(|now| is_same_content(now, copy));
        let source = match copy.hash {
            Some(_) if is_there => NewContent::Unchanged,
            Some(hash) if self.contents.is_kept(&hash)? => NewContent::Blob(hash),
            hash if copy.size > self.kept_file_bytes => {
                match hash.and_then(|hash| self.contents.large_file(&hash, copy.size)) {
                    Some(file) => NewContent::File(file),
                    None => return Ok(None),
                }
            }
            _ => return Err(WorkspaceError::Lost { what: path.to_string() }),
        };
        let mode = Some(copy.mode);
        Ok(Some(FileAfter { state: *copy, source, mode, executable: false, like: None }))
    }
}

fn with_mode(after: FileAfter, mode: u32) -> FileAfter {
    FileAfter { state: FileState { mode, ..after.state }, mode: Some(mode), ..after }
}

/// Returns true if a conflict's reason is only the file's size.
pub(crate) fn is_about_size(reason: &str) -> bool {
    reason.starts_with(TOO_LARGE_REASON)
}

fn too_large_reason(but: &str) -> String {
    format!("{TOO_LARGE_REASON}; {but}")
}

fn conflict_outcome(
    reason: impl Into<String>,
    theirs: Option<Vec<Operation>>,
    marked: Option<Vec<Operation>>,
) -> MergeOutcome {
    MergeOutcome::Conflict(LandingConflict { reason: reason.into(), theirs, marked })
}

/// Merges permissions. A permission bit that one side changed is as that side has it. Of a file
/// that both sides added, the user's permissions stay, but it is executable if it is in the copy.
fn merged_mode(base: Option<&FileState>, now: &FileState, copy: &FileState) -> u32 {
    match base.filter(|base| base.kind == FileKind::File) {
        Some(base) => (now.mode & copy.mode) | ((now.mode ^ copy.mode) & !base.mode),
        None if copy.mode & 0o100 != 0 => executable_mode(now.mode, true),
        None => now.mode,
    }
}

fn file_from_bytes(bytes: Vec<u8>, mode: u32) -> FileAfter {
    let (size, hash) = (bytes.len() as u64, Some(ContentHash::of(&bytes)));
    let state = FileState { kind: FileKind::File, mode, size, hash };
    FileAfter { state, source: NewContent::Bytes(bytes), mode: Some(mode), executable: false, like: None }
}

fn write_operation(path: &RelPath, here: &CurrentFile, after: Option<FileAfter>) -> Operation {
    let before = here.before();
    let mut operation = Operation { path: path.clone(), before, after };
    if let (Some((before, _)), Some(after)) = (&operation.before, &mut operation.after)
        && is_same_content(before, &after.state)
    {
        after.source = NewContent::Unchanged;
    }
    operation
}
