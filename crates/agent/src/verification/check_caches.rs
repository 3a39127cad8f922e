//! The caches of a session's checks, prepared in the background.

use std::sync::Arc;

use journeyman_verify::CheckCaches;
use tokio::task::JoinHandle;

use crate::session::context::SessionContext;

/// The caches of a session's checks.
#[derive(Default)]
pub(super) enum SessionCaches {
    #[default]
    Unasked,
    Making(JoinHandle<Option<Arc<CheckCaches>>>),
    /// The caches; `None` if they can't be made, which only costs time.
    Made(Option<Arc<CheckCaches>>),
}

impl SessionCaches {
    /// Starts preparing the caches, unless they exist already.
    pub(super) fn prepare(&mut self, cx: &SessionContext) {
        if matches!(self, Self::Unasked | Self::Made(None)) {
            let (project, toolchains) = (Arc::clone(cx.project()), Arc::clone(&cx.toolchains));
            *self = Self::Making(tokio::task::spawn_blocking(move || {
                CheckCaches::create(&project, &toolchains, fastrand::u64(..)).ok().map(Arc::new)
            }));
        }
    }

    /// Returns the caches.
    pub(super) async fn get(&mut self, cx: &SessionContext) -> Option<Arc<CheckCaches>> {
        self.prepare(cx);
        if let Self::Making(making) = self {
            *self = Self::Made(making.await.ok().flatten());
        }
        match self {
            Self::Made(caches) => caches.clone(),
            Self::Unasked | Self::Making(_) => None,
        }
    }
}
