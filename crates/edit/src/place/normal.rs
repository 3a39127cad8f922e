//! The readings under which two lines count as the same, and texts read that way with a way back.

use std::borrow::Cow;
use std::ops::Range;

/// What a line-by-line comparison overlooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Blanks at the end.
    TrailingWhitespace,
    /// Blanks at both ends.
    Indentation,
    /// Blanks at both ends and their number within, and the typographic form of characters.
    InnerWhitespace,
}

impl Reading {
    /// The line as this reading sees it. Two lines are the same exactly if these are equal.
    pub(crate) fn normal(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::TrailingWhitespace => Cow::Borrowed(line.trim_end()),
            Self::Indentation => Cow::Borrowed(line.trim()),
            Self::InnerWhitespace => squeeze(line, Strings::Loose),
        }
    }
}

/// A hash of a line's characters that aren't blank, in their plain form (FNV-1a, 64 bits). Lines that are the
/// same under any reading have the same.
pub(crate) fn bare_key(line: &str) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let start = 0xcbf2_9ce4_8422_2325;
    if line.is_ascii() {
        let bytes = line.bytes().filter(|byte| !matches!(byte, b' ' | 9..=13));
        return bytes.fold(start, add);
    }
    let mut buffer = [0; 4];
    line.chars()
        .map(plain)
        .filter(|c| !c.is_whitespace())
        .fold(start, |hash, character| character.encode_utf8(&mut buffer).bytes().fold(hash, add))
}

/// The plain form of a typographic character that models and editors exchange for it.
pub(crate) fn plain(character: char) -> char {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Whether string literals are compared as they are or with their blanks squeezed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strings {
    /// Blanks inside them don't count: good enough to find a place.
    Loose,
    /// Every character inside them counts: needed where the line is changed.
    Strict,
}

/// What a character means to the question whether blanks before or after it separate two tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Operator,
    Bracket,
}

fn kind(character: char) -> Kind {
    match character {
        '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' => Kind::Bracket,
        c if c.is_alphanumeric() || c == '_' => Kind::Word,
        _ => Kind::Operator,
    }
}

/// A line with plain characters and without the blanks that don't separate tokens: one space stays between two
/// words and between two operators, so that `a b` is never `ab`, nor `> =` ever `>=`.
pub(crate) fn squeeze(line: &str, strings: Strings) -> Cow<'_, str> {
    let line = line.trim();
    let mut out = String::with_capacity(line.len());
    let mut before: Option<char> = None;
    let mut blank = false;
    let mut rest = line.char_indices();
    while let Some((at, character)) = rest.next() {
        let character = plain(character);
        if character.is_whitespace() {
            blank = true;
            continue;
        }
        if let (true, Some(last)) = (blank, before)
            && kind(last) == kind(character)
            && kind(last) != Kind::Bracket
        {
            out.push(' ');
        }
        blank = false;
        out.push(character);
        before = Some(character);
        if strings == Strings::Strict && matches!(character, '"' | '\'' | '`') {
            let literal = string_literal(line.get(at..).unwrap_or_default());
            out.extend(literal.chars().skip(1).map(plain));
            while rest.offset() < at + literal.len() && rest.next().is_some() {}
            before = literal.chars().next_back().map(plain);
        }
    }
    Cow::Owned(out)
}

/// The string literal that `text` begins with, quotes included; all of `text` where it doesn't close, because
/// whatever follows an open quote may belong to it.
fn string_literal(text: &str) -> &str {
    let mut characters = text.char_indices();
    let Some((_, quote)) = characters.next() else { return text };
    let quote = plain(quote);
    let mut escaped = false;
    for (at, character) in characters {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if plain(c) == quote => return text.get(..at + character.len_utf8()).unwrap_or(text),
            _ => {}
        }
    }
    text
}

/// A text read with line feeds only, and perhaps plain characters, with a way back to its own bytes.
pub(crate) struct Mapped<'a> {
    /// The text as it is read.
    pub(crate) text: Cow<'a, str>,
    source: &'a str,
    /// Where the distance between the two offsets changes: (offset as read, offset in the original).
    steps: Vec<(usize, usize)>,
}

impl<'a> Mapped<'a> {
    /// Reads CR LF as LF, and with `typography` typographic characters as plain ones.
    pub(crate) fn new(text: &'a str, typography: bool) -> Self {
        let special = |c: char| c == '\r' || (typography && !c.is_ascii() && plain(c) != c);
        if !text.contains(special) {
            return Self { text: Cow::Borrowed(text), source: text, steps: Vec::new() };
        }
        let mut read = String::with_capacity(text.len());
        let mut steps = Vec::new();
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            if character == '\r' && matches!(characters.peek(), Some((_, '\n'))) {
                steps.push((read.len(), at + 1));
                continue;
            }
            let shown = if typography { plain(character) } else { character };
            read.push(shown);
            if shown.len_utf8() != character.len_utf8() {
                steps.push((read.len(), at + character.len_utf8()));
            }
        }
        Self { text: Cow::Owned(read), source: text, steps }
    }

    /// The bytes of the original that were read as `range`. A CR LF pair is never cut in two.
    pub(crate) fn original(&self, range: Range<usize>) -> Range<usize> {
        self.back(range.start)..self.back(range.end)
    }

    fn back(&self, offset: usize) -> usize {
        let next = self.steps.partition_point(|(read, _)| *read <= offset);
        let last = next.checked_sub(1).and_then(|last| self.steps.get(last));
        let at = last.map_or(offset, |(read, original)| original + (offset - read));
        let breaks = self.text.as_bytes().get(offset) == Some(&b'\n');
        match at.checked_sub(1) {
            Some(before) if breaks && self.source.as_bytes().get(before) == Some(&b'\r') => before,
            _ => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_count_only_where_they_separate_tokens() {
        let same =
            [("f( a,b )", "f(a, b)"), ("  x  =  1", "x=1"), ("if(x) {", "if (x){"), ("a\u{a0}b", "a  b")];
        for (one, other) in same {
            assert_eq!(squeeze(one, Strings::Strict), squeeze(other, Strings::Strict), "{one} / {other}");
        }
        let different = [("a b", "ab"), ("x > = 1", "x >= 1"), ("1 2", "12"), ("a - -b", "a --b")];
        for (one, other) in different {
            assert_ne!(squeeze(one, Strings::Loose), squeeze(other, Strings::Loose), "{one} / {other}");
        }
    }

    #[test]
    fn blanks_in_string_literals_count_when_strict() {
        let pairs = [
            (r#"say("a  b")"#, r#"say("a b")"#),
            ("x = 'a '", "x = 'a'"),
            (r#"p("\" a  b")"#, r#"p("\" a b")"#),
            ("text = `open  ended", "text = `open ended"),
        ];
        for (one, other) in pairs {
            assert_ne!(squeeze(one, Strings::Strict), squeeze(other, Strings::Strict), "{one} / {other}");
        }
        assert_eq!(squeeze("f( 'a b' ,x)", Strings::Strict), squeeze("f('a b', x)", Strings::Strict));
    }

    #[test]
    fn a_mapped_text_finds_its_way_back() {
        let text = "a\u{201c}\r\nb\u{2014}c\r\n";
        let mapped = Mapped::new(text, true);
        assert_eq!(mapped.text, "a\"\nb-c\n");
        let cases = [
            ("a\"", "a\u{201c}"),
            ("\n", "\r\n"),
            ("b-", "b\u{2014}"),
            ("c\n", "c\r\n"),
            ("\"\nb", "\u{201c}\r\nb"),
        ];
        for (read, original) in cases {
            let at = mapped.text.find(read).unwrap();
            assert_eq!(&text[mapped.original(at..at + read.len())], original, "{read:?}");
        }
    }
}
