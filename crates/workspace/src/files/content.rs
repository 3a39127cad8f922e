//! Contents of files: text in some encoding, or bytes.

use journeyman_protocol::ContentHash;

use crate::error::EncodeError;

/// A NUL in this many bytes from the beginning makes a file binary: the window that git and grep
/// use.
const BINARY_WINDOW: usize = 8 * 1024;
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const UTF16_LE_BOM: &[u8] = b"\xff\xfe";
const UTF16_BE_BOM: &[u8] = b"\xfe\xff";

/// The encoding of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, which ASCII is part of.
    Utf8,
    /// UTF-16, low byte first; only with a byte order mark.
    Utf16Le,
    /// UTF-16, high byte first; only with a byte order mark.
    Utf16Be,
    /// ISO 8859-1: a guess, made when the bytes aren't UTF-8 and look like text. Every byte is one
    /// character, so that nothing is lost even where the guess is wrong.
    Latin1,
}

impl Encoding {
    /// Returns the encoding's usual name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Latin1 => "ISO-8859-1",
        }
    }
}

/// The line ending of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    /// Line feed.
    Lf,
    /// Carriage return and line feed.
    CrLf,
    /// Some so, some so.
    Mixed,
    /// There is no line ending.
    None,
}

/// A file's text and how it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// The characters, without the byte order mark, with the line endings as they are.
    pub text: String,
    /// The encoding.
    pub encoding: Encoding,
    /// The line ending of a text.
    pub line_ending: LineEnding,
    /// True if the file begins with a byte order mark.
    pub bom: bool,
    /// True if the last line has an ending. False for an empty file.
    pub trailing_newline: bool,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileBody {
    /// Text.
    Text(DecodedText),
    /// A NUL near the beginning, or bytes that no known encoding explains.
    Binary,
}

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// The hash of its bytes: what a later write names as
    /// [`Expected::Hash`](crate::change::ExpectedState::Hash).
    pub hash: ContentHash,
    /// The file's size in bytes.
    pub size: u64,
    /// True if its owner may execute it.
    pub executable: bool,
    /// The content.
    pub body: FileBody,
}

impl FileContent {
    /// Types `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>, executable: bool) -> Self {
        let (hash, size) = (ContentHash::of(&bytes), bytes.len() as u64);
        Self { hash, size, executable, body: decode(bytes) }
    }

    /// Returns the text, unless the file is binary.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.body {
            FileBody::Text(text) => Some(&text.text),
            FileBody::Binary => None,
        }
    }

    /// Writes `new_text` as bytes the way this file is written: the same encoding, with a byte
    /// order mark if it had one. Line endings are taken as they are in `new_text`.
    ///
    /// # Errors
    /// [`EncodeError`] when the file is binary, or the encoding lacks a character.
    pub fn encode(&self, new_text: &str) -> Result<Vec<u8>, EncodeError> {
        let FileBody::Text(text) = &self.body else { return Err(EncodeError::Binary) };
        let mut bytes = Vec::with_capacity(new_text.len() + UTF8_BOM.len());
        match text.encoding {
            Encoding::Utf8 => {
                if text.bom {
                    bytes.extend_from_slice(UTF8_BOM);
                }
                bytes.extend_from_slice(new_text.as_bytes());
            }
            Encoding::Utf16Le => {
                bytes.extend_from_slice(UTF16_LE_BOM);
                bytes.extend(new_text.encode_utf16().flat_map(u16::to_le_bytes));
            }
            Encoding::Utf16Be => {
                bytes.extend_from_slice(UTF16_BE_BOM);
                bytes.extend(new_text.encode_utf16().flat_map(u16::to_be_bytes));
            }
            Encoding::Latin1 => {
                for (line, content) in new_text.split_inclusive('\n').enumerate() {
                    for character in content.chars() {
                        let byte = u8::try_from(u32::from(character)).map_err(|_| {
                            let encoding = text.encoding.name();
                            EncodeError::Unrepresentable { character, line: line + 1, encoding }
                        })?;
                        bytes.push(byte);
                    }
                }
            }
        }
        Ok(bytes)
    }
}

fn decode(bytes: Vec<u8>) -> FileBody {
    if let Some(rest) = bytes.strip_prefix(UTF16_LE_BOM) {
        return decode_utf16(rest, Encoding::Utf16Le, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(UTF16_BE_BOM) {
        return decode_utf16(rest, Encoding::Utf16Be, u16::from_be_bytes);
    }
    let window = bytes.get(..BINARY_WINDOW).unwrap_or(&bytes);
    if memchr::memchr(0, window).is_some() {
        return FileBody::Binary;
    }
    let bom = bytes.starts_with(UTF8_BOM);
    match String::from_utf8(bytes) {
        Ok(mut text) => {
            if bom {
                text.drain(..UTF8_BOM.len());
            }
            text_body(text, Encoding::Utf8, bom)
        }
        Err(error) => decode_latin1(error.as_bytes()),
    }
}

fn decode_utf16(bytes: &[u8], encoding: Encoding, unit: fn([u8; 2]) -> u16) -> FileBody {
    let (pairs, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        return FileBody::Binary;
    }
    match char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect::<Result<String, _>>() {
        Ok(text) if !text.contains('\0') => text_body(text, encoding, true),
        Ok(_) | Err(_) => FileBody::Binary,
    }
}

/// Decodes Latin-1. Bytes that aren't UTF-8 are taken for Latin-1 only if none is a control
/// character that doesn't occur in text.
fn decode_latin1(bytes: &[u8]) -> FileBody {
    let is_text =
        |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b | 0x20..=0x7e | 0x80..);
    if !bytes.iter().all(is_text) {
        return FileBody::Binary;
    }
    text_body(bytes.iter().map(|byte| char::from(*byte)).collect(), Encoding::Latin1, false)
}

fn text_body(text: String, encoding: Encoding, bom: bool) -> FileBody {
    let trailing_newline = text.ends_with('\n');
    let line_ending = detect_line_ending(text.as_bytes());
    FileBody::Text(DecodedText { text, encoding, line_ending, bom, trailing_newline })
}

fn detect_line_ending(text: &[u8]) -> LineEnding {
    let (mut lf, mut crlf) = (false, false);
    for at in memchr::memchr_iter(b'\n', text) {
        let after_cr = at.checked_sub(1).and_then(|before| text.get(before)) == Some(&b'\r');
        if after_cr {
            crlf = true
        } else {
            lf = true
        }
        if lf && crlf {
            return LineEnding::Mixed;
        }
    }
    match (lf, crlf) {
        (true, _) => LineEnding::Lf,
        (_, true) => LineEnding::CrLf,
        _ => LineEnding::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> FileContent {
        FileContent::from_bytes(bytes.to_vec(), false)
    }

    #[test]
    fn typing_table() {
        use Encoding::{Latin1, Utf8, Utf16Be, Utf16Le};
        use LineEnding::{CrLf, Lf, Mixed, None};
        type Row<'a> = (&'a [u8], Option<(&'a str, Encoding, LineEnding, bool, bool)>);
        let table: &[Row<'_>] = &[
            (b"", Some(("", Utf8, None, false, false))),
            (b"a", Some(("a", Utf8, None, false, false))),
            (b"a\nb\n", Some(("a\nb\n", Utf8, Lf, false, true))),
            (b"a\r\nb", Some(("a\r\nb", Utf8, CrLf, false, false))),
            (b"a\r\nb\n", Some(("a\r\nb\n", Utf8, Mixed, false, true))),
            (b"\n\r\n", Some(("\n\r\n", Utf8, Mixed, false, true))),
            ("gr\u{fc}n\n".as_bytes(), Some(("gr\u{fc}n\n", Utf8, Lf, false, true))),
            (b"\xef\xbb\xbfa\n", Some(("a\n", Utf8, Lf, true, true))),
            (b"\xef\xbb\xbf", Some(("", Utf8, None, true, false))),
            (b"\xff\xfea\0\r\0\n\0", Some(("a\r\n", Utf16Le, CrLf, true, true))),
            (b"\xfe\xff\0a\xd8\x3d\xde\0", Some(("a\u{1f600}", Utf16Be, None, true, false))),
            (b"gr\xfcn\n", Some(("gr\u{fc}n\n", Latin1, Lf, false, true))),
            (b"\xff\xfea", Option::None),
            (b"\xff\xfe\0\xd8", Option::None),
            (b"\xff\xfea\0\0\0", Option::None),
            (b"a\0b", Option::None),
            (b"\x7fELF\x01\xff", Option::None),
            (b"\xff\x01", Option::None),
        ];
        for (bytes, expected) in table {
            let content = read(bytes);
            let found = match &content.body {
                FileBody::Text(text) => Some((
                    text.text.as_str(),
                    text.encoding,
                    text.line_ending,
                    text.bom,
                    text.trailing_newline,
                )),
                FileBody::Binary => Option::None,
            };
            assert_eq!(found, *expected, "{bytes:?}");
            if let Some(text) = content.text() {
                assert_eq!(content.encode(text).as_deref(), Ok(*bytes), "round trip of {bytes:?}");
            }
        }
    }

    #[test]
    fn a_late_nul_is_text() {
        let mut bytes = vec![b'a'; BINARY_WINDOW];
        bytes.push(0);
        assert!(read(&bytes).text().is_some());
        bytes[BINARY_WINDOW - 1] = 0;
        assert_eq!(read(&bytes).body, FileBody::Binary);
    }

    #[test]
    fn what_the_encoding_lacks_is_refused_by_name() {
        let refusal = EncodeError::Unrepresentable { character: '\u{20ac}', line: 2, encoding: "ISO-8859-1" };
        assert_eq!(read(b"gr\xfcn\n").encode("gr\u{fc}n\n5 \u{20ac}\n"), Err(refusal));
        assert_eq!(read(b"\0").encode("a"), Err(EncodeError::Binary));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_that_are_text_come_back_as_they_were(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let content = read(&bytes);
            if let Some(text) = content.text() {
                proptest::prop_assert_eq!(content.encode(text).unwrap(), bytes);
            }
        }

        #[test]
        fn any_text_comes_back_from_any_unicode_encoding(text in "\\PC{0,40}", kind in 0..4) {
            let original: &[u8] = match kind { 0 => b"", 1 => UTF8_BOM, 2 => UTF16_LE_BOM, _ => UTF16_BE_BOM };
            let bytes = read(original).encode(&text).unwrap();
            let content = read(&bytes);
            proptest::prop_assert_eq!(content.text(), Some(text.as_str()));
        }
    }
}
