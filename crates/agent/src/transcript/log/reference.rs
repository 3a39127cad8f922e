//! Text that is on disk once.
//!
//! A message's record holds its text, thinking and calls. Events that repeat a long one of those
//! are stored with a note of where it is instead: beside the event's own fields, `"$from":
//! {"/text": {"message": 7, "bytes": 1234}}` says that what belongs at the JSON pointer `/text` is
//! the text of the message in entry 7. Whoever reads events from the store gets them whole again.

use std::collections::{BTreeMap, VecDeque};

use futures_util::future::BoxFuture;
use journeyman_protocol::{
    Block, CallId, Channel, ContentHash, Envelope, Event, Message, Role, Seq, SessionId,
};
use journeyman_store::{Entry, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::entry::envelope_of;
use crate::AgentError;
use crate::transcript::record::{Record, record_of};

/// The field that says what was left out.
const REFERENCE_FIELD: &str = "$from";
/// Bytes of text from which on it is worth it: the note takes some 60.
const MIN_TEXT_BYTES: usize = 256;
/// Bytes of a call's input from which on it is worth it; shorter ones are read more often than they
/// are large.
const MIN_INPUT_BYTES: usize = 2 * 1024;
/// Pieces of recent messages that are remembered, 100 bytes each: a reply with some dozens of large
/// calls.
const MAX_KNOWN_PIECES: usize = 64;
/// Bytes of entries that are read at once: some hundreds of usual ones.
pub(crate) const PAGE_BYTES: usize = 256 * 1024;
/// Messages that are kept while pages are read: a turn's events name its message, and `done` the
/// last one.
const MAX_CACHED_MESSAGES: usize = 4;

/// Which part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MessagePart {
    Text,
    Thinking,
    Input(CallId),
}

/// A long part of a message, told by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MessagePiece {
    part: MessagePart,
    hash: ContentHash,
}

/// A place of an event where a piece stands.
#[derive(Debug)]
pub(super) struct RepeatedPiece {
    pointer: &'static str,
    piece: MessagePiece,
    pub(super) bytes: usize,
}

/// Where a stored event's piece is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct PieceSource {
    message: Seq,
    bytes: usize,
}

/// Pieces and the messages that have them, the newest last.
#[derive(Debug, Default)]
pub(super) struct KnownPieces(VecDeque<(Seq, MessagePiece)>);

impl KnownPieces {
    pub(super) fn add(&mut self, seq: Seq, pieces: &[MessagePiece]) {
        self.0.extend(pieces.iter().map(|piece| (seq, piece.clone())));
        while self.0.len() > MAX_KNOWN_PIECES {
            self.0.pop_front();
        }
    }

    pub(super) fn find(&self, piece: &MessagePiece) -> Option<Seq> {
        self.0.iter().rev().find(|(_, known)| known == piece).map(|(seq, _)| *seq)
    }
}

/// Returns the parts of a message's record that events may repeat.
pub(super) fn pieces_of_record(record: &Record) -> Vec<MessagePiece> {
    let Record::Message { message, calls, .. } = record else { return Vec::new() };
    if message.role != Role::Assistant {
        return Vec::new();
    }
    let text = long_text(MessagePart::Text, &message.text());
    let thinking = long_text(MessagePart::Thinking, &thinking_of(message));
    let inputs = message.tool_uses().chain(calls).filter_map(|call| long_input(&call.id, &call.input));
    [text, thinking].into_iter().flatten().chain(inputs).map(|(piece, _)| piece).collect()
}

/// Returns the parts of an event that may be on record already.
pub(super) fn pieces_of_event(event: &Event) -> Vec<RepeatedPiece> {
    let places = match event {
        Event::TurnFinished { text, thinking, .. } => {
            vec![
                ("/text", long_text(MessagePart::Text, text)),
                ("/thinking", long_text(MessagePart::Thinking, thinking)),
            ]
        }
        Event::Done { report } => vec![("/report/text", long_text(MessagePart::Text, &report.text))],
        Event::ToolStart { call, input, .. } | Event::PermissionRequired { call, input, .. } => {
            vec![("/input", long_input(call, input))]
        }
        _ => Vec::new(),
    };
    let repeat = |(pointer, found): (_, Option<(MessagePiece, usize)>)| {
        found.map(|(piece, bytes)| RepeatedPiece { pointer, piece, bytes })
    };
    places.into_iter().filter_map(repeat).collect()
}

fn long_text(part: MessagePart, text: &str) -> Option<(MessagePiece, usize)> {
    (text.len() >= MIN_TEXT_BYTES)
        .then(|| (MessagePiece { part, hash: ContentHash::of(text.as_bytes()) }, text.len()))
}

fn long_input(call: &CallId, input: &Value) -> Option<(MessagePiece, usize)> {
    let bytes = serde_json::to_vec(input).ok()?;
    let piece = || MessagePiece { part: MessagePart::Input(call.clone()), hash: ContentHash::of(&bytes) };
    (bytes.len() >= MIN_INPUT_BYTES).then(|| (piece(), bytes.len()))
}

/// The message's thinking as events have it.
fn thinking_of(message: &Message) -> String {
    let thoughts = message.content.iter().filter_map(|block| match block {
        Block::Thinking { text, .. } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    thoughts.collect::<Vec<_>>().join("\n")
}

/// An event without the pieces that `find` knows a message for.
pub(super) fn replace_pieces(
    value: &Value,
    repeats: &[RepeatedPiece],
    find: impl Fn(&MessagePiece) -> Option<Seq>,
) -> Value {
    let mut value = value.clone();
    let mut sources = Map::new();
    for repeat in repeats {
        let Some(message) = find(&repeat.piece) else { continue };
        let Some(place) = value.pointer_mut(repeat.pointer) else { continue };
        let Ok(source) = serde_json::to_value(PieceSource { message, bytes: repeat.bytes }) else { continue };
        // Of the same type, so that whoever doesn't know references can read the rest.
        *place = if place.is_string() { Value::String(String::new()) } else { Value::Null };
        sources.insert(repeat.pointer.to_owned(), source);
    }
    if let (Some(fields), false) = (value.as_object_mut(), sources.is_empty()) {
        fields.insert(REFERENCE_FIELD.to_owned(), Value::Object(sources));
    }
    value
}

/// At most `limit` events of the entries after `after`, whole: what was stored as a reference is in
/// its place. Records, and events that this version doesn't know, are passed over.
///
/// # Errors
/// The store's.
pub async fn events(
    store: &dyn Store,
    session: &SessionId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Envelope>, AgentError> {
    let (mut pages, mut events) = (EventPages::new(store, session, after), Vec::new());
    while events.len() < limit
        && let Some(page) = pages.next().await?
    {
        events.extend(page);
    }
    events.truncate(limit);
    Ok(events)
}

/// All events of a session, page by page, whole as [`events`] returns them.
pub struct EventPages<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
    resolver: Resolver,
    position: Seq,
    /// The next page, if it was requested already.
    next: Option<BoxFuture<'a, Result<Vec<Entry>, StoreError>>>,
}

impl<'a> EventPages<'a> {
    /// Begins to read behind an entry.
    #[must_use]
    pub fn new(store: &'a dyn Store, session: &'a SessionId, after: Seq) -> Self {
        Self { store, session, resolver: Resolver::default(), position: after, next: None }
    }

    /// Returns the entry up to which the log has been read.
    #[must_use]
    pub fn position(&self) -> Seq {
        self.position
    }

    /// Returns the events of some hundreds of entries, `None` at the end of the log.
    ///
    /// # Errors
    /// The store's.
    pub async fn next(&mut self) -> Result<Option<Vec<Envelope>>, AgentError> {
        let read = |after| self.store.read_chunk(self.session, after, PAGE_BYTES);
        let page = self.next.take().unwrap_or_else(|| read(self.position)).await?;
        let Some(last) = page.last().map(|entry| entry.seq) else { return Ok(None) };
        // Requested before this page is taken: a store with its own thread reads meanwhile.
        self.next = Some(read(last));
        self.position = last;
        let events = self.resolver.resolve_page(self.store, self.session, &page, |_, _| true).await?;
        Ok(Some(events))
    }
}

/// Puts what was left out of stored events back in its place.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    /// The messages that were named last, the newest last.
    messages: VecDeque<(Seq, Option<Record>)>,
}

impl Resolver {
    /// The events of a page that are wanted.
    pub(super) async fn resolve_page(
        &mut self,
        store: &dyn Store,
        session: &SessionId,
        page: &[Entry],
        wants: impl Fn(Channel, &str) -> bool,
    ) -> Result<Vec<Envelope>, AgentError> {
        let mut envelopes = Vec::new();
        for entry in
            page.iter().filter(|entry| entry.channel.is_some_and(|channel| wants(channel, &entry.kind)))
        {
            let envelope = match parse_references(entry) {
                None => envelope_of(session, entry),
                Some((mut value, sources)) => {
                    for (pointer, source) in sources {
                        let record = self.find_message(store, session, page, source.message).await?;
                        restore_piece(&mut value, &pointer, source, record);
                    }
                    parse_envelope(session, entry, value)
                }
            };
            envelopes.extend(envelope);
        }
        Ok(envelopes)
    }

    /// The message in an entry; from the page or from memory, if it is there.
    async fn find_message(
        &mut self,
        store: &dyn Store,
        session: &SessionId,
        page: &[Entry],
        seq: Seq,
    ) -> Result<Option<&Record>, AgentError> {
        if !self.messages.iter().any(|(cached, _)| *cached == seq) {
            let record = match page.iter().find(|entry| entry.seq == seq) {
                Some(entry) => record_of(entry),
                None => {
                    let before = Seq(seq.0.saturating_sub(1));
                    store.read(session, before, 1).await?.first().and_then(record_of)
                }
            };
            self.messages.push_back((seq, record));
            if self.messages.len() > MAX_CACHED_MESSAGES {
                self.messages.pop_front();
            }
        }
        Ok(self.messages.iter().find(|(cached, _)| *cached == seq).and_then(|(_, record)| record.as_ref()))
    }
}

/// A stored event with what was left out of it, if anything was.
fn parse_references(entry: &Entry) -> Option<(Value, BTreeMap<String, PieceSource>)> {
    // Only these kinds have any; the others need not be looked into.
    if !["turn_finished", "done", "tool_start", "permission_required"].contains(&entry.kind.as_str()) {
        return None;
    }
    let mut value: Value = serde_json::from_slice(&entry.payload).ok()?;
    let sources = value.as_object_mut()?.remove(REFERENCE_FIELD)?;
    Some((value, serde_json::from_value(sources).ok()?))
}

fn restore_piece(value: &mut Value, pointer: &str, source: PieceSource, record: Option<&Record>) {
    let call = value.get("call").and_then(Value::as_str).map(CallId::new);
    let found = match record {
        Some(Record::Message { message, calls, .. }) => match pointer {
            "/text" | "/report/text" => Some(Value::String(message.text())),
            "/thinking" => Some(Value::String(thinking_of(message))),
            _ => message
                .tool_uses()
                .chain(calls)
                .find(|used| Some(&used.id) == call.as_ref())
                .map(|used| used.input.clone()),
        },
        _ => None,
    };
    // A call is known by its name, a text by its length: this may be another session's entry, such
    // as in a fork.
    let whole =
        |found: &Value| pointer == "/input" || found.as_str().is_some_and(|text| text.len() == source.bytes);
    let missing =
        || Value::String(format!("(kept in entry {} of the log, which doesn't have it)", source.message));
    if let Some(place) = value.pointer_mut(pointer) {
        *place = found.filter(whole).unwrap_or_else(missing);
    }
}

fn parse_envelope(session: &SessionId, entry: &Entry, value: Value) -> Option<Envelope> {
    let (channel, event) = (entry.channel?, serde_json::from_value(value).ok()?);
    let (session, agent) = (session.clone(), Vec::new());
    Some(Envelope { session, seq: Some(entry.seq), at: entry.at, channel, agent, event })
}
