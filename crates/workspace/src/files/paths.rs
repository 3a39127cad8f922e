//! Relations between paths.

use journeyman_protocol::RelPath;

pub(crate) fn is_beneath(path: &RelPath, dir: &RelPath) -> bool {
    path.as_bytes().strip_prefix(dir.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
}

pub(crate) fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
