//! Prices of tokens.

use journeyman_protocol::{Tokens, Usage};

use crate::catalog_name::CatalogName;
use crate::provider::is_local;

/// List prices in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Uncached input.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Input read from the provider's cache.
    pub cache_read: f64,
    /// Input written to the provider's cache.
    pub cache_write: f64,
}

impl Price {
    /// The price of a model on the user's own machine.
    pub const FREE: Self = Self { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };

    /// Returns the cost of a usage in US dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2⁵²")]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let part = |tokens: Tokens, price: f64| tokens.0 as f64 * price / 1_000_000.0;
        part(usage.input, self.input)
            + part(usage.output, self.output)
            + part(usage.cache_read, self.cache_read)
            + part(usage.cache_write, self.cache_write)
    }
}

/// List prices: provider, model, and dollars per million tokens of input, output, cache read and
/// cache write (for five minutes, if the price depends on the time). For models whose price grows
/// with the length of the request, the price of short requests.
///
/// Prices change, and nothing here is fetched. Anthropic's prices are those of its model pages in
/// October 2026; the others were published between mid-2025 and mid-2026 and may have fallen since.
/// A model that is missing has no price instead of a guessed one. The configuration overrides these
/// prices, and is the place for batch, flex and negotiated prices.
const PRICES: &[(&str, &str, [f64; 4])] = &[
    ("anthropic", "claude-fable-5-1", [10.0, 50.0, 0.25, 12.5]),
    ("anthropic", "claude-opus-5-5", [4.0, 20.0, 0.2, 5.0]),
    ("anthropic", "claude-opus-5", [5.0, 25.0, 0.5, 6.25]),
    ("anthropic", "claude-opus-4-8", [5.0, 25.0, 0.5, 6.25]),
    ("anthropic", "claude-opus-4-7", [5.0, 25.0, 0.5, 6.25]),
    ("anthropic", "claude-opus-4-6", [5.0, 25.0, 0.5, 6.25]),
    ("anthropic", "claude-opus-4-5", [5.0, 25.0, 0.5, 6.25]),
    ("anthropic", "claude-opus-4-1", [15.0, 75.0, 1.5, 18.75]),
    ("anthropic", "claude-opus-4-0", [15.0, 75.0, 1.5, 18.75]),
    ("anthropic", "claude-opus-4", [15.0, 75.0, 1.5, 18.75]),
    ("anthropic", "claude-sonnet-5-5", [2.0, 10.0, 0.1, 2.5]),
    ("anthropic", "claude-sonnet-5", [2.0, 10.0, 0.2, 2.5]),
    ("anthropic", "claude-sonnet-4-6", [3.0, 15.0, 0.3, 3.75]),
    ("anthropic", "claude-sonnet-4-5", [3.0, 15.0, 0.3, 3.75]),
    ("anthropic", "claude-sonnet-4-0", [3.0, 15.0, 0.3, 3.75]),
    ("anthropic", "claude-sonnet-4", [3.0, 15.0, 0.3, 3.75]),
    ("anthropic", "claude-haiku-5-5", [0.1, 0.5, 0.01, 0.125]),
    ("anthropic", "claude-haiku-4-5", [1.0, 5.0, 0.1, 1.25]),
    ("anthropic", "claude-3-7-sonnet", [3.0, 15.0, 0.3, 3.75]),
    ("anthropic", "claude-3-5-haiku", [0.8, 4.0, 0.08, 1.0]),
    ("openai", "gpt-5.5", [5.0, 30.0, 0.5, 5.0]),
    ("openai", "gpt-5.4", [2.5, 15.0, 0.25, 2.5]),
    ("openai", "gpt-5.4-mini", [0.75, 4.5, 0.075, 0.75]),
    ("openai", "gpt-5.3-codex", [1.75, 14.0, 0.175, 1.75]),
    ("openai", "gpt-5.2-codex", [1.75, 14.0, 0.175, 1.75]),
    ("openai", "gpt-5.2", [1.75, 14.0, 0.175, 1.75]),
    ("openai", "gpt-5.1", [1.25, 10.0, 0.125, 1.25]),
    ("openai", "gpt-5.1-codex", [1.25, 10.0, 0.125, 1.25]),
    ("openai", "gpt-5.1-codex-max", [1.25, 10.0, 0.125, 1.25]),
    ("openai", "gpt-5.1-codex-mini", [0.25, 2.0, 0.025, 0.25]),
    ("openai", "gpt-5", [1.25, 10.0, 0.125, 1.25]),
    ("openai", "gpt-5-codex", [1.25, 10.0, 0.125, 1.25]),
    ("openai", "gpt-5-mini", [0.25, 2.0, 0.025, 0.25]),
    ("openai", "gpt-5-nano", [0.05, 0.4, 0.005, 0.05]),
    ("openai", "gpt-5-pro", [15.0, 120.0, 15.0, 15.0]),
    ("openai", "gpt-4.1", [2.0, 8.0, 0.5, 2.0]),
    ("openai", "gpt-4.1-mini", [0.4, 1.6, 0.1, 0.4]),
    ("openai", "gpt-4.1-nano", [0.1, 0.4, 0.025, 0.1]),
    ("openai", "gpt-4o", [2.5, 10.0, 1.25, 2.5]),
    ("openai", "gpt-4o-mini", [0.15, 0.6, 0.075, 0.15]),
    ("openai", "o3", [2.0, 8.0, 0.5, 2.0]),
    ("openai", "o3-mini", [1.1, 4.4, 0.55, 1.1]),
    ("openai", "o3-pro", [20.0, 80.0, 20.0, 20.0]),
    ("openai", "o4-mini", [1.1, 4.4, 0.275, 1.1]),
    ("gemini", "gemini-3-pro", [2.0, 12.0, 0.2, 2.0]),
    ("gemini", "gemini-2.5-pro", [1.25, 10.0, 0.125, 1.25]),
    ("gemini", "gemini-2.5-flash", [0.3, 2.5, 0.03, 0.3]),
    ("gemini", "gemini-2.5-flash-lite", [0.1, 0.4, 0.01, 0.1]),
    ("gemini", "gemini-2.0-flash", [0.1, 0.4, 0.025, 0.1]),
    ("deepseek", "deepseek-chat", [0.28, 0.42, 0.028, 0.28]),
    ("deepseek", "deepseek-reasoner", [0.28, 0.42, 0.028, 0.28]),
    ("xai", "grok-4", [3.0, 15.0, 0.75, 3.0]),
    ("xai", "grok-4-fast", [0.2, 0.5, 0.05, 0.2]),
    ("xai", "grok-code-fast-1", [0.2, 1.5, 0.02, 0.2]),
    ("mistral", "mistral-large", [2.0, 6.0, 2.0, 2.0]),
    ("mistral", "mistral-medium", [0.4, 2.0, 0.4, 0.4]),
    ("mistral", "codestral", [0.3, 0.9, 0.3, 0.3]),
    ("mistral", "devstral-medium", [0.4, 2.0, 0.4, 0.4]),
    ("mistral", "devstral-small", [0.1, 0.3, 0.1, 0.1]),
];

/// Returns the list price of a model, also under a dated name (`claude-sonnet-4-5-20250929`). A
/// name that only begins like a known name (`gpt-5-ultra`) is another model and has no price.
/// Models on this machine are free.
#[must_use]
pub fn builtin_price(provider: &str, model: &str) -> Option<Price> {
    if is_local(provider) {
        return Some(Price::FREE);
    }
    // OpenRouter passes the vendors' prices on.
    if provider == "openrouter" && model.ends_with(":free") {
        return Some(Price::FREE);
    }
    let known = CatalogName::new(provider, model)?;
    PRICES
        .iter()
        .filter(|(maker, name, _)| known.is_release_of(maker, name))
        .max_by_key(|(_, name, _)| name.len())
        .map(|(_, _, [input, output, cache_read, cache_write])| Price {
            input: *input,
            output: *output,
            cache_read: *cache_read,
            cache_write: *cache_write,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_price() {
        let cases = [
            ("anthropic", "claude-sonnet-4-5-20250929", Some(3.0)),
            ("anthropic", "claude-opus-4-20250514", Some(15.0)),
            ("anthropic", "claude-opus-4-5", Some(5.0)),
            ("anthropic", "claude-opus-5-5", Some(4.0)),
            ("anthropic", "claude-opus-5-9", None),
            ("anthropic", "claude-opus-4-5@20251101", Some(5.0)),
            ("anthropic", "claude-3-5-haiku-latest", Some(0.8)),
            ("openai", "gpt-5", Some(1.25)),
            ("openai", "gpt-5-2025-08-07", Some(1.25)),
            ("openai", "gpt-5-mini-2025-08-07", Some(0.25)),
            ("openai", "gpt-5-ultra", None),
            ("openai", "gpt-5.9", None),
            ("openai", "claude-sonnet-4-5", None),
            ("google", "models/gemini-2.5-flash-lite-preview-06-17", Some(0.1)),
            ("gemini", "gemini-3-pro-preview", Some(2.0)),
            ("openrouter", "anthropic/claude-sonnet-4.5", Some(3.0)),
            ("openrouter", "qwen/qwen3-coder:free", Some(0.0)),
            ("openrouter", "qwen/qwen3-coder", None),
            ("ollama", "anything", Some(0.0)),
            ("nobody", "gpt-5", None),
        ];
        for (provider, model, expected) in cases {
            assert_eq!(
                builtin_price(provider, model).map(|price| price.input),
                expected,
                "{provider}/{model}"
            );
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        let usage = Usage {
            input: Tokens(1_000_000),
            cache_read: Tokens(10_000_000),
            cache_write: Tokens(2_000_000),
            output: Tokens(100_000),
            thinking: Tokens(90_000),
            ..Usage::default()
        };
        assert!((price.cost(&usage) - (3.0 + 3.0 + 7.5 + 1.5)).abs() < 1e-9);
        assert_eq!(price.cost(&Usage::default()), 0.0);
    }
}
