//! Tests of the log's promises, over a store that can be told to fail.

use std::sync::{Arc, LazyLock};

use futures_util::FutureExt as _;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{Channel, Envelope, Event, Seq, SessionId, UnixMillis};
use journeyman_store::{Entry, MemoryStore, NewEntry, SqliteStore, Store};

use super::{EventFilter, Log, LogEntry, Since, SubscriberBufferLimits, Subscription, envelope_of};
use crate::transcript::record::Record;
use store::Gated;

mod random;
mod references;
mod store;
mod subscribing;
mod writing;

/// A log over a store that can fail.
struct Bench {
    store: Arc<Gated>,
    log: Log,
}

/// Values that the tests' redactor knows.
const SECRET: &str = "hunter2-hunter2-hunter2";

fn session() -> SessionId {
    SessionId::new(UnixMillis(1), 1)
}

/// A log at `last` over any store.
fn log_over(store: Arc<dyn Store>, last: Seq, bounds: SubscriberBufferLimits) -> Log {
    // Made once: it takes longer than most of these tests.
    static REDACTOR: LazyLock<Arc<Redactor>> = LazyLock::new(|| Arc::new(Redactor::new([SECRET.to_owned()])));
    Log::new(store, session(), last, crate::Clock::new(|| UnixMillis(7)), Arc::clone(&REDACTOR), bounds)
}

impl Bench {
    async fn new() -> Self {
        Self::bounded(SubscriberBufferLimits::default()).await
    }

    async fn bounded(bounds: SubscriberBufferLimits) -> Self {
        let store = Arc::new(Gated::default());
        store.create(&session(), "/", "", UnixMillis(1)).await.unwrap();
        Self { log: log_over(Arc::clone(&store) as _, Seq::START, bounds), store }
    }

    /// A few envelopes are the most that is kept for a slow subscriber.
    async fn small() -> Self {
        Self::bounded(SubscriberBufferLimits { envelopes: 8, keep: 4, ..SubscriberBufferLimits::default() })
            .await
    }

    /// Returns the entries in the store.
    async fn entries(&self) -> Vec<Entry> {
        self.store.inner.read(&session(), Seq::START, usize::MAX).await.unwrap()
    }

    /// Returns the entries in the store, in short.
    async fn written(&self) -> Vec<String> {
        self.entries().await.iter().map(short).collect()
    }

    fn subscribe(&self, since: Since) -> Subscription {
        self.log.subscribe(EventFilter::all(), since)
    }
}

/// The words of the entries that [`says`] and [`keeps`] make.
fn short(entry: &Entry) -> String {
    match (envelope_of(&session(), entry), crate::record_of(entry)) {
        (Some(Envelope { event: Event::Warning { message }, .. }), _) => message,
        (None, Some(Record::Snapshot { name, .. })) => name,
        other => format!("{other:?}"),
    }
}

/// An event of the monitor channel.
fn says(message: impl Into<String>) -> LogEntry {
    Event::Warning { message: message.into() }.into()
}

/// A record.
fn keeps(name: impl Into<String>) -> LogEntry {
    Record::Snapshot { name: name.into(), at: Seq::START }.into()
}

/// A piece of text that is being streamed.
fn delta(block: u32, offset: u64, text: &str) -> Event {
    Event::TextDelta { block, offset, text: text.to_owned() }
}

/// Everything that a subscriber can be given without waiting.
async fn drain(subscription: &mut Subscription) -> Vec<Arc<Envelope>> {
    let mut taken = Vec::new();
    // The store of these tests answers at once, so what is not ready has not happened.
    while let Some(next) = subscription.next().now_or_never() {
        let Some(envelope) = next.unwrap() else { break };
        taken.push(envelope);
    }
    taken
}

/// The same, in short: messages of warnings, and the kinds of other events.
async fn drained(subscription: &mut Subscription) -> Vec<String> {
    drain(subscription).await.iter().map(|envelope| words(&envelope.event)).collect()
}

fn words(event: &Event) -> String {
    match event {
        Event::Warning { message } => message.clone(),
        Event::TextDelta { block, offset, text } => format!("{block}@{offset} {text}"),
        Event::ThinkingDelta { block, offset, text } => format!("thinking {block}@{offset} {text}"),
        Event::Lagged { after } => format!("lagged {after}"),
        Event::StorageFailure { waiting, .. } => format!("storage failure, {waiting} wait"),
        other => other.kind().to_owned(),
    }
}
