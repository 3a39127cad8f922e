//! `jm map`: the most important files of the project, or for a task, within a token budget.

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::ProjectMap;
use journeyman_protocol::Tokens;

use super::open::{open_index, print_answer};
use crate::args::{AnswerArgs, parse_count};
use journeyman_host::HostError;

#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// The task that the map is for
    query: Option<String>,
    /// Maximum cost, in tokens
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = parse_count::<u64>)]
    tokens: u64,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) fn show_project_map(environment: &Environment, args: &MapArgs) -> Result<u8, HostError> {
    let task = args.query.as_deref().map(str::trim);
    if task == Some("") {
        return Err(HostError::usage("the task is empty; leave it out for a map of the whole project"));
    }
    let index = open_index(environment, &args.answer)?;
    let map = ProjectMap::build(&index, task, Tokens(args.tokens));
    print_answer(&args.answer, map.shown == 0, || map.to_answer(), || print_map(&map, args.tokens))
}

fn print_map(map: &ProjectMap, tokens: u64) {
    if map.shown > 0 {
        outln!("{}", map.text.trim_end());
    } else if map.has_signatures {
        errln!("no file has room in {tokens} tokens");
    }
    errln!("{} of {} files, about {} tokens", map.shown, map.files, map.cost);
}
