//! The meaning of a difference between two snapshots: whose it is, and whether it is one.

use std::collections::HashMap;

use journeyman_protocol::{FileChange, RelPath, SessionId};

use crate::contents::store::BlobStore;
use crate::error::WorkspaceError;
use crate::files::paths::last_component;
use crate::files::root_dir::{LinkPolicy, RootDir, read_up_to};
use crate::journal::history::History;
use crate::journal::record::{ChangeRecord, DirModeRecord, DirRecord, FileRecord, JournalLine};
use crate::limits::MAX_IGNORE_FILE_BYTES;
use crate::rules::{FixedRules, RuleCache};
use crate::snapshot::differences::{Difference, change_kind};
use crate::snapshot::entry::WalkedDir;
use crate::snapshot::entry::{EntryContent, FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::snapshot::tree::Tree;
use journeyman_ignore_rules::{RULE_FILES, is_rule_file};

/// The input of a comparison.
#[derive(Clone, Copy)]
pub(crate) struct CompareInputs<'a> {
    pub(crate) root_dir: &'a RootDir,
    pub(crate) blob_store: &'a BlobStore,
    pub(crate) rules: &'a RuleCache,
}

/// Drops what only looks like a difference because ignore rules changed: a file that is out of
/// sight now and still there wasn't deleted, and one that was out of sight before wasn't added.
/// Taking such an `addition` back would delete a file that nobody made.
pub(crate) fn drop_rule_changes(
    inputs: CompareInputs<'_>,
    before: &Tree,
    found: Vec<Difference>,
) -> Result<Vec<Difference>, WorkspaceError> {
    let mut rules = None;
    if found.iter().any(|difference| is_rule_file(difference.path.file_name())) {
        rules = Some(old_rules(inputs, before)?);
    }
    let mut kept = Vec::with_capacity(found.len());
    for mut difference in found {
        // One checkpoint may be of a time when the file wasn't ours.
        if inputs.rules.is_own_file(&difference.path) {
            continue;
        }
        match (&difference.before, &difference.after) {
            (None, Some(_))
                if rules.as_ref().is_some_and(|rules| rules.is_ignored(difference.path.as_bytes())) => {}
            (Some(before), None) => {
                let now = match observe_file(inputs.root_dir, &difference.path) {
                    Ok(now) => now.map(|(state, _)| state),
                    // A directory or a pipe has taken its place: the file is gone.
                    Err(WorkspaceError::NotAFile { .. } | WorkspaceError::NotFound { .. }) => None,
                    Err(WorkspaceError::Denied { .. }) => unreadable_state(inputs.root_dir, &difference.path),
                    Err(other) => return Err(other),
                };
                match now {
                    Some(now) if now.has_same_content(before) && now.mode == before.mode => {}
                    now => {
                        difference.after = now;
                        kept.push(difference);
                    }
                }
            }
            _ => kept.push(difference),
        }
    }
    Ok(kept)
}

/// Drops differences caused by changed ignore rules between two earlier trees, whose own ignore
/// rules are used.
pub(crate) fn drop_rule_changes_between(
    inputs: CompareInputs<'_>,
    before: &Tree,
    after: &Tree,
    mut found: Vec<Difference>,
) -> Result<Vec<Difference>, WorkspaceError> {
    if found.iter().any(|difference| is_rule_file(difference.path.file_name())) {
        let (old, new) = (old_rules(inputs, before)?, old_rules(inputs, after)?);
        found.retain(|difference| match (&difference.before, &difference.after) {
            (None, Some(_)) => !old.is_ignored(difference.path.as_bytes()),
            (Some(_), None) => !new.is_ignored(difference.path.as_bytes()),
            _ => true,
        });
    }
    Ok(found)
}

/// Returns the state of a file that can't be read.
fn unreadable_state(root_dir: &RootDir, path: &RelPath) -> Option<FileState> {
    let seen = root_dir.stat(path).ok().flatten().filter(crate::files::stat::FileStat::is_file)?;
    Some(FileState { kind: FileKind::File, mode: seen.permissions(), size: seen.size, hash: None })
}

/// Returns true if ignore rules cover the file as they are now. Rules that can't be read cover
/// nothing.
pub(crate) fn is_ignored_now(inputs: CompareInputs<'_>, path: &RelPath) -> bool {
    let above = std::iter::successors(path.parent(), RelPath::parent);
    let rule_files = above.map(Some).chain([None]).flat_map(|dir| {
        RULE_FILES.into_iter().filter_map(move |name| match &dir {
            Some(dir) => dir.join(name).ok(),
            None => RelPath::parse(name).ok(),
        })
    });
    let texts = rule_files.filter_map(|path| {
        let (file, seen) = inputs.root_dir.open_file(&path, LinkPolicy::Refuse).ok()?;
        Some((path.as_bytes().to_vec(), read_up_to(&file, seen.size, MAX_IGNORE_FILE_BYTES).ok()??))
    });
    let texts: Vec<_> = texts.collect();
    FixedRules::new(&texts, inputs.rules.outer_rules(inputs.root_dir.path())).is_ignored(path.as_bytes())
}

fn old_rules(inputs: CompareInputs<'_>, before: &Tree) -> Result<FixedRules, WorkspaceError> {
    let mut files = Vec::new();
    for entry in before.entries.iter().filter(|entry| is_rule_file(last_component(&entry.path))) {
        if let EntryContent::Hashed { hash, .. } = entry.content {
            let text = inputs.blob_store.get(&hash)?.unwrap_or_default();
            files.push((entry.path.clone(), text));
        }
    }
    Ok(FixedRules::new(&files, inputs.rules.outer_rules(inputs.root_dir.path())))
}

/// The changes journaled since a command began, by anybody.
pub(crate) struct JournaledChanges {
    records: Vec<ChangeRecord>,
}

impl JournaledChanges {
    pub(crate) fn of(lines: Vec<JournalLine>) -> Self {
        Self { records: History::new(lines).into_changes() }
    }

    /// Removes the journaled changes from the differences.
    pub(crate) fn remove_from(&self, found: Vec<Difference>) -> Vec<Difference> {
        let files = self.records.iter().flat_map(|record| &record.files);
        let theirs: HashMap<&RelPath, Option<FileState>> =
            files.map(|file| (&file.path, file.after)).collect();
        let adjusted = found.into_iter().filter_map(|mut difference| {
            // Whatever nobody else journaled differs: of what is too large to be hashed the size
            // may be the same.
            if let Some(left) = theirs.get(&difference.path) {
                difference.before = left.map(|left| match (left.mode, difference.after) {
                    // The journal doesn't know the mode of a new file; what it has now is as good.
                    (0, Some(now)) if left.kind == FileKind::File => FileState { mode: now.mode, ..left },
                    _ => left,
                });
                let same = match (&difference.before, &difference.after) {
                    (None, None) => true,
                    (Some(before), Some(after)) => {
                        before.has_same_content(after) && before.mode == after.mode
                    }
                    _ => false,
                };
                if same {
                    return None;
                }
            }
            Some(difference)
        });
        adjusted.collect()
    }

    /// Removes directories that the journal has as made (or removed) since from those that exist
    /// now (or don't).
    pub(crate) fn without_dirs(&self, dirs: Vec<DirRecord>, there: bool) -> Vec<DirRecord> {
        let mut theirs: HashMap<&RelPath, bool> = HashMap::new();
        for record in &self.records {
            theirs.extend(record.removed.iter().chain(&record.cleared).map(|dir| (&dir.path, false)));
            theirs.extend(record.made.iter().map(|dir| (&dir.path, true)));
        }
        dirs.into_iter().filter(|dir| theirs.get(&dir.path) != Some(&there)).collect()
    }

    /// Removes permissions of directories that the journal has as set since from those that differ.
    pub(crate) fn without_modes(&self, modes: Vec<DirModeRecord>) -> Vec<DirModeRecord> {
        let records = self.records.iter().flat_map(|record| &record.modes);
        let theirs: HashMap<&RelPath, u32> = records.map(|dir| (&dir.path, dir.after)).collect();
        let adjusted = modes.into_iter().map(|dir| {
            let before = theirs.get(&dir.path).copied().unwrap_or(dir.before);
            DirModeRecord { before, ..dir }
        });
        adjusted.filter(|dir| dir.before != dir.after).collect()
    }

    /// Returns changes that other sessions journaled and that this session may have made as well.
    pub(crate) fn changes_by_other_sessions(&self, session: &SessionId) -> Vec<FileChange> {
        let beside = self.records.iter().filter(|record| record.beside.contains(session));
        let files = beside.flat_map(|record| &record.files);
        let kind = |file: &FileRecord| change_kind(file.before.is_some(), file.after.is_some());
        let files = files.map(|file| FileChange { path: file.path.clone(), kind: kind(file) });
        let modes = self.records.iter().filter(|record| record.beside.contains(session));
        files.chain(modes.flat_map(|record| &record.modes).map(DirModeRecord::file_change)).collect()
    }
}

/// Returns the directories of both trees whose permissions differ, sorted.
pub(crate) fn mode_records(before: &Tree, after: &Tree) -> Vec<DirModeRecord> {
    let then: HashMap<&[u8], u32> =
        before.dirs.iter().map(|dir| (dir.path.as_slice(), dir.permissions)).collect();
    let changed = after.dirs.iter().filter_map(|dir| {
        let before = *then.get(dir.path.as_slice())?;
        let path = RelPath::parse(&dir.path).ok().filter(|_| before != dir.permissions)?;
        Some(DirModeRecord { path, before, after: dir.permissions })
    });
    let mut changed: Vec<DirModeRecord> = changed.collect();
    changed.sort_by(|one, other| one.path.cmp(&other.path));
    changed
}

/// Returns the directories that exist (or don't) as a snapshot says; a directory that is merely
/// ignored now is left out.
pub(crate) fn dir_records(root_dir: &RootDir, dirs: &[WalkedDir], there: bool) -> Vec<DirRecord> {
    let paths = dirs.iter().filter_map(|dir| Some((RelPath::parse(&dir.path).ok()?, dir.permissions)));
    let records = paths.filter(|(path, _)| {
        match root_dir.stat(path) {
            Ok(seen) => seen.is_some_and(|seen| seen.is_dir()) == there,
            // The snapshot saw it, and an undo removes it only if it is empty.
            Err(_) => there,
        }
    });
    records.map(|(path, mode)| DirRecord { path, mode: Some(mode) }).collect()
}
