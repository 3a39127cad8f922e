//! A project that is open for running its checks.

use std::path::Path;
use std::sync::Arc;

use journeyman_agent::verify::{
    self, Check, CheckCaches, Progress, RunContext, RunLimits, find_all_checks, overall_outcome,
};
use journeyman_agent::{ChecksSetting, FailedChecks};
use journeyman_git::GitError;
use journeyman_protocol::{Evidence, FileChange, RelPath, SessionId};
use journeyman_workspace::ListOptions;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::{CheckAnswer, CheckSelection, CheckVerdict, ListedCheck, SelectedChecks};
use crate::config::Environment;
use crate::root::project_root;
use crate::sandboxes::notes_if_confined;
use crate::sessions::{holder_name, new_session_id};
use crate::state::StateDirs;
use crate::{Confirmations, Context as _, HostError, ProjectContext, RunOptions, resolve_settings};

/// Maximum number of files that the search for checks visits.
pub(crate) const MAX_SEARCHED_FILES: usize = 20_000;

/// Receives the progress of checks while they run.
pub type CheckObserver<'a> = dyn FnMut(Progress) + Send + 'a;

/// A project whose checks can be found and run.
pub struct ProjectCheckRunner {
    pub(super) context: ProjectContext,
    checks: ChecksSetting,
    /// The session that files changed by checks are journaled for, so that undo knows them.
    session: SessionId,
    /// The caches of all rounds; `None` where there can be none, which only costs time.
    caches: OnceCell<Option<Arc<CheckCaches>>>,
}

/// The result of one round of checks.
#[derive(Debug, Default)]
pub struct RoundResult {
    /// A result for each check that was chosen.
    pub evidence: Vec<Evidence>,
    /// The results of the commands that repair.
    pub fixes: Vec<Evidence>,
    /// The files that checks and repairs changed.
    pub changed: Vec<FileChange>,
    /// True if the user stopped the checks.
    pub interrupted: bool,
}

impl RoundResult {
    /// Returns the combined result of all checks, or that the user interrupted them.
    #[must_use]
    pub fn overall_result(&self) -> CheckVerdict {
        match overall_outcome(&self.evidence) {
            _ if self.interrupted => CheckVerdict::Interrupted,
            verdict => verdict.into(),
        }
    }

    /// Returns the round as an answer.
    #[must_use]
    pub fn to_answer(&self, selected: &SelectedChecks) -> CheckAnswer {
        let verdict = self.overall_result();
        let others = selected.left_out.iter();
        CheckAnswer {
            verdict,
            exit_code: verdict.exit_code(),
            evidence: self.evidence.clone(),
            left_out: others.map(|(check, reason)| ListedCheck::new(check, Some(reason))).collect(),
            fixes: self.fixes.clone(),
            changed: self.changed.clone(),
        }
    }
}

impl ProjectCheckRunner {
    /// Opens the project in `directory`. If the user trusts the project's configuration, the checks
    /// in it replace the found ones.
    ///
    /// # Errors
    /// [`HostError`] for a wrong configuration, or one that nobody trusts, and where the project
    /// can't be opened.
    pub fn open(
        environment: &Environment,
        state: &StateDirs,
        directory: Option<&Path>,
        options: &RunOptions,
        prompts: Option<&dyn Confirmations>,
    ) -> Result<Self, HostError> {
        let root = project_root(environment, directory)?;
        let settings = resolve_settings(environment, &root, options, None, prompts)?;
        let holder = holder_name("check");
        let context = ProjectContext::open(environment, state, &root, &settings.config, Vec::new(), holder)?;
        let checks = settings.checks();
        Ok(Self { context, checks, session: new_session_id(), caches: OnceCell::new() })
    }

    /// Returns the root of the project.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.context.root
    }

    /// Returns the notes that a person should read about how the checks are confined.
    pub async fn sandbox_notes(&self) -> Vec<String> {
        notes_if_confined(&self.context.sandbox, &self.context.needs).await
    }

    /// Finds the checks that the `changed` files affect; all checks if `changed` is empty.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the project can't be listed.
    pub async fn find_affected_checks(&self, changed: Vec<RelPath>) -> Result<Vec<Check>, HostError> {
        if let ChecksSetting::Custom(commands) = &self.checks {
            let named = |check| Check { why: "the configuration names it".to_owned(), ..check };
            return Ok(verify::custom_checks(commands).into_iter().map(named).collect());
        }
        let (workspace, programs) = (Arc::clone(&self.context.workspace), Arc::clone(&self.context.programs));
        let find = move || {
            let listing =
                workspace.list(ListOptions { limit: MAX_SEARCHED_FILES, ..ListOptions::default() })?;
            Ok(find_all_checks(&workspace, &listing, &changed, &*programs))
        };
        let found = tokio::task::spawn_blocking(find).await.context("finding the checks")?;
        found.map_err(|error: journeyman_workspace::WorkspaceError| HostError::failed(error))
    }

    /// Returns the files that a selection names, and with `changed` those that differ from the last
    /// commit. Returns `None` if the selection covers all files.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a path that isn't there or lies outside of the project, and where
    /// there is no repository to compare with.
    pub async fn selected_files(
        &self,
        environment: &Environment,
        selection: &CheckSelection,
    ) -> Result<Option<Vec<RelPath>>, HostError> {
        if selection.paths.is_empty() && !selection.changed {
            return Ok(None);
        }
        let mut files = Vec::new();
        for path in &selection.paths {
            let shown = path.display();
            let whole = std::fs::canonicalize(environment.cwd.join(path))
                .map_err(|error| HostError::usage(format_args!("{shown}: {error}")))?;
            let outside =
                || HostError::usage(format_args!("{shown} lies outside of {}", self.root().display()));
            let beneath = whole.strip_prefix(self.root()).map_err(|_| outside())?;
            // A directory stands for a file in it. The root is about everything.
            let name = if whole.is_dir() { beneath.join(".directory") } else { beneath.to_owned() };
            files.push(RelPath::parse(name.as_os_str().as_encoded_bytes()).map_err(|_| outside())?);
        }
        if selection.changed {
            match self.context.git.status().await {
                Ok(status) => files.extend(status.entries.into_iter().map(|entry| entry.path)),
                Err(GitError::NoRepository { .. }) => {
                    return Err(HostError::usage(
                        "--changed compares with the last commit, and this is no git repository",
                    ));
                }
                Err(error) => return Err(error).context("the repository"),
            }
        }
        files.sort();
        files.dedup();
        Ok(Some(files))
    }

    /// Runs the checks. With `fix`, runs their repair commands first.
    ///
    /// # Errors
    /// [`HostError::Failed`] where files can't be tracked around a check.
    pub async fn run(
        &self,
        checks: &[Check],
        fix: bool,
        stop: &CancellationToken,
        observer: &mut CheckObserver<'_>,
    ) -> Result<RoundResult, HostError> {
        let mut result = RoundResult::default();
        if fix {
            for check in checks.iter().filter(|check| check.blocked.is_none()).filter_map(Check::to_fix_check)
            {
                // A repair command that can't repair everything fails, and so will its check.
                let fixed = self.run_round(&[check], stop, observer, &mut result.changed).await?;
                result.fixes.extend(fixed);
            }
        }
        result.evidence = self.run_round(checks, stop, observer, &mut result.changed).await?;
        // The next session begins with what fails.
        let state_dir = self.context.workspace.state_dir();
        FailedChecks::in_directory(state_dir).save(&result.evidence, &self.context.redactor);
        result.interrupted = stop.is_cancelled();
        Ok(result)
    }

    async fn get_or_create_caches(&self) -> Option<Arc<CheckCaches>> {
        let create = || async {
            let workspace = Arc::clone(&self.context.workspace);
            let toolchains = Arc::clone(&self.context.toolchains);
            let create = move || CheckCaches::create(&workspace, &toolchains, fastrand::u64(..));
            tokio::task::spawn_blocking(create).await.ok()?.ok().map(Arc::new)
        };
        self.caches.get_or_init(create).await.clone()
    }

    async fn run_round(
        &self,
        checks: &[Check],
        stop: &CancellationToken,
        observer: &mut CheckObserver<'_>,
        changed: &mut Vec<FileChange>,
    ) -> Result<Vec<Evidence>, HostError> {
        let context = RunContext {
            workspace: Arc::clone(&self.context.workspace),
            sandbox: Arc::clone(&self.context.sandbox),
            toolchains: Arc::clone(&self.context.toolchains),
            limits: RunLimits::default(),
            needs: self.context.needs,
            caches: self.get_or_create_caches().await,
            session: self.session.clone(),
        };
        let mut observe = |step: Progress| {
            if let Progress::Changed { changes, .. } = &step {
                changed.extend(changes.iter().cloned());
            }
            observer(step);
        };
        verify::run_checks(checks, &context, stop.clone(), &mut observe).await.context("the checks")
    }
}
