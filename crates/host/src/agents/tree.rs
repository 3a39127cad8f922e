//! The tree of a session, its agents, and their agents.

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use journeyman_protocol::{AgentReport, Envelope, Event, RunOutcome, Seq, SessionId};
use journeyman_store::{Store as _, StoreError};
use serde::Serialize;

use crate::events::read_events;
use crate::format::{format_count, format_seconds, outcome_name, preview};
use crate::state::StateDirs;
use crate::{Context as _, HostError};

/// Maximum depth of the tree; agents can't be nested deeper.
const MAX_DEPTH: usize = 8;

/// A session with the agents that it gave tasks to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentTree {
    /// The session.
    pub session: SessionId,
    /// The name of the agent's definition; `None` for a session that takes any task.
    pub name: Option<String>,
    /// The task, or its beginning.
    pub task: String,
    /// True if the session is not in the log: it was deleted, came with no export, or the program
    /// ended before it began.
    pub is_missing: bool,
    /// The end of the last task of a session that a person started.
    pub outcome: Option<RunOutcome>,
    /// The end of the agent; `None` while it works, or if it was cut off.
    pub end: Option<AgentReport>,
    /// The agent's requests to the model.
    pub turns: u32,
    /// US dollars spent by the agent and its own agents; `None` if the price is unknown.
    pub usd: Option<f64>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// True for an agent that worked while its session went on.
    pub background: bool,
    /// The agents that it gave tasks to, in order.
    pub agents: Vec<AgentTree>,
}

impl AgentTree {
    fn new(session: SessionId, name: Option<String>, task: String) -> Self {
        let (outcome, end, usd) = (None, None, None);
        let (turns, duration_ms, background, agents) = (0, 0, false, Vec::new());
        let is_missing = false;
        Self { session, name, task, is_missing, outcome, end, turns, usd, duration_ms, background, agents }
    }

    /// Returns the tree as lines, a session each.
    #[must_use]
    pub fn to_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.add_lines("", "", &mut lines);
        lines
    }

    fn add_lines(&self, first: &str, rest: &str, lines: &mut Vec<String>) {
        let name = self.name.as_deref().unwrap_or("session");
        let ending = match (&self.end, self.outcome) {
            (Some(end), _) => match end.recovered {
                Some(limit) => format!("{}, recovered from {limit}", end.termination),
                None => end.termination.to_string(),
            },
            (None, Some(outcome)) => outcome_name(outcome),
            (None, None) => "no end".to_owned(),
        };
        let cost = self.usd.map(|usd| format!(", ${usd:.4}")).unwrap_or_default();
        let (turns, time) = (format_count(self.turns, "turn"), format_seconds(self.duration_ms));
        let task = preview(&self.task);
        let beside = if self.background { " in the background" } else { "" };
        let missing = if self.is_missing { " (its log is not here)" } else { "" };
        let session = &self.session;
        lines.push(format!(
            "{first}{name}{beside} {session}{missing}  {ending}, {turns}, {time}{cost}: {task}"
        ));
        for (place, agent) in self.agents.iter().enumerate() {
            let is_last = place + 1 == self.agents.len();
            let (branch, beside) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            agent.add_lines(&format!("{rest}{branch}"), &format!("{rest}{beside}"), lines);
        }
    }
}

/// Reads the tree of a session from the session logs. An agent without a log is described by the
/// events of its parent.
///
/// # Errors
/// [`HostError`] where a log can't be read.
pub async fn load_agent_tree(state: &StateDirs, session: &SessionId) -> Result<AgentTree, HostError> {
    read_tree(state, AgentTree::new(session.clone(), None, String::new()), 0).await
}

fn read_tree<'a>(
    state: &'a StateDirs,
    mut tree: AgentTree,
    depth: usize,
) -> LocalBoxFuture<'a, Result<AgentTree, HostError>> {
    async move {
        let (session, is_root) = (tree.session.clone(), depth == 0);
        match state.store.read(&session, Seq::START, 1).await {
            Err(StoreError::UnknownSession { .. }) if !is_root => {
                tree.is_missing = true;
                return Ok(tree);
            }
            read => read.context("the session log")?,
        };
        read_events(state, &session, Seq::START, &mut |envelope| {
            tree.apply_event(envelope, is_root);
            Ok(())
        })
        .await?;
        if depth < MAX_DEPTH {
            for agent in std::mem::take(&mut tree.agents) {
                tree.agents.push(read_tree(state, agent, depth + 1).await?);
            }
        }
        Ok(tree)
    }
    .boxed_local()
}

impl AgentTree {
    fn apply_event(&mut self, envelope: &Envelope, is_root: bool) {
        match &envelope.event {
            Event::RunStarted { task, .. } if is_root => {
                self.task.clone_from(task);
                self.outcome = None;
            }
            Event::Done { report } if is_root => {
                self.outcome = Some(report.outcome);
                self.end.clone_from(&report.agent);
                self.name = report.agent.as_ref().map(|agent| agent.name.clone());
                (self.turns, self.usd, self.duration_ms) =
                    (report.turns, report.cost_usd, report.duration_ms);
            }
            Event::AgentStarted { child, name, task, background, .. } => {
                let agent = Self::new(child.clone(), Some(name.clone()), task.clone());
                self.agents.push(Self { background: *background, ..agent });
            }
            Event::AgentFinished { child, report, turns, usd, duration_ms, .. } => {
                if let Some(agent) = self.agents.iter_mut().find(|agent| agent.session == *child) {
                    agent.end = Some(report.clone());
                    (agent.turns, agent.usd, agent.duration_ms) = (*turns, *usd, *duration_ms);
                }
            }
            _ => {}
        }
    }
}
