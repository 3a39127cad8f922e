//! The ranking signals of a file.

use std::collections::HashMap;

use super::bm25::inverse_document_frequency;
use super::corpus::{Corpus, Field, FileEntry};
use super::document::Purpose;
use super::parse::{MentionedFile, Query, Topic};
use super::score::{DocumentScores, add_bm25_scores};
use crate::history::History;
use crate::tokens::{TermFilter, Tokenizer};
use crate::vectors::SimilarChunks;

/// Length normalisation of BM25, by field, from published experiments.
const CHUNK_LENGTH_NORMALISATION: f32 = 0.75;
const PATH_LENGTH_NORMALISATION: f32 = 0.3;
const SYMBOL_LENGTH_NORMALISATION: f32 = 0.4;
/// Weights of a file's second and third best chunk.
const FURTHER_CHUNK_WEIGHTS: [f32; 2] = [1.0 / 2.0, 1.0 / 3.0];
/// Maximum files of one name that a mention may mean.
const MAX_NAMESAKES: usize = 2_000;
/// Maximum symbols of a file whose names are compared with the query.
const MAX_COMPARED_SYMBOLS: usize = 1_000;
/// Possible endings of a module's file.
const MODULE_ENDINGS: [&str; 18] = [
    "py", "rs", "java", "kt", "go", "rb", "php", "ts", "tsx", "js", "jsx", "mjs", "vue", "scala", "swift",
    "cs", "cpp", "c",
];
/// Names of files that stand for their directory.
const MODULE_FILES: [&str; 5] = ["__init__.py", "mod.rs", "index.js", "index.ts", "lib.rs"];

/// Context of a query.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueryContext<'a> {
    /// Files near the current one, with their distance: 1 or 2 steps.
    pub near: &'a [(u32, u32)],
    /// Chunks with vectors similar to the query's, and their weight; the words of the best source
    /// file have weight 1.
    pub vectors: Option<(&'a SimilarChunks, f32)>,
}

/// A ranking signal of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// Its three best chunks have the query's words.
    Text,
    /// Its path has the query's words.
    Path,
    /// Names that it defines have the query's words.
    Symbols,
    /// The query mentions it, or its module.
    Mention,
    /// Commits with messages similar to the query changed it.
    History,
    /// Commits with messages similar to the query's first line changed it.
    HistoryTitle,
    /// All messages of its commits together are similar to the query.
    HistoryPool,
    /// It is near the current file in the dependency graph.
    Near,
    /// The query's first line names the file or its directory as what it is about.
    Topic,
    /// It defines names of the query that look like code.
    Defines,
    /// One name that it defines is made of the query's words.
    Name,
    /// The vectors of its three best chunks are similar to the query's.
    Vectors,
}

impl Signal {
    /// All signals.
    pub const ALL: [Self; 12] = [
        Self::Text,
        Self::Path,
        Self::Symbols,
        Self::Mention,
        Self::History,
        Self::HistoryTitle,
        Self::HistoryPool,
        Self::Near,
        Self::Topic,
        Self::Defines,
        Self::Name,
        Self::Vectors,
    ];

    /// Returns its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Path => "path",
            Self::Symbols => "symbols",
            Self::Mention => "mention",
            Self::History => "history",
            Self::HistoryTitle => "history-title",
            Self::HistoryPool => "history-pool",
            Self::Near => "near",
            Self::Topic => "topic",
            Self::Defines => "defines",
            Self::Name => "name",
            Self::Vectors => "vectors",
        }
    }
}

/// Returns the greater and the lesser number.
#[inline]
fn sort_descending(one: f32, other: f32) -> (f32, f32) {
    (if one > other { one } else { other }, if one > other { other } else { one })
}

/// The signals of one query, by file.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) chunks: DocumentScores,
    pub(crate) files: [DocumentScores; Signal::ALL.len()],
    /// The purpose of each file; `None` for unused numbers.
    pub(crate) purposes: Vec<Option<Purpose>>,
    /// Chunks with vectors similar to the query's, with their files: by file, the best first.
    pub(crate) similar: Vec<(u32, u32, f32)>,
    tokenizer: Tokenizer,
}

impl Signals {
    fn scores_of(&mut self, signal: Signal) -> &mut DocumentScores {
        let [text, path, symbols, mention, history, title, pool, near, topic, defines, name, vectors] =
            &mut self.files;
        match signal {
            Signal::Text => text,
            Signal::Path => path,
            Signal::Symbols => symbols,
            Signal::Mention => mention,
            Signal::History => history,
            Signal::HistoryTitle => title,
            Signal::HistoryPool => pool,
            Signal::Near => near,
            Signal::Topic => topic,
            Signal::Defines => defines,
            Signal::Name => name,
            Signal::Vectors => vectors,
        }
    }

    /// Computes all signals.
    pub(crate) fn compute_all<C: Corpus + ?Sized>(
        &mut self,
        corpus: &C,
        history: Option<&History>,
        query: &Query,
        context: QueryContext<'_>,
    ) {
        for scores in &mut self.files {
            scores.reset(corpus.file_bound());
        }
        self.add_text_scores(corpus, query);
        for (signal, field, lengths) in [
            (Signal::Path, Field::Path, PATH_LENGTH_NORMALISATION),
            (Signal::Symbols, Field::Symbol, SYMBOL_LENGTH_NORMALISATION),
        ] {
            add_bm25_scores(corpus, field, &query.terms, lengths, self.scores_of(signal));
        }
        self.add_mention_scores(corpus, query);
        self.add_topic_scores(corpus, query);
        self.add_definition_scores(corpus, query);
        if let Some(history) = history {
            self.add_history_scores(corpus, history, query);
        }
        for (file, steps) in context.near {
            #[allow(clippy::cast_precision_loss)]
            self.scores_of(Signal::Near).raise_to(*file, 1.0 / (*steps as f32).max(1.0));
        }
        self.similar.clear();
        if let Some((similar, _)) = context.vectors {
            self.add_vector_scores(corpus, similar);
        }
    }

    fn add_vector_scores<C: Corpus + ?Sized>(&mut self, corpus: &C, similar: &SimilarChunks) {
        let chunks = similar.chunks.iter();
        self.similar
            .extend(chunks.filter_map(|(chunk, score)| Some((corpus.chunk(*chunk)?.file, *chunk, *score))));
        self.similar.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.2.total_cmp(&a.2)));
        let Self { files: [.., vectors], similar, .. } = self;
        for of_one in similar.chunk_by(|(file, ..), (other, ..)| file == other) {
            let parts = of_one.iter().zip(std::iter::once(&1.0).chain(&FURTHER_CHUNK_WEIGHTS));
            let score: f32 = parts.map(|((.., score), part)| score * part).sum();
            if let Some((file, ..)) = of_one.first() {
                vectors.add(*file, score);
            }
        }
    }

    fn add_text_scores<C: Corpus + ?Sized>(&mut self, corpus: &C, query: &Query) {
        let Self { chunks, purposes, files: [text, ..], .. } = self;
        chunks.reset(corpus.chunk_bound());
        add_bm25_scores(corpus, Field::Chunk, &query.terms, CHUNK_LENGTH_NORMALISATION, chunks);
        purposes.clear();
        purposes.resize(corpus.file_bound() as usize, None);
        let [half, less] = FURTHER_CHUNK_WEIGHTS;
        corpus.visit_live_files(&mut |living| {
            if let Some(purpose) = purposes.get_mut(living.file as usize) {
                *purpose = Some(living.purpose);
            }
            let [mut first, mut second, mut third] = [0.0; 3];
            // Without branches, which a processor couldn't predict here.
            for score in chunks.scores_of(living.chunks) {
                let (best, rest) = sort_descending(first, *score);
                let (next, rest) = sort_descending(second, rest);
                (first, second, third) = (best, next, sort_descending(third, rest).0);
            }
            text.add(living.file, first + second * half + third * less);
        });
    }

    fn add_mention_scores<C: Corpus + ?Sized>(&mut self, corpus: &C, query: &Query) {
        // Of a stack trace, the innermost frames in the project are where things go wrong.
        let mut frames = 0.0;
        for MentionedFile { path, is_frame, .. } in &query.places {
            let files = mentioned_files(corpus, path);
            let divisor = if *is_frame { 1.0 + frames } else { 1.0 };
            if *is_frame && !files.is_empty() {
                frames += 1.0;
            }
            for (file, score) in files {
                self.scores_of(Signal::Mention).raise_to(file, score / divisor);
            }
        }
        for parts in &query.modules {
            for (file, score) in module_files(corpus, parts) {
                self.scores_of(Signal::Mention).raise_to(file, score);
            }
        }
    }

    fn add_topic_scores<C: Corpus + ?Sized>(&mut self, corpus: &C, query: &Query) {
        for Topic { name, terms } in &query.topics {
            let lists = terms.iter().map(|term| corpus.find_posting_lists(Field::Path, term));
            let Some(rarest) = lists.min_by_key(|lists| corpus.document_count(Field::Path, lists)) else {
                continue;
            };
            let mut files = Vec::new();
            for range in corpus.document_ranges(Field::Path) {
                corpus.visit_postings(Field::Path, &rarest, range, &mut |postings| {
                    files.extend(postings.iter().map(|posting| posting.document));
                });
            }
            for file in files {
                let score = corpus.file(file).map_or(0.0, |entry| topic_score(entry.path, name));
                if score > 0.0 {
                    self.scores_of(Signal::Topic).raise_to(file, score);
                }
            }
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn add_definition_scores<C: Corpus + ?Sized>(&mut self, corpus: &C, query: &Query) {
        for name in &query.names {
            let mut symbols: Vec<(u32, u32)> = Vec::new();
            corpus.visit_symbols_named(&name.to_lowercase(), &mut |file, symbol| {
                symbols.push((file, symbol));
            });
            // A name that so many things have says nothing.
            if symbols.len() > MAX_NAMESAKES {
                continue;
            }
            let mut files = Vec::new();
            for (file, symbol) in symbols {
                corpus.visit_symbol(symbol, &mut |entry| {
                    if entry.name == *name && !entry.local {
                        files.push(file);
                    }
                });
            }
            files.sort_unstable();
            files.dedup();
            let score = 1.0 / (files.len() as f32).max(1.0);
            files.into_iter().for_each(|file| self.scores_of(Signal::Defines).add(file, score));
        }
    }

    /// Scores files by the name that has the most of the query's words and the fewest others.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn add_name_scores<C: Corpus + ?Sized>(&mut self, corpus: &C, query: &Query, files: &[u32]) {
        let documents = corpus.totals(Field::Symbol).documents;
        let worth = query.terms.iter().filter_map(|term| {
            let with =
                corpus.document_count(Field::Symbol, &corpus.find_posting_lists(Field::Symbol, &term.text));
            (with > 0)
                .then(|| (term.text.as_str(), term.weight * inverse_document_frequency(with, documents)))
        });
        let worth: HashMap<&str, f32> = worth.collect();
        let filter = TermFilter::new(worth.keys().copied());
        let Self { tokenizer, files: [.., name_scores, _], .. } = self;
        let mut found: Vec<&str> = Vec::new();
        for file in files {
            let mut best = 0.0_f32;
            corpus.visit_symbol_names_of(*file, MAX_COMPARED_SYMBOLS, &mut |name| {
                if !filter.may_have_term(name) {
                    return;
                }
                let (mut sum, mut parts) = (0.0, 0.0_f32);
                found.clear();
                tokenizer.visit_terms(name, &mut |term| {
                    parts += 1.0;
                    if let Some((term, worth)) =
                        worth.get_key_value(term).filter(|(term, _)| !found.contains(*term))
                    {
                        found.push(term);
                        sum += worth;
                    }
                });
                best = best.max(sum * found.len() as f32 / parts.max(1.0));
            });
            name_scores.add(*file, best);
        }
    }

    fn add_history_scores<C: Corpus + ?Sized>(&mut self, corpus: &C, history: &History, query: &Query) {
        const HISTORY_SIGNALS: [Signal; 3] = [Signal::History, Signal::HistoryTitle, Signal::HistoryPool];
        let scores = history.score_paths(&query.terms);
        let scores = scores.full.iter().zip(&scores.title).zip(&scores.pool);
        for (path, ((full, title), pool)) in history.paths().zip(scores) {
            let scores = [*full, *title, *pool];
            // Most paths have none, and needn't be looked up.
            let Some(file) = scores.iter().any(|score| *score != 0.0).then(|| corpus.file_at(path)).flatten()
            else {
                continue;
            };
            for (signal, score) in HISTORY_SIGNALS.into_iter().zip(scores) {
                self.scores_of(signal).add(file, score);
            }
        }
    }
}

/// Returns the score of a file for a topic: a whole one for its own name, half of it for a
/// directory.
fn topic_score(path: &[u8], topic: &str) -> f32 {
    let is_topic = |part: &[u8]| {
        let part = String::from_utf8_lossy(part);
        part.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).eq(topic.chars())
    };
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let name = parts.next().unwrap_or_default();
    let stem = name.split(|byte| *byte == b'.').next().unwrap_or_default();
    if is_topic(stem) {
        1.0
    } else if parts.any(is_topic) {
        0.5
    } else {
        0.0
    }
}

/// Returns the files that a path may mean: those that share the most components at its end, each
/// with a certainty.
pub(crate) fn mentioned_files<C: Corpus + ?Sized>(corpus: &C, path: &str) -> Vec<(u32, f32)> {
    let name = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let mut found: Vec<(u32, usize)> = Vec::new();
    corpus.visit_files_named(name.as_bytes(), &mut |file| {
        if let Some(entry) = corpus.file(file).filter(|_| found.len() < MAX_NAMESAKES) {
            found.push((file, shared_end_components(entry.path, path)));
        }
    });
    let parts = path.split('/').count();
    let most = found.iter().map(|(_, common)| *common).max().unwrap_or(0);
    found.retain(|(_, common)| *common == most);
    #[allow(clippy::cast_precision_loss)]
    let score = match (most == parts && parts > 1, found.len()) {
        (true, 1) => 1.0,
        (_, count) if most > 1 => 0.9 / count as f32,
        (_, count) => 0.6 / count as f32,
    };
    found.into_iter().map(|(file, _)| (file, score)).collect()
}

/// Returns the number of components at the end that two paths share, in any case.
fn shared_end_components(path: &[u8], other: &str) -> usize {
    let (ours, theirs) = (path.rsplit(|byte| *byte == b'/'), other.as_bytes().rsplit(|byte| *byte == b'/'));
    ours.zip(theirs).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
}

/// Returns the files of a module, by the longest beginning of its parts that has any.
fn module_files<C: Corpus + ?Sized>(corpus: &C, parts: &[String]) -> Vec<(u32, f32)> {
    for end in (2..=parts.len()).rev() {
        let Some((last, before)) = parts.get(..end).and_then(<[String]>::split_last) else { continue };
        let mut found = Vec::new();
        let look = |name: String, wanted: String, found: &mut Vec<u32>| {
            corpus.visit_files_named(name.to_ascii_lowercase().as_bytes(), &mut |file| {
                let shares = |entry: &FileEntry<'_>| shared_end_components(entry.path, &wanted) > 1;
                if found.len() < MAX_NAMESAKES && corpus.file(file).as_ref().is_some_and(shares) {
                    found.push(file);
                }
            });
        };
        let Some(parent) = before.last() else { continue };
        for ending in MODULE_ENDINGS {
            look(format!("{last}.{ending}"), format!("{parent}/{last}.{ending}"), &mut found);
        }
        for file in MODULE_FILES {
            look(file.to_owned(), format!("{parent}/{last}/{file}"), &mut found);
        }
        found.retain(|file| {
            corpus.file(*file).is_some_and(|entry| {
                let path = String::from_utf8_lossy(entry.path).to_ascii_lowercase();
                path.contains(&parent.to_ascii_lowercase()) && path.contains(&last.to_ascii_lowercase())
            })
        });
        if !found.is_empty() {
            #[allow(clippy::cast_precision_loss)]
            let score = 0.8 / found.len() as f32;
            return found.into_iter().map(|file| (file, score)).collect();
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::super::document::is_source;
    use super::*;

    #[test]
    fn components_are_source() {
        let entry = |path: &'static str, test| FileEntry {
            path: path.as_bytes(),
            content: crate::analysis::ContentType::Text,
            flags: crate::analysis::PurposeFlags { test, ..crate::analysis::PurposeFlags::default() },
            language: None,
            lines: 1,
        };
        assert!(
            is_source(Purpose::of_file(&entry("src/App.vue", false)))
                && is_source(Purpose::of_file(&entry("src/x.svelte", false)))
        );
        assert!(
            !is_source(Purpose::of_file(&entry("src/App.vue", true)))
                && !is_source(Purpose::of_file(&entry("x.bin", false)))
        );
    }

    #[test]
    fn topics_are_names_of_files_and_directories() {
        assert_eq!(topic_score(b"packages/runtime-core/src/x.ts", "runtimecore"), 0.5);
        assert_eq!(topic_score(b"src/Redis_CLI.c", "rediscli"), 1.0);
        assert_eq!(topic_score(b"src/parsers/x.rs", "parser"), 0.0);
    }

    #[test]
    fn ends_of_paths_are_shared() {
        assert_eq!(shared_end_components(b"src/flask/app.py", "usr/lib/Flask/app.py"), 2);
        assert_eq!(shared_end_components(b"app.py", "app.py"), 1);
        assert_eq!(shared_end_components(b"app.py", "x.py"), 0);
    }
}
