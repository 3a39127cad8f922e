//! What git has, checked out, and made the same as the tree.

use std::collections::HashSet;

use crate::copies::info::Reason;
use crate::copies::record::Beside;
use crate::copies::tiers::fill::How;
use crate::copies::tiers::making::{Made, Making};

pub(crate) fn make(making: Making<'_>) -> Result<Made, Reason> {
    let git = making.means.git.ok_or("no git was given to make it with")?;
    let to = making.make_tree_dir(Beside::State)?;
    let differing = git.check_out(&to).map_err(|error| Reason(error.to_string()))?;
    // What git says is the same needn't be, byte for byte: filters and line endings. So the rest is
    // compared.
    let differing: HashSet<Vec<u8>> = differing.iter().map(|path| path.as_bytes().to_vec()).collect();
    making.fill(Beside::State, &to, How::Complete(differing))
}
