//! An immutable mapped file of vectors.
//!
//! A header with counts and checksums, then keys, scales, rows of numbers, and links from line
//! ranges of contents to rows. A part needs no other part: vectors that a changed file still uses
//! are copied. So any set of parts is valid, and a crash leaves at most one too many.

use std::fs::File;
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::MAX_DIMENSIONS;
use super::dot::row_bytes;
use crate::IndexError;
use crate::segment::map_file;

/// The magic bytes of a part's file.
const MAGIC: [u8; 8] = *b"JMVECTOR";
/// Incremented with each change of the format or its meaning.
const FORMAT_VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 32;
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 8 + CHECKSUM_BYTES + CHECKSUM_BYTES + CHECKSUM_BYTES;
/// Bytes of a truncated BLAKE3 hash: two different texts collide once in 2⁶⁴ tries.
pub(super) const KEY_BYTES: usize = 16;
const SCALE_BYTES: usize = 4;
const LINK_BYTES: usize = KEY_BYTES + 4 + 4 + 4;

/// The key of a text.
pub(super) type TextKey = [u8; KEY_BYTES];

/// Returns the key of a text from its hash: the hash's first bytes.
pub(super) fn text_key_from_hash(hash: &[u8; 32]) -> TextKey {
    hash.first_chunk().copied().unwrap_or_default()
}

/// A line range of a file's content, and its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChunkLink {
    pub(super) content: TextKey,
    pub(super) first_line: u32,
    pub(super) lines: u32,
    pub(super) row: u32,
}

impl ChunkLink {
    fn to_bytes(self) -> [u8; LINK_BYTES] {
        let mut bytes = [0; LINK_BYTES];
        let numbers = [self.first_line, self.lines, self.row].map(u32::to_le_bytes);
        let all = self.content.iter().chain(numbers.iter().flatten());
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        bytes
    }

    fn read(bytes: &[u8; LINK_BYTES]) -> Self {
        let number = |at: usize| {
            let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
            u32::from_le_bytes(four.copied().unwrap_or_default())
        };
        let content = bytes.first_chunk().copied().unwrap_or_default();
        Self {
            content,
            first_line: number(KEY_BYTES),
            lines: number(KEY_BYTES + 4),
            row: number(KEY_BYTES + 8),
        }
    }
}

/// A mapped part.
#[derive(Debug)]
pub(super) struct VectorPart {
    path: PathBuf,
    map: Mmap,
    dimensions: usize,
    keys: Range<usize>,
    scales: Range<usize>,
    rows: Range<usize>,
    links: Range<usize>,
    sum: [u8; CHECKSUM_BYTES],
}

impl VectorPart {
    /// Maps a part. Reads only its header.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for an incomplete file, or another version or model;
    /// [`IndexError::Io`].
    pub(super) fn open(path: &Path, model: &[u8; 32]) -> Result<Self, IndexError> {
        let damaged = |what| IndexError::damaged(path, what);
        let file = File::open(path).map_err(IndexError::io("opening", path))?;
        let map = map_file(&file).map_err(IndexError::io("mapping", path))?;
        let header = map.get(..HEADER_BYTES).ok_or_else(|| damaged("it is too short"))?;
        let (fields, sum) = header.split_at_checked(HEADER_BYTES - CHECKSUM_BYTES).unwrap_or_default();
        let head = PartHeader::read(fields).ok_or_else(|| damaged("it isn't one"))?;
        if head.version != FORMAT_VERSION {
            return Err(damaged("another version wrote it"));
        }
        if blake3::hash(fields).as_bytes() != sum {
            return Err(damaged("its header"));
        }
        if head.model != *model {
            return Err(damaged("it is another model's"));
        }
        let [keys, scales, rows, links] = head.sections().ok_or_else(|| damaged("its header"))?;
        if links.end != map.len() {
            return Err(damaged("it hasn't its length"));
        }
        let dimensions = head.dimensions as usize;
        let sum = head.body;
        Ok(Self { path: path.to_owned(), map, dimensions, keys, scales, rows, links, sum })
    }

    /// Reads the whole file and compares the checksum.
    pub(super) fn verify(&self) -> Result<(), IndexError> {
        let body = self.map.get(HEADER_BYTES..).unwrap_or_default();
        if blake3::hash(body).as_bytes() == &self.sum {
            Ok(())
        } else {
            Err(IndexError::damaged(&self.path, "its checksum differs"))
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn section(&self, range: &Range<usize>) -> &[u8] {
        self.map.get(range.clone()).unwrap_or_default()
    }

    /// Returns the keys of the rows.
    pub(super) fn keys(&self) -> &[TextKey] {
        self.section(&self.keys).as_chunks().0
    }

    pub(super) fn row_count(&self) -> usize {
        self.keys().len()
    }

    /// Returns the numbers of all rows.
    pub(super) fn rows(&self) -> &[u8] {
        self.section(&self.rows)
    }

    /// Returns one row's numbers, with padding.
    pub(super) fn row(&self, row: u32) -> &[u8] {
        let stride = row_bytes(self.dimensions);
        let start = (row as usize).saturating_mul(stride);
        self.rows().get(start..start.saturating_add(stride)).unwrap_or_default()
    }

    /// Returns the scale of a row; 0 where the file has no valid number.
    pub(super) fn scale(&self, row: u32) -> f32 {
        let scales = self.section(&self.scales).as_chunks::<SCALE_BYTES>().0;
        let scale = scales.get(row as usize).map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
        if scale.is_finite() { scale } else { 0.0 }
    }

    fn packed_links(&self) -> &[[u8; LINK_BYTES]] {
        self.section(&self.links).as_chunks().0
    }

    /// Returns all links, by content.
    pub(super) fn links(&self) -> impl Iterator<Item = ChunkLink> {
        let count = self.row_count();
        self.packed_links().iter().map(ChunkLink::read).filter(move |link| (link.row as usize) < count)
    }

    /// Returns the links of a content, by line.
    pub(super) fn links_of(&self, content: &TextKey) -> impl Iterator<Item = ChunkLink> {
        let (count, links) = (self.row_count(), self.packed_links());
        let start =
            links.partition_point(|link| link.first_chunk::<KEY_BYTES>().is_some_and(|own| own < content));
        let rest = links.get(start..).unwrap_or_default();
        let own = rest.iter().take_while(move |link| link.first_chunk::<KEY_BYTES>() == Some(content));
        own.map(ChunkLink::read).filter(move |link| (link.row as usize) < count)
    }
}

/// The header of a part's file.
struct PartHeader {
    version: u32,
    dimensions: u32,
    rows: u64,
    links: u64,
    model: [u8; 32],
    body: [u8; CHECKSUM_BYTES],
}

impl PartHeader {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.dimensions.to_le_bytes());
        bytes.extend_from_slice(&self.rows.to_le_bytes());
        bytes.extend_from_slice(&self.links.to_le_bytes());
        bytes.extend_from_slice(&self.model);
        bytes.extend_from_slice(&self.body);
        let own = *blake3::hash(&bytes).as_bytes();
        bytes.extend_from_slice(&own);
        bytes
    }

    fn read(fields: &[u8]) -> Option<Self> {
        let (magic, rest) = fields.split_first_chunk()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (dimensions, rest) = rest.split_first_chunk()?;
        let (rows, rest) = rest.split_first_chunk()?;
        let (links, rest) = rest.split_first_chunk()?;
        let (model, rest) = rest.split_first_chunk()?;
        let (body, _) = rest.split_first_chunk()?;
        (*magic == MAGIC).then(|| Self {
            version: u32::from_le_bytes(*version),
            dimensions: u32::from_le_bytes(*dimensions),
            rows: u64::from_le_bytes(*rows),
            links: u64::from_le_bytes(*links),
            model: *model,
            body: *body,
        })
    }

    /// Returns the positions of keys, scales, rows and links; `None` for impossible counts.
    fn sections(&self) -> Option<[Range<usize>; 4]> {
        let dimensions = usize::try_from(self.dimensions).ok().filter(|count| *count <= MAX_DIMENSIONS)?;
        let rows = usize::try_from(self.rows).ok()?;
        let links = usize::try_from(self.links).ok()?;
        let mut at = HEADER_BYTES;
        let mut next = |count: usize, each: usize| {
            let end = at.checked_add(count.checked_mul(each)?)?;
            Some(std::mem::replace(&mut at, end)..end)
        };
        Some([
            next(rows, KEY_BYTES)?,
            next(rows, SCALE_BYTES)?,
            next(rows, row_bytes(dimensions))?,
            next(links, LINK_BYTES)?,
        ])
    }
}

/// A function that takes each row: its key, its scale and its numbers.
pub(super) type RowVisitor<'a> = dyn FnMut(&TextKey, f32, &[u8]) -> std::io::Result<()> + 'a;

/// A part to be written.
pub(super) trait PartContents {
    /// Number of dimensions.
    fn dimensions(&self) -> usize;
    /// Number of rows.
    fn row_count(&self) -> usize;
    /// Visits the rows in order.
    fn visit_rows(&self, visit: &mut RowVisitor<'_>) -> std::io::Result<()>;
    /// Sorted links.
    fn links(&self) -> &[ChunkLink];
}

/// Writes a part under another name, waits until it is on disk, and renames it: atomically.
pub(super) fn write_part_file(
    contents: &dyn PartContents,
    model: &[u8; 32],
    new: &Path,
    path: &Path,
) -> Result<(), IndexError> {
    let put = || {
        let mut file = BufWriter::new(File::create(new)?);
        let mut hasher = blake3::Hasher::new();
        file.write_all(&[0; HEADER_BYTES])?;
        let mut both = |bytes: &[u8]| {
            hasher.update(bytes);
            file.write_all(bytes)
        };
        contents.visit_rows(&mut |key, _, _| both(key))?;
        contents.visit_rows(&mut |_, scale, _| both(&scale.to_le_bytes()))?;
        contents.visit_rows(&mut |_, _, row| both(row))?;
        contents.links().iter().try_for_each(|link| both(&link.to_bytes()))?;
        let head = PartHeader {
            version: FORMAT_VERSION,
            dimensions: u32::try_from(contents.dimensions()).unwrap_or(u32::MAX),
            rows: contents.row_count() as u64,
            links: contents.links().len() as u64,
            model: *model,
            body: *hasher.finalize().as_bytes(),
        };
        let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&head.to_bytes())?;
        file.sync_data()?;
        std::fs::rename(new, path)?;
        path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    };
    put().map_err(IndexError::io("writing", path))
}
