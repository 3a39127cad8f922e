//! Ids, times, and positions in a session's log.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Crockford's base 32 alphabet in lower case: no `i`, `l`, `o`, `u`, so an id can be read aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Base-32 digits of the time: 50 bits of milliseconds, enough until the year 37,648.
const TIME_DIGITS: usize = 10;
/// Base-32 digits of randomness: 40 bits for each millisecond.
const RANDOM_DIGITS: usize = 8;

/// Milliseconds since 1970-01-01 UTC. Surfaces read the clock and pass the time down.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// Returns the date in UTC as `2026-01-31`. The algorithm is Howard Hinnant's
    /// `civil_from_days`.
    #[must_use]
    pub fn to_date(self) -> String {
        let days = i64::try_from(self.0 / 86_400_000).unwrap_or_default() + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        format!("{year:04}-{month:02}-{day:02}")
    }
}

/// The id of a session, valid as long as its log exists. Ids sort by time of creation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// The error for a string that is not a session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a session id (18 characters of 0-9 and a-z without i, l, o, u)")]
pub struct InvalidSessionId {
    /// The string as given.
    pub given: String,
}

impl SessionId {
    /// Creates an id from the time of creation and 40 bits of randomness (higher bits are ignored).
    #[must_use]
    pub fn new(now: UnixMillis, random: u64) -> Self {
        let mut text = String::with_capacity(TIME_DIGITS + RANDOM_DIGITS);
        push_digits(&mut text, now.0, TIME_DIGITS);
        push_digits(&mut text, random, RANDOM_DIGITS);
        Self(text)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Appends the lowest `digits` base-32 digits of `value`, most significant first.
fn push_digits(text: &mut String, value: u64, digits: usize) {
    for place in (0..digits).rev() {
        let digit = (value >> (5 * place)) & 31;
        let byte = ALPHABET.get(digit as usize).copied().unwrap_or(b'0');
        text.push(char::from(byte));
    }
}

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(given: &str) -> Result<Self, InvalidSessionId> {
        let valid =
            given.len() == TIME_DIGITS + RANDOM_DIGITS && given.bytes().all(|b| ALPHABET.contains(&b));
        if valid { Ok(Self(given.to_owned())) } else { Err(InvalidSessionId { given: given.to_owned() }) }
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidSessionId;

    fn try_from(given: String) -> Result<Self, InvalidSessionId> {
        given.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a tool call, unique within its session. Providers choose these ids, so any text is
/// legal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// Creates an id from a provider's text.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A position in a session's log, which serves as a bookmark: strictly increasing, also across
/// restarts. The first entry has 1; 0 is the position before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position before the first entry.
    pub const START: Self = Self(0);

    /// Returns the next position.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_sort_by_time_and_round_trip() {
        let early = SessionId::new(UnixMillis(1_000), u64::MAX);
        let late = SessionId::new(UnixMillis(1_001), 0);
        assert!(early < late);
        assert_eq!(early.as_str().parse::<SessionId>().unwrap(), early);
        assert_eq!(early.as_str().len(), 18);
    }

    #[test]
    fn invalid_session_ids_are_refused() {
        for bad in ["", "../../etc/passwd00", "0123456789abcdefg", "0123456789ABCDEFGH", "0123456789abcdefgi"]
        {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_converted_to_dates() {
        for (ms, expected) in [
            (0, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (1_767_225_599_000, "2025-12-31"),
            (1_767_225_600_000, "2026-01-01"),
            (1_795_306_000_000, "2026-11-22"),
        ] {
            assert_eq!(UnixMillis(ms).to_date(), expected);
        }
    }
}
