//! Finding the changes that later ones took back.

use crate::change::ChangeId;
use crate::journal::record::ChangeRecord;
use journeyman_protocol::RelPath;
use std::collections::HashSet;

/// Returns the changes that were taken back, as far as `path` is concerned; without one, as far as
/// nothing was left. A record can only take back what came before it, so that one walk is enough
/// whatever a journal says.
pub(crate) fn undone_at<'a>(
    done: impl DoubleEndedIterator<Item = &'a ChangeRecord>,
    path: Option<&RelPath>,
) -> HashSet<ChangeId> {
    let mut undone = HashSet::new();
    for taker in done.rev().filter(|record| !record.undoes.is_empty()) {
        if !undone.contains(&taker.id) {
            let left = path.and_then(|path| taker.left.iter().find(|left| left.path == *path));
            let taken = |id: &&ChangeId| **id < taker.id && left.is_none_or(|left| **id > left.newest);
            undone.extend(taker.undoes.iter().filter(taken));
        }
    }
    undone
}

/// Returns the changes that were taken back, oldest first in and as far as nothing was left.
pub(crate) fn undone_in<'a>(done: impl DoubleEndedIterator<Item = &'a ChangeRecord>) -> HashSet<ChangeId> {
    undone_at(done, None)
}
