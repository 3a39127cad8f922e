//! The snapshot that is taken before a command and compared after it.

use crate::commands::heartbeat::Heartbeat;
use crate::hard_links::HardLinks;
use crate::ignored::IgnoredSnapshot;
use crate::journal::JournalMark;
use crate::snapshot::entry::EntryContent;
use crate::snapshot::tree::Tree;
use journeyman_protocol::{ContentHash, RelPath};
use std::sync::Arc;

/// The tree before a command: give it back to [`Commands::end`](crate::CommandObserver::end).
///
/// It is cheap to clone. While one that was made for a call or for checks lives, so does their sign
/// of life (see [`Recovery::recover_call`](crate::Recovery::recover_call)), which takes
/// a descriptor and a sleeping thread.
#[derive(Debug, Clone)]
pub struct TreeSnapshot {
    pub(crate) tree: Arc<Tree>,
    pub(crate) heartbeat: Option<Arc<Heartbeat>>,
    /// The end of the journal, so that later changes of others aren't attributed to the command.
    pub(crate) journal_end: JournalMark,
    pub(crate) ignored: IgnoredSnapshot,
    pub(crate) hard_links: Arc<HardLinks>,
}

impl TreeSnapshot {
    pub(crate) fn command_mark(&self) -> CommandMark {
        CommandMark {
            mark: self.journal_end,
            began: self.heartbeat.as_ref().map_or(i64::MIN, |heartbeat| heartbeat.began),
        }
    }

    /// Returns the number of files it covers.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.tree.entries.len()
    }

    /// Returns the hash of the paths, permissions and contents of the files that it covers.
    #[must_use]
    pub fn tree_hash(&self) -> ContentHash {
        self.tree.hash()
    }

    /// Returns everything named `.git`, in any letter case (a directory, a file or a link), at any
    /// depth, the root's own included, but not inside of ignored directories. Sorted.
    #[must_use]
    pub fn repositories(&self) -> Vec<RelPath> {
        self.tree.repositories.iter().filter_map(|path| RelPath::parse(path).ok()).collect()
    }

    /// Returns the file that the command's processes must keep locked (`flock`, shared) while any
    /// of them lives, so that after a crash nothing is reverted that is still being written; `None`
    /// for a snapshot without a heartbeat.
    #[must_use]
    pub fn process_lock(&self) -> Option<std::path::PathBuf> {
        self.heartbeat.as_ref().map(|heartbeat| heartbeat.process_lock())
    }

    /// Returns the files whose content isn't kept, because they or all together are too large: a
    /// command that changes them can't be undone. Those among ignored files come last.
    #[must_use]
    pub fn not_undoable_files(&self) -> Vec<RelPath> {
        let unkept = self.tree.entries.iter().filter(|entry| entry.content == EntryContent::Unkept);
        let unkept = unkept.filter_map(|entry| RelPath::parse(&entry.path).ok());
        unkept.chain(self.ignored.not_undoable_files().cloned()).collect()
    }
}

/// The moment before a command: later changes in the journal aren't the command's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandMark {
    pub(crate) mark: JournalMark,
    /// The start of the command, in nanoseconds of the file system's clock.
    pub(crate) began: i64,
}

impl TreeSnapshot {
    /// Returns the paths at which writing would change files outside of the project. None in a
    /// copy, whose files are its own.
    #[must_use]
    pub fn hard_links(&self) -> &HardLinks {
        &self.hard_links
    }
}
