//! `jm impact`: the files that a change affects, and the tests to run.

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::index::{ChangeSet, CodeGraph, Impact};
use journeyman_terminal::stdout_paint;

use super::open::{open_graph, print_answer};
use crate::args::{AnswerArgs, parse_count};
use journeyman_host::HostError;

/// Maximum number of files of a dependency path that are shown.
const MAX_SHOWN_STEPS: usize = 6;

#[derive(Debug, Args)]
pub(crate) struct ImpactArgs {
    /// The files that change, or lines of them: PATH, PATH:LINE, PATH:FROM-TO
    #[arg(required_unless_present = "diff", value_name = "PATH")]
    paths: Vec<String>,
    /// The differences of the work tree from the last commit
    #[arg(long)]
    diff: bool,
    /// Steps to go at most; all if it isn't given
    #[arg(long, value_name = "N", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,
    /// Files, at most; tests are all shown
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = parse_count::<usize>)]
    limit: usize,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) fn show_impact(environment: &Environment, args: &ImpactArgs) -> Result<u8, HostError> {
    let mut known = open_graph(environment, &args.answer)?;
    let change = ChangeSet::collect(&mut known, &args.paths, args.diff)?;
    if args.diff && change.parts.is_empty() && change.gone.is_empty() && !args.answer.json {
        errln!("nothing differs from the last commit");
        return Ok(1);
    }
    let impact = Impact::find(&known, change, args.depth);
    if impact.reach.by_files {
        errln!("note: it has too many dependents to follow symbols; following whole files instead");
    }
    let print = || print_impact(&known, &impact, args.limit);
    print_answer(&args.answer, impact.is_empty(), || impact.to_answer(&known, args.limit), print)
}

fn print_impact(known: &CodeGraph, impact: &Impact, limit: usize) {
    for path in impact.unused_deleted_paths(known) {
        errln!("note: {} is gone; nothing here needed it", printable(&path));
    }
    let paint = stdout_paint();
    let name = |file: &u32| {
        let gone = if impact.is_deleted(known.graph.path(*file)) { " (gone)" } else { "" };
        format!("{}{gone}", known.path(*file))
    };
    for found in impact.reach.files.iter().take(limit) {
        let way: Vec<String> = impact.reach.path_to(found.file).iter().rev().map(name).collect();
        let short: Vec<&str> = way.iter().skip(1).take(MAX_SHOWN_STEPS).map(String::as_str).collect();
        let dots = if way.len() > MAX_SHOWN_STEPS + 1 { " → …" } else { "" };
        let words = format!("needs {}{dots}", short.join(" → "));
        outln!("{:>3}  {}  {}", found.distance, paint.bold(&known.path(found.file)), paint.dim(&words));
    }
    let more = impact.count_omitted(limit);
    if more > 0 || impact.reach.cut {
        outln!("     {}", paint.dim(&format!("… and {more} more; --limit shows them")));
    }
    if !impact.tests.is_empty() {
        outln!("tests to run:");
        for test in &impact.tests {
            outln!("  {}", known.path(*test));
        }
    }
    if impact.is_empty() {
        errln!("nothing here depends on it");
    }
}
