//! The parts that a session is put together from.

use std::sync::Arc;

use journeyman_model::Model;
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_store::Store;
use journeyman_tools::{Registry, SharedIndex};
use journeyman_workspace::Workspace;

use crate::Clock;
use crate::hooks::Hooks;
use crate::isolation::WorkCopy;

/// Says whether a program is installed, by name.
pub type Programs = dyn Fn(&str) -> bool + Send + Sync;

/// What a session works with. Everything is passed in: there are no process-wide singletons.
pub struct Parts {
    /// Where the log is kept.
    pub store: Arc<dyn Store>,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The project tree, or the copy of it that the session works in.
    pub workspace: Arc<Workspace>,
    /// That copy; [`Parts::within`] puts it here.
    pub copy: Option<Arc<WorkCopy>>,
    /// What is known of the whole code base, and the way to the project's commits.
    pub index: Arc<SharedIndex>,
    /// Where commands run.
    pub sandbox: Arc<Sandbox>,
    /// Which toolchains commands see.
    pub toolchains: Arc<Toolchains>,
    /// The tools the model may call.
    pub registry: Registry,
    /// The rules.
    pub policy: Policy,
    /// What must never be shown or kept.
    pub redactor: Arc<Redactor>,
    /// What looks on and may step in.
    pub hooks: Hooks,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which programs are installed.
    pub programs: Arc<Programs>,
    /// Who writes the session, for people, such as `jm run, process 123`.
    pub holder: String,
}

impl Parts {
    /// The same, working in a copy of the project.
    #[must_use]
    pub fn within(mut self, copy: WorkCopy) -> Self {
        self.workspace = copy.workspace();
        self.index = Arc::new(self.index.of_copy(copy.workspace()));
        self.copy = Some(Arc::new(copy));
        self
    }
}
