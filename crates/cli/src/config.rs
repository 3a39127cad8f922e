//! `jm config`.

use std::path::Path;

use journeyman_host::config::{
    Environment, KEYS, ProjectTrust, config_files, format_key, format_value, load_config,
};
use journeyman_host::format::printable;
use journeyman_host::root::project_root;
use journeyman_host::{ADMIN_CONFIG, HostError, configured_model_limits};
use journeyman_policy::secrets::Redactor;
use journeyman_terminal::stdout_paint;

use crate::args::ConfigArgs;

pub(crate) fn print_config(environment: &Environment, args: &ConfigArgs) -> Result<u8, HostError> {
    let paint = stdout_paint();
    if args.keys {
        for key in KEYS {
            let project = key.project.describe();
            let variable = key.variable.map(|name| format!("; ${name}")).unwrap_or_default();
            reportln!(
                "{}: {} — {} ({project}{variable})",
                paint.bold(key.name),
                key.kind.describe(),
                key.help
            );
        }
        return Ok(0);
    }
    let root = project_root(environment, args.project.directory.as_deref())?;
    let loaded = load_config(environment, &root, &[], ProjectTrust::ThisRun, Some(Path::new(ADMIN_CONFIG)))?;
    for path in config_files(environment, &root, Path::new(ADMIN_CONFIG)) {
        let state = if path.exists() { "read" } else { "not there" };
        outln!("{}", paint.dim(&format!("# {} ({state})", path.display())));
    }
    if let Ok(Some((name, limits))) = configured_model_limits(&loaded.config, environment) {
        outln!("{}", paint.dim(&format!("# {name} has a window of {limits}")));
    }
    if loaded.settings.is_empty() {
        outln!("# nothing is set: every value is built-in. `jm config --keys` lists what can be set.");
    }
    let redactor = Redactor::default();
    for (key, setting) in &loaded.settings {
        let source = paint.dim(&format!("# {}", setting.source));
        // A project's values are somebody else's, and addresses may have passwords in them.
        let value = printable(&format_value(key, setting));
        outln!("{} = {}  {source}", format_key(key), redactor.redact(&value));
    }
    Ok(0)
}
