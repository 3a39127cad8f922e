//! Records of any length, compressed in blocks.
//!
//! A record lies in one block, so that reading it decompresses one. A few decompressed blocks are
//! cached: consecutive reads are mostly near each other.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use super::codec::ByteCursor;
use super::layout::ByteSpan;
use crate::IndexError;

/// Bytes from which on a block is full.
const FULL_BLOCK_BYTES: usize = 16 << 10;
/// Maximum decompressed bytes of a block: a file's records are far below it, so a larger one is
/// damaged.
const MAX_BLOCK_BYTES: usize = 64 << 20;
/// Number of decompressed blocks cached for a segment.
const MAX_CACHED_BLOCKS: usize = 48;
/// Compression level: three quarters of what the strongest level saves, at a tenth of its time.
const COMPRESSION_LEVEL: i32 = 3;
/// Bytes of a block's row: its start among all decompressed bytes, its position, its decompressed
/// length.
const BLOCK_ROW_BYTES: usize = 12;

/// Collects records into blocks.
#[derive(Default)]
pub(crate) struct RecordWriter {
    packer: Option<zstd::bulk::Compressor<'static>>,
    current: Vec<u8>,
    /// Decompressed bytes before the current block.
    before: usize,
    packed: Vec<u8>,
    table: Vec<u8>,
}

impl std::fmt::Debug for RecordWriter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DataWriter").field("bytes", &self.before).finish_non_exhaustive()
    }
}

impl RecordWriter {
    /// Returns the approximate memory use in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.current.len() + self.packed.len() + self.table.len()
    }

    /// Appends a record.
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<ByteSpan, IndexError> {
        let too_much = |_| IndexError::TooMuch("a segment's data");
        if self.current.len() >= FULL_BLOCK_BYTES {
            self.compress_block()?;
        }
        let start = self.current.len();
        write(&mut self.current);
        let len = self.current.len() - start;
        let at = u32::try_from(self.before + start).map_err(too_much)?;
        Ok(ByteSpan { at, len: u32::try_from(len).map_err(too_much)? })
    }

    fn compress_block(&mut self) -> Result<(), IndexError> {
        let too_much = |_| IndexError::TooMuch("a segment's data");
        let unpacked = |_| IndexError::TooMuch("a block");
        let packer = match &mut self.packer {
            Some(packer) => packer,
            none => none.insert(zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map_err(unpacked)?),
        };
        let packed = packer.compress(&self.current).map_err(unpacked)?;
        for number in [self.before, self.packed.len(), self.current.len()] {
            self.table.extend_from_slice(&u32::try_from(number).map_err(too_much)?.to_le_bytes());
        }
        self.packed.extend_from_slice(&packed);
        self.before += self.current.len();
        self.current.clear();
        Ok(())
    }

    /// Returns the blocks, and the table of them.
    pub(crate) fn finish(mut self) -> Result<(Vec<u8>, Vec<u8>), IndexError> {
        if !self.current.is_empty() {
            self.compress_block()?;
        }
        Ok((self.packed, self.table))
    }
}

/// Cached decompressed blocks, by their position in the table, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct BlockCache {
    kept: Mutex<Vec<(usize, Arc<Vec<u8>>)>>,
}

impl BlockCache {
    /// Calls `show` with the bytes from a position to its block's end; with none where the file is
    /// damaged.
    pub(crate) fn read_at<T>(
        &self,
        packed: &[u8],
        table: &[u8],
        at: u32,
        show: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let rows = table.as_chunks::<BLOCK_ROW_BYTES>().0;
        let start = |row: &[u8; BLOCK_ROW_BYTES]| ByteCursor::new(row).read_u32();
        let Some(number) = rows.partition_point(|row| start(row) <= at).checked_sub(1) else {
            return show(&[]);
        };
        let block = self.load_block(packed, rows, number);
        let own = at - rows.get(number).map_or(0, start);
        show(block.get(own as usize..).unwrap_or_default())
    }

    fn load_block(&self, packed: &[u8], rows: &[[u8; BLOCK_ROW_BYTES]], number: usize) -> Arc<Vec<u8>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = kept.iter().find(|(known, _)| *known == number) {
            return Arc::clone(block);
        }
        let row = |number: usize| {
            let mut cursor =
                ByteCursor::new(rows.get(number).map_or(&[][..], <[u8; BLOCK_ROW_BYTES]>::as_slice));
            (cursor.read_u32(), cursor.read_u32() as usize, cursor.read_u32() as usize)
        };
        let (_, from, len) = row(number);
        let to = if number + 1 < rows.len() { row(number + 1).1 } else { packed.len() };
        let bytes = packed.get(from..to).filter(|_| len <= MAX_BLOCK_BYTES);
        let block = bytes.and_then(|bytes| decompress(bytes, len)).unwrap_or_default();
        let block = Arc::new(block);
        if kept.len() >= MAX_CACHED_BLOCKS {
            kept.remove(0);
        }
        kept.push((number, Arc::clone(&block)));
        block
    }
}

thread_local! {
    /// The decompressor's context, which takes longer to create than a block to decompress.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn decompress(bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with(|unpacker| {
        let mut unpacker = unpacker.try_borrow_mut().ok()?;
        if unpacker.is_none() {
            *unpacker = zstd::bulk::Decompressor::new().ok();
        }
        unpacker.as_mut()?.decompress(bytes, len).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_from_their_blocks() {
        let mut writer = RecordWriter::default();
        let record = |number: usize| format!("record {number} ").repeat(number % 400).into_bytes();
        let spans: Vec<ByteSpan> =
            (0..600).map(|number| writer.append(|out| out.extend(record(number))).unwrap()).collect();
        let (packed, table) = writer.finish().unwrap();
        assert!(packed.len() * 4 < spans.iter().map(|span| span.len as usize).sum());
        let unpacked = BlockCache::default();
        for (number, span) in spans.iter().enumerate().rev() {
            let found =
                unpacked.read_at(&packed, &table, span.at, |bytes| bytes[..span.len as usize].to_vec());
            assert_eq!(found, record(number));
        }
        // Missing and damaged records are empty.
        assert_eq!(unpacked.read_at(&packed, &table, u32::MAX, <[u8]>::len), 0);
        assert_eq!(BlockCache::default().read_at(&packed[1..], &table, 0, <[u8]>::len), 0);
    }
}
