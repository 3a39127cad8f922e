//! The workspace itself: one project tree, its journal and its snapshots.

use crate::commands::running_commands::RunningCommands;
use crate::contents::quota::Quota;
use crate::files::hashes::FileHashes;
use crate::guarded::cache::GuardedCache;
use crate::hard_links::HardLinkFinder;
use crate::ignored::IgnoredFiles;
use crate::project::Project;
use crate::snapshot::snapshots::Snapshots;
use crate::transaction::writer::TransactionWriter;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use journeyman_protocol::{Clock, ContentHash, FileChange, RelPath, UnixMillis, clip_to_bytes};
use journeyman_sandbox::ProjectCopy;

use crate::change::{AppliedChanges, ChangeId, ChangeSet};
use crate::contents::store::BlobStore;
use crate::error::WorkspaceError;
use crate::failpoint::Failpoint;
use crate::files::content::FileContent;
use crate::files::listing::{ListOptions, Listing, Stat};
use crate::files::root_dir::RootDir;
use crate::journal::record::ChangeCause;
use crate::limits::MAX_DESCRIPTION_BYTES;
use crate::options::Options;
use crate::rules::RuleCache;
use crate::snapshot::differences::change_kind;
use crate::transaction::operation::ChangeIntent;
use journeyman_ignore_rules::walk::git_names_in;

/// One project tree. See the crate's page for what it offers.
///
/// All methods block on the disk; call them from a thread that may. It may be shared between
/// threads: reads go on side by side, changes one after the other, also between processes.
pub struct Workspace {
    pub(crate) project: Arc<Project>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) transactions: TransactionWriter,
    pub(crate) running: RunningCommands,
    pub(crate) ignored: IgnoredFiles,
    pub(crate) hard_links: HardLinkFinder,
    pub(crate) hashes: FileHashes,
    pub(crate) guard_memory: Mutex<GuardedCache>,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("root", &self.project.root).finish_non_exhaustive()
    }
}

impl Workspace {
    /// Opens the tree beneath `root`. A change that a crash left open is closed now, unless another
    /// process holds the lock; apart from that nothing is written, neither in the tree nor in the
    /// state directory.
    ///
    /// # Errors
    /// [`WorkspaceError::Root`] when the root isn't a directory that can be read; failures of going
    /// back.
    pub fn open(root: &Path, options: Options) -> Result<Self, WorkspaceError> {
        Self::open_with(root, options, None)
    }

    /// Opens a workspace as [`Workspace::open`] does, with a hook by which a test interrupts
    /// transactions.
    ///
    /// # Errors
    /// As [`Workspace::open`].
    #[doc(hidden)]
    pub fn open_with(
        root: &Path,
        options: Options,
        failpoint: Option<Failpoint>,
    ) -> Result<Self, WorkspaceError> {
        let blob_store = BlobStore::new(options.blobs.clone(), &options.state_dir);
        open_at(RootDir::open(root)?, root, None, blob_store, options, failpoint)
    }

    /// Returns the root as it was given; for a copy that of the tree it stands for, where commands
    /// see it.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.project.root()
    }

    /// Returns the state directory of the tree. A copy has a directory of its own, which goes when
    /// the copy does.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        self.project.state_dir()
    }

    /// A path by which this process reaches the files: the root, or where a copy of it is. It is
    /// good for as long as the workspace lives, and may mean nothing to other processes.
    #[must_use]
    pub fn access_path(&self) -> PathBuf {
        self.project.access_path()
    }

    /// Directories of the program's own that lie in the tree: no command may write there.
    #[must_use]
    pub fn own_directories(&self) -> Vec<RelPath> {
        self.project.own_directories()
    }

    /// Returns the directory that commands see at the root, if this is a copy.
    #[must_use]
    pub fn project_copy(&self) -> Option<ProjectCopy> {
        self.project.project_copy()
    }

    /// Reads a file of at most `max_bytes` bytes. Links that stay inside are followed. Never waits:
    /// pipes, sockets and devices are refused.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`], [`WorkspaceError::Outside`], [`WorkspaceError::NotAFile`],
    /// [`WorkspaceError::TooLarge`] (before anything is read), failures of the file system.
    pub fn read(&self, path: &RelPath, max_bytes: u64) -> Result<FileContent, WorkspaceError> {
        self.project.read(path, max_bytes)
    }

    /// Lists files and links, sorted by the bytes of their paths. Links are listed and never
    /// entered.
    ///
    /// `.gitignore` and `.ignore` files hold whether or not there is a git repository, and so does
    /// `.git/info/exclude`; hidden files are listed, `.git` never. Directories that tools make and
    /// can make again (`node_modules`, `.venv`, `__pycache__` and their like) are skipped unless a
    /// rule says `!` to them, and so is any directory with a valid `CACHEDIR.TAG`.
    ///
    /// # Errors
    /// [`WorkspaceError::Glob`]; [`WorkspaceError::NotFound`] and its like for `under`; the root
    /// vanished.
    // By value, so that a caller can say `ListOptions { glob, ..ListOptions::default() }` in the
    // call.
    #[allow(clippy::needless_pass_by_value)]
    pub fn list(&self, options: ListOptions) -> Result<Listing, WorkspaceError> {
        self.project.list(options)
    }

    /// Returns the metadata of a path; `None` if nothing is there.
    ///
    /// # Errors
    /// [`WorkspaceError::Outside`] when a link leads out; failures of the file system.
    pub fn stat(&self, path: &RelPath) -> Result<Option<Stat>, WorkspaceError> {
        self.project.stat(path)
    }

    /// Returns the path that a write to `path` would really change: links that stay inside are
    /// resolved, what doesn't exist yet is taken as it is.
    ///
    /// # Errors
    /// [`WorkspaceError::Outside`] when a link leads out; [`WorkspaceError::NotFound`] for a loop
    /// of links; [`WorkspaceError::NotAFile`] for the root itself; failures of the file system.
    pub fn canonicalize(&self, path: &RelPath) -> Result<RelPath, WorkspaceError> {
        self.project.canonicalize(path)
    }

    /// Carries out all changes of the set, or none. Each file is replaced atomically and is on the
    /// disk when this returns, with its earlier content kept for an undo (but for files over
    /// [`kept_file_bytes`](crate::Limits::kept_file_bytes), which can't be undone). A file that had
    /// several names keeps the others with the old content.
    ///
    /// # Errors
    /// [`WorkspaceError::Conflict`] when a file isn't what a change expects;
    /// [`WorkspaceError::Contradiction`], [`WorkspaceError::Protected`],
    /// [`WorkspaceError::Outside`], [`WorkspaceError::NotFound`] for wishes that make no sense;
    /// [`WorkspaceError::Busy`]; failures of the file system. In each case the tree is as it was.
    pub fn apply(&self, changes: ChangeSet) -> Result<AppliedChanges, WorkspaceError> {
        let ChangeSet { call, session, description, changes } = changes;
        let description = description.map(|text| clip_to_bytes(&text, MAX_DESCRIPTION_BYTES).to_owned());
        if changes.is_empty() {
            return Ok(AppliedChanges { id: ChangeId::NONE, changes: Vec::new() });
        }
        self.project.root_dir.check_alive()?;
        let applied = self.transactions.write_locked(|writer, context| {
            let operations = crate::transaction::plan::plan_changes(
                &self.project.root_dir,
                self.project.limits(),
                changes,
            )?;
            if let Some(own) =
                operations.iter().find(|operation| self.project.rules.is_own_file(&operation.path))
            {
                return Err(WorkspaceError::Own { path: own.path.clone() });
            }
            if operations.is_empty() {
                return Ok(AppliedChanges { id: ChangeId::NONE, changes: Vec::new() });
            }
            let intent = ChangeIntent {
                session,
                call,
                cause: ChangeCause::Edit,
                description,
                undoes: Vec::new(),
                left: Vec::new(),
                modes: Vec::new(),
                make: Vec::new(),
                remove: Vec::new(),
                settles_copy: false,
            };
            self.running.journal_running_changes(writer, &operations)?;
            let id = context.execute(&mut writer.journal, intent, &operations)?;
            let changes = operations.iter().map(|operation| FileChange {
                path: operation.path.clone(),
                kind: change_kind(operation.before.is_some(), operation.after.is_some()),
            });
            Ok(AppliedChanges { id, changes: changes.collect() })
        })?;
        self.quota().enforce()?;
        Ok(applied)
    }

    /// Returns the hash of each file's content, as
    /// [`FileContent::hash`](crate::files::content::FileContent::hash) gives it; `None` where there
    /// is none to be read: nothing there, no file, no permission, a link that leads out. Links that
    /// stay inside are followed. A file that looks as it did when its hash was taken isn't read
    /// again.
    #[must_use]
    pub fn fingerprints(&self, paths: &[RelPath]) -> Vec<Option<ContentHash>> {
        self.hashes.fingerprints(paths)
    }

    /// Returns the time by the clock that the workspace was opened with.
    #[must_use]
    pub fn now(&self) -> Option<UnixMillis> {
        self.project.options.clock.as_ref().map(Clock::now)
    }

    pub(crate) fn quota(&self) -> Quota<'_> {
        let Self { project, snapshots, transactions, .. } = self;
        Quota { project, snapshots, transactions }
    }
}

/// Opens a copy that stands for the tree at `root`: paths and messages are the tree's, files the
/// copy's. It has a state directory of its own. Packed contents are found where `project`, the
/// tree's state directory, says.
///
/// # Errors
/// As [`Workspace::open`].
pub(crate) fn open_project_copy(
    root: &Path,
    base: ProjectCopy,
    project: &Path,
    options: Options,
) -> Result<Workspace, WorkspaceError> {
    let blob_store = BlobStore::new(options.blobs.clone(), project);
    open_at(RootDir::open_copy(root, &base)?, root, Some(base), blob_store, options, None)
}

fn open_at(
    root_dir: RootDir,
    root: &Path,
    base: Option<ProjectCopy>,
    blob_store: BlobStore,
    options: Options,
    failpoint: Option<Failpoint>,
) -> Result<Workspace, WorkspaceError> {
    let own_repositories = git_names_in(root_dir.root())
        .map_err(|errno| WorkspaceError::Root { path: root.to_owned(), source: errno.into() })?;
    let own = [Some(options.state_dir.as_path()), Some(options.blobs.dir()), options.own_dir.as_deref()];
    let rules = RuleCache::for_root(root, own.into_iter().flatten(), &options.own_files);
    let (root, base) = (root.to_owned(), Mutex::new(base));
    let project =
        Arc::new(Project { root_dir, root, base, options, failpoint, rules, own_repositories, blob_store });
    let snapshots = Arc::new(Snapshots::new(Arc::clone(&project)));
    let workspace = Workspace {
        transactions: TransactionWriter::new(Arc::clone(&project)),
        running: RunningCommands::new(Arc::clone(&project)),
        ignored: IgnoredFiles::new(Arc::clone(&project)),
        hard_links: HardLinkFinder::new(Arc::clone(&project)),
        hashes: FileHashes::new(Arc::clone(&project), Arc::clone(&snapshots)),
        guard_memory: Mutex::default(),
        snapshots,
        project,
    };
    workspace.transactions.recover_if_idle()?;
    Ok(workspace)
}
