//! A segment's mapped file: its header and its sections.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use super::codec::ByteCursor;
use super::dictionary::MappedSlice;
use super::layout::{
    CHECKSUM_BYTES, DictionaryKind, HEADER_BYTES, MAGIC, PLAIN_SECTION_COUNT, SECTION_COUNT,
    SECTION_ROW_BYTES, SECTIONS_PER_DICTIONARY, SectionKind, format_version,
};
use super::memory_map::{map_file, unmap_pages};
use super::write::checksum;
use crate::IndexError;

/// The mapped file of a segment.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    map: Arc<Mmap>,
    sections: Vec<SectionRow>,
}

/// A section's row in the header.
#[derive(Debug, Clone)]
struct SectionRow {
    start: usize,
    end: usize,
    sum: [u8; CHECKSUM_BYTES],
}

impl MappedFile {
    /// Maps a segment's file. Reads only its header.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for another kind of file, or another version; [`IndexError::Io`].
    pub(super) fn open(path: &Path) -> Result<Self, IndexError> {
        let file = File::open(path).map_err(IndexError::io("opening", path))?;
        let map = Arc::new(map_file(&file).map_err(IndexError::io("mapping", path))?);
        let header = map.get(..HEADER_BYTES).ok_or_else(|| IndexError::damaged(path, "it is too short"))?;
        let (table, sum) = header.split_at_checked(HEADER_BYTES - CHECKSUM_BYTES).unwrap_or_default();
        let mut cursor = ByteCursor::new(table);
        if cursor.read_array() != MAGIC {
            return Err(IndexError::damaged(path, "it isn't one"));
        }
        if cursor.read_u64() != format_version() {
            return Err(IndexError::damaged(path, "another version wrote it"));
        }
        if checksum(table) != sum {
            return Err(IndexError::damaged(path, "its header"));
        }
        let mut sections = Vec::with_capacity(SECTION_COUNT);
        debug_assert_eq!(table.len(), MAGIC.len() + 8 + SECTION_COUNT * SECTION_ROW_BYTES);
        for _ in 0..SECTION_COUNT {
            let (at, len, sum) = (cursor.read_u64(), cursor.read_u64(), cursor.read_array());
            let end = usize::try_from(at.saturating_add(len)).unwrap_or(usize::MAX);
            if end > map.len() {
                return Err(IndexError::damaged(path, "it is shorter than it was"));
            }
            sections.push(SectionRow { start: at as usize, end, sum });
        }
        Ok(Self { path: path.to_owned(), map, sections })
    }

    /// Reads the whole file and compares the checksums.
    ///
    /// # Errors
    /// [`IndexError::Damaged`].
    pub fn verify(&self) -> Result<(), IndexError> {
        for row in &self.sections {
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

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Calls `visit` with the sections' names and sizes.
    pub(crate) fn visit_section_sizes(&self, mut visit: impl FnMut(String, u64)) {
        const PLAIN_SECTION_NAMES: [&str; PLAIN_SECTION_COUNT] = [
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
        const DICTIONARY_SECTION_NAMES: [&str; SECTIONS_PER_DICTIONARY] = ["keys", "offsets", "lists"];
        let of_dictionaries = DictionaryKind::ALL.iter().flat_map(|kind| {
            DICTIONARY_SECTION_NAMES.iter().map(move |section| format!("{kind:?} {section}"))
        });
        let names = PLAIN_SECTION_NAMES.iter().map(|name| (*name).to_owned()).chain(of_dictionaries);
        for (name, row) in names.zip(&self.sections) {
            visit(name, (row.end - row.start) as u64);
        }
    }

    /// Returns the bytes of a section.
    pub(super) fn section_bytes(&self, part: SectionKind) -> &[u8] {
        let row = self.sections.get(part as usize);
        row.and_then(|row| self.map.get(row.start..row.end)).unwrap_or_default()
    }

    /// Returns the slice of the section at a position of the header's table.
    pub(super) fn slice(&self, section: usize) -> MappedSlice {
        let range = self.sections.get(section).map_or(0..0, |row| row.start..row.end);
        MappedSlice::new(&self.map, range)
    }
}
