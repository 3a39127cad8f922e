//! One CLI: how it is called, and what it needs.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Conversation;

/// A coding CLI. Pure: it runs nothing and reads nothing.
pub trait Adapter: Send + Sync {
    /// The name that people call it by: `claude`, `codex`.
    fn name(&self) -> &str;

    /// The program, looked up in `PATH`.
    fn program(&self) -> &str;

    /// A command that installs it, for the message that it is not installed.
    fn install_hint(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The environment, files and hosts that it needs.
    fn requirements(&self) -> Requirements;

    /// Builds the command of one run. No shell reads any of it.
    fn build_command(&self, request: &CommandRequest<'_>) -> CommandLine;

    /// Begins to read what the command writes.
    fn converse(&self, request: &CommandRequest<'_>) -> Box<dyn Conversation>;
}

/// What a CLI can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
}

/// What a CLI needs of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirements {
    /// The providers that it may talk to. The first one whose key or credentials are there counts.
    pub providers: Vec<Provider>,
    /// Further variables that are passed on where they are set: settings, never keys of others.
    pub environment: Vec<String>,
    /// Files and directories beneath the user's home that it reads its credentials from. Mounted
    /// read-only.
    pub credentials: Vec<PathBuf>,
    /// Directories beneath its own home that hold its sessions, kept for a resume.
    pub state: Vec<PathBuf>,
    /// Variables that are always set: updates, telemetry and prompts off.
    pub set: Vec<(String, String)>,
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
    /// The model; the CLI's own choice where unset.
    pub model: Option<&'a str>,
    /// True if the run is confined by us, so that the CLI's own permission prompts and sandbox are
    /// turned off.
    pub confined: bool,
    /// Further arguments of the user's.
    pub arguments: &'a [String],
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
