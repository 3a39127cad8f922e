//! The models that a person may choose from: those of the configuration, the documented ones of
//! providers that can be asked, and those that the session's server lists.

use std::time::Duration;

use journeyman_model::{Endpoint, documented_models};

use crate::config::{Config, Environment};
use crate::models::{DEFAULT_MODELS, all_providers, configured_endpoint, custom_endpoint, default_model};

/// The longest wait for a server's list.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum names that are taken of a server's list; the longest known one, OpenRouter's, has about
/// 400.
const MAX_LISTED_MODELS: usize = 2_000;

/// The models known without a request, and the server that can list more.
#[derive(Debug, Clone, Default)]
pub struct KnownModels {
    /// The names as `provider/name`: those of the configuration, then the documented ones of
    /// providers whose key is set.
    pub names: Vec<String>,
    /// The server of the session's model, until it is asked; `None` for a script, another CLI and
    /// the like.
    server: Option<ModelServer>,
    /// The models of a server that is no provider's.
    at_address: Option<(ServerAddress, Vec<String>)>,
}

/// The server of a model, which lists its models.
#[derive(Debug, Clone)]
pub struct ModelServer {
    endpoint: Endpoint,
    model: String,
    address: Option<ServerAddress>,
}

/// The address of a server that is no provider's. Its models are named without a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// The base URL.
    pub base_url: String,
    /// The protocol.
    pub wire: String,
}

/// The models that a server has listed.
#[derive(Debug, Clone)]
pub struct ListedModels {
    names: Vec<String>,
    address: Option<ServerAddress>,
}

impl KnownModels {
    /// Finds the configured and documented models, without a request.
    #[must_use]
    pub fn from_config(config: &Config, environment: &Environment) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: String| {
            if !names.contains(&name) {
                names.push(name);
            }
        };
        if config.base_url.is_none() {
            config.model.iter().filter(|name| name.contains('/')).for_each(|name| add(name.clone()));
        }
        for (provider, settings) in &config.providers {
            let own = settings.limits.keys().chain(settings.prices.keys());
            own.for_each(|model| add(format!("{provider}/{model}")));
        }
        let has_key = |keys: &[String]| keys.iter().any(|key| environment.var(key).is_some());
        for provider in all_providers(config).iter().filter(|provider| has_key(&provider.key_env)) {
            let usual = DEFAULT_MODELS.iter().filter(|(name, _)| *name == provider.name);
            let documented = documented_models(&provider.name).into_iter();
            let models = usual.map(|(_, model)| *model).chain(documented);
            models.for_each(|model| add(format!("{}/{model}", provider.name)));
        }
        Self { names, server: ModelServer::find(config, environment), at_address: None }
    }

    /// Takes the server, which is asked once.
    pub fn take_server(&mut self) -> Option<ModelServer> {
        self.server.take()
    }

    /// Adds the models that a server has listed.
    pub fn add_listed(&mut self, listed: ListedModels) {
        let ListedModels { names, address } = listed;
        self.at_address = address.map(|address| (address, names.clone()));
        let new: Vec<String> = names.into_iter().filter(|name| !self.names.contains(name)).collect();
        self.names.extend(new);
    }

    /// Returns the address of the server that has listed a model, if it is no provider's.
    #[must_use]
    pub fn address_of(&self, model: &str) -> Option<&ServerAddress> {
        let (address, names) = self.at_address.as_ref()?;
        names.iter().any(|name| name == model).then_some(address)
    }
}

impl ModelServer {
    fn find(config: &Config, environment: &Environment) -> Option<Self> {
        if let Some(base_url) = &config.base_url {
            let (endpoint, model) = custom_endpoint(config, environment, base_url).ok()?;
            let address = ServerAddress { base_url: base_url.clone(), wire: config.wire.clone()? };
            return Some(Self { endpoint, model, address: Some(address) });
        }
        let name = config.model.clone().or_else(|| default_model(config, environment).ok())?;
        let (endpoint, model) = configured_endpoint(config, environment, &name).ok()?;
        Some(Self { endpoint, model, address: None })
    }

    /// Requests the server's list of models. Returns `None` if the server has no list.
    pub async fn list(self) -> Option<ListedModels> {
        let Self { endpoint, model, address } = self;
        let provider = endpoint.provider.clone();
        let client = journeyman_model::connect(endpoint, &model).ok()?;
        let names = tokio::time::timeout(LIST_TIMEOUT, client.list_models()).await.ok()?.ok()?;
        // A name with anything else in it can't be typed.
        let is_name =
            |name: &String| !name.is_empty() && name.chars().all(|letter| letter.is_ascii_graphic());
        let names = names.into_iter().filter(is_name).take(MAX_LISTED_MODELS);
        let mut names: Vec<String> = match address {
            Some(_) => names.collect(),
            None => names.map(|name| format!("{provider}/{name}")).collect(),
        };
        names.sort_unstable();
        names.dedup();
        Some(ListedModels { names, address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LimitsConfig, ProviderConfig};

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let vars = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Environment { vars: vars.collect(), ..Environment::default() }
    }

    #[test]
    fn models_are_those_of_the_configuration_and_of_providers_with_a_key() {
        let mut own = ProviderConfig::default();
        own.limits.insert("qwen3-coder".to_owned(), LimitsConfig::default());
        let mut config = Config { model: Some("ollama/tiny".to_owned()), ..Config::default() };
        config.providers.insert("llamacpp".to_owned(), own);
        let none = KnownModels::from_config(&config, &environment(&[]));
        assert_eq!(none.names, ["ollama/tiny", "llamacpp/qwen3-coder"]);
        assert!(none.server.is_some_and(|server| server.address.is_none()));
        let keyed = KnownModels::from_config(&config, &environment(&[("ANTHROPIC_API_KEY", "k")]));
        assert_eq!(keyed.names[2], "anthropic/claude-sonnet-4-5", "its usual one comes first");
        assert!(keyed.names.iter().any(|name| name == "anthropic/claude-opus-4-1"), "{:?}", keyed.names);
        assert!(!keyed.names.iter().any(|name| name.starts_with("openai/")), "there is no key for it");
        let count = keyed.names.iter().filter(|name| *name == "anthropic/claude-sonnet-4-5").count();
        assert_eq!(count, 1);
    }

    #[test]
    fn a_server_of_the_persons_own_names_its_models_without_a_provider() {
        let (model, base_url) = (Some("tiny".to_owned()), Some("http://127.0.0.1:8080".to_owned()));
        let config = Config { model, base_url, wire: Some("chat".to_owned()), ..Config::default() };
        let mut known = KnownModels::from_config(&config, &environment(&[]));
        assert_eq!(known.names, [""; 0]);
        let address = known.take_server().and_then(|server| server.address);
        assert_eq!(address.as_ref().map(|address| address.wire.as_str()), Some("chat"));
        known.add_listed(ListedModels { names: vec!["large".to_owned()], address: address.clone() });
        assert_eq!(known.names, ["large"]);
        assert_eq!((known.address_of("large"), known.address_of("ollama/large")), (address.as_ref(), None));
        let script = Config { model: Some("scripted/a.json".to_owned()), ..Config::default() };
        assert!(KnownModels::from_config(&script, &environment(&[])).server.is_none());
    }
}
