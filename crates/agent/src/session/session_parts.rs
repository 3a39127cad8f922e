//! The parts that a session is assembled from.

use std::sync::Arc;

use journeyman_model::Model;
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_store::Store;
use journeyman_tools::{Registry, SharedIndex};
use journeyman_verify::ProgramLookup;
use journeyman_workspace::Workspace;

use crate::Clock;
use crate::agents::delegation::Agents;
use crate::approval::LastingAnswers;
use crate::hooks::Hooks;
use crate::isolation::{PlannedCopy, WorkCopy};

/// The dependencies of a session. All are passed in; there are no process-wide singletons.
pub struct SessionParts {
    /// The store that keeps the log.
    pub store: Arc<dyn Store>,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The project tree, or the copy of it that the session works in.
    pub workspace: Arc<Workspace>,
    /// The isolated copy that `workspace` belongs to, set by [`SessionParts::move_into_copy`].
    pub copy: Option<Arc<WorkCopy>>,
    /// The copy that the session is to work in and that isn't made yet.
    pub planned_copy: Option<PlannedCopy>,
    /// The code index and the project's commit history.
    pub index: Arc<SharedIndex>,
    /// The sandbox that commands run in.
    pub sandbox: Arc<Sandbox>,
    /// The toolchains visible to commands.
    pub toolchains: Arc<Toolchains>,
    /// The tools the model may call.
    pub registry: Registry,
    /// The permission rules.
    pub policy: Policy,
    /// The lasting answers of a person, which the session shares with its agents.
    pub lasting_answers: LastingAnswers,
    /// Removes secrets from what is shown or stored.
    pub redactor: Arc<Redactor>,
    /// Hooks that observe and may intervene.
    pub hooks: Hooks,
    /// The clock.
    pub clock: Clock,
    /// Looks up installed programs.
    pub programs: Arc<ProgramLookup>,
    /// A description of the process that holds the session, such as `jm run, process 123`.
    pub holder: String,
    /// The agents that the model may give tasks to, if any.
    pub agents: Option<Agents>,
}

impl SessionParts {
    /// Moves these parts into an isolated copy of the project.
    #[must_use]
    pub fn move_into_copy(mut self, copy: WorkCopy) -> Self {
        self.workspace = copy.workspace();
        self.index = Arc::new(self.index.for_copy(copy.workspace()));
        self.copy = Some(Arc::new(copy));
        self
    }

    /// Plans a move of the session into a copy that is made during the first model request.
    #[must_use]
    pub fn move_into_planned_copy(mut self, planned: PlannedCopy) -> Self {
        self.planned_copy = Some(planned);
        self
    }
}
