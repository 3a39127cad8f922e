//! Examining the machine and the stored state, and repairing it.

mod copies;
mod damage;
mod sandboxes;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;

use serde::Serialize;

use crate::HostError;
use crate::config::{Config, Environment};
use crate::demo::find_program_failure;
use crate::models::all_providers;
use crate::state::StateDirs;

pub use copies::{CopyTier, StoredCopy, list_copies, probe_copy_tiers};
pub use damage::{DamagedFile, StoredStateReport, repair_state, to_one_line, verify_state};
pub use sandboxes::{SandboxSurvey, TierProbe, TierReport, survey_sandboxes};

/// Programs that are used if installed, with their purpose.
const OPTIONAL_PROGRAMS: [(&str, &str); 15] = [
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
    ("claude", "tasks that you give it: jm delegate --to claude"),
    ("codex", "tasks that you give it: jm delegate --to codex"),
    ("gemini", "tasks that you give it: jm delegate --to gemini"),
    ("opencode", "tasks that you give it: jm delegate --to opencode"),
];

/// The exit code for damaged state.
const EXIT_DAMAGED: u8 = 8;

/// The findings of an examination, as `jm doctor --json` prints them.
#[derive(Debug, Serialize)]
pub struct Examination {
    /// The version of the program.
    pub version: String,
    /// The state directory.
    pub state: StateDirReport,
    /// The condition of stored state.
    pub stored: StoredStateReport,
    /// The sandboxes.
    pub sandbox: SandboxSurvey,
    /// The copies of projects.
    pub copies: CopiesReport,
    /// Programs that this one uses if they are installed.
    pub programs: Vec<ProgramReport>,
    /// The keys of the built-in providers.
    pub keys: Vec<KeyReport>,
}

/// The state directory.
#[derive(Debug, Default, Serialize)]
pub struct StateDirReport {
    /// Its path; `None` where the environment has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Why it can't be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The copies of projects.
#[derive(Debug, Default, Serialize)]
pub struct CopiesReport {
    /// The ways of copying.
    pub tiers: Vec<CopyTier>,
    /// The copies that exist.
    pub kept: Vec<StoredCopy>,
    /// Why the ways can't be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A program that this one uses if it is installed.
#[derive(Debug, Serialize)]
pub struct ProgramReport {
    /// Its name.
    pub name: &'static str,
    /// True if it is installed.
    pub installed: bool,
    /// Why it can't be used although it is there, such as a stand-in without a toolchain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The purpose.
    #[serde(rename = "for")]
    pub purpose: &'static str,
}

/// The keys of a provider. Nobody needs to see the value of a key.
#[derive(Debug, Serialize)]
pub struct KeyReport {
    /// The provider.
    pub provider: String,
    /// The variables that its key may be in.
    pub variables: Vec<String>,
    /// Those that are set.
    pub set: Vec<String>,
    /// True for a provider on this machine, which needs no key.
    pub local: bool,
}

impl Examination {
    /// Returns true if the state directory and a sandbox can be used.
    fn is_usable(&self) -> bool {
        self.sandbox.error.is_none() && self.state.problem.is_none() && self.stored.problem.is_none()
    }

    /// Returns the exit code of `jm doctor`: 8 for damaged state, 1 for what can't be used.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.stored.damage.is_empty() { u8::from(!self.is_usable()) } else { EXIT_DAMAGED }
    }
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
    let mut programs = Vec::with_capacity(OPTIONAL_PROGRAMS.len());
    for (name, purpose) in OPTIONAL_PROGRAMS {
        let installed = environment.has_program(name);
        // rustup's stand-in is there before any toolchain is.
        let problem = match installed && name == "cargo" {
            true => find_program_failure(environment, name).await,
            false => None,
        };
        programs.push(ProgramReport { name, installed, problem, purpose });
    }
    let keys = all_providers(&Config::default()).into_iter().map(|provider| KeyReport {
        set: provider.key_env.iter().filter(|name| environment.var(name).is_some()).cloned().collect(),
        provider: provider.name,
        variables: provider.key_env,
        local: provider.local,
    });
    let directory = probe_state_dir(environment);
    let stored = verify_state(environment, progress).await;
    let copies = match probe_copy_tiers(environment, state, config) {
        Ok(tiers) => CopiesReport { tiers, kept: list_copies(&state.dir), problem: None },
        Err(error) => CopiesReport { problem: Some(error.to_string()), ..CopiesReport::default() },
    };
    Ok(Examination {
        version: version.to_owned(),
        state: directory,
        stored,
        sandbox,
        copies,
        programs,
        keys: keys.collect(),
    })
}

/// Returns the state directory, and why it can't be used if that is so.
fn probe_state_dir(environment: &Environment) -> StateDirReport {
    let Some(dir) = environment.state_dir() else {
        let problem = "there is no place for sessions: set HOME or XDG_STATE_HOME".to_owned();
        return StateDirReport { directory: None, problem: Some(problem) };
    };
    // Private from the start, as the log itself makes it.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    let probe = made.and_then(|()| {
        let file = dir.join(format!(".probe-{}", std::process::id()));
        std::fs::write(&file, b"")?;
        std::fs::remove_file(&file)
    });
    let problem = probe.err().map(|error| error.to_string());
    StateDirReport { directory: Some(dir.display().to_string()), problem }
}
