//! The state that the threads of a walk share.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Condvar, Mutex};

use crate::walk::known::LastTree;
use crate::walk::plan::WalkPlan;
use crate::walk::visited::DirTask;

#[derive(Default)]
pub(crate) struct DirQueue {
    pub(crate) waiting: Vec<DirTask>,
    /// Tasks taken and not finished.
    pub(crate) running: usize,
    /// Threads that wait for a task.
    pub(crate) idle: usize,
}

pub(crate) struct WalkState<'a> {
    pub(crate) plan: &'a WalkPlan<'a>,
    pub(crate) last: Option<LastTree<'a>>,
    /// The start of the walk, by the clock of file times.
    pub(crate) begun: i64,
    pub(crate) queue: Mutex<DirQueue>,
    pub(crate) news: Condvar,
    pub(crate) next_index: AtomicUsize,
    pub(crate) files: AtomicUsize,
    pub(crate) overflow: AtomicBool,
    /// A rule file wasn't as it had been seen when its rules were read.
    pub(crate) unsure: AtomicBool,
}
