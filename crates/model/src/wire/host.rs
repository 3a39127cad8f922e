//! What a base URL says about the server behind it.

use super::names::IdRule;

/// Servers of the OpenAI protocols that differ in what they accept or demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// OpenAI itself and Azure OpenAI: `max_completion_tokens` (its thinking models refuse `max_tokens`),
    /// `prompt_cache_key`, arguments as any text.
    OpenAi {
        /// Azure takes keys in a header of its own.
        azure: bool,
    },
    /// Refuses a call without the `reasoning_content` that came with it while it thinks (DeepSeek, Moonshot).
    ReasoningBack,
    /// OpenRouter: `reasoning` as an object, `reasoning_details` back.
    OpenRouter,
    /// Mistral: unknown members are refused, call ids have 9 characters.
    Mistral,
    /// Any other: the least that everybody understands.
    Other,
}

impl Host {
    /// From a base URL.
    pub(super) fn of(base_url: &str) -> Self {
        let name = host_name(base_url).to_ascii_lowercase();
        let within = |domain: &str| name == domain || name.ends_with(&format!(".{domain}"));
        if within("openai.azure.com") || within("cognitiveservices.azure.com") {
            Self::OpenAi { azure: true }
        } else if within("openai.com") {
            Self::OpenAi { azure: false }
        } else if within("deepseek.com") || within("moonshot.ai") || within("moonshot.cn") {
            Self::ReasoningBack
        } else if within("openrouter.ai") {
            Self::OpenRouter
        } else if within("mistral.ai") {
            Self::Mistral
        } else {
            Self::Other
        }
    }

    /// What it demands of call ids.
    pub(super) fn id_rule(self) -> IdRule {
        if self == Self::Mistral { IdRule::Mistral } else { IdRule::Common }
    }

    /// The headers that carry a key.
    pub(super) fn auth(self, key: &str) -> Vec<(&'static str, String)> {
        match self {
            Self::OpenAi { azure: true } => vec![("api-key", key.to_owned())],
            _ => vec![("authorization", format!("Bearer {key}"))],
        }
    }
}

fn host_name(base_url: &str) -> &str {
    let after_scheme = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // A bracketed IPv6 address is never one of the names above, so its colons don't matter.
    host.split(':').next().unwrap_or_default()
}
