//! Texts and bytes that a user gives, each up to a limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::HostError;

/// Reads a file as a text of at most `max_bytes`. Errors name `what` is read.
///
/// # Errors
/// [`HostError::Usage`] where the file can't be read, is longer, or is no UTF-8 text.
pub fn read_text_file(what: &str, path: &Path, max_bytes: u64) -> Result<String, HostError> {
    let shown = path.display();
    let file = File::open(path)
        .map_err(|error| HostError::usage(format_args!("cannot read the {what} from {shown}: {error}")))?;
    read_text(what, file, &shown.to_string(), max_bytes)
}

/// Returns an argument itself, or standard input of at most `max_bytes` for `-`. Errors name
/// `what` is read.
///
/// # Errors
/// [`HostError::Usage`] for more bytes, and where reading fails.
pub fn read_argument(what: &str, argument: &str, max_bytes: u64) -> Result<String, HostError> {
    match argument {
        "-" => read_text(what, std::io::stdin(), "standard input", max_bytes),
        text => Ok(text.to_owned()),
    }
}

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
