//! Inverting documents: from the words of each document to the documents of each word.
//!
//! While files are added, their words are appended in file order. At the end they are sorted by
//! counting, which reads and writes memory sequentially: a list for each word, grown as files come,
//! would be scattered over memory.

use super::block_list::BlockList;
use super::codec::put_dense;
use super::dictionary::{DictionaryBuilder, EncodedDictionary};
use crate::IndexError;
use crate::texts::Texts;

/// An occurrence of a word in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WordPosting {
    /// Number of the word.
    pub(super) key: u32,
    pub(super) within: DocumentOccurrence,
}

/// An occurrence within a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DocumentOccurrence {
    pub(super) document: u32,
    /// Number of occurrences, or the line.
    pub(super) more: u32,
}

impl WordPosting {
    pub(super) fn new(key: u32, document: u32, more: u32) -> Self {
        Self { key, within: DocumentOccurrence { document, more } }
    }
}

/// Texts in byte order.
pub(super) struct SortedTexts {
    texts: Texts,
    /// Numbers of the texts.
    order: Vec<u32>,
    /// By number, the text's position.
    pub(super) ranks: Vec<u32>,
}

impl SortedTexts {
    /// Sorts texts.
    pub(super) fn sort_texts(texts: Texts) -> Self {
        // Most differ in their first eight bytes.
        let mut order: Vec<(u64, u32)> = (0..)
            .zip(texts.iter())
            .map(|(number, text)| {
                let first = text.bytes().take(8).enumerate();
                (first.fold(0, |head, (at, byte)| head | u64::from(byte) << (56 - 8 * at)), number)
            })
            .collect();
        order.sort_unstable_by(|(one_head, one), (other_head, other)| {
            one_head.cmp(other_head).then_with(|| texts.get(*one).cmp(&texts.get(*other)))
        });
        let mut ranks = vec![0; texts.len()];
        for (rank, (_, number)) in (0_u32..).zip(&order) {
            if let Some(place) = ranks.get_mut(*number as usize) {
                *place = rank;
            }
        }
        Self { texts, order: order.into_iter().map(|(_, number)| number).collect(), ranks }
    }

    /// Builds the dictionary of the texts with postings; `write` encodes the list of a text's
    /// documents, in the order of their addition.
    pub(super) fn build_dictionary(
        &self,
        postings: BlockList<WordPosting>,
        write: impl Fn(&[DocumentOccurrence], &mut Vec<u8>),
    ) -> Result<EncodedDictionary, IndexError> {
        let place =
            |posting: WordPosting| self.ranks.get(posting.key as usize).map_or(0, |rank| *rank as usize);
        let mut places = SortPositions::zeroed(self.order.len());
        postings.for_each(|posting| places.count_item(place(posting)));
        places.prefix_sum();
        let mut sorted = vec![DocumentOccurrence::default(); postings.len()];
        postings.for_each(|posting| {
            if let Some(to) = sorted.get_mut(places.next(place(posting))) {
                *to = posting.within;
            }
        });
        drop(postings);
        let mut builder = DictionaryBuilder::new();
        let (mut start, mut list) = (0, Vec::new());
        for (number, end) in self.order.iter().zip(&places.0) {
            let own = sorted.get(start..*end).unwrap_or_default();
            start = *end;
            if own.is_empty() {
                continue;
            }
            list.clear();
            write(own, &mut list);
            builder.add(self.texts.get(*number).unwrap_or_default().as_bytes(), &list)?;
        }
        Ok(builder.finish())
    }
}

/// The position of the next occurrence of each number in sorted order; after the last one, the end
/// of each number's range.
struct SortPositions(Vec<usize>);

impl SortPositions {
    /// Creates positions for numbers below `count`.
    fn zeroed(count: usize) -> Self {
        Self(vec![0; count + 1])
    }

    fn count_item(&mut self, number: usize) {
        if let Some(count) = self.0.get_mut(number + 1) {
            *count += 1;
        }
    }

    /// Turns counts into positions.
    fn prefix_sum(&mut self) {
        let mut sum = 0;
        for place in &mut self.0 {
            sum += *place;
            *place = sum;
        }
    }

    fn next(&mut self, number: usize) -> usize {
        let Some(place) = self.0.get_mut(number) else { return usize::MAX };
        *place += 1;
        *place - 1
    }
}

/// Half of a trigram's bits.
const HALF_TRIGRAM_BITS: u32 = 12;
/// Bits for a file's number beside half a trigram.
const FILE_BITS: u32 = u32::BITS - HALF_TRIGRAM_BITS;
/// Maximum files of a segment.
pub(super) const MAX_SEGMENT_FILES: usize = 1 << FILE_BITS;
/// Number of items from which on counting is faster than comparing.
const MIN_COUNTING_SORT_ITEMS: usize = 1 << (HALF_TRIGRAM_BITS - 2);

/// Builds the dictionary from trigrams to files: of each file's trigrams, one file after the other,
/// and where each file's end.
///
/// Trigrams with the same first half are collected first, which accesses distant memory; the rest
/// is sorted within near memory.
pub(super) fn trigram_dictionary(
    trigrams: BlockList<u32>,
    ends: &[usize],
) -> Result<EncodedDictionary, IndexError> {
    let high = |trigram: u32| (trigram >> HALF_TRIGRAM_BITS) as usize;
    let mut places = SortPositions::zeroed(1 << HALF_TRIGRAM_BITS);
    trigrams.for_each(|trigram| places.count_item(high(trigram)));
    places.prefix_sum();
    let mut gathered = vec![0_u32; trigrams.len()];
    let (mut at, mut file, mut ends) = (0, 0_u32, ends.iter().copied());
    let mut end = ends.next().unwrap_or_default();
    trigrams.for_each(|trigram| {
        while at >= end {
            file += 1;
            end = ends.next().unwrap_or(usize::MAX);
        }
        at += 1;
        if let Some(slot) = gathered.get_mut(places.next(high(trigram))) {
            *slot = (trigram & ((1 << HALF_TRIGRAM_BITS) - 1)) << FILE_BITS | file;
        }
    });
    drop(trigrams);
    let mut builder = DictionaryBuilder::new();
    let (mut start, mut other, mut list) = (0, Vec::new(), Vec::new());
    for (high, end) in (0_u32..).zip(places.0) {
        let own = gathered.get_mut(start..end.max(start)).unwrap_or_default();
        start = end;
        let sorted = if own.len() < MIN_COUNTING_SORT_ITEMS {
            own.sort_unstable();
            &*own
        } else {
            order_by_counting(own, &mut other);
            other.as_slice()
        };
        for same in sorted.chunk_by(|one, other| one >> FILE_BITS == other >> FILE_BITS) {
            list.clear();
            put_dense(&mut list, same.iter().map(|one| one & ((1 << FILE_BITS) - 1)));
            let low = same.first().map_or(0, |one| one >> FILE_BITS);
            let [_, key @ ..] = (high << HALF_TRIGRAM_BITS | low).to_be_bytes();
            builder.add(&key, &list)?;
        }
    }
    Ok(builder.finish())
}

/// Sorts items in file order by the second half, too.
fn order_by_counting(from: &[u32], to: &mut Vec<u32>) {
    let half = |one: u32| (one >> FILE_BITS) as usize;
    let mut places = SortPositions::zeroed(1 << HALF_TRIGRAM_BITS);
    from.iter().for_each(|one| places.count_item(half(*one)));
    places.prefix_sum();
    to.clear();
    to.resize(from.len(), 0);
    for one in from {
        if let Some(slot) = to.get_mut(places.next(half(*one))) {
            *slot = *one;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::decode_dense;
    use super::*;

    #[test]
    fn texts_are_sorted() {
        let texts = ["zebra", "abcdefghij", "abcdefgh", "", "abcdefghia", "é"];
        let sorted = SortedTexts::sort_texts(texts.into_iter().collect());
        assert_eq!(sorted.order, [3, 2, 4, 1, 0, 5]);
        assert_eq!(sorted.ranks, [4, 3, 1, 0, 2, 5]);
        let mut postings = BlockList::default();
        postings.extend(
            [(5, 1), (1, 1), (5, 2), (2, 9), (1, 7)]
                .map(|(key, document)| WordPosting::new(key, document, 0)),
        );
        let made = sorted
            .build_dictionary(postings, |list, out| out.extend(list.iter().map(|one| one.document as u8)));
        let [_, _, lists] = made.unwrap();
        assert_eq!(lists, [9, 1, 7, 1, 2]);
    }

    fn blocks(all: &[u32]) -> BlockList<u32> {
        let mut blocks = BlockList::default();
        blocks.extend_from_slice(all);
        blocks
    }

    /// Returns every trigram of a dictionary with its files.
    fn listed(keys: &[u8], lists: &[u8]) -> Vec<(Vec<u8>, Vec<u32>)> {
        let (mut cursor, mut key, mut lists) =
            (super::super::codec::ByteCursor::new(keys), Vec::new(), lists);
        let mut all = Vec::new();
        while !cursor.is_empty() {
            let length = cursor.next_key(&mut key);
            let (list, rest) = lists.split_at(length);
            lists = rest;
            let mut own = Vec::new();
            decode_dense(list, |file| own.push(file));
            all.push((key.clone(), own));
        }
        assert!(lists.is_empty());
        all
    }

    #[test]
    fn many_trigrams_of_one_half_come_in_order() {
        let mut random = 7_u32;
        let files: Vec<Vec<u32>> = (0..200)
            .map(|_| {
                let mut own: Vec<u32> = (0..50)
                    .map(|_| {
                        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        // Nearly all begin with the same half.
                        if random >> 28 == 0 { random >> 8 } else { 0x61_6000 | random >> 20 }
                    })
                    .collect();
                own.sort_unstable();
                own.dedup();
                own.reverse();
                own
            })
            .collect();
        let mut sum = 0;
        let ends: Vec<usize> = files
            .iter()
            .map(|file| {
                sum += file.len();
                sum
            })
            .collect();
        let [keys, _, lists] = trigram_dictionary(blocks(&files.concat()), &ends).unwrap();
        let mut expected: std::collections::BTreeMap<Vec<u8>, Vec<u32>> = std::collections::BTreeMap::new();
        for (file, own) in (0..).zip(&files) {
            own.iter()
                .for_each(|one| expected.entry(one.to_be_bytes()[1..].to_vec()).or_default().push(file));
        }
        assert_eq!(listed(&keys, &lists), expected.into_iter().collect::<Vec<_>>());
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
        let [keys, _, lists] = trigram_dictionary(blocks(&files.concat()), &ends).unwrap();
        let expected: [(&[u8], &[u32]); 4] =
            [(&[0, 0, 7], &[0, 2]), (b"aab", &[2]), (b"abc", &[0, 3]), (&[255; 3], &[0])];
        assert_eq!(listed(&keys, &lists), expected.map(|(key, files)| (key.to_vec(), files.to_vec())));
    }
}
