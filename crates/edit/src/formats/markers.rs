//! The lines that divide SEARCH/REPLACE blocks.

use std::borrow::Cow;

/// The role of a line in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark<'a> {
    /// `<<<<<<< SEARCH`, `------- SEARCH`; what follows the word.
    Open(&'a str),
    /// `<<<<`, with nothing after it.
    BareOpen,
    /// `-------    content`: an opening whose content stands on its line.
    Merged(&'a str),
    /// `=======`.
    Divider,
    /// `=======    content`.
    MergedDivider(&'a str),
    /// `>>>>>>> REPLACE`, `+++++++ REPLACE`.
    Close,
    /// `>>>>`, with nothing after it.
    BareClose,
    /// `<<<<<<< HEAD`: a conflict in the text.
    Conflict,
    /// `>>>>>>> main`: the end of a conflict in the text.
    ConflictEnd,
    /// Nearly a mark.
    Faulty,
}

/// A line that is a mark, or looks like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MarkLine<'a> {
    /// Its kind.
    pub(crate) mark: Mark<'a>,
    /// The character that it is made of.
    pub(crate) sign: u8,
    /// The number of signs.
    pub(crate) length: usize,
    /// The number of blanks before the signs.
    pub(crate) indent: usize,
}

/// Fewer signs make no mark.
const MIN_MARK_CHARS: usize = 3;
/// A longer row is a rule in a text.
const MAX_MARK_CHARS: usize = 16;
/// Maximum bytes of signs behind the word of a closing mark.
const MAX_STRAY_BYTES: usize = 8;
/// As many signs as git writes around a conflict.
const GIT_MARK_CHARS: usize = 7;

/// Reads a line as a mark. Nearly every line is none, and its first character says so.
pub(crate) fn parse_mark(line: &str) -> Option<MarkLine<'_>> {
    let text = line.trim_start_matches([' ', '\t']);
    let sign = *text.as_bytes().first()?;
    if !matches!(sign, b'<' | b'-' | b'=' | b'>' | b'+') {
        return None;
    }
    let length = text.bytes().take(MAX_MARK_CHARS + 1).take_while(|&byte| byte == sign).count();
    if !(MIN_MARK_CHARS..=MAX_MARK_CHARS).contains(&length) {
        return None;
    }
    let rest = text.get(length..)?;
    let label = rest.trim();
    let word = label.split([' ', '\t', '>', ':']).next().unwrap_or(label);
    let spaced = rest.starts_with([' ', '\t']);
    let after = label.get(word.len()..).unwrap_or_default().trim();
    // Fewer signs are a prompt.
    let is_small = |wanted: &str| spaced && length > MIN_MARK_CHARS && label.eq_ignore_ascii_case(wanted);
    let mark = match (sign, word) {
        (b'<', _) if is_small("search") => Mark::Open(""),
        (b'>', _) if is_small("replace") => Mark::Close,
        (b'<' | b'-', "SEARCH") if spaced => Mark::Open(after.trim_start_matches([':', '>']).trim()),
        (b'<', "ORIGINAL" | "OLD" | "BEFORE" | "FIND") if spaced => Mark::Open(after),
        (b'<' | b'-', "SEARCH" | "REPLACE") | (b'>' | b'+', "SEARCH") if after.is_empty() => Mark::Faulty,
        (b'>' | b'+', _) if spaced && is_closing_label(label) => Mark::Close,
        (b'>', "UPDATED" | "NEW" | "AFTER") if spaced && after.is_empty() => Mark::Close,
        (b'>' | b'+', "REPLACE") if after.is_empty() => Mark::Faulty,
        (b'<', "") => Mark::BareOpen,
        (b'>', "") => Mark::BareClose,
        (b'=', "") => Mark::Divider,
        (b'=', _) if spaced && length == GIT_MARK_CHARS => Mark::MergedDivider(strip_blank_and_break(rest)),
        (b'<', _) if spaced && length >= GIT_MARK_CHARS => Mark::Conflict,
        (b'>', _) if spaced && length >= GIT_MARK_CHARS => Mark::ConflictEnd,
        (b'-', _) if spaced && length == GIT_MARK_CHARS && !label.is_empty() => {
            Mark::Merged(strip_blank_and_break(rest))
        }
        _ => return None,
    };
    Some(MarkLine { mark, sign, length, indent: line.len() - text.len() })
}

/// Returns true if a label is the one that closes a block, with no more behind it than a slip of
/// the pen: signs, or one letter.
fn is_closing_label(label: &str) -> bool {
    let Some(stray) = label.strip_prefix("REPLACE") else { return false };
    let signs = stray.trim_start();
    let signs = signs.chars().all(|c| !c.is_alphanumeric() && c != '_') && signs.len() <= MAX_STRAY_BYTES;
    signs || stray.chars().nth(1).is_none()
}

/// Content without the one blank that parts it from the mark, and without its line break.
fn strip_blank_and_break(rest: &str) -> &str {
    let rest = crate::lines::strip_line_break(rest);
    rest.strip_prefix([' ', '\t']).unwrap_or(rest)
}

/// A line that is a mark behind a backslash, without it.
fn unescape_mark(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('\\')?;
    let is_mark = parse_mark(rest)
        .is_some_and(|marked| !matches!(marked.mark, Mark::Merged(_) | Mark::MergedDivider(_)));
    let dashes = rest.trim_end();
    let rule = dashes.len() == GIT_MARK_CHARS && dashes.bytes().all(|byte| byte == b'-');
    (is_mark || rule || rest.starts_with(":start_line:") || rest.starts_with(":end_line:")).then_some(rest)
}

/// Content without the backslashes before its marks.
pub(crate) fn unescape_marks(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', text.as_bytes()).is_none()
        || !text.lines().any(|line| unescape_mark(line).is_some())
    {
        return Cow::Borrowed(text);
    }
    let plain = |line| unescape_mark(line).unwrap_or(line);
    Cow::Owned(text.split('\n').map(plain).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_table() {
        let cases = [
            ("<<<<<<< SEARCH", Some(Mark::Open(""))),
            ("<<<<<<< SEARCH>\n", Some(Mark::Open(""))),
            ("--- SEARCH\r\n", Some(Mark::Open(""))),
            ("<<<<<<< SEARCH a/b.rs", Some(Mark::Open("a/b.rs"))),
            ("--- SEARCH2", None),
            ("-------SEARCH", Some(Mark::Faulty)),
            ("------- REPLACE", Some(Mark::Faulty)),
            ("+++++++ SEARCH", Some(Mark::Faulty)),
            ("=======", Some(Mark::Divider)),
            ("==", None),
            ("==================", None),
            ("=== b", None),
            ("======= b", Some(Mark::MergedDivider("b"))),
            (">>>>> REPLACE", Some(Mark::Close)),
            ("+++++++ REPLACE", Some(Mark::Close)),
            (">>>>>>> REPLACE`", Some(Mark::Close)),
            (">>>>>>> REPLACE ```", Some(Mark::Close)),
            (">>>>>>> REPLACEd\n", Some(Mark::Close)),
            (">>>>>>> REPLACE me", Some(Mark::ConflictEnd)),
            ("<<<<<<< search", Some(Mark::Open(""))),
            (">>>>>>> Replace\r\n", Some(Mark::Close)),
            (">>> replace", None),
            (">>> print(1)", None),
            ("<<<<<<< HEAD", Some(Mark::Conflict)),
            (">>>>>>> main", Some(Mark::ConflictEnd)),
            ("-------   x", Some(Mark::Merged("  x"))),
            ("--- a/file", None),
            ("+++ b/file", None),
            ("-------", None),
            ("let a = 1;", None),
        ];
        for (line, expected) in cases {
            assert_eq!(parse_mark(line).map(|marked| marked.mark), expected, "{line:?}");
        }
        assert_eq!(unescape_mark("\\======="), Some("======="));
        assert_eq!(unescape_mark("\\-------"), Some("-------"));
        assert_eq!(unescape_mark("\\section"), None);
    }
}
