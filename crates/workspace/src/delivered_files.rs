//! Files that a session's work left and that are about to be committed.

use std::collections::{BTreeMap, HashSet};

use journeyman_protocol::{ContentHash, RelPath, SessionId};

use crate::checkpoints::ProjectHistory;
use crate::error::WorkspaceError;
use crate::snapshot::capture::ContentMode;
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::file_observation::observe_file;
use crate::workspace::Workspace;

/// The states of files as a session delivers them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredFiles {
    states: BTreeMap<RelPath, Option<FileState>>,
}

impl DeliveredFiles {
    /// Returns the files that `workspace` has otherwise by now, sorted.
    #[must_use]
    pub fn find_changed(&self, workspace: &Workspace) -> Vec<RelPath> {
        let is_changed = |path: &RelPath, state: &Option<FileState>| {
            let now = observe_file(&workspace.project.root_dir, path);
            now.map_or(true, |now| !is_delivered(state.as_ref(), now.map(|(now, _)| now).as_ref()))
        };
        let changed = self.states.iter().filter(|(path, state)| is_changed(path, state));
        changed.map(|(path, _)| path.clone()).collect()
    }
}

impl ProjectHistory<'_> {
    /// Returns the states of those of `paths` as the changes of `session` left them last. If the
    /// tree is still the `verified` one, they are those of the tree, whoever changed them.
    ///
    /// # Errors
    /// As [`ProjectHistory::tree_hash`].
    pub fn delivered_files(
        &self,
        session: &SessionId,
        paths: &[RelPath],
        verified: Option<&ContentHash>,
    ) -> Result<DeliveredFiles, WorkspaceError> {
        let mut states = BTreeMap::new();
        let now = self.workspace.snapshots.take_snapshot(ContentMode::Hashes, None)?;
        if verified == Some(&now.hash()) {
            for path in paths {
                let at = now.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path.as_bytes()));
                let entry = at.ok().and_then(|at| now.entries.get(at));
                states.insert(path.clone(), entry.map(|entry| entry.state()));
            }
            return Ok(DeliveredFiles { states });
        }
        let paths: HashSet<&RelPath> = paths.iter().collect();
        let changes = self.workspace.project.history()?.into_changes();
        let own = changes.into_iter().filter(|record| record.session == *session);
        for file in own.flat_map(|record| record.files).filter(|file| paths.contains(&file.path)) {
            states.insert(file.path, file.after);
        }
        Ok(DeliveredFiles { states })
    }
}

/// Returns true if a file is as it was delivered, as far as git tells files apart.
fn is_delivered(delivered: Option<&FileState>, now: Option<&FileState>) -> bool {
    let (Some(delivered), Some(now)) = (delivered, now) else { return delivered.is_none() && now.is_none() };
    // The journal doesn't know the permissions of a file that an edit made.
    let is_same_mode =
        delivered.kind == FileKind::Link || delivered.mode == 0 || delivered.mode & 0o100 == now.mode & 0o100;
    delivered.has_same_content(now) && is_same_mode
}
