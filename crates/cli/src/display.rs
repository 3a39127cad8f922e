//! The form in which a run is shown.

use journeyman_host::HostError;
use journeyman_host::format::printable;
use journeyman_host::renderer::{ProgressDetail, Renderer};
use journeyman_host::report_text::{ShownParts, format_cost, format_diffstat, format_report};
use journeyman_protocol::{Envelope, RunOutcome, RunReport};
use journeyman_terminal::{has_one_reader, stderr_paint, stdout_paint, was_error_shown};
use journeyman_tui::line_prompts::is_attended;

use crate::args::OutputArgs;
use crate::output::{self, print_json_line};

/// The form of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Text for people.
    Text,
    /// One object at the end.
    Json,
    /// One event a line.
    StreamJson,
}

/// The output of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Display {
    pub(crate) output: OutputFormat,
    /// The progress on standard error.
    pub(crate) detail: ProgressDetail,
}

impl Display {
    pub(crate) fn from_options(options: &OutputArgs) -> Self {
        let output = match (options.json, options.stream_json) {
            (true, _) => OutputFormat::Json,
            (_, true) => OutputFormat::StreamJson,
            _ => OutputFormat::Text,
        };
        Self { output, detail: options.detail() }
    }

    /// Returns true if there is no progress on standard error.
    pub(crate) fn is_quiet(self) -> bool {
        self.detail == ProgressDetail::Quiet
    }

    /// Returns true if a person is at the terminal and the output isn't JSON.
    pub(crate) fn is_interactive(self) -> bool {
        self.output == OutputFormat::Text && !self.is_quiet() && is_attended()
    }

    /// Prints the result and returns the exit code.
    pub(crate) fn print_report(self, report: &RunReport) -> Result<u8, HostError> {
        match self.output {
            OutputFormat::Text => {
                let streamed = has_one_reader() && !self.is_quiet();
                print_text_report(report, if streamed { ReplyStreamed::Yes } else { ReplyStreamed::No });
                if report.outcome == RunOutcome::Answered && !self.is_quiet() {
                    errln!("{}", stderr_paint().dim(&format_cost(report)));
                }
            }
            OutputFormat::Json => print_json_line(report)?,
            OutputFormat::StreamJson => {}
        }
        Ok(report.exit_code)
    }

    /// Prints events that were logged after the session's end, unless the report covers them.
    pub(crate) fn show_late_events(self, events: &[Envelope]) -> Result<(), HostError> {
        let has_report = self.output == OutputFormat::Text && has_one_reader();
        let mut renderer = Renderer::new(if has_report { ProgressDetail::Quiet } else { self.detail });
        for envelope in events {
            self.stream_event(envelope)?;
            renderer.show_envelope(envelope);
        }
        Ok(())
    }

    /// Prints an event as a line of JSON, if the output is a stream of events.
    pub(crate) fn stream_event(self, envelope: &Envelope) -> Result<(), HostError> {
        if self.output == OutputFormat::StreamJson { print_json_line(envelope) } else { Ok(()) }
    }
}

/// True if the model's text was already streamed to the same reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyStreamed {
    Yes,
    No,
}

/// Prints the result of a run: the model's text unless it was streamed, the diff, and the checks.
pub(crate) fn print_text_report(report: &RunReport, streamed: ReplyStreamed) {
    let paint = stdout_paint();
    let words = report.text.trim();
    // The output of an agent is an argument of a call, which isn't streamed; a plan has its event.
    let is_output = report.agent.is_some() && report.outcome != RunOutcome::Planned;
    let is_unseen = (streamed == ReplyStreamed::No || is_output) && !words.is_empty();
    if is_unseen {
        output::write_screen(|screen| screen.write_markdown(&printable(words)));
    }
    if report.outcome == RunOutcome::Answered {
        // The answer is the result, so that a script gets nothing else.
        return;
    }
    if is_unseen {
        output::write_stdout("\n");
    }
    output::write_report(&format_diffstat(&report.diffstat, paint));
    if !report.diff.is_empty() {
        output::write_diff(&report.diff);
        output::write_stdout("\n");
    }
    // Nothing that the reader has seen is repeated.
    let has_seen = streamed == ReplyStreamed::Yes;
    let shown =
        ShownParts { summary: has_seen && was_error_shown(&printable(&report.summary)), evidence: has_seen };
    output::write_report(&format_report(report, shown, paint));
}
