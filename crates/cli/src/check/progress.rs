//! Shows a round's progress: one line for the running check, and a line for each result.

use journeyman_agent::verify::Progress;
use journeyman_host::checks::describe_result;
use journeyman_host::format::preview;
use journeyman_protocol::{CheckOutcome, Evidence};
use journeyman_terminal::{Style, StyledLine, stderr_screen};

use crate::output::write_screen;

/// Prints the results as they come.
pub(crate) struct RoundProgress {
    prints_results: bool,
    shows_progress: bool,
    /// The newest reason why a check didn't run.
    last_reason: Option<String>,
}

impl RoundProgress {
    pub(crate) fn new(prints_results: bool, shows_progress: bool) -> Self {
        Self { prints_results, shows_progress, last_reason: None }
    }

    pub(crate) fn observe(&mut self, step: Progress) {
        match step {
            Progress::Started { index, of, check } => {
                let text = format!("{}/{of} {} {}", index + 1, check.kind, preview(&check.command));
                self.show(&text);
            }
            Progress::Output { text, .. } => {
                if let Some(last) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                    self.show(&preview(last));
                }
            }
            Progress::GuardViolated { violations, .. } => {
                stderr_screen().clear_progress();
                violations.iter().for_each(|violation| errln!("warning: {violation}"));
            }
            Progress::Finished { evidence, .. } => {
                stderr_screen().clear_progress();
                if self.prints_results {
                    let lines = describe_result(&self.shorten_reason(evidence));
                    write_screen(|screen| lines.iter().for_each(|line| screen.write_line(line)));
                }
            }
            Progress::Changed { .. } => {}
        }
    }

    /// Shortens the reason why a check didn't run if the previous check had the same reason.
    fn shorten_reason(&mut self, mut evidence: Evidence) -> Evidence {
        if let CheckOutcome::NotRun { reason } = &mut evidence.outcome {
            if self.last_reason.as_ref() == Some(reason) {
                "for the same reason".clone_into(reason);
            } else {
                self.last_reason = Some(reason.clone());
            }
        }
        evidence
    }

    fn show(&self, text: &str) {
        if self.shows_progress {
            stderr_screen().show_progress(Some(&StyledLine::new(Style::Dim, format!("… {text}"))));
        }
    }
}
