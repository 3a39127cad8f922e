//! A command's changes in its layer to files that no checkpoint covers, and how much of them can be
//! journaled.

use std::collections::{BTreeMap, HashSet};

use journeyman_protocol::{ContentHash, RelPath};

use crate::error::{WorkspaceError, io_error};
use crate::files::root_dir::{LinkPolicy, RootDir, read_up_to};
use crate::files::stat::FileStat;
use crate::journal::record::DirRecord;
use crate::landing::plan::ExtraOperations;
use crate::preview::fingerprint::TreeFingerprint;
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::transaction::operation::{FileAfter, NewContent, Operation};
use crate::workspace::Workspace;

/// Maximum number of files outside of checkpoints that one transaction lands, the smallest first,
/// with their earlier content kept for an undo: settings, keys and small data are fewer; a build's
/// directory has more.
pub(crate) const MAX_JOURNALED_FILES: u64 = 1_000;
/// Maximum bytes of those files, old and new together.
const MAX_JOURNALED_BYTES: u64 = 64 * 1024 * 1024;

/// One thing that was done.
#[derive(Debug)]
pub(crate) struct UncoveredChange {
    pub(crate) path: RelPath,
    pub(crate) what: UncoveredKind,
    /// True if it goes through the journal.
    pub(crate) journaled: bool,
    /// True if it lies in a directory whose tool makes it again.
    pub(crate) remade: bool,
}

/// The kind of the file.
#[derive(Debug)]
pub(crate) enum UncoveredKind {
    Removed(FileStat),
    Replaced {
        old: FileStat,
        new: FileStat,
    },
    Added(FileStat),
    /// A whole directory of the tree is hidden.
    RemovedTree(DirTotals),
    /// A whole directory is in the layer alone.
    AddedTree(DirTotals),
}

/// The contents of a directory.
#[derive(Debug, Default)]
pub(crate) struct DirTotals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// True if there are more than were counted.
    pub(crate) more: bool,
    /// The files, where they are few enough to be journaled.
    pub(crate) list: Vec<(RelPath, FileStat)>,
    /// The directories, the outermost first, where the files are listed.
    pub(crate) dirs: Vec<DirRecord>,
    /// True if something in it is too large to be kept, or neither a file nor a link.
    pub(crate) odd: bool,
    /// The fingerprint of a directory in the tree.
    pub(crate) print: Option<TreeFingerprint>,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct UncoveredChanges {
    pub(crate) changes: Vec<UncoveredChange>,
    pub(crate) objections: Vec<(RelPath, String)>,
    pub(crate) left_out: Vec<RelPath>,
}

impl UncoveredKind {
    fn old_totals(&self) -> (u64, u64) {
        match self {
            Self::Removed(seen) | Self::Replaced { old: seen, .. } => (1, seen.size),
            Self::RemovedTree(tally) => (tally.files, tally.bytes),
            Self::Added(_) | Self::AddedTree(_) => (0, 0),
        }
    }

    fn journal_cost(&self) -> (u64, u64) {
        match self {
            Self::Removed(seen) | Self::Added(seen) => (1, seen.size),
            Self::Replaced { old, new } => (1, old.size.saturating_add(new.size)),
            Self::RemovedTree(tally) | Self::AddedTree(tally) => (tally.files, tally.bytes),
        }
    }

    /// Returns true if the journal can hold it, whatever else it holds.
    fn fits_journal(&self, most: u64) -> bool {
        let plain = |seen: &FileStat| (seen.is_file() || seen.is_link()) && seen.size <= most;
        match self {
            Self::Removed(seen) | Self::Added(seen) => plain(seen),
            Self::Replaced { old, new } => plain(old) && plain(new),
            Self::RemovedTree(tally) | Self::AddedTree(tally) => {
                !tally.more && !tally.odd && tally.list.len() as u64 == tally.files
            }
        }
    }
}

impl UncoveredChanges {
    /// Chooses what is journaled: the smallest first, as far as there is room. Of a directory that
    /// another one took the place of, both or neither.
    pub(crate) fn choose_journaled(&mut self, kept_file_bytes: u64) {
        self.changes.sort_by(|one, other| one.path.cmp(&other.path));
        let mut units: BTreeMap<RelPath, (bool, u64, u64, Vec<usize>)> = BTreeMap::new();
        for (at, change) in self.changes.iter().enumerate() {
            let (files, bytes) = change.what.journal_cost();
            let unit = units.entry(change.path.clone()).or_insert((true, 0, 0, Vec::new()));
            unit.0 &= change.what.fits_journal(kept_file_bytes);
            unit.1 = unit.1.saturating_add(files);
            unit.2 = unit.2.saturating_add(bytes);
            unit.3.push(at);
        }
        let mut units: Vec<_> = units.into_values().filter(|(fits, ..)| *fits).collect();
        units.sort_by_key(|(_, files, bytes, _)| (*bytes, *files));
        let (mut files_left, mut bytes_left) = (MAX_JOURNALED_FILES, MAX_JOURNALED_BYTES);
        for (_, files, bytes, places) in units {
            let room = files_left.checked_sub(files).zip(bytes_left.checked_sub(bytes));
            let Some((files, bytes)) = room else { continue };
            (files_left, bytes_left) = (files, bytes);
            for at in places {
                if let Some(change) = self.changes.get_mut(at) {
                    change.journaled = true;
                }
            }
        }
    }

    pub(crate) fn destructive_changes(&self) -> Vec<DestructiveChange> {
        let placed = |change: &UncoveredChange| {
            matches!(change.what, UncoveredKind::Added(_) | UncoveredKind::AddedTree(_))
        };
        let placed: HashSet<&RelPath> =
            self.changes.iter().filter(|change| placed(change)).map(|change| &change.path).collect();
        let mut losses = Vec::new();
        for change in &self.changes {
            let (files, bytes) = change.what.old_totals();
            let replaced =
                matches!(change.what, UncoveredKind::Replaced { .. }) || placed.contains(&change.path);
            let directory = matches!(change.what, UncoveredKind::RemovedTree(_));
            // What a build writes over, the next one writes again.
            if files == 0 || (change.remade && replaced && !directory) {
                continue;
            }
            let more = matches!(&change.what, UncoveredKind::RemovedTree(tally) if tally.more);
            let undoable = change.journaled;
            losses.push(DestructiveChange {
                path: change.path.clone(),
                files,
                bytes,
                directory,
                replaced,
                undoable,
                more,
            });
        }
        losses
    }

    /// Returns the part of it that goes through the journal, as the tree is now; or which files
    /// aren't as they were when they were looked at.
    #[allow(clippy::type_complexity)]
    pub(crate) fn journaled_operations(
        &self,
        user: &Workspace,
        upper: &RootDir,
    ) -> Result<Result<ExtraOperations, Vec<(RelPath, String)>>, WorkspaceError> {
        let mut wanted: BTreeMap<RelPath, (Option<FileStat>, Option<FileStat>)> = BTreeMap::new();
        let mut besides = ExtraOperations::default();
        for change in self.changes.iter().filter(|change| change.journaled) {
            let mut want = |path: &RelPath, old: Option<FileStat>, new: Option<FileStat>| {
                let entry = wanted.entry(path.clone()).or_default();
                entry.0 = entry.0.or(old);
                entry.1 = entry.1.or(new);
            };
            match &change.what {
                UncoveredKind::Removed(old) => want(&change.path, Some(*old), None),
                UncoveredKind::Replaced { old, new } => want(&change.path, Some(*old), Some(*new)),
                UncoveredKind::Added(new) => want(&change.path, None, Some(*new)),
                UncoveredKind::RemovedTree(tally) => {
                    tally.list.iter().for_each(|(path, old)| want(path, Some(*old), None));
                    besides.remove.extend(tally.dirs.iter().cloned());
                }
                UncoveredKind::AddedTree(tally) => {
                    tally.list.iter().for_each(|(path, new)| want(path, None, Some(*new)));
                    besides.make.extend(tally.dirs.iter().cloned());
                }
            }
        }
        let mut left = Vec::new();
        for (path, (old, new)) in wanted {
            let now = match observe_file(&user.project.root_dir, &path) {
                Err(WorkspaceError::NotFound { .. }) => None,
                other => other?,
            };
            let same = match (&old, &now) {
                (None, None) => true,
                (Some(old), Some((_, seen))) => old.has_same_content(seen),
                _ => false,
            };
            if !same {
                left.push((path, "it was changed here meanwhile".to_owned()));
                continue;
            }
            let after = new.map(|new| layer_file(upper, &path, &new)).transpose()?;
            besides.operations.push(Operation { path, before: now, after });
        }
        let placed: HashSet<RelPath> = besides
            .operations
            .iter()
            .filter(|operation| operation.after.is_some())
            .flat_map(|operation| std::iter::successors(operation.path.parent(), RelPath::parent))
            .chain(besides.make.iter().map(|dir| dir.path.clone()))
            .collect();
        besides.remove.retain(|dir| !placed.contains(&dir.path));
        Ok(if left.is_empty() { Ok(besides) } else { Err(left) })
    }
}

/// Returns a file of the layer in the form that a transaction takes.
fn layer_file(upper: &RootDir, path: &RelPath, new: &FileStat) -> Result<FileAfter, WorkspaceError> {
    let (kind, bytes, mode) = if new.is_link() {
        (FileKind::Link, upper.read_link(path).map_err(|errno| upper.error_for("read", path, errno))?, 0o777)
    } else {
        let (file, seen) = upper.open_file(path, LinkPolicy::Refuse)?;
        let read = read_up_to(&file, seen.size, new.size).map_err(|source| io_error("read", path, source))?;
        let bytes = read.ok_or_else(|| WorkspaceError::Raced { path: path.clone() })?;
        (FileKind::File, bytes, seen.permissions())
    };
    let state = FileState { kind, mode, size: bytes.len() as u64, hash: Some(ContentHash::of(&bytes)) };
    Ok(FileAfter { state, source: NewContent::Bytes(bytes), mode: Some(mode), executable: false, like: None })
}

/// A path that a command would delete or replace for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestructiveChange {
    /// The file or the directory.
    pub path: RelPath,
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// True if it is a directory with all that is in it.
    pub directory: bool,
    /// True if something else takes its place.
    pub replaced: bool,
    /// True if undoing brings it back all the same: it is small enough to be kept.
    pub undoable: bool,
    /// True if there are more files than were counted.
    pub more: bool,
}
