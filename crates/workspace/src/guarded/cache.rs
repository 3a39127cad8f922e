//! The memory of guarded paths from one command to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use journeyman_protocol::RelPath;

use crate::guarded::kept_paths::KeptPath;
use crate::guarded::scan::RelevantNamesByDir;

/// The state that is kept from one command to the next.
#[derive(Debug, Default)]
pub(crate) struct GuardedCache {
    pub(crate) notes: Arc<RelevantNamesByDir>,
    pub(crate) kept: BTreeMap<RelPath, Arc<KeptPath>>,
    /// The guarded paths when the first command began: protected before any that came later.
    pub(crate) first: Option<BTreeSet<RelPath>>,
}
