//! Walking the tree: each directory opened once, beneath the root, links never followed.
//!
//! The traversal, the listing of a directory and the ignore rules are those of
//! [`journeyman_ignore_rules::walk`], which the index has too.
//!
//! A walk that knows the last tree compares as it goes. Names that were let through by the same
//! rules aren't held against them again, and where nothing differs nothing is put together. A
//! directory whose own signature is the same has the same names, on file systems that are known for
//! it, and isn't listed again. But every file is examined each time: nothing else shows that a
//! content changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use journeyman_ignore_rules::RULE_FILES;
use journeyman_ignore_rules::walk::visit_all;
use journeyman_protocol::ContentHash;
use rustix::fs::{AtFlags, OFlags, statat};
use rustix::io::Errno;

use crate::files::root_dir::LinkPolicy;
use crate::files::stat::{FileStat, file_clock};
use crate::rules::RuleLayer;
use crate::transaction::sibling::is_sibling;
use crate::walk::last_tree::LastTree;
use crate::walk::plan::{WalkPlan, Walked};
use crate::walk::visit::ThreadResults;
use crate::walk::visited::{DirTask, VisitedDir};
use crate::walk::walk_state::WalkState;

pub(crate) mod flatten;
pub(crate) mod last_tree;
pub(crate) mod plan;
pub(crate) mod visit;
pub(crate) mod visited;
pub(crate) mod walk_state;

/// More threads than this only wait for each other.
const MAX_THREADS: usize = 8;

/// Walks the tree.
///
/// # Errors
/// The system's word on the directory where the walk begins; those beneath it that can't be read
/// are listed.
pub(crate) fn walk(plan: &WalkPlan<'_>) -> Result<Walked, Errno> {
    let print = plan.rules.rules_hash(plan.root_dir.path());
    let layers = if plan.include_ignored { None } else { plan.rules.outer_rules(plan.root_dir.path()) };
    let layers = if plan.under.is_empty() { layers } else { rules_above(plan, layers)? };
    let begin: &[u8] = if plan.under.is_empty() { b"." } else { &plan.under };
    // The error is the caller's to see; inside the walk it would be one more unreadable directory.
    drop(plan.root_dir.open_beneath(begin, OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse)?);
    let last = plan.last.filter(|_| plan.under.is_empty()).map(LastTree::new);
    let trusted = plan.last.is_some_and(|last| last.rules == Some(print));
    let (known, path) = (last.map(|_| 0), plan.under.clone());
    let first = DirTask { index: 0, depth: 0, path, layers, known, trusted };
    let walk = WalkState {
        plan,
        last,
        begun: file_clock(),
        next_index: AtomicUsize::new(1),
        files: AtomicUsize::new(0),
        overflow: AtomicBool::new(false),
        unsure: AtomicBool::new(false),
    };
    let finds = walk.run(first);
    Ok(walk.finish_walk(finds, print))
}

/// Collects the rules of the directories above the one where the walk begins.
fn rules_above(
    plan: &WalkPlan<'_>,
    mut layers: Option<Arc<RuleLayer>>,
) -> Result<Option<Arc<RuleLayer>>, Errno> {
    if plan.include_ignored {
        return Ok(None);
    }
    let cuts = plan.under.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for cut in std::iter::once(0).chain(cuts) {
        let path = plan.under.get(..cut).unwrap_or_default();
        let begin: &[u8] = if path.is_empty() { b"." } else { path };
        let dir =
            plan.root_dir.open_beneath(begin, OFlags::RDONLY | OFlags::DIRECTORY, LinkPolicy::Refuse)?;
        let files = RULE_FILES.into_iter().filter_map(|name| {
            let seen = FileStat::of(&statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?);
            seen.is_file().then_some((name, seen))
        });
        layers = Some(RuleLayer::new(path, files.collect(), layers));
    }
    Ok(layers)
}

impl WalkState<'_> {
    /// Visits everything, with as many threads as are worth it.
    fn run(&self, first: DirTask) -> ThreadResults {
        let most = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let visit = |task: DirTask, below: &mut Vec<DirTask>, finds: &mut ThreadResults| {
            let (content, listed) = self.read(&task, below, finds);
            let DirTask { index, known: number, path, .. } = task;
            finds.visited.push(VisitedDir { index, number, path, content, listed });
        };
        let mut all = visit_all(first, most, visit).into_iter();
        let mut finds = all.next().unwrap_or_default();
        for theirs in all {
            finds.visited.extend(theirs.visited);
            finds.repositories.extend(theirs.repositories);
        }
        finds.repositories.sort_unstable();
        finds
    }

    fn finish_walk(&self, finds: ThreadResults, print: ContentHash) -> Walked {
        let ThreadResults { visited, repositories, .. } = finds;
        let overflow = self.overflow.load(Ordering::Relaxed);
        let rules = (!self.unsure.load(Ordering::Relaxed)).then_some(print);
        if let Some(last) = self.last
            && self.plan.may_be_same
            && !overflow
            && last.has_no_sibling_names()
            && rules == last.tree.rules
            && flatten::is_same(&visited, last, &repositories)
        {
            return Walked { same: true, listed: flatten::signatures(&visited), ..Walked::default() };
        }
        let walked = flatten::flatten(visited, self.next_index.load(Ordering::Relaxed), self.plan, self.last);
        let mut walked = Walked { overflow, repositories, rules, ..walked };
        let looks_like_one = |path: &[u8]| is_sibling(crate::files::paths::last_component(path));
        if walked.files.iter().any(|file| looks_like_one(&file.path))
            || walked.dirs.iter().any(|dir| looks_like_one(&dir.path))
        {
            let siblings = (self.plan.siblings)();
            let all = (walked.files.len(), walked.dirs.len());
            walked.files.retain(|file| !siblings.contains(&file.path));
            walked.dirs.retain(|dir| !is_at_or_beneath(&dir.path, &siblings));
            // A leftover temporary file of a finished transaction counts as an ordinary file.
            if (walked.files.len(), walked.dirs.len()) != all {
                walked.listed.clear();
            }
        }
        walked
    }
}

/// Returns true if one of these is the directory, or above it.
fn is_at_or_beneath(dir: &[u8], siblings: &HashSet<Vec<u8>>) -> bool {
    let slashes = dir.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    slashes.chain([dir.len()]).filter_map(|cut| dir.get(..cut)).any(|above| siblings.contains(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sibling_names() {
        let table: [(&[u8], bool); 6] = [
            (b".main.rs.jm-0123456789abcdef", true),
            (b"..jm-0123456789abcdef", true),
            (b".main.rs.jm-0123456789abcde", false),
            (b"main.rs.jm-0123456789abcdef", false),
            (b".main.rs.jm-0123456789abcdeg", false),
            (b".gitignore", false),
        ];
        for (name, expected) in table {
            assert_eq!(is_sibling(name), expected, "{}", String::from_utf8_lossy(name));
        }
    }
}
