//! The end of a lease, the same for every store.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use journeyman_protocol::UnixMillis;

/// A right to write, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The holder, in its own words.
    pub(crate) holder: String,
    /// The end of the lease.
    pub(crate) until: UnixMillis,
    /// For how many milliseconds it was given.
    pub(crate) length: u64,
}

/// A time as the durable log can keep it: a signed 64-bit number.
pub(crate) fn clamp_to_storable(time: UnixMillis) -> UnixMillis {
    UnixMillis(time.0.min(i64::MAX as u64))
}

impl Lease {
    pub(crate) fn new(holder: &str, now: UnixMillis, length: u64) -> Self {
        let until = clamp_to_storable(UnixMillis(now.0.saturating_add(length)));
        Self { holder: holder.to_owned(), until, length: clamp_to_storable(UnixMillis(length)).0 }
    }

    pub(crate) fn is_over(&self, now: UnixMillis) -> bool {
        self.until <= clamp_to_storable(now)
    }

    /// Shortens a lease that would run for longer than it was given, and says whether it was: then
    /// the clock was set back since.
    pub(crate) fn shorten(&mut self, now: UnixMillis) -> bool {
        let latest = clamp_to_storable(UnixMillis(clamp_to_storable(now).0.saturating_add(self.length)));
        let too_long = self.until > latest;
        if too_long {
            self.until = latest;
        }
        too_long
    }
}

/// A number for names that shall not repeat. The standard library seeds its maps by chance.
pub(crate) fn unique_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
