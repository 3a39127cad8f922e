//! The product's part of a change, for judging changed tests.

use std::collections::BTreeSet;
use std::ops::Range;

use super::parsed_source::{ParsedSource, TokenKind};

/// Extensions of documents, which don't affect the product's behaviour.
const DOCUMENT_EXTENSIONS: [&str; 8] =
    ["md", "rst", "adoc", "txt", "markdown", "org", "license", "gitignore"];

/// Returns true for a document, which doesn't affect the product's behaviour.
pub(super) fn is_document(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, end)| end).to_ascii_lowercase();
    DOCUMENT_EXTENSIONS.contains(&extension.as_str())
}

/// The effect of a change on the product.
#[derive(Default)]
pub(super) struct ProductBehaviour<'t> {
    changed: bool,
    old_words: BTreeSet<&'t str>,
    new_words: BTreeSet<&'t str>,
}

impl<'t> ProductBehaviour<'t> {
    /// Adds a file of the product; either text may be missing.
    ///
    /// `tests` has the byte ranges of tests in the file, before and after.
    pub(super) fn add_file(
        &mut self,
        path: &str,
        old: Option<&ParsedSource<'t>>,
        new: Option<&ParsedSource<'t>>,
        (old_tests, new_tests): (&[Range<usize>], &[Range<usize>]),
    ) {
        if is_document(path) {
            return;
        }
        let code = |source: Option<&ParsedSource<'t>>, tests: &[Range<usize>]| -> Vec<&'t str> {
            let tokens = source.map(|source| source.tokens.as_slice()).unwrap_or_default();
            let is_product = |start: usize| !tests.iter().any(|test| test.contains(&start));
            let code =
                tokens.iter().filter(|token| token.kind != TokenKind::Comment && is_product(token.start));
            code.map(|token| token.text).collect()
        };
        let (before, after) = (code(old, old_tests), code(new, new_tests));
        self.changed |= before != after;
        self.old_words.extend(before);
        self.new_words.extend(after);
    }

    /// Records that the product changed in another way than by its code.
    pub(super) fn note_change(&mut self) {
        self.changed = true;
    }

    /// Returns true if the product's code changed.
    pub(super) fn has_changed(&self) -> bool {
        self.changed
    }

    /// Returns true if the product had a name that it no longer has.
    pub(super) fn has_lost(&self, word: &str) -> bool {
        word.len() > 2 && self.old_words.contains(word) && !self.new_words.contains(word)
    }
}
