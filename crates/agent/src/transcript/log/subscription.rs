//! Subscriptions: history, then live.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use journeyman_protocol::{Channel, Envelope, Event, Seq};

use super::core::{LogCore, lock};
use super::reference::{PAGE_BYTES, Resolver};
use super::timeline::{NextItem, SubscriberId};

use crate::AgentError;

/// Which events a subscriber wants: by default all. An event has to pass both conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Of these channels; absent for all.
    pub channels: Option<Vec<Channel>>,
    /// Of these kinds, as in an event's `event` field; absent for all.
    pub kinds: Option<Vec<String>>,
}

impl EventFilter {
    /// All events.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only events of these channels.
    #[must_use]
    pub fn channels(mut self, channels: impl IntoIterator<Item = Channel>) -> Self {
        self.channels = Some(channels.into_iter().collect());
        self
    }

    /// Only events of these kinds, such as `tool_end`.
    #[must_use]
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.kinds = Some(kinds.into_iter().map(Into::into).collect());
        self
    }

    /// Returns true if an event of this channel and kind passes.
    #[must_use]
    pub fn includes(&self, channel: Channel, kind: &str) -> bool {
        self.channels.as_ref().is_none_or(|channels| channels.contains(&channel))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|wanted| wanted == kind))
    }
}

/// Where a subscription begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Since {
    /// With what comes from now on.
    #[default]
    Now,
    /// With the entry after this one; [`Seq::START`] is the whole history.
    Seq(Seq),
}

/// A view of a session's events, in the order of the log.
///
/// Who comes in while a block is streamed first gets one delta with the block's text so far (offset
/// 0). One that falls behind what is kept in memory gets one [`Event::Lagged`], whatever its
/// filter, then every entry that it missed, then goes on live as one who just came in; only
/// streamed pieces are lost to it.
pub struct Subscription {
    shared: Arc<LogCore>,
    filter: EventFilter,
    reader: SubscriberId,
    /// All that was wanted up to here has been taken from the store or the timeline.
    last: Seq,
    /// Taken, and given next.
    ready: VecDeque<Arc<Envelope>>,
    /// Still to be read from the store.
    history: Option<StoredHistory>,
}

/// Entries to be read before it goes on live.
struct StoredHistory {
    upto: Seq,
    /// The events that follow them.
    open: Vec<Event>,
    resolver: Resolver,
}

impl Subscription {
    pub(super) fn new(shared: Arc<LogCore>, filter: EventFilter, since: Since) -> Self {
        let (reader, cut) = lock(&shared.timeline).add_subscriber();
        let last = match since {
            Since::Now => cut.position,
            Since::Seq(seq) => seq,
        };
        let mut subscription = Self { shared, filter, reader, last, ready: VecDeque::new(), history: None };
        subscription.begin_history(cut.position, cut.open);
        subscription
    }

    /// The next event, or `None` when the session is over. May be dropped and called again: nothing
    /// is lost.
    ///
    /// # Errors
    /// The store's, when entries can't be read; the next call tries again.
    pub async fn next(&mut self) -> Result<Option<Arc<Envelope>>, AgentError> {
        let shared = Arc::clone(&self.shared);
        loop {
            if let Some(envelope) = self.ready.pop_front() {
                return Ok(Some(envelope));
            }
            if self.history.is_some() {
                self.read_page().await?;
                continue;
            }
            // Before the look, so that nothing that comes between the two is slept through.
            let changed = shared.changed.notified();
            match self.next_item() {
                NextItem::Envelope(envelope) => {
                    self.last = envelope.seq.unwrap_or(self.last);
                    return Ok(Some(envelope));
                }
                NextItem::End => return Ok(None),
                NextItem::Behind => self.catch_up(),
                NextItem::Nothing => changed.await,
            }
        }
    }

    /// The same as a stream. It ends with the session; after an error it may be polled again.
    pub fn into_stream(self) -> impl Stream<Item = Result<Arc<Envelope>, AgentError>> + Send {
        unfold(self, |mut subscription| async {
            let next = subscription.next().await.transpose()?;
            Some((next, subscription))
        })
    }

    /// Returns the events that the filter lets through.
    #[must_use]
    pub fn filter(&self) -> &EventFilter {
        &self.filter
    }

    fn next_item(&mut self) -> NextItem {
        let (filter, last) = (&self.filter, self.last);
        lock(&self.shared.timeline).next_item(self.reader, |envelope| {
            envelope.seq.is_none_or(|seq| seq > last) && filter.includes(envelope.channel, envelope.event.kind())
        })
    }

    /// Says that it fell behind, and reads from the store what it missed.
    fn catch_up(&mut self) {
        let lagged = self.shared.live_envelope(Event::Lagged { after: self.last });
        self.ready.push_back(Arc::new(lagged));
        let cut = lock(&self.shared.timeline).move_to_live(self.reader);
        self.begin_history(cut.position, cut.open);
    }

    fn begin_history(&mut self, upto: Seq, open: Vec<Event>) {
        if self.last < upto {
            self.history = Some(StoredHistory { upto, open, resolver: Resolver::default() });
        } else {
            self.show_open(open);
        }
    }

    fn show_open(&mut self, open: Vec<Event>) {
        let wanted = open.into_iter().filter(|event| self.filter.includes(event.channel(), event.kind()));
        self.ready.extend(wanted.map(|event| Arc::new(self.shared.live_envelope(event))));
    }

    /// Reads one page of history; behind the last one it goes on live.
    async fn read_page(&mut self) -> Result<(), AgentError> {
        let Some(history) = &mut self.history else { return Ok(()) };
        let (store, session) = (&*self.shared.store, &self.shared.session);
        let mut page = store.read_chunk(session, self.last, PAGE_BYTES).await?;
        page.retain(|entry| entry.seq <= history.upto);
        let filter = &self.filter;
        let envelopes = history
            .resolver
            .resolve_page(store, session, &page, usize::MAX, |channel, kind| filter.includes(channel, kind))
            .await?;
        // Nothing has been changed before this line: a call that was dropped or failed reads the
        // page again.
        self.ready.extend(envelopes.into_iter().map(Arc::new));
        self.last = page.last().map_or(history.upto, |entry| entry.seq);
        if self.last < history.upto {
            return Ok(());
        }
        let open = std::mem::take(&mut history.open);
        self.history = None;
        let again = {
            let mut timeline = lock(&self.shared.timeline);
            timeline.is_behind(self.reader).then(|| timeline.move_to_live(self.reader))
        };
        match again {
            // Reading took so long that the other end is not in memory any more. It was never live:
            // nothing that it had to be told of is lost to it.
            Some(cut) => self.begin_history(cut.position, cut.open),
            None => self.show_open(open),
        }
        Ok(())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.shared.timeline).remove_subscriber(self.reader);
    }
}
