//! The room that the model's window leaves for a request, and the size of the next one.

use journeyman_context::WindowBudget;
use journeyman_protocol::{Tokens, ToolSpec};

use crate::session::context::Context;

/// Part of the input room above which old results age, in hundredths. Aging invalidates the
/// provider's cache from the first aged result on, so it isn't done sooner.
const AGE_AT: u64 = 50;
/// Part of the input room that a compaction leaves to the request, in hundredths.
const ROOM_AFTER: u64 = 45;
/// Part of the input room that a request may have where the task, or results that the model has yet
/// to read, need it, in hundredths.
const MAX_AFTER: u64 = 92;
/// Part of the input room for the newest results, which don't age.
const KEPT_RESULTS: u64 = 15;
/// Minimum part of the input room that aging has to free, in hundredths. Otherwise it waits.
const WORTH_AGING: u64 = 20;

/// The room for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Maximum tokens of a request, as the provider counts them.
    pub(crate) input: Tokens,
}

impl Room {
    /// Returns the room that the model's window leaves beside the reply.
    pub(crate) fn of_model(cx: &Context) -> Self {
        Self { input: WindowBudget::new(cx.meter.limits(), cx.settings.max_output).input }
    }

    fn part(self, hundredths: u64) -> Tokens {
        Tokens(self.input.0.saturating_mul(hundredths) / 100)
    }

    /// Returns the size of a request above which old results age.
    pub(super) fn age_at(self) -> Tokens {
        self.part(AGE_AT)
    }

    /// Returns the size of a request above which the conversation is shortened.
    pub(super) fn compact_at(self, threshold: u8) -> Tokens {
        self.part(u64::from(threshold.clamp(10, 100)))
    }

    /// Returns the tokens of the newest results that don't age.
    pub(super) fn kept_results(self) -> Tokens {
        self.part(KEPT_RESULTS)
    }

    /// Returns the least number of tokens that aging has to free.
    pub(super) fn worth_aging(self) -> Tokens {
        self.part(WORTH_AGING)
    }

    /// Returns the target size of the messages after a compaction. `fixed` is the number of tokens
    /// of the system prompt and the tools.
    pub(super) fn after_compaction(self, fixed: Tokens) -> Tokens {
        let left = self.input.0.saturating_sub(fixed.0);
        Tokens(self.part(ROOM_AFTER).0.saturating_sub(fixed.0).max(left * 2 / 5))
    }

    /// Returns the maximum tokens of the messages after a compaction.
    pub(super) fn limit_after_compaction(self, fixed: Tokens) -> Tokens {
        Tokens(self.part(MAX_AFTER).0.saturating_sub(fixed.0)).max(self.after_compaction(fixed))
    }
}

/// The size of the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Tokens of the system prompt and the tools, as counted here.
    pub(super) fixed: Tokens,
    /// Tokens of the messages, as counted here.
    pub(super) messages: Tokens,
    /// Tokens of the request that the provider will report, on the safe side.
    pub(super) predicted: Tokens,
}

impl Size {
    /// Measures the next request.
    pub(super) fn of_next(cx: &mut Context, tools: &[ToolSpec]) -> Self {
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
        let room = Room { input: Tokens(3_000) };
        assert_eq!(room.after_compaction(Tokens(2_500)), Tokens(200), "something is left beside many tools");
        assert_eq!(room.after_compaction(Tokens(500)), Tokens(1_000));
    }

    #[test]
    fn sizes_are_converted_by_the_last_prediction() {
        let size = Size { fixed: Tokens(100), messages: Tokens(900), predicted: Tokens(1_500) };
        assert_eq!(size.to_counted(Tokens(150)), Tokens(100));
        assert_eq!(size.to_predicted(Tokens(100)), Tokens(150));
    }
}
