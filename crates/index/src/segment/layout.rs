//! The layout of a segment's file.
//!
//! A header with a table of sections, then the sections. Numbers are little-endian; positions in a
//! section have 32 bits, which limits a segment's size.

use journeyman_syntax::language::Language;
use journeyman_syntax::outline::SymbolKind;

use std::ops::Range;

use super::codec::{ByteCursor, put_bytes, put_number};
use super::column::put_length;
use crate::analysis::{ContentType, FileStamp, PurposeFlags, Visibility};
use crate::query::{Purpose, is_ui_component};

/// The magic bytes of a segment's file.
pub(crate) const MAGIC: [u8; 8] = *b"jmindex\0";

/// The sections outside of dictionaries, by their position in the header's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum SectionKind {
    /// Records of files.
    Files,
    /// The purpose of each file, one byte each.
    Kinds,
    /// The first chunk of each file.
    FileChunks,
    /// The first symbol of each file.
    FileSymbols,
    /// Length in terms of each file's path.
    PathLengths,
    /// Length in terms of the names of each file's symbols.
    SymbolLengths,
    /// Lines of chunks.
    Chunks,
    /// Length in terms of each chunk.
    ChunkLengths,
    /// The start of each symbol's record.
    Symbols,
    /// The letters of each key of [`DictionaryKind::Defined`].
    Letters,
    /// Paths, one after the other.
    Paths,
    /// Records of symbols, and each file's names, imports and sections, in blocks.
    Data,
    /// The table of these blocks.
    Blocks,
}

/// Number of sections that aren't part of a dictionary.
pub(crate) const PLAIN_SECTION_COUNT: usize = 13;

/// Dictionaries, in the order of the header's table, after the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum DictionaryKind {
    /// Terms to chunks.
    Chunks,
    /// Terms to files with them in their path.
    Paths,
    /// Terms to files with them in a symbol's name.
    Symbols,
    /// Trigrams to files.
    Trigrams,
    /// Lower-case names to symbols.
    Defined,
    /// Names to references.
    Used,
    /// Whole paths to files.
    Files,
    /// The last parts of paths, in ASCII lower case, to files.
    Names,
}

impl DictionaryKind {
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

/// Number of sections of a dictionary: its keys, starts of blocks, lists.
pub(crate) const SECTIONS_PER_DICTIONARY: usize = 3;
/// Number of sections in all.
pub(crate) const SECTION_COUNT: usize =
    PLAIN_SECTION_COUNT + DictionaryKind::ALL.len() * SECTIONS_PER_DICTIONARY;
/// Bytes of a section's checksum, a truncated BLAKE3 hash.
pub(crate) const CHECKSUM_BYTES: usize = 16;
/// Bytes of a section's row in the table: its position, its length, its checksum.
pub(crate) const SECTION_ROW_BYTES: usize = 8 + 8 + CHECKSUM_BYTES;
/// Bytes of the header: magic, version, the table, and their checksum.
pub(crate) const HEADER_BYTES: usize = MAGIC.len() + 8 + SECTION_COUNT * SECTION_ROW_BYTES + CHECKSUM_BYTES;

/// Returns the version in the header, which identifies the layout and the analysis of files: only
/// programs with the same version read each other's segments.
pub(crate) fn format_version() -> u64 {
    /// Incremented with each change of the layout or of the analysis.
    const LAYOUT_VERSION: &str = "16";
    let mut hasher = blake3::Hasher::new();
    hasher.update(LAYOUT_VERSION.as_bytes());
    for language in Language::ALL {
        hasher.update(language.name().as_bytes());
        hasher.update(&[0, u8::from(language.is_built_in())]);
    }
    for kind in SYMBOL_KINDS {
        hasher.update(kind.name().as_bytes());
    }
    let sum = *hasher.finalize().as_bytes();
    ByteCursor::new(&sum).read_u64()
}

/// Kinds of symbols, by their number in a record.
pub(crate) const SYMBOL_KINDS: [SymbolKind; 21] = [
    SymbolKind::Function,
    SymbolKind::Method,
    SymbolKind::Constructor,
    SymbolKind::Class,
    SymbolKind::Struct,
    SymbolKind::Enum,
    SymbolKind::Variant,
    SymbolKind::Interface,
    SymbolKind::Trait,
    SymbolKind::Impl,
    SymbolKind::Module,
    SymbolKind::Type,
    SymbolKind::Constant,
    SymbolKind::Variable,
    SymbolKind::Field,
    SymbolKind::Property,
    SymbolKind::Macro,
    SymbolKind::Key,
    SymbolKind::Table,
    SymbolKind::Element,
    SymbolKind::Rule,
];

fn encode_symbol_kind(kind: SymbolKind) -> u8 {
    SYMBOL_KINDS.iter().position(|known| *known == kind).map_or(u8::MAX, |at| at as u8)
}

fn encode_language(language: Option<Language>) -> u8 {
    let at = language.and_then(|language| Language::ALL.iter().position(|known| *known == language));
    at.map_or(u8::MAX, |at| at as u8)
}

fn decode_language(number: u8) -> Option<Language> {
    Language::ALL.get(usize::from(number)).copied()
}

/// The bit beside the flags that marks code.
const IS_CODE_BIT: u8 = 1 << 7;

fn encode_flags(flags: PurposeFlags) -> u8 {
    let flags = [flags.generated, flags.vendored, flags.test, flags.doc, flags.veiled];
    flags.iter().enumerate().fold(0, |all, (at, set)| all | (u8::from(*set) << at))
}

/// Encodes a file's purpose as its byte in [`Part::Kinds`].
pub(crate) fn encode_purpose(record: &FileRecord, path: &[u8]) -> u8 {
    let is_code = record.language.is_some() || is_ui_component(path);
    encode_flags(record.flags) | if is_code { IS_CODE_BIT } else { 0 }
}

/// Decodes the byte of [`kind_of`].
pub(crate) fn decode_purpose(kind: u8) -> Purpose {
    Purpose { flags: decode_flags(kind), is_code: kind & IS_CODE_BIT != 0 }
}

fn decode_flags(flags: u8) -> PurposeFlags {
    let set = |at: u8| flags & (1 << at) != 0;
    PurposeFlags { generated: set(0), vendored: set(1), test: set(2), doc: set(3), veiled: set(4) }
}

/// A range of bytes of [`Part::Paths`], or of [`Part::Data`] decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByteSpan {
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl ByteSpan {
    fn write_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    fn read(cursor: &mut ByteCursor<'_>) -> Self {
        Self { at: cursor.read_u32(), len: cursor.read_u32() }
    }
}

/// The record of a file in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRecord {
    pub(crate) path: ByteSpan,
    /// Metadata by which a change is noticed.
    pub stamp: FileStamp,
    /// BLAKE3 hash of the content.
    pub hash: [u8; 32],
    /// Its content type.
    pub content: ContentType,
    /// Its purpose.
    pub flags: PurposeFlags,
    /// Its language.
    pub language: Option<Language>,
    /// True if the file hasn't been parsed yet.
    pub shallow: bool,
    /// Number of lines.
    pub lines: u32,
    /// Its first chunk; the others follow.
    pub first_chunk: u32,
    /// Number of chunks.
    pub chunks: u32,
    /// Its first symbol; the others follow.
    pub first_symbol: u32,
    /// Number of symbols.
    pub symbols: u32,
    pub(crate) details: ByteSpan,
}

/// Bytes of a file's record.
pub(crate) const FILE_RECORD_BYTES: usize = 8 + 32 + 32 + 4 + 4 + 8;

/// Columns of data that queries read of very many files.
#[derive(Debug, Default)]
pub(super) struct FileColumns {
    kinds: Vec<u8>,
    chunks: Vec<u8>,
    symbols: Vec<u8>,
    path_lengths: Vec<u8>,
    symbol_lengths: Vec<u8>,
}

impl FileColumns {
    /// Adds a file, with the lengths in terms of its path and of the names of its symbols.
    pub(super) fn push(&mut self, file: &FileRecord, path: &[u8], path_length: u32, symbol_length: u32) {
        self.kinds.push(encode_purpose(file, path));
        self.chunks.extend_from_slice(&file.first_chunk.to_le_bytes());
        self.symbols.extend_from_slice(&file.first_symbol.to_le_bytes());
        put_length(&mut self.path_lengths, path_length);
        put_length(&mut self.symbol_lengths, symbol_length);
    }
}

/// A segment's parts, as they are collected.
#[derive(Debug, Default)]
pub(super) struct SegmentParts {
    pub(super) files: Vec<u8>,
    pub(super) columns: FileColumns,
    pub(super) chunks: Vec<u8>,
    pub(super) chunk_lengths: Vec<u8>,
    pub(super) symbols: Vec<u8>,
    pub(super) letters: Vec<u8>,
    pub(super) paths: Vec<u8>,
    pub(super) data: Vec<u8>,
    pub(super) blocks: Vec<u8>,
}

impl SegmentParts {
    /// Adds a chunk: its first line, its number of lines, and its length in terms.
    pub(super) fn push_chunk(&mut self, first_line: u32, lines: u32, length: u32) {
        self.chunks.extend_from_slice(&first_line.to_le_bytes());
        self.chunks.extend_from_slice(&lines.to_le_bytes());
        put_length(&mut self.chunk_lengths, length);
    }

    /// Returns the number of chunks.
    pub(super) fn chunk_count(&self) -> u32 {
        (self.chunks.len() / CHUNK_RECORD_BYTES) as u32
    }

    /// Returns the number of symbols.
    pub(super) fn symbol_count(&self) -> u32 {
        (self.symbols.len() / 4) as u32
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.sections().iter().map(|section| section.len()).sum()
    }

    /// Returns all parts, in the order of [`Part`].
    pub(super) fn sections(&self) -> [&[u8]; PLAIN_SECTION_COUNT] {
        let columns = &self.columns;
        [
            &self.files,
            &columns.kinds,
            &columns.chunks,
            &columns.symbols,
            &columns.path_lengths,
            &columns.symbol_lengths,
            &self.chunks,
            &self.chunk_lengths,
            &self.symbols,
            &self.letters,
            &self.paths,
            &self.data,
            &self.blocks,
        ]
    }
}

impl FileRecord {
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        self.path.write_to(out);
        out.extend_from_slice(&self.stamp.size.to_le_bytes());
        out.extend_from_slice(&self.stamp.modified.to_le_bytes());
        out.extend_from_slice(&self.stamp.changed.to_le_bytes());
        out.extend_from_slice(&self.stamp.inode.to_le_bytes());
        out.extend_from_slice(&self.hash);
        out.extend_from_slice(&[
            self.content as u8,
            encode_flags(self.flags),
            encode_language(self.language),
            u8::from(self.shallow),
        ]);
        out.extend_from_slice(&self.lines.to_le_bytes());
        self.details.write_to(out);
    }

    /// Decodes a record; its chunks and symbols come from columns.
    pub(crate) fn read(bytes: &[u8], chunks: Range<u32>, symbols: Range<u32>) -> Self {
        let mut cursor = ByteCursor::new(bytes);
        let path = ByteSpan::read(&mut cursor);
        let stamp = FileStamp {
            size: cursor.read_u64(),
            modified: cursor.read_i64(),
            changed: cursor.read_i64(),
            inode: cursor.read_u64(),
        };
        let hash = cursor.read_array();
        let [content, flags, language, shallow] = cursor.read_array();
        Self {
            path,
            stamp,
            hash,
            content: match content {
                0 => ContentType::Text,
                1 => ContentType::Binary,
                2 => ContentType::Huge,
                3 => ContentType::Minified,
                _ => ContentType::Unreadable,
            },
            flags: decode_flags(flags),
            language: decode_language(language),
            shallow: shallow != 0,
            lines: cursor.read_u32(),
            first_chunk: chunks.start,
            chunks: chunks.len() as u32,
            first_symbol: symbols.start,
            symbols: symbols.len() as u32,
            details: ByteSpan::read(&mut cursor),
        }
    }
}

/// Bytes of a chunk's record.
pub(crate) const CHUNK_RECORD_BYTES: usize = 8;

/// The record of a symbol in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolRecord {
    /// Its name.
    pub name: String,
    /// Names of its owners that don't enclose it, joined by dots; mostly empty.
    pub(crate) own_scope: String,
    /// Its kind.
    pub kind: SymbolKind,
    /// Its visibility.
    pub visibility: Visibility,
    /// True if it is defined inside a function.
    pub local: bool,
    /// Its first line with its comment, 1-based.
    pub first_line: u32,
    /// Number of lines.
    pub lines: u32,
    /// The line of its name.
    pub name_line: u32,
    /// Number of the enclosing symbol in the file.
    pub inside: Option<u32>,
    /// Its beginning up to its body; empty for one-line symbols.
    pub signature: String,
    /// The first sentence of its comment.
    pub doc: String,
}

/// The bit of a stored visibility that marks a symbol inside a function.
const LOCAL_BIT: u8 = 0x80;

impl SymbolRecord {
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        out.push(encode_symbol_kind(self.kind));
        out.push(self.visibility as u8 | if self.local { LOCAL_BIT } else { 0 });
        put_number(out, u64::from(self.first_line));
        put_number(out, u64::from(self.lines));
        put_number(out, u64::from(self.name_line.saturating_sub(self.first_line)));
        put_number(out, self.inside.map_or(0, |inside| u64::from(inside) + 1));
        for text in [&self.name, &self.own_scope, &self.signature, &self.doc] {
            put_bytes(out, text.as_bytes());
        }
    }

    /// Returns only the name, without copies of the texts; `None` for a symbol inside a function.
    pub(crate) fn read_outer_name(bytes: &[u8]) -> Option<&str> {
        let mut cursor = ByteCursor::new(bytes);
        let (_, who) = (cursor.read_u8(), cursor.read_u8());
        for _ in 0..4 {
            cursor.read_small_number();
        }
        (who & LOCAL_BIT == 0).then(|| cursor.read_text())
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut cursor = ByteCursor::new(bytes);
        let text = |cursor: &mut ByteCursor<'_>| cursor.read_text().to_owned();
        let (kind, who) = (cursor.read_u8(), cursor.read_u8());
        let (first_line, lines) = (cursor.read_small_number(), cursor.read_small_number());
        let name_line = first_line.saturating_add(cursor.read_small_number());
        let inside = cursor.read_small_number().checked_sub(1);
        Self {
            kind: SYMBOL_KINDS.get(usize::from(kind)).copied().unwrap_or(SymbolKind::Variable),
            visibility: match who & !LOCAL_BIT {
                1 => Visibility::Public,
                2 => Visibility::Restricted,
                3 => Visibility::Private,
                _ => Visibility::Unknown,
            },
            local: who & LOCAL_BIT != 0,
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
