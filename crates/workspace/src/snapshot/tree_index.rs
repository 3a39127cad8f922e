//! The contents of each directory of a tree, by number.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::files::paths::last_component;
use crate::snapshot::entry::{TreeEntry, WalkedDir};
use crate::transaction::sibling::is_sibling;
use journeyman_ignore_rules::walk::compare_paths;

/// A file or directory, by its place in the tree's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryRef {
    File(u32),
    Dir(u32),
}

/// A directory's number: 0 for the root, and one more than the place in the tree's list for the
/// others.
pub(crate) type DirNumber = u32;

/// Which files and directories lie right in which directory, in the order of full paths.
#[derive(Debug, Default)]
pub(crate) struct TreeIndex {
    /// The start of each directory's part of `refs`; one more at the end.
    pub(crate) starts: Vec<u32>,
    pub(crate) refs: Vec<EntryRef>,
    /// True if something is named as a short-lived sibling of a transaction is.
    pub(crate) has_sibling_names: bool,
}

impl TreeIndex {
    pub(crate) fn of(entries: &[TreeEntry], dirs: &[WalkedDir]) -> Self {
        let mut numbers: HashMap<&[u8], DirNumber> =
            dirs.iter().map(|dir| dir.path.as_slice()).zip(1..).collect();
        numbers.insert(b"", 0);
        let mut last: (&[u8], Option<DirNumber>) = (b"", Some(0));
        let mut parent_of = |path| {
            let parent = parent(path);
            if last.0 != parent {
                last = (parent, numbers.get(parent).copied());
            }
            last.1
        };
        let (mut files, mut below) = (entries.iter().zip(0..).peekable(), dirs.iter().zip(1..).peekable());
        let mut all: Vec<(DirNumber, EntryRef)> = Vec::with_capacity(entries.len() + dirs.len());
        let mut has_sibling_names = false;
        loop {
            let file_first = match (files.peek(), below.peek()) {
                (None, None) => break,
                (Some((entry, _)), Some((dir, _))) => {
                    compare_paths((&entry.path, false), (&dir.path, true)) == Ordering::Less
                }
                (file, _) => file.is_some(),
            };
            let (path, it) = if file_first {
                let Some((entry, at)) = files.next() else { break };
                (&entry.path, EntryRef::File(at))
            } else {
                let Some((dir, number)) = below.next() else { break };
                (&dir.path, EntryRef::Dir(number))
            };
            has_sibling_names |= is_sibling(last_component(path));
            // A tree from a file may say anything; what has no place in it is new to the walk.
            all.extend(parent_of(path).map(|parent| (parent, it)));
        }
        // A directory's own are in order already, and this keeps them so.
        all.sort_by_key(|(parent, _)| *parent);
        let mut starts = Vec::with_capacity(dirs.len() + 2);
        for ((parent, _), at) in all.iter().zip(0_u32..) {
            while starts.len() <= *parent as usize {
                starts.push(at);
            }
        }
        let end = u32::try_from(all.len()).unwrap_or(u32::MAX);
        starts.resize(dirs.len() + 2, end);
        Self { starts, refs: all.into_iter().map(|(_, it)| it).collect(), has_sibling_names }
    }

    pub(crate) fn in_dir(&self, number: DirNumber) -> &[EntryRef] {
        let at = |number: usize| self.starts.get(number).map_or(0, |at| *at as usize);
        let number = number as usize;
        self.refs.get(at(number)..at(number + 1)).unwrap_or_default()
    }
}

pub(crate) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').and_then(|cut| path.get(..cut)).unwrap_or_default()
}
