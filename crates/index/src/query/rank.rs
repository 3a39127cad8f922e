//! Combining signals into one score, and choosing the passages of a file.

use super::corpus::{Corpus, SymbolEntry};
use super::definitions::{Definition, find_definitions};
use super::document::{Purpose, full_name, is_source};
use super::parse::{MentionedFile, Query};
use super::signals::{QueryContext, Signal, Signals, mentioned_files};
use crate::history::History;

/// Maximum files of an answer.
pub const MAX_ANSWER_FILES: usize = 1_000;
/// Maximum passages of a file.
const MAX_PASSAGES_PER_FILE: usize = 3;
/// Minimum share of a passage's score in that of the file's best one.
const MIN_PASSAGE_SHARE: f32 = 0.5;
/// Factor for files that people rarely change for a query's sake, if the query doesn't mention
/// them.
const SECONDARY_FACTOR: f32 = 0.6;
/// Weight of a mention, and of one that is the whole query: more than all other signals together.
const MENTION_WEIGHT: f32 = 0.25;
const PLACE_WEIGHT: f32 = 3.0;
/// Number of the best files whose single names are compared with the query.
const MAX_COMPARED_FILES: usize = 20;

/// Returns the weight of a signal, which is scaled to 0 to 1 over the source files. The first seven
/// are the signals of published experiments, with their weights where others weren't better on all
/// public data sets (`docs/search.md`). Vectors have the weight that the caller asks for.
fn signal_weight(signal: Signal, asked: AskedWeights) -> f32 {
    match signal {
        Signal::Text => 1.0,
        Signal::Path => 0.23,
        Signal::Symbols => 0.13,
        Signal::Mention => asked.mention,
        Signal::History => 0.05,
        Signal::HistoryTitle => 0.15,
        Signal::HistoryPool => 0.25,
        Signal::Topic => 0.35,
        Signal::Near | Signal::Defines => 0.10,
        Signal::Name => 0.05,
        Signal::Vectors => asked.vectors,
    }
}

/// The weights of signals that depend on the query.
#[derive(Debug, Clone, Copy, Default)]
struct AskedWeights {
    mention: f32,
    vectors: f32,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchResult {
    /// Definitions of the name, where the query is a name.
    pub definitions: Vec<Definition>,
    /// Files, the best first.
    pub files: Vec<FileHit>,
}

/// A file in a search result.
#[derive(Debug, Clone, PartialEq)]
pub struct FileHit {
    /// Number of the file.
    pub file: u32,
    /// Its path.
    pub path: Vec<u8>,
    /// Its score, comparable within an answer only.
    pub score: f32,
    /// The reasons, the strongest first.
    pub why: Vec<RankReason>,
    /// Its passages, the best first. Empty where only its path or its history match.
    pub passages: Vec<Passage>,
}

/// The contribution of a signal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankReason {
    /// The signal.
    pub signal: Signal,
    /// Its strength, relative to the source file where it is strongest.
    pub strength: f32,
    /// Its share of the score; all shares add up to 1.
    pub share: f32,
}

/// A passage of a file that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// The first line, 1-based.
    pub first_line: u32,
    /// Number of lines.
    pub lines: u32,
    /// The qualified name of the symbol around it, or of the one that it mostly consists of.
    pub symbol: Option<String>,
    /// The score of its words; 0 where the query mentions the line.
    pub score: f32,
}

/// Answers queries. Reuses its arrays for the next query.
#[derive(Debug, Default)]
pub struct Searcher {
    signals: Signals,
    totals: Vec<(u32, f32)>,
    /// The score of each file.
    sums: Vec<f32>,
    weights: AskedWeights,
}

impl Searcher {
    /// Creates a searcher without arrays.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers a query with at most `limit` files, and as many definitions.
    pub fn search<C: Corpus + ?Sized>(
        &mut self,
        corpus: &C,
        history: Option<&History>,
        query: &Query,
        context: QueryContext<'_>,
        limit: usize,
    ) -> SearchResult {
        let limit = limit.min(MAX_ANSWER_FILES);
        if query.is_empty() && context.near.is_empty() && context.vectors.is_none() {
            return SearchResult::default();
        }
        let scales = self.compute_and_combine(corpus, history, query, context);
        let best = self.best_files(corpus, limit);
        let mut files: Vec<FileHit> = best
            .into_iter()
            .filter_map(|(file, score)| self.to_file_hit(corpus, file, score, &scales))
            .collect();
        self.find_passages(corpus, query, &mut files);
        let asked = query.symbol.as_deref();
        SearchResult {
            definitions: asked.map(|name| find_definitions(corpus, name, limit)).unwrap_or_default(),
            files,
        }
    }

    /// Computes all signals and the scores, and returns the scales of the signals.
    fn compute_and_combine<C: Corpus + ?Sized>(
        &mut self,
        corpus: &C,
        history: Option<&History>,
        query: &Query,
        context: QueryContext<'_>,
    ) -> [f32; Signal::ALL.len()] {
        self.weights = AskedWeights {
            mention: if query.is_place { PLACE_WEIGHT } else { MENTION_WEIGHT },
            vectors: context.vectors.map_or(0.0, |(_, weight)| weight.max(0.0)),
        };
        self.signals.compute_all(corpus, history, query, context);
        self.combine_signals(query, &self.signal_scales());
        let best: Vec<u32> =
            self.best_files(corpus, MAX_COMPARED_FILES).into_iter().map(|(file, _)| file).collect();
        self.signals.add_name_scores(corpus, query, &best);
        let scales = self.signal_scales();
        self.combine_signals(query, &scales);
        scales
    }

    /// Returns the score of each chunk of a file for the words of the last query: 0 where it has
    /// none of them.
    pub fn chunk_scores<C: Corpus + ?Sized>(&self, corpus: &C, file: u32) -> Vec<(u32, f32)> {
        let own = corpus.chunks_of(file);
        own.clone().zip(self.signals.chunks.scores_of(own).iter().copied()).collect()
    }

    /// Returns every signal of every file that has any, for experiments with weights: in the order
    /// of [`Signal::ALL`], not scaled.
    pub fn raw_signals<C: Corpus + ?Sized>(
        &mut self,
        corpus: &C,
        history: Option<&History>,
        query: &Query,
    ) -> Vec<(u32, [f32; Signal::ALL.len()])> {
        self.compute_and_combine(corpus, history, query, QueryContext::default());
        let files = (0..).zip(&self.signals.purposes).filter_map(|(file, purpose)| purpose.map(|_| file));
        files.map(|file| (file, self.signals.files.each_ref().map(|scores| scores.get(file)))).collect()
    }

    /// Returns, by signal, the greatest score of a source file; of any file, where no source file
    /// has one.
    ///
    /// Unlike in the experiments, the least score isn't subtracted: ranks are as good without, and
    /// otherwise a word in all files would find none of them.
    fn signal_scales(&self) -> [f32; Signal::ALL.len()] {
        let Signals { files, purposes, .. } = &self.signals;
        files.each_ref().map(|scores| {
            let (mut of_source, mut of_any) = (0.0_f32, 0.0_f32);
            for (score, purpose) in scores.scores().iter().zip(purposes) {
                let Some(purpose) = purpose.filter(|_| *score > of_source) else { continue };
                of_any = of_any.max(*score);
                if is_source(purpose) {
                    of_source = *score;
                }
            }
            if of_source > 0.0 { of_source } else { of_any }
        })
    }

    fn combine_signals(&mut self, query: &Query, scales: &[f32; Signal::ALL.len()]) {
        let Self { signals, totals, sums, weights } = self;
        sums.clear();
        sums.resize(signals.purposes.len(), 0.0);
        for ((signal, scores), scale) in Signal::ALL.iter().zip(&signals.files).zip(scales) {
            let weight = signal_weight(*signal, *weights);
            if weight > 0.0 && *scale > 0.0 {
                sums.iter_mut()
                    .zip(scores.scores())
                    .for_each(|(sum, score)| *sum += weight * scale_score(*score, *scale));
            }
        }
        let [_, _, _, mention, ..] = &signals.files;
        let wants_tests = query.terms.iter().any(|term| term.text == "test" && term.title_weight > 0.0);
        totals.clear();
        for ((file, sum), purpose) in (0..).zip(sums.iter()).zip(&signals.purposes) {
            let Some(Purpose { flags, .. }) = purpose.filter(|_| *sum > 0.0) else { continue };
            let aside = flags.test && !wants_tests || flags.doc || flags.vendored || flags.generated;
            let part = if aside && mention.get(file) < 0.5 { SECONDARY_FACTOR } else { 1.0 };
            totals.push((file, sum * part));
        }
    }

    fn best_files<C: Corpus + ?Sized>(&mut self, corpus: &C, limit: usize) -> Vec<(u32, f32)> {
        let path = |file: u32| corpus.file(file).map(|entry| entry.path);
        let order =
            |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then_with(|| path(a.0).cmp(&path(b.0)));
        if limit > 0 && limit < self.totals.len() {
            self.totals.select_nth_unstable_by(limit - 1, order);
        }
        self.totals.truncate(limit);
        self.totals.sort_unstable_by(order);
        self.totals.clone()
    }

    fn to_file_hit<C: Corpus + ?Sized>(
        &self,
        corpus: &C,
        file: u32,
        score: f32,
        scales: &[f32; Signal::ALL.len()],
    ) -> Option<FileHit> {
        let path = corpus.file(file)?.path.to_vec();
        let mut why: Vec<RankReason> = Vec::new();
        for ((signal, scores), scale) in Signal::ALL.iter().zip(&self.signals.files).zip(scales) {
            let strength = scale_score(scores.get(file), *scale);
            let share = signal_weight(*signal, self.weights) * strength;
            if share > 0.0 {
                why.push(RankReason { signal: *signal, strength, share });
            }
        }
        let sum: f32 = why.iter().map(|reason| reason.share).sum();
        why.iter_mut().for_each(|reason| reason.share /= sum);
        why.sort_by(|a, b| b.share.total_cmp(&a.share));
        Some(FileHit { file, path, score, why, passages: Vec::new() })
    }

    /// Finds passages in each file: lines that the query mentions, then the chunks with the most of
    /// its words.
    fn find_passages<C: Corpus + ?Sized>(&self, corpus: &C, query: &Query, files: &mut [FileHit]) {
        let mut places: Vec<(u32, usize)> =
            files.iter().enumerate().map(|(place, hit)| (hit.file, place)).collect();
        places.sort_unstable();
        let place_of = |file: u32| {
            let at = places.binary_search_by_key(&file, |(file, _)| *file).ok()?;
            places.get(at).map(|(_, place)| *place)
        };
        let mut chunks: Vec<Vec<(u32, f32)>> = vec![Vec::new(); files.len()];
        for (hit, list) in files.iter().zip(&mut chunks) {
            let own = corpus.chunks_of(hit.file);
            let scores = self.signals.chunks.scores_of(own.clone());
            list.extend(own.zip(scores.iter().copied()).filter(|(_, score)| *score > 0.0));
        }
        // Where no word matches, chunks with similar vectors are shown.
        for (file, chunk, score) in self.signals.similar.iter().filter(|_| self.weights.vectors > 0.0) {
            let wordless = self.signals.files.first().is_none_or(|text| text.get(*file) == 0.0);
            if let Some(list) = place_of(*file).filter(|_| wordless).and_then(|place| chunks.get_mut(place)) {
                list.push((*chunk, *score));
            }
        }
        for (hit, mut chunks) in files.iter_mut().zip(chunks) {
            let first = |chunk: u32| corpus.chunk(chunk).map_or(0, |entry| entry.first_line);
            chunks.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| first(a.0).cmp(&first(b.0))));
            let least = chunks.first().map_or(0.0, |(_, score)| score * MIN_PASSAGE_SHARE);
            for (chunk, score) in
                chunks.into_iter().take_while(|(_, score)| *score >= least).take(MAX_PASSAGES_PER_FILE)
            {
                if let Some(entry) = corpus.chunk(chunk) {
                    let (first_line, lines) = (entry.first_line, entry.lines);
                    hit.passages.push(Passage { first_line, lines, symbol: None, score });
                }
            }
        }
        for MentionedFile { path, line, .. } in &query.places {
            let Some(line) = *line else { continue };
            for (file, _) in mentioned_files(corpus, path) {
                let hit = place_of(file).and_then(|place| files.get_mut(place));
                let Some(hit) = hit else { continue };
                let covered = |passage: &Passage| passage.score == 0.0 && passage.first_line == line;
                if corpus.file(file).is_some_and(|entry| line <= entry.lines)
                    && !hit.passages.iter().any(covered)
                {
                    hit.passages.insert(0, Passage { first_line: line, lines: 1, symbol: None, score: 0.0 });
                }
            }
        }
        for hit in files.iter_mut().filter(|hit| !hit.passages.is_empty()) {
            set_passage_symbols(corpus, hit);
        }
    }
}

fn scale_score(score: f32, most: f32) -> f32 {
    if most > 0.0 { (score / most).max(0.0) } else { 0.0 }
}

/// Names the symbol of each passage: the smallest one that contains it, or the one with most of its
/// lines.
fn set_passage_symbols<C: Corpus + ?Sized>(corpus: &C, hit: &mut FileHit) {
    // By passage: lines in common, lines of the symbol, its name.
    let mut best: Vec<Option<(u32, u32, String)>> = vec![None; hit.passages.len()];
    corpus.visit_symbols_of(hit.file, &mut |symbol: SymbolEntry<'_>| {
        if symbol.local {
            return;
        }
        for (passage, best) in hit.passages.iter().zip(&mut best) {
            let first = passage.first_line.max(symbol.first_line);
            let last = (passage.first_line + passage.lines).min(symbol.first_line + symbol.lines);
            let common = last.saturating_sub(first);
            let better = best
                .as_ref()
                .is_none_or(|(most, lines, _)| common > *most || common == *most && symbol.lines < *lines);
            if common * 2 > passage.lines.min(symbol.lines) && better {
                *best = Some((common, symbol.lines, full_name(symbol.scope, symbol.name)));
            }
        }
    });
    for (passage, best) in hit.passages.iter_mut().zip(best) {
        passage.symbol = best.map(|(_, _, name)| name);
    }
}
