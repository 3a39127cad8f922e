//! What is known of one file: what [`analyse`](crate::analyse) finds and a segment keeps.

use std::ops::Deref;

use journeyman_protocol::RelPath;
pub use journeyman_syntax::imports::Import;
use journeyman_syntax::language::Language;
pub use journeyman_syntax::outline::{Kind, Visibility};
pub use journeyman_syntax::sections::Section;

use crate::texts::Texts;

/// What a file's content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Content {
    /// Text that was read.
    #[default]
    Text = 0,
    /// Not text: known, not read.
    Binary = 1,
    /// Longer than is read.
    Huge = 2,
    /// Text of lines that nobody wrote: known, not searched.
    Minified = 3,
    /// It couldn't be read.
    Unreadable = 4,
}

/// What a file is for, as its path and its beginning tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// Written by a program.
    pub generated: bool,
    /// Somebody else's, kept along.
    pub vendored: bool,
    /// Tests, or what they need.
    pub test: bool,
    /// Documentation, or an example.
    pub doc: bool,
    /// Not all of its text is known: secrets are left out, and what isn't UTF-8 can't be told.
    pub veiled: bool,
}

/// By what a change of a file is noticed without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// Time of its last change, in nanoseconds since 1970.
    pub modified: i64,
    /// Time of the last change of its inode, in nanoseconds since 1970: programs may set the other one back.
    pub changed: i64,
    /// Its inode.
    pub inode: u64,
}

/// Distinct terms by number, and what the [`Tokenizer`](crate::tokens::Tokenizer) that found them remembers them by.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    texts: Texts,
    memory: u64,
    own: Vec<u32>,
}

impl PartialEq for Terms {
    /// Whether the texts are the same, whoever found them.
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Terms {
    /// Terms as a memory has them: `own` are its numbers of the texts, which mean the same texts for as long as there is that
    /// memory.
    pub(crate) fn remembered(texts: Texts, memory: u64, own: Vec<u32>) -> Self {
        Self { texts, memory, own }
    }

    /// Which memory they come from, and its numbers of them.
    pub(crate) fn origin(&self) -> (u64, &[u32]) {
        (self.memory, &self.own)
    }
}

impl Deref for Terms {
    type Target = Texts;

    fn deref(&self) -> &Texts {
        &self.texts
    }
}

/// How often a term stands in a document. Terms are named by their place in [`FileFacts::terms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// Which term.
    pub term: u32,
    /// How often.
    pub times: u32,
}

/// A stretch of lines that is searched as one document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// Its first line, counted from 1.
    pub first_line: u32,
    /// How many lines it has.
    pub lines: u32,
    /// Its terms, each once, by number.
    pub counts: Vec<Count>,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolFact {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Names of what it lies in, from the outside in, with dots between.
    pub scope: String,
    /// Its first line with its comment, counted from 1.
    pub first_line: u32,
    /// How many lines it has.
    pub lines: u32,
    /// The line that its name stands in.
    pub name_line: u32,
    /// Its beginning up to its body, on one line.
    pub signature: String,
    /// Its comment's first sentence, or nothing.
    pub doc: String,
    /// Who may use it.
    pub visibility: Visibility,
    /// It lies in a function.
    pub local: bool,
    /// Which of the file's symbols it lies in.
    pub inside: Option<u32>,
}

/// A name that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Which of [`FileFacts::names`].
    pub name: u32,
    /// The line, counted from 1.
    pub line: u32,
    /// Which of the file's symbols it stands in.
    pub inside: Option<u32>,
}

/// What is known of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileFacts {
    /// Where it is.
    pub path: RelPath,
    /// By what a change is noticed.
    pub stamp: Stamp,
    /// BLAKE3 of what was read; zeros for what wasn't.
    pub hash: [u8; 32],
    /// What it is.
    pub content: Content,
    /// What it is for.
    pub flags: Flags,
    /// Its language, if it is one that is understood.
    pub language: Option<Language>,
    /// What a parser would find in it wasn't looked for yet.
    pub shallow: bool,
    /// How many lines it has.
    pub lines: u32,
    /// Its distinct terms.
    pub terms: Terms,
    /// What is searched.
    pub chunks: Vec<Chunk>,
    /// The path's terms, as a document of their own.
    pub path_counts: Vec<Count>,
    /// The terms of its symbols' names, as a document of their own.
    pub symbol_counts: Vec<Count>,
    /// Its distinct trigrams of lower-case bytes, each as three bytes in a number.
    pub trigrams: Vec<u32>,
    /// What it defines.
    pub symbols: Vec<SymbolFact>,
    /// The distinct names that it uses, in the order in which they come.
    pub names: Texts,
    /// What it uses.
    pub references: Vec<Reference>,
    /// What it brings in.
    pub imports: Vec<Import>,
    /// What it says: a document's sections; else doc comments and docstrings that name other things.
    pub sections: Vec<Section>,
}
