//! The merged settings as a typed configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use journeyman_delegate::ConfiguredCli;
use journeyman_protocol::Mode;
use journeyman_tools::CommandDefinition;
use journeyman_workspace::IsolationTier;
use toml::Value;

use super::ConfigError;
use super::duration::duration_from_value;
use super::setting::{Layer, split_key};
use journeyman_agent::hooks::HookCommand;

/// The effective configuration. `None` and empty values mean that no layer sets the key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// `provider/name`.
    pub model: Option<String>,
    /// The address of a model without a provider.
    pub base_url: Option<String>,
    /// The protocol of `base_url`.
    pub wire: Option<String>,
    /// The user's permission mode.
    pub mode: Option<Mode>,
    /// The mode that the project narrows to. It bounds the built-in default, which depends on the
    /// surface; a mode of the user's own has been compared with it already.
    pub project_mode: Option<Mode>,
    /// The first tasks that are planned before they are worked on: `auto`, `always` or `never`.
    pub plan_first: Option<String>,
    /// Maximum number of model requests of a run.
    pub max_turns: Option<u32>,
    /// Maximum rounds of feedback from failed checks.
    pub max_iterations: Option<u32>,
    /// Maximum duration of a run of all tests.
    pub test_budget: Option<Duration>,
    /// Lets linters repair what they newly find in changed files.
    pub lint_fix: Option<bool>,
    /// Maximum wall time of a run.
    pub timeout: Option<Duration>,
    /// Maximum cost of a run, in US dollars.
    pub budget_usd: Option<f64>,
    /// Commands that verify a change.
    pub checks: Option<Vec<String>>,
    /// Findings about tests and checks that the user accepts.
    pub accept_findings: Option<Vec<String>>,
    /// The strength of tests that a verified change needs.
    pub verified_needs: Option<String>,
    /// Seconds of wall time for measuring what the tests would notice; 0 for none.
    pub notice_budget: Option<f64>,
    /// True if sessions work in a copy of the project.
    pub isolate: Option<bool>,
    /// The ways of copying the project to try, in this order; empty for all.
    pub isolation: Vec<IsolationTier>,
    /// The user's instructions for the model in every project.
    pub instructions: Option<String>,
    /// The instructions of the project's configuration, which are not the user's words.
    pub project_instructions: Option<String>,
    /// Maximum size of the first context, in tokens.
    pub context_tokens: Option<u32>,
    /// Percentage of the model's input room above which the conversation is shortened.
    pub compaction_threshold: Option<u32>,
    /// True to ask the model for a summary when the conversation is shortened.
    pub compaction_summarize: Option<bool>,
    /// Maximum length of one reply, in tokens.
    pub max_output_tokens: Option<u32>,
    /// The time after which an unanswered question counts as denied.
    pub approval_timeout: Option<Duration>,
    /// Maximum number of tool calls that run at once.
    pub tools_concurrency: Option<u32>,
    /// Timeout of a tool call.
    pub tools_timeout: Option<Duration>,
    /// The tools for changing files that models are offered, by patterns of their names.
    pub editing_tools: BTreeMap<String, Vec<String>>,
    /// Tools that run commands of the user's.
    pub command_tools: Vec<CommandDefinition>,
    /// The tools that read the web.
    pub web: WebConfig,
    /// True if the model keeps todos.
    pub todos: Option<bool>,
    /// Number of steps between reminders of the todos.
    pub todos_remind_every: Option<u32>,
    /// True if a run that makes no progress is stopped.
    pub loop_guard: Option<bool>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Maximum length of the model's thinking, in tokens.
    pub thinking_tokens: Option<u32>,
    /// The effort of the model's thinking: `low`, `medium` or `high`.
    pub effort: Option<String>,
    /// The embedding model for the code, and the weight of its vectors.
    pub vectors: VectorsConfig,
    /// Environment variables whose values are secret, as the user says.
    pub secrets: Vec<String>,
    /// Environment variables that the project calls secret: redacted, and hidden from no hook.
    pub project_secrets: Vec<String>,
    /// Weaker sandboxes that are allowed by name.
    pub sandbox_allow: Vec<String>,
    /// The image that commands in containers run in, and its settings.
    pub container: super::ContainerConfig,
    /// The sandbox that is tried first, by name.
    pub sandbox_prefer: Option<String>,
    /// True if root's commands may run in a sandbox other than the strongest.
    pub sandbox_allow_root: bool,
    /// The look and the keys of the conversation.
    pub conversation: super::ConversationConfig,
    /// Commands that run at events.
    pub hooks: Vec<HookCommand>,
    /// Providers by name; they override and extend the built-in ones.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Settings of other coding CLIs by name.
    pub delegates: BTreeMap<String, DelegateConfig>,
    /// The names of other coding CLIs, the preferred first.
    pub delegate_order: Vec<String>,
    /// The names of other coding CLIs that models may give tasks to.
    pub delegate_tool: Vec<String>,
}

/// The configuration of another coding CLI.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DelegateConfig {
    /// Its description, for one that isn't built in.
    pub cli: Option<Value>,
    /// The CLI's model.
    pub model: Option<String>,
    /// Further arguments of its command.
    pub arguments: Vec<String>,
    /// The time of one run.
    pub timeout: Option<Duration>,
    /// The address of its provider, in place of the provider's own.
    pub base_url: Option<String>,
    /// Further hosts and addresses that it may reach.
    pub network: Vec<String>,
}

impl DelegateConfig {
    /// Returns the CLI that the table describes, if it describes one.
    #[must_use]
    pub fn configured_cli(&self, name: &str) -> Option<ConfiguredCli> {
        // The layers have been checked.
        self.cli.as_ref().and_then(|value| super::clis::parse_cli(name, value).ok())
    }

    fn set_field(&mut self, path: &[String], value: &Value) {
        let text = || value.as_str().map(str::to_owned);
        match path.first().map(String::as_str) {
            Some("cli") => self.cli = Some(value.clone()),
            Some("model") => self.model = text(),
            Some("arguments") => self.arguments = strings_from_value(value),
            Some("timeout") => self.timeout = duration_from_value(value),
            Some("base_url") => self.base_url = text(),
            Some("network") => self.network = strings_from_value(value),
            _ => {}
        }
    }
}

/// The configuration of the tools that read the web.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebConfig {
    /// True if the model is told that it may fetch pages.
    pub fetch: Option<bool>,
    /// The search engine.
    pub search: Option<String>,
    /// The address of the engine's interface.
    pub search_url: Option<String>,
    /// The environment variable that has the engine's key.
    pub search_key_env: Option<String>,
}

/// The configuration of vectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VectorsConfig {
    /// `model2vec:DIRECTORY` or `provider/name`.
    pub model: Option<String>,
    /// The weight of vectors, where words have the weight 1.
    pub weight: Option<f64>,
    /// The time that a query waits for its own vector.
    pub timeout: Option<Duration>,
    /// The text that stands before a query.
    pub query_prefix: Option<String>,
    /// The text that stands before a text that is searched.
    pub document_prefix: Option<String>,
}

/// The configuration of a provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderConfig {
    /// The protocol of the provider.
    pub wire: Option<String>,
    /// The address of the provider.
    pub base_url: Option<String>,
    /// Environment variables that may hold the provider's key.
    pub key_env: Option<Vec<String>>,
    /// True if the provider's models call tools.
    pub tool_calling: Option<bool>,
    /// Further headers of each request.
    pub headers: BTreeMap<String, String>,
    /// The proxy for the provider.
    pub proxy: Option<String>,
    /// Connect, first byte, idle and total deadlines.
    pub timeouts: [Option<Duration>; 4],
    /// Prices by model.
    pub prices: BTreeMap<String, PriceConfig>,
    /// Limits by model.
    pub limits: BTreeMap<String, LimitsConfig>,
}

/// The limits of a model, as far as they are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitsConfig {
    /// The context window, in tokens.
    pub window: Option<u64>,
    /// The longest reply, in tokens.
    pub max_output: Option<u64>,
    /// `o200k`, `cl100k` or the path of a `tokenizer.json`.
    pub tokenizer: Option<String>,
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
    /// Returns the names of all variables whose values are redacted.
    pub fn redacted_variables(&self) -> impl Iterator<Item = &String> {
        self.secrets.iter().chain(&self.project_secrets)
    }

    /// Returns the configured mode, or `default` if none is set.
    #[must_use]
    pub fn mode_or(&self, default: Mode) -> Mode {
        self.mode.or_else(|| self.project_mode.map(|narrow| narrow.min(default))).unwrap_or(default)
    }

    /// Converts the merged settings, which have been checked against the table.
    pub(super) fn from_settings(settings: &Layer) -> Result<Self, ConfigError> {
        let get = |name: &str| settings.get(&split_key(name)).map(|setting| &setting.value);
        let text = |name: &str| get(name).and_then(Value::as_str).map(str::to_owned);
        let count = |name: &str| get(name).and_then(Value::as_integer).and_then(|n| u32::try_from(n).ok());
        let mode: Option<Mode> = get("mode").and_then(Value::as_str).and_then(|word| word.parse().ok());
        let by_project = settings
            .get(&split_key("mode"))
            .is_some_and(|setting| matches!(setting.source, super::SettingSource::Project(_)));
        let mut config = Self {
            model: text("model"),
            base_url: text("base_url"),
            wire: text("wire"),
            mode: mode.filter(|_| !by_project),
            project_mode: mode.filter(|_| by_project),
            plan_first: text("plan_first"),
            max_turns: count("max_turns"),
            max_iterations: count("max_iterations"),
            test_budget: get("test_budget").and_then(duration_from_value),
            lint_fix: get("lint_fix").and_then(Value::as_bool),
            timeout: get("timeout").and_then(duration_from_value),
            budget_usd: get("budget_usd").and_then(number_from_value),
            checks: get("checks").map(strings_from_value),
            accept_findings: get("accept_findings").map(strings_from_value),
            verified_needs: text("verified_needs"),
            notice_budget: get("notice_budget").and_then(number_from_value),
            isolate: get("isolate").and_then(Value::as_bool),
            isolation: isolation_tiers(settings)?,
            instructions: text("instructions"),
            project_instructions: settings
                .get(&project_instructions_key())
                .and_then(|setting| setting.value.as_str())
                .map(str::to_owned),
            context_tokens: count("context_tokens"),
            compaction_threshold: count("compaction.threshold"),
            compaction_summarize: get("compaction.summarize").and_then(Value::as_bool),
            max_output_tokens: count("max_output_tokens"),
            approval_timeout: get("session.approval_timeout").and_then(duration_from_value),
            tools_concurrency: count("tools.concurrency"),
            tools_timeout: get("tools.timeout").and_then(duration_from_value),
            editing_tools: get_lists_beneath(settings, &["tools", "editing"]),
            command_tools: command_tools(settings)?,
            web: web_config(settings),
            todos: get("todos.enabled").and_then(Value::as_bool),
            todos_remind_every: count("todos.remind_every"),
            loop_guard: get("loop_guard").and_then(Value::as_bool),
            temperature: get("temperature").and_then(number_from_value),
            top_p: get("top_p").and_then(number_from_value),
            thinking_tokens: count("thinking_tokens"),
            effort: text("effort"),
            vectors: vectors_config(settings),
            secrets: get("secrets").map(strings_from_value).unwrap_or_default(),
            project_secrets: settings
                .get(&project_secrets_key())
                .map(|setting| strings_from_value(&setting.value))
                .unwrap_or_default(),
            sandbox_allow: get("sandbox.allow").map(strings_from_value).unwrap_or_default(),
            container: super::ContainerConfig::from_settings(get).map_err(|(key, problem)| {
                let source = settings.get(&split_key(key)).map(|setting| setting.source.to_string());
                ConfigError::Value { origin: source.unwrap_or_default(), key: key.to_owned(), problem }
            })?,
            sandbox_prefer: text("sandbox.prefer"),
            sandbox_allow_root: get("sandbox.allow_root").and_then(Value::as_bool).unwrap_or_default(),
            conversation: super::ConversationConfig::from_settings(settings),
            hooks: super::hooks::hook_commands(settings).0,
            providers: BTreeMap::new(),
            delegates: BTreeMap::new(),
            delegate_order: get("delegate_order").map(strings_from_value).unwrap_or_default(),
            delegate_tool: get("tools.delegate").map(strings_from_value).unwrap_or_default(),
        };
        config.add_tables(settings);
        Ok(config)
    }

    /// Adds the tables of providers and of other CLIs.
    fn add_tables(&mut self, settings: &Layer) {
        for (path, setting) in settings {
            let [table, name, rest @ ..] = path.as_slice() else { continue };
            match table.as_str() {
                "providers" => {
                    self.providers.entry(name.clone()).or_default().set_field(rest, &setting.value);
                }
                "delegates" => {
                    self.delegates.entry(name.clone()).or_default().set_field(rest, &setting.value);
                }
                _ => {}
            }
        }
    }
}

/// Returns the value of a key.
fn get_value<'s>(settings: &'s Layer, name: &str) -> Option<&'s Value> {
    settings.get(&split_key(name)).map(|setting| &setting.value)
}

fn get_text(settings: &Layer, name: &str) -> Option<String> {
    get_value(settings, name).and_then(Value::as_str).map(str::to_owned)
}

fn vectors_config(settings: &Layer) -> VectorsConfig {
    VectorsConfig {
        model: get_text(settings, "index.vectors"),
        weight: get_value(settings, "index.vectors_weight").and_then(number_from_value),
        timeout: get_value(settings, "index.vectors_timeout").and_then(duration_from_value),
        query_prefix: get_text(settings, "index.vectors_query_prefix"),
        document_prefix: get_text(settings, "index.vectors_document_prefix"),
    }
}

fn web_config(settings: &Layer) -> WebConfig {
    WebConfig {
        fetch: get_value(settings, "web.fetch").and_then(Value::as_bool),
        search: get_text(settings, "web.search"),
        search_url: get_text(settings, "web.search_url"),
        search_key_env: get_text(settings, "web.search_key_env"),
    }
}

fn command_tools(settings: &Layer) -> Result<Vec<CommandDefinition>, ConfigError> {
    super::command_tools::command_tools(settings).map_err(|problem| ConfigError::Value {
        origin: "the configuration".to_owned(),
        key: "tools.commands".to_owned(),
        problem,
    })
}

/// Returns the lists of the keys beneath a table, by the last part of the key.
fn get_lists_beneath(settings: &Layer, table: &[&str]) -> BTreeMap<String, Vec<String>> {
    let beneath = settings.iter().filter_map(|(path, setting)| {
        let (last, parents) = path.split_last()?;
        (parents == table).then(|| (last.clone(), strings_from_value(&setting.value)))
    });
    beneath.collect()
}

/// Returns the ways of copying a project that the setting names.
fn isolation_tiers(settings: &Layer) -> Result<Vec<IsolationTier>, ConfigError> {
    let Some(setting) = settings.get(&split_key("isolation")) else { return Ok(Vec::new()) };
    let known = |name: &String| IsolationTier::ALL.into_iter().find(|tier| tier.to_string() == *name);
    let unknown = |name: String| ConfigError::Value {
        origin: setting.source.to_string(),
        key: "isolation".to_owned(),
        problem: format!("has `{name}`; there are overlay, reflink, worktree and copy"),
    };
    strings_from_value(&setting.value)
        .into_iter()
        .map(|name| known(&name).ok_or_else(|| unknown(name)))
        .collect()
}

/// Returns the key of the project's instructions among the settings, beside the user's.
pub(super) fn project_instructions_key() -> Vec<String> {
    split_key("instructions.project")
}

/// Returns the key of the project's secrets among the settings, beside the user's.
pub(super) fn project_secrets_key() -> Vec<String> {
    split_key("secrets.project")
}

impl ProviderConfig {
    fn set_field(&mut self, path: &[String], value: &Value) {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = || value.as_str().map(str::to_owned);
        match words.as_slice() {
            ["wire"] => self.wire = text(),
            ["base_url"] => self.base_url = text(),
            ["key_env"] => self.key_env = Some(strings_from_value(value)),
            ["tool_calling"] => self.tool_calling = value.as_bool(),
            ["proxy"] => self.proxy = text(),
            ["headers", name] => {
                self.headers.insert((*name).to_owned(), text().unwrap_or_default());
            }
            ["connect_timeout"] => self.timeouts[0] = duration_from_value(value),
            ["first_byte_timeout"] => self.timeouts[1] = duration_from_value(value),
            ["idle_timeout"] => self.timeouts[2] = duration_from_value(value),
            ["total_timeout"] => self.timeouts[3] = duration_from_value(value),
            ["models", model, kind @ ("window" | "max_output" | "tokenizer")] => {
                let limits = self.limits.entry((*model).to_owned()).or_default();
                let tokens = value.as_integer().and_then(|number| u64::try_from(number).ok());
                match *kind {
                    "window" => limits.window = tokens,
                    "max_output" => limits.max_output = tokens,
                    _ => limits.tokenizer = text(),
                }
            }
            ["models", model, kind] => {
                let price = self.prices.entry((*model).to_owned()).or_default();
                let dollars = number_from_value(value);
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
fn number_from_value(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

fn strings_from_value(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
