//! A call's one result.

use journeyman_protocol::{CallState, FileChange, GuardViolation, ResultPart, Verdict};

/// How a call ended, and what the model is told.
pub(crate) struct Finished {
    pub(crate) state: CallState,
    pub(crate) parts: Vec<ResultPart>,
    pub(crate) note: Option<String>,
    /// Who refused it, where somebody did.
    pub(crate) by: Option<String>,
    /// What policy said, where it refused.
    pub(crate) verdict: Option<Verdict>,
    pub(crate) changes: Vec<FileChange>,
    pub(crate) violations: Vec<GuardViolation>,
    pub(crate) duration_ms: u64,
    /// Whether it was ended without having come to an end of its own.
    pub(crate) abandoned: bool,
}

impl Finished {
    /// It did not run.
    pub(crate) fn refused(state: CallState, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            state,
            parts: vec![ResultPart::Text { text: text.clone() }],
            note: Some(text),
            by: None,
            verdict: None,
            changes: Vec::new(),
            violations: Vec::new(),
            duration_ms: 0,
            abandoned: false,
        }
    }

    /// It ran: its result says how, and nothing else needs to.
    pub(crate) fn ran(state: CallState, parts: Vec<ResultPart>, changes: Vec<FileChange>) -> Self {
        Self { state, parts, changes, note: None, ..Self::refused(state, "") }
    }

    /// Somebody said no.
    pub(crate) fn denied(text: impl Into<String>, by: &str) -> Self {
        Self { by: Some(by.to_owned()), ..Self::refused(CallState::Denied, text) }
    }

    /// With what else the model is told.
    pub(crate) fn saying(mut self, notes: Vec<String>) -> Self {
        self.parts.extend(notes.into_iter().map(|text| ResultPart::Text { text }));
        self
    }

    /// It did not run because the user stopped the task.
    pub(crate) fn interrupted() -> Self {
        Self::refused(CallState::Interrupted, "not run: interrupted by the user")
    }

    /// What the model is told, as text.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .map(|part| match part {
                ResultPart::Text { text } => text.as_str(),
                ResultPart::Image(_) => "[image]",
            })
            .collect();
        texts.join("\n")
    }

    /// A hook takes it for a failure, or for none. One that was cut off or refused stays that.
    pub(crate) fn mark(&mut self, is_error: bool) {
        match (self.state, is_error) {
            (CallState::Completed, true) => self.state = CallState::Failed,
            (CallState::Failed, false) => self.state = CallState::Completed,
            _ => {}
        }
    }

    /// Whether the model is told of a failure.
    pub(crate) fn is_error(&self) -> bool {
        self.state != CallState::Completed
    }
}
