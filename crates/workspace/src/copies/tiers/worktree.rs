//! A copy by git's checkout, made the same as the tree.

use std::collections::HashSet;

use crate::copies::info::UnavailableReason;
use crate::copies::record::CopyBase;
use crate::copies::tiers::fill::FillMethod;
use crate::copies::tiers::making::{CopyRequest, MadeCopy};

pub(crate) fn make_worktree(making: CopyRequest<'_>) -> Result<MadeCopy, UnavailableReason> {
    let git = making.means.git.ok_or("no git was given to make it with")?;
    let to = making.make_tree_dir(CopyBase::State)?;
    let differing = git.check_out(&to).map_err(|error| UnavailableReason(error.to_string()))?;
    // What git says is the same needn't be, byte for byte: filters and line endings. So the rest is
    // compared.
    let differing: HashSet<Vec<u8>> = differing.iter().map(|path| path.as_bytes().to_vec()).collect();
    making.fill(CopyBase::State, &to, FillMethod::Complete(differing))
}
