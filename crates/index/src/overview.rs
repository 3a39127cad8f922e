//! An overview of a project, or of a task: files in order of importance, and their main
//! definitions.
//!
//! Files are ordered by a PageRank over the dependency graph. For a task, the results of a search
//! come first, with their dependencies. `jm map` and a session's first prompt show it.

use hashbrown::HashMap;

use crate::Snapshot;
use crate::analysis::{SymbolKind, Visibility};
use crate::graph::Graph;
use crate::query::{Corpus as _, SearchResult, SymbolEntry};
use crate::segment::DocumentId;

/// Maximum files that a task's search contributes.
pub const MAX_FOUND_FILES: usize = 60;
/// Maximum files that are examined closely: more don't fit in any budget.
const MAX_CANDIDATES: usize = 400;
/// Weight of the graph beside the search, where there is a task.
const GRAPH_SHARE: f64 = 0.4;
/// Maximum definitions of a file that are weighed.
const MAX_SYMBOLS_PER_FILE: usize = 400;
/// Maximum references to a name that are counted.
const MAX_COUNTED_USES: u32 = 10_000;
/// Factor for a definition that the task names.
const NAMED_DEFINITION_FACTOR: f64 = 4.0;

/// A definition, as an overview shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signature {
    /// Its beginning, up to its body.
    pub text: String,
    /// Its nesting depth.
    pub depth: usize,
    /// Its importance among the file's definitions.
    pub worth: f64,
}

/// Returns the files of an answer, by their numbers in the snapshot, each with its share of the
/// best one's score.
#[must_use]
pub fn score_shares(answer: &SearchResult) -> Vec<(DocumentId, f64)> {
    let best = answer.files.first().map_or(1.0, |hit| f64::from(hit.score)).max(f64::MIN_POSITIVE);
    answer.files.iter().map(|hit| (hit.file, f64::from(hit.score) / best)).collect()
}

/// Returns the most important files, the first ones first, with their scores. `asked` are search
/// results for a task; without any, all source files are weighed. Without a graph only search
/// results are returned.
#[must_use]
pub fn rank_files(
    snapshot: &Snapshot,
    graph: Option<&Graph>,
    asked: &[(DocumentId, f64)],
) -> Vec<(DocumentId, f64)> {
    let Some(graph) = graph else { return asked.to_vec() };
    let asked: HashMap<u32, f64> = asked
        .iter()
        .filter_map(|(file, share)| {
            let view = snapshot.file(*file)?;
            Some((graph.find_file(std::str::from_utf8(view.path_bytes()).ok()?)?, *share))
        })
        .collect();
    // A good search result counts more than its mere presence.
    let mut begin: Vec<(u32, f64)> = asked.iter().map(|(file, share)| (*file, share * share)).collect();
    begin.sort_unstable_by_key(|(file, _)| *file);
    let ranks = graph.page_ranks(&begin);
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
    scores.truncate(MAX_CANDIDATES);
    scores.into_iter().filter_map(|(score, number)| Some((graph.node(number)?.file, score))).collect()
}

/// Returns a file's definitions that others may use, in text order, with their importance.
#[must_use]
pub fn signatures(snapshot: &Snapshot, file: DocumentId, task: &str) -> Vec<Signature> {
    let task = task.to_lowercase();
    let mut found = Vec::new();
    snapshot.visit_symbols_of(file, &mut |symbol: SymbolEntry<'_>| {
        let kind = match symbol.kind {
            SymbolKind::Class
            | SymbolKind::Struct
            | SymbolKind::Enum
            | SymbolKind::Interface
            | SymbolKind::Trait
            | SymbolKind::Type => 1.2,
            SymbolKind::Function | SymbolKind::Macro | SymbolKind::Table => 1.0,
            SymbolKind::Method | SymbolKind::Constructor => 0.8,
            SymbolKind::Constant => 0.5,
            _ => return,
        };
        if symbol.local || symbol.signature.is_empty() || found.len() >= MAX_SYMBOLS_PER_FILE {
            return;
        }
        let seen = match symbol.visibility {
            Visibility::Private => 0.3,
            Visibility::Restricted => 0.6,
            Visibility::Public | Visibility::Unknown => 1.0,
        };
        let users = count_users(snapshot, symbol.name, file);
        // A constant or a field that no other file uses says nothing about the file.
        if users == 0 && (seen < 1.0 || kind < 0.6) {
            return;
        }
        let name = symbol.name.to_lowercase();
        let mut namesakes = 0_u32;
        snapshot.visit_definitions(&name, |_| namesakes += 1);
        let named = if name.len() > 2 && task.contains(&name) { NAMED_DEFINITION_FACTOR } else { 1.0 };
        let worth = kind * seen * named * (1.0 + f64::from(users).ln_1p()) / f64::from(namesakes.max(1));
        let depth = if symbol.scope.is_empty() { 0 } else { symbol.scope.split('.').count() };
        found.push(Signature { text: symbol.signature.to_owned(), depth, worth });
    });
    found
}

/// Returns the number of other files that use a name.
fn count_users(snapshot: &Snapshot, name: &str, own: DocumentId) -> u32 {
    let (mut files, mut last) = (0_u32, own);
    snapshot.visit_references(name, |file, _| {
        if file != own && file != last && files < MAX_COUNTED_USES {
            files += 1;
        }
        last = file;
    });
    files
}
