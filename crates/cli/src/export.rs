//! `jm export`.

use journeyman_host::HostError;
use journeyman_host::config::Environment;
use journeyman_host::export::{ConversationFormat, ExportFormat, export_session};
use journeyman_host::sessions::find_session;

use crate::args::{ExportArgs, ExportFormatArg};
use crate::output;
use crate::runtime::open_state;

pub(crate) async fn export(environment: &Environment, args: &ExportArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = find_session(&dirs, environment, &args.session).await?;
    let format = match args.format {
        ExportFormatArg::Jsonl => ExportFormat::Log,
        ExportFormatArg::Anthropic => ExportFormat::Conversation(ConversationFormat::Anthropic),
        ExportFormatArg::Openai => ExportFormat::Conversation(ConversationFormat::Openai),
        ExportFormatArg::Markdown => ExportFormat::Conversation(ConversationFormat::Markdown),
    };
    let file = args.output.as_ref().map(|path| environment.cwd.join(path));
    export_session(&dirs, &session, format, file.as_deref(), output::write_stdout_bytes).await?;
    Ok(0)
}
