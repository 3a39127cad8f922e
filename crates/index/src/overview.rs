//! What matters most in a project, or for a task: files in an order, and what each of them defines.
//!
//! Files that much hangs on come first, by a weight like PageRank's over the dependency graph. For a task, files that a
//! search finds come first, with what they depend on. It is what `jm map` shows and what a session's first prompt has.

use hashbrown::HashMap;

use crate::Snapshot;
use crate::facts::{Kind, Visibility};
use crate::graph::Graph;
use crate::query::{Answer, Corpus as _, SymbolEntry};
use crate::segment::Id;

/// Files that a task's search may bring in.
pub const FOUND: usize = 60;
/// Files that are looked at closely: more have no room in any budget.
const CANDIDATES: usize = 400;
/// What the graph counts beside the search, where there is a task.
const GRAPH_SHARE: f64 = 0.4;
/// Definitions of a file that are weighed.
const MAX_SYMBOLS: usize = 400;
/// Uses of a name that are counted.
const MAX_USES: u32 = 10_000;
/// What a definition that the task names is worth more.
const NAMED: f64 = 4.0;

/// A definition, as an overview shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signature {
    /// Its beginning.
    pub text: String,
    /// How deep it lies in others.
    pub depth: usize,
    /// How much it tells, compared with the file's others.
    pub worth: f64,
}

/// The files that a search found, by their numbers in the snapshot, each with its part of the best one's score.
#[must_use]
pub fn shares(answer: &Answer) -> Vec<(Id, f64)> {
    let best = answer.files.first().map_or(1.0, |hit| f64::from(hit.score)).max(f64::MIN_POSITIVE);
    answer.files.iter().map(|hit| (hit.file, f64::from(hit.score) / best)).collect()
}

/// The files that are most worth a place, the first ones first, with what speaks for each. `asked` are those that were
/// found for a task; without any, all source files are weighed. Without a graph it is those alone.
#[must_use]
pub fn order(snapshot: &Snapshot, graph: Option<&Graph>, asked: &[(Id, f64)]) -> Vec<(Id, f64)> {
    let Some(graph) = graph else { return asked.to_vec() };
    let asked: HashMap<u32, f64> = asked
        .iter()
        .filter_map(|(file, share)| {
            let view = snapshot.file(*file)?;
            Some((graph.find(std::str::from_utf8(view.path_bytes()).ok()?)?, *share))
        })
        .collect();
    // What is found well counts more than what is found at all.
    let mut begin: Vec<(u32, f64)> = asked.iter().map(|(file, share)| (*file, share * share)).collect();
    begin.sort_unstable_by_key(|(file, _)| *file);
    let ranks = graph.ranks(&begin);
    let most = ranks.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let is_source = |node: &crate::graph::Node| {
        let flags = node.flags;
        node.language.is_some() && !flags.test && !flags.doc && !flags.vendored && !flags.generated
    };
    let mut scores: Vec<(f64, u32)> = (0..)
        .zip(&ranks)
        .filter_map(|(number, rank)| {
            let by_graph = rank / most;
            let score = match asked.get(&number) {
                Some(share) => share + GRAPH_SHARE * by_graph,
                None if !is_source(graph.node(number)?) => return None,
                None if asked.is_empty() => by_graph,
                None => GRAPH_SHARE * by_graph,
            };
            (score > 0.0).then_some((score, number))
        })
        .collect();
    scores.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    scores.truncate(CANDIDATES);
    scores.into_iter().filter_map(|(score, number)| Some((graph.node(number)?.file, score))).collect()
}

/// What a file defines that others may use, in the order of its text, with how much each tells.
#[must_use]
pub fn signatures(snapshot: &Snapshot, file: Id, task: &str) -> Vec<Signature> {
    let task = task.to_lowercase();
    let mut found = Vec::new();
    snapshot.symbols_of(file, &mut |symbol: SymbolEntry<'_>| {
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
        let users = users(snapshot, symbol.name, file);
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
fn users(snapshot: &Snapshot, name: &str, own: Id) -> u32 {
    let (mut files, mut last) = (0_u32, own);
    snapshot.used(name, |file, _| {
        if file != own && file != last && files < MAX_USES {
            files += 1;
        }
        last = file;
    });
    files
}
