//! Scoring files by the words of commit messages.

use super::words::MessageWords;
use crate::query::{K1, Term, inverse_document_frequency};

/// Length normalisation of BM25.
const LENGTH_NORMALISATION: f32 = 0.75;
/// Maximum messages that count for a query.
const MAX_COUNTED_MESSAGES: usize = 80;
/// Exponent of the number of files by which a commit's score is divided.
const FILE_COUNT_EXPONENT: f32 = 0.7;
/// Number of commits after which a commit counts a third.
const AGE_SCALE_COMMITS: f32 = 2_500.0;

/// Scores by the path's number.
#[derive(Debug, Default)]
pub(crate) struct HistoryScores {
    pub(crate) full: Vec<f32>,
    pub(crate) title: Vec<f32>,
    pub(crate) pool: Vec<f32>,
}

impl MessageWords {
    pub(super) fn score_paths(&self, terms: &[Term], paths: usize) -> HistoryScores {
        let full = self.score_by_best_messages(terms, |term| term.weight, paths);
        let title = self.score_by_best_messages(terms, |term| term.title_weight, paths);
        HistoryScores { full, title, pool: self.score_by_pooled_messages(terms, paths) }
    }

    /// Scores the best messages, each divided among its files.
    fn score_by_best_messages(
        &self,
        terms: &[Term],
        weight: impl Fn(&Term) -> f32,
        paths: usize,
    ) -> Vec<f32> {
        let counting = self.files.iter().filter(|files| !files.is_empty()).count();
        let average = average_length(&self.lengths, counting);
        let mut scores = vec![0.0_f32; self.lengths.len()];
        for term in terms {
            let (weight, Some(list)) = (weight(term), self.find(&term.text)) else { continue };
            if weight == 0.0 {
                continue;
            }
            let worth = weight * inverse_document_frequency(list.len() as u64, counting as u64);
            for (commit, times) in list {
                let length = self.lengths.get(*commit as usize).copied().unwrap_or(0);
                if let Some(score) = scores.get_mut(*commit as usize) {
                    *score += worth * saturate_count(*times, length, average);
                }
            }
        }
        let mut best: Vec<(usize, f32)> =
            scores.iter().copied().enumerate().filter(|(_, score)| *score > 0.0).collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        best.truncate(MAX_COUNTED_MESSAGES);
        let most = best.first().map_or(1.0, |(_, score)| *score);
        let mut shared = vec![0.0; paths];
        for (commit, score) in best {
            let Some(files) = self.files.get(commit) else { continue };
            #[allow(clippy::cast_precision_loss)]
            let share = (score / most).powi(2) / (files.len() as f32).powf(FILE_COUNT_EXPONENT)
                * (-(commit as f32) / AGE_SCALE_COMMITS).exp();
            for file in files {
                if let Some(shared) = shared.get_mut(*file as usize) {
                    *shared += share;
                }
            }
        }
        shared
    }

    /// Scores by BM25 with all messages of a file as one document.
    fn score_by_pooled_messages(&self, terms: &[Term], paths: usize) -> Vec<f32> {
        let counting = self.pooled.iter().filter(|length| **length > 0).count();
        let average = average_length(&self.pooled, counting);
        let mut scores = vec![0.0_f32; paths];
        let mut times = vec![0_u32; paths];
        let mut touched = Vec::new();
        for term in terms {
            let Some(list) = self.find(&term.text) else { continue };
            for (commit, more) in list {
                for file in self.files.get(*commit as usize).into_iter().flatten() {
                    let Some(times) = times.get_mut(*file as usize) else { continue };
                    if *times == 0 {
                        touched.push(*file);
                    }
                    *times += more;
                }
            }
            let worth = term.weight * inverse_document_frequency(touched.len() as u64, counting as u64);
            for file in touched.drain(..) {
                let file = file as usize;
                let length = self.pooled.get(file).copied().unwrap_or(0);
                if let (Some(score), Some(times)) = (scores.get_mut(file), times.get_mut(file)) {
                    *score += worth * saturate_count(std::mem::take(times), length, average);
                }
            }
        }
        scores
    }
}

#[allow(clippy::cast_precision_loss)]
fn average_length(lengths: &[u32], counting: usize) -> f32 {
    let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    (total as f64 / counting.max(1) as f64).max(1.0) as f32
}

#[allow(clippy::cast_precision_loss)]
fn saturate_count(times: u32, length: u32, average: f32) -> f32 {
    let times = times as f32;
    times * (K1 + 1.0)
        / (times + K1 * (1.0 - LENGTH_NORMALISATION + LENGTH_NORMALISATION * length as f32 / average))
}
