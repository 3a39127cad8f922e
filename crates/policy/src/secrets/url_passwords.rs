//! Finds passwords in URLs: `://user:secret@host`.

use std::ops::Range;

use memchr::memmem;

use super::placeholders::is_placeholder;
use super::shapes::is_random;

/// Maximum number of bytes between a scheme and its host; tokens there have a few thousand at most.
const MAX_AUTHORITY_BYTES: usize = 8 * 1024;

/// The encoding of a URL's delimiters.
struct UrlSpelling {
    /// The text before the user.
    begin: &'static [u8],
    colon: &'static [u8],
    at: &'static [u8],
}

const URL_SPELLINGS: [UrlSpelling; 4] = [
    UrlSpelling { begin: b"://", colon: b":", at: b"@" },
    // Escaped for JSON, as some programs do.
    UrlSpelling { begin: b":\\/\\/", colon: b":", at: b"@" },
    // In the query of another URL.
    UrlSpelling { begin: b"%3A%2F%2F", colon: b"%3A", at: b"%40" },
    UrlSpelling { begin: b"%3a%2f%2f", colon: b"%3a", at: b"%40" },
];

/// Finds the passwords in a text's URLs, without the users before them. A token alone before the
/// host counts as a password.
pub(super) fn find_passwords(text: &[u8], found: &mut Vec<Range<usize>>) {
    for spelling in &URL_SPELLINGS {
        for start in memmem::find_iter(text, spelling.begin) {
            found.extend(password_at(text, start + spelling.begin.len(), spelling));
        }
    }
}

fn password_at(text: &[u8], start: usize, spelling: &UrlSpelling) -> Option<Range<usize>> {
    let rest = text.get(start..)?;
    let rest = rest.get(..MAX_AUTHORITY_BYTES).unwrap_or(rest);
    let authority =
        rest.get(..rest.iter().position(|byte| !is_authority_byte(*byte)).unwrap_or(rest.len()))?;
    let signs = authority.get(..memmem::rfind(authority, spelling.at)?)?;
    // A host, or a placeholder for one, follows.
    let host = rest.get(signs.len() + spelling.at.len()..)?.first()?;
    if !(host.is_ascii_alphanumeric() || matches!(host, b'[' | b'$' | b'{' | b'<' | b'%')) {
        return None;
    }
    match memmem::find(signs, spelling.colon) {
        Some(at) => {
            let (user, password) = (signs.get(..at)?, signs.get(at + spelling.colon.len()..)?);
            let secret = password != user && !is_placeholder(password);
            secret.then_some(start + at + spelling.colon.len()..start + signs.len())
        }
        None => is_random(signs).then_some(start..start + signs.len()),
    }
}

/// Returns true if a byte may stand between a URL's scheme and its path. Templates contain other
/// characters.
fn is_authority_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&*+=:@".contains(&byte) || !byte.is_ascii()
}
