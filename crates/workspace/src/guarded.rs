//! What must stay as it is while a command runs, and what came that may not: repositories, and files that programs
//! outside the sandbox obey.

use std::path::PathBuf;

use journeyman_protocol::{FileChange, RelPath};
use journeyman_sandbox::{Repositories, at_top};

use crate::land::is_bare;
use crate::rules::is_git;
use crate::walk::{Plan, walk};
use crate::{TreeSnapshot, Workspace, WorkspaceError};

/// Guarded paths below the top that are protected, each at the cost of a mount: a quarter of what the sandbox mounts
/// at most.
const MOST_NESTED: usize = 128;

/// The project before a command, as far as it is guarded. Which paths are is the caller's to say.
#[derive(Debug)]
pub struct Guarded {
    repositories: Repositories,
    protected: Vec<RelPath>,
    /// Guarded names at the top, where ignore rules can hide what comes from the list of changes.
    top: Vec<RelPath>,
    /// Guarded paths that there are too many of to be protected.
    unprotected: Vec<RelPath>,
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

impl Trespass {
    /// The guarded paths that were changed or made, each once: those among `changes`, and what ignore rules hide from
    /// these.
    #[must_use]
    pub fn guarded(&self, changes: &[FileChange], is_guarded: fn(&RelPath) -> bool) -> Vec<RelPath> {
        let mut guarded: Vec<RelPath> =
            changes.iter().map(|change| &change.path).filter(|path| is_guarded(path)).cloned().collect();
        for made in &self.made {
            let within = |path: &RelPath| path == made || path.as_path().starts_with(made.as_path());
            if !guarded.iter().any(within) {
                guarded.push(made.clone());
            }
        }
        guarded
    }
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
        let names = tree.tree.dirs.iter().map(|dir| dir.path.as_slice());
        let names = names.chain(tree.tree.entries.iter().map(|entry| entry.path.as_slice()));
        let mut nested = workspace.guarded_among(names, is_guarded);
        let unprotected = nested.split_off(nested.len().min(MOST_NESTED));
        protected.extend(nested);
        protected.extend(workspace.own_directories());
        protected.sort();
        protected.dedup();
        Self { repositories, protected, top, unprotected, is_guarded }
    }

    /// What must be read-only to the command.
    #[must_use]
    pub fn protected(&self) -> &[RelPath] {
        &self.protected
    }

    /// Guarded paths deep in the tree that aren't read-only to the command, because there are too many.
    #[must_use]
    pub fn unprotected(&self) -> &[RelPath] {
        &self.unprotected
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

/// Guarded names and bare repositories of a tree as it is now.
#[derive(Debug, Clone, Default)]
pub struct GuardedNames {
    /// The outermost guarded files and directories at any depth, but for git's own and for what lies in ignored
    /// directories; those nearest to the top first.
    pub guarded: Vec<RelPath>,
    /// Directories that git takes for repositories without a `.git`.
    pub bare: Vec<RelPath>,
}

impl GuardedNames {
    /// Those that can be protected, and how many more there are.
    #[must_use]
    pub fn to_protect(&self) -> (&[RelPath], usize) {
        let (most, rest) = self.guarded.split_at(self.guarded.len().min(MOST_NESTED));
        (most, rest.len())
    }
}

impl Workspace {
    /// Looks for guarded names and bare repositories; no content is read.
    ///
    /// # Errors
    /// As [`Workspace::repositories`].
    pub fn guarded_names(&self, is_guarded: fn(&RelPath) -> bool) -> Result<GuardedNames, WorkspaceError> {
        let limit = self.limits().max_files;
        let plan = Plan::of_names(&self.door, &self.rules, limit);
        let walked = walk(&plan)
            .map_err(|errno| WorkspaceError::Root { path: self.root().to_owned(), source: errno.into() })?;
        if walked.overflow {
            return Err(WorkspaceError::TooManyFiles { limit });
        }
        let dirs = walked.dirs.iter().map(|dir| dir.path.as_slice());
        let names = || dirs.clone().chain(walked.files.iter().map(|file| file.path.as_slice()));
        // Ignore rules may hide any of the three names that make a repository, hardly all.
        let parts: [&[u8]; 3] = [b"head", b"objects", b"refs"];
        let is_part = |path: &RelPath| parts.iter().any(|part| path.file_name().eq_ignore_ascii_case(part));
        let found = names().filter_map(|path| RelPath::parse(path).ok()).filter(is_part);
        let mut bare: Vec<RelPath> = found.filter_map(|path| path.parent()).collect();
        bare.sort();
        bare.dedup();
        bare.retain(|dir| is_bare(&self.door, Some(dir)));
        Ok(GuardedNames { guarded: self.guarded_among(names(), is_guarded), bare })
    }

    /// The outermost guarded paths among these, of which each directory is one too: what can be mounted over, those
    /// nearest to the top first. Repositories are somebody else's to find.
    fn guarded_among<'a>(
        &self,
        paths: impl Iterator<Item = &'a [u8]>,
        is_guarded: fn(&RelPath) -> bool,
    ) -> Vec<RelPath> {
        // A guarded directory is named itself, so a path's last name is enough to look at.
        let name = |path: &[u8]| RelPath::parse(path.rsplit(|&byte| byte == b'/').next().unwrap_or(path));
        let guarded = paths.filter(|path| name(path).is_ok_and(|name| is_guarded(&name)));
        let mut found: Vec<RelPath> = guarded.filter_map(|path| RelPath::parse(path).ok()).collect();
        found.retain(|path| {
            let mut above = std::iter::successors(path.parent(), RelPath::parent);
            !path.components().any(is_git)
                && !above.any(|dir| is_guarded(&dir))
                && self.door.look(path).ok().flatten().is_some_and(|seen| seen.is_file() || seen.is_dir())
        });
        found.sort_by_cached_key(|path| (path.components().count(), path.clone()));
        found.dedup();
        found
    }
}
