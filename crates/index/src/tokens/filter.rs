//! A filter for texts that may have a term, without splitting them into words.

use aho_corasick::AhoCorasick;

/// Maximum bytes of a term that may be the stem of an irregular word: `die` is that of `dying`.
const MAX_IRREGULAR_STEM_BYTES: usize = 3;

/// Excludes texts that have none of some terms, many times faster than splitting them into words.
#[derive(Debug)]
pub(crate) struct TermFilter {
    /// `None` lets every text pass.
    beginnings: Option<AhoCorasick>,
}

impl TermFilter {
    pub(crate) fn new<'a>(terms: impl Iterator<Item = &'a str>) -> Self {
        // A text of ASCII has no other term.
        let beginnings = terms.filter(|term| term.is_ascii()).map(word_beginning);
        Self { beginnings: AhoCorasick::builder().ascii_case_insensitive(true).build(beginnings).ok() }
    }

    /// Returns false if the text has none of the terms.
    pub(crate) fn may_have_term(&self, text: &str) -> bool {
        !text.is_ascii() || self.beginnings.as_ref().is_none_or(|beginnings| beginnings.is_match(text))
    }
}

/// Returns the beginning of every part of a word that has this term: stems differ from their words
/// in the last letter at most, as `happi` does from `happy`.
fn word_beginning(term: &str) -> &str {
    let length = if term.len() > MAX_IRREGULAR_STEM_BYTES { term.len() - 1 } else { 1 };
    term.get(..length).unwrap_or(term)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tokens::Tokenizer;

    const IRREGULAR_WORDS: &str = "skis skies dying lying tying idly gently ugly early only singly sky news \
        howe atlas cosmos bias andes inning outing canning herring earring proceed exceed succeed";

    /// Returns the terms of a text that a filter for each of them would keep back.
    fn missed_terms(text: &str) -> Vec<String> {
        let mut missed = Vec::new();
        Tokenizer::new().visit_terms(text, &mut |term| {
            if !TermFilter::new(std::iter::once(term)).may_have_term(text) {
                missed.push(term.to_owned());
            }
        });
        missed
    }

    /// Words with the endings that the stemmer knows, in the shapes that code has.
    fn word() -> impl Strategy<Value = String> {
        let ending = prop::sample::select(vec![
            "", "s", "es", "ies", "ied", "sses", "us", "ss", "'s", "ed", "edly", "ing", "ingly", "eed",
            "eedly", "y", "e", "tional", "enci", "ency", "anci", "abli", "ably", "entli", "ently", "izer",
            "ization", "ational", "ation", "ator", "alism", "aliti", "ality", "alli", "ally", "fulness",
            "ousli", "ously", "ousness", "iveness", "iviti", "ivity", "biliti", "bility", "bli", "bly",
            "ogi", "ogy", "fulli", "fully", "lessli", "lessly", "li", "ly", "alize", "icate", "iciti",
            "icity", "ical", "ful", "ness", "ative", "al", "ance", "ence", "er", "ic", "able", "ible", "ant",
            "ement", "ment", "ent", "ism", "ate", "iti", "ity", "ous", "ive", "ize", "sion", "tion", "ll",
        ]);
        ("[A-Z_0-9]{0,2}[a-z]{0,6}", ending.clone(), ending).prop_map(|(stem, one, two)| stem + one + two)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
        #[test]
        fn every_text_with_a_term_passes(words in prop::collection::vec(word(), 1..6), glue in "[ _.ä]?") {
            prop_assert_eq!(missed_terms(&words.join(&glue)), Vec::<String>::new());
        }
    }

    #[test]
    fn irregular_words_pass_and_other_texts_are_kept_back() {
        assert_eq!(missed_terms(IRREGULAR_WORDS), Vec::<String>::new());
        let filter = TermFilter::new(["migrat", "größe"].into_iter());
        for text in ["clusterMIGRATINGSlot", "größe", "immigrant"] {
            assert!(filter.may_have_term(text), "{text}");
        }
        assert!(!filter.may_have_term("grosse") && !filter.may_have_term("mitigate"));
        assert!(!TermFilter::new(std::iter::empty()).may_have_term("text"));
    }
}
