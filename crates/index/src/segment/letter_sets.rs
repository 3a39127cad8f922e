//! Sets of the letters in names, which exclude most names from a fuzzy search without reading them.

use super::codec::ByteCursor;
use super::column::put_column;
use super::dictionary::EncodedDictionary;

/// Bits of digits, and of characters that are neither digits nor letters of ASCII, after the
/// letters.
const DIGIT_BIT: u32 = 26;
const OTHER_BIT: u32 = 27;

/// Returns the set of letters of a name in lower case, with a bit for digits and one for everything
/// else.
pub(crate) fn letter_set(name: &[u8]) -> u32 {
    name.iter().fold(0, |all, byte| {
        let bit = match byte {
            b'a'..=b'z' => u32::from(byte - b'a'),
            b'0'..=b'9' => DIGIT_BIT,
            _ => OTHER_BIT,
        };
        all | 1 << bit
    })
}

/// Returns true if a name with some letters may contain all of another's in order.
pub(crate) fn may_contain(own: u32, wanted: u32) -> bool {
    wanted & !own == 0
}

/// Returns true if a name with some letters may equal another with one character inserted, deleted
/// or replaced.
pub(crate) fn may_differ_by_one_letter(own: u32, wanted: u32) -> bool {
    (wanted & !own).count_ones() <= 1 && (own & !wanted).count_ones() <= 1
}

/// Returns the column for a dictionary's keys.
pub(super) fn letter_column(made: &EncodedDictionary) -> Vec<u8> {
    let [keys, ..] = made;
    let (mut keys, mut key) = (ByteCursor::new(keys), Vec::new());
    put_column(std::iter::from_fn(|| {
        (!keys.is_empty()).then(|| {
            keys.next_key(&mut key);
            letter_set(&key)
        })
    }))
}
