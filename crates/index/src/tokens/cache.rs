//! What words give, remembered: code says the same few thousand words again and again.

use std::fmt;

use hashbrown::HashMap;
use rust_stemmers::{Algorithm, Stemmer};

use super::split;
use super::stop::is_stop_word;

/// Terms that are remembered before all is forgotten at the next file: some 40 megabytes with the words.
const MAX_TERMS: usize = if cfg!(test) { 10_000 } else { 400_000 };
/// Slots of the table at the beginning, and at most: words fill half of it.
const FIRST_SLOTS: usize = 1 << 14;
const MAX_SLOTS: usize = 1 << 20;
/// Slots that are looked at for a word. Where a repository's words were made to meet in one place, they aren't
/// remembered, which costs a look-up a term.
const MAX_PROBES: usize = 24;
/// Bytes of a word that the table keeps in the slot itself.
const INLINE: usize = 16;
/// A part that is a number and longer than this is data.
const MAX_NUMBER: usize = 12;

/// A word of the table. `length` 0 is a free slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The word's first 16 bytes; of a longer one the first 8, and a mixture of the others.
    head: [u64; 2],
    /// Where the rest of a longer word, from its ninth byte, is in the arena.
    rest: u32,
    /// Where its terms are in the list.
    terms: u32,
    length: u16,
    terms_count: u16,
}

/// Words, their terms, and the terms' texts.
pub(super) struct Cache {
    slots: Vec<Slot>,
    used: usize,
    arena: Vec<u8>,
    lists: Vec<u32>,
    texts: Texts,
    numbers: HashMap<Box<str>, u32>,
    stemmer: Stemmer,
    scratch: String,
    /// The terms of a word that couldn't be kept.
    unkept: Vec<u32>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").field("words", &self.used).finish_non_exhaustive()
    }
}

/// The texts of terms, by number.
#[derive(Debug, Default)]
pub(super) struct Texts {
    text: String,
    ends: Vec<u32>,
}

impl Texts {
    pub(super) fn get(&self, term: u32) -> &str {
        let term = term as usize;
        let start =
            term.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        let end = self.ends.get(term).map_or(start, |end| *end as usize);
        self.text.get(start..end).unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }
}

/// Where a word's terms are.
enum Found {
    Kept { start: usize, end: usize },
    Free(usize),
    Nowhere,
}

impl Cache {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![Slot::default(); FIRST_SLOTS],
            used: 0,
            arena: Vec::new(),
            lists: Vec::new(),
            texts: Texts::default(),
            numbers: HashMap::new(),
            stemmer: Stemmer::create(Algorithm::English),
            scratch: String::new(),
            unkept: Vec::new(),
        }
    }

    /// Whether it should be cleared before the next file.
    pub(super) fn is_full(&self) -> bool {
        self.texts.ends.len() >= MAX_TERMS || self.used * 2 >= MAX_SLOTS
    }

    /// Forgets all. Numbers of terms that were given out mean nothing any more.
    pub(super) fn clear(&mut self) {
        let stemmer = std::mem::replace(&mut self.stemmer, Stemmer::create(Algorithm::English));
        *self = Self { stemmer, ..Self::new() };
    }

    pub(super) fn text(&self, term: u32) -> &str {
        self.texts.get(term)
    }

    /// The terms of a word, by number.
    pub(super) fn terms(&mut self, word: &str) -> &[u32] {
        self.terms_and_texts(word).0
    }

    /// The terms of a word, by number, and the texts of all terms.
    pub(super) fn terms_and_texts(&mut self, word: &str) -> (&[u32], &Texts) {
        let head = head(word.as_bytes());
        let (start, end) = match self.find(head, word) {
            Found::Kept { start, end } => (start, end),
            Found::Free(slot) => self.learn(slot, head, word),
            Found::Nowhere => {
                self.unkept.clear();
                let mut unkept = std::mem::take(&mut self.unkept);
                self.take_apart(word, &mut unkept);
                self.unkept = unkept;
                return (&self.unkept, &self.texts);
            }
        };
        (self.lists.get(start..end).unwrap_or_default(), &self.texts)
    }

    fn find(&self, head: [u64; 2], word: &str) -> Found {
        let mask = self.slots.len() - 1;
        let mut at = hash(head, word.len()) & mask;
        for _ in 0..MAX_PROBES {
            let Some(slot) = self.slots.get(at) else { return Found::Nowhere };
            if slot.length == 0 {
                return if self.used * 2 < self.slots.len() || self.slots.len() < MAX_SLOTS {
                    Found::Free(at)
                } else {
                    Found::Nowhere
                };
            }
            if slot.head == head && usize::from(slot.length) == word.len() && self.same_rest(slot, word) {
                let start = slot.terms as usize;
                return Found::Kept { start, end: start + usize::from(slot.terms_count) };
            }
            at = (at + 1) & mask;
        }
        Found::Nowhere
    }

    fn same_rest(&self, slot: &Slot, word: &str) -> bool {
        let Some(rest) = rest(word) else { return true };
        let start = slot.rest as usize;
        self.arena.get(start..start + rest.len()) == Some(rest)
    }

    /// Takes a word apart and keeps what it gives, in `slot` or, where the table grows, elsewhere.
    fn learn(&mut self, slot: usize, head: [u64; 2], word: &str) -> (usize, usize) {
        let mut lists = std::mem::take(&mut self.lists);
        let start = lists.len();
        self.take_apart(word, &mut lists);
        let end = lists.len();
        self.lists = lists;
        let rest_at = self.arena.len();
        self.arena.extend_from_slice(rest(word).unwrap_or_default());
        let fits = (
            u32::try_from(rest_at),
            u32::try_from(start),
            u16::try_from(word.len()),
            u16::try_from(end - start),
        );
        if let (Ok(rest), Ok(terms), Ok(length), Ok(terms_count)) = fits
            && let Some(free) = self.slots.get_mut(slot)
        {
            *free = Slot { head, rest, terms, length, terms_count };
            self.used += 1;
        }
        if self.used * 2 >= self.slots.len() && self.slots.len() < MAX_SLOTS {
            self.grow();
        }
        (start, end)
    }

    fn grow(&mut self) {
        let larger = vec![Slot::default(); self.slots.len() * 4];
        let mask = larger.len() - 1;
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot.length == 0 {
                continue;
            }
            let mut at = hash(slot.head, usize::from(slot.length)) & mask;
            // Whatever finds no place is learnt again.
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
    fn take_apart(&mut self, word: &str, list: &mut Vec<u32>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let (mut count, mut first_is_whole) = (0, false);
        let data = is_number(word);
        if !data {
            split::parts(word, &mut |part| {
                if part.is_empty() {
                    return;
                }
                count += 1;
                first_is_whole = part.len() == word.len();
                self.part(part, &mut scratch, list);
            });
        }
        let whole =
            data && word.len() <= MAX_NUMBER && word.len() > 1 || !data && count > 0 && !first_is_whole;
        if whole {
            lower(word, &mut scratch);
            list.push(self.number(&scratch));
        }
        self.scratch = scratch;
    }

    fn part(&mut self, part: &str, scratch: &mut String, list: &mut Vec<u32>) {
        lower(part, scratch);
        let first = scratch.chars().next().unwrap_or(' ');
        let single = scratch.len() == first.len_utf8() && !super::split::is_unspaced(first);
        let number = scratch.len() > MAX_NUMBER && first.is_ascii_digit();
        if single || number || is_stop_word(scratch) {
            return;
        }
        let number = if scratch.is_ascii() {
            let stem = self.stemmer.stem(scratch).into_owned();
            self.number(&stem)
        } else {
            self.number(scratch)
        };
        list.push(number);
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.ends.len()).unwrap_or(u32::MAX);
        self.texts.push(text);
        self.numbers.insert(text.into(), number);
        number
    }
}

/// Whether a word is a number, as code writes them: it has no parts worth searching for.
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

fn lower(text: &str, into: &mut String) {
    into.clear();
    if text.is_ascii() {
        into.push_str(text);
        into.make_ascii_lowercase();
    } else {
        into.extend(text.chars().flat_map(char::to_lowercase));
    }
}

/// What of a longer word is in the arena.
fn rest(word: &str) -> Option<&[u8]> {
    if word.len() > INLINE { word.as_bytes().get(8..) } else { None }
}

/// See [`Slot::head`].
fn head(word: &[u8]) -> [u64; 2] {
    let mut bytes = [0; INLINE];
    let length = word.len().min(INLINE);
    if let (Some(into), Some(from)) = (bytes.get_mut(..length), word.get(..length)) {
        into.copy_from_slice(from);
    }
    let [a, b, c, d, e, f, g, h, second @ ..] = bytes;
    let mut head = [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes(second)];
    if let Some(rest) = word.get(INLINE..).filter(|rest| !rest.is_empty()) {
        let [_, mixed] = &mut head;
        for piece in rest.chunks(8) {
            let number = piece.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            *mixed = (mixed.rotate_left(23) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    head
}

/// Mixes by a wide multiplication (wyhash's way).
fn hash(head: [u64; 2], length: usize) -> usize {
    let [first, second] = head;
    let product = u128::from(first ^ 0x9E37_79B9_7F4A_7C15 ^ (length as u64) << 56)
        * u128::from(second ^ 0xD6E8_FEB8_6659_FD93);
    #[allow(clippy::cast_possible_truncation)]
    let mixed = (product as u64 ^ (product >> 64) as u64) as usize;
    mixed ^ mixed >> 29
}
