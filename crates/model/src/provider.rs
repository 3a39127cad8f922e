//! The built-in providers.

use std::collections::BTreeMap;

use crate::{Endpoint, Secret, Wire};

/// Maximum number of similar names that are suggested.
const MAX_SUGGESTIONS: usize = 5;
/// Minimum Jaro-Winkler similarity of a suggested name. Below this value, names share little more
/// than their vendor.
const MIN_SIMILARITY: f64 = 0.8;

/// A provider of models: its address and protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The first half of `provider/model`.
    pub name: String,
    /// The provider's protocol.
    pub wire: Wire,
    /// The provider's base URL.
    pub base_url: String,
    /// The environment variables that may hold the key; the first that is set wins. If empty, no
    /// key is needed.
    pub key_env: Vec<String>,
    /// Further headers, by name.
    pub headers: BTreeMap<String, String>,
    /// True if the provider's models can call tools.
    pub tools: bool,
    /// True if the provider runs on this machine.
    pub local: bool,
}

impl Provider {
    /// Creates a provider whose models call tools, without key and headers.
    #[must_use]
    pub fn new(name: impl Into<String>, wire: Wire, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            wire,
            base_url: base_url.into(),
            key_env: Vec::new(),
            headers: BTreeMap::new(),
            tools: true,
            local: false,
        }
    }

    /// Returns the provider's endpoint, with the key read through `variable`. An empty variable
    /// counts as unset.
    #[must_use]
    pub fn endpoint(&self, variable: impl Fn(&str) -> Option<String>) -> Endpoint {
        let key = self
            .key_env
            .iter()
            .filter_map(|name| variable(name))
            .map(Secret::new)
            .find(|key| !key.reveal().is_empty());
        Endpoint {
            key,
            key_env: self.key_env.clone(),
            headers: self.headers.clone(),
            tools: self.tools,
            local: self.local,
            ..Endpoint::new(self.name.as_str(), self.wire, self.base_url.as_str())
        }
    }
}

/// Hosted providers: name, protocol, base URL, and the variables that the provider's own tools read
/// the key from.
const HOSTED_PROVIDERS: &[(&str, Wire, &str, &[&str])] = &[
    ("anthropic", Wire::Anthropic, "https://api.anthropic.com", &["ANTHROPIC_API_KEY"]),
    ("openai", Wire::Responses, "https://api.openai.com/v1", &["OPENAI_API_KEY"]),
    (
        "gemini",
        Wire::Gemini,
        "https://generativelanguage.googleapis.com",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    (
        "google",
        Wire::Gemini,
        "https://generativelanguage.googleapis.com",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    ("openrouter", Wire::Chat, "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"]),
    ("deepseek", Wire::Chat, "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]),
    ("groq", Wire::Chat, "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]),
    ("mistral", Wire::Chat, "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"]),
    ("xai", Wire::Chat, "https://api.x.ai/v1", &["XAI_API_KEY"]),
    ("together", Wire::Chat, "https://api.together.xyz/v1", &["TOGETHER_API_KEY"]),
    ("fireworks", Wire::Chat, "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"]),
    ("cerebras", Wire::Chat, "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"]),
    ("moonshot", Wire::Chat, "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"]),
    ("zai", Wire::Chat, "https://api.z.ai/api/paas/v4", &["ZAI_API_KEY"]),
    ("nvidia", Wire::Chat, "https://integrate.api.nvidia.com/v1", &["NVIDIA_API_KEY"]),
    ("huggingface", Wire::Chat, "https://router.huggingface.co/v1", &["HF_TOKEN"]),
];

/// Servers on this machine: name and base URL with the server's default port.
const LOCAL_SERVERS: &[(&str, &str)] = &[
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("lmstudio", "http://127.0.0.1:1234/v1"),
    ("llamacpp", "http://127.0.0.1:8080/v1"),
    ("vllm", "http://127.0.0.1:8000/v1"),
];

/// Returns the providers that are known without configuration. A table of the configuration adds a
/// provider or replaces one.
#[must_use]
pub fn builtin_providers() -> Vec<Provider> {
    let hosted = HOSTED_PROVIDERS.iter().map(|(name, wire, base_url, key_env)| Provider {
        key_env: key_env.iter().map(|&variable| variable.to_owned()).collect(),
        ..Provider::new(*name, *wire, *base_url)
    });
    let local = LOCAL_SERVERS
        .iter()
        .map(|(name, base_url)| Provider { local: true, ..Provider::new(*name, Wire::Chat, *base_url) });
    hosted.chain(local).collect()
}

/// Returns true if a built-in provider of that name runs on this machine, where tokens cost
/// nothing.
pub(crate) fn is_local(provider: &str) -> bool {
    LOCAL_SERVERS.iter().any(|(name, _)| *name == provider)
}

/// Returns at most five names that are similar to `wanted`, the most similar first. The comparison
/// ignores case and a vendor before a slash.
#[must_use]
pub fn similar_names<S: AsRef<str>>(wanted: &str, names: &[S]) -> Vec<String> {
    let bare = |name: &str| name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let wanted = bare(wanted);
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut near: Vec<(f64, &str)> = names
        .iter()
        .filter_map(|name| {
            let candidate = bare(name.as_ref());
            let held = candidate.contains(&wanted) || (!candidate.is_empty() && wanted.contains(&candidate));
            let likeness = strsim::jaro_winkler(&wanted, &candidate);
            (held || likeness >= MIN_SIMILARITY)
                .then_some((likeness + f64::from(u8::from(held)), name.as_ref()))
        })
        .collect();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    near.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let providers = builtin_providers();
        for (place, provider) in providers.iter().enumerate() {
            assert!(
                providers.iter().skip(place + 1).all(|other| other.name != provider.name),
                "{}",
                provider.name
            );
            let scheme = if provider.local { "http://127.0.0.1:" } else { "https://" };
            assert!(provider.base_url.starts_with(scheme), "{}", provider.base_url);
            assert_eq!(provider.key_env.is_empty(), provider.local, "{}", provider.name);
        }
    }

    #[test]
    fn the_first_variable_that_holds_something_wins() {
        let providers = builtin_providers();
        let gemini = providers.iter().find(|provider| provider.name == "gemini").unwrap();
        type Variables<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(Variables<'_>, Option<&str>)] = &[
            (&[], None),
            (&[("GEMINI_API_KEY", "a"), ("GOOGLE_API_KEY", "b")], Some("a")),
            (&[("GEMINI_API_KEY", " \n"), ("GOOGLE_API_KEY", "b\n")], Some("b")),
        ];
        for (variables, expected) in cases {
            let endpoint = gemini.endpoint(|name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            });
            assert_eq!(endpoint.key.as_ref().map(Secret::reveal), *expected);
        }
    }

    #[test]
    fn near_names_by_likeness() {
        let names = ["claude-sonnet-4-5", "claude-opus-4-1", "gpt-5", "openai/gpt-5-mini", "llama3"];
        let cases: &[(&str, &[&str])] = &[
            ("claude-sonet-4-5", &["claude-sonnet-4-5", "claude-opus-4-1"]),
            ("GPT-5-mini", &["openai/gpt-5-mini", "gpt-5"]),
            ("anthropic/claude-sonnet-4-5", &["claude-sonnet-4-5", "claude-opus-4-1"]),
            ("qwen", &[]),
            ("", &[]),
        ];
        for (wanted, expected) in cases {
            assert_eq!(similar_names(wanted, &names), *expected, "{wanted}");
        }
    }
}
