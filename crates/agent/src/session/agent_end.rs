//! The end of an agent: its output, or the limit that it reached.

use journeyman_protocol::{AgentReport, Plan, RunOutcome, Termination};

use super::context::SessionContext;
use super::task_end::TaskEnd;
use crate::agents::group::failed_members;
use crate::durations::format_duration;

/// Returns the end of an agent that has completed its task.
pub(super) fn completed_agent_end(cx: &SessionContext) -> Option<TaskEnd> {
    cx.transcript.state().completed.as_ref()?;
    let (outcome, summary) = match &cx.transcript.state().plan {
        Some(plan) => (RunOutcome::Planned, describe_plan(plan)),
        None => (RunOutcome::Answered, "the agent completed its task".to_owned()),
    };
    let end = TaskEnd::new(outcome, summary).with_termination(Termination::Goal);
    Some(TaskEnd { recovered: cx.transcript.state().last_turn, ..end })
}

/// Describes the end of a task that only made a plan.
fn describe_plan(plan: &Plan) -> String {
    let steps = plan.steps.len();
    let questions = match plan.questions.len() {
        0 => String::new(),
        1 => ", a question".to_owned(),
        several => format!(", {several} questions"),
    };
    format!("planned: {steps} step{}{questions}; nothing was changed", if steps == 1 { "" } else { "s" })
}

/// Changes the end of a group's task if members did not complete their tasks: then the group didn't
/// either.
pub(super) fn amend_for_failed_members(end: TaskEnd, cx: &SessionContext) -> TaskEnd {
    let failed = failed_members(&cx.transcript.state().messages);
    if failed.is_empty() {
        return end;
    }
    let (members, tasks) =
        if failed.len() == 1 { ("member", "its task") } else { ("members", "their tasks") };
    let why = format!("the {members} {} of the group did not complete {tasks}", failed.join(", "));
    let of_members = || cx.transcript.state().counters.failed_agent.unwrap_or(RunOutcome::Error);
    match end.outcome {
        RunOutcome::Answered => TaskEnd { outcome: of_members(), summary: why, ..end },
        RunOutcome::Verified | RunOutcome::Unverified => {
            TaskEnd { outcome: of_members(), summary: format!("{why}; {}", end.summary), ..end }
        }
        _ => TaskEnd { summary: format!("{}; {why}", end.summary), ..end },
    }
}

/// Returns the report of an agent for the end of its task.
pub(super) fn agent_report(cx: &SessionContext, end: &TaskEnd) -> Option<AgentReport> {
    let role = cx.role()?;
    let by_outcome = match end.outcome {
        RunOutcome::Interrupted => Termination::Aborted,
        _ => Termination::Error,
    };
    let termination = end.termination.unwrap_or(by_outcome);
    let output = cx.transcript.state().completed.clone().filter(|_| termination == Termination::Goal);
    Some(AgentReport { name: role.name.clone(), termination, recovered: end.recovered, output })
}

/// Returns the end of an agent whose time is over.
pub(super) fn timed_out_end(cx: &SessionContext) -> TaskEnd {
    let timeout = format_duration(cx.settings.timeout);
    let why = match cx.role() {
        Some(_) => format!("the agent timed out after {timeout}"),
        None => format!("time ran out after {timeout}"),
    };
    TaskEnd::new(RunOutcome::Limit, why).with_termination(Termination::Timeout)
}

/// Returns the end for a limit that an agent reached before the last turn in which it was cut off.
pub(super) fn end_for_limit(cx: &SessionContext, reason: Termination) -> TaskEnd {
    match reason {
        Termination::Timeout => timed_out_end(cx),
        other => TaskEnd::new(RunOutcome::Limit, format!("the agent was cut off after {other}"))
            .with_termination(other),
    }
}
