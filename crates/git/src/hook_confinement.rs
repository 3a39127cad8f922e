//! The confinement of a commit's hooks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use journeyman_protocol::{RelPath, SandboxNeeds};
use journeyman_sandbox::Toolchains;
use serde::{Deserialize, Serialize};

/// The ways to run a commit's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookRunMode {
    /// Hooks run in the sandbox. If they can't be confined, nothing is committed.
    #[default]
    Confined,
    /// Hooks don't run, as with `git commit --no-verify`.
    Skipped,
    /// Hooks run as the user's own programs, because a person has reviewed them and the files that
    /// they obey.
    Outside,
}

/// The sandbox of a commit's hooks, and the rules for files that programs outside the sandbox obey.
#[derive(Debug, Clone)]
pub struct HookConfinement {
    /// The way in which hooks run.
    pub run: HookRunMode,
    /// The toolchains that hooks see.
    pub toolchains: Arc<Toolchains>,
    /// The user's variables that hooks see.
    pub env: BTreeMap<OsString, OsString>,
    /// The needs that must be met besides confined reads and writes and no network.
    pub needs: SandboxNeeds,
    /// Paths of the project that hooks may not change.
    pub protected: Vec<RelPath>,
    /// Returns true for paths that programs outside the sandbox obey: no hook may add such a path
    /// to a commit.
    pub is_guarded: fn(&RelPath) -> bool,
    /// Returns true for files that decide what other programs run.
    pub runs_code: fn(&RelPath) -> bool,
}

impl Default for HookConfinement {
    fn default() -> Self {
        Self {
            run: HookRunMode::Confined,
            toolchains: Arc::default(),
            env: BTreeMap::new(),
            needs: SandboxNeeds::NONE,
            protected: Vec::new(),
            is_guarded: |_| false,
            runs_code: |_| false,
        }
    }
}
