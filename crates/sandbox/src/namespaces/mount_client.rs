//! The agent's side of mounting: an order out, descriptors in. Blocks for some milliseconds; needs
//! no runtime.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use journeyman_protocol::RelPath;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::advice::setup_advice;
use super::c_string::to_c_string;
use super::descriptor_passing;
use super::helper_arguments::{HELPER_ARGUMENT, MOUNT_ARGUMENT, is_helper};
use super::messages::{HelperMessage, MESSAGE_BYTES, SetupStage};
use super::mount_order::{CacheDirectory, LAYER_NAMES, MountOrder, OverlayLayers, USERS_MAPPED};
use super::root_plan::resolve_copy;
use crate::{MountedTree, OverlayPlan, SandboxError, SandboxSettings};

/// A helper answers in milliseconds; only a program that is none, or a dead disk, takes this long.
const HELPER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum wait for a lock: a command that was killed with its agent takes milliseconds to be gone,
/// and the kernel writes out a mount's changes when it takes the mount down.
/// A machine with ten programs a processor takes seconds for either.
const LOCK_WAIT: Duration = Duration::from_secs(20);
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// The longest name that file systems take.
const MAX_NAME_BYTES: usize = 255;
/// Caches of one copy; a project with more build directories rebuilds some.
const MAX_CACHES: usize = 64;

/// Mounts an overlay over its lower directory.
pub(crate) fn mount_overlay(
    settings: &SandboxSettings,
    plan: &OverlayPlan,
) -> Result<MountedTree, SandboxError> {
    let [lower, upper, work] = [&plan.lower, &plan.upper, &plan.work];
    let [lower, upper, work] = [
        resolve_directory(LAYER_NAMES[0], lower)?,
        resolve_directory(LAYER_NAMES[1], upper)?,
        resolve_directory(LAYER_NAMES[2], work)?,
    ];
    check_disjoint(&lower, [&upper, &work])?;
    if upper.starts_with(&work) || work.starts_with(&upper) {
        return Err(SandboxError::Refused(format!(
            "the overlay's work directory and its upper layer must lie beside each other (`{}`)",
            work.display()
        )));
    }
    let layer = open_layer(&upper)?;
    if !lock_layer(&layer).map_err(|errno| lock_error(&upper, errno))? {
        return Err(lock_error(&upper, Errno::WOULDBLOCK));
    }
    let order = create_order(&lower, Some(layer_paths(&upper, &work)?), &lower, Vec::new())?;
    let (root, user, mounts) =
        run_mount_helper(settings, &order)?.map_err(|trouble| trouble.to_overlay_error(plan))?;
    Ok(MountedTree {
        path: lower,
        layers: vec![upper, work],
        root,
        user,
        mounts,
        lock: layer,
        overlays: true,
    })
}

/// Mounts the caches of the project's root into its copy.
pub(crate) fn mount_caches(
    settings: &SandboxSettings,
    root: &Path,
    copy: &Path,
    caches: &[RelPath],
    beneath: &Path,
) -> Result<MountedTree, SandboxError> {
    let error = |source| SandboxError::Path { what: "the caches' layers", path: beneath.to_owned(), source };
    let real_root = resolve_directory("the project's root", root)?;
    let copy = resolve_copy(copy, &real_root)?;
    fs::create_dir_all(beneath).map_err(error)?;
    let beneath = resolve_directory("the caches' layers", beneath)?;
    check_disjoint(&real_root, [&beneath, &copy])?;
    check_disjoint(&copy, [&beneath, &real_root])?;
    let lock = open_layer(&beneath)?;
    // Another command that holds the layers may write to them, and this one may only read the real
    // directory.
    let ours = lock_layer(&lock).map_err(|errno| lock_error(&beneath, errno))?;
    let mut shown = Vec::with_capacity(caches.len());
    for place in caches.iter().take(MAX_CACHES) {
        let layers = layer_directory_name(place)
            .filter(|_| ours)
            .and_then(|name| create_layers(&beneath.join(name)).ok());
        shown.push(CacheDirectory { place: to_c_string(place.as_path().as_os_str())?, layers });
    }
    let order = create_order(&copy, None, &real_root, shown)?;
    let (root, user, mounts) =
        run_mount_helper(settings, &order)?.map_err(|trouble| trouble.to_sandbox_error())?;
    Ok(MountedTree { path: copy, layers: vec![beneath], root, user, mounts, lock, overlays: false })
}

/// Makes the directories of a cache's layers.
fn create_layers(at: &Path) -> io::Result<OverlayLayers<CString>> {
    let (upper, work) = (at.join("upper"), at.join("work"));
    fs::create_dir_all(&upper)?;
    fs::create_dir_all(&work)?;
    layer_paths(&upper, &work).map_err(io::Error::other)
}

/// Returns a directory's name for each cache: the same whatever the others are. `None` if it would
/// be too long.
fn layer_directory_name(place: &RelPath) -> Option<String> {
    let mut name = String::new();
    for &byte in place.as_bytes() {
        let plain =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (byte == b'.' && !name.is_empty());
        if plain { name.push(byte.into()) } else { name.push_str(&format!("%{byte:02x}")) }
    }
    (name.len() <= MAX_NAME_BYTES).then_some(name)
}

fn layer_paths(upper: &Path, work: &Path) -> Result<OverlayLayers<CString>, SandboxError> {
    Ok(OverlayLayers { upper: to_c_string(upper.as_os_str())?, work: to_c_string(work.as_os_str())? })
}

fn create_order(
    root: &Path,
    overlay: Option<OverlayLayers<CString>>,
    real: &Path,
    caches: Vec<CacheDirectory<CString>>,
) -> Result<MountOrder<CString>, SandboxError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    Ok(MountOrder {
        uid: uid.as_raw(),
        gid: gid.as_raw(),
        maps: can_map_ids() && IdMaps::of_this_process().is_some(),
        root: to_c_string(root.as_os_str())?,
        overlay,
        real: to_c_string(real.as_os_str())?,
        caches,
    })
}

/// Returns true if this process may map all its users and groups: both or none, because a map can't
/// be written twice.
fn can_map_ids() -> bool {
    use rustix::thread::CapabilitySet;
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::SETFCAP;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Returns a directory of the order's, without links.
fn resolve_directory(what: &'static str, path: &Path) -> Result<PathBuf, SandboxError> {
    let error = |source| SandboxError::Path { what, path: path.to_owned(), source };
    if !path.is_absolute() {
        return Err(SandboxError::Refused(format!("{what} must be named absolutely (`{}`)", path.display())));
    }
    let real = path.canonicalize().map_err(error)?;
    if real.is_dir() { Ok(real) } else { Err(error(io::ErrorKind::NotADirectory.into())) }
}

fn check_disjoint(tree: &Path, others: [&PathBuf; 2]) -> Result<(), SandboxError> {
    match others.into_iter().find(|other| other.starts_with(tree) || tree.starts_with(other)) {
        None => Ok(()),
        Some(other) => Err(SandboxError::Refused(format!(
            "`{}` and `{}` must lie apart: neither may be in the other",
            other.display(),
            tree.display()
        ))),
    }
}

fn open_layer(layer: &Path) -> Result<OwnedFd, SandboxError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(layer, flags, Mode::empty()).map_err(|errno| lock_error(layer, errno))
}

/// Locks a layer, because two mounts that write to one would spoil it. Returns false where somebody
/// else keeps it locked.
fn lock_layer(layer: &OwnedFd) -> Result<bool, Errno> {
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(layer, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if begun.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_PAUSE),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn lock_error(layer: &Path, errno: Errno) -> SandboxError {
    SandboxError::Path { what: "locking the layers", path: layer.to_owned(), source: errno.into() }
}

/// This process's own user and group maps, for a namespace in which everybody is who they are here.
struct IdMaps {
    users: String,
    groups: String,
}

impl IdMaps {
    /// Returns this process's maps; `None` where there is only one user, or nothing can be read.
    fn of_this_process() -> Option<Self> {
        Some(Self { users: identity_map("/proc/self/uid_map")?, groups: identity_map("/proc/self/gid_map")? })
    }

    /// Gives them to the namespace of a process; the kernel allows it to whoever may change to
    /// these users.
    fn write_to(&self, pid: u32) -> io::Result<()> {
        fs::write(format!("/proc/{pid}/uid_map"), &self.users)?;
        fs::write(format!("/proc/{pid}/gid_map"), &self.groups)
    }
}

fn identity_map(file: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut mapped = String::new();
    let mut all: u64 = 0;
    for line in text.lines() {
        let mut numbers = line.split_ascii_whitespace();
        let (first, _, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        all += count.parse::<u64>().ok()?;
        mapped.push_str(&format!("{first} {first} {count}\n"));
    }
    (all > 1).then_some(mapped)
}

/// A helper that is killed and reaped whatever happens; it ends by itself once it has done its
/// work.
struct MountHelper(Child);

impl Drop for MountHelper {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

type MountDescriptors = (OwnedFd, OwnedFd, OwnedFd);

/// Starts a helper, which carries out the order.
fn run_mount_helper(
    settings: &SandboxSettings,
    order: &MountOrder<CString>,
) -> Result<Result<MountDescriptors, MountFailure>, SandboxError> {
    if is_helper() {
        return Err(SandboxError::InsideHelper);
    }
    let program = settings.helper.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    let start = |source| SandboxError::Start { path: program.clone(), source };
    let bytes = order.encode().ok_or_else(|| start(io::ErrorKind::InvalidInput.into()))?;
    let (control, theirs) = UnixStream::pair().map_err(start)?;
    control.set_read_timeout(Some(HELPER_TIMEOUT)).map_err(start)?;
    control.set_write_timeout(Some(HELPER_TIMEOUT)).map_err(start)?;
    let mut command = Command::new(&program);
    command.arg(HELPER_ARGUMENT).arg(MOUNT_ARGUMENT).env_clear();
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::null());
    let helper = MountHelper(command.spawn().map_err(start)?);
    // `command` holds the helper's end of the socket; while it lives, the socket doesn't close.
    drop(command);
    match exchange_messages(&control, &helper, &bytes) {
        Ok(result) => Ok(result),
        Err(Handshake::Nothing) => Err(SandboxError::NoHelper { path: program }),
        Err(Handshake::HasThreads) => Err(SandboxError::ThreadsStarted { path: program }),
        Err(Handshake::Hello) => Err(SandboxError::Unavailable {
            reason: "the helper that mounts overlays ended, or hung, without saying why".to_owned(),
            fix: "Try it again; the kernel's log may say more".to_owned(),
        }),
    }
}

/// The state of the conversation with the helper.
enum Handshake {
    Nothing,
    HasThreads,
    Hello,
}

fn exchange_messages(
    control: &UnixStream,
    helper: &MountHelper,
    bytes: &[u8],
) -> Result<Result<MountDescriptors, MountFailure>, Handshake> {
    let mut passed = Vec::with_capacity(descriptor_passing::MAX_DESCRIPTORS);
    let mut unsent = bytes;
    while !unsent.is_empty() {
        let sent =
            descriptor_passing::send_descriptors(control, unsent, &[]).map_err(|_| Handshake::Nothing)?;
        unsent = unsent.get(sent..).unwrap_or_default();
    }
    match receive_message(control, &mut passed) {
        Some(HelperMessage::Hello) => {}
        Some(HelperMessage::HasThreads) => return Err(Handshake::HasThreads),
        _ => return Err(Handshake::Nothing),
    }
    loop {
        match receive_message(control, &mut passed).ok_or(Handshake::Hello)? {
            HelperMessage::Unshared => {
                let mapped =
                    IdMaps::of_this_process().is_some_and(|maps| maps.write_to(helper.0.id()).is_ok());
                let answer = [if mapped { USERS_MAPPED } else { 0 }];
                descriptor_passing::send_descriptors(control, &answer, &[]).map_err(|_| Handshake::Hello)?;
            }
            HelperMessage::Failed { stage, index, errno } => {
                return Ok(Err(MountFailure { stage, index, errno: Errno::from_raw_os_error(errno) }));
            }
            HelperMessage::Mounted => {
                let [root, user, mounts] = <[OwnedFd; 3]>::try_from(passed).map_err(|_| Handshake::Hello)?;
                return Ok(Ok((root, user, mounts)));
            }
            _ => return Err(Handshake::Hello),
        }
    }
}

/// Receives the next message; `None` if there is none.
fn receive_message(control: &UnixStream, passed: &mut Vec<OwnedFd>) -> Option<HelperMessage> {
    let mut note = [0; MESSAGE_BYTES];
    descriptor_passing::receive_exact_bytes(control, &mut note, passed).ok()?;
    HelperMessage::decode(&note)
}

/// A failure of the helper.
struct MountFailure {
    stage: SetupStage,
    index: u32,
    errno: Errno,
}

impl MountFailure {
    /// Returns the reason why there is no mount, with advice, where the layers aren't the cause.
    fn to_sandbox_error(&self) -> SandboxError {
        let Self { stage, errno, .. } = self;
        let reason = format!("an overlay couldn't be mounted: {}: {errno}", stage.name());
        SandboxError::Unavailable { reason, fix: setup_advice(Some((*stage, *errno)), "").to_owned() }
    }

    fn to_overlay_error(&self, plan: &OverlayPlan) -> SandboxError {
        let unavailable =
            |reason: String, fix: &str| SandboxError::Unavailable { reason, fix: fix.to_owned() };
        let upper = plan.upper.display();
        match (self.stage, self.errno) {
            (SetupStage::Layer, errno) => {
                let index = self.index as usize;
                let path = [&plan.lower, &plan.upper, &plan.work].get(index).copied().unwrap_or(&plan.lower);
                let what = LAYER_NAMES.get(index).copied().unwrap_or_default();
                SandboxError::Path { what, path: path.clone(), source: errno.into() }
            }
            (SetupStage::Attributes, errno @ (Errno::NOTSUP | Errno::PERM)) => unavailable(
                format!("the file system of `{upper}` keeps no user attributes: {errno}"),
                "Put the copy's layers on ext4, XFS, Btrfs or, from Linux 6.6 on, tmpfs",
            ),
            (SetupStage::Overlay, Errno::NODEV) => unavailable(
                "this kernel has no overlay file system".to_owned(),
                "Load it with `sudo modprobe overlay`",
            ),
            (SetupStage::Overlay, Errno::PERM) => unavailable(
                "overlays can't be mounted in user namespaces here".to_owned(),
                "Linux 5.11 or newer is needed, and nothing that forbids the mount, such as a container's profile",
            ),
            (SetupStage::Overlay, Errno::INVAL | Errno::XDEV | Errno::LOOP) => self.layer_error(plan),
            _ => self.to_sandbox_error(),
        }
    }

    /// Finds out what is wrong with the layers, of which the kernel says only that something is.
    fn layer_error(&self, plan: &OverlayPlan) -> SandboxError {
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let (reason, fix) = if device(&plan.upper) != device(&plan.work) {
            let reason = "the upper layer and the work directory lie on different file systems".to_owned();
            (reason, "Put both into one directory")
        } else if let Some(inner) = find_mount_beneath(&plan.lower) {
            let reason = format!("something is mounted in the project, at `{}`", inner.display());
            (reason, "Unmount it, or use another kind of copy")
        } else {
            let reason = format!(
                "the file system of `{}` or of `{}` can't be part of an overlay: {}",
                plan.upper.display(),
                plan.lower.display(),
                self.errno
            );
            (reason, "Put the copy's layers on ext4, XFS, Btrfs or tmpfs, not on an overlay or the network")
        };
        SandboxError::Unavailable { reason, fix: fix.to_owned() }
    }
}

/// Returns a mount point beneath a directory, if there is one.
fn find_mount_beneath(directory: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let directory = directory.canonicalize().ok()?;
    let list = fs::read("/proc/self/mountinfo").ok()?;
    let points = list.split(|&byte| byte == b'\n').filter_map(|line| line.split(|&byte| byte == b' ').nth(4));
    let plain = points.map(|point| PathBuf::from(std::ffi::OsString::from_vec(decode_mount_path(point))));
    plain.filter(|point| point.starts_with(&directory) && *point != directory).min()
}

/// Decodes a name of the kernel's mount table, which has blanks, line ends and backslashes as three
/// octal digits.
fn decode_mount_path(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.first_chunk::<3>().filter(|_| byte == b'\\');
        let value = octal.and_then(|digits| {
            digits.iter().try_fold(0u16, |sum, digit| {
                (b'0'..=b'7').contains(digit).then(|| sum * 8 + u16::from(digit - b'0'))
            })
        });
        match value.and_then(|value| u8::try_from(value).ok()) {
            Some(value) => {
                out.push(value);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_caches_differ_and_are_plain() {
        let name = |path: &str| layer_directory_name(&RelPath::parse(path).unwrap());
        assert_eq!(name("target").unwrap(), "target");
        assert_eq!(name("web/node_modules").unwrap(), "web%2fnode_modules");
        assert_eq!(name(".venv").unwrap(), "%2evenv");
        assert_eq!(name("a%2fb").unwrap(), "a%252fb");
        assert_eq!(name(&"ä".repeat(100)), None);
    }

    #[test]
    fn names_of_the_kernels_list_are_read() {
        assert_eq!(decode_mount_path(br"/a\040b\134c\012\09"), b"/a b\\c\n\\09");
    }
}
