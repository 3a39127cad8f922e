//! Runs the setup steps of checks, once in a session, if policy or the user allows it.

use std::sync::Arc;

use journeyman_policy::registry::resolve_hosts;
use journeyman_protocol::{CallId, Decision, Effects, RelPath, ToolUse};
use journeyman_verify::{Check, ProgramLookup, SetupPlan, SetupStep, find_setup};
use journeyman_workspace::ListOptions;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::approval::approvals::{Approvals, SETUP_TOOL};
use crate::blocking::run_blocking;
use crate::session::context::SessionContext;

/// Maximum number of files that a search in the project visits.
pub(super) const MAX_VISITED_FILES: usize = 20_000;

/// The answer to a proposal.
pub(super) enum SetupProposalOutcome {
    /// There is nothing to propose.
    Nothing,
    /// These steps may run.
    Permitted(Vec<SetupStep>),
    /// These steps may not run, for this reason.
    Refused(Vec<SetupStep>, String),
}

/// The state of a session's setup.
#[derive(Default)]
pub(super) struct CheckSetup {
    /// True once it was proposed: a refusal isn't asked about again.
    was_proposed: bool,
}

impl CheckSetup {
    /// Proposes the steps that blocked checks of the changed files need, once in a session.
    pub(super) async fn propose(
        &mut self,
        cx: &mut SessionContext,
        approvals: &mut Approvals,
        programs: &Arc<ProgramLookup>,
        changed: &[RelPath],
        stop: &CancellationToken,
    ) -> Result<SetupProposalOutcome, AgentError> {
        if self.was_proposed {
            return Ok(SetupProposalOutcome::Nothing);
        }
        let steps = find_needed_steps(cx, programs, changed).await?;
        if steps.is_empty() {
            return Ok(SetupProposalOutcome::Nothing);
        }
        self.was_proposed = true;
        Ok(match authorize_steps(cx, approvals, &steps, stop).await? {
            Some(reason) => SetupProposalOutcome::Refused(steps, format!("it was not allowed: {reason}")),
            None => SetupProposalOutcome::Permitted(steps),
        })
    }
}

/// Returns the steps without which checks are known not to run.
async fn find_needed_steps(
    cx: &SessionContext,
    programs: &Arc<ProgramLookup>,
    changed: &[RelPath],
) -> Result<Vec<SetupStep>, AgentError> {
    let (workspace, programs) = (Arc::clone(&cx.workspace), Arc::clone(programs));
    let changed = changed.to_vec();
    let plan: SetupPlan = run_blocking("looking for what checks need", move || {
        let listing = workspace.list(ListOptions { limit: MAX_VISITED_FILES, ..ListOptions::default() });
        listing.map(|listing| find_setup(&workspace, &listing, &changed, &*programs))
    })
    .await??;
    Ok(plan.steps.into_iter().filter(|step| step.is_needed).collect())
}

/// Asks for permission to run all steps. Returns the reason why they may not run; `None` if they
/// may.
async fn authorize_steps(
    cx: &mut SessionContext,
    approvals: &mut Approvals,
    steps: &[SetupStep],
    stop: &CancellationToken,
) -> Result<Option<String>, AgentError> {
    let command = joined_command(steps);
    let names = steps.iter().flat_map(|step| step.network);
    let mut hosts: Vec<String> = names.filter_map(|name| resolve_hosts(name).ok()).flatten().collect();
    hosts.sort();
    hosts.dedup();
    let effects = Effects { command: Some(command.clone()), hosts: hosts.clone(), ..Effects::default() };
    let judged = approvals.judge_call(cx, SETUP_TOOL, &effects, false).await;
    if judged.verdict.decision == Decision::Deny {
        return Ok(Some(judged.verdict.reason));
    }
    let call = ToolUse {
        id: CallId::new(format!("setup-{}", cx.transcript.state().counters.rounds)),
        name: SETUP_TOOL.to_owned(),
        input: json!({ "command": command, "hosts": hosts }),
        malformed: None,
        signature: None,
    };
    approvals.authorize_check(cx, call, effects, judged, stop).await
}

/// Adds to the reasons of blocked checks why their setup didn't help.
pub(super) fn explain_blocked(checks: &mut [Check], steps: &[SetupStep], why: &str) {
    for check in checks {
        let step = steps.iter().find(|step| step.ecosystem == check.ecosystem);
        if let (Some(reason), Some(step)) = (&mut check.blocked, step) {
            reason.push_str(&format!("; `{}` would fetch what is missing, but {why}", step.command));
        }
    }
}

/// Returns all steps as one command, as a question shows it.
fn joined_command(steps: &[SetupStep]) -> String {
    let one = |step: &SetupStep| match &step.directory {
        Some(directory) => format!("cd {directory} && {}", step.command),
        None => step.command.clone(),
    };
    match steps {
        [only] => one(only),
        all => all.iter().map(|step| format!("({})", one(step))).collect::<Vec<_>>().join(" && "),
    }
}
