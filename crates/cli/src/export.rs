//! `jm export`.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::export::export_session;
use journeyman_host::sessions::find_session;

use crate::args::ExportArgs;
use crate::output;
use crate::runtime::open_state;

pub(crate) async fn export(environment: &Environment, args: &ExportArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = find_session(&dirs, environment, &args.session).await?;
    let file = args.output.as_ref().map(|path| environment.cwd.join(path));
    export_session(&dirs, &session, args.format, file.as_deref(), output::write_stdout_bytes).await?;
    Ok(0)
}
