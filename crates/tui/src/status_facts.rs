//! The facts of the status line: the model, the mode, the sandbox, tokens, cost, evidence.

use journeyman_protocol::{ContentHash, ContextShare, Event, Mode, RunOutcome, Tokens, Usage, group_digits};

/// The state of the session's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum VerificationState {
    /// Nothing was changed.
    #[default]
    Nothing,
    /// Files were changed since a check passed, or none has.
    Unverified,
    /// A check failed.
    Failing,
    /// The project's checks passed on all changes.
    Verified,
}

impl VerificationState {
    /// Returns the state in a word, for programs.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Unverified => "unverified",
            Self::Failing => "failing",
            Self::Verified => "verified",
        }
    }
}

/// Facts that events tell, beside the conversation itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StatusFacts {
    /// The model, as `provider/name`.
    pub(crate) model: String,
    /// The permission mode.
    pub(crate) mode: Option<Mode>,
    /// The kind of sandbox; `None` if no command may run, or before the first run.
    pub(crate) sandbox: Option<String>,
    /// Tokens of the last request with its reply: so much of the window is used.
    pub(crate) context: Tokens,
    /// Tokens of all runs that ended, and of the one that goes on.
    ended: Usage,
    current: Usage,
    ended_usd: Option<f64>,
    current_usd: Option<f64>,
    /// The state of the session's changes.
    pub(crate) proof: VerificationState,
    /// The tree that checks passed on, if the newest changes are verified.
    pub(crate) verified_tree: Option<ContentHash>,
    /// The parts of the newest first request.
    pub(crate) shares: Vec<ContextShare>,
}

impl StatusFacts {
    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStarted { model, mode, enforcement, .. } => {
                self.model.clone_from(model);
                self.mode = Some(*mode);
                self.sandbox = enforcement.as_ref().map(|enforcement| enforcement.tier.to_string());
                self.ended += std::mem::take(&mut self.current);
                if let Some(usd) = self.current_usd.take() {
                    *self.ended_usd.get_or_insert_default() += usd;
                }
            }
            Event::ContextPacked { tokens, shares, .. } => {
                self.shares.clone_from(shares);
                if self.context.is_zero() {
                    self.context = *tokens;
                }
            }
            Event::ContextCompression { after: Some(after), .. } => self.context = *after,
            Event::TokenUsage { usage, .. } => self.context = usage.total_input() + usage.output,
            Event::Cost { usage, usd } => (self.current, self.current_usd) = (*usage, *usd),
            Event::FileEdited { .. } => self.proof = VerificationState::Unverified,
            Event::VerifyFinished { passed, .. } if self.proof != VerificationState::Nothing => {
                self.proof = if *passed { VerificationState::Verified } else { VerificationState::Failing };
            }
            Event::Done { report } if !report.changes.is_empty() => {
                self.proof = match report.outcome {
                    RunOutcome::Verified => VerificationState::Verified,
                    RunOutcome::ChecksFail => VerificationState::Failing,
                    _ => VerificationState::Unverified,
                };
                self.verified_tree = report.tree.filter(|_| self.proof == VerificationState::Verified);
            }
            _ => {}
        }
    }

    /// Compares the current tree with the verified one: what checks proved holds for no other one.
    pub(crate) fn compare_tree(&mut self, now: ContentHash) {
        if let Some(verified) = self.verified_tree {
            self.proof =
                if now == verified { VerificationState::Verified } else { VerificationState::Unverified };
        }
    }

    /// Returns the tokens of the whole session.
    #[must_use]
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = self.ended;
        usage += self.current;
        usage
    }

    /// Returns the cost of the whole session in US dollars, if the model's price is known.
    #[must_use]
    pub(crate) fn cost_usd(&self) -> Option<f64> {
        match (self.ended_usd, self.current_usd) {
            (None, None) => None,
            (ended, current) => Some(ended.unwrap_or_default() + current.unwrap_or_default()),
        }
    }
}

/// Formats tokens in few columns: `950`, `12k`, `1.2M`.
#[must_use]
pub(crate) fn format_tokens(tokens: Tokens) -> String {
    match tokens.0 {
        few @ ..1_000 => few.to_string(),
        some @ ..1_000_000 => format!("{}k", group_digits(some / 1_000)),
        many => format!("{}.{}M", many / 1_000_000, many % 1_000_000 / 100_000),
    }
}
