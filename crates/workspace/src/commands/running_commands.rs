//! Edits made while a command runs.
//!
//! A command's changes are known when it ends. Where an edit replaces a file that a running command
//! has changed already, the journal would tell of the edit alone, and an undo would stop at what
//! the command left. So what the command did to that file until then is journaled first.

use std::sync::{Arc, Mutex, Weak};

use journeyman_store::Durability;

use crate::commands::heartbeat::Heartbeat;
use crate::commands::journaling::ChangeOrigin;
use crate::error::WorkspaceError;
use crate::journal::history::History;
use crate::journal::record::ChangeCause;
use crate::mutex::lock;
use crate::project::Project;
use crate::snapshot::differences::{Difference, TreeDifferences};
use crate::snapshot::entry::{FileKind, FileState};
use crate::snapshot::tree::Tree;
use crate::transaction::operation::{FileAfter, NewContent, Operation};
use crate::transaction::writer::WriterState;

/// The commands that run in this process.
pub(crate) struct RunningCommands {
    project: Arc<Project>,
    /// Oldest first.
    commands: Mutex<Vec<Weak<Heartbeat>>>,
}

impl RunningCommands {
    pub(crate) fn new(project: Arc<Project>) -> Self {
        Self { project, commands: Mutex::default() }
    }

    /// Returns true if a command runs.
    pub(crate) fn has_running(&self) -> bool {
        lock(&self.commands).iter().any(|heartbeat| heartbeat.strong_count() > 0)
    }

    /// Records that a command runs for as long as its heartbeat is alive.
    pub(crate) fn note_running(&self, heartbeat: &Arc<Heartbeat>) {
        let mut running = lock(&self.commands);
        running.retain(|heartbeat| heartbeat.strong_count() > 0);
        running.push(Arc::downgrade(heartbeat));
    }

    /// Journals what running commands did to the files that are about to be changed, and keeps what
    /// is about to be written: a command may write over it before any snapshot has seen it.
    pub(crate) fn journal_running_changes(
        &self,
        writer: &mut WriterState,
        operations: &[Operation],
    ) -> Result<(), WorkspaceError> {
        let running: Vec<Arc<Heartbeat>> = lock(&self.commands).iter().filter_map(Weak::upgrade).collect();
        if !running.is_empty() {
            for operation in operations {
                if let Some(FileAfter { source: NewContent::Bytes(bytes), .. }) = &operation.after
                    && bytes.len() as u64 <= self.project.limits().kept_file_bytes
                {
                    self.project.blob_store.put(bytes, Durability::Later)?;
                }
            }
        }
        for live in running.iter().filter_map(|heartbeat| heartbeat.live.as_ref()) {
            let history = History::new(writer.journal.lines_since_mark(live.journal_end)?);
            let records = history.into_changes();
            let changed = operations.iter().filter_map(|operation| {
                let files = || records.iter().rev().flat_map(|record| &record.files);
                let journaled = files().find(|file| file.path == operation.path).map(|file| file.after);
                let before = journaled.unwrap_or_else(|| state_in(&live.tree, operation.path.as_bytes()));
                let after = operation.before.as_ref().map(|(state, _)| *state);
                let path = operation.path.clone();
                (!is_same_state(before, after)).then_some(Difference { path, before, after })
            });
            let changed: Vec<Difference> = changed.collect();
            let doing = ChangeOrigin {
                session: &live.session,
                call: Some(&live.call),
                cause: ChangeCause::Meanwhile,
            };
            doing.journal_differences(
                &mut writer.journal,
                TreeDifferences { files: changed, ..TreeDifferences::default() },
            )?;
        }
        Ok(())
    }
}

fn state_in(tree: &Tree, path: &[u8]) -> Option<FileState> {
    let at = tree.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok()?;
    tree.entries.get(at).map(crate::snapshot::entry::TreeEntry::state)
}

fn is_same_state(before: Option<FileState>, after: Option<FileState>) -> bool {
    match (before, after) {
        (None, None) => true,
        // The journal doesn't know the mode of a new file.
        (Some(before), Some(after)) => {
            before.has_same_content(&after)
                && (before.mode == after.mode || before.mode == 0 || after.kind == FileKind::Link)
        }
        _ => false,
    }
}
