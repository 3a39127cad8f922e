//! `jm export`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use futures_util::TryStreamExt as _;
use journeyman_agent::State;
use journeyman_host::config::Environment;
use journeyman_host::export::{ConversationFormat, export_conversation};
use journeyman_host::sessions::find_session;
use journeyman_host::{Context as _, HostError};
use journeyman_store::{export as export_lines, export_file};

use crate::args::{ExportArgs, Format};
use crate::runtime::open_state;
use crate::stdout;

pub(crate) async fn export(environment: &Environment, args: &ExportArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = find_session(&dirs, environment, &args.session).await?;
    let file = args.output.as_ref().map(|path| environment.cwd.join(path));
    if let Some(path) = file.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        return Err(HostError::usage(format_args!(
            "{} is there already; give a new file, or leave -o out and say where with >",
            path.display()
        )));
    }
    match (args.format, &file) {
        (Format::Jsonl, Some(path)) => {
            export_file(&*dirs.store, &session.id, path).await.context("the session log")?;
        }
        (Format::Jsonl, None) => {
            let mut lines = export_lines(&*dirs.store, &session.id);
            while let Some(some) = lines.try_next().await.context("the session log")? {
                stdout::write_bytes(&some);
            }
        }
        (format, file) => {
            let format = match format {
                Format::Openai => ConversationFormat::Openai,
                Format::Markdown => ConversationFormat::Markdown,
                Format::Anthropic | Format::Jsonl => ConversationFormat::Anthropic,
            };
            let state = State::load(&*dirs.store, &session.id).await?;
            let text = export_conversation(format, &session, state)?;
            match file {
                Some(path) => write_new(path, &text)?,
                None => stdout::write(&text),
            }
        }
    }
    Ok(0)
}

fn write_new(path: &Path, text: &str) -> Result<(), HostError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.context(path.display().to_string())?;
    file.write_all(text.as_bytes()).context(path.display().to_string())
}
