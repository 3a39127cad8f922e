//! Time and randomness, passed in from the edge.

use journeyman_protocol::UnixMillis;

/// Tells the time. The command line and the server implement it over the system's clock; tests over a counter.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01 UTC.
    fn now(&self) -> UnixMillis;
}

impl<F: Fn() -> UnixMillis + Send + Sync> Clock for F {
    fn now(&self) -> UnixMillis {
        self()
    }
}
