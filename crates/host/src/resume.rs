//! Decides how a session is resumed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_agent::isolation as copies;
use journeyman_agent::{
    AgentError, CutOffPolicy, SESSION_STATUS_IMPORTED, SessionHandle, State, Subscription, candidates,
    mark_import_end,
};
use journeyman_protocol::{Event, MessageKind, RunOutcome, RunReport, SessionId, Tokens};
use journeyman_store::{SessionSummary, Store as _};

use crate::config::Environment;
use crate::delivery::{Delivery, DeliveryOptions, WorkLocation};
use crate::format::{outcome_name, printable};
use crate::root::project_root;
use crate::sessions::{SessionClaim, find_session_of};
use crate::settings::{EarlierRun, ResolvedSettings, RunOptions};
use crate::state::{StateDirs, now};
use crate::{Confirmations, Context as _, HostError, PreparedRun, SessionTemplate, Surface};

/// Finds the session that `word` names in `directory` or the current one. For `last`, a run with
/// candidates is returned instead of its newest candidate.
///
/// # Errors
/// [`HostError::Usage`] where no session or several sessions match.
pub async fn find_resumable(
    state: &StateDirs,
    environment: &Environment,
    word: &str,
    directory: Option<&Path>,
) -> Result<SessionSummary, HostError> {
    let found = find_session_of(state, environment, directory, word).await?;
    if word != "last" {
        return Ok(found);
    }
    let Some(run) = candidates::find_candidate_run(&*state.store, &found.id).await? else { return Ok(found) };
    let parent = state.store.find_sessions(run.parent.as_str()).await.context("the session log")?;
    Ok(parent.into_iter().find(|session| session.id == run.parent).unwrap_or(found))
}

/// The state of a session before it is resumed.
#[derive(Debug)]
pub struct Resumption {
    /// The session.
    pub session: SessionId,
    /// The directory that it goes on in.
    pub root: PathBuf,
    /// The settings that it was started with; `None` for an imported session, whose log decides
    /// nothing about what may be done here.
    pub earlier: Option<EarlierRun>,
    /// True for an imported session that nobody has opened here yet.
    pub is_imported: bool,
    /// The model and the mode that an imported session ran with elsewhere.
    pub imported: Option<(String, journeyman_protocol::Mode)>,
    /// The session whose candidate it is.
    pub candidate_of: Option<SessionId>,
    /// True if its task was given to candidates.
    pub is_candidates_parent: bool,
    /// True if its work is in a copy.
    pub has_copy: bool,
    /// True if a message of the user waits behind the task.
    pub has_waiting_message: bool,
    /// True if the model has answered in the task that was cut off.
    pub is_task_open: bool,
    /// Its state, for whoever opens it.
    pub state: State,
}

impl Resumption {
    /// Reads a session's state. `directory` replaces the session's own directory.
    ///
    /// # Errors
    /// [`HostError`] where the log or the project can't be read.
    pub async fn load(
        environment: &Environment,
        state: &StateDirs,
        summary: &SessionSummary,
        directory: Option<&Path>,
    ) -> Result<Self, HostError> {
        let id = &summary.id;
        let run = candidates::find_candidate_run(&*state.store, id).await?;
        let is_candidates_parent = run.as_ref().is_some_and(|run| run.parent == *id);
        let session = State::load(&*state.store, id).await?;
        let root = project_root(environment, Some(directory.unwrap_or(Path::new(&summary.root))))?;
        let copies = state.open_workspace(&root)?.copies().list().context("looking for its copy")?;
        let is_imported = summary.status == SESSION_STATUS_IMPORTED;
        let setting = session.setting.as_ref();
        Ok(Self {
            session: id.clone(),
            root,
            earlier: setting.filter(|_| !is_imported).map(|setting| EarlierRun {
                model: setting.model.clone(),
                mode: setting.mode,
                asked: setting.asked.clone(),
            }),
            is_imported,
            imported: setting.filter(|_| is_imported).map(|setting| (setting.model.clone(), setting.mode)),
            candidate_of: run.filter(|_| !is_imported && !is_candidates_parent).map(|run| run.parent),
            is_candidates_parent,
            has_copy: copies.iter().any(|copy| copy.session == *id),
            has_waiting_message: session.queue.iter().any(|queued| queued.kind == MessageKind::User),
            // Messages that an unopened task began with go with the task, those behind an open one
            // don't.
            is_task_open: session.task.as_ref().is_some_and(|task| task.opened),
            state: session,
        })
    }

    /// Returns a sentence about a session that was imported; `None` for any other.
    #[must_use]
    pub fn describe_import(&self) -> Option<String> {
        let (model, mode) = self.imported.as_ref()?;
        Some(format!(
            "the session was imported: elsewhere it ran with {} in mode {}, and here it runs as you configure it",
            printable(model),
            mode.name()
        ))
    }

    /// Returns an error if the session has no unfinished work and gets no message.
    ///
    /// # Errors
    /// [`HostError::Usage`] naming what can be done with the session.
    pub fn check_has_work(&self, has_message: bool) -> Result<(), HostError> {
        if self.state.task.is_some() || self.has_waiting_message || has_message {
            return Ok(());
        }
        let id = &self.session;
        let ended = match self.state.outcome {
            Some(outcome) => format!("its last task ended ({})", outcome_name(outcome)),
            None => "no task of its was begun".to_owned(),
        };
        let copy = match self.has_copy {
            true => format!(
                " Its copy is still there: jm land {id} brings what your files don't have yet into them, jm discard \
                 {id} drops it."
            ),
            false => String::new(),
        };
        Err(HostError::usage(format_args!(
            "session {id} has nothing to finish: {ended}.{copy} To go on with it, say how: jm resume {id} \"MESSAGE\""
        )))
    }

    /// Returns an error if the session has unfinished work, which opening would resume.
    ///
    /// # Errors
    /// [`HostError::Usage`] naming what can be done with the session.
    pub fn check_idle(&self) -> Result<(), HostError> {
        if self.state.task.is_none() && !self.has_waiting_message {
            return Ok(());
        }
        Err(HostError::usage(format_args!(
            "session {id} has a task to finish: jm resume {id} goes on with it, jm resume --close {id} gives it up",
            id = self.session
        )))
    }

    /// Returns the delivery of the resumed session.
    ///
    /// # Errors
    /// [`HostError::Usage`] for options that contradict the earlier ones, or the copy that has the
    /// work.
    pub fn plan_delivery(
        &self,
        options: &DeliveryOptions,
        settings: &ResolvedSettings,
        land: bool,
    ) -> Result<Delivery, HostError> {
        let asked = self.earlier.as_ref().map(|earlier| earlier.asked.clone()).unwrap_or_default();
        let keeps = asked.keep || self.candidate_of.is_some();
        let workplace = match self.has_copy || self.candidate_of.is_some() {
            true => WorkLocation::Copy,
            false => WorkLocation::from_settings(settings),
        };
        let delivery = Delivery::for_resumed(options, workplace, &asked, keeps, land)?;
        if self.has_copy && delivery.work_location() == WorkLocation::Project {
            let id = &self.session;
            return Err(HostError::usage(format_args!(
                "the work of session {id} is in a copy of the project; land it (jm land {id}) or discard it (jm \
                 discard {id}) before it goes on in the project itself"
            )));
        }
        Ok(delivery)
    }
}

/// The options with which a session is opened again.
#[derive(Debug)]
pub struct ReopenOptions<'a> {
    /// The options of the run.
    pub run: &'a RunOptions,
    /// The options for the isolated copy, landing and committing.
    pub delivery: &'a DeliveryOptions,
    /// Land the work also where it was to stay in its copy.
    pub land: bool,
    /// The treatment of a task that was cut off.
    pub cut_off: CutOffPolicy,
    /// The command that opens the session, which other processes are told.
    pub command: &'a str,
}

impl Resumption {
    /// Opens the session again. `warn` shows the warnings of the run before the project is opened.
    ///
    /// # Errors
    /// [`HostError`] for a wrong option or configuration, and where another process has the
    /// session.
    pub async fn open(
        self,
        environment: &Environment,
        state: &Arc<StateDirs>,
        options: &ReopenOptions<'_>,
        prompts: Option<&dyn Confirmations>,
        warn: fn(&PreparedRun),
    ) -> Result<(SessionTemplate, SessionHandle), HostError> {
        let prepared =
            PreparedRun::new(environment, &self.root, options.run, self.earlier.as_ref(), prompts)?;
        let delivery = self.plan_delivery(options.delivery, &prepared.settings, options.land)?;
        warn(&prepared);
        let mut template =
            prepared.into_template(environment, state, &self.root, options.command, delivery)?;
        if self.is_imported {
            mark_import_end(&*state.store, &self.session, &journeyman_agent::Clock::new(now)).await?;
        }
        let session = template.resume(self.session, self.state, options.cut_off).await?;
        Ok((template, session))
    }
}

/// Opens a session that has nothing to finish, shortens its conversation, and closes the session.
/// Returns the tokens of the next request before and after.
///
/// # Errors
/// [`HostError::Usage`] for a session with a task to finish, and while another process has it.
pub async fn compact_session(
    environment: &Environment,
    state: &Arc<StateDirs>,
    summary: &SessionSummary,
    directory: Option<&Path>,
    run: &RunOptions,
    prompts: Option<&dyn Confirmations>,
    warn: fn(&PreparedRun),
) -> Result<(Tokens, Tokens), HostError> {
    let command = "compact";
    SessionClaim::hold(state, &summary.id, command, async {
        let resumption = Resumption::load(environment, state, summary, directory).await?;
        resumption.check_idle()?;
        let delivery = &DeliveryOptions::default();
        let options = ReopenOptions { run, delivery, land: false, cut_off: CutOffPolicy::Close, command };
        let has_copy = resumption.has_copy;
        let (template, session) = resumption.open(environment, state, &options, prompts, warn).await?;
        let shortened = session.compact().await;
        session.close().await;
        if !has_copy && template.delivery.work_location() == WorkLocation::Copy {
            // Nothing was to be done in it, and the session would be listed as one with kept work.
            let context = template.land_context();
            copies::discard_copy(&context, &summary.id).await?;
        }
        Ok(shortened?)
    })
    .await
}

/// Returns the command line that resumes a session whose task didn't finish. If the session has
/// outgrown its model's context, the command names another model.
#[must_use]
pub fn resume_command(report: &RunReport) -> Option<String> {
    let model = if report.context_exceeded { " --model PROVIDER/NAME" } else { "" };
    let words = if report.outcome == RunOutcome::NeedsAnswer { "ANSWER" } else { "go on" };
    (!is_settled(report.outcome)).then(|| format!("jm resume {}{model} \"{words}\"", report.session))
}

/// Returns true if a task with this outcome finished, so that nothing has to be resumed.
fn is_settled(outcome: RunOutcome) -> bool {
    match outcome {
        RunOutcome::Verified
        | RunOutcome::Answered
        | RunOutcome::Planned
        | RunOutcome::ChecksFail
        | RunOutcome::Unverified
        | RunOutcome::Conflict => true,
        RunOutcome::Error
        | RunOutcome::Limit
        | RunOutcome::PermissionNeeded
        | RunOutcome::NeedsAnswer
        | RunOutcome::Interrupted => false,
    }
}

/// Shows the events of a session until it is open again, with what was cut off settled.
///
/// # Errors
/// [`HostError`] where the session ends before that, or the surface fails.
pub async fn wait_until_reopened(
    events: &mut Subscription,
    surface: &mut dyn Surface,
) -> Result<(), HostError> {
    while let Some(envelope) = events.next().await? {
        surface.show(&envelope)?;
        if matches!(envelope.event, Event::AgentResumed { .. }) {
            return Ok(());
        }
    }
    Err(AgentError::Ended.into())
}
