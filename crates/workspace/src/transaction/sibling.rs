//! Names of the temporary files that a transaction writes beside its targets.

use journeyman_protocol::{ContentHash, RelPath};
use rustix::io::Errno;

use crate::change::ChangeId;
use crate::error::WorkspaceError;

/// The tag in the name of a temporary sibling, after the file's name.
pub(crate) const SIBLING_TAG: &[u8] = b".jm-";

/// Hexadecimal digits at the end of such a name.
pub(crate) const SIBLING_DIGITS: usize = 16;

/// Returns true if this is the name of a short-lived sibling of an atomic write, of this process or
/// another.
pub(crate) fn is_sibling(name: &[u8]) -> bool {
    let Some(cut) = name.len().checked_sub(SIBLING_DIGITS + SIBLING_TAG.len()) else { return false };
    let (front, back) = name.split_at_checked(cut).unwrap_or_default();
    front.first() == Some(&b'.')
        && back.strip_prefix(SIBLING_TAG).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// A file's name takes at most so many bytes of its sibling's, which has 255 in all.
pub(crate) const MAX_TARGET_NAME_BYTES: usize = 200;

/// Returns a name that no two changes of a project share, so that it needs no randomness: the
/// change's number and the file's place in it are hashed together with the path.
pub(crate) fn sibling_name(
    path: &RelPath,
    room: Option<&RelPath>,
    id: ChangeId,
    index: usize,
) -> Result<RelPath, WorkspaceError> {
    let name = path.file_name();
    let name = name.get(..MAX_TARGET_NAME_BYTES).unwrap_or(name);
    let key = [path.as_bytes(), &id.0.to_le_bytes(), &index.to_le_bytes()].concat();
    let digits = ContentHash::of(&key).to_string();
    let digits = digits.get(..SIBLING_DIGITS).unwrap_or(&digits);
    let name = [b".", name, SIBLING_TAG, digits.as_bytes()].concat();
    let sibling = match room {
        Some(dir) => dir.join(name),
        None => RelPath::parse(name),
    };
    sibling.map_err(|_| WorkspaceError::from_errno("write", path, Errno::NAMETOOLONG))
}
