//! Reads a SQLite database file page by page, without SQLite, which stops at the first damage.
//!
//! The format is <https://sqlite.org/fileformat2.html>; ours has pages of 4096 bytes and nothing
//! reserved in them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::record::{be16, be32};
use crate::private_directories::path_with_suffix;
use crate::sqlite::PAGE_BYTES;

const PAGE_SIZE: usize = PAGE_BYTES as usize;
/// Bytes of the file's header, at the beginning of the first page.
const FILE_HEADER_BYTES: usize = 100;
/// Bytes of the headers of the write-ahead log and of its frames.
const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The write-ahead log's first four bytes; the last bit is the byte order of checksums.
const WAL_MAGIC: u32 = 0x377F_0682;
/// Types of leaf pages of tables and of indexes.
const TABLE_LEAF: u8 = 0x0D;
const INDEX_LEAF: u8 = 0x0A;

/// A database file with the newer pages of its write-ahead log.
pub(super) struct RawDatabase {
    main: Option<File>,
    wal: Option<File>,
    /// The offset in the write-ahead log of each page's newest version.
    newer: HashMap<u32, u64>,
    /// The greatest possible page number.
    pub(super) pages: u32,
}

/// The kind of a page's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafKind {
    Table,
    Index,
}

/// A row of a leaf.
#[derive(Debug)]
pub(super) struct Cell {
    /// The row's number; 0 in an index.
    pub(super) row: i64,
    /// The bytes of the whole record.
    pub(super) length: usize,
    /// The bytes of the record that are in the page.
    pub(super) local: Vec<u8>,
    /// The first overflow page.
    overflow: Option<u32>,
}

impl RawDatabase {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let open = |path: &Path| match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let (main, wal) = (open(path)?, open(&path_with_suffix(path, "-wal"))?);
        let newer = match &wal {
            Some(wal) => scan_wal_frames(wal)?.0,
            None => HashMap::new(),
        };
        let bytes = match &main {
            Some(main) => main.metadata()?.len(),
            None => 0,
        };
        let in_main = u32::try_from(bytes.div_ceil(PAGE_BYTES)).unwrap_or(u32::MAX);
        let pages = newer.keys().copied().max().unwrap_or_default().max(in_main);
        Ok(Self { main, wal, newer, pages })
    }

    /// Reads a page, with zeros for missing bytes.
    pub(super) fn page(&self, number: u32) -> io::Result<Vec<u8>> {
        let mut page = vec![0; PAGE_SIZE];
        match (self.newer.get(&number), &self.wal, &self.main) {
            (Some(&offset), Some(wal), _) => read_at(wal, &mut page, offset)?,
            (_, _, Some(main)) if number > 0 => read_at(main, &mut page, u64::from(number - 1) * PAGE_BYTES)?,
            _ => 0,
        };
        Ok(page)
    }

    /// Reads the valid rows of a page; `None` if it isn't a leaf.
    pub(super) fn cells(&self, number: u32) -> io::Result<Option<(LeafKind, Vec<Cell>)>> {
        let page = self.page(number)?;
        let header = if number == 1 { FILE_HEADER_BYTES } else { 0 };
        let leaf = match page.get(header) {
            Some(&TABLE_LEAF) => LeafKind::Table,
            Some(&INDEX_LEAF) => LeafKind::Index,
            _ => return Ok(None),
        };
        let count = usize::from(be16(&page, header + 3).unwrap_or_default());
        let cells = (0..count.min(PAGE_SIZE / 2)).filter_map(|index| {
            let at = usize::from(be16(&page, header + 8 + 2 * index)?);
            parse_cell(&page, at, leaf)
        });
        Ok(Some((leaf, cells.collect())))
    }

    /// Reads the whole record of a row; `None` if a part is missing.
    pub(super) fn record(&self, cell: &Cell) -> io::Result<Option<Vec<u8>>> {
        let mut record = cell.local.clone();
        let mut next = cell.overflow;
        while record.len() < cell.length {
            let Some(number) = next.filter(|&number| number > 0 && number <= self.pages) else {
                return Ok(None);
            };
            let page = self.page(number)?;
            next = be32(&page, 0);
            let wanted = (cell.length - record.len()).min(PAGE_SIZE - 4);
            let Some(more) = page.get(4..4 + wanted) else { return Ok(None) };
            record.extend_from_slice(more);
        }
        // The last page has no next one; otherwise the chain isn't this row's.
        Ok((next.unwrap_or_default() == 0).then_some(record))
    }
}

/// Parses the row at an offset in a leaf.
fn parse_cell(page: &[u8], at: usize, leaf: LeafKind) -> Option<Cell> {
    let mut rest = page.get(at..)?;
    let length = usize::try_from(super::record::varint(&mut rest)?).ok()?;
    let row = match leaf {
        LeafKind::Table => super::record::varint(&mut rest)?,
        LeafKind::Index => 0,
    };
    // The bytes of a record in the page: section 1.6 of the format.
    let most = match leaf {
        LeafKind::Table => PAGE_SIZE - 35,
        LeafKind::Index => (PAGE_SIZE - 12) * 64 / 255 - 23,
    };
    if length <= most {
        return Some(Cell { row, length, local: rest.get(..length)?.to_vec(), overflow: None });
    }
    let least = (PAGE_SIZE - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (PAGE_SIZE - 4);
    let local = if fitting <= most { fitting } else { least };
    Some(Cell { row, length, local: rest.get(..local)?.to_vec(), overflow: be32(rest, local) })
}

/// Returns the offset of each page's newest committed version in a write-ahead log, and the end of
/// its last valid frame.
fn scan_wal_frames(wal: &File) -> io::Result<(HashMap<u32, u64>, u64)> {
    let mut committed = HashMap::new();
    let mut header = [0; WAL_HEADER_BYTES];
    if read_at(wal, &mut header, 0)? < WAL_HEADER_BYTES {
        return Ok((committed, 0));
    }
    let field = |index: usize| be32(&header, 4 * index).unwrap_or_default();
    let big = field(0) & 1 == 1;
    let sums = header.get(..24).map(|summed| checksum(summed, (0, 0), big));
    if field(0) & !1 != WAL_MAGIC || u64::from(field(2)) != PAGE_BYTES || sums != Some((field(6), field(7))) {
        return Ok((committed, WAL_HEADER_BYTES as u64));
    }
    let mut sum = (field(6), field(7));
    let mut pending = HashMap::new();
    let mut offset = WAL_HEADER_BYTES as u64;
    let mut frame = vec![0; FRAME_HEADER_BYTES + PAGE_SIZE];
    while read_at(wal, &mut frame, offset)? == frame.len() {
        let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
        let of_frame = |index: usize| be32(head, 4 * index).unwrap_or_default();
        sum = checksum(head.get(..8).unwrap_or_default(), sum, big);
        sum = checksum(page, sum, big);
        let valid = (of_frame(2), of_frame(3)) == (field(4), field(5)) && sum == (of_frame(4), of_frame(5));
        if !valid {
            break;
        }
        pending.insert(of_frame(0), offset + FRAME_HEADER_BYTES as u64);
        // The last frame of a transaction has the number of the file's pages.
        if of_frame(1) > 0 {
            committed.extend(pending.drain());
        }
        offset += frame.len() as u64;
    }
    Ok((committed, offset))
}

/// Returns the number of transactions after a damaged one in a write-ahead log, which SQLite skips
/// silently. The number is 0 where only the last transaction is torn, as a crash leaves it.
pub(crate) fn count_lost_transactions(wal: &Path) -> io::Result<u64> {
    let wal = match File::open(wal) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        wal => wal?,
    };
    let found = find_wal_damage(&wal)?;
    // Another process may have written meanwhile; real damage stays.
    let again = if found.is_some() { find_wal_damage(&wal)? } else { None };
    Ok(found.filter(|_| found == again).map_or(0, |(_, lost)| lost))
}

/// Returns the offset of the first damaged frame, and the number of transactions after its own.
fn find_wal_damage(wal: &File) -> io::Result<Option<(u64, u64)>> {
    let mut header = [0; WAL_HEADER_BYTES];
    if read_at(wal, &mut header, 0)? < WAL_HEADER_BYTES {
        return Ok(None);
    }
    let field = |index: usize| be32(&header, 4 * index).unwrap_or_default();
    let frame_bytes = FRAME_HEADER_BYTES + PAGE_SIZE;
    let valid = scan_wal_frames(wal)?.1;
    let (mut offset, mut head) = (valid, [0; FRAME_HEADER_BYTES]);
    let (mut commits, mut first) = (0, None);
    while read_at(wal, &mut head, offset)? == FRAME_HEADER_BYTES {
        let of_frame = |index: usize| be32(&head, 4 * index).unwrap_or_default();
        let is_commit = (of_frame(2), of_frame(3)) == (field(4), field(5)) && of_frame(1) > 0;
        match first {
            None => first = Some(is_commit),
            Some(_) => commits += u64::from(is_commit),
        }
        offset += frame_bytes as u64;
    }
    // The end of the damaged frame's own transaction is among them, unless that is the frame
    // itself.
    let own = u64::from(first != Some(true));
    Ok(Some((valid, commits.saturating_sub(own))).filter(|(_, lost)| *lost > 0))
}

fn checksum(bytes: &[u8], (mut a, mut b): (u32, u32), big: bool) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let bytes = bytes.try_into().unwrap_or_default();
        if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    for pair in bytes.chunks_exact(8) {
        let (first, second) = pair.split_at(4);
        a = a.wrapping_add(word(first)).wrapping_add(b);
        b = b.wrapping_add(word(second)).wrapping_add(a);
    }
    (a, b)
}

/// Reads as many bytes as there are, and returns their number.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // An unreadable place counts as the end of the file.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
