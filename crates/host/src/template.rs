//! The template that sessions are started, resumed and delivered from.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use journeyman_agent::agents::{AgentRole, Agents};
use journeyman_agent::hooks::Hooks;
use journeyman_agent::isolation::{
    self as copies, CommitOptions, Isolation, LandContext, LandRequest, PlannedCopy, WorkCopy,
};
use journeyman_agent::{
    AgentError, Approver, CutOffPolicy, LastingAnswers, RunSettings, SessionHandle, SessionParts, State,
};
use journeyman_context::{check_task_fits, system_prompt};
use journeyman_git::GitError;
use journeyman_model::Model;
use journeyman_policy::Policy;
use journeyman_protocol::{CopyState, RelPath, RunOutcome, RunReport, SessionId};
use journeyman_tools::{Registry, SharedIndex};
use journeyman_workspace::WorkspaceError;
use tokio_util::sync::CancellationToken;

use crate::delivery::{DeliveredRun, Delivery, WorkLocation, confirm_unsandboxed_hooks};
use crate::index::{ProjectSymbol, list_symbols};
use crate::project::ProjectContext;
use crate::surface::check_log_exists;
use crate::{Confirmations, Context as _, HostError};

/// A function that makes the tools of one session.
pub(crate) type MakeTools = Arc<dyn Fn() -> Registry + Send + Sync>;

/// A project and settings that sessions are started from.
pub struct SessionTemplate {
    /// The project.
    pub project: ProjectContext,
    /// The settings of its sessions.
    pub settings: RunSettings,
    /// Where sessions work, and where their work goes.
    pub delivery: Delivery,
    /// The reason why the last session works in the project itself, where no copy was cheap.
    pub no_copy_reason: Option<String>,
    /// The directory of the user's configuration, which gets permanent rules.
    pub config_dir: Option<PathBuf>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) index: Option<Arc<SharedIndex>>,
    pub(crate) tools: MakeTools,
    pub(crate) hooks: Hooks,
    pub(crate) policy: Policy,
    pub(crate) agents: Option<Agents>,
}

impl SessionTemplate {
    /// Returns true if a person answers questions.
    #[must_use]
    pub fn is_attended(&self) -> bool {
        self.settings.approver == Approver::Handle
    }

    /// Returns the parts of one session that works in the project itself.
    #[must_use]
    pub fn session_parts(&self) -> SessionParts {
        let project = &self.project;
        SessionParts {
            store: Arc::clone(&project.store),
            model: Arc::clone(&self.model),
            index: self.index.clone().unwrap_or_else(|| Arc::new(project.index().with_early_refresh())),
            workspace: Arc::clone(&project.workspace),
            copy: None,
            planned_copy: None,
            sandbox: Arc::clone(&project.sandbox),
            toolchains: Arc::clone(&project.toolchains),
            registry: (self.tools)(),
            policy: self.policy.clone(),
            lasting_answers: LastingAnswers::default(),
            redactor: Arc::clone(&project.redactor),
            hooks: self.hooks.clone(),
            clock: project.clock.clone(),
            programs: Arc::clone(&project.programs),
            holder: project.holder.clone(),
            agents: self.agents.clone(),
        }
    }

    /// Returns a function that lists the symbols of the index as it is, at most so many. It reads
    /// files, and waits for no refresh.
    pub fn symbol_lister(&self, limit: usize) -> impl FnOnce() -> Vec<ProjectSymbol> + Send + 'static {
        let index = self.index.clone().unwrap_or_else(|| Arc::new(self.project.index()));
        move || {
            let known = index.last_snapshot();
            known.map(|(_, snapshot)| list_symbols(&snapshot, limit)).unwrap_or_default()
        }
    }

    /// Returns the settings with the delivery included, so that a resumed session uses it again.
    #[must_use]
    pub fn recorded_settings(&self) -> RunSettings {
        let mut settings = self.settings.clone();
        self.delivery.record_in_options(&mut settings.asked);
        settings
    }

    /// Checks that a task fits the first request, before a session is begun for it.
    ///
    /// # Errors
    /// [`HostError::Usage`] naming the limit and the key that sets it.
    pub fn check_task_size(&self, task: &str) -> Result<(), HostError> {
        let specs = if self.settings.tool_calling { None } else { Some((self.tools)().specs()) };
        let mode = (self.settings.mode, self.settings.read_only_goal);
        let system = system_prompt(None, &self.settings.prompts, mode, specs.as_deref());
        check_task_fits(task, &system, self.settings.context_budget).map_err(|error| {
            HostError::usage(format_args!(
                "{error}. The limit is `context_tokens` in your configuration (or $JM_CONTEXT_TOKENS)"
            ))
        })
    }

    /// Starts a new session in the project, or in a copy of it, which is made while the model
    /// answers the first request. Nothing is asked of the model before the first message.
    ///
    /// # Errors
    /// [`HostError`] if the requested commit is known to be refused.
    pub async fn start(&mut self, id: SessionId) -> Result<SessionHandle, HostError> {
        self.start_with_role(id, None).await
    }

    /// Starts a session like [`SessionTemplate::start`]; with a role, the session is an agent.
    pub(crate) async fn start_with_role(
        &mut self,
        id: SessionId,
        role: Option<AgentRole>,
    ) -> Result<SessionHandle, HostError> {
        self.check_commit().await?;
        let (isolation, parts) = (self.project.isolation(), self.session_parts());
        let parts = match self.delivery.workplace {
            WorkLocation::Project => parts,
            WorkLocation::Copy => parts.move_into_planned_copy(PlannedCopy::new(isolation, true)),
            WorkLocation::CheapCopy => {
                parts.move_into_planned_copy(PlannedCopy::new(isolation.cheap_only(), false))
            }
        };
        let settings = self.recorded_settings();
        Ok(match role {
            Some(role) => journeyman_agent::start_agent(parts, settings, id, role),
            None => journeyman_agent::start(parts, settings, id),
        })
    }

    /// Opens a session again, in the project or in its copy, from its state as it was read before.
    ///
    /// # Errors
    /// [`HostError`] where another process has the session, or its copy can't be opened.
    pub async fn resume(
        &mut self,
        id: SessionId,
        known: State,
        cut_off: CutOffPolicy,
    ) -> Result<SessionHandle, HostError> {
        let parts = self.prepare_parts(&id).await?;
        Ok(journeyman_agent::resume_from(parts, self.recorded_settings(), id, known, cut_off).await?)
    }

    /// Returns the parts of a session that starts or resumes, in its isolated copy if it has one.
    /// An impossible commit is refused first.
    ///
    /// # Errors
    /// [`HostError`] where no copy can be made, or the commit is known to be refused.
    pub async fn prepare_parts(&mut self, session: &SessionId) -> Result<SessionParts, HostError> {
        self.check_commit().await?;
        let isolation = self.project.isolation();
        match self.delivery.workplace {
            WorkLocation::Project => Ok(self.session_parts()),
            WorkLocation::Copy => {
                let copy = open_or_create_copy(isolation, session).await??;
                Ok(self.session_parts().move_into_copy(copy))
            }
            WorkLocation::CheapCopy => {
                let entered = open_or_create_copy(isolation.cheap_only(), session).await?;
                // The choice is put on record with the session.
                match entered {
                    Ok(copy) => {
                        self.delivery.workplace = WorkLocation::Copy;
                        Ok(self.session_parts().move_into_copy(copy))
                    }
                    Err(AgentError::Workspace(WorkspaceError::NoCopy { reasons })) => {
                        self.delivery.workplace = WorkLocation::Project;
                        let reasons = reasons.iter().map(|(tier, reason)| format!("{tier}: {reason}"));
                        self.no_copy_reason = Some(reasons.collect::<Vec<_>>().join("; "));
                        Ok(self.session_parts())
                    }
                    Err(other) => Err(other.into()),
                }
            }
        }
    }

    /// Refuses a commit that is known to be impossible, and records the uncommitted files.
    async fn check_commit(&mut self) -> Result<(), HostError> {
        let (is_attended, project) = (self.is_attended(), &self.project);
        if let Some(commit) = &self.delivery.commit {
            if self.delivery.uncommitted.is_none() {
                let found = copies::list_uncommitted_files(&project.git).await.map_err(AgentError::from)?;
                self.delivery.uncommitted = Some(found);
            }
            if !is_attended {
                let checked = project.committer.check_commit(commit, &[], &CancellationToken::new()).await;
                checked.map_err(|error| match error.needs_person() {
                    true => HostError::needs_person(error),
                    false => AgentError::from(error).into(),
                })?;
            }
            if let Some(name) = &commit.branch {
                let checked = project.committer.git.check_branch(name, &CancellationToken::new()).await;
                checked.map_err(|error| match error {
                    GitError::CommitRefused(reason) => HostError::usage(reason),
                    other => AgentError::from(other).into(),
                })?;
            }
        }
        Ok(())
    }

    /// Returns the inputs for landing work of the session, with its checks and rules.
    #[must_use]
    pub fn land_context(&self) -> LandContext {
        self.project.land_context(self.settings.checks.clone(), self.policy.clone())
    }

    /// Lands, keeps or commits the work of a run whose session is closed. With `prompts`, asks the
    /// person about hooks that a commit would run outside of the sandbox.
    ///
    /// # Errors
    /// [`HostError`] where nothing is known of the work any more, or it is in the project and can't
    /// be committed.
    pub async fn deliver(
        &self,
        report: &Arc<RunReport>,
        prompts: Option<&dyn Confirmations>,
        stop: &CancellationToken,
    ) -> Result<DeliveredRun, HostError> {
        check_log_exists(&*self.project.store, report).await?;
        let mut report = (**report).clone();
        let mut context = self.land_context();
        if prompts.is_some() {
            // Another process may go on with the session while the person is asked.
            let found =
                context.store.find_sessions(report.session.as_str()).await.context("the session log")?;
            let found = found.into_iter().find(|found| found.id == report.session);
            context.known_end = found.map(|found| found.last);
        }
        let nothing = BTreeSet::new();
        let uncommitted = self.delivery.uncommitted.as_ref().unwrap_or(&nothing);
        let commit = self.confirm_commit(&report, prompts, stop).await?;
        let landing =
            self.delivery.landing.as_ref().map(|wish| LandRequest { commit: commit.clone(), ..wish.clone() });
        let delivered = match (self.delivery.workplace, &commit) {
            _ if report.copy.is_some() => {
                copies::finish_copy(&context, &mut report, landing.as_ref(), stop).await
            }
            // Where no copy was cheap, the session worked in the project.
            (WorkLocation::Project | WorkLocation::CheapCopy, Some(wish)) => {
                copies::commit_run(&context, &mut report, wish, uncommitted, stop).await
            }
            _ => Ok(Vec::new()),
        };
        match delivered {
            Ok(events) => Ok(DeliveredRun { report, events, failure: None }),
            // The run is over and its work is in the copy: the report has to say so.
            Err(error) if report.copy.as_ref().is_some_and(|copy| copy.state == CopyState::Kept) => {
                report.outcome = RunOutcome::Error;
                report.exit_code = report.outcome.exit_code();
                report.summary = format!("{}; not landed: {error}", report.summary);
                Ok(DeliveredRun { report, events: Vec::new(), failure: Some(error) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the requested commit, after a person has reviewed hooks that would run outside of
    /// the sandbox.
    async fn confirm_commit(
        &self,
        report: &RunReport,
        prompts: Option<&dyn Confirmations>,
        stop: &CancellationToken,
    ) -> Result<Option<CommitOptions>, HostError> {
        let Some(wish) = &self.delivery.commit else { return Ok(None) };
        let (Some(prompts), true) = (prompts, self.is_attended()) else { return Ok(Some(wish.clone())) };
        if report.outcome != RunOutcome::Verified || report.changes.is_empty() {
            return Ok(Some(wish.clone()));
        }
        let paths: Vec<RelPath> = report.changes.iter().map(|change| change.path.clone()).collect();
        let checked = self.project.committer.check_commit(wish, &paths, stop).await;
        Ok(Some(confirm_unsandboxed_hooks(wish, checked, &report.diff, prompts)?))
    }
}

/// Opens or creates the isolated copy of a session.
async fn open_or_create_copy(
    isolation: Isolation,
    session: &SessionId,
) -> Result<Result<WorkCopy, AgentError>, HostError> {
    let session = session.clone();
    let entered = tokio::task::spawn_blocking(move || isolation.open_or_create(&session)).await;
    entered.context("copying the project")
}
