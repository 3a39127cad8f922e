//! Candidate runs: several sessions attempt the same task, and one result is landed.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use journeyman_agent::candidates::{self, CandidateEvent, CandidateOptions, CandidateRunEnd, MAX_CANDIDATES};
use journeyman_agent::isolation::{LandReport, LandRequest, load_last_report};
use journeyman_agent::{RunSettings, SessionParts};
use journeyman_protocol::{CandidateReport, CopyState, RunOutcome, RunReport, SessionId};
use journeyman_store::SessionSummary;
use journeyman_terminal::Paint;
use tokio_util::sync::CancellationToken;

use crate::HostError;
use crate::config::{Config, Environment};
use crate::delegates::{model_name, parse_model_name};
use crate::landing::{KeptWork, find_discardable, land_work};
use crate::models::{ConnectedModel, connect_delegate};
use crate::project::ProjectContext;
use crate::report_text::format_candidates;
use crate::root::project_root;
use crate::session_tools::delegate_only_tools;
use crate::sessions::{find_newest_with_candidates, find_session, holder_name, new_session_id};
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

impl FromStr for CandidateList {
    type Err = String;

    /// Parses `3` or `claude,codex,own`.
    fn from_str(argument: &str) -> Result<Self, Self::Err> {
        let range = 2..=MAX_CANDIDATES;
        if let Ok(count) = argument.parse::<u32>() {
            return match range.contains(&count) {
                true => Ok(CandidateList::Count(count)),
                false => Err(format!("{count} is not in 2..={MAX_CANDIDATES}")),
            };
        }
        let names: Vec<String> = argument.split(',').map(|name| name.trim().to_owned()).collect();
        let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
        if names.iter().any(String::is_empty) || !range.contains(&count) {
            return Err(format!("give a number, or 2 to {MAX_CANDIDATES} names such as claude,codex,own"));
        }
        Ok(CandidateList::Names(names))
    }
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
    let context = template.land_context();
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
    let context = template.land_context();
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
fn no_candidates_error(parent: &SessionId) -> HostError {
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

/// Finds the task that `word` names by its session or a candidate, or the newest one of the current
/// directory that was given to candidates. Returns a session of the task, the parent, and all
/// candidates, the best first.
///
/// # Errors
/// [`HostError::Usage`] where there is no such task, and where no candidate of it began.
pub async fn load_candidates(
    environment: &Environment,
    state: &StateDirs,
    word: Option<&str>,
) -> Result<(SessionSummary, SessionId, Vec<CandidateReport>), HostError> {
    let session = match word {
        Some(word) => find_session(state, environment, word).await?,
        None => find_newest_with_candidates(state, environment).await?,
    };
    let (parent, all) = compare_candidates(environment, state, &session).await?;
    if all.is_empty() {
        return Err(no_candidates_error(&parent));
    }
    Ok((session, parent, all))
}

/// Finds the work that can be discarded: of all candidates of the task that `all` names, else as
/// [`find_discardable`] does for `word`.
///
/// # Errors
/// As [`find_discardable`], and [`HostError::Usage`] where the session has no candidates.
pub async fn find_all_discardable(
    environment: &Environment,
    state: &StateDirs,
    word: Option<&str>,
    all: Option<&str>,
) -> Result<Vec<KeptWork>, HostError> {
    match all {
        Some(all) => find_kept_candidates(environment, state, all).await,
        None => Ok(vec![find_discardable(environment, state, word).await?]),
    }
}

/// Finds the candidates of a task whose work is still kept.
async fn find_kept_candidates(
    environment: &Environment,
    state: &StateDirs,
    word: &str,
) -> Result<Vec<KeptWork>, HostError> {
    let found = find_session(state, environment, word).await?;
    let root = PathBuf::from(&found.root);
    let (_, all) = compare_candidates(environment, state, &found).await?;
    let mut kept = Vec::new();
    for candidate in all.into_iter().filter(|candidate| candidate.state == CopyState::Kept) {
        kept.push(KeptWork::new(state, candidate.session, root.clone()).await?);
    }
    Ok(kept)
}
