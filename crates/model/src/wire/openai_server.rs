//! Differences between servers of the OpenAI protocols, found by base URL.

use super::legal_names::IdRule;

/// Servers of the OpenAI protocols that differ in what they accept or require.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenAiServer {
    /// OpenAI itself and Azure OpenAI: `max_completion_tokens` (its thinking models refuse
    /// `max_tokens`), `prompt_cache_key`, arguments as any text.
    OpenAi {
        /// True for Azure, which takes keys in a header of its own.
        azure: bool,
    },
    /// DeepSeek and Moonshot: while thinking, a call is refused without its `reasoning_content`.
    ReasoningRequired,
    /// OpenRouter: `reasoning` is an object, `reasoning_details` are sent back.
    OpenRouter,
    /// Mistral: unknown members are refused, call ids have 9 characters.
    Mistral,
    /// Any other server: requests use only what all servers understand.
    Other,
}

impl OpenAiServer {
    /// Finds the server by its base URL.
    pub(super) fn from_base_url(base_url: &str) -> Self {
        let url = reqwest::Url::parse(base_url).ok();
        // The parser has put the name in lower case.
        let name = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
        let within = |domain: &str| name == domain || name.ends_with(&format!(".{domain}"));
        if within("openai.azure.com") || within("cognitiveservices.azure.com") {
            Self::OpenAi { azure: true }
        } else if within("openai.com") {
            Self::OpenAi { azure: false }
        } else if within("deepseek.com") || within("moonshot.ai") || within("moonshot.cn") {
            Self::ReasoningRequired
        } else if within("openrouter.ai") {
            Self::OpenRouter
        } else if within("mistral.ai") {
            Self::Mistral
        } else {
            Self::Other
        }
    }

    /// Returns the server's requirements for call ids.
    pub(super) fn id_rule(self) -> IdRule {
        if self == Self::Mistral { IdRule::Mistral } else { IdRule::Common }
    }

    /// Returns true if a user's message right after a tool's result is refused: by Mistral, and by
    /// the templates of its models elsewhere.
    pub(super) fn refuses_user_after_result(self, model: &str) -> bool {
        const MISTRAL_MODELS: [&str; 7] =
            ["mistral", "ministral", "mixtral", "devstral", "codestral", "magistral", "pixtral"];
        let model = model.to_ascii_lowercase();
        self == Self::Mistral || MISTRAL_MODELS.iter().any(|name| model.contains(name))
    }

    /// Returns the headers that carry a key.
    pub(super) fn auth_headers(self, key: &str) -> Vec<(&'static str, String)> {
        match self {
            Self::OpenAi { azure: true } => vec![("api-key", key.to_owned())],
            _ => vec![("authorization", format!("Bearer {key}"))],
        }
    }
}
