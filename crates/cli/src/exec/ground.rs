//! The project around one command: what is protected in it, or a copy that is thrown away.
//!
//! It has a state directory of its own: what a person runs by hand is no session's work, and leaves nothing behind.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_host::Context as _;
use journeyman_policy::GUARDS;
use journeyman_protocol::{FileChange, GuardViolation, RelPath, SessionId};
use journeyman_sandbox::{Base, Sandbox};
use journeyman_store::Blobs;
use journeyman_workspace::{
    Aftermath, Clock, Guarded, HardLinks, Isolated, Means, Options, Tier, Workspace, remove_tree,
};

use journeyman_host::HostError;
use journeyman_host::state::{StateDirs, now};

/// Bytes of a copy's contents that are kept while the command runs.
const QUOTA: u64 = 1024 * 1024 * 1024;

/// The project, or a copy of it. Nothing of it is left when it is dropped.
pub(super) struct Ground {
    workspace: Workspace,
    /// Absent for a command that can't write.
    guard: Option<Guarded>,
    /// What has hard links out of the project.
    linked: Vec<RelPath>,
    copy: Option<(SessionId, Isolated)>,
    _state: State,
}

/// What a command did to the project.
pub(super) struct Outcome {
    /// In its copy, if it had one.
    pub(super) changes: Option<Vec<FileChange>>,
    /// What it did that no command may, and what became of it.
    pub(super) violations: Vec<GuardViolation>,
    /// What else has to be said of that.
    pub(super) problem: Option<String>,
}

/// A directory for the time of one command.
struct State(PathBuf);

impl State {
    fn make(dirs: &StateDirs) -> Result<Self, HostError> {
        let all = dirs.dir.join("exec");
        sweep(&all);
        let path = all.join(format!("{}-{:x}", std::process::id(), fastrand::u64(..)));
        DirBuilder::new().recursive(true).mode(0o700).create(&path).context("a directory for the command")?;
        Ok(Self(path))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // The next one sweeps what can't be removed now.
        remove_tree(&self.0).ok();
    }
}

/// Removes what processes left that were killed. A number that another process has by now is taken up later.
fn sweep(all: &Path) {
    let Ok(entries) = std::fs::read_dir(all) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.split_once('-')).and_then(|(pid, _)| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            remove_tree(&entry.path()).ok();
        }
    }
}

impl Ground {
    pub(super) fn open(
        dirs: &StateDirs,
        root: &Path,
        sandbox: &Arc<Sandbox>,
        (overlay, read_only): (bool, bool),
        tiers: &[Tier],
    ) -> Result<Self, HostError> {
        let state = State::make(dirs)?;
        let blobs = Arc::new(Blobs::open(&state.0.join("blobs"), QUOTA).context("a place for contents")?);
        let options = Options {
            own_dir: Some(dirs.dir.clone()),
            clock: Some(Clock::new(now)),
            removed_dir: Some(dirs.project_dir(root).join("removed")),
            ..Options::new(state.0.join("project"), blobs)
        };
        let workspace = Workspace::open(root, options).context("the project")?;
        let guard = (!read_only).then(|| Guarded::before(&workspace, GUARDS));
        let guard = guard.transpose().context("looking for what a command may not change")?;
        let linked = if overlay || read_only {
            HardLinks::default()
        } else {
            workspace.find_hard_links().context("the project")?
        };
        let copy = overlay.then(|| {
            let session = SessionId::new(now(), fastrand::u64(..));
            let tiers = if tiers.is_empty() { Tier::ALL.to_vec() } else { tiers.to_vec() };
            let means = Means { sandbox, git: None, tiers: &tiers };
            let copy = workspace.isolate(&session, &means).context("a throw-away copy")?;
            Ok::<_, HostError>((session, copy))
        });
        let copy = copy.transpose()?;
        let linked = linked.paths().cloned().collect();
        Ok(Self { workspace, guard, linked, copy, _state: state })
    }

    /// What the command sees at the root, where that isn't the project itself.
    pub(super) fn base(&self) -> Option<Base> {
        self.copy.as_ref().and_then(|(_, copy)| copy.workspace().base())
    }

    pub(super) fn protected(&self) -> &[RelPath] {
        self.guard.as_ref().map_or(&[], Guarded::protected)
    }

    /// What is read-only because writing there would change files outside of the project.
    pub(super) fn linked(&self) -> &[RelPath] {
        &self.linked
    }

    /// What became of the project; a copy is gone then. What the command made that programs outside the sandbox obey is
    /// moved away, and what it changed of that is put back. `kept` says that the sandbox kept protected paths.
    pub(super) fn close(self, kept: bool) -> Result<Outcome, HostError> {
        let Some((session, copy)) = self.copy else {
            let ended = self.guard.map(|guard| guard.end(&self.workspace, kept, || Ok(Vec::new())).1);
            let Aftermath { violations, problem } = ended.unwrap_or_default();
            return Ok(Outcome { changes: None, violations, problem });
        };
        let changes = self.workspace.copy_changes(&copy).context("what the command changed")?;
        drop(copy);
        self.workspace.discard_copy(&session).context("the throw-away copy")?;
        Ok(Outcome { changes: Some(changes.files()), violations: Vec::new(), problem: None })
    }
}
