//! Token counts, the usage of a reply, and stop reasons.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of tokens in the vocabulary of some model.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// Returns true if the number is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts or estimates the tokens of a text; the implementation documents which.
pub trait TokenCounter: Send + Sync {
    /// Returns the number of tokens of `text`.
    fn count(&self, text: &str) -> Tokens;
}

/// The tokens that a model reply used. The first four fields are disjoint: their sum is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input tokens neither read from nor written to a cache.
    pub input: Tokens,
    /// Input tokens read from the provider's cache.
    pub cache_read: Tokens,
    /// Input tokens written to the provider's cache.
    pub cache_write: Tokens,
    /// Output tokens, including thinking.
    pub output: Tokens,
    /// Thinking tokens within `output`, if the provider reports them.
    pub thinking: Tokens,
    /// Tokens within `input` and `output` that are estimated from the text, because the reply was
    /// cut off before the provider reported its usage.
    #[serde(skip_serializing_if = "Tokens::is_zero")]
    pub estimated: Tokens,
}

impl Usage {
    /// Returns the number of all input tokens, cached or not.
    #[must_use]
    pub fn total_input(&self) -> Tokens {
        self.input + self.cache_read + self.cache_write
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.thinking += other.thinking;
        self.estimated += other.estimated;
    }
}

/// The reason for which a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished its message.
    EndTurn,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The output reached the token limit.
    MaxTokens,
    /// The output reached a stop sequence.
    StopSequence,
    /// The model or the provider's filter declined.
    Refusal,
    /// The provider paused a long turn, which continues when it is sent back.
    Paused,
    /// The session cut the reply off: a person stopped the run, or its time ran out.
    Cancelled,
    /// The provider or the connection failed in the middle of the reply.
    Error,
    /// The session cut the reply off, because it repeated the same text again and again.
    Repetition,
    /// A reason that this version does not know, in the provider's word.
    Other(String),
}

impl StopReason {
    /// Returns true if the message was cut off before its end.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(self, Self::MaxTokens | Self::Cancelled | Self::Error | Self::Repetition)
    }
}
