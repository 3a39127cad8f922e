//! The correction of counts by what the provider reports.
//!
//! A provider reports the input of each request. The next request is that one with something added,
//! so the prediction starts from the reported number, and only what was added is counted. Added
//! tokens are multiplied by the ratio that earlier additions had, on the safe side: the smoothed
//! ratio plus twice its smoothed deviation, as TCP estimates how long to wait for an answer
//! (RFC 6298, section 2).

use journeyman_protocol::Tokens;

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
const MIN_SAMPLE: u64 = 64;

/// The relation of counted to reported input in one session.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    ratio: f64,
    deviation: f64,
    last: Option<Observation>,
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
        Self { ratio: 1.0, deviation, last: None }
    }

    /// Returns the input that the provider will report for a request of that count, on the safe
    /// side.
    #[must_use]
    pub fn predict(&self, counted: Tokens) -> Tokens {
        let counted = to_number(counted);
        let margin = SAFE_DEVIATIONS * self.deviation;
        let (low, high) = ((self.ratio - margin).max(RATIO_RANGE.0), self.ratio + margin);
        let predicted = match self.last {
            None => counted * high,
            Some(last) if counted >= last.counted => last.reported + (counted - last.counted) * high,
            // Something was removed: at most what is left, and at least so much less.
            Some(last) => {
                let whole = last.reported / last.counted;
                let less = last.reported - (last.counted - counted) * low.min(whole);
                less.min(counted * high.max(whole))
            }
        };
        to_tokens(predicted)
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
            None => self.ratio = reported / counted,
            Some(last) if counted >= last.counted + to_number(Tokens(MIN_SAMPLE)) => {
                let added = (reported - last.reported) / (counted - last.counted);
                let added = added.clamp(least, most);
                let difference = (added - self.ratio).abs();
                self.deviation += (difference - self.deviation) * DEVIATION_WEIGHT;
                self.deviation = self.deviation.max(MIN_DEVIATION);
                self.ratio += (added - self.ratio) * RATIO_WEIGHT;
            }
            Some(_) => {}
        }
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
