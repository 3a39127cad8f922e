//! Converts the amount of thinking between efforts and token budgets.

use crate::{Effort, Thinking};

/// Token budgets for the three efforts: those that Google documents for its own OpenAI-compatible
/// endpoint (`reasoning_effort` of Gemini 2.5), the only published table of its kind.
const LOW_EFFORT_TOKENS: u32 = 1_024;
const MEDIUM_EFFORT_TOKENS: u32 = 8_192;
const HIGH_EFFORT_TOKENS: u32 = 24_576;

/// Returns the budget in tokens.
pub(super) fn budget_tokens(thinking: Thinking) -> u32 {
    match thinking {
        Thinking::Budget(tokens) => tokens,
        Thinking::Effort(Effort::Low) => LOW_EFFORT_TOKENS,
        Thinking::Effort(Effort::Medium) => MEDIUM_EFFORT_TOKENS,
        Thinking::Effort(Effort::High) => HIGH_EFFORT_TOKENS,
    }
}

/// Returns the effort's name, which is the same for OpenAI, Anthropic and Gemini. A budget gets the
/// effort with the smallest budget that is not below it.
pub(super) fn effort_name(thinking: Thinking) -> &'static str {
    match thinking {
        Thinking::Effort(Effort::Low) => "low",
        Thinking::Effort(Effort::Medium) => "medium",
        Thinking::Effort(Effort::High) => "high",
        Thinking::Budget(tokens) if tokens <= LOW_EFFORT_TOKENS => "low",
        Thinking::Budget(tokens) if tokens <= MEDIUM_EFFORT_TOKENS => "medium",
        Thinking::Budget(_) => "high",
    }
}

/// Returns the version in a model's name, such as 4.5 in `claude-sonnet-4-5-20250929` or 2.5 in
/// `gemini-2.5-pro`: the first number of at most two digits, and the number right after it. Dates
/// are longer.
pub(super) fn model_version(model: &str) -> Option<(u32, u32)> {
    let mut words = model.split(|letter: char| !letter.is_ascii_alphanumeric());
    let number = |word: &str| if word.len() <= 2 { word.parse::<u32>().ok() } else { None };
    let major = words.by_ref().find_map(number)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}
