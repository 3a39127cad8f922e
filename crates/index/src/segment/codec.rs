//! Encoding of numbers in few bytes, and decoding of untrusted bytes.

use crate::analysis::UseKind;

/// Appends a number, seven bits a byte, the lowest first.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes with their length before them.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads from the beginning of some bytes. Reading beyond the end returns zeros, so that loops over
/// a damaged file end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteCursor<'a> {
    rest: &'a [u8],
}

impl<'a> ByteCursor<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the unread bytes.
    pub(crate) fn unread_bytes(self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn read_number(&mut self) -> u64 {
        // Most numbers are small.
        if let [first, rest @ ..] = self.rest
            && *first < 0x80
        {
            self.rest = rest;
            return u64::from(*first);
        }
        self.read_long_number()
    }

    fn read_long_number(&mut self) -> u64 {
        let mut number = 0;
        let mut shift = 0;
        while let [first, rest @ ..] = self.rest {
            self.rest = rest;
            if shift < 64 {
                number |= u64::from(first & 0x7f) << shift;
            }
            shift += 7;
            if *first < 0x80 {
                break;
            }
        }
        number
    }

    /// Reads a number that has to fit; a larger one becomes the maximum.
    #[inline]
    pub(crate) fn read_small_number(&mut self) -> u32 {
        u32::try_from(self.read_number()).unwrap_or(u32::MAX)
    }

    #[inline]
    pub(crate) fn read_bytes(&mut self) -> &'a [u8] {
        let len = usize::try_from(self.read_number()).unwrap_or(usize::MAX).min(self.rest.len());
        let (bytes, rest) = self.rest.split_at_checked(len).unwrap_or((&[], &[]));
        self.rest = rest;
        bytes
    }

    /// Decodes the next key of a dictionary into `key`, written as the length of the shared prefix
    /// and the other bytes, and returns the length of its list.
    pub(crate) fn next_key(&mut self, key: &mut Vec<u8>) -> usize {
        key.truncate(usize::try_from(self.read_number()).unwrap_or(usize::MAX));
        key.extend_from_slice(self.read_bytes());
        usize::try_from(self.read_number()).unwrap_or(usize::MAX)
    }

    pub(crate) fn read_text(&mut self) -> &'a str {
        std::str::from_utf8(self.read_bytes()).unwrap_or_default()
    }

    #[inline]
    fn read_fixed<const N: usize>(&mut self) -> [u8; N] {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().map_or(([0; N], &[][..]), |(a, b)| (*a, b));
        self.rest = rest;
        bytes
    }

    #[inline]
    pub(crate) fn read_u8(&mut self) -> u8 {
        u8::from_le_bytes(self.read_fixed())
    }

    #[inline]
    pub(crate) fn read_u32(&mut self) -> u32 {
        u32::from_le_bytes(self.read_fixed())
    }

    #[inline]
    pub(crate) fn read_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.read_fixed())
    }

    pub(crate) fn read_i64(&mut self) -> i64 {
        i64::from_le_bytes(self.read_fixed())
    }

    pub(crate) fn read_array<const N: usize>(&mut self) -> [u8; N] {
        self.read_fixed()
    }
}

/// A list of documents in ascending order, each with its number of occurrences, encoded as it
/// grows.
///
/// A document's distance from the previous one is shifted by one; the lowest bit tells whether a
/// count follows, which for a single occurrence it doesn't. The number of documents comes first.
#[derive(Debug, Default)]
pub(crate) struct CountList {
    last: u32,
    count: u32,
    bytes: Vec<u8>,
}

impl CountList {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the encoded list.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.count));
        out.extend_from_slice(&self.bytes);
    }

    pub(crate) fn push(&mut self, document: u32, times: u32) {
        let distance = u64::from(document.wrapping_sub(self.last)) << 1;
        self.last = document;
        self.count += 1;
        if times == 1 {
            put_number(&mut self.bytes, distance);
        } else {
            put_number(&mut self.bytes, distance | 1);
            put_number(&mut self.bytes, u64::from(times));
        }
    }
}

/// Returns the number of documents of an encoded [`CountList`].
pub(crate) fn count_list_len(bytes: &[u8]) -> u32 {
    ByteCursor::new(bytes).read_small_number()
}

/// Decodes a [`CountList`].
#[inline]
pub(crate) fn decode_counts(bytes: &[u8], mut visit: impl FnMut(u32, u32)) {
    let mut cursor = ByteCursor::new(bytes);
    cursor.read_number();
    let mut document = 0_u32;
    while !cursor.is_empty() {
        let head = cursor.read_number();
        document = document.wrapping_add((head >> 1) as u32);
        let times = if head & 1 == 0 { 1 } else { cursor.read_small_number() };
        visit(document, times);
    }
}

/// A list of documents in ascending order.
#[derive(Debug, Default)]
pub(crate) struct PlainList {
    last: u32,
    pub(crate) bytes: Vec<u8>,
}

impl PlainList {
    /// Creates an empty list in existing memory.
    pub(crate) fn with_buffer(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { last: 0, bytes }
    }

    pub(crate) fn push(&mut self, document: u32) {
        put_number(&mut self.bytes, u64::from(document.wrapping_sub(self.last)));
        self.last = document;
    }
}

/// Decodes a [`PlainList`].
#[inline]
pub(crate) fn decode_plain(bytes: &[u8], mut visit: impl FnMut(u32)) {
    let mut cursor = ByteCursor::new(bytes);
    let mut document = 0_u32;
    while !cursor.is_empty() {
        document = document.wrapping_add(cursor.read_small_number());
        visit(document);
    }
}

/// Appends a list of documents in ascending order that may be long: as distances, or as a bit for
/// each document from the first one on, whichever is shorter. The lowest bit of the first number
/// tells which.
pub(crate) fn put_dense(out: &mut Vec<u8>, documents: impl Iterator<Item = u32> + Clone) {
    let (Some(first), Some(last)) = (documents.clone().next(), documents.clone().last()) else { return };
    let bits = (last.saturating_sub(first) / 8 + 1) as usize;
    let start = out.len();
    put_number(out, u64::from(first) << 1);
    let after_first = out.len();
    let mut before = first;
    for document in documents.clone().skip(1) {
        put_number(out, u64::from(document.wrapping_sub(before)));
        before = document;
    }
    if out.len() - after_first <= bits {
        return;
    }
    out.truncate(start);
    put_number(out, u64::from(first) << 1 | 1);
    let after_first = out.len();
    out.resize(after_first + bits, 0);
    for document in documents {
        let own = document.saturating_sub(first);
        if let Some(byte) = out.get_mut(after_first + (own / 8) as usize) {
            *byte |= 1 << (own % 8);
        }
    }
}

/// Decodes a list of [`put_dense`].
pub(crate) fn decode_dense(bytes: &[u8], mut visit: impl FnMut(u32)) {
    let mut cursor = ByteCursor::new(bytes);
    if cursor.is_empty() {
        return;
    }
    let head = cursor.read_number();
    let first = (head >> 1) as u32;
    if head & 1 != 0 {
        for (at, byte) in (0_u32..).zip(cursor.unread_bytes()) {
            let mut left = *byte;
            while left != 0 {
                visit(first.saturating_add(at.saturating_mul(8)).saturating_add(left.trailing_zeros()));
                left &= left - 1;
            }
        }
        return;
    }
    let mut document = first;
    visit(document);
    while !cursor.is_empty() {
        document = document.wrapping_add(cursor.read_small_number());
        visit(document);
    }
}

/// A list of references to a name: file by file, in each by line.
#[derive(Debug, Default)]
pub(crate) struct UseList {
    file: u32,
    /// The line and the kind of the last use.
    last: u32,
    pub(crate) bytes: Vec<u8>,
}

impl UseList {
    /// Creates an empty list in existing memory.
    pub(crate) fn with_buffer(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { file: 0, last: 0, bytes }
    }

    /// Adds a use, given by its file and the number of [`pack_use`].
    pub(crate) fn push(&mut self, file: u32, packed: u32) {
        let distance = file.wrapping_sub(self.file);
        if distance != 0 {
            self.last = 0;
        }
        // Most are in the same file as the previous one: one bit tells whether a file's distance
        // comes first.
        let lines = (packed >> USE_KIND_BITS).wrapping_sub(self.last >> USE_KIND_BITS);
        let kind = packed & ((1 << USE_KIND_BITS) - 1);
        let number = u64::from(lines) << USE_KIND_BITS | u64::from(kind);
        put_number(&mut self.bytes, number << 1 | u64::from(distance != 0));
        if distance != 0 {
            put_number(&mut self.bytes, u64::from(distance));
        }
        (self.file, self.last) = (file, packed);
    }
}

/// Bits of a use's kind.
const USE_KIND_BITS: u32 = 2;

/// Packs a line and the kind of a use into a number.
pub(crate) fn pack_use(line: u32, kind: UseKind) -> u32 {
    line << USE_KIND_BITS | u32::from(kind as u8)
}

/// Returns the line and the kind of a number of [`pack_use`].
pub(crate) fn unpack_use(packed: u32) -> (u32, UseKind) {
    let kind = match packed & ((1 << USE_KIND_BITS) - 1) {
        1 => UseKind::Annotation,
        2 => UseKind::Member,
        3 => UseKind::ValueMember,
        _ => UseKind::Plain,
    };
    (packed >> USE_KIND_BITS, kind)
}

/// Decodes a [`UseList`] into files and numbers of [`pack_use`].
pub(crate) fn decode_uses(bytes: &[u8], mut visit: impl FnMut(u32, u32)) {
    let mut cursor = ByteCursor::new(bytes);
    let (mut file, mut line) = (0_u32, 0_u32);
    while !cursor.is_empty() {
        let number = cursor.read_number();
        if number & 1 != 0 {
            file = file.wrapping_add(cursor.read_small_number());
            line = 0;
        }
        let kind = (number >> 1) as u32 & ((1 << USE_KIND_BITS) - 1);
        line = line.wrapping_add((number >> 1 >> USE_KIND_BITS) as u32);
        visit(file, line << USE_KIND_BITS | kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_lists_come_back_in_the_shorter_form() {
        let lists: [Vec<u32>; 6] = [
            vec![],
            vec![0],
            vec![7, 4_000_000_000],
            (3..900).collect(),
            (0..5_000).step_by(7).collect(),
            (100..1_000_000).step_by(300).collect(),
        ];
        for list in lists {
            let mut bytes = Vec::new();
            put_dense(&mut bytes, list.iter().copied());
            let mut found = Vec::new();
            decode_dense(&bytes, |document| found.push(document));
            assert_eq!(found, list);
            assert!(bytes.len() <= list.len() * 5 && (list.len() < 800 || bytes.len() < list.len() * 2 + 3));
        }
    }
}
