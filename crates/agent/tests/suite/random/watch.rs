//! What is looked at after every step: the log as far as it is durable, and what subscribers were
//! shown of it.

use std::collections::{HashMap, HashSet};

use futures_util::FutureExt as _;
use journeyman_agent::{Record, State, Subscription, record_of};
use journeyman_protocol::{Block, CallId, CallState, Message, Role, RunOutcome, Seq};
use journeyman_store::{Entry, Store};

use crate::random::world::session;

/// A subscriber and what it was shown.
pub(crate) struct Watcher {
    events: Subscription,
    shown: Vec<Seq>,
    ended: bool,
}

impl Watcher {
    pub(crate) fn new(events: Subscription) -> Self {
        Self { events, shown: Vec::new(), ended: false }
    }

    /// Takes what is there without waiting.
    fn look(&mut self) {
        while !self.ended {
            match self.events.next().now_or_never() {
                None => return,
                Some(Ok(Some(envelope))) => self.shown.extend(envelope.seq),
                Some(Ok(None)) => self.ended = true,
                Some(Err(error)) => panic!("a subscriber gets {error}"),
            }
        }
    }
}

/// The log as it was last seen, and what has been checked of it.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) entries: Vec<Entry>,
    pub(crate) state: State,
    states: HashMap<CallId, Vec<CallState>>,
    results: HashSet<CallId>,
    /// Messages of the transcript that have been found to be in order.
    checked: usize,
    /// Messages that a closed task was to begin with: taken without a word, and the task is ended
    /// by the next record.
    given_up: Vec<String>,
    taken_silently: Vec<String>,
}

impl Log {
    /// Reads what is new, and folds it.
    pub(crate) async fn read(&mut self, store: &dyn Store) -> Result<(), String> {
        let known = Seq(self.entries.len() as u64);
        let new = match store.read(&session(), known, usize::MAX).await {
            Ok(new) => new,
            // It begins with the first message.
            Err(_) if self.entries.is_empty() => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        for entry in new {
            let place = self.entries.len() as u64 + 1;
            if entry.seq != Seq(place) {
                return Err(format!("entry {place} has the place {:?}", entry.seq));
            }
            if entry.channel.is_none() {
                let record = record_of(&entry).ok_or_else(|| format!("no record: {entry:?}"))?;
                self.call(&record)?;
                self.give_up(&record);
                self.state.apply(record, entry.at);
            }
            self.entries.push(entry);
        }
        self.transcript()
    }

    fn give_up(&mut self, record: &Record) {
        let silent = std::mem::take(&mut self.taken_silently);
        match record {
            Record::Ended { outcome: RunOutcome::Interrupted, .. } => self.given_up.extend(silent),
            Record::Message { message, taken, .. } if message.content.is_empty() => {
                let queue = self.state.queue.iter().filter(|queued| taken.contains(&queued.id));
                self.taken_silently = queue.map(|queued| queued.text.clone()).collect();
            }
            _ => {}
        }
    }

    /// How often a message with this text was given up with its task.
    pub(crate) fn gives_up(&self, text: &str) -> usize {
        self.given_up.iter().filter(|given_up| given_up.contains(text)).count()
    }

    /// The life of a call: what follows what.
    fn call(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::Message { message, calls, .. } if message.role == Role::Assistant => {
                if !self.state.calls.is_empty() {
                    return Err(format!("a reply comes while calls are open: {:?}", self.state.calls));
                }
                for call in message.tool_uses().chain(calls) {
                    if self.states.insert(call.id.clone(), vec![CallState::Pending]).is_some() {
                        return Err(format!("two calls are {}", call.id));
                    }
                }
            }
            Record::Message { message, .. } if !self.state.calls.is_empty() => {
                return Err(format!("words come between a call and its result: {message:?}"));
            }
            Record::Call(step) => {
                let Some(trail) = self.states.get_mut(&step.call) else {
                    return Err(format!("nobody asked for {}", step.call));
                };
                let last = *trail.last().unwrap_or(&CallState::Pending);
                let follows = match step.state {
                    CallState::Pending => false,
                    CallState::Executing => last == CallState::Approved,
                    CallState::Completed => last == CallState::Executing,
                    _ => !last.is_final(),
                };
                if !follows {
                    return Err(format!("{}: {:?} after {trail:?}", step.call, step.state));
                }
                trail.push(step.state);
            }
            Record::Result { call, .. } => {
                if !self.results.insert(call.clone()) {
                    return Err(format!("{call} has two results"));
                }
                let end = self.states.get(call).and_then(|trail| trail.last());
                if !end.is_some_and(|state| state.is_final()) {
                    return Err(format!("{call} has a result and is {end:?}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a call's effect may have begun, as far as the log knows.
    pub(crate) fn is_executing(&self, call: &CallId) -> bool {
        self.states.get(call).and_then(|trail| trail.last()) == Some(&CallState::Executing)
    }

    /// User and model by turns; every call answered by the next message, in order, before anything
    /// else.
    fn transcript(&mut self) -> Result<(), String> {
        let messages = &self.state.messages;
        let from = self.checked.min(messages.len()).saturating_sub(2);
        for place in from..messages.len() {
            let message = &messages[place];
            let before = place.checked_sub(1).map(|before| &messages[before]);
            // A model that paused goes on with a message of its own.
            let paused = before.is_some_and(|before| before.tool_uses().next().is_none());
            let again = before.map_or(Role::Assistant, |before| before.role) == message.role;
            if again && !(message.role == Role::Assistant && paused) {
                return Err(format!("message {place} has the role of the one before it: {message:?}"));
            }
            let open: Vec<CallId> =
                before.map(|it| it.tool_uses().map(|call| call.id.clone()).collect()).unwrap_or_default();
            if results(message) != open {
                return Err(format!("calls {open:?} are answered by {message:?}"));
            }
            let words = message.content.iter().position(|block| !is_result(block));
            if words.is_some_and(|words| message.content[words..].iter().any(is_result)) {
                return Err(format!("a result comes after words: {message:?}"));
            }
            let last = place + 1 == messages.len();
            if last && message.tool_uses().next().is_some() && self.state.calls.is_empty() {
                return Err(format!("calls are unanswered: {message:?}"));
            }
        }
        self.checked = messages.len();
        Ok(())
    }

    /// How often the transcript has a text, each block counted once.
    pub(crate) fn says(&self, text: &str) -> usize {
        let blocks = self.state.messages.iter().filter(|it| it.role == Role::User).flat_map(|it| &it.content);
        blocks.filter(|block| matches!(block, Block::Text { text: said } if said.contains(text))).count()
    }

    /// How often a message with this text waits.
    pub(crate) fn queues(&self, text: &str) -> usize {
        self.state.queue.iter().filter(|queued| queued.text.contains(text)).count()
    }

    /// What a subscriber may and must have been shown.
    pub(crate) fn shown(&self, watcher: &mut Watcher, all: bool) -> Result<(), String> {
        watcher.look();
        let events = self.entries.iter().filter(|entry| entry.channel.is_some()).map(|entry| entry.seq);
        let events: Vec<Seq> = events.collect();
        let shown = &watcher.shown;
        if !events.starts_with(shown) {
            return Err(format!("shown {shown:?}, durable {events:?}"));
        }
        if all && shown.len() < events.len() {
            return Err(format!("shown {} of {} events", shown.len(), events.len()));
        }
        Ok(())
    }

    /// What a restart would find is what was checked here step by step.
    pub(crate) async fn is_what_a_restart_finds(&self, store: &dyn Store) -> Result<(), String> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let found = State::load(store, &session()).await.map_err(|error| error.to_string())?;
        let (last, safe) = (found.last, found.safe);
        let wanted = State { last, safe, ..self.state.clone() };
        if found != wanted { Err(format!("folded {wanted:#?}, loaded {found:#?}")) } else { Ok(()) }
    }
}

fn results(message: &Message) -> Vec<CallId> {
    let id = |block: &Block| match block {
        Block::ToolResult { id, .. } => Some(id.clone()),
        _ => None,
    };
    message.content.iter().filter_map(id).collect()
}

fn is_result(block: &Block) -> bool {
    matches!(block, Block::ToolResult { .. })
}
