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
        if !undone.contains(&taker.id) && !path.is_some_and(|path| taker.left.contains(path)) {
            undone.extend(taker.undoes.iter().filter(|id| **id < taker.id));
        }
    }
    undone
}

/// Returns the changes that were taken back, oldest first in and as far as nothing was left.
pub(crate) fn undone_in<'a>(done: impl DoubleEndedIterator<Item = &'a ChangeRecord>) -> HashSet<ChangeId> {
    undone_at(done, None)
}
