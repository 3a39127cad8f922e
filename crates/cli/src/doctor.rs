//! `jm doctor`.

mod report;

use journeyman_host::config::{Config, Environment};
use journeyman_host::state::StateDirs;
use journeyman_host::{HostError, doctor as examination, load_trusted};

use crate::args::DoctorArgs;
use crate::color;
use crate::runtime::open_state;
use crate::stdout::{self, say};

/// The exit code for damaged state.
const DAMAGED: u8 = 8;

pub(crate) async fn doctor(environment: &Environment, args: &DoctorArgs) -> Result<u8, HostError> {
    let progress = |line: &str| tell!("{line}");
    if args.repair {
        let report = |line: &str| stdout::write(&format!("{line}\n"));
        examination::repair_state(environment, report, progress).await?;
        return Ok(0);
    }
    let dirs = open_state(environment)?;
    let mut config = load_config(environment, &dirs);
    config.sandbox_allow_root |= args.allow_root;
    let version = env!("CARGO_PKG_VERSION");
    let found = examination::examine(environment, &dirs, &config, version, progress).await?;
    if args.json {
        say!("{}", found.report);
    } else {
        report::print(&found.report);
    }
    Ok(if found.is_damaged { DAMAGED } else { u8::from(!found.is_usable) })
}

/// Loads the user's own configuration; the state directory has no project's.
fn load_config(environment: &Environment, dirs: &StateDirs) -> Config {
    match load_trusted(environment, &dirs.dir) {
        Ok(config) => config,
        Err(error) => {
            tell!("{} {}", color::stderr().yellow("warning: your configuration isn't used:"), error);
            Config::default()
        }
    }
}
