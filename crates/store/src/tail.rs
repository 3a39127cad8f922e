//! A log as a stream that goes on while it grows.

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use journeyman_protocol::{Seq, SessionId};

use crate::{Entry, Store, StoreError};

/// Maximum bytes that are read ahead at once. A tail that is not read further costs no more.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

struct Tail<'a, S: ?Sized> {
    store: &'a S,
    session: SessionId,
    after: Seq,
    ahead: VecDeque<Entry>,
    ended: bool,
}

impl<S: Store + ?Sized> Tail<'_, S> {
    async fn next(&mut self) -> Result<Entry, StoreError> {
        loop {
            if let Some(entry) = self.ahead.pop_front() {
                self.after = entry.seq;
                return Ok(entry);
            }
            self.ahead = self.store.read_chunk(&self.session, self.after, CHUNK_BYTES).await?.into();
            if self.ahead.is_empty() {
                self.store.changed(&self.session, self.after).await?;
            }
        }
    }
}

pub(crate) fn follow<S: Store + ?Sized>(
    store: &S,
    session: SessionId,
    after: Seq,
) -> BoxStream<'_, Result<Entry, StoreError>> {
    let tail = Tail { store, session, after, ahead: VecDeque::new(), ended: false };
    unfold(tail, |mut tail| async move {
        if tail.ended {
            return None;
        }
        let next = tail.next().await;
        tail.ended = next.is_err();
        Some((next, tail))
    })
    .boxed()
}
