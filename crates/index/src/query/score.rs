//! Sums of scores over many documents, in arrays that are reused for the next query.

use std::ops::Range;

use super::bm25::{K1, inverse_document_frequency};
use super::corpus::{Corpus, Field, PostingLists};
use super::document::Posting;
use super::parse::Term;

/// Maximum postings of a field that are read for one query. Beyond that, the terms with the least
/// contribution per posting are left out. Few queries of a 20 MB tree reach it; in a tree of the
/// size of a kernel it is one and a half per chunk, and public data sets are ranked as well with it
/// (`docs/search.md`).
const MAX_POSTINGS: u64 = 1_500_000;
/// Number of postings from which on threads are faster.
const MIN_PARALLEL_POSTINGS: u64 = 200_000;

/// A score for each document.
#[derive(Debug, Default)]
pub(crate) struct DocumentScores {
    values: Vec<f32>,
}

impl DocumentScores {
    /// Resets all scores, for documents below `bound`.
    pub(crate) fn reset(&mut self, bound: u32) {
        self.values.clear();
        self.values.resize(bound as usize, 0.0);
    }

    /// Adds to a document's score.
    pub(crate) fn add(&mut self, document: u32, score: f32) {
        if let Some(value) = self.values.get_mut(document as usize) {
            *value += score;
        }
    }

    /// Raises a document's score to at least this.
    pub(crate) fn raise_to(&mut self, document: u32, score: f32) {
        if let Some(value) = self.values.get_mut(document as usize) {
            *value = value.max(score);
        }
    }

    #[inline]
    pub(crate) fn get(&self, document: u32) -> f32 {
        self.values.get(document as usize).copied().unwrap_or(0.0)
    }

    /// Returns the scores of consecutive documents.
    #[inline]
    pub(crate) fn scores_of(&self, documents: Range<u32>) -> &[f32] {
        self.values.get(documents.start as usize..documents.end as usize).unwrap_or_default()
    }

    /// Returns every document's score.
    pub(crate) fn scores(&self) -> &[f32] {
        &self.values
    }
}

/// Adds BM25 of one field to the scores of its documents, the terms in order.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn add_bm25_scores<C: Corpus + ?Sized>(
    corpus: &C,
    field: Field,
    terms: &[Term],
    length_weight: f32,
    scores: &mut DocumentScores,
) {
    let totals = corpus.totals(field);
    if totals.documents == 0 {
        return;
    }
    let average = (totals.length as f64 / totals.documents as f64).max(1.0) as f32;
    let (base, slope) = (K1 * (1.0 - length_weight), K1 * length_weight / average);
    let wanted: Vec<SearchedTerm> = terms
        .iter()
        .filter_map(|term| {
            let lists = corpus.find_posting_lists(field, &term.text);
            let with = corpus.document_count(field, &lists);
            let weight = inverse_document_frequency(with, totals.documents) * (K1 + 1.0) * term.weight;
            (with > 0).then_some(SearchedTerm { lists, with, weight })
        })
        .collect();
    let wanted = most_valuable_terms(wanted, MAX_POSTINGS);
    let add = |part: Range<u32>, scores: &mut [f32]| {
        for SearchedTerm { lists, weight, .. } in &wanted {
            corpus.visit_postings(field, lists, part.clone(), &mut |postings| {
                for Posting { document, times, length } in postings {
                    let times = *times as f32;
                    if let Some(score) = scores.get_mut(document.wrapping_sub(part.start) as usize) {
                        *score += weight * times / (times + base + slope * *length as f32);
                    }
                }
            });
        }
    };
    if wanted.iter().map(|wanted| wanted.with).sum::<u64>() < MIN_PARALLEL_POSTINGS {
        return add(0..scores.values.len() as u32, &mut scores.values);
    }
    let mut parts = corpus.document_ranges(field).into_iter();
    let last = parts.next_back();
    std::thread::scope(|scope| {
        let mut rest = scores.values.as_mut_slice();
        let add = &add;
        for part in parts {
            let (own, after) = std::mem::take(&mut rest).split_at_mut_checked(part.len()).unwrap_or_default();
            rest = after;
            scope.spawn(move || add(part, own));
        }
        if let Some(part) = last {
            add(part, rest);
        }
    });
}

/// A term's posting lists.
struct SearchedTerm {
    lists: PostingLists,
    /// Number of documents that have the term.
    with: u64,
    /// Upper bound of its contribution to a document's score.
    weight: f32,
}

/// Returns those terms, in their order, with the greatest contribution per posting, so that at most
/// `most` postings are read. The best one is always among them.
#[allow(clippy::cast_precision_loss)]
fn most_valuable_terms(mut terms: Vec<SearchedTerm>, most: u64) -> Vec<SearchedTerm> {
    if terms.iter().map(|term| term.with).sum::<u64>() <= most {
        return terms;
    }
    let mut order: Vec<(f32, usize, u64)> = terms
        .iter()
        .enumerate()
        .map(|(place, term)| (term.weight / term.with as f32, place, term.with))
        .collect();
    order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut read = 0;
    let fitting = order.iter().take_while(|(_, _, with)| {
        read += *with;
        read <= most
    });
    let count = fitting.count().max(1);
    let mut kept = vec![false; terms.len()];
    for (_, place, _) in order.iter().take(count) {
        if let Some(kept) = kept.get_mut(*place) {
            *kept = true;
        }
    }
    let mut kept = kept.into_iter();
    terms.retain(|_| kept.next().unwrap_or(false));
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_can_be_reset() {
        let mut scores = DocumentScores::default();
        scores.reset(3);
        scores.add(1, 2.0);
        scores.add(1, 0.5);
        scores.add(9, 1.0);
        scores.raise_to(0, 1.0);
        scores.raise_to(0, 0.5);
        assert_eq!((scores.scores(), scores.get(9)), (&[1.0, 2.5, 0.0][..], 0.0));
        assert_eq!((scores.scores_of(1..3), scores.scores_of(2..9)), (&[2.5, 0.0][..], &[][..]));
        scores.reset(2);
        assert_eq!(scores.scores(), [0.0, 0.0]);
    }

    #[test]
    fn the_most_valuable_terms_are_read() {
        let kept = |terms: &[(u64, f32)], most| -> Vec<u64> {
            let terms = terms.iter().map(|(with, weight)| SearchedTerm {
                lists: PostingLists::default(),
                with: *with,
                weight: *weight,
            });
            most_valuable_terms(terms.collect(), most).iter().map(|term| term.with).collect()
        };
        assert_eq!(kept(&[(5, 1.0), (10, 1.0)], 15), [5, 10]);
        // A rare term before a frequent one, and one of the first line before others.
        assert_eq!(kept(&[(100, 1.0), (7, 1.0), (3, 1.0)], 50), [7, 3]);
        assert_eq!(kept(&[(60, 1.0), (50, 6.0), (3, 1.0)], 60), [50, 3]);
        assert_eq!(kept(&[(200, 1.0)], 60), [200]);
        assert!(kept(&[], 60).is_empty());
    }
}
