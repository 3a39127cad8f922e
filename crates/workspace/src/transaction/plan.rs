//! Plans the operations on files that a change set asks for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use journeyman_protocol::{ContentHash, RelPath};

use crate::change::{Change, ExpectedState};
use crate::error::io_error;
use crate::error::{ActualState, NotAFile, WorkspaceError};
use crate::files::paths::is_beneath;
use crate::files::root_dir::{FinalLinkPolicy, LinkPolicy, RootDir, read_up_to};
use crate::files::stat::FileStat;
use crate::limits::{Limits, MAX_CHANGES};
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::transaction::moves::actual_state;
use crate::transaction::operation::{FileAfter, NewContent, Operation};
use crate::transaction::staging::executable_mode;
use journeyman_ignore_rules::is_git_directory_name;

/// The state of a file after the changes so far.
#[derive(Debug)]
enum DraftState {
    /// Unchanged from the disk.
    AsBefore,
    Absent,
    File(FileAfter),
}

#[derive(Debug)]
struct FileDraft {
    before: Option<(FileState, FileStat)>,
    now: DraftState,
}

impl FileDraft {
    fn state(&self) -> Option<&FileState> {
        match &self.now {
            DraftState::AsBefore => self.before.as_ref().map(|(state, _)| state),
            DraftState::Absent => None,
            DraftState::File(after) => Some(&after.state),
        }
    }
}

/// The files that a change set touches.
struct FileDrafts<'a> {
    root_dir: &'a RootDir,
    limits: &'a Limits,
    files: BTreeMap<RelPath, FileDraft>,
}

/// Plans a change set. Nothing is written; a precondition that doesn't hold is a conflict.
pub(crate) fn plan_changes(
    root_dir: &RootDir,
    limits: &Limits,
    changes: Vec<Change>,
) -> Result<Vec<Operation>, WorkspaceError> {
    if changes.len() > MAX_CHANGES {
        return Err(WorkspaceError::TooManyChanges { given: changes.len(), limit: MAX_CHANGES });
    }
    let mut drafts = FileDrafts { root_dir, limits, files: BTreeMap::new() };
    for change in changes {
        drafts.add(change)?;
    }
    drafts.check_no_nested_files()?;
    Ok(drafts.into_operations())
}

impl FileDrafts<'_> {
    fn add(&mut self, change: Change) -> Result<(), WorkspaceError> {
        match change {
            Change::Write { path, content, expected } => self.write(&path, content, expected),
            Change::Delete { path, expected } => self.delete(&path, expected),
            Change::Rename { from, to } => self.rename(&from, &to),
            Change::SetExecutable { path, executable } => self.set_executable(&path, executable),
        }
    }

    /// Returns the draft of the file that `path` resolves to, which is read once.
    fn draft_for_path(
        &mut self,
        path: &RelPath,
        last: FinalLinkPolicy,
    ) -> Result<(RelPath, &mut FileDraft), WorkspaceError> {
        let canonical = self.root_dir.canonicalize(path, last)?;
        if path.components().chain(canonical.components()).any(is_git_directory_name) {
            return Err(WorkspaceError::Protected { path: path.clone() });
        }
        let draft = match self.files.entry(canonical.clone()) {
            Slot::Occupied(slot) => slot.into_mut(),
            Slot::Vacant(slot) => {
                let before = match observe_file(self.root_dir, &canonical) {
                    // Gone between two looks.
                    Err(WorkspaceError::NotFound { .. }) => None,
                    other => other?,
                };
                slot.insert(FileDraft { before, now: DraftState::AsBefore })
            }
        };
        Ok((canonical, draft))
    }

    fn write(
        &mut self,
        path: &RelPath,
        bytes: Vec<u8>,
        expected: ExpectedState,
    ) -> Result<(), WorkspaceError> {
        let (canonical, draft) = self.draft_for_path(path, FinalLinkPolicy::Follow)?;
        check_expected(path, draft.state(), expected)?;
        let state = draft.state().copied();
        let hash = ContentHash::of(&bytes);
        let unchanged = state.is_some_and(|state| state.kind == FileKind::File && state.hash == Some(hash));
        if unchanged {
            return Ok(());
        }
        let kept = draft.before.as_ref().map(|(before, _)| before.mode);
        let (mode, executable, like) = match &mut draft.now {
            DraftState::File(after) => (after.mode, after.executable, after.like.take()),
            DraftState::AsBefore => (kept, false, None),
            DraftState::Absent => (kept, false, None),
        };
        let state = FileState {
            kind: FileKind::File,
            mode: mode.unwrap_or_default(),
            size: bytes.len() as u64,
            hash: Some(hash),
        };
        draft.now =
            DraftState::File(FileAfter { state, source: NewContent::Bytes(bytes), mode, executable, like });
        let _path: RelPath = canonical;
        Ok(())
    }

    fn delete(&mut self, path: &RelPath, expected: ExpectedState) -> Result<(), WorkspaceError> {
        let (canonical, draft) = self.draft_for_path(path, FinalLinkPolicy::Keep)?;
        let Some(state) = draft.state().copied() else {
            return Err(match expected {
                ExpectedState::Hash(hash) => conflict_error(path, Some(hash), ActualState::Nothing),
                ExpectedState::Anything | ExpectedState::Absent => {
                    WorkspaceError::NotFound { path: path.clone() }
                }
            });
        };
        draft.now = DraftState::Absent;
        match (expected, state.kind) {
            // What was read through the link is what it points to.
            (ExpectedState::Hash(hash), FileKind::Link) => {
                let target = self.root_dir.canonicalize(path, FinalLinkPolicy::Follow)?;
                let there = observe_file(self.root_dir, &target)?;
                if there.and_then(|(there, _)| there.hash) == Some(hash) || state.hash == Some(hash) {
                    return Ok(());
                }
                Err(conflict_error(path, Some(hash), actual_state(self.root_dir, &canonical)))
            }
            _ => check_expected(path, Some(&state), expected),
        }
    }

    fn rename(&mut self, from: &RelPath, to: &RelPath) -> Result<(), WorkspaceError> {
        let limit = self.limits.kept_file_bytes;
        let root_dir = self.root_dir;
        let (source, draft) = self.draft_for_path(from, FinalLinkPolicy::Keep)?;
        let Some(state) = draft.state().copied() else {
            return Err(WorkspaceError::NotFound { path: from.clone() });
        };
        let like = draft.before.as_ref().map(|(_, seen)| (source.clone(), *seen));
        let (bytes, mode, executable, like) = match std::mem::replace(&mut draft.now, DraftState::Absent) {
            DraftState::File(FileAfter {
                source: NewContent::Bytes(bytes), mode, executable, like, ..
            }) => (bytes, mode, executable, like),
            DraftState::File(FileAfter { mode, .. }) => {
                (read_contents(root_dir, &source, &state, limit)?, mode, false, like)
            }
            DraftState::AsBefore | DraftState::Absent => {
                (read_contents(root_dir, &source, &state, limit)?, Some(state.mode), false, like)
            }
        };
        let (target, draft) = self.draft_for_path(to, FinalLinkPolicy::Keep)?;
        if let Some(there) = draft.state() {
            let there = match (there.kind, there.hash) {
                (FileKind::File, Some(hash)) => ActualState::Content { hash, size: there.size },
                _ => ActualState::Other,
            };
            return Err(conflict_error(&target, None, there));
        }
        // A new file that takes the place of a deleted one gets its mode, as a written one does.
        let taken = draft.before.as_ref().filter(|(before, _)| before.kind == FileKind::File);
        let taken = taken.map(|(before, _)| match executable {
            true => executable_mode(before.mode, true),
            false => before.mode,
        });
        let mode = mode.or(taken);
        let state = FileState { mode: mode.unwrap_or_default(), ..state };
        let source = NewContent::Bytes(bytes);
        draft.now = DraftState::File(FileAfter { state, source, mode, executable, like });
        Ok(())
    }

    fn set_executable(&mut self, path: &RelPath, executable: bool) -> Result<(), WorkspaceError> {
        let (_, draft) = self.draft_for_path(path, FinalLinkPolicy::Follow)?;
        let Some(mut state) = draft.state().copied() else {
            return Err(WorkspaceError::NotFound { path: path.clone() });
        };
        if state.kind == FileKind::Link {
            return Err(WorkspaceError::NotAFile { path: path.clone(), kind: NotAFile::Other });
        }
        match &mut draft.now {
            DraftState::File(after) => {
                after.executable = executable;
                after.mode = after.mode.map(|mode| executable_mode(mode, executable));
                after.state.mode = after.mode.unwrap_or_default();
            }
            DraftState::AsBefore | DraftState::Absent => {
                state.mode = executable_mode(state.mode, executable);
                let (mode, source) = (Some(state.mode), NewContent::Unchanged);
                draft.now = DraftState::File(FileAfter { state, source, mode, executable, like: None });
            }
        }
        Ok(())
    }

    /// Refuses a file beneath another one.
    fn check_no_nested_files(&self) -> Result<(), WorkspaceError> {
        let mut above: Option<&RelPath> = None;
        let there = self.files.iter().filter(|(_, draft)| draft.state().is_some()).map(|(path, _)| path);
        let mut there: Vec<&RelPath> = there.collect();
        // By components, so that what is beneath a path follows it at once.
        there.sort_by(|a, b| a.components().cmp(b.components()));
        for path in there {
            if let Some(above) = above.filter(|above| is_beneath(path, above)) {
                let reason = "it is to be a file, and to hold another one";
                return Err(WorkspaceError::Contradiction { path: above.clone(), reason });
            }
            above = Some(path);
        }
        Ok(())
    }

    fn into_operations(self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, FileDraft { before, now }) in self.files {
            let after = match now {
                DraftState::AsBefore => continue,
                DraftState::Absent if before.is_none() => continue,
                DraftState::Absent => None,
                DraftState::File(after) => Some(after),
            };
            let mut operation = Operation { path, before, after };
            if let (Some((before, _)), Some(after)) = (&operation.before, &mut operation.after)
                && before.has_same_content(&after.state)
            {
                if before.mode == after.state.mode || before.kind == FileKind::Link {
                    continue;
                }
                after.source = NewContent::Unchanged;
            }
            operations.push(operation);
        }
        operations
    }
}

fn read_contents(
    root_dir: &RootDir,
    path: &RelPath,
    state: &FileState,
    limit: u64,
) -> Result<Vec<u8>, WorkspaceError> {
    if state.kind == FileKind::Link {
        return root_dir.read_link(path).map_err(|errno| root_dir.error_for("read", path, errno));
    }
    let (file, seen) = root_dir.open_file(path, LinkPolicy::Refuse)?;
    let bytes = read_up_to(&file, seen.size, limit).map_err(|source| io_error("read", path, source))?;
    bytes.ok_or_else(|| WorkspaceError::TooLarge { path: path.clone(), size: seen.size, limit })
}

fn conflict_error(path: &RelPath, expected: Option<ContentHash>, found: ActualState) -> WorkspaceError {
    WorkspaceError::Conflict { path: path.clone(), expected, found }
}

fn check_expected(
    path: &RelPath,
    state: Option<&FileState>,
    expected: ExpectedState,
) -> Result<(), WorkspaceError> {
    let there = match state {
        None => ActualState::Nothing,
        Some(FileState { kind: FileKind::File, hash: Some(hash), size, .. }) => {
            ActualState::Content { hash: *hash, size: *size }
        }
        Some(_) => ActualState::Other,
    };
    match (expected, &there) {
        (ExpectedState::Anything, _) | (ExpectedState::Absent, ActualState::Nothing) => Ok(()),
        (ExpectedState::Hash(wanted), ActualState::Content { hash, .. }) if wanted == *hash => Ok(()),
        (ExpectedState::Absent, _) => Err(conflict_error(path, None, there)),
        (ExpectedState::Hash(wanted), _) => Err(conflict_error(path, Some(wanted), there)),
    }
}
