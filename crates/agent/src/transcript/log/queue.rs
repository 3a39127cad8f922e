//! Entries that wait to be written, and what their writer knows.

use std::collections::VecDeque;

use journeyman_protocol::Seq;
use journeyman_store::NewEntry;

use super::prepared::Prepared;
use super::reference::Known;

/// Names what was pushed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(pub(super) u64);

/// Entries that are not known to be durable, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) items: VecDeque<(Ticket, Prepared)>,
    /// Somebody else writes the session: nothing is taken any more.
    pub(super) lost: bool,
}

impl Queue {
    /// Takes entries, or says that none are taken any more.
    pub(super) fn add(&mut self, ticket: Ticket, prepared: Vec<Prepared>) -> bool {
        if !self.lost {
            self.items.extend(prepared.into_iter().map(|prepared| (ticket, prepared)));
        }
        !self.lost
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether a flush has nothing to do and nothing to tell. An entry leaves the queue when it is
    /// durable and shown.
    pub(super) fn is_settled(&self) -> bool {
        self.items.is_empty() && !self.lost
    }

    pub(super) fn rest(&mut self) {
        self.items.shrink_to_fit();
    }

    /// What lists are to show of the session after all that waits.
    pub(super) fn status(&self) -> Option<String> {
        self.items.iter().rev().find_map(|(_, prepared)| prepared.status.clone())
    }

    pub(super) fn place_of(&self, ticket: Ticket) -> Option<usize> {
        self.items.iter().position(|(owner, _)| *owner == ticket)
    }

    /// Whether entries that were pushed under a ticket wait.
    pub(super) fn holds(&self, ticket: Ticket) -> bool {
        self.place_of(ticket).is_some()
    }

    /// Takes out what was pushed under a ticket and has not been written.
    pub(super) fn take_back(&mut self, ticket: Ticket) {
        self.items.retain(|(owner, _)| *owner != ticket);
        // The entries behind it move up, and what some of them name by its place does, too.
        self.items.iter_mut().for_each(|(_, prepared)| prepared.forget_place());
    }

    /// Everything that waits, as the store takes it, when the log is at `last`.
    pub(super) fn entries(&mut self, last: Seq, known: &Known) -> Vec<NewEntry> {
        let mut batch = Known::default();
        for ((_, prepared), seq) in self.items.iter().zip(after(last)) {
            batch.add(seq, &prepared.pieces);
        }
        let find = |piece: &_| batch.find(piece).or_else(|| known.find(piece));
        self.items.iter_mut().map(|(_, prepared)| prepared.entry(find)).collect()
    }
}

/// The places after `last`, in order.
pub(super) fn after(last: Seq) -> impl Iterator<Item = Seq> {
    std::iter::successors(Some(last.next()), |seq| Some(seq.next()))
}

/// What the store is told of a new session together with its first entries.
#[derive(Debug)]
pub(crate) struct Beginning {
    /// The project's root.
    pub(crate) root: String,
    /// One line for people.
    pub(crate) title: String,
    /// Who has the right to write it, and for how many milliseconds.
    pub(crate) lease: (String, u64),
}

/// What only the one who writes knows.
#[derive(Debug)]
pub(super) struct Writer {
    /// The last entry that is ours and durable.
    pub(super) last: Seq,
    /// How many entries at the head of the queue were handed to the store without an answer that
    /// can be relied on.
    pub(super) in_doubt: usize,
    /// Pieces of messages that later events may repeat.
    pub(super) known: Known,
    /// Set while the store doesn't know the session.
    pub(super) beginning: Option<Beginning>,
    pub(super) lost: bool,
    /// The session is over.
    pub(super) ended: bool,
}

impl Writer {
    pub(super) fn new(last: Seq) -> Self {
        Self { last, in_doubt: 0, known: Known::default(), beginning: None, lost: false, ended: false }
    }
}
