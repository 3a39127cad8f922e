//! The format of a line: a checksum, a blank, and a value as JSON.

use journeyman_protocol::ContentHash;
use serde::de::DeserializeOwned;

/// Digits of the checksum before each line.
pub(crate) const CHECKSUM_DIGITS: usize = 16;

fn checksum(json: &[u8]) -> [u8; CHECKSUM_DIGITS] {
    let mut digits = [b'0'; CHECKSUM_DIGITS];
    let hash = ContentHash::of(json).to_string();
    for (digit, byte) in digits.iter_mut().zip(hash.bytes()) {
        *digit = byte;
    }
    digits
}

/// Appends a value with its checksum.
pub(crate) fn push_line(text: &mut Vec<u8>, json: &[u8]) {
    text.extend_from_slice(&checksum(json));
    text.push(b' ');
    text.extend_from_slice(json);
    text.push(b'\n');
}

/// Reads back what [`push_line`] wrote, without the line's end; `None` where the checksum is wrong.
pub(crate) fn parse_checked_line<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let (sum, rest) = line.split_at_checked(CHECKSUM_DIGITS)?;
    let json = rest.strip_prefix(b" ")?;
    if checksum(json) != sum {
        return None;
    }
    serde_json::from_slice(json).ok()
}
