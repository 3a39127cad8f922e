//! Notices when somebody else changes a file that the session has seen.
//!
//! What was seen is passed in, and so is a way to tell a file's content as it is now (the workspace's
//! fingerprints, which look at a file's stat first and read it only where that differs). Contents are compared by
//! hash, so a touched file is no change. One change is told once; the session's own writes are never told.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use journeyman_protocol::{ContentHash, FileChange, FileChangeKind, RelPath};

/// Files named in one notice; of more than these a number says enough.
const LISTED: usize = 10;

/// Which outside changes have been told already.
#[derive(Debug, Default)]
pub struct Freshness {
    /// The content that was last accounted for, of files that are no longer as they were seen.
    told: HashMap<RelPath, Option<ContentHash>>,
}

impl Freshness {
    /// Compares what the session has `seen` with the files as they are `now` (the same files in the same order, none
    /// for one that is gone), and gives what somebody else changed since the last look, in order of paths.
    ///
    /// `own` are the files that the session's own calls changed since the last look, by commands too: they are
    /// taken as they are. To keep that from hiding what somebody did in the meantime, look also before calls run:
    /// with `own` empty, when the model's reply is whole.
    pub fn look(
        &mut self,
        seen: &[(RelPath, ContentHash)],
        now: &[Option<ContentHash>],
        own: &[RelPath],
    ) -> Vec<FileChange> {
        let own: HashSet<&RelPath> = own.iter().collect();
        let mut changes = Vec::new();
        for ((path, seen), now) in seen.iter().zip(now.iter().copied()) {
            if now == Some(*seen) {
                // As it was seen, or as it was read again or written: a later change is another one.
                self.told.remove(path);
                continue;
            }
            let told = self.told.insert(path.clone(), now);
            if told != Some(now) && !own.contains(path) {
                let kind = match (now, told) {
                    (None, _) => FileChangeKind::Deleted,
                    (Some(_), Some(None)) => FileChangeKind::Added,
                    (Some(_), _) => FileChangeKind::Modified,
                };
                changes.push(FileChange { path: path.clone(), kind });
            }
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes
    }

    /// What was accounted for, to be kept beside the log's other records.
    pub fn told(&self) -> impl Iterator<Item = (&RelPath, Option<ContentHash>)> {
        self.told.iter().map(|(path, hash)| (path, *hash))
    }

    /// Puts back what was accounted for before a restart, so that nothing is told twice.
    pub fn restore(&mut self, told: impl IntoIterator<Item = (RelPath, Option<ContentHash>)>) {
        self.told = told.into_iter().collect();
    }
}

/// What the model is told of outside changes. While a command of its own runs in the background nobody can tell
/// who changed a file, and the words leave it open.
#[must_use]
pub fn notice(changes: &[FileChange], background: bool) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let mut names: Vec<String> = changes
        .iter()
        .take(LISTED)
        .map(|change| match change.kind {
            FileChangeKind::Deleted => format!("{} (deleted)", change.path),
            FileChangeKind::Added => format!("{} (new again)", change.path),
            FileChangeKind::Modified => change.path.to_string(),
        })
        .collect();
    let more = changes.len().saturating_sub(LISTED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let who = if background { "somebody else, or a background command," } else { "somebody else" };
    Some(format!(
        "Since you last saw them, {who} changed: {}. Read again what you still need before you rely on it.",
        names.join(", ")
    ))
}
