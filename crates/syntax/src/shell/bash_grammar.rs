//! Running the bash grammar, which is C code, on untrusted text: its input is restricted to what
//! its scanner handles safely.

use std::cell::RefCell;
use std::ops::ControlFlow;

use tree_sitter::{Decode, ParseOptions, ParseState, Parser, Tree};

/// Maximum calls of the parser's progress callback (one per hundred parser steps), per byte of the
/// text and in all. Ordinary texts take one per thirty bytes; a text that reaches the maximum makes
/// the parser follow many readings at once.
const PROGRESS_CALL_LIMIT_PER_BYTE: usize = 2;
const BASE_PROGRESS_CALL_LIMIT: usize = 64;
/// Bytes that the parser is given at once, except for the rest of a character.
const PARSER_CHUNK_BYTES: usize = 256;
/// Maximum average number of reads of each chunk. The parser looks ahead for the ends of quotes and
/// here-documents, and in error recovery does so again and again, to the end of the text: work that
/// grows with the square of the length.
const MAX_READS_PER_CHUNK: usize = 24;

/// Maximum here-documents in one text.
const MAX_HEREDOCS: usize = 8;
/// Maximum bytes of a here-document's delimiter. The scanner keeps all of them, and seven bytes for
/// each, in 1024 bytes.
const MAX_DELIMITER_BYTES: usize = 64;

/// Replacement for every character that isn't ASCII: no blank, letter or digit to the C library,
/// and an ordinary part of a word to the grammar, as all of them are.
const REPLACEMENT_CHAR: char = '\u{ff}';

thread_local! {
    /// One parser a thread. A parser keeps its stacks from text to text, and nothing else.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Decodes text for the grammar. Its scanner calls `isdigit` with the character after a `{`, which
/// looks it up in a table that ends at 255: a character beyond reads unrelated memory. So the
/// grammar sees [`REPLACEMENT_CHAR`] in its place, with the same length.
struct NarrowDecoder;

impl Decode for NarrowDecoder {
    fn decode(bytes: &[u8]) -> (i32, u32) {
        let (character, length) = narrow_first_char(bytes);
        (u32::from(character).cast_signed(), length)
    }
}

/// Returns the first character of a text, replaced, and its length: at least one, because the
/// parser would not advance otherwise.
fn narrow_first_char(bytes: &[u8]) -> (char, u32) {
    match bytes.first().copied() {
        None => ('\0', 1),
        Some(ascii @ 0..0x80) => (char::from(ascii), 1),
        // The parser is given whole characters, so there are as many bytes as the first one says.
        Some(0x80..0xe0) => (REPLACEMENT_CHAR, 2),
        Some(0xe0..0xf0) => (REPLACEMENT_CHAR, 3),
        Some(0xf0..) => (REPLACEMENT_CHAR, 4),
    }
}

/// Returns the bytes from `at` that the parser is given at once. Never a part of a character: the
/// parser would ask for the rest and use it without checking that there is any.
fn parser_chunk(text: &str, at: usize) -> &[u8] {
    let end = text.ceil_char_boundary(at - at % PARSER_CHUNK_BYTES + PARSER_CHUNK_BYTES);
    text.get(at..end).unwrap_or_default().as_bytes()
}

/// Returns true if every here-document ends with a plain name. The grammar's scanner keeps these
/// names in a buffer of a fixed size, and mishandles unusual or empty ones, so a text that may have
/// one isn't parsed.
pub(super) fn has_plain_delimiters(text: &str) -> bool {
    let mut rest = text;
    let mut documents = 0;
    while let Some(at) = rest.find("<<") {
        let after = rest.get(at + 2..).unwrap_or_default();
        if let Some(word) = after.strip_prefix('<') {
            // More than three `<` would be read as something else.
            if word.starts_with('<') {
                return false;
            }
            rest = word;
            continue;
        }
        documents += 1;
        let word = after.strip_prefix('-').unwrap_or(after).trim_start_matches([' ', '\t']);
        let name = word.strip_prefix(['\'', '"', '\\']).unwrap_or(word);
        let plain = name.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric());
        if documents > MAX_HEREDOCS || !plain || delimiter_bytes(word) > MAX_DELIMITER_BYTES {
            return false;
        }
        rest = name;
    }
    true
}

/// Returns the bytes of a here-document's delimiter as the scanner takes it: up to the next blank,
/// or to the end of its quotes.
fn delimiter_bytes(word: &str) -> usize {
    let quote = word.bytes().next().filter(|byte| matches!(byte, b'\'' | b'"'));
    let mut escaped = false;
    let inside = word.bytes().skip(usize::from(quote.is_some())).take_while(|byte| {
        if std::mem::take(&mut escaped) {
            return true;
        }
        escaped = *byte == b'\\';
        match quote {
            Some(quote) => !matches!(byte, b'\r' | b'\n') && *byte != quote,
            // A vertical tab ends a word to C.
            None => !byte.is_ascii_whitespace() && *byte != b'\x0b',
        }
    });
    inside.count()
}

/// Returns the grammar's tree; `None` where parsing would take too long.
pub(super) fn parse_tree(text: &str, steps: &mut usize) -> Option<Tree> {
    PARSER.with(|parser| {
        let mut slot = parser.try_borrow_mut().ok()?;
        if slot.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *slot = Some(parser);
        }
        let parser = slot.as_mut()?;
        let most = BASE_PROGRESS_CALL_LIMIT + text.len() * PROGRESS_CALL_LIMIT_PER_BYTE;
        let mut look = |state: &ParseState| {
            *steps += 1;
            if *steps > most || (state.has_error() && *steps > BASE_PROGRESS_CALL_LIMIT) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut look);
        let mut reads = MAX_READS_PER_CHUNK * (2 + text.len() / PARSER_CHUNK_BYTES);
        let mut read = |at: usize, _| {
            reads = reads.saturating_sub(1);
            // When the reads are used up, the text seems to end; the tree is then discarded.
            if reads == 0 { &[] } else { parser_chunk(text, at) }
        };
        let tree = parser.parse_custom_encoding::<NarrowDecoder, _, _>(&mut read, None, Some(options));
        let tree = tree.filter(|_| reads > 0);
        if tree.is_none() {
            parser.reset();
        }
        tree
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_grammar_sees_no_character_beyond_the_tables_of_c() {
        for character in (0..=0x0010_ffff).filter_map(char::from_u32) {
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            let (seen, length) = NarrowDecoder::decode(bytes);
            assert_eq!(usize::try_from(length).unwrap(), bytes.len(), "{character:?}");
            assert!(
                if character.is_ascii() { seen == character as i32 } else { seen == 255 },
                "{character:?}"
            );
        }
        // No value that the scanner could take for a failure, after which it would read on
        // anywhere.
        for byte in 0..=255 {
            let (seen, length) = NarrowDecoder::decode(&[byte]);
            assert!((0..=255).contains(&seen) && length > 0, "{byte}");
        }
    }

    #[test]
    fn the_grammar_is_given_whole_characters() {
        for character in ["a", "\u{e9}", "\u{65e5}", "\u{1f600}"] {
            for before in 0..4 {
                let text = format!("{}{}", "a".repeat(before), character.repeat(3 * PARSER_CHUNK_BYTES));
                let mut given = Vec::new();
                while given.len() < text.len() {
                    let chunk = parser_chunk(&text, given.len());
                    assert!(
                        !chunk.is_empty() && chunk.len() <= PARSER_CHUNK_BYTES + 3,
                        "{character:?} after {before}"
                    );
                    assert!(std::str::from_utf8(chunk).is_ok(), "{character:?} after {before}");
                    given.extend_from_slice(chunk);
                }
                assert_eq!(given, text.as_bytes());
                assert!(parser_chunk(&text, text.len()).is_empty());
            }
        }
    }

    #[test]
    fn all_delimiters_fit_the_scanner() {
        let (fits, long) = ("E".repeat(MAX_DELIMITER_BYTES), "E".repeat(MAX_DELIMITER_BYTES + 1));
        for quoted in [("", "\n"), ("'", "'\n"), ("\"", "\"\n"), ("-", "\n"), (" ", " x\n")] {
            assert!(has_plain_delimiters(&format!("cat <<{}{fits}{}", quoted.0, quoted.1)), "{quoted:?}");
            assert!(!has_plain_delimiters(&format!("cat <<{}{long}{}", quoted.0, quoted.1)), "{quoted:?}");
        }
        // The scanner goes on where a name ends; only our check stops there.
        for rest in [";", "\\ ", "\\\n", "\u{e9}", "'", "="] {
            assert!(
                !has_plain_delimiters(&format!("cat <<E{}", rest.repeat(MAX_DELIMITER_BYTES))),
                "{rest:?}"
            );
        }
        assert!(!has_plain_delimiters(&format!("cat <<'E{}'", " ".repeat(MAX_DELIMITER_BYTES))));
        assert!(has_plain_delimiters(&"cat <<E\n".repeat(MAX_HEREDOCS)));
        assert!(!has_plain_delimiters(&"cat <<E\n".repeat(MAX_HEREDOCS + 1)));
        for strange in ["<<", "<<\n", "<<''\n", "<<-", "<<\\\\E", "<<$x\n", "<<\u{e9}\n", "<<<<"] {
            assert!(!has_plain_delimiters(strange), "{strange:?}");
        }
    }
}
