//! The limits of a task: model requests and cost.

use journeyman_protocol::RunOutcome;

use super::context::Context;
use super::task_end::TaskEnd;

/// Returns the task's end if a limit is reached.
pub(super) fn reached_limit(cx: &Context) -> Option<TaskEnd> {
    let (settings, counters) = (&cx.settings, &cx.transcript.state().counters);
    if counters.turns >= settings.max_turns {
        let why = format!("the limit of {} turns was reached (--max-turns)", settings.max_turns);
        return Some(TaskEnd::new(RunOutcome::Limit, why));
    }
    let own = settings.price.as_ref().map(|price| price.cost(&counters.usage))?;
    let spent = settings.shared_budget.as_ref().map_or(own, |shared| shared.total_usd().max(own));
    let budget = settings.budget_usd?;
    (spent >= budget).then(|| {
        let why = format!("the budget of ${budget:.2} was spent (${spent:.4}; --budget)");
        TaskEnd::new(RunOutcome::Limit, why)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use journeyman_model::Price;
    use journeyman_protocol::{Tokens, Usage};

    use super::*;
    use crate::session::settings::SharedBudget;
    use crate::test_context::TestContext;
    use crate::transcript::record::{Record, TaskCounters};

    #[tokio::test]
    async fn requests_and_cost_are_limited() {
        let mut test = TestContext::new(&[]).await;
        test.cx.settings.max_turns = 2;
        test.cx.transcript.begin_turn();
        assert_eq!(reached_limit(&test.cx), None);
        test.cx.transcript.begin_turn();
        assert!(reached_limit(&test.cx).unwrap().summary.contains("--max-turns"));
        test.cx.settings.max_turns = 100;
        let usage = Usage { input: Tokens(1_000_000), ..Usage::default() };
        test.cx.transcript.record(Record::Counters(TaskCounters { usage, ..TaskCounters::default() }));
        test.cx.settings.budget_usd = Some(3.0);
        assert_eq!(reached_limit(&test.cx), None, "a model without a price has no cost");
        test.cx.settings.price = Some(Price { input: 2.0, ..Price::FREE });
        assert_eq!(reached_limit(&test.cx), None);
        let shared = SharedBudget::default();
        shared.record_spent_usd(3.5);
        test.cx.settings.shared_budget = Some(Arc::new(shared));
        assert!(reached_limit(&test.cx).unwrap().summary.contains("--budget"), "other sessions spend it too");
    }
}
