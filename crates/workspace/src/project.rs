//! The tree of one project: its root, the rules by which files are chosen, and the stores beside
//! it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use journeyman_protocol::{RelPath, SessionId};
use journeyman_sandbox::ProjectCopy;

use crate::contents::store::BlobStore;
use crate::error::{WorkspaceError, io_error};
use crate::failpoint::Failpoint;
use crate::files::content::FileContent;
use crate::files::listing::{ListOptions, Listing, Stat, StatKind};
use crate::files::root_dir::{FinalLinkPolicy, LinkPolicy, RootDir, read_up_to};
use crate::files::stat::FileStat;
use crate::journal::history::History;
use crate::journal::{Journal, JournalEnd};
use crate::limits::{Limits, MAX_DIFF_FILE_BYTES};
use crate::mutex::lock;
use crate::options::Options;
use crate::rules::RuleCache;
use crate::snapshot::entry::{FileKind, FileState};
use crate::transaction::operation::TransactionContext;

/// One project's root directory, ignore rules, options and kept contents. Everything else is built
/// on it.
pub(crate) struct Project {
    pub(crate) root_dir: RootDir,
    pub(crate) root: PathBuf,
    pub(crate) base: Mutex<Option<ProjectCopy>>,
    pub(crate) options: Options,
    pub(crate) failpoint: Option<Failpoint>,
    pub(crate) rules: RuleCache,
    /// Names like `.git` at the root when the workspace was opened.
    pub(crate) own_repositories: Vec<Vec<u8>>,
    pub(crate) blob_store: BlobStore,
}

impl Project {
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn state_dir(&self) -> &Path {
        &self.options.state_dir
    }

    pub(crate) fn access_path(&self) -> PathBuf {
        match &*lock(&self.base) {
            None => self.root.clone(),
            Some(ProjectCopy::Directory { path: copy, .. }) => copy.clone(),
            Some(ProjectCopy::Mounted(_)) => self.root_dir.descriptor_path(),
        }
    }

    pub(crate) fn own_directories(&self) -> Vec<RelPath> {
        self.rules.own_directories().to_vec()
    }

    pub(crate) fn project_copy(&self) -> Option<ProjectCopy> {
        lock(&self.base).clone()
    }

    pub(crate) fn read(&self, path: &RelPath, max_bytes: u64) -> Result<FileContent, WorkspaceError> {
        let (file, seen) = self.open_file(path)?;
        let too_large = |size| WorkspaceError::TooLarge { path: path.clone(), size, limit: max_bytes };
        if seen.size > max_bytes {
            return Err(too_large(seen.size));
        }
        let bytes =
            read_up_to(&file, seen.size, max_bytes).map_err(|source| io_error("read", path, source))?;
        let bytes = bytes.ok_or_else(|| too_large(max_bytes.saturating_add(1)))?;
        Ok(FileContent::from_bytes(bytes, seen.mode & 0o100 != 0))
    }

    // By value, so that a caller can say `ListOptions { glob, ..ListOptions::default() }` in the
    // call.
    #[allow(clippy::needless_pass_by_value)]
    pub(crate) fn list(&self, options: ListOptions) -> Result<Listing, WorkspaceError> {
        let end = self.journal().current_end();
        let siblings = || self.siblings_in_use(end);
        crate::files::listing::list(&self.root_dir, &self.rules, self.limits().max_files, &siblings, &options)
    }

    pub(crate) fn stat(&self, path: &RelPath) -> Result<Option<Stat>, WorkspaceError> {
        let kept = self.root_dir.canonicalize(path, FinalLinkPolicy::Keep)?;
        let failed = |errno| self.root_dir.error_for("look at", path, errno);
        let Some(own) = self.root_dir.stat(&kept).map_err(failed)? else { return Ok(None) };
        let link = own.is_link();
        let seen = if link {
            let target = self.root_dir.canonicalize(path, FinalLinkPolicy::Follow);
            let target = match target {
                Ok(target) => self.root_dir.stat(&target).map_err(failed)?,
                // A link to the root itself.
                Err(WorkspaceError::NotAFile { .. }) => self.root_dir.stat_root().map_err(failed)?,
                Err(other) => return Err(other),
            };
            target.unwrap_or(own)
        } else {
            own
        };
        let kind = if seen.is_file() {
            StatKind::File
        } else if seen.is_dir() {
            StatKind::Directory
        } else {
            StatKind::Other
        };
        let (size, executable) = (seen.size, seen.mode & 0o100 != 0);
        Ok(Some(Stat { kind, size, executable, link, modified_ns: i128::from(seen.mtime) }))
    }

    pub(crate) fn canonicalize(&self, path: &RelPath) -> Result<RelPath, WorkspaceError> {
        self.root_dir.canonicalize(path, FinalLinkPolicy::Follow)
    }

    /// Puts another copy in the place of the one that this workspace reaches, in one step.
    pub(crate) fn replace_project_copy(&self, base: ProjectCopy) -> Result<(), WorkspaceError> {
        self.root_dir.redirect_to(&RootDir::open_copy(&self.root, &base)?)?;
        *lock(&self.base) = Some(base);
        Ok(())
    }

    /// Lets go of the mount that this workspace reaches: nothing of the tree is found by it any
    /// more.
    pub(crate) fn close_project_copy(&self) -> Result<(), WorkspaceError> {
        let path = self.options.state_dir.clone();
        self.root_dir.redirect_to(&RootDir::open(&path)?)?;
        *lock(&self.base) = Some(ProjectCopy::Directory { layers: path.clone(), path, caches: Vec::new() });
        Ok(())
    }

    pub(crate) fn open_file(
        &self,
        path: &RelPath,
    ) -> Result<(std::os::fd::OwnedFd, FileStat), WorkspaceError> {
        match self.root_dir.open_file(path, LinkPolicy::Follow) {
            // Where the kernel can't confine links, and for a better word than `changed` on a loop
            // of links.
            Err(WorkspaceError::Raced { .. }) => {
                let path = self.root_dir.canonicalize(path, FinalLinkPolicy::Follow)?;
                self.root_dir.open_file(&path, LinkPolicy::Refuse)
            }
            other => other,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.options.limits
    }

    pub(crate) fn transaction_context(&self) -> TransactionContext<'_> {
        TransactionContext {
            root_dir: &self.root_dir,
            blob_store: &self.blob_store,
            limits: self.limits(),
            failpoint: self.failpoint.as_ref(),
        }
    }

    pub(crate) fn compare_inputs(&self) -> crate::snapshot::compare::CompareInputs<'_> {
        crate::snapshot::compare::CompareInputs {
            root_dir: &self.root_dir,
            blob_store: &self.blob_store,
            rules: &self.rules,
        }
    }

    pub(crate) fn read_kept_for_diff(&self, state: &FileState) -> Result<Option<Vec<u8>>, WorkspaceError> {
        match &state.hash {
            Some(hash) if state.size <= MAX_DIFF_FILE_BYTES as u64 => self.blob_store.get(hash),
            _ => Ok(None),
        }
    }

    pub(crate) fn read_current_for_diff(
        &self,
        path: &RelPath,
        state: &FileState,
    ) -> Result<Option<Vec<u8>>, WorkspaceError> {
        if state.kind == FileKind::Link {
            return self
                .root_dir
                .read_link(path)
                .map(Some)
                .map_err(|errno| self.root_dir.error_for("read", path, errno));
        }
        let (file, seen) = match self.root_dir.open_file(path, LinkPolicy::Refuse) {
            // It can't be read: it is reported as different without its content, and the others
            // are compared.
            Err(WorkspaceError::Denied { .. }) => return Ok(None),
            other => other?,
        };
        read_up_to(&file, seen.size, MAX_DIFF_FILE_BYTES as u64)
            .map_err(|source| io_error("read", path, source))
    }

    /// Returns a journal to read from, without waiting for a writer.
    pub(crate) fn journal(&self) -> Journal {
        Journal::new(&self.options.state_dir, self.limits().journal_bytes)
    }

    /// Returns the temporary siblings of transactions that are open, or were when the journal ended
    /// at `end`. A name alone doesn't mark a sibling, because a command can give its files any.
    pub(crate) fn siblings_in_use(&self, end: JournalEnd) -> HashSet<Vec<u8>> {
        // What can't be read hides nothing.
        self.journal().siblings_open_since(end).unwrap_or_default()
    }

    pub(crate) fn history(&self) -> Result<History, WorkspaceError> {
        Ok(History::new(self.journal().lines()?))
    }

    pub(crate) fn copy_dir(&self, session: &SessionId) -> std::path::PathBuf {
        self.options.state_dir.join("work").join(session.as_str())
    }
}
