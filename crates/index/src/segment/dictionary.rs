//! From keys to lists, sorted by key.

use std::ops::Range;
use std::sync::Arc;

use fst::raw::{Fst, Output};
use fst::{Automaton, IntoStreamer, Streamer};
use memmap2::Mmap;

use super::codec::{Cursor, put_bytes};
use crate::IndexError;

/// Where every so many lists begins is written down; those between are found by their lengths.
const APART: u64 = 16;

/// A part of the mapped file.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl Slice {
    /// `range` must lie in the map; what doesn't is empty.
    pub(crate) fn new(map: &Arc<Mmap>, range: Range<usize>) -> Self {
        Self { map: Arc::clone(map), range }
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self.map.get(self.range.clone()).unwrap_or_default()
    }
}

/// Makes a dictionary from keys in rising order.
pub(crate) struct DictionaryBuilder {
    keys: fst::raw::Builder<Vec<u8>>,
    count: u64,
    offsets: Vec<u8>,
    lists: Vec<u8>,
}

/// A dictionary's three sections: keys, where lists begin, lists.
pub(crate) type Made = [Vec<u8>; super::layout::OF_WORDS];

impl DictionaryBuilder {
    pub(crate) fn new() -> Self {
        Self { keys: fst::raw::Builder::memory(), count: 0, offsets: Vec::new(), lists: Vec::new() }
    }

    /// Adds a key, which must be greater than those before.
    pub(crate) fn add(&mut self, key: &[u8], list: &[u8]) -> Result<(), IndexError> {
        let at = u32::try_from(self.lists.len()).map_err(|_| IndexError::TooMuch("a dictionary's lists"))?;
        self.keys.insert(key, self.count).map_err(|_| IndexError::TooMuch("a dictionary's keys"))?;
        if self.count.is_multiple_of(APART) {
            self.offsets.extend_from_slice(&at.to_le_bytes());
        }
        self.count += 1;
        put_bytes(&mut self.lists, list);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Made, IndexError> {
        let keys = self.keys.into_inner().map_err(|_| IndexError::TooMuch("a dictionary's keys"))?;
        Ok([keys, self.offsets, self.lists])
    }
}

/// A dictionary of a mapped segment.
pub struct Dictionary {
    keys: Fst<Slice>,
    offsets: Slice,
    lists: Slice,
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Dictionary").field("keys", &self.len()).finish_non_exhaustive()
    }
}

impl Dictionary {
    pub(crate) fn new(keys: Slice, offsets: Slice, lists: Slice) -> Option<Self> {
        let keys = Fst::new(keys).ok()?;
        Some(Self { keys, offsets, lists })
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// A key's number: its place among the sorted ones.
    pub(crate) fn number(&self, key: &[u8]) -> Option<u32> {
        self.keys.get(key).and_then(|found| u32::try_from(found.value()).ok())
    }

    /// The key with a number.
    pub(crate) fn key(&self, number: u32) -> Option<Vec<u8>> {
        self.keys.get_key(u64::from(number))
    }

    /// The list of the key with a number.
    pub(crate) fn list(&self, number: u32) -> &[u8] {
        let number = u64::from(number);
        let at = (number / APART) as usize * 4;
        let Some(at) = self.offsets.as_ref().get(at..).and_then(<[u8]>::first_chunk::<4>) else { return &[] };
        let lists = self.lists.as_ref().get(u32::from_le_bytes(*at) as usize..).unwrap_or_default();
        let mut cursor = Cursor::new(lists);
        for _ in 0..number % APART {
            cursor.bytes();
        }
        cursor.bytes()
    }

    /// A key's list.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.number(key).map(|number| self.list(number))
    }

    /// Every key that an automaton accepts, in rising order, until `visit` says that it is enough.
    pub(crate) fn search(&self, automaton: impl Automaton, mut visit: impl FnMut(&[u8], u32) -> bool) {
        let mut found = self.keys.search(automaton).into_stream();
        while let Some((key, value)) = found.next() {
            if !visit(key, number(value)) {
                break;
            }
        }
    }

    /// Every key with its number, in rising order.
    pub(crate) fn stream(&self) -> fst::raw::Stream<'_> {
        self.keys.stream()
    }
}

/// What a key's value is: its number.
pub(crate) fn number(value: Output) -> u32 {
    u32::try_from(value.value()).unwrap_or(u32::MAX)
}
