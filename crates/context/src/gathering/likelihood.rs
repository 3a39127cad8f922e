//! The likelihood that a task needs a passage.
//!
//! It is the likelihood of the file among all files, times that of the passage within the file.
//! Both are conditional logit models: a weight is the exponential of a weighted sum of signs, and
//! the likelihood is the weight's share in the sum of all weights. So a file that stands out leaves
//! little to others, and a request needs few of them. The coefficients were fitted to the lines
//! that the fixes of real issues change, on half of the repositories (`docs/benchmarks.md`).

use journeyman_index::query::{FileHit, Signal};

/// Coefficients of a file's signs: its share of the best file's score, the messages of its commits,
/// that the task names its directory as the topic, and that it defines a name of the task.
const SHARE_COEFFICIENT: f64 = 3.2;
const COMMITS_COEFFICIENT: f64 = 2.1;
const TOPIC_COEFFICIENT: f64 = 2.0;
const DEFINES_COEFFICIENT: f64 = 1.1;
/// Exponent of a file's place in the ranking, the first being 1.
const RANK_EXPONENT: f64 = -0.65;
/// Coefficients of a passage's signs: its share of the score of the file's best passage, the
/// greater share of its neighbours, and that it has a definition or a use of a name of the task.
const WORDS_COEFFICIENT: f64 = 3.4;
const NEIGHBOUR_COEFFICIENT: f64 = 0.9;
pub(super) const DEFINITION_COEFFICIENT: f64 = 1.05;
pub(super) const USE_COEFFICIENT: f64 = 0.65;
/// Exponent of a passage's size: more lines are likelier to have the one that is needed.
const SIZE_EXPONENT: f64 = 0.56;

/// Returns the weight of a file among others. `share` is its share of the best score, and `place`
/// the number of files before it.
#[allow(clippy::cast_precision_loss)]
pub(super) fn file_weight(hit: Option<&FileHit>, share: f64, place: usize, defines: bool) -> f64 {
    let strength = |signal| {
        let reasons = hit.map(|hit| hit.why.as_slice()).unwrap_or_default();
        reasons.iter().find(|reason| reason.signal == signal).map_or(0.0, |reason| f64::from(reason.strength))
    };
    let sum = SHARE_COEFFICIENT * share
        + COMMITS_COEFFICIENT * strength(Signal::HistoryPool).min(1.0)
        + TOPIC_COEFFICIENT * strength(Signal::Topic).min(1.0)
        + if defines { DEFINES_COEFFICIENT } else { 0.0 };
    sum.exp() * (place as f64 + 1.0).powf(RANK_EXPONENT)
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
    /// Its size.
    pub(super) bytes: usize,
}

impl PassageFeatures {
    /// Returns the weight of the passage among those of its file.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn weight(self) -> f64 {
        let sum = WORDS_COEFFICIENT * self.words + NEIGHBOUR_COEFFICIENT * self.beside + self.names;
        sum.exp() * (self.bytes as f64 + 1.0).powf(SIZE_EXPONENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_makes_a_file_and_a_passage_likelier() {
        let file = |share, place, defines| file_weight(None, share, place, defines);
        assert!(file(1.0, 0, false) > file(0.8, 0, false) && file(0.8, 0, false) > file(0.8, 1, false));
        assert!(file(0.0, 60, true) > file(0.0, 60, false) && file(0.0, 60, false) > 0.0);
        let none = PassageFeatures { bytes: 1_000, ..PassageFeatures::default() };
        for more in [
            PassageFeatures { words: 0.1, ..none },
            PassageFeatures { beside: 0.1, ..none },
            PassageFeatures { names: USE_COEFFICIENT, ..none },
            PassageFeatures { bytes: 1_001, ..none },
        ] {
            assert!(more.weight() > none.weight(), "{more:?}");
        }
    }
}
