//! Events that were shown and that some subscriber has not taken yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use journeyman_protocol::{Envelope, Event, Seq};

/// Size of an envelope without its text, in bytes.
const ENVELOPE_OVERHEAD_BYTES: usize = 256;
/// Capacity in envelopes that an empty buffer may keep: 2 KiB.
const SPARE_CAPACITY: usize = 128;

/// Limits of the memory for subscribers that are slower than the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SubscriberBufferLimits {
    /// Maximum number of envelopes. Beyond it the oldest are dropped.
    pub(crate) envelopes: usize,
    /// Number of envelopes kept after dropping.
    pub(crate) keep: usize,
    /// Approximate maximum bytes of all envelopes. Beyond it the oldest are dropped down to half.
    pub(crate) bytes: usize,
}

impl Default for SubscriberBufferLimits {
    /// Returns bounds of 10,000 envelopes and 8 MiB. 10,000 envelopes, cut to 5,000, hold some
    /// minutes of streamed text. With 8 MiB, ten sessions with hanging surfaces stay below 100 MiB
    /// even while whole files are written.
    fn default() -> Self {
        Self { envelopes: 10_000, keep: 5_000, bytes: 8 * 1024 * 1024 }
    }
}

/// An envelope for subscribers.
#[derive(Debug)]
pub(super) struct ShownEnvelope {
    pub(super) envelope: Arc<Envelope>,
    /// The approximate size in bytes.
    pub(super) weight: usize,
}

/// The id of a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubscriberId(u64);

/// The point where a subscriber switches from the store to live events.
#[derive(Debug)]
pub(super) struct LiveStart {
    /// The last entry to read from the store.
    pub(super) position: Seq,
    /// One delta for each block that is being streamed, with its text so far.
    pub(super) open: Vec<Event>,
    /// The questions of agents that nobody has answered. They are in no entry of this log.
    pub(super) questions: Vec<Arc<Envelope>>,
}

/// The next item for a subscriber.
#[derive(Debug)]
pub(super) enum NextItem {
    /// An envelope.
    Envelope(Arc<Envelope>),
    /// No envelope yet.
    Nothing,
    /// The end of the log.
    End,
    /// The subscriber missed envelopes that were dropped.
    Behind,
}

/// Envelopes that some subscriber has not taken yet, numbered consecutively.
#[derive(Debug)]
pub(super) struct Timeline {
    bounds: SubscriberBufferLimits,
    shown: VecDeque<ShownEnvelope>,
    /// The number of the oldest envelope in `shown`.
    first: u64,
    bytes: usize,
    position: Seq,
    open: OpenBlocks,
    /// The questions of agents that nobody has answered.
    questions: Vec<Arc<Envelope>>,
    /// The number of each subscriber's next envelope.
    readers: BTreeMap<SubscriberId, u64>,
    registered: u64,
    closed: bool,
}

impl Timeline {
    pub(super) fn new(position: Seq, bounds: SubscriberBufferLimits) -> Self {
        Self {
            bounds,
            shown: VecDeque::new(),
            first: 0,
            bytes: 0,
            position,
            open: OpenBlocks::default(),
            questions: Vec::new(),
            readers: BTreeMap::new(),
            registered: 0,
            closed: false,
        }
    }

    /// Returns the last durable entry.
    pub(super) fn position(&self) -> Seq {
        self.position
    }

    /// Shows the events among the entries that became durable up to `position`.
    pub(super) fn publish(&mut self, position: Seq, shown: Vec<ShownEnvelope>) {
        self.position = position;
        for showing in shown {
            self.add_envelope(showing);
        }
    }

    /// Shows a live-only event.
    pub(super) fn show_live(&mut self, envelope: Envelope) {
        let weight = text_of(&envelope.event).len();
        self.add_envelope(ShownEnvelope { envelope: Arc::new(envelope), weight });
    }

    fn add_envelope(&mut self, mut showing: ShownEnvelope) {
        if !self.closed {
            self.open.observe_event(&showing.envelope.event);
            self.observe_question(&showing.envelope);
        }
        if self.readers.is_empty() {
            return;
        }
        showing.weight = showing.weight.saturating_add(ENVELOPE_OVERHEAD_BYTES);
        self.bytes = self.bytes.saturating_add(showing.weight);
        self.shown.push_back(showing);
        if self.shown.len() > self.bounds.envelopes {
            while self.shown.len() > self.bounds.keep {
                self.drop_oldest();
            }
        }
        if self.bytes > self.bounds.bytes {
            while self.bytes > self.bounds.bytes / 2 && self.shown.len() > 1 {
                self.drop_oldest();
            }
        }
    }

    /// Keeps an agent's question until it is decided, for subscribers that come later.
    fn observe_question(&mut self, envelope: &Arc<Envelope>) {
        match &envelope.event {
            Event::PermissionRequired { .. } if envelope.seq.is_none() => {
                self.questions.push(Arc::clone(envelope));
            }
            Event::PermissionDecided { call: decided, .. } => self.questions.retain(
                |kept| !matches!(&kept.event, Event::PermissionRequired { call, .. } if call == decided),
            ),
            Event::Done { .. } => self.questions.clear(),
            _ => {}
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.shown.pop_front() {
            self.first += 1;
            self.bytes = self.bytes.saturating_sub(oldest.weight);
        }
    }

    /// Drops envelopes that every subscriber has taken.
    fn drop_taken(&mut self) {
        let taken = self.readers.values().copied().min().unwrap_or_else(|| self.next_number());
        while self.first < taken && !self.shown.is_empty() {
            self.drop_oldest();
        }
        // Frees the capacity of a burst once all subscribers have taken it.
        if self.shown.is_empty() && self.shown.capacity() > SPARE_CAPACITY {
            self.shown.shrink_to_fit();
        }
    }

    /// Returns the number of the next envelope.
    fn next_number(&self) -> u64 {
        self.first.saturating_add(self.shown.len() as u64)
    }

    /// Adds a subscriber, and returns its cut.
    pub(super) fn add_subscriber(&mut self) -> (SubscriberId, LiveStart) {
        let reader = SubscriberId(self.registered);
        self.registered += 1;
        (reader, self.move_to_live(reader))
    }

    /// Moves a subscriber to the live end, and returns its new cut.
    pub(super) fn move_to_live(&mut self, reader: SubscriberId) -> LiveStart {
        self.readers.insert(reader, self.next_number());
        self.drop_taken();
        let (open, questions) = (self.open.current_deltas(), self.questions.clone());
        LiveStart { position: self.position, open, questions }
    }

    pub(super) fn remove_subscriber(&mut self, reader: SubscriberId) {
        self.readers.remove(&reader);
        self.drop_taken();
    }

    /// Returns true if envelopes that a subscriber had not taken were dropped.
    pub(super) fn is_behind(&self, reader: SubscriberId) -> bool {
        self.readers.get(&reader).is_some_and(|next| *next < self.first)
    }

    /// Returns the next envelope that a subscriber wants.
    pub(super) fn next_item(&mut self, reader: SubscriberId, wants: impl Fn(&Envelope) -> bool) -> NextItem {
        let Some(from) = self.readers.get(&reader).copied() else { return NextItem::End };
        let Some(skipped) = from.checked_sub(self.first) else { return NextItem::Behind };
        let waiting = self.shown.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX));
        let found = waiting.zip(from..).find(|(showing, _)| wants(&showing.envelope));
        let (next, upto) = match found {
            Some((showing, number)) => (NextItem::Envelope(Arc::clone(&showing.envelope)), number + 1),
            None if self.closed => (NextItem::End, self.next_number()),
            None => (NextItem::Nothing, self.next_number()),
        };
        self.readers.insert(reader, upto);
        if from == self.first {
            self.drop_taken();
        }
        next
    }

    /// Returns the number of subscribers that have envelopes to take.
    #[cfg(test)]
    pub(super) fn count_subscribers_behind(&self) -> usize {
        self.readers.values().filter(|next| **next < self.next_number()).count()
    }

    /// Frees unused memory.
    pub(super) fn release_memory(&mut self) {
        self.drop_taken();
        self.shown.shrink_to_fit();
        self.open = OpenBlocks::default();
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.open = OpenBlocks::default();
        self.questions.clear();
    }
}

#[cfg(test)]
impl Timeline {
    /// Returns the approximate size of the kept envelopes, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of envelopes that fit without allocating.
    pub(super) fn capacity(&self) -> usize {
        self.shown.capacity()
    }
}

/// The kind of a streamed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BlockKind {
    Text,
    Thinking,
}

/// The text so far of blocks that are being streamed, for subscribers that join midway.
#[derive(Debug, Default)]
struct OpenBlocks(BTreeMap<(u32, BlockKind), String>);

impl OpenBlocks {
    fn observe_event(&mut self, event: &Event) {
        match event {
            Event::TextDelta { block, offset, text } => {
                self.append_text((*block, BlockKind::Text), *offset, text)
            }
            Event::ThinkingDelta { block, offset, text } => {
                self.append_text((*block, BlockKind::Thinking), *offset, text)
            }
            Event::TextStart { block } | Event::TextEnd { block, .. } => {
                self.remove_block((*block, BlockKind::Text))
            }
            Event::ThinkingStart { block } | Event::ThinkingEnd { block, .. } => {
                self.remove_block((*block, BlockKind::Thinking));
            }
            // The message is complete, or its streamed text was discarded.
            Event::TurnStarted { .. }
            | Event::TurnFinished { .. }
            | Event::Retry { .. }
            | Event::Done { .. } => {
                self.0.clear();
            }
            _ => {}
        }
    }

    fn append_text(&mut self, block: (u32, BlockKind), offset: u64, piece: &str) {
        let text = self.0.entry(block).or_default();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if text.is_char_boundary(offset) {
            text.truncate(offset);
            text.push_str(piece);
        } else {
            // The beginning of the block is missing.
            self.0.remove(&block);
        }
    }

    fn remove_block(&mut self, block: (u32, BlockKind)) {
        self.0.remove(&block);
    }

    fn current_deltas(&self) -> Vec<Event> {
        let delta = |(&(block, kind), text): (&(u32, BlockKind), &String)| match kind {
            BlockKind::Text => Event::TextDelta { block, offset: 0, text: text.clone() },
            BlockKind::Thinking => Event::ThinkingDelta { block, offset: 0, text: text.clone() },
        };
        self.0.iter().filter(|(_, text)| !text.is_empty()).map(delta).collect()
    }
}

/// Returns the text of a live-only event.
fn text_of(event: &Event) -> &str {
    match event {
        Event::TextDelta { text, .. }
        | Event::TextEnd { text, .. }
        | Event::ThinkingDelta { text, .. }
        | Event::ThinkingEnd { text, .. }
        | Event::ToolOutput { text, .. }
        | Event::CheckOutput { text }
        | Event::StorageFailure { message: text, .. } => text,
        _ => "",
    }
}
