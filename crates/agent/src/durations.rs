//! Durations as people read them.

use std::time::Duration;

/// Writes a duration for people: whole seconds, or milliseconds below ten seconds where they count.
pub(crate) fn format_duration(duration: Duration) -> String {
    if duration < Duration::from_secs(10) && duration.subsec_millis() > 0 {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", duration.as_secs())
    }
}
