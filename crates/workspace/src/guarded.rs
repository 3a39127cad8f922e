//! What must stay as it is while a command runs, and what came that may not: repositories, and files that programs
//! outside the sandbox obey.

use std::path::PathBuf;

use journeyman_protocol::RelPath;
use journeyman_sandbox::{Repositories, at_top};

use crate::rules::is_git;
use crate::{TreeSnapshot, Workspace, WorkspaceError};

/// The project before a command, as far as it is guarded. Which paths are is the caller's to say.
#[derive(Debug)]
pub struct Guarded {
    repositories: Repositories,
    protected: Vec<RelPath>,
    /// Guarded names at the top, where ignore rules can hide what comes from the list of changes.
    top: Vec<RelPath>,
    is_guarded: fn(&RelPath) -> bool,
}

/// What a command did that it may not.
#[derive(Debug, Default)]
pub struct Trespass {
    /// Repositories that it made or replaced, and where they are now, or why they are still there.
    pub planted: Vec<(RelPath, Result<PathBuf, WorkspaceError>)>,
    /// Guarded names at the top that weren't there before, repositories left out.
    pub made: Vec<RelPath>,
}

impl Guarded {
    /// Looks at the tree before a command, as `tree` has it.
    #[must_use]
    pub fn before(workspace: &Workspace, tree: &TreeSnapshot, is_guarded: fn(&RelPath) -> bool) -> Self {
        let reach = workspace.reach();
        let repositories = Repositories::of(&reach, workspace.root(), tree.repositories());
        let top = at_top(&reach, is_guarded);
        let mut protected = repositories.protected();
        protected.extend(top.iter().cloned());
        protected.extend(workspace.own_directories());
        protected.sort();
        protected.dedup();
        Self { repositories, protected, top, is_guarded }
    }

    /// What must be read-only to the command.
    #[must_use]
    pub fn protected(&self) -> &[RelPath] {
        &self.protected
    }

    /// Moves away what was planted.
    ///
    /// # Errors
    /// As [`Workspace::repositories`].
    pub fn after(&self, workspace: &Workspace) -> Result<Trespass, WorkspaceError> {
        let planted = self.repositories.planted(workspace.repositories()?).into_iter().map(|path| {
            let place = workspace.remove_repository(&path);
            (path, place)
        });
        let planted = planted.filter(|(_, place)| !matches!(place, Err(WorkspaceError::NotFound { .. })));
        let planted = planted.collect();
        let mut made = at_top(&workspace.reach(), self.is_guarded);
        made.retain(|path| !self.top.contains(path) && !is_git(path.as_bytes()));
        Ok(Trespass { planted, made })
    }
}
