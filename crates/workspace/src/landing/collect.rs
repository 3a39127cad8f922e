//! The differences of a copy to the tree it was made from.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use journeyman_protocol::{ContentHash, RelPath, SessionId};
use journeyman_store::Durability;

use crate::contents::store::BlobCondition;
use crate::copies::info::CopyInfo;
use crate::copies::isolated::IsolatedCopy;
use crate::error::{WorkspaceError, io_error};
use crate::files::root_dir::{LinkPolicy, read_up_to};
use crate::files::stat::FileStat;
use crate::journal::history::History;
use crate::journal::record::ChangeCause;
use crate::landing::changes::{CopyChange, CopyChanges};
use crate::landing::contested::ContestedFiles;
use crate::landing::large_files::LargeFiles;
use crate::landing::merge::is_same;
use crate::landing::refusals::LandingFilter;
use crate::landing::{Landings, contested, stored_changes};
use crate::snapshot::compare::{dir_records, drop_rule_changes};
use crate::snapshot::differences::{Difference, diff_trees, directories_only_in};
use crate::snapshot::entry::{FileKind, FileState, TreeEntry};
use crate::snapshot::file_observation::observe_file;
use crate::snapshot::own_changes::is_own_change;
use crate::snapshot::tree::Tree;
use crate::workspace::Workspace;
use journeyman_ignore_rules::is_git_directory_name;

impl Landings<'_> {
    /// Returns the changes in a copy of this tree. Ignored files count where an edit, not a
    /// command, changed them. The answer is kept beside the copy: see [`Landings::stored_changes`].
    ///
    /// Files over [`kept_file_bytes`](crate::limits::Limits::kept_file_bytes) are no blobs; as far
    /// as there is room, they are copied to lie beside the copy.
    ///
    /// # Errors
    /// As [`ProjectHistory::changes_since`](crate::ProjectHistory::changes_since);
    /// [`WorkspaceError::Raced`] when the copy is being changed; [`WorkspaceError::State`].
    pub fn changes(&self, copy: &IsolatedCopy) -> Result<CopyChanges, WorkspaceError> {
        self.changes_in_workspace(copy.workspace(), copy.info())
    }

    /// Returns the changes in any workspace that was equal to this one at the base.
    ///
    /// # Errors
    /// As [`Landings::changes`].
    #[doc(hidden)]
    pub fn changes_in_workspace(
        &self,
        copy: &Workspace,
        info: &CopyInfo,
    ) -> Result<CopyChanges, WorkspaceError> {
        // Until they are written down beside the copy, nothing says that the contents are needed.
        let _using = self.workspace.project.blob_store.blobs().lock_for_use()?;
        let base = self.workspace.transactions.load_checkpoint_tree(&info.base)?;
        let now = copy.snapshots.snapshot_after_command(&base, false)?;
        let compared = ComparedCopy { user: self.workspace, copy, base: &base, now: &now };
        let mut found = drop_rule_changes(copy.project.compare_inputs(), &base, diff_trees(&base, &now))?;
        // Between two directories signatures tell nothing.
        found.retain(|difference| !is_uncertain(difference));
        compared.add_unkept(&mut found)?;
        compared.add_edited(&mut found)?;
        compared.compare_contested(
            &mut found,
            contested::read_contested(&self.workspace.project.copy_dir(&info.session))?,
        )?;
        let mounted = copy.project_copy();
        let is_own = |path: &RelPath| is_own_change(mounted.as_ref(), path);
        found.retain(|difference| {
            !difference.path.components().any(is_git_directory_name) && is_own(&difference.path)
        });
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut large = LargeFiles::of(&self.workspace.project.copy_dir(&info.session));
        for difference in &mut found {
            compared.keep(difference, &mut large)?;
        }
        large.remove_unwanted()?;
        copy.project.blob_store.sync()?;
        self.workspace.project.blob_store.sync()?;
        let (mut made, mut removed) = (directories_only_in(&now, &base), directories_only_in(&base, &now));
        for dirs in [&mut made, &mut removed] {
            dirs.retain(|dir| RelPath::parse(&dir.path).is_ok_and(|path| is_own(&path)));
        }
        let made = dir_records(&copy.project.root_dir, &made, true);
        let objections = match LandingFilter::of(self.workspace) {
            Some(filter) => {
                let dirs: Vec<RelPath> = made.iter().map(|dir| dir.path.clone()).collect();
                filter.refusals(copy, &found, &dirs)?
            }
            None => Vec::new(),
        };
        let changes = CopyChanges {
            session: info.session.clone(),
            base: info.base,
            files: with_renames(found),
            made,
            objections,
            removed: dir_records(&copy.project.root_dir, &removed, false),
        };
        stored_changes::write_changes(&self.workspace.project.copy_dir(&changes.session), &changes)?;
        Ok(changes)
    }

    /// Returns the last result of [`Landings::changes`] for the copy of a session, as long as
    /// nobody opened the copy since; nothing of the copy is looked at. `None` where that isn't
    /// known, or what was written down is damaged: the copy itself tells.
    ///
    /// # Errors
    /// [`WorkspaceError::State`].
    pub fn stored_changes(&self, session: &SessionId) -> Result<Option<CopyChanges>, WorkspaceError> {
        stored_changes::read_changes(&self.workspace.project.copy_dir(session), session)
    }

    /// Forgets them: the copy is about to be changed.
    pub(crate) fn forget_changes(&self, session: &SessionId) -> Result<(), WorkspaceError> {
        stored_changes::remove_changes(&self.workspace.project.copy_dir(session))
    }
}

/// A copy beside the tree it was made from.
struct ComparedCopy<'a> {
    user: &'a Workspace,
    copy: &'a Workspace,
    base: &'a Tree,
    now: &'a Tree,
}

impl ComparedCopy<'_> {
    /// Adds what only contents can tell: files of the same size that were too large to be kept with
    /// a hash. The base has no signatures, so that the user's tree speaks for it. A file that
    /// differs there was changed on one of both sides, and landing it has to ask.
    fn add_unkept(&self, found: &mut Vec<Difference>) -> Result<(), WorkspaceError> {
        let known = paths_of(found);
        let before: HashMap<&[u8], &TreeEntry> =
            self.base.entries.iter().map(|entry| (entry.path.as_slice(), entry)).collect();
        for entry in &self.now.entries {
            let Some(known_before) = before.get(entry.path.as_slice()) else { continue };
            let (before, after) = (known_before.state(), entry.state());
            if before.hash.is_some() && after.hash.is_some() || known.contains(entry.path.as_slice()) {
                continue;
            }
            let Ok(path) = RelPath::parse(&entry.path) else { continue };
            let here = self.user.project.root_dir.stat(&path).ok().flatten();
            // An overlay shows a file that nobody changed as it is, down to its inode and the time
            // it changed last.
            let signature = |seen: &FileStat| (seen.ino, seen.size, seen.mtime, seen.ctime);
            let untouched = [here.as_ref(), Some(&known_before.seen)];
            if untouched.into_iter().flatten().any(|seen| signature(seen) == signature(&entry.seen)) {
                continue;
            }
            let (Some(here), Some(there)) = (state_at(self.user, &path)?, state_at(self.copy, &path)?) else {
                continue;
            };
            if here.hash != there.hash {
                found.push(Difference { path, before: Some(before), after: Some(there) });
            }
        }
        Ok(())
    }

    /// Adds ignored files that edits changed, and the states that edits recorded of files whose
    /// earlier content the base doesn't have.
    fn add_edited(&self, found: &mut Vec<Difference>) -> Result<(), WorkspaceError> {
        let mut first: BTreeMap<RelPath, Option<FileState>> = BTreeMap::new();
        let history = History::new(self.copy.project.journal().lines()?);
        for record in history.into_changes().into_iter().filter(|record| record.cause == ChangeCause::Edit) {
            for file in record.files {
                first.entry(file.path).or_insert(file.before);
            }
        }
        for difference in found.iter_mut() {
            if let Some(before) = &mut difference.before
                && before.hash.is_none()
                && let Some(Some(edited)) = first.get(&difference.path)
                && edited.size == before.size
            {
                before.hash = edited.hash;
            }
        }
        let known = paths_of(found);
        let in_base: HashSet<&[u8]> = self.base.entries.iter().map(|entry| entry.path.as_slice()).collect();
        let mut edited = Vec::new();
        for (path, before) in first {
            if known.contains(path.as_bytes()) || in_base.contains(path.as_bytes()) {
                continue;
            }
            let after = state_at(self.copy, &path)?;
            if !is_same(before.as_ref(), after.as_ref()) {
                edited.push(Difference { path, before, after });
            }
        }
        found.extend(edited);
        Ok(())
    }

    /// Compares files that both sides changed before a refresh with what they were then.
    fn compare_contested(
        &self,
        found: &mut Vec<Difference>,
        contested: ContestedFiles,
    ) -> Result<(), WorkspaceError> {
        if contested.is_empty() {
            return Ok(());
        }
        found.retain(|difference| !contested.contains_key(&difference.path));
        for (path, before) in contested {
            let after = state_at(self.copy, &path)?;
            if !is_same(before.as_ref(), after.as_ref()) {
                found.push(Difference { path, before, after });
            }
        }
        Ok(())
    }

    /// Puts the content among the tree's own; what is too large for that is hashed, and kept beside
    /// the copy.
    fn keep(&self, difference: &mut Difference, large: &mut LargeFiles) -> Result<(), WorkspaceError> {
        let path = &difference.path;
        let Some(after) = &mut difference.after else { return Ok(()) };
        if let Some(hash) = after.hash
            && self.user.project.blob_store.verify(&hash)? == BlobCondition::Whole
        {
            return Ok(());
        }
        let raced = || WorkspaceError::Raced { path: path.clone() };
        let most = self.user.project.limits().kept_file_bytes;
        if after.hash.is_none() || after.size > most {
            // What can't be read has no hash, and landing it will say so.
            let Some(there) = state_at(self.copy, path)? else { return Ok(()) };
            *after = there;
        }
        let Some(hash) = after.hash else { return Ok(()) };
        if after.size > most {
            // With the content in place already, only the mode can be to land.
            let here = state_at(self.user, path)?.and_then(|here| here.hash);
            return if here == Some(hash) {
                Ok(())
            } else {
                large.keep(&self.copy.project.root_dir, path, after)
            };
        }
        let bytes = match self.copy.project.blob_store.get(&hash)? {
            Some(bytes) => bytes,
            None => self.read(path, after)?,
        };
        if ContentHash::of(&bytes) != hash {
            return Err(raced());
        }
        self.user.project.blob_store.put(&bytes, Durability::Later)?;
        Ok(())
    }

    fn read(&self, path: &RelPath, state: &FileState) -> Result<Vec<u8>, WorkspaceError> {
        let root_dir = &self.copy.project.root_dir;
        if state.kind == FileKind::Link {
            return root_dir.read_link(path).map_err(|errno| root_dir.error_for("read", path, errno));
        }
        let (file, seen) = root_dir.open_file(path, LinkPolicy::Refuse)?;
        let bytes =
            read_up_to(&file, seen.size, state.size).map_err(|source| io_error("read", path, source))?;
        bytes.ok_or_else(|| WorkspaceError::Raced { path: path.clone() })
    }
}

/// Returns true if only a signature says that the file differs.
fn is_uncertain(difference: &Difference) -> bool {
    match (&difference.before, &difference.after) {
        (Some(before), Some(after)) => before.has_same_content(after) && before.mode == after.mode,
        _ => false,
    }
}

fn paths_of(found: &[Difference]) -> HashSet<Vec<u8>> {
    found.iter().map(|difference| difference.path.as_bytes().to_vec()).collect()
}

/// Returns the file's state, hashed whatever its size; `None` if there is no readable file.
fn state_at(workspace: &Workspace, path: &RelPath) -> Result<Option<FileState>, WorkspaceError> {
    match observe_file(&workspace.project.root_dir, path) {
        Ok(found) => Ok(found.map(|(state, _)| state)),
        Err(
            WorkspaceError::NotAFile { .. } | WorkspaceError::NotFound { .. } | WorkspaceError::Denied { .. },
        ) => Ok(None),
        Err(other) => Err(other),
    }
}

pub(crate) fn with_renames(found: Vec<Difference>) -> Vec<CopyChange> {
    let mut renames: HashMap<RelPath, RelPath> =
        find_renames(&found).into_iter().map(|(from, to)| (to, from)).collect();
    let files = found.into_iter().map(|Difference { path, before, after }| {
        let from = renames.remove(&path);
        CopyChange { path, from, before, after }
    });
    files.collect()
}

/// Returns renames as (earlier, later) name: files that have the content and the permissions of one
/// that is gone. Each file is used at most once, and renames that keep the last component come
/// first. Empty files are left out.
pub(crate) fn find_renames(found: &[Difference]) -> Vec<(RelPath, RelPath)> {
    type FileSignature = (FileKind, u32, ContentHash);
    let nature = |state: &FileState| -> Option<FileSignature> {
        let hash = state.hash.filter(|_| state.size > 0)?;
        let mode = if state.kind == FileKind::Link { 0 } else { state.mode };
        Some((state.kind, mode, hash))
    };
    let key = |kind: FileKind, mode: u32, hash: ContentHash| (kind == FileKind::Link, mode, *hash.as_bytes());
    let mut gone: HashMap<_, VecDeque<&RelPath>> = HashMap::new();
    let mut made = Vec::new();
    for difference in found {
        match (&difference.before, &difference.after) {
            (Some(before), None) => {
                if let Some((kind, mode, hash)) = nature(before) {
                    gone.entry(key(kind, mode, hash)).or_default().push_back(&difference.path);
                }
            }
            (None, Some(after)) => {
                if let Some((kind, mode, hash)) = nature(after) {
                    made.push((key(kind, mode, hash), &difference.path));
                }
            }
            _ => {}
        }
    }
    let mut pairs = Vec::new();
    for keeps_name in [true, false] {
        made.retain(|(key, to)| {
            let Some(candidates) = gone.get_mut(key) else { return false };
            let at = candidates.iter().position(|from| !keeps_name || from.file_name() == to.file_name());
            match at.and_then(|at| candidates.remove(at)) {
                Some(from) => {
                    pairs.push((from.clone(), (*to).clone()));
                    false
                }
                None => true,
            }
        });
    }
    pairs.sort_unstable();
    pairs
}
