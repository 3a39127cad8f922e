//! A task for a new session: from what a person asks for to the template of the session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_agent::{Approver, UserMessage, is_question};
use journeyman_context::ReadOnlyGoal;
use journeyman_protocol::ImageData;

use crate::agents::{AgentRun, parse_inputs};
use crate::candidates::{CandidateList, CandidateModel, connect_candidates, first_candidate_model};
use crate::config::Environment;
use crate::delegates::model_name;
use crate::images::read_images;
use crate::plans::find_plan;
use crate::root::describe_root;
use crate::slash_commands::SlashCommands;
use crate::state::StateDirs;
use crate::task_input::{TaskArguments, TaskText};
use crate::{Confirmations, Delivery, DeliveryOptions, HostError, PreparedRun, RunOptions, SessionTemplate};

/// A person's request for a task in a new session.
#[derive(Debug, Default)]
pub struct TaskRequest {
    /// The options of the run. The request decides if a run in plan mode makes a plan.
    pub run: RunOptions,
    /// The options for the isolated copy, landing and committing.
    pub delivery: DeliveryOptions,
    /// The directory instead of the current one.
    pub directory: Option<PathBuf>,
    /// The task itself.
    pub task: TaskArguments,
    /// Inputs of an agent, as `name=value`.
    pub inputs: Vec<String>,
    /// The session whose plan is carried out; an empty word for the newest plan of the directory.
    pub plan: Option<String>,
    /// True for a question, which no plan answers.
    pub asks: bool,
    /// Another coding CLI that gets the task.
    pub cli: Option<String>,
    /// Several attempts at the task.
    pub candidates: Option<CandidateList>,
    /// Images that go with the task, from the current directory.
    pub images: Vec<PathBuf>,
}

/// A task that is read and whose model is connected.
pub struct PreparedTask {
    /// The settings and the model of the run.
    pub prepared: PreparedRun,
    /// Notes for the person: about the project's root, and about piped data.
    pub notes: Vec<String>,
    text: String,
    images: Vec<ImageData>,
    inputs: Vec<String>,
    has_agent: bool,
    asks: bool,
    candidates: Option<Vec<Option<CandidateModel>>>,
    delivery: Delivery,
}

/// The beginning of a task in a new session.
pub enum TaskStart {
    /// An agent with its inputs.
    Agent(Box<AgentRun>),
    /// A message to one session.
    Message(UserMessage),
    /// A message to several sessions, each with the model of one candidate.
    Candidates(String, Vec<Option<CandidateModel>>),
}

impl PreparedTask {
    /// Connects the models, and reads the task when nothing else of the request can be wrong.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a wrong option, configuration, task or image.
    pub async fn new(
        environment: &Environment,
        state: &StateDirs,
        root: &Path,
        request: TaskRequest,
        prompts: Option<&dyn Confirmations>,
    ) -> Result<Self, HostError> {
        let TaskRequest { mut run, directory, candidates, .. } = request;
        if let Some(cli) = &request.cli {
            run.model = Some(model_name(cli, run.model.as_deref()));
        }
        if let Some(CandidateList::Names(names)) = &candidates
            && let Some(model) = first_candidate_model(names)
        {
            run.model = Some(model);
        }
        run.plans = !request.asks && request.cli.is_none();
        let mut prepared = PreparedRun::new(environment, root, &run, None, prompts)?;
        if candidates.is_some() {
            // Concurrent sessions can't ask.
            prepared.approver = Approver::Nobody;
        }
        if let Some(session) = &request.plan {
            let session = Some(session.as_str()).filter(|session| !session.is_empty());
            prepared.plan = Some(find_plan(environment, state, directory.as_deref(), session).await?.plan);
        }
        let candidates = match &candidates {
            None => None,
            Some(CandidateList::Count(count)) => Some((0..*count).map(|_| None).collect::<Vec<_>>()),
            Some(CandidateList::Names(names)) => {
                Some(connect_candidates(&prepared.settings.config, environment, root, state, names)?)
            }
        };
        let models = candidates.iter().flatten().flatten();
        prepared.add_secrets(models.flat_map(|candidate| candidate.secrets().to_vec()));
        let delivery = prepared.plan_delivery(&request.delivery)?;
        let own_task = prepared.plan.as_ref().map(|plan| plan.task.clone());
        // An agent may have inputs instead, and a plan has its own task.
        let is_optional = run.agent.is_some() || own_task.is_some();
        let TaskArguments { task, file, wants_data } = &request.task;
        let TaskText { text, note } = match is_optional && file.is_none() && !wants_data {
            true => TaskText { text: task.clone().or(own_task).unwrap_or_default(), note: None },
            false => request.task.read(environment)?,
        };
        let images = read_images(environment, &request.images)?;
        let notes = describe_root(environment, directory.as_deref(), root).into_iter().chain(note);
        Ok(Self {
            prepared,
            notes: notes.collect(),
            asks: request.asks || is_question(&text),
            text,
            images,
            inputs: request.inputs,
            has_agent: run.agent.is_some(),
            candidates,
            delivery,
        })
    }

    /// Opens the project.
    ///
    /// # Errors
    /// [`HostError::Usage`] for wrong inputs of an agent, and for a task that is too long.
    pub fn open(
        mut self,
        environment: &Environment,
        state: &Arc<StateDirs>,
        root: &Path,
    ) -> Result<(SessionTemplate, TaskStart), HostError> {
        // A question in plan mode is answered; a task is planned.
        if self.asks {
            self.prepared.read_only_goal = ReadOnlyGoal::Answer;
        }
        let agent = self.prepared.agent.take().filter(|_| self.has_agent || !self.asks);
        let template = self.prepared.into_template(environment, state, root, "run", self.delivery)?;
        if let Some(definition) = agent {
            let task = Some(self.text.as_str()).filter(|task| !task.is_empty());
            let inputs = parse_inputs(&definition, task, &self.inputs)?;
            let run = AgentRun::new(&definition, &inputs, &template)?;
            return Ok((template, TaskStart::Agent(Box::new(run))));
        }
        let text = SlashCommands::expand_task(environment, root, self.text)?;
        template.check_task_size(&text)?;
        let start = match self.candidates {
            Some(models) => TaskStart::Candidates(text, models),
            None => TaskStart::Message(UserMessage { text, images: self.images }),
        };
        Ok((template, start))
    }
}

impl TaskStart {
    /// Returns the text of the task; `None` for an agent, which has inputs.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Agent(_) => None,
            Self::Message(message) => Some(&message.text),
            Self::Candidates(text, _) => Some(text),
        }
    }
}
