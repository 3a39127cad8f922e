//! An overlay file system, as both helpers mount it.

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags};

/// The durability of what is written to an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// The changes last as long as one command.
    Command,
    /// Beyond the mount.
    Lasting,
}

/// Creates an overlay of directories, not attached yet. All three must have been opened in this
/// mount namespace.
///
/// They are named by descriptor: a path in an overlay's options needs escaping that differs between
/// kernels, is cut at 255 bytes, and would show to commands, in their list of mounts, where the
/// layers lie.
pub(super) fn create_overlay_mount(
    lower: impl AsFd,
    upper: impl AsFd,
    work: impl AsFd,
    life: Durability,
) -> Result<OwnedFd, Errno> {
    let (lower, upper, work) = (lower.as_fd(), upper.as_fd(), work.as_fd());
    let fs = rustix::mount::fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_flag(fs.as_fd(), c"userxattr")?;
    for (key, directory) in [(c"lowerdir", lower), (c"upperdir", upper), (c"workdir", work)] {
        let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
        rustix::mount::fsconfig_set_string(fs.as_fd(), key, name)?;
    }
    // Where a distribution turned it on, a copied tree couldn't be mounted again.
    rustix::mount::fsconfig_set_string(fs.as_fd(), c"index", c"off")?;
    if life == Durability::Lasting && rustix::fs::fstat(lower)?.st_dev != rustix::fs::fstat(upper)?.st_dev {
        // Directories would get a new inode number whenever the kernel forgets them.
        rustix::mount::fsconfig_set_string(fs.as_fd(), c"xino", c"on")?;
    }
    rustix::mount::fsconfig_create(fs.as_fd())?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if rustix::fs::fstatvfs(lower)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        attributes |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
    }
    rustix::mount::fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Attaches a tree over an open directory.
pub(super) fn mount_onto(tree: impl AsFd, place: impl AsFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree.as_fd(), c"", place.as_fd(), c"", flags)
}
