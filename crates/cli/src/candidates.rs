//! `jm run --candidates` and `jm candidates`.

use journeyman_agent::candidates::CandidateEvent;
use journeyman_agent::isolation::LandOutcome;
use journeyman_host::candidates::{
    CandidateModel, best_verified, land_candidate, load_candidates, run_candidates,
};
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::report_text;
use journeyman_host::{Context as _, HostError, SessionTemplate};
use journeyman_protocol::{CandidateReport, CopyState, SessionId};
use journeyman_terminal::stdout_paint;
use journeyman_tui::candidate_lines::{CandidateLines, ask_for_candidate};
use journeyman_tui::stop_signals::run_until_stopped;
use tokio_util::sync::CancellationToken;

use crate::args::CandidatesArgs;
use crate::display::{Display, OutputFormat};
use crate::output;
use crate::runtime::open_state;

/// Runs the candidates of a task, and offers the best.
pub(crate) async fn run_task_candidates(
    template: SessionTemplate,
    task: &str,
    models: &[Option<CandidateModel>],
    land: bool,
    display: Display,
) -> Result<u8, HostError> {
    let stop = CancellationToken::new();
    let mut lines = CandidateLines::new(display.detail, models.len());
    let mut first_error = None;
    let show = |event: CandidateEvent| {
        let (CandidateEvent::Parent(envelope) | CandidateEvent::Candidate(_, envelope)) = &event;
        if let Err(error) = display.stream_event(envelope) {
            first_error.get_or_insert(error);
        }
        lines.show_event(&event);
    };
    let ran = run_until_stopped(run_candidates(&template, task, models, land, &stop, show), &stop).await?;
    first_error.map_or(Ok(()), Err)?;
    let mut finish = ran?;
    let parent = finish.parent.clone();
    let picked = pick_candidate(&finish.candidates, land, display)?;
    if let (Some(request), Some(picked)) = (template.delivery.land_request(), picked) {
        let stop = CancellationToken::new();
        let landing = land_candidate(&template, &mut finish, &picked, request, &stop);
        let landed = run_until_stopped(landing, &stop).await??;
        display.show_late_events(&landed.events)?;
        let others = finish.report.candidates.iter().any(|candidate| candidate.state == CopyState::Kept);
        if landed.end == LandOutcome::Landed && others && display.output == OutputFormat::Text {
            errln!("the others are kept; remove them with: jm discard --all {parent}");
        }
    } else if display.output == OutputFormat::Text {
        errln!("take one with: jm land SESSION; remove them all with: jm discard --all {parent}");
    }
    display.print_report(&finish.report)
}

/// Returns the candidate to land: the best with `--land`, else the choice of the person at the
/// terminal.
fn pick_candidate(
    candidates: &[CandidateReport],
    land: bool,
    display: Display,
) -> Result<Option<SessionId>, HostError> {
    if land {
        return Ok(best_verified(candidates).cloned());
    }
    let has_kept = candidates.iter().any(|candidate| candidate.state == CopyState::Kept);
    if !has_kept || !display.is_interactive() {
        return Ok(None);
    }
    ask_for_candidate(candidates).context("asking")
}

/// `jm candidates`.
pub(crate) async fn list_candidates(
    environment: &Environment,
    args: &CandidatesArgs,
) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let (session, parent, all) = load_candidates(environment, &dirs, args.session.as_deref()).await?;
    if args.json {
        outln!("{}", serde_json::json!({ "parent": parent, "candidates": all }));
        return Ok(0);
    }
    let title = printable(&session.title);
    outln!("{}", stdout_paint().bold(&title));
    output::write_stdout(&report_text::format_candidates(&all, stdout_paint()));
    if all.iter().any(|candidate| candidate.state == CopyState::Kept) {
        outln!("take one with: jm land SESSION; remove them all with: jm discard --all {parent}");
    }
    Ok(0)
}
