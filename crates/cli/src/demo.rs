//! `jm demo`: the main job on a project inside the binary, offline, with a script in place of a
//! model.

use std::path::Path;
use std::sync::Arc;

use journeyman_host::config::{Config, Environment};
use journeyman_host::sessions::holder_name;
use journeyman_host::{Connected, Context as _, HostError, ResolvedSettings, SessionBuilder};
use journeyman_model::{Model as _, Price, ScriptedModel};
use journeyman_protocol::Mode;

use crate::args::DemoArgs;
use crate::color;
use crate::display::{Display, OutputFormat};
use crate::run::run_task;
use crate::runtime::open_state;

/// The demo's exit code where no sandbox works, so that a script can tell it from a failed demo.
pub(crate) const NO_SANDBOX: u8 = 7;
/// And where there is no Cargo to check with.
pub(crate) const NO_CARGO: u8 = 8;

const TASK: &str = "The last page of results goes missing when it isn't full. Find out why and fix it.";
const FILES: [(&str, &str); 5] = [
    (".gitignore", "/target\n"),
    ("Cargo.toml", include_str!("../demo/Cargo.toml.txt")),
    ("Cargo.lock", include_str!("../demo/Cargo.lock.txt")),
    ("AGENTS.md", include_str!("../demo/AGENTS.md.txt")),
    ("src/lib.rs", include_str!("../demo/src/lib.rs.txt")),
];
const SCRIPT: &str = include_str!("../demo/script.json");

pub(crate) async fn demo(environment: &Environment, args: DemoArgs) -> Result<u8, HostError> {
    let paint = color::stderr();
    let dirs = open_state(environment)?;
    if let Err(error) =
        dirs.sandbox(&Config::default())?.enforcement(&journeyman_protocol::SandboxNeeds::ALL).await
    {
        tell!("{} {error}", paint.red("no sandbox works here, so the demo would run nothing:"));
        return Ok(NO_SANDBOX);
    }
    if !environment.has_program("cargo") {
        tell!(
            "{}",
            paint.red("the demo's project is in Rust and there is no cargo on the PATH to check it with")
        );
        return Ok(NO_CARGO);
    }
    let place = DemoDir::new(args.keep)?;
    let root = std::fs::canonicalize(&place.path).context("the demo's project")?;
    for (name, text) in FILES {
        let path = root.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).context("the demo's project")?;
        }
        std::fs::write(&path, text).context(format!("writing {}", path.display()))?;
    }
    tell!(
        "{}",
        paint.bold("A demo of `jm run`. No model is asked: a script that ships with jm plays its part.")
    );
    tell!("Everything else is real: the edits, the checks, the sandbox, the session, the undo.");
    tell!("  project: {}", root.display());
    tell!("  task:    {TASK}\n");
    let model = ScriptedModel::parse(SCRIPT).context("the demo's script")?;
    let name = model.name();
    let connected = Connected { price: Some(Price::FREE), ..Connected::from_model(Arc::new(model), name) };
    let config = Config { mode: Some(Mode::Auto), ..Config::default() };
    let template = SessionBuilder::new(&root)
        .environment(environment.clone())
        .state(dirs)
        .settings(ResolvedSettings { config, ..ResolvedSettings::default() })
        .connected(connected)
        .holder(holder_name("demo"))
        .build()?;
    let display = Display { output: OutputFormat::Text, is_quiet: false };
    let report = run_task(template, TASK.to_owned(), display).await?;
    tell!();
    display.print_report(&report)?;
    place.print_location(&root);
    Ok(report.exit_code)
}

/// The directory the demo works in: gone at the end unless it is to be kept.
struct DemoDir {
    path: std::path::PathBuf,
    keep: bool,
}

impl DemoDir {
    fn new(keep: bool) -> Result<Self, HostError> {
        let path = std::env::temp_dir().join(format!("jm-demo-{:08x}", fastrand::u32(..)));
        std::fs::create_dir(&path).context(format!("creating {}", path.display()))?;
        Ok(Self { path, keep })
    }

    fn print_location(&self, root: &Path) {
        if self.keep {
            tell!("the project is in {}", root.display());
        } else {
            tell!("(the project was a temporary copy; `jm demo --keep` leaves it, to try the undo)");
        }
    }
}

impl Drop for DemoDir {
    fn drop(&mut self) {
        if !self.keep {
            // What is left of a temporary directory is the system's to sweep.
            std::fs::remove_dir_all(&self.path).ok();
        }
    }
}
