//! What a command may not leave behind: repositories, and files that programs outside the sandbox obey.

use std::path::PathBuf;

use journeyman_policy::is_guarded;
use journeyman_protocol::{FileChange, RelPath};
use journeyman_sandbox::{Repositories, at_top};
use journeyman_workspace::{TreeSnapshot, Workspace, WorkspaceError};

/// Paths named in a refusal.
const MOST_NAMED: usize = 20;

/// The project before a command, as far as it is guarded.
pub(crate) struct Guard {
    repositories: Repositories,
    /// What must stay as it is while the command runs.
    pub(crate) protected: Vec<RelPath>,
    /// Guarded names at the top, where ignore rules can hide what comes from the list of changes.
    top: Vec<RelPath>,
}

/// What a command did that it may not.
#[derive(Default)]
pub(crate) struct Trespass {
    /// Repositories it made or replaced, and where they are now, or why they are still there.
    planted: Vec<(RelPath, Result<PathBuf, WorkspaceError>)>,
    /// Guarded names at the top that weren't there before.
    made: Vec<RelPath>,
}

impl Guard {
    pub(crate) fn before(workspace: &Workspace, tree: &TreeSnapshot) -> Self {
        let reach = workspace.reach();
        let repositories = Repositories::of(&reach, workspace.root(), tree.repositories());
        let mut protected = repositories.protected();
        let top = at_top(&reach, is_guarded);
        protected.extend(top.iter().cloned());
        protected.extend(workspace.own_directories());
        protected.sort();
        protected.dedup();
        Self { repositories, protected, top }
    }

    /// Moves away what was planted.
    pub(crate) fn after(&self, workspace: &Workspace) -> Result<Trespass, WorkspaceError> {
        let planted = self.repositories.planted(workspace.repositories()?).into_iter().map(|path| {
            let place = workspace.remove_repository(&path);
            (path, place)
        });
        let planted = planted.filter(|(_, place)| !matches!(place, Err(WorkspaceError::NotFound { .. })));
        let planted = planted.collect();
        let mut made = at_top(&workspace.reach(), is_guarded);
        made.retain(|path| !self.top.contains(path) && !path.as_bytes().eq_ignore_ascii_case(b".git"));
        Ok(Trespass { planted, made })
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
        for made in self.made.iter().map(ToString::to_string) {
            let inside = format!("{made}/");
            if !guarded.iter().any(|name| *name == made || name.starts_with(&inside)) {
                guarded.push(made);
            }
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
