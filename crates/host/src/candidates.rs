//! Candidate runs: several sessions attempt the same task, and one result is landed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_agent::candidates::{self, CandidateEvent, CandidateOptions, CandidateRunEnd};
use journeyman_agent::isolation::{LandReport, LandRequest, load_last_report};
use journeyman_agent::{RunSettings, SessionParts};
use journeyman_protocol::{CandidateReport, CopyState, RunOutcome, RunReport, SessionId};
use journeyman_store::SessionSummary;
use journeyman_terminal::Paint;
use tokio_util::sync::CancellationToken;

use crate::HostError;
use crate::config::{Config, Environment};
use crate::delegates::{model_name, parse_model_name};
use crate::landing::{KeptWork, land_work};
use crate::models::{ConnectedModel, connect_delegate};
use crate::project::ProjectContext;
use crate::report_text::format_candidates;
use crate::root::project_root;
use crate::session_tools::delegate_only_tools;
use crate::sessions::{find_session, holder_name, new_session_id};
use crate::state::StateDirs;
use crate::template::{MakeTools, SessionTemplate};

/// The candidates of a task, as a person asks for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateList {
    /// So many of the session's own model.
    Count(u32),
    /// One by each CLI, `own` for the session's own model.
    Names(Vec<String>),
}

/// The CLI of one candidate.
pub struct CandidateModel {
    connected: ConnectedModel,
    tools: MakeTools,
}

/// The name in a candidate list that selects the session's own model.
const OWN_MODEL_NAME: &str = "own";

/// Returns the model of the first candidate, for a run in which no candidate has the session's own.
#[must_use]
pub fn first_candidate_model(names: &[String]) -> Option<String> {
    let first = names.first().filter(|_| !names.iter().any(|name| name == OWN_MODEL_NAME))?;
    Some(model_name(first, None))
}

/// Connects the CLIs of the named candidates. The name `own` is the session's own model, returned
/// as `None`.
///
/// # Errors
/// [`HostError::Usage`] for a CLI that can't be used.
pub fn connect_candidates(
    config: &Config,
    environment: &Environment,
    root: &Path,
    state: &StateDirs,
    names: &[String],
) -> Result<Vec<Option<CandidateModel>>, HostError> {
    let project_state = state.project_dir(root);
    let connect_one = |name: &String| {
        if name == OWN_MODEL_NAME {
            return Ok(None);
        }
        let connected = connect_delegate(config, environment, name, None)?;
        // `auto` stands for another name.
        let cli = parse_model_name(&connected.name).unwrap_or((name, None));
        let tools = delegate_only_tools(config, environment, root, &project_state, cli);
        Ok(Some(CandidateModel { connected, tools }))
    };
    names.iter().map(connect_one).collect()
}

impl CandidateModel {
    /// Returns the API keys passed to the CLI, which have to be redacted.
    #[must_use]
    pub fn secrets(&self) -> &[String] {
        &self.connected.secrets
    }
}

/// Runs one candidate for each of `models`, each in its own isolated copy, which keeps the work
/// until it is landed or discarded. `land` records that the best is landed without asking.
///
/// # Errors
/// [`HostError`] where the parent session fails.
pub async fn run_candidates(
    template: &SessionTemplate,
    task: &str,
    models: &[Option<CandidateModel>],
    land: bool,
    stop: &CancellationToken,
    on_event: impl FnMut(CandidateEvent) + Send,
) -> Result<CandidateRunEnd, HostError> {
    let context = template.project.land_context(template.settings.checks.clone());
    let mut settings = template.recorded_settings();
    (settings.asked.isolate, settings.asked.keep) = (Some(true), true);
    let other = |number: u32| {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        models.get(place)?.as_ref()
    };
    let parts = |number| match other(number) {
        None => template.session_parts(),
        Some(CandidateModel { connected, tools }) => SessionParts {
            model: Arc::clone(&connected.model),
            registry: tools(),
            ..template.session_parts()
        },
    };
    let adjust_settings = |number, settings: RunSettings| match other(number) {
        None => settings,
        Some(CandidateModel { connected, .. }) => RunSettings {
            price: connected.price,
            limits: connected.limits.clone(),
            tool_calling: connected.tool_calling,
            ..settings
        },
    };
    let race = CandidateOptions {
        context: &context,
        parts: &parts,
        settings,
        adjust_settings: &adjust_settings,
        parent: new_session_id(),
        candidates: models.iter().map(|_| new_session_id()).collect(),
        land,
    };
    Ok(race.run(task, stop, on_event).await?)
}

/// Lands the picked candidate, and updates the run's report with its result.
///
/// # Errors
/// As [`land_work`].
pub async fn land_candidate(
    template: &SessionTemplate,
    finish: &mut CandidateRunEnd,
    picked: &SessionId,
    request: &LandRequest,
    stop: &CancellationToken,
) -> Result<LandReport, HostError> {
    let context = template.project.land_context(template.settings.checks.clone());
    let landed = land_work(&context, picked, request, stop).await?;
    if *picked != finish.report.session
        && let Some(report) = load_last_report(&*context.store, picked).await?
    {
        finish.report = RunReport { candidates: finish.candidates.clone(), ..report };
    }
    landed.amend_run_report(&mut finish.report);
    for candidate in finish.report.candidates.iter_mut().filter(|candidate| candidate.session == *picked) {
        candidate.state = landed.copy.state;
    }
    Ok(landed)
}

/// The candidates of a finished run that a person may land.
#[derive(Debug)]
pub struct CandidateChoice<'a> {
    /// The candidate that is proposed.
    pub proposed: &'a CandidateReport,
    verified: Vec<&'a CandidateReport>,
}

impl<'a> CandidateChoice<'a> {
    /// Makes the choice of candidates whose work is kept, the best first; `None` where none of them
    /// is verified.
    #[must_use]
    pub fn new(candidates: &'a [CandidateReport]) -> Option<Self> {
        let kept = candidates.iter().filter(|candidate| candidate.state == CopyState::Kept);
        let verified: Vec<_> = kept.clone().filter(|candidate| is_verified(candidate)).collect();
        let proposed = kept.clone().next().filter(|_| !verified.is_empty())?;
        Some(Self { proposed, verified })
    }

    /// Parses a line as an answer: yes for the proposed candidate, no for none, or the number of a
    /// verified one.
    ///
    /// # Errors
    /// A message listing the valid answers.
    pub fn parse_answer(&self, line: &str) -> Result<Option<&'a SessionId>, String> {
        let numbers = self.verified.iter().map(|candidate| (candidate.number.to_string(), *candidate));
        match line.trim() {
            "y" | "Y" | "yes" => Ok(Some(&self.proposed.session)),
            "" | "n" | "N" | "no" => Ok(None),
            other => match numbers.clone().find(|(number, _)| number == other) {
                Some((_, candidate)) => Ok(Some(&candidate.session)),
                None => {
                    let numbers: Vec<String> = numbers.map(|(number, _)| number).collect();
                    Err(format!("there are: y, n, {}", numbers.join(", ")))
                }
            },
        }
    }
}

/// Returns the best of the candidates if it is verified.
#[must_use]
pub fn best_verified(candidates: &[CandidateReport]) -> Option<&SessionId> {
    candidates.first().filter(|best| is_verified(best)).map(|best| &best.session)
}

fn is_verified(candidate: &CandidateReport) -> bool {
    candidate.outcome == Some(RunOutcome::Verified)
}

/// Returns the error for a session whose candidates never started, with advice.
#[must_use]
pub fn no_candidates_error(parent: &SessionId) -> HostError {
    HostError::usage(format_args!(
        "session {parent} was cut off before any of its candidates began; give the task again with jm run \
         --candidates, and remove this one with: jm delete {parent}"
    ))
}

/// Returns the error for resuming a session that gave its task to candidates, with the sessions
/// that can be resumed.
///
/// # Errors
/// As [`compare_candidates`].
pub async fn candidates_resume_error(
    environment: &Environment,
    state: &StateDirs,
    session: &SessionSummary,
    paint: Paint,
) -> Result<HostError, HostError> {
    let (parent, all) = compare_candidates(environment, state, session).await?;
    if all.is_empty() {
        return Ok(no_candidates_error(&session.id));
    }
    Ok(HostError::usage(format_args!(
        "the task of session {parent} was given to candidates, so there is nothing of its own to go on with:\n{}\
         finish one that was cut off, or go on with one: jm resume SESSION; take one: jm land SESSION; remove them \
         all: jm discard --all {parent}",
        format_candidates(&all, paint)
    )))
}

/// Compares the candidates of the task that `session` belongs to, the best first. Returns the
/// parent and its candidates; there are none if the parent was cut off before any began.
///
/// # Errors
/// [`HostError::Usage`] where the session has no candidates.
pub async fn compare_candidates(
    environment: &Environment,
    state: &StateDirs,
    session: &SessionSummary,
) -> Result<(SessionId, Vec<CandidateReport>), HostError> {
    let root = project_root(environment, Some(Path::new(&session.root)))?;
    let holder = holder_name("candidates");
    let project = ProjectContext::open(environment, state, &root, &Config::default(), Vec::new(), holder)?;
    let compared = candidates::compare_candidates(&*state.store, &project.isolation(), &session.id).await?;
    compared.ok_or_else(|| HostError::usage(format_args!("session {} has no candidates", session.id)))
}

/// Finds the candidates of a task whose work is still kept.
///
/// # Errors
/// [`HostError::Usage`] where the session has no candidates.
pub async fn find_kept_candidates(
    environment: &Environment,
    state: &StateDirs,
    word: &str,
) -> Result<Vec<KeptWork>, HostError> {
    let found = find_session(state, environment, word).await?;
    let root = PathBuf::from(&found.root);
    let (_, all) = compare_candidates(environment, state, &found).await?;
    let kept = all.into_iter().filter(|candidate| candidate.state == CopyState::Kept);
    Ok(kept.map(|candidate| KeptWork { session: candidate.session, root: root.clone() }).collect())
}
