//! Failpoints: steps of a transaction at which a test makes it fail or stop.

use rustix::io::Errno;
use std::fmt;
use std::sync::Arc;

/// A step of a transaction at which a test can cut it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransactionStep {
    /// Pre-images are about to be stored.
    Keep,
    /// The intent is about to be written to the journal.
    Intend,
    /// Directories are about to get permissions that their files need.
    Permit,
    /// One file's new content is about to be written beside it.
    Stage,
    /// One staged file is written and not yet durable.
    Staged,
    /// Everything is staged; the waits for the disk begin.
    Flush,
    /// One file is about to be moved out of the way.
    Remove,
    /// Directories are about to be made.
    MakeDirectories,
    /// One file is about to appear under its name.
    Place,
    /// One file has just been moved or placed.
    Placed,
    /// Everything is in place and not yet noted in the journal.
    Commit,
    /// The change is recorded as complete; what was moved away is about to be removed.
    Clean,
    /// The clean-up is done; the journal's closing line is about to be written.
    Settle,
    /// The tree was read before or after a command; the journal is about to be checked for changes
    /// made meanwhile.
    Look,
    /// The changes of a command that was cut off are about to be written to the journal.
    Seal,
    /// The command is reverted, and its heartbeat is about to be removed.
    Bury,
    /// Too much is kept: the journal is about to be cut.
    Forget,
    /// The blobs that nothing needs any more are about to be removed.
    Sweep,
    /// These blobs are removed; the records of blobs are about to be replaced.
    Swept,
}

/// The fault that a failpoint injects at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Go,
    /// Behaves as if the process had been killed here: no cleanup.
    Cut,
    /// Behaves as if the system call had failed.
    Fail(Errno),
}

/// A test's hook, asked at each [`TransactionStep`].
#[derive(Clone)]
pub struct Failpoint(pub(crate) Arc<dyn Fn(TransactionStep) -> Fault + Send + Sync>);

impl Failpoint {
    /// Makes a hook of a closure.
    pub fn new(hook: impl Fn(TransactionStep) -> Fault + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for Failpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Failpoint")
    }
}
