//! Limits of the models that the vendors document.

use journeyman_protocol::{ImageTokens, LimitSource, ModelLimits, Tokenizer, Tokens};

use crate::catalog_name::CatalogName;
use crate::provider::is_local;

/// Models that count tokens in the same way.
#[derive(Debug)]
struct ModelFamily {
    tokenizer: Tokenizer,
    images: ImageTokens,
}

impl ModelFamily {
    const fn new(tokenizer: Tokenizer, images: ImageTokens) -> Self {
        Self { tokenizer, images }
    }

    /// Creates a family whose tokens are only estimated; `percent` as in [`Tokenizer::Estimate`].
    const fn with_estimate(percent: u16, images: ImageTokens) -> Self {
        Self::new(Tokenizer::Estimate { percent }, images)
    }
}

/// Returns the tokens of images for Anthropic's models: squares of 28 pixels. The number of squares
/// is that of the scaled image, which Anthropic describes by its longest edge and its tokens.
const fn claude_image_tokens(max_edge: u32, max_patches: u32) -> ImageTokens {
    ImageTokens::Patches { side: 28, max_edge, max_patches, percent: 100 }
}

/// Returns the tokens of images for OpenAI's models: squares of 32 pixels.
const fn openai_image_tokens(max_edge: u32, max_patches: u32, percent: u32) -> ImageTokens {
    ImageTokens::Patches { side: 32, max_edge, max_patches, percent }
}

// Claude's vocabularies aren't public. Anthropic says that the newer one makes about 30 % more
// tokens of the same text than the older one.
static CLAUDE: ModelFamily = ModelFamily::with_estimate(120, claude_image_tokens(1_568, 1_600));
static CLAUDE_NEW: ModelFamily = ModelFamily::with_estimate(155, claude_image_tokens(2_576, 4_784));
static GPT_4O: ModelFamily = ModelFamily::new(Tokenizer::O200k, ImageTokens::Tiles { base: 85, tile: 170 });
static GPT_4O_MINI: ModelFamily =
    ModelFamily::new(Tokenizer::O200k, ImageTokens::Tiles { base: 2_833, tile: 5_667 });
static O_SERIES: ModelFamily = ModelFamily::new(Tokenizer::O200k, ImageTokens::Tiles { base: 75, tile: 150 });
static GPT_5: ModelFamily = ModelFamily::new(Tokenizer::O200k, ImageTokens::Tiles { base: 70, tile: 140 });
static GPT_MINI: ModelFamily = ModelFamily::new(Tokenizer::O200k, openai_image_tokens(2_048, 1_536, 162));
static GPT_NANO: ModelFamily = ModelFamily::new(Tokenizer::O200k, openai_image_tokens(2_048, 1_536, 246));
static O4_MINI: ModelFamily = ModelFamily::new(Tokenizer::O200k, openai_image_tokens(2_048, 1_536, 172));
static GPT_5_2: ModelFamily = ModelFamily::new(Tokenizer::O200k, openai_image_tokens(2_048, 1_536, 120));
static GPT_5_4: ModelFamily = ModelFamily::new(Tokenizer::O200k, openai_image_tokens(6_000, 10_000, 120));
static GPT_6: ModelFamily = ModelFamily::new(Tokenizer::O200k, openai_image_tokens(6_000, 36_000, 120));
static GPT_4: ModelFamily = ModelFamily::new(Tokenizer::Cl100k, ImageTokens::Tiles { base: 85, tile: 170 });
static GPT_OSS: ModelFamily = ModelFamily::new(Tokenizer::O200k, ImageTokens::Unknown);
// Gemini's vocabulary isn't public; it has 256,000 tokens and writes numbers digit by digit.
static GEMINI_2: ModelFamily = ModelFamily::with_estimate(112, ImageTokens::Crops { crop: 258 });
static GEMINI_3: ModelFamily = ModelFamily::with_estimate(112, ImageTokens::Fixed(1_120));
// Measured with the vendors' published vocabularies on 20 MB of source code and prose, rounded up.
static DEEPSEEK: ModelFamily = ModelFamily::with_estimate(108, ImageTokens::Unknown);
static MISTRAL: ModelFamily = ModelFamily::with_estimate(108, ImageTokens::Unknown);
static KIMI: ModelFamily = ModelFamily::with_estimate(101, ImageTokens::Unknown);
static GLM: ModelFamily = ModelFamily::with_estimate(101, ImageTokens::Unknown);
static QWEN: ModelFamily = ModelFamily::with_estimate(103, ImageTokens::Unknown);
static LLAMA: ModelFamily = ModelFamily::with_estimate(101, ImageTokens::Unknown);
static MINIMAX: ModelFamily = ModelFamily::with_estimate(102, ImageTokens::Unknown);
static UNKNOWN: ModelFamily = ModelFamily::with_estimate(120, ImageTokens::Unknown);

/// The limits of one model; 0 where the vendor documents none.
type LimitsRow = (&'static str, &'static str, u64, u64, u64, &'static ModelFamily);

/// Documented limits: provider, model, window, maximum input, maximum output, and the family. As
/// the vendors' model pages had them between mid-2025 and November 2026; nothing here is fetched.
///
/// OpenAI's windows include the whole output limit, so that the input is limited to the difference.
/// A model that is missing gets [`default_limits`]. The configuration overrides each number.
const LIMITS: &[LimitsRow] = &[
    ("anthropic", "claude-fable-5-2", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-fable-5-1", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-fable-5", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-mythos-5", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-opus-5-5", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-opus-5", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-opus-4-8", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-opus-4-7", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-opus-4-6", 1_000_000, 0, 128_000, &CLAUDE),
    ("anthropic", "claude-opus-4-5", 200_000, 0, 64_000, &CLAUDE),
    ("anthropic", "claude-opus-4-1", 200_000, 0, 32_000, &CLAUDE),
    ("anthropic", "claude-opus-4-0", 200_000, 0, 32_000, &CLAUDE),
    ("anthropic", "claude-opus-4", 200_000, 0, 32_000, &CLAUDE),
    ("anthropic", "claude-sonnet-5-5", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-sonnet-5", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-sonnet-4-6", 1_000_000, 0, 128_000, &CLAUDE),
    ("anthropic", "claude-sonnet-4-5", 200_000, 0, 64_000, &CLAUDE),
    ("anthropic", "claude-sonnet-4-0", 200_000, 0, 64_000, &CLAUDE),
    ("anthropic", "claude-sonnet-4", 200_000, 0, 64_000, &CLAUDE),
    ("anthropic", "claude-haiku-5-5", 1_000_000, 0, 128_000, &CLAUDE_NEW),
    ("anthropic", "claude-haiku-4-5", 200_000, 0, 64_000, &CLAUDE),
    ("anthropic", "claude-3-7-sonnet", 200_000, 0, 64_000, &CLAUDE),
    ("anthropic", "claude-3-5-sonnet", 200_000, 0, 8_192, &CLAUDE),
    ("anthropic", "claude-3-5-haiku", 200_000, 0, 8_192, &CLAUDE),
    ("openai", "gpt-6.2-astra", 1_050_000, 922_000, 128_000, &GPT_6),
    ("openai", "gpt-6-astra", 1_050_000, 922_000, 128_000, &GPT_6),
    ("openai", "gpt-5.6-sol", 1_050_000, 922_000, 128_000, &GPT_6),
    ("openai", "gpt-5.6-terra", 1_050_000, 922_000, 128_000, &GPT_6),
    ("openai", "gpt-5.6-luna", 1_050_000, 922_000, 128_000, &GPT_6),
    ("openai", "gpt-5.5-pro", 1_050_000, 922_000, 128_000, &GPT_5_4),
    ("openai", "gpt-5.5", 1_050_000, 922_000, 128_000, &GPT_5_4),
    ("openai", "gpt-5.4-pro", 1_050_000, 922_000, 128_000, &GPT_5_4),
    ("openai", "gpt-5.4", 1_050_000, 922_000, 128_000, &GPT_5_4),
    ("openai", "gpt-5.4-mini", 400_000, 272_000, 128_000, &GPT_MINI),
    ("openai", "gpt-5.4-nano", 400_000, 272_000, 128_000, &GPT_NANO),
    ("openai", "gpt-5.3-codex", 400_000, 272_000, 128_000, &GPT_5_2),
    ("openai", "gpt-5.2-codex", 400_000, 272_000, 128_000, &GPT_5_2),
    ("openai", "gpt-5.2-pro", 400_000, 272_000, 128_000, &GPT_5_2),
    ("openai", "gpt-5.2", 400_000, 272_000, 128_000, &GPT_5_2),
    ("openai", "gpt-5.1", 400_000, 272_000, 128_000, &GPT_5),
    ("openai", "gpt-5.1-codex", 400_000, 272_000, 128_000, &GPT_5),
    ("openai", "gpt-5.1-codex-max", 400_000, 272_000, 128_000, &GPT_5),
    ("openai", "gpt-5.1-codex-mini", 400_000, 272_000, 128_000, &GPT_MINI),
    ("openai", "gpt-5", 400_000, 272_000, 128_000, &GPT_5),
    ("openai", "gpt-5-codex", 400_000, 272_000, 128_000, &GPT_5),
    ("openai", "gpt-5-mini", 400_000, 272_000, 128_000, &GPT_MINI),
    ("openai", "gpt-5-nano", 400_000, 272_000, 128_000, &GPT_NANO),
    ("openai", "gpt-5-pro", 400_000, 128_000, 272_000, &GPT_5),
    ("openai", "gpt-5-chat", 128_000, 0, 16_384, &GPT_5),
    ("openai", "gpt-4.1", 1_047_576, 0, 32_768, &GPT_4O),
    ("openai", "gpt-4.1-mini", 1_047_576, 0, 32_768, &GPT_MINI),
    ("openai", "gpt-4.1-nano", 1_047_576, 0, 32_768, &GPT_NANO),
    ("openai", "gpt-4o", 128_000, 0, 16_384, &GPT_4O),
    ("openai", "gpt-4o-mini", 128_000, 0, 16_384, &GPT_4O_MINI),
    ("openai", "gpt-4-turbo", 128_000, 0, 4_096, &GPT_4),
    ("openai", "gpt-4", 8_192, 0, 8_192, &GPT_4),
    ("openai", "gpt-3.5-turbo", 16_385, 0, 4_096, &GPT_4),
    ("openai", "gpt-oss-120b", 131_072, 0, 131_072, &GPT_OSS),
    ("openai", "gpt-oss-20b", 131_072, 0, 131_072, &GPT_OSS),
    ("openai", "o1", 200_000, 0, 100_000, &O_SERIES),
    ("openai", "o1-pro", 200_000, 0, 100_000, &O_SERIES),
    ("openai", "o3", 200_000, 0, 100_000, &O_SERIES),
    ("openai", "o3-mini", 200_000, 0, 100_000, &O_SERIES),
    ("openai", "o3-pro", 200_000, 0, 100_000, &O_SERIES),
    ("openai", "o4-mini", 200_000, 0, 100_000, &O4_MINI),
    // Google documents the input and the output apart; the window here is the input's.
    ("gemini", "gemini-3.6-flash", 1_048_576, 0, 65_536, &GEMINI_3),
    ("gemini", "gemini-3.5-flash", 1_048_576, 0, 65_536, &GEMINI_3),
    ("gemini", "gemini-3.5-flash-lite", 1_048_576, 0, 65_536, &GEMINI_3),
    ("gemini", "gemini-3.1-pro", 1_048_576, 0, 65_536, &GEMINI_3),
    ("gemini", "gemini-3.1-flash-lite", 1_048_576, 0, 65_536, &GEMINI_3),
    ("gemini", "gemini-3-pro", 1_048_576, 0, 65_536, &GEMINI_3),
    ("gemini", "gemini-3-flash", 1_048_576, 0, 65_536, &GEMINI_3),
    ("gemini", "gemini-2.5-pro", 1_048_576, 0, 65_536, &GEMINI_2),
    ("gemini", "gemini-2.5-flash", 1_048_576, 0, 65_536, &GEMINI_2),
    ("gemini", "gemini-2.5-flash-lite", 1_048_576, 0, 65_536, &GEMINI_2),
    ("gemini", "gemini-2.0-flash", 1_048_576, 0, 8_192, &GEMINI_2),
    ("deepseek", "deepseek-v4-pro", 1_000_000, 0, 384_000, &DEEPSEEK),
    ("deepseek", "deepseek-v4-flash", 1_000_000, 0, 384_000, &DEEPSEEK),
    ("deepseek", "deepseek-chat", 128_000, 0, 8_192, &DEEPSEEK),
    ("deepseek", "deepseek-reasoner", 128_000, 0, 65_536, &DEEPSEEK),
    ("xai", "grok-4.5", 500_000, 0, 0, &UNKNOWN),
    ("xai", "grok-4.3", 1_000_000, 0, 0, &UNKNOWN),
    ("xai", "grok-4.20", 1_000_000, 0, 0, &UNKNOWN),
    ("xai", "grok-4-1-fast", 2_000_000, 0, 0, &UNKNOWN),
    ("xai", "grok-4-fast", 2_000_000, 0, 0, &UNKNOWN),
    ("xai", "grok-4", 256_000, 0, 0, &UNKNOWN),
    ("xai", "grok-code-fast-1", 256_000, 0, 0, &UNKNOWN),
    ("xai", "grok-3", 131_072, 0, 0, &UNKNOWN),
    ("mistral", "mistral-large", 128_000, 0, 0, &MISTRAL),
    ("mistral", "mistral-medium", 128_000, 0, 0, &MISTRAL),
    ("mistral", "mistral-small", 128_000, 0, 0, &MISTRAL),
    ("mistral", "codestral", 256_000, 0, 0, &MISTRAL),
    ("mistral", "devstral-medium", 128_000, 0, 0, &MISTRAL),
    ("mistral", "devstral-small", 128_000, 0, 0, &MISTRAL),
    ("moonshot", "kimi-k3", 1_048_576, 0, 0, &KIMI),
    ("moonshot", "kimi-k2.7-code", 262_144, 0, 0, &KIMI),
    ("moonshot", "kimi-k2.6", 262_144, 0, 0, &KIMI),
    ("moonshot", "kimi-k2.5", 262_144, 0, 0, &KIMI),
    ("moonshot", "kimi-k2", 131_072, 0, 0, &KIMI),
    ("moonshot", "kimi-k2-0905", 262_144, 0, 0, &KIMI),
    ("moonshot", "kimi-k2-thinking", 262_144, 0, 0, &KIMI),
    ("zai", "glm-5.2", 1_048_576, 0, 0, &GLM),
    ("zai", "glm-5", 200_000, 0, 128_000, &GLM),
    ("zai", "glm-4.7", 200_000, 0, 128_000, &GLM),
    ("zai", "glm-4.6", 200_000, 0, 128_000, &GLM),
    ("zai", "glm-4.5", 131_072, 0, 98_304, &GLM),
    ("zai", "glm-4.5-air", 131_072, 0, 98_304, &GLM),
    ("groq", "openai/gpt-oss-120b", 131_072, 0, 65_536, &GPT_OSS),
    ("groq", "openai/gpt-oss-20b", 131_072, 0, 65_536, &GPT_OSS),
    ("groq", "llama-3.3-70b-versatile", 131_072, 0, 32_768, &LLAMA),
    ("groq", "llama-3.1-8b-instant", 131_072, 0, 131_072, &LLAMA),
];

/// The beginnings of models' names, with their families, for models without documented limits. The
/// longest match wins.
const FAMILIES_BY_PREFIX: &[(&str, &ModelFamily)] = &[
    ("claude", &CLAUDE_NEW),
    ("gpt-oss", &GPT_OSS),
    ("gpt-4", &GPT_4),
    ("gpt-3", &GPT_4),
    ("gpt-4o", &GPT_4O),
    ("gpt-4.", &GPT_4O),
    ("gpt-", &GPT_6),
    ("chatgpt", &GPT_4O),
    ("codex", &GPT_5_4),
    ("o1", &O_SERIES),
    ("o3", &O_SERIES),
    ("o4", &O4_MINI),
    ("gemini", &GEMINI_3),
    ("gemini-2", &GEMINI_2),
    ("gemini-1", &GEMINI_2),
    ("gemma", &GEMINI_2),
    ("deepseek", &DEEPSEEK),
    ("mistral", &MISTRAL),
    ("ministral", &MISTRAL),
    ("codestral", &MISTRAL),
    ("devstral", &MISTRAL),
    ("magistral", &MISTRAL),
    ("mixtral", &MISTRAL),
    ("kimi", &KIMI),
    ("glm", &GLM),
    ("qwen", &QWEN),
    ("qwq", &QWEN),
    ("llama", &LLAMA),
    ("minimax", &MINIMAX),
];

/// Returns the documented limits of a model, also under a dated name
/// (`claude-sonnet-4-5-20250929`). A name that only begins like a known name (`gpt-5-ultra`) is
/// another model and has none. The windows of models on this machine are the server's choice.
#[must_use]
pub fn builtin_limits(provider: &str, model: &str) -> Option<ModelLimits> {
    let known = CatalogName::new(provider, model)?;
    let (_, _, window, max_input, max_output, family) = LIMITS
        .iter()
        .filter(|(vendor, name, ..)| known.is_release_of(vendor, name))
        .max_by_key(|(_, name, ..)| name.len())?;
    let documented = |tokens: u64| (tokens > 0).then_some(Tokens(tokens));
    Some(ModelLimits {
        window: Tokens(*window),
        max_input: documented(*max_input),
        max_output: documented(*max_output),
        tokenizer: family.tokenizer.clone(),
        images: family.images,
        source: LimitSource::Table,
    })
}

/// Returns the names of a provider's models that the table has, the newest of each kind first.
#[must_use]
pub fn documented_models(provider: &str) -> Vec<&'static str> {
    let vendor = CatalogName::new(provider, "").map_or(provider, |known| known.vendor);
    LIMITS.iter().filter(|(maker, ..)| *maker == vendor).map(|(_, name, ..)| *name).collect()
}

/// Returns careful limits for a model that the table lacks, with the tokenizer of its family: a
/// name says more about a vocabulary than about a window.
#[must_use]
pub fn default_limits(provider: &str, model: &str) -> ModelLimits {
    let family = family_of_name(model);
    ModelLimits {
        tokenizer: family.tokenizer.clone(),
        images: family.images,
        ..ModelLimits::conservative_default(is_local(provider))
    }
}

/// Returns the family of a name such as `qwen3-coder:30b` or `unsloth/Llama-3.3-70B-GGUF`.
fn family_of_name(model: &str) -> &'static ModelFamily {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let name = name.strip_prefix("meta-").unwrap_or(&name);
    let fits = FAMILIES_BY_PREFIX.iter().filter(|(beginning, _)| name.starts_with(beginning));
    fits.max_by_key(|(beginning, _)| beginning.len()).map_or(&UNKNOWN, |(_, family)| family)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin_providers;

    #[test]
    fn names_find_their_window() {
        let cases = [
            ("anthropic", "claude-sonnet-4-5-20250929", Some(200_000)),
            ("anthropic", "claude-opus-5-5", Some(1_000_000)),
            ("anthropic", "claude-opus-9", None),
            ("openai", "gpt-5", Some(400_000)),
            ("openai", "gpt-5.5-2026-04-23", Some(1_050_000)),
            ("openai", "gpt-5-ultra", None),
            ("google", "models/gemini-2.5-flash-preview-05-20", Some(1_048_576)),
            ("openrouter", "anthropic/claude-sonnet-4.5", Some(200_000)),
            ("openrouter", "moonshotai/kimi-k2.6:free", Some(262_144)),
            ("openrouter", "z-ai/glm-4.6", Some(200_000)),
            ("openrouter", "nobody/gpt-5", None),
            ("groq", "openai/gpt-oss-120b", Some(131_072)),
            ("ollama", "gpt-oss:20b", None),
            ("xai", "grok-4-fast-non-reasoning", Some(2_000_000)),
        ];
        for (provider, model, window) in cases {
            let found = builtin_limits(provider, model).map(|limits| limits.window.0);
            assert_eq!(found, window, "{provider}/{model}");
        }
    }

    #[test]
    fn an_unknown_model_gets_careful_limits_and_its_familys_tokenizer() {
        let cases = [
            ("ollama", "qwen3-coder:30b", ModelLimits::DEFAULT_LOCAL_WINDOW, &QWEN),
            ("lmstudio", "unsloth/Meta-Llama-3.3-70B", ModelLimits::DEFAULT_LOCAL_WINDOW, &LLAMA),
            ("openai", "gpt-7", ModelLimits::DEFAULT_HOSTED_WINDOW, &GPT_6),
            ("openai", "gpt-4.9-mini", ModelLimits::DEFAULT_HOSTED_WINDOW, &GPT_4O),
            ("anthropic", "claude-zeta-7", ModelLimits::DEFAULT_HOSTED_WINDOW, &CLAUDE_NEW),
            ("custom", "house-model", ModelLimits::DEFAULT_HOSTED_WINDOW, &UNKNOWN),
        ];
        for (provider, model, window, family) in cases {
            let limits = default_limits(provider, model);
            assert_eq!((limits.window, limits.source), (window, LimitSource::Default), "{model}");
            assert_eq!((&limits.tokenizer, limits.images), (&family.tokenizer, family.images), "{model}");
        }
    }

    #[test]
    fn the_table_is_sound() {
        let providers = builtin_providers();
        for (place, (provider, model, window, max_input, max_output, _)) in LIMITS.iter().enumerate() {
            let named = format!("{provider}/{model}");
            assert!(providers.iter().any(|known| known.name == *provider && !known.local), "{named}");
            assert!((8_192..=2_000_000).contains(window), "{named}");
            assert!(max_input <= window && max_output <= window, "{named}");
            let again = LIMITS.iter().skip(place + 1).any(|row| row.0 == *provider && row.1 == *model);
            assert!(!again, "{named} is there twice");
            assert_eq!(builtin_limits(provider, model).map(|limits| limits.window), Some(Tokens(*window)));
        }
    }
}
