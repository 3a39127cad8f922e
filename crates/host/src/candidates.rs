//! Several sessions that do one task side by side, of which one is landed.

use std::path::{Path, PathBuf};

use journeyman_agent::candidates::{self, CandidateEvent, CandidateOptions, CandidateRunEnd};
use journeyman_agent::isolation::{LandReport, LandRequest, last_report};
use journeyman_protocol::{CandidateReport, CopyState, RunReport, SessionId};
use journeyman_store::SessionSummary;
use tokio_util::sync::CancellationToken;

use crate::HostError;
use crate::config::{Config, Environment};
use crate::landing::{KeptWork, land_work};
use crate::project::ProjectContext;
use crate::sessions::{find_session, holder_name, new_session_id};
use crate::state::{StateDirs, project_root};
use crate::template::SessionTemplate;

/// Runs `count` candidates of a task, each in a copy of its own, where its work stays until
/// somebody takes it. `land` says on record that the best is landed without asking.
///
/// # Errors
/// [`HostError`] where the parent session fails.
pub async fn run_candidates(
    template: &SessionTemplate,
    task: &str,
    count: u32,
    land: bool,
    stop: &CancellationToken,
    on_event: impl FnMut(CandidateEvent) + Send,
) -> Result<CandidateRunEnd, HostError> {
    let context = template.project.land_context(template.settings.checks.clone());
    let mut settings = template.recorded_settings();
    (settings.asked.isolate, settings.asked.keep) = (Some(true), true);
    let race = CandidateOptions {
        context: &context,
        parts: &|| template.parts(),
        settings,
        parent: new_session_id(),
        candidates: (0..count).map(|_| new_session_id()).collect(),
        land,
    };
    Ok(race.run(task, stop, on_event).await?)
}

/// Lands one candidate, and makes the run's report its own.
///
/// # Errors
/// As [`land_work`].
pub async fn land_candidate(
    template: &SessionTemplate,
    finish: &mut CandidateRunEnd,
    picked: &SessionId,
    wish: &LandRequest,
    stop: &CancellationToken,
) -> Result<LandReport, HostError> {
    let context = template.project.land_context(template.settings.checks.clone());
    let landed = land_work(&context, picked, wish, stop).await?;
    if *picked != finish.report.session
        && let Some(report) = last_report(&*context.store, picked).await?
    {
        finish.report = RunReport { candidates: finish.candidates.clone(), ..report };
    }
    landed.amend(&mut finish.report);
    for candidate in finish.report.candidates.iter_mut().filter(|candidate| candidate.session == *picked) {
        candidate.state = landed.copy.state;
    }
    Ok(landed)
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
    let compared = candidates::compare(&*state.store, &project.isolation(), &session.id).await?;
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
