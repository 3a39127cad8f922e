//! `jm deps`: what a file depends on, what depends on it, the way from one file to another, circles.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use journeyman_host::config::Environment;
use journeyman_index::graph::{Direction, Edge, DeletedFile, Graph, WHOLE};
use journeyman_index::{Project, Snapshot};
use journeyman_protocol::RelPath;
use journeyman_sandbox::clean;
use serde_json::{Value, json};

use super::place::Place;
use super::{at_least_one, current};
use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;

pub(crate) const HELP: &str = "\
A file depends on what it imports, and on what defines the names that it uses: in its own folder where the language \
needs no import there, or anywhere if one file alone defines the name. docs/graph.md tells the rules.

Exit codes: 0 something was found, 1 nothing was found or an error, 2 usage

Examples:
  jm deps src/shop.py                      what it imports
  jm deps src/shop.py --reverse --depth 2  who needs it, and who needs those
  jm deps src/app.py --path-to src/db.py   how one comes to need the other
  jm deps --cycles                         files that import each other in a circle";

/// Files of a circle that are shown.
const CIRCLE_SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct DepsArgs {
    /// The file
    #[arg(required_unless_present = "cycles")]
    path: Option<String>,
    /// What depends on it, instead of what it depends on
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

/// The graph of the project here, up to date, and what paths are called in it.
pub(super) struct Known {
    pub(super) project: Project,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) graph: Arc<Graph>,
    place: Place,
}

impl Known {
    pub(super) fn open(environment: &Environment, directory: Option<&Path>) -> Result<Self, HostError> {
        let (project, snapshot) = current(environment, directory)?;
        let graph = project.graph(&snapshot);
        Ok(Self { project, snapshot, graph, place: Place::of(environment, directory)? })
    }

    /// The file that is named, from the project's directory or with its whole path.
    pub(super) fn file(&self, path: &str) -> Result<u32, HostError> {
        named(&self.graph, &self.place, path)
    }

    /// What a file says now.
    pub(super) fn text(&self, file: u32) -> Option<String> {
        self.project.text(&RelPath::parse(self.graph.path(file)).ok()?)
    }

    /// Puts files that are gone back, with who needed them. Numbers of files are others afterwards.
    pub(super) fn put_back(&mut self, gone: &[DeletedFile]) {
        let read = |path: &str| self.project.text(&RelPath::parse(path).ok()?);
        self.graph = Arc::new(self.graph.with_deleted(&self.snapshot, gone, &read));
    }

    pub(super) fn path(&self, file: u32) -> String {
        clean(self.graph.path(file).as_bytes())
    }

    /// Why one file depends on another one, in words.
    fn because(&self, from: u32, to: u32) -> String {
        clean(self.graph.because(&self.snapshot, from, to).as_bytes())
    }

    /// The same for programs.
    fn why(&self, from: u32, to: u32) -> Value {
        let Edge { line, part, names: weight, .. } = self.graph.edge(from, to).unwrap_or_default();
        let names = if weight > 0 { self.graph.names(&self.snapshot, from, to) } else { Vec::new() };
        let (line, weight) = ((line > 0).then_some(line), f64::from(weight) / f64::from(WHOLE));
        json!({"line": line, "part": part, "weight": weight, "names": names})
    }
}

/// The file of a graph that is named.
fn named(graph: &Graph, place: &Place, path: &str) -> Result<u32, HostError> {
    let similar = |path: &str| graph.similar(path).into_iter().map(str::to_owned).collect();
    place.file(path, &|path| graph.find(path), &similar)
}

/// The files near one, as the search takes them.
pub(super) fn near(
    environment: &Environment,
    directory: Option<&Path>,
    project: &Project,
    snapshot: &Arc<Snapshot>,
    path: &str,
) -> Result<Vec<(u32, u32)>, HostError> {
    let graph = project.graph(snapshot);
    let file = named(&graph, &Place::of(environment, directory)?, path)?;
    Ok(graph.near(file))
}

pub(crate) fn deps(environment: &Environment, args: &DepsArgs) -> Result<u8, HostError> {
    let known = Known::open(environment, args.directory.as_deref())?;
    let start = args.path.as_deref().map(|path| known.file(path)).transpose()?;
    if args.cycles {
        return cycles(&known, start, args);
    }
    let Some(start) = start else { return Err(HostError::usage("name a file")) };
    if let Some(other) = &args.path_to {
        let other = known.file(other)?;
        return way(&known, start, other, args.json);
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
                    "from": known.graph.path(found.from), "why": known.why(one, other),
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
            let mut words = known.because(one, other);
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

fn way(known: &Known, from: u32, to: u32, as_json: bool) -> Result<u8, HostError> {
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
                    Some(json!({"from": from, "to": to, "why": known.why(*one, *other)}))
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
                let words = known.because(before, file);
                say!("  → {}  {}", paint.bold(&known.path(file)), paint.dim(&words));
            }
        }
        last = Some(file);
    }
    Ok(0)
}

fn cycles(known: &Known, start: Option<u32>, args: &DepsArgs) -> Result<u8, HostError> {
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
        for file in others.iter().take(CIRCLE_SHOWN) {
            say!("  {}", known.path(*file));
        }
        if others.len() > CIRCLE_SHOWN {
            say!("  … and {} more", others.len() - CIRCLE_SHOWN);
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
