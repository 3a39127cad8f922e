//! Sums of scores over many documents, in arrays that are used again for the next query.

use std::ops::Range;

use super::clean::Term;
use super::corpus::{Corpus, Field, Lists, Posting};

/// BM25's saturation, as the study has it.
pub(crate) const K1: f32 = 1.2;
/// Postings of chunks that are read for one query. The terms that are in most documents, whose weight is the least, are
/// left out beyond that: 3 million are some 15 ms, and a tree of 20 MB has no query with so many.
const MAX_POSTINGS: u64 = 3_000_000;

/// A score a document.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    values: Vec<f32>,
}

impl Scores {
    /// Forgets all, for documents beneath `bound`.
    pub(crate) fn reset(&mut self, bound: u32) {
        self.values.clear();
        self.values.resize(bound as usize, 0.0);
    }

    /// Adds to a document's score.
    #[inline]
    pub(crate) fn add(&mut self, document: u32, score: f32) {
        if let Some(value) = self.values.get_mut(document as usize) {
            *value += score;
        }
    }

    /// Makes a document's score at least this.
    pub(crate) fn raise(&mut self, document: u32, score: f32) {
        if let Some(value) = self.values.get_mut(document as usize) {
            *value = value.max(score);
        }
    }

    #[inline]
    pub(crate) fn get(&self, document: u32) -> f32 {
        self.values.get(document as usize).copied().unwrap_or(0.0)
    }

    /// The scores of documents that follow each other.
    #[inline]
    pub(crate) fn of(&self, documents: Range<u32>) -> &[f32] {
        self.values.get(documents.start as usize..documents.end as usize).unwrap_or_default()
    }

    /// Every document's score.
    pub(crate) fn all(&self) -> &[f32] {
        &self.values
    }
}

/// How much a term tells that `with` of `all` documents have.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn idf(with: u64, all: u64) -> f32 {
    let (with, all) = (with as f64, (all as f64).max(with as f64));
    (((all - with + 0.5) / (with + 0.5)).ln_1p()) as f32
}

/// Adds BM25 of one field to the scores of its documents, the terms in order.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn bm25<C: Corpus + ?Sized>(
    corpus: &C,
    field: Field,
    terms: &[Term],
    length_weight: f32,
    scores: &mut Scores,
) {
    let totals = corpus.totals(field);
    if totals.documents == 0 {
        return;
    }
    let average = (totals.length as f64 / totals.documents as f64).max(1.0) as f32;
    let (base, slope) = (K1 * (1.0 - length_weight), K1 * length_weight / average);
    let lists: Vec<Lists> = terms.iter().map(|term| corpus.find(field, &term.text)).collect();
    let with: Vec<u64> = lists.iter().map(|lists| corpus.documents_with(field, lists)).collect();
    let most = most_documents(&with);
    for ((term, lists), with) in terms.iter().zip(&lists).zip(with) {
        if with == 0 || with > most {
            continue;
        }
        let weight = idf(with, totals.documents) * (K1 + 1.0) * term.weight;
        corpus.each(field, lists, &mut |postings| {
            for Posting { document, times, length } in postings {
                let times = *times as f32;
                scores.add(*document, weight * times / (times + base + slope * *length as f32));
            }
        });
    }
}

/// In how many documents a term may be, that no more than [`MAX_POSTINGS`] are read.
fn most_documents(with: &[u64]) -> u64 {
    if with.iter().sum::<u64>() <= MAX_POSTINGS {
        return u64::MAX;
    }
    let mut sorted = with.to_vec();
    sorted.sort_unstable();
    let mut read = 0;
    let fitting = sorted.iter().take_while(|with| {
        read += **with;
        read <= MAX_POSTINGS
    });
    // Equals are kept or left out together, so the rarest are read whatever they cost.
    fitting.last().or(sorted.first()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_forgotten() {
        let mut scores = Scores::default();
        scores.reset(3);
        scores.add(1, 2.0);
        scores.add(1, 0.5);
        scores.add(9, 1.0);
        scores.raise(0, 1.0);
        scores.raise(0, 0.5);
        assert_eq!((scores.all(), scores.get(9)), (&[1.0, 2.5, 0.0][..], 0.0));
        assert_eq!((scores.of(1..3), scores.of(2..9)), (&[2.5, 0.0][..], &[][..]));
        scores.reset(2);
        assert_eq!(scores.all(), [0.0, 0.0]);
    }

    #[test]
    fn rare_terms_are_read_first() {
        assert_eq!(most_documents(&[5, 10]), u64::MAX);
        assert_eq!(most_documents(&[MAX_POSTINGS, 7, 3]), 7);
        assert_eq!(most_documents(&[MAX_POSTINGS * 2]), MAX_POSTINGS * 2);
    }
}
