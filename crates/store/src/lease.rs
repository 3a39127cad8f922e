//! Leases: the rules for their end, common to all stores.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use journeyman_protocol::UnixMillis;

/// A stored lease: the right to write a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The holder's description.
    pub(crate) holder: String,
    /// The end of the lease.
    pub(crate) until: UnixMillis,
    /// The duration that was asked for, in milliseconds.
    pub(crate) length: u64,
}

/// Limits a time to a signed 64-bit number, which the durable log can store.
pub(crate) fn clamp_to_i64(time: UnixMillis) -> UnixMillis {
    UnixMillis(time.0.min(i64::MAX as u64))
}

impl Lease {
    pub(crate) fn new(holder: &str, now: UnixMillis, length: u64) -> Self {
        let until = clamp_to_i64(UnixMillis(now.0.saturating_add(length)));
        Self { holder: holder.to_owned(), until, length: clamp_to_i64(UnixMillis(length)).0 }
    }

    pub(crate) fn is_expired(&self, now: UnixMillis) -> bool {
        self.until <= clamp_to_i64(now)
    }

    /// Shortens a lease that would last longer than its duration, because the clock was set back.
    /// Returns true if it did.
    pub(crate) fn shorten(&mut self, now: UnixMillis) -> bool {
        let latest = clamp_to_i64(UnixMillis(clamp_to_i64(now).0.saturating_add(self.length)));
        let too_long = self.until > latest;
        if too_long {
            self.until = latest;
        }
        too_long
    }
}

/// Returns a random number for unique names, from the random seed of the standard library's maps.
pub(crate) fn unique_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
