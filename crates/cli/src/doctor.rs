//! `jm doctor`.

mod report;

use journeyman_host::config::{Config, Environment};
use journeyman_host::state::StateDirs;
use journeyman_host::{HostError, doctor as examination, load_assuming_trust};
use journeyman_terminal::stderr_paint;

use crate::args::DoctorArgs;
use crate::output::{self, print_json_line};
use crate::runtime::open_state;

pub(crate) async fn run_doctor(environment: &Environment, args: &DoctorArgs) -> Result<u8, HostError> {
    let progress = |line: &str| errln!("{line}");
    if args.repair {
        let report = |line: &str| output::write_stdout(&format!("{line}\n"));
        examination::repair_state(environment, report, progress).await?;
        return Ok(0);
    }
    let dirs = open_state(environment)?;
    let mut config = load_config(environment, &dirs);
    config.sandbox_allow_root |= args.allow_root;
    let version = env!("CARGO_PKG_VERSION");
    let found = examination::examine(environment, &dirs, &config, version, progress).await?;
    if args.json {
        print_json_line(&found)?;
    } else {
        report::print_examination(&found);
    }
    Ok(found.exit_code())
}

/// Loads the user's own configuration; the state directory has no project's.
fn load_config(environment: &Environment, dirs: &StateDirs) -> Config {
    match load_assuming_trust(environment, &dirs.dir) {
        Ok(config) => config,
        Err(error) => {
            errln!("{} {}", stderr_paint().yellow("warning: your configuration isn't used:"), error);
            Config::default()
        }
    }
}
