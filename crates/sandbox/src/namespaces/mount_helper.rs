//! The mount helper: it creates namespaces, mounts in them, passes descriptors of them to the
//! agent, and ends.
//!
//! Runs single-threaded in a program that has done nothing else, like [`super::init`].

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::MountPropagationFlags;

use super::framing::{HEADER_BYTES, read_exact, read_frame};
use super::init::{AtStage, SetupFailure, map_single_user, report_failure, send_message};
use super::messages::{HelperMessage, SetupStage};
use super::mount_order::{CacheDirectory, MOUNT_ORDER_MAGIC, MountOrder, OverlayLayers, USERS_MAPPED};
use super::overlay::{Durability, create_overlay_mount, mount_onto};
use super::root::{RDONLY_NOSUID_NODEV, clone_mount};
use super::{descriptor_passing, outer_helper, sys};

/// An attribute that overlays are full of, tried before one is mounted: without, it works only
/// half.
const TEST_ATTRIBUTE: &CStr = c"user.journeyman";

/// Does the helper's whole work; never returns.
pub(super) fn run_mounter(control: &OwnedFd) -> ! {
    report_failure(control, carry_out_order(control));
    sys::exit(0)
}

fn carry_out_order(control: &OwnedFd) -> Result<(), SetupFailure> {
    send_message(control, HelperMessage::Hello);
    let order = read_frame(control, MOUNT_ORDER_MAGIC).at_stage(SetupStage::Policy)?;
    let order = order
        .get(HEADER_BYTES..)
        .and_then(MountOrder::decode)
        .ok_or_else(outer_helper::malformed_frame_failure)?;
    sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).at_stage(SetupStage::Namespaces)?;
    map_users(control, &order).at_stage(SetupStage::Identity)?;
    // Nothing of this shows outside; but what is unmounted outside doesn't stay mounted here.
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", slave).at_stage(SetupStage::Root)?;
    // Modes are as given.
    rustix::process::umask(Mode::empty());
    let root = match &order.overlay {
        Some(layers) => mount_overlay_onto_lower(order.root, layers)?,
        None => open_directory(order.root, OFlags::RDONLY).at_stage(SetupStage::Root)?,
    };
    if !order.caches.is_empty() {
        attach_caches(&root, &order).at_stage(SetupStage::Root)?;
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let user = rustix::fs::open(c"/proc/self/ns/user", flags, Mode::empty()).at_stage(SetupStage::Pass)?;
    let mounts = rustix::fs::open(c"/proc/self/ns/mnt", flags, Mode::empty()).at_stage(SetupStage::Pass)?;
    let note = HelperMessage::Mounted.encode();
    descriptor_passing::send_descriptors(control, &note, &[root.as_fd(), user.as_fd(), mounts.as_fd()])
        .at_stage(SetupStage::Pass)
        .map(drop)
}

/// Maps all users of the agent, if the agent may map them, so that files of any owner can be copied
/// up.
fn map_users(control: &OwnedFd, order: &MountOrder<&CStr>) -> Result<(), Errno> {
    if order.maps {
        send_message(control, HelperMessage::Unshared);
        let mut answer = [0];
        read_exact(control, &mut answer)?;
        if answer == [USERS_MAPPED] {
            return Ok(());
        }
    }
    map_single_user(order.uid, order.gid)
}

fn open_directory(path: &CStr, how: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, how | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Mounts an overlay over its lower directory, and returns the mount.
fn mount_overlay_onto_lower(lower: &CStr, layers: &OverlayLayers<&CStr>) -> Result<OwnedFd, SetupFailure> {
    let open = |index: u32, path: &CStr, how: OFlags| {
        open_directory(path, how).map_err(|errno| SetupFailure(SetupStage::Layer, index, errno))
    };
    let lower = open(0, lower, OFlags::PATH)?;
    let upper = open(1, layers.upper, OFlags::RDONLY)?;
    let work = open(2, layers.work, OFlags::PATH)?;
    let tree = create_overlay(&lower, &upper, &work)?;
    mount_onto(&tree, &lower).at_stage(SetupStage::Attach)?;
    rustix::fs::openat(&tree, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .at_stage(SetupStage::Attach)
}

fn create_overlay(lower: &OwnedFd, upper: &OwnedFd, work: &OwnedFd) -> Result<OwnedFd, SetupFailure> {
    let create = rustix::fs::XattrFlags::empty();
    rustix::fs::fsetxattr(upper, TEST_ATTRIBUTE, b"", create).at_stage(SetupStage::Attributes)?;
    rustix::fs::fremovexattr(upper, TEST_ATTRIBUTE).at_stage(SetupStage::Attributes)?;
    copy_mode_and_owner(lower, upper).at_stage(SetupStage::Attributes)?;
    create_overlay_mount(lower, upper, work, Durability::Lasting).at_stage(SetupStage::Overlay)
}

/// Gives a new upper directory the mode and the owner of the lower one.
fn copy_mode_and_owner(lower: &OwnedFd, upper: &OwnedFd) -> Result<(), Errno> {
    let (old, new) = (rustix::fs::fstat(lower)?, rustix::fs::fstat(upper)?);
    let same = (old.st_mode, old.st_uid, old.st_gid) == (new.st_mode, new.st_uid, new.st_gid);
    if same || !is_empty(upper)? {
        return Ok(());
    }
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
        let (uid, gid) = (rustix::fs::Uid::from_raw(old.st_uid), rustix::fs::Gid::from_raw(old.st_gid));
        // The directory is another user's, and this user may write to it: the copy then belongs to
        // this user.
        rustix::fs::fchown(upper, Some(uid), Some(gid)).ok();
    }
    rustix::fs::fchmod(upper, Mode::from_raw_mode(old.st_mode & 0o7777))
}

fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    for entry in Dir::read_from(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Shows the caches beneath the root, as far as they can be.
fn attach_caches(root: &OwnedFd, order: &MountOrder<&CStr>) -> Result<(), Errno> {
    let real = open_directory(order.real, OFlags::PATH)?;
    for cache in &order.caches {
        // Without a cache, a command rebuilds what it needs.
        attach_cache(root, &real, cache).ok();
    }
    Ok(())
}

/// Opens a directory beneath another, with no link on the way.
fn open_beneath(above: &OwnedFd, path: &CStr, how: OFlags) -> Result<OwnedFd, Errno> {
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
    rustix::io::retry_on_intr(|| rustix::fs::openat2(above, path, flags, Mode::empty(), resolve))
}

/// Shows a cache, with a layer for what is written to it or else read-only.
fn attach_cache(root: &OwnedFd, real: &OwnedFd, cache: &CacheDirectory<&CStr>) -> Result<(), Errno> {
    let lower = open_beneath(real, cache.place, OFlags::PATH)?;
    let place = open_cache_directory(root, cache.place)?;
    if let Some(layers) = &cache.layers {
        let open = || {
            Ok((open_directory(layers.upper, OFlags::RDONLY)?, open_directory(layers.work, OFlags::PATH)?))
        };
        let mount = |(upper, work): (OwnedFd, OwnedFd)| {
            let tree = create_overlay(&lower, &upper, &work).map_err(|SetupFailure(_, _, errno)| errno)?;
            mount_onto(&tree, &place)
        };
        if open().and_then(mount).is_ok() {
            return Ok(());
        }
    }
    mount_onto(clone_mount(&lower, c"", true, RDONLY_NOSUID_NODEV)?, &place)
}

/// Opens the directory where a cache is shown: one of the copy's that is empty, made if it doesn't
/// exist.
fn open_cache_directory(root: &OwnedFd, path: &CStr) -> Result<OwnedFd, Errno> {
    let there = match open_beneath(root, path, OFlags::RDONLY) {
        Err(Errno::NOENT) => {
            let (above, name) = match path.to_bytes().iter().rposition(|&byte| byte == b'/') {
                Some(slash) => path.to_bytes().split_at(slash),
                None => (&b"."[..], path.to_bytes()),
            };
            let above = std::ffi::CString::new(above).map_err(|_| Errno::INVAL)?;
            let name = name.strip_prefix(b"/").unwrap_or(name);
            match rustix::fs::mkdirat(
                open_beneath(root, &above, OFlags::PATH)?,
                name,
                Mode::from_raw_mode(0o755),
            ) {
                Ok(()) | Err(Errno::EXIST) => open_beneath(root, path, OFlags::RDONLY)?,
                Err(errno) => return Err(errno),
            }
        }
        there => there?,
    };
    if !is_empty(&there)? {
        return Err(Errno::NOTEMPTY);
    }
    // Only such a descriptor can be mounted on whatever the directory's mode is.
    open_beneath(root, path, OFlags::PATH)
}
