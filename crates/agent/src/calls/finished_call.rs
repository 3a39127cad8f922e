//! The result of a call.

use journeyman_policy::secrets::{SECRET_MASK, mask_settings};
use journeyman_protocol::{CallState, EditDiff, FileChange, GuardViolation, ResultPart, Verdict};
use journeyman_tools::ForeignUsage;

/// The state in which a call ended, and its result for the model.
pub(crate) struct FinishedCall {
    pub(crate) state: CallState,
    pub(crate) parts: Vec<ResultPart>,
    pub(crate) note: Option<String>,
    /// The author of a refusal, if there is one.
    pub(crate) by: Option<String>,
    /// Policy's verdict, if it refused the call.
    pub(crate) verdict: Option<Verdict>,
    pub(crate) changes: Vec<FileChange>,
    /// The lines that differ in the file that the call replaced.
    pub(crate) diff: Option<EditDiff>,
    pub(crate) violations: Vec<GuardViolation>,
    pub(crate) duration_ms: u64,
    /// Number of lines that the command of the call printed.
    pub(crate) output_lines: Option<u64>,
    /// The use of a model that isn't the session's.
    pub(crate) foreign_usage: Option<ForeignUsage>,
    /// True if the call was aborted because it did not end by itself.
    pub(crate) abandoned: bool,
}

impl FinishedCall {
    /// Creates the result of a call that did not run, or that ended without output.
    pub(crate) fn without_output(state: CallState, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            state,
            parts: vec![ResultPart::Text { text: text.clone() }],
            note: Some(text),
            by: None,
            verdict: None,
            changes: Vec::new(),
            diff: None,
            violations: Vec::new(),
            duration_ms: 0,
            output_lines: None,
            foreign_usage: None,
            abandoned: false,
        }
    }

    /// Creates the result of a call that ran.
    pub(crate) fn with_output(state: CallState, parts: Vec<ResultPart>, changes: Vec<FileChange>) -> Self {
        Self { state, parts, changes, note: None, ..Self::without_output(state, "") }
    }

    /// Creates the result of a denied call.
    pub(crate) fn denied(text: impl Into<String>, by: &str) -> Self {
        Self { by: Some(by.to_owned()), ..Self::without_output(CallState::Denied, text) }
    }

    /// Adds notes for the model.
    pub(crate) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.parts.extend(notes.into_iter().map(|text| ResultPart::Text { text }));
        self
    }

    /// Creates the result of a call that did not run because the user stopped the task.
    pub(crate) fn interrupted() -> Self {
        Self::without_output(CallState::Interrupted, "not run: interrupted by the user")
    }

    /// Masks the secrets of files of settings in every text: in lines of such a file, and these
    /// values wherever they are quoted, as in the reason why an edit is refused.
    pub(crate) fn mask_settings(&mut self, values: &[String]) {
        let parts = self.parts.iter_mut().filter_map(|part| match part {
            ResultPart::Text { text } => Some(text),
            ResultPart::Image(_) => None,
        });
        let diff = self.diff.iter_mut().map(|diff| &mut diff.text);
        for text in parts.chain(&mut self.note).chain(diff) {
            let masked = mask_settings(text).into_owned();
            *text = values.iter().fold(masked, |text, value| text.replace(value, SECRET_MASK));
        }
    }

    /// Returns the result as text.
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

    /// Marks the call as failed or completed, such as by a hook. Denied and interrupted calls keep
    /// their state.
    pub(crate) fn set_error(&mut self, is_error: bool) {
        match (self.state, is_error) {
            (CallState::Completed, true) => self.state = CallState::Failed,
            (CallState::Failed, false) => self.state = CallState::Completed,
            _ => {}
        }
    }

    /// Returns true if the result is an error for the model.
    pub(crate) fn is_error(&self) -> bool {
        self.state != CallState::Completed
    }
}
