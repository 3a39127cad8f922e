//! Terms of code and prose, for indexing and searching.
//!
//! A word of letters, digits and underscores becomes the lower-case, stemmed parts of its camelCase
//! or snake_case, and the whole word in lower case, unstemmed, where it has two parts or more.
//! English function words and single letters have no terms: with them, prose queries would match
//! half of every file. Text without spaces between words (Chinese, Japanese, Thai and the like)
//! becomes pairs of neighbouring characters.
//!
//! ```
//! use journeyman_index::tokens::Tokenizer;
//!
//! let mut terms = Vec::new();
//! let text = "the parsedHeaders of HTTPServer_2";
//! Tokenizer::new().visit_terms(text, &mut |term| terms.push(term.to_owned()));
//! assert_eq!(terms, ["pars", "header", "parsedheaders", "http", "server", "httpserver_2"]);
//! ```

mod cache;
mod filter;
mod split;
mod stop_words;

use crate::analysis::{TermCount, Terms};
use crate::texts::Texts;
use cache::{Word, WordCache};

pub(crate) use filter::TermFilter;
pub use split::MAX_WORD_BYTES;
pub use stop_words::is_stop_word;

/// Maximum words read of one file: a megabyte of prose has 200,000. Files with more are data.
pub const MAX_WORDS: u32 = 1_000_000;
/// Number of words that are looked up together, about as many as a core has memory reads in flight.
const LOOKUP_BATCH: usize = 16;

/// Splits text into terms and counts them. Used by one thread: it caches the terms of words.
///
/// For a file: [`Tokenizer::begin_file`], then for each document [`Tokenizer::add_text`] and
/// [`Tokenizer::finish_document`], and at the end [`Tokenizer::file_terms`].
#[derive(Debug)]
pub struct Tokenizer {
    cache: WordCache,
    counter: TermCounter,
    /// Number of words that may still be read of the file.
    words_left: u32,
}

/// Occurrences of terms in a document.
#[derive(Debug, Default)]
struct TermCounter {
    /// By the cache's number of a term: its number in the file plus 1, or 0.
    local: Vec<u32>,
    /// The file's terms, by the cache's numbers.
    file: Vec<u32>,
    /// By the file's number of a term: its occurrences in the document.
    times: Vec<u32>,
    /// The document's terms, by the file's numbers.
    document: Vec<u32>,
}

impl Default for Tokenizer {
    fn default() -> Self {
        Self::new()
    }
}

impl Tokenizer {
    /// Creates a tokenizer with an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self { cache: WordCache::new(), counter: TermCounter::default(), words_left: MAX_WORDS }
    }

    /// Begins a file: no term is known, and [`MAX_WORDS`] may be read.
    pub fn begin_file(&mut self) {
        let TermCounter { local, file, times, document } = &mut self.counter;
        if self.cache.is_full() {
            self.cache.clear();
            local.clear();
        } else {
            for term in file.iter() {
                if let Some(slot) = local.get_mut(*term as usize) {
                    *slot = 0;
                }
            }
        }
        file.clear();
        times.clear();
        document.clear();
        self.words_left = MAX_WORDS;
    }

    /// Adds a text's terms to the document, each occurrence `times` times.
    pub fn add_text(&mut self, text: &str, times: u32) {
        let Self { cache, counter, words_left } = self;
        visit_terms_of_words(cache, text, words_left, &mut |terms, _| {
            terms.iter().for_each(|term| counter.count_cached_term(*term, times));
        });
    }

    /// Adds counts of the same file's terms to the document.
    pub fn add_counts(&mut self, counts: &[TermCount]) {
        for TermCount { term, times } in counts {
            if *times > 0 {
                self.counter.count_file_term(*term, *times);
            }
        }
    }

    /// Ends the document and returns its terms by the file's numbers, each once, in order. The next
    /// document begins.
    pub fn finish_document(&mut self) -> Vec<TermCount> {
        let TermCounter { times, document, .. } = &mut self.counter;
        document.sort_unstable();
        let take = |term: &u32| {
            let times = times.get_mut(*term as usize).map_or(0, std::mem::take);
            TermCount { term: *term, times }
        };
        let counts = document.iter().map(take).collect();
        document.clear();
        counts
    }

    /// Returns the file's terms, by number.
    #[must_use]
    pub fn file_terms(&self) -> Terms {
        let own = self.counter.file.clone();
        let texts = own.iter().map(|term| self.cache.text(*term)).collect();
        Terms::from_cache(texts, self.cache.cache_id(), own)
    }

    /// Calls `emit` with each term of a text, in text order, once for each occurrence.
    pub fn visit_terms(&mut self, text: &str, emit: &mut dyn FnMut(&str)) {
        self.begin_file();
        let Self { cache, words_left, .. } = self;
        visit_terms_of_words(cache, text, words_left, &mut |terms, texts| {
            terms.iter().filter_map(|term| texts.get(*term)).for_each(&mut *emit);
        });
    }
}

/// Calls `each` with the terms of each word.
fn visit_terms_of_words(
    cache: &mut WordCache,
    text: &str,
    left: &mut u32,
    each: &mut impl FnMut(&[u32], &Texts),
) {
    let (mut words, mut count) = ([Word::default(); LOOKUP_BATCH], 0);
    split::visit_words(text, left, &mut |start, end| {
        if let Some(place) = words.get_mut(count) {
            *place = Word::from_range(text, start, end);
            count += 1;
        }
        if count == LOOKUP_BATCH {
            cache.visit_terms_of_words(text, &words, each);
            count = 0;
        }
    });
    cache.visit_terms_of_words(text, words.get(..count).unwrap_or_default(), each);
}

impl TermCounter {
    /// Counts a term by the cache's number.
    fn count_cached_term(&mut self, term: u32, times: u32) {
        let at = term as usize;
        if at >= self.local.len() {
            self.local.resize(at + 1, 0);
        }
        let Some(number) = self.local.get_mut(at) else { return };
        if *number == 0 {
            self.file.push(term);
            self.times.push(0);
            *number = u32::try_from(self.file.len()).unwrap_or(u32::MAX);
        }
        let number = *number - 1;
        self.count_file_term(number, times);
    }

    /// Counts a term by the file's number.
    fn count_file_term(&mut self, number: u32, times: u32) {
        let Some(count) = self.times.get_mut(number as usize) else { return };
        if *count == 0 {
            self.document.push(number);
        }
        *count = count.saturating_add(times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        Tokenizer::new().visit_terms(text, &mut |term| terms.push(term.to_owned()));
        terms
    }

    #[test]
    fn words_give_their_parts_and_themselves() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("requests", &["request"]),
            ("snake_case_names", &["snake", "case", "name", "snake_case_names"]),
            ("camelCaseNames", &["camel", "case", "name", "camelcasenames"]),
            ("PascalCase", &["pascal", "case", "pascalcase"]),
            ("HTTPServer", &["http", "server", "httpserver"]),
            ("SCREAMING_CASE", &["scream", "case", "screaming_case"]),
            ("__init__", &["init", "__init__"]),
            ("_private", &["privat", "_private"]),
            ("sha256sum", &["sha", "256", "sum", "sha256sum"]),
            ("utf8", &["utf", "utf8"]),
            ("v2", &["v2"]),
            ("404 0x1F3a 2.5", &["404", "0x1f3a"]),
            ("a b _ __", &[]),
            ("this is the end", &["end"]),
            ("is_the", &["is_the"]),
            ("naïve Über_größe", &["naïve", "über", "größe", "über_größe"]),
            ("ÜberGröße", &["über", "größe", "übergröße"]),
            ("Привет, мирНовый", &["привет", "мир", "новый", "мирновый"]),
            ("don't", &["don"]),
        ];
        for (text, expected) in cases {
            assert_eq!(&terms(text), expected, "{text}");
        }
    }

    #[test]
    fn unspaced_text_gives_pairs() {
        assert_eq!(terms("検索エンジン"), ["検索", "索エ", "エン", "ンジ", "ジン"]);
        assert_eq!(terms("中"), ["中"]);
        assert_eq!(terms("用parseURL解析"), ["用", "pars", "url", "parseurl", "解析"]);
        assert_eq!(terms("ที่นี่").len(), 5);
        assert_eq!(terms("한국어"), ["한국", "국어"]);
    }

    #[test]
    fn long_words_and_long_files_are_bounded() {
        assert_eq!(terms(&"x".repeat(MAX_WORD_BYTES + 1)), [""; 0]);
        assert_eq!(terms(&format!("{} end", "é".repeat(MAX_WORD_BYTES))), ["end"]);
        assert_eq!(terms(&"x".repeat(MAX_WORD_BYTES)).len(), 1);
        assert_eq!(terms(&"ab ".repeat(MAX_WORDS as usize + 5)).len(), MAX_WORDS as usize);
        assert_eq!(terms(&"中".repeat(MAX_WORDS as usize + 5)).len(), MAX_WORDS as usize);
    }

    #[test]
    fn a_file_is_counted_in_documents() {
        let mut tokenizer = Tokenizer::new();
        for _ in 0..2 {
            tokenizer.begin_file();
            tokenizer.add_text("src/index_file.rs", 1);
            let path = tokenizer.finish_document();
            tokenizer.add_text("open the index, open it", 1);
            tokenizer.add_counts(&path);
            let first = tokenizer.finish_document();
            tokenizer.add_text("index", 3);
            let second = tokenizer.finish_document();
            let terms = tokenizer.file_terms();
            let named = |counts: &[TermCount]| -> Vec<(String, u32)> {
                counts.iter().map(|count| (terms.get(count.term).unwrap().to_owned(), count.times)).collect()
            };
            let named = [named(&path), named(&first), named(&second)];
            let expected: [&[(&str, u32)]; 3] = [
                &[("src", 1), ("index", 1), ("file", 1), ("index_file", 1), ("rs", 1)],
                &[("src", 1), ("index", 2), ("file", 1), ("index_file", 1), ("rs", 1), ("open", 2)],
                &[("index", 3)],
            ];
            for (named, expected) in named.iter().zip(expected) {
                let expected: Vec<_> =
                    expected.iter().map(|(term, times)| (term.to_string(), *times)).collect();
                assert_eq!(named, &expected);
            }
        }
    }

    #[test]
    fn a_full_cache_changes_nothing() {
        let mut tokenizer = Tokenizer::new();
        let mut text = String::new();
        let mut expected = None;
        for round in 0..8 {
            text.clear();
            for word in 0..3_000 {
                text.push_str(&format!("w{}x{} ", round, word * 7919));
            }
            tokenizer.begin_file();
            tokenizer.add_text("parsedHeaders of words", 1);
            tokenizer.add_text(&text, 1);
            let counts = tokenizer.finish_document();
            assert!(counts.iter().all(|count| count.times > 0));
            let head: Vec<String> = tokenizer.file_terms().iter().take(4).map(str::to_owned).collect();
            assert_eq!(expected.get_or_insert_with(|| head.clone()), &head);
        }
    }
}
