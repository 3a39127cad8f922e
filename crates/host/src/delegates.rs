//! Finds other coding CLIs with the user's settings, and names them as models of sessions.
//!
//! A CLI is named as a model is: `delegate/NAME`, or `delegate/NAME/MODEL` for a model of the
//! CLI's own. So a session, a session that is opened again and a candidate work with one as with
//! any model. `delegate/auto` is the first one that is installed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_delegate::{
    Capabilities, CliAccess, Credentials, DelegateSettings, Delegates, FreshDirectory, builtin_adapters,
    remove_abandoned,
};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, find_toolchains};
use serde::Serialize;

use crate::config::{Config, DelegateConfig, Environment};
use crate::sandboxes::allowed_tiers;
use crate::{Context as _, HostError, load_assuming_trust, load_without_untrusted};

/// The beginning of the names of models that are CLIs.
const DELEGATE_PREFIX: &str = "delegate/";
/// The name that selects the first installed CLI.
pub const AUTO_CLI: &str = "auto";

/// Returns the name of a model that is a CLI, with a model of the CLI's own if there is one.
#[must_use]
pub fn model_name(cli: &str, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("{DELEGATE_PREFIX}{cli}/{model}"),
        None => format!("{DELEGATE_PREFIX}{cli}"),
    }
}

/// Splits `delegate/NAME/MODEL` into the CLI's name and the CLI's model.
#[must_use]
pub fn parse_model_name(name: &str) -> Option<(&str, Option<&str>)> {
    let rest = name.strip_prefix(DELEGATE_PREFIX)?;
    Some(match rest.split_once('/') {
        Some((cli, model)) => (cli, Some(model)),
        None => (rest, None),
    })
}

/// Returns the user's CLIs in order of preference: those in `delegate_order`, then the others.
#[must_use]
pub fn find_delegates(config: &Config, environment: &Environment, root: Option<&Path>) -> Delegates {
    let builtin = builtin_adapters().into_iter().map(|adapter| DelegateSettings::new(Arc::from(adapter)));
    let described = config.delegates.iter().filter_map(|(name, own)| own.configured_cli(name));
    let described = described.map(|cli| DelegateSettings::new(Arc::new(cli)));
    let mut all: Vec<DelegateSettings> = builtin.chain(described).collect();
    for one in &mut all {
        if let Some(own) = config.delegates.get(one.adapter.name()) {
            apply_delegate_config(one, own);
        }
    }
    let rank = |one: &DelegateSettings| {
        config.delegate_order.iter().position(|name| name == one.adapter.name()).unwrap_or(usize::MAX)
    };
    all.sort_by_key(rank);
    let host = HostEnvironment { vars: environment.vars.clone(), home: environment.home.clone() };
    Delegates::new(all, host, root)
}

fn apply_delegate_config(settings: &mut DelegateSettings, own: &DelegateConfig) {
    settings.model.clone_from(&own.model);
    settings.arguments.clone_from(&own.arguments);
    settings.time_limit = own.timeout;
    settings.base_url.clone_from(&own.base_url);
    settings.network.clone_from(&own.network);
}

/// Returns the API keys passed to a session's CLIs, which have to be redacted.
pub(crate) fn delegate_secrets(config: &Config, environment: &Environment) -> Vec<String> {
    let delegates = find_delegates(config, environment, None).retain_named(&config.delegate_tool);
    let access =
        |one: &DelegateSettings| CliAccess::from_environment(one, delegates.host_environment(), true).ok();
    delegates.all().iter().filter_map(access).flat_map(|access| access.secrets).collect()
}

/// A CLI in the output of `jm delegate --list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedCli {
    /// Its name.
    pub name: String,
    /// Its program, where it is installed.
    pub program: Option<PathBuf>,
    /// Its version, if it tells one.
    pub version: Option<String>,
    /// The variable or file that its user is logged in by, as far as can be told without a network.
    pub login: Option<String>,
    /// The hosts and addresses that it may reach when it is confined.
    pub hosts: Vec<String>,
    /// The things that it can do.
    pub capabilities: Capabilities,
    /// A command that installs it.
    pub install: String,
    /// The reason why it can't be confined as it is set up.
    pub problem: Option<String>,
}

impl ListedCli {
    /// Describes how the CLI's user is logged in.
    #[must_use]
    pub fn describe_login(&self) -> String {
        match self.login.as_deref() {
            Some(login) => format!("logged in by {login}"),
            None => "no login or key was found".to_owned(),
        }
    }

    /// Describes what the CLI may do when it is confined, or why it can't be.
    #[must_use]
    pub fn describe_confinement(&self) -> String {
        let reach = if self.hosts.is_empty() { "no host".to_owned() } else { self.hosts.join(", ") };
        let may = || format!("confined: may change a copy of the project, and reach {reach}");
        self.problem.clone().unwrap_or_else(may)
    }
}

/// Creates a temporary directory for a low-risk task, and removes those that killed processes left
/// behind.
///
/// # Errors
/// [`HostError`] where it can't be made, or there is no state directory to record it in.
pub fn create_task_directory(environment: &Environment) -> Result<FreshDirectory, HostError> {
    let records = task_records_directory(environment)?;
    let parent = environment.vars.get(OsStr::new("TMPDIR")).map_or(Path::new("/tmp"), Path::new);
    // CLIs name their files without links.
    let parent = parent.canonicalize().context("making a fresh directory")?;
    FreshDirectory::create(&parent, &records).context("making a fresh directory")
}

/// Removes temporary directories for low-risk tasks that killed processes left behind.
pub fn remove_abandoned_directories(environment: &Environment) {
    if let Ok(records) = task_records_directory(environment) {
        remove_abandoned(&records);
    }
}

fn task_records_directory(environment: &Environment) -> Result<PathBuf, HostError> {
    let state = environment.state_dir().ok_or_else(|| HostError::usage("there is no state directory"))?;
    Ok(state.join("fresh-directories"))
}

/// Loads the configuration for listing the CLIs of a project, or of the current directory without
/// one. Returns true as the second value if an untrusted project file was left out.
///
/// # Errors
/// [`HostError::Usage`] for a wrong configuration.
pub fn load_listed_config(
    environment: &Environment,
    root: Option<&Path>,
    trust_project: bool,
) -> Result<(Config, bool), HostError> {
    let configured = root.unwrap_or(&environment.cwd);
    match trust_project {
        true => Ok((load_assuming_trust(environment, configured)?, false)),
        false => load_without_untrusted(environment, configured),
    }
}

/// Lists the known CLIs in order of preference. Runs each installed CLI in the sandbox to get its
/// version.
///
/// # Errors
/// [`HostError`] for sandbox settings that can't be used.
pub async fn list_delegates(
    config: &Config,
    environment: &Environment,
    root: Option<&Path>,
) -> Result<Vec<ListedCli>, HostError> {
    let delegates = find_delegates(config, environment, root);
    // Without a project they are asked in an empty directory.
    let fresh = if root.is_none() { Some(create_task_directory(environment)?) } else { None };
    let root = root.or(fresh.as_ref().map(FreshDirectory::path)).unwrap_or(&environment.cwd);
    let sandbox = Sandbox::new(SandboxSettings {
        allow: allowed_tiers(config)?,
        allow_root: config.sandbox_allow_root,
        ..SandboxSettings::default()
    });
    let toolchains = find_toolchains(delegates.host_environment(), root);
    let asked = delegates.all().iter().map(|one| delegates.read_version(one, &sandbox, &toolchains, root));
    let versions = futures_util::future::join_all(asked).await.into_iter().flatten().collect();
    let listed = delegates.all().iter().map(|one| {
        let found = delegates.detect(one, &versions);
        let (hosts, problem) = match CliAccess::from_environment(one, delegates.host_environment(), true) {
            Ok(access) => (access.hosts(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let login = found.as_ref().and_then(|found| match &found.credentials {
            Credentials::Key(variable) => Some(format!("${variable}")),
            Credentials::File(path) => Some(format!("~/{}", path.display())),
            Credentials::Missing | Credentials::Unknown => None,
        });
        let (program, version) = found.map(|found| (Some(found.path), found.version)).unwrap_or_default();
        let capabilities = one.adapter.capabilities();
        let (name, install) = (one.adapter.name().to_owned(), one.adapter.install_hint().to_owned());
        ListedCli { name, program, version, login, hosts, capabilities, install, problem }
    });
    Ok(listed.collect())
}

/// Checks the names in the lists of CLIs of a configuration.
///
/// # Errors
/// The configuration key and the unknown CLI name.
pub(crate) fn check_delegate_names(config: &Config, environment: &Environment) -> Result<(), String> {
    let known = find_delegates(config, environment, None).names();
    let lists = [("tools.delegate", &config.delegate_tool), ("delegate_order", &config.delegate_order)];
    let names = lists.into_iter().flat_map(|(key, names)| names.iter().map(move |name| (key, name)));
    let tables = config.delegates.keys().map(|name| ("delegates", name));
    match names.chain(tables).find(|(_, name)| !known.contains(name)) {
        Some((key, name)) => {
            Err(format!("{key} names the CLI `{}`; there are {}", name.escape_debug(), known.join(", ")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment { vars: [("PATH".into(), "/nonexistent".into())].into(), home: None, cwd: "/".into() }
    }

    #[test]
    fn a_cli_is_named_as_a_model() {
        assert_eq!(parse_model_name("delegate/codex"), Some(("codex", None)));
        assert_eq!(parse_model_name("delegate/opencode/a/b"), Some(("opencode", Some("a/b"))));
        assert_eq!(parse_model_name("anthropic/claude"), None);
        assert_eq!(model_name("codex", Some("gpt-5")), "delegate/codex/gpt-5");
    }

    #[test]
    fn the_order_of_preference_is_the_users() {
        let config =
            Config { delegate_order: vec!["opencode".to_owned(), "codex".to_owned()], ..Config::default() };
        let names = find_delegates(&config, &environment(), None).names();
        assert_eq!(names, ["opencode", "codex", "claude", "gemini"]);
    }

    #[test]
    fn a_cli_with_a_login_comes_before_one_without() {
        let directory = tempfile::tempdir().unwrap();
        for program in ["claude", "codex"] {
            journeyman_testkit::write_program(&directory.path().join(program), "#!/bin/sh\n");
        }
        let first = |key: &str| {
            let path = directory.path().to_owned().into_os_string();
            let mut vars: std::collections::BTreeMap<_, _> = [("PATH".into(), path)].into();
            vars.insert(key.into(), "key".into());
            let environment = Environment { vars, home: None, cwd: "/".into() };
            let delegates = find_delegates(&Config::default(), &environment, None);
            delegates.first_installed().unwrap().adapter.name().to_owned()
        };
        assert_eq!(first("OPENAI_API_KEY"), "codex");
        assert_eq!(first("ANTHROPIC_API_KEY"), "claude");
        assert_eq!(first("OTHER"), "claude", "the order of preference counts where none has a login");
    }

    #[test]
    fn a_budget_needs_a_cli_that_tells_its_cost() {
        let directory = tempfile::tempdir().unwrap();
        for program in ["claude", "codex"] {
            journeyman_testkit::write_program(&directory.path().join(program), "#!/bin/sh\n");
        }
        let keys = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"].map(|key| (key.into(), "key".into()));
        let mut vars: std::collections::BTreeMap<_, _> = keys.into();
        vars.insert("PATH".into(), directory.path().to_owned().into_os_string());
        let environment = Environment { vars, home: None, cwd: "/".into() };
        let config = Config { budget_usd: Some(1.0), ..Config::default() };
        let settings = |cli| {
            let connected = crate::models::connect_delegate(&config, &environment, cli, None).unwrap();
            let approver = journeyman_agent::Approver::Nobody;
            crate::builder::run_settings(&config, &connected, approver, journeyman_agent::ChecksSetting::Off)
        };
        assert!(settings("claude").is_ok());
        let error = settings("codex").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("which codex doesn't tell"), "{error}");
    }

    #[test]
    fn a_cli_that_is_unknown_or_not_installed_says_what_to_do() {
        let error =
            |cli| crate::models::connect_delegate(&Config::default(), &environment(), cli, None).err();
        for (cli, expected) in [
            ("codex", "codex is not installed; install it with `npm install -g @openai/codex`"),
            ("other", "there is no CLI `other`; there are claude, codex, gemini, opencode"),
            (
                AUTO_CLI,
                "none of claude, codex, gemini, opencode is installed; install one, such as by `npm install -g \
                 @anthropic-ai/claude-code`",
            ),
        ] {
            let message = error(cli).map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains(expected), "{message}");
        }
        let config = Config { delegate_tool: vec!["codx".to_owned()], ..Config::default() };
        let problem = check_delegate_names(&config, &environment()).unwrap_err();
        assert!(problem.contains("tools.delegate names the CLI `codx`"), "{problem}");
    }
}
