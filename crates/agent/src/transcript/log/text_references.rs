//! Stores a text that several log entries repeat only once.
//!
//! A message's record holds its text, thinking and calls. Events that repeat such a part, if it is
//! long, are stored with a reference to the record: beside the event's own fields, `"$from":
//! {"/text": {"message": 7, "bytes": 1234}}` says that the value at the JSON pointer `/text` is the
//! text of the message in entry 7. [`events`] and [`EventPages`] return events with all parts
//! restored.

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

/// The JSON field with the references to the left-out parts.
const REFERENCE_FIELD: &str = "$from";
/// Minimum bytes of a text that is replaced by a reference, which takes some 60 bytes.
const MIN_TEXT_BYTES: usize = 256;
/// Minimum bytes of a call's input that is replaced by a reference. Shorter inputs are read too
/// often for what that would save.
const MIN_INPUT_BYTES: usize = 2 * 1024;
/// Maximum number of remembered pieces of recent messages, 100 bytes each: a reply with some dozens
/// of large calls.
const MAX_KNOWN_PIECES: usize = 64;
/// Bytes of entries that are read at once: some hundreds of typical entries.
pub(crate) const PAGE_BYTES: usize = 256 * 1024;
/// Maximum number of cached messages while pages are read: a turn's events refer to its message,
/// and `done` refers to the last one.
const MAX_CACHED_MESSAGES: usize = 4;

/// The part of a message that a piece is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MessagePart {
    Text,
    Thinking,
    Input(CallId),
}

/// A long part of a message, identified by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MessagePiece {
    part: MessagePart,
    hash: ContentHash,
}

/// A position in an event's JSON that repeats a piece.
#[derive(Debug)]
pub(super) struct RepeatedPiece {
    pointer: &'static str,
    piece: MessagePiece,
    pub(super) bytes: usize,
}

/// The entry that has a left-out piece of a stored event.
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

/// Returns the parts of an event that an earlier record may contain.
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

/// Returns the message's thinking in the form that events have.
fn thinking_of(message: &Message) -> String {
    let thoughts = message.content.iter().filter_map(|block| match block {
        Block::Thinking { text, .. } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    thoughts.collect::<Vec<_>>().join("\n")
}

/// Returns an event's JSON in which the pieces that `find` returns an entry for are replaced by
/// references.
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
        // The placeholder has the same type, so that readers without support for references can
        // parse the event.
        *place = if place.is_string() { Value::String(String::new()) } else { Value::Null };
        sources.insert(repeat.pointer.to_owned(), source);
    }
    if let (Some(fields), false) = (value.as_object_mut(), sources.is_empty()) {
        fields.insert(REFERENCE_FIELD.to_owned(), Value::Object(sources));
    }
    value
}

/// Returns at most `limit` events of the entries after `after`, with all references resolved. Skips
/// records and events that this version doesn't know.
///
/// # Errors
/// The store's.
pub async fn load_events(
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

/// Reads all events of a session page by page, with all references resolved.
pub struct EventPages<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
    resolver: ReferenceResolver,
    position: Seq,
    /// The next page, if it was requested already.
    next: Option<BoxFuture<'a, Result<Vec<Entry>, StoreError>>>,
}

impl<'a> EventPages<'a> {
    /// Starts reading after the entry `after`.
    #[must_use]
    pub fn new(store: &'a dyn Store, session: &'a SessionId, after: Seq) -> Self {
        Self { store, session, resolver: ReferenceResolver::default(), position: after, next: None }
    }

    /// Returns the entry up to which the log has been read.
    #[must_use]
    pub fn position(&self) -> Seq {
        self.position
    }

    /// Returns the events of some hundreds of entries, or `None` at the end of the log.
    ///
    /// # Errors
    /// The store's.
    pub async fn next(&mut self) -> Result<Option<Vec<Envelope>>, AgentError> {
        let read = |after| self.store.read_chunk(self.session, after, PAGE_BYTES);
        let page = self.next.take().unwrap_or_else(|| read(self.position)).await?;
        let Some(last) = page.last().map(|entry| entry.seq) else { return Ok(None) };
        // Requested before this page is processed, so that a store with its own thread reads in
        // parallel.
        self.next = Some(read(last));
        self.position = last;
        let events = self.resolver.resolve_page(self.store, self.session, &page, |_, _| true).await?;
        Ok(Some(events))
    }
}

/// Restores the left-out pieces of stored events.
#[derive(Debug, Default)]
pub(super) struct ReferenceResolver {
    /// The messages that were referred to last, the newest last.
    messages: VecDeque<(Seq, Option<Record>)>,
}

impl ReferenceResolver {
    /// Returns the events of a page that `wants` selects.
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

    /// Returns the message in an entry: from the cache, the page or the store.
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

/// Returns a stored event with its references; `None` if it has none.
fn parse_references(entry: &Entry) -> Option<(Value, BTreeMap<String, PieceSource>)> {
    // Only events of these kinds have references; the others need not be parsed.
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
    // The entry may be another session's, such as in a fork, so the id of a call and the length of
    // a text are compared.
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
