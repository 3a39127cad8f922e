//! Explaining the rank of one file for a query.

use journeyman_index::query::{FileHit, MAX_ANSWER_FILES, Query, QueryContext, Searcher, Signal};
use journeyman_index::tokens::Tokenizer;

use super::answers::{MeasuredSignal, TextLine, WhyAnswer};
use super::graph::CodeGraph;
use super::search::{describe_passages, find_best_lines};
use super::vectors::find_similar_chunks;

/// The strength of one signal for a file.
#[derive(Debug)]
pub struct SignalStrength {
    /// The signal.
    pub signal: Signal,
    /// The strength as it was measured.
    pub raw: f32,
    /// The strength compared with the best source file, and its share of the score; `None` where it
    /// adds nothing.
    pub counted: Option<(f32, f32)>,
}

/// The rank of a file for a query, with the signals behind it.
#[derive(Debug)]
pub struct Explanation {
    /// The file's path.
    pub path: String,
    /// The 0-based rank of the file; `None` where the query doesn't find it.
    pub rank: Option<usize>,
    /// The number of files that the query finds.
    pub found_files: usize,
    /// The file's score and passages.
    pub hit: Option<FileHit>,
    /// The best lines of each passage.
    pub lines: Vec<Vec<TextLine>>,
    /// All signals.
    pub signals: Vec<SignalStrength>,
}

impl Explanation {
    /// Explains the rank of the file `node` of the graph. What is near to the file `near` in the
    /// graph counts a little more.
    #[must_use]
    pub fn for_file(known: &CodeGraph, node: u32, text: &str, near: Option<u32>) -> Self {
        let (index, snapshot) = (&known.index, &*known.index.snapshot);
        let history = index.read_history();
        let near = near.map(|near| known.graph.nearby_files(near)).unwrap_or_default();
        let query = Query::new(text, &mut Tokenizer::new());
        let mut searcher = Searcher::new();
        let raw = searcher.raw_signals(snapshot, history.as_ref(), &query);
        let similar = find_similar_chunks(index, text);
        let vectors = similar.as_ref().map(|(similar, weight)| (similar, *weight));
        let context = QueryContext { near: &near, vectors };
        let answer = searcher.search(snapshot, history.as_ref(), &query, context, MAX_ANSWER_FILES);
        let number = known.graph.node(node).map_or(u32::MAX, |node| node.file);
        let place = answer.files.iter().position(|hit| hit.file == number);
        let hit = place.and_then(|place| answer.files.get(place));
        let raw = raw.into_iter().find(|(file, _)| *file == number).map(|(_, raw)| raw).unwrap_or_default();
        let said: Vec<SignalStrength> = Signal::ALL
            .into_iter()
            .zip(raw)
            .map(|(signal, raw)| {
                let reason = hit.and_then(|hit| hit.why.iter().find(|reason| reason.signal == signal));
                // Nearness doesn't depend on the query: it is given as it counts.
                let raw = if signal == Signal::Near { reason.map_or(0.0, |one| one.strength) } else { raw };
                SignalStrength { signal, raw, counted: reason.map(|one| (one.strength, one.share)) }
            })
            .collect();
        let (path, found_files, hit) = (known.path(node), answer.files.len(), hit.cloned());
        let lines = hit.as_ref().map(|hit| find_best_lines(index, &query, std::slice::from_ref(hit)));
        let lines = lines.and_then(|mut lines| lines.pop()).unwrap_or_default();
        Self { path, rank: place, found_files, hit, lines, signals: said }
    }

    /// Returns the explanation as it is printed in JSON.
    #[must_use]
    pub fn to_answer(&self) -> WhyAnswer {
        let signals = self.signals.iter().map(|signal| {
            let (strength, share) = signal.counted.unwrap_or_default();
            MeasuredSignal { signal: signal.signal.name(), raw: signal.raw, strength, share }
        });
        let passages = self.hit.as_ref().map(|hit| hit.passages.as_slice()).unwrap_or_default();
        WhyAnswer {
            path: self.path.clone(),
            rank: self.rank.map(|rank| rank + 1),
            of: self.found_files,
            score: self.hit.as_ref().map(|hit| hit.score),
            signals: signals.collect(),
            passages: describe_passages(passages, &self.lines),
        }
    }
}
