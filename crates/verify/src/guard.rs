//! What a check may not leave behind: repositories, and files that programs outside the sandbox obey.

use journeyman_policy::is_guarded;
use journeyman_protocol::{Diagnostic, FileChange, RelPath, Severity};
use journeyman_sandbox::{Repositories, at_top};
use journeyman_workspace::{TreeSnapshot, Workspace, WorkspaceError};

/// Warnings of one check; who meets more has seen enough.
const MOST_WARNINGS: usize = 20;

/// The project before a check, as far as it is guarded.
pub(crate) struct Guard {
    repositories: Repositories,
    /// What must stay as it is while the check runs.
    pub(crate) protected: Vec<RelPath>,
}

impl Guard {
    pub(crate) fn before(workspace: &Workspace, tree: &TreeSnapshot) -> Self {
        let repositories = Repositories::of(&workspace.reach(), workspace.root(), tree.repositories());
        let mut protected = repositories.protected();
        protected.extend(at_top(&workspace.reach(), is_guarded));
        protected.extend(workspace.own_directories());
        protected.sort();
        protected.dedup();
        Self { repositories, protected }
    }

    /// Moves away what was planted, and says so.
    pub(crate) fn after(&self, workspace: &Workspace) -> Result<Vec<Diagnostic>, WorkspaceError> {
        let mut warnings = Vec::new();
        for path in self.repositories.planted(workspace.repositories()?) {
            let message = match workspace.remove_repository(&path) {
                Ok(place) => {
                    format!(
                        "a check may not create a repository here: {path} was moved to {}",
                        place.display()
                    )
                }
                Err(WorkspaceError::NotFound { .. }) => continue,
                Err(error) => format!(
                    "a check may not create a repository here, and {path} could not be moved away: {error}; don't \
                     use git there"
                ),
            };
            warnings.push(warning(path, message));
        }
        warnings.truncate(MOST_WARNINGS);
        Ok(warnings)
    }
}

/// Warnings of changes that are a person's to make.
pub(crate) fn guarded(changes: &[FileChange]) -> impl Iterator<Item = Diagnostic> {
    let guarded = changes.iter().filter(|change| is_guarded(&change.path)).take(MOST_WARNINGS);
    guarded.map(|change| {
        let message = format!(
            "the check changed {}, which programs outside the sandbox run or obey; look at it, or undo the run",
            change.path
        );
        warning(change.path.clone(), message)
    })
}

fn warning(path: RelPath, message: String) -> Diagnostic {
    Diagnostic {
        path: Some(path),
        line: None,
        column: None,
        severity: Severity::Warning,
        code: None,
        message,
    }
}
