//! Mapping files into memory.
#![allow(unsafe_code)]

use std::fs::File;

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};

/// Maps a whole file for reading.
///
/// # Errors
/// The system's error.
pub(crate) fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: a mapped file must not change. The index's files are written under other names,
    // renamed when complete, and never opened for writing again; they lie in the user's own state
    // directory, which only this program writes. Removing a file leaves its mapping intact.
    unsafe { MmapOptions::new().map(file) }
}

/// Releases the memory of a map's pages in this process; they are mapped again when they are read.
pub(crate) fn unmap_pages(map: &Mmap) {
    // SAFETY: the map is of a file, is shared and never written to, so that reading it again gives
    // the same bytes.
    unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) }.ok();
}
