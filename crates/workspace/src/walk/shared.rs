//! The state that the threads of a walk share.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Condvar, Mutex};

use crate::walk::known::Known;
use crate::walk::plan::Plan;
use crate::walk::visited::Task;

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) waiting: Vec<Task>,
    /// Tasks taken and not finished.
    pub(crate) running: usize,
    /// Threads that wait for a task.
    pub(crate) idle: usize,
}

pub(crate) struct Walk<'a> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) last: Option<Known<'a>>,
    /// The start of the walk, by the clock of file times.
    pub(crate) begun: i64,
    pub(crate) queue: Mutex<Queue>,
    pub(crate) news: Condvar,
    pub(crate) next_index: AtomicUsize,
    pub(crate) files: AtomicUsize,
    pub(crate) overflow: AtomicBool,
    /// A rule file wasn't as it had been seen when its rules were read.
    pub(crate) unsure: AtomicBool,
}
