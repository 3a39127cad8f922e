//! `jm report`.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::review_report::{to_markdown, to_sarif, write_report_file};
use journeyman_host::session_evidence::SessionEvidence;
use journeyman_host::sessions::find_session;

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
    write_report_file(&path, &text)?;
    errln!("wrote {}", path.display());
    Ok(0)
}
