//! Attributes changes to the sessions whose commands ran at the time.
//!
//! The changes of a command follow from two snapshots of the tree and from the journal between
//! them. So a snapshot and its place in the journal have to belong together: another's change that
//! is in one of them only would be taken for the command's.

use crate::files::root_dir::RootDir;

use journeyman_protocol::{RelPath, SessionId};

use crate::commands::heartbeat::CommandSpan;

/// Returns the sessions among these that may have made what is at the path, or removed it.
pub(crate) fn sessions_possibly_changing(
    root_dir: &RootDir,
    path: &RelPath,
    is_there: bool,
    others: &[CommandSpan],
) -> Vec<SessionId> {
    if others.is_empty() {
        return Vec::new();
    }
    let touched = match is_there {
        true => root_dir.stat(path).ok().flatten().map(|seen| seen.ctime),
        // The directory may have lost something else since.
        false => parent_change_time(root_dir, path),
    };
    let touched = touched.unwrap_or(i64::MAX);
    let may_be = |span: &&CommandSpan| span.began <= touched && !(is_there && touched > span.until);
    let may_be = others.iter().filter(may_be);
    let mut sessions: Vec<SessionId> = may_be.map(|span| span.session.clone()).collect();
    sessions.sort();
    sessions.dedup();
    sessions
}

/// Returns when the nearest existing directory above the path last gained or lost a name.
pub(crate) fn parent_change_time(root_dir: &RootDir, path: &RelPath) -> Option<i64> {
    let mut above = path.parent();
    while let Some(dir) = above {
        match root_dir.stat(&dir) {
            Ok(Some(seen)) if seen.is_dir() => return Some(seen.mtime),
            // What stands in its place took it.
            Ok(Some(seen)) => return Some(seen.ctime),
            Ok(None) => above = dir.parent(),
            Err(_) => return None,
        }
    }
    root_dir.stat_root().ok().flatten().map(|root| root.mtime)
}
