//! Reading the records of a mapped segment.

use std::ops::Range;
use std::path::Path;

use super::DocumentId;
use super::codec::ByteCursor;
use super::column::Column;
use super::details::FileDetails;
use super::inverted_index::InvertedIndex;
use super::layout::{
    CHUNK_RECORD_BYTES, DictionaryKind, FILE_RECORD_BYTES, FileRecord, SectionKind, SymbolRecord,
    decode_purpose,
};
use super::mapped_file::MappedFile;
use super::record_blocks::BlockCache;
use crate::IndexError;
use crate::query::Purpose;

/// A mapped segment.
#[derive(Debug)]
pub struct Segment {
    file: MappedFile,
    index: InvertedIndex,
    unpacked: BlockCache,
}

impl Segment {
    /// Maps a segment's file. Reads only its header.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for another kind of file, or another version; [`IndexError::Io`].
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        let file = MappedFile::open(path)?;
        Ok(Self { index: InvertedIndex::open(&file)?, file, unpacked: BlockCache::default() })
    }

    /// Returns the mapped file.
    #[must_use]
    pub fn mapped_file(&self) -> &MappedFile {
        &self.file
    }

    /// Returns the dictionaries of terms, trigrams, names and paths.
    #[must_use]
    pub fn inverted_index(&self) -> &InvertedIndex {
        &self.index
    }

    /// Calls `show` with a record, and what follows it in its block.
    fn read_record<T>(&self, at: u32, show: impl FnOnce(&[u8]) -> T) -> T {
        self.unpacked.read_at(
            self.file.section_bytes(SectionKind::Data),
            self.file.section_bytes(SectionKind::Blocks),
            at,
            show,
        )
    }

    /// Returns the number of files, dead ones included.
    #[must_use]
    pub fn file_count(&self) -> u32 {
        (self.file.section_bytes(SectionKind::Files).len() / FILE_RECORD_BYTES) as u32
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> u32 {
        (self.file.section_bytes(SectionKind::Chunks).len() / CHUNK_RECORD_BYTES) as u32
    }

    /// Returns the number of symbols.
    #[must_use]
    pub fn symbol_count(&self) -> u32 {
        (self.file.section_bytes(SectionKind::Symbols).len() / 4) as u32
    }

    fn column(&self, part: SectionKind) -> Column<'_> {
        Column::new(self.file.section_bytes(part))
    }

    /// Returns a file's chunks.
    pub(crate) fn chunks_of(&self, file: DocumentId) -> Range<DocumentId> {
        self.column(SectionKind::FileChunks).item_range(file, self.chunk_count())
    }

    /// Returns a file's symbols.
    pub(crate) fn symbols_of(&self, file: DocumentId) -> Range<DocumentId> {
        self.column(SectionKind::FileSymbols).item_range(file, self.symbol_count())
    }

    /// Returns a file's record.
    #[must_use]
    pub fn file(&self, file: DocumentId) -> Option<FileRecord> {
        let at = file as usize * FILE_RECORD_BYTES;
        let record = self.file.section_bytes(SectionKind::Files).get(at..at + FILE_RECORD_BYTES)?;
        Some(FileRecord::read(record, self.chunks_of(file), self.symbols_of(file)))
    }

    /// Returns the bytes of a file's path.
    #[must_use]
    pub fn path_of(&self, file: &FileRecord) -> &[u8] {
        let at = file.path.at as usize;
        self.file
            .section_bytes(SectionKind::Paths)
            .get(at..at.saturating_add(file.path.len as usize))
            .unwrap_or_default()
    }

    /// Returns the file of a chunk.
    pub(crate) fn file_of_chunk(&self, chunk: DocumentId) -> DocumentId {
        self.column(SectionKind::FileChunks).row_of_item(chunk)
    }

    /// Returns a chunk's lines, 1-based.
    pub(crate) fn chunk(&self, chunk: DocumentId) -> Option<Range<u32>> {
        let at = chunk as usize * CHUNK_RECORD_BYTES;
        let mut record =
            ByteCursor::new(self.file.section_bytes(SectionKind::Chunks).get(at..at + CHUNK_RECORD_BYTES)?);
        let first_line = record.read_u32();
        Some(first_line..first_line.saturating_add(record.read_u32()))
    }

    /// Returns a symbol.
    #[must_use]
    pub fn symbol(&self, symbol: DocumentId) -> Option<SymbolRecord> {
        let at = symbol as usize * 4;
        let at = self.file.section_bytes(SectionKind::Symbols).get(at..)?.first_chunk::<4>()?;
        Some(self.read_record(u32::from_le_bytes(*at), SymbolRecord::read))
    }

    /// Calls `visit` with the name of a symbol that isn't defined inside a function.
    pub fn visit_outer_name(&self, symbol: DocumentId, visit: &mut dyn FnMut(&str)) {
        let at = self
            .file
            .section_bytes(SectionKind::Symbols)
            .get(symbol as usize * 4..)
            .and_then(<[u8]>::first_chunk::<4>);
        if let Some(at) = at {
            self.read_record(u32::from_le_bytes(*at), |bytes| {
                SymbolRecord::read_outer_name(bytes).into_iter().for_each(visit);
            });
        }
    }

    /// Returns the file of a symbol.
    #[must_use]
    pub fn file_of_symbol(&self, symbol: DocumentId) -> DocumentId {
        self.column(SectionKind::FileSymbols).row_of_item(symbol)
    }

    /// Returns the names of a symbol's enclosing symbols and owners, from the outside in, joined by
    /// dots.
    #[must_use]
    pub fn scope(&self, file: DocumentId, symbol: &SymbolRecord) -> String {
        /// Nobody refers to deeper symbols by name.
        const MAX_NESTING: usize = 64;
        let first = self.file(file).map_or(0, |file| file.first_symbol);
        let mut names: Vec<String> = Vec::new();
        let (mut own, mut inside) = (symbol.own_scope.clone(), symbol.inside);
        while names.len() < MAX_NESTING {
            if !own.is_empty() {
                names.push(own);
                break;
            }
            let Some(outer) = inside.and_then(|inside| self.symbol(first.saturating_add(inside))) else {
                break;
            };
            names.push(outer.name);
            (own, inside) = (outer.own_scope, outer.inside);
        }
        names.reverse();
        names.join(".")
    }

    /// Returns the number in the file of the innermost symbol around a line.
    #[must_use]
    pub fn innermost_symbol_at(&self, file: &FileRecord, line: u32) -> Option<u32> {
        let mut innermost = None;
        for own in 0..file.symbols {
            let symbol = self.symbol(file.first_symbol.saturating_add(own))?;
            if symbol.first_line > line {
                break;
            }
            if line < symbol.first_line.saturating_add(symbol.lines) {
                innermost = Some(own);
            }
        }
        innermost
    }

    /// Returns the purpose of a file.
    #[inline]
    pub(crate) fn purpose(&self, file: DocumentId) -> Option<Purpose> {
        self.file.section_bytes(SectionKind::Kinds).get(file as usize).copied().map(decode_purpose)
    }

    /// Returns a file's used names, imports and sections.
    #[must_use]
    pub fn details(&self, file: &FileRecord) -> FileDetails {
        self.read_record(file.details.at, |bytes| {
            FileDetails::read(bytes.get(..file.details.len as usize).unwrap_or_default())
        })
    }

    /// Returns the names that a file uses.
    #[must_use]
    pub fn used_names(&self, file: &FileRecord) -> Vec<String> {
        let dictionary = self.index.dictionary(DictionaryKind::Used);
        let name = |number| {
            String::from_utf8(dictionary?.key(number)?).ok().filter(|name| !crate::docs::is_mention_key(name))
        };
        self.details(file).used_names.into_iter().filter_map(name).collect()
    }
}
