//! The encoding of a blob in its file: a header byte, then the bytes raw or as one zstd frame.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _, Write};

use zstd::bulk::Compressor;
use zstd::stream::write::Encoder;

/// Maximum bytes of one blob, before compression. Longer files are no source files, and
/// decompression stops here whatever a damaged file claims.
pub const MAX_BLOB_BYTES: usize = 256 * 1024 * 1024;

/// Header byte of an uncompressed blob.
const RAW_HEADER: u8 = 0;
/// Header byte of a zstd frame that has its content's size.
const ZSTD_HEADER: u8 = 1;
/// zstd's fastest ordinary level: pre-images are written before each edit, and read rarely.
const COMPRESSION_LEVEL: i32 = 1;
/// Minimum bytes that are compressed. For fewer, the frame costs what it saves, and a file takes a
/// disk block anyway.
const MIN_COMPRESSED_BYTES: usize = 128;
/// Maximum bytes that are compressed in a buffer and written in one call. More are streamed, so
/// that memory stays bounded.
const MAX_BUFFERED_BYTES: usize = 1024 * 1024;
/// Bytes at the beginning of a large content that are compressed first, to find whether compression
/// saves enough.
const SAMPLE_BYTES: usize = 128 * 1024;

/// Compresses contents, and reuses its buffers.
#[derive(Default)]
pub(super) struct BlobCompressor {
    compressor: Option<Compressor<'static>>,
    buffer: Vec<u8>,
}

impl fmt::Debug for BlobCompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").field("buffer", &self.buffer.len()).finish_non_exhaustive()
    }
}

/// Returns the maximum compressed size that is worth storing: seven eighths of the content.
fn max_compressed_len(length: usize) -> usize {
    length - length / 8
}

/// Returns true if a file of `stored` bytes can hold a content of `length` bytes.
pub(super) fn is_plausible_file_size(stored: u64, length: u64) -> bool {
    stored == length + 1 || (stored > 1 && stored <= length - length / 8 + 1)
}

impl BlobCompressor {
    /// Frees the buffers.
    pub(super) fn release_buffers(&mut self) {
        *self = Self::default();
    }

    /// Writes `bytes` into an empty file, compressed if that saves at least an eighth.
    pub(super) fn compress_to_file(&mut self, bytes: &[u8], file: &mut File) -> io::Result<()> {
        if bytes.len() > MAX_BUFFERED_BYTES {
            return self.compress_large(bytes, file);
        }
        self.buffer.clear();
        if bytes.len() >= MIN_COMPRESSED_BYTES && self.compress_in_memory(bytes)? {
            return file.write_all(&self.buffer);
        }
        self.buffer.clear();
        self.buffer.push(RAW_HEADER);
        self.buffer.extend_from_slice(bytes);
        file.write_all(&self.buffer)
    }

    /// Fills the buffer with header and frame; returns false if that would save too little.
    fn compress_in_memory(&mut self, bytes: &[u8]) -> io::Result<bool> {
        self.buffer.clear();
        self.buffer.resize(1 + max_compressed_len(bytes.len()), 0);
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(COMPRESSION_LEVEL)?),
        };
        let Some((header, room)) = self.buffer.split_first_mut() else { return Ok(false) };
        *header = ZSTD_HEADER;
        // The only failure in practice is that the frame doesn't fit: then it saves too little.
        match compressor.compress_to_buffer(bytes, room) {
            Ok(packed) => {
                self.buffer.truncate(1 + packed);
                Ok(true)
            }
            Err(_) => Ok(false),
        }
    }

    fn compress_large(&mut self, bytes: &[u8], file: &mut File) -> io::Result<()> {
        let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
        if self.compress_in_memory(sample)? {
            file.write_all(&[ZSTD_HEADER])?;
            let mut encoder = Encoder::new(&mut *file, COMPRESSION_LEVEL)?;
            encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
            encoder.write_all(bytes)?;
            encoder.finish()?;
            if file.stream_position()? <= 1 + max_compressed_len(bytes.len()) as u64 {
                return Ok(());
            }
            file.set_len(0)?;
            file.rewind()?;
        }
        file.write_all(&[RAW_HEADER])?;
        file.write_all(bytes)
    }
}

/// Returns the content of a stored file, or a description of its damage.
pub(super) fn decompress_blob(mut stored: Vec<u8>) -> Result<Vec<u8>, String> {
    match stored.split_first() {
        None => Err("the file is empty".to_owned()),
        Some((&RAW_HEADER, _)) => {
            stored.remove(0);
            Ok(stored)
        }
        Some((&ZSTD_HEADER, frame)) => {
            let size = match zstd::zstd_safe::get_frame_content_size(frame) {
                Ok(Some(size)) => usize::try_from(size).unwrap_or(usize::MAX),
                _ => return Err("the packed data has no valid beginning".to_owned()),
            };
            if size > MAX_BLOB_BYTES {
                return Err(format!("it claims to hold {size} bytes; at most {MAX_BLOB_BYTES} are possible"));
            }
            zstd::bulk::decompress(frame, size).map_err(|error| format!("it can't be unpacked: {error}"))
        }
        Some((header, _)) => Err(format!("its first byte is {header}, which this version doesn't know")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_beyond_the_limit_are_refused_before_memory_is_taken() {
        // A frame header by hand: magic, single segment with an 8-byte size of 2^40.
        let mut stored = vec![ZSTD_HEADER, 0x28, 0xb5, 0x2f, 0xfd, 0b1110_0000];
        stored.extend_from_slice(&(1_u64 << 40).to_le_bytes());
        assert!(decompress_blob(stored).unwrap_err().contains("1099511627776"));
    }

    #[test]
    fn unknown_headers_and_empty_files_are_named() {
        assert_eq!(decompress_blob(Vec::new()).unwrap_err(), "the file is empty");
        assert!(decompress_blob(vec![9, 1, 2]).unwrap_err().contains("first byte is 9"));
        assert!(decompress_blob(vec![ZSTD_HEADER, 1, 2, 3]).unwrap_err().contains("no valid beginning"));
    }

    #[test]
    fn plausible_sizes() {
        for (stored, length, plausible) in
            [(0, 0, false), (1, 0, true), (0, 9, false), (10, 9, true), (500, 1000, true), (900, 1000, false)]
        {
            assert_eq!(is_plausible_file_size(stored, length), plausible, "{stored} for {length}");
        }
    }
}
