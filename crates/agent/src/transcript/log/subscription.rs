//! Subscriptions: history, then live.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use journeyman_protocol::{Channel, Envelope, Event, Seq};

use super::core::{LogCore, lock};
use super::text_references::{PAGE_BYTES, ReferenceResolver};
use super::timeline::{LiveStart, NextItem, SubscriberId};

use crate::AgentError;

/// Selects the events of a subscriber: by default all. An event has to pass both conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// The channels to include; `None` for all.
    pub channels: Option<Vec<Channel>>,
    /// The kinds to include, as in an event's `event` field; `None` for all.
    pub kinds: Option<Vec<String>>,
}

impl EventFilter {
    /// Includes all events.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Includes only events of these channels.
    #[must_use]
    pub fn channels(mut self, channels: impl IntoIterator<Item = Channel>) -> Self {
        self.channels = Some(channels.into_iter().collect());
        self
    }

    /// Includes only events of these kinds, such as `tool_end`.
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

/// The position at which a subscription begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Since {
    /// Only events from now on.
    #[default]
    Now,
    /// The entries after this one; [`Seq::START`] gives the whole history.
    Seq(Seq),
}

/// A view of a session's events, in the order of the log.
///
/// A subscriber that joins while a block is streamed first gets one delta with the block's text so
/// far (offset 0). A subscriber that falls behind the events kept in memory gets one
/// [`Event::Lagged`], whatever its filter, and then every entry that it missed. It then continues
/// live like a new subscriber, and has lost only streamed pieces.
pub struct Subscription {
    shared: Arc<LogCore>,
    filter: EventFilter,
    reader: SubscriberId,
    /// The position up to which all events were taken from the store or the timeline.
    last: Seq,
    /// Events that were taken and are returned next.
    ready: VecDeque<Arc<Envelope>>,
    /// The stored entries that are still to be read.
    history: Option<StoredHistory>,
}

/// Stored entries to read before the subscription continues live.
struct StoredHistory {
    /// The end of the stored entries, and what follows them.
    cut: LiveStart,
    resolver: ReferenceResolver,
}

impl Subscription {
    pub(super) fn new(shared: Arc<LogCore>, filter: EventFilter, since: Since) -> Self {
        let (reader, cut) = lock(&shared.timeline).add_subscriber();
        let last = match since {
            Since::Now => cut.position,
            Since::Seq(seq) => seq,
        };
        let mut subscription = Self { shared, filter, reader, last, ready: VecDeque::new(), history: None };
        subscription.begin_history(cut);
        subscription
    }

    /// Returns the next event, or `None` when the session is over. The future may be dropped and
    /// the function called again without losing an event.
    ///
    /// # Errors
    /// Errors of the store when entries can't be read; the next call tries again.
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

    /// Converts the subscription to a stream, which ends with the session. After an error the
    /// stream may be polled again.
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
            envelope.seq.is_none_or(|seq| seq > last)
                && filter.includes(envelope.channel, envelope.event.kind())
        })
    }

    /// Reports that the subscriber fell behind, and reads the missed entries from the store.
    fn catch_up(&mut self) {
        let lagged = self.shared.live_envelope(Event::Lagged { after: self.last });
        self.ready.push_back(Arc::new(lagged));
        let cut = lock(&self.shared.timeline).move_to_live(self.reader);
        self.begin_history(cut);
    }

    fn begin_history(&mut self, cut: LiveStart) {
        if self.last < cut.position {
            self.history = Some(StoredHistory { cut, resolver: ReferenceResolver::default() });
        } else {
            self.show_open_blocks(cut);
        }
    }

    fn show_open_blocks(&mut self, cut: LiveStart) {
        let live = |event| Arc::new(self.shared.live_envelope(event));
        let open = cut.open.into_iter().map(live).chain(cut.questions);
        let is_wanted =
            |envelope: &Arc<Envelope>| self.filter.includes(envelope.channel, envelope.event.kind());
        let wanted: Vec<_> = open.filter(is_wanted).collect();
        self.ready.extend(wanted);
    }

    /// Reads one page of history, and continues live after the last page.
    async fn read_page(&mut self) -> Result<(), AgentError> {
        let Some(history) = &mut self.history else { return Ok(()) };
        let (store, session) = (&*self.shared.store, &self.shared.session);
        let mut page = store.read_chunk(session, self.last, PAGE_BYTES).await?;
        let upto = history.cut.position;
        page.retain(|entry| entry.seq <= upto);
        let filter = &self.filter;
        let envelopes = history
            .resolver
            .resolve_page(store, session, &page, |channel, kind| filter.includes(channel, kind))
            .await?;
        // Nothing has been changed before this line: a call that was dropped or failed reads the
        // page again.
        let agent = &self.shared.agent;
        let with_path = |envelope| Arc::new(Envelope { agent: agent.clone(), ..envelope });
        self.ready.extend(envelopes.into_iter().map(with_path));
        self.last = page.last().map_or(upto, |entry| entry.seq);
        if self.last < upto {
            return Ok(());
        }
        let Some(history) = self.history.take() else { return Ok(()) };
        let again = {
            let mut timeline = lock(&self.shared.timeline);
            timeline.is_behind(self.reader).then(|| timeline.move_to_live(self.reader))
        };
        match again {
            // Reading took so long that the timeline has dropped the next events. The subscriber
            // was never live, so it isn't reported as behind.
            Some(cut) => self.begin_history(cut),
            None => self.show_open_blocks(history.cut),
        }
        Ok(())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.shared.timeline).remove_subscriber(self.reader);
    }
}
