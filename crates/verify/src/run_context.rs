//! The environment and the bounds of running checks.

use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{SandboxNeeds, SessionId};
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_workspace::Workspace;

use crate::CheckCaches;

/// Default number of bytes of a check's output, head and tail, that evidence keeps: some 4,000
/// tokens, more than feedback quotes.
const DEFAULT_EVIDENCE_BYTES: usize = 16 * 1024;
/// Default number of bytes of output that are read for diagnostics: a build that prints more has
/// its first and last errors in them.
const DEFAULT_CAPTURED_BYTES: usize = 1024 * 1024;

/// Limits of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Bytes of each check's output that its evidence keeps.
    pub evidence_bytes: usize,
    /// Bytes of each check's output that are read for diagnostics.
    pub captured_bytes: usize,
    /// Maximum time of any check, whatever the check's own time limit.
    pub longest: Option<Duration>,
    /// Maximum number of checks that run at the same time.
    pub at_once: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        let at_once = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            evidence_bytes: DEFAULT_EVIDENCE_BYTES,
            captured_bytes: DEFAULT_CAPTURED_BYTES,
            longest: None,
            at_once,
        }
    }
}

/// The environment in which checks run.
#[derive(Clone)]
pub struct RunContext {
    /// The project.
    pub workspace: Arc<Workspace>,
    /// The sandbox of the commands.
    pub sandbox: Arc<Sandbox>,
    /// The host's compilers and interpreters.
    pub toolchains: Arc<Toolchains>,
    /// The limits.
    pub limits: RunLimits,
    /// The confinement without which no check runs.
    pub needs: SandboxNeeds,
    /// Caches that are kept for the next round; without them a check's caches are discarded.
    pub caches: Option<Arc<CheckCaches>>,
    /// The session that files changed by a check are journaled for.
    pub session: SessionId,
}
