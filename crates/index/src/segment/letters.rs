//! Which letters a name has: by that, most names needn't be read to know that they aren't like another one.

use super::codec::Cursor;
use super::column::put_column;
use super::dictionary::Made;

/// Digits, and what is neither a digit nor a letter of ASCII, after the letters.
const DIGIT: u32 = 26;
const OTHER: u32 = 27;

/// A bit for each letter that a name in lower case has, one for digits and one for all else.
pub(crate) fn letters(name: &[u8]) -> u32 {
    name.iter().fold(0, |all, byte| {
        let bit = match byte {
            b'a'..=b'z' => u32::from(byte - b'a'),
            b'0'..=b'9' => DIGIT,
            _ => OTHER,
        };
        all | 1 << bit
    })
}

/// Whether a name with some letters may have all of another's in order.
pub(crate) fn may_contain(own: u32, wanted: u32) -> bool {
    wanted & !own == 0
}

/// Whether a name with some letters may be another with one character inserted, deleted or replaced.
pub(crate) fn may_be_one_off(own: u32, wanted: u32) -> bool {
    (wanted & !own).count_ones() <= 1 && (own & !wanted).count_ones() <= 1
}

/// The column of a dictionary's keys.
pub(super) fn column(made: &Made) -> Vec<u8> {
    let [keys, ..] = made;
    let (mut keys, mut key) = (Cursor::new(keys), Vec::new());
    put_column(std::iter::from_fn(|| {
        (!keys.is_empty()).then(|| {
            keys.next_key(&mut key);
            letters(&key)
        })
    }))
}
