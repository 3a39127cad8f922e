//! Agents: sessions with a definition, started by a person or by another session.

pub(super) mod background;
pub(super) mod delegation;
pub(super) mod ending;
pub(super) mod group;
pub(super) mod lasting;
pub(super) mod limits;
pub(super) mod many;
pub(super) mod planning;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use journeyman_agent::agents::{AgentDefinition, InputKind};
use journeyman_model::{ModelError, ModelRequest};
use journeyman_protocol::{AgentReport, RunReport, Termination};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::session::support::model::{Step, Told, calls, fails};

/// Findings, as the test agent gives them.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Report {
    /// What was found.
    findings: String,
}

/// Words that only the system prompt of the test agent has.
const ROLE: &str = "You are the scout of a test.";

/// An agent that reads and reports.
fn scout() -> AgentDefinition {
    AgentDefinition::new("scout", "Looks at files.")
        .input("question", InputKind::String, "The question.")
        .system(ROLE)
        .query("${question}")
        .output::<Report>("report", "The findings.")
        .into_definition()
}

/// A complete report.
fn report(findings: &str) -> Value {
    json!({ "report": { "findings": findings } })
}

/// The call that completes the task.
fn completes(findings: &str) -> Step {
    calls([("done", "complete_task", report(findings))])
}

/// True if an agent with the test's role is asked.
fn is_scout(request: &ModelRequest) -> bool {
    request.system.iter().any(|part| part.text.contains(ROLE))
}

/// A model that answers the session by one list of steps, and its agents by another.
fn told(session: impl IntoIterator<Item = Step>, scout: impl IntoIterator<Item = Step>) -> Arc<Told> {
    let queue = |steps: Vec<Step>| Mutex::new(VecDeque::from(steps));
    let (session, scout) = (queue(session.into_iter().collect()), queue(scout.into_iter().collect()));
    Told::by(move |request| {
        let queue = if is_scout(request) { &scout } else { &session };
        let step = queue.lock().unwrap().pop_front();
        step.unwrap_or_else(|| fails(ModelError::Script("nothing is left to say".to_owned())))
    })
}

/// The end of the agent that a session was.
fn end_of(report: &RunReport) -> &AgentReport {
    report.agent.as_ref().expect("the report of an agent")
}

/// How the agent that a session was ended: the reason, and the limit that it had reached before.
fn ending_of(report: &RunReport) -> (Termination, Option<Termination>) {
    let end = end_of(report);
    (end.termination, end.recovered)
}

/// The requests to the agent.
fn asked_of_scout(told: &Told) -> Vec<ModelRequest> {
    told.requests().into_iter().filter(is_scout).collect()
}
