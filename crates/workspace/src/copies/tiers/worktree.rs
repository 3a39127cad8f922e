//! A copy by git's checkout, made the same as the tree.

use std::collections::HashSet;

use crate::copies::info::UnavailableReason;
use crate::copies::record::CopyPlacement;
use crate::copies::tiers::copy_request::{CopyRequest, MadeCopy};
use crate::copies::tiers::fill::FillMethod;

pub(crate) fn make_worktree(making: CopyRequest<'_>) -> Result<MadeCopy, UnavailableReason> {
    let git = making.means.git.ok_or("no git was given to make it with")?;
    let to = making.make_tree_dir(CopyPlacement::State)?;
    let differing = git.check_out(&to).map_err(|error| UnavailableReason(error.to_string()))?;
    // What git says is the same needn't be, byte for byte: filters and line endings. So the rest is
    // compared.
    let differing: HashSet<Vec<u8>> = differing.iter().map(|path| path.as_bytes().to_vec()).collect();
    making.fill(CopyPlacement::State, &to, FillMethod::Complete(differing))
}
