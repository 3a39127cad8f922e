//! Tells what a copy itself changed from what its lower directory, the user's own tree, shows
//! through it.

use std::os::fd::{BorrowedFd, OwnedFd};

use journeyman_protocol::RelPath;
use journeyman_sandbox::ProjectCopy;
use rustix::fs::{AtFlags, Mode, OFlags, fgetxattr, openat, statat};
use rustix::io::Errno;

use crate::snapshot::differences::TreeDifferences;

/// Marks a directory of the upper layer that hides all that lies beneath it.
const OPAQUE_ATTRIBUTE: &str = "user.overlay.opaque";

/// Keeps only the differences that the copy's upper layer makes. The others are saves by the user
/// in the lower layer, which the next refresh takes over.
pub(crate) fn retain_own(base: Option<&ProjectCopy>, found: &mut TreeDifferences) {
    let is_own = |path: &RelPath| is_own_change(base, path);
    found.files.retain(|difference| is_own(&difference.path));
    found.made.retain(|dir| is_own(&dir.path));
    found.removed.retain(|dir| is_own(&dir.path));
    found.modes.retain(|dir| is_own(&dir.path));
}

/// Returns true if a difference of a copy at the path is the copy's own, rather than the user's
/// save that shows through. A copy without a layer shows nothing of the user's tree.
pub(crate) fn is_own_change(base: Option<&ProjectCopy>, path: &RelPath) -> bool {
    let Some(ProjectCopy::Mounted(mounted)) = base else { return true };
    mounted.upper().is_none_or(|upper| is_decided_by_layer(upper, path))
}

/// Returns true if the layer decides what is at the path. In doubt it does.
fn is_decided_by_layer(upper: BorrowedFd<'_>, path: &RelPath) -> bool {
    let mut names = path.components().peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let dir = at.as_ref().map_or(upper, |dir| std::os::fd::AsFd::as_fd(dir));
        if names.peek().is_none() {
            return statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).err() != Some(Errno::NOENT);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(dir, name, flags, Mode::empty()) {
            Ok(next) if is_opaque(&next) => return true,
            Ok(next) => at = Some(next),
            // A file or a whiteout stands in the place of the directory.
            Err(error) => return error != Errno::NOENT,
        }
    }
    true
}

fn is_opaque(dir: &OwnedFd) -> bool {
    let mut value = [0_u8; 8];
    fgetxattr(dir, OPAQUE_ATTRIBUTE, &mut value[..]).is_ok_and(|length| value.get(..length) == Some(b"y"))
}
