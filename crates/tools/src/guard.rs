//! What a command may not leave behind: repositories, and files that programs outside the sandbox obey.

use std::path::{Path, PathBuf};

use journeyman_policy::is_guarded;
use journeyman_protocol::{FileChange, RelPath};
use journeyman_sandbox::{Repositories, at_top};
use journeyman_workspace::{TreeSnapshot, Workspace, WorkspaceError};

/// Paths named in a refusal.
const MOST_NAMED: usize = 20;
/// This program's own configuration, which ignore rules can't hide.
const OWN: &str = ".journeyman";

/// The project before a command, as far as it is guarded.
pub(crate) struct Guard {
    repositories: Repositories,
    /// What must stay as it is while the command runs.
    pub(crate) protected: Vec<RelPath>,
    had_own: bool,
}

/// What a command did that it may not.
#[derive(Default)]
pub(crate) struct Trespass {
    /// Repositories it made or replaced, and where they are now, or why they are still there.
    planted: Vec<(RelPath, Result<PathBuf, WorkspaceError>)>,
    /// Whether there was no configuration of this program, and now is.
    made_own: bool,
}

impl Guard {
    pub(crate) fn before(root: &Path, tree: &TreeSnapshot) -> Self {
        let repositories = Repositories::of(root, tree.repositories());
        let mut protected = repositories.protected();
        protected.extend(at_top(root, is_guarded));
        protected.sort();
        protected.dedup();
        Self { repositories, protected, had_own: has_own(root) }
    }

    /// Moves away what was planted.
    pub(crate) fn after(&self, workspace: &Workspace) -> Result<Trespass, WorkspaceError> {
        let planted = self.repositories.planted(workspace.repositories()?).into_iter().map(|path| {
            let place = workspace.remove_repository(&path);
            (path, place)
        });
        let planted = planted.filter(|(_, place)| !matches!(place, Err(WorkspaceError::NotFound { .. })));
        Ok(Trespass { planted: planted.collect(), made_own: !self.had_own && has_own(workspace.root()) })
    }
}

impl Trespass {
    /// What to say of it and of guarded files among the changes; `None` when there is nothing to say.
    pub(crate) fn refusal(&self, changes: &[FileChange]) -> Option<String> {
        let mut text = String::new();
        for (path, place) in self.planted.iter().take(MOST_NAMED) {
            text.push_str(&match place {
                Ok(place) => format!(
                    "error: a command may not create a repository here: {path} was moved to {}. Only the person \
                     may make one.\n",
                    place.display()
                ),
                Err(error) => format!(
                    "error: a command may not create a repository here, and {path} could not be moved away: \
                     {error}. Tell the person, who must not use git there.\n"
                ),
            });
        }
        if self.planted.len() > MOST_NAMED {
            text.push_str(&format!("[and {} more]\n", self.planted.len() - MOST_NAMED));
        }
        let mut guarded: Vec<String> = changes
            .iter()
            .filter(|change| is_guarded(&change.path))
            .map(|change| change.path.to_string())
            .collect();
        let is_own = |name: &String| name == OWN || name.starts_with(".journeyman/");
        if self.made_own && !guarded.iter().any(is_own) {
            guarded.push(OWN.to_owned());
        }
        if !guarded.is_empty() {
            let more = guarded.len().saturating_sub(MOST_NAMED);
            guarded.truncate(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text.push_str(&format!(
                "error: programs outside the sandbox run or obey {}{more}, so the person must make such changes. \
                 Take yours back, and say what you would change.\n",
                guarded.join(", ")
            ));
        }
        (!text.is_empty()).then_some(text)
    }
}

fn has_own(root: &Path) -> bool {
    std::fs::symlink_metadata(root.join(OWN)).is_ok()
}
