//! Finds values after names that mark them as secret: `DB_PASSWORD=…`.
//!
//! In any text, only unmistakable ones are found: a name in capitals, no blank around the `=`, a
//! value that looks random. In a settings file (`.env`), every value after such a name is found.

use std::borrow::Cow;
use std::ops::Range;

use journeyman_protocol::RelPath;

use super::names::is_secret_name;
use super::placeholders::{SECRET_MASK, is_placeholder};

/// Maximum length of a name.
const MAX_NAME_BYTES: usize = 64;
/// Minimum length of a value in any text.
const MIN_VALUE_BYTES: usize = 8;
/// Endings of names that certainly mean a secret. A `CACHE_KEY` is not secret.
const CERTAIN_ENDINGS: &[&str] = &[
    "ACCESS_KEY",
    "APIKEY",
    "API_KEY",
    "AUTH_KEY",
    "CREDENTIALS",
    "ENCRYPTION_KEY",
    "MASTER_KEY",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PRIVATE_KEY",
    "SECRET",
    "SECRET_KEY",
    "SIGNING_KEY",
    "TOKEN",
];

/// Narrows a filter of visible files to those whose text may be shown as it is: of settings, only
/// [`mask_settings`] may be.
pub fn unmasked_files(visible: impl Fn(&RelPath) -> bool) -> impl Fn(&RelPath) -> bool {
    move |path| visible(path) && !is_settings_file(&path.to_string())
}

/// Returns true if a file of this path holds settings of one machine, including secrets: `.env` and
/// similar names, except templates of them.
#[must_use]
pub fn is_settings_file(path: &str) -> bool {
    const EXAMPLE_WORDS: &[&str] = &["defaults", "dist", "example", "sample", "template", "test", "tpl"];
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
    let kind = name.strip_prefix(".env").filter(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']));
    let settings = kind.is_some() || name.len() > 4 && name.ends_with(".env");
    settings && !name.split(['.', '-', '_']).any(|part| EXAMPLE_WORDS.contains(&part))
}

/// Masks each value with a secret name in the text of a settings file, or in a command's output of
/// it.
#[must_use]
pub fn mask_settings(text: &str) -> Cow<'_, str> {
    let mut masked = String::new();
    let mut done = 0;
    for secret in find_values(text) {
        masked.push_str(text.get(done..secret.start).unwrap_or_default());
        masked.push_str(SECRET_MASK);
        done = secret.end;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(masked)
}

/// Returns the values that [`mask_settings`] masks, line by line and the longest first, for texts
/// that quote them without their names. Lines of less than 4 bytes are left out: they occur
/// everywhere.
#[must_use]
pub fn secret_settings(text: &str) -> Vec<String> {
    const MIN_QUOTED_BYTES: usize = 4;
    let lines = find_values(text).into_iter().filter_map(|secret| text.get(secret)).flat_map(str::lines);
    let mut values: Vec<String> =
        lines.filter(|line| line.len() >= MIN_QUOTED_BYTES).map(str::to_owned).collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}

/// Returns the positions of the values with secret names, in order.
fn find_values(text: &str) -> Vec<Range<usize>> {
    const KEY_BEGIN: &str = "-----BEGIN ";
    const KEY_END: &str = "-----END ";
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let within = found.last().is_some_and(|last| start < last.end);
        if let Some(secret) = find_line_value(line).filter(|_| !within) {
            let (from, mut end) = (start + secret.start, start + secret.end);
            let rest = text.get(from..).unwrap_or_default();
            if rest.starts_with(KEY_BEGIN) {
                // A key goes on to its last line; without that line, all that follows may be its.
                let last =
                    rest.find(KEY_END).and_then(|at| rest.get(at..)).and_then(|last| last.lines().next());
                let after = last.map_or(rest.len(), |last| {
                    let last = last.trim_end_matches(['"', '\'', ' ']);
                    rest.find(last).unwrap_or(rest.len()) + last.len()
                });
                end = end.max(from + after.min(rest.len()));
            }
            found.push(from..end);
        }
        start += line.len();
    }
    found
}

/// Returns the value in a line `NAME=value` or `name: value`, after any text that a tool prints
/// before its lines.
fn find_line_value(line: &str) -> Option<Range<usize>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    line.match_indices(['=', ':']).find_map(|(at, _)| {
        let before = line.get(..at)?.trim_end();
        let name = before.get(before.rfind(|c| !is_name(c)).map_or(0, |at| at + 1)..)?;
        // The byte before it may be the last of a longer character.
        let value = line.get(at + 1..)?;
        let from = at + 1 + (value.len() - value.trim_start().len());
        let secret = value_at(line.as_bytes(), from, true)?;
        let bytes = line.as_bytes().get(secret.clone())?;
        let known = name.len() <= MAX_NAME_BYTES && is_secret_name(name) && !is_placeholder(bytes);
        (known && !bytes.is_empty()).then_some(secret)
    })
}

/// Finds values in any text that are secret by their names and looks.
pub(super) fn find_named_secrets(text: &[u8], found: &mut Vec<Range<usize>>) {
    for at in memchr::memchr_iter(b'=', text) {
        let name_end = text.get(..at).unwrap_or_default();
        if !name_end.last().is_some_and(|byte| is_capital_name_byte(*byte)) {
            continue;
        }
        let length = name_end
            .iter()
            .rev()
            .take(MAX_NAME_BYTES)
            .take_while(|byte| is_capital_name_byte(**byte))
            .count();
        let Some(name) = name_end.get(at - length..).and_then(|name| std::str::from_utf8(name).ok()) else {
            continue;
        };
        let before = name_end.get(..at - length).unwrap_or_default();
        let begins = match before.last() {
            None => true,
            // The end of an escape, as in `
            // `.
            Some(b'n' | b't' | b'r') => {
                before.ends_with(b"\\n") || before.ends_with(b"\\t") || before.ends_with(b"\\r")
            }
            Some(byte) => byte.is_ascii_whitespace() || b"+-:|>;,\"'`".contains(byte),
        };
        if !begins || !CERTAIN_ENDINGS.iter().any(|end| name.ends_with(end)) || !is_secret_name(name) {
            continue;
        }
        if let Some(value) = value_at(text, at + 1, false)
            .filter(|value| looks_secret(text.get(value.clone()).unwrap_or_default()))
        {
            found.push(value);
        }
    }
}

fn is_capital_name_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

/// Returns the value that begins at a position: within its quotes, or up to a blank; with `whole`,
/// unquoted values extend to the end of the line.
fn value_at(text: &[u8], start: usize, whole: bool) -> Option<Range<usize>> {
    let rest = text.get(start..)?;
    let (skip, quote): (usize, Option<u8>) = match rest {
        [b'\\', quote @ (b'"' | b'\''), ..] => (2, Some(*quote)),
        [quote @ (b'"' | b'\''), ..] => (1, Some(*quote)),
        _ => (0, None),
    };
    let body = rest.get(skip..)?;
    let ends = |byte: &u8| match quote {
        Some(quote) => *byte == quote || *byte == b'\n',
        None if whole => *byte == b'\n' || *byte == b'\r',
        None => byte.is_ascii_whitespace() || b"\"'`\\,;|<>".contains(byte),
    };
    let length = body.iter().position(ends).unwrap_or(body.len());
    // The backslash before a quote that is itself quoted.
    let length = if skip == 2 && body.get(..length)?.ends_with(b"\\") { length - 1 } else { length };
    let trimmed = body.get(..length)?.trim_ascii_end().len();
    Some(start + skip..start + skip + trimmed)
}

/// Returns true if a value looks like a password or a token: long enough, and not a word, path,
/// call or variable.
fn looks_secret(value: &[u8]) -> bool {
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let digits = value.iter().any(u8::is_ascii_digit);
    let cases = value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    value.len() >= MIN_VALUE_BYTES
        && letters
        && (digits || cases)
        && !value.iter().any(|byte| b"(){}[]$ ".contains(byte))
        && !value.first().is_some_and(|first| b"/.=".contains(first))
        && memchr::memmem::find(value, b"://").is_none()
        && !is_placeholder(value)
}
