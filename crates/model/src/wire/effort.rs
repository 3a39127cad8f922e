//! How much to think: between words and budgets.

use crate::{Effort, Thinking};

/// Budgets for the three words: those that Google documents for its own OpenAI-compatible endpoint
/// (`reasoning_effort` of Gemini 2.5), the only published table of the kind.
const LOW: u32 = 1_024;
const MEDIUM: u32 = 8_192;
const HIGH: u32 = 24_576;

/// The budget in tokens.
pub(super) fn budget(thinking: Thinking) -> u32 {
    match thinking {
        Thinking::Budget(tokens) => tokens,
        Thinking::Effort(Effort::Low) => LOW,
        Thinking::Effort(Effort::Medium) => MEDIUM,
        Thinking::Effort(Effort::High) => HIGH,
    }
}

/// The word, as OpenAI, Anthropic and Gemini all write it. A budget gets the word whose budget is the
/// least that isn't smaller.
pub(super) fn word(thinking: Thinking) -> &'static str {
    match thinking {
        Thinking::Effort(Effort::Low) => "low",
        Thinking::Effort(Effort::Medium) => "medium",
        Thinking::Effort(Effort::High) => "high",
        Thinking::Budget(tokens) if tokens <= LOW => "low",
        Thinking::Budget(tokens) if tokens <= MEDIUM => "medium",
        Thinking::Budget(_) => "high",
    }
}

/// The version in a model's name, such as 4.5 in `claude-sonnet-4-5-20250929` or 2.5 in `gemini-2.5-pro`:
/// the first number of at most two digits, and the one right after it. Dates are longer.
pub(super) fn version(model: &str) -> Option<(u32, u32)> {
    let mut words = model.split(|letter: char| !letter.is_ascii_alphanumeric());
    let number = |word: &str| if word.len() <= 2 { word.parse::<u32>().ok() } else { None };
    let major = words.by_ref().find_map(number)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}
