//! The likelihood that a task needs a passage.
//!
//! It is the likelihood of the file among all files, times that of the passage within the file.
//! Both are conditional logit models: a weight is the exponential of a weighted sum of signs, and
//! the likelihood is the weight's share in the sum of all weights. So a file that stands out leaves
//! little to others, and a request needs few of them. The coefficients were fitted to the lines
//! that the fixes of real issues change, on half of the repositories (`docs/benchmarks.md`).

use journeyman_index::query::{FileHit, Signal};

/// Coefficients of a file's signs: its share of the best file's score, the messages of its commits,
/// that the task names its directory as the topic, that it defines a name of the task, and that the
/// task has its file name.
const SHARE_COEFFICIENT: f64 = 2.72;
const COMMITS_COEFFICIENT: f64 = 1.92;
const TOPIC_COEFFICIENT: f64 = 1.93;
const DEFINES_COEFFICIENT: f64 = 1.0;
const NAMED_COEFFICIENT: f64 = 1.1;
/// Exponent of a file's place in the ranking, the first being 1.
const RANK_EXPONENT: f64 = -0.68;
/// Coefficient of what a file's best passage has of the pairs of the task, as a share of the best
/// of all files.
const FILE_PAIRS_COEFFICIENT: f64 = 0.54;
/// Coefficients of a passage's signs: its share of the score of the file's best passage, the
/// greater share of its neighbours, and that it has a definition or a use of a name of the task.
const WORDS_COEFFICIENT: f64 = 2.93;
const NEIGHBOUR_COEFFICIENT: f64 = 0.97;
pub(super) const DEFINITION_COEFFICIENT: f64 = 1.26;
pub(super) const USE_COEFFICIENT: f64 = 0.78;
/// Exponent of the pairs of the task that a passage has, by how rare they are.
const PAIRS_EXPONENT: f64 = 0.41;
/// Exponent of a passage's size: more lines are likelier to have the one that is needed.
const SIZE_EXPONENT: f64 = 0.65;
/// Bytes that are added to each size, so that a comment has some.
const MIN_SIZE: f64 = 30.0;

/// Signs of a file that don't depend on the texts of others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FileFeatures<'a> {
    /// The hit of the search.
    pub(super) hit: Option<&'a FileHit>,
    /// Its share of the best file's score.
    pub(super) share: f64,
    /// The number of files before it.
    pub(super) place: usize,
    /// True if it defines a name that the task has.
    pub(super) defines: bool,
    /// True if the task has its file name.
    pub(super) named: bool,
}

impl FileFeatures<'_> {
    /// Returns the weight of the file among others, as far as it doesn't depend on their texts.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn weight(self) -> f64 {
        let strength = |signal| {
            let reasons = self.hit.map(|hit| hit.why.as_slice()).unwrap_or_default();
            let strength = reasons.iter().find(|reason| reason.signal == signal);
            strength.map_or(0.0, |reason| f64::from(reason.strength).min(1.0))
        };
        let sum = SHARE_COEFFICIENT * self.share
            + COMMITS_COEFFICIENT * strength(Signal::HistoryPool)
            + TOPIC_COEFFICIENT * strength(Signal::Topic)
            + if self.defines { DEFINES_COEFFICIENT } else { 0.0 }
            + if self.named { NAMED_COEFFICIENT } else { 0.0 };
        sum.exp() * (self.place as f64 + 1.0).powf(RANK_EXPONENT)
    }
}

/// Returns the factor of a file's weight for the pairs of the task in its best passage, as a share
/// of the best of all files.
pub(super) fn pairs_factor(share: f64) -> f64 {
    (FILE_PAIRS_COEFFICIENT * share).exp()
}

/// Signs of a passage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PassageFeatures {
    /// The share of its score in that of the file's best passage.
    pub(super) words: f64,
    /// The greater such share of its two neighbours.
    pub(super) beside: f64,
    /// The coefficient of the task's names in it.
    pub(super) names: f64,
    /// The rarity of the task's pairs in it.
    pub(super) pairs: f64,
    /// Its bytes that are no comments.
    pub(super) code_bytes: usize,
}

impl PassageFeatures {
    /// Returns the weight of the passage among those of its file.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn weight(self) -> f64 {
        let sum = WORDS_COEFFICIENT * self.words + NEIGHBOUR_COEFFICIENT * self.beside + self.names;
        sum.exp()
            * (1.0 + self.pairs).powf(PAIRS_EXPONENT)
            * (self.code_bytes as f64 + MIN_SIZE).powf(SIZE_EXPONENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_makes_a_file_and_a_passage_likelier() {
        let file = FileFeatures { share: 0.5, place: 3, ..FileFeatures::default() };
        for more in [
            FileFeatures { share: 0.6, ..file },
            FileFeatures { place: 2, ..file },
            FileFeatures { defines: true, ..file },
            FileFeatures { named: true, ..file },
        ] {
            assert!(more.weight() > file.weight() && file.weight() > 0.0, "{more:?}");
        }
        assert!(pairs_factor(0.2) > pairs_factor(0.0));
        let none = PassageFeatures { code_bytes: 1_000, ..PassageFeatures::default() };
        for more in [
            PassageFeatures { words: 0.1, ..none },
            PassageFeatures { beside: 0.1, ..none },
            PassageFeatures { names: USE_COEFFICIENT, ..none },
            PassageFeatures { pairs: 1.0, ..none },
            PassageFeatures { code_bytes: 1_001, ..none },
        ] {
            assert!(more.weight() > none.weight(), "{more:?}");
        }
    }
}
