//! Tasks of low risk that another coding CLI carries out alone, without a session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use journeyman_delegate::{DelegateEvent, Delegates, DirectEnd, DirectRun, FreshDirectory};
use journeyman_policy::{Risk, RiskAssessment};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::Environment;
use crate::delegates::{AUTO_CLI, create_task_directory, find_delegates};
use crate::settings::{RunOptions, resolve_settings};
use crate::task_risk::assess_task;
use crate::{Confirmations, Context as _, HostError};

/// A user's options for a task without a session.
#[derive(Debug, Clone, Default)]
pub struct DirectTaskOptions {
    /// The CLI, or [`AUTO_CLI`].
    pub cli: String,
    /// A model of the CLI's own.
    pub model: Option<String>,
    /// The directory to work in, in place of a fresh one.
    pub directory: Option<PathBuf>,
    /// Trust the project's configuration in this run.
    pub trust_project: bool,
}

/// A task after its risk is known.
pub enum JudgedTask {
    /// The task may be run.
    Low(Box<DirectTask>),
    /// The task belongs in a sandbox.
    High(RiskAssessment),
}

/// A task of low risk, and the installed CLI that gets it.
pub struct DirectTask {
    /// The name of the CLI.
    pub cli: String,
    /// The risk of the task.
    pub risk: RiskAssessment,
    task: String,
    delegates: Delegates,
    directory: TaskDirectory,
}

/// The directory that a task is done in.
enum TaskDirectory {
    /// One that the user named.
    Named(PathBuf),
    /// One that was made for the task, and is removed with this value unless it is kept.
    Fresh(FreshDirectory),
}

impl TaskDirectory {
    fn open(environment: &Environment, named: Option<&Path>) -> Result<Self, HostError> {
        Ok(match named {
            Some(named) => {
                Self::Named(environment.cwd.join(named).canonicalize().context("opening the directory")?)
            }
            None => Self::Fresh(create_task_directory(environment)?),
        })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Fresh(directory) => directory.path(),
        }
    }
}

impl DirectTask {
    /// Judges the risk of a task, and finds the CLI for a low one. `prompts` ask for trust in the
    /// project's configuration.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a CLI that is unknown or not installed, and for a wrong
    /// configuration; [`HostError::Failed`] for a directory that can't be opened or made.
    pub async fn judge(
        environment: &Environment,
        root: Option<&Path>,
        task: String,
        options: DirectTaskOptions,
        prompts: Option<&dyn Confirmations>,
    ) -> Result<JudgedTask, HostError> {
        let directory = TaskDirectory::open(environment, options.directory.as_deref())?;
        let risk = assess_task(root, directory.path(), &task, Some(directory.path())).await?;
        if risk.risk == Risk::High {
            return Ok(JudgedTask::High(risk));
        }
        let trust = RunOptions { trust_project: options.trust_project, ..RunOptions::default() };
        let configured = root.unwrap_or(directory.path());
        let config = resolve_settings(environment, configured, &trust, None, prompts)?.config;
        let delegates = find_delegates(&config, environment, root).with_model(options.model);
        let cli = match options.cli.as_str() {
            AUTO_CLI => delegates.first_installed().map_err(HostError::usage)?.adapter.name().to_owned(),
            _ => options.cli,
        };
        let settings = delegates.find(&cli).map_err(HostError::usage)?;
        delegates.find_program(settings).map_err(HostError::usage)?;
        Ok(JudgedTask::Low(Box::new(Self { cli, risk, task, delegates, directory })))
    }

    /// Returns the directory that the task is done in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs the CLI until it ends, or `stop` ends it. A directory that was made for the task stays.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the CLI can't be started or followed.
    pub async fn run(
        mut self,
        time_limit: Option<Duration>,
        stop: &CancellationToken,
        watch: &mut (dyn FnMut(&DelegateEvent) + Send),
    ) -> Result<DirectResult, HostError> {
        let is_fresh = matches!(self.directory, TaskDirectory::Fresh(_));
        let directory = self.directory.path().to_owned();
        let run = DirectRun { prompt: &self.task, directory: &directory, is_fresh, time_limit };
        let ended = run.run(&self.delegates, &self.cli, stop.clone(), watch).await;
        let end = ended.map_err(HostError::failed)?;
        if let TaskDirectory::Fresh(fresh) = &mut self.directory {
            fresh.keep();
        }
        Ok(DirectResult { directory, end })
    }
}

/// The result of a task without a session.
#[derive(Debug)]
pub struct DirectResult {
    /// The directory that the task was done in.
    pub directory: PathBuf,
    /// The outcome according to the CLI, and the files that differ.
    pub end: DirectEnd,
}

impl DirectResult {
    /// Returns the message of the CLI's failure.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.end.outcome.failure.as_ref().map(|failure| failure.message.as_str())
    }

    /// Returns the result as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (outcome, failure) = (&self.end.outcome, self.failure());
        json!({
            "success": failure.is_none(),
            "message": outcome.message,
            "directory": self.directory,
            "created": self.end.created,
            "changed": self.end.changed,
            "deleted": self.end.deleted,
            "session": outcome.session,
            "usage": outcome.usage,
            "cost_usd": outcome.cost,
            "error": failure,
        })
    }
}

/// Returns an event of a CLI as JSON; `None` for an event that only a session needs.
#[must_use]
pub fn delegate_event_to_json(event: &DelegateEvent) -> Option<Value> {
    Some(match event {
        DelegateEvent::ToolStart { id, tool, summary } => {
            json!({ "event": "tool_start", "id": id, "tool": tool, "summary": summary })
        }
        DelegateEvent::ToolEnd { id, failed, output } => {
            json!({ "event": "tool_end", "id": id, "failed": failed, "output": output })
        }
        DelegateEvent::Text(text) => json!({ "event": "text", "text": text }),
        DelegateEvent::Warning(text) => json!({ "event": "warning", "text": text }),
        _ => return None,
    })
}
