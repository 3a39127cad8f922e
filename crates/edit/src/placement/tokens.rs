//! The tokens of a line whose differences have a meaning and can't be ignored in a changed line.

use crate::placement::normalize::{StringBlanks, squeeze_blanks};

/// A longer line is generated; what ends it is not told apart.
const MAX_SPLIT_LINE_BYTES: usize = 2_000;

/// A line taken apart: its code, and what may follow that without changing what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineParts<'a> {
    /// The line without the rest.
    pub(crate) code: &'a str,
    /// A separator and a remark at the end, and the blanks before the remark.
    pub(crate) tail: &'a str,
    /// The blanks that end the line.
    pub(crate) blanks: &'a str,
}

impl<'a> LineParts<'a> {
    /// Takes a line apart.
    pub(crate) fn split_line(line: &'a str) -> Self {
        let trimmed = line.trim_end();
        let blanks = line.get(trimmed.len()..).unwrap_or_default();
        if line.len() > MAX_SPLIT_LINE_BYTES {
            return Self { code: trimmed, tail: "", blanks };
        }
        let before = trailing_comment_offset(trimmed).and_then(|at| trimmed.get(..at)).unwrap_or(trimmed);
        let code = before.trim_end().trim_end_matches([',', ';']);
        // Of a line that is a remark as a whole the indentation is no part of that.
        let indent = || before.get(..before.len() - before.trim_start().len()).unwrap_or_default();
        let code = match (before.trim_end(), code) {
            ("", _) => indent(),
            (whole, "") => whole,
            (whole, code) if code.trim().is_empty() => whole,
            (_, code) => code,
        };
        Self { code, tail: trimmed.get(code.len()..).unwrap_or_default(), blanks }
    }

    /// The remark, if there is one.
    fn comment_text(self) -> &'a str {
        self.tail.trim_start_matches([',', ';']).trim_start()
    }
}

/// Returns the offset of a line's trailing comment, if the text certainly is one.
fn trailing_comment_offset(line: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start().len();
    let body = line.get(indent..)?;
    let whole = ["//", "/*", "* ", "<!--", "# ", "-- "];
    if whole.iter().any(|opener| body.starts_with(opener)) || body == "*" || body == "#" {
        return Some(indent);
    }
    // Behind code it must be set off by blanks, outside of quotes as far as a line can tell.
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in line.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(character),
            (None, ' ' | '\t') => {
                let rest = line.get(at + 1..).unwrap_or_default();
                if ["// ", "/* ", "# ", "-- "].iter().any(|opener| rest.starts_with(opener)) {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns true if two lines mean the same: they differ in blanks outside of strings and in
/// typography at most.
pub(crate) fn are_equivalent(one: &str, other: &str) -> bool {
    one == other || squeeze_blanks(one, StringBlanks::Strict) == squeeze_blanks(other, StringBlanks::Strict)
}

/// Returns true if two lines do the same: a separator at the end, or the words of a remark, may
/// differ too. Numbers in remarks count.
pub(crate) fn are_equivalent_but_for_comments(one: &str, other: &str) -> bool {
    if are_equivalent(one, other) {
        return true;
    }
    let (one, other) = (LineParts::split_line(one), LineParts::split_line(other));
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    are_equivalent(one.code, other.code) && digits(one.comment_text()) == digits(other.comment_text())
}

/// Returns true if a character belongs to a word or number.
pub(crate) fn is_word_char(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The words and numbers of a line.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word_char(c)).filter(|word| !word.is_empty())
}

/// Returns true if two lines share at least half of the longer one at their ends.
pub(crate) fn is_similar(one: &str, other: &str) -> bool {
    2 * shared_at_ends(one, other) >= one.len().max(other.len())
}

/// Returns the number of bytes that two lines share at their beginning and their end.
pub(crate) fn shared_at_ends(one: &str, other: &str) -> usize {
    let head = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let tail = one.bytes().rev().zip(other.bytes().rev()).take_while(|(one, other)| one == other).count();
    (head + tail).min(one.len()).min(other.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_does() {
        let same = [
            ("x = 1", "x  =  1"),
            ("a: true,", "a: true"),
            ("f(); // says hello", "f(); // greets"),
            ("    // This is a comment", "    // This is another comment"),
            ("x = 1 # one way", "x = 1  # another way"),
        ];
        for (one, other) in same {
            assert!(are_equivalent_but_for_comments(one, other), "{one} / {other}");
        }
        let different = [
            ("x = 1", "x = 2"),
            ("a < b", "a <= b"),
            ("say(\"a // b\")", "say(\"a // c\")"),
            ("f(); // step 1", "f(); // step 2"),
            ("#define A", "#define B"),
            ("x = [1, 2]", "x = [1 2]"),
            ("--x", "--y"),
            ("get('http://a')", "get('http://b')"),
            ("// a", "a"),
        ];
        for (one, other) in different {
            assert!(!are_equivalent_but_for_comments(one, other), "{one} / {other}");
        }
    }
}
