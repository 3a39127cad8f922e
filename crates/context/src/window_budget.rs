//! Division of a model's window among the parts of a request and the reply.

use journeyman_protocol::{
    ContextCategory, ContextShare, LimitSource, ModelLimits, TokenCounter as _, Tokens,
};

use crate::TokenEstimator;

/// Part of the window that is kept for the reply, in hundredths, if the output limit isn't lower.
const REPLY_PERCENT: u64 = 20;
/// Part of the window for the first context, in hundredths: the tools, the reply and the work need
/// the rest.
const FIRST_CONTEXT_PERCENT: u64 = 45;

/// The division of a model's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBudget {
    /// All tokens.
    pub window: Tokens,
    /// Maximum tokens of a request.
    pub input: Tokens,
    /// True if the window is known, rather than assumed.
    is_known: bool,
}

impl WindowBudget {
    /// Divides a model's window. `max_output` is the output limit of the session, if any.
    #[must_use]
    pub fn new(limits: &ModelLimits, max_output: Option<Tokens>) -> Self {
        let share = Tokens(limits.window.0.saturating_mul(REPLY_PERCENT) / 100);
        let reply = max_output.map_or(share, |limit| limit.min(share));
        let is_known = limits.source != LimitSource::Default;
        Self { window: limits.window, input: limits.input_limit(reply), is_known }
    }

    /// Returns the budget of system prompt and first message for a task: the configured one, but no
    /// more than a part of the window. An assumed window bounds what comes to a task, not the task.
    #[must_use]
    pub fn first_context(&self, configured: Tokens, task: &str) -> Tokens {
        let share = Tokens(self.window.0.saturating_mul(FIRST_CONTEXT_PERCENT) / 100);
        if self.is_known {
            return configured.min(share);
        }
        let beside_task = TokenEstimator.count(task) + Tokens(share.0 / 2);
        configured.min(share.max(beside_task))
    }

    /// Adds to the shares of the first context what else the window is for: tools, the reply, and
    /// the conversation, which gets the rest. The tokens of conversation and reply together with
    /// what is used are the window.
    #[must_use]
    pub fn divide(&self, mut shares: Vec<ContextShare>, tools: Tokens) -> Vec<ContextShare> {
        shares.push(ContextShare { category: ContextCategory::Tools, tokens: tools, budget: tools });
        let reply = Tokens(self.window.0.saturating_sub(self.input.0));
        shares.push(ContextShare { category: ContextCategory::Generation, tokens: reply, budget: reply });
        let used: Tokens = shares.iter().map(|share| share.tokens).sum();
        let rest = Tokens(self.window.0.saturating_sub(used.0));
        shares.push(ContextShare {
            category: ContextCategory::Conversation,
            tokens: Tokens(0),
            budget: rest,
        });
        shares.sort_by_key(|share| share.category);
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_divided_into_request_and_reply() {
        let mut limits = ModelLimits { window: Tokens(100_000), ..ModelLimits::conservative_default(false) };
        let input = |limits: &ModelLimits, most| WindowBudget::new(limits, most).input;
        assert_eq!(input(&limits, None), Tokens(80_000));
        assert_eq!(input(&limits, Some(Tokens(4_000))), Tokens(96_000));
        assert_eq!(input(&limits, Some(Tokens(64_000))), Tokens(80_000));
        limits.max_output = Some(Tokens(8_000));
        assert_eq!(input(&limits, None), Tokens(92_000));
    }

    #[test]
    fn an_assumed_window_bounds_the_context_and_not_the_task() {
        let budget = WindowBudget::new(&ModelLimits::conservative_default(true), None);
        let share = Tokens(budget.window.0 * FIRST_CONTEXT_PERCENT / 100);
        assert_eq!(budget.first_context(Tokens(20_000), "task"), share);
        let long = "a long task with many words ".repeat(1_000);
        let with_task = budget.first_context(Tokens(20_000), &long);
        assert_eq!(with_task, TokenEstimator.count(&long) + Tokens(share.0 / 2));
        assert_eq!(budget.first_context(Tokens(2_000), &long), Tokens(2_000));
    }

    #[test]
    fn every_token_of_the_window_has_a_category() {
        let mut limits = ModelLimits::conservative_default(false);
        limits.set_window(Tokens(40_000), LimitSource::Configured);
        let budget = WindowBudget::new(&limits, None);
        assert_eq!(budget.first_context(Tokens(20_000), "task"), Tokens(18_000));
        let task = ContextShare { category: ContextCategory::Task, tokens: Tokens(500), budget: Tokens(500) };
        let shares = budget.divide(vec![task], Tokens(1_500));
        let used: Tokens = shares.iter().map(|share| share.tokens).sum();
        let rest = shares.iter().find(|share| share.category == ContextCategory::Conversation).unwrap();
        assert_eq!(used + rest.budget, Tokens(40_000));
    }
}
