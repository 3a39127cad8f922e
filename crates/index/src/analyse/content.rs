//! What a file's bytes are, before anybody reads them as code.

use std::borrow::Cow;

use crate::facts::Content;

/// Longer files are known and not read.
pub const MAX_BYTES: usize = 4 << 20;
/// Bytes in which a NUL tells that a file isn't text, as git and grep have it.
const LOOKED_AT: usize = 8 << 10;
/// A line that is longer was written by a program. People's longest are tables and messages of a few hundred.
const LONG_LINE: usize = 10_000;
/// Bytes of a line, on the average, above which a file was written by a program.
const LONG_LINES: usize = 400;
/// Shorter files may have lines as they like.
const SHORT: usize = 4 << 10;

/// What a file's content is, and its text if it is to be read: UTF-16 made UTF-8, what is invalid replaced.
#[must_use]
pub(super) fn read(bytes: &[u8]) -> (Content, Cow<'_, str>) {
    if bytes.len() > MAX_BYTES {
        return (Content::Huge, Cow::Borrowed(""));
    }
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(wide(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(wide(rest, u16::from_be_bytes)),
        _ => {
            let beginning = bytes.get(..LOOKED_AT).unwrap_or(bytes);
            if memchr::memchr(0, beginning).is_some() {
                return (Content::Binary, Cow::Borrowed(""));
            }
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            // Looking whether it is valid at all is much quicker than looking for what isn't.
            match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => String::from_utf8_lossy(bytes),
            }
        }
    };
    if is_minified(text.as_bytes()) { (Content::Minified, text) } else { (Content::Text, text) }
}

/// A file's bytes as they are searched: UTF-16 made UTF-8, without a byte order mark.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Cow::Owned(read(bytes).1.into_owned().into_bytes()),
        _ => Cow::Borrowed(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)),
    }
}

fn wide(bytes: &[u8], number: fn([u8; 2]) -> u16) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|unit| number(*unit));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn is_minified(text: &[u8]) -> bool {
    if text.len() < SHORT {
        return false;
    }
    let (mut lines, mut start, mut longest) = (1, 0, 0);
    for end in memchr::memchr_iter(b'\n', text) {
        longest = longest.max(end - start);
        start = end + 1;
        lines += 1;
    }
    longest = longest.max(text.len() - start);
    longest > LONG_LINE || text.len() / lines > LONG_LINES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_from_what_is_none() {
        assert_eq!(read(b"fn main() {}\n"), (Content::Text, Cow::Borrowed("fn main() {}\n")));
        assert_eq!(read(b"\xef\xbb\xbfa").1, "a");
        assert_eq!(read(b"\xff\xfeh\0i\0").1, "hi");
        assert_eq!(read(b"\xfe\xff\0h\0i").1, "hi");
        assert_eq!(read(b"a\xffb").1, "a\u{fffd}b");
        assert_eq!(read(b"\x7fELF\0\0").0, Content::Binary);
        assert_eq!(read(&vec![b'a'; MAX_BYTES + 1]).0, Content::Huge);
        assert_eq!(read("x = 1;".repeat(4_000).as_bytes()).0, Content::Minified);
        assert_eq!(read("let x = 1;\n".repeat(4_000).as_bytes()).0, Content::Text);
    }
}
