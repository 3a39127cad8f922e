//! Mounts of a copy's build caches, shared by commands that run at once and kept for the next.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use journeyman_protocol::RelPath;
use rustix::fs::AtFlags;

use super::mount_client::mount_caches;
use crate::request::Request;
use crate::{MountedTree, ProjectCopy, SandboxError, SandboxSettings};

/// The mounted caches. A layer that two mounts write to is spoilt, so each layer is mounted at most
/// once.
#[derive(Debug, Clone, Default)]
pub(crate) struct CacheMounts(Arc<Mutex<Vec<CachedMount>>>);

/// A directory's identity: device and inode.
type DirectoryIdentity = Option<(u64, u64)>;

/// A base with caches, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CacheMountKey {
    root: PathBuf,
    copy: PathBuf,
    caches: Vec<RelPath>,
    layers: PathBuf,
}

#[derive(Debug)]
struct CachedMount {
    named: CacheMountKey,
    /// The identity of each cache's directory when it was mounted: removing the directory removes
    /// the mount.
    seen: Vec<DirectoryIdentity>,
    mounted: Arc<MountedTree>,
}

impl CacheMounts {
    /// Returns the namespaces that a request's command has to join, if any. Doesn't block the
    /// runtime.
    pub(crate) async fn find_mount(
        &self,
        settings: &SandboxSettings,
        request: &Request,
    ) -> Result<Option<Arc<MountedTree>>, SandboxError> {
        let named = match &request.base {
            None => return Ok(None),
            Some(ProjectCopy::Mounted(mounted)) => return Ok(Some(Arc::clone(mounted))),
            Some(ProjectCopy::Directory { caches, .. }) if caches.is_empty() => return Ok(None),
            Some(ProjectCopy::Directory { path, caches, layers }) => CacheMountKey {
                root: request.root.clone(),
                copy: path.clone(),
                caches: caches.clone(),
                layers: layers.clone(),
            },
        };
        let (all, settings) = (self.clone(), settings.clone());
        let mounted = tokio::task::spawn_blocking(move || all.find_or_mount(&settings, named)).await;
        mounted.map_err(|_| SandboxError::Abandoned)?.map(Some)
    }

    fn find_or_mount(
        &self,
        settings: &SandboxSettings,
        named: CacheMountKey,
    ) -> Result<Arc<MountedTree>, SandboxError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes unused mounts that are outdated or belong to a copy that is gone.
        all.retain(|known| Arc::strong_count(&known.mounted) > 1 || known.is_current());
        let same =
            |known: &&CachedMount| known.named.layers == named.layers && known.named.copy == named.copy;
        if let Some(known) = all.iter().find(same) {
            // A mount in use may have other caches: all commands in a copy must share one mount.
            if known.named == named || Arc::strong_count(&known.mounted) > 1 {
                return Ok(Arc::clone(&known.mounted));
            }
        }
        all.retain(|known| known.named.layers != named.layers || Arc::strong_count(&known.mounted) > 1);
        let CacheMountKey { root, copy, caches, layers } = &named;
        let mounted = Arc::new(mount_caches(settings, root, copy, caches, layers)?);
        let seen = directory_identities(&mounted, caches);
        all.push(CachedMount { named, seen, mounted: Arc::clone(&mounted) });
        Ok(mounted)
    }
}

impl CachedMount {
    /// Returns true if the copy, the layers and the directories are still those that were mounted.
    fn is_current(&self) -> bool {
        let now = |path: &PathBuf| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let of = |stat: Result<rustix::fs::Stat, _>| stat.ok().map(|stat| (stat.st_dev, stat.st_ino));
        now(&self.named.copy) == of(rustix::fs::fstat(&self.mounted.root))
            && now(&self.named.layers) == of(rustix::fs::fstat(&self.mounted.lock))
            && directory_identities(&self.mounted, &self.named.caches) == self.seen
    }
}

fn directory_identities(mounted: &MountedTree, caches: &[RelPath]) -> Vec<DirectoryIdentity> {
    let look = |path: &RelPath| {
        let found = rustix::fs::statat(&mounted.root, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((found.st_dev, found.st_ino))
    };
    caches.iter().map(look).collect()
}
