//! The one place where files are mapped.
#![allow(unsafe_code)]

use std::fs::File;

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};

/// Maps a whole file for reading.
///
/// # Errors
/// What the system says.
pub(crate) fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: a mapped file must not change. The index's files are written under other names, renamed when whole, and
    // never opened for writing again; they lie in the user's own state directory, which nothing but us writes. Removing
    // one leaves the mapping as it is.
    unsafe { MmapOptions::new().map(file) }
}

/// Gives back the memory that a map's pages take in this process; they are mapped again when they are read.
pub(crate) fn unmap_pages(map: &Mmap) {
    // SAFETY: the map is of a file, is shared and never written to, so that what is read again is the same.
    unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) }.ok();
}
