//! The time, passed in from the command line or the server.

use std::time::Duration;

use journeyman_protocol::UnixMillis;

/// Tells the time. The command line and the server implement this trait with the system's clock,
/// tests with a counter.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01 UTC.
    fn now(&self) -> UnixMillis;
}

impl<F: Fn() -> UnixMillis + Send + Sync> Clock for F {
    fn now(&self) -> UnixMillis {
        self()
    }
}

/// Writes a duration for people: whole seconds, or milliseconds below ten seconds.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(10) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", duration.as_secs())
    }
}
