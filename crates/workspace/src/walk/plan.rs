//! The input and the result of a walk.

use crate::files::root_dir::RootDir;
use crate::files::stat::FileStat;
use crate::rules::RuleCache;
use crate::snapshot::entry::WalkedDir;
use crate::snapshot::tree::Tree;
use journeyman_protocol::ContentHash;
use rustix::io::Errno;
use std::collections::HashSet;

/// The input of a walk.
pub(crate) struct WalkPlan<'a> {
    pub(crate) root_dir: &'a RootDir,
    pub(crate) rules: &'a RuleCache,
    /// The directory to begin at; empty for the root.
    pub(crate) under: Vec<u8>,
    pub(crate) include_ignored: bool,
    /// True if to `stat` each file.
    pub(crate) stat: bool,
    pub(crate) max_files: usize,
    /// Directories that were looked into before: a `CACHEDIR.TAG` that appears in one of them hides
    /// nothing.
    pub(crate) known: &'a [&'a [WalkedDir]],
    /// The tree that was found the last time. A directory whose rules and names are the same isn't
    /// held against them again; each file is looked at all the same.
    pub(crate) last: Option<&'a Tree>,
    /// The [`Walked::listed`] of that walk.
    pub(crate) listed: &'a [Option<ListedDir>],
    /// True if [`Walked::same`] may be said.
    pub(crate) may_be_same: bool,
    /// The short-lived siblings of transactions that were open during the walk. Asked after it, if
    /// a name looks like one: whatever else has such a name is a file like any other.
    pub(crate) siblings: &'a (dyn Fn() -> HashSet<Vec<u8>> + Sync),
}

impl<'a> WalkPlan<'a> {
    /// Plans a walk of the whole tree for names alone: files that aren't ignored, without their
    /// metadata.
    pub(crate) fn names_only(root_dir: &'a RootDir, rules: &'a RuleCache, max_files: usize) -> Self {
        Self {
            root_dir,
            rules,
            under: Vec::new(),
            include_ignored: false,
            stat: false,
            max_files,
            known: &[],
            last: None,
            listed: &[],
            may_be_same: false,
            siblings: &no_siblings,
        }
    }
}

/// Returns an empty set, for a walk that doesn't read files.
pub(crate) fn no_siblings() -> HashSet<Vec<u8>> {
    HashSet::new()
}

/// A file or link, with what `stat` says if that was asked for.
pub(crate) struct WalkedFile {
    pub(crate) path: Vec<u8>,
    pub(crate) seen: Option<FileStat>,
    /// The file's place in the last tree.
    pub(crate) known: Option<u32>,
}

/// A directory's signature when its names were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListedDir {
    pub(crate) seen: FileStat,
    pub(crate) device: u64,
    /// True if a name that came or went since must show in it.
    pub(crate) tells: bool,
}

impl ListedDir {
    /// Returns true if a name that came or went since must show in the signature.
    pub(crate) fn has_reliable_signature(&self) -> bool {
        self.tells
    }
}

/// The result of a walk, sorted by the bytes of the paths.
#[derive(Default)]
pub(crate) struct Walked {
    pub(crate) files: Vec<WalkedFile>,
    pub(crate) dirs: Vec<WalkedDir>,
    /// Directories that couldn't be read: what is in them is unknown.
    pub(crate) unreadable: Vec<Vec<u8>>,
    /// Everything named `.git`, in any case: noticed, and never entered.
    pub(crate) repositories: Vec<Vec<u8>>,
    /// There were more files than the limit.
    pub(crate) overflow: bool,
    /// A directory that would be read another time. It is among the unreadable ones too.
    pub(crate) failed: Option<(Vec<u8>, Errno)>,
    /// True if nothing differs from the last tree; then no file or directory is listed.
    pub(crate) same: bool,
    /// The signatures of the root and of the directories, in this order: with the same one, a
    /// directory has the same names. Empty where that isn't known.
    pub(crate) listed: Vec<Option<ListedDir>>,
    /// A fingerprint that tells the rules of another walk from those of this one, but for the
    /// tree's own files; `None` when one of those changed during the walk.
    pub(crate) rules: Option<ContentHash>,
}
