//! Writing a segment's file atomically.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use super::dictionary::EncodedDictionary;
use super::layout::{CHECKSUM_BYTES, DictionaryKind, HEADER_BYTES, MAGIC, SegmentParts, format_version};
use super::letter_sets;
use crate::IndexError;

/// Bytes of the write buffer.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// The content of a segment.
pub(crate) struct SegmentContents {
    parts: SegmentParts,
    words: [EncodedDictionary; DictionaryKind::ALL.len()],
}

impl SegmentContents {
    /// Creates the content from the collected parts and dictionaries.
    pub(super) fn new(
        mut parts: SegmentParts,
        words: [EncodedDictionary; DictionaryKind::ALL.len()],
    ) -> Self {
        let [.., defined, _used, _files, _names] = &words;
        parts.letters = letter_sets::letter_column(defined);
        Self { parts, words }
    }

    /// Writes the content to `path`, which must not exist, and waits until it is on disk if
    /// `durable`.
    pub(crate) fn write(&self, path: &Path, durable: bool) -> Result<(), IndexError> {
        let sections: Vec<&[u8]> =
            self.parts.sections().into_iter().chain(self.words.iter().flatten().map(Vec::as_slice)).collect();
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&format_version().to_le_bytes());
        let mut at = HEADER_BYTES as u64;
        for section in &sections {
            header.extend_from_slice(&at.to_le_bytes());
            header.extend_from_slice(&(section.len() as u64).to_le_bytes());
            header.extend_from_slice(checksum(section).as_slice());
            at += section.len() as u64;
        }
        header.extend_from_slice(checksum(&header).as_slice());
        let mut file = File::options().write(true).create_new(true).open(path);
        let file = file.as_mut().map_err(|error| IndexError::Io {
            action: "making",
            path: path.to_owned(),
            error: std::io::Error::new(error.kind(), error.to_string()),
        })?;
        // Small sections are buffered, and large ones aren't copied.
        let mut buffer = std::io::BufWriter::with_capacity(WRITE_BUFFER_BYTES, &*file);
        let written = buffer
            .write_all(&header)
            .and_then(|()| sections.iter().try_for_each(|section| buffer.write_all(section)))
            .and_then(|()| buffer.flush())
            .and_then(|()| if durable { file.sync_data() } else { Ok(()) });
        written.map_err(IndexError::io("writing", path))
    }
}

/// Returns a section's checksum.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.iter_mut().zip(blake3::hash(bytes).as_bytes()).for_each(|(to, from)| *to = *from);
    sum
}
