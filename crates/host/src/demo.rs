//! A small project with a fault, and a scripted model that mends it, to watch a whole run offline.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_model::{Model as _, Price, ScriptedModel};
use journeyman_protocol::{Mode, SandboxNeeds};

use crate::config::{Config, Environment};
use crate::sessions::holder_name;
use crate::state::StateDirs;
use crate::{ConnectedModel, Context as _, HostError, ResolvedSettings, SessionBuilder, SessionTemplate};

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
    Ok((!environment.has_program("cargo")).then_some(DemoObstacle::NoCargo))
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
