//! The interface of an index for ranking.

use std::ops::Range;

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::SymbolKind;

use super::document::{Posting, Purpose, is_ui_component};
use crate::analysis::{ContentType, PurposeFlags, Visibility};

/// A set of documents in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Text; the documents are chunks.
    Chunk,
    /// Words of paths; the documents are files.
    Path,
    /// Words of the names that files define; the documents are files.
    Symbol,
}

/// Totals of a field over living documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldTotals {
    /// Number of documents, also those without a term.
    pub documents: u64,
    /// Number of terms, with repetitions.
    pub length: u64,
}

/// A file of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntry<'a> {
    /// Its path.
    pub path: &'a [u8],
    /// Its content type.
    pub content: ContentType,
    /// Its purpose.
    pub flags: PurposeFlags,
    /// Its language, if it is a supported one.
    pub language: Option<Language>,
    /// Number of lines.
    pub lines: u32,
}

/// A chunk of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkEntry {
    /// Number of its file.
    pub file: u32,
    /// The first line, 1-based.
    pub first_line: u32,
    /// Number of lines.
    pub lines: u32,
}

/// A symbol of the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolEntry<'a> {
    /// Number of its file.
    pub file: u32,
    /// Its name as written.
    pub name: &'a str,
    /// Its kind.
    pub kind: SymbolKind,
    /// Names of the enclosing symbols, from the outside in, joined by dots.
    pub scope: &'a str,
    /// Its first line with its comment, 1-based.
    pub first_line: u32,
    /// Number of lines.
    pub lines: u32,
    /// The line of its name.
    pub name_line: u32,
    /// Its beginning up to its body, on one line.
    pub signature: &'a str,
    /// Its visibility.
    pub visibility: Visibility,
    /// True if it is defined inside a function.
    pub local: bool,
}

/// A condition on names. All are in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameCondition<'a> {
    /// Names that begin with a prefix.
    Prefix(&'a str),
    /// Names that contain these characters in this order.
    Subsequence(&'a str),
    /// Names with at most one character inserted, deleted or replaced, or two neighbours swapped.
    Typo(&'a str),
}

impl NameCondition<'_> {
    /// Returns true if a name in lower case meets the condition.
    #[must_use]
    pub fn accepts(self, name: &str) -> bool {
        match self {
            Self::Prefix(wanted) => name.starts_with(wanted),
            Self::Subsequence(wanted) => is_subsequence(wanted, name),
            Self::Typo(wanted) => differs_by_one_letter(wanted, name),
        }
    }
}

/// Returns true if the characters of one text occur in the other in their order.
fn is_subsequence(wanted: &str, name: &str) -> bool {
    let mut rest = name.chars();
    wanted.chars().all(|character| rest.any(|other| other == character))
}

/// Returns true if two texts differ in at most one inserted, deleted or replaced character, or in
/// two neighbouring ones that are swapped.
fn differs_by_one_letter(one: &str, other: &str) -> bool {
    // A character has four bytes at most.
    if one.len().abs_diff(other.len()) > 4 {
        return false;
    }
    let (mut left, mut right) = (one.chars(), other.chars());
    loop {
        let (before_left, before_right) = (left.clone(), right.clone());
        match (left.next(), right.next()) {
            (None, None) => return true,
            (a, b) if a == b => {}
            (a, b) => {
                let same = |a: &std::str::Chars<'_>, b: &std::str::Chars<'_>| a.as_str() == b.as_str();
                if same(&left, &right) || same(&left, &before_right) || same(&before_left, &right) {
                    return true;
                }
                let crossed = (left.next(), right.next());
                return crossed.0.is_some() && crossed == (b, a) && same(&left, &right);
            }
        }
    }
}

/// A living file, with the data that ranking needs of every file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFile {
    /// Its number.
    pub file: u32,
    /// Its chunks.
    pub chunks: Range<u32>,
    /// Its purpose.
    pub purpose: Purpose,
}

/// Positions of a term's posting lists in a corpus, valid for that corpus only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostingLists(pub(crate) Vec<[u32; 3]>);

impl Purpose {
    /// Returns the properties of a file.
    #[must_use]
    pub fn of_file(file: &FileEntry<'_>) -> Self {
        Self { flags: file.flags, is_code: file.language.is_some() || is_ui_component(file.path) }
    }
}

/// An index, as ranking sees it.
///
/// Files and chunks have numbers below [`Corpus::file_bound`] and [`Corpus::chunk_bound`]; some may
/// be unused. Only living documents are shown and counted, so that results don't depend on earlier
/// states. The order in which postings and symbols are visited doesn't matter.
pub trait Corpus: Sync {
    /// Returns one more than the greatest number of a file.
    fn file_bound(&self) -> u32;

    /// Returns one more than the greatest number of a chunk.
    fn chunk_bound(&self) -> u32;

    /// Returns the totals of a field.
    fn totals(&self, field: Field) -> FieldTotals;

    /// Looks up a term once; the result gives access to its posting lists.
    fn find_posting_lists(&self, field: Field, term: &str) -> PostingLists;

    /// Returns the number of documents that have a term.
    fn document_count(&self, field: Field, lists: &PostingLists) -> u64;

    /// Returns consecutive ranges of documents that together are all of them, for several threads.
    fn document_ranges(&self, field: Field) -> Vec<Range<u32>>;

    /// Calls `visit` with postings of a term in one or more of these ranges, many at once. Unused
    /// documents may be among them.
    fn visit_postings(
        &self,
        field: Field,
        lists: &PostingLists,
        part: Range<u32>,
        visit: &mut dyn FnMut(&[Posting]),
    );

    /// Calls `visit` with the living files, in ascending order.
    fn visit_live_files(&self, visit: &mut dyn FnMut(LiveFile));

    /// Returns the chunks of a living file; none for others.
    fn chunks_of(&self, file: u32) -> Range<u32>;

    /// Returns the properties of a file, faster than [`Corpus::file`]; `None` for an unused number.
    fn purpose(&self, file: u32) -> Option<Purpose> {
        self.file(file).as_ref().map(Purpose::of_file)
    }

    /// Returns a file; `None` for an unused number.
    fn file(&self, file: u32) -> Option<FileEntry<'_>>;

    /// Returns a chunk; `None` for an unused number.
    fn chunk(&self, chunk: u32) -> Option<ChunkEntry>;

    /// Returns the number of the file at a path.
    fn file_at(&self, path: &[u8]) -> Option<u32>;

    /// Calls `visit` with the files whose last path component is `name`, compared in ASCII lower
    /// case.
    fn visit_files_named(&self, name: &[u8], visit: &mut dyn FnMut(u32));

    /// Calls `visit` with the symbols whose name in lower case is `name`: the numbers of file and
    /// symbol.
    fn visit_symbols_named(&self, name: &str, visit: &mut dyn FnMut(u32, u32));

    /// Calls `show` with a symbol, if it is living.
    fn visit_symbol(&self, symbol: u32, show: &mut dyn FnMut(SymbolEntry<'_>));

    /// Calls `visit` with all symbols of a name in lower case.
    fn visit_symbol_entries_named(&self, name: &str, visit: &mut dyn FnMut(SymbolEntry<'_>)) {
        let mut symbols = Vec::new();
        self.visit_symbols_named(name, &mut |_, symbol| symbols.push(symbol));
        symbols.into_iter().for_each(|symbol| self.visit_symbol(symbol, visit));
    }

    /// Calls `visit` with names of symbols, in lower case, that meet a condition. At most `limit`,
    /// in byte order. A name may be visited twice.
    fn visit_matching_names(&self, like: NameCondition<'_>, limit: usize, visit: &mut dyn FnMut(&str));

    /// Calls `visit` with the names of a file's first symbols, at most `limit`, except those that
    /// are defined inside a function.
    fn visit_symbol_names_of(&self, file: u32, limit: usize, visit: &mut dyn FnMut(&str));

    /// Calls `visit` with a file's symbols in the order of their first lines.
    fn visit_symbols_of(&self, file: u32, visit: &mut dyn FnMut(SymbolEntry<'_>));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_others() {
        assert!(
            is_subsequence("gtn", "getname") && !is_subsequence("ntg", "getname") && is_subsequence("", "x")
        );
        for (one, other) in [
            ("open", "open"),
            ("open", "opn"),
            ("open", "oopen"),
            ("open", "oxen"),
            ("", "a"),
            ("naïve", "naive"),
            ("é", ""),
            ("ab", "ba"),
            ("aé", "éa"),
            ("redisRnad", "redisRand"),
        ] {
            assert!(differs_by_one_letter(one, other) && differs_by_one_letter(other, one), "{one} {other}");
        }
        for (one, other) in [("open", "op"), ("open", "xpex"), ("abc", "cba"), ("", "ab"), ("abcd", "badc")] {
            assert!(
                !differs_by_one_letter(one, other) && !differs_by_one_letter(other, one),
                "{one} {other}"
            );
        }
    }
}
