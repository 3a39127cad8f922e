//! Reading a mapped segment.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::RelPath;
use memmap2::Mmap;

use super::Id;
use super::codec::{Cursor, counted, counts, dense, plain, uses};
use super::data::Unpacked;
use super::dictionary::{Dictionary, Slice};
use super::layout::{
    CHUNK, CHUNK_LENGTH, ChunkRecord, FILE, FILE_FIRST_SYMBOL, FILE_KIND, FILE_LENGTHS, FileRecord, HEADER,
    MAGIC, OF_WORDS, PARTS, Part, ROW, SECTIONS, SUM, SymbolRecord, Words, flags_of, language_of, version,
};
use super::map::map;
use super::write::sum;
use crate::IndexError;
use crate::facts::{Import, Section};
use crate::query::{Posting, Purpose, is_component};

/// A mapped segment.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    map: Arc<Mmap>,
    rows: Vec<Row>,
    words: Vec<Dictionary>,
    unpacked: Unpacked,
}

#[derive(Debug, Clone)]
struct Row {
    start: usize,
    end: usize,
    sum: [u8; SUM],
}

/// A place where a name is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceAt {
    /// The file.
    pub file: Id,
    /// The line, counted from 1.
    pub line: u32,
}

impl Segment {
    /// Maps a segment's file. Only its header is looked at.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for a file that isn't one, or another version's; [`IndexError::Io`].
    pub fn open(path: &Path) -> Result<Self, IndexError> {
        let file = File::open(path).map_err(IndexError::io("opening", path))?;
        let map = Arc::new(map(&file).map_err(IndexError::io("mapping", path))?);
        let header = map.get(..HEADER).ok_or_else(|| IndexError::damaged(path, "it is too short"))?;
        let (told, own) = header.split_at_checked(HEADER - SUM).unwrap_or_default();
        let mut cursor = Cursor::new(told);
        if cursor.array() != MAGIC {
            return Err(IndexError::damaged(path, "it isn't one"));
        }
        if cursor.u64() != version() {
            return Err(IndexError::damaged(path, "another version wrote it"));
        }
        if sum(told) != own {
            return Err(IndexError::damaged(path, "its header"));
        }
        let mut rows = Vec::with_capacity(SECTIONS);
        debug_assert_eq!(told.len(), MAGIC.len() + 8 + SECTIONS * ROW);
        for _ in 0..SECTIONS {
            let (at, len, sum) = (cursor.u64(), cursor.u64(), cursor.array());
            let end = usize::try_from(at.saturating_add(len)).unwrap_or(usize::MAX);
            if end > map.len() {
                return Err(IndexError::damaged(path, "it is shorter than it was"));
            }
            rows.push(Row { start: at as usize, end, sum });
        }
        let slice = |at: usize| {
            let range = rows.get(at).map_or(0..0, |row| row.start..row.end);
            Slice::new(&map, range)
        };
        let mut words = Vec::with_capacity(Words::ALL.len());
        for which in Words::ALL {
            let first = PARTS + which as usize * OF_WORDS;
            let dictionary = Dictionary::new(slice(first), slice(first + 1), slice(first + 2));
            words.push(dictionary.ok_or_else(|| IndexError::damaged(path, "a dictionary"))?);
        }
        Ok(Self { path: path.to_owned(), map, rows, words, unpacked: Unpacked::default() })
    }

    /// Reads all of it and compares the checksums.
    ///
    /// # Errors
    /// [`IndexError::Damaged`].
    pub fn verify(&self) -> Result<(), IndexError> {
        for row in &self.rows {
            let bytes = self.map.get(row.start..row.end).unwrap_or_default();
            if sum(bytes) != row.sum {
                return Err(IndexError::damaged(&self.path, "a checksum differs"));
            }
        }
        Ok(())
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of its file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Visits the sections with their bytes.
    pub(crate) fn sizes(&self, mut visit: impl FnMut(String, u64)) {
        const PART: [&str; PARTS] = ["files", "chunks", "symbols", "paths", "data", "blocks"];
        const OF: [&str; OF_WORDS] = ["keys", "offsets", "lists"];
        let words = Words::ALL.iter().flat_map(|words| OF.iter().map(move |of| format!("{words:?} {of}")));
        for (name, row) in PART.iter().map(|name| (*name).to_owned()).chain(words).zip(&self.rows) {
            visit(name, (row.end - row.start) as u64);
        }
    }

    pub(crate) fn part(&self, part: Part) -> &[u8] {
        let row = self.rows.get(part as usize);
        row.and_then(|row| self.map.get(row.start..row.end)).unwrap_or_default()
    }

    pub(crate) fn words(&self, which: Words) -> Option<&Dictionary> {
        self.words.get(which as usize)
    }

    /// Shows a record, and what follows it in its block.
    fn data<T>(&self, at: u32, show: impl FnOnce(&[u8]) -> T) -> T {
        self.unpacked.read(self.part(Part::Data), self.part(Part::Blocks), at, show)
    }

    /// How many files it has, dead ones too.
    #[must_use]
    pub fn files(&self) -> u32 {
        (self.part(Part::Files).len() / FILE) as u32
    }

    /// How many chunks it has.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        (self.part(Part::Chunks).len() / CHUNK) as u32
    }

    /// How many symbols it has.
    #[must_use]
    pub fn symbols(&self) -> u32 {
        (self.part(Part::Symbols).len() / 4) as u32
    }

    /// A file's record.
    #[must_use]
    pub fn file(&self, file: Id) -> Option<FileRecord> {
        let at = file as usize * FILE;
        self.part(Part::Files).get(at..at + FILE).map(FileRecord::read)
    }

    /// A file's path, as bytes.
    #[must_use]
    pub fn path_of(&self, file: &FileRecord) -> &[u8] {
        let at = file.path.at as usize;
        self.part(Part::Paths).get(at..at.saturating_add(file.path.len as usize)).unwrap_or_default()
    }

    /// The file at a path.
    #[must_use]
    pub fn find(&self, path: &RelPath) -> Option<Id> {
        let list = self.words(Words::Files)?.get(path.as_bytes())?;
        let mut found = None;
        plain(list, |file| found = Some(file));
        found
    }

    /// A number of 32 bits.
    #[inline]
    fn number(&self, part: Part, at: usize) -> u32 {
        let bytes = self.part(part).get(at..).and_then(<[u8]>::first_chunk::<4>);
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// The file of a chunk, without the rest of its record.
    #[inline]
    pub(crate) fn file_of_chunk(&self, chunk: Id) -> Id {
        self.number(Part::Chunks, chunk as usize * CHUNK)
    }

    /// How many terms a chunk has.
    #[inline]
    pub(crate) fn chunk_length(&self, chunk: Id) -> u32 {
        self.number(Part::Chunks, chunk as usize * CHUNK + CHUNK_LENGTH)
    }

    /// How many terms a file's path has.
    #[inline]
    pub(crate) fn path_length(&self, file: Id) -> u32 {
        self.number(Part::Files, file as usize * FILE + FILE_LENGTHS)
    }

    /// How many terms a file's symbols' names have.
    #[inline]
    pub(crate) fn symbol_length(&self, file: Id) -> u32 {
        self.number(Part::Files, file as usize * FILE + FILE_LENGTHS + 4)
    }

    /// Visits the files whose path's last part, in ASCII lower case, is `name`.
    pub(crate) fn called(&self, name: &[u8], visit: impl FnMut(Id)) {
        if let Some(list) = self.words(Words::Names).and_then(|words| words.get(name)) {
            plain(list, visit);
        }
    }

    /// How many documents have a term, dead ones too.
    pub(crate) fn with_term(&self, which: Words, term: &str) -> u32 {
        self.words(which).and_then(|words| words.get(term.as_bytes())).map_or(0, counted)
    }

    pub(crate) fn chunk(&self, chunk: Id) -> Option<ChunkRecord> {
        let at = chunk as usize * CHUNK;
        self.part(Part::Chunks).get(at..at + CHUNK).map(ChunkRecord::read)
    }

    /// A symbol.
    #[must_use]
    pub fn symbol(&self, symbol: Id) -> Option<SymbolRecord> {
        let at = symbol as usize * 4;
        let at = self.part(Part::Symbols).get(at..)?.first_chunk::<4>()?;
        Some(self.data(u32::from_le_bytes(*at), SymbolRecord::read))
    }

    /// The file that a symbol is in.
    #[must_use]
    pub fn file_of_symbol(&self, symbol: Id) -> Id {
        let files = self.part(Part::Files);
        let first = |file: u32| self.number(Part::Files, file as usize * FILE + FILE_FIRST_SYMBOL);
        let (mut low, mut high) = (0, (files.len() / FILE) as u32);
        // The last file whose first symbol isn't after it: files without symbols have the number of the next one's.
        while low < high {
            let middle = low.midpoint(high);
            if first(middle) <= symbol { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    /// Names of what a file's symbol lies in or belongs to, from the outside in, with dots between.
    #[must_use]
    pub fn scope(&self, file: Id, symbol: &SymbolRecord) -> String {
        /// Deeper ones aren't named by anybody.
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

    /// Which of a file's symbols a line stands in, the innermost one.
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

    /// Visits the chunks (or, for [`Words::Paths`] and [`Words::Symbols`], the files) that have a term.
    pub(crate) fn counted(&self, which: Words, term: &str, visit: impl FnMut(Id, u32)) {
        if let Some(list) = self.words(which).and_then(|words| words.get(term.as_bytes())) {
            counts(list, visit);
        }
    }

    /// As [`Segment::counted`], with the document's file and its length.
    pub(crate) fn each(&self, which: Words, term: &str, mut visit: impl FnMut(Posting)) {
        let Some(list) = self.words(which).and_then(|words| words.get(term.as_bytes())) else { return };
        let number = |bytes: &[u8], at: usize| {
            let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        if which == Words::Chunks {
            let chunks = self.part(Part::Chunks).as_chunks::<CHUNK>().0;
            counts(list, |document, times| {
                let chunk = chunks.get(document as usize).map_or(&[][..], <[u8; CHUNK]>::as_slice);
                let (file, length) = (number(chunk, 0), number(chunk, CHUNK_LENGTH));
                visit(Posting { document, file, times, length });
            });
            return;
        }
        let at = if which == Words::Paths { FILE_LENGTHS } else { FILE_LENGTHS + 4 };
        let files = self.part(Part::Files).as_chunks::<FILE>().0;
        counts(list, |document, times| {
            let file = files.get(document as usize).map_or(&[][..], <[u8; FILE]>::as_slice);
            visit(Posting { document, file: document, times, length: number(file, at) });
        });
    }

    /// What a file is for, without the rest of its record.
    pub(crate) fn purpose(&self, file: Id) -> Option<Purpose> {
        let at = file as usize * FILE;
        let record = self.part(Part::Files).get(at..at + FILE)?;
        let [_, flags, language, _] = record.get(FILE_KIND..)?.first_chunk::<4>()?;
        let is_code =
            language_of(*language).is_some() || is_component(self.path_of(&FileRecord::read(record)));
        Some(Purpose { flags: flags_of(*flags), is_code })
    }

    /// Visits the files that have a trigram of lower-case bytes.
    pub(crate) fn with_trigram(&self, trigram: [u8; 3], visit: impl FnMut(Id)) {
        if let Some(list) = self.words(Words::Trigrams).and_then(|words| words.get(&trigram)) {
            dense(list, visit);
        }
    }

    /// Visits the symbols with a name, whatever its case.
    pub fn defined(&self, name: &str, visit: impl FnMut(Id)) {
        let name = name.to_lowercase();
        if let Some(list) = self.words(Words::Defined).and_then(|words| words.get(name.as_bytes())) {
            plain(list, visit);
        }
    }

    /// Visits the places that use a name.
    pub fn used(&self, name: &str, mut visit: impl FnMut(ReferenceAt)) {
        if let Some(list) = self.words(Words::Used).and_then(|words| words.get(name.as_bytes())) {
            uses(list, |file, line| visit(ReferenceAt { file, line }));
        }
    }

    /// A file's names by number, and the bytes of its imports and sections.
    pub(crate) fn details(&self, file: &FileRecord) -> (Vec<u32>, Vec<u8>) {
        self.data(file.details.at, |bytes| {
            let own = bytes.get(..file.details.len as usize).unwrap_or_default();
            let mut cursor = Cursor::new(own);
            let mut names = Vec::new();
            plain(cursor.bytes(), |name| names.push(name));
            (names, cursor.rest().to_vec())
        })
    }

    /// The names that a file uses.
    #[must_use]
    pub fn names(&self, file: &FileRecord) -> Vec<String> {
        let words = self.words(Words::Used);
        let key =
            |number| String::from_utf8(words?.key(number)?).ok().filter(|name| !crate::docs::is_mark(name));
        self.details(file).0.into_iter().filter_map(key).collect()
    }

    /// What a file brings in.
    #[must_use]
    pub fn imports(&self, file: &FileRecord) -> Vec<Import> {
        imports(&mut Cursor::new(&self.details(file).1))
    }

    /// A document's sections.
    #[must_use]
    pub fn sections(&self, file: &FileRecord) -> Vec<Section> {
        let details = self.details(file).1;
        let mut cursor = Cursor::new(&details);
        imports(&mut cursor);
        let mut sections = Vec::new();
        for _ in 0..cursor.number() {
            if cursor.is_empty() {
                break;
            }
            sections.push(Section {
                heading: cursor.text().to_owned(),
                level: u8::try_from(cursor.number()).unwrap_or(u8::MAX),
                first_line: cursor.small(),
                lines: cursor.small(),
                mentions: texts(&mut cursor),
            });
        }
        sections
    }
}

fn imports(cursor: &mut Cursor<'_>) -> Vec<Import> {
    let mut imports = Vec::new();
    for _ in 0..cursor.number() {
        if cursor.is_empty() {
            break;
        }
        let target = cursor.text().to_owned();
        let (line, up) = (cursor.small(), cursor.number());
        let (up, relative) = (u32::try_from(up >> 1).unwrap_or(u32::MAX), up & 1 != 0);
        imports.push(Import { target, line, up, relative, names: texts(cursor) });
    }
    imports
}

fn texts(cursor: &mut Cursor<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..cursor.number() {
        if cursor.is_empty() {
            break;
        }
        texts.push(cursor.text().to_owned());
    }
    texts
}
