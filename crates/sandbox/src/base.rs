//! What stands at the project's root for a command, where that isn't what the host has there.

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A copy of the project that commands see at the project's own path, so that compilers print paths the caller
/// knows and build caches stay valid.
#[derive(Debug, Clone)]
pub enum Base {
    /// A directory elsewhere on the host.
    Directory(PathBuf),
    /// A mount in namespaces of its own.
    Mounted(Arc<Mounted>),
}

/// An overlay over a directory of the host, mounted at that directory's own path in a user and a mount namespace
/// that nobody lives in: these descriptors alone keep them. When the last one is closed, also because this program
/// was killed, the kernel takes the mount down; what was changed stays in the upper layer.
#[derive(Debug)]
pub struct Mounted {
    #[cfg(target_os = "linux")]
    pub(crate) root: OwnedFd,
    #[cfg(target_os = "linux")]
    pub(crate) user: OwnedFd,
    #[cfg(target_os = "linux")]
    pub(crate) mounts: OwnedFd,
}

#[cfg(target_os = "linux")]
impl Mounted {
    /// The merged directory. Names beneath it are resolved as beneath any other directory.
    #[must_use]
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// What an overlay is made of. All three are absolute; upper and work lie on one file system, empty at first, and
/// belong to nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayPlan {
    /// What is read where nothing was changed. It is never written.
    pub lower: PathBuf,
    /// Where changes go.
    pub upper: PathBuf,
    /// The kernel's own directory beside it.
    pub work: PathBuf,
}
