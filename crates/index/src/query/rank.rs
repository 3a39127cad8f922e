//! One score from many signals, and what is shown of a file that has it.

use super::clean::{Place, Query};
use super::corpus::{Corpus, Purpose, SymbolEntry, full_name};
use super::definitions::{Definition, definitions};
use super::signals::{Signal, Signals, is_source, meant};
use crate::history::History;
use crate::vectors::Similar;

/// Files of an answer, at most.
pub const MAX_LIMIT: usize = 1_000;
/// Passages that are shown of a file.
const PASSAGES: usize = 3;
/// A chunk that has less than this much of the file's best one isn't shown.
const LEAST_PASSAGE: f32 = 0.5;
/// What is left of the score of a file that people don't change for the query's sake, if the query doesn't name it.
const ASIDE: f32 = 0.6;

/// What each signal counts, scaled to 0 to 1 over the source files. The first seven are the study's
/// signals, with its weights where others weren't better on all of its public rows (`docs/search.md`). Vectors count what is
/// asked for.
fn weight(signal: Signal, vectors: f32) -> f32 {
    match signal {
        Signal::Text => 1.0,
        Signal::Path => 0.23,
        Signal::Symbols => 0.13,
        Signal::Mention => 0.25,
        Signal::History => 0.05,
        Signal::HistoryTitle => 0.15,
        Signal::HistoryPool => 0.25,
        Signal::Near => 0.10,
        Signal::Vectors => vectors,
    }
}

/// What is known besides the query.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// Files near the one that is being looked at, by how many steps: 1 or 2.
    pub near: &'a [(u32, u32)],
    /// Chunks whose vectors are like the query's, and what that counts; the words of the best source file count 1.
    pub vectors: Option<(&'a Similar, f32)>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Definitions of the name, where the query is one.
    pub definitions: Vec<Definition>,
    /// Files, the best first.
    pub files: Vec<FileHit>,
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FileHit {
    /// Its number.
    pub file: u32,
    /// Its path.
    pub path: Vec<u8>,
    /// What speaks for it in all, and is comparable within an answer only.
    pub score: f32,
    /// Its reasons, the strongest first.
    pub why: Vec<Reason>,
    /// Where in it, the best first. Empty where only its path or its history speak for it.
    pub passages: Vec<Passage>,
}

/// What a signal adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    /// Which signal.
    pub signal: Signal,
    /// How strong it is, compared with the source file where it is strongest.
    pub strength: f32,
    /// Its part of the score, which all make 1 together.
    pub share: f32,
}

/// A part of a file that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// Its first line, counted from 1.
    pub first_line: u32,
    /// How many lines it has.
    pub lines: u32,
    /// The symbol that it is in, or whose greater part it is, with what that lies in.
    pub symbol: Option<String>,
    /// What the words in it are worth; 0 where the query names the line.
    pub score: f32,
}

/// Answers queries. One keeps its arrays for the next query.
#[derive(Debug, Default)]
pub struct Searcher {
    signals: Signals,
    totals: Vec<(u32, f32)>,
    /// Each file's score.
    sums: Vec<f32>,
    /// What vectors count this time.
    vectors: f32,
}

impl Searcher {
    /// One without arrays yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What a query finds: at most `limit` files, and as many definitions.
    pub fn search<C: Corpus + ?Sized>(
        &mut self,
        corpus: &C,
        history: Option<&History>,
        query: &Query,
        context: Context<'_>,
        limit: usize,
    ) -> Answer {
        let limit = limit.min(MAX_LIMIT);
        if query.is_empty() && context.near.is_empty() && context.vectors.is_none() {
            return Answer::default();
        }
        self.vectors = context.vectors.map_or(0.0, |(_, weight)| weight.max(0.0));
        self.signals.gather(corpus, history, query, context);
        let scales = self.scales();
        self.add_up(query, &scales);
        let best = self.best(corpus, limit);
        let mut files: Vec<FileHit> =
            best.into_iter().filter_map(|(file, score)| self.hit(corpus, file, score, &scales)).collect();
        self.passages(corpus, query, &mut files);
        let asked = query.symbol.as_deref();
        Answer { definitions: asked.map(|name| definitions(corpus, name, limit)).unwrap_or_default(), files }
    }

    /// Every signal of every file that has any, for those who weigh them: in the order of [`Signal::ALL`], not scaled.
    pub fn raw<C: Corpus + ?Sized>(
        &mut self,
        corpus: &C,
        history: Option<&History>,
        query: &Query,
    ) -> Vec<(u32, [f32; Signal::ALL.len()])> {
        self.signals.gather(corpus, history, query, Context::default());
        let files = (0..).zip(&self.signals.purposes).filter_map(|(file, purpose)| purpose.map(|_| file));
        files.map(|file| (file, self.signals.files.each_ref().map(|scores| scores.get(file)))).collect()
    }

    /// By signal, the greatest score that a source file has; of any file, where no source file has one.
    ///
    /// The least one isn't taken off, as the study does: ranks of its rows are as good without, and a word that all files
    /// have would find none of them.
    fn scales(&self) -> [f32; Signal::ALL.len()] {
        let Signals { files, purposes, .. } = &self.signals;
        files.each_ref().map(|scores| {
            let (mut of_source, mut of_any) = (0.0_f32, 0.0_f32);
            for (score, purpose) in scores.all().iter().zip(purposes) {
                let Some(purpose) = purpose.filter(|_| *score > of_source) else { continue };
                of_any = of_any.max(*score);
                if is_source(purpose) {
                    of_source = *score;
                }
            }
            if of_source > 0.0 { of_source } else { of_any }
        })
    }

    fn add_up(&mut self, query: &Query, scales: &[f32; Signal::ALL.len()]) {
        let Self { signals, totals, sums, vectors } = self;
        sums.clear();
        sums.resize(signals.purposes.len(), 0.0);
        for ((signal, scores), scale) in Signal::ALL.iter().zip(&signals.files).zip(scales) {
            let weight = weight(*signal, *vectors);
            if weight > 0.0 && *scale > 0.0 {
                sums.iter_mut()
                    .zip(scores.all())
                    .for_each(|(sum, score)| *sum += weight * scaled(*score, *scale));
            }
        }
        let [_, _, _, mention, ..] = &signals.files;
        let wants_tests = query.terms.iter().any(|term| term.text == "test" && term.title_weight > 0.0);
        totals.clear();
        for ((file, sum), purpose) in (0..).zip(sums.iter()).zip(&signals.purposes) {
            let Some(Purpose { flags, .. }) = purpose.filter(|_| *sum > 0.0) else { continue };
            let aside = flags.test && !wants_tests || flags.doc || flags.vendored || flags.generated;
            let part = if aside && mention.get(file) < 0.5 { ASIDE } else { 1.0 };
            totals.push((file, sum * part));
        }
    }

    fn best<C: Corpus + ?Sized>(&mut self, corpus: &C, limit: usize) -> Vec<(u32, f32)> {
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

    fn hit<C: Corpus + ?Sized>(
        &self,
        corpus: &C,
        file: u32,
        score: f32,
        scales: &[f32; Signal::ALL.len()],
    ) -> Option<FileHit> {
        let path = corpus.file(file)?.path.to_vec();
        let mut why: Vec<Reason> = Vec::new();
        for ((signal, scores), scale) in Signal::ALL.iter().zip(&self.signals.files).zip(scales) {
            let strength = scaled(scores.get(file), *scale);
            let share = weight(*signal, self.vectors) * strength;
            if share > 0.0 {
                why.push(Reason { signal: *signal, strength, share });
            }
        }
        let sum: f32 = why.iter().map(|reason| reason.share).sum();
        why.iter_mut().for_each(|reason| reason.share /= sum);
        why.sort_by(|a, b| b.share.total_cmp(&a.share));
        Some(FileHit { file, path, score, why, passages: Vec::new() })
    }

    /// Finds where in each file: lines that the query names, then the chunks with the most of its words.
    fn passages<C: Corpus + ?Sized>(&self, corpus: &C, query: &Query, files: &mut [FileHit]) {
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
            let scores = self.signals.chunks.of(own.clone());
            list.extend(own.zip(scores.iter().copied()).filter(|(_, score)| *score > 0.0));
        }
        // Where no word is found, what is like the query is shown.
        for (file, chunk, score) in self.signals.similar.iter().filter(|_| self.vectors > 0.0) {
            let wordless = self.signals.files.first().is_none_or(|text| text.get(*file) == 0.0);
            if let Some(list) = place_of(*file).filter(|_| wordless).and_then(|place| chunks.get_mut(place)) {
                list.push((*chunk, *score));
            }
        }
        for (hit, mut chunks) in files.iter_mut().zip(chunks) {
            let first = |chunk: u32| corpus.chunk(chunk).map_or(0, |entry| entry.first_line);
            chunks.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| first(a.0).cmp(&first(b.0))));
            let least = chunks.first().map_or(0.0, |(_, score)| score * LEAST_PASSAGE);
            for (chunk, score) in chunks.into_iter().take_while(|(_, score)| *score >= least).take(PASSAGES) {
                if let Some(entry) = corpus.chunk(chunk) {
                    let (first_line, lines) = (entry.first_line, entry.lines);
                    hit.passages.push(Passage { first_line, lines, symbol: None, score });
                }
            }
        }
        for Place { path, line } in &query.places {
            let Some(line) = *line else { continue };
            for (file, _) in meant(corpus, path) {
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
            name_passages(corpus, hit);
        }
    }
}

fn scaled(score: f32, most: f32) -> f32 {
    if most > 0.0 { (score / most).max(0.0) } else { 0.0 }
}

/// Says which symbol each passage is in: the smallest one that holds it, or the one that most of its lines are of.
fn name_passages<C: Corpus + ?Sized>(corpus: &C, hit: &mut FileHit) {
    // By passage: lines in common, lines of the symbol, its name.
    let mut best: Vec<Option<(u32, u32, String)>> = vec![None; hit.passages.len()];
    corpus.symbols_of(hit.file, &mut |symbol: SymbolEntry<'_>| {
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
