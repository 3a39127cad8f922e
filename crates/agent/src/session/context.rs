//! The data that every stage of a session needs: identity, settings, shared parts and transcript.

use std::sync::Arc;

use journeyman_model::Model;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{FileChange, SessionId, Usage};
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_tools::SharedIndex;
use journeyman_workspace::Workspace;

use crate::agents::role::AgentRole;
use crate::isolation::WorkCopy;
use crate::request::cache_watch::CacheWatch;
use crate::request::input_meter::InputMeter;
use crate::session::budget::Spending;
use crate::session::settings::{Approver, RunSettings};
use crate::session::shared_state::{AgentsWork, SessionShared, worse_outcome};
use crate::transcript::record::{Record, TaskCounters};
use crate::transcript::running_transcript::Transcript;

/// The context of a running session. Each stage takes it as an argument and owns only its own
/// state.
pub(crate) struct SessionContext {
    pub(crate) session: SessionId,
    pub(crate) settings: RunSettings,
    pub(crate) workspace: Arc<Workspace>,
    /// The isolated copy that the session works in, if any.
    pub(crate) copy: Option<Arc<WorkCopy>>,
    pub(crate) index: Arc<SharedIndex>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) toolchains: Arc<Toolchains>,
    pub(crate) model: Arc<dyn Model>,
    /// The model's limits, and the input of its requests.
    pub(crate) meter: InputMeter,
    pub(crate) cache_watch: CacheWatch,
    pub(crate) redactor: Arc<Redactor>,
    /// State shared with the handle: queued messages, open questions and the task's stop token.
    pub(crate) shared: Arc<SessionShared>,
    /// True if the newest message of a person asks something and demands no change.
    pub(crate) asks_question: bool,
    /// The newest question of the model's that nobody could be asked, in this task.
    pub(crate) unanswered_question: Option<String>,
    pub(crate) transcript: Transcript,
}

impl SessionContext {
    /// Returns the user's project, also in a session that works in a copy: the state that later
    /// sessions use again lies there.
    pub(crate) fn project(&self) -> &Arc<Workspace> {
        self.copy.as_ref().map_or(&self.workspace, |copy| &copy.isolation().origin)
    }

    /// Returns the role of a session that is an agent.
    pub(crate) fn role(&self) -> Option<&Arc<AgentRole>> {
        self.transcript.state().role.as_ref()
    }

    /// Returns the session for which file changes are journaled: the session that a person started,
    /// so that undoing it also reverts the changes of its agents.
    pub(crate) fn journal_session(&self) -> &SessionId {
        let parent = self.role().and_then(|role| role.parent.as_ref());
        parent.map_or(&self.session, |parent| &parent.root)
    }

    /// Returns true if a person can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.settings.approver == Approver::Handle
    }

    /// Returns true if the session works in an isolated copy, where commands can't harm the user's
    /// tree.
    pub(crate) fn is_isolated(&self) -> bool {
        self.copy.is_some() || self.workspace.project_copy().is_some()
    }

    /// Adds the tokens that a model used, and their cost if it is known, to the shared budget.
    pub(crate) fn record_usage(&self, usage: &Usage, usd: Option<f64>) {
        if let Some(budget) = &self.settings.shared_budget {
            budget.record_spending(Spending::new(*usage, usd));
        }
    }

    /// Adds usage of the session's model to the task's counters and the shared budget.
    pub(crate) fn count_usage(&mut self, usage: &Usage) {
        if *usage == Usage::default() {
            return;
        }
        let mut counters = self.transcript.state().counters;
        counters.usage += *usage;
        self.transcript.record(Record::Counters(counters));
        self.record_usage(usage, self.settings.price.as_ref().map(|price| price.cost(usage)));
    }

    /// Takes the work of agents that have ended: adds their usage to the task's counters, and
    /// returns the files that they changed.
    pub(crate) fn take_agents_work(&mut self) -> Vec<FileChange> {
        let AgentsWork { spending, failed, changes } = self.shared.delegated.take();
        let before = self.transcript.state().counters;
        let failed_agent = match (before.failed_agent, failed) {
            (Some(one), Some(other)) => Some(worse_outcome(one, other)),
            (one, other) => one.or(other),
        };
        if spending != Spending::default() || failed_agent != before.failed_agent {
            let mut counters = TaskCounters { failed_agent, ..before };
            counters.delegated = counters.delegated.saturating_add(spending.cost);
            counters.agents += spending.usage;
            counters.unpriced |= spending.unpriced;
            self.transcript.record(Record::Counters(counters));
        }
        changes
    }

    /// Returns the number of the step that runs, counted over the whole session.
    pub(crate) fn current_step(&self) -> u64 {
        self.transcript.state().counters.step.saturating_add(1)
    }
}
