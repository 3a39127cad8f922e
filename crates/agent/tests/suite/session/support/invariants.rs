//! What holds after every append (invariants 5 and 6), checked on the state that a restart would
//! find.

use std::collections::{HashMap, HashSet};

use journeyman_agent::{Record, State, record_of};
use journeyman_protocol::{CallId, CallState, Event, Seq, SessionId};
use journeyman_store::Entry;

use super::{schema, transcript};

/// A log's entries, folded as they come.
#[derive(Default)]
pub(crate) struct Fold {
    state: State,
    last: Seq,
    /// Results that the log holds, by call.
    results: HashMap<CallId, usize>,
    /// Every call that was made.
    called: HashSet<CallId>,
    /// Where each call is.
    states: HashMap<CallId, CallState>,
    /// Whether the model's last calls were made in text.
    in_text: bool,
    problems: Vec<String>,
}

impl Fold {
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Takes one entry.
    pub(crate) fn take(&mut self, session: &SessionId, entry: &Entry) {
        if entry.seq.0 != self.last.0 + 1 {
            self.problem(format!("entry {} comes after {}", entry.seq, self.last));
        }
        self.last = entry.seq;
        match entry.channel {
            Some(_) => self.event(session, entry),
            None => self.record(entry),
        }
    }

    /// What was wrong since the last call, and what is wrong with the state as it is.
    pub(crate) fn problems(&mut self) -> Vec<String> {
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(transcript::problems(&self.state.messages));
        problems.extend(self.open_calls());
        let ended =
            self.state.calls.iter().filter(|open| open.record.state.is_final() && open.result.is_none());
        problems.extend(ended.map(|open| format!("{} has ended and has no result", open.call.id)));
        problems
    }

    fn problem(&mut self, what: String) {
        self.problems.push(what);
    }

    fn event(&mut self, session: &SessionId, entry: &Entry) {
        match serde_json::from_slice::<Event>(&entry.payload) {
            Ok(event) => {
                let (channel, kind) = (event.channel(), event.kind());
                if entry.channel != Some(channel) || entry.kind != kind {
                    self.problem(format!(
                        "{kind} of {channel:?} is kept as {} of {:?}",
                        entry.kind, entry.channel
                    ));
                }
                if event.is_live_only() {
                    self.problem(format!("{kind} is kept"));
                }
            }
            Err(error) => self.problem(format!("{} can't be read back: {error}", entry.kind)),
        }
        if let Some(envelope) = journeyman_agent::envelope_of(session, entry) {
            self.problems.extend(schema::problems(&envelope));
        }
    }

    fn record(&mut self, entry: &Entry) {
        let Some(record) = record_of(entry) else {
            return self.problem(format!("{} has no channel and is no record", entry.kind));
        };
        if record.kind() != entry.kind {
            self.problem(format!("{} is kept as {}", record.kind(), entry.kind));
        }
        match &record {
            Record::Message { message, calls, .. } => {
                self.in_text = !calls.is_empty();
                for call in message.tool_uses().chain(calls) {
                    if !self.called.insert(call.id.clone()) {
                        self.problems.push(format!("two calls are {}", call.id));
                    }
                }
            }
            Record::Call(transition) => {
                let was = self.states.insert(transition.call.clone(), transition.state);
                if was.is_some_and(CallState::is_final) {
                    let (call, now) = (&transition.call, transition.state);
                    self.problems.push(format!("{call} was {was:?} and is {now:?}"));
                }
                // A check or a hook that a person is asked about is no call of the model.
                let asked = matches!(transition.tool.as_str(), "check" | "hook");
                if !asked && !self.called.contains(&transition.call) {
                    self.problems.push(format!("nobody called {}", transition.call));
                }
            }
            Record::Result { call, .. } => {
                let count = self.results.entry(call.clone()).or_default();
                *count += 1;
                if *count > 1 {
                    self.problems.push(format!("{call} has {count} results"));
                }
                if !self.state.calls.iter().any(|open| open.call.id == *call) {
                    self.problems.push(format!("{call} is answered and not open"));
                }
                if !self.states.get(call).copied().is_some_and(CallState::is_final) {
                    self.problems.push(format!("{call} is answered before its end"));
                }
            }
            _ => {}
        }
        self.state.apply(record, entry.at);
        self.state.last = entry.seq;
    }

    /// The model's last message calls what is open, and nothing else is.
    fn open_calls(&self) -> Vec<String> {
        let open: Vec<&CallId> = self.state.calls.iter().map(|open| &open.call.id).collect();
        let last = self.state.messages.last();
        let called: Vec<&CallId> =
            last.into_iter().flat_map(|message| message.tool_uses().map(|call| &call.id)).collect();
        // Whoever goes on may speak the other protocol: a call is what it was when it was made.
        if (self.in_text && called.is_empty()) || called == open {
            return Vec::new();
        }
        vec![format!("the last message calls {called:?}, and {open:?} are open")]
    }
}
