//! Assesses the risk of a task, for commands other than `jm classify`.

use std::path::Path;
use std::sync::Arc;

use journeyman_git::Git;
use journeyman_host::HostError;
use journeyman_host::task_risk::TaskRiskAssessor;
use journeyman_policy::RiskAssessment;
use journeyman_sandbox::{Sandbox, SandboxSettings};

/// Returns the words for the risk of a task.
pub(crate) fn describe_risk(found: &RiskAssessment) -> String {
    let evidence = found.evidence.as_ref().map(|evidence| format!(": `{evidence}`")).unwrap_or_default();
    format!("{} risk: {}{evidence}", found.risk, found.reason)
}

/// Finds the risk of a task whose result goes to a directory.
pub(crate) async fn assess_risk(
    root: Option<&Path>,
    task: &str,
    target: &Path,
) -> Result<RiskAssessment, HostError> {
    let git = Git::new(root.unwrap_or(target), Arc::new(Sandbox::new(SandboxSettings::default())));
    TaskRiskAssessor::read(root, &git).await.assess(task, Some(target)).await
}
