//! Planning of a task by an agent before the session works on it.

mod plan_heuristics;

use std::sync::Arc;

use journeyman_protocol::{CallId, ErrorPhase, Event, Plan, SessionId, Termination};
use journeyman_store::Store;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::agents::definition::PLANNER;
use crate::agents::delegation::{AgentTaskContext, DelegatedTask, DelegatingSession};
use crate::session::context::SessionContext;
use crate::session::settings::PlanFirst;
use crate::transcript::fork::entry_from_record;
use crate::transcript::record::Record;
use crate::transcript::state::State;
use crate::{AgentError, Clock};

pub(crate) use plan_heuristics::needs_plan;

/// The id of the call that an agent's log names as its origin where no call of the model gave the
/// task.
const PLANNING_CALL_ID: &str = "planning";

/// Makes the plan of a task or takes a given one, and logs it. Returns the text for the model;
/// `None` if there is no plan.
pub(crate) async fn plan_task(
    cx: &mut SessionContext,
    parent: Option<&DelegatingSession>,
    task: &str,
    is_wanted: bool,
    stop: &CancellationToken,
) -> Option<String> {
    let plan = match (&cx.settings.plan_first, parent) {
        (PlanFirst::Given(plan), _) => Some((**plan).clone()),
        (_, Some(parent)) if is_wanted => make_plan(cx, parent, task, stop).await,
        _ => None,
    }?;
    record_plan(cx, &plan);
    Some(cx.settings.prompts.plan(&plan.to_string()))
}

/// Logs a plan.
pub(crate) fn record_plan(cx: &mut SessionContext, plan: &Plan) {
    cx.transcript.record(Record::Planned(Box::new(plan.clone())));
    cx.transcript.emit(Event::Planned { plan: plan.clone() });
}

/// Gives the task to the planning agent. If planning fails, the session works without a plan.
async fn make_plan(
    cx: &mut SessionContext,
    parent: &DelegatingSession,
    task: &str,
    stop: &CancellationToken,
) -> Option<Plan> {
    let definition = parent.agents.get(PLANNER)?;
    let input = definition.inputs.first()?;
    let inputs = Map::from_iter([(input.name.clone(), Value::from(task))]);
    // What was recorded so far precedes the agent's events.
    cx.transcript.flush().await.ok()?;
    let context = AgentTaskContext {
        call: CallId::new(PLANNING_CALL_ID),
        cancel: stop.child_token(),
        workspace: Arc::clone(&cx.workspace),
        index: Arc::clone(&cx.index),
        sandbox: Arc::clone(&cx.sandbox),
        toolchains: Arc::clone(&cx.toolchains),
    };
    let ended = parent
        .agents
        .delegate
        .run(DelegatedTask { parent, definition, inputs, context, membership: None })
        .await;
    cx.take_agents_work();
    let why = match ended {
        Ok(end) if end.report.termination == Termination::Goal => {
            match end.report.output.as_ref().and_then(|output| Plan::from_output(output, task)) {
                Some(plan) => return Some(plan),
                None => "its output is no plan".to_owned(),
            }
        }
        Ok(end) => end.summary,
        Err(why) => why,
    };
    if !stop.is_cancelled() {
        cx.transcript
            .emit_nonfatal_error(ErrorPhase::Model, format!("the task is worked on without a plan: {why}"));
    }
    None
}

/// Logs a plan in a session that no process has open. It replaces the session's plan.
///
/// # Errors
/// Errors of the store, also if another process writes to the session at the same time.
pub async fn store_plan(
    store: &dyn Store,
    session: &SessionId,
    plan: &Plan,
    clock: &Clock,
) -> Result<(), AgentError> {
    let last = State::load(store, session).await?.last;
    let record = Record::Planned(Box::new(plan.clone()));
    store.append(session, last, vec![entry_from_record(&record, clock.now())]).await?;
    Ok(())
}
