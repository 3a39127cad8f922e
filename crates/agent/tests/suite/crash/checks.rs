//! What has to hold when a task is at its end, however often it was cut off.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use journeyman_agent::{EventFilter, OpenCall, Record, Since, State, Subscription, record_of};
use journeyman_protocol::{Block, CallId, CallState, Channel, Event, Message, Seq};
use journeyman_store::{Entry, Store};

use crate::crash::place::{Place, now, session};
use crate::crash::task;

/// Everything that is wrong, in words.
pub(crate) async fn problems(place: &Place, wanted: &BTreeMap<String, String>) -> Vec<String> {
    let mut problems = Vec::new();
    compare(&place.tree(), wanted, &mut problems);
    let store = place.log();
    let entries = store.read(&session(), Seq::START, usize::MAX).await.unwrap();
    in_order(&entries, &mut problems);
    if let Err(error) = store.acquire_lease(&session(), "the checks", now(), 1_000).await {
        problems.push(format!("the lease is not free: {error}"));
    }
    store.release_lease(&session(), "the checks").await.unwrap();
    match State::load(&*store, &session()).await {
        Ok(state) => settled(&state, &mut problems),
        Err(error) => problems.push(format!("the log can't be folded: {error}")),
    }
    once(&entries, &mut problems);
    channels(&*store, &entries, &mut problems).await;
    problems
}

fn compare(tree: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>, problems: &mut Vec<String>) {
    for (name, content) in wanted {
        match tree.get(name) {
            Some(found) if found == content => {}
            found => problems.push(format!("{name} is {found:?}, wanted {content:?}")),
        }
    }
    for name in tree.keys().filter(|name| !wanted.contains_key(*name)) {
        problems.push(format!("{name} is left over"));
    }
}

fn in_order(entries: &[Entry], problems: &mut Vec<String>) {
    for (place, entry) in entries.iter().enumerate() {
        if entry.seq.0 != place as u64 + 1 {
            problems.push(format!("entry {place} has the place {:?}", entry.seq));
        }
    }
}

fn settled(state: &State, problems: &mut Vec<String>) {
    let State { calls, task, queue, messages, outcome, .. } = state;
    let open: Vec<&OpenCall> = calls.iter().collect();
    if !open.is_empty() {
        problems.push(format!("calls are open: {open:?}"));
    }
    if task.is_some() || !queue.is_empty() || outcome.is_none() {
        problems.push(format!("the task has not ended: {task:?} {queue:?} {outcome:?}"));
    }
    problems.extend(transcript(messages));
}

/// What is wrong with a transcript as a provider takes it.
fn transcript(messages: &[Message]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut open: Vec<CallId> = Vec::new();
    for message in messages {
        let result = |block: &Block| match block {
            Block::ToolResult { id, .. } => Some(id.clone()),
            _ => None,
        };
        let answered: Vec<CallId> = message.content.iter().filter_map(result).collect();
        if answered != open {
            problems.push(format!("calls {open:?} are answered by {answered:?}"));
        }
        open = message.tool_uses().map(|call| call.id.clone()).collect();
    }
    let words = messages.iter().flat_map(|message| &message.content);
    let begins = words.filter(|block| matches!(block, Block::Text { text, .. } if text.contains(task::TASK)));
    match begins.count() {
        1 => {}
        count => problems.push(format!("the task is in the transcript {count} times")),
    }
    problems
}

/// Exactly one result a call, every call at its end, and each thing done once.
fn once(entries: &[Entry], problems: &mut Vec<String>) {
    let mut states: HashMap<CallId, Vec<CallState>> = HashMap::new();
    let mut results: HashMap<CallId, usize> = HashMap::new();
    let mut asked: Vec<CallId> = Vec::new();
    let mut done: HashMap<usize, Vec<CallId>> = HashMap::new();
    for entry in entries {
        if let Some(Ok(Event::FileChanged { change })) =
            entry.channel.map(|_| serde_json::from_slice(&entry.payload))
        {
            problems.push(format!("its own write to {} was taken for somebody else's", change.path));
        }
        match record_of(entry) {
            Some(Record::Call(step)) => states.entry(step.call).or_default().push(step.state),
            Some(Record::Message { message, .. }) => {
                asked.extend(message.tool_uses().map(|call| call.id.clone()));
            }
            Some(Record::Result { call, block }) => {
                *results.entry(call.clone()).or_default() += 1;
                let text = format!("{block:?}");
                let cut_off = text.contains("cut off:") && !text.contains("Its changes are in place");
                if !cut_off && !text.contains("not run:") {
                    done.entry(task::number_of(&call)).or_default().push(call);
                }
            }
            _ => {}
        }
    }
    for call in &asked {
        let steps = states.remove(call).unwrap_or_default();
        if !steps.last().is_some_and(|last| last.is_final()) {
            problems.push(format!("{call} is not at its end: {steps:?}"));
        }
        if steps.iter().filter(|state| state.is_final()).count() != 1 {
            problems.push(format!("{call} ended more than once: {steps:?}"));
        }
        if steps.iter().filter(|state| **state == CallState::Executing).count() > 1 {
            problems.push(format!("{call} was run more than once: {steps:?}"));
        }
        match results.remove(call) {
            Some(1) => {}
            count => problems.push(format!("{call} has {count:?} results")),
        }
    }
    if !results.is_empty() || !states.is_empty() {
        problems.push(format!("nobody asked for {results:?} {states:?}"));
    }
    for number in 0..task::calls() {
        match done.get(&number).map(Vec::as_slice) {
            Some([_]) => {}
            other => problems.push(format!("thing {number} was done by {other:?}")),
        }
    }
}

/// Each channel on its own gives every one of its entries, in order, from the beginning; so do all
/// together.
async fn channels(store: &dyn Store, entries: &[Entry], problems: &mut Vec<String>) {
    let replayed = match journeyman_agent::load_events(store, &session(), Seq::START, usize::MAX).await {
        Ok(replayed) => replayed,
        Err(error) => {
            problems.push(format!("the events can't be read: {error}"));
            return;
        }
    };
    for channel in [Channel::Progress, Channel::Control, Channel::Monitor] {
        let wanted: Vec<Seq> =
            entries.iter().filter(|entry| entry.channel == Some(channel)).map(|entry| entry.seq).collect();
        let got: Vec<Seq> =
            replayed.iter().filter(|it| it.channel == channel).filter_map(|it| it.seq).collect();
        if wanted != got || wanted.is_empty() {
            problems.push(format!("{channel:?} has {} entries, replayed {}", wanted.len(), got.len()));
        }
        if got.windows(2).any(|pair| pair[0] >= pair[1]) {
            problems.push(format!("{channel:?} is not in order"));
        }
    }
}

/// The same as a subscriber of a session that was opened again sees it.
pub(crate) async fn subscribed(
    subscribe: impl Fn(EventFilter, Since) -> Subscription,
    entries: &[Entry],
) -> Vec<String> {
    let mut problems = Vec::new();
    for channel in [Channel::Progress, Channel::Control, Channel::Monitor] {
        let wanted: Vec<Seq> =
            entries.iter().filter(|entry| entry.channel == Some(channel)).map(|entry| entry.seq).collect();
        let mut events = subscribe(EventFilter::all().channels([channel]), Since::Seq(Seq::START));
        let mut got = Vec::new();
        while got.len() < wanted.len() {
            match events.next().await {
                Ok(Some(envelope)) => got.extend(envelope.seq),
                other => {
                    problems.push(format!("{channel:?} ended early: {other:?}"));
                    break;
                }
            }
        }
        if got != wanted {
            problems.push(format!("{channel:?}: a subscriber sees {} of {}", got.len(), wanted.len()));
        }
    }
    problems
}

/// Calls of which the workspace's journal has an effect, and the log no intent.
pub(crate) async fn effects_without_intent(place: &Place) -> Vec<String> {
    let journal = std::fs::read_to_string(place.0.join("state/journal/log")).unwrap_or_default();
    let called = journal.split("\"call\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let log = place.log();
    let entries = log.read(&session(), Seq::START, usize::MAX).await.unwrap_or_default();
    let meant: Vec<CallId> = entries
        .iter()
        .filter_map(|entry| match record_of(entry) {
            Some(Record::Call(step)) if step.state == CallState::Executing => Some(step.call),
            _ => None,
        })
        .collect();
    let unforeseen = called.filter(|call| !meant.iter().any(|meant| meant.as_str() == *call));
    unforeseen.map(|call| format!("{call} was done, and the log doesn't know")).collect()
}

/// The processes that have to do with a place: its commands name it, or stand in it.
pub(crate) fn processes(place: &Path) -> Vec<String> {
    let name = place.display().to_string();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let path = process.path();
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let stands = std::fs::read_link(path.join("cwd")).unwrap_or_default();
        let own = path.ends_with(std::process::id().to_string());
        if !own && (line.contains(&name) || stands.starts_with(place)) {
            found.push(format!("{}: {line}", path.display()));
        }
    }
    found
}
