//! Draws a session's events as lines on a terminal.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use journeyman_protocol::{CallId, CallState, Envelope, Event};
use journeyman_terminal::{Activity, Screen, Style, StyledLine, stderr_screen, stdout_screen};

use crate::event_text::{describe_event, describe_output};
use crate::format::{format_count, preview, printable};

/// Shortest time between two drawings of the progress line.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of files that are listed as edited by one call.
const MAX_LISTED_EDITS: usize = 8;

/// Maximum number of events held back while a question is open.
const MAX_HELD_EVENTS: usize = 1_000;

/// The stream that lines are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputTarget {
    Stderr,
    Stdout,
    Nowhere,
}

/// The amount of progress that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressDetail {
    /// Nothing.
    Quiet,
    /// Each step; the output of a command only where it failed.
    Normal,
    /// The beginning and the end of every command's output too.
    Verbose,
}

/// Draws events as lines. Everything from outside is cleaned of control sequences first.
pub struct Renderer {
    stream: OutputTarget,
    /// True if the output of commands that succeeded is shown.
    shows_output: bool,
    has_streamed: bool,
    /// The prefix of each line where several sessions are shown; nothing is streamed then.
    prefix: Option<String>,
    /// Summaries of the calls that await a decision.
    pending_calls: HashMap<CallId, String>,
    /// Summaries of the calls that run.
    open_calls: HashMap<CallId, String>,
    /// The call that was shown last.
    newest_call: Option<CallId>,
    /// The activity of the session, where a progress line is shown.
    activity: Option<Activity>,
    drawn_at: Instant,
    /// Number of edited files that were shown one after the other.
    edits: usize,
    /// The lines about the copy, until something happens in it.
    copy_lines: Vec<StyledLine>,
    /// The events that are shown when a person has answered; `None` while nobody is asked.
    held: Option<HeldEvents>,
}

/// Events that came while a person was asked.
#[derive(Default)]
struct HeldEvents {
    events: Vec<Envelope>,
    /// The number of those beyond [`MAX_HELD_EVENTS`].
    dropped: usize,
}

impl Renderer {
    /// Makes the renderer of a session for standard error.
    #[must_use]
    pub fn new(detail: ProgressDetail) -> Self {
        let stream =
            if detail == ProgressDetail::Quiet { OutputTarget::Nowhere } else { OutputTarget::Stderr };
        let now = Instant::now();
        let activity = (stream == OutputTarget::Stderr).then(|| Activity::new(now));
        Self {
            stream,
            shows_output: detail == ProgressDetail::Verbose,
            has_streamed: false,
            prefix: None,
            pending_calls: HashMap::new(),
            open_calls: HashMap::new(),
            newest_call: None,
            activity,
            drawn_at: now,
            edits: 0,
            copy_lines: Vec::new(),
            held: None,
        }
    }

    /// Makes the renderer of one of several sessions that are shown together.
    #[must_use]
    pub fn with_number(detail: ProgressDetail, number: u32) -> Self {
        Self { prefix: Some(format!("[{number}] ")), activity: None, ..Self::new(detail) }
    }

    /// Makes a renderer for `jm show`, where the events are the result.
    #[must_use]
    pub fn for_stdout() -> Self {
        Self { stream: OutputTarget::Stdout, activity: None, ..Self::new(ProgressDetail::Verbose) }
    }

    /// Shows a note that is no event.
    pub fn show_note(&mut self, text: &str) {
        self.write_line(&StyledLine::new(Style::Warning, text));
    }

    /// Closes an open line.
    pub fn end_line(&mut self) {
        self.with_screen(Screen::end_line);
    }

    /// Waits until the progress line changes, and draws it. Pending forever without activity.
    /// Cancel-safe.
    pub async fn redraw_progress(&mut self) {
        if self.held.is_some() {
            return std::future::pending().await;
        }
        match self.activity.as_mut().and_then(|activity| activity.next_change(Instant::now())) {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
        self.draw_progress(Instant::now());
    }

    fn draw_progress(&mut self, now: Instant) {
        if let Some(activity) = &self.activity {
            let line = activity.line(now);
            self.with_screen(|screen| screen.show_progress(line.as_ref()));
            self.drawn_at = now;
        }
    }

    /// Holds events and the progress line back while `is_asking`, so that nothing is written over
    /// an open question. Afterwards the events are shown.
    pub fn set_events_held(&mut self, is_asking: bool) {
        if is_asking {
            self.held.get_or_insert_default();
        } else if let Some(HeldEvents { events, dropped }) = self.held.take() {
            events.iter().for_each(|envelope| self.show_envelope(envelope));
            if dropped > 0 {
                self.show_note(&format!("… and {} meanwhile", format_count(dropped, "more event")));
            }
        }
    }

    /// Shows an event of the session, or of one of its agents.
    pub fn show_envelope(&mut self, envelope: &Envelope) {
        if let Some(held) = &mut self.held {
            let is_of_use = envelope.agent.is_empty()
                || is_question_or_answer(&envelope.event)
                || is_shown_for_agents(&envelope.event);
            match held.events.len() < MAX_HELD_EVENTS {
                true if is_of_use => held.events.push(envelope.clone()),
                true => {}
                false => held.dropped += usize::from(is_of_use),
            }
            return;
        }
        match envelope.agent.as_slice() {
            [] => self.show_event(&envelope.event),
            path => self.show_agent_event(path, &envelope.event),
        }
    }

    /// Shows an agent's calls, failed or denied calls, questions and problems.
    fn show_agent_event(&mut self, path: &[String], event: &Event) {
        match event {
            event if is_question_or_answer(event) => self.write_event(event),
            event if is_shown_for_agents(event) => {
                for line in describe_event(event) {
                    let mut whole = StyledLine::new(Style::Dim, format!("  {} │ ", path.join(" › ")));
                    whole.spans.extend(line.spans);
                    self.write_line(&whole);
                }
            }
            _ => {}
        }
    }

    /// Shows an event, and the progress line below it.
    pub fn show_event(&mut self, event: &Event) {
        self.write_event(event);
        let now = Instant::now();
        if let Some(activity) = &mut self.activity {
            activity.handle_event(event, now);
            if now.saturating_duration_since(self.drawn_at) >= DRAW_INTERVAL {
                self.draw_progress(now);
            }
        }
    }

    fn write_event(&mut self, event: &Event) {
        if matches!(event, Event::FileEdited { .. }) {
            self.edits += 1;
            if self.edits > MAX_LISTED_EDITS {
                return;
            }
        } else if let Some(more) = std::mem::take(&mut self.edits).checked_sub(MAX_LISTED_EDITS)
            && more > 0
        {
            let text = format!("  … and {}", format_count(more, "more file"));
            self.write_line(&StyledLine::new(Style::Dim, text));
        }
        if matches!(
            event,
            Event::ToolStart { .. }
                | Event::PermissionRequired { .. }
                | Event::VerifyStarted { .. }
                | Event::CopyRefreshed { .. }
        ) {
            std::mem::take(&mut self.copy_lines).iter().for_each(|line| self.write_line(line));
        }
        match event {
            // An answer without a call needs no word about the copy.
            Event::Isolated { .. } if self.stream == OutputTarget::Stderr && self.prefix.is_none() => {
                self.copy_lines = describe_event(event);
            }
            Event::TurnStarted { .. } => self.has_streamed = false,
            Event::TextDelta { text, .. } => {
                self.has_streamed = true;
                self.write_model_text(&printable(text), Screen::push_markdown);
            }
            Event::ThinkingDelta { text, .. } => self.write_model_text(&printable(text), Screen::push_dim),
            Event::TextEnd { .. } | Event::ThinkingEnd { .. } => self.with_screen(Screen::end_prose),
            Event::TurnFinished { text, .. } => {
                if !self.has_streamed && !text.trim().is_empty() {
                    self.write_model_text(&printable(text), Screen::push_markdown);
                }
                self.end_line();
                describe_event(event).iter().for_each(|line| self.write_line(line));
            }
            Event::Done { report } if self.prefix.is_some() => {
                self.write_line(&StyledLine::new(Style::Plain, printable(&report.summary)));
            }
            Event::PermissionRequired { call, summary, .. } => {
                let summary = preview(summary);
                // Where it is asked, the question itself is shown.
                if self.stream == OutputTarget::Stdout {
                    self.write_decision(Style::Warning, "asked:", &summary);
                }
                self.pending_calls.insert(call.clone(), summary);
            }
            Event::PermissionDecided { call, allowed, by, note } => {
                let summary = self.pending_calls.remove(call).unwrap_or_default();
                // Where it was asked, the person has just said so.
                if self.stream == OutputTarget::Stdout || by == "timeout" {
                    let (style, decision) =
                        if *allowed { (Style::Good, "allowed") } else { (Style::Bad, "denied") };
                    let note = note.as_ref().map(|note| format!(" (\"{note}\")")).unwrap_or_default();
                    let by = preview(format_args!("by {by}{note}"));
                    self.write_decision(style, decision, &format!("{by}: {summary}"));
                }
            }
            other => {
                let output = describe_output(other).filter(|_| self.shows_output);
                let mut lines = output.unwrap_or_else(|| describe_event(other));
                self.label_call_lines(other, &mut lines);
                lines.iter().for_each(|line| self.write_line(line));
                if let Event::Error { message, .. } = other {
                    self.with_screen(|screen| screen.note_error(&printable(message)));
                }
            }
        }
    }

    /// Adds the call's summary to its result line if another call started since.
    fn label_call_lines(&mut self, event: &Event, lines: &mut [StyledLine]) {
        match event {
            Event::ToolStart { call, summary, .. } => {
                self.newest_call = Some(call.clone());
                self.open_calls.insert(call.clone(), preview(summary));
            }
            Event::ToolEnd { call, .. } => {
                let label = self.open_calls.remove(call);
                if let (Some(label), Some(first)) = (label, lines.first_mut())
                    && self.newest_call.as_ref() != Some(call)
                {
                    first.push(Style::Dim, &format!("  ({label})"));
                }
            }
            _ => {}
        }
    }

    fn write_decision(&mut self, style: Style, decision: &str, text: &str) {
        let line = StyledLine::new(Style::Plain, "  ").with(style, decision);
        self.write_line(&line.with_text(format!(" {text}")));
    }

    fn write_line(&self, line: &StyledLine) {
        let mut whole = StyledLine::default();
        whole.push(Style::Dim, self.prefix.as_deref().unwrap_or_default());
        whole.spans.extend(line.spans.iter().cloned());
        self.with_screen(|screen| screen.write_line(&whole));
    }

    /// Writes a piece of the model's words.
    fn write_model_text(&self, text: &str, write: fn(&mut Screen, &str)) {
        // Words of several would run into each other; each has them in its log.
        if self.prefix.is_none() {
            self.with_screen(|screen| write(screen, text));
        }
    }

    fn with_screen(&self, draw: impl FnOnce(&mut Screen)) {
        match self.stream {
            OutputTarget::Stderr => draw(&mut stderr_screen()),
            OutputTarget::Stdout => draw(&mut stdout_screen()),
            OutputTarget::Nowhere => {}
        }
    }
}

/// Returns true for an agent's event that is shown in the parent's output.
fn is_shown_for_agents(event: &Event) -> bool {
    match event {
        Event::ToolEnd { state, .. } => *state != CallState::Completed,
        Event::ToolStart { .. }
        | Event::FileEdited { .. }
        | Event::AgentStarted { .. }
        | Event::AgentFinished { .. }
        | Event::Warning { .. }
        | Event::Error { .. } => true,
        _ => false,
    }
}

/// Returns true for a question about a call, and for its answer.
fn is_question_or_answer(event: &Event) -> bool {
    matches!(event, Event::PermissionRequired { .. } | Event::PermissionDecided { .. })
}
