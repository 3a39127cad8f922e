//! The input of a whole request, before it is sent.

use std::sync::Arc;

use journeyman_protocol::{Message, TokenCounter as _, Tokens, ToolSpec, Usage};

use super::calibration::{Calibration, LearntRatio};
use super::counter::Counter;

/// The parts of a request that a provider counts.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a, S> {
    /// The texts of the system prompt.
    pub system: &'a [S],
    /// The tools that the model may call.
    pub tools: &'a [ToolSpec],
    /// The conversation.
    pub messages: &'a [Message],
}

/// The counted tokens of a request's parts, without correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestTokens {
    /// The system prompt.
    pub system: Tokens,
    /// The tools' descriptions and schemas.
    pub tools: Tokens,
    /// The conversation.
    pub messages: Tokens,
}

impl RequestTokens {
    /// Returns the tokens of all parts.
    #[must_use]
    pub fn total(&self) -> Tokens {
        self.system + self.tools + self.messages
    }
}

impl Counter {
    /// Counts the parts of a request.
    #[must_use]
    pub fn count_request<S: AsRef<str>>(&self, parts: RequestParts<'_, S>) -> RequestTokens {
        RequestTokens {
            system: parts.system.iter().map(|text| self.count(text.as_ref())).sum(),
            tools: parts.tools.iter().map(|tool| self.count_tool(tool)).sum(),
            messages: parts.messages.iter().map(|message| self.count_message(message)).sum(),
        }
    }
}

/// Predicts the input of a session's requests.
#[derive(Debug)]
pub struct RequestCounter {
    counter: Arc<Counter>,
    calibration: Calibration,
}

impl RequestCounter {
    /// Creates a counter for a session that has sent nothing yet.
    #[must_use]
    pub fn new(counter: Arc<Counter>, calibration: Calibration) -> Self {
        Self { counter, calibration }
    }

    /// Returns the counter of texts, whose counts aren't corrected.
    #[must_use]
    pub fn counter(&self) -> &Arc<Counter> {
        &self.counter
    }

    /// Returns the input that a provider will report for a request, on the safe side, from the
    /// total of [`Counter::count_request`].
    #[must_use]
    pub fn predict(&self, counted: Tokens) -> Tokens {
        self.calibration.predict(counted)
    }

    /// Returns the most likely input of a request, from the same total.
    #[must_use]
    pub fn estimate(&self, counted: Tokens) -> Tokens {
        self.calibration.estimate(counted)
    }

    /// Learns from what the provider reported for a request that was counted like this. Estimated
    /// usage teaches nothing.
    pub fn observe(&mut self, counted: Tokens, usage: &Usage) {
        if usage.estimated.is_zero() {
            self.calibration.observe(counted, usage.total_input());
        }
    }

    /// Begins with what an earlier session with the same model learnt.
    pub fn apply_learnt_ratio(&mut self, learnt: LearntRatio) {
        self.calibration = self.calibration.clone().with_learnt_ratio(learnt);
    }

    /// Returns what the session learnt so far; `None` before the first report.
    #[must_use]
    pub fn learnt_ratio(&self) -> Option<LearntRatio> {
        self.calibration.learnt_ratio()
    }
}
