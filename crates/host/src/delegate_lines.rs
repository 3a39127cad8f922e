//! Draws the events of another coding CLI as lines on a terminal.

use std::fmt;
use std::io::{self, IsTerminal as _};

use journeyman_delegate::DelegateEvent;
use journeyman_terminal::stderr_screen;

use crate::format::{preview, printable};

/// Shows the events of a CLI that runs without a session, on standard error.
#[derive(Debug, Default)]
pub struct DelegateLines {
    /// The text that was shown since the last line of another kind, without an end of its line.
    text: String,
}

impl DelegateLines {
    /// Shows an event. Events that only a session needs are left out.
    pub fn show_event(&mut self, event: &DelegateEvent) {
        match event {
            DelegateEvent::Text(text) => {
                stderr_screen().write_wrapped(&printable(text));
                self.text.push_str(text);
            }
            DelegateEvent::ToolStart { tool, summary, .. } => {
                self.show_line(format_args!("• {tool} {summary}"));
            }
            DelegateEvent::ToolEnd { failed: true, output, .. } => {
                self.show_line(format_args!("  failed: {}", preview(output.trim_start())));
            }
            DelegateEvent::Warning(text) => self.show_line(format_args!("! {text}")),
            _ => {}
        }
    }

    /// Ends the open line. Returns true if `message` was just shown on a terminal that standard
    /// output leads to as well, so that it needn't be printed again.
    #[must_use]
    pub fn finish(self, message: &str) -> bool {
        self.end_line();
        let message = message.trim();
        let has_terminals = io::stdout().is_terminal() && io::stderr().is_terminal();
        has_terminals && !message.is_empty() && self.text.trim_end().ends_with(message)
    }

    fn show_line(&mut self, line: fmt::Arguments<'_>) {
        self.end_line();
        self.text.clear();
        stderr_screen().write_wrapped(&format!("{}\n", printable(&line)));
    }

    fn end_line(&self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            stderr_screen().write_wrapped("\n");
        }
    }
}
