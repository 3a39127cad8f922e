//! Opens a project, or a throw-away copy, for one command.
//!
//! The command belongs to no session, so it gets a temporary state directory.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_policy::GUARD_RULES;
use journeyman_protocol::{FileChange, GuardViolation, RelPath, SessionId};
use journeyman_sandbox::{ProjectCopy, Sandbox};
use journeyman_store::Blobs;
use journeyman_workspace::{
    Clock, CopyTools, ForbiddenChanges, GuardedState, HardLinks, IsolatedCopy, IsolationTier, Options,
    Workspace, remove_tree, remove_trees_of_ended_processes,
};

use crate::sessions::new_session_id;
use crate::state::{StateDirs, now, standard_output_files};
use crate::{Context as _, HostError};

/// Maximum size of the contents that are kept while the command runs, in bytes.
const MAX_KEPT_CONTENT_BYTES: u64 = 1024 * 1024 * 1024;

/// The access of a command to its project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandAccess {
    /// It writes the project.
    Direct,
    /// It only reads the project.
    ReadOnly,
    /// It writes a throw-away copy.
    Overlay,
}

/// The project, or a copy of the project, that one command runs in. Dropping the value removes the
/// command's state.
pub(super) struct CommandProject {
    workspace: Workspace,
    /// `None` for a command that can't write.
    guard: Option<GuardedState>,
    /// Files with hard links out of the project.
    linked: Vec<RelPath>,
    copy: Option<(SessionId, IsolatedCopy)>,
    _state: CommandStateDir,
}

/// The effect of a command on its project.
pub struct CommandEffect {
    /// The changes in its copy, if it had one.
    pub changes: Option<Vec<FileChange>>,
    /// The changes that no command may make, and what became of them.
    pub violations: Vec<GuardViolation>,
    /// Why the violations are not all known or repaired.
    pub problem: Option<String>,
}

/// The state directory of one command.
struct CommandStateDir(PathBuf);

impl CommandStateDir {
    fn create(dirs: &StateDirs) -> Result<Self, HostError> {
        let all = dirs.dir.join("exec");
        remove_trees_of_ended_processes(&all);
        let path = all.join(format!("{}-{:x}", std::process::id(), fastrand::u64(..)));
        DirBuilder::new().recursive(true).mode(0o700).create(&path).context("a directory for the command")?;
        Ok(Self(path))
    }
}

impl Drop for CommandStateDir {
    fn drop(&mut self) {
        // The next command sweeps what can't be removed now.
        remove_tree(&self.0).ok();
    }
}

impl CommandProject {
    /// Opens the project at `root` for one command.
    pub(super) fn open(
        dirs: &StateDirs,
        root: &Path,
        sandbox: &Arc<Sandbox>,
        access: CommandAccess,
        tiers: &[IsolationTier],
    ) -> Result<Self, HostError> {
        let (overlay, read_only) = (access == CommandAccess::Overlay, access == CommandAccess::ReadOnly);
        let state = CommandStateDir::create(dirs)?;
        let blobs = Arc::new(
            Blobs::open(&state.0.join("blobs"), MAX_KEPT_CONTENT_BYTES).context("a place for contents")?,
        );
        let options = Options {
            own_dir: Some(dirs.dir.clone()),
            own_files: standard_output_files(),
            clock: Some(Clock::new(now)),
            removed_dir: Some(dirs.project_dir(root).join("removed")),
            ..Options::new(state.0.join("project"), blobs)
        };
        let workspace = Workspace::open(root, options).context("the project")?;
        let guard = (!read_only).then(|| GuardedState::capture(&workspace, GUARD_RULES));
        let guard = guard.transpose().context("looking for what a command may not change")?;
        let linked = if overlay || read_only {
            HardLinks::default()
        } else {
            workspace.command_observer().find_hard_links().context("the project")?
        };
        let copy = overlay.then(|| {
            let session = new_session_id();
            let tiers = if tiers.is_empty() { IsolationTier::ALL.to_vec() } else { tiers.to_vec() };
            let means = CopyTools { sandbox, git: None, tiers: &tiers, max_copied_files: usize::MAX };
            let copy = workspace.copies().create(&session, &means).context("a throw-away copy")?;
            Ok::<_, HostError>((session, copy))
        });
        let copy = copy.transpose()?;
        let linked = linked.paths().cloned().collect();
        Ok(Self { workspace, guard, linked, copy, _state: state })
    }

    /// Returns the tree that the command sees in place of the project, if there is one.
    pub(super) fn project_copy(&self) -> Option<ProjectCopy> {
        self.copy.as_ref().and_then(|(_, copy)| copy.workspace().project_copy())
    }

    /// Returns the paths that the command may not change.
    pub(super) fn protected_paths(&self) -> &[RelPath] {
        self.guard.as_ref().map_or(&[], GuardedState::protected_paths)
    }

    /// Returns the paths that are read-only because writing there would change files outside of the
    /// project.
    pub(super) fn linked_paths(&self) -> &[RelPath] {
        &self.linked
    }

    /// Ends the command and returns its effect; a copy is discarded. New files that programs
    /// outside of the sandbox obey are moved away, and changed ones are put back. `kept` says that
    /// the sandbox protected these paths.
    pub(super) fn close(self, kept: bool) -> Result<CommandEffect, HostError> {
        let Some((session, copy)) = self.copy else {
            let ended =
                self.guard.map(|guard| guard.revert_and_journal(&self.workspace, kept, || Ok(Vec::new())).1);
            let ForbiddenChanges { violations, problem } = ended.unwrap_or_default();
            return Ok(CommandEffect { changes: None, violations, problem });
        };
        let changes = self.workspace.landings().changes(&copy).context("what the command changed")?;
        drop(copy);
        self.workspace.copies().discard(&session).context("the throw-away copy")?;
        Ok(CommandEffect { changes: Some(changes.files()), violations: Vec::new(), problem: None })
    }
}
