//! The state of an index at one moment: segments, and the living files in each.
//!
//! Files, chunks and symbols have numbers that count through all segments. They are valid for this
//! snapshot only.

mod corpus;

use std::sync::Arc;

use journeyman_protocol::RelPath;

use crate::analysis::{FileStamp, UseKind};
use crate::bit_set::BitSet;
use crate::query::full_name;
use crate::segment::{DictionaryKind, DocumentId, FileRecord, Segment, SymbolRecord};

/// A segment and its living files.
#[derive(Debug, Clone)]
pub(crate) struct LiveSegment {
    pub(crate) segment: Arc<Segment>,
    /// Files that are deleted, or have a newer version elsewhere.
    pub(crate) dead: BitSet,
    /// The chunks of dead files.
    pub(crate) dead_chunks: BitSet,
    /// Newer stamps of files whose content is the same, by file, sorted.
    pub(crate) restamped: Vec<(DocumentId, FileStamp)>,
    pub(crate) totals: Totals,
    first_file: u32,
    first_chunk: u32,
    first_symbol: u32,
}

/// Sums over living files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// Number of files.
    pub files: u64,
    /// Bytes of files that were read.
    pub bytes: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of terms in chunks, with repetitions.
    pub chunk_terms: u64,
    /// Number of terms in paths, with repetitions.
    pub path_terms: u64,
    /// Number of terms in symbols' names, with repetitions.
    pub symbol_terms: u64,
    /// Number of symbols.
    pub symbols: u64,
}

impl Totals {
    fn combine(&mut self, other: Self, with: fn(u64, u64) -> u64) {
        self.files = with(self.files, other.files);
        self.bytes = with(self.bytes, other.bytes);
        self.chunks = with(self.chunks, other.chunks);
        self.chunk_terms = with(self.chunk_terms, other.chunk_terms);
        self.path_terms = with(self.path_terms, other.path_terms);
        self.symbol_terms = with(self.symbol_terms, other.symbol_terms);
        self.symbols = with(self.symbols, other.symbols);
    }

    /// Returns the totals of one file, which has this many bytes by its newest stamp.
    fn of_file(segment: &Segment, number: DocumentId, file: &FileRecord, size: u64) -> Self {
        let length =
            |which, document| u64::from(segment.inverted_index().document_lengths(which).get(document));
        Self {
            files: 1,
            bytes: size,
            chunks: u64::from(file.chunks),
            chunk_terms: segment.chunks_of(number).map(|chunk| length(DictionaryKind::Chunks, chunk)).sum(),
            path_terms: length(DictionaryKind::Paths, number),
            symbol_terms: length(DictionaryKind::Symbols, number),
            symbols: u64::from(file.symbols),
        }
    }
}

impl LiveSegment {
    /// Creates a segment without dead files.
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        let mut totals = Totals::default();
        for file in 0..segment.file_count() {
            if let Some(record) = segment.file(file) {
                totals
                    .combine(Totals::of_file(&segment, file, &record, record.stamp.size), u64::wrapping_add);
            }
        }
        Self::from_manifest_row(segment, BitSet::default(), Vec::new(), totals)
    }

    /// Creates a live segment from a manifest's row.
    pub(crate) fn from_manifest_row(
        segment: Arc<Segment>,
        dead: BitSet,
        mut restamped: Vec<(DocumentId, FileStamp)>,
        totals: Totals,
    ) -> Self {
        let mut dead_chunks = BitSet::default();
        for file in dead.iter() {
            segment.chunks_of(file).for_each(|chunk| dead_chunks.insert(chunk));
        }
        restamped.sort_unstable_by_key(|(file, _)| *file);
        Self { segment, dead, dead_chunks, restamped, totals, first_file: 0, first_chunk: 0, first_symbol: 0 }
    }

    /// Marks a file as dead.
    pub(crate) fn mark_dead(&mut self, file: DocumentId) {
        let Some(record) = self.segment.file(file).filter(|_| !self.dead.contains(file)) else { return };
        self.dead.insert(file);
        self.segment.chunks_of(file).for_each(|chunk| self.dead_chunks.insert(chunk));
        let size = self.stamp(file, &record).size;
        self.totals.combine(Totals::of_file(&self.segment, file, &record, size), u64::wrapping_sub);
        self.restamped.retain(|(one, _)| *one != file);
    }

    /// Records that a file's content is the same under a new stamp.
    pub(crate) fn update_stamp(&mut self, file: DocumentId, stamp: FileStamp) {
        // A file that was listed while it was being written may have another size than its read
        // content.
        if let Some(record) = self.segment.file(file) {
            let before = self.stamp(file, &record).size;
            self.totals.bytes = self.totals.bytes.wrapping_sub(before).wrapping_add(stamp.size);
        }
        match self.restamped.binary_search_by_key(&file, |(file, _)| *file) {
            Ok(at) => {
                if let Some(known) = self.restamped.get_mut(at) {
                    known.1 = stamp;
                }
            }
            Err(at) => self.restamped.insert(at, (file, stamp)),
        }
    }

    /// Returns a file's newest stamp.
    pub(crate) fn stamp(&self, file: DocumentId, record: &FileRecord) -> FileStamp {
        let found = self.restamped.binary_search_by_key(&file, |(file, _)| *file);
        found.ok().and_then(|at| self.restamped.get(at)).map_or(record.stamp, |(_, stamp)| *stamp)
    }

    /// Returns a file's number in the snapshot.
    pub(crate) fn snapshot_number(&self, file: DocumentId) -> DocumentId {
        self.first_file.saturating_add(file)
    }

    pub(crate) fn live_files(&self) -> impl Iterator<Item = (DocumentId, FileRecord)> {
        let all = (0..self.segment.file_count()).filter(|file| !self.dead.contains(*file));
        all.filter_map(|file| Some((file, self.segment.file(file)?)))
    }
}

/// The state of an index at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    living: Vec<LiveSegment>,
    totals: Totals,
    /// True if some files haven't been indexed yet.
    pub(crate) partial: bool,
}

/// A living file.
#[derive(Debug, Clone, Copy)]
pub struct FileView<'a> {
    living: &'a LiveSegment,
    /// Its number in the segment.
    own: DocumentId,
    /// Its record.
    pub record: FileRecord,
}

impl<'a> FileView<'a> {
    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> Option<RelPath> {
        RelPath::parse(self.path_bytes()).ok()
    }

    /// Returns the bytes of its path.
    #[must_use]
    pub fn path_bytes(&self) -> &'a [u8] {
        self.living.segment.path_of(&self.record)
    }

    /// Returns its segment.
    #[must_use]
    pub fn segment(&self) -> &'a Segment {
        &self.living.segment
    }

    /// Returns the names of the enclosing symbols of one of its symbols, from the outside in,
    /// joined by dots.
    #[must_use]
    pub fn scope(&self, symbol: &SymbolRecord) -> String {
        self.living.segment.scope(self.own, symbol)
    }

    /// Returns the number of its first chunk in the snapshot.
    #[must_use]
    pub fn first_chunk(&self) -> DocumentId {
        self.living.first_chunk.saturating_add(self.record.first_chunk)
    }

    /// Returns the number of its first symbol in the snapshot.
    #[must_use]
    pub fn first_symbol(&self) -> DocumentId {
        self.living.first_symbol.saturating_add(self.record.first_symbol)
    }
}

/// The position of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkView {
    /// Number of its file in the snapshot.
    pub file: DocumentId,
    /// The first line, 1-based.
    pub first_line: u32,
    /// Number of lines.
    pub lines: u32,
    /// Number of terms, with repetitions.
    pub length: u32,
}

impl Snapshot {
    pub(crate) fn new(mut living: Vec<LiveSegment>, partial: bool) -> Self {
        let (mut file, mut chunk, mut symbol) = (0_u32, 0_u32, 0_u32);
        let mut totals = Totals::default();
        for one in &mut living {
            (one.first_file, one.first_chunk, one.first_symbol) = (file, chunk, symbol);
            file = file.saturating_add(one.segment.file_count());
            chunk = chunk.saturating_add(one.segment.chunk_count());
            symbol = symbol.saturating_add(one.segment.symbol_count());
            totals.combine(one.totals, u64::wrapping_add);
        }
        Self { living, totals, partial }
    }

    /// Returns the bytes of the index's parts, by name, for diagnostics.
    #[must_use]
    pub fn section_sizes(&self) -> std::collections::BTreeMap<String, u64> {
        let mut sizes = std::collections::BTreeMap::new();
        for one in &self.living {
            one.segment
                .mapped_file()
                .visit_section_sizes(|name, bytes| *sizes.entry(name).or_default() += bytes);
        }
        sizes
    }

    pub(crate) fn live_segments(&self) -> &[LiveSegment] {
        &self.living
    }

    /// Returns the sums over living files.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns true if some files haven't been indexed yet.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Returns one more than the greatest number of a file.
    #[must_use]
    pub fn file_number_bound(&self) -> u32 {
        self.living.last().map_or(0, |last| last.first_file.saturating_add(last.segment.file_count()))
    }

    /// Returns one more than the greatest number of a chunk.
    #[must_use]
    pub fn chunk_number_bound(&self) -> u32 {
        self.living.last().map_or(0, |last| last.first_chunk.saturating_add(last.segment.chunk_count()))
    }

    fn live_segment_at(
        &self,
        number: u32,
        first: impl Fn(&LiveSegment) -> u32,
    ) -> Option<(&LiveSegment, u32)> {
        let at = self.living.partition_point(|one| first(one) <= number).checked_sub(1)?;
        let one = self.living.get(at)?;
        Some((one, number - first(one)))
    }

    /// Returns a file, dead or alive.
    #[must_use]
    pub fn file(&self, number: DocumentId) -> Option<FileView<'_>> {
        let (living, own) = self.live_segment_at(number, |one| one.first_file)?;
        Some(FileView { living, own, record: living.segment.file(own)? })
    }

    /// Returns a file's path, dead or alive.
    #[must_use]
    pub fn path_of(&self, file: DocumentId) -> Option<RelPath> {
        self.file(file)?.path()
    }

    /// Returns the path of the symbol around a line, with its enclosing symbols.
    #[must_use]
    pub fn symbol_path_at(&self, file: DocumentId, line: u32) -> Option<String> {
        let file = self.file(file)?;
        let inside = file.segment().innermost_symbol_at(&file.record, line)?;
        let symbol = file.segment().symbol(file.record.first_symbol.saturating_add(inside))?;
        Some(full_name(&file.scope(&symbol), &symbol.name))
    }

    /// Returns the living file at a path.
    #[must_use]
    pub fn find_file(&self, path: &RelPath) -> Option<DocumentId> {
        // The newest versions are last.
        self.living.iter().rev().find_map(|one| {
            let file = one.segment.inverted_index().file_at(path).filter(|file| !one.dead.contains(*file))?;
            Some(one.first_file + file)
        })
    }

    /// Returns every living file with its number.
    pub fn files(&self) -> impl Iterator<Item = (DocumentId, FileView<'_>)> {
        self.living.iter().flat_map(|living| {
            living
                .live_files()
                .map(move |(file, record)| (living.first_file + file, FileView { living, own: file, record }))
        })
    }

    /// Returns a chunk, dead or alive.
    #[must_use]
    pub fn chunk(&self, number: DocumentId) -> Option<ChunkView> {
        let (living, own) = self.live_segment_at(number, |one| one.first_chunk)?;
        let (segment, lines) = (&living.segment, living.segment.chunk(own)?);
        Some(ChunkView {
            file: living.snapshot_number(segment.file_of_chunk(own)),
            first_line: lines.start,
            lines: lines.len() as u32,
            length: segment.inverted_index().document_lengths(DictionaryKind::Chunks).get(own),
        })
    }

    /// Returns a symbol, dead or alive, with the number of its file in the snapshot.
    #[must_use]
    pub fn symbol(&self, number: DocumentId) -> Option<(DocumentId, SymbolRecord)> {
        let (living, own) = self.live_segment_at(number, |one| one.first_symbol)?;
        let record = living.segment.symbol(own)?;
        Some((living.snapshot_number(living.segment.file_of_symbol(own)), record))
    }

    /// Returns the file of a symbol, and the symbol's number in that file.
    pub(crate) fn locate_symbol(&self, number: DocumentId) -> Option<(DocumentId, u32)> {
        let (living, own) = self.live_segment_at(number, |one| one.first_symbol)?;
        let file = living.segment.file_of_symbol(own);
        Some((living.snapshot_number(file), own.checked_sub(living.segment.file(file)?.first_symbol)?))
    }

    /// Calls `visit` with the living symbols of a name, whatever its case.
    pub fn visit_definitions(&self, name: &str, mut visit: impl FnMut(DocumentId)) {
        for one in &self.living {
            one.segment.inverted_index().visit_definitions(name, |symbol| {
                if !one.dead.contains(one.segment.file_of_symbol(symbol)) {
                    visit(one.first_symbol + symbol);
                }
            });
        }
    }

    /// Calls `visit` with the living references to a name: the file and the line, 1-based.
    pub fn visit_references(&self, name: &str, mut visit: impl FnMut(DocumentId, u32)) {
        self.visit_uses(name, |file, line, _| visit(file, line));
    }

    /// Calls `visit` with the living references to a name: the file, the line and the kind of use.
    pub fn visit_uses(&self, name: &str, mut visit: impl FnMut(DocumentId, u32, UseKind)) {
        for one in &self.living {
            one.segment.inverted_index().visit_references(name, |found| {
                if !one.dead.contains(found.file) {
                    visit(one.snapshot_number(found.file), found.line, found.kind);
                }
            });
        }
    }

    /// Calls `visit` with the living chunks that have a term, and its number of occurrences.
    pub fn visit_chunks_with_term(&self, term: &str, mut visit: impl FnMut(DocumentId, u32)) {
        for one in &self.living {
            let all_live = one.dead_chunks.is_empty();
            one.segment.inverted_index().visit_chunks_with_term(term, |chunk, times| {
                if all_live || !one.dead_chunks.contains(chunk) {
                    visit(one.first_chunk + chunk, times);
                }
            });
        }
    }
}
