//! `jm deps`: what a file depends on, what depends on it, the way from one file to another,
//! circles.

use std::path::PathBuf;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_host::index::CodeGraph;
use journeyman_index::graph::Direction;
use journeyman_sandbox::clean;
use serde_json::{Value, json};

use super::open::{at_least_one, open_graph};
use crate::color;
use crate::stdout::say;
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
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The project's directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn deps(environment: &Environment, args: &DepsArgs) -> Result<u8, HostError> {
    let known = open_graph(environment, args.directory.as_deref())?;
    let start = args.path.as_deref().map(|path| known.find_file(path)).transpose()?;
    if args.cycles {
        return print_cycles(&known, start, args);
    }
    let Some(start) = start else { return Err(HostError::usage("name a file")) };
    if let Some(other) = &args.path_to {
        let other = known.find_file(other)?;
        return print_path(&known, start, other, args.json);
    }
    let direction = if args.reverse { Direction::Dependents } else { Direction::Dependencies };
    let reach = known.graph.neighbours(&[start], direction, args.depth);
    let packages: Vec<&str> = if args.reverse { Vec::new() } else { known.graph.packages(start).collect() };
    let shown = reach.files.iter().take(args.limit);
    let edge = |file: u32, from: u32| if args.reverse { (file, from) } else { (from, file) };
    let more = reach.files.len().saturating_sub(args.limit);
    if args.json {
        let files: Vec<Value> = shown
            .map(|found| {
                let (one, other) = edge(found.file, found.from);
                json!({
                    "path": known.graph.path(found.file), "distance": found.distance,
                    "from": known.graph.path(found.from), "why": known.edge_to_json(one, other),
                })
            })
            .collect();
        let path = known.graph.path(start);
        let direction = if args.reverse { "dependents" } else { "dependencies" };
        say!(
            "{}",
            json!({"path": path, "direction": direction, "files": files, "packages": packages, "more": more, "cut": reach.cut})
        );
    } else {
        let paint = color::stdout();
        for found in shown {
            let indent = "  ".repeat(found.distance.saturating_sub(1).min(20) as usize);
            let (one, other) = edge(found.file, found.from);
            let mut words = known.describe_edge(one, other);
            if found.distance > 1 {
                words = format!("by {}  {words}", known.path(found.from));
            }
            say!(
                "{}",
                format!("{indent}{}  {}", paint.bold(&known.path(found.file)), paint.dim(&words)).trim_end()
            );
        }
        if !packages.is_empty() {
            let packages: Vec<String> = packages.iter().map(|name| clean(name.as_bytes())).collect();
            say!("{} {}", paint.dim("packages:"), packages.join(", "));
        }
        if more > 0 || reach.cut {
            tell!("{more} more; --limit shows them");
        }
        if reach.files.is_empty() && packages.is_empty() {
            let what =
                if args.reverse { "nothing here depends on" } else { "nothing is known that it needs:" };
            tell!("{what} {}", known.path(start));
        }
    }
    Ok(u8::from(reach.files.is_empty() && packages.is_empty()))
}

fn print_path(known: &CodeGraph, from: u32, to: u32, as_json: bool) -> Result<u8, HostError> {
    let forwards = known.graph.way(from, to);
    let backwards = if forwards.is_some() { None } else { known.graph.way(to, from) };
    let turned = backwards.is_some();
    let way = forwards.or(backwards);
    if as_json {
        let steps: Option<Vec<Value>> = way.as_ref().map(|way| {
            way.windows(2)
                .filter_map(|pair| {
                    let [one, other] = pair else { return None };
                    let (from, to) = (known.graph.path(*one), known.graph.path(*other));
                    Some(json!({"from": from, "to": to, "why": known.edge_to_json(*one, *other)}))
                })
                .collect()
        });
        say!("{}", json!({"found": way.is_some(), "reversed": turned, "steps": steps}));
        return Ok(u8::from(way.is_none()));
    }
    let Some(way) = way else {
        tell!("neither of {} and {} depends on the other", known.path(from), known.path(to));
        return Ok(1);
    };
    if turned {
        tell!("note: it is the other way round: {} depends on {}", known.path(to), known.path(from));
    }
    let paint = color::stdout();
    let mut last: Option<u32> = None;
    for file in way {
        match last {
            None => say!("{}", paint.bold(&known.path(file))),
            Some(before) => {
                let words = known.describe_edge(before, file);
                say!("  → {}  {}", paint.bold(&known.path(file)), paint.dim(&words));
            }
        }
        last = Some(file);
    }
    Ok(0)
}

fn print_cycles(known: &CodeGraph, start: Option<u32>, args: &DepsArgs) -> Result<u8, HostError> {
    let mut cycles = known.graph.cycles();
    cycles.retain(|cycle| start.is_none_or(|start| cycle.files.binary_search(&start).is_ok()));
    let paths = |files: &[u32]| files.iter().map(|file| known.path(*file)).collect::<Vec<_>>();
    let more = cycles.len().saturating_sub(args.limit);
    if args.json {
        let shown = cycles.iter().take(args.limit);
        let shown: Vec<Value> =
            shown.map(|cycle| json!({"files": paths(&cycle.files), "round": paths(&cycle.round)})).collect();
        say!("{}", json!({"cycles": shown, "more": more}));
        return Ok(u8::from(cycles.is_empty()));
    }
    let paint = color::stdout();
    for cycle in cycles.iter().take(args.limit) {
        say!("{} {}", paint.bold(&format!("{} files:", cycle.files.len())), paths(&cycle.round).join(" → "));
        let others: Vec<u32> =
            cycle.files.iter().filter(|file| !cycle.round.contains(file)).copied().collect();
        for file in others.iter().take(MAX_SHOWN_CYCLE_FILES) {
            say!("  {}", known.path(*file));
        }
        if others.len() > MAX_SHOWN_CYCLE_FILES {
            say!("  … and {} more", others.len() - MAX_SHOWN_CYCLE_FILES);
        }
    }
    if more > 0 {
        tell!("{more} more; --limit shows them");
    }
    if cycles.is_empty() {
        tell!("no files import each other in a circle");
    }
    Ok(u8::from(cycles.is_empty()))
}
