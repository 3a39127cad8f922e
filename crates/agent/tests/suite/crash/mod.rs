//! A task of 30 calls that is cut off anywhere, and the faults of a disk and a clock.
//!
//! `JM_CRASH_RUNS=300` and `JM_CRASH_ALL=1` for the full volume, which `cargo xtask soak crash`
//! does.

mod checks;
pub(crate) mod child;
mod cuts;
mod faults;
mod flushes;
pub(crate) mod gated;
pub(crate) mod parallel;
pub(crate) mod parent;
mod place;
mod task;

use crate::harness::Case;

/// The cases of all modules, where commands can be confined.
pub(crate) fn cases() -> Vec<Case> {
    [cuts::CASES, faults::CASES].concat()
}
