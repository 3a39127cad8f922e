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
use tokio_util::sync::CancellationToken;

use super::definition::AgentDefinition;
use super::delegate::{
    AgentEnd, AgentModel, Agents, Delegate, DelegatedTask, DelegatingSession, MAX_AGENT_DEPTH,
    MAX_AGENTS_PER_TASK, OfferedAs, TaskContext,
};
use super::forward::Forwarder;
use super::group::{Membership, Seat};
use super::role::{AgentParent, AgentRole};
use crate::AgentError;
use crate::session::handle::{SessionHandle, resume, start_agent};
use crate::session::parts::SessionParts;
use crate::session::settings::{PlanFirst, RunSettings, SharedBudget, StartOptions};
use crate::session::shared::CutOffPolicy;
use crate::supervision::schedule::Job;
use crate::transcript::log::{EventFilter, Since, events};
use crate::transcript::state::State;

/// Maximum characters of a task in the event that announces its agent.
const MAX_TASK_CHARS: usize = 200;

/// Starts a session for each task, and waits for its end.
struct Executor;

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
            delegate: Arc::new(Executor),
            models: None,
            model: None,
            offered: OfferedAs::Task,
        }
    }
}

impl Delegate for Executor {
    fn run<'a>(&'a self, task: DelegatedTask<'a>) -> BoxFuture<'a, Result<AgentEnd, String>> {
        run_agent(task).boxed()
    }
}

async fn run_agent(task: DelegatedTask<'_>) -> Result<AgentEnd, String> {
    let DelegatedTask { parent, definition, inputs, context, mut membership } = task;
    if parent.path.len() >= MAX_AGENT_DEPTH {
        return Err(format!("agents may be {MAX_AGENT_DEPTH} deep, and this one is; do the task yourself"));
    }
    let (role, query) =
        definition.role(&inputs, &parent.tools).map_err(|error| format!("{error}. Send the call again"))?;
    let model = connected_model(parent, definition)?;
    let number = parent.budget.count_agent();
    if number >= MAX_AGENTS_PER_TASK {
        return Err(format!(
            "the task has started {MAX_AGENTS_PER_TASK} agents, which is the most; go on without"
        ));
    }
    let permit = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return Err("the call was interrupted".to_owned()),
        permit = parent.permits.acquire() => permit.map_err(|_| "the session ends".to_owned())?,
    };
    let cut_off = parent.take_unfinished(&context.call);
    let id = cut_off.clone().unwrap_or_else(|| child_id(parent, &context.call, number));
    let mut role = child_role(parent, definition, &context.call, role);
    let began = Instant::now();
    let name = definition.name.clone();
    if cut_off.is_none() {
        parent.live.send(Event::AgentStarted {
            call: context.call.clone(),
            child: id.clone(),
            name: name.clone(),
            task: query.chars().take(MAX_TASK_CHARS).collect(),
        });
        parent.live.flush().await;
    }
    let settings = child_settings(parent, &model);
    let mut parts = child_parts(parent, &context, model);
    for tool in membership.iter().flat_map(Membership::tools) {
        role.tools.push(tool.spec().name);
        parts.registry.add(tool);
    }
    let task = match cut_off {
        None => RemainingTask::All(query),
        Some(_) => remaining_task(&*parent.store, &id, query).await,
    };
    let (handle, ended) = match open_session(task, parts, settings, &id, role).await {
        Ok(Opened::Running { handle, since, query }) => {
            let ended = match take_seat(membership.as_mut(), &handle) {
                Ok(()) => run_to_end(parent, &handle, since, query, &context.cancel).await,
                Err(why) => Err(why),
            };
            (Some(handle), ended)
        }
        Ok(Opened::Ended(ended)) => (None, Ok(ended)),
        Err(why) => (None, Err(why)),
    };
    if let Some(membership) = &mut membership {
        membership.leave().await;
    }
    let report = ended.unwrap_or_else(|why| Ended { summary: why, ..Ended::failed(name) });
    // Before the session closes, which an interrupted call may have no time for.
    let Ended { report, summary, .. } = finish(parent, &context.call, &id, report, began).await;
    if let Some(handle) = handle {
        handle.close().await;
    }
    drop(permit);
    Ok(AgentEnd { session: id, report, summary })
}

/// Takes an agent's session into its group.
fn take_seat(membership: Option<&mut Membership>, handle: &SessionHandle) -> Result<(), String> {
    membership.map_or(Ok(()), |membership| membership.join(Arc::new(HandleSeat(handle.clone()))))
}

/// A session as a member of a group.
struct HandleSeat(SessionHandle);

impl Seat for HandleSeat {
    fn send_as(&self, kind: MessageKind, text: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { self.0.send_as(kind, text).await.map(drop) }.boxed()
    }

    fn remind(&self, text: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { self.0.remind(ReminderCategory::General, text).await.map(drop) }.boxed()
    }

    fn remind_every(&self, name: String, steps: NonZeroU64, text: String) -> Result<(), String> {
        let scheduled = self.0.schedule().every(name, steps, Job::Reminder(text));
        scheduled.map(drop).map_err(|error| error.to_string())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close().boxed()
    }
}

/// The end of an agent's session.
struct Ended {
    report: AgentReport,
    summary: String,
    run: Option<Box<RunReport>>,
}

impl Ended {
    fn failed(name: String) -> Self {
        let report = AgentReport { name, termination: Termination::Error, recovered: None, output: None };
        Self { report, summary: String::new(), run: None }
    }
}

/// The part of an agent's task that remains, in a session that may have been cut off.
enum RemainingTask {
    /// Everything: there is no session yet that the query could be sent to.
    All(String),
    /// The work after this position of the agent's log, with the query if the log doesn't have it.
    After(Seq, Option<String>),
    /// Nothing: the end is on record, and the parent had not taken it.
    None(Ended),
}

async fn remaining_task(store: &dyn Store, id: &SessionId, query: String) -> RemainingTask {
    // A session that can't be read has not begun.
    let state = State::load(store, id).await.unwrap_or_default();
    if state.last == Seq::START {
        return RemainingTask::All(query);
    }
    if state.task.is_some() || !state.queue.is_empty() {
        return RemainingTask::After(state.last, None);
    }
    let all = events(store, id, Seq::START, usize::MAX).await.unwrap_or_default();
    let report = all.into_iter().rev().find_map(|envelope| match envelope.event {
        Event::Done { report } => Some(report),
        _ => None,
    });
    match (report, state.outcome) {
        (Some(report), _) => RemainingTask::None(Ended::from(report)),
        (None, Some(_)) => RemainingTask::None(Ended {
            summary: "its report is lost".to_owned(),
            ..Ended::failed(state.role.map(|role| role.name.clone()).unwrap_or_default())
        }),
        (None, None) => RemainingTask::After(state.last, Some(query)),
    }
}

/// A session of an agent.
enum Opened {
    /// It works, or will as soon as it has the query; its events after `since` are to be forwarded.
    Running { handle: SessionHandle, since: Since, query: Option<String> },
    /// It has ended already.
    Ended(Ended),
}

async fn open_session(
    task: RemainingTask,
    parts: SessionParts,
    settings: RunSettings,
    id: &SessionId,
    role: AgentRole,
) -> Result<Opened, String> {
    Ok(match task {
        RemainingTask::All(query) => {
            let handle = start_agent(parts, settings, id.clone(), role);
            Opened::Running { handle, since: Since::Now, query: Some(query) }
        }
        RemainingTask::After(last, query) => {
            let handle = resume(parts, settings, id.clone(), CutOffPolicy::Continue).await;
            let handle = handle.map_err(|error| error.to_string())?;
            Opened::Running { handle, since: Since::Seq(last), query }
        }
        RemainingTask::None(ended) => Opened::Ended(ended),
    })
}

/// Sends the task, if it is given, and forwards the events of the session until its report.
async fn run_to_end(
    parent: &DelegatingSession,
    handle: &SessionHandle,
    since: Since,
    query: Option<String>,
    cancel: &CancellationToken,
) -> Result<Ended, String> {
    let mut events = handle.subscribe(EventFilter::all(), since);
    if let Some(query) = query {
        handle.send(query).await.map_err(|error| error.to_string())?;
    }
    let mut forwarder = Forwarder::new(parent, handle.clone());
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
                    return Ok(Ended::from(report.clone()));
                }
            }
        }
    }
}

impl From<Box<RunReport>> for Ended {
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

/// Records the end in the parent's log, and counts its cost against the parent's budget.
async fn finish(
    parent: &DelegatingSession,
    call: &CallId,
    session: &SessionId,
    ended: Ended,
    began: Instant,
) -> Ended {
    let run = ended.run.as_deref();
    let usd = run.and_then(|run| run.cost_usd);
    let changes = run.map(|run| run.changes.as_slice()).unwrap_or_default();
    parent.shared.delegated.add(SharedBudget::to_parts(usd.unwrap_or_default()), changes);
    parent.live.send(Event::AgentFinished {
        call: call.clone(),
        child: session.clone(),
        report: ended.report.clone(),
        summary: ended.summary.clone(),
        turns: run.map(|run| run.turns).unwrap_or_default(),
        usage: run.map(|run| run.usage).unwrap_or_default(),
        usd,
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    parent.live.flush().await;
    ended
}

/// Returns an id that no other agent has: of the parent's, the call's and the number of agents.
fn child_id(parent: &DelegatingSession, call: &CallId, number: usize) -> SessionId {
    let hash = ContentHash::of(format!("{}\n{call}\n{number}", parent.session).as_bytes()).to_string();
    let random = u64::from_str_radix(hash.get(..16).unwrap_or_default(), 16).unwrap_or_default();
    SessionId::new(parent.clock.now(), random)
}

/// Returns the model of a definition that names one.
fn connected_model(parent: &DelegatingSession, definition: &AgentDefinition) -> Result<AgentModel, String> {
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

/// Returns the role of an agent of the session: no wider than the session's own.
fn child_role(
    parent: &DelegatingSession,
    definition: &AgentDefinition,
    call: &CallId,
    role: AgentRole,
) -> AgentRole {
    AgentRole {
        path: parent.path.iter().cloned().chain([definition.name.clone()]).collect(),
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

fn child_settings(parent: &DelegatingSession, model: &AgentModel) -> RunSettings {
    RunSettings {
        price: model.price,
        limits: model.limits.clone(),
        tool_calling: model.tool_calling,
        plan_first: PlanFirst::Never,
        asked: StartOptions::default(),
        ..parent.settings.clone()
    }
}

fn child_parts(parent: &DelegatingSession, context: &TaskContext, model: AgentModel) -> SessionParts {
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
        redactor: Arc::clone(&parent.redactor),
        hooks: parent.hooks.clone(),
        clock: parent.clock.clone(),
        programs: Arc::clone(&parent.programs),
        holder: parent.holder.clone(),
        agents: Some(parent.agents.clone()),
    }
}
