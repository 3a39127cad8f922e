//! Segments: immutable files that an index consists of.
//!
//! A segment holds the analyses of some files in one mapped file: fixed records of files, chunks
//! and symbols, and dictionaries from terms, trigrams, names and paths to lists of them. The same
//! path may be in several segments: the newest counts, and the others are dead. Statistics cover
//! living files only, so that it doesn't matter how files are spread over segments.
//!
//! Every read is checked against the mapped length: a damaged file gives wrong answers at worst,
//! until its checksums are verified ([`MappedFile::verify`]), and is then rebuilt.

mod block_list;
mod build;
mod codec;
mod column;
mod details;
mod dictionary;
mod invert;
mod inverted_index;
mod layout;
mod letter_sets;
mod mapped_file;
mod mapped_segment;
mod memory_map;
mod merge;
mod record_blocks;
mod write;

pub use build::SegmentBuilder;
pub(crate) use codec::{ByteCursor, count_list_len, decode_counts, decode_uses, put_bytes, put_number};
pub use details::FileDetails;
pub use dictionary::Dictionary;
pub use inverted_index::{InvertedIndex, ReferenceLocation};
pub(crate) use layout::{DictionaryKind, format_version};
pub use layout::{FileRecord, SymbolRecord};
pub(crate) use letter_sets::{letter_set, may_contain, may_differ_by_one_letter};
pub use mapped_file::MappedFile;
pub use mapped_segment::Segment;
pub(crate) use memory_map::map_file;
pub use merge::merge_segments;

/// Numbers of documents within one segment: files, chunks or symbols.
pub type DocumentId = u32;
