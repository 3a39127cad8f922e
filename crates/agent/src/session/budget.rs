//! The tokens and the money that sessions use together.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_protocol::Usage;

use crate::agents::role::AgentRole;

/// The tokens and the money that requests to models used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spending {
    pub(crate) usage: Usage,
    /// The known cost, in billionths of a US dollar.
    pub(crate) cost: u64,
    /// True if the price of some tokens isn't known.
    pub(crate) unpriced: bool,
}

impl Spending {
    /// Creates the spending for these tokens; `usd` is `None` if their price isn't known.
    pub(crate) fn new(usage: Usage, usd: Option<f64>) -> Self {
        let cost = SharedBudget::to_nanodollars(usd.unwrap_or_default());
        Self { usage, cost, unpriced: usd.is_none() && usage != Usage::default() }
    }
}

impl AddAssign for Spending {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.cost = self.cost.saturating_add(other.cost);
        self.unpriced |= other.unpriced;
    }
}

/// Tokens and money that several sessions use: a session with its agents, or all sessions that
/// share the budget. Each session has a part of its own, so that an agent's limits apply to the
/// agent and the agents below it. Money is counted in billionths of a dollar, so that single tokens
/// of the cheapest models count.
#[derive(Debug, Default)]
pub struct SharedBudget {
    used: Mutex<Spending>,
    /// Number of agents that were started. Only the outermost budget counts them.
    agents: AtomicUsize,
    /// Number of calls of the task that were refused because nobody could be asked.
    unanswered: AtomicUsize,
    /// The budget that this one is a part of.
    whole: Option<Arc<Self>>,
    limit: Option<AgentBudgetLimit>,
}

/// The limits of the agent that a part belongs to.
#[derive(Debug)]
struct AgentBudgetLimit {
    agent: String,
    tokens: Option<u64>,
    usd: Option<f64>,
}

impl SharedBudget {
    const NANODOLLARS_PER_DOLLAR: f64 = 1e9;

    /// Makes the budget of one session, as a part of `whole` if that is given.
    pub(crate) fn for_session(whole: Option<Arc<Self>>, role: Option<&AgentRole>) -> Arc<Self> {
        let limit = role.map(|role| AgentBudgetLimit {
            agent: role.name.clone(),
            tokens: role.limits.tokens,
            usd: role.limits.usd,
        });
        Arc::new(Self { whole, limit, ..Self::default() })
    }

    /// Returns this budget and those that it is a part of.
    fn self_and_parents(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |budget| budget.whole.as_deref())
    }

    fn root_budget(&self) -> &Self {
        self.self_and_parents().last().unwrap_or(self)
    }

    /// Returns the total that the sessions have spent, in US dollars.
    #[must_use]
    pub fn total_usd(&self) -> f64 {
        Self::to_usd(self.root_budget().spending().cost)
    }

    /// Returns the use by the session and its agents.
    pub(crate) fn spending(&self) -> Spending {
        *self.lock()
    }

    /// Adds the spending of a request to this budget and to those that it is a part of.
    pub(crate) fn record_spending(&self, spending: Spending) {
        self.self_and_parents().for_each(|budget| *budget.lock() += spending);
    }

    /// Begins a task that has used this much before it was cut off. The earlier tasks of a session
    /// count on in the budget that it was given.
    pub(crate) fn begin_task(&self, before: Spending) {
        *self.lock() = before;
        self.agents.store(0, Ordering::Relaxed);
        self.unanswered.store(0, Ordering::Relaxed);
        self.self_and_parents().skip(1).for_each(|budget| *budget.lock() += before);
    }

    fn lock(&self) -> MutexGuard<'_, Spending> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an agent, and returns the number of those before it.
    pub(crate) fn count_agent(&self) -> usize {
        self.root_budget().agents.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a call that was refused because nobody could be asked, for the session and for the
    /// sessions above it.
    pub(crate) fn record_unanswered_call(&self) {
        self.self_and_parents().for_each(|budget| {
            budget.unanswered.fetch_add(1, Ordering::Relaxed);
        });
    }

    /// Returns true if nobody could be asked about a call of the session, or of its agents.
    pub(crate) fn has_unanswered_calls(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) > 0
    }

    /// Returns true if the agent that the budget belongs to, or an agent above it, has a cost
    /// limit.
    pub(crate) fn has_cost_limit(&self) -> bool {
        self.self_and_parents().any(|budget| budget.limit.as_ref().is_some_and(|limit| limit.usd.is_some()))
    }

    /// Describes the exhausted limit, if any, of the agent that the budget belongs to or of an
    /// agent above it. The agents below an agent count towards its limits.
    pub(crate) fn describe_exhausted_limit(&self) -> Option<String> {
        self.self_and_parents().enumerate().find_map(|(distance, budget)| {
            let limit = budget.limit.as_ref()?;
            let used = budget.spending();
            let what = match (limit.tokens, limit.usd) {
                (Some(most), _) if Self::limited_tokens(&used.usage) >= most => format!("its {most} tokens"),
                (_, Some(most)) if Self::to_usd(used.cost) >= most => format!("its ${most:.2}"),
                _ => return None,
            };
            Some(match distance {
                0 => format!("the agent used up {what}"),
                _ => format!("the agent `{}`, for which this one works, used up {what}", limit.agent),
            })
        })
    }

    /// Returns the number of tokens that count against limits.
    pub(crate) fn limited_tokens(usage: &Usage) -> u64 {
        usage.total_input().0.saturating_add(usage.output.0)
    }

    /// Converts US dollars to billionths of a dollar.
    pub(crate) fn to_nanodollars(usd: f64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "prices are checked to be positive"
        )]
        let parts = (usd * Self::NANODOLLARS_PER_DOLLAR) as u64;
        parts
    }

    /// Converts billionths of a dollar to US dollars.
    pub(crate) fn to_usd(parts: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine million dollars")]
        let parts = parts as f64;
        parts / Self::NANODOLLARS_PER_DOLLAR
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::Tokens;
    use serde_json::Map;

    use super::*;
    use crate::agents::{AgentDefinition, AgentLimits, InputKind};

    fn role(name: &str, tokens: Option<u64>, usd: Option<f64>) -> AgentRole {
        let limits = AgentLimits { tokens, usd, ..AgentLimits::default() };
        let definition = AgentDefinition::new(name, "Does it.")
            .system("Do it.")
            .input("query", InputKind::String, "It.")
            .limits(limits);
        let inputs = Map::from_iter([("query".to_owned(), "x".into())]);
        definition.build_role(&inputs, &journeyman_tools::Registry::default()).unwrap().0
    }

    fn spending(tokens: u64, usd: f64) -> Spending {
        Spending::new(Usage { input: Tokens(tokens), ..Usage::default() }, Some(usd))
    }

    #[test]
    fn an_agents_agents_count_to_the_limits_of_all_above_them() {
        let root = SharedBudget::for_session(None, None);
        let outer = role("outer", Some(100), None);
        let outer = SharedBudget::for_session(Some(Arc::clone(&root)), Some(&outer));
        let inner = role("inner", None, Some(0.5));
        let inner = SharedBudget::for_session(Some(Arc::clone(&outer)), Some(&inner));
        inner.record_spending(spending(99, 0.25));
        assert_eq!(
            (
                inner.describe_exhausted_limit(),
                outer.describe_exhausted_limit(),
                root.describe_exhausted_limit()
            ),
            (None, None, None)
        );
        assert_eq!(root.total_usd(), 0.25);
        inner.record_spending(spending(1, 0.0));
        assert_eq!(outer.describe_exhausted_limit().as_deref(), Some("the agent used up its 100 tokens"));
        let said = inner.describe_exhausted_limit().unwrap();
        assert_eq!(said, "the agent `outer`, for which this one works, used up its 100 tokens");
        assert_eq!(root.describe_exhausted_limit(), None, "it has no limit");
        outer.begin_task(Spending::default());
        inner.record_spending(spending(0, 0.25));
        assert_eq!(inner.describe_exhausted_limit().as_deref(), Some("the agent used up its $0.50"));
    }

    #[test]
    fn a_task_that_was_cut_off_counts_on_in_the_budget_above() {
        let shared = Arc::new(SharedBudget::default());
        let part = SharedBudget::for_session(Some(Arc::clone(&shared)), None);
        part.begin_task(spending(10, 1.0));
        assert_eq!((part.spending(), shared.spending()), (spending(10, 1.0), spending(10, 1.0)));
        part.begin_task(Spending::default());
        assert_eq!(
            (part.spending(), shared.total_usd()),
            (Spending::default(), 1.0),
            "earlier tasks count on"
        );
    }
}
