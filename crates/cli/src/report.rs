//! `jm report`.

use std::fs::OpenOptions;
use std::io::Write as _;

use journeyman_host::config::Environment;
use journeyman_host::review_report::{to_markdown, to_sarif};
use journeyman_host::session_evidence::SessionEvidence;
use journeyman_host::sessions::find_session;
use journeyman_host::{Context as _, HostError};

use crate::args::ReportArgs;
use crate::output;
use crate::runtime::open_state;

pub(crate) async fn export_report(environment: &Environment, args: &ReportArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = find_session(&dirs, environment, &args.session).await?;
    let ledger = SessionEvidence::read(&dirs, &session).await?;
    let text = match args.sarif {
        true => format!("{:#}\n", to_sarif(&ledger)?),
        false => to_markdown(&ledger)?,
    };
    let Some(file) = &args.output else {
        output::write_stdout(&text);
        return Ok(0);
    };
    let path = environment.cwd.join(file);
    let created = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut created = created.context(format!("{} (give a new file)", path.display()))?;
    created.write_all(text.as_bytes()).context(path.display().to_string())?;
    errln!("wrote {}", path.display());
    Ok(0)
}
