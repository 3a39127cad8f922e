//! Tokens, usage and stop reasons.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of tokens of some model.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);

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

/// Counts the tokens of a text, or estimates them; the implementer says which.
pub trait TokenCounter: Send + Sync {
    /// How many tokens `text` costs.
    fn count(&self, text: &str) -> Tokens;
}

/// What one model reply cost. The four kinds are disjoint: they add up to what is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input read afresh (neither from nor into a cache).
    pub input: Tokens,
    /// Input read from the provider's cache.
    pub cache_read: Tokens,
    /// Input written into the provider's cache.
    pub cache_write: Tokens,
    /// Output, thinking included.
    pub output: Tokens,
    /// How much of `output` was thinking, where the provider says.
    pub thinking: Tokens,
}

impl Usage {
    /// All input tokens, whatever their price.
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
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said what it had to say.
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// The output limit cut it off.
    MaxTokens,
    /// It met a stop sequence.
    StopSequence,
    /// It, or its provider's filter, declined.
    Refusal,
    /// The provider paused a long turn and wants it sent back to go on.
    Paused,
    /// Something this version doesn't know; the provider's own word.
    Other(String),
}
