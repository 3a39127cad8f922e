//! The limits of a model, and how its tokens are counted.

use std::fmt;
use std::path::PathBuf;

use crate::{Tokens, group_digits};

/// The limits of a model, and how its tokens are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelLimits {
    /// The context window: input and output of one request together.
    pub window: Tokens,
    /// Maximum input of one request, if the provider limits it further than the window does.
    pub max_input: Option<Tokens>,
    /// Maximum output of one reply, including thinking, if it is known.
    pub max_output: Option<Tokens>,
    /// The way to count the tokens of texts.
    pub tokenizer: Tokenizer,
    /// The way to count the tokens of images.
    pub images: ImageTokens,
    /// The source of `window`.
    pub source: LimitSource,
}

impl ModelLimits {
    /// The assumed window of a hosted model that nothing is known of. The smallest windows of
    /// hosted models that call tools have 32,768 tokens.
    pub const DEFAULT_HOSTED_WINDOW: Tokens = Tokens(32_768);
    /// The assumed window of an unknown model on this machine, where a window costs memory.
    pub const DEFAULT_LOCAL_WINDOW: Tokens = Tokens(8_192);
    /// The smallest window that a session works with. Smaller numbers are mistakes.
    pub const MIN_WINDOW: Tokens = Tokens(1_024);
    /// The largest window that a server is believed to have.
    pub const MAX_WINDOW: Tokens = Tokens(100_000_000);

    /// Returns conservative limits for an unknown model.
    #[must_use]
    pub fn conservative_default(is_local: bool) -> Self {
        Self {
            window: if is_local { Self::DEFAULT_LOCAL_WINDOW } else { Self::DEFAULT_HOSTED_WINDOW },
            max_input: None,
            max_output: None,
            tokenizer: Tokenizer::default(),
            images: ImageTokens::default(),
            source: LimitSource::Default,
        }
    }

    /// Returns the maximum input of a request whose reply may have up to `reply` tokens.
    #[must_use]
    pub fn input_limit(&self, reply: Tokens) -> Tokens {
        let reply = self.max_output.map_or(reply, |most| most.min(reply));
        let beside_reply = Tokens(self.window.0.saturating_sub(reply.0));
        self.max_input.map_or(beside_reply, |most| most.min(beside_reply))
    }

    /// Sets the window to what `source` says. The further limits are lowered to the window, never
    /// raised. Numbers that no model has are ignored.
    pub fn set_window(&mut self, window: Tokens, source: LimitSource) {
        if !(Self::MIN_WINDOW..=Self::MAX_WINDOW).contains(&window) {
            return;
        }
        self.window = window;
        self.max_input = self.max_input.filter(|most| *most < window);
        self.max_output = self.max_output.map(|most| most.min(window));
        self.source = source;
    }
}

impl fmt::Display for ModelLimits {
    /// Writes `128,000 tokens (built-in table), replies up to 16,384, counted with o200k`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens ({})", group_digits(self.window.0), self.source)?;
        if let Some(most) = self.max_input {
            write!(f, ", input up to {}", group_digits(most.0))?;
        }
        if let Some(most) = self.max_output {
            write!(f, ", replies up to {}", group_digits(most.0))?;
        }
        write!(f, ", {}", self.tokenizer)
    }
}

/// The source of a model's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSource {
    /// The built-in table.
    Table,
    /// The user's configuration.
    Configured,
    /// The server.
    Server,
    /// The provider's refusal of a request that was too long.
    Refusal,
    /// Nothing: a careful assumption.
    Default,
}

impl LimitSource {
    /// Returns true if the server may report a more accurate limit.
    #[must_use]
    pub fn is_provisional(self) -> bool {
        matches!(self, Self::Server | Self::Default)
    }
}

impl fmt::Display for LimitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "built-in table",
            Self::Configured => "configuration",
            Self::Server => "from the server",
            Self::Refusal => "from a refusal",
            Self::Default => "assumed",
        })
    }
}

/// The way to count the tokens of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tokenizer {
    /// OpenAI's vocabulary since GPT-4o.
    O200k,
    /// OpenAI's vocabulary of GPT-4 and GPT-3.5.
    Cl100k,
    /// An estimate from the text.
    Estimate {
        /// The model's tokens for a hundred of `o200k`, on average.
        percent: u16,
    },
    /// A `tokenizer.json`.
    File(PathBuf),
}

impl Default for Tokenizer {
    /// An estimate for an unknown vocabulary: a fifth more than `o200k`, which is among the largest
    /// vocabularies.
    fn default() -> Self {
        Self::Estimate { percent: 120 }
    }
}

impl Tokenizer {
    /// Returns true if counts are exact, except for tokens that a provider adds.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !matches!(self, Self::Estimate { .. })
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::O200k => f.write_str("counted with o200k"),
            Self::Cl100k => f.write_str("counted with cl100k"),
            Self::Estimate { .. } => f.write_str("tokens estimated"),
            Self::File(path) => write!(f, "counted with {}", path.display()),
        }
    }
}

/// A way to count the tokens of an image from its width and height, as the vendors publish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageTokens {
    /// The way isn't known: a count on the safe side.
    #[default]
    Unknown,
    /// Squares of 512 pixels after scaling (OpenAI until GPT-5).
    Tiles {
        /// Tokens of any image.
        base: u32,
        /// Tokens of each square.
        tile: u32,
    },
    /// Squares of `side` pixels (Anthropic, and OpenAI since GPT-5).
    Patches {
        /// The side of a square, in pixels.
        side: u32,
        /// The longest edge, in pixels; a larger image is scaled down.
        max_edge: u32,
        /// Maximum number of squares; an image of more is scaled down.
        max_patches: u32,
        /// Tokens of a hundred squares.
        percent: u32,
    },
    /// Squares of 768 pixels, without scaling (Gemini until 2.5).
    Crops {
        /// Tokens of each square, and of a small image.
        crop: u32,
    },
    /// The same for each image (Gemini since 3).
    Fixed(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_and_the_input_share_the_window() {
        let limits = ModelLimits {
            window: Tokens(400_000),
            max_input: Some(Tokens(272_000)),
            max_output: Some(Tokens(128_000)),
            ..ModelLimits::conservative_default(false)
        };
        for (reply, input) in [(0, 272_000), (80_000, 272_000), (128_000, 272_000), (999_999, 272_000)] {
            assert_eq!(limits.input_limit(Tokens(reply)), Tokens(input), "{reply}");
        }
        let local = ModelLimits::conservative_default(true);
        assert_eq!(local.input_limit(Tokens(2_000)), Tokens(6_192));
        assert_eq!(local.input_limit(Tokens(u64::MAX)), Tokens(0));
    }

    #[test]
    fn a_new_window_bounds_the_other_limits_and_absurd_ones_are_ignored() {
        let mut limits = ModelLimits {
            max_input: Some(Tokens(30_000)),
            max_output: Some(Tokens(16_000)),
            ..ModelLimits::conservative_default(false)
        };
        for absurd in [0, 1_000, 100_000_001, u64::MAX] {
            limits.set_window(Tokens(absurd), LimitSource::Server);
            assert_eq!((limits.window, limits.source), (Tokens(32_768), LimitSource::Default));
        }
        limits.set_window(Tokens(8_000), LimitSource::Refusal);
        assert_eq!(limits.window, Tokens(8_000));
        assert_eq!((limits.max_input, limits.max_output), (None, Some(Tokens(8_000))));
        assert_eq!(
            limits.to_string(),
            "8,000 tokens (from a refusal), replies up to 8,000, tokens estimated"
        );
    }
}
