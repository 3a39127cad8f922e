//! The candidates of a task by lines: their events, and the question which of them is landed.

use std::io;

use journeyman_agent::candidates::CandidateEvent;
use journeyman_host::candidates::CandidateChoice;
use journeyman_host::renderer::{ProgressDetail, Renderer};
use journeyman_host::report_text::format_candidates;
use journeyman_protocol::{CandidateReport, SessionId};
use journeyman_terminal::{stderr_paint, stderr_screen};

use crate::line_prompts::{ask_line, write_line};

/// Shows the events of several sessions on standard error, each line with the session's number.
pub struct CandidateLines {
    parent: Renderer,
    renderers: Vec<Renderer>,
}

impl CandidateLines {
    /// Makes the view of `count` candidates.
    #[must_use]
    pub fn new(detail: ProgressDetail, count: usize) -> Self {
        let renderers = (1..).take(count).map(|number| Renderer::with_number(detail, number)).collect();
        Self { parent: Renderer::new(detail), renderers }
    }

    /// Shows an event.
    pub fn show_event(&mut self, event: &CandidateEvent) {
        let (renderer, envelope) = match event {
            CandidateEvent::Parent(envelope) => (Some(&mut self.parent), envelope),
            CandidateEvent::Candidate(number, envelope) => {
                let place = usize::try_from(number.saturating_sub(1)).ok();
                (place.and_then(|place| self.renderers.get_mut(place)), envelope)
            }
        };
        if let Some(renderer) = renderer {
            renderer.show_envelope(envelope);
        }
    }
}

/// Compares the candidates, and asks which of them is landed. Returns `None` where the person wants
/// none, or none is verified.
///
/// # Errors
/// The terminal can't be read.
pub fn ask_for_candidate(candidates: &[CandidateReport]) -> io::Result<Option<SessionId>> {
    let table = format_candidates(candidates, stderr_paint());
    stderr_screen().write_wrapped(&format!("\n{table}"));
    let Some(choice) = CandidateChoice::new(candidates) else { return Ok(None) };
    let number = choice.proposed.number;
    let question = format!("Land candidate {number}? [y]es, [n]o, or another one's number: ");
    loop {
        match choice.parse_answer(&ask_line(&question)?) {
            Ok(picked) => return Ok(picked.cloned()),
            Err(answers) => write_line(answers),
        }
    }
}
