//! How a segment's file is laid out.
//!
//! A header with a table of sections, then the sections. Numbers are little-endian; positions in a section have 32 bits,
//! which is why a segment has a greatest size.

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::Kind;

use super::codec::{Cursor, put, put_bytes};
use crate::facts::{Content, Flags, Stamp, Visibility};

/// The first bytes of a segment's file.
pub(crate) const MAGIC: [u8; 8] = *b"jmindex\0";

/// Sections, by their place in the header's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Part {
    Files,
    Chunks,
    /// Where each symbol's record begins.
    Symbols,
    /// Paths, one after the other.
    Paths,
    /// Symbols' records, and each file's names, imports and sections, in blocks.
    Data,
    /// Where the blocks are.
    Blocks,
}

/// Sections that are no dictionary's.
pub(crate) const PARTS: usize = 6;

/// Dictionaries, in the order of the header's table, after the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Words {
    /// Terms to chunks.
    Chunks,
    /// Terms to files with them in their path.
    Paths,
    /// Terms to files with them in a symbol's name.
    Symbols,
    /// Three bytes to files.
    Trigrams,
    /// Lower-case names to symbols.
    Defined,
    /// Names to places that use them.
    Used,
    /// Whole paths to files.
    Files,
    /// The last parts of paths, in ASCII lower case, to files.
    Names,
}

impl Words {
    pub(crate) const ALL: [Self; 8] = [
        Self::Chunks,
        Self::Paths,
        Self::Symbols,
        Self::Trigrams,
        Self::Defined,
        Self::Used,
        Self::Files,
        Self::Names,
    ];
}

/// Sections of a dictionary: its keys, where each key's list begins, the lists.
pub(crate) const OF_WORDS: usize = 3;
/// Sections in all.
pub(crate) const SECTIONS: usize = PARTS + Words::ALL.len() * OF_WORDS;
/// Of a section's checksum, which is BLAKE3 cut to this many bytes.
pub(crate) const SUM: usize = 16;
/// Bytes of a section's row in the table: where it begins, its length, its checksum.
pub(crate) const ROW: usize = 8 + 8 + SUM;
/// Bytes of the header: magic, version, the table, and the checksum of these.
pub(crate) const HEADER: usize = MAGIC.len() + 8 + SECTIONS * ROW + SUM;

/// Says which programs can read each other's segments: the layout, and what is found in files. Part of the header.
pub(crate) fn version() -> u64 {
    /// Counted up with each change of the layout or of what [`crate::analyse`] finds.
    const LAYOUT: &str = "8";
    let mut hasher = blake3::Hasher::new();
    hasher.update(LAYOUT.as_bytes());
    for language in Language::ALL {
        hasher.update(language.name().as_bytes());
        hasher.update(&[0, u8::from(language.is_built_in())]);
    }
    for kind in KINDS {
        hasher.update(kind.name().as_bytes());
    }
    let sum = *hasher.finalize().as_bytes();
    Cursor::new(&sum).u64()
}

/// Kinds of symbols, by their number in a record.
pub(crate) const KINDS: [Kind; 21] = [
    Kind::Function,
    Kind::Method,
    Kind::Constructor,
    Kind::Class,
    Kind::Struct,
    Kind::Enum,
    Kind::Variant,
    Kind::Interface,
    Kind::Trait,
    Kind::Impl,
    Kind::Module,
    Kind::Type,
    Kind::Constant,
    Kind::Variable,
    Kind::Field,
    Kind::Property,
    Kind::Macro,
    Kind::Key,
    Kind::Table,
    Kind::Element,
    Kind::Rule,
];

fn number_of_kind(kind: Kind) -> u8 {
    KINDS.iter().position(|known| *known == kind).map_or(u8::MAX, |at| at as u8)
}

fn number_of_language(language: Option<Language>) -> u8 {
    let at = language.and_then(|language| Language::ALL.iter().position(|known| *known == language));
    at.map_or(u8::MAX, |at| at as u8)
}

pub(crate) fn language_of(number: u8) -> Option<Language> {
    Language::ALL.get(usize::from(number)).copied()
}

pub(crate) fn flags_of(flags: u8) -> Flags {
    let set = |at: u8| flags & (1 << at) != 0;
    Flags { generated: set(0), vendored: set(1), test: set(2), doc: set(3), veiled: set(4) }
}

/// Some bytes of [`Part::Paths`], or of [`Part::Data`] unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl Span {
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    fn read(cursor: &mut Cursor<'_>) -> Self {
        Self { at: cursor.u32(), len: cursor.u32() }
    }
}

/// What a segment keeps of a file at a fixed place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRecord {
    pub(crate) path: Span,
    /// By what a change is noticed.
    pub stamp: Stamp,
    /// BLAKE3 of what was read.
    pub hash: [u8; 32],
    /// What it is.
    pub content: Content,
    /// What it is for.
    pub flags: Flags,
    /// Its language.
    pub language: Option<Language>,
    /// What a parser would find in it wasn't looked for yet.
    pub shallow: bool,
    /// How many lines it has.
    pub lines: u32,
    /// Its first chunk; the others follow.
    pub first_chunk: u32,
    /// How many chunks it has.
    pub chunks: u32,
    /// Its first symbol; the others follow.
    pub first_symbol: u32,
    /// How many symbols it has.
    pub symbols: u32,
    /// Terms in its path, with repetitions.
    pub path_length: u32,
    /// Terms in its symbols' names, with repetitions.
    pub symbol_length: u32,
    pub(crate) details: Span,
}

/// Bytes of a file's record.
pub(crate) const FILE: usize = 8 + 32 + 32 + 4 + 4 * 7 + 8;

impl FileRecord {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.path.put(out);
        out.extend_from_slice(&self.stamp.size.to_le_bytes());
        out.extend_from_slice(&self.stamp.modified.to_le_bytes());
        out.extend_from_slice(&self.stamp.changed.to_le_bytes());
        out.extend_from_slice(&self.stamp.inode.to_le_bytes());
        out.extend_from_slice(&self.hash);
        let flags = self.flags;
        let flags = [flags.generated, flags.vendored, flags.test, flags.doc, flags.veiled];
        let flags = flags.iter().enumerate().fold(0, |all, (at, set)| all | (u8::from(*set) << at));
        out.extend_from_slice(&[
            self.content as u8,
            flags,
            number_of_language(self.language),
            u8::from(self.shallow),
        ]);
        let rest = [
            self.lines,
            self.first_chunk,
            self.chunks,
            self.first_symbol,
            self.symbols,
            self.path_length,
            self.symbol_length,
        ];
        rest.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        self.details.put(out);
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut cursor = Cursor::new(bytes);
        let path = Span::read(&mut cursor);
        let stamp =
            Stamp { size: cursor.u64(), modified: cursor.i64(), changed: cursor.i64(), inode: cursor.u64() };
        let hash = cursor.array();
        let [content, flags, language, shallow] = cursor.array();
        Self {
            path,
            stamp,
            hash,
            content: match content {
                0 => Content::Text,
                1 => Content::Binary,
                2 => Content::Huge,
                3 => Content::Minified,
                _ => Content::Unreadable,
            },
            flags: flags_of(flags),
            language: language_of(language),
            shallow: shallow != 0,
            lines: cursor.u32(),
            first_chunk: cursor.u32(),
            chunks: cursor.u32(),
            first_symbol: cursor.u32(),
            symbols: cursor.u32(),
            path_length: cursor.u32(),
            symbol_length: cursor.u32(),
            details: Span::read(&mut cursor),
        }
    }
}

/// What a segment keeps of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChunkRecord {
    pub(crate) file: u32,
    pub(crate) first_line: u32,
    pub(crate) lines: u32,
    /// Terms, with repetitions.
    pub(crate) length: u32,
}

/// Where in a file's record what it is stands: content, flags, language.
pub(crate) const FILE_KIND: usize = 8 + 32 + 32;
/// Where in a file's record the number of terms in its path is; that of terms in its symbols' names follows.
pub(crate) const FILE_LENGTHS: usize = 8 + 32 + 32 + 4 + 4 * 5;
/// Where in a file's record the number of its first symbol is.
pub(crate) const FILE_FIRST_SYMBOL: usize = 8 + 32 + 32 + 4 + 4 * 3;
/// Where in a chunk's record the number of its terms is; its file stands first.
pub(crate) const CHUNK_LENGTH: usize = 12;
/// Bytes of a chunk's record.
pub(crate) const CHUNK: usize = 16;

impl ChunkRecord {
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        let all = [self.file, self.first_line, self.lines, self.length];
        all.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut cursor = Cursor::new(bytes);
        let (file, first_line) = (cursor.u32(), cursor.u32());
        Self { file, first_line, lines: cursor.u32(), length: cursor.u32() }
    }
}

/// What a segment keeps of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolRecord {
    /// Its name.
    pub name: String,
    /// Names of what it belongs to that doesn't enclose it, with dots between; nothing otherwise.
    pub(crate) own_scope: String,
    /// What it is.
    pub kind: Kind,
    /// Who may use it.
    pub visibility: Visibility,
    /// It lies in a function.
    pub local: bool,
    /// Its first line with its comment, counted from 1.
    pub first_line: u32,
    /// How many lines it has.
    pub lines: u32,
    /// The line that its name stands in.
    pub name_line: u32,
    /// Which of the file's symbols it lies in.
    pub inside: Option<u32>,
    /// Its beginning up to its body; nothing for what is one line anyway.
    pub signature: String,
    /// The first sentence of its comment.
    pub doc: String,
}

impl SymbolRecord {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.push(number_of_kind(self.kind));
        out.push(self.visibility as u8 | (u8::from(self.local) << 7));
        put(out, u64::from(self.first_line));
        put(out, u64::from(self.lines));
        put(out, u64::from(self.name_line.saturating_sub(self.first_line)));
        put(out, self.inside.map_or(0, |inside| u64::from(inside) + 1));
        for text in [&self.name, &self.own_scope, &self.signature, &self.doc] {
            put_bytes(out, text.as_bytes());
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut cursor = Cursor::new(bytes);
        let text = |cursor: &mut Cursor<'_>| cursor.text().to_owned();
        let (kind, who) = (cursor.u8(), cursor.u8());
        let (first_line, lines) = (cursor.small(), cursor.small());
        let name_line = first_line.saturating_add(cursor.small());
        let inside = cursor.small().checked_sub(1);
        Self {
            kind: KINDS.get(usize::from(kind)).copied().unwrap_or(Kind::Variable),
            visibility: match who & 0x7f {
                1 => Visibility::Public,
                2 => Visibility::Restricted,
                3 => Visibility::Private,
                _ => Visibility::Unknown,
            },
            local: who & 0x80 != 0,
            first_line,
            lines,
            name_line,
            inside,
            name: text(&mut cursor),
            own_scope: text(&mut cursor),
            signature: text(&mut cursor),
            doc: text(&mut cursor),
        }
    }
}
