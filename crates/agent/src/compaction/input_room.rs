//! The room that the model's window leaves for a request, and the size of the next one.

use journeyman_context::WindowBudget;
use journeyman_protocol::{Tokens, ToolSpec};

use crate::session::context::SessionContext;

/// Part of the input room above which old results age, in hundredths. Aging invalidates the
/// provider's cache from the first aged result on, so it isn't done sooner.
const AGING_START_PERCENT: u64 = 50;
/// Part of the input room that a compaction leaves to the request, in hundredths.
const COMPACTION_TARGET_PERCENT: u64 = 45;
/// Part of the input room that a request may have where the task, or results that the model has yet
/// to read, need it, in hundredths.
const MAX_COMPACTED_PERCENT: u64 = 92;
/// Part of the input room for the newest results, which don't age.
const KEPT_RESULTS_PERCENT: u64 = 15;
/// Part of the input room for instructions of directories, in hundredths.
const NESTED_INSTRUCTIONS_PERCENT: u64 = 10;
/// Minimum part of the input room that aging has to free, in hundredths. Otherwise it waits.
const MIN_AGING_GAIN_PERCENT: u64 = 20;

/// The room for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InputRoom {
    /// Maximum tokens of a request, as the provider counts them.
    pub(crate) input: Tokens,
}

impl InputRoom {
    /// Returns the room that the model's window leaves beside the reply.
    pub(crate) fn for_model(cx: &SessionContext) -> Self {
        Self { input: WindowBudget::new(cx.meter.limits(), cx.settings.max_output).input }
    }

    fn percent(self, hundredths: u64) -> Tokens {
        Tokens(self.input.0.saturating_mul(hundredths) / 100)
    }

    /// Returns the size of a request above which old results age.
    pub(super) fn aging_start(self) -> Tokens {
        self.percent(AGING_START_PERCENT)
    }

    /// Returns the size of a request above which the conversation is shortened.
    pub(super) fn compaction_start(self, threshold: u8) -> Tokens {
        self.percent(u64::from(threshold.clamp(10, 100)))
    }

    /// Returns the tokens of the newest results that don't age.
    pub(super) fn kept_results(self) -> Tokens {
        self.percent(KEPT_RESULTS_PERCENT)
    }

    /// Returns the least number of tokens that aging has to free.
    pub(super) fn min_aging_gain(self) -> Tokens {
        self.percent(MIN_AGING_GAIN_PERCENT)
    }

    /// Returns the tokens that instructions of directories may have together. A compaction keeps
    /// that many, so that none are given again after each.
    pub(crate) fn nested_instructions(self) -> Tokens {
        self.percent(NESTED_INSTRUCTIONS_PERCENT)
    }

    /// Returns the target size of the messages after a compaction. `fixed` is the number of tokens
    /// of the system prompt and the tools.
    pub(super) fn target_after_compaction(self, fixed: Tokens) -> Tokens {
        let left = self.input.0.saturating_sub(fixed.0);
        Tokens(self.percent(COMPACTION_TARGET_PERCENT).0.saturating_sub(fixed.0).max(left * 2 / 5))
    }

    /// Returns the maximum tokens of the messages after a compaction.
    pub(super) fn limit_after_compaction(self, fixed: Tokens) -> Tokens {
        Tokens(self.percent(MAX_COMPACTED_PERCENT).0.saturating_sub(fixed.0))
            .max(self.target_after_compaction(fixed))
    }
}

/// The size of the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestSize {
    /// Tokens of the system prompt and the tools, as counted here.
    pub(super) fixed: Tokens,
    /// Tokens of the messages, as counted here.
    pub(super) messages: Tokens,
    /// Tokens of the request that the provider will report, on the safe side.
    pub(super) predicted: Tokens,
}

impl RequestSize {
    /// Measures the next request.
    pub(super) fn measure_next(cx: &mut SessionContext, tools: &[ToolSpec]) -> Self {
        let state = cx.transcript.state();
        let counted = cx.meter.count_parts(&state.system, tools, &state.messages);
        let fixed = counted.system + counted.tools;
        Self { fixed, messages: counted.messages, predicted: cx.meter.predict(counted.total()) }
    }

    /// Converts tokens of the provider to tokens of the local count.
    pub(super) fn to_counted(self, tokens: Tokens) -> Tokens {
        let counted = u128::from(self.fixed.0 + self.messages.0);
        let converted = u128::from(tokens.0) * counted / u128::from(self.predicted.0.max(1));
        Tokens(u64::try_from(converted).unwrap_or(u64::MAX))
    }

    /// Converts tokens of the local count to tokens of the provider.
    pub(super) fn to_predicted(self, tokens: Tokens) -> Tokens {
        let counted = u128::from((self.fixed.0 + self.messages.0).max(1));
        let converted = u128::from(tokens.0) * u128::from(self.predicted.0) / counted;
        Tokens(u64::try_from(converted).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compaction_leaves_room_beside_many_tools() {
        let room = InputRoom { input: Tokens(3_000) };
        assert_eq!(
            room.target_after_compaction(Tokens(2_500)),
            Tokens(200),
            "something is left beside many tools"
        );
        assert_eq!(room.target_after_compaction(Tokens(500)), Tokens(1_000));
    }

    #[test]
    fn sizes_are_converted_by_the_last_prediction() {
        let size = RequestSize { fixed: Tokens(100), messages: Tokens(900), predicted: Tokens(1_500) };
        assert_eq!(size.to_counted(Tokens(150)), Tokens(100));
        assert_eq!(size.to_predicted(Tokens(100)), Tokens(150));
    }
}
