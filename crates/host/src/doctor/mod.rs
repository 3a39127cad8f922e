//! Examining the machine and the stored state, and repairing it.

mod copies;
mod damage;
mod sandboxes;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;

use serde_json::{Value, json};

use crate::HostError;
use crate::config::{Config, Environment};
use crate::models::providers;
use crate::state::StateDirs;

pub use copies::{list_copies, probe_copy_tiers};
pub use damage::{one_line, repair_state, verify_state};
pub use sandboxes::survey_sandboxes;

/// Programs that this one uses if they are installed, and what for.
const PROGRAMS: [(&str, &str); 15] = [
    ("git", "version control"),
    ("cargo", "checks of Rust projects"),
    ("node", "checks of JavaScript projects"),
    ("npm", "checks of JavaScript projects"),
    ("python3", "checks of Python projects"),
    ("pytest", "tests of Python projects"),
    ("go", "checks of Go projects"),
    ("make", "checks of Make projects"),
    ("docker", "commands in containers, where you allow them"),
    ("podman", "the same, in place of docker"),
    ("bwrap", "commands where this program may make no namespaces itself"),
    ("claude", "not used yet"),
    ("codex", "not used yet"),
    ("gemini", "not used yet"),
    ("opencode", "not used yet"),
];

/// The findings of an examination.
#[derive(Debug)]
pub struct Examination {
    /// The report, an object with `state`, `stored`, `sandbox`, `copies`, `programs` and `keys`.
    pub report: Value,
    /// True if stored state is damaged.
    pub is_damaged: bool,
    /// True if the state directory and a sandbox can be used.
    pub is_usable: bool,
}

/// Examines the machine, the sandboxes and the stored state. `progress` gets a line now and then.
///
/// # Errors
/// [`HostError::Usage`] where the configuration names an unknown sandbox.
pub async fn examine(
    environment: &Environment,
    state: &StateDirs,
    config: &Config,
    version: &str,
    progress: fn(&str),
) -> Result<Examination, HostError> {
    let sandbox = survey_sandboxes(state, config).await?;
    let programs: Vec<Value> = PROGRAMS
        .iter()
        .map(|(name, purpose)| json!({ "name": name, "installed": environment.has_program(name), "for": purpose }))
        .collect();
    let keys: Vec<Value> = providers(&Config::default())
        .iter()
        .map(|provider| {
            // Names only: nobody needs to see a key's value.
            let set: Vec<&String> =
                provider.key_env.iter().filter(|name| environment.var(name).is_some()).collect();
            json!({ "provider": provider.name, "variables": provider.key_env, "set": set, "local": provider.local })
        })
        .collect();
    let directory = probe_state_dir(environment);
    let stored = verify_state(environment, progress).await?;
    let copies = match probe_copy_tiers(environment, state, config) {
        Ok(tiers) => json!({ "tiers": tiers, "kept": list_copies(&state.dir) }),
        Err(error) => json!({ "tiers": [], "kept": [], "problem": error.to_string() }),
    };
    let is_damaged = stored.get("damage").and_then(Value::as_array).is_some_and(|damage| !damage.is_empty());
    let is_usable = sandbox.get("error").is_none()
        && directory.get("problem").is_none()
        && stored.get("problem").is_none();
    let report = json!({
        "version": version, "state": directory, "stored": stored, "sandbox": sandbox, "copies": copies,
        "programs": programs, "keys": keys,
    });
    Ok(Examination { report, is_damaged, is_usable })
}

/// Returns the state directory, and why it can't be used if that is so.
fn probe_state_dir(environment: &Environment) -> Value {
    let Some(dir) = environment.state_dir() else {
        return json!({ "problem": "there is no place for sessions: set HOME or XDG_STATE_HOME" });
    };
    // Private from the start, as the log itself makes it.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    let probe = made.and_then(|()| {
        let file = dir.join(format!(".probe-{}", std::process::id()));
        std::fs::write(&file, b"")?;
        std::fs::remove_file(&file)
    });
    match probe {
        Ok(()) => json!({ "directory": dir.display().to_string() }),
        Err(error) => json!({ "directory": dir.display().to_string(), "problem": error.to_string() }),
    }
}
