//! The progress of checks, reported in the order of the checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use journeyman_protocol::{Evidence, FileChange, GuardViolation};

use crate::Check;

/// Progress of a verification.
#[allow(clippy::large_enum_variant, reason = "one at a time, handed on at once")]
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A check starts.
    Started {
        /// The index of the check, from 0.
        index: usize,
        /// The number of all checks.
        of: usize,
        /// The check.
        check: Check,
    },
    /// The check printed output; cleaned, and bounded in all.
    Output {
        /// The index of the check.
        index: usize,
        /// The output.
        text: String,
    },
    /// Checks changed files that aren't ignored. The changes are journaled, so that an undo reverts
    /// them.
    Changed {
        /// The files.
        changes: Vec<FileChange>,
    },
    /// Checks made, changed or deleted guarded files or repositories.
    GuardViolated {
        /// The command; several commands where they ran at the same time.
        command: String,
        /// Files that were moved away or restored.
        violations: Vec<GuardViolation>,
    },
    /// The check has ended, or was not run. Reported again if the evidence gets warnings later,
    /// about changes made while this check and others ran.
    Finished {
        /// The index of the check.
        index: usize,
        /// The result.
        evidence: Evidence,
    },
}

/// Reports the progress of checks that run at the same time in the order of the checks, as if each
/// ran after the one before.
pub(crate) struct OrderedProgress<'o>(Mutex<ProgressQueue<'o>>);

struct ProgressQueue<'o> {
    observer: &'o mut (dyn FnMut(Progress) + Send),
    /// The check whose progress is reported at once.
    current: usize,
    waiting: BTreeMap<usize, Vec<Progress>>,
    /// The checks whose progress is not reported, because they don't count.
    muted: BTreeSet<usize>,
}

impl<'o> OrderedProgress<'o> {
    pub(crate) fn new(observer: &'o mut (dyn FnMut(Progress) + Send)) -> Self {
        Self(Mutex::new(ProgressQueue {
            observer,
            current: 0,
            waiting: BTreeMap::new(),
            muted: BTreeSet::new(),
        }))
    }

    /// Reports a step of a check, or keeps the step until it is the check's turn.
    pub(crate) fn report_in_turn(&self, index: usize, step: Progress) {
        let mut queue = self.lock_queue();
        if queue.muted.contains(&index) {
            return;
        }
        if index == queue.current {
            (queue.observer)(step);
        } else {
            queue.waiting.entry(index).or_default().push(step);
        }
    }

    /// Reports a step that belongs to no check's turn.
    pub(crate) fn report_now(&self, step: Progress) {
        (self.lock_queue().observer)(step);
    }

    /// Drops the kept steps of a check, and reports no later ones.
    pub(crate) fn mute_check(&self, index: usize) {
        let mut queue = self.lock_queue();
        queue.waiting.remove(&index);
        queue.muted.insert(index);
    }

    /// Reports the steps of all checks again.
    pub(crate) fn unmute_all(&self) {
        self.lock_queue().muted.clear();
    }

    /// Gives the next check its turn.
    pub(crate) fn advance_turn(&self) {
        let queue = &mut *self.lock_queue();
        queue.current += 1;
        queue.waiting.remove(&queue.current).into_iter().flatten().for_each(&mut *queue.observer);
    }

    fn lock_queue(&self) -> MutexGuard<'_, ProgressQueue<'o>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
