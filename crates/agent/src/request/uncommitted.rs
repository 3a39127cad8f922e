//! Finds the files that differ from the last commit.

use std::sync::Arc;

use journeyman_context::{ChangeKind, UncommittedFile};
use journeyman_git::{EntryStatus, Git, StatusChange, StatusEntry};
use journeyman_protocol::RelPath;
use tokio::task::JoinHandle;

use crate::session::context::SessionContext;

/// Starts looking for uncommitted changes of files that may be shown. Without an index nothing is
/// looked for: its lookup is what the request waits for anyway.
pub(crate) fn look_up_uncommitted(
    cx: &SessionContext,
    may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
) -> JoinHandle<Vec<UncommittedFile>> {
    let git = cx.index.git().filter(|_| cx.index.exists()).cloned();
    tokio::spawn(async move {
        let Some(git) = git else { return Vec::new() };
        let mut files = find_uncommitted(&git).await;
        files.retain(|file| may_show(&file.path));
        files
    })
}

/// Returns the files with uncommitted changes, sorted by path, those that git tracks first. None
/// where git doesn't tell.
pub async fn find_uncommitted(git: &Git) -> Vec<UncommittedFile> {
    let Ok(status) = git.status().await else { return Vec::new() };
    let mut files: Vec<UncommittedFile> = status.entries.into_iter().filter_map(to_file).collect();
    files.sort_by_key(|file| file.kind == ChangeKind::New);
    files
}

fn to_file(entry: StatusEntry) -> Option<UncommittedFile> {
    let kind = match entry.entry {
        EntryStatus::Tracked { submodule: true, .. }
        | EntryStatus::Ignored
        | EntryStatus::Untracked { repository: true } => return None,
        EntryStatus::Untracked { repository: false } => ChangeKind::New,
        EntryStatus::Unmerged => ChangeKind::Unmerged,
        EntryStatus::Tracked { staged, unstaged, .. } => match (staged, unstaged) {
            (StatusChange::None, StatusChange::None) => return None,
            (_, StatusChange::Deleted) | (StatusChange::Deleted, _) => ChangeKind::Deleted,
            (StatusChange::Added, _) => ChangeKind::New,
            _ => ChangeKind::Changed,
        },
    };
    Some(UncommittedFile { path: entry.path, kind })
}
