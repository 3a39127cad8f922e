//! Probes the kinds of isolated copies that work here, and lists existing copies.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

use journeyman_git::Git;
use journeyman_workspace::{
    CopyTools, IsolationTier, Options, Workspace, WorkspaceError, list_landed_copies,
};
use serde::Serialize;

use crate::config::{Config, Environment};
use crate::sessions::new_session_id;
use crate::state::StateDirs;
use crate::{Context as _, HostError};

/// Maximum number of files that are counted for a copy's size; a larger copy's size is a lower
/// bound.
const MAX_COUNTED_FILES: usize = 200_000;

/// A kind of isolated copy, and whether it works here.
#[derive(Debug, Clone, Serialize)]
pub struct CopyTier {
    /// The name of the way.
    pub tier: String,
    /// True if it works here.
    pub works: bool,
    /// Why it doesn't work.
    pub problem: Option<String>,
}

/// A copy of a project.
#[derive(Debug, Clone, Serialize)]
pub struct StoredCopy {
    /// The session that works in it.
    pub session: String,
    /// Its directory.
    pub directory: String,
    /// The bytes that it takes on the disk.
    pub bytes: u64,
    /// True if its work was landed, so that the next command removes it.
    pub landed: bool,
}

/// Tries each kind of copy on a one-file project in the state directory.
///
/// # Errors
/// [`HostError::Failed`] where that project can't be made.
pub fn probe_copy_tiers(
    environment: &Environment,
    dirs: &StateDirs,
    config: &Config,
) -> Result<Vec<CopyTier>, HostError> {
    let place = dirs.dir.join(format!("copy-probe-{}", std::process::id()));
    let probed = probe_copy_tiers_in(environment, dirs, config, &place);
    // A directory that can't be removed names itself a probe.
    std::fs::remove_dir_all(&place).ok();
    probed
}

fn probe_copy_tiers_in(
    environment: &Environment,
    dirs: &StateDirs,
    config: &Config,
    place: &Path,
) -> Result<Vec<CopyTier>, HostError> {
    let root = place.join("project");
    DirBuilder::new().recursive(true).mode(0o700).create(&root).context("trying copies")?;
    std::fs::write(root.join("file"), b"probe\n").context("trying copies")?;
    let options = Options::new(place.join("state"), Arc::clone(&dirs.blobs));
    let workspace = Workspace::open(&root, options).context("trying copies")?;
    let sandbox = Arc::new(dirs.sandbox(config)?);
    let git = environment.has_program("git").then(|| Git::new(&root, Arc::clone(&sandbox)));
    let mut tiers = Vec::new();
    for tier in IsolationTier::ALL {
        let session = new_session_id();
        let means =
            CopyTools { sandbox: &sandbox, git: git.as_ref(), tiers: &[tier], max_copied_files: usize::MAX };
        let problem = match workspace.copies().create(&session, &means) {
            Ok(copy) => {
                drop(copy);
                workspace.copies().discard(&session).err().map(|error| error.to_string())
            }
            Err(WorkspaceError::NoCopy { reasons }) => {
                Some(reasons.into_iter().map(|(_, reason)| reason).collect::<Vec<_>>().join("; "))
            }
            Err(error) => Some(error.to_string()),
        };
        // A project that isn't in a repository has nothing to check out; elsewhere it may well
        // work.
        let problem = problem.filter(|_| tier != IsolationTier::Worktree || git.is_none());
        tiers.push(CopyTier { tier: tier.to_string(), works: problem.is_none(), problem });
    }
    Ok(tiers)
}

/// Returns the copies of all projects, with the bytes that each takes on the disk.
#[must_use]
pub fn list_copies(state_dir: &Path) -> Vec<StoredCopy> {
    let mut all = Vec::new();
    for project in list_subdirectories(&state_dir.join("projects")) {
        // Copies that can't be read are reported as damage.
        let landed = list_landed_copies(&project).unwrap_or_default();
        for copy in list_subdirectories(&project.join("work")) {
            let session = copy.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let landed = landed.iter().any(|landed| landed.as_str() == session);
            let (directory, bytes) = (copy.display().to_string(), size_on_disk(&copy));
            all.push(StoredCopy { session, directory, bytes, landed });
        }
    }
    all
}

fn list_subdirectories(of: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(of) else { return Vec::new() };
    let directories =
        entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut paths: Vec<_> = directories.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the size of a tree's blocks on the disk, as `du` counts them; links are not followed.
fn size_on_disk(dir: &Path) -> u64 {
    let (mut bytes, mut seen, mut waiting) = (0, 0, vec![dir.to_owned()]);
    while let Some(next) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else { continue };
        for entry in entries.filter_map(Result::ok) {
            seen += 1;
            if seen > MAX_COUNTED_FILES {
                return bytes;
            }
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * 512;
            if found.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    bytes
}
