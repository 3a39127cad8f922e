//! `jm setup`: fetches the dependencies of checks once, from named registries.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use journeyman_agent::verify::{SetupPlan, SetupStep, find_setup};
use journeyman_protocol::{ContentHash, Evidence};
use journeyman_workspace::ListOptions;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::CheckVerdict;
use super::project::{CheckObserver, MAX_SEARCHED_FILES, ProjectCheckRunner};
use crate::durable_file::replace_file;
use crate::{Context as _, HostError};

/// The file of the steps that ran, in the project's state directory.
const COMPLETED_STEPS_FILE: &str = "setup.json";

/// The completed setup steps: the hash of the files that decide what a step fetches, by the step's
/// name.
type CompletedSteps = BTreeMap<String, ContentHash>;

/// A step of a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedStep {
    /// The command, for `sh -c`.
    pub command: String,
    /// The directory, relative to the root; left out for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<journeyman_protocol::RelPath>,
    /// The missing packages.
    pub why: String,
    /// The registries and hosts that it fetches from.
    pub network: Vec<String>,
    /// True if it writes the toolchain's own cache outside of the project.
    pub fills_caches: bool,
}

/// A program that only the user can install.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedLack {
    /// The missing program, and how to install it.
    pub reason: String,
    /// The checks that need it.
    pub checks: Vec<String>,
}

/// The answer of `jm setup`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupAnswer {
    /// The steps that are due.
    pub steps: Vec<ListedStep>,
    /// Programs that only the user can install.
    pub lacks: Vec<ListedLack>,
    /// The results of the steps that ran.
    pub evidence: Vec<Evidence>,
    /// True if nothing is due any more.
    pub done: bool,
}

impl SetupAnswer {
    /// Describes a setup plan and the results of its steps.
    #[must_use]
    pub fn new(plan: &SetupPlan, evidence: Vec<Evidence>) -> Self {
        let step = |step: &SetupStep| ListedStep {
            command: step.command.clone(),
            directory: step.directory.clone(),
            why: step.why.clone(),
            network: step.network.iter().map(|name| (*name).to_owned()).collect(),
            fills_caches: step.fills_caches,
        };
        let passed = evidence.iter().filter(|one| one.outcome.has_passed()).count();
        let lack = |lack: &journeyman_agent::verify::MissingRequirement| ListedLack {
            reason: lack.reason.clone(),
            checks: lack.checks.clone(),
        };
        Self {
            steps: plan.steps.iter().map(step).collect(),
            lacks: plan.lacks.iter().map(lack).collect(),
            done: passed == plan.steps.len(),
            evidence,
        }
    }

    /// Returns the exit code of `jm setup`, which has the codes of `jm run`.
    #[must_use]
    pub fn exit_code(&self, is_stopped: bool) -> u8 {
        match self.done {
            true if self.lacks.is_empty() => 0,
            true => 4,
            false if is_stopped => CheckVerdict::Interrupted.exit_code(),
            false => 3,
        }
    }
}

impl ProjectCheckRunner {
    /// Returns the due steps: those known to be needed, and those that didn't run yet with the
    /// present lock files.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the project can't be listed.
    pub async fn plan_setup(&self) -> Result<SetupPlan, HostError> {
        let (workspace, programs) = (Arc::clone(&self.context.workspace), Arc::clone(&self.context.programs));
        let find = move || {
            let listing =
                workspace.list(ListOptions { limit: MAX_SEARCHED_FILES, ..ListOptions::default() })?;
            Ok(find_setup(&workspace, &listing, &[], &*programs))
        };
        let found = tokio::task::spawn_blocking(find).await.context("looking for what checks need")?;
        let mut plan =
            found.map_err(|error: journeyman_workspace::WorkspaceError| HostError::failed(error))?;
        let record = self.read_completed_steps();
        plan.steps.retain(|step| step.is_needed || record.get(&step.name()) != Some(&step.key));
        Ok(plan)
    }

    /// Runs the steps of a plan in order, up to the first failure, and records the completed steps.
    ///
    /// # Errors
    /// [`HostError::Failed`] where files can't be tracked around a step.
    pub async fn run_setup(
        &self,
        plan: &SetupPlan,
        stop: &CancellationToken,
        observer: &mut CheckObserver<'_>,
    ) -> Result<Vec<Evidence>, HostError> {
        let mut all = Vec::new();
        for step in &plan.steps {
            let result = self.run(&[step.to_check()], false, stop, observer).await?;
            let passed = result.evidence.iter().all(|one| one.outcome.has_passed());
            all.extend(result.evidence);
            if !passed {
                break;
            }
            let mut record = self.read_completed_steps();
            record.insert(step.name(), step.key);
            let text = serde_json::to_string_pretty(&record).context("the record of the setup")?;
            replace_file(&self.completed_steps_path(), &text).context("the record of the setup")?;
        }
        Ok(all)
    }

    fn completed_steps_path(&self) -> PathBuf {
        self.context.workspace.state_dir().join(COMPLETED_STEPS_FILE)
    }

    /// Reads the completed steps. Returns none if the record is missing or damaged, so that all
    /// steps run again.
    fn read_completed_steps(&self) -> CompletedSteps {
        let text = std::fs::read(self.completed_steps_path()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}
