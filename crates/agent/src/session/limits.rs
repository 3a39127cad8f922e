//! The limits of a task: model requests and cost.

use journeyman_protocol::RunOutcome;

use super::context::Context;
use super::task_end::TaskEnd;

/// Returns the task's end if a limit is reached.
pub(super) fn reached_limit(cx: &Context) -> Option<TaskEnd> {
    let (settings, counters) = (&cx.settings, &cx.transcript.state().books);
    if counters.turns >= settings.max_turns {
        let why = format!("the limit of {} turns was reached (--max-turns)", settings.max_turns);
        return Some(TaskEnd::new(RunOutcome::Limit, why));
    }
    let own = settings.price.as_ref().map(|price| price.cost(&counters.usage))?;
    let spent = settings.shared_budget.as_ref().map_or(own, |shared| shared.spent().max(own));
    let budget = settings.budget_usd?;
    (spent >= budget).then(|| {
        let why = format!("the budget of ${budget:.2} was spent (${spent:.4}; --budget)");
        TaskEnd::new(RunOutcome::Limit, why)
    })
}
