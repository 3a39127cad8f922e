//! `jm map`: what matters most in the project, or for a task, within a budget of tokens.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use journeyman_agent::config::Environment;
use journeyman_context::{Estimate, Outlined, Signature, outline_map};
use journeyman_git::Git;
use journeyman_index::facts::{Kind, Visibility};
use journeyman_index::graph::{Graph, Node};
use journeyman_index::query::{Context, Corpus as _, Query, Searcher, SymbolEntry};
use journeyman_index::tokens::Tokenizer;
use journeyman_index::{Project, Snapshot};
use journeyman_protocol::{TokenCounter as _, Tokens};
use journeyman_sandbox::{Sandbox, SandboxSettings, clean};
use serde_json::json;

use super::current;
use crate::edge::{Failure, root};
use crate::stdout::say;

pub(crate) const HELP: &str = "\
Files that much hangs on come first, by a weight like PageRank's over the dependency graph, each with its most \
important signatures. With a task, files that the search finds for it come first, with what they depend on.

Exit codes: 0 there is a map, 1 there is nothing to show or an error, 2 usage

Examples:
  jm map                                       the whole project
  jm map --tokens 4000 \"retries are counted twice\"
  jm map --json | jq '.tokens'";

/// Files that are looked at closely: more have no room in any budget.
const CANDIDATES: usize = 400;
/// Files that a task's search may bring in.
const FOUND: usize = 60;
/// What the graph counts beside the search, where there is a task.
const GRAPH_SHARE: f64 = 0.4;
/// Definitions of a file that are weighed.
const MAX_SYMBOLS: usize = 400;
/// Uses of a name that are counted.
const MAX_USES: u32 = 10_000;
/// What a definition that the task names is worth more.
const NAMED: f64 = 4.0;

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

pub(crate) fn map(environment: &Environment, args: &MapArgs) -> Result<u8, Failure> {
    let task = args.query.as_deref().map(str::trim);
    if task == Some("") {
        return Err(Failure::usage("the task is empty; leave it out for a map of the whole project"));
    }
    let (project, snapshot) = current(environment, args.directory.as_deref())?;
    let graph = project.graph(&snapshot);
    let asked = match task {
        Some(task) => found(environment, args, &project, &snapshot, &graph, task)?,
        None => Vec::new(),
    };
    let order = order(&snapshot, &graph, &asked);
    let words = task.unwrap_or_default().to_lowercase();
    let outlined: Vec<Outlined> = order
        .iter()
        .filter_map(|file| {
            let node = graph.node(*file)?;
            let signatures = signatures(&snapshot, node, &words);
            let path = clean(node.path.as_bytes());
            let wanted = asked.iter().any(|(asked, _)| asked == file);
            (wanted || !signatures.is_empty()).then_some(Outlined { path, signatures })
        })
        .collect();
    let (text, shown) = outline_map(&outlined, Tokens(args.tokens));
    let cost = Estimate.count(&text).0;
    if args.json {
        say!("{}", json!({"map": text, "tokens": cost, "shown": shown, "files": graph.len()}));
    } else {
        say!("{}", text.trim_end());
        eprintln!("{shown} of {} files, about {cost} tokens", graph.len());
    }
    Ok(u8::from(shown == 0))
}

/// What the search finds for a task, each with its share of the best one's score.
fn found(
    environment: &Environment,
    args: &MapArgs,
    project: &Project,
    snapshot: &Snapshot,
    graph: &Graph,
    task: &str,
) -> Result<Vec<(u32, f64)>, Failure> {
    let place = root(environment, args.directory.as_deref())?;
    let git = Git::new(&place, Arc::new(Sandbox::new(SandboxSettings::default())));
    let history = Git::blocking(project.history(&git)).unwrap_or_else(|error| {
        eprintln!("note: commits don't count this time: {error}");
        None
    });
    let query = Query::new(task, &mut Tokenizer::new());
    let answer = Searcher::new().search(snapshot, history.as_ref(), &query, Context::default(), FOUND);
    let best = answer.files.first().map_or(1.0, |hit| f64::from(hit.score));
    let share = |path: &[u8], score: f32| {
        let file = graph.find(std::str::from_utf8(path).ok()?)?;
        Some((file, f64::from(score) / best))
    };
    Ok(answer.files.iter().filter_map(|hit| share(&hit.path, hit.score)).collect())
}

/// The files that are most worth a place, the first ones first.
fn order(snapshot: &Snapshot, graph: &Graph, asked: &[(u32, f64)]) -> Vec<u32> {
    // What is found well counts more than what is found at all.
    let begin: Vec<(u32, f64)> = asked.iter().map(|(file, share)| (*file, share * share)).collect();
    let ranks = graph.ranks(&begin);
    let most = ranks.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let is_source = |file: u32| {
        let record =
            graph.node(file).and_then(|node| Snapshot::file(snapshot, node.file)).map(|file| file.record);
        record.is_some_and(|record| {
            let flags = record.flags;
            record.language.is_some() && !flags.test && !flags.doc && !flags.vendored && !flags.generated
        })
    };
    let mut scores: Vec<(f64, u32)> = (0..)
        .zip(&ranks)
        .filter_map(|(file, rank)| {
            let found = asked.iter().find(|(asked, _)| *asked == file).map(|(_, share)| *share);
            let graph = rank / most;
            match found {
                Some(share) => Some((share + GRAPH_SHARE * graph, file)),
                None if !is_source(file) => None,
                None if asked.is_empty() => Some((graph, file)),
                None => Some((GRAPH_SHARE * graph, file)),
            }
        })
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scores.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    scores.truncate(CANDIDATES);
    scores.into_iter().map(|(_, file)| file).collect()
}

/// What a file defines that others may use, with how much each tells.
fn signatures(snapshot: &Snapshot, node: &Node, task: &str) -> Vec<Signature> {
    let mut found = Vec::new();
    snapshot.symbols_of(node.file, &mut |symbol: SymbolEntry<'_>| {
        let kind = match symbol.kind {
            Kind::Class | Kind::Struct | Kind::Enum | Kind::Interface | Kind::Trait | Kind::Type => 1.2,
            Kind::Function | Kind::Macro | Kind::Table => 1.0,
            Kind::Method | Kind::Constructor => 0.8,
            Kind::Constant => 0.5,
            _ => return,
        };
        if symbol.local || symbol.signature.is_empty() || found.len() >= MAX_SYMBOLS {
            return;
        }
        let seen = match symbol.visibility {
            Visibility::Private => 0.3,
            Visibility::Restricted => 0.6,
            Visibility::Public | Visibility::Unknown => 1.0,
        };
        let users = users(snapshot, symbol.name, node.file);
        // A constant or a part that nobody else uses tells nothing of what the file is for.
        if users == 0 && (seen < 1.0 || kind < 0.6) {
            return;
        }
        let name = symbol.name.to_lowercase();
        let mut namesakes = 0_u32;
        snapshot.defined(&name, |_| namesakes += 1);
        let named = if name.len() > 2 && task.contains(&name) { NAMED } else { 1.0 };
        let worth = kind * seen * named * (1.0 + f64::from(users).ln_1p()) / f64::from(namesakes.max(1));
        let depth = if symbol.scope.is_empty() { 0 } else { symbol.scope.split('.').count() };
        found.push(Signature { text: symbol.signature.to_owned(), depth, worth });
    });
    found
}

/// How many other files use a name.
fn users(snapshot: &Snapshot, name: &str, own: u32) -> u32 {
    let (mut files, mut last) = (0_u32, own);
    snapshot.used(name, |file, _| {
        if file != own && file != last && files < MAX_USES {
            files += 1;
        }
        last = file;
    });
    files
}
