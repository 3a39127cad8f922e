//! The limits of a task: model requests and cost.

use journeyman_protocol::{RunOutcome, Termination};

use super::budget::{SharedBudget, Spending};
use super::context::SessionContext;
use super::task_end::TaskEnd;

/// Returns the task's end if a limit is reached.
pub(super) fn end_if_limit_reached(cx: &SessionContext) -> Option<TaskEnd> {
    let (settings, counters) = (&cx.settings, &cx.transcript.state().counters);
    if counters.turns >= settings.max_turns {
        let limit = settings.max_turns;
        let source = match cx.role() {
            Some(role) if role.limits.turns <= limit => format!("max_turns of the agent `{}`", role.name),
            _ => "--max-turns".to_owned(),
        };
        let why = format!("the limit of {limit} turns was reached ({source})");
        return Some(TaskEnd::new(RunOutcome::Limit, why).with_termination(Termination::MaxTurns));
    }
    if let Some(end) = end_if_agent_limit_reached(cx) {
        return Some(end);
    }
    // The other sessions' cost counts also where this model's price is unknown.
    let shared = settings.shared_budget.as_ref().map(|shared| shared.total_usd());
    let spent = [known_spent_usd(cx), shared].into_iter().flatten().reduce(f64::max)?;
    let budget = settings.budget_usd?;
    (spent >= budget).then(|| {
        let why = format!("the budget of ${budget:.2} was spent (${spent:.4}; --budget)");
        TaskEnd::new(RunOutcome::Limit, why)
    })
}

/// Returns the cost of the task with that of its agents and of other CLIs; `None` if a price is
/// unknown.
pub(super) fn spent_usd(cx: &SessionContext) -> Option<f64> {
    known_spent_usd(cx).filter(|_| !cx.transcript.state().counters.unpriced)
}

/// Returns the known part of the cost, which a budget holds for; `None` if the model's price is
/// unknown.
fn known_spent_usd(cx: &SessionContext) -> Option<f64> {
    let counters = &cx.transcript.state().counters;
    let own = cx.settings.price.as_ref().map(|price| price.cost(&counters.usage))?;
    Some(own + SharedBudget::to_usd(counters.delegated))
}

/// Returns the spending of the task, with that of its agents and other CLIs.
pub(super) fn task_spending(cx: &SessionContext) -> Spending {
    let counters = &cx.transcript.state().counters;
    let mut used = Spending::new(counters.usage, cx.settings.price.map(|price| price.cost(&counters.usage)));
    let mut others = counters.agents;
    others += counters.foreign;
    used += Spending { usage: others, cost: counters.delegated, unpriced: counters.unpriced };
    used
}

/// Returns the end of an agent that has used up the tokens or the money of its definition, or of an
/// agent's that it works for. It gets no last turn, which would use more.
fn end_if_agent_limit_reached(cx: &SessionContext) -> Option<TaskEnd> {
    let why = cx.role().and(cx.settings.shared_budget.as_ref())?.describe_exhausted_limit()?;
    Some(TaskEnd::new(RunOutcome::Limit, why).with_termination(Termination::Error))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use journeyman_model::Price;
    use journeyman_protocol::{Tokens, Usage};

    use super::*;
    use crate::test_context::TestContext;
    use crate::transcript::record::{Record, TaskCounters};

    #[tokio::test]
    async fn requests_and_cost_are_limited() {
        let mut test = TestContext::new(&[]).await;
        test.cx.settings.max_turns = 2;
        test.cx.transcript.begin_turn();
        assert_eq!(end_if_limit_reached(&test.cx), None);
        test.cx.transcript.begin_turn();
        assert!(end_if_limit_reached(&test.cx).unwrap().summary.contains("--max-turns"));
        test.cx.settings.max_turns = 100;
        let usage = Usage { input: Tokens(1_000_000), ..Usage::default() };
        test.cx.transcript.record(Record::Counters(TaskCounters { usage, ..TaskCounters::default() }));
        test.cx.settings.budget_usd = Some(3.0);
        assert_eq!(end_if_limit_reached(&test.cx), None, "a model without a price has no cost");
        test.cx.settings.price = Some(Price { input: 2.0, ..Price::FREE });
        assert_eq!(end_if_limit_reached(&test.cx), None);
        let shared = SharedBudget::default();
        shared.record_spending(Spending::new(Usage::default(), Some(3.5)));
        test.cx.settings.shared_budget = Some(Arc::new(shared));
        assert!(
            end_if_limit_reached(&test.cx).unwrap().summary.contains("--budget"),
            "other sessions spend it too"
        );
    }
}
