//! Counts of texts by their content, so that a transcript isn't counted anew for each request.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::mem;

/// Maximum number of counts in each of the two generations: together the texts of several long
/// sessions, in at most two MiB.
const MAX_ENTRIES: usize = 16_384;

/// A text's hash and length. Keys of the hash are random, so that nobody can make a text that is
/// taken for another one.
type Key = (u64, usize);

/// A bounded map from texts to counts. When the younger generation is full, the older one is
/// dropped; what is looked up moves to the younger one.
#[derive(Debug, Default)]
pub(super) struct CountCache {
    hashing: RandomState,
    young: HashMap<Key, u64>,
    old: HashMap<Key, u64>,
}

impl CountCache {
    /// Returns the key of a text.
    pub(super) fn key(&self, text: &str) -> Key {
        (self.hashing.hash_one(text), text.len())
    }

    /// Returns the count of the text with that key, if it is known.
    pub(super) fn get(&mut self, key: Key) -> Option<u64> {
        if let Some(count) = self.young.get(&key) {
            return Some(*count);
        }
        let count = self.old.get(&key).copied()?;
        self.insert(key, count);
        Some(count)
    }

    pub(super) fn insert(&mut self, key: Key, count: u64) {
        if self.young.len() >= MAX_ENTRIES {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let mut cache = CountCache::default();
        let keys: Vec<Key> = (0..5 * MAX_ENTRIES).map(|number| cache.key(&number.to_string())).collect();
        for (number, key) in keys.iter().enumerate() {
            cache.insert(*key, number as u64);
            assert_eq!(cache.get(keys[0]), Some(0), "after {number}");
        }
        assert_eq!(cache.get(keys[1]), None);
        assert!(cache.young.len() + cache.old.len() <= 2 * MAX_ENTRIES);
        assert_eq!(cache.get(keys[keys.len() - 1]), Some(keys.len() as u64 - 1));
    }
}
