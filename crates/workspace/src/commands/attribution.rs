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
    let Some(newest) = others.iter().map(|span| span.began).max() else { return Vec::new() };
    let touched = match is_there {
        true => change_time(root_dir, path, newest),
        // The directory may have lost something else since.
        false => parent_change_time(root_dir, path),
    };
    let may_be = |span: &&CommandSpan| {
        touched.is_none_or(|touched| span.began <= touched && !(is_there && touched > span.until))
    };
    let may_be = others.iter().filter(may_be);
    let mut sessions: Vec<SessionId> = may_be.map(|span| span.session.clone()).collect();
    sessions.sort();
    sessions.dedup();
    sessions
}

/// Returns when what is at the path was last changed, in whichever way; `None` if nothing is there.
/// A time up to `since` is given only if no change is in progress, whose time may be missing yet.
pub(crate) fn change_time(root_dir: &RootDir, path: &RelPath, since: i64) -> Option<i64> {
    let look = || root_dir.stat(path).ok().flatten();
    let seen = look()?;
    if seen.ctime > since || !seen.is_file() {
        return Some(seen.ctime);
    }
    root_dir.wait_for_change(path);
    look().map(|seen| seen.ctime)
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

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::files::stat::file_clock;

    #[test]
    fn what_is_seen_of_a_change_has_its_time() {
        // To cut a file of this size takes a while, in which it looks empty and old.
        let content = vec![1; 8 << 20];
        let dir = tempfile::tempdir().unwrap();
        let (root_dir, path) = (RootDir::open(dir.path()).unwrap(), RelPath::parse("file").unwrap());
        let file = dir.path().join("file");
        let stat = || root_dir.stat(&path).unwrap().unwrap();
        for round in 0..24 {
            fs::write(&file, &content).unwrap();
            let written = stat().ctime;
            let later = || Some(file_clock()).filter(|now| *now > written);
            let began = std::iter::repeat_with(later).flatten().next().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| File::options().write(true).truncate(true).open(&file).unwrap());
                while stat().size > 0 {
                    std::thread::yield_now();
                }
                let touched = change_time(&root_dir, &path, began).unwrap();
                assert!(touched >= began, "round {round}: {touched}, {began}");
            });
        }
    }
}
