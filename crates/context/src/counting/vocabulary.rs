//! The public vocabularies, which are built in and unpacked at the first use.

use std::sync::Arc;

use journeyman_protocol::{TokenCounter, Tokenizer, Tokens};

use crate::TokenEstimator;

/// A way to count the tokens of a text.
pub(super) enum Vocabulary {
    /// A vocabulary that is built in, by its name in the `tiktoken` crate.
    BuiltIn(&'static str),
    /// An estimate, in hundredths of [`Estimate`].
    Estimated(u64),
    /// The caller's.
    Given(Arc<dyn TokenCounter>),
}

impl Vocabulary {
    /// Returns the vocabulary of a tokenizer; an estimate for a file.
    pub(super) fn for_tokenizer(tokenizer: &Tokenizer) -> Self {
        match tokenizer {
            Tokenizer::O200k => Self::BuiltIn("o200k_base"),
            Tokenizer::Cl100k => Self::BuiltIn("cl100k_base"),
            Tokenizer::Estimate { percent } => Self::Estimated(u64::from(*percent)),
            Tokenizer::File(_) => Self::for_tokenizer(&Tokenizer::default()),
        }
    }

    pub(super) fn count(&self, text: &str) -> u64 {
        match self {
            // Texts may contain the names of special tokens; a provider counts them as text.
            Self::BuiltIn(name) => match tiktoken::get_encoding(name) {
                Some(encoding) => encoding.count(text) as u64,
                None => TokenEstimator.count(text).0,
            },
            Self::Estimated(percent) => {
                let Tokens(tokens) = TokenEstimator.count(text);
                tokens.saturating_mul(*percent).div_ceil(100)
            }
            Self::Given(counter) => counter.count(text).0,
        }
    }
}
