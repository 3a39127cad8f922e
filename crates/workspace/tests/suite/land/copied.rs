//! A project, and a copy of it that a session works in.

use std::path::PathBuf;
use std::process::Command;

use journeyman_protocol::{CallId, UnixMillis};
use journeyman_workspace::failpoint::Failpoint;
use journeyman_workspace::{
    CopyChanges, CopyInfo, IsolationTier, LandOptions, LandingReport, OnConflict, Options, Workspace,
    WorkspaceError,
};

use crate::support::{Model, Project, model, session};

/// The session whose copy it is.
pub(crate) const RUN: u64 = 7;

pub(crate) struct Copied {
    pub(crate) project: Project,
    pub(crate) user: Workspace,
    pub(crate) copy: Workspace,
    pub(crate) info: CopyInfo,
}

impl Copied {
    pub(crate) fn of(project: Project) -> Self {
        let user = project.open();
        let base = user.checkpoint(&session(RUN), "before").unwrap();
        let root = project.dir.path().join("copy");
        let copied = Command::new("cp").arg("-a").arg(project.root()).arg(&root).status().unwrap();
        assert!(copied.success());
        let info = CopyInfo {
            session: session(RUN),
            tier: IsolationTier::Copy,
            created: UnixMillis(1),
            base,
            holder: None,
        };
        let state = project.state().join("work").join(session(RUN).as_str()).join("state");
        let options =
            Options { limits: project.limits.clone(), ..Options::new(state, project.blobs.clone()) };
        let copy = Workspace::open(&root, options).unwrap();
        Self { project, user, copy, info }
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        Self::of(Project::with(files))
    }

    pub(crate) fn copy_root(&self) -> PathBuf {
        self.project.dir.path().join("copy")
    }

    pub(crate) fn changes(&self) -> CopyChanges {
        self.user.landings().changes_in_workspace(&self.copy, &self.info).unwrap()
    }

    pub(crate) fn land(&self, on_conflict: OnConflict) -> LandingReport {
        self.try_land(on_conflict).unwrap()
    }

    pub(crate) fn try_land(&self, on_conflict: OnConflict) -> Result<LandingReport, WorkspaceError> {
        self.user.land(&self.changes(), &LandOptions { on_conflict, ..LandOptions::default() })
    }

    /// The user's workspace opened anew, with a hook.
    pub(crate) fn failing(&self, failpoint: Failpoint) -> Workspace {
        self.project.open_failing(failpoint)
    }

    /// Something done in the copy by a command.
    pub(crate) fn command(&self, work: impl FnOnce()) {
        let before = self.copy.command_observer().begin().unwrap();
        work();
        self.copy.command_observer().end(before, &session(RUN), Some(&CallId::new("shell"))).unwrap();
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.copy_root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// What the user has.
    pub(crate) fn tree(&self) -> Model {
        self.project.tree()
    }

    /// What the copy has.
    pub(crate) fn copied(&self) -> Model {
        model(&self.copy_root())
    }
}

/// The conflicts' files.
pub(crate) fn names(landing: &LandingReport) -> Vec<String> {
    landing.conflicts.iter().map(|(path, _)| path.to_string()).collect()
}
