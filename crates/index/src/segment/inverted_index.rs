//! The dictionaries of a segment, from terms, trigrams, names and paths to the lists of files,
//! chunks and symbols that have them.

use journeyman_protocol::RelPath;

use super::DocumentId;
use super::codec::{decode_counts, decode_dense, decode_plain, decode_uses, unpack_use};
use super::column::{Column, LengthColumn};
use super::dictionary::{Dictionary, MappedSlice};
use super::layout::{DictionaryKind, PLAIN_SECTION_COUNT, SECTIONS_PER_DICTIONARY, SectionKind};
use super::mapped_file::MappedFile;
use crate::IndexError;
use crate::analysis::UseKind;
use crate::query::Posting;

/// The inverted index of a segment.
#[derive(Debug)]
pub struct InvertedIndex {
    dictionaries: Vec<Dictionary>,
    /// The letters of each key of [`DictionaryKind::Defined`].
    letters: MappedSlice,
    path_lengths: MappedSlice,
    symbol_lengths: MappedSlice,
    chunk_lengths: MappedSlice,
}

/// A reference to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceLocation {
    /// The file.
    pub file: DocumentId,
    /// The line, 1-based.
    pub line: u32,
    /// The way in which the name is used.
    pub kind: UseKind,
}

impl InvertedIndex {
    /// Opens the dictionaries of a file.
    ///
    /// # Errors
    /// [`IndexError::Damaged`].
    pub(super) fn open(file: &MappedFile) -> Result<Self, IndexError> {
        let mut dictionaries = Vec::with_capacity(DictionaryKind::ALL.len());
        for kind in DictionaryKind::ALL {
            let first = PLAIN_SECTION_COUNT + kind as usize * SECTIONS_PER_DICTIONARY;
            let dictionary = Dictionary::new(file.slice(first), file.slice(first + 1), file.slice(first + 2));
            dictionaries.push(dictionary.ok_or_else(|| IndexError::damaged(file.path(), "a dictionary"))?);
        }
        let column = |part: SectionKind| file.slice(part as usize);
        Ok(Self {
            dictionaries,
            letters: column(SectionKind::Letters),
            path_lengths: column(SectionKind::PathLengths),
            symbol_lengths: column(SectionKind::SymbolLengths),
            chunk_lengths: column(SectionKind::ChunkLengths),
        })
    }

    pub(crate) fn dictionary(&self, kind: DictionaryKind) -> Option<&Dictionary> {
        self.dictionaries.get(kind as usize)
    }

    /// Returns the encoded list of a key.
    fn list(&self, kind: DictionaryKind, key: &[u8]) -> Option<&[u8]> {
        self.dictionary(kind)?.get(key)
    }

    /// Returns the lengths in terms of the documents of a term's list: chunks, or, for
    /// [`DictionaryKind::Paths`] and [`DictionaryKind::Symbols`], files.
    pub(crate) fn document_lengths(&self, kind: DictionaryKind) -> LengthColumn<'_> {
        let lengths = match kind {
            DictionaryKind::Paths => &self.path_lengths,
            DictionaryKind::Symbols => &self.symbol_lengths,
            _ => &self.chunk_lengths,
        };
        LengthColumn::new(lengths.as_ref())
    }

    /// Returns the file at a path.
    #[must_use]
    pub fn file_at(&self, path: &RelPath) -> Option<DocumentId> {
        let mut found = None;
        decode_plain(self.list(DictionaryKind::Files, path.as_bytes())?, |file| found = Some(file));
        found
    }

    /// Calls `visit` with the files whose path's last part, in ASCII lower case, is `name`.
    pub(crate) fn visit_files_named(&self, name: &[u8], visit: impl FnMut(DocumentId)) {
        if let Some(list) = self.list(DictionaryKind::Names, name) {
            decode_plain(list, visit);
        }
    }

    /// Calls `visit` with the files that have a trigram of lower-case bytes.
    pub(crate) fn visit_files_with_trigram(&self, trigram: [u8; 3], visit: impl FnMut(DocumentId)) {
        if let Some(list) = self.list(DictionaryKind::Trigrams, &trigram) {
            decode_dense(list, visit);
        }
    }

    /// Calls `visit` with the chunks that have a term, and its number of occurrences.
    pub(crate) fn visit_chunks_with_term(&self, term: &str, visit: impl FnMut(DocumentId, u32)) {
        if let Some(list) = self.list(DictionaryKind::Chunks, term.as_bytes()) {
            decode_counts(list, visit);
        }
    }

    /// Calls `visit` with the postings of an encoded list of [`DictionaryKind::Chunks`],
    /// [`DictionaryKind::Paths`] or [`DictionaryKind::Symbols`], with `first` added to the numbers
    /// of their documents: many at once.
    pub(crate) fn visit_postings(
        &self,
        kind: DictionaryKind,
        list: &[u8],
        first: DocumentId,
        visit: &mut dyn FnMut(&[Posting]),
    ) {
        /// As many as fit into the nearest cache together with the scoring.
        const POSTINGS_PER_BATCH: usize = 256;
        let lengths = self.document_lengths(kind);
        let mut batch = [Posting::default(); POSTINGS_PER_BATCH];
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
            if filled == POSTINGS_PER_BATCH {
                flush(&mut batch);
                filled = 0;
            }
        });
        flush(batch.get_mut(..filled).unwrap_or_default());
    }

    /// Calls `visit` with the names of symbols, in lower case and ascending order, whose letters
    /// are wanted, until it returns false.
    pub(crate) fn visit_names_with_letters(
        &self,
        wanted: impl Fn(u32) -> bool,
        visit: impl FnMut(&[u8]) -> bool,
    ) {
        let Some(names) = self.dictionary(DictionaryKind::Defined) else { return };
        let letters = Column::new(self.letters.as_ref()).iter();
        names.visit_keys_by_number(
            (0..).zip(letters).filter(|(_, own)| wanted(*own)).map(|(number, _)| number),
            visit,
        );
    }

    /// Calls `visit` with the symbols of a name, whatever its case.
    pub fn visit_definitions(&self, name: &str, visit: impl FnMut(DocumentId)) {
        if let Some(list) = self.list(DictionaryKind::Defined, name.to_lowercase().as_bytes()) {
            decode_plain(list, visit);
        }
    }

    /// Calls `visit` with the references to a name.
    pub fn visit_references(&self, name: &str, mut visit: impl FnMut(ReferenceLocation)) {
        if let Some(list) = self.list(DictionaryKind::Used, name.as_bytes()) {
            decode_uses(list, |file, packed| {
                let (line, kind) = unpack_use(packed);
                visit(ReferenceLocation { file, line, kind });
            });
        }
    }
}
