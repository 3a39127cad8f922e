//! The limits of tokens and money of an agent, which hold for its own agents too.

use std::sync::Arc;

use journeyman_agent::agents::{AgentDefinition, AgentLimits, AgentTools, Agents};
use journeyman_agent::{CutOffPolicy, RunSettings};
use journeyman_model::{ModelRequest, Price};
use journeyman_protocol::{Event, Mode, SessionId, Termination, Usage};
use serde_json::json;

use super::{is_scout, scout};
use crate::session::support::bench::{Bench, auto, id};
use crate::session::support::model::{Told, calls, result, says};

cases![
    the_agents_of_an_agent_count_to_its_tokens,
    the_agents_of_an_agent_count_to_its_dollars,
    usage_and_cost_are_of_the_same_requests,
    an_agent_whose_cost_is_limited_needs_a_price,
    what_was_used_before_the_program_ended_counts_on,
];

const OUTER: &str = "You are the outer.";

/// An agent with these limits that may give tasks to the scout.
fn outer(limits: AgentLimits) -> AgentDefinition {
    let named = AgentTools::Named(vec!["task".to_owned()]);
    let mut outer = scout().tools(named, Mode::Plan).limits(limits);
    outer.name = "outer".to_owned();
    outer.system = OUTER.to_owned();
    outer
}

fn bench(limits: AgentLimits) -> Bench {
    Bench::new(&[("a.txt", "a\n")]).with_agents(Agents::new(vec![scout(), outer(limits)]))
}

fn is_outer(request: &ModelRequest) -> bool {
    request.system.iter().any(|part| part.text.contains(OUTER))
}

/// The scout reads without an end, each time another line.
fn model() -> Arc<Told> {
    Told::by(|request| match (is_scout(request), is_outer(request), request.messages.len()) {
        (true, _, length) => calls([("r", "read_file", json!({ "path": "a.txt", "offset": length }))]),
        (_, true, 1) => calls([("i", "task", json!({ "agent": "scout", "prompt": "look" }))]),
        (_, true, _) => says("never asked"),
        (_, _, 1) => calls([("o", "task", json!({ "agent": "outer", "prompt": "go" }))]),
        _ => says("done"),
    })
}

fn asked_of(told: &Told, whom: fn(&ModelRequest) -> bool) -> usize {
    told.requests().iter().filter(|request| whom(request)).count()
}

fn tokens_of(usage: &Usage) -> u64 {
    (usage.total_input() + usage.output).0
}

fn started_by(bench: &Bench, session: &SessionId) -> SessionId {
    let entries = bench.log.entries_of(session);
    let events = entries.iter().filter_map(|entry| journeyman_agent::envelope_of(session, entry));
    let child = events.into_iter().find_map(|envelope| match envelope.event {
        Event::AgentStarted { child, .. } => Some(child),
        _ => None,
    });
    child.unwrap()
}

fn finished_in(bench: &Bench, session: &SessionId) -> (Termination, String) {
    let entries = bench.log.entries_of(session);
    let events = entries.iter().filter_map(|entry| journeyman_agent::envelope_of(session, entry));
    let end = events.into_iter().find_map(|envelope| match envelope.event {
        Event::AgentFinished { report, summary, .. } => Some((report.termination, summary)),
        _ => None,
    });
    end.unwrap()
}

async fn the_agents_of_an_agent_count_to_its_tokens() {
    // A reply uses 110 tokens: one of the outer, and two of its agent are beyond this.
    let mut bench = bench(AgentLimits { tokens: Some(300), ..AgentLimits::default() });
    let told = model();
    bench.run(&told, auto()).await;
    assert_eq!((asked_of(&told, is_outer), asked_of(&told, is_scout)), (1, 2));
    let said = result(told.requests().last().unwrap(), "o");
    assert!(said.contains("ERROR (the agent used up its 300 tokens"), "{said}");
    let outer = started_by(&bench, &id());
    let (termination, why) = finished_in(&bench, &outer);
    assert_eq!(termination, Termination::Error);
    assert_eq!(why, "the agent `outer`, for which this one works, used up its 300 tokens");
    let counters = journeyman_agent::State::load(&*bench.log, &outer).await.unwrap().counters;
    assert_eq!(tokens_of(&counters.agents), 220, "its log has the tokens of its agents");
    assert_eq!(tokens_of(&bench.state().await.counters.agents), 330, "and so has the session's");
}

async fn the_agents_of_an_agent_count_to_its_dollars() {
    let price = Price { input: 1e6 / 100.0, ..Price::FREE };
    let mut bench = bench(AgentLimits { usd: Some(2.5), ..AgentLimits::default() });
    let told = model();
    // Each reply costs a dollar.
    bench.run(&told, RunSettings { price: Some(price), ..auto() }).await;
    assert_eq!((asked_of(&told, is_outer), asked_of(&told, is_scout)), (1, 2));
    let said = result(told.requests().last().unwrap(), "o");
    assert!(said.contains("the agent used up its $2.50"), "{said}");
}

async fn what_was_used_before_the_program_ended_counts_on() {
    let limits = AgentLimits { tokens: Some(300), ..AgentLimits::default() };
    let mut bench = bench(limits);
    bench.run(&model(), auto()).await;
    let outer = started_by(&bench, &id());
    let inner = started_by(&bench, &outer);
    let until = |session: &SessionId, kind: &str| {
        bench.log.entries_of(session).iter().position(|entry| entry.kind == kind).unwrap() + 1
    };
    // Both agents and the session are cut off while the inner one has used its two replies.
    let last_turn = bench.log.entries_of(&inner).iter().rposition(|entry| entry.kind == "cost").unwrap() + 1;
    let cuts = [
        (id(), until(&id(), "agent_started")),
        (outer.clone(), until(&outer, "agent_started")),
        (inner.clone(), last_turn),
    ];
    bench.crash_sessions(&cuts).await;
    let again = model();
    let session = bench.resume(&again, auto(), CutOffPolicy::Continue).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    session.handle.close().await;
    assert_eq!((asked_of(&again, is_outer), asked_of(&again, is_scout)), (0, 0), "nothing is left to use");
    let said = result(again.requests().last().unwrap(), "o");
    assert!(said.contains("the agent used up its 300 tokens"), "{said}");
    assert_eq!(tokens_of(&bench.state().await.counters.agents), 330);
}

async fn usage_and_cost_are_of_the_same_requests() {
    let price = Price { input: 1e6 / 100.0, ..Price::FREE };
    let limits = || AgentLimits { tokens: Some(300), ..AgentLimits::default() };
    // Two replies of the session, one of the outer and two of its agent: 100 tokens in each.
    for (known, usd) in [(Some(price), Some(5.0)), (None, None)] {
        let mut bench = bench(limits());
        let ended = bench.run(&model(), RunSettings { price: known, ..auto() }).await;
        assert_eq!((ended.usage.total_input().0, ended.cost_usd), (500, usd));
        let finished = bench.log.events().into_iter().find_map(|event| match event {
            Event::AgentFinished { usage, usd, .. } => Some((usage.total_input().0, usd)),
            _ => None,
        });
        assert_eq!(finished, Some((300, usd.map(|_| 3.0))), "the agent's own end");
    }
}

async fn an_agent_whose_cost_is_limited_needs_a_price() {
    let limited = AgentLimits { usd: Some(2.5), ..AgentLimits::default() };
    for (limits, budget) in [(limited, None), (AgentLimits::default(), Some(2.5))] {
        let mut bench = bench(limits);
        let told = model();
        bench.run(&told, RunSettings { price: None, budget_usd: budget, ..auto() }).await;
        assert_eq!(asked_of(&told, is_outer), 0);
        let said = result(told.requests().last().unwrap(), "o");
        assert!(said.contains("not started: the cost of the agent `outer` is limited"), "{said}");
        assert!(said.contains("isn't known"), "{said}");
    }
}
