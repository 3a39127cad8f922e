//! The session as a set of stages, each with one job. The session calls them in order.

use std::sync::{Arc, Mutex};

use crate::AgentError;
use crate::agents::background::BackgroundAgents;
use crate::agents::complete_task::CompleteTaskTool;
use crate::agents::definition::TASK_TOOL;
use crate::agents::delegation::{Agents, DelegatingSession, DelegationGuard, MAX_CONCURRENT_AGENTS};
use crate::agents::group::GroupMemberTool;
use crate::agents::role::AgentRole;
use crate::agents::task_tool::{agent_tool_specs, agent_tools};
use crate::approval::approvals::Approvals;
use crate::approval::ask_user::AskUser;
use crate::approval::overlay_preview::OverlayPreviews;
use crate::calls::runner::ToolRunner;
use crate::compaction::Compactor;
use crate::compaction::compactor::CompactionStages;
use crate::hooks::change_review::ChangeReview;
use crate::hooks::dispatch::HookDispatch;
use crate::isolation::checkpoints::Checkpoints;
use crate::isolation::copy_updates::CopyUpdates;
use crate::request::apply_edit::{self, ApplyEditTool};
use crate::request::builder::RequestBuilder;
use crate::request::cache_watch::CacheWatch;
use crate::request::input_meter::InputMeter;
use crate::request::offered_tools::select_offered;
use crate::session::context::SessionContext;
use crate::session::inbox::Inbox;
use crate::session::incoming_messages::IncomingMessages;
use crate::session::model_exchange::{ModelExchange, ReplyProgress};
use crate::session::reopen::Reopening;
use crate::session::report::TaskReporter;
use crate::session::session_parts::SessionParts;
use crate::session::settings::RunSettings;
use crate::session::shared_state::SessionShared;
use crate::session::task_opening::TaskOpening;
use crate::session::tool_step::ToolStep;
use crate::session::verify::TurnVerification;
use crate::supervision::Supervision;
use crate::supervision::schedule::Schedule;
use crate::supervision::todos::{SharedTodoList, TodoRead, TodoWrite};
use crate::transcript::running_transcript::Transcript;
use crate::verification::Verification;
use journeyman_protocol::{Clock, SessionId, Tokens, ToolSpec, UnixMillis};
use journeyman_tools::Registry;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// A running session: its context and its stages, in the order of a turn.
pub(crate) struct Session {
    pub(crate) cx: SessionContext,
    pub(crate) inbox: Arc<Inbox>,
    pub(super) requests: RequestBuilder,
    pub(super) approvals: Approvals,
    pub(super) previews: OverlayPreviews,
    pub(super) runner: ToolRunner,
    pub(super) hooks: HookDispatch,
    pub(super) supervision: Supervision,
    pub(super) verification: Verification,
    pub(super) checkpoints: Checkpoints,
    pub(super) copy_updates: CopyUpdates,
    pub(super) replies: ReplyProgress,
    pub(super) room: Compactor,
    /// The parts that the session lends to its agents, if it may have any.
    pub(super) delegation: Option<DelegationGuard>,
}

/// Objects that a session shares with its handle.
#[derive(Clone)]
pub(crate) struct SharedParts {
    pub(crate) shared: Arc<SessionShared>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) todos: Arc<SharedTodoList>,
    pub(crate) schedule: Arc<Schedule>,
}

impl Session {
    /// Creates the session and its stages.
    pub(crate) fn new(
        mut parts: SessionParts,
        settings: RunSettings,
        session: SessionId,
        transcript: Transcript,
        shared: SharedParts,
    ) -> Self {
        let SharedParts { shared, inbox, todos, schedule } = shared;
        let mut registry = std::mem::take(&mut parts.registry);
        add_own_tools(&mut registry, &todos);
        let role = transcript.state().role.clone();
        if let Some(role) = &role {
            registry = narrow_registry(registry, role);
        }
        let lent =
            build_delegating_session(&parts, &settings, &session, &registry, &shared, &inbox, &transcript);
        if let Some(lent) = &lent {
            if lent.agents.is_group() {
                registry.add(Box::new(GroupMemberTool::new(lent)));
            } else {
                agent_tools(lent).into_iter().for_each(|tool| registry.add(tool));
            }
        }
        let registry = Arc::new(registry);
        let remind_every = settings.todos.map_or(0, |todos| todos.remind_every);
        Self {
            requests: RequestBuilder::new(Arc::clone(&registry), settings.tool_calling),
            approvals: Approvals::new(parts.policy, Arc::clone(&registry))
                .with_role(role)
                .with_lasting_answers(parts.lasting_answers),
            previews: OverlayPreviews::new(Arc::clone(&registry)),
            runner: ToolRunner::new(registry, Arc::clone(&inbox)),
            hooks: HookDispatch::new(parts.hooks),
            supervision: Supervision::new(todos, schedule, remind_every),
            verification: Verification::new(parts.programs),
            checkpoints: Checkpoints::default(),
            copy_updates: CopyUpdates::new(parts.planned_copy),
            replies: ReplyProgress::default(),
            room: Compactor::default(),
            delegation: lent.map(DelegationGuard::new),
            inbox,
            cx: SessionContext {
                session,
                meter: InputMeter::new(settings.limits.clone())
                    .with_kept_ratio(settings.token_ratios.clone(), &parts.model.name()),
                cache_watch: CacheWatch::new(parts.clock),
                settings,
                workspace: parts.workspace,
                copy: parts.copy,
                index: parts.index,
                sandbox: parts.sandbox,
                toolchains: parts.toolchains,
                model: parts.model,
                redactor: parts.redactor,
                shared,
                asks_question: false,
                unanswered_question: None,
                transcript,
            },
        }
    }

    /// Returns the stages that take over a session that another process held.
    pub(super) fn reopening(&mut self) -> Reopening<'_> {
        Reopening {
            cx: &mut self.cx,
            inbox: &self.inbox,
            requests: &mut self.requests,
            approvals: &mut self.approvals,
            runner: &self.runner,
            hooks: &mut self.hooks,
            supervision: &mut self.supervision,
            verification: &mut self.verification,
            checkpoints: &mut self.checkpoints,
            copy_updates: &mut self.copy_updates,
            delegation: self.delegation.as_deref(),
        }
    }

    /// Returns the stages that begin a task.
    pub(crate) fn task_opening(&mut self) -> TaskOpening<'_> {
        TaskOpening {
            cx: &mut self.cx,
            requests: &self.requests,
            approvals: &mut self.approvals,
            hooks: &mut self.hooks,
            supervision: &mut self.supervision,
            verification: &mut self.verification,
            checkpoints: &mut self.checkpoints,
            copy_updates: &mut self.copy_updates,
            delegation: self.delegation.as_deref(),
        }
    }

    /// Returns the stages that one model request and its reply go through.
    pub(super) fn model_exchange(&mut self) -> ModelExchange<'_> {
        ModelExchange {
            cx: &mut self.cx,
            requests: &mut self.requests,
            approvals: &mut self.approvals,
            hooks: &mut self.hooks,
            checkpoints: &mut self.checkpoints,
            copy_updates: &mut self.copy_updates,
            room: &mut self.room,
            evidence: self.verification.evidence(),
            replies: &mut self.replies,
            has_new_edits: self.runner.has_new_edits(),
        }
    }

    /// Shortens the conversation if a person asked for it.
    pub(super) async fn answer_compaction_request(&mut self, stop: &CancellationToken) {
        let Some(answer) = self.cx.shared.take_compaction_request() else { return };
        let (tools, reporting) = (self.requests.tools_for_request(&self.cx), self.requests.reporting_tools());
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        let (cx, hooks, evidence) = (&mut self.cx, &mut self.hooks, self.verification.evidence());
        let stages = CompactionStages { cx, hooks, review, evidence, reporting, stop };
        let shortened = self.room.shorten_on_request(stages, &tools).await;
        // The log reports a failed write and retries it.
        self.cx.transcript.flush().await.ok();
        let told = match shortened {
            Ok((before, after)) if after >= before => Err("there is nothing to leave out".to_owned()),
            Ok(sizes) => Ok(sizes),
            Err(AgentError::NotShortened { reason }) => Err(reason),
            Err(error) => Err(error.to_string()),
        };
        answer.send(told).ok();
    }

    /// Returns the stages that the calls of one reply go through.
    pub(super) fn tool_step(&mut self) -> ToolStep<'_> {
        ToolStep {
            cx: &mut self.cx,
            checkpoints: &mut self.checkpoints,
            approvals: &mut self.approvals,
            previews: &mut self.previews,
            hooks: &mut self.hooks,
            runner: &mut self.runner,
            supervision: &mut self.supervision,
        }
    }

    /// Returns the stages that queued messages go through.
    pub(super) fn incoming_messages(&mut self) -> IncomingMessages<'_> {
        IncomingMessages {
            cx: &mut self.cx,
            approvals: &mut self.approvals,
            hooks: &mut self.hooks,
            supervision: &mut self.supervision,
            checkpoints: &mut self.checkpoints,
        }
    }

    /// Returns the stages that verify changes.
    pub(super) fn turn_verification(&mut self) -> TurnVerification<'_> {
        TurnVerification {
            said_nothing: self.replies.last_text().trim().is_empty(),
            cx: &mut self.cx,
            approvals: &mut self.approvals,
            runner: &mut self.runner,
            supervision: &mut self.supervision,
            verification: &mut self.verification,
            checkpoints: &mut self.checkpoints,
            copy_updates: &mut self.copy_updates,
        }
    }

    /// Returns the stages that the report of a task is built from.
    pub(super) fn task_reporter(&mut self) -> TaskReporter<'_> {
        TaskReporter {
            cx: &mut self.cx,
            runner: &self.runner,
            supervision: &mut self.supervision,
            verification: &mut self.verification,
            checkpoints: &mut self.checkpoints,
            last_text: self.replies.last_text(),
        }
    }
}

/// Adds the tools that need the session's own data.
fn add_own_tools(registry: &mut Registry, todos: &Arc<SharedTodoList>) {
    registry.add(Box::new(ApplyEditTool));
    registry.add(Box::new(AskUser));
    if todos.is_enabled() {
        registry.add(Box::new(TodoRead::new(Arc::clone(todos))));
        registry.add(Box::new(TodoWrite::new(Arc::clone(todos))));
    }
}

/// Returns the tools that a session with these settings would offer to a model with this window.
/// Nothing is started.
#[must_use]
pub fn offered_tools(
    mut registry: Registry,
    settings: &RunSettings,
    agents: Option<&Agents>,
    window: Tokens,
) -> Vec<ToolSpec> {
    let clock = Clock::new(|| UnixMillis(0));
    let todos =
        if settings.todos.is_some() { SharedTodoList::new(clock) } else { SharedTodoList::disabled(clock) };
    add_own_tools(&mut registry, &Arc::new(todos));
    let agents = agents.filter(|agents| !agents.is_group()).map(agent_tool_specs).unwrap_or_default();
    let names: Vec<String> = agents.iter().map(|spec| spec.name.clone()).collect();
    let reads = |name: &str| {
        names.iter().any(|agent| agent == name) || registry.get(name).is_ok_and(|tool| tool.is_read_only())
    };
    select_offered([registry.specs(), agents].concat(), settings, window, reads)
}

/// Returns the tools of an agent, including `complete_task`, which ends its work.
fn narrow_registry(registry: Registry, role: &AgentRole) -> Registry {
    let edits = role.tools.iter().any(|tool| tool == "edit_file");
    // Edits in the text of a reply are calls of this tool.
    let is_kept =
        |name: &str| role.tools.iter().any(|tool| tool == name) || (edits && name == apply_edit::TOOL_NAME);
    let mut registry = registry.retain(is_kept);
    registry.add(Box::new(CompleteTaskTool::new(role.output.clone())));
    registry
}

/// Returns the parts that the session lends to its agents; `None` if it may not have any. An agent
/// has agents of its own only if its definition names the tool for it.
fn build_delegating_session(
    parts: &SessionParts,
    settings: &RunSettings,
    session: &SessionId,
    tools: &Registry,
    shared: &Arc<SessionShared>,
    inbox: &Arc<Inbox>,
    transcript: &Transcript,
) -> Option<Arc<DelegatingSession>> {
    let (agents, budget) = (parts.agents.clone()?, Arc::clone(settings.shared_budget.as_ref()?));
    let role = transcript.state().role.as_deref();
    if role.is_some_and(|role| role.tools.iter().all(|tool| tool != TASK_TOOL)) {
        return None;
    }
    let parent = role.and_then(|role| role.parent.as_ref());
    Some(Arc::new(DelegatingSession {
        session: session.clone(),
        root: parent.map_or_else(|| session.clone(), |parent| parent.root.clone()),
        path: role.map(|role| role.path.clone()).unwrap_or_default(),
        agents,
        store: Arc::clone(&parts.store),
        model: Arc::clone(&parts.model),
        policy: parts.policy.clone(),
        lasting_answers: parts.lasting_answers.clone(),
        redactor: Arc::clone(&parts.redactor),
        hooks: parts.hooks.clone(),
        clock: parts.clock.clone(),
        programs: Arc::clone(&parts.programs),
        holder: parts.holder.clone(),
        settings: settings.clone(),
        tools: tools.clone(),
        edits: role.map(|role| role.edits).unwrap_or_default(),
        shared: Arc::clone(shared),
        live: transcript.log().live_sink(),
        permits: Semaphore::new(MAX_CONCURRENT_AGENTS),
        background: BackgroundAgents::default(),
        inbox: Arc::clone(inbox),
        budget,
        unfinished: Mutex::default(),
    }))
}
