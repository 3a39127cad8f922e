//! `jm map`: what matters most in the project, or for a task, within a budget of tokens.

use std::path::PathBuf;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::ProjectMap;
use journeyman_protocol::Tokens;
use serde_json::json;

use super::open::{current, note};
use crate::stdout::say;
use journeyman_host::HostError;

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// The task that the map is for
    query: Option<String>,
    /// Maximum cost, in tokens
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    tokens: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn map(environment: &Environment, args: &MapArgs) -> Result<u8, HostError> {
    let task = args.query.as_deref().map(str::trim);
    if task == Some("") {
        return Err(HostError::usage("the task is empty; leave it out for a map of the whole project"));
    }
    let (project, snapshot) = current(environment, args.directory.as_deref())?;
    let tokens = Tokens(args.tokens);
    let map =
        ProjectMap::draw(environment, args.directory.as_deref(), &project, &snapshot, task, tokens, note)?;
    let ProjectMap { text, shown, cost, files, has_signatures } = map;
    if args.json {
        say!("{}", json!({"map": text, "tokens": cost, "shown": shown, "files": files}));
    } else {
        if shown > 0 {
            say!("{}", text.trim_end());
        } else if has_signatures {
            tell!("no file has room in {} tokens", args.tokens);
        }
        tell!("{shown} of {} files, about {cost} tokens", files);
    }
    Ok(u8::from(shown == 0))
}
