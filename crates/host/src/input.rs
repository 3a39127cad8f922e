//! Texts and bytes that a user gives, each up to a limit.

use std::io::Read;

use crate::HostError;

/// Reads a text of at most `max_bytes`. Errors name `what` is read, and the `source`.
///
/// # Errors
/// [`HostError::Usage`] for more bytes, and where reading fails.
pub fn read_text(what: &str, from: impl Read, source: &str, max_bytes: u64) -> Result<String, HostError> {
    let bytes = read_bytes(what, from, source, max_bytes)?;
    String::from_utf8(bytes)
        .map_err(|_| HostError::usage(format_args!("the {what} from {source} is not UTF-8 text")))
}

/// Reads at most `max_bytes`. Errors name `what` is read, and the `source`.
///
/// # Errors
/// [`HostError::Usage`] for more bytes, and where reading fails.
pub fn read_bytes(what: &str, from: impl Read, source: &str, max_bytes: u64) -> Result<Vec<u8>, HostError> {
    let mut bytes = Vec::new();
    from.take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| HostError::usage(format_args!("cannot read the {what} from {source}: {error}")))?;
    if bytes.len() as u64 > max_bytes {
        return Err(HostError::usage(format_args!(
            "the {what} from {source} is longer than {max_bytes} bytes"
        )));
    }
    Ok(bytes)
}
