//! `jm map`: what matters most in the project, or for a task, within a budget of tokens.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use journeyman_context::{Estimate, Outlined, Signature, outline_map};
use journeyman_git::Git;
use journeyman_host::config::Environment;
use journeyman_index::overview::{self, FOUND};
use journeyman_index::query::{Context, Query, Searcher};
use journeyman_index::tokens::Tokenizer;
use journeyman_index::{Project, Snapshot};
use journeyman_protocol::{TokenCounter as _, Tokens};
use journeyman_sandbox::{Sandbox, SandboxSettings, clean};
use serde_json::json;

use super::current;
use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::state::project_root;

pub(crate) const HELP: &str = "\
Files that much hangs on come first, by a weight like PageRank's over the dependency graph, each with its most \
important signatures. With a task, files that the search finds for it come first, with what they depend on.

Exit codes: 0 there is a map, 1 there is nothing to show or an error, 2 usage

Examples:
  jm map                                       the whole project
  jm map --tokens 4000 \"retries are counted twice\"
  jm map --json | jq '.tokens'";

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// The task that the map is for
    query: Option<String>,
    /// What it may cost, in tokens
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
    let graph = project.graph(&snapshot);
    let asked = match task {
        Some(task) => found(environment, args, &project, &snapshot, task)?,
        None => Vec::new(),
    };
    let order = overview::order(&snapshot, Some(&graph), &asked);
    let outlined: Vec<Outlined> = order
        .iter()
        .filter_map(|(file, _)| {
            let told = overview::signatures(&snapshot, *file, task.unwrap_or_default()).into_iter();
            let signatures: Vec<Signature> =
                told.map(|one| Signature { text: one.text, depth: one.depth, worth: one.worth }).collect();
            let path = clean(snapshot.file(*file)?.path_bytes());
            let wanted = asked.iter().any(|(asked, _)| asked == file);
            (wanted || !signatures.is_empty()).then_some(Outlined { path, signatures })
        })
        .collect();
    let (text, shown) = outline_map(&outlined, Tokens(args.tokens));
    let cost = Estimate.count(&text).0;
    if args.json {
        say!("{}", json!({"map": text, "tokens": cost, "shown": shown, "files": graph.len()}));
    } else {
        if shown > 0 {
            say!("{}", text.trim_end());
        } else if !outlined.is_empty() {
            tell!("no file has room in {} tokens", args.tokens);
        }
        tell!("{shown} of {} files, about {cost} tokens", graph.len());
    }
    Ok(u8::from(shown == 0))
}

/// What the search finds for a task, each with its share of the best one's score.
fn found(
    environment: &Environment,
    args: &MapArgs,
    project: &Project,
    snapshot: &Snapshot,
    task: &str,
) -> Result<Vec<(u32, f64)>, HostError> {
    let place = project_root(environment, args.directory.as_deref())?;
    let git = Git::new(&place, Arc::new(Sandbox::new(SandboxSettings::default())));
    let history = Git::blocking(project.history(&git)).unwrap_or_else(|error| {
        tell!("note: commits don't count this time: {error}");
        None
    });
    let query = Query::new(task, &mut Tokenizer::new());
    let answer = Searcher::new().search(snapshot, history.as_ref(), &query, Context::default(), FOUND);
    Ok(overview::shares(&answer))
}
