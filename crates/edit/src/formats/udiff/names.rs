//! The names of files in a diff's headers.

/// A file that a header names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::formats) enum HeaderName {
    /// `/dev/null`: there is none on this side.
    Null,
    /// Its path, with the prefix that it may have.
    Path(String),
}

impl HeaderName {
    pub(in crate::formats) fn path(&self) -> Option<&str> {
        match self {
            Self::Null => None,
            Self::Path(path) => Some(path),
        }
    }
}

/// The name after `---` or `+++`, without what follows it.
pub(in crate::formats) fn parse_header_name(text: &str) -> Option<HeaderName> {
    let text = text.trim();
    // `diff -N` gives a file that isn't there the beginning of the epoch, in the local time zone.
    let dates = ["1970-01-01 ", "1969-12-31 "];
    if text.split_once('\t').is_some_and(|(_, date)| dates.iter().any(|none| date.starts_with(none))) {
        return Some(HeaderName::Null);
    }
    let name = match text.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?.0,
        None => {
            let name = text.split('\t').next().unwrap_or(text);
            let name = strip_timestamp(name).trim_end();
            name.strip_prefix('`').and_then(|inner| inner.strip_suffix('`')).unwrap_or(name).to_owned()
        }
    };
    match name.as_str() {
        // Rules and arrows made of the same characters are no names.
        "" => None,
        _ if name.chars().all(|c| matches!(c, '-' | '+' | '=' | '*')) => None,
        "/dev/null" | "dev/null" | "a/dev/null" | "b/dev/null" => Some(HeaderName::Null),
        _ => Some(HeaderName::Path(name)),
    }
}

/// A name without the date that `diff` puts after it, where it is divided from it by a blank.
fn strip_timestamp(name: &str) -> &str {
    let is_date = |text: &str| {
        let pattern = b"dddd-dd-dd";
        let bytes = text.as_bytes();
        bytes.len() >= pattern.len()
            && bytes.iter().zip(pattern).all(|(byte, wanted)| match wanted {
                b'd' => byte.is_ascii_digit(),
                _ => byte == wanted,
            })
    };
    let blanks = name.match_indices(' ');
    let found = blanks.map(|(at, _)| at).find(|at| name.get(at + 1..).is_some_and(is_date));
    found.and_then(|at| name.get(..at)).unwrap_or(name)
}

/// A name quoted as C quotes strings, from after the opening quote, and what follows the closing
/// one.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => break,
            b'\\' => {
                let (escaped, after) = rest.split_first()?;
                rest = after;
                let plain = match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'a' => 7,
                    b'b' => 8,
                    b'f' => 12,
                    b'v' => 11,
                    b'0'..=b'3' => {
                        let digits = [Some(escaped), rest.first(), rest.get(1)];
                        rest = rest.get(2..)?;
                        let mut value = 0_u8;
                        for digit in digits {
                            let digit = digit.filter(|digit| matches!(digit, b'0'..=b'7'))?;
                            value = value.wrapping_mul(8) | (digit - b'0');
                        }
                        value
                    }
                    other => *other,
                };
                bytes.push(plain);
            }
            other => bytes.push(*other),
        }
    }
    let at = text.len() - rest.len();
    Some((String::from_utf8(bytes).ok()?, text.get(at..)?))
}

/// The two names after `diff --git`. Unquoted names with blanks can be told apart only where both
/// are the same.
pub(super) fn parse_git_names(text: &str) -> (Option<String>, Option<String>) {
    if let Some(quoted) = text.strip_prefix('"') {
        let Some((old, rest)) = unquote(quoted) else { return (None, None) };
        let rest = rest.trim_start();
        let new = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted).map(|(name, _)| name),
            None => Some(rest.to_owned()),
        };
        return (Some(old), new);
    }
    let text = text.trim_end();
    let middle = text.len() / 2;
    if let (Some(old), Some(new)) = (text.get(..middle), text.get(middle + 1..))
        && text.as_bytes().get(middle) == Some(&b' ')
        && old.split_once('/').map(|(_, path)| path) == new.split_once('/').map(|(_, path)| path)
    {
        return (Some(old.to_owned()), Some(new.to_owned()));
    }
    let split = text.find(" b/").or_else(|| text.find(" \"")).or_else(|| text.find(' '));
    let Some((old, new)) = split.map(|at| text.split_at(at)) else { return (Some(text.to_owned()), None) };
    let new = new.trim_start();
    let new = new.strip_prefix('"').and_then(unquote).map_or_else(|| new.to_owned(), |(name, _)| name);
    (Some(old.to_owned()), Some(new))
}

/// A name as `rename from` and its like give it: without prefix, perhaps quoted.
pub(super) fn parse_extended_name(text: &str) -> Option<String> {
    let text = text.trim();
    match text.strip_prefix('"') {
        Some(quoted) => unquote(quoted).map(|(name, _)| name),
        None => Some(text.to_owned()).filter(|name| !name.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_table() {
        let path = |name: &str| Some(HeaderName::Path(name.to_owned()));
        let cases = [
            (" a/x.rs", path("a/x.rs")),
            (" x.rs\t2024-01-02 03:04:05.000 +0000", path("x.rs")),
            (" x y.rs 2024-01-02 03:04:05", path("x y.rs")),
            (" \"a/\\303\\244 b.txt\"", path("a/ä b.txt")),
            (" \"a/tab\\tq\\\"\"\t", path("a/tab\tq\"")),
            (" /dev/null\t1970-01-01", Some(HeaderName::Null)),
            ("a/file.txt", path("a/file.txt")),
            (" `src/x.rs`", path("src/x.rs")),
            ("", None),
            ("---", None),
            (" \"a/\\9", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_header_name(text), expected, "{text:?}");
        }
    }

    #[test]
    fn git_pairs_table() {
        let cases = [
            ("a/x b/x", "a/x", "b/x"),
            ("a/x y b/x y", "a/x y", "b/x y"),
            ("a/old.rs b/new/name.rs", "a/old.rs", "b/new/name.rs"),
            ("\"a/\\303\\244\" \"b/\\303\\244\"", "a/ä", "b/ä"),
            ("a/plain \"b/t\\tb\"", "a/plain", "b/t\tb"),
        ];
        for (text, old, new) in cases {
            assert_eq!(parse_git_names(text), (Some(old.to_owned()), Some(new.to_owned())), "{text:?}");
        }
    }
}
