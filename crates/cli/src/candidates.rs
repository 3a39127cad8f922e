//! `jm run --candidates` and `jm candidates`.

use std::sync::Arc;

use journeyman_agent::candidates::CandidateEvent;
use journeyman_agent::isolation::LandOutcome;
use journeyman_host::candidates::{
    CandidateChoice, CandidateModel, best_verified, compare_candidates, land_candidate, no_candidates_error,
    run_candidates,
};
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::renderer::Renderer;
use journeyman_host::report_text;
use journeyman_host::sessions::{find_newest_with_candidates, find_session};
use journeyman_host::{Context as _, HostError, SessionTemplate};
use journeyman_protocol::{CandidateReport, CopyState, Envelope, SessionId};
use journeyman_tui::line_prompts::ask_line;
use tokio_util::sync::CancellationToken;

use crate::args::CandidatesArgs;
use crate::display::{Display, OutputFormat};
use crate::runtime::{open_state, run_until_stopped};
use crate::{color, output};

/// Runs the candidates of a task, and offers the best.
pub(crate) async fn run_task_candidates(
    template: SessionTemplate,
    task: &str,
    models: &[Option<CandidateModel>],
    land: bool,
    display: Display,
) -> Result<u8, HostError> {
    let stop = CancellationToken::new();
    let mut screen = CandidateScreen::new(display, models.len());
    let show = |event: CandidateEvent| screen.show_event(&event);
    let ran = run_until_stopped(run_candidates(&template, task, models, land, &stop, show), &stop).await?;
    screen.first_error.map_or(Ok(()), Err)?;
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
    err!("\n{}", report_text::format_candidates(candidates, color::stderr_paint()));
    let Some(choice) = CandidateChoice::new(candidates) else { return Ok(None) };
    let number = choice.proposed.number;
    let question = format!("Land candidate {number}? [y]es, [n]o, or another one's number: ");
    loop {
        match choice.parse_answer(&ask_line(&question).context("asking")?) {
            Ok(picked) => return Ok(picked.cloned()),
            Err(answers) => errln!("{answers}"),
        }
    }
}

/// Shows the events of several sessions, each line with the session's number.
struct CandidateScreen {
    display: Display,
    parent: Renderer,
    renderers: Vec<Renderer>,
    first_error: Option<HostError>,
}

impl CandidateScreen {
    fn new(display: Display, count: usize) -> Self {
        let detail = display.detail;
        let renderers = (1..).take(count).map(|number| Renderer::with_number(detail, number)).collect();
        Self { display, parent: Renderer::new(detail), renderers, first_error: None }
    }

    fn show_event(&mut self, event: &CandidateEvent) {
        let envelope: &Arc<Envelope> = match event {
            CandidateEvent::Parent(envelope) | CandidateEvent::Candidate(_, envelope) => envelope,
        };
        if let Err(error) = self.display.stream_event(envelope) {
            self.first_error.get_or_insert(error);
        }
        let renderer = match event {
            CandidateEvent::Parent(_) => Some(&mut self.parent),
            CandidateEvent::Candidate(number, _) => {
                usize::try_from(number.saturating_sub(1)).ok().and_then(|place| self.renderers.get_mut(place))
            }
        };
        if let Some(renderer) = renderer {
            renderer.show_envelope(envelope);
        }
    }
}

/// `jm candidates`.
pub(crate) async fn list_candidates(
    environment: &Environment,
    args: &CandidatesArgs,
) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = match &args.session {
        Some(word) => find_session(&dirs, environment, word).await?,
        None => find_newest_with_candidates(&dirs, environment).await?,
    };
    let (parent, all) = compare_candidates(environment, &dirs, &session).await?;
    if all.is_empty() {
        return Err(no_candidates_error(&parent));
    }
    if args.json {
        outln!("{}", serde_json::json!({ "parent": parent, "candidates": all }));
        return Ok(0);
    }
    let title = printable(&session.title);
    outln!("{}", color::stdout_paint().bold(&title));
    output::write_stdout(&report_text::format_candidates(&all, color::stdout_paint()));
    if all.iter().any(|candidate| candidate.state == CopyState::Kept) {
        outln!("take one with: jm land SESSION; remove them all with: jm discard --all {parent}");
    }
    Ok(0)
}
