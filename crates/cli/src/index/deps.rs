//! `jm deps`: what a file depends on, what depends on it, the way from one file to another,
//! circles.

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::{CodeGraph, Dependencies, DependencyPath, cycles_to_json, find_cycles};
use journeyman_index::graph::Direction;

use super::open::{open_graph, parse_limit};
use crate::args::AnswerArgs;
use crate::color;
use crate::text::printable;
use journeyman_host::HostError;

/// Maximum number of files of a cycle that are shown besides the shortest one.
const MAX_SHOWN_CYCLE_FILES: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct DepsArgs {
    /// The file
    #[arg(required_unless_present = "cycles")]
    path: Option<String>,
    /// The files that depend on it, instead of those that it depends on
    #[arg(long)]
    reverse: bool,
    /// Steps to go
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,
    /// The shortest way to another file
    #[arg(long, value_name = "OTHER", conflicts_with_all = ["reverse", "cycles"])]
    path_to: Option<String>,
    /// Files that import each other in a circle; with a file, the circle that it is in
    #[arg(long, conflicts_with = "reverse")]
    cycles: bool,
    /// Files, at most
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = parse_limit)]
    limit: usize,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) fn deps(environment: &Environment, args: &DepsArgs) -> Result<u8, HostError> {
    let known = open_graph(environment, &args.answer)?;
    let start = args.path.as_deref().map(|path| known.find_file(path)).transpose()?;
    if args.cycles {
        return Ok(print_cycles(&known, start, args));
    }
    let Some(start) = start else { return Err(HostError::usage("name a file")) };
    if let Some(other) = &args.path_to {
        let other = known.find_file(other)?;
        return Ok(print_path(&known, start, other, args.answer.json));
    }
    let direction = if args.reverse { Direction::Dependents } else { Direction::Dependencies };
    let found = Dependencies::find(&known, start, direction, args.depth);
    if args.answer.json {
        outln!("{}", found.to_json(&known, args.limit));
    } else {
        print_files(&known, &found, args.limit);
    }
    Ok(u8::from(found.is_empty()))
}

fn print_files(known: &CodeGraph, found: &Dependencies, limit: usize) {
    let paint = color::stdout();
    for file in found.reach.files.iter().take(limit) {
        let indent = "  ".repeat(file.distance.saturating_sub(1).min(20) as usize);
        let (from, to) = found.edge(file);
        let mut words = known.describe_edge(from, to);
        if file.distance > 1 {
            words = format!("by {}  {words}", known.path(file.from));
        }
        let line = format!("{indent}{}  {}", paint.bold(&known.path(file.file)), paint.dim(&words));
        outln!("{}", line.trim_end());
    }
    if !found.packages.is_empty() {
        outln!("{} {}", paint.dim("packages:"), printable(&found.packages.join(", ")));
    }
    let more = found.count_more(limit);
    if more > 0 || found.reach.cut {
        errln!("{more} more; --limit shows them");
    }
    if found.is_empty() {
        let what = match found.direction {
            Direction::Dependents => "nothing here depends on",
            Direction::Dependencies | Direction::Both => "nothing is known that it needs:",
        };
        errln!("{what} {}", known.path(found.start));
    }
}

fn print_path(known: &CodeGraph, from: u32, to: u32, as_json: bool) -> u8 {
    let found = DependencyPath::find(known, from, to);
    if as_json {
        outln!("{}", found.to_json(known));
        return u8::from(found.files.is_none());
    }
    let Some(files) = found.files else {
        errln!("neither of {} and {} depends on the other", known.path(from), known.path(to));
        return 1;
    };
    if found.is_reversed {
        errln!("note: it is the other way round: {} depends on {}", known.path(to), known.path(from));
    }
    let paint = color::stdout();
    let mut last: Option<u32> = None;
    for file in files {
        match last {
            None => outln!("{}", paint.bold(&known.path(file))),
            Some(before) => {
                let words = known.describe_edge(before, file);
                outln!("  → {}  {}", paint.bold(&known.path(file)), paint.dim(&words));
            }
        }
        last = Some(file);
    }
    0
}

fn print_cycles(known: &CodeGraph, start: Option<u32>, args: &DepsArgs) -> u8 {
    let cycles = find_cycles(known, start);
    if args.answer.json {
        outln!("{}", cycles_to_json(known, &cycles, args.limit));
        return u8::from(cycles.is_empty());
    }
    let paint = color::stdout();
    for cycle in cycles.iter().take(args.limit) {
        let round: Vec<String> = cycle.round.iter().map(|file| known.path(*file)).collect();
        outln!("{} {}", paint.bold(&format!("{} files:", cycle.files.len())), round.join(" → "));
        let others: Vec<&u32> = cycle.files.iter().filter(|file| !cycle.round.contains(file)).collect();
        for file in others.iter().take(MAX_SHOWN_CYCLE_FILES) {
            outln!("  {}", known.path(**file));
        }
        if others.len() > MAX_SHOWN_CYCLE_FILES {
            outln!("  … and {} more", others.len() - MAX_SHOWN_CYCLE_FILES);
        }
    }
    let more = cycles.len().saturating_sub(args.limit);
    if more > 0 {
        errln!("{more} more; --limit shows them");
    }
    if cycles.is_empty() {
        errln!("no files import each other in a circle");
    }
    u8::from(cycles.is_empty())
}
