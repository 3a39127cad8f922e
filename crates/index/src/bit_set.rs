//! Sets of small numbers.

/// A set of small numbers, one bit each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    pub(crate) fn insert(&mut self, number: u32) {
        let at = (number >> 6) as usize;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        if let Some(word) = self.words.get_mut(at) {
            *word |= 1 << (number & 63);
        }
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(word) = self.words.get_mut((number >> 6) as usize) {
            *word &= !(1 << (number & 63));
        }
    }

    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.words.get((number >> 6) as usize).is_some_and(|word| word & (1 << (number & 63)) != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the numbers in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| (at as u32) << 6 | bit)
        })
    }
}
