//! The copy of the project that a command finds at the project's own path.

use std::path::PathBuf;
use std::sync::Arc;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use journeyman_protocol::RelPath;

/// A copy of the project that commands see at the project's own path, so that compilers print paths
/// the caller knows and build caches stay valid.
#[derive(Debug, Clone)]
pub enum ProjectCopy {
    /// A directory elsewhere on the host.
    Directory {
        /// The copy.
        path: PathBuf,
        /// Directories of the real root that the copy doesn't have, such as a build's: each is
        /// shown at its place and takes writes into a layer of its own, so that what one command
        /// built the next finds. A cache without a layer is read-only. Left out are those that the
        /// copy has itself, whose parent it doesn't have, or that a link stands for. The real ones
        /// are never changed.
        caches: Vec<RelPath>,
        /// The directory of these layers: on the file system of the copy, outside of the copy and
        /// of the real root, and used by nobody else. Created if it doesn't exist.
        layers: PathBuf,
    },
    /// A mount in namespaces of its own.
    Mounted(Arc<MountedTree>),
}

/// A tree in a user and a mount namespace without processes, such as an overlay mounted over a
/// directory at that directory's own path: these descriptors alone keep the tree mounted. When the
/// last one is closed, also because this program was killed, the kernel takes the mounts down; what
/// was changed stays in the upper layer.
#[derive(Debug)]
pub struct MountedTree {
    /// The path of the tree in the namespace, without links.
    pub(crate) path: PathBuf,
    /// The directories that the tree is made of, which commands mustn't reach by another name.
    pub(crate) layers: Vec<PathBuf>,
    pub(crate) root: OwnedFd,
    pub(crate) user: OwnedFd,
    pub(crate) mounts: OwnedFd,
    /// Locked for as long as anybody may write to the layers.
    pub(crate) lock: OwnedFd,
    /// True for an overlay over the whole tree, whose upper layer is what is locked.
    pub(crate) overlays: bool,
}

impl MountedTree {
    /// Returns the merged directory. Names beneath it are resolved as beneath any other directory.
    #[must_use]
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Returns the upper layer of an overlay over the whole tree; `None` where the tree itself is
    /// mounted.
    #[must_use]
    pub fn upper(&self) -> Option<BorrowedFd<'_>> {
        self.overlays.then(|| self.lock.as_fd())
    }
}

/// The directories of an overlay. All three are absolute. The upper and the work directory lie on
/// one file system, are empty at first, and are used by nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayPlan {
    /// The directory that unchanged files are read from. It is never written.
    pub lower: PathBuf,
    /// The directory that takes changes.
    pub upper: PathBuf,
    /// The directory that the kernel works in.
    pub work: PathBuf,
}
