//! The tokens and the money that sessions use together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use journeyman_protocol::Usage;

use crate::agents::role::AgentRole;

/// The use of tokens and money by sessions together: by a session and its agents, and by all
/// sessions that were given one. A part of it belongs to each session, so that an agent's own
/// limits hold for it and its agents. Money is counted in billionths of a dollar, so that single
/// tokens of the cheapest models count.
#[derive(Debug, Default)]
pub struct SharedBudget {
    spent: AtomicU64,
    tokens: AtomicU64,
    /// Number of agents that were started. Counted in the whole alone.
    agents: AtomicUsize,
    /// The budget that this one is a part of.
    whole: Option<Arc<Self>>,
    limit: Option<AgentLimit>,
}

/// The limits of the agent that a part belongs to.
#[derive(Debug)]
struct AgentLimit {
    agent: String,
    tokens: Option<u64>,
    usd: Option<f64>,
}

impl SharedBudget {
    const PARTS_PER_DOLLAR: f64 = 1e9;

    /// Makes the budget of one session, as a part of `whole` if that is given.
    pub(crate) fn of_session(whole: Option<Arc<Self>>, role: Option<&AgentRole>) -> Arc<Self> {
        let limit = role.map(|role| AgentLimit {
            agent: role.name.clone(),
            tokens: role.limits.tokens,
            usd: role.limits.usd,
        });
        Arc::new(Self { whole, limit, ..Self::default() })
    }

    /// Returns this budget and those that it is a part of.
    fn outwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |budget| budget.whole.as_deref())
    }

    fn outermost(&self) -> &Self {
        self.outwards().last().unwrap_or(self)
    }

    /// Returns the total that the sessions have spent, in US dollars.
    #[must_use]
    pub fn total_usd(&self) -> f64 {
        Self::to_usd(self.outermost().spent.load(Ordering::Relaxed))
    }

    /// Returns the use by the session and its agents: tokens, and billionths of a dollar.
    pub(crate) fn used(&self) -> (u64, u64) {
        (self.tokens.load(Ordering::Relaxed), self.spent.load(Ordering::Relaxed))
    }

    /// Counts tokens, and US dollars where the price is known.
    pub(crate) fn record(&self, tokens: u64, usd: f64) {
        self.outwards().for_each(|budget| budget.add(tokens, Self::to_parts(usd)));
    }

    fn add(&self, tokens: u64, parts: u64) {
        self.tokens.fetch_add(tokens, Ordering::Relaxed);
        self.spent.fetch_add(parts, Ordering::Relaxed);
    }

    /// Begins a task that has used this much before it was cut off. The earlier tasks of a session
    /// count on in the budget that it was given.
    pub(crate) fn begin_task(&self, tokens: u64, usd: f64) {
        let parts = Self::to_parts(usd);
        self.tokens.store(tokens, Ordering::Relaxed);
        self.spent.store(parts, Ordering::Relaxed);
        self.agents.store(0, Ordering::Relaxed);
        self.outwards().skip(1).for_each(|budget| budget.add(tokens, parts));
    }

    /// Counts an agent, and returns the number of those before it.
    pub(crate) fn count_agent(&self) -> usize {
        self.outermost().agents.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns who used up which limit: the agent that the budget belongs to, or one that it works
    /// for, each with all agents below it.
    pub(crate) fn used_up(&self) -> Option<String> {
        self.outwards().enumerate().find_map(|(distance, budget)| {
            let limit = budget.limit.as_ref()?;
            let (tokens, parts) = budget.used();
            let what = match (limit.tokens, limit.usd) {
                (Some(most), _) if tokens >= most => format!("its {most} tokens"),
                (_, Some(most)) if Self::to_usd(parts) >= most => format!("its ${most:.2}"),
                _ => return None,
            };
            Some(match distance {
                0 => format!("the agent used up {what}"),
                _ => format!("the agent `{}`, for which this one works, used up {what}", limit.agent),
            })
        })
    }

    /// Returns the number of tokens that count against limits.
    pub(crate) fn tokens_of(usage: &Usage) -> u64 {
        usage.total_input().0.saturating_add(usage.output.0)
    }

    /// Converts US dollars to billionths of a dollar.
    pub(crate) fn to_parts(usd: f64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "prices are checked to be positive"
        )]
        let parts = (usd * Self::PARTS_PER_DOLLAR) as u64;
        parts
    }

    /// Converts billionths of a dollar to US dollars.
    pub(crate) fn to_usd(parts: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine million dollars")]
        let parts = parts as f64;
        parts / Self::PARTS_PER_DOLLAR
    }
}

#[cfg(test)]
mod tests {
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
        definition.role(&inputs, &journeyman_tools::Registry::default()).unwrap().0
    }

    #[test]
    fn an_agents_agents_count_to_the_limits_of_all_above_them() {
        let root = SharedBudget::of_session(None, None);
        let outer = role("outer", Some(100), None);
        let outer = SharedBudget::of_session(Some(Arc::clone(&root)), Some(&outer));
        let inner = role("inner", None, Some(0.5));
        let inner = SharedBudget::of_session(Some(Arc::clone(&outer)), Some(&inner));
        inner.record(99, 0.25);
        assert_eq!((inner.used_up(), outer.used_up(), root.used_up()), (None, None, None));
        assert_eq!(root.total_usd(), 0.25);
        inner.record(1, 0.0);
        assert_eq!(outer.used_up().as_deref(), Some("the agent used up its 100 tokens"));
        let said = inner.used_up().unwrap();
        assert_eq!(said, "the agent `outer`, for which this one works, used up its 100 tokens");
        assert_eq!(root.used_up(), None, "it has no limit");
        outer.begin_task(0, 0.0);
        inner.record(0, 0.25);
        assert_eq!(inner.used_up().as_deref(), Some("the agent used up its $0.50"));
    }

    #[test]
    fn a_task_that_was_cut_off_counts_on_in_the_budget_above() {
        let shared = Arc::new(SharedBudget::default());
        let part = SharedBudget::of_session(Some(Arc::clone(&shared)), None);
        part.begin_task(10, 1.0);
        assert_eq!((part.used(), shared.used()), ((10, 1_000_000_000), (10, 1_000_000_000)));
        part.begin_task(0, 0.0);
        assert_eq!((part.used(), shared.total_usd()), ((0, 0), 1.0), "earlier tasks count on");
    }
}
