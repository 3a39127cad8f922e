//! `jm deps`: a file's dependencies and dependents, dependency paths and cycles.

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::index::{CodeGraph, Dependencies, DependencyPath, cycles_to_answer, find_cycles};
use journeyman_index::graph::{Cycle, Direction};
use journeyman_terminal::stdout_paint;

use super::open::{open_graph, print_answer, print_omitted_count};
use crate::args::{AnswerArgs, parse_count};
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
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = parse_count::<usize>)]
    limit: usize,
    #[command(flatten)]
    answer: AnswerArgs,
}

pub(crate) fn show_dependencies(environment: &Environment, args: &DepsArgs) -> Result<u8, HostError> {
    let known = open_graph(environment, &args.answer)?;
    let start = args.path.as_deref().map(|path| known.find_file(path)).transpose()?;
    if args.cycles {
        let cycles = find_cycles(&known, start);
        let to_answer = || cycles_to_answer(&known, &cycles, args.limit);
        let print = || print_cycles(&known, &cycles, args.limit);
        return print_answer(&args.answer, cycles.is_empty(), to_answer, print);
    }
    let Some(start) = start else { return Err(HostError::usage("name a file")) };
    if let Some(other) = &args.path_to {
        let other = known.find_file(other)?;
        let found = DependencyPath::find(&known, start, other);
        let print = || print_path(&known, start, other, &found);
        return print_answer(&args.answer, found.files.is_none(), || found.to_answer(&known), print);
    }
    let direction = if args.reverse { Direction::Dependents } else { Direction::Dependencies };
    let found = Dependencies::find(&known, start, direction, args.depth);
    let print = || print_files(&known, &found, args.limit);
    print_answer(&args.answer, found.is_empty(), || found.to_answer(&known, args.limit), print)
}

fn print_files(known: &CodeGraph, found: &Dependencies, limit: usize) {
    let paint = stdout_paint();
    for file in found.reach.files.iter().take(limit) {
        let indent = "  ".repeat(file.distance.saturating_sub(1).min(20) as usize);
        let (from, to) = found.edge_to(file);
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
    let more = found.count_omitted(limit);
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

fn print_path(known: &CodeGraph, from: u32, to: u32, found: &DependencyPath) {
    let Some(files) = &found.files else {
        return errln!("neither of {} and {} depends on the other", known.path(from), known.path(to));
    };
    if found.is_reversed {
        errln!("note: it is the other way round: {} depends on {}", known.path(to), known.path(from));
    }
    let paint = stdout_paint();
    let Some((first, others)) = files.split_first() else { return };
    outln!("{}", paint.bold(&known.path(*first)));
    for (from, to) in files.iter().zip(others) {
        let words = known.describe_edge(*from, *to);
        outln!("  → {}  {}", paint.bold(&known.path(*to)), paint.dim(&words));
    }
}

fn print_cycles(known: &CodeGraph, cycles: &[Cycle], limit: usize) {
    let paint = stdout_paint();
    for cycle in cycles.iter().take(limit) {
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
    print_omitted_count(cycles.len().saturating_sub(limit));
    if cycles.is_empty() {
        errln!("no files import each other in a circle");
    }
}
