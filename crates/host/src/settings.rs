//! Resolves a session's settings from the user's options, the configuration and an earlier run.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use journeyman_agent::{ChecksSetting, StartOptions};
use journeyman_protocol::{Mode, RelPath};
use toml::Value;

use crate::config::{
    Config, ConfigError, Environment, Flag, LoadedConfig, ProjectTrust, TrustStore, load_config,
    load_without_project,
};
use crate::confirmations::ask_for_trust;
use crate::{Confirmations, HostError};

/// The administrator's configuration.
pub const ADMIN_CONFIG: &str = "/etc/journeyman/config.toml";
/// The administrator's rules.
pub const ADMIN_POLICY: &str = "/etc/journeyman/policy.toml";
/// The source of options that come from [`EarlierRun`], for errors.
const EARLIER_RUN_SOURCE: &str = "the session as it was";
/// The prefix of the name of a model that was named by its address alone.
const CUSTOM_MODEL_PREFIX: &str = "custom/";

/// Options that a user gives for one run. Unset options leave the configuration as it is.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The model, as `provider/name`.
    pub model: Option<String>,
    /// The address of a model without a provider.
    pub base_url: Option<String>,
    /// The protocol of `base_url`.
    pub wire: Option<String>,
    /// Output limit of one reply, in tokens.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// File that every exchange with the model is recorded in.
    pub record: Option<PathBuf>,
    /// Recording that is played back instead of asking a model.
    pub replay: Option<PathBuf>,
    /// The permission mode.
    pub mode: Option<String>,
    /// The agent to run, whose model counts where none is named here.
    pub agent: Option<String>,
    /// True if a run in plan mode makes a plan; else it answers a question.
    pub plans: bool,
    /// When a first task is planned before it is worked on: `auto`, `always` or `never`.
    pub plan_first: Option<String>,
    /// Files that the user has open, from the current directory; they count as named by the task.
    pub open_files: Vec<PathBuf>,
    /// Commands that verify the change; empty for those of the configuration or the project.
    pub checks: Vec<String>,
    /// Verify nothing.
    pub no_checks: bool,
    /// Findings about tests and checks that are accepted, in place of those of the configuration.
    pub accept_findings: Vec<String>,
    /// The strength of tests that a verified change needs: `ran`, `covers` or `notices`.
    pub verified_needs: Option<String>,
    /// Seconds of wall time for measuring what the tests would notice; 0 for none.
    pub notice: Option<f64>,
    /// Maximum number of model requests.
    pub max_turns: Option<u32>,
    /// Maximum rounds of feedback from failed checks.
    pub max_iterations: Option<u32>,
    /// Wall time, such as `10m`.
    pub timeout: Option<String>,
    /// US dollars.
    pub budget: Option<f64>,
    /// Trust the project's configuration in this run.
    pub trust_project: bool,
    /// Let sandboxes other than the strongest run root's commands.
    pub allow_root: bool,
}

/// The settings that a session was started with, for opening it again.
#[derive(Debug, Clone)]
pub struct EarlierRun {
    /// The model, as `provider/name`.
    pub model: String,
    /// The permission mode.
    pub mode: Mode,
    /// The options of the user besides the configuration.
    pub asked: StartOptions,
}

/// The configuration of a run.
#[derive(Debug, Default)]
pub struct ResolvedSettings {
    /// The merged configuration.
    pub config: Config,
    /// The options of the user besides the configuration; kept for opening the session again.
    pub asked: StartOptions,
    /// Warnings about settings that have no effect.
    pub warnings: Vec<String>,
    /// The files that the user has open.
    pub open_files: Vec<RelPath>,
}

impl ResolvedSettings {
    /// Returns the checks that decide whether a change is verified.
    #[must_use]
    pub fn checks(&self) -> ChecksSetting {
        match (&self.asked.checks, &self.config.checks) {
            (Some(ChecksSetting::Off), _) => ChecksSetting::Off,
            (_, Some(commands)) => ChecksSetting::Custom(commands.clone()),
            (_, None) => ChecksSetting::Found,
        }
    }
}

/// Loads the configuration of a run. With `prompts`, asks for trust in the project's configuration.
///
/// # Errors
/// [`HostError::Usage`] for a wrong option or configuration, and for a project's configuration that
/// nobody trusts.
pub fn resolve_settings(
    environment: &Environment,
    root: &Path,
    options: &RunOptions,
    earlier: Option<&EarlierRun>,
    prompts: Option<&dyn Confirmations>,
) -> Result<ResolvedSettings, HostError> {
    let asked = merge_start_options(options, earlier)?;
    let open_files = find_open_files(environment, root, &options.open_files)?;
    let flags = to_config_flags(options, earlier, &asked);
    let LoadedConfig { mut config, warnings, .. } =
        load_asking_for_trust(environment, root, &flags, options.trust_project, prompts)?;
    if has_model_of_provider(options, earlier) {
        // An address that was configured since is not where the session's model is.
        (config.base_url, config.wire) = (None, None);
    }
    #[cfg(feature = "containers")]
    crate::containers::load_image_recipe(&mut config, environment, root, options.trust_project, prompts)?;
    Ok(ResolvedSettings { config, asked, warnings, open_files })
}

/// Returns true if the run goes on with the model of a provider that the earlier run had.
fn has_model_of_provider(options: &RunOptions, earlier: Option<&EarlierRun>) -> bool {
    options.model.is_none()
        && options.base_url.is_none()
        && options.wire.is_none()
        && earlier.is_some_and(|earlier| !earlier.model.starts_with(CUSTOM_MODEL_PREFIX))
}

/// Returns files that the user has open as paths in the project.
///
/// # Errors
/// [`HostError::Usage`] for a path that is no file of the project.
pub(crate) fn find_open_files(
    environment: &Environment,
    root: &Path,
    given: &[PathBuf],
) -> Result<Vec<RelPath>, HostError> {
    let find = |given: &PathBuf| {
        let problem = |why: &str| HostError::usage(format_args!("--open {}: {why}", given.display()));
        let file = std::fs::canonicalize(environment.cwd.join(given));
        let file = file.map_err(|error| problem(&error.to_string()))?;
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let inside = file.strip_prefix(&root).ok().filter(|_| file.is_file());
        let path = inside.ok_or_else(|| problem("it is no file of the project"))?;
        RelPath::parse(path.as_os_str().as_bytes()).map_err(|error| problem(&error.to_string()))
    };
    given.iter().map(find).collect()
}

/// Loads the configuration as if the project were trusted, for commands that neither run nor send
/// anything because of it.
///
/// # Errors
/// [`HostError::Usage`] for a wrong configuration.
pub fn load_assuming_trust(environment: &Environment, root: &Path) -> Result<Config, HostError> {
    Ok(load_config(environment, root, &[], ProjectTrust::ThisRun, Some(Path::new(ADMIN_CONFIG)))?.config)
}

/// Loads the configuration without asking for trust. Returns true as the second value if an
/// untrusted project file was left out.
///
/// # Errors
/// [`HostError::Usage`] for a wrong configuration.
pub fn load_without_untrusted(environment: &Environment, root: &Path) -> Result<(Config, bool), HostError> {
    let store = environment.state_dir().map(|dir| TrustStore::new(&dir));
    let trust = store.as_ref().map_or(ProjectTrust::Nothing, ProjectTrust::Remembered);
    let admin = Some(Path::new(ADMIN_CONFIG));
    match load_config(environment, root, &[], trust, admin) {
        Ok(loaded) => Ok((loaded.config, false)),
        Err(ConfigError::Untrusted { .. }) => Ok((load_without_project(environment, admin)?, true)),
        Err(error) => Err(error.into()),
    }
}

fn load_asking_for_trust(
    environment: &Environment,
    root: &Path,
    flags: &[Flag],
    trust_project: bool,
    prompts: Option<&dyn Confirmations>,
) -> Result<LoadedConfig, HostError> {
    let store = environment.state_dir().map(|dir| TrustStore::new(&dir));
    let admin = Some(Path::new(ADMIN_CONFIG));
    let load_remembered = |store: &Option<TrustStore>| match store {
        Some(store) => load_config(environment, root, flags, ProjectTrust::Remembered(store), admin),
        None => load_config(environment, root, flags, ProjectTrust::Nothing, admin),
    };
    if trust_project {
        return Ok(load_config(environment, root, flags, ProjectTrust::ThisRun, admin)?);
    }
    match (load_remembered(&store), &store, prompts) {
        (Err(ConfigError::Untrusted { path, keys, values, hash }), Some(trusted), Some(prompts)) => {
            if !ask_for_trust(prompts, trusted, &path, &hash, (&keys, &values))? {
                return Err(ConfigError::Untrusted { path, keys, values, hash }.into());
            }
            Ok(load_remembered(&store)?)
        }
        (loaded, ..) => Ok(loaded?),
    }
}

/// Merges the user's options over the options of the earlier run.
fn merge_start_options(
    options: &RunOptions,
    earlier: Option<&EarlierRun>,
) -> Result<StartOptions, HostError> {
    if let Some(blank) = options.checks.iter().find(|check| check.trim().is_empty()) {
        return Err(HostError::usage(format_args!("--check `{blank}` is empty; give a shell command")));
    }
    let earlier = earlier.map(|earlier| earlier.asked.clone()).unwrap_or_default();
    // Another model has another address, unless the user sets one.
    let is_elsewhere = options.model.is_some() || options.base_url.is_some();
    let (base_url, wire) = match is_elsewhere {
        true => (options.base_url.clone(), options.wire.clone()),
        false => (earlier.base_url, options.wire.clone().or(earlier.wire)),
    };
    let checks = match (options.no_checks, options.checks.is_empty()) {
        (true, _) => Some(ChecksSetting::Off),
        (false, false) => Some(ChecksSetting::Custom(options.checks.clone())),
        (false, true) => earlier.checks,
    };
    Ok(StartOptions { base_url, wire, checks, ..earlier })
}

/// Removes a base URL that may contain a password or a token.
pub(crate) fn without_secrets(asked: &StartOptions) -> StartOptions {
    let has_secret = |url: &String| url.contains(['@', '?']);
    match &asked.base_url {
        Some(url) if has_secret(url) => StartOptions { base_url: None, wire: None, ..asked.clone() },
        _ => asked.clone(),
    }
}

fn to_config_flags(options: &RunOptions, earlier: Option<&EarlierRun>, asked: &StartOptions) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut add_text = |flag, key, value: Option<&String>| {
        if let Some(value) = value {
            flags.push(Flag { flag, key, value: Value::String(value.clone()) });
        }
    };
    let model = earlier
        .map(|earlier| earlier.model.strip_prefix(CUSTOM_MODEL_PREFIX).unwrap_or(&earlier.model).to_owned());
    let source = |flag, given: &Option<String>| if given.is_some() { flag } else { EARLIER_RUN_SOURCE };
    add_text(source("--model", &options.model), "model", options.model.as_ref().or(model.as_ref()));
    add_text(source("--base-url", &options.base_url), "base_url", asked.base_url.as_ref());
    add_text(source("--wire", &options.wire), "wire", asked.wire.as_ref());
    let mode = earlier.map(|earlier| earlier.mode.name().to_owned());
    add_text(source("--mode", &options.mode), "mode", options.mode.as_ref().or(mode.as_ref()));
    add_text("--plan-first", "plan_first", options.plan_first.as_ref());
    add_text("--timeout", "timeout", options.timeout.as_ref());
    add_text("--verified-needs", "verified_needs", options.verified_needs.as_ref());
    for (flag, key, value) in [
        ("--max-turns", "max_turns", options.max_turns),
        ("--max-iterations", "max_iterations", options.max_iterations),
        ("--max-output-tokens", "max_output_tokens", options.max_output_tokens),
    ] {
        if let Some(value) = value {
            flags.push(Flag { flag, key, value: Value::Integer(i64::from(value)) });
        }
    }
    if options.allow_root {
        flags.push(Flag { flag: "--allow-root", key: "sandbox.allow_root", value: Value::Boolean(true) });
    }
    for (flag, key, value) in [
        ("--budget", "budget_usd", options.budget),
        ("--temperature", "temperature", options.temperature),
        ("--notice", "notice_budget", options.notice),
    ] {
        flags.extend(value.map(|value| Flag { flag, key, value: Value::Float(value) }));
    }
    if let Some(ChecksSetting::Custom(checks)) = &asked.checks {
        let checks = checks.iter().cloned().map(Value::String).collect();
        flags.push(Flag { flag: "--check", key: "checks", value: Value::Array(checks) });
    }
    if !options.accept_findings.is_empty() {
        let accepted = options.accept_findings.iter().cloned().map(Value::String).collect();
        flags.push(Flag { flag: "--accept-finding", key: "accept_findings", value: Value::Array(accepted) });
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(model: Option<&str>, base_url: Option<&str>, checks: &[&str], no_checks: bool) -> RunOptions {
        let text = |text: Option<&str>| text.map(str::to_owned);
        RunOptions {
            model: text(model),
            base_url: text(base_url),
            checks: checks.iter().map(|&check| check.to_owned()).collect(),
            no_checks,
            ..RunOptions::default()
        }
    }

    fn earlier() -> EarlierRun {
        let asked = StartOptions {
            base_url: Some("http://one".to_owned()),
            wire: Some("chat".to_owned()),
            checks: Some(ChecksSetting::Custom(vec!["make".to_owned()])),
            ..StartOptions::default()
        };
        EarlierRun { model: "custom/tiny".to_owned(), mode: Mode::Edit, asked }
    }

    #[test]
    fn options_override_the_earlier_run() {
        let earlier = earlier();
        let earlier = Some(&earlier);
        // The options; the address, the model and the checks that hold then.
        let custom = |check: &str| Some(ChecksSetting::Custom(vec![check.to_owned()]));
        let cases = [
            (options(None, None, &[], false), Some("http://one"), "tiny", custom("make")),
            (options(Some("openai/gpt-5"), None, &[], false), None, "openai/gpt-5", custom("make")),
            (options(None, Some("http://two"), &["true"], false), Some("http://two"), "tiny", custom("true")),
            (options(None, None, &[], true), Some("http://one"), "tiny", Some(ChecksSetting::Off)),
        ];
        for (options, base_url, model, checks) in cases {
            let asked = merge_start_options(&options, earlier).unwrap();
            assert_eq!(asked.base_url.as_deref(), base_url, "{options:?}");
            assert_eq!(asked.checks, checks, "{options:?}");
            let flags = to_config_flags(&options, earlier, &asked);
            let flag = |key: &str| flags.iter().find(|flag| flag.key == key).map(|flag| flag.value.clone());
            assert_eq!(flag("model"), Some(Value::String(model.to_owned())), "{options:?}");
            assert_eq!(flag("base_url"), base_url.map(|url| Value::String(url.to_owned())), "{options:?}");
            assert_eq!(flag("mode"), Some(Value::String("edit".to_owned())), "{options:?}");
        }
    }

    #[test]
    fn an_address_with_a_secret_is_not_kept() {
        for (url, kept) in [
            ("http://127.0.0.1:8080/v1", true),
            ("https://me:secret@example.com/v1", false),
            ("https://example.com/v1?key=secret", false),
        ] {
            let (base_url, wire) = (Some(url.to_owned()), Some("chat".to_owned()));
            let asked = StartOptions { base_url, wire, ..StartOptions::default() };
            assert_eq!(without_secrets(&asked).base_url.is_some(), kept, "{url}");
            assert_eq!(without_secrets(&asked).wire.is_some(), kept, "{url}");
        }
    }
}
