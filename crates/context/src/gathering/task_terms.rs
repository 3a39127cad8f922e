//! The terms of a task, and which of them a passage has.
//!
//! A term is a part of a word in camelCase or snake_case without its ending. All passages of up to
//! 80 files are read for a request, so that terms are hashed where they stand instead of being made
//! by the index's tokenizer: an eighth of the time.

use std::collections::HashSet;

use journeyman_index::tokens::is_stop_word;
use journeyman_protocol::clip_to_bytes;

use crate::words::hash_word;

/// Maximum terms: a task with more is a log.
const MAX_TERMS: usize = 400;
/// Maximum bytes of a task that are read.
const MAX_TASK_BYTES: usize = 64 << 10;
/// Endings that a term doesn't have, and the bytes that have to be left.
const ENDINGS: [&[u8]; 7] = [b"ings", b"ing", b"edly", b"ed", b"es", b"s", b"ly"];
const MIN_STEM_BYTES: usize = 3;
/// Number of words of a passage after a term among which the next one of the task may be.
const PAIR_DISTANCE: usize = 2;
/// Number of the bits of a letter that are the same for its capital.
const LETTER_BITS: u32 = 5;

/// The terms of a task, with those that follow each other.
pub(super) struct TaskTerms {
    /// The hashes of terms, in order; a term's number is its place.
    hashes: Vec<u64>,
    /// True for the first two letters of each term: most words are told by them.
    beginnings: Vec<bool>,
    /// Pairs of terms of which the second follows the first, stop words left out.
    pairs: HashSet<(u32, u32)>,
}

/// The terms of a task that a passage has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FoundTerms {
    /// Their numbers, each once, in order.
    pub(super) terms: Vec<u32>,
    /// Pairs that follow each other in the task, and within [`PAIR_DISTANCE`] words in the passage,
    /// each once, in order.
    pub(super) pairs: Vec<(u32, u32)>,
}

impl TaskTerms {
    pub(super) fn new(task: &str) -> Self {
        let mut order: Vec<u64> = Vec::new();
        let mut hashes: Vec<u64> = Vec::new();
        let mut beginnings = vec![false; 1 << (2 * LETTER_BITS)];
        visit_words(clip_to_bytes(task, MAX_TASK_BYTES).as_bytes(), &mut |word| {
            let is_stop = str::from_utf8(word).is_ok_and(|word| is_stop_word(&word.to_ascii_lowercase()));
            if word.len() > 1 && !is_stop {
                let hash = hash_term(word);
                if let (Err(at), true) = (hashes.binary_search(&hash), hashes.len() < MAX_TERMS) {
                    hashes.insert(at, hash);
                }
                order.push(hash);
                if let Some(begins) = beginning(word).and_then(|at| beginnings.get_mut(at)) {
                    *begins = true;
                }
            }
        });
        let mut terms = Self { hashes, beginnings, pairs: HashSet::new() };
        let pairs = order.windows(2).filter_map(|two| match two {
            [one, other] if one != other => Some((terms.number_of(*one)?, terms.number_of(*other)?)),
            _ => None,
        });
        terms.pairs = pairs.collect();
        terms
    }

    fn number_of(&self, hash: u64) -> Option<u32> {
        self.hashes.binary_search(&hash).ok().and_then(|at| u32::try_from(at).ok())
    }

    /// Finds the task's terms in a text.
    pub(super) fn find_in(&self, text: &str) -> FoundTerms {
        let mut found = FoundTerms::default();
        let mut before = [None; PAIR_DISTANCE];
        visit_words(text.as_bytes(), &mut |word| {
            let begins = beginning(word).and_then(|at| self.beginnings.get(at)).is_some_and(|begins| *begins);
            let number = if begins { self.number_of(hash_term(word)) } else { None };
            if let Some(number) = number {
                found.terms.push(number);
                let pairs = before.iter().flatten().map(|before| (*before, number));
                found.pairs.extend(pairs.filter(|pair| self.pairs.contains(pair)));
            }
            before.rotate_right(1);
            before[0] = number;
        });
        found.terms.sort_unstable();
        found.terms.dedup();
        found.pairs.sort_unstable();
        found.pairs.dedup();
        found
    }
}

/// Returns the number of a word's first two letters, capitals like small ones; `None` for a word of
/// one. A term keeps them.
fn beginning(word: &[u8]) -> Option<usize> {
    const MASK: u8 = (1 << LETTER_BITS) - 1;
    match word {
        [one, other, ..] => Some((usize::from(one & MASK) << LETTER_BITS) | usize::from(other & MASK)),
        _ => None,
    }
}

/// Returns the hash of a word's term.
fn hash_term(word: &[u8]) -> u64 {
    let ends = |ending: &&&[u8]| {
        let stem = word.len().checked_sub(ending.len()).filter(|stem| *stem >= MIN_STEM_BYTES);
        stem.and_then(|stem| word.get(stem..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
    };
    let ending = ENDINGS.iter().find(ends).map_or(0, |ending| ending.len());
    hash_word(word.get(..word.len() - ending).unwrap_or(word))
}

/// Calls back with each part of each word: a run of digits or of capitals, or small letters with a
/// capital before them, if there is one.
fn visit_words(text: &[u8], each: &mut impl FnMut(&[u8])) {
    #[derive(Clone, Copy, PartialEq)]
    enum Class {
        Other,
        Digit,
        Capital,
        Letter,
    }
    let class = |byte: u8| match byte {
        b'0'..=b'9' => Class::Digit,
        b'A'..=b'Z' => Class::Capital,
        b'a'..=b'z' | 0x80.. => Class::Letter,
        _ => Class::Other,
    };
    let mut emit = |from: usize, to: usize| {
        if let Some(word) = text.get(from..to).filter(|word| !word.is_empty()) {
            each(word);
        }
    };
    let (mut start, mut before) = (0, Class::Other);
    for (at, byte) in text.iter().enumerate() {
        let now = class(*byte);
        if now != before {
            match (before, now) {
                (Class::Other, _) => start = at,
                // One capital begins the word, the capitals before it are one of their own.
                (Class::Capital, Class::Letter) => {
                    emit(start, at - 1);
                    start = at - 1;
                }
                _ => {
                    emit(start, at);
                    start = at;
                }
            }
            before = now;
        }
    }
    if before != Class::Other {
        emit(start, text.len());
    }
}

/// Counts of the passages that have each term of a task.
#[derive(Debug, Default)]
pub(super) struct TermRarity {
    passages: u32,
    /// Number of passages that have a term, by its number.
    counts: Vec<u32>,
}

impl TermRarity {
    /// Counts a passage.
    pub(super) fn add(&mut self, found: &FoundTerms) {
        self.passages += 1;
        for term in &found.terms {
            let at = *term as usize;
            if at >= self.counts.len() {
                self.counts.resize(at + 1, 0);
            }
            if let Some(count) = self.counts.get_mut(at) {
                *count += 1;
            }
        }
    }

    /// Returns the inverse document frequency of a term, in nats.
    fn of_term(&self, term: u32) -> f64 {
        let count = self.counts.get(term as usize).copied().unwrap_or_default();
        (1.0 + f64::from(self.passages + 1) / f64::from(count + 1)).ln()
    }

    /// Returns the sum of the rarity of the pairs that were found, each by its more frequent term.
    pub(super) fn of_pairs(&self, found: &FoundTerms) -> f64 {
        let of_pair = |(one, other): &(u32, u32)| self.of_term(*one).min(self.of_term(*other));
        found.pairs.iter().map(of_pair).sum()
    }
}

/// Returns the bytes of a passage without lines that are comments. No grammar is asked: a line
/// counts by how it begins, in any language.
pub(super) fn code_bytes(text: &str) -> usize {
    let is_comment = |line: &str| {
        let line = line.trim_ascii_start();
        let after = line.trim_start_matches(['#', '*', '-']);
        let marked =
            after.len() < line.len() && (after.is_empty() || after.starts_with([' ', '\n', '\r', '/']));
        ["//", "/*", "<!--", "\"\"\"", "'''"].iter().any(|sign| line.starts_with(sign))
            || marked && !line.starts_with("- ")
    };
    text.split_inclusive('\n').filter(|line| !is_comment(line)).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_and_pairs_of_the_task_are_found() {
        let task = TaskTerms::new("The content length of a response is wrong");
        let pairs = |text: &str| task.find_in(text).pairs.len();
        let found = task.find_in("fn contentLength(response: &Response) -> usize { wrong }");
        assert_eq!((found.terms.len(), found.pairs.len()), (4, 3), "{found:?}");
        assert_eq!(pairs("length of the content"), 0);
        assert_eq!(pairs("content_lengths and CONTENTLength"), 1);
        assert_eq!(task.find_in("nothing else"), FoundTerms::default());
        assert_eq!(TaskTerms::new("").find_in("content"), FoundTerms::default());
    }

    #[test]
    fn pairs_of_rare_terms_count_for_more() {
        let task = TaskTerms::new("parse request headers, drop nothing");
        let mut rarity = TermRarity::default();
        for _ in 0..20 {
            rarity.add(&task.find_in("parse this request"));
        }
        let pairs = |text: &str| rarity.of_pairs(&task.find_in(text));
        let [common, half, rare] = ["parse_request", "requestHeader", "drop nothing"].map(pairs);
        assert!(rare > 2.0 * common && half == common && common > 0.0, "{rare} {half} {common}");
        assert_eq!(pairs("request"), 0.0);
    }

    #[test]
    fn words_are_cut_where_their_writing_changes() {
        let cases: &[(&str, &[&str])] = &[
            ("parsedHeaders of HTTPServer_2", &["parsed", "Headers", "of", "HTTP", "Server", "2"]),
            ("sha256sum A aB", &["sha", "256", "sum", "A", "a", "B"]),
            ("größe", &["größe"]),
            ("", &[]),
        ];
        for (text, words) in cases {
            let mut found = Vec::new();
            visit_words(text.as_bytes(), &mut |word| found.push(str::from_utf8(word).unwrap().to_owned()));
            assert_eq!(found, *words, "{text}");
        }
        for (one, other) in [("Headers", "header"), ("parsing", "parsed"), ("IMPORTED", "imports")] {
            assert_eq!(hash_term(one.as_bytes()), hash_term(other.as_bytes()), "{one}");
        }
        assert_ne!(hash_term(b"sing"), hash_term(b"s"));
    }

    #[test]
    fn comments_are_no_code() {
        let cases = [
            ("// a\nlet x = 1;\n", 11),
            ("# a\nx = 1\n", 6),
            ("#include <a.h>\n#[test]\n", 23),
            ("/*\n * a\n */\nint *p;\n*p = 1;\n", 16),
            ("-- a\nSELECT 1;\n", 10),
            ("- a: 1\n--x;\n", 12),
            ("", 0),
        ];
        for (text, bytes) in cases {
            assert_eq!(code_bytes(text), bytes, "{text}");
        }
    }
}
