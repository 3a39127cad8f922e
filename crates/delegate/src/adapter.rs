//! One CLI: how it is called, and what it needs.

use std::ffi::OsString;
use std::path::PathBuf;

use journeyman_protocol::Usage;
use serde::Serialize;

use crate::Conversation;

/// A coding CLI. Pure: it runs nothing and reads nothing.
pub trait Adapter: Send + Sync {
    /// The name that people call it by: `claude`, `codex`.
    fn name(&self) -> &str;

    /// The program, looked up in `PATH`.
    fn program(&self) -> &str;

    /// A command that installs it, for the message that it is not installed.
    fn install_hint(&self) -> &str;

    /// Returns its abilities.
    fn capabilities(&self) -> Capabilities;

    /// The environment, files and hosts that it needs.
    fn requirements(&self) -> Requirements;

    /// Builds the command of one run. No shell reads any of it.
    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine;

    /// Begins to read what the command writes.
    fn converse(&self, request: &CommandRequest<'_>) -> Box<dyn Conversation>;
}

/// The abilities of a CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Capabilities {
    /// True if it works only in a directory of its own.
    pub needs_workspace: bool,
    /// True if it tells of its work while it works.
    pub streaming: bool,
    /// True if a session can be gone on with by its id.
    pub resume: bool,
    /// True if its model can be chosen.
    pub model: bool,
    /// True if it has a sandbox of its own, which a flag turns off.
    pub own_sandbox: bool,
    /// It tells its cost in US dollars.
    pub cost: bool,
}

/// The things of the user's that a CLI needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirements {
    /// The providers that it may talk to. The first one whose key is set counts; for a user who is
    /// logged in by a file, the first one without keys.
    pub providers: Vec<Provider>,
    /// Further variables that are passed on where they are set: settings, never keys of others.
    pub environment: Vec<String>,
    /// Files and directories beneath the user's home that it reads its credentials from. Mounted
    /// read-only. The first one is the login: where it is, the user is logged in.
    pub credentials: Vec<PathBuf>,
    /// Directories beneath its own home that hold its sessions, kept for a resume.
    pub state: Vec<PathBuf>,
    /// Variables that are always set: updates, telemetry and prompts off.
    pub set: Vec<(String, String)>,
}

impl Requirements {
    /// Keeps the providers that serve a model, so that no other one's key counts. Where the name
    /// tells nothing, all are kept.
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
    /// The variables with its key.
    pub keys: Vec<String>,
    /// The variables with the address to use in place of the provider's own.
    pub base_urls: Vec<String>,
    /// The hosts that it is reached at.
    pub hosts: Vec<String>,
    /// The beginning of its models' names, for a CLI that names models by their provider.
    pub model_prefix: Option<String>,
    /// Files to write beneath the CLI's own home before a run that uses this provider: settings
    /// for which there is no variable and no flag. Never written into the user's home.
    pub files: Vec<(PathBuf, String)>,
}

/// One run of a CLI.
#[derive(Debug, Clone, Copy)]
pub struct CommandRequest<'a> {
    /// The prompt, whatever bytes it holds but NUL.
    pub prompt: &'a str,
    /// The directory to work in.
    pub directory: &'a std::path::Path,
    /// The CLI's own session to go on with.
    pub resume: Option<&'a str>,
    /// Tokens and cost of that session's earlier runs, as their outcomes told.
    pub spent: Spent,
    /// The model; the CLI's own choice where unset.
    pub model: Option<&'a str>,
    /// The address to use in place of the provider's own.
    pub base_url: Option<&'a str>,
    /// True if the run is confined by us, so that the CLI's own permission prompts and sandbox are
    /// turned off.
    pub confined: bool,
    /// True if settings that lie in the directory may be obeyed outside of a sandbox: it is a fresh
    /// one, or the user trusts it.
    pub trusted: bool,
    /// Further arguments of the user's.
    pub arguments: &'a [String],
}

/// Tokens and cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// The tokens.
    pub usage: Usage,
    /// US dollars, where they are known.
    pub cost: Option<f64>,
}

/// A program, its arguments and its input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The bytes on its standard input. Where [`CommandLine::interactive`], more may follow.
    pub stdin: Vec<u8>,
    /// True if standard input stays open for what [`Conversation::receive`] answers.
    pub interactive: bool,
    /// Variables to set besides.
    pub environment: Vec<(String, String)>,
}

impl CommandLine {
    /// Begins a command of this program.
    pub(crate) fn new(program: &str) -> Self {
        Self { argv: vec![program.into()], ..Self::default() }
    }

    /// Appends arguments.
    pub(crate) fn arguments(&mut self, arguments: &[impl AsRef<str>]) {
        self.argv.extend(arguments.iter().map(|argument| argument.as_ref().into()));
    }

    /// Appends an option and its value as one argument, so that no value can be read as a flag.
    pub(crate) fn option(&mut self, flag: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.argv.push(format!("{flag}={value}").into());
        }
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, variable: &str, value: impl Into<String>) {
        self.environment.push((variable.to_owned(), value.into()));
    }
}

/// Returns a provider of any models, without files of its own.
pub(crate) fn provider(keys: &[&str], base_urls: &[&str], hosts: &[&str]) -> Provider {
    let (keys, base_urls, hosts) = (strings(keys), strings(base_urls), strings(hosts));
    Provider { keys, base_urls, hosts, ..Provider::default() }
}

/// Returns owned texts.
pub(crate) fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns paths.
pub(crate) fn paths(texts: &[&str]) -> Vec<PathBuf> {
    texts.iter().map(PathBuf::from).collect()
}

/// Returns variables and their values.
pub(crate) fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
