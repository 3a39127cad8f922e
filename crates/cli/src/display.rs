//! The form in which a run is shown.

use std::io::IsTerminal as _;

use journeyman_host::HostError;
use journeyman_protocol::{Envelope, RunReport};

use crate::args::RunOptions;
use crate::output::{self, print_json_line};
use crate::render::Renderer;
use crate::summary;
use crate::summary::Streamed;

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
    /// No progress on standard error.
    pub(crate) is_quiet: bool,
}

impl Display {
    pub(crate) fn from_options(options: &RunOptions) -> Self {
        let output = match (options.json, options.stream_json) {
            (true, _) => OutputFormat::Json,
            (_, true) => OutputFormat::StreamJson,
            _ => OutputFormat::Text,
        };
        Self { output, is_quiet: options.quiet }
    }

    /// Returns true if a person is at the terminal and didn't ask for output that a program reads.
    pub(crate) fn is_interactive(self) -> bool {
        self.output == OutputFormat::Text && !self.is_quiet && is_attended()
    }

    /// Prints the result and returns the exit code.
    pub(crate) fn print_report(self, report: &RunReport) -> Result<u8, HostError> {
        match self.output {
            OutputFormat::Text => {
                let streamed = output::has_one_reader() && !self.is_quiet;
                summary::print_report(report, if streamed { Streamed::Yes } else { Streamed::No });
            }
            OutputFormat::Json => print_json_line(report)?,
            OutputFormat::StreamJson => {}
        }
        Ok(report.exit_code)
    }

    /// Shows events that were written into a session's log after its end.
    pub(crate) fn show_late_events(self, events: &[Envelope]) -> Result<(), HostError> {
        let mut renderer = Renderer::new(self.is_quiet);
        for envelope in events {
            self.stream_event(envelope)?;
            renderer.show_event(&envelope.event);
        }
        Ok(())
    }

    /// Prints an event as a line of JSON, if the output is a stream of events.
    pub(crate) fn stream_event(self, envelope: &Envelope) -> Result<(), HostError> {
        if self.output == OutputFormat::StreamJson { print_json_line(envelope) } else { Ok(()) }
    }
}

/// Returns true if a person is at the terminal.
pub(crate) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}
