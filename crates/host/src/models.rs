//! Connects to models by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_delegate::{CliAccess, Credentials, DelegateError, DelegatingModel};
use journeyman_model::{
    Deadlines, Effort, Endpoint, HttpTransport, Model, Price, Provider, ProxySettings, Recorder, Replayer,
    RetryPolicy, ScriptedModel, Secret, Thinking, Wire, builtin_limits, builtin_price, builtin_providers,
    connect_with, default_limits,
};
use journeyman_protocol::{LimitSource, ModelLimits, Tokenizer, Tokens};
use strsim::damerau_levenshtein;

use crate::config::{Config, ConfigError, Environment, ProviderConfig};
use crate::delegates::{AUTO_CLI, find_delegates, model_name, parse_model_name};
use journeyman_agent::Clock;
use journeyman_agent::agents::AgentModel;
use journeyman_agent::agents::group::GroupDirector;

/// The beginning of the name of a group's model; the members' model follows.
pub const GROUP_PREFIX: &str = "group/";

/// The default model of each provider; the first provider whose key is set is used.
pub(crate) const DEFAULT_MODELS: [(&str, &str); 4] = [
    ("anthropic", "claude-sonnet-4-5"),
    ("openai", "gpt-5"),
    ("gemini", "gemini-2.5-pro"),
    ("openrouter", "anthropic/claude-sonnet-4.5"),
];
/// The beginnings of models' names, with the provider that makes such models. Open-weight models
/// map to the most common local server.
const MODEL_FAMILIES: [(&str, &str); 23] = [
    ("claude", "anthropic"),
    ("gpt-oss", "ollama"),
    ("gpt-", "openai"),
    ("chatgpt", "openai"),
    ("codex", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "gemini"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("ministral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("magistral", "mistral"),
    ("grok", "xai"),
    ("kimi", "moonshot"),
    ("glm", "zai"),
    ("llama", "ollama"),
    ("qwen", "ollama"),
    ("gemma", "ollama"),
    ("phi", "ollama"),
    ("smollm", "ollama"),
];
/// The variable that holds the key of an endpoint named by `--base-url`. A provider's own key never
/// goes to an address that its provider doesn't own.
pub(crate) const CUSTOM_KEY_VARIABLE: &str = "JM_API_KEY";

/// A model, ready to be asked.
pub struct ConnectedModel {
    /// The client.
    pub model: Arc<dyn Model>,
    /// `provider/name`.
    pub name: String,
    /// The price, if it is known.
    pub price: Option<Price>,
    /// The limits, as far as they are known without asking the server.
    pub limits: ModelLimits,
    /// True if the model calls tools.
    pub tool_calling: bool,
    /// Keys that must never be shown or kept.
    pub secrets: Vec<String>,
    /// The day that a recording's prompts name; a replay has to name the same.
    pub day: Option<String>,
    /// True if the client records or plays back: its requests have to be the same everywhere.
    pub is_recorded: bool,
    /// The model of the members, for a group of agents.
    pub member: Option<AgentModel>,
}

impl ConnectedModel {
    /// Wraps a client whose price isn't known, such as a program's own or a scripted one.
    #[must_use]
    pub fn from_model(model: Arc<dyn Model>, name: String) -> Self {
        Self {
            model,
            name,
            price: None,
            limits: ModelLimits::conservative_default(false),
            tool_calling: true,
            secrets: Vec::new(),
            day: None,
            is_recorded: false,
            member: None,
        }
    }
}

/// A file that requests are recorded to or replayed from.
#[derive(Debug, Clone, Default)]
pub struct Cassette {
    /// File that every exchange is written to.
    pub record: Option<PathBuf>,
    /// Recording that is played back; no request is sent.
    pub replay: Option<PathBuf>,
    /// Today, as the prompt names it; kept in a recording.
    pub day: String,
}

/// Finds the configured model and creates its client, without a request.
///
/// # Errors
/// [`ConfigError::Model`] naming what is missing: the provider, its key, or the script.
pub fn connect_model(
    config: &Config,
    environment: &Environment,
    cassette: &Cassette,
    clock: Clock,
) -> Result<ConnectedModel, ConfigError> {
    let named = config.model.clone();
    if let Some(script) = named.as_deref().and_then(|name| name.strip_prefix("scripted/")) {
        return load_scripted_model(&environment.cwd.join(script));
    }
    if let Some((cli, model)) = named.as_deref().and_then(parse_model_name) {
        return connect_delegate(config, environment, cli, model);
    }
    if let Some(model) = named.as_deref().and_then(|name| name.strip_prefix(GROUP_PREFIX)) {
        let model = Some(model.to_owned()).filter(|model| !model.is_empty());
        let config = Config { model, ..config.clone() };
        return Ok(make_group_model(connect_model(&config, environment, cassette, clock)?, named));
    }
    if let Some(base_url) = &config.base_url {
        return custom_client(config, environment, base_url, cassette, &clock);
    }
    if let Some(wire) = &config.wire {
        return Err(ConfigError::Model(format!(
            "--wire {wire} needs --base-url URL, the address of the server that speaks it; the protocol of a known \
             provider is known"
        )));
    }
    let name = match named {
        Some(name) => name,
        None => default_model(config, environment)?,
    };
    let (endpoint, model) = find_endpoint(config, environment, &name, cassette)?;
    make_client(endpoint, &model, config, environment, cassette, &clock)
}

/// Returns the endpoint of a model called `provider/name`, and the model's name there.
fn find_endpoint(
    config: &Config,
    environment: &Environment,
    name: &str,
    cassette: &Cassette,
) -> Result<(Endpoint, String), ConfigError> {
    let (provider, model) = resolve_model_name(config, name)?;
    let mut endpoint = Endpoint::new(provider.name.clone(), provider.wire, provider.base_url.clone());
    endpoint.key = find_api_key(&provider, environment, cassette)?;
    endpoint.key_env = provider.key_env;
    endpoint.headers = provider.headers;
    endpoint.tools = provider.tools;
    endpoint.local = provider.local;
    Ok((endpoint, model))
}

/// Returns the endpoint with the configuration's deadlines, headers and proxies, for requests other
/// than conversations.
pub(crate) fn configured_endpoint(
    config: &Config,
    environment: &Environment,
    name: &str,
) -> Result<(Endpoint, String), ConfigError> {
    let (mut endpoint, model) = find_endpoint(config, environment, name, &Cassette::default())?;
    let settings = config.providers.get(&endpoint.provider);
    apply_settings(&mut endpoint, settings, environment);
    Ok((endpoint, model))
}

/// Returns the name of the model that sessions will use, as `provider/name`, and its limits as far
/// as they are known without asking the server. `None` for a script.
///
/// # Errors
/// [`ConfigError::Model`] as for [`connect_model`], except that no key is needed.
pub fn configured_model_limits(
    config: &Config,
    environment: &Environment,
) -> Result<Option<(String, ModelLimits)>, ConfigError> {
    let name = match &config.model {
        Some(name) => name.clone(),
        None => default_model(config, environment)?,
    };
    if name.starts_with("scripted/") || parse_model_name(&name).is_some() {
        return Ok(None);
    }
    let (provider, model) = match &config.base_url {
        Some(_) => ("custom".to_owned(), name),
        None => resolve_model_name(config, &name).map(|(provider, model)| (provider.name, model))?,
    };
    let limits = model_limits(config, environment, &provider, &model)?;
    Ok(Some((format!("{provider}/{model}"), limits)))
}

/// Returns true if a model called `provider/name` calls tools, as far as the settings tell.
pub(crate) fn can_call_tools(config: &Config, name: &str) -> bool {
    let provider = name.split_once('/').map_or(name, |(provider, _)| provider);
    let own = config.providers.get(provider).and_then(|settings| settings.tool_calling);
    own.unwrap_or_else(|| {
        all_providers(config).iter().find(|known| known.name == provider).is_none_or(|known| known.tools)
    })
}

/// Returns the thinking that the configuration asks the model for.
#[must_use]
pub fn thinking_settings(config: &Config) -> Option<Thinking> {
    match (config.thinking_tokens, config.effort.as_deref()) {
        (Some(tokens), _) => Some(Thinking::Budget(tokens)),
        (None, Some("low")) => Some(Thinking::Effort(Effort::Low)),
        (None, Some("medium")) => Some(Thinking::Effort(Effort::Medium)),
        (None, Some("high")) => Some(Thinking::Effort(Effort::High)),
        (None, _) => None,
    }
}

/// Makes the model of a session that delegates all work to a CLI. Doesn't run the CLI.
///
/// # Errors
/// [`ConfigError::Model`] for a CLI that is unknown or not installed, or that can't be confined as
/// the user has set it up.
pub(crate) fn connect_delegate(
    config: &Config,
    environment: &Environment,
    cli: &str,
    model: Option<&str>,
) -> Result<ConnectedModel, ConfigError> {
    let refused = |error: DelegateError| ConfigError::Model(error.to_string());
    let delegates = find_delegates(config, environment, None);
    let settings = match cli {
        AUTO_CLI => delegates.first_installed().map_err(refused)?,
        name => delegates.find(name).map_err(refused)?,
    };
    delegates.find_program(settings).map_err(refused)?;
    let access = CliAccess::from_environment(settings, delegates.host_environment(), true);
    let access = access.map_err(|error| ConfigError::Model(error.to_string()))?;
    let cli = settings.adapter.name();
    let found = delegates.detect(settings, &BTreeMap::new());
    // A server of one's own may want no key; arguments and a described CLI may name another way.
    let is_as_known = access.base_url.is_none()
        && settings.network.is_empty()
        && settings.arguments.is_empty()
        && config.delegates.get(cli).is_none_or(|own| own.cli.is_none());
    if is_as_known && found.is_some_and(|found| found.credentials == Credentials::Missing) {
        let needs = settings.adapter.requirements().for_model(model.or(settings.model.as_deref()));
        let keys: Vec<String> = needs.providers.into_iter().flat_map(|provider| provider.keys).collect();
        return Err(ConfigError::Model(format!(
            "{cli} has no login here; run it once to log in, or set {}",
            keys.join(" or ")
        )));
    }
    let secrets = access.secrets;
    let name = model_name(cli, model);
    let director = DelegatingModel::new(cli, name.clone());
    // The CLI shortens conversations itself.
    let mut limits = ModelLimits::conservative_default(false);
    limits.set_window(ModelLimits::MAX_WINDOW, LimitSource::Table);
    let connected = ConnectedModel::from_model(Arc::new(director), name);
    // What the CLI tells of its cost is counted with its calls.
    let price = settings.adapter.capabilities().cost.then_some(Price::FREE);
    Ok(ConnectedModel { price, limits, secrets, ..connected })
}

/// Makes the model that directs a group whose members use `member`.
fn make_group_model(member: ConnectedModel, name: Option<String>) -> ConnectedModel {
    let name = name.unwrap_or_default();
    let mut limits = ModelLimits::conservative_default(false);
    limits.set_window(ModelLimits::MAX_WINDOW, LimitSource::Table);
    let director = ConnectedModel::from_model(Arc::new(GroupDirector::new(name.clone())), name);
    let ConnectedModel { model, price, limits: own, tool_calling, secrets, .. } = member;
    let member = Some(AgentModel { model, price, limits: own, tool_calling });
    // Only its members ask a model.
    ConnectedModel { price: Some(Price::FREE), limits, secrets, member, ..director }
}

fn load_scripted_model(path: &Path) -> Result<ConnectedModel, ConfigError> {
    let model = ScriptedModel::load(path).map_err(|error| ConfigError::Model(error.to_string()))?;
    let name = model.name();
    // A script reads requests of any length.
    let mut limits = ModelLimits::conservative_default(false);
    limits.set_window(ModelLimits::MAX_WINDOW, LimitSource::Table);
    let connected = ConnectedModel::from_model(Arc::new(model), name);
    Ok(ConnectedModel { price: Some(Price::FREE), limits, ..connected })
}

fn custom_client(
    config: &Config,
    environment: &Environment,
    base_url: &str,
    cassette: &Cassette,
    clock: &Clock,
) -> Result<ConnectedModel, ConfigError> {
    let (endpoint, model) = custom_endpoint(config, environment, base_url)?;
    make_client(endpoint, &model, config, environment, cassette, clock)
}

/// Returns the endpoint at an address of the user's own, and the model's name there.
pub(crate) fn custom_endpoint(
    config: &Config,
    environment: &Environment,
    base_url: &str,
) -> Result<(Endpoint, String), ConfigError> {
    let missing = |what: &str| ConfigError::Model(format!("--base-url needs {what}"));
    let wire = config.wire.as_deref().and_then(|word| word.parse::<Wire>().ok());
    let wire =
        wire.ok_or_else(|| missing("--wire anthropic|responses|chat|gemini, the protocol it speaks"))?;
    let model = config.model.clone().ok_or_else(|| missing("--model NAME, the model to ask it for"))?;
    let mut endpoint = Endpoint::new("custom", wire, base_url.trim_end_matches('/'));
    endpoint.key = environment.var(CUSTOM_KEY_VARIABLE).map(Secret::new);
    endpoint.key_env = vec![CUSTOM_KEY_VARIABLE.to_owned()];
    // Only the server knows whether it wants one; its refusal then names the variable.
    endpoint.key_required = false;
    Ok((endpoint, model))
}

/// Makes a client with the parts that every endpoint shares: deadlines, proxies, retries, the
/// recording.
fn make_client(
    mut endpoint: Endpoint,
    model: &str,
    config: &Config,
    environment: &Environment,
    cassette: &Cassette,
    clock: &Clock,
) -> Result<ConnectedModel, ConfigError> {
    let price = model_price(config, &endpoint.provider, model);
    let limits = model_limits(config, environment, &endpoint.provider, model)?;
    let settings = config.providers.get(&endpoint.provider);
    apply_settings(&mut endpoint, settings, environment);
    let seed = clock.now();
    let clock = clock.clone();
    endpoint.retry = RetryPolicy { seed: seed.0, clock: Some(clock), ..RetryPolicy::default() };
    let mut secrets: Vec<String> = endpoint.headers.values().cloned().collect();
    secrets.extend(endpoint.key.as_ref().map(|key| key.reveal().to_owned()));
    let tool_calling = endpoint.tools;
    let refused = |error: journeyman_model::ModelError| ConfigError::Model(error.to_string());
    let mut day = None;
    let client = match (&cassette.record, &cassette.replay) {
        (_, Some(path)) => {
            let replayer = Replayer::load(path).map_err(refused)?;
            day = replayer.prompt_date().map(str::to_owned);
            connect_with(endpoint, model, Arc::new(replayer))
        }
        (Some(path), None) => {
            let network = Arc::new(HttpTransport::new(&endpoint));
            let recorder = Recorder::create(path, Some(&cassette.day)).map_err(refused)?;
            connect_with(endpoint, model, Arc::new(recorder.wrap_transport(network)))
        }
        (None, None) => journeyman_model::connect(endpoint, model),
    }
    .map_err(refused)?;
    let is_recorded = cassette.record.is_some() || cassette.replay.is_some();
    Ok(ConnectedModel {
        member: None,
        name: client.name(),
        model: Arc::new(client),
        price,
        limits,
        tool_calling,
        secrets,
        day,
        is_recorded,
    })
}

/// Applies proxies from the environment and a provider's settings to an endpoint.
fn apply_settings(endpoint: &mut Endpoint, settings: Option<&ProviderConfig>, environment: &Environment) {
    endpoint.proxy = proxy_settings(environment);
    let Some(settings) = settings else { return };
    if let Some(calls) = settings.tool_calling {
        endpoint.tools = calls;
    }
    endpoint.headers.extend(settings.headers.clone());
    if let Some(proxy) = &settings.proxy {
        endpoint.proxy.http = Some(proxy.clone());
        endpoint.proxy.https = Some(proxy.clone());
    }
    endpoint.deadlines = build_deadlines(&settings.timeouts);
}

fn build_deadlines(timeouts: &[Option<std::time::Duration>; 4]) -> Deadlines {
    let standard = Deadlines::default();
    let [connect, first_byte, idle, total] = *timeouts;
    Deadlines {
        connect: connect.unwrap_or(standard.connect),
        first_byte: first_byte.unwrap_or(standard.first_byte),
        idle: idle.unwrap_or(standard.idle),
        total: total.unwrap_or(standard.total),
    }
}

/// Returns the proxies of the environment; lower-case names win, as in curl.
fn proxy_settings(environment: &Environment) -> ProxySettings {
    let var =
        |low: &str, high: &str| environment.var(low).or_else(|| environment.var(high)).map(str::to_owned);
    let all = || var("all_proxy", "ALL_PROXY");
    ProxySettings {
        // HTTP_PROXY in capitals can be set by a CGI client's header; curl ignores it for that
        // reason.
        http: environment.var("http_proxy").map(str::to_owned).or_else(all),
        https: var("https_proxy", "HTTPS_PROXY").or_else(all),
        no_proxy: var("no_proxy", "NO_PROXY").unwrap_or_default(),
    }
}

fn model_price(config: &Config, provider: &str, model: &str) -> Option<Price> {
    let set = config.providers.get(provider).and_then(|settings| settings.prices.get(model));
    match set {
        Some(price) => Some(Price {
            input: price.input,
            output: price.output,
            cache_read: price.cache_read.unwrap_or(price.input),
            cache_write: price.cache_write.unwrap_or(price.input),
        }),
        None => builtin_price(provider, model),
    }
}

/// Returns a model's limits: those of the configuration, else the known ones, else careful ones.
///
/// # Errors
/// [`ConfigError::Model`] naming the key whose value can't be used.
pub(crate) fn model_limits(
    config: &Config,
    environment: &Environment,
    provider: &str,
    model: &str,
) -> Result<ModelLimits, ConfigError> {
    let mut limits = builtin_limits(provider, model).unwrap_or_else(|| default_limits(provider, model));
    let Some(set) = config.providers.get(provider).and_then(|settings| settings.limits.get(model)) else {
        return Ok(limits);
    };
    let refused = |key: &str, problem: String| {
        ConfigError::Model(format!("providers.{provider}.models.\"{model}\".{key} {problem}"))
    };
    if let Some(window) = set.window {
        let (least, most) = (ModelLimits::MIN_WINDOW.0, ModelLimits::MAX_WINDOW.0);
        if !(least..=most).contains(&window) {
            return Err(refused(
                "window",
                format!("is {window}; a session needs from {least} to {most} tokens"),
            ));
        }
        limits.set_window(Tokens(window), LimitSource::Configured);
    }
    if let Some(most) = set.max_output {
        limits.max_output = Some(Tokens(most).min(limits.window));
    }
    if let Some(tokenizer) = &set.tokenizer {
        limits.tokenizer = match tokenizer.as_str() {
            "o200k" => Tokenizer::O200k,
            "cl100k" => Tokenizer::Cl100k,
            path => {
                Tokenizer::File(tokenizer_path(path, environment).map_err(|why| refused("tokenizer", why))?)
            }
        };
    }
    Ok(limits)
}

/// Returns the path of a `tokenizer.json`, if there is such a file.
fn tokenizer_path(path: &str, environment: &Environment) -> Result<PathBuf, String> {
    if !cfg!(feature = "local-embeddings") {
        return Err(
            "names a file; this build lacks the cargo feature `local-embeddings` to read it".to_owned()
        );
    }
    let file = environment.resolve_user_path(path);
    let kinds = "it may be \"o200k\", \"cl100k\" or the path of a tokenizer.json";
    if file.is_file() { Ok(file) } else { Err(format!("is `{path}`, which is no file; {kinds}")) }
}

/// Returns every provider: the built-in ones with the configuration's settings, and further ones.
#[must_use]
pub fn all_providers(config: &Config) -> Vec<Provider> {
    let mut all = builtin_providers();
    for (name, settings) in &config.providers {
        match all.iter_mut().find(|provider| provider.name == *name) {
            Some(provider) => override_provider(provider, settings),
            None => {
                let mut provider = Provider::new(name.clone(), Wire::Chat, "");
                override_provider(&mut provider, settings);
                all.push(provider);
            }
        }
    }
    all
}

fn override_provider(provider: &mut Provider, settings: &ProviderConfig) {
    if let Some(wire) = settings.wire.as_deref().and_then(|word| word.parse().ok()) {
        provider.wire = wire;
    }
    if let Some(base_url) = &settings.base_url {
        base_url.trim_end_matches('/').clone_into(&mut provider.base_url);
        // A key never follows its provider's name to another address, unless the user names it
        // again.
        provider.key_env.clear();
    }
    if let Some(key_env) = &settings.key_env {
        provider.key_env.clone_from(key_env);
    }
}

fn resolve_model_name(config: &Config, name: &str) -> Result<(Provider, String), ConfigError> {
    let all = all_providers(config);
    let names = || all.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>();
    let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty()) else {
        return Err(ConfigError::Model(match provider_by_model_family(name) {
            Some(provider) => format!("`{name}` names no provider; did you mean {provider}/{name}?"),
            None => format!(
                "`{name}` is not a model; write provider/name, with one of the providers {}",
                names().join(", ")
            ),
        }));
    };
    match all.iter().find(|known| known.name == provider) {
        Some(known) if known.base_url.is_empty() => Err(ConfigError::Model(format!(
            "the provider `{provider}` has no address; set providers.{provider}.base_url"
        ))),
        Some(known) => Ok((known.clone(), model.to_owned())),
        None => {
            let near = names()
                .into_iter()
                .map(|known| (damerau_levenshtein(known, provider), known))
                .min()
                .filter(|(distance, _)| *distance <= 3)
                .map(|(_, known)| format!("; did you mean {known}/{model}?"))
                .unwrap_or_default();
            Err(ConfigError::Model(format!(
                "no provider is called `{provider}`{near} The providers are {}; a further one is a table \
                 [providers.{provider}] in the configuration",
                names().join(", ")
            )))
        }
    }
}

/// Returns the provider of a model's family, for a name without a provider.
fn provider_by_model_family(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let found = MODEL_FAMILIES.iter().find(|(beginning, _)| name.starts_with(beginning));
    found.filter(|_| !name.contains('/')).map(|(_, provider)| *provider)
}

fn find_api_key(
    provider: &Provider,
    environment: &Environment,
    cassette: &Cassette,
) -> Result<Option<Secret>, ConfigError> {
    let found = provider.key_env.iter().find_map(|name| environment.var(name)).map(Secret::new);
    if found.is_none() && !provider.key_env.is_empty() && cassette.replay.is_none() {
        return Err(ConfigError::Model(format!(
            "no key for {}: set {}; or use a local model: `--model ollama/NAME`, or `--base-url \
             http://127.0.0.1:8080/v1 --wire chat --model NAME` for any compatible server",
            provider.name,
            provider.key_env.join(" or ")
        )));
    }
    Ok(found)
}

pub(crate) fn default_model(config: &Config, environment: &Environment) -> Result<String, ConfigError> {
    let all = all_providers(config);
    for (name, model) in DEFAULT_MODELS {
        let provider = all.iter().find(|provider| provider.name == name);
        if provider.is_some_and(|provider| provider.key_env.iter().any(|key| environment.var(key).is_some()))
        {
            return Ok(format!("{name}/{model}"));
        }
    }
    Err(ConfigError::Model(
        "no model is set and no key was found. Set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or \
         OPENROUTER_API_KEY, or name a model with --model provider/name (a local one: ollama/NAME), or an \
         endpoint with --base-url URL --wire chat --model NAME. `jm demo` shows the whole way without any"
            .to_owned(),
    ))
}
