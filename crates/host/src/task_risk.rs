//! Classifies the risk of tasks in a project with [`RiskClassifier`], the project's files and git.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use journeyman_git::{Git, GitError};
use journeyman_policy::{ProjectPaths, Risk, RiskAssessment, RiskClassifier};
use journeyman_sandbox::{Sandbox, SandboxSettings};

use crate::HostError;

/// The exit code for a task that belongs in a sandbox.
const EXIT_HIGH_RISK: u8 = 6;

/// Finds the risk of tasks in one project.
#[derive(Debug)]
pub struct TaskRiskAssessor {
    classifier: RiskClassifier,
    git: Git,
    root: String,
    tracked: TrackedNames,
}

/// The names of tracked files in a project, as a text or a person may write them, in lower case.
#[derive(Debug)]
enum TrackedNames {
    /// Paths from the root, their directories, and file names.
    Known(HashSet<String>),
    /// Git can't tell: every name counts as tracked.
    Unknown,
}

impl TrackedNames {
    async fn read(git: &Git) -> Self {
        let files = match git.tracked_files().await {
            Ok(files) => files,
            Err(GitError::NoRepository { .. }) => return Self::Known(HashSet::new()),
            Err(_) => return Self::Unknown,
        };
        let mut names = HashSet::new();
        for file in files {
            let path = file.path.to_string().to_lowercase();
            let name = path.rsplit('/').next().unwrap_or_default();
            names.insert(name.to_owned());
            names.extend(Path::new(&path).ancestors().filter_map(Path::to_str).map(str::to_owned));
        }
        Self::Known(names)
    }

    fn contains(&self, path: &str) -> bool {
        match self {
            Self::Known(names) => {
                let path = path.trim_matches('/').to_lowercase();
                !path.is_empty() && names.contains(&path)
            }
            Self::Unknown => true,
        }
    }
}

impl TaskRiskAssessor {
    /// Reads what `git` tracks in the project at `root`. If git fails, every file name in a task
    /// counts as tracked. Without a project no file is tracked.
    pub async fn read(root: Option<&Path>, git: &Git) -> Self {
        Self {
            classifier: RiskClassifier::new(),
            git: git.clone(),
            root: root.map(|root| root.to_string_lossy().into_owned()).unwrap_or_default(),
            tracked: match root {
                Some(_) => TrackedNames::read(git).await,
                None => TrackedNames::Known(HashSet::new()),
            },
        }
    }

    /// Finds the risk of the task `text`, whose result goes to `target`: an absolute path, of which
    /// links are followed as far as it exists. A target in any git repository counts as tracked if
    /// that repository tracks it, or can't tell.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a relative target.
    pub async fn assess(&self, text: &str, target: Option<&Path>) -> Result<RiskAssessment, HostError> {
        let target = target.map(resolve_target).transpose()?;
        let is_target_tracked = match &target {
            Some(target) => is_tracked_target(target, &self.git).await,
            None => false,
        };
        let target = target.map(|target| target.to_string_lossy().into_owned());
        let is_tracked = |path: &str| match &target {
            Some(target) if target == path => is_target_tracked,
            _ => self.tracked.contains(path),
        };
        let project = ProjectPaths { root: &self.root, is_tracked: &is_tracked };
        Ok(self.classifier.assess(text, target.as_deref(), &project))
    }
}

/// Finds the risk of one task in the project at `root`; git runs in `directory` for a task without
/// a project.
///
/// # Errors
/// As [`TaskRiskAssessor::assess`].
pub async fn assess_task(
    root: Option<&Path>,
    directory: &Path,
    task: &str,
    target: Option<&Path>,
) -> Result<RiskAssessment, HostError> {
    let git = Git::new(root.unwrap_or(directory), Arc::new(Sandbox::new(SandboxSettings::default())));
    TaskRiskAssessor::read(root, &git).await.assess(task, target).await
}

/// Returns the exit code of a command that judges a task, or refuses one of high risk.
#[must_use]
pub fn risk_exit_code(risk: Risk) -> u8 {
    match risk {
        Risk::Low => 0,
        Risk::High => EXIT_HIGH_RISK,
    }
}

/// Describes the reason for a risk, with the words of the task that it rests on.
#[must_use]
pub fn describe_risk_reason(found: &RiskAssessment) -> String {
    let evidence = found.evidence.as_ref().map(|evidence| format!(": `{evidence}`")).unwrap_or_default();
    format!("{}{evidence}", found.reason)
}

/// Describes the risk of a task, with its reason.
#[must_use]
pub fn describe_risk(found: &RiskAssessment) -> String {
    format!("{} risk: {}", found.risk, describe_risk_reason(found))
}

/// Follows the links of a path as far as it exists. `..` behind that stays.
fn resolve_target(path: &Path) -> Result<PathBuf, HostError> {
    if !path.is_absolute() {
        return Err(HostError::usage(format_args!("the target {} is not absolute", path.display())));
    }
    let found = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
    let Some((above, resolved)) = found else { return Ok(path.to_owned()) };
    let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
    // `Path::join` with nothing would add a separator.
    Ok(if rest.components().next().is_none() { resolved } else { resolved.join(rest) })
}

/// Returns true if a git repository that holds `target` tracks it, or tracks something in it.
async fn is_tracked_target(target: &Path, git: &Git) -> bool {
    let holds = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
    let Some(root) = target.ancestors().find(holds) else { return false };
    let is_plain = target.components().all(|part| !matches!(part, Component::ParentDir));
    let Some(below) = target.strip_prefix(root).ok().filter(|_| is_plain) else { return true };
    if below.as_os_str().is_empty() {
        return true;
    }
    let names = TrackedNames::read(&git.for_project(root)).await;
    names.contains(&below.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_target_are_followed_as_far_as_it_exists() {
        let directory = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(directory.path()).unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let resolve = |path: &str| resolve_target(&root.join(path)).unwrap();
        assert_eq!(resolve("link"), root.join("real"));
        assert_eq!(resolve("link/new/file"), root.join("real/new/file"));
        assert_eq!(resolve("real/../link/x"), root.join("real/x"));
        assert_eq!(resolve("new/../x"), root.join("new/../x"));
        assert!(resolve_target(Path::new("x")).is_err());
    }
}
