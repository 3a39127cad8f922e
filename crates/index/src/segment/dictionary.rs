//! Dictionaries from keys to lists, sorted by key.
//!
//! Keys are in blocks of [`KEYS_PER_BLOCK`], each encoded as the length of the prefix shared with
//! the previous key, the other bytes, and the length of its list. A look-up does a binary search
//! over the blocks, mostly by the first eight bytes of each alone, and then scans one block. Where
//! lists are most of a segment, that takes less space than a minimal automaton and a fraction of
//! its time to write, and a scan of all keys, as every fuzzy search for names does, reads memory in
//! order.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;

use super::codec::{ByteCursor, put_bytes, put_number};
use crate::IndexError;

/// Number of keys in a block.
const KEYS_PER_BLOCK: u32 = 16;
/// Bytes of a block's row: the beginning of its first key, the start of its keys, and the start of
/// its lists. The number of keys comes after the last row.
const BLOCK_ROW_BYTES: usize = 16;
const COUNT_BYTES: usize = 4;

/// A part of the mapped file.
#[derive(Debug, Clone)]
pub(crate) struct MappedSlice {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl MappedSlice {
    /// Creates a slice; a `range` outside of the map makes it empty.
    pub(crate) fn new(map: &Arc<Mmap>, range: Range<usize>) -> Self {
        Self { map: Arc::clone(map), range }
    }
}

impl AsRef<[u8]> for MappedSlice {
    fn as_ref(&self) -> &[u8] {
        self.map.get(self.range.clone()).unwrap_or_default()
    }
}

/// Builds a dictionary from keys in ascending order.
#[derive(Default)]
pub(crate) struct DictionaryBuilder {
    last: Vec<u8>,
    count: u32,
    keys: Vec<u8>,
    blocks: Vec<u8>,
    lists: Vec<u8>,
}

/// A dictionary's three sections: keys, starts of blocks, lists.
pub(crate) type EncodedDictionary = [Vec<u8>; super::layout::SECTIONS_PER_DICTIONARY];

impl DictionaryBuilder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a key, which must be greater than those before.
    pub(crate) fn add(&mut self, key: &[u8], list: &[u8]) -> Result<(), IndexError> {
        if self.count > 0 && key <= self.last.as_slice() {
            return Err(IndexError::TooMuch("a dictionary's keys"));
        }
        let mut shared = shared_prefix_len(key, &self.last);
        if self.count.is_multiple_of(KEYS_PER_BLOCK) {
            self.blocks.extend_from_slice(&key_prefix_as_number(key).to_le_bytes());
            for section in [&self.keys, &self.lists] {
                let at = u32::try_from(section.len()).map_err(|_| IndexError::TooMuch("a dictionary"))?;
                self.blocks.extend_from_slice(&at.to_le_bytes());
            }
            shared = 0;
        }
        put_number(&mut self.keys, shared as u64);
        put_bytes(&mut self.keys, key.get(shared..).unwrap_or_default());
        put_number(&mut self.keys, list.len() as u64);
        self.lists.extend_from_slice(list);
        self.last.truncate(shared);
        self.last.extend_from_slice(key.get(shared..).unwrap_or_default());
        self.count = self.count.checked_add(1).ok_or(IndexError::TooMuch("a dictionary's keys"))?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> EncodedDictionary {
        self.blocks.extend_from_slice(&self.count.to_le_bytes());
        [self.keys, self.blocks, self.lists]
    }
}

/// Returns a key's first bytes, padded with zeros, as a number with the same order.
fn key_prefix_as_number(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    head.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(head)
}

/// Returns the length of the common prefix of two keys.
fn shared_prefix_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// A dictionary of a mapped segment.
#[derive(Debug)]
pub struct Dictionary {
    keys: MappedSlice,
    blocks: MappedSlice,
    lists: MappedSlice,
    count: u32,
}

impl Dictionary {
    /// Creates a dictionary; `None` where the sections can't be a dictionary's.
    pub(crate) fn new(keys: MappedSlice, blocks: MappedSlice, lists: MappedSlice) -> Option<Self> {
        let (rows, count) = blocks.as_ref().split_last_chunk::<COUNT_BYTES>()?;
        let count = u32::from_le_bytes(*count);
        let right = rows.len() == count.div_ceil(KEYS_PER_BLOCK) as usize * BLOCK_ROW_BYTES;
        right.then_some(Self { keys, blocks, lists, count })
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn block_rows(&self) -> &[[u8; BLOCK_ROW_BYTES]] {
        self.blocks.as_ref().as_chunks::<BLOCK_ROW_BYTES>().0
    }

    /// Returns the starts of a block's keys and lists.
    fn block_starts(&self, block: usize) -> (u32, u32) {
        let row = self.block_rows().get(block);
        row.map_or((u32::MAX, u32::MAX), |row| {
            let mut cursor = ByteCursor::new(row);
            cursor.read_u64();
            (cursor.read_u32(), cursor.read_u32())
        })
    }

    /// Returns a cursor at a block's keys, and those after it.
    fn keys_at(&self, at: u32) -> ByteCursor<'_> {
        ByteCursor::new(self.keys.as_ref().get(at as usize..).unwrap_or_default())
    }

    /// Returns the last block that starts at or before a key.
    fn find_block(&self, key: &[u8]) -> Option<usize> {
        let wanted = key_prefix_as_number(key);
        let not_after = |row: &[u8; BLOCK_ROW_BYTES]| {
            let mut row = ByteCursor::new(row);
            match row.read_u64().cmp(&wanted) {
                Ordering::Equal => {
                    let mut keys = self.keys_at(row.read_u32());
                    keys.read_number();
                    keys.read_bytes() <= key
                }
                other => other == Ordering::Less,
            }
        };
        self.block_rows().partition_point(not_after).checked_sub(1)
    }

    /// Returns a key's number: its position in the sorted order.
    #[cfg(test)]
    pub(crate) fn key_number(&self, key: &[u8]) -> Option<u32> {
        self.find_key(key).map(|(number, _)| number)
    }

    /// Returns a key's list.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.list_range(key).map(|range| self.list(range))
    }

    /// Returns the range of a key's list.
    pub(crate) fn list_range(&self, key: &[u8]) -> Option<Range<u32>> {
        self.find_key(key).map(|(_, list)| list)
    }

    /// Returns the list at a range.
    pub(crate) fn list(&self, range: Range<u32>) -> &[u8] {
        self.lists.as_ref().get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// Returns a key's number, and the range of its list.
    fn find_key(&self, key: &[u8]) -> Option<(u32, Range<u32>)> {
        let block = self.find_block(key)?;
        let (keys, mut list) = self.block_starts(block);
        let mut keys = self.keys_at(keys);
        let first = u32::try_from(block).ok()?.checked_mul(KEYS_PER_BLOCK)?;
        // Number of bytes that `key` shares with the last key, which is less than it.
        let mut same = 0;
        for number in first..self.count.min(first.saturating_add(KEYS_PER_BLOCK)) {
            let shared = usize::try_from(keys.read_number()).unwrap_or(usize::MAX);
            let (rest, length) = (keys.read_bytes(), keys.read_small_number());
            let start = list;
            list = list.saturating_add(length);
            // This key differs from `key` where the last one did, or before that, where it must be
            // greater.
            if shared > same {
                continue;
            }
            let wanted = key.get(same..).filter(|_| shared == same)?;
            let more = shared_prefix_len(rest, wanted);
            match (rest.get(more), wanted.get(more)) {
                (None, None) => return Some((number, start..list)),
                (Some(_), None) => return None,
                (Some(own), Some(other)) if own > other => return None,
                _ => same += more,
            }
        }
        None
    }

    /// Returns the key with a number.
    pub(crate) fn key(&self, number: u32) -> Option<Vec<u8>> {
        if number >= self.count {
            return None;
        }
        let mut keys = self.keys_at(self.block_starts((number / KEYS_PER_BLOCK) as usize).0);
        let mut key = Vec::new();
        for _ in 0..=number % KEYS_PER_BLOCK {
            keys.next_key(&mut key);
        }
        Some(key)
    }

    /// Calls `visit` with every key with a prefix, in ascending order, until it returns false.
    pub(crate) fn visit_with_prefix(&self, prefix: &[u8], mut visit: impl FnMut(&[u8]) -> bool) {
        let block = self.find_block(prefix).unwrap_or(0);
        let mut keys = self.keys_at(self.block_starts(block).0);
        let mut key: Vec<u8> = Vec::new();
        let first = u32::try_from(block).unwrap_or(u32::MAX).saturating_mul(KEYS_PER_BLOCK);
        for _ in first..self.count {
            keys.next_key(&mut key);
            if key.starts_with(prefix) {
                if !visit(&key) {
                    return;
                }
            } else if key.as_slice() > prefix {
                return;
            }
        }
    }

    /// Calls `visit` with the keys of ascending numbers, until it returns false.
    pub(crate) fn visit_keys_by_number(
        &self,
        numbers: impl Iterator<Item = u32>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) {
        let (mut keys, mut key, mut next) = (self.keys_at(0), Vec::new(), 0);
        for number in numbers.take_while(|number| *number < self.count) {
            let block = number / KEYS_PER_BLOCK;
            if block > next / KEYS_PER_BLOCK || number < next {
                (keys, next) = (self.keys_at(self.block_starts(block as usize).0), block * KEYS_PER_BLOCK);
            }
            while next <= number {
                keys.next_key(&mut key);
                next += 1;
            }
            if !visit(&key) {
                return;
            }
        }
    }

    /// Returns every key with its number and its list, in ascending order.
    pub(crate) fn entries(&self) -> DictionaryScan<'_> {
        DictionaryScan {
            keys: ByteCursor::new(self.keys.as_ref()),
            lists: self.lists.as_ref(),
            key: Vec::new(),
            next: 0,
            count: self.count,
        }
    }
}

/// A scan of a dictionary, key by key.
pub(crate) struct DictionaryScan<'a> {
    keys: ByteCursor<'a>,
    lists: &'a [u8],
    key: Vec<u8>,
    next: u32,
    count: u32,
}

impl<'a> DictionaryScan<'a> {
    /// Moves to the next key; `None` at the end.
    pub(crate) fn advance(&mut self) -> Option<(u32, &'a [u8])> {
        if self.next >= self.count {
            return None;
        }
        let length = self.keys.next_key(&mut self.key).min(self.lists.len());
        self.next += 1;
        let (list, rest) = self.lists.split_at_checked(length).unwrap_or_default();
        self.lists = rest;
        Some((self.next - 1, list))
    }

    /// Returns the current key.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write as _;

    use super::*;

    fn dictionary(keys: &BTreeMap<Vec<u8>, Vec<u8>>) -> Dictionary {
        let mut builder = DictionaryBuilder::new();
        keys.iter().for_each(|(key, list)| builder.add(key, list).unwrap());
        let made = builder.finish();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&made.concat()).unwrap();
        let map = Arc::new(super::super::memory_map::map_file(&file).unwrap());
        let mut at = 0;
        let mut slice = |section: &Vec<u8>| {
            at += section.len();
            MappedSlice::new(&map, at - section.len()..at)
        };
        let [keys, blocks, lists] = &made;
        Dictionary::new(slice(keys), slice(blocks), slice(lists)).unwrap()
    }

    #[test]
    fn every_key_is_found_and_no_other() {
        let mut random = fastrand::Rng::with_seed(7);
        for size in [0, 1, 15, 16, 17, 500] {
            let mut keys = BTreeMap::new();
            while keys.len() < size {
                let key: Vec<u8> = (0..random.usize(1..7)).map(|_| random.u8(b'a'..=b'd')).collect();
                keys.insert(key, vec![0; random.usize(0..200)]);
            }
            let dictionary = dictionary(&keys);
            assert_eq!(dictionary.len(), keys.len());
            for (number, (key, list)) in (0..).zip(&keys) {
                assert_eq!(dictionary.key_number(key), Some(number));
                assert_eq!(dictionary.key(number).as_ref(), Some(key));
                assert_eq!(dictionary.get(key), Some(list.as_slice()));
            }
            for _ in 0..2_000 {
                let key: Vec<u8> = (0..random.usize(0..8)).map(|_| random.u8(b'a'..=b'e')).collect();
                assert_eq!(dictionary.key_number(&key).is_some(), keys.contains_key(&key), "{key:?}");
            }
            let mut entries = dictionary.entries();
            for (key, list) in &keys {
                let (_, found) = entries.advance().unwrap();
                assert_eq!((entries.key(), found), (key.as_slice(), list.as_slice()));
            }
            assert!(entries.advance().is_none() && dictionary.key(dictionary.count).is_none());
        }
    }

    #[test]
    fn keys_are_found_by_their_beginning_and_by_their_numbers() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut keys = BTreeMap::new();
        for _ in 0..900 {
            // Long common prefixes, so that blocks begin alike.
            let key: String = (0..random.usize(1..14)).map(|_| random.char('a'..='c')).collect();
            keys.insert(key.into_bytes(), Vec::new());
        }
        keys.insert(b"ab\0".to_vec(), Vec::new());
        let dictionary = dictionary(&keys);
        for prefix in ["", "a", "abc", "cbacbacba", "cc", "bb", "d"] {
            let mut found = Vec::new();
            dictionary.visit_with_prefix(prefix.as_bytes(), |key| {
                found.push(key.to_vec());
                true
            });
            let expected: Vec<_> =
                keys.keys().filter(|key| key.starts_with(prefix.as_bytes())).cloned().collect();
            assert_eq!(found, expected, "{prefix}");
        }
        for _ in 0..50 {
            let wanted: Vec<u32> = (0..dictionary.count).filter(|_| random.u8(..) < 40).collect();
            let mut found = Vec::new();
            dictionary.visit_keys_by_number(wanted.iter().copied().chain([dictionary.count, 7]), |key| {
                found.push(key.to_vec());
                true
            });
            let expected: Vec<_> = wanted.iter().map(|number| dictionary.key(*number).unwrap()).collect();
            assert_eq!(found, expected);
        }
    }
}
