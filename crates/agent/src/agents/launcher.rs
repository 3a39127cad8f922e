//! Runs agents as sessions of their own.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{
    AgentReport, CallId, ContentHash, Event, MessageKind, ReminderCategory, RunOutcome, RunReport, Seq,
    SessionId, Termination,
};
use journeyman_store::Store;
use serde_json::{Map, Value};
use tokio::sync::SemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::definition::AgentDefinition;
use super::delegation::{
    AgentEnd, AgentLauncher, AgentModel, AgentTaskContext, AgentToolKind, Agents, BackgroundTask,
    DelegatedTask, DelegatingSession, MAX_AGENT_DEPTH, MAX_AGENTS_PER_TASK,
};
use super::event_forwarder::EventForwarder;
use super::group::{MemberSession, Membership};
use super::role::{AgentParent, AgentRole};
use super::task_tool::describe_background_end;
use crate::AgentError;
use crate::session::budget::{SharedBudget, Spending};
use crate::session::handle::{SessionHandle, resume, start_agent};
use crate::session::session_parts::SessionParts;
use crate::session::settings::{PlanFirst, RunSettings, StartOptions};
use crate::session::shared_state::CutOffPolicy;
use crate::supervision::schedule::ScheduledJob;
use crate::transcript::log::{EventFilter, Since, load_events};
use crate::transcript::reminder::wrap_reminder;
use crate::transcript::state::State;

/// Maximum characters of a task in the event that announces its agent.
const MAX_ANNOUNCED_TASK_CHARS: usize = 200;

/// Starts a session for each task, and waits for its end.
struct SessionLauncher;

impl Agents {
    /// Makes the agents with these definitions, of which the first of a name counts.
    #[must_use]
    pub fn new(definitions: Vec<AgentDefinition>) -> Self {
        let mut kept: Vec<AgentDefinition> = Vec::with_capacity(definitions.len());
        for definition in definitions {
            if kept.iter().all(|known| known.name != definition.name) {
                kept.push(definition);
            }
        }
        Self {
            definitions: Arc::new(kept),
            delegate: Arc::new(SessionLauncher),
            models: None,
            model: None,
            offered: AgentToolKind::Task,
        }
    }
}

impl AgentLauncher for SessionLauncher {
    fn run<'a>(&'a self, task: DelegatedTask<'a>) -> BoxFuture<'a, Result<AgentEnd, String>> {
        run_agent(task).boxed()
    }

    fn start<'a>(
        &'a self,
        parent: &'a Arc<DelegatingSession>,
        task: BackgroundTask,
    ) -> BoxFuture<'a, Result<SessionId, String>> {
        start_in_background(parent, task).boxed()
    }
}

/// An agent whose task and role are valid, before its session starts.
struct PreparedAgent {
    id: SessionId,
    role: AgentRole,
    query: String,
    model: AgentModel,
    /// A sentence about tools that the definition names and the session doesn't offer.
    left_out: Option<String>,
    context: AgentTaskContext,
    /// True if the agent worked when the program ended.
    was_cut_off: bool,
    /// True if the parent continues while the agent works.
    in_background: bool,
    began: Instant,
}

impl PreparedAgent {
    fn new(
        parent: &DelegatingSession,
        definition: &AgentDefinition,
        member: Option<&Membership>,
        inputs: &Map<String, Value>,
        context: AgentTaskContext,
    ) -> Result<Self, String> {
        if parent.path.len() >= MAX_AGENT_DEPTH {
            return Err(format!(
                "agents may be {MAX_AGENT_DEPTH} deep, and this one is; do the task yourself"
            ));
        }
        let (role, query) = definition
            .build_role(inputs, &parent.tools)
            .map_err(|error| format!("{error}. Send the call again"))?;
        let model = connect_model(parent, definition)?;
        check_price_known(parent, definition, &model)?;
        let number = parent.budget.count_agent();
        if number >= MAX_AGENTS_PER_TASK {
            return Err(format!(
                "the task has started {MAX_AGENTS_PER_TASK} agents, which is the most; go on without"
            ));
        }
        let cut_off = parent.take_unfinished_agent(&context.call);
        Ok(Self {
            was_cut_off: cut_off.is_some(),
            id: cut_off.unwrap_or_else(|| child_id(parent, &context.call, number)),
            role: child_role(parent, member, &context.call, role),
            query,
            model,
            left_out: definition.describe_left_out_tools(&parent.tools),
            context,
            in_background: false,
            began: Instant::now(),
        })
    }

    /// Logs the start of the agent, unless the agent continues earlier work.
    async fn announce(&self, parent: &DelegatingSession) {
        if self.was_cut_off {
            return;
        }
        parent.live.send(Event::AgentStarted {
            call: self.context.call.clone(),
            child: self.id.clone(),
            name: self.role.name.clone(),
            task: self.query.chars().take(MAX_ANNOUNCED_TASK_CHARS).collect(),
            background: self.in_background,
        });
        if let Some(message) = &self.left_out {
            parent.live.send(Event::Warning { message: message.clone() });
        }
        parent.live.flush().await;
    }
}

/// Waits until fewer than `MAX_CONCURRENT_AGENTS` agents work.
async fn wait_for_permit<'a>(
    parent: &'a DelegatingSession,
    cancel: &CancellationToken,
) -> Result<SemaphorePermit<'a>, String> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err("the call was interrupted".to_owned()),
        permit = parent.permits.acquire() => permit.map_err(|_| "the session ends".to_owned()),
    }
}

async fn run_agent(task: DelegatedTask<'_>) -> Result<AgentEnd, String> {
    let DelegatedTask { parent, definition, inputs, context, membership } = task;
    let agent = PreparedAgent::new(parent, definition, membership.as_ref(), &inputs, context)?;
    let _permit = wait_for_permit(parent, &agent.context.cancel).await?;
    agent.announce(parent).await;
    Ok(run_to_report(parent, agent, membership).await)
}

/// Starts an agent whose result comes as a message. The start is logged when this function returns,
/// so that a crash doesn't lose the task.
async fn start_in_background(
    parent: &Arc<DelegatingSession>,
    task: BackgroundTask,
) -> Result<SessionId, String> {
    let BackgroundTask { definition, inputs, context } = task;
    let mut agent = PreparedAgent::new(parent, &definition, None, &inputs, context)?;
    agent.in_background = true;
    agent.announce(parent).await;
    let (id, cancel, parent) = (agent.id.clone(), agent.context.cancel.clone(), Arc::clone(parent));
    let started = Arc::clone(&parent);
    started.background.start(cancel, async move {
        match wait_for_permit(&parent, &agent.context.cancel).await {
            Ok(_permit) => drop(run_to_report(&parent, agent, None).await),
            Err(why) => {
                let aborted = EndedAgent::without_report(agent.role.name.clone(), Termination::Aborted, why);
                record_agent_end(&parent, &agent, aborted, Spending::default()).await;
            }
        }
    });
    Ok(id)
}

/// Opens the agent's session, runs it to its report, and logs the report.
async fn run_to_report(
    parent: &DelegatingSession,
    agent: PreparedAgent,
    mut membership: Option<Membership>,
) -> AgentEnd {
    let mut role = agent.role.clone();
    let budget = SharedBudget::for_session(Some(Arc::clone(&parent.budget)), Some(&role));
    let settings = child_settings(parent, &agent.model, Arc::clone(&budget));
    let mut parts = child_session_parts(parent, &agent.context, agent.model.clone());
    for tool in membership.iter().flat_map(Membership::tools) {
        role.tools.push(tool.spec().name);
        parts.registry.add(tool);
    }
    let task = match agent.was_cut_off {
        false => RemainingTask::All(agent.query.clone()),
        true => load_remaining_task(&*parent.store, &agent.id, agent.query.clone(), &budget).await,
    };
    let (handle, ended) = match open_session(task, parts, settings, &agent.id, role).await {
        Ok(OpenedAgent::Running { handle, since, query }) => {
            let ended = match join_group(membership.as_mut(), &handle) {
                Ok(()) => run_to_end(parent, &handle, since, query, &agent.context.cancel).await,
                Err(why) => Err(why),
            };
            (Some(handle), ended)
        }
        Ok(OpenedAgent::Ended(ended)) => (None, Ok(ended)),
        Err(why) => (None, Err(why)),
    };
    if let Some(membership) = &mut membership {
        membership.leave().await;
    }
    let ended = ended
        .unwrap_or_else(|why| EndedAgent::without_report(agent.role.name.clone(), Termination::Error, why));
    // Before the session closes, which an interrupted call may have no time for.
    let end = record_agent_end(parent, &agent, ended, budget.spending()).await;
    if let Some(handle) = handle {
        handle.close().await;
    }
    end
}

/// Takes an agent's session into its group.
fn join_group(membership: Option<&mut Membership>, handle: &SessionHandle) -> Result<(), String> {
    membership.map_or(Ok(()), |membership| membership.join(Arc::new(HandleMemberSession(handle.clone()))))
}

/// A session as a member of a group.
struct HandleMemberSession(SessionHandle);

impl MemberSession for HandleMemberSession {
    fn send_as(&self, kind: MessageKind, text: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { self.0.send_as(kind, text).await.map(drop) }.boxed()
    }

    fn remind(&self, text: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { self.0.remind(ReminderCategory::General, text).await.map(drop) }.boxed()
    }

    fn remind_every(&self, name: String, steps: NonZeroU64, text: String) -> Result<(), String> {
        let scheduled = self.0.schedule().every(name, steps, ScheduledJob::Reminder(text));
        scheduled.map(drop).map_err(|error| error.to_string())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close().boxed()
    }
}

/// The end of an agent's session.
struct EndedAgent {
    report: AgentReport,
    summary: String,
    run: Option<Box<RunReport>>,
}

impl EndedAgent {
    fn without_report(name: String, termination: Termination, summary: String) -> Self {
        let report = AgentReport { name, termination, recovered: None, output: None };
        Self { report, summary, run: None }
    }
}

/// The part of an agent's task that remains, in a session that may have been cut off.
enum RemainingTask {
    /// Everything: there is no session yet that the query could be sent to.
    All(String),
    /// The work after this position of the agent's log, with the query if the log doesn't have it.
    After(Seq, Option<String>),
    /// Nothing: the agent has ended, and the parent had not taken the result.
    None(EndedAgent),
}

/// Returns the part of the task that an agent has not done. The tokens of an agent that has ended
/// are added to the budget here, because no session starts that would add them.
async fn load_remaining_task(
    store: &dyn Store,
    id: &SessionId,
    query: String,
    budget: &SharedBudget,
) -> RemainingTask {
    // A session that can't be read has not begun.
    let state = State::load(store, id).await.unwrap_or_default();
    if state.last == Seq::START {
        return RemainingTask::All(query);
    }
    // A notice starts no task, so nothing would follow it.
    let is_asked = state.queue.iter().any(|queued| queued.kind == MessageKind::User);
    if state.task.is_some() || is_asked {
        return RemainingTask::After(state.last, None);
    }
    let all = load_events(store, id, Seq::START, usize::MAX).await.unwrap_or_default();
    let report = all.into_iter().rev().find_map(|envelope| match envelope.event {
        Event::Done { report } => Some(report),
        _ => None,
    });
    if report.is_some() || state.outcome.is_some() {
        let usd = report.as_ref().and_then(|report| report.cost_usd);
        budget.begin_task(Spending::new(state.counters.total_usage(), usd));
    }
    match (report, state.outcome) {
        (Some(report), _) => RemainingTask::None(EndedAgent::from(report)),
        (None, Some(_)) => RemainingTask::None(EndedAgent::without_report(
            state.role.map(|role| role.name.clone()).unwrap_or_default(),
            Termination::Error,
            "its report is lost".to_owned(),
        )),
        (None, None) => RemainingTask::After(state.last, Some(query)),
    }
}

/// A session of an agent.
enum OpenedAgent {
    /// The session works, or starts when it gets the query. Its events after `since` are forwarded.
    Running { handle: SessionHandle, since: Since, query: Option<String> },
    /// The session has ended already.
    Ended(EndedAgent),
}

async fn open_session(
    task: RemainingTask,
    parts: SessionParts,
    settings: RunSettings,
    id: &SessionId,
    role: AgentRole,
) -> Result<OpenedAgent, String> {
    Ok(match task {
        RemainingTask::All(query) => {
            let handle = start_agent(parts, settings, id.clone(), role);
            OpenedAgent::Running { handle, since: Since::Now, query: Some(query) }
        }
        RemainingTask::After(last, query) => {
            let handle = resume(parts, settings, id.clone(), CutOffPolicy::Continue).await;
            let handle = handle.map_err(|error| error.to_string())?;
            OpenedAgent::Running { handle, since: Since::Seq(last), query }
        }
        RemainingTask::None(ended) => OpenedAgent::Ended(ended),
    })
}

/// Sends the task, if it is given, and forwards the events of the session until its report.
async fn run_to_end(
    parent: &DelegatingSession,
    handle: &SessionHandle,
    since: Since,
    query: Option<String>,
    cancel: &CancellationToken,
) -> Result<EndedAgent, String> {
    let mut events = handle.subscribe(EventFilter::all(), since);
    if let Some(query) = query {
        handle.send(query).await.map_err(|error| error.to_string())?;
    }
    let mut forwarder = EventForwarder::new(parent, handle.clone());
    let mut is_stopping = false;
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled(), if !is_stopping => {
                is_stopping = true;
                handle.interrupt();
            }
            envelope = events.next() => {
                let envelope = envelope.map_err(|error| error.to_string())?;
                let Some(envelope) = envelope else { return Err("its session ended without a report".to_owned()) };
                forwarder.forward(&envelope);
                if let Event::Done { report } = &envelope.event {
                    return Ok(EndedAgent::from(report.clone()));
                }
            }
        }
    }
}

impl From<Box<RunReport>> for EndedAgent {
    fn from(run: Box<RunReport>) -> Self {
        let failed = || AgentReport {
            name: String::new(),
            termination: match run.outcome {
                RunOutcome::Interrupted => Termination::Aborted,
                _ => Termination::Error,
            },
            recovered: None,
            output: None,
        };
        let report = run.agent.clone().unwrap_or_else(failed);
        Self { report, summary: run.summary.clone(), run: Some(run) }
    }
}

/// Records the end in the parent's log, and counts what the agent and its own agents used. The end
/// of an agent in the background also becomes a message.
async fn record_agent_end(
    parent: &DelegatingSession,
    agent: &PreparedAgent,
    ended: EndedAgent,
    used: Spending,
) -> AgentEnd {
    let EndedAgent { report, summary, run } = ended;
    let run = run.as_deref();
    parent.shared.delegated.add(used, run.map(|run| run.changes.as_slice()).unwrap_or_default());
    if report.termination != Termination::Goal {
        let by_reason = match report.termination {
            Termination::Aborted => RunOutcome::Interrupted,
            _ => RunOutcome::Error,
        };
        parent.shared.delegated.add_failure(run.map_or(by_reason, |run| run.outcome));
    }
    let event = Event::AgentFinished {
        call: agent.context.call.clone(),
        child: agent.id.clone(),
        report: report.clone(),
        summary: summary.clone(),
        turns: run.map(|run| run.turns).unwrap_or_default(),
        usage: run.map(|run| run.usage).unwrap_or_default(),
        usd: run.and_then(|run| run.cost_usd),
        duration_ms: u64::try_from(agent.began.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    let end = AgentEnd { session: agent.id.clone(), report, summary };
    if agent.in_background {
        report_to_parent(parent, &end, event).await;
    } else {
        parent.live.send(event);
        parent.live.flush().await;
    }
    end
}

/// Queues the result of an agent in the background for the parent's model. The event is written
/// together with it, so that a crash between the two loses no result and gives none twice.
async fn report_to_parent(parent: &DelegatingSession, end: &AgentEnd, event: Event) {
    let (kind, category) = (MessageKind::System, ReminderCategory::Agent);
    let text = wrap_reminder(&describe_background_end(end));
    match parent.inbox.accept_with_event(kind, category, text.into(), Some(event.clone())).await {
        Ok(_) | Err(AgentError::InDoubt { .. }) => {}
        // The session closes, or its queue is full. The log has the end.
        Err(_) => {
            parent.live.send(event);
            parent.live.flush().await;
        }
    }
}

/// Returns an id that no other agent has: of the parent's, the call's and the number of agents.
fn child_id(parent: &DelegatingSession, call: &CallId, number: usize) -> SessionId {
    let hash = ContentHash::of(format!("{}\n{call}\n{number}", parent.session).as_bytes()).to_string();
    let random = u64::from_str_radix(hash.get(..16).unwrap_or_default(), 16).unwrap_or_default();
    SessionId::new(parent.clock.now(), random)
}

/// Returns the model of a definition that names one.
fn connect_model(parent: &DelegatingSession, definition: &AgentDefinition) -> Result<AgentModel, String> {
    let own = || AgentModel {
        model: Arc::clone(&parent.model),
        price: parent.settings.price,
        limits: parent.settings.limits.clone(),
        tool_calling: parent.settings.tool_calling,
    };
    match (&definition.model, &parent.agents.models) {
        (None, _) => Ok(parent.agents.model.clone().unwrap_or_else(own)),
        (Some(name), Some(connect)) => {
            connect(name).map_err(|why| format!("the model `{name}` of the agent can't be used: {why}"))
        }
        (Some(name), None) => Err(format!("the agent wants the model `{name}`, which isn't set up here")),
    }
}

/// Refuses an agent whose cost is limited if its model has no known price.
fn check_price_known(
    parent: &DelegatingSession,
    definition: &AgentDefinition,
    model: &AgentModel,
) -> Result<(), String> {
    let is_limited = definition.limits.usd.is_some()
        || parent.budget.has_cost_limit()
        || parent.settings.budget_usd.is_some();
    match model.price {
        None if is_limited => Err(format!(
            "the cost of the agent `{}` is limited (max_cost or --budget), and the price of its model {} isn't known; \
             the user can set it in the configuration",
            definition.name,
            model.model.name()
        )),
        _ => Ok(()),
    }
}

/// Returns the role of an agent of the session: no wider than the session's own.
fn child_role(
    parent: &DelegatingSession,
    member: Option<&Membership>,
    call: &CallId,
    role: AgentRole,
) -> AgentRole {
    let renamed = member.map(Membership::name).filter(|name| *name != role.name);
    let name = renamed.map_or_else(|| role.name.clone(), str::to_owned);
    AgentRole {
        path: parent.path.iter().cloned().chain([name.clone()]).collect(),
        definition: renamed.map(|_| role.name),
        name,
        parent: Some(AgentParent {
            session: parent.session.clone(),
            call: call.clone(),
            root: parent.root.clone(),
        }),
        mode: role.mode.min(parent.settings.mode),
        edits: role.edits.max(parent.edits),
        ..role
    }
}

fn child_settings(parent: &DelegatingSession, model: &AgentModel, budget: Arc<SharedBudget>) -> RunSettings {
    RunSettings {
        shared_budget: Some(budget),
        price: model.price,
        limits: model.limits.clone(),
        tool_calling: model.tool_calling,
        plan_first: PlanFirst::Never,
        asked: StartOptions::default(),
        ..parent.settings.clone()
    }
}

fn child_session_parts(
    parent: &DelegatingSession,
    context: &AgentTaskContext,
    model: AgentModel,
) -> SessionParts {
    SessionParts {
        store: Arc::clone(&parent.store),
        model: model.model,
        workspace: Arc::clone(&context.workspace),
        copy: None,
        planned_copy: None,
        index: Arc::clone(&context.index),
        sandbox: Arc::clone(&context.sandbox),
        toolchains: Arc::clone(&context.toolchains),
        registry: parent.tools.clone(),
        policy: parent.policy.clone(),
        lasting_answers: parent.lasting_answers.clone(),
        redactor: Arc::clone(&parent.redactor),
        hooks: parent.hooks.clone(),
        clock: parent.clock.clone(),
        programs: Arc::clone(&parent.programs),
        holder: parent.holder.clone(),
        agents: Some(parent.agents.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_context::TestContext;
    use crate::transcript::record::Record;

    #[tokio::test]
    async fn a_notice_is_no_work_that_an_ended_agent_has_left() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.record(Record::Began);
        test.cx.transcript.add_user_text("do it");
        test.cx.transcript.record(Record::Ended { outcome: RunOutcome::Answered, unverified: None });
        test.cx.transcript.flush().await.unwrap();
        for (kind, is_left) in [(MessageKind::System, false), (MessageKind::User, true)] {
            test.inbox.accept(kind, ReminderCategory::General, "a command ended".to_owned()).await.unwrap();
            let store = Arc::clone(test.cx.transcript.log().store());
            let budget = SharedBudget::default();
            let left = load_remaining_task(&*store, &test.cx.session, "do it".to_owned(), &budget).await;
            assert_eq!(matches!(left, RemainingTask::After(_, None)), is_left, "{kind:?}");
        }
    }
}
