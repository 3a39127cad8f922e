//! The tree of agents: what it says of each, and what it leaves out where there is no room.

use std::time::{Duration, Instant};

use journeyman_protocol::{CallId, CallState, Event, SessionId, Termination, UnixMillis};
use journeyman_terminal::StyledLine;

use super::player::{agent_finished, agent_started, asked, call_ended, call_started, decided, tokens_used};
use crate::agent_tree::{AgentForest, AgentNode, ended_lines, live_lines};

struct Played {
    forest: AgentForest,
    begin: Instant,
}

impl Played {
    fn new() -> Self {
        Self { forest: AgentForest::default(), begin: Instant::now() }
    }

    /// Takes an event of an agent by its number; 0 is the session itself.
    fn take(&mut self, agent: u64, event: &Event) -> &mut Self {
        let session = SessionId::new(UnixMillis(0), agent);
        let label =
            || if let Event::ToolStart { summary, .. } = event { summary.clone() } else { String::new() };
        self.forest.apply((agent > 0).then_some(&session), event, label, self.begin);
        self
    }

    fn rows(&self, call: &str, columns: usize, max_rows: usize) -> Vec<String> {
        let call = CallId::new(call);
        let agents: Vec<&AgentNode> = self.forest.agents_of_call(&call).collect();
        let now = self.begin + Duration::from_secs(75);
        live_lines(&agents, now, columns, max_rows).iter().map(StyledLine::to_text).collect()
    }
}

#[test]
fn each_agent_says_what_it_does_now() {
    let mut played = Played::new();
    let reads = call_started("r", "read_file", serde_json::json!({}), "read a.rs");
    played.take(0, &agent_started("t", 1, "scout")).take(1, &agent_started("n", 2, "planner"));
    assert_eq!(
        played.rows("t", 80, 9),
        ["    └─ scout  waits · 1:15 min", "       └─ planner  thinks · 1:15 min",]
    );
    played.take(2, &reads).take(2, &tokens_used(8_100));
    assert_eq!(played.rows("t", 80, 9)[1], "       └─ planner  read a.rs · 1:15 min · 8k tokens");
    played.take(2, &asked("r", "make", None));
    assert_eq!(played.rows("t", 80, 9)[1], "       └─ planner  asks you · 1:15 min · 8k tokens");
    played
        .take(2, &decided("r", true))
        .take(2, &call_ended("r", "read_file", CallState::Completed, "", None));
    played.take(1, &agent_finished("n", 2, "planner", Termination::Goal));
    assert_eq!(
        played.rows("t", 80, 9),
        ["    └─ scout  thinks · 1:15 min", "       └─ planner  ✓ 3 turns · 12.3 s · 8k tokens",]
    );
}

#[test]
fn without_room_the_agents_below_are_counted() {
    let mut played = Played::new();
    for (child, name) in [(1, "ada"), (2, "bob"), (3, "cyd")] {
        played
            .take(0, &agent_started("t", child, name))
            .take(child, &agent_started("n", child + 10, "helper"));
    }
    played.take(0, &agent_finished("t", 1, "ada", Termination::Goal));
    assert_eq!(played.rows("t", 80, 6).len(), 6);
    assert_eq!(
        played.rows("t", 80, 4),
        [
            "    ├─ bob  waits · 1:15 min · 1 agent below",
            "    ├─ cyd  waits · 1:15 min · 1 agent below",
            "    └─ ada  ✓ 3 turns · 12.3 s · 8k tokens · 1 agent below",
        ]
    );
    assert_eq!(
        played.rows("t", 80, 2),
        ["    ├─ bob  waits · 1:15 min · 1 agent below", "    └─ … 4 more agents"]
    );
    assert_eq!(played.rows("t", 20, 1), ["    └─ … 6 more age…"]);
}

#[test]
fn a_call_that_has_ended_keeps_its_tree() {
    let mut played = Played::new();
    played.take(0, &agent_started("t", 1, "scout")).take(1, &agent_started("n", 2, "planner"));
    played.take(0, &agent_finished("t", 1, "scout", Termination::Timeout));
    let taken = played.forest.take_agents_of_call(&CallId::new("t"));
    let lines: Vec<String> = ended_lines(&taken).iter().map(StyledLine::to_text).collect();
    assert_eq!(
        lines,
        ["    └─ scout  ✗ out of time, 3 turns · 12.3 s · 8k tokens", "       └─ planner  ✗ cut off",]
    );
    assert!(played.rows("t", 80, 9).is_empty());
}

#[test]
fn an_agent_in_the_background_is_shown_until_it_ends() {
    let mut played = Played::new();
    let mut started = agent_started("t", 1, "scout");
    if let Event::AgentStarted { background, .. } = &mut started {
        *background = true;
    }
    played.take(0, &started);
    assert!(
        played.forest.take_agents_of_call(&CallId::new("t")).is_empty(),
        "it works on when its call has ended"
    );
    assert_eq!(played.forest.agents_without_calls(&[]).count(), 1);
    played.take(0, &agent_finished("t", 1, "scout", Termination::Goal));
    assert_eq!(played.forest.agents_without_calls(&[]).count(), 0);
}
