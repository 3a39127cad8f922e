//! A cache of words and their terms: code repeats the same few thousand words.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use rust_stemmers::{Algorithm, Stemmer};

use super::split;
use super::stop_words::is_stop_word;
use crate::texts::{Interner, Texts};

/// Maximum cached terms, or parts of words; a fuller cache is cleared at the next file. With the
/// words that is some 80 megabytes at most.
const MAX_TERMS: usize = if cfg!(test) { 10_000 } else { 400_000 };
/// Initial and maximum number of slots of the table: words fill half of it. A query has few.
const FIRST_SLOTS: usize = 1 << 10;
const MAX_SLOTS: usize = 1 << 20;
/// Maximum slots that are probed for a word. Words of a repository that were made to collide aren't
/// cached, which costs a look-up a term.
const MAX_PROBES: usize = 24;
/// Maximum bytes of a word that the table keeps in the slot itself.
const INLINE_WORD_BYTES: usize = 16;
/// Maximum digits of a number that is a term. Longer ones are data.
const MAX_NUMBER_DIGITS: usize = 12;

/// A word of the table. `length` 0 is a free slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The word's first 16 bytes; of a longer one the first 8, and a mixture of the others.
    head: [u64; 2],
    /// Position in the arena of the rest of a longer word, from its ninth byte.
    rest: u32,
    /// The term of a word with a single one; else the position of its terms in the list.
    terms: u32,
    length: u16,
    terms_count: u16,
}

/// A word of a text, and its look-up key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Word {
    start: usize,
    end: usize,
    /// See [`Slot::head`].
    head: [u64; 2],
    hash: usize,
}

/// Marker of a part of a word without a term.
const NO_TERM: u32 = u32::MAX;

/// Words, their terms, and the terms' texts.
pub(super) struct WordCache {
    /// Identity of the cache: numbers of terms have a meaning only together with it.
    id: u64,
    slots: Vec<Slot>,
    used: usize,
    arena: Vec<u8>,
    lists: Vec<u32>,
    /// The terms.
    terms: Interner,
    /// Parts of words in lower case, and by a part's number its term: a part is in many words, and
    /// stemming is slow.
    parts: Interner,
    stems: Vec<u32>,
    stemmer: Stemmer,
    scratch: String,
    /// The terms of a word that couldn't be cached.
    unkept: Vec<u32>,
}

impl fmt::Debug for WordCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WordCache").field("words", &self.used).finish_non_exhaustive()
    }
}

/// Result of looking up a word.
#[derive(Clone, Copy)]
enum SlotLookup {
    /// Cached, with its terms in the slot.
    One(usize),
    /// Cached, with its terms in the list.
    Listed { start: usize, end: usize },
    /// Not cached; this slot is free.
    Free(usize),
    /// Not cached, and there is no room.
    Full,
}

impl WordCache {
    pub(super) fn new() -> Self {
        static NEXT_CACHE_ID: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT_CACHE_ID.fetch_add(1, Ordering::Relaxed),
            slots: vec![Slot::default(); FIRST_SLOTS],
            used: 0,
            arena: Vec::new(),
            lists: Vec::new(),
            terms: Interner::default(),
            parts: Interner::default(),
            stems: Vec::new(),
            stemmer: Stemmer::create(Algorithm::English),
            scratch: String::new(),
            unkept: Vec::new(),
        }
    }

    /// Returns true if the cache should be cleared before the next file.
    pub(super) fn is_full(&self) -> bool {
        self.terms.texts().len().max(self.stems.len()) >= MAX_TERMS || self.used * 2 >= MAX_SLOTS
    }

    /// Clears the cache. Numbers of terms lose their meaning.
    pub(super) fn clear(&mut self) {
        let stemmer = std::mem::replace(&mut self.stemmer, Stemmer::create(Algorithm::English));
        *self = Self { stemmer, ..Self::new() };
    }

    /// Returns the identity of the cache.
    pub(super) fn cache_id(&self) -> u64 {
        self.id
    }

    pub(super) fn text(&self, term: u32) -> &str {
        self.terms.texts().get(term).unwrap_or_default()
    }

    /// Calls `each` with the terms of each of some words of a text, by number, and the texts of all
    /// terms.
    pub(super) fn visit_terms_of_words(
        &mut self,
        text: &str,
        words: &[Word],
        each: &mut impl FnMut(&[u32], &Texts),
    ) {
        let mask = self.slots.len() - 1;
        // The table positions of all words are loaded from memory before the first one is needed.
        let lengths =
            words.iter().filter_map(|word| self.slots.get(word.hash & mask)).map(|slot| slot.length);
        std::hint::black_box(lengths.fold(0, |all, length| all ^ length));
        for word in words {
            match self.find_slot(word, text) {
                SlotLookup::One(slot) => {
                    let term = self.slots.get(slot).map(|slot| &slot.terms);
                    each(term.map(std::slice::from_ref).unwrap_or_default(), self.terms.texts());
                }
                SlotLookup::Listed { start, end } => {
                    each(self.lists.get(start..end).unwrap_or_default(), self.terms.texts());
                }
                SlotLookup::Free(slot) => {
                    let (start, end) = self.insert_word(slot, word, text);
                    each(self.lists.get(start..end).unwrap_or_default(), self.terms.texts());
                }
                SlotLookup::Full => {
                    let mut unkept = std::mem::take(&mut self.unkept);
                    unkept.clear();
                    self.split_word(word.text(text), &mut unkept);
                    each(&unkept, self.terms.texts());
                    self.unkept = unkept;
                }
            }
        }
    }

    /// Looks up a word.
    fn find_slot(&self, word: &Word, text: &str) -> SlotLookup {
        let mask = self.slots.len() - 1;
        let mut at = word.hash & mask;
        for _ in 0..MAX_PROBES {
            let Some(slot) = self.slots.get(at) else { return SlotLookup::Full };
            if slot.length == 0 {
                return if self.used * 2 < self.slots.len() || self.slots.len() < MAX_SLOTS {
                    SlotLookup::Free(at)
                } else {
                    SlotLookup::Full
                };
            }
            let length = usize::from(slot.length);
            if slot.head == word.head
                && length == word.end - word.start
                && self.has_same_rest(slot, word, text)
            {
                let start = slot.terms as usize;
                return match slot.terms_count {
                    1 => SlotLookup::One(at),
                    count => SlotLookup::Listed { start, end: start + usize::from(count) },
                };
            }
            at = (at + 1) & mask;
        }
        SlotLookup::Full
    }

    fn has_same_rest(&self, slot: &Slot, word: &Word, text: &str) -> bool {
        if word.end - word.start <= INLINE_WORD_BYTES {
            return true;
        }
        let rest = bytes_in_arena(word.text(text)).unwrap_or_default();
        let start = slot.rest as usize;
        self.arena.get(start..start + rest.len()) == Some(rest)
    }

    /// Splits a word and caches its terms, in `slot` or, where the table grows, elsewhere.
    fn insert_word(&mut self, slot: usize, word: &Word, text: &str) -> (usize, usize) {
        let (head, word) = (word.head, word.text(text));
        let mut lists = std::mem::take(&mut self.lists);
        let start = lists.len();
        self.split_word(word, &mut lists);
        let end = lists.len();
        self.lists = lists;
        let rest_at = self.arena.len();
        self.arena.extend_from_slice(bytes_in_arena(word).unwrap_or_default());
        let terms = match self.lists.get(start..end) {
            Some([one]) => Ok(*one),
            _ => u32::try_from(start),
        };
        let fits = (u32::try_from(rest_at), terms, u16::try_from(word.len()), u16::try_from(end - start));
        if let (Ok(rest), Ok(terms), Ok(length), Ok(terms_count)) = fits
            && let Some(free) = self.slots.get_mut(slot)
        {
            *free = Slot { head, rest, terms, length, terms_count };
            self.used += 1;
        }
        if self.used * 2 >= self.slots.len() && self.slots.len() < MAX_SLOTS {
            self.grow_table();
        }
        (start, end)
    }

    fn grow_table(&mut self) {
        let larger = vec![Slot::default(); self.slots.len() * 2];
        let mask = larger.len() - 1;
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot.length == 0 {
                continue;
            }
            let mut at = hash(slot.head, usize::from(slot.length)) & mask;
            // Words that find no slot are added again when they are met.
            for _ in 0..MAX_PROBES {
                match self.slots.get_mut(at) {
                    Some(free) if free.length == 0 => {
                        *free = slot;
                        break;
                    }
                    _ => at = (at + 1) & mask,
                }
            }
        }
    }

    /// Appends a word's terms to `list`.
    fn split_word(&mut self, word: &str, list: &mut Vec<u32>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let (mut count, mut first_is_whole) = (0, false);
        let data = is_number(word);
        if !data {
            split::visit_parts(word, &mut |part| {
                if part.is_empty() {
                    return;
                }
                count += 1;
                first_is_whole = part.len() == word.len();
                self.add_part(part, &mut scratch, list);
            });
        }
        let whole = data && word.len() <= MAX_NUMBER_DIGITS && word.len() > 1
            || !data && count > 0 && !first_is_whole;
        if whole {
            write_lowercase(word, &mut scratch);
            list.push(self.terms.intern(&scratch));
        }
        self.scratch = scratch;
    }

    fn add_part(&mut self, part: &str, scratch: &mut String, list: &mut Vec<u32>) {
        write_lowercase(part, scratch);
        let number = self.parts.intern(scratch) as usize;
        if number == self.stems.len() {
            let term = self.stem_part(scratch).unwrap_or(NO_TERM);
            self.stems.push(term);
        }
        list.extend(self.stems.get(number).filter(|term| **term != NO_TERM));
    }

    /// Returns the term of a part in lower case.
    fn stem_part(&mut self, part: &str) -> Option<u32> {
        let first = part.chars().next().unwrap_or(' ');
        let single = part.len() == first.len_utf8() && !super::split::is_unspaced(first);
        let number = part.len() > MAX_NUMBER_DIGITS && first.is_ascii_digit();
        if single || number || is_stop_word(part) {
            return None;
        }
        Some(if part.is_ascii() {
            let stem = self.stemmer.stem(part);
            self.terms.intern(&stem)
        } else {
            self.terms.intern(part)
        })
    }
}

/// Returns true if a word is a number as written in code: its parts aren't worth searching for.
fn is_number(word: &str) -> bool {
    let bytes = word.as_bytes();
    match bytes {
        [b'0', b'x' | b'X' | b'b' | b'o', rest @ ..] => {
            rest.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'_')
        }
        _ => {
            bytes.iter().any(u8::is_ascii_digit)
                && bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_')
        }
    }
}

/// Replaces `into` by a text in lower case.
fn write_lowercase(text: &str, into: &mut String) {
    into.clear();
    if text.is_ascii() {
        into.push_str(text);
        into.make_ascii_lowercase();
    } else {
        into.extend(text.chars().flat_map(char::to_lowercase));
    }
}

/// Returns the bytes of a longer word that the arena holds.
fn bytes_in_arena(word: &str) -> Option<&[u8]> {
    if word.len() > INLINE_WORD_BYTES { word.as_bytes().get(8..) } else { None }
}

impl Word {
    /// Creates the word between two positions of a text.
    pub(super) fn from_range(text: &str, start: usize, end: usize) -> Self {
        let bytes = text.as_bytes();
        let length = end - start;
        let window = bytes
            .get(start..start + INLINE_WORD_BYTES)
            .and_then(|window| <[u8; INLINE_WORD_BYTES]>::try_from(window).ok());
        let first = match window {
            Some(window) if length >= INLINE_WORD_BYTES => u128::from_le_bytes(window),
            Some(window) => u128::from_le_bytes(window) & ((1 << (8 * length)) - 1),
            // Near the end of the text.
            None => read_little_endian(bytes.get(start..end).unwrap_or_default()),
        };
        #[allow(clippy::cast_possible_truncation)]
        let (first, mut second) = (first as u64, (first >> 64) as u64);
        for piece in bytes.get(start + INLINE_WORD_BYTES..end).unwrap_or_default().chunks(8) {
            let number = match <[u8; 8]>::try_from(piece) {
                Ok(whole) => u64::from_le_bytes(whole),
                #[allow(clippy::cast_possible_truncation)]
                Err(_) => read_little_endian(piece) as u64,
            };
            second = (second.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        let head = [first, second];
        Self { start, end, head, hash: hash(head, length) }
    }

    fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Reads at most 16 bytes as a little-endian number.
fn read_little_endian(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Hashes by a wide multiplication (as wyhash does).
fn hash(head: [u64; 2], length: usize) -> usize {
    let [first, second] = head;
    let product = u128::from(first ^ 0x9E37_79B9_7F4A_7C15 ^ (length as u64) << 56)
        * u128::from(second ^ 0xD6E8_FEB8_6659_FD93);
    #[allow(clippy::cast_possible_truncation)]
    let mixed = (product as u64 ^ (product >> 64) as u64) as usize;
    mixed ^ mixed >> 29
}
