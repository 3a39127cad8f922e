//! Word boundaries, and parts of words.

/// Maximum bytes of a word. Longer ones are encoded data, which nobody searches for by words.
pub const MAX_WORD_BYTES: usize = 128;
/// Classes of bytes for the fast path.
const WORD_BYTE: u8 = 1;
const NON_ASCII_BYTE: u8 = 2;

/// Class by byte: 0 separates, [`WORD_BYTE`] belongs to a word, [`NON_ASCII_BYTE`] belongs to a
/// character beyond ASCII.
static BYTE_CLASSES: [u8; 256] = byte_classes();

#[allow(clippy::indexing_slicing)] // Counted up to the length; it runs when this is compiled.
const fn byte_classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation)]
        let character = byte as u8;
        if character.is_ascii_alphanumeric() || character == b'_' {
            classes[byte] = WORD_BYTE;
        } else if character >= 0x80 {
            classes[byte] = NON_ASCII_BYTE;
        }
        byte += 1;
    }
    classes
}

fn byte_class(byte: u8) -> u8 {
    BYTE_CLASSES.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Calls `show` with the range of each word of a text, `left` at most: runs of word characters, and
/// pairs of characters of unspaced scripts.
pub(super) fn visit_words(text: &str, left: &mut u32, show: &mut impl FnMut(usize, usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(|byte| byte_class(*byte) == 0) {
            at += 1;
        }
        let start = at;
        while bytes.get(at).is_some_and(|byte| byte_class(*byte) == WORD_BYTE) {
            at += 1;
        }
        match bytes.get(at) {
            Some(byte) if byte_class(*byte) == NON_ASCII_BYTE => {
                let rest = text.get(start..).unwrap_or_default();
                at = start + visit_unicode_words(rest, left, &mut |from, to| show(start + from, start + to));
            }
            end => {
                if at > start && at - start <= MAX_WORD_BYTES {
                    if *left == 0 {
                        return;
                    }
                    *left -= 1;
                    show(start, at);
                }
                if end.is_none() {
                    return;
                }
            }
        }
        if *left == 0 {
            return;
        }
    }
}

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Separator,
    Word,
    Unspaced,
}

fn char_class(character: char) -> CharClass {
    match u32::from(character) {
        // Thai, Lao, Myanmar, Khmer, with the marks above and below their letters.
        0x0E01..=0x0E3A | 0x0E40..=0x0E4E | 0x0E81..=0x0EDF | 0x1000..=0x109F | 0x1780..=0x17D3
        // Hangul's letters; Japanese and Chinese.
        | 0x1100..=0x11FF | 0x3005..=0x3007 | 0x3041..=0x3096 | 0x30A1..=0x30FA | 0x30FC..=0x30FF
        | 0x3105..=0x312F | 0x3131..=0x318E | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFF66..=0xFF9D | 0x20000..=0x323AF => CharClass::Unspaced,
        // Combining accents.
        0x0300..=0x036F => CharClass::Word,
        _ if character.is_alphanumeric() || character == '_' => CharClass::Word,
        _ => CharClass::Separator,
    }
}

/// Calls `show` with the words at a text's beginning, up to the first separator beyond ASCII or the
/// end of the first run; returns the number of bytes, which is at least one.
fn visit_unicode_words(text: &str, left: &mut u32, show: &mut impl FnMut(usize, usize)) -> usize {
    let mut characters = text.char_indices().peekable();
    let Some((_, first)) = characters.peek().copied() else { return text.len().max(1) };
    let kind = char_class(first);
    let mut previous = None;
    let mut count = 0;
    let end = loop {
        let Some((at, character)) = characters.peek().copied() else { break text.len() };
        if char_class(character) != kind || kind == CharClass::Separator && character.is_ascii() {
            break at;
        }
        characters.next();
        count += 1;
        if kind == CharClass::Unspaced
            && let Some(previous) = previous.replace(at)
        {
            if *left == 0 {
                return text.len();
            }
            *left -= 1;
            show(previous, at + character.len_utf8());
        }
    };
    let whole = kind == CharClass::Word && end <= MAX_WORD_BYTES || kind == CharClass::Unspaced && count == 1;
    if whole && *left > 0 {
        *left -= 1;
        show(0, end);
    }
    end.max(1)
}

/// Calls `show` with the parts of a word, split at underscores, between a small letter and a
/// capital, before the last of several capitals that a small letter follows, and between letters
/// and digits.
pub(super) fn visit_parts(word: &str, show: &mut impl FnMut(&str)) {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Case {
        None,
        Lower,
        Upper,
        Digit,
    }
    let case = |character: char| match character {
        '_' => Case::None,
        _ if character.is_numeric() => Case::Digit,
        _ if character.is_uppercase() => Case::Upper,
        _ => Case::Lower,
    };
    let mut start = 0;
    let mut before = Case::None;
    // The start of the last character, if it is a capital after another one.
    let mut last_capital = None;
    for (at, character) in word.char_indices() {
        let now = case(character);
        let cut = match (before, now) {
            (Case::Upper, Case::Lower) => last_capital.take(),
            _ if before != now => Some(at),
            _ => None,
        };
        if let Some(cut) = cut {
            show(word.get(start..cut).unwrap_or_default().trim_matches('_'));
            start = cut;
        }
        last_capital = (before == Case::Upper && now == Case::Upper).then_some(at);
        before = now;
    }
    show(word.get(start..).unwrap_or_default().trim_matches('_'));
}

/// Returns true if a character is of a script without spaces.
pub(super) fn is_unspaced(character: char) -> bool {
    char_class(character) == CharClass::Unspaced
}
