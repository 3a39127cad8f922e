//! Guarded paths, which a command may neither change nor add: repositories, and files that programs
//! outside the sandbox run or obey.
//!
//! Guarded paths that were there before are mounted read-only as far as mounts go, and their
//! contents are kept, so that a change by a command is put back all the same. New ones are moved
//! out of the project. That holds at any depth, in ignored directories too, with two exceptions,
//! without which no package could be installed and no dependency be cloned:
//!
//! - Among dependencies and build products, that is in ignored directories with a name such as
//!   `node_modules`, `target` or `.venv`, only repositories count, and files that a shell obeys on
//!   entering a directory. Packages carry their authors' editor and agent settings; programs obey
//!   these in the folder that is opened as a project, and nobody opens such a directory as one.
//! - In ignored directories a repository counts only if its settings or hooks name something to
//!   run.

use crate::guarded::repository_settings::hash_executing_settings;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use journeyman_protocol::{ContentHash, FileChange, GuardRules, GuardViolation, RelPath};
use journeyman_sandbox::Repositories;
use rustix::fs::{AtFlags, fstat, statat};

use crate::error::WorkspaceError;
use crate::files::stat::FileStat;
use crate::mutex::lock;
use crate::workspace::Workspace;

use crate::guarded::kept_paths::KeptPath;
use crate::guarded::scan::BuildProducts;
use crate::guarded::scan::{GuardedScan, GuardedScanner, RelevantNamesByDir};

pub(crate) mod cache;
pub(crate) mod kept_paths;
pub(crate) mod record;
pub(crate) mod repository_settings;
pub(crate) mod scan;
pub(crate) mod stored_state;
pub(crate) mod violations;

/// Maximum number of guarded paths that are mounted read-only: less than half of what the sandbox
/// mounts at most.
const MAX_MOUNTED: usize = 192;
/// Maximum number of guarded paths in a project. Each is looked at before and after every command.
const MAX_GUARDED: usize = 4_096;
/// Maximum size of all contents that are kept, in bytes.
const MAX_KEPT_BYTES: u64 = 64 * 1024 * 1024;
/// The files that git obeys in a repository without a `.git`.
const BARE_REPOSITORY_FILES: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// A guarded path before a command.
#[derive(Debug)]
struct GuardedPath {
    seen: FileStat,
    /// The inode of the directory that it is in.
    above: u64,
    mounted: bool,
    /// True for a file that has other names, by which a mount doesn't keep it from being written.
    shared: bool,
    /// True for what may be deleted, because it lies among dependencies or build products.
    loose: bool,
    repository: bool,
    /// Absent where it is too large.
    kept: Option<Arc<KeptPath>>,
}

/// The project before a command, as far as it is guarded. Which paths are is the caller's to say.
#[derive(Debug)]
pub struct GuardedState {
    rules: GuardRules,
    repositories: Repositories,
    known: BTreeMap<RelPath, GuardedPath>,
    /// Repositories in ignored directories that run something, with the hash of their settings and
    /// hooks.
    armed: BTreeMap<RelPath, ContentHash>,
    /// Repositories without a `.git`, with their inodes and the hash of their settings and hooks.
    bare: BTreeMap<Option<RelPath>, (u64, Option<ContentHash>)>,
    notes: Arc<RelevantNamesByDir>,
    unreadable: HashSet<Arc<[u8]>>,
    protected: Vec<RelPath>,
}

/// The forbidden changes of a command, and their treatment.
#[derive(Debug, Default)]
pub struct ForbiddenChanges {
    /// One for each path, repositories first, bounded.
    pub violations: Vec<GuardViolation>,
    /// A problem for the user: there are more, or not all of the tree could be looked at.
    pub problem: Option<String>,
}

impl ForbiddenChanges {
    /// Returns true if there is nothing to say.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.problem.is_none()
    }
}

impl GuardedState {
    /// Looks at the tree before a command.
    ///
    /// # Errors
    /// [`WorkspaceError::TooManyGuarded`] and [`WorkspaceError::TooManyDirectories`] where not
    /// everything can be protected: then no command that writes may run.
    pub fn capture(workspace: &Workspace, rules: GuardRules) -> Result<Self, WorkspaceError> {
        let look = scan_guarded(workspace, rules);
        if !look.complete {
            return Err(WorkspaceError::TooManyDirectories { limit: workspace.project.limits().max_files });
        }
        let products = BuildProducts::of(&workspace.project, &workspace.snapshots);
        let ignored =
            |path: &RelPath| path.parent().is_some_and(|dir| products.is_ignored_dir(dir.as_bytes()));
        let mut armed = BTreeMap::new();
        let bare = look.bare.iter().flatten();
        for path in look.repositories.iter().chain(bare).filter(|path| ignored(path)) {
            if let Some(hash) = hash_executing_settings(&workspace.project.root_dir, path) {
                armed.insert(path.clone(), hash);
            }
        }
        let strict = |path: &&RelPath| !ignored(path) || armed.contains_key(*path);
        let entries: Vec<RelPath> = look.repositories.iter().filter(strict).cloned().collect();
        let repositories =
            Repositories::read(&workspace.access_path(), workspace.root(), entries.iter().cloned());
        let mut protected = repositories.protected_paths();
        let ino = |dir: &Option<RelPath>| {
            look.notes.get(dir.as_ref().map_or(&b""[..], RelPath::as_bytes)).map_or(0, |noted| noted.ino)
        };
        let settings = |dir: &Option<RelPath>| {
            dir.as_ref().and_then(|dir| hash_executing_settings(&workspace.project.root_dir, dir))
        };
        let bare: BTreeMap<_, _> =
            look.bare.iter().map(|dir| (dir.clone(), (ino(dir), settings(dir)))).collect();
        let mut known = BTreeMap::new();
        let settings = bare_repository_settings(workspace, bare.keys());
        for (paths, repository, loose) in [
            (&look.guarded, false, false),
            (&look.among_products, false, true),
            (&entries, true, false),
            (&settings, true, false),
        ] {
            for path in paths {
                if let Some(one) = GuardedPath::inspect(workspace, path, repository, loose) {
                    known.insert(path.clone(), one);
                }
            }
        }
        if known.len() > MAX_GUARDED {
            return Err(WorkspaceError::TooManyGuarded { limit: MAX_GUARDED });
        }
        keep_guarded_contents(workspace, &mut known);
        protected.extend(choose_mounted(workspace, &mut known)?);
        protected.extend(workspace.own_directories());
        protected.sort();
        protected.dedup();
        let unreadable = look.unreadable.into_iter().collect();
        let notes = look.notes;
        Ok(Self { rules, repositories, known, armed, bare, notes, unreadable, protected })
    }

    /// Returns the paths that must be read-only to the command.
    #[must_use]
    pub fn protected_paths(&self) -> &[RelPath] {
        &self.protected
    }

    /// Moves away and puts back what a command did until now that still runs;
    /// [`GuardedState::revert_and_journal`] looks again. Whether the sandbox keeps
    /// [protected](GuardedState::protected_paths) paths from being changed is known only at the
    /// end, so those are left until then: a person may have changed them.
    #[must_use]
    pub fn revert_while_running(&self, workspace: &Workspace) -> ForbiddenChanges {
        self.handle_violations(workspace, true, None).aftermath
    }

    /// Moves away what the command made, puts back what it changed or deleted, and journals by
    /// `end` what else it did, in this order, so that the journal has none of what is taken back.
    /// `kept` says that the sandbox kept [protected](GuardedState::protected_paths) paths from
    /// being changed.
    ///
    /// # Errors
    /// In place of the changes, those of `end`.
    pub fn revert_and_journal(
        &self,
        workspace: &Workspace,
        kept: bool,
        end: impl FnOnce() -> Result<Vec<FileChange>, WorkspaceError>,
    ) -> (Result<Vec<FileChange>, WorkspaceError>, ForbiddenChanges) {
        let first = self.handle_violations(workspace, kept, None);
        let mut changes = end();
        if !first.hidden {
            return (changes, first.aftermath);
        }
        // Journaling opens directories that the command closed; what is in them is seen only now.
        let mut aftermath = first.aftermath;
        let second = self.handle_violations(workspace, kept, None).aftermath;
        if let Ok(changes) = &mut changes {
            let is_gone = |path: &RelPath| {
                second.violations.iter().any(|one| path.as_path().starts_with(one.path.as_path()))
            };
            changes.retain(|change| !is_gone(&change.path));
        }
        aftermath.violations.extend(second.violations);
        aftermath.problem = second.problem.or(aftermath.problem);
        (changes, aftermath)
    }
}

impl GuardedPath {
    fn inspect(workspace: &Workspace, path: &RelPath, repository: bool, loose: bool) -> Option<Self> {
        let parent = workspace.project.root_dir.open_parent(path).ok()?;
        let above = FileStat::of(&fstat(&parent).ok()?).ino;
        let stat = statat(&parent, path.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let seen = FileStat::of(&stat);
        if repository && seen.is_dir() && journeyman_ignore_rules::is_git_directory_name(path.file_name()) {
            // Told from others by its identity; its contents change with every commit.
            return None;
        }
        let shared = seen.is_file() && stat.st_nlink > 1;
        Some(Self { seen, above, mounted: false, shared, loose, repository, kept: None })
    }
}

/// Returns the files that git obeys in these repositories without a `.git`.
fn bare_repository_settings<'a>(
    workspace: &Workspace,
    bare: impl Iterator<Item = &'a Option<RelPath>>,
) -> Vec<RelPath> {
    let names = |dir: &Option<RelPath>| {
        BARE_REPOSITORY_FILES.map(|name| match dir {
            Some(dir) => dir.join(name),
            None => RelPath::parse(name),
        })
    };
    let paths = bare.flat_map(names).flatten();
    paths.filter(|path| matches!(workspace.project.root_dir.stat(path), Ok(Some(_)))).collect()
}

/// Chooses what is mounted: what can't be kept first, then what was there when the first command
/// began, then what is nearest to the top.
fn choose_mounted(
    workspace: &Workspace,
    known: &mut BTreeMap<RelPath, GuardedPath>,
) -> Result<Vec<RelPath>, WorkspaceError> {
    let mut memory = lock(&workspace.guard_memory);
    let first = memory.first.get_or_insert_with(|| known.keys().cloned().collect());
    let mut all: Vec<(&RelPath, &mut GuardedPath)> =
        known.iter_mut().filter(|(_, one)| !one.loose && (one.seen.is_file() || one.seen.is_dir())).collect();
    all.sort_by_key(|(path, one)| (one.kept.is_some(), !first.contains(*path), path.components().count()));
    if all.iter().skip(MAX_MOUNTED).any(|(_, one)| one.kept.is_none()) {
        return Err(WorkspaceError::TooManyGuarded { limit: MAX_MOUNTED });
    }
    let mut mounted = Vec::new();
    for (path, one) in all.into_iter().take(MAX_MOUNTED) {
        one.mounted = true;
        mounted.push(path.clone());
    }
    Ok(mounted)
}

pub(crate) fn scan_guarded(workspace: &Workspace, guards: GuardRules) -> GuardedScan {
    let before = Arc::clone(&lock(&workspace.guard_memory).notes);
    let max_directories = workspace.project.limits().max_files;
    let look = GuardedScanner {
        project: &workspace.project,
        snapshots: &workspace.snapshots,
        guards,
        before: &before,
        max_directories,
    }
    .run();
    lock(&workspace.guard_memory).notes = Arc::clone(&look.notes);
    look
}

/// Keeps the contents of guarded paths, as far as there is room.
fn keep_guarded_contents(workspace: &Workspace, known: &mut BTreeMap<RelPath, GuardedPath>) {
    let before = std::mem::take(&mut lock(&workspace.guard_memory).kept);
    let mut room = MAX_KEPT_BYTES;
    for (path, one) in known.iter_mut() {
        let kept = KeptPath::of(&workspace.project.root_dir, path, before.get(path).map(AsRef::as_ref));
        if let Some(kept) = kept
            && let Some(left) = room.checked_sub(kept.size_bytes())
        {
            room = left;
            one.kept = Some(Arc::new(kept));
        }
    }
    let kept = known.iter().filter_map(|(path, one)| Some((path.clone(), one.kept.clone()?)));
    lock(&workspace.guard_memory).kept = kept.collect();
}

/// The contents that edits of the session left, read from the journal at first use.
struct SessionEdits<'a> {
    workspace: &'a Workspace,
    left: OnceCell<BTreeMap<RelPath, Option<ContentHash>>>,
}

impl<'a> SessionEdits<'a> {
    fn of(workspace: &'a Workspace) -> Self {
        Self { workspace, left: OnceCell::new() }
    }

    /// Returns true if the last edit of the file left this content; for `None`, if the edit deleted
    /// the file. Such an edit was authorized by itself.
    fn is_last_edit(&self, path: &RelPath, content: Option<ContentHash>) -> bool {
        let left = self.left.get_or_init(|| {
            let edited = crate::landing::refusals::edited_files(self.workspace).unwrap_or_default();
            edited.into_iter().map(|(path, state)| (path, state.and_then(|state| state.hash))).collect()
        });
        left.get(path).is_some_and(|hash| *hash == content)
    }
}
