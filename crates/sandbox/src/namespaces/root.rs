//! The root of a sandbox, built step by step inside its own mount namespace.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};

use super::helper_files::{open_without_links, write_file};
use super::overlay::{Durability, create_overlay_mount, mount_onto};
use super::root_steps::{BindAccess, RootStep};
use super::sys;

/// The directory with the sources of private directories and layers; commands may not enter it.
const STORE_DIRECTORY: &CStr = c".sandbox";
/// Maximum number of files in the scratch space; an inode is about 1 KiB of kernel memory.
const MAX_SCRATCH_FILES: u32 = 400_000;

const RDONLY: u64 = MountAttrFlags::MOUNT_ATTR_RDONLY.bits() as u64;
const NOSUID: u64 = MountAttrFlags::MOUNT_ATTR_NOSUID.bits() as u64;
const NODEV: u64 = MountAttrFlags::MOUNT_ATTR_NODEV.bits() as u64;
const NOEXEC: u64 = MountAttrFlags::MOUNT_ATTR_NOEXEC.bits() as u64;

pub(super) const RDONLY_NOSUID_NODEV: u64 = RDONLY | NOSUID | NODEV;

/// Mounts an empty file system in memory over the old root, which all absolute paths still lead to.
pub(super) fn mount_new_root(bytes: u64) -> Result<OwnedFd, Errno> {
    let fs = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(fs.as_fd(), c"size", bytes.to_string())?;
    rustix::mount::fsconfig_set_string(fs.as_fd(), c"nr_inodes", MAX_SCRATCH_FILES.to_string())?;
    rustix::mount::fsconfig_set_string(fs.as_fd(), c"mode", c"0755")?;
    rustix::mount::fsconfig_create(fs.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = rustix::mount::fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    rustix::mount::move_mount(root.as_fd(), c"", CWD, c"/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    rustix::process::fchdir(&root)?;
    rustix::fs::mkdirat(&root, STORE_DIRECTORY, Mode::empty())?;
    Ok(root)
}

/// Makes the new root the only one, and read-only.
pub(super) fn enter_root(root: &OwnedFd) -> Result<(), Errno> {
    sys::mount_attributes(root, c"", false, RDONLY)?;
    rustix::process::pivot_root(c".", c".")?;
    // The old one now lies over the new one.
    rustix::mount::unmount(c".", UnmountFlags::DETACH)?;
    rustix::process::chdir(c"/")
}

/// Builds the root from the steps.
pub(super) struct RootBuilder<'a> {
    root: &'a OwnedFd,
    base: Option<OwnedFd>,
    pid_max: u32,
    stores: u32,
}

impl<'a> RootBuilder<'a> {
    pub(super) fn new(root: &'a OwnedFd, base: Option<OwnedFd>, pid_max: u32) -> Self {
        Self { root, base, pid_max, stores: 0 }
    }

    pub(super) fn carry_out(&mut self, step: &RootStep<&CStr>) -> Result<(), Errno> {
        match *step {
            RootStep::Directory { path } => rustix::fs::mkdirat(self.root, path, Mode::from_raw_mode(0o755)),
            RootStep::File { path } => self.create_file(path, &[]),
            RootStep::Link { path, target } => rustix::fs::symlinkat(target, self.root, path),
            RootStep::Bind { path, source, access } => {
                let recursive = access != BindAccess::Device;
                let tree = clone_source(source, recursive, mount_attributes(access))?;
                self.attach_tree(&tree, path)
            }
            RootStep::Base { path, access } => {
                let tree = self.base.take().ok_or(Errno::PROTO)?;
                sys::mount_attributes(&tree, c"", true, mount_attributes(access))?;
                self.attach_tree(&tree, path)
            }
            RootStep::Scratch { path, mode } => {
                let store = self.create_store_directory(b's', mode)?;
                let tree = clone_mount(self.root, &store, false, 0)?;
                self.attach_tree(&tree, path)
            }
            RootStep::Layer { path, source } => self.mount_layer(path, source),
            RootStep::Proc { path } => self.mount_proc(path),
            RootStep::Terminals { path } => {
                let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
                rustix::mount::mount(c"devpts", path, c"devpts", flags, c"newinstance,ptmxmode=0666,mode=620")
            }
            RootStep::Guard { path } => self.make_read_only(path),
            RootStep::Mask { path, directory, text } => self.hide_path(path, directory, text.to_bytes()),
        }
    }

    fn create_file(&self, path: &CStr, mut text: &[u8]) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.root, path, flags, Mode::from_raw_mode(0o444))?;
        while !text.is_empty() {
            let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, text))?;
            text = text.get(written..).ok_or(Errno::IO)?;
        }
        Ok(())
    }

    /// Makes a new directory in the store: `.sandbox/s0`, `.sandbox/u1`, …
    fn create_store_directory(&mut self, letter: u8, mode: u32) -> Result<CString, Errno> {
        let name =
            format!("{}/{}{}", STORE_DIRECTORY.to_str().unwrap_or_default(), char::from(letter), self.stores);
        self.stores += 1;
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        rustix::fs::mkdirat(self.root, &name, Mode::from_raw_mode(mode))?;
        Ok(name)
    }

    fn attach_tree(&self, tree: &OwnedFd, path: &CStr) -> Result<(), Errno> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(tree.as_fd(), c"", self.root.as_fd(), path, flags)
    }

    fn mount_layer(&mut self, path: &CStr, source: &CStr) -> Result<(), Errno> {
        let (upper, work) =
            (self.create_store_directory(b'u', 0o755)?, self.create_store_directory(b'w', 0o755)?);
        let mount = || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let lower = open_without_links(source)?;
            let upper = rustix::fs::openat(self.root, &upper, flags, Mode::empty())?;
            let work = rustix::fs::openat(self.root, &work, flags, Mode::empty())?;
            self.attach_tree(&create_overlay_mount(lower, upper, work, Durability::Command)?, path)
        };
        if mount().is_ok() {
            return Ok(());
        }
        // Kernels before 5.11, or file systems that can't be a lower layer.
        let tree = clone_source(source, true, RDONLY_NOSUID_NODEV)?;
        self.attach_tree(&tree, path)
    }

    fn mount_proc(&self, path: &CStr) -> Result<(), Errno> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        rustix::mount::mount(c"proc", path, c"proc", flags, None)?;
        if self.pid_max > 0 {
            // Root's processes don't count against RLIMIT_NPROC. The knob is per namespace since
            // Linux 6.14; before that the kernel refuses the write, and the gap is reported.
            write_file(c"proc/sys/kernel/pid_max", self.pid_max.to_string().as_bytes()).ok();
        }
        // All of `/proc`, not `sys` alone: `sysrq-trigger` and others obey any root user.
        sys::mount_attributes(self.root, path, false, RDONLY)
    }

    /// Opens the file at a path in the new root, without following any link: the tree may belong to
    /// an attacker.
    fn open_beneath(&self, path: &CStr) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
        rustix::io::retry_on_intr(|| rustix::fs::openat2(self.root, path, flags, Mode::empty(), resolve))
    }

    fn make_read_only(&self, path: &CStr) -> Result<(), Errno> {
        let place = self.open_beneath(path)?;
        let tree = clone_mount(&place, c"", true, RDONLY_NOSUID_NODEV)?;
        mount_onto(&tree, &place)
    }

    fn hide_path(&mut self, path: &CStr, directory: bool, text: &[u8]) -> Result<(), Errno> {
        let place = self.open_beneath(path)?;
        let store = if directory {
            self.create_store_directory(b'm', 0o555)?
        } else {
            let name = CString::new(format!(".sandbox/m{}", self.stores)).map_err(|_| Errno::INVAL)?;
            self.stores += 1;
            self.create_file(&name, text)?;
            name
        };
        let tree = clone_mount(self.root, &store, false, RDONLY | NOSUID | NODEV | NOEXEC)?;
        mount_onto(&tree, &place)
    }
}

fn mount_attributes(access: BindAccess) -> u64 {
    match access {
        BindAccess::ReadOnly => RDONLY_NOSUID_NODEV,
        BindAccess::Writable => NOSUID | NODEV,
        BindAccess::Device => NOSUID | NOEXEC,
    }
}

/// Creates a separate mount of the host's files at a path, following no link: a directory on the
/// way may have been replaced by one since the plan was made.
fn clone_source(path: &CStr, recursive: bool, attributes: u64) -> Result<OwnedFd, Errno> {
    clone_mount(open_without_links(path)?, c"", recursive, attributes)
}

/// Creates a separate mount of the files at a path.
pub(super) fn clone_mount(
    at: impl AsFd,
    path: &CStr,
    recursive: bool,
    attributes: u64,
) -> Result<OwnedFd, Errno> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    flags.set(OpenTreeFlags::AT_RECURSIVE, recursive);
    let tree = rustix::mount::open_tree(at.as_fd(), path, flags)?;
    if attributes != 0 {
        sys::mount_attributes(&tree, c"", recursive, attributes)?;
    }
    Ok(tree)
}
