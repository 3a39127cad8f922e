//! Loads and saves rule files: a `policy.toml` beside each `config.toml`.
//!
//! Rule files need no trust: a project's rules may only deny or ask, and an allowing rule is an
//! error. A file that doesn't parse prevents the start, because an unread rule forbids nothing.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use journeyman_policy::{Policy, Rule, RuleLayer, Rules};

use super::ConfigError;
use super::files::{PROJECT_DIR, read_project_file, read_user_file};
use super::{Environment, SettingSource};
use crate::durable_file::{lock_directory, replace_file};

/// The name of a file of rules.
const POLICY_FILE: &str = "policy.toml";
/// The name of a project's configuration.
const PROJECT_CONFIG_FILE: &str = "config.toml";

/// A file that may have rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// The layer of the rules.
    pub layer: RuleLayer,
    /// The path of the file.
    pub path: PathBuf,
    /// The number of rules; `None` where the file doesn't exist.
    pub rules: Option<usize>,
}

/// The rules of all layers.
#[derive(Debug, Clone)]
pub struct LoadedPolicy {
    /// The policy with all rules.
    pub policy: Policy,
    /// The files that were looked for.
    pub files: Vec<PolicyFile>,
}

/// Maximum number of parent directories that are searched for a project's repository.
const MAX_PARENT_DIRECTORIES: usize = 64;

/// Reads the rules that hold for the project at `root`: the administrator's, which are in `admin`,
/// the user's, the project's; and where `root` is a directory of a repository, those of each
/// directory above it in the repository: the rules of the whole repository bind its subdirectories.
/// Their paths are held against paths beneath `root`. Rules may name the built-in tools, those of
/// MCP servers, and `registered_tools`, which the caller added.
///
/// # Errors
/// [`ConfigError`] for a file that can't be read, and for one that says something that can't hold,
/// with its line.
pub fn load_policy(
    environment: &Environment,
    root: &Path,
    admin: Option<&Path>,
    registered_tools: &[&str],
) -> Result<LoadedPolicy, ConfigError> {
    let user = environment.config_dir().map(|dir| dir.join(POLICY_FILE));
    let mut places = vec![(RuleLayer::Admin, admin.map(Path::to_owned)), (RuleLayer::User, user)];
    let projects: Vec<&Path> = ancestors_within_repository(root);
    places.extend(
        projects.iter().map(|dir| (RuleLayer::Project, Some(dir.join(PROJECT_DIR).join(POLICY_FILE)))),
    );
    let mut projects = projects.into_iter();
    let mut loaded = LoadedPolicy { policy: Policy::default(), files: Vec::new() };
    for (layer, path) in places {
        let Some(path) = path else { continue };
        let text = match layer {
            RuleLayer::Project => match projects.next() {
                Some(dir) => read_project_file(dir, POLICY_FILE)?,
                None => None,
            },
            RuleLayer::Admin | RuleLayer::User | RuleLayer::Session => read_user_file(&path)?,
        };
        let mut count = None;
        if let Some(text) = text {
            let is_registered = |name: &str| registered_tools.contains(&name);
            let file = path.display().to_string();
            let rules = Rules::parse_with_tools(&text, layer, &file, &is_registered)?;
            count = Some(rules.len());
            loaded.policy = loaded.policy.with_rules(rules);
        }
        loaded.files.push(PolicyFile { layer, path, rules: count });
    }
    Ok(loaded)
}

/// Returns the directory and its parents up to the root of the repository; without a repository,
/// the directory alone.
fn ancestors_within_repository(root: &Path) -> Vec<&Path> {
    let above: Vec<&Path> = root.ancestors().take(MAX_PARENT_DIRECTORIES).collect();
    let top = above.iter().position(|dir| dir.join(".git").symlink_metadata().is_ok()).unwrap_or(0);
    above.into_iter().take(top + 1).collect()
}

/// Adds rules to the user's own `policy.toml`, in the directory of their configuration, and returns
/// its path. `when` is the day, for the comment above the rules. Rules that the file has already
/// aren't added again.
///
/// The file is replaced in one step, and only by one that can be read.
///
/// # Errors
/// [`ConfigError`] where the file can't be read or written, or couldn't be read any more.
pub fn save_user_rules(dir: &Path, rules: &Rules, when: &str) -> Result<PathBuf, ConfigError> {
    let when: String = when.chars().filter(|c| !c.is_control()).collect();
    add_rules(dir, rules, RuleLayer::User, &format!("# Allowed \"forever\" on {when}."))
}

/// Adds rules to the `policy.toml` of the project at `root`, as [`save_user_rules`] does. Links
/// aren't followed: the repository may have put them there.
///
/// # Errors
/// As [`save_user_rules`].
pub fn save_project_rules(root: &Path, rules: &Rules) -> Result<PathBuf, ConfigError> {
    let dir = root.join(PROJECT_DIR);
    for path in [dir.clone(), dir.join(POLICY_FILE)] {
        if path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            let source = std::io::Error::other("it is a link");
            return Err(ConfigError::Unwritable { path, source });
        }
    }
    add_rules(&dir, rules, RuleLayer::Project, "# From the project's instructions.")
}

/// Inserts a `key = value` line at the top of the project's `config.toml`, and returns the file's
/// path. Links aren't followed.
///
/// # Errors
/// [`ConfigError`] where the file can't be read or written.
pub fn insert_config_line(root: &Path, line: &str) -> Result<PathBuf, ConfigError> {
    let dir = root.join(PROJECT_DIR);
    let path = dir.join(PROJECT_CONFIG_FILE);
    let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
    for path in [&dir, &path] {
        if path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return Err(unwritable(std::io::Error::other("it is a link")));
        }
    }
    std::fs::create_dir_all(&dir).map_err(unwritable)?;
    let _lock = lock_directory(&dir).map_err(unwritable)?;
    let text = read_user_file(&path)?.unwrap_or_default();
    replace_file(&path, &format!("{line}\n{text}")).map_err(unwritable)?;
    Ok(path)
}

fn add_rules(dir: &Path, rules: &Rules, layer: RuleLayer, comment: &str) -> Result<PathBuf, ConfigError> {
    let place = dir.join(POLICY_FILE);
    let unwritable = |source| ConfigError::Unwritable { path: place.clone(), source };
    let mode = if layer == RuleLayer::User { 0o700 } else { 0o777 };
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(dir).map_err(unwritable)?;
    // Two sessions may save rules at the same time.
    let _lock = lock_directory(dir).map_err(unwritable)?;
    // People keep such files elsewhere, and a link to it stays one.
    let path = std::fs::canonicalize(&place).unwrap_or_else(|_| place.clone());
    let mut text = read_user_file(&path)?.unwrap_or_default();
    let shown = SettingSource::User(place.clone()).to_string();
    let there = Rules::parse_with_tools(&text, layer, &shown, &|_| true)?;
    let known = |rule: &Rule| there.iter().any(|(_, old)| old == rule);
    let new: Vec<String> =
        rules.iter().map(|(_, rule)| rule).filter(|rule| !known(rule)).map(Rule::to_toml).collect();
    if new.is_empty() {
        return Ok(place);
    }
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str(&format!("{comment}\n{}", new.join("\n")));
    Rules::parse_with_tools(&text, layer, &shown, &|_| true)?;
    replace_file(&path, &text).map_err(unwritable)?;
    Ok(place)
}
