//! From what each document has to which documents have it.
//!
//! While files are added, what they have is written down one after the other. At the end it is put in order by counting, which
//! reads and writes memory in long stretches: a list a word, grown as files come, would be somewhere else for every word.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::codec::put_dense;
use super::dictionary::{DictionaryBuilder, Made};
use crate::IndexError;

/// That a document has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Posting {
    /// The number of what it has.
    pub(super) key: u32,
    pub(super) document: u32,
    /// How often, or in which line.
    pub(super) more: u32,
}

/// Numbers for texts, in the order in which they come.
#[derive(Debug, Default)]
pub(super) struct Interner {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    texts: Vec<u8>,
    ends: Vec<usize>,
}

impl Interner {
    /// A text's number.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        let Self { table, hasher, texts, ends } = self;
        let own = |number: u32| slice(texts, ends, number);
        let hash = hasher.hash_one(text.as_bytes());
        if let Some(number) = table.find(hash, |number| own(*number) == text.as_bytes()) {
            return *number;
        }
        let number = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        table.insert_unique(hash, number, |number| hasher.hash_one(own(*number)));
        texts.extend_from_slice(text.as_bytes());
        ends.push(texts.len());
        number
    }

    /// About how many bytes of memory it holds.
    pub(super) fn weight(&self) -> usize {
        self.texts.len() + self.ends.len() * 24
    }

    /// The texts in the order of their bytes.
    pub(super) fn sorted(&mut self) -> Sorted {
        self.table = HashTable::new();
        let (texts, ends) = (std::mem::take(&mut self.texts), std::mem::take(&mut self.ends));
        // Most differ in their first eight bytes.
        let mut order: Vec<(u64, u32)> = (0..ends.len() as u32)
            .map(|number| {
                let text = slice(&texts, &ends, number);
                let first = text.iter().take(8).enumerate();
                (first.fold(0, |head, (at, byte)| head | u64::from(*byte) << (56 - 8 * at)), number)
            })
            .collect();
        order.sort_unstable_by(|(one_head, one), (other_head, other)| {
            one_head
                .cmp(other_head)
                .then_with(|| slice(&texts, &ends, *one).cmp(slice(&texts, &ends, *other)))
        });
        let mut ranks = vec![0; ends.len()];
        for (rank, (_, number)) in (0_u32..).zip(&order) {
            if let Some(place) = ranks.get_mut(*number as usize) {
                *place = rank;
            }
        }
        Sorted { texts, ends, order: order.into_iter().map(|(_, number)| number).collect(), ranks }
    }
}

fn slice<'a>(texts: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(number).and_then(|end| texts.get(start..*end)).unwrap_or_default()
}

/// Texts in the order of their bytes.
pub(super) struct Sorted {
    texts: Vec<u8>,
    ends: Vec<usize>,
    /// The texts' numbers.
    order: Vec<u32>,
    /// By number, the text's place.
    pub(super) ranks: Vec<u32>,
}

impl Sorted {
    /// A dictionary of the texts that have postings; `write` makes a list of a text's, which are in the order in which they came.
    pub(super) fn dictionary(
        &self,
        postings: &[Posting],
        write: impl Fn(&[Posting], &mut Vec<u8>),
    ) -> Result<Made, IndexError> {
        let place = |posting: &Posting| self.ranks.get(posting.key as usize).map_or(0, |rank| *rank as usize);
        // Where each text's postings begin, and after the scattering, where they end.
        let mut ends = vec![0_usize; self.order.len() + 1];
        for posting in postings {
            if let Some(count) = ends.get_mut(place(posting) + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut sorted = vec![Posting::default(); postings.len()];
        for posting in postings {
            if let Some(at) = ends.get_mut(place(posting)) {
                if let Some(to) = sorted.get_mut(*at) {
                    *to = *posting;
                }
                *at += 1;
            }
        }
        let mut builder = DictionaryBuilder::new();
        let (mut start, mut list) = (0, Vec::new());
        for (number, end) in self.order.iter().zip(&ends) {
            let own = sorted.get(start..*end).unwrap_or_default();
            start = *end;
            if own.is_empty() {
                continue;
            }
            list.clear();
            write(own, &mut list);
            builder.add(slice(&self.texts, &self.ends, *number), &list)?;
        }
        Ok(builder.finish())
    }
}

/// Half of a trigram's bits.
const HALF: u32 = 12;

/// The dictionary from trigrams to files: of each file's trigrams, one file after the other, and where each file's end.
pub(super) fn trigrams(trigrams: Vec<u32>, ends: &[usize]) -> Result<Made, IndexError> {
    let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(trigrams.len());
    let mut start = 0;
    for (file, end) in (0..).zip(ends) {
        pairs.extend(trigrams.get(start..*end).unwrap_or_default().iter().map(|trigram| (*trigram, file)));
        start = *end;
    }
    drop(trigrams);
    // By the lower half, then by the higher one: each time equals keep their order, which is that of the files.
    let mut other = vec![(0, 0); pairs.len()];
    for shift in [0, HALF] {
        distribute(&pairs, &mut other, |trigram| (trigram >> shift & ((1 << HALF) - 1)) as usize);
        std::mem::swap(&mut pairs, &mut other);
    }
    let mut builder = DictionaryBuilder::new();
    let mut list = Vec::new();
    for own in pairs.chunk_by(|one, other| one.0 == other.0) {
        list.clear();
        put_dense(&mut list, own.iter().map(|(_, file)| *file));
        let [_, key @ ..] = own.first().map_or(0, |(trigram, _)| *trigram).to_be_bytes();
        builder.add(&key, &list)?;
    }
    Ok(builder.finish())
}

/// Puts pairs in the order of a digit.
fn distribute(from: &[(u32, u32)], to: &mut [(u32, u32)], digit: impl Fn(u32) -> usize) {
    let mut places = vec![0_usize; (1 << HALF) + 1];
    for (trigram, _) in from {
        if let Some(count) = places.get_mut(digit(*trigram) + 1) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for place in &mut places {
        sum += *place;
        *place = sum;
    }
    for pair in from {
        if let Some(place) = places.get_mut(digit(pair.0)) {
            if let Some(slot) = to.get_mut(*place) {
                *slot = *pair;
            }
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::dense;
    use super::*;

    #[test]
    fn texts_are_numbered_once_and_sorted() {
        let mut interner = Interner::default();
        let texts = ["zebra", "abcdefghij", "abcdefgh", "", "abcdefghia", "é", "zebra", ""];
        let numbers: Vec<u32> = texts.iter().map(|text| interner.number(text)).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 0, 3]);
        let sorted = interner.sorted();
        assert_eq!(sorted.order, [3, 2, 4, 1, 0, 5]);
        assert_eq!(sorted.ranks, [4, 3, 1, 0, 2, 5]);
        let postings = [(5, 1), (1, 1), (5, 2), (2, 9), (1, 7)].map(|(key, document)| Posting {
            key,
            document,
            more: 0,
        });
        let made =
            sorted.dictionary(&postings, |list, out| out.extend(list.iter().map(|one| one.document as u8)));
        let [_, _, lists] = made.unwrap();
        assert_eq!(lists, [9, 1, 7, 1, 2]);
    }

    #[test]
    fn trigrams_come_in_order_with_rising_files() {
        let files = [vec![7, 0x61_6263, 0xff_ffff], vec![], vec![7, 0x61_6162], vec![0x61_6263]];
        let ends: Vec<usize> = files
            .iter()
            .scan(0, |sum, file| {
                *sum += file.len();
                Some(*sum)
            })
            .collect();
        let [keys, _, lists] = trigrams(files.concat(), &ends).unwrap();
        let (mut cursor, mut key, mut lists) =
            (super::super::codec::Cursor::new(&keys), Vec::new(), lists.as_slice());
        let mut all = Vec::new();
        while !cursor.is_empty() {
            let length = cursor.next_key(&mut key);
            let (list, rest) = lists.split_at(length);
            lists = rest;
            let mut own = Vec::new();
            dense(list, |file| own.push(file));
            all.push((key.clone(), own));
        }
        let expected: [(&[u8], &[u32]); 4] =
            [(&[0, 0, 7], &[0, 2]), (b"aab", &[2]), (b"abc", &[0, 3]), (&[255; 3], &[0])];
        assert_eq!(all, expected.map(|(key, files)| (key.to_vec(), files.to_vec())));
        assert!(lists.is_empty());
    }
}
