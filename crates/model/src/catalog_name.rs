//! The names of models in the tables of prices and limits.

use std::borrow::Cow;

/// Suffixes of a model's releases, apart from dates: `-latest`, `-preview…`.
const RELEASE_SUFFIXES: &[&str] = &["latest", "preview", "exp", "beta", "reasoning", "non-reasoning"];

/// OpenRouter's names of vendors, and those of the same vendors as providers.
const OPENROUTER_VENDORS: &[(&str, &str)] = &[
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("google", "gemini"),
    ("x-ai", "xai"),
    ("deepseek", "deepseek"),
    ("mistralai", "mistral"),
    ("moonshotai", "moonshot"),
    ("z-ai", "zai"),
];

/// A model's vendor and name as the tables write them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CatalogName<'a> {
    pub(crate) vendor: &'a str,
    pub(crate) name: Cow<'a, str>,
}

impl<'a> CatalogName<'a> {
    /// Finds the vendor of a provider's model. OpenRouter writes `vendor/model`, versions with
    /// dots, and variants as `:free`. `None` for a vendor of OpenRouter's that isn't a provider.
    pub(crate) fn new(provider: &'a str, model: &'a str) -> Option<Self> {
        if provider == "openrouter" {
            let (vendor, name) = model.split_once('/')?;
            let name = name.split_once(':').map_or(name, |(name, _)| name);
            let (_, vendor) = OPENROUTER_VENDORS.iter().find(|(routed, _)| *routed == vendor)?;
            let name = if *vendor == "anthropic" { name.replace('.', "-").into() } else { name.into() };
            return Some(Self { vendor, name });
        }
        let vendor = if provider == "google" { "gemini" } else { provider };
        Some(Self { vendor, name: model.strip_prefix("models/").unwrap_or(model).into() })
    }

    /// Returns true if this is that model of that vendor, also under a dated name
    /// (`claude-sonnet-4-5-20250929`). A name that only begins like another one (`gpt-5-ultra`) is
    /// another model.
    pub(crate) fn is_release_of(&self, vendor: &str, name: &str) -> bool {
        let Some(rest) = self.name.strip_prefix(name).filter(|_| self.vendor == vendor) else {
            return false;
        };
        let Some(release) = rest.strip_prefix(['-', '@']) else {
            return rest.is_empty();
        };
        let digits = release.bytes().take_while(u8::is_ascii_digit).count();
        // Three digits or more are a date (`-0613`, `-2512`, `-20250929`) or a release (`-001`).
        digits >= 3 || RELEASE_SUFFIXES.iter().any(|channel| release.starts_with(channel))
    }
}
