//! What ranking has to know of an index.

use std::ops::Range;

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::Kind;

use super::signals::is_component;
use crate::facts::{Content, Flags, Visibility};

/// What documents are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Stretches of lines; documents are chunks.
    Chunk,
    /// Words of paths; documents are files.
    Path,
    /// Words of the names that files define; documents are files.
    Symbol,
}

/// What a field has in all, of what is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Documents, also those without a term.
    pub documents: u64,
    /// Terms in all, each as often as it stands there.
    pub length: u64,
}

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntry<'a> {
    /// Its path.
    pub path: &'a [u8],
    /// What it is.
    pub content: Content,
    /// What it is for.
    pub flags: Flags,
    /// Its language, if it is one that is understood.
    pub language: Option<Language>,
    /// How many lines it has.
    pub lines: u32,
}

/// A chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkEntry {
    /// Its file.
    pub file: u32,
    /// Its first line, counted from 1.
    pub first_line: u32,
    /// How many lines it has.
    pub lines: u32,
}

/// A definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolEntry<'a> {
    /// Its file.
    pub file: u32,
    /// Its name as it is written.
    pub name: &'a str,
    /// What it is.
    pub kind: Kind,
    /// Names of what it lies in, from the outside in, with dots between.
    pub scope: &'a str,
    /// Its first line with its comment, counted from 1.
    pub first_line: u32,
    /// How many lines it has.
    pub lines: u32,
    /// The line that its name stands in.
    pub name_line: u32,
    /// Its beginning up to its body, on one line.
    pub signature: &'a str,
    /// Who may use it.
    pub visibility: Visibility,
    /// It lies in a function.
    pub local: bool,
}

impl SymbolEntry<'_> {
    /// Whether it lies in what is named so, the innermost last; anything lies in nothing.
    #[must_use]
    pub fn is_in(&self, scope: &str) -> bool {
        within(scope, self.scope)
    }
}

/// A name with what it lies in.
#[must_use]
pub fn full_name(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

/// Whether what lies in `scope` is asked for by `asked`.
pub(crate) fn within(asked: &str, scope: &str) -> bool {
    asked.is_empty()
        || scope == asked
        || scope.strip_suffix(asked).is_some_and(|before| before.ends_with('.'))
}

/// Which names are looked for. All are in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Like<'a> {
    /// Names that begin so.
    Prefix(&'a str),
    /// Names that have these characters in this order, whatever stands between.
    Subsequence(&'a str),
    /// Names that one inserted, deleted or replaced character is the difference to.
    Typo(&'a str),
}

impl Like<'_> {
    /// Whether a name in lower case is like this one.
    #[must_use]
    pub fn fits(self, name: &str) -> bool {
        match self {
            Self::Prefix(wanted) => name.starts_with(wanted),
            Self::Subsequence(wanted) => is_subsequence(wanted, name),
            Self::Typo(wanted) => is_one_off(wanted, name),
        }
    }
}

/// Whether the characters of one stand in the other in their order.
fn is_subsequence(wanted: &str, name: &str) -> bool {
    let mut rest = name.chars();
    wanted.chars().all(|character| rest.any(|other| other == character))
}

/// Whether one character inserted, deleted or replaced is the difference, or none is.
fn is_one_off(one: &str, other: &str) -> bool {
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
            _ => {
                let same = |a: &std::str::Chars<'_>, b: &std::str::Chars<'_>| a.as_str() == b.as_str();
                return same(&left, &right) || same(&left, &before_right) || same(&before_left, &right);
            }
        }
    }
}

/// A file that is in use, and what ranking asks of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingFile {
    /// Its number.
    pub file: u32,
    /// Its chunks.
    pub chunks: Range<u32>,
    /// What it is for.
    pub purpose: Purpose,
}

/// That a document has a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Posting {
    /// The document.
    pub document: u32,
    /// How often it has the term.
    pub times: u32,
    /// How many terms it has, each as often as it stands there.
    pub length: u32,
}

/// Where a corpus keeps which documents have a term: numbers that it alone understands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lists(pub(crate) Vec<[u32; 3]>);

/// What of a file counts for ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose {
    /// What it is for.
    pub flags: Flags,
    /// Its language is one that is understood, or it is a component of a page.
    pub is_code: bool,
}

impl Purpose {
    /// A file's.
    #[must_use]
    pub fn of(file: &FileEntry<'_>) -> Self {
        Self { flags: file.flags, is_code: file.language.is_some() || is_component(file.path) }
    }
}

/// An index, as ranking sees it.
///
/// Files and chunks have numbers beneath [`Corpus::file_bound`] and [`Corpus::chunk_bound`]; not each need be in use.
/// Only what is alive is shown and counted, so that what is found doesn't depend on what was there before. In which
/// order postings and symbols are visited doesn't matter.
pub trait Corpus: Sync {
    /// One more than the greatest number of a file.
    fn file_bound(&self) -> u32;

    /// One more than the greatest number of a chunk.
    fn chunk_bound(&self) -> u32;

    /// What a field has in all.
    fn totals(&self, field: Field) -> Totals;

    /// Where it is kept which documents have a term: what is asked with it is answered without looking for the term again.
    fn find(&self, field: Field, term: &str) -> Lists;

    /// How many documents have a term.
    fn documents_with(&self, field: Field, lists: &Lists) -> u64;

    /// Documents in stretches that several threads can go through, a stretch each: together all of them, in order.
    fn parts(&self, field: Field) -> Vec<Range<u32>>;

    /// Visits the documents of one or more such stretches that have a term, many at once, with all that scoring has to know of
    /// each. Documents that aren't in use may be among them.
    fn each(&self, field: Field, lists: &Lists, part: Range<u32>, visit: &mut dyn FnMut(&[Posting]));

    /// Visits the files that are in use, in rising order.
    fn each_file(&self, visit: &mut dyn FnMut(LivingFile));

    /// The chunks of a file that is in use; none of others.
    fn chunks_of(&self, file: u32) -> Range<u32>;

    /// What a file is for; `None` for a number that isn't in use. [`Corpus::file`], in less time.
    fn purpose(&self, file: u32) -> Option<Purpose> {
        self.file(file).as_ref().map(Purpose::of)
    }

    /// A file; `None` for a number that isn't in use.
    fn file(&self, file: u32) -> Option<FileEntry<'_>>;

    /// A chunk; `None` for a number that isn't in use.
    fn chunk(&self, chunk: u32) -> Option<ChunkEntry>;

    /// The number of the file at a path.
    fn file_at(&self, path: &[u8]) -> Option<u32>;

    /// Visits the files whose last path component, in ASCII lower case, is `name` in ASCII lower case.
    fn files_called(&self, name: &[u8], visit: &mut dyn FnMut(u32));

    /// Visits the symbols whose name in lower case is `name`: each one's file and its number.
    fn called(&self, name: &str, visit: &mut dyn FnMut(u32, u32));

    /// Shows a symbol, if it is in use.
    fn symbol(&self, symbol: u32, show: &mut dyn FnMut(SymbolEntry<'_>));

    /// Shows all of those.
    fn symbols_called(&self, name: &str, visit: &mut dyn FnMut(SymbolEntry<'_>)) {
        let mut symbols = Vec::new();
        self.called(name, &mut |_, symbol| symbols.push(symbol));
        symbols.into_iter().for_each(|symbol| self.symbol(symbol, visit));
    }

    /// Visits names of symbols, in lower case, that are like one. At most `limit`: the first ones in the order of their
    /// bytes. A name may be visited twice.
    fn names_like(&self, like: Like<'_>, limit: usize, visit: &mut dyn FnMut(&str));

    /// Visits a file's symbols in the order of their first lines.
    fn symbols_of(&self, file: u32, visit: &mut dyn FnMut(SymbolEntry<'_>));
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
        ] {
            assert!(is_one_off(one, other) && is_one_off(other, one), "{one} {other}");
        }
        for (one, other) in [("open", "op"), ("open", "xpex"), ("ab", "ba"), ("", "ab"), ("aé", "éa")] {
            assert!(!is_one_off(one, other) && !is_one_off(other, one), "{one} {other}");
        }
    }

    #[test]
    fn scopes_are_compared_by_their_ends() {
        assert!(within("", "A.B") && within("B", "A.B") && within("A.B", "A.B"));
        assert!(!within("B", "A.XB") && !within("A", "A.B"));
    }
}
