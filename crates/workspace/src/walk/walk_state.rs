//! The state that the threads of a walk share.

use std::sync::atomic::{AtomicBool, AtomicUsize};

use crate::walk::last_tree::LastTree;
use crate::walk::plan::WalkPlan;

pub(crate) struct WalkState<'a> {
    pub(crate) plan: &'a WalkPlan<'a>,
    pub(crate) last: Option<LastTree<'a>>,
    /// The start of the walk, by the clock of file times.
    pub(crate) begun: i64,
    pub(crate) next_index: AtomicUsize,
    pub(crate) files: AtomicUsize,
    pub(crate) overflow: AtomicBool,
    /// A rule file wasn't as it had been seen when its rules were read.
    pub(crate) unsure: AtomicBool,
}
