//! The queue of entries to write, and the state of the writer.

use std::collections::VecDeque;

use journeyman_protocol::Seq;
use journeyman_store::NewEntry;

use super::prepared_entry::PreparedEntry;
use super::text_references::KnownPieces;

/// The id of a group of entries that were pushed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PushTicket(pub(super) u64);

/// Entries that are not known to be durable, in order.
#[derive(Debug, Default)]
pub(super) struct EntryQueue {
    pub(super) items: VecDeque<(PushTicket, PreparedEntry)>,
    /// True once another process writes to the session. No more entries are queued.
    pub(super) lost: bool,
}

impl EntryQueue {
    /// Queues entries. Returns false if the session is lost.
    pub(super) fn add(&mut self, ticket: PushTicket, prepared: Vec<PreparedEntry>) -> bool {
        if !self.lost {
            self.items.extend(prepared.into_iter().map(|prepared| (ticket, prepared)));
        }
        !self.lost
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if a flush has nothing to write and no error to report. Entries leave the queue
    /// once they are durable and shown.
    pub(super) fn is_settled(&self) -> bool {
        self.items.is_empty() && !self.lost
    }

    pub(super) fn release_memory(&mut self) {
        self.items.shrink_to_fit();
    }

    /// Returns the session's status for lists after all queued entries.
    pub(super) fn session_status(&self) -> Option<String> {
        self.items.iter().rev().find_map(|(_, prepared)| prepared.status.clone())
    }

    pub(super) fn place_of(&self, ticket: PushTicket) -> Option<usize> {
        self.items.iter().position(|(owner, _)| *owner == ticket)
    }

    /// Returns true if entries under a ticket are queued.
    pub(super) fn has_ticket(&self, ticket: PushTicket) -> bool {
        self.place_of(ticket).is_some()
    }

    /// Removes the unwritten entries under a ticket.
    pub(super) fn remove_unwritten(&mut self, ticket: PushTicket) {
        self.items.retain(|(owner, _)| *owner != ticket);
        // The following entries move up, and so do the positions that they refer to.
        self.items.iter_mut().for_each(|(_, prepared)| prepared.discard_stored_bytes());
    }

    /// Returns all queued entries in stored form, for a log that ends at `last`.
    pub(super) fn build_entries(&mut self, last: Seq, known: &KnownPieces) -> Vec<NewEntry> {
        let mut batch = KnownPieces::default();
        for ((_, prepared), seq) in self.items.iter().zip(positions_after(last)) {
            batch.add(seq, &prepared.pieces);
        }
        let find = |piece: &_| batch.find(piece).or_else(|| known.find(piece));
        self.items.iter_mut().map(|(_, prepared)| prepared.build_entry(find)).collect()
    }
}

/// Returns the positions after `last`, in order.
pub(super) fn positions_after(last: Seq) -> impl Iterator<Item = Seq> {
    std::iter::successors(Some(last.next()), |seq| Some(seq.next()))
}

/// The description of a new session, given to the store with its first entries.
#[derive(Debug)]
pub(crate) struct SessionBeginning {
    /// The project's root.
    pub(crate) root: String,
    /// The session's title, one line for people.
    pub(crate) title: String,
    /// The lease holder, and the lease's duration in milliseconds.
    pub(crate) lease: (String, u64),
}

/// State that only the current writer uses.
#[derive(Debug)]
pub(super) struct WriterState {
    /// The last durable entry that this process wrote or read.
    pub(super) last: Seq,
    /// Number of entries at the head of the queue that were given to the store with an unknown
    /// outcome.
    pub(super) in_doubt: usize,
    /// Pieces of messages that later events may repeat.
    pub(super) known: KnownPieces,
    /// Set while the store doesn't know the session.
    pub(super) beginning: Option<SessionBeginning>,
    pub(super) lost: bool,
    /// True once the session has ended.
    pub(super) ended: bool,
}

impl WriterState {
    pub(super) fn new(last: Seq) -> Self {
        Self { last, in_doubt: 0, known: KnownPieces::default(), beginning: None, lost: false, ended: false }
    }
}
