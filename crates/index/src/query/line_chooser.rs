//! Choice of the lines of a passage that match the query best.

use std::collections::HashMap;

use super::bm25::inverse_document_frequency;
use super::corpus::{Corpus, Field};
use super::parse::Query;
use super::rank::Passage;
use crate::tokens::{TermFilter, Tokenizer};

/// Chooses lines by the words of a query that they have, rare words first.
#[derive(Debug)]
pub struct LineChooser {
    weights: HashMap<String, f32>,
    filter: TermFilter,
    tokenizer: Tokenizer,
}

impl LineChooser {
    /// Creates a chooser for a query, with the frequencies of words in an index.
    pub fn new<C: Corpus + ?Sized>(corpus: &C, query: &Query) -> Self {
        let documents = corpus.totals(Field::Chunk).documents;
        let weights = query.terms.iter().map(|term| {
            let lists = corpus.find_posting_lists(Field::Chunk, &term.text);
            let with = corpus.document_count(Field::Chunk, &lists);
            (term.text.clone(), term.weight * inverse_document_frequency(with, documents))
        });
        let weights: HashMap<String, f32> = weights.collect();
        let filter = TermFilter::new(weights.keys().map(String::as_str));
        Self { weights, filter, tokenizer: Tokenizer::new() }
    }

    /// Returns at most `limit` lines of a passage with their 1-based numbers, in their order: those
    /// with the most of the query, or the first ones where none has any.
    pub fn best_lines<'t>(&mut self, text: &'t str, passage: &Passage, limit: usize) -> Vec<(u32, &'t str)> {
        let first = passage.first_line.max(1);
        let lines = (first..).zip(text_from_line(text, first).lines()).take(passage.lines as usize);
        let mut scored: Vec<(f32, u32, &str)> = lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| (self.score_line(line), number, line))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        if scored.first().is_some_and(|best| best.0 > 0.0) {
            scored.retain(|line| line.0 > 0.0);
        }
        scored.truncate(limit);
        scored.sort_by_key(|line| line.1);
        scored.into_iter().map(|(_, number, line)| (number, line)).collect()
    }

    fn score_line(&mut self, line: &str) -> f32 {
        if !self.filter.may_have_term(line) {
            return 0.0;
        }
        let (mut score, mut seen): (f32, Vec<String>) = (0.0, Vec::new());
        let weights = &self.weights;
        self.tokenizer.begin_file();
        self.tokenizer.visit_terms(line, &mut |term| {
            if let Some(weight) = weights.get(term).filter(|_| !seen.iter().any(|other| other == term)) {
                score += weight;
                seen.push(term.to_owned());
            }
        });
        score
    }
}

/// Returns the text from a line on, which is counted from 1.
fn text_from_line(text: &str, line: u32) -> &str {
    let Some(ends_before) = (line as usize).checked_sub(2) else { return text };
    let end = memchr::memchr_iter(b'\n', text.as_bytes()).nth(ends_before);
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::memory_corpus::MemoryCorpus;
    use super::*;

    #[test]
    fn lines_with_the_most_of_the_query_are_chosen() {
        let mut chooser = LineChooser::new(
            &MemoryCorpus::default(),
            &Query::new("parse the header", &mut Tokenizer::new()),
        );
        let text = "fn first() {}\n\nfn parse() {}\n// headers\nfn parse_header() {}\n";
        let passage = |first_line, lines| Passage { first_line, lines, symbol: None, score: 1.0 };
        assert_eq!(chooser.best_lines(text, &passage(1, 5), 1), [(5, "fn parse_header() {}")]);
        assert_eq!(chooser.best_lines(text, &passage(1, 3), 2), [(3, "fn parse() {}")]);
        assert_eq!(chooser.best_lines(text, &passage(1, 2), 2), [(1, "fn first() {}")]);
        assert_eq!(chooser.best_lines(text, &passage(9, 2), 2), []);
    }
}
