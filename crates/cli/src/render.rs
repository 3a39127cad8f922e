//! Progress, as a person follows it.

use std::collections::HashMap;
use std::io::Write as _;

use journeyman_host::event_text::describe_event;
use journeyman_host::format::{preview, printable};
use journeyman_host::styled_text::{Style, StyledLine};
use journeyman_protocol::{CallId, Event};

use crate::color::Paint;

/// Where lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stderr,
    Stdout,
    Nowhere,
}

/// Draws events as lines. Everything from outside is cleaned of control sequences first.
pub(crate) struct Renderer {
    paint: Paint,
    stream: Stream,
    is_mid_line: bool,
    has_streamed: bool,
    /// The prefix of each line where several sessions are shown; nothing is streamed then.
    prefix: Option<String>,
    /// Summaries of the calls that await a decision.
    pending_calls: HashMap<CallId, String>,
}

impl Renderer {
    pub(crate) fn new(paint: Paint, quiet: bool) -> Self {
        let stream = if quiet { Stream::Nowhere } else { Stream::Stderr };
        Self {
            paint,
            stream,
            is_mid_line: false,
            has_streamed: false,
            prefix: None,
            pending_calls: HashMap::new(),
        }
    }

    /// Makes the renderer of one of several sessions that are shown together.
    pub(crate) fn with_number(paint: Paint, quiet: bool, number: u32) -> Self {
        Self { prefix: Some(paint.dim(&format!("[{number}] "))), ..Self::new(paint, quiet) }
    }

    /// Makes a renderer for `jm show`, where the events are the result.
    pub(crate) fn for_stdout(paint: Paint) -> Self {
        Self { stream: Stream::Stdout, ..Self::new(paint, false) }
    }

    /// Shows a line of our own.
    pub(crate) fn show_note(&mut self, text: &str) {
        self.write_line(&StyledLine::new(Style::Warning, text));
    }

    /// Closes an open line.
    pub(crate) fn end_line(&mut self) {
        if self.is_mid_line {
            self.write("\n");
        }
    }

    /// Shows an event.
    pub(crate) fn show_event(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { .. } => self.has_streamed = false,
            Event::TextDelta { text, .. } => {
                self.has_streamed = true;
                self.write_text(&printable(text));
            }
            Event::ThinkingDelta { text, .. } => self.write_text(&self.paint.dim(&printable(text))),
            Event::TurnFinished { text, .. } => {
                if !self.has_streamed && !text.trim().is_empty() {
                    self.write_text(&printable(text));
                }
                self.end_line();
            }
            Event::Done { report } if self.prefix.is_some() => {
                self.write_line(&StyledLine::new(Style::Plain, printable(&report.summary)));
            }
            Event::PermissionRequired { call, summary, .. } => {
                let summary = preview(summary);
                // Where it is asked, the question itself is shown.
                if self.stream == Stream::Stdout {
                    self.write_decision(Style::Warning, "asked:", &summary);
                }
                self.pending_calls.insert(call.clone(), summary);
            }
            Event::PermissionDecided { call, allowed, by, note } => {
                let summary = self.pending_calls.remove(call).unwrap_or_default();
                // Where it was asked, the person has just said so.
                if self.stream == Stream::Stdout || by == "timeout" {
                    let (style, decision) =
                        if *allowed { (Style::Good, "allowed") } else { (Style::Bad, "denied") };
                    let note = note.as_ref().map(|note| format!(" (\"{note}\")")).unwrap_or_default();
                    let by = preview(format_args!("by {by}{note}"));
                    self.write_decision(style, decision, &format!("{by}: {summary}"));
                }
            }
            other => describe_event(other).iter().for_each(|line| self.write_line(line)),
        }
    }

    fn write_decision(&mut self, style: Style, decision: &str, text: &str) {
        let line = StyledLine::new(Style::Plain, "  ").with(style, decision);
        self.write_line(&line.with_text(format!(" {text}")));
    }

    fn write_line(&mut self, line: &StyledLine) {
        self.end_line();
        let prefix = self.prefix.as_deref().unwrap_or_default();
        self.write(&format!("{prefix}{}\n", self.paint.paint_line(line)));
    }

    fn write_text(&mut self, text: &str) {
        // Words of several would run into each other; each has them in its log.
        if self.prefix.is_none() {
            self.write(text);
        }
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.is_mid_line = !text.ends_with('\n');
        // Progress that nobody can see any more must not stop the work.
        match self.stream {
            Stream::Stderr => std::io::stderr().write_all(text.as_bytes()).ok(),
            Stream::Stdout => std::io::stdout().write_all(text.as_bytes()).ok(),
            Stream::Nowhere => None,
        };
    }
}
