//! The agents that a session gave tasks to, as a tree: while they work, and how they ended. Pure.

use std::time::{Duration, Instant};

use journeyman_host::format::{format_count, format_seconds, preview};
use journeyman_protocol::{CallId, Event, SessionId, Termination, Tokens};
use journeyman_terminal::wrap::cut_line;
use journeyman_terminal::{Style, StyledLine};

use crate::status_facts::format_tokens;

/// Columns before a tree.
const INDENT: &str = "    ";

/// The end of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AgentEnding {
    termination: Termination,
    turns: u32,
    duration_ms: u64,
}

/// An agent, with the agents that it gave tasks to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentNode {
    session: SessionId,
    name: String,
    started: Instant,
    /// The calls that run, each with what it does; the newest last.
    calls: Vec<(CallId, String)>,
    /// The call that a person is asked about.
    asked: Option<CallId>,
    tokens: Tokens,
    end: Option<AgentEnding>,
    /// True if the session goes on while it works, its call being over.
    is_background: bool,
    agents: Vec<AgentNode>,
}

/// The agents of a session, each with the call that gave it its task.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentForest {
    trees: Vec<(CallId, AgentNode)>,
}

impl AgentForest {
    /// Applies an event of the session itself, or of one of its agents, whose session is
    /// `of_agent`. `label` describes the call that begins.
    pub(crate) fn apply(
        &mut self,
        of_agent: Option<&SessionId>,
        event: &Event,
        label: impl FnOnce() -> String,
        now: Instant,
    ) {
        if let Event::AgentStarted { call, child, name, background, .. } = event {
            let node = AgentNode { is_background: *background, ..AgentNode::new(child, name, now) };
            match of_agent.map(|parent| self.find(parent)) {
                None => self.trees.push((call.clone(), node)),
                Some(Some(parent)) => parent.agents.push(node),
                // Its parent began before anybody looked.
                Some(None) => {}
            }
            return;
        }
        if let Event::AgentFinished { child, .. } = event {
            if let Some(node) = self.find(child) {
                node.finish(event);
            }
            return;
        }
        if let Some(node) = of_agent.and_then(|session| self.find(session)) {
            node.apply_event(event, label);
        }
    }

    fn find(&mut self, session: &SessionId) -> Option<&mut AgentNode> {
        self.trees.iter_mut().find_map(|(_, node)| node.find(session))
    }

    /// Returns the agents of a call.
    pub(crate) fn agents_of_call<'a>(&'a self, call: &'a CallId) -> impl Iterator<Item = &'a AgentNode> {
        self.trees.iter().filter(move |(of, _)| of == call).map(|(_, node)| node)
    }

    /// Returns the agents that work for none of the calls.
    pub(crate) fn agents_without_calls<'a>(
        &'a self,
        calls: &'a [&'a CallId],
    ) -> impl Iterator<Item = &'a AgentNode> {
        let is_beside = move |(of, node): &&(CallId, AgentNode)| node.end.is_none() && !calls.contains(&of);
        self.trees.iter().filter(is_beside).map(|(_, node)| node)
    }

    /// Removes and returns the agents of a call that has ended. Agents in the background stay.
    pub(crate) fn take_agents_of_call(&mut self, call: &CallId) -> Vec<AgentNode> {
        let trees = std::mem::take(&mut self.trees);
        let (taken, kept) = trees
            .into_iter()
            .partition(|(of, node)| of == call && !(node.is_background && node.end.is_none()));
        self.trees = kept;
        let taken: Vec<(CallId, AgentNode)> = taken;
        taken.into_iter().map(|(_, node)| node).collect()
    }

    /// Forgets all agents: the run has ended.
    pub(crate) fn clear(&mut self) {
        self.trees.clear();
    }
}

impl AgentNode {
    fn new(session: &SessionId, name: &str, started: Instant) -> Self {
        Self {
            session: session.clone(),
            name: preview(name),
            started,
            calls: Vec::new(),
            asked: None,
            tokens: Tokens::default(),
            end: None,
            is_background: false,
            agents: Vec::new(),
        }
    }

    fn find(&mut self, session: &SessionId) -> Option<&mut Self> {
        if self.session == *session {
            return Some(self);
        }
        self.agents.iter_mut().find_map(|agent| agent.find(session))
    }

    fn apply_event(&mut self, event: &Event, label: impl FnOnce() -> String) {
        match event {
            Event::ToolStart { call, .. } => self.calls.push((call.clone(), label())),
            Event::ToolEnd { call, .. } => self.calls.retain(|(open, _)| open != call),
            Event::PermissionRequired { call, .. } => self.asked = Some(call.clone()),
            Event::PermissionDecided { call, .. } => {
                self.asked = self.asked.take().filter(|asked| asked != call);
            }
            Event::TokenUsage { usage, .. } => {
                self.tokens = Tokens(self.tokens.0.saturating_add((usage.total_input() + usage.output).0));
            }
            _ => {}
        }
    }

    fn finish(&mut self, event: &Event) {
        let Event::AgentFinished { report, turns, usage, duration_ms, .. } = event else { return };
        self.calls.clear();
        self.asked = None;
        self.tokens = Tokens(self.tokens.0.max((usage.total_input() + usage.output).0));
        let (termination, turns, duration_ms) = (report.termination, *turns, *duration_ms);
        self.end = Some(AgentEnding { termination, turns, duration_ms });
    }

    /// Returns the number of agents below this one.
    fn count_below(&self) -> usize {
        self.agents.iter().map(|agent| 1 + agent.count_below()).sum()
    }

    /// Returns what the agent does, or how it ended, with the time and the tokens. Without a time
    /// only what is final is said.
    fn state_line(&self, now: Option<Instant>) -> StyledLine {
        let (style, what, time) = match (&self.end, &self.asked, now) {
            (Some(end), _, _) => {
                let is_done = end.termination == Termination::Goal;
                let (style, mark) = if is_done { (Style::Good, "✓") } else { (Style::Warning, "✗") };
                let how = match end.termination {
                    Termination::Goal => "",
                    Termination::Timeout => " out of time,",
                    Termination::MaxTurns => " out of turns,",
                    Termination::Aborted => " stopped,",
                    Termination::Error => " failed,",
                    Termination::NoCompleteTaskCall => " gave no result,",
                };
                let turns = format_count(end.turns, "turn");
                (style, format!("{mark}{how} {turns}"), Some(Duration::from_millis(end.duration_ms)))
            }
            (None, _, None) => (Style::Warning, "✗ cut off".to_owned(), None),
            (None, asked, Some(now)) => {
                let what = match (asked, self.calls.last()) {
                    (Some(_), _) => "asks you".to_owned(),
                    (None, Some((_, label))) => label.clone(),
                    (None, None) if self.agents.iter().any(|agent| agent.end.is_none()) => "waits".to_owned(),
                    (None, None) => "thinks".to_owned(),
                };
                let style = if asked.is_some() { Style::Warning } else { Style::Plain };
                (style, what, Some(now.saturating_duration_since(self.started)))
            }
        };
        let mut line = StyledLine::new(Style::Strong, self.name.clone()).with(style, format!("  {what}"));
        if let Some(time) = time {
            let time = match (&self.end, time.as_secs()) {
                (Some(end), _) => format_seconds(end.duration_ms),
                (None, seconds @ ..60) => format!("{seconds} s"),
                (None, seconds) => format!("{}:{:02} min", seconds / 60, seconds % 60),
            };
            line.push(Style::Dim, &format!(" · {time}"));
        }
        if self.tokens.0 > 0 {
            line.push(Style::Dim, &format!(" · {} tokens", format_tokens(self.tokens)));
        }
        line
    }

    fn add_lines(&self, first: &str, rest: &str, now: Option<Instant>, lines: &mut Vec<StyledLine>) {
        let mut line = StyledLine::new(Style::Dim, format!("{INDENT}{first}"));
        line.spans.extend(self.state_line(now).spans);
        lines.push(line);
        for (place, agent) in self.agents.iter().enumerate() {
            let (branch, beside) = branch_prefixes(place + 1 == self.agents.len());
            agent.add_lines(&format!("{rest}{branch}"), &format!("{rest}{beside}"), now, lines);
        }
    }
}

fn branch_prefixes(is_last: bool) -> (&'static str, &'static str) {
    if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") }
}

/// Returns the tree of agents that have ended, or that nobody works on any more.
#[must_use]
pub(crate) fn ended_lines(agents: &[AgentNode]) -> Vec<StyledLine> {
    let all: Vec<&AgentNode> = agents.iter().collect();
    tree_lines(&all, None)
}

fn tree_lines(agents: &[&AgentNode], now: Option<Instant>) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for (place, agent) in agents.iter().enumerate() {
        let (branch, beside) = branch_prefixes(place + 1 == agents.len());
        agent.add_lines(branch, beside, now, &mut lines);
    }
    lines
}

/// Returns the tree of agents that work, in at most `max_rows` rows of a width. Where it has more,
/// the agents below others are counted, and then those that have ended are.
#[must_use]
pub(crate) fn live_lines(
    agents: &[&AgentNode],
    now: Instant,
    width: usize,
    max_rows: usize,
) -> Vec<StyledLine> {
    let cut = |lines: Vec<StyledLine>| lines.iter().map(|line| cut_line(line, width)).collect();
    let whole = tree_lines(agents, Some(now));
    if whole.len() <= max_rows {
        return cut(whole);
    }
    let mut shown: Vec<&AgentNode> = agents.to_vec();
    // Those that work come first.
    shown.sort_by_key(|agent| agent.end.is_some());
    let kept = if shown.len() > max_rows { max_rows.saturating_sub(1) } else { shown.len() };
    let hidden = shown.split_off(kept);
    let flat = shown.iter().enumerate().map(|(place, agent)| {
        let (branch, _) = branch_prefixes(hidden.is_empty() && place + 1 == shown.len());
        let mut line = StyledLine::new(Style::Dim, format!("{INDENT}{branch}"));
        line.spans.extend(agent.state_line(Some(now)).spans);
        if let below @ 1.. = agent.count_below() {
            line.push(Style::Dim, &format!(" · {} below", format_count(below, "agent")));
        }
        line
    });
    let mut lines: Vec<StyledLine> = flat.collect();
    if !hidden.is_empty() && max_rows > 0 {
        let more = hidden.iter().map(|agent| 1 + agent.count_below()).sum::<usize>();
        let text = format_count(more, "more agent");
        lines.push(StyledLine::new(Style::Dim, format!("{INDENT}└─ … {text}")));
    }
    cut(lines)
}
