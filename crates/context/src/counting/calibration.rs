//! The correction of counts by what the provider reports.
//!
//! A provider reports the input of each request. The next request is that one with something added,
//! so the prediction starts from the reported number, and only what was added is counted. Added
//! tokens are multiplied by the ratio that earlier additions had, on the safe side: the smoothed
//! ratio plus twice its smoothed deviation, as TCP estimates how long to wait for an answer
//! (RFC 6298, section 2).

use journeyman_protocol::Tokens;
use serde::{Deserialize, Serialize};

/// Weight of a new ratio in the smoothed ratio.
const RATIO_WEIGHT: f64 = 0.125;
/// Weight of a new difference in the smoothed deviation.
const DEVIATION_WEIGHT: f64 = 0.25;
/// Deviations that predictions keep from the smoothed ratio.
const SAFE_DEVIATIONS: f64 = 2.0;
/// The smallest deviation to reckon with: what a provider adds around messages.
const MIN_DEVIATION: f64 = 0.015;
/// The deviation of estimates from vocabularies nobody has seen.
const ESTIMATE_DEVIATION: f64 = 0.2;
/// The least and the greatest ratio that is believed. Beyond it, a provider reports something else.
const RATIO_RANGE: (f64, f64) = (0.25, 4.0);
/// Additions below this number of tokens say little about the ratio.
const MIN_SAMPLE_TOKENS: u64 = 64;

/// The relation of counted to reported input in one session.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    ratio: f64,
    deviation: f64,
    last: Option<Observation>,
    /// True if the ratio is that of earlier sessions: a first request is held against it.
    is_resumed: bool,
}

/// The experience of a session, for later sessions with the same model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LearntRatio {
    /// Reported tokens for a counted one, over whole requests.
    pub ratio: f64,
    /// The smoothed deviation from it.
    pub deviation: f64,
}

/// The last request that a provider reported.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Observation {
    counted: f64,
    reported: f64,
}

impl Calibration {
    /// Creates the calibration of a new session. An exact counter begins with a small margin, an
    /// estimate with two fifths.
    #[must_use]
    pub fn new(is_exact: bool) -> Self {
        let deviation = if is_exact { MIN_DEVIATION } else { ESTIMATE_DEVIATION };
        Self { ratio: 1.0, deviation, last: None, is_resumed: false }
    }

    /// Returns the calibration of a new session that begins with what an earlier one learnt.
    /// Numbers that no session learns are ignored.
    #[must_use]
    pub fn with_learnt_ratio(self, learnt: LearntRatio) -> Self {
        let LearntRatio { ratio, deviation } = learnt;
        let (least, most) = RATIO_RANGE;
        if !(least..=most).contains(&ratio) || !(0.0..=most).contains(&deviation) {
            return self;
        }
        Self { ratio, deviation: deviation.max(MIN_DEVIATION), last: None, is_resumed: true }
    }

    /// Returns what was learnt; `None` before the first report.
    #[must_use]
    pub fn learnt_ratio(&self) -> Option<LearntRatio> {
        let last = self.last?;
        Some(LearntRatio { ratio: last.reported / last.counted, deviation: self.deviation })
    }

    /// Returns the input that the provider will report for a request of that count, on the safe
    /// side.
    #[must_use]
    pub fn predict(&self, counted: Tokens) -> Tokens {
        self.predict_with_margin(counted, SAFE_DEVIATIONS * self.deviation)
    }

    /// Returns the most likely input of a request of that count.
    #[must_use]
    pub fn estimate(&self, counted: Tokens) -> Tokens {
        self.predict_with_margin(counted, 0.0)
    }

    fn predict_with_margin(&self, counted: Tokens, margin: f64) -> Tokens {
        let counted = to_number(counted);
        let (low, high) = ((self.ratio - margin).max(RATIO_RANGE.0), self.ratio + margin);
        let reckoned = match self.last {
            None => counted * high,
            Some(last) if counted >= last.counted => last.reported + (counted - last.counted) * high,
            // Something was removed: at most what is left, and at least so much less.
            Some(last) => {
                let whole = last.reported / last.counted;
                let less = last.reported - (last.counted - counted) * low.min(whole);
                less.min(counted * high.max(whole))
            }
        };
        to_tokens(reckoned)
    }

    /// Learns from the input that the provider reported for a request of that count.
    pub fn observe(&mut self, counted: Tokens, reported: Tokens) {
        if counted.is_zero() || reported.is_zero() {
            return;
        }
        let (least, most) = RATIO_RANGE;
        let counted = to_number(counted);
        let reported = to_number(reported).clamp(counted * least, counted * most);
        let new = Observation { counted, reported };
        match self.last.replace(new) {
            None => {
                let ratio = reported / counted;
                if self.is_resumed {
                    self.update_deviation(ratio);
                }
                self.ratio = ratio;
            }
            Some(last) if counted >= last.counted + to_number(Tokens(MIN_SAMPLE_TOKENS)) => {
                let added = (reported - last.reported) / (counted - last.counted);
                let added = added.clamp(least, most);
                self.update_deviation(added);
                self.ratio += (added - self.ratio) * RATIO_WEIGHT;
            }
            Some(_) => {}
        }
    }

    fn update_deviation(&mut self, ratio: f64) {
        let difference = (ratio - self.ratio).abs();
        self.deviation += (difference - self.deviation) * DEVIATION_WEIGHT;
        self.deviation = self.deviation.max(MIN_DEVIATION);
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2⁵²")]
fn to_number(tokens: Tokens) -> f64 {
    tokens.0 as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
fn to_tokens(number: f64) -> Tokens {
    Tokens(number.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A session as the provider sees it: what each request counted, and what it had.
    struct Session {
        calibration: Calibration,
        predicted: u64,
        actual: u64,
        /// The greatest part of a request by which its prediction was too low.
        worst: f64,
    }

    impl Session {
        fn new() -> Self {
            Self { calibration: Calibration::new(false), predicted: 0, actual: 0, worst: 0.0 }
        }

        fn send(&mut self, counted: u64, actual: u64) {
            let predicted = self.calibration.predict(Tokens(counted)).0;
            self.predicted += predicted;
            self.actual += actual;
            self.worst = self.worst.max(1.0 - predicted as f64 / actual as f64);
            self.calibration.observe(Tokens(counted), Tokens(actual));
        }
    }

    /// Requests as counted pieces with the ratio of each, where ratios stay around a base.
    fn pieces(spread: f64) -> impl Strategy<Value = Vec<(u64, f64)>> {
        (0.6..=1.4_f64, 5..60_usize).prop_flat_map(move |(base, turns)| {
            let ratio = (base - spread).max(0.6)..=(base + spread).min(1.4);
            let first = (1_000..30_000_u64, ratio.clone());
            let later = prop::collection::vec((20..6_000_u64, ratio), turns);
            (first, later).prop_map(|(first, later)| [vec![first], later].concat())
        })
    }

    fn total(pieces: &[(u64, f64)]) -> (u64, u64) {
        let counted = pieces.iter().map(|(counted, _)| counted).sum();
        let actual = pieces.iter().map(|(counted, ratio)| *counted as f64 * ratio).sum::<f64>();
        (counted, actual.ceil() as u64)
    }

    proptest! {
        /// A vocabulary that differs by up to two fifths, the same way everywhere.
        #[test]
        fn a_steady_vocabulary_is_never_undercounted(pieces in pieces(0.0)) {
            let mut session = Session::new();
            for end in 1..=pieces.len() {
                let (counted, actual) = total(&pieces[..end]);
                session.send(counted, actual);
            }
            prop_assert!(session.worst <= 0.03, "a request was short by {:.3}", session.worst);
            let over = session.predicted as f64 / session.actual as f64;
            prop_assert!((0.97..1.35).contains(&over), "{over:.3} in all");
        }

        /// One that differs from text to text, within the same bounds.
        #[test]
        fn an_uneven_vocabulary_is_not_undercounted_over_a_session(pieces in pieces(0.4)) {
            let mut session = Session::new();
            for end in 1..=pieces.len() {
                let (counted, actual) = total(&pieces[..end]);
                session.send(counted, actual);
            }
            let ratio = session.predicted as f64 / session.actual as f64;
            prop_assert!(ratio >= 0.97, "{ratio:.3} of the session's tokens were predicted");
        }

        /// Pieces are removed, as compaction does, and others follow.
        #[test]
        fn removal_is_not_undercounted(pieces in pieces(0.2), keep in 1..5_usize, at in 2..8_usize) {
            let mut session = Session::new();
            let mut sent: Vec<(u64, f64)> = Vec::new();
            for (turn, piece) in pieces.iter().enumerate() {
                sent.push(*piece);
                if turn % at == at - 1 {
                    let removed = 1..sent.len().saturating_sub(keep).max(1);
                    sent.drain(removed);
                }
                let (counted, actual) = total(&sent);
                session.send(counted, actual);
            }
            let ratio = session.predicted as f64 / session.actual as f64;
            prop_assert!(ratio >= 0.97, "{ratio:.3} of the session's tokens were predicted");
        }

        #[test]
        fn no_report_breaks_it(reports in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20), next: u64) {
            let mut calibration = Calibration::new(true);
            for (counted, reported) in reports {
                calibration.observe(Tokens(counted), Tokens(reported));
            }
            let predicted = calibration.predict(Tokens(next)).0;
            prop_assert!(calibration.estimate(Tokens(next)).0 <= predicted);
            prop_assert!(calibration.ratio.is_finite() && calibration.deviation.is_finite());
        }
    }

    #[test]
    fn a_later_session_counts_right_from_its_first_request() {
        for ratio in [0.6, 1.0, 1.4, 2.5] {
            let actual = |counted: u64| to_tokens(counted as f64 * ratio);
            let mut learnt = None;
            for _session in 0..8 {
                let mut calibration = Calibration::new(false);
                if let Some(learnt) = learnt {
                    calibration = calibration.with_learnt_ratio(learnt);
                    let counted = Tokens(9_000);
                    let off = calibration.estimate(counted).0 as f64 / actual(counted.0).0 as f64 - 1.0;
                    assert!(off.abs() < 0.01, "{ratio}: {off}");
                    assert!(calibration.predict(counted) >= actual(counted.0));
                }
                calibration.observe(Tokens(7_000), actual(7_000));
                learnt = calibration.learnt_ratio();
            }
            // One report a session is enough for the margin to become small.
            let last = Calibration::new(false).with_learnt_ratio(learnt.unwrap()).predict(Tokens(10_000));
            assert!(last.0 as f64 <= 10_000.0 * (ratio + 0.1), "{ratio}: {last}");
        }
    }

    #[test]
    fn only_numbers_that_a_session_can_learn_are_taken_over() {
        let new = Calibration::new(false);
        for (ratio, deviation) in [
            (f64::NAN, 0.1),
            (0.0, 0.1),
            (-1.0, 0.1),
            (1e300, 0.1),
            (f64::INFINITY, 0.1),
            (1.0, f64::NAN),
            (1.0, -0.1),
            (1.0, 99.0),
        ] {
            assert_eq!(
                new.clone().with_learnt_ratio(LearntRatio { ratio, deviation }),
                new,
                "{ratio} {deviation}"
            );
        }
        assert_eq!(new.learnt_ratio(), None, "nothing was reported");
    }

    #[test]
    fn a_steady_session_is_predicted_ever_more_closely() {
        for ratio in [0.6, 0.8, 1.0, 1.2, 1.4] {
            let mut calibration = Calibration::new(false);
            for turn in 1..=20_u64 {
                let counted = turn * 3_000;
                calibration.observe(Tokens(counted), to_tokens(counted as f64 * ratio));
            }
            let (counted, actual) = (90_000, 90_000.0 * ratio);
            let predicted = calibration.predict(Tokens(counted)).0 as f64;
            assert!((1.0..1.03).contains(&(predicted / actual)), "{predicted} for {actual}");
        }
    }
}
