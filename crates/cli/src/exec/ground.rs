//! The project around one command: what is protected in it, or a copy that is thrown away.
//!
//! It has a state directory of its own: what a person runs by hand is no session's work, and leaves nothing behind.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use journeyman_policy::is_guarded;
use journeyman_protocol::{FileChange, RelPath, SessionId};
use journeyman_sandbox::{Base, Repositories, Sandbox, at_top};
use journeyman_store::Blobs;
use journeyman_workspace::{Clock, GuardedNames, Isolated, Means, Options, Tier, Workspace, remove_tree};

use crate::edge::{Failure, House, now};

/// Bytes of a copy's contents that are kept while the command runs.
const QUOTA: u64 = 1024 * 1024 * 1024;

/// The project, or a copy of it. Nothing of it is left when it is dropped.
pub(super) struct Ground {
    workspace: Workspace,
    repositories: Repositories,
    /// Guarded names before the command, at the top and below.
    top: Vec<RelPath>,
    names: GuardedNames,
    protected: Vec<RelPath>,
    copy: Option<(SessionId, Isolated)>,
    _state: State,
}

/// What a command did to the project.
pub(super) struct Outcome {
    /// In its copy, if it had one.
    pub(super) changes: Option<Vec<FileChange>>,
    /// Repositories that weren't there before, with a `.git` or without.
    pub(super) planted: Vec<RelPath>,
    /// Guarded files and directories that weren't there before.
    pub(super) made: Vec<RelPath>,
}

/// A directory for the time of one command.
struct State(PathBuf);

impl State {
    fn make(house: &House) -> Result<Self, Failure> {
        let all = house.state_dir.join("exec");
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
        house: &House,
        root: &Path,
        sandbox: &Arc<Sandbox>,
        overlay: bool,
        tiers: &[Tier],
    ) -> Result<Self, Failure> {
        let state = State::make(house)?;
        let blobs = Arc::new(Blobs::open(&state.0.join("blobs"), QUOTA).context("a place for contents")?);
        let options = Options {
            own_dir: Some(house.state_dir.clone()),
            clock: Some(Clock::new(now)),
            ..Options::new(state.0.join("project"), blobs)
        };
        let workspace = Workspace::open(root, options).context("the project")?;
        let found = workspace.repositories().context("looking for repositories")?;
        let repositories = Repositories::of(&workspace.reach(), workspace.root(), found);
        let mut protected = repositories.protected();
        let top = at_top(&workspace.reach(), is_guarded);
        protected.extend(top.iter().cloned());
        let names = workspace.guarded_names(is_guarded).context("looking for guarded files")?;
        protected.extend(names.to_protect().0.iter().cloned());
        protected.extend(workspace.own_directories());
        protected.sort();
        protected.dedup();
        let copy = overlay.then(|| {
            let session = SessionId::new(now(), fastrand::u64(..));
            let tiers = if tiers.is_empty() { Tier::ALL.to_vec() } else { tiers.to_vec() };
            let means = Means { sandbox, git: None, tiers: &tiers };
            let copy = workspace.isolate(&session, &means).context("a throw-away copy")?;
            anyhow::Ok((session, copy))
        });
        let copy = copy.transpose()?;
        Ok(Self { workspace, repositories, top, names, protected, copy, _state: state })
    }

    /// What the command sees at the root, where that isn't the project itself.
    pub(super) fn base(&self) -> Option<Base> {
        self.copy.as_ref().and_then(|(_, copy)| copy.workspace().base())
    }

    pub(super) fn protected(&self) -> &[RelPath] {
        &self.protected
    }

    /// How many guarded files aren't read-only to the command, because there are too many.
    pub(super) fn unprotected(&self) -> usize {
        self.names.to_protect().1
    }

    /// What became of the project; a copy is gone then. Nothing of what was made is taken away: whoever typed the
    /// command may have wanted it.
    pub(super) fn close(self) -> Result<Outcome, Failure> {
        let Some((session, copy)) = self.copy else {
            let now = self.workspace.repositories().context("looking for repositories")?;
            let mut planted = self.repositories.planted(now);
            let names = self.workspace.guarded_names(is_guarded).context("looking for guarded files")?;
            planted.extend(names.bare.into_iter().filter(|path| !self.names.bare.contains(path)));
            let mut made = at_top(&self.workspace.reach(), is_guarded);
            made.extend(names.guarded);
            made.retain(|path| {
                let known = self.top.contains(path) || self.names.guarded.contains(path);
                !known && !path.file_name().eq_ignore_ascii_case(b".git")
            });
            made.sort();
            made.dedup();
            return Ok(Outcome { changes: None, planted, made });
        };
        let changes = self.workspace.copy_changes(&copy).context("what the command changed")?;
        drop(copy);
        self.workspace.discard_copy(&session).context("the throw-away copy")?;
        Ok(Outcome { changes: Some(changes.files()), planted: Vec::new(), made: Vec::new() })
    }
}
