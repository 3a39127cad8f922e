//! Divides a text into units: sentences, lines, and pieces of long lines.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Bytes of a unit from which on it ends at the next white space: a text may go in circles without
/// ending a sentence.
const LONG_UNIT_BYTES: usize = 64;
/// Maximum bytes of a unit: a text may have no white space either.
const MAX_UNIT_BYTES: usize = 128;
/// Maximum letters and digits of a word in a language that divides words. A longer one is a hash or
/// base 64.
const MAX_WORD_CHARACTERS: u32 = 32;
/// Bytes kept of a line's beginning: the longest mark in [`CODE_REGIONS`].
const MAX_LINE_HEAD_BYTES: usize = 16;
/// Blanks before a line that make it code, as in Markdown.
const CODE_INDENT: usize = 4;

/// Beginnings of lines between which there is code, as (first line, last line).
const CODE_REGIONS: [(&str, &str); 5] = [
    ("```", "```"),
    ("~~~", "~~~"),
    ("<edit", "</edit"),
    ("<<<<<<<", ">>>>>>>"),
    ("*** Begin Patch", "*** End Patch"),
];
/// First characters of a line of code, data or a table.
const CODE_BEGINNINGS: &str = "|\"'{}[](<+$";
/// Last characters of a line of code, data or a table.
const CODE_ENDINGS: &str = "|,;{}[](\\";

/// A piece of text, as the detector compares it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextUnit {
    /// Hash of the text, with all white space alike.
    pub(super) hash: u64,
    /// The hash of the text with every number replaced by the same digit.
    pub(super) shape: u64,
    /// Number of words.
    pub(super) words: u32,
    /// Number of letters in these words.
    pub(super) letters: u32,
    /// Number of characters but white space.
    pub(super) characters: u32,
    /// True for a part of code, data or a table.
    pub(super) is_code: bool,
    /// The offset in the text where the unit ends, in bytes.
    pub(super) end: usize,
}

/// Divides a streamed text into units. It doesn't matter into which pieces the stream divides the
/// text.
#[derive(Debug, Default)]
pub(super) struct UnitSplitter {
    /// Bytes of the text so far.
    offset: usize,
    draft: UnitDraft,
    line: LineStart,
    /// The beginning of the line that ends the code, within code.
    region_end: Option<&'static str>,
}

impl UnitSplitter {
    /// Reads the next character. Returns the unit that ends with it, if any.
    pub(super) fn push(&mut self, character: char) -> Option<TextUnit> {
        self.offset = self.offset.saturating_add(character.len_utf8());
        if character == '\n' {
            let in_code =
                self.region_end.is_some() || self.line.is_code() || self.line.code_region_end().is_some();
            let ends_as_code = self.draft.last.is_some_and(|last| CODE_ENDINGS.contains(last));
            let unit = self.draft.finish(in_code || ends_as_code, self.offset);
            self.end_line();
            return Some(unit);
        }
        self.line.push(character);
        let ends = if character.is_whitespace() {
            self.draft.push_blank();
            self.draft.ended || self.draft.bytes >= LONG_UNIT_BYTES
        } else {
            self.draft.push(character);
            matches!(character, '。' | '！' | '？')
        };
        (ends || self.draft.bytes >= MAX_UNIT_BYTES)
            .then(|| self.draft.finish(self.region_end.is_some() || self.line.is_code(), self.offset))
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.region_end = match self.region_end {
            Some(end) if line.head.starts_with(end) => None,
            None => line.code_region_end(),
            within => within,
        };
    }
}

/// The beginning of the current line.
#[derive(Debug, Default)]
struct LineStart {
    indent: usize,
    head: String,
}

impl LineStart {
    fn push(&mut self, character: char) {
        if self.head.is_empty() && character.is_whitespace() {
            self.indent = self.indent.saturating_add(if character == '\t' { CODE_INDENT } else { 1 });
        } else if self.head.len() < MAX_LINE_HEAD_BYTES {
            self.head.push(character);
        }
    }

    fn is_code(&self) -> bool {
        self.indent >= CODE_INDENT || self.head.starts_with(|first| CODE_BEGINNINGS.contains(first))
    }

    fn code_region_end(&self) -> Option<&'static str> {
        CODE_REGIONS.iter().find(|(begin, _)| self.head.starts_with(begin)).map(|(_, end)| *end)
    }
}

/// The unit that is being read.
#[derive(Debug, Default)]
struct UnitDraft {
    hash: DefaultHasher,
    shape: DefaultHasher,
    bytes: usize,
    words: u32,
    letters: u32,
    characters: u32,
    /// Letters and digits of the current word.
    word_characters: u32,
    word_letters: u32,
    in_number: bool,
    /// True if white space comes between the last character and the next.
    has_blank: bool,
    /// The last character but white space.
    last: Option<char>,
    /// True after the end of a sentence, also if a quotation mark or a parenthesis follows.
    ended: bool,
}

impl UnitDraft {
    fn push(&mut self, character: char) {
        if std::mem::take(&mut self.has_blank) {
            ' '.hash(&mut self.hash);
            ' '.hash(&mut self.shape);
        }
        character.hash(&mut self.hash);
        let is_digit = character.is_numeric();
        if !(is_digit && self.in_number) {
            (if is_digit { '0' } else { character }).hash(&mut self.shape);
        }
        self.in_number = is_digit;
        self.bytes = self.bytes.saturating_add(character.len_utf8());
        self.characters = self.characters.saturating_add(1);
        self.last = Some(character);
        self.ended = matches!(character, '.' | '!' | '?')
            || self.ended && matches!(character, '"' | '\'' | ')' | '*' | '”' | '’' | '`');
        self.count_word(character);
    }

    fn push_blank(&mut self) {
        // Blanks at the beginning don't count, but for the length.
        self.bytes = self.bytes.saturating_add(1);
        self.has_blank = self.last.is_some();
        self.in_number = false;
        self.end_word();
    }

    fn count_word(&mut self, character: char) {
        if character.is_alphabetic() && character >= '\u{2e80}' {
            // These scripts don't divide words by blanks.
            self.end_word();
            self.words = self.words.saturating_add(1);
            self.letters = self.letters.saturating_add(1);
        } else if character.is_alphanumeric() {
            self.word_characters = self.word_characters.saturating_add(1);
            let letter = u32::from(character.is_alphabetic());
            self.word_letters = self.word_letters.saturating_add(letter);
        } else {
            self.end_word();
        }
    }

    fn end_word(&mut self) {
        let (all, letters) =
            (std::mem::take(&mut self.word_characters), std::mem::take(&mut self.word_letters));
        if letters > 0 && all <= MAX_WORD_CHARACTERS {
            self.words = self.words.saturating_add(1);
            self.letters = self.letters.saturating_add(letters);
        }
    }

    fn finish(&mut self, is_code: bool, end: usize) -> TextUnit {
        self.end_word();
        let done = std::mem::take(self);
        TextUnit {
            hash: done.hash.finish(),
            shape: done.shape.finish(),
            words: done.words,
            letters: done.letters,
            characters: done.characters,
            is_code,
            end,
        }
    }
}
