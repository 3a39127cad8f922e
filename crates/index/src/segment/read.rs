//! Reading a mapped segment.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::RelPath;
use memmap2::Mmap;

use super::Id;
use super::codec::{Cursor, decode_counts, decode_dense, decode_plain, decode_uses};
use super::column::{Column, Lengths};
use super::data::BlockCache;
use super::dictionary::{Dictionary, Slice};
use super::layout::{
    CHECKSUM_BYTES, CHUNK_RECORD_BYTES, DictionaryKind, FILE_RECORD_BYTES, FileRecord, HEADER_BYTES, MAGIC,
    PART_COUNT, Part, SECTION_COUNT, SECTION_ROW_BYTES, SECTIONS_PER_DICTIONARY, SymbolRecord,
    format_version, purpose_of,
};
use super::map::{map_file, unmap_pages};
use super::write::checksum;
use crate::IndexError;
use crate::analysis::{Import, Section};
use crate::query::{Posting, Purpose};

/// A mapped segment.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    map: Arc<Mmap>,
    rows: Vec<SectionRow>,
    words: Vec<Dictionary>,
    unpacked: BlockCache,
}

#[derive(Debug, Clone)]
struct SectionRow {
    start: usize,
    end: usize,
    sum: [u8; CHECKSUM_BYTES],
}

/// A reference to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceAt {
    /// The file.
    pub file: Id,
    /// The line, 1-based.
    pub line: u32,
}

impl Segment {
    /// Maps a segment's file. Reads only its header.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for another kind of file, or another version; [`IndexError::Io`].
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        let file = File::open(path).map_err(IndexError::io("opening", path))?;
        let map = Arc::new(map_file(&file).map_err(IndexError::io("mapping", path))?);
        let header = map.get(..HEADER_BYTES).ok_or_else(|| IndexError::damaged(path, "it is too short"))?;
        let (told, own) = header.split_at_checked(HEADER_BYTES - CHECKSUM_BYTES).unwrap_or_default();
        let mut cursor = Cursor::new(told);
        if cursor.array() != MAGIC {
            return Err(IndexError::damaged(path, "it isn't one"));
        }
        if cursor.u64() != format_version() {
            return Err(IndexError::damaged(path, "another version wrote it"));
        }
        if checksum(told) != own {
            return Err(IndexError::damaged(path, "its header"));
        }
        let mut rows = Vec::with_capacity(SECTION_COUNT);
        debug_assert_eq!(told.len(), MAGIC.len() + 8 + SECTION_COUNT * SECTION_ROW_BYTES);
        for _ in 0..SECTION_COUNT {
            let (at, len, sum) = (cursor.u64(), cursor.u64(), cursor.array());
            let end = usize::try_from(at.saturating_add(len)).unwrap_or(usize::MAX);
            if end > map.len() {
                return Err(IndexError::damaged(path, "it is shorter than it was"));
            }
            rows.push(SectionRow { start: at as usize, end, sum });
        }
        let slice = |at: usize| {
            let range = rows.get(at).map_or(0..0, |row| row.start..row.end);
            Slice::new(&map, range)
        };
        let mut words = Vec::with_capacity(DictionaryKind::ALL.len());
        for which in DictionaryKind::ALL {
            let first = PART_COUNT + which as usize * SECTIONS_PER_DICTIONARY;
            let dictionary = Dictionary::new(slice(first), slice(first + 1), slice(first + 2));
            words.push(dictionary.ok_or_else(|| IndexError::damaged(path, "a dictionary"))?);
        }
        Ok(Self { path: path.to_owned(), map, rows, words, unpacked: BlockCache::default() })
    }

    /// Reads the whole file and compares the checksums.
    ///
    /// # Errors
    /// [`IndexError::Damaged`].
    pub fn verify(&self) -> Result<(), IndexError> {
        for row in &self.rows {
            let bytes = self.map.get(row.start..row.end).unwrap_or_default();
            if checksum(bytes) != row.sum {
                return Err(IndexError::damaged(&self.path, "a checksum differs"));
            }
        }
        Ok(())
    }

    /// Releases the memory of mapped pages until they are read again.
    pub(crate) fn release_memory(&self) {
        unmap_pages(&self.map);
    }

    /// Returns the path of its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of its file in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Calls `visit` with the sections' names and sizes.
    pub(crate) fn sizes(&self, mut visit: impl FnMut(String, u64)) {
        const PART: [&str; PART_COUNT] = [
            "files",
            "kinds",
            "file chunks",
            "file symbols",
            "path lengths",
            "symbol lengths",
            "chunks",
            "chunk lengths",
            "symbols",
            "letters",
            "paths",
            "data",
            "blocks",
        ];
        const OF: [&str; SECTIONS_PER_DICTIONARY] = ["keys", "offsets", "lists"];
        let words =
            DictionaryKind::ALL.iter().flat_map(|words| OF.iter().map(move |of| format!("{words:?} {of}")));
        for (name, row) in PART.iter().map(|name| (*name).to_owned()).chain(words).zip(&self.rows) {
            visit(name, (row.end - row.start) as u64);
        }
    }

    pub(crate) fn part(&self, part: Part) -> &[u8] {
        let row = self.rows.get(part as usize);
        row.and_then(|row| self.map.get(row.start..row.end)).unwrap_or_default()
    }

    pub(crate) fn dictionary(&self, which: DictionaryKind) -> Option<&Dictionary> {
        self.words.get(which as usize)
    }

    /// Calls `show` with a record, and what follows it in its block.
    fn read_data<T>(&self, at: u32, show: impl FnOnce(&[u8]) -> T) -> T {
        self.unpacked.read(self.part(Part::Data), self.part(Part::Blocks), at, show)
    }

    /// Returns the number of files, dead ones included.
    #[must_use]
    pub fn files(&self) -> u32 {
        (self.part(Part::Files).len() / FILE_RECORD_BYTES) as u32
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        (self.part(Part::Chunks).len() / CHUNK_RECORD_BYTES) as u32
    }

    /// Returns the number of symbols.
    #[must_use]
    pub fn symbols(&self) -> u32 {
        (self.part(Part::Symbols).len() / 4) as u32
    }

    fn column(&self, part: Part) -> Column<'_> {
        Column::new(self.part(part))
    }

    /// Returns a file's chunks.
    pub(crate) fn chunks_of(&self, file: Id) -> Range<Id> {
        self.column(Part::FileChunks).range(file, self.chunks())
    }

    /// Returns a file's symbols.
    pub(crate) fn symbols_of(&self, file: Id) -> Range<Id> {
        self.column(Part::FileSymbols).range(file, self.symbols())
    }

    /// Returns the lengths in terms of the documents of a term's list: chunks, or, for
    /// [`DictionaryKind::Paths`] and [`DictionaryKind::Symbols`], files.
    pub(crate) fn lengths(&self, which: DictionaryKind) -> Lengths<'_> {
        Lengths::new(self.part(match which {
            DictionaryKind::Paths => Part::PathLengths,
            DictionaryKind::Symbols => Part::SymbolLengths,
            _ => Part::ChunkLengths,
        }))
    }

    /// Returns a file's record.
    #[must_use]
    pub fn file(&self, file: Id) -> Option<FileRecord> {
        let at = file as usize * FILE_RECORD_BYTES;
        let record = self.part(Part::Files).get(at..at + FILE_RECORD_BYTES)?;
        Some(FileRecord::read(record, self.chunks_of(file), self.symbols_of(file)))
    }

    /// Returns the bytes of a file's path.
    #[must_use]
    pub fn path_of(&self, file: &FileRecord) -> &[u8] {
        let at = file.path.at as usize;
        self.part(Part::Paths).get(at..at.saturating_add(file.path.len as usize)).unwrap_or_default()
    }

    /// Returns the file at a path.
    #[must_use]
    pub fn find(&self, path: &RelPath) -> Option<Id> {
        let list = self.dictionary(DictionaryKind::Files)?.get(path.as_bytes())?;
        let mut found = None;
        decode_plain(list, |file| found = Some(file));
        found
    }

    /// Returns the file of a chunk.
    pub(crate) fn file_of_chunk(&self, chunk: Id) -> Id {
        self.column(Part::FileChunks).owner(chunk)
    }

    /// Calls `visit` with the files whose path's last part, in ASCII lower case, is `name`.
    pub(crate) fn called(&self, name: &[u8], visit: impl FnMut(Id)) {
        if let Some(list) = self.dictionary(DictionaryKind::Names).and_then(|words| words.get(name)) {
            decode_plain(list, visit);
        }
    }

    /// Returns a chunk's lines, 1-based.
    pub(crate) fn chunk(&self, chunk: Id) -> Option<Range<u32>> {
        let at = chunk as usize * CHUNK_RECORD_BYTES;
        let mut record = Cursor::new(self.part(Part::Chunks).get(at..at + CHUNK_RECORD_BYTES)?);
        let first_line = record.u32();
        Some(first_line..first_line.saturating_add(record.u32()))
    }

    /// Returns a symbol.
    #[must_use]
    pub fn symbol(&self, symbol: Id) -> Option<SymbolRecord> {
        let at = symbol as usize * 4;
        let at = self.part(Part::Symbols).get(at..)?.first_chunk::<4>()?;
        Some(self.read_data(u32::from_le_bytes(*at), SymbolRecord::read))
    }

    /// Returns the file of a symbol.
    #[must_use]
    pub fn file_of_symbol(&self, symbol: Id) -> Id {
        self.column(Part::FileSymbols).owner(symbol)
    }

    /// Returns the names of a symbol's enclosing symbols and owners, from the outside in, joined by
    /// dots.
    #[must_use]
    pub fn scope(&self, file: Id, symbol: &SymbolRecord) -> String {
        /// Nobody refers to deeper symbols by name.
        const DEEPEST: usize = 64;
        let first = self.file(file).map_or(0, |file| file.first_symbol);
        let mut names: Vec<String> = Vec::new();
        let (mut own, mut inside) = (symbol.own_scope.clone(), symbol.inside);
        while names.len() < DEEPEST {
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
    pub fn inside(&self, file: &FileRecord, line: u32) -> Option<u32> {
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

    /// Calls `visit` with the chunks (or, for [`DictionaryKind::Paths`] and
    /// [`DictionaryKind::Symbols`], the files) that have a term.
    pub(crate) fn counted(&self, which: DictionaryKind, term: &str, visit: impl FnMut(Id, u32)) {
        if let Some(list) = self.dictionary(which).and_then(|words| words.get(term.as_bytes())) {
            decode_counts(list, visit);
        }
    }

    /// Calls `visit` with the postings of a list of [`Segment::counted`], with `first` added to
    /// their numbers: many at once.
    pub(crate) fn each(
        &self,
        which: DictionaryKind,
        list: &[u8],
        first: Id,
        visit: &mut dyn FnMut(&[Posting]),
    ) {
        /// As many as fit into the nearest cache together with the scoring.
        const BATCH: usize = 256;
        let lengths = self.lengths(which);
        let mut batch = [Posting::default(); BATCH];
        let mut filled = 0;
        // Lengths are scattered over the column: with consecutive look-ups, the processor waits for
        // many at once.
        let mut flush = |batch: &mut [Posting]| {
            for posting in &mut *batch {
                posting.length = lengths.get(posting.document);
                posting.document = posting.document.saturating_add(first);
            }
            visit(batch);
        };
        decode_counts(list, |document, times| {
            if let Some(place) = batch.get_mut(filled) {
                *place = Posting { document, times, length: 0 };
                filled += 1;
            }
            if filled == BATCH {
                flush(&mut batch);
                filled = 0;
            }
        });
        flush(batch.get_mut(..filled).unwrap_or_default());
    }

    /// Returns the purpose of a file.
    #[inline]
    pub(crate) fn purpose(&self, file: Id) -> Option<Purpose> {
        self.part(Part::Kinds).get(file as usize).copied().map(purpose_of)
    }

    /// Calls `visit` with the names of symbols, in lower case and ascending order, whose letters
    /// are wanted, until it returns false.
    pub(crate) fn names_with(&self, wanted: impl Fn(u32) -> bool, visit: impl FnMut(&[u8]) -> bool) {
        let Some(words) = self.dictionary(DictionaryKind::Defined) else { return };
        let letters = self.column(Part::Letters).iter();
        words.visit_numbers(
            (0..).zip(letters).filter(|(_, own)| wanted(*own)).map(|(number, _)| number),
            visit,
        );
    }

    /// Calls `visit` with the files that have a trigram of lower-case bytes.
    pub(crate) fn with_trigram(&self, trigram: [u8; 3], visit: impl FnMut(Id)) {
        if let Some(list) = self.dictionary(DictionaryKind::Trigrams).and_then(|words| words.get(&trigram)) {
            decode_dense(list, visit);
        }
    }

    /// Calls `visit` with the symbols of a name, whatever its case.
    pub fn defined(&self, name: &str, visit: impl FnMut(Id)) {
        let name = name.to_lowercase();
        if let Some(list) =
            self.dictionary(DictionaryKind::Defined).and_then(|words| words.get(name.as_bytes()))
        {
            decode_plain(list, visit);
        }
    }

    /// Calls `visit` with the references to a name.
    pub fn used(&self, name: &str, mut visit: impl FnMut(ReferenceAt)) {
        if let Some(list) = self.dictionary(DictionaryKind::Used).and_then(|words| words.get(name.as_bytes()))
        {
            decode_uses(list, |file, line| visit(ReferenceAt { file, line }));
        }
    }

    /// Returns a file's names by number, and the bytes of its imports and sections.
    pub(crate) fn details(&self, file: &FileRecord) -> (Vec<u32>, Vec<u8>) {
        self.read_data(file.details.at, |bytes| {
            let own = bytes.get(..file.details.len as usize).unwrap_or_default();
            let mut cursor = Cursor::new(own);
            let mut names = Vec::new();
            decode_plain(cursor.bytes(), |name| names.push(name));
            (names, cursor.rest().to_vec())
        })
    }

    /// Returns the names that a file uses.
    #[must_use]
    pub fn names(&self, file: &FileRecord) -> Vec<String> {
        let words = self.dictionary(DictionaryKind::Used);
        let key = |number| {
            String::from_utf8(words?.key(number)?).ok().filter(|name| !crate::docs::is_mention_key(name))
        };
        self.details(file).0.into_iter().filter_map(key).collect()
    }

    /// Returns a file's imports.
    #[must_use]
    pub fn imports(&self, file: &FileRecord) -> Vec<Import> {
        read_imports(&mut Cursor::new(&self.details(file).1))
    }

    /// Returns a document's sections.
    #[must_use]
    pub fn sections(&self, file: &FileRecord) -> Vec<Section> {
        let details = self.details(file).1;
        let mut cursor = Cursor::new(&details);
        read_imports(&mut cursor);
        let mut sections = Vec::new();
        for _ in 0..cursor.number() {
            if cursor.is_empty() {
                break;
            }
            sections.push(Section {
                heading: cursor.text().to_owned(),
                level: u8::try_from(cursor.number()).unwrap_or(u8::MAX),
                first_line: cursor.read_small_number(),
                lines: cursor.read_small_number(),
                mentions: read_texts(&mut cursor),
            });
        }
        sections
    }
}

fn read_imports(cursor: &mut Cursor<'_>) -> Vec<Import> {
    let mut imports = Vec::new();
    for _ in 0..cursor.number() {
        if cursor.is_empty() {
            break;
        }
        let target = cursor.text().to_owned();
        let (line, up) = (cursor.read_small_number(), cursor.number());
        let (up, relative) = (u32::try_from(up >> 1).unwrap_or(u32::MAX), up & 1 != 0);
        imports.push(Import { target, line, up, relative, names: read_texts(cursor) });
    }
    imports
}

fn read_texts(cursor: &mut Cursor<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..cursor.number() {
        if cursor.is_empty() {
            break;
        }
        texts.push(cursor.text().to_owned());
    }
    texts
}
