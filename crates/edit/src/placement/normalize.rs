//! The readings under which two lines count as the same, and texts read that way with a way back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

/// The differences that a line-by-line comparison ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineReading {
    /// Blanks at the end.
    TrailingWhitespace,
    /// Blanks at both ends.
    Indentation,
    /// Blanks at both ends and their number within, and the typographic form of characters.
    InnerWhitespace,
}

impl LineReading {
    /// The line as this reading sees it. Two lines are the same exactly if these are equal.
    pub(crate) fn normalize_line(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::TrailingWhitespace => Cow::Borrowed(line.trim_end()),
            Self::Indentation => Cow::Borrowed(line.trim()),
            Self::InnerWhitespace => squeeze_blanks(line, StringBlanks::Loose),
        }
    }
}

/// A hash of a line's characters that aren't blank, in their plain form (FNV-1a, 64 bits). Lines
/// that are the same under any reading have the same.
pub(crate) fn hash_without_blanks(line: &str) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let start = 0xcbf2_9ce4_8422_2325;
    if line.is_ascii() {
        let bytes = line.bytes().filter(|byte| !matches!(byte, b' ' | 9..=13));
        return bytes.fold(start, add);
    }
    let mut buffer = [0; 4];
    compose_accents(line)
        .chars()
        .flat_map(plain_chars)
        .filter(|c| !c.is_whitespace())
        .fold(start, |hash, character| character.encode_utf8(&mut buffer).bytes().fold(hash, add))
}

/// The plain form of a typographic character that models and editors exchange for it.
pub(crate) fn plain_chars(character: char) -> impl Iterator<Item = char> + Clone {
    let (one, more) = match character {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => ('\'', 0),
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => ('"', 0),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => ('-', 0),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => (' ', 0),
        '\u{2026}' => ('.', 2),
        // The full-width forms of ASCII's punctuation, in its order. Letters and digits aren't
        // exchanged for them by accident.
        '\u{ff01}'..='\u{ff0f}'
        | '\u{ff1a}'..='\u{ff20}'
        | '\u{ff3b}'..='\u{ff40}'
        | '\u{ff5b}'..='\u{ff5e}' => (char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character), 0),
        other => (other, 0),
    };
    std::iter::repeat_n(one, 1 + more)
}

/// Returns true if a character's plain form is another.
fn is_typographic(character: char) -> bool {
    matches!(character, '\u{a0}' | '\u{2000}'..='\u{202f}' | '\u{205f}' | '\u{2212}' | '\u{3000}')
        && !plain_chars(character).eq(std::iter::once(character))
}

/// Returns true if a character may combine with the one before it, or has another canonical form:
/// all that can make a text differ from its composed form. Says yes too often rather than too
/// seldom.
fn may_compose(character: char) -> bool {
    // Latin, Greek, Cyrillic, punctuation, ideographs and syllables that stand for themselves are
    // most of all text.
    !matches!(character,
        '\0'..='\u{2ff}' | '\u{370}'..='\u{373}' | '\u{375}'..='\u{37d}' | '\u{388}'..='\u{482}' | '\u{48a}'..='\u{590}'
        | '\u{2010}'..='\u{20cf}' | '\u{2190}'..='\u{2328}' | '\u{232b}'..='\u{2adb}' | '\u{2b00}'..='\u{2cee}'
        | '\u{3000}'..='\u{3029}' | '\u{3030}'..='\u{3098}' | '\u{309b}'..='\u{a66e}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{e000}'..='\u{f8ff}' | '\u{ff00}'..='\u{ffff}' | '\u{1f000}'..='\u{1faff}')
}

/// A text with letters and their accents composed (Unicode's NFC).
pub(crate) fn compose_accents(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(may_compose) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfc().collect())
}

/// True if string literals are compared as they are or with their blanks squeezed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringBlanks {
    /// Blanks inside them don't count: good enough to find a place.
    Loose,
    /// Every character inside them counts: needed where the line is changed.
    Strict,
}

/// A character's class, which decides if blanks beside it separate two tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Word,
    Operator,
    Bracket,
    /// Two beside each other are one string that ends and another that begins, or an escape.
    Quote,
}

fn class_of(character: char) -> CharClass {
    match character {
        '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' => CharClass::Bracket,
        '"' | '\'' | '`' => CharClass::Quote,
        c if c.is_alphanumeric() || c == '_' => CharClass::Word,
        _ => CharClass::Operator,
    }
}

/// A line with plain characters and without the blanks that don't separate tokens: one space stays
/// between two words and between two operators, so that `a b` is never `ab`, nor `> =` ever `>=`.
pub(crate) fn squeeze_blanks(line: &str, strings: StringBlanks) -> Cow<'_, str> {
    let line = compose_accents(line.trim());
    let line = line.as_ref();
    let mut out = String::with_capacity(line.len());
    let mut before: Option<char> = None;
    let mut blank = false;
    let mut rest = line.char_indices();
    while let Some((at, own)) = rest.next() {
        for character in plain_chars(own) {
            if character.is_whitespace() {
                blank = true;
                continue;
            }
            if let (true, Some(last)) = (blank, before)
                && class_of(last) == class_of(character)
                && class_of(last) != CharClass::Bracket
            {
                out.push(' ');
            }
            blank = false;
            out.push(character);
            before = Some(character);
        }
        let quoted = before.is_some_and(|last| matches!(last, '"' | '\'' | '`')) && !blank;
        if strings == StringBlanks::Strict && quoted {
            let literal = leading_string_literal(line.get(at..).unwrap_or_default());
            out.extend(literal.chars().skip(1).flat_map(plain_chars));
            while rest.offset() < at + literal.len() && rest.next().is_some() {}
            before = literal.chars().next_back().and_then(|last| plain_chars(last).next());
        }
    }
    Cow::Owned(out)
}

/// The string literal that `text` begins with, quotes included; all of `text` where it doesn't
/// close, because whatever follows an open quote may belong to it.
fn leading_string_literal(text: &str) -> &str {
    let mut characters = text.char_indices();
    let Some((_, quote)) = characters.next() else { return text };
    let quote = plain_chars(quote).next();
    let mut escaped = false;
    for (at, character) in characters {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if plain_chars(c).next() == quote => {
                return text.get(..at + character.len_utf8()).unwrap_or(text);
            }
            _ => {}
        }
    }
    text
}

/// A text read with line feeds only, and perhaps composed and with plain characters, with a way
/// back to its own bytes.
pub(crate) struct MappedText<'a> {
    /// The text as it is read.
    pub(crate) text: Cow<'a, str>,
    source: &'a str,
    typography: bool,
    /// The points at which the distance between the two offsets changes: (offset as read, offset in
    /// the original).
    steps: Vec<(usize, usize)>,
}

impl<'a> MappedText<'a> {
    /// Reads CR LF as LF, and with `typography` look-alikes in their plain form.
    pub(crate) fn new(source: &'a str, typography: bool) -> Self {
        let typography = typography && !source.is_ascii();
        let special = |c: char| c == '\r' || (typography && (is_typographic(c) || may_compose(c)));
        let crlf_only = !typography && memchr::memchr(b'\r', source.as_bytes()).is_none();
        if crlf_only || !source.contains(special) {
            return Self { text: Cow::Borrowed(source), source, typography, steps: Vec::new() };
        }
        let mut read = String::with_capacity(source.len());
        let mut steps = Vec::new();
        // A text has few different accented letters, many times.
        let mut known: HashMap<&str, String> = HashMap::new();
        let mut at = 0;
        while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with("\r\n") {
                at += 1;
                steps.push((read.len(), at));
                continue;
            }
            if !typography {
                // Whole stretches at once: nothing changes before the next carriage return.
                let stretch = memchr::memchr(b'\r', rest.as_bytes().get(1..).unwrap_or_default());
                let stretch = stretch.map_or(rest, |cr| rest.get(..=cr).unwrap_or(rest));
                read.push_str(stretch);
                at += stretch.len();
                continue;
            }
            // A plain run is copied at once but for its last character, which may be accented.
            let simple = rest.bytes().take_while(|byte| byte.is_ascii() && *byte != b'\r').count();
            let simple = if simple == rest.len() { simple } else { simple.saturating_sub(1) };
            if let Some(simple) = rest.get(..simple).filter(|simple| !simple.is_empty()) {
                read.push_str(simple);
                at += simple.len();
                continue;
            }
            let cluster = leading_cluster(rest);
            let as_read = known
                .entry(cluster)
                .or_insert_with(|| compose_accents(cluster).chars().flat_map(plain_chars).collect());
            read.push_str(as_read);
            at += cluster.len();
            if as_read.len() != cluster.len() {
                steps.push((read.len(), at));
            }
        }
        Self { text: Cow::Owned(read), source, typography, steps }
    }

    /// The bytes of the original that were read as `range`; `None` where the range begins or ends
    /// within what was read as one. A CR LF pair is never cut in two.
    pub(crate) fn original_range(&self, range: Range<usize>) -> Option<Range<usize>> {
        let own = self.original_offset(range.start)..self.original_offset(range.end);
        if !self.typography {
            return Some(own);
        }
        let read = MappedText::new(self.source.get(own.clone())?, true);
        (Some(read.text.as_ref()) == self.text.get(range)).then_some(own)
    }

    fn original_offset(&self, offset: usize) -> usize {
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

/// The character that `text` begins with, and those after it that may combine with it.
pub(crate) fn leading_cluster(text: &str) -> &str {
    let mut characters = text.char_indices().skip(1);
    let end = characters.find(|(_, c)| !may_compose(*c)).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_count_only_where_they_separate_tokens() {
        let same = [
            ("f( a,b )", "f(a, b)"),
            ("  x  =  1", "x=1"),
            ("if(x) {", "if (x){"),
            ("a\u{a0}b", "a  b"),
            ("{\"a\": \"b\"}", "{ \"a\":\"b\" }"),
            ("x ='a'", "x= 'a'"),
        ];
        for (one, other) in same {
            assert_eq!(
                squeeze_blanks(one, StringBlanks::Strict),
                squeeze_blanks(other, StringBlanks::Strict),
                "{one} / {other}"
            );
        }
        let different =
            [("a b", "ab"), ("x > = 1", "x >= 1"), ("1 2", "12"), ("a - -b", "a --b"), ("'a' 'b'", "'a''b'")];
        for (one, other) in different {
            assert_ne!(
                squeeze_blanks(one, StringBlanks::Loose),
                squeeze_blanks(other, StringBlanks::Loose),
                "{one} / {other}"
            );
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
            assert_ne!(
                squeeze_blanks(one, StringBlanks::Strict),
                squeeze_blanks(other, StringBlanks::Strict),
                "{one} / {other}"
            );
        }
        assert_eq!(
            squeeze_blanks("f( 'a b' ,x)", StringBlanks::Strict),
            squeeze_blanks("f('a b', x)", StringBlanks::Strict)
        );
    }

    #[test]
    fn a_mapped_text_finds_its_way_back() {
        let text = "a\u{201c}\r\nb\u{2014}c\r\n";
        let mapped = MappedText::new(text, true);
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
            assert_eq!(&text[mapped.original_range(at..at + read.len()).unwrap()], original, "{read:?}");
        }
    }
}
