//! Locations of copies, and their locks.
//!
//! A copy's directory is `work/<session>` in the project's state directory: its lock, its record,
//! its own state. Its files are there too where that is on the file system of the project, and
//! otherwise in a directory beside the project's root, `.journeyman-work-<hash>`.

use crate::copies::record::CopyPlacement;
use journeyman_ignore_rules::{COPIES_DIR_DIGITS, COPIES_DIR_PREFIX};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::{ContentHash, SessionId};

use crate::copies::record::{CopyRecord, CopyRecordState};
use crate::error::WorkspaceError;
use crate::files::remove::remove_tree;
use crate::journal::history::History;
use crate::preview::pending_moves::restore_moved;
use crate::state::lock::{FileLock, OwnedLockGuard, make_private_dir, state_error};
use crate::workspace::Workspace;

/// The directory of all copies in a project's state directory.
const COPIES_DIR: &str = "work";
/// The prefix of a copy's name while it is removed.
const REMOVED_PREFIX: &str = "removed-";
/// Maximum number of attempts to lock a file that is removed meanwhile.
const MAX_LOCK_ATTEMPTS: usize = 8;

/// The places of one session's copy.
#[derive(Debug, Clone)]
pub(crate) struct CopyLocation {
    work: PathBuf,
    dir: PathBuf,
    sibling: Option<PathBuf>,
    session: SessionId,
    /// The project.
    root: PathBuf,
}

impl CopyLocation {
    pub(crate) fn of(workspace: &Workspace, session: &SessionId) -> Self {
        let work = workspace.project.options.state_dir.join(COPIES_DIR);
        let dir = work.join(session.as_str());
        let sibling = sibling_dir(workspace.root()).map(|all| all.join(session.as_str()));
        Self { work, dir, sibling, session: session.clone(), root: workspace.root().to_owned() }
    }

    /// Returns the directory of the lock, the record and the state.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the copy's own state directory.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// Returns the state directory of a refresh under way.
    pub(crate) fn refresh_dir(&self) -> PathBuf {
        self.dir.join("refreshing")
    }

    /// Returns the directory of the files; `None` where there is none beside the root.
    pub(crate) fn files_dir(&self, beside: CopyPlacement) -> Option<&Path> {
        match beside {
            CopyPlacement::State => Some(&self.dir),
            CopyPlacement::Root => self.sibling.as_deref(),
        }
    }

    /// Makes the directory beside the root that this copy's files go to.
    pub(crate) fn make_sibling_dir(&self) -> Result<&Path, WorkspaceError> {
        let absent = || {
            let source = std::io::ErrorKind::NotFound.into();
            state_error("create a directory beside", &self.dir, source)
        };
        let dir = self.sibling.as_deref().ok_or_else(absent)?;
        let all = dir.parent().ok_or_else(absent)?;
        make_private_dir(all)?;
        // Its name is predictable: another user may have made it, or have put a link there.
        if !is_own_directory(all) {
            let source = std::io::Error::other("it belongs to somebody else");
            return Err(state_error("use", all, source));
        }
        make_private_dir(dir)?;
        Ok(dir)
    }

    /// Locks the copy's place, whether the copy exists or not, for as long as the returned guard
    /// lives.
    pub(crate) fn acquire(&self) -> Result<OwnedLockGuard, WorkspaceError> {
        for _ in 0..MAX_LOCK_ATTEMPTS {
            let lock = match FileLock::open(&self.dir) {
                // Swept as a half-made one before the lock file was in it.
                Err(WorkspaceError::State { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    continue;
                }
                lock => lock?,
            };
            let held = lock.into_guard()?;
            // The one who had it may have removed the copy, and the lock file with it.
            if held.is_in_place() {
                return Ok(held);
            }
        }
        let source = std::io::Error::other("it is removed again and again");
        Err(state_error("lock", &self.dir, source))
    }

    /// Acquires the copy as [`CopyLocation::acquire`] does, if it exists.
    pub(crate) fn acquire_existing(&self) -> Result<Option<OwnedLockGuard>, WorkspaceError> {
        if self.dir.symlink_metadata().is_err() {
            return Ok(None);
        }
        self.acquire().map(Some)
    }

    /// Returns the process that has the copy open, if one does.
    pub(crate) fn holder(&self) -> Option<String> {
        FileLock::open(&self.dir).ok()?.current_holder()
    }

    pub(crate) fn read_record(&self) -> Result<CopyRecordState, WorkspaceError> {
        CopyRecord::read(&self.dir, &self.session)
    }

    /// Gives the copy to another session by renaming its directory, which is the one step that
    /// decides whose copy it is. The caller holds the lock.
    pub(crate) fn hand_over(&self, to: &Self, mut record: CopyRecord) -> Result<(), WorkspaceError> {
        let from = std::mem::replace(&mut record.info.session, to.session.clone());
        record.handed_from = Some(from);
        record.write(&self.dir)?;
        fs::rename(&self.dir, &to.dir).map_err(|source| state_error("hand over", &self.dir, source))?;
        to.finish_hand_over(&mut record)
    }

    /// Brings what lies beside the root to the name of a copy that was handed over. The place is
    /// held.
    pub(crate) fn finish_hand_over(&self, record: &mut CopyRecord) -> Result<(), WorkspaceError> {
        let Some(from) = record.handed_from.take() else { return Ok(()) };
        if let (CopyPlacement::Root, Some(sibling)) = (record.beside, &self.sibling) {
            match fs::rename(sibling.with_file_name(from.as_str()), sibling) {
                // A crash came after this step.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                renamed => renamed.map_err(|source| state_error("hand over", sibling, source))?,
            }
        }
        record.write(&self.dir)
    }

    /// Removes what a failed tier or a crash left. The caller holds the lock.
    pub(crate) fn clear(&self) -> Result<(), WorkspaceError> {
        restore_moved(&self.dir, &self.root)?;
        self.clear_sibling()?;
        for entry in names_in(&self.dir)? {
            if entry != "lock" {
                remove_tree(&self.dir.join(entry))?;
            }
        }
        Ok(())
    }

    fn clear_sibling(&self) -> Result<(), WorkspaceError> {
        let Some(sibling) = &self.sibling else { return Ok(()) };
        let Some(all) = sibling.parent().filter(|all| is_own_directory(all)) else { return Ok(()) };
        remove_tree(sibling)?;
        // Another copy may be in there.
        let _only_if_empty = fs::remove_dir(all);
        Ok(())
    }

    /// Removes the copy with all its files. The caller holds the lock; from the first step on the
    /// copy counts as removed.
    pub(crate) fn remove(&self) -> Result<(), WorkspaceError> {
        restore_moved(&self.dir, &self.root)?;
        CopyRecord::remove(&self.dir)?;
        self.clear_sibling()?;
        // Under another name, so that a new copy of the session may be made while the old one goes.
        let gone = self.work.join(format!("{REMOVED_PREFIX}{}", self.session));
        remove_tree(&gone)?;
        fs::rename(&self.dir, &gone).map_err(|source| state_error("remove", &self.dir, source))?;
        remove_tree(&gone)
    }
}

/// Returns the locations of all copies of a project.
pub(crate) fn all_locations(workspace: &Workspace) -> Result<Vec<CopyLocation>, WorkspaceError> {
    let names = names_in(&workspace.project.options.state_dir.join(COPIES_DIR))?;
    let sessions = names.iter().filter_map(|name| name.to_str()?.parse::<SessionId>().ok());
    Ok(sessions.map(|session| CopyLocation::of(workspace, &session)).collect())
}

/// A copy as described by its directory alone, without the project.
pub(crate) struct CopyDir {
    pub(crate) session: SessionId,
    pub(crate) dir: PathBuf,
    /// In which way its record is damaged, if it is.
    pub(crate) damage: Option<&'static str>,
    record: Option<Box<CopyRecord>>,
}

impl CopyDir {
    /// Returns the process that has the copy open, if one does.
    pub(crate) fn holder(&self) -> Option<String> {
        FileLock::open(&self.dir).ok()?.current_holder()
    }

    /// Returns true if all that it has is landed.
    pub(crate) fn is_landed(&self, history: &History) -> bool {
        self.record.as_ref().is_some_and(|record| is_copy_landed(record, history))
    }
}

/// Returns the copies in a project's state directory, without half-made ones.
pub(crate) fn list_copies(state_dir: &Path) -> Result<Vec<CopyDir>, WorkspaceError> {
    let work = state_dir.join(COPIES_DIR);
    let mut copies = Vec::new();
    for name in names_in(&work)? {
        let Some(session) = name.to_str().and_then(|name| name.parse::<SessionId>().ok()) else { continue };
        let dir = work.join(&name);
        let (damage, record) = match CopyRecord::read(&dir, &session)? {
            CopyRecordState::Nothing => continue,
            CopyRecordState::Damaged(reason) => (Some(reason), None),
            CopyRecordState::Record(record) => (None, Some(record)),
        };
        copies.push(CopyDir { session, dir, damage, record });
    }
    Ok(copies)
}

/// Removes copies that a crash left half made or half removed, that were never kept, or that are
/// landed. Copies that can't be removed or are in use stay for the next time.
pub(crate) fn sweep_copies(workspace: &Workspace) {
    let work = workspace.project.options.state_dir.join(COPIES_DIR);
    for name in names_in(&work).unwrap_or_default() {
        if name.to_str().is_some_and(|name| name.starts_with(REMOVED_PREFIX)) {
            let _next_time = remove_tree(&work.join(name));
        }
    }
    let places = all_locations(workspace).unwrap_or_default();
    // Read once, and not at all where there are no copies.
    let landings = if places.is_empty() { None } else { workspace.project.history().ok() };
    for place in places {
        let is_half_handed_over = matches!(place.read_record(), Ok(CopyRecordState::Record(record)) if record.handed_from.is_some());
        if is_half_handed_over
            && place.holder().is_none()
            && let Ok(Some(_held)) = place.acquire_existing()
            && let Ok(CopyRecordState::Record(mut record)) = place.read_record()
        {
            let _next_time = place.finish_hand_over(&mut record);
        }
        let is_left_over = || match place.read_record() {
            Ok(CopyRecordState::Nothing) => true,
            Ok(CopyRecordState::Record(record)) => {
                !record.kept || landings.as_ref().is_some_and(|history| is_copy_landed(&record, history))
            }
            _ => false,
        };
        if is_left_over()
            && place.holder().is_none()
            && let Ok(Some(_held)) = place.acquire_existing()
            && is_left_over()
        {
            let _next_time = place.remove();
        }
    }
}

/// Returns true if everything in a copy is landed according to the journal. Such a copy is left if
/// the landing process was cut off before it removed the copy.
pub(crate) fn is_copy_landed(record: &CopyRecord, history: &History) -> bool {
    let landing = history.landing_of(&record.info.session);
    landing.is_some_and(|(id, in_effect)| in_effect && record.is_landed_by(id))
}

fn names_in(dir: &Path) -> Result<Vec<std::ffi::OsString>, WorkspaceError> {
    let failed = |source| state_error("list", dir, source);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    entries.map(|entry| entry.map(|entry| entry.file_name()).map_err(failed)).collect()
}

/// Returns the directory for copies beside a root; `None` if the root is the file system's.
fn sibling_dir(root: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(root).ok()?;
    let digits = ContentHash::of(std::os::unix::ffi::OsStrExt::as_bytes(root.as_os_str())).to_string();
    Some(root.parent()?.join(format!("{COPIES_DIR_PREFIX}{}", digits.get(..COPIES_DIR_DIGITS)?)))
}

fn is_own_directory(dir: &Path) -> bool {
    let us = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir() && found.uid() == us)
}
