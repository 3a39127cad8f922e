//! Runs checks outside a session, to prove a merged result before it is landed.

use std::sync::Arc;

use journeyman_policy::{Call, Policy};
use journeyman_protocol::{Decision, Effects, Enforcement, Evidence, Mode, RelPath, SandboxNeeds, SessionId};
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_verify::{
    Check, OverallOutcome, ProgramLookup, Progress, RunContext, RunLimits, overall_outcome, refused_evidence,
};
use journeyman_workspace::{ListOptions, Workspace};
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::approval::approvals::CHECK_TOOL;
use crate::blocking::run_blocking;
use crate::session::settings::ChecksSetting;
use crate::verification::check_changes::CheckChanges;

/// Maximum number of files that the search for checks visits.
const MAX_VISITED_FILES: usize = 20_000;

/// The means of running checks outside a session.
#[derive(Clone)]
pub struct CheckRunner {
    /// The checks to run.
    pub checks: ChecksSetting,
    /// The rules for checks. Nobody can be asked here, so a check that a rule denies or asks about
    /// doesn't run.
    pub policy: Policy,
    /// The sandbox for the checks. Nobody can be asked here, so a check that isn't confined as
    /// [`CheckRunner::needs`] demands doesn't run.
    pub sandbox: Arc<Sandbox>,
    /// The confinement that must be enforced for a check to run.
    pub needs: SandboxNeeds,
    /// The toolchains that the checks see.
    pub toolchains: Arc<Toolchains>,
    /// The installed programs.
    pub programs: Arc<ProgramLookup>,
}

impl CheckRunner {
    /// Runs the checks in a tree. Without any check that could run, the tree is not proven. Adds
    /// the files that the checks changed to `by_checks`.
    ///
    /// # Errors
    /// Errors of the tree, and failures of running the checks.
    pub(crate) async fn run(
        &self,
        workspace: &Arc<Workspace>,
        session: &SessionId,
        changed: Vec<RelPath>,
        by_checks: &mut CheckChanges,
        stop: &CancellationToken,
    ) -> Result<(OverallOutcome, Vec<Evidence>), AgentError> {
        let checks = self.find_checks(workspace, changed).await?;
        let enforcement = self.sandbox.enforcement(&self.needs).await.ok();
        let unmet = match &enforcement {
            Some(enforcement) => enforcement.first_unmet(&self.needs).map(ToString::to_string),
            None => Some("no sandbox works here".to_owned()),
        };
        if let Some(reason) = unmet.filter(|_| self.needs != SandboxNeeds::NONE) {
            let refused = checks.iter().map(|check| refused_evidence(check, &reason, enforcement.as_ref()));
            return Ok((OverallOutcome::NothingRan, refused.collect()));
        }
        let (checks, mut evidence) = self.select_permitted(checks, enforcement.as_ref());
        let context = RunContext {
            workspace: Arc::clone(workspace),
            sandbox: Arc::clone(&self.sandbox),
            toolchains: Arc::clone(&self.toolchains),
            session: session.clone(),
            needs: self.needs,
            limits: RunLimits::default(),
            caches: None,
        };
        let mut observer = |step| match step {
            Progress::Changed { changes } => by_checks.record(changes),
            // What was put back isn't all that the command did.
            Progress::GuardViolated { violations, .. } => {
                violations.into_iter().for_each(|one| by_checks.record_rewritten(one.path));
            }
            _ => {}
        };
        let ran = journeyman_verify::run_checks(&checks, &context, stop.clone(), &mut observer).await?;
        evidence.extend(ran);
        Ok((overall_outcome(&evidence), evidence))
    }

    /// Returns the checks that no rule keeps from running, and evidence of the others.
    fn select_permitted(
        &self,
        checks: Vec<Check>,
        enforcement: Option<&Enforcement>,
    ) -> (Vec<Check>, Vec<Evidence>) {
        let commands = checks.iter().map(|check| check.command.clone()).collect();
        let policy = self.policy.clone().with_checks(commands);
        let mut refused = Vec::new();
        let permitted = checks.into_iter().filter(|check| {
            let effects = Effects { command: Some(check.command.clone()), ..Effects::default() };
            let (tool, mode) = (CHECK_TOOL, Mode::Auto);
            let verdict =
                policy.judge(&Call { tool, agent: None, mode, effects: &effects, sandbox: enforcement });
            let is_refused = match verdict.decision {
                Decision::Allow => false,
                // Whether an unconfined one may run is the sandbox's needs to say.
                Decision::Ask => !verdict.rules.is_empty(),
                Decision::Deny => true,
            };
            if is_refused {
                refused.push(refused_evidence(check, verdict.reason, enforcement));
            }
            !is_refused
        });
        (permitted.collect(), refused)
    }

    async fn find_checks(
        &self,
        workspace: &Arc<Workspace>,
        changed: Vec<RelPath>,
    ) -> Result<Vec<Check>, AgentError> {
        match &self.checks {
            ChecksSetting::Off => Ok(Vec::new()),
            ChecksSetting::Custom(commands) => Ok(journeyman_verify::custom_checks(commands)),
            ChecksSetting::Found => {
                let (workspace, programs) = (Arc::clone(workspace), Arc::clone(&self.programs));
                let find = move || {
                    let listing =
                        workspace.list(ListOptions { limit: MAX_VISITED_FILES, ..ListOptions::default() });
                    listing.map(|listing| {
                        journeyman_verify::find_checks_for_changes(&workspace, &listing, &changed, &*programs)
                    })
                };
                Ok(run_blocking("finding the project's checks", find).await??)
            }
        }
    }
}
