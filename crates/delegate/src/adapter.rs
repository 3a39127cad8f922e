//! The adapter of one CLI: how it is called, and what it needs.

use std::ffi::OsString;
use std::path::PathBuf;

use journeyman_protocol::Usage;
use serde::Serialize;

use crate::Conversation;

/// A coding CLI. Implementations run nothing and read nothing.
pub trait Adapter: Send + Sync {
    /// Returns the CLI's name for people: `claude`, `codex`.
    fn name(&self) -> &str;

    /// Returns the name of the program, which is looked up in `PATH`.
    fn program(&self) -> &str;

    /// Returns a command that installs the CLI, for the message that it isn't installed.
    fn install_hint(&self) -> &str;

    /// Returns the CLI's abilities.
    fn capabilities(&self) -> Capabilities;

    /// Returns the environment, files and hosts that the CLI needs.
    fn requirements(&self) -> Requirements;

    /// Builds the command of one run. No shell reads any of it.
    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine;

    /// Creates the reader of the command's output.
    fn start_conversation(&self, request: &CommandRequest<'_>) -> Box<dyn Conversation>;
}

/// The abilities of a CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Capabilities {
    /// True if the CLI works only in a directory of its own.
    pub needs_workspace: bool,
    /// True if the CLI reports its work while it works.
    pub streaming: bool,
    /// True if a session can be resumed by its id.
    pub resume: bool,
    /// True if the model can be chosen.
    pub model: bool,
    /// True if the CLI has its own sandbox, which a flag turns off.
    pub own_sandbox: bool,
    /// True if the CLI reports its cost in US dollars.
    pub cost: bool,
}

/// The providers, variables and files of the user that a CLI needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirements {
    /// The providers that the CLI may use. The first whose key is set is taken; for a user who is
    /// logged in by a file, the first without keys.
    pub providers: Vec<Provider>,
    /// Further variables that are passed on if they are set: settings, never other providers' keys.
    pub environment: Vec<String>,
    /// Files and directories beneath the user's home with the CLI's credentials, mounted read-only.
    /// The user is logged in if the first one exists.
    pub credentials: Vec<PathBuf>,
    /// Directories beneath the CLI's own home with its sessions, kept for a resume.
    pub state: Vec<PathBuf>,
    /// Variables that are always set: updates, telemetry and prompts off.
    pub set: Vec<(String, String)>,
}

impl Requirements {
    /// Keeps the providers that serve a model, so that no other provider's key is used. If the name
    /// matches no provider, all are kept.
    #[must_use]
    pub fn for_model(mut self, model: Option<&str>) -> Self {
        let serves = |provider: &Provider| {
            let prefix = provider.model_prefix.as_deref();
            prefix.zip(model).is_some_and(|(prefix, model)| model.starts_with(prefix))
        };
        if self.providers.iter().any(serves) {
            self.providers.retain(serves);
        }
        self
    }
}

/// A provider of models that a CLI talks to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provider {
    /// The variables with the provider's key.
    pub keys: Vec<String>,
    /// The variables with a base URL that replaces the provider's own.
    pub base_urls: Vec<String>,
    /// The provider's hosts.
    pub hosts: Vec<String>,
    /// The prefix of the provider's model names, for a CLI that names models by their provider.
    pub model_prefix: Option<String>,
    /// Files to write beneath the CLI's own home before a run with this provider: settings for
    /// which there is no variable and no flag. Never written into the user's home.
    pub files: Vec<(PathBuf, String)>,
}

/// The request for one run of a CLI.
#[derive(Debug, Clone, Copy)]
pub struct CommandRequest<'a> {
    /// The prompt: any bytes but NUL.
    pub prompt: &'a str,
    /// The directory to work in.
    pub directory: &'a std::path::Path,
    /// The CLI's own session to resume.
    pub resume: Option<&'a str>,
    /// Tokens and cost of the session's earlier runs, from their outcomes.
    pub spent: TokensAndCost,
    /// The model; the CLI's default if unset.
    pub model: Option<&'a str>,
    /// The base URL that replaces the provider's own.
    pub base_url: Option<&'a str>,
    /// True if the run is in our sandbox, so that the CLI's own permission prompts and sandbox are
    /// turned off.
    pub confined: bool,
    /// True if settings in the directory may be obeyed outside a sandbox: the directory is new, or
    /// the user trusts it.
    pub trusted: bool,
    /// Further arguments of the user's.
    pub arguments: &'a [String],
}

/// Tokens and cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TokensAndCost {
    /// The tokens.
    pub usage: Usage,
    /// Cost in US dollars, if known.
    pub cost: Option<f64>,
}

/// A program, its arguments and its input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The bytes for standard input. If [`CommandLine::interactive`] is set, more may follow.
    pub stdin: Vec<u8>,
    /// True if standard input stays open for the replies of [`Conversation::receive_line`].
    pub interactive: bool,
    /// Additional variables to set.
    pub environment: Vec<(String, String)>,
}

impl CommandLine {
    /// Creates a command line for this program.
    pub(crate) fn new(program: &str) -> Self {
        Self { argv: vec![program.into()], ..Self::default() }
    }

    /// Appends arguments.
    pub(crate) fn add_arguments(&mut self, arguments: &[impl AsRef<str>]) {
        self.argv.extend(arguments.iter().map(|argument| argument.as_ref().into()));
    }

    /// Appends an option and its value as one argument, so that no value can be read as a flag.
    pub(crate) fn add_option(&mut self, flag: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.argv.push(format!("{flag}={value}").into());
        }
    }

    /// Sets a variable.
    pub(crate) fn set_variable(&mut self, variable: &str, value: impl Into<String>) {
        self.environment.push((variable.to_owned(), value.into()));
    }
}

/// Returns a provider for any model, without files.
pub(crate) fn any_model_provider(keys: &[&str], base_urls: &[&str], hosts: &[&str]) -> Provider {
    let (keys, base_urls, hosts) = (to_strings(keys), to_strings(base_urls), to_strings(hosts));
    Provider { keys, base_urls, hosts, ..Provider::default() }
}

/// Converts texts to owned strings.
pub(crate) fn to_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Converts texts to paths.
pub(crate) fn to_paths(texts: &[&str]) -> Vec<PathBuf> {
    texts.iter().map(PathBuf::from).collect()
}

/// Converts pairs to owned variables and values.
pub(crate) fn to_variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
