//! What checks need is fetched once in a session, if policy or the user allows it.

use std::sync::Arc;

use journeyman_policy::registry::resolve_hosts;
use journeyman_protocol::{CallId, Decision, Effects, ToolUse};
use journeyman_verify::{SetupPlan, SetupStep, find_setup};
use journeyman_workspace::ListOptions;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{MAX_LISTED_FILES, TestedTree, Verification};
use crate::AgentError;
use crate::approval::approvals::Approvals;
use crate::blocking::run_blocking;
use crate::session::context::Context;
use crate::session::settings::Checks;

/// The tool name under which the step is authorized: rules use this name.
const SETUP_TOOL: &str = "setup";

/// The state of a session's setup.
#[derive(Default)]
pub(super) struct Setup {
    /// True once it was proposed: a refusal isn't asked about again.
    was_proposed: bool,
}

impl Verification {
    /// Proposes what blocked checks need as one step, runs it once it is allowed, and finds the
    /// checks again. Checks stay blocked where it isn't allowed or fails, and say so.
    pub(super) async fn set_up(
        &mut self,
        cx: &mut Context,
        approvals: &mut Approvals,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let is_blocked = self.checks.iter().any(|check| check.blocked.is_some());
        if !is_blocked || self.setup.was_proposed || cx.settings.checks != Checks::Found {
            return Ok(());
        }
        let steps = self.needed_steps(cx).await?;
        if steps.is_empty() {
            return Ok(());
        }
        self.setup.was_proposed = true;
        if let Some(reason) = self.refusal(cx, approvals, &steps, stop).await? {
            self.explain_blocked(&steps, &format!("it was not allowed: {reason}"));
            return Ok(());
        }
        for step in &steps {
            let workspace = Arc::clone(&cx.workspace);
            let evidence = self.run_in(cx, workspace, &[step.to_check()], TestedTree::Session, stop).await?;
            if evidence.iter().any(|one| !one.outcome.has_passed()) {
                self.explain_blocked(&steps, "it failed");
                return Ok(());
            }
        }
        self.find_again(cx).await
    }

    /// Returns the steps without which checks are known not to run.
    async fn needed_steps(&self, cx: &Context) -> Result<Vec<SetupStep>, AgentError> {
        let (workspace, programs) = (Arc::clone(&cx.workspace), Arc::clone(&self.programs));
        let changed = self.changed.clone();
        let plan: SetupPlan = run_blocking("looking for what checks need", move || {
            let listing = workspace.list(ListOptions { limit: MAX_LISTED_FILES, ..ListOptions::default() });
            listing.map(|listing| find_setup(&workspace, &listing, &changed, &*programs))
        })
        .await??;
        Ok(plan.steps.into_iter().filter(|step| step.is_needed).collect())
    }

    /// Asks for all steps at once; returns the reason why they may not run.
    async fn refusal(
        &self,
        cx: &mut Context,
        approvals: &mut Approvals,
        steps: &[SetupStep],
        stop: &CancellationToken,
    ) -> Result<Option<String>, AgentError> {
        let command = joined_command(steps);
        let names = steps.iter().flat_map(|step| step.network);
        let mut hosts: Vec<String> = names.filter_map(|name| resolve_hosts(name).ok()).flatten().collect();
        hosts.sort();
        hosts.dedup();
        let enforcement = cx.sandbox.enforcement(&cx.settings.needs).await.ok();
        let effects = Effects { command: Some(command.clone()), hosts: hosts.clone(), ..Effects::default() };
        let judged = approvals.judge_in_mode(SETUP_TOOL, &effects, cx.settings.mode, enforcement);
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
        approvals.permit_check(cx, call, effects, judged, stop).await
    }

    /// Adds to the reasons of blocked checks why their setup didn't help.
    fn explain_blocked(&mut self, steps: &[SetupStep], why: &str) {
        for check in &mut self.checks {
            let step = steps.iter().find(|step| step.ecosystem == check.ecosystem);
            if let (Some(reason), Some(step)) = (&mut check.blocked, step) {
                reason.push_str(&format!("; `{}` would fetch what is missing, but {why}", step.command));
            }
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
