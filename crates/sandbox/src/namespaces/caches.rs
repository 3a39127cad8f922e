//! What a copy of the project is mounted in for commands, shared by those that run at once.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::mount_caches;
use crate::request::Request;
use crate::{Base, Mounted, SandboxError, SandboxSettings};

/// The namespaces with caches that some command is in. None outlives its commands: what a mount is made on may be
/// removed in the meantime, and a layer that two mounts write to is spoilt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caches(Arc<Mutex<Vec<Known>>>);

#[derive(Debug)]
struct Known {
    copy: PathBuf,
    layers: PathBuf,
    mounted: Weak<Mounted>,
}

impl Caches {
    /// The namespaces that a request's command has to join, if any. Blocks nobody else on this runtime.
    pub(crate) async fn joined(
        &self,
        settings: &SandboxSettings,
        request: &Request,
    ) -> Result<Option<Arc<Mounted>>, SandboxError> {
        let (path, caches, layers) = match &request.base {
            None => return Ok(None),
            Some(Base::Mounted(mounted)) => return Ok(Some(Arc::clone(mounted))),
            Some(Base::Directory { caches, .. }) if caches.is_empty() => return Ok(None),
            Some(Base::Directory { path, caches, layers }) => (path.clone(), caches.clone(), layers.clone()),
        };
        let (all, settings, root) = (self.clone(), settings.clone(), request.root.clone());
        let mount = move || {
            let mut all = all.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|known| known.mounted.strong_count() > 0);
            let same = all.iter().find(|known| known.layers == layers && known.copy == path);
            if let Some(mounted) = same.and_then(|known| known.mounted.upgrade()) {
                return Ok(mounted);
            }
            let mounted = Arc::new(mount_caches(&settings, &root, &path, &caches, &layers)?);
            all.push(Known { copy: path, layers, mounted: Arc::downgrade(&mounted) });
            Ok(mounted)
        };
        let mounted = tokio::task::spawn_blocking(mount).await.map_err(|_| SandboxError::Abandoned)?;
        mounted.map(Some)
    }
}
