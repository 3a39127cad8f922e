//! The merged settings as a typed configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use journeyman_protocol::Mode;
use journeyman_workspace::Tier;
use toml::Value;

use super::ConfigError;
use super::layers::{Layer, duration, parts};
use journeyman_agent::hooks::HookCommand;

/// The effective configuration. `None` and empty mean that nobody set it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// `provider/name`.
    pub model: Option<String>,
    /// An endpoint without any provider.
    pub base_url: Option<String>,
    /// The protocol of `base_url`.
    pub wire: Option<String>,
    /// What is allowed without asking, as the user says.
    pub mode: Option<Mode>,
    /// What the project narrows it to. It bounds the built-in default, which depends on the surface; a mode
    /// of the user's own has been compared with it already.
    pub project_mode: Option<Mode>,
    /// Model requests before a run stops.
    pub max_turns: Option<u32>,
    /// Rounds of feedback.
    pub max_iterations: Option<u32>,
    /// Wall time of a run.
    pub timeout: Option<Duration>,
    /// US dollars a run may cost.
    pub budget_usd: Option<f64>,
    /// Commands that verify a change.
    pub checks: Option<Vec<String>>,
    /// Whether sessions work in a copy of the project.
    pub isolate: Option<bool>,
    /// The ways of copying it to try, in this order; empty for all.
    pub isolation: Vec<Tier>,
    /// What the user wants the model to be told in every project.
    pub instructions: Option<String>,
    /// What the project's configuration wants it to be told: the project's words, not the user's.
    pub project_instructions: Option<String>,
    /// What the first context may cost.
    pub context_tokens: Option<u32>,
    /// Output limit of one reply.
    pub max_output_tokens: Option<u32>,
    /// How long a question waits before it counts as denied.
    pub approval_timeout: Option<Duration>,
    /// Tool calls that run at once.
    pub tools_concurrency: Option<u32>,
    /// How long a tool call may take.
    pub tools_timeout: Option<Duration>,
    /// Whether the model keeps todos.
    pub todos: Option<bool>,
    /// Steps between reminders of them.
    pub todos_remind_every: Option<u32>,
    /// Whether a run that goes in circles is stopped.
    pub loop_guard: Option<bool>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// How many tokens the model may think.
    pub thinking_tokens: Option<u32>,
    /// How hard it thinks: `low`, `medium` or `high`.
    pub effort: Option<String>,
    /// Which model makes vectors of the code, and what they count.
    pub vectors: VectorsConfig,
    /// Environment variables whose values are secret, as the user says.
    pub secrets: Vec<String>,
    /// Those that the project says are secret: redacted, and hidden from no hook.
    pub project_secrets: Vec<String>,
    /// Weaker sandboxes that are allowed by name.
    pub sandbox_allow: Vec<String>,
    /// Which image commands in containers run in, and how.
    pub container: super::ContainerConfig,
    /// The sandbox that is tried first, by name.
    pub sandbox_prefer: Option<String>,
    /// Whether root's commands may run in a sandbox other than the strongest.
    pub sandbox_allow_root: bool,
    /// Commands that run when something happens.
    pub hooks: Vec<HookCommand>,
    /// Providers by name; over and besides the built-in ones.
    pub providers: BTreeMap<String, ProviderConfig>,
}

/// What the configuration says of vectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VectorsConfig {
    /// `model2vec:DIRECTORY` or `provider/name`.
    pub model: Option<String>,
    /// What they count, where words count 1.
    pub weight: Option<f64>,
    /// How long a query waits for its own.
    pub timeout: Option<Duration>,
    /// What stands before a query.
    pub query_prefix: Option<String>,
    /// What stands before a text that is searched.
    pub document_prefix: Option<String>,
}

/// What the configuration says of a provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderConfig {
    /// The protocol it speaks.
    pub wire: Option<String>,
    /// Where it is.
    pub base_url: Option<String>,
    /// Variables that may hold its key.
    pub key_env: Option<Vec<String>>,
    /// Whether its models call tools.
    pub tool_calling: Option<bool>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Its proxy.
    pub proxy: Option<String>,
    /// Connect, first byte, idle and total deadlines.
    pub timeouts: [Option<Duration>; 4],
    /// Prices by model.
    pub prices: BTreeMap<String, PriceConfig>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PriceConfig {
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads; as fresh input where unset.
    pub cache_read: Option<f64>,
    /// Cache writes; as fresh input where unset.
    pub cache_write: Option<f64>,
}

impl Config {
    /// The names of all variables whose values are redacted.
    pub fn redacted(&self) -> impl Iterator<Item = &String> {
        self.secrets.iter().chain(&self.project_secrets)
    }

    /// The mode of a run on a surface whose built-in mode is `default`.
    #[must_use]
    pub fn mode_or(&self, default: Mode) -> Mode {
        self.mode.or_else(|| self.project_mode.map(|narrow| narrow.min(default))).unwrap_or(default)
    }

    /// Types the merged settings, which have been checked against the table.
    pub(super) fn from_settings(settings: &Layer) -> Result<Self, ConfigError> {
        let get = |name: &str| settings.get(&parts(name)).map(|setting| &setting.value);
        let text = |name: &str| get(name).and_then(Value::as_str).map(str::to_owned);
        let count = |name: &str| get(name).and_then(Value::as_integer).and_then(|n| u32::try_from(n).ok());
        let mode: Option<Mode> = get("mode").and_then(Value::as_str).and_then(|word| word.parse().ok());
        let by_project = settings
            .get(&parts("mode"))
            .is_some_and(|setting| matches!(setting.source, super::Source::Project(_)));
        let mut config = Self {
            model: text("model"),
            base_url: text("base_url"),
            wire: text("wire"),
            mode: mode.filter(|_| !by_project),
            project_mode: mode.filter(|_| by_project),
            max_turns: count("max_turns"),
            max_iterations: count("max_iterations"),
            timeout: get("timeout").and_then(duration),
            budget_usd: get("budget_usd").and_then(number),
            checks: get("checks").map(list),
            isolate: get("isolate").and_then(Value::as_bool),
            isolation: tiers(settings)?,
            instructions: text("instructions"),
            project_instructions: settings
                .get(&project_instructions())
                .and_then(|setting| setting.value.as_str())
                .map(str::to_owned),
            context_tokens: count("context_tokens"),
            max_output_tokens: count("max_output_tokens"),
            approval_timeout: get("session.approval_timeout").and_then(duration),
            tools_concurrency: count("tools.concurrency"),
            tools_timeout: get("tools.timeout").and_then(duration),
            todos: get("todos.enabled").and_then(Value::as_bool),
            todos_remind_every: count("todos.remind_every"),
            loop_guard: get("loop_guard").and_then(Value::as_bool),
            temperature: get("temperature").and_then(number),
            top_p: get("top_p").and_then(number),
            thinking_tokens: count("thinking_tokens"),
            effort: text("effort"),
            vectors: VectorsConfig {
                model: text("index.vectors"),
                weight: get("index.vectors_weight").and_then(number),
                timeout: get("index.vectors_timeout").and_then(duration),
                query_prefix: text("index.vectors_query_prefix"),
                document_prefix: text("index.vectors_document_prefix"),
            },
            secrets: get("secrets").map(list).unwrap_or_default(),
            project_secrets: settings
                .get(&project_secrets())
                .map(|setting| list(&setting.value))
                .unwrap_or_default(),
            sandbox_allow: get("sandbox.allow").map(list).unwrap_or_default(),
            container: super::ContainerConfig::from_settings(get).map_err(|(key, problem)| {
                let source = settings.get(&parts(key)).map(|setting| setting.source.to_string());
                ConfigError::Value { origin: source.unwrap_or_default(), key: key.to_owned(), problem }
            })?,
            sandbox_prefer: text("sandbox.prefer"),
            sandbox_allow_root: get("sandbox.allow_root").and_then(Value::as_bool).unwrap_or_default(),
            hooks: super::hooks::commands(settings).0,
            providers: BTreeMap::new(),
        };
        for (path, setting) in settings {
            if let [first, provider, rest @ ..] = path.as_slice()
                && first == "providers"
            {
                let provider = config.providers.entry(provider.clone()).or_default();
                provider.set(rest, &setting.value);
            }
        }
        Ok(config)
    }
}

/// The ways of copying, by name.
fn tiers(settings: &Layer) -> Result<Vec<Tier>, ConfigError> {
    let Some(setting) = settings.get(&parts("isolation")) else { return Ok(Vec::new()) };
    let known = |name: &String| Tier::ALL.into_iter().find(|tier| tier.to_string() == *name);
    let unknown = |name: String| ConfigError::Value {
        origin: setting.source.to_string(),
        key: "isolation".to_owned(),
        problem: format!("has «{name}»; there are overlay, reflink, worktree and copy"),
    };
    list(&setting.value).into_iter().map(|name| known(&name).ok_or_else(|| unknown(name))).collect()
}

/// Where the project's instructions stand among the settings, beside the user's.
pub(super) fn project_instructions() -> Vec<String> {
    parts("instructions.project")
}

/// Where the project's secrets stand among the settings, beside the user's.
pub(super) fn project_secrets() -> Vec<String> {
    parts("secrets.project")
}

impl ProviderConfig {
    fn set(&mut self, path: &[String], value: &Value) {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = || value.as_str().map(str::to_owned);
        match words.as_slice() {
            ["wire"] => self.wire = text(),
            ["base_url"] => self.base_url = text(),
            ["key_env"] => self.key_env = Some(list(value)),
            ["tool_calling"] => self.tool_calling = value.as_bool(),
            ["proxy"] => self.proxy = text(),
            ["headers", name] => {
                self.headers.insert((*name).to_owned(), text().unwrap_or_default());
            }
            ["connect_timeout"] => self.timeouts[0] = duration(value),
            ["first_byte_timeout"] => self.timeouts[1] = duration(value),
            ["idle_timeout"] => self.timeouts[2] = duration(value),
            ["total_timeout"] => self.timeouts[3] = duration(value),
            ["models", model, kind] => {
                let price = self.prices.entry((*model).to_owned()).or_default();
                let dollars = number(value);
                match *kind {
                    "input" => price.input = dollars.unwrap_or_default(),
                    "output" => price.output = dollars.unwrap_or_default(),
                    "cache_read" => price.cache_read = dollars,
                    _ => price.cache_write = dollars,
                }
            }
            _ => {}
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "prices and temperatures are small")]
fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

fn list(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
