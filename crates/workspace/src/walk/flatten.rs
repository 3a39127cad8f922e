//! The entries of each directory, put together in the order of full paths.

use crate::snapshot::entry::WalkedDir;
use crate::snapshot::tree_index::{DirNumber, EntryRef};
use crate::walk::last_tree::LastTree;
use crate::walk::plan::{ListedDir, WalkPlan, Walked, WalkedFile};
use crate::walk::visited::{VisitedContent, VisitedDir, VisitedItem};

/// The rest of one directory that is still to be emitted.
enum PendingEntries<'a> {
    Read { prefix: Vec<u8>, items: std::vec::IntoIter<VisitedItem> },
    Same { refs: std::slice::Iter<'a, EntryRef> },
}

struct Flattening<'a> {
    known: Option<LastTree<'a>>,
    slots: Vec<Option<VisitedDir>>,
    /// The slot of each directory of the last tree.
    slot_of: Vec<usize>,
    walked: Walked,
}

/// Puts the entries of the visited directories in the order of full paths. `count` is the number of
/// tasks that were given out.
pub(crate) fn flatten(
    found: Vec<VisitedDir>,
    count: usize,
    plan: &WalkPlan<'_>,
    known: Option<LastTree<'_>>,
) -> Walked {
    let files = found.iter().map(|visited| match &visited.content {
        VisitedContent::Items { items, .. } => items.len(),
        VisitedContent::Same { number } => known.map_or(0, |known| known.in_dir(*number).len()),
        VisitedContent::Nothing | VisitedContent::Unreadable | VisitedContent::Failed(_) => 0,
    });
    let walked = Walked { files: Vec::with_capacity(files.sum()), ..Walked::default() };
    let mut slots: Vec<Option<VisitedDir>> = Vec::new();
    slots.resize_with(count, || None);
    let dirs = known.map_or(0, |known| known.tree.dirs.len() + 1);
    let mut flattening = Flattening { known, slots, slot_of: vec![usize::MAX; dirs], walked };
    for visited in found {
        if let Some(at) = visited.number.and_then(|number| flattening.slot_of.get_mut(number as usize)) {
            *at = visited.index;
        }
        if let Some(slot) = flattening.slots.get_mut(visited.index) {
            *slot = Some(visited);
        }
    }
    flattening.emit_entries(plan);
    flattening.walked
}

impl<'a> Flattening<'a> {
    fn emit_entries(&mut self, plan: &WalkPlan<'_>) {
        // The next one to be emitted last; deep trees don't recurse.
        let mut open: Vec<(usize, PendingEntries<'a>)> = Vec::new();
        open.extend(self.begin_directory(0, plan));
        while let Some((at, top)) = open.last_mut() {
            let slot = match top {
                PendingEntries::Read { prefix, items } => match items.next() {
                    Some(VisitedItem::New { name, seen }) => {
                        let path = [prefix.as_slice(), &name].concat();
                        self.walked.files.push(WalkedFile { path, seen, known: None });
                        continue;
                    }
                    Some(VisitedItem::Known { at, seen }) => {
                        let entry = self.known.and_then(|known| known.entry(at));
                        let file =
                            entry.map(|entry| WalkedFile { path: entry.path.clone(), seen, known: Some(at) });
                        self.walked.files.extend(file);
                        continue;
                    }
                    Some(VisitedItem::Dir { index }) => Some(index),
                    None => None,
                },
                PendingEntries::Same { refs } => match refs.next() {
                    Some(EntryRef::File(at)) => {
                        let entry = self.known.and_then(|known| known.entry(*at));
                        let file = entry.map(|entry| WalkedFile {
                            path: entry.path.clone(),
                            seen: Some(entry.seen),
                            known: Some(*at),
                        });
                        self.walked.files.extend(file);
                        continue;
                    }
                    Some(EntryRef::Dir(number)) => {
                        self.slot_of.get(*number as usize).copied().or(Some(usize::MAX))
                    }
                    None => None,
                },
            };
            let above = *at;
            match slot.map(|slot| self.begin_directory(slot, plan)) {
                Some(Some(next)) => open.push(next),
                // What closes or hides it isn't in the signature of the directory above: that has
                // to be listed again.
                Some(None) => self.walked.listed.get_mut(above).into_iter().for_each(|listed| *listed = None),
                None => drop(open.pop()),
            }
        }
    }

    /// Opens a directory. Returns its place among the signatures too; `None` if nothing of it is
    /// known.
    fn begin_directory(&mut self, slot: usize, plan: &WalkPlan<'_>) -> Option<(usize, PendingEntries<'a>)> {
        let at = self.walked.listed.len();
        let VisitedDir { path, content, listed, .. } = self.slots.get_mut(slot)?.take()?;
        match content {
            VisitedContent::Items { items, permissions } => {
                self.add_directory(&path, permissions, listed, plan);
                let mut prefix = path;
                if !prefix.is_empty() {
                    prefix.push(b'/');
                }
                Some((at, PendingEntries::Read { prefix, items: items.into_iter() }))
            }
            VisitedContent::Same { number } => {
                let known = self.known?;
                let permissions = known.dir(number).map_or(0, |dir| dir.permissions);
                self.add_directory(&path, permissions, listed, plan);
                Some((at, PendingEntries::Same { refs: known.in_dir(number).iter() }))
            }
            VisitedContent::Unreadable => {
                self.walked.unreadable.push(path);
                None
            }
            VisitedContent::Failed(errno) => {
                self.walked.unreadable.push(path.clone());
                self.walked.failed = Some((path, errno));
                None
            }
            VisitedContent::Nothing => None,
        }
    }

    fn add_directory(
        &mut self,
        path: &[u8],
        permissions: u32,
        listed: Option<ListedDir>,
        plan: &WalkPlan<'_>,
    ) {
        self.walked.listed.push(listed);
        if path != plan.under {
            self.walked.dirs.push(WalkedDir { path: path.to_vec(), permissions });
        }
    }
}

/// Returns the directories' signatures, by number.
pub(crate) fn signatures(found: &[VisitedDir]) -> Vec<Option<ListedDir>> {
    let mut all = vec![None; found.len()];
    for visited in found {
        if let Some(slot) = visited.number.and_then(|number| all.get_mut(number as usize)) {
            *slot = visited.listed;
        }
    }
    all
}

/// Returns true if the walk found what the last tree has, and nothing else.
pub(crate) fn is_same(found: &[VisitedDir], known: LastTree<'_>, repositories: &[Vec<u8>]) -> bool {
    let same = |visited: &VisitedDir| match visited.content {
        VisitedContent::Same { number } => Some(number) == visited.number,
        _ => false,
    };
    let count: DirNumber = u32::try_from(found.len()).unwrap_or_default();
    count as usize == known.tree.dirs.len() + 1
        && known.tree.unreadable.is_empty()
        && known.tree.repositories == repositories
        && found.iter().all(same)
}
