//! A small project with a fault, and a scripted model that mends it, to watch a whole run offline.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use journeyman_model::{Model as _, Price, ScriptedModel};
use journeyman_protocol::{Mode, SandboxNeeds};

use crate::config::{Config, Environment};
use crate::format::printable;
use crate::sessions::holder_name;
use crate::state::StateDirs;
use crate::{ConnectedModel, Context as _, HostError, ResolvedSettings, SessionBuilder, SessionTemplate};

/// The demo's exit code where no sandbox works, so that a script can tell it from a failed demo.
const EXIT_NO_SANDBOX: u8 = 7;
/// The demo's exit code where there is no Cargo that works.
const EXIT_NO_CARGO: u8 = 8;
/// The programs that the project's checks need.
const RUST_PROGRAMS: [&str; 2] = ["cargo", "rustc"];
/// Timeout for a program to say its version; a first start may be slow.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(20);
/// The task of the demo.
pub const DEMO_TASK: &str =
    "The last page of results goes missing when it isn't full. Find out why and fix it.";
/// The files of the project.
const PROJECT_FILES: [(&str, &str); 5] = [
    (".gitignore", "/target\n"),
    ("Cargo.toml", include_str!("../demo/Cargo.toml.txt")),
    ("Cargo.lock", include_str!("../demo/Cargo.lock.txt")),
    ("AGENTS.md", include_str!("../demo/AGENTS.md.txt")),
    ("src/lib.rs", include_str!("../demo/src/lib.rs.txt")),
];
/// The replies of the model.
const MODEL_SCRIPT: &str = include_str!("../demo/script.json");

/// Why the demo can't run on this machine.
#[derive(Debug)]
pub enum DemoObstacle {
    /// No sandbox works, for this reason.
    NoSandbox(String),
    /// The project is checked by Cargo, which isn't installed.
    NoCargo,
    /// This program, which the project is checked with, is installed and doesn't run.
    BrokenProgram {
        /// The program.
        program: &'static str,
        /// Its own words, or the system's.
        reason: String,
    },
}

impl DemoObstacle {
    /// Returns the demo's exit code for this obstacle.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoSandbox(_) => EXIT_NO_SANDBOX,
            Self::NoCargo | Self::BrokenProgram { .. } => EXIT_NO_CARGO,
        }
    }
}

impl fmt::Display for DemoObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSandbox(reason) => {
                write!(f, "no sandbox works here, so the demo would run nothing: {reason}")
            }
            Self::NoCargo => f.write_str(
                "the demo's project is in Rust and there is no cargo on the PATH to check it with: install Rust \
                 (https://rustup.rs)",
            ),
            Self::BrokenProgram { program, reason } => {
                write!(f, "the demo's project is in Rust, and `{program}` doesn't run here: {reason}")
            }
        }
    }
}

/// Returns why the demo can't run on this machine, if that is so.
///
/// # Errors
/// [`HostError`] where the sandbox can't be set up.
pub async fn find_demo_obstacle(
    environment: &Environment,
    state: &StateDirs,
) -> Result<Option<DemoObstacle>, HostError> {
    if let Err(error) = state.sandbox(&Config::default())?.enforcement(&SandboxNeeds::ALL).await {
        return Ok(Some(DemoObstacle::NoSandbox(error.to_string())));
    }
    if !environment.has_program("cargo") {
        return Ok(Some(DemoObstacle::NoCargo));
    }
    for program in RUST_PROGRAMS {
        if let Some(reason) = find_program_failure(environment, program).await {
            return Ok(Some(DemoObstacle::BrokenProgram { program, reason }));
        }
    }
    Ok(None)
}

/// Runs `program --version` and returns the failure, if any: rustup's proxies exist without a
/// toolchain.
pub(crate) async fn find_program_failure(environment: &Environment, program: &str) -> Option<String> {
    let mut command = tokio::process::Command::new(program);
    command.arg("--version").current_dir("/").env_clear().envs(&environment.vars);
    command.stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(PROGRAM_TIMEOUT, command.output()).await {
        Ok(Ok(output)) if output.status.success() => None,
        Ok(Ok(output)) => {
            let text = printable(&String::from_utf8_lossy(&output.stderr));
            let lines: Vec<&str> =
                text.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).collect();
            let reason = lines.join(" ");
            let reason = reason.strip_prefix("error: ").unwrap_or(&reason);
            Some(if reason.is_empty() { output.status.to_string() } else { reason.to_owned() })
        }
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("`{program} --version` doesn't end")),
    }
}

/// The project of a demo in a temporary directory, which is removed at the end unless it is kept.
pub struct DemoProject {
    directory: PathBuf,
    root: PathBuf,
    is_kept: bool,
}

impl DemoProject {
    /// Writes the project.
    ///
    /// # Errors
    /// [`HostError::Failed`] where a file can't be written.
    pub fn create(is_kept: bool) -> Result<Self, HostError> {
        let directory = std::env::temp_dir().join(format!("jm-demo-{:08x}", fastrand::u32(..)));
        std::fs::create_dir(&directory).context(format!("creating {}", directory.display()))?;
        let root = std::fs::canonicalize(&directory).context("the demo's project")?;
        let project = Self { directory, root, is_kept };
        for (name, text) in PROJECT_FILES {
            let path = project.root.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).context("the demo's project")?;
            }
            std::fs::write(&path, text).context(format!("writing {}", path.display()))?;
        }
        Ok(project)
    }

    /// Returns the root of the project.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the template of a session on the project with the scripted model, in mode `auto`.
    ///
    /// # Errors
    /// [`HostError`] naming the part of the session that can't be made.
    pub fn template(
        &self,
        environment: &Environment,
        state: &Arc<StateDirs>,
    ) -> Result<SessionTemplate, HostError> {
        let model = ScriptedModel::parse(MODEL_SCRIPT).context("the demo's script")?;
        let name = model.name();
        let connected =
            ConnectedModel { price: Some(Price::FREE), ..ConnectedModel::from_model(Arc::new(model), name) };
        let config = Config { mode: Some(Mode::Auto), ..Config::default() };
        SessionBuilder::new(&self.root)
            .environment(environment.clone())
            .state(Arc::clone(state))
            .settings(ResolvedSettings { config, ..ResolvedSettings::default() })
            .connected(connected)
            .holder(holder_name("demo"))
            .build()
    }
}

impl Drop for DemoProject {
    fn drop(&mut self) {
        if !self.is_kept {
            // The system sweeps the rest of a temporary directory.
            std::fs::remove_dir_all(&self.directory).ok();
        }
    }
}
