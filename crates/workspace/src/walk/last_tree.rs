//! The last tree's entries of each directory, so that a walk can tell what is unchanged.

use crate::files::paths::last_component;
use crate::snapshot::entry::{TreeEntry, WalkedDir};
use crate::snapshot::tree::Tree;
use crate::snapshot::tree_index::{DirNumber, EntryRef, TreeIndex};
use journeyman_ignore_rules::walk::compare_paths;

/// The last tree, as a walk asks it.
#[derive(Clone, Copy)]
pub(crate) struct LastTree<'a> {
    pub(crate) tree: &'a Tree,
    index: &'a TreeIndex,
}

impl<'a> LastTree<'a> {
    pub(crate) fn new(tree: &'a Tree) -> Self {
        Self { tree, index: tree.index() }
    }

    pub(crate) fn has_no_sibling_names(&self) -> bool {
        !self.index.has_sibling_names
    }

    pub(crate) fn in_dir(&self, number: DirNumber) -> &'a [EntryRef] {
        self.index.in_dir(number)
    }

    pub(crate) fn entry(&self, at: u32) -> Option<&'a TreeEntry> {
        self.tree.entries.get(at as usize)
    }

    pub(crate) fn dir(&self, number: DirNumber) -> Option<&'a WalkedDir> {
        self.tree.dirs.get((number as usize).checked_sub(1)?)
    }

    /// Returns the sort key of an entry in its directory.
    pub(crate) fn name(&self, it: EntryRef) -> (&'a [u8], bool) {
        match it {
            EntryRef::File(at) => (last_component(self.entry(at).map_or(b"", |entry| &entry.path)), false),
            EntryRef::Dir(number) => (last_component(self.dir(number).map_or(b"", |dir| &dir.path)), true),
        }
    }

    /// Returns the file of this name in a directory.
    pub(crate) fn file(&self, number: DirNumber, name: &[u8]) -> Option<&'a TreeEntry> {
        let there = self.in_dir(number);
        let at = there.binary_search_by(|it| compare_paths(self.name(*it), (name, false))).ok()?;
        match there.get(at)? {
            EntryRef::File(at) => self.entry(*at),
            EntryRef::Dir(_) => None,
        }
    }
}
