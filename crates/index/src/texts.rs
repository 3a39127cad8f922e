//! Lists of texts in one allocation, numbered.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Estimated bytes of a text, for reserving room.
const ESTIMATED_TEXT_BYTES: usize = 8;

/// Texts, numbered in the order of their addition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    text: String,
    ends: Vec<u32>,
}

impl Texts {
    /// Returns the number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns a text by its number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.text.get(start as usize..end as usize)
    }

    /// Returns all texts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let text = self.text.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            text
        })
    }

    /// Adds a text. Beyond four gigabytes in all, texts are empty.
    pub fn push(&mut self, text: &str) {
        if u32::try_from(self.text.len() + text.len()).is_ok() {
            self.text.push_str(text);
        }
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<u32>()
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let all = all.into_iter();
        let (count, _) = all.size_hint();
        // Most texts are words.
        let mut texts = Self {
            text: String::with_capacity(count * ESTIMATED_TEXT_BYTES),
            ends: Vec::with_capacity(count),
        };
        all.for_each(|text| texts.push(text.as_ref()));
        texts
    }
}

/// Numbers for texts, in the order of their addition, each text once.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    /// Numbers, and half of the texts' hashes: these distinguish texts without reading them, and
    /// are reused when the table grows.
    table: HashTable<(u32, u32)>,
    hasher: DefaultHashBuilder,
    texts: Texts,
}

impl Interner {
    /// Returns a text's number. A new text gets the next one.
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        #[allow(clippy::cast_possible_truncation)]
        let half = self.hasher.hash_one(text) as u32;
        let Self { table, texts, .. } = self;
        let same = |(own, number): &(u32, u32)| *own == half && texts.get(*number) == Some(text);
        if let Some((_, number)) = table.find(extend_hash(half), same) {
            return *number;
        }
        let number = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        table.insert_unique(extend_hash(half), (half, number), |(own, _)| extend_hash(*own));
        texts.push(text);
        number
    }

    /// Returns the texts, by number.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Returns the texts, by number, and drops the table.
    pub(crate) fn into_texts(self) -> Texts {
        self.texts
    }

    /// Returns the approximate memory use in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.texts.memory_bytes() + self.table.capacity() * size_of::<(u32, u32)>()
    }
}

/// Extends half a hash, because a table uses both ends of a hash.
fn extend_hash(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number() {
        let mut interner = Interner::default();
        for round in 0..2 {
            for number in 0..10_000_u32 {
                assert_eq!(interner.intern(&format!("name{number}")), number);
                let known = if round == 0 { number + 1 } else { 10_000 };
                assert_eq!(interner.texts().len(), known as usize);
            }
        }
        assert_eq!(interner.intern(""), 10_000);
        assert_eq!(interner.intern(""), 10_000);
        assert_eq!(interner.texts().get(77), Some("name77"));
        assert_eq!(interner.into_texts().len(), 10_001);
    }

    #[test]
    fn texts_are_found_by_number() {
        let all = ["one", "", "größe", ""];
        let texts: Texts = all.into_iter().collect();
        assert_eq!((texts.len(), texts.is_empty()), (4, false));
        assert_eq!(texts.iter().collect::<Vec<_>>(), all);
        for (number, text) in (0..).zip(all) {
            assert_eq!(texts.get(number), Some(text));
        }
        assert_eq!(texts.get(4), None);
    }
}
