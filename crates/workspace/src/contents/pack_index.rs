//! The index of packs: where each packed content lies.
//!
//! One file of sections, one for each pack; it is appended to, and read as far as it has grown.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use journeyman_protocol::ContentHash;

use crate::error::WorkspaceError;
use crate::state::lock::{make_private_dir, private_file_options, replace_durably, state_error};

/// Maximum size of the index; beyond it no more packs are made, because reading it would take too
/// much memory.
const MAX_INDEX_BYTES: u64 = 32 * 1024 * 1024;
/// Hash, offset and length of one content.
const POSITION_BYTES: usize = 32 + 4 + 4;
/// First bytes of each section of the index.
const SECTION_MAGIC: &[u8; 8] = b"jmpack\x00\x01";
/// The section's checksum, the pack's hash, and the number of contents.
const SECTION_HEADER_BYTES: usize = 8 + 32 + 32 + 4;

/// The position of a content in a pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackPosition {
    pub(crate) pack: ContentHash,
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

/// The part of the index that was read.
#[derive(Debug, Default)]
struct KnownPositions {
    positions: HashMap<ContentHash, PackPosition>,
    /// The length of the whole sections that were read, in bytes.
    believed: u64,
    /// The length of the file then. Another process, or a copy of the tree, may have added to it
    /// since.
    length: u64,
}

/// The index of a project's packs.
#[derive(Debug)]
pub(crate) struct PackIndex {
    path: PathBuf,
    known: Mutex<KnownPositions>,
    /// True if the file was written to since it was synced.
    is_unsynced: AtomicBool,
}

impl PackIndex {
    pub(crate) fn new(state_dir: &Path) -> Self {
        let path = state_dir.join("packs");
        Self { path, known: Mutex::default(), is_unsynced: AtomicBool::new(false) }
    }

    /// Returns the state directory that the index is in.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Returns true if the index is too large to take more packs.
    pub(crate) fn is_full(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|found| found.len() >= MAX_INDEX_BYTES)
    }

    /// Makes the next call read the file again: packs may have been removed.
    pub(crate) fn invalidate(&self) {
        *self.lock() = KnownPositions::default();
    }

    /// Waits until the sections are on the disk.
    pub(crate) fn sync(&self) -> Result<(), WorkspaceError> {
        if !self.is_unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = File::open(&self.path).and_then(|file| file.sync_data());
        synced.map_err(|source| {
            self.is_unsynced.store(true, Ordering::Release);
            state_error("flush", &self.path, source)
        })
    }

    /// Returns all packs with their contents.
    pub(crate) fn packs(&self) -> Result<BTreeMap<ContentHash, Vec<PackedBlob>>, WorkspaceError> {
        let mut bytes = Vec::new();
        let read =
            File::open(&self.path).and_then(|file| file.take(MAX_INDEX_BYTES * 2).read_to_end(&mut bytes));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(state_error("read", &self.path, source)),
        }
        let mut packs: BTreeMap<ContentHash, Vec<PackedBlob>> = BTreeMap::new();
        read_sections(&bytes, |contents| {
            for (hash, PackPosition { pack, offset, length }) in contents {
                packs.entry(pack).or_default().push((hash, offset, length));
            }
        });
        Ok(packs)
    }

    /// Drops the sections of packs that aren't kept. Returns true if there were any. Nobody else
    /// may add packs meanwhile.
    pub(crate) fn retain_packs(
        &self,
        is_kept: impl Fn(&ContentHash) -> bool,
    ) -> Result<bool, WorkspaceError> {
        let packs = self.packs()?;
        if packs.keys().all(&is_kept) {
            return Ok(false);
        }
        let mut text = Vec::new();
        for (pack, contents) in packs.iter().filter(|(pack, _)| is_kept(pack)) {
            text.extend(encode_pack_section(pack, contents));
        }
        replace_durably(&self.path, &text).map_err(|source| state_error("replace", &self.path, source))?;
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, KnownPositions> {
        // Positions are only ever added or replaced whole, so they are valid after a panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the position of a content, if a pack has it.
    pub(crate) fn position_of(&self, hash: &ContentHash) -> Result<Option<PackPosition>, WorkspaceError> {
        let mut known = self.lock();
        if let Some(place) = known.positions.get(hash) {
            return Ok(Some(*place));
        }
        self.read_new_sections(&mut known).map_err(|source| state_error("read", &self.path, source))?;
        Ok(known.positions.get(hash).copied())
    }

    /// Reads what the index has grown by.
    fn read_new_sections(&self, known: &mut KnownPositions) -> std::io::Result<()> {
        let length = match std::fs::metadata(&self.path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        if length < known.length {
            *known = KnownPositions::default();
        }
        if length == known.length {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(known.believed))?;
        file.take(MAX_INDEX_BYTES * 2).read_to_end(&mut bytes)?;
        let (believed, _) = read_sections(&bytes, |section| known.positions.extend(section));
        known.believed += believed as u64;
        known.length = length;
        Ok(())
    }

    /// Says where the contents of a pack lie.
    pub(crate) fn add_pack(&self, pack: ContentHash, contents: &[PackedBlob]) -> Result<(), WorkspaceError> {
        let section = encode_pack_section(&pack, contents);
        if let Some(dir) = self.path.parent() {
            make_private_dir(dir)?;
        }
        let mut known = self.lock();
        let file = private_file_options().append(true).create(true).open(&self.path);
        let written = file.and_then(|mut file| file.write_all(&section));
        self.is_unsynced.store(true, Ordering::Release);
        written.map_err(|source| state_error("write", &self.path, source))?;
        let place = |offset, length| PackPosition { pack, offset, length };
        known
            .positions
            .extend(contents.iter().map(|(hash, offset, length)| (*hash, place(*offset, *length))));
        Ok(())
    }
}

/// A content's hash, offset and length in a pack.
pub(crate) type PackedBlob = (ContentHash, u32, u32);

impl PackPosition {
    /// Returns true if the pack has this content here.
    pub(crate) fn has_content(&self, pack: &[u8], hash: &ContentHash) -> bool {
        let bytes = usize::try_from(self.offset)
            .ok()
            .and_then(|offset| pack.get(offset..))
            .and_then(|rest| rest.get(..usize::try_from(self.length).ok()?));
        bytes.is_some_and(|bytes| ContentHash::of(bytes) == *hash)
    }
}

/// Encodes a section with these contents of one pack; empty without any.
pub(crate) fn encode_section(contents: &[(ContentHash, PackPosition)]) -> Vec<u8> {
    let Some((_, PackPosition { pack, .. })) = contents.first() else { return Vec::new() };
    let packed: Vec<PackedBlob> =
        contents.iter().map(|(hash, place)| (*hash, place.offset, place.length)).collect();
    encode_pack_section(pack, &packed)
}

/// Returns the places that a damaged section seems to name. None of them is to be trusted.
pub(crate) fn salvage_section(bytes: &[u8]) -> Vec<(ContentHash, PackPosition)> {
    let Some(pack) = bytes
        .get(SECTION_HEADER_BYTES - 36..SECTION_HEADER_BYTES - 4)
        .and_then(|pack| pack.first_chunk::<32>())
    else {
        return Vec::new();
    };
    parse_positions(ContentHash::from(*pack), bytes.get(SECTION_HEADER_BYTES..).unwrap_or_default())
}

/// Returns the index section of one pack.
fn encode_pack_section(pack: &ContentHash, contents: &[PackedBlob]) -> Vec<u8> {
    let mut body = pack.as_bytes().to_vec();
    body.extend_from_slice(&u32::try_from(contents.len()).unwrap_or_default().to_le_bytes());
    for (hash, offset, length) in contents {
        body.extend_from_slice(hash.as_bytes());
        body.extend_from_slice(&offset.to_le_bytes());
        body.extend_from_slice(&length.to_le_bytes());
    }
    let sum = ContentHash::of(&body);
    [SECTION_MAGIC.as_slice(), sum.as_bytes(), &body].concat()
}

/// One section's contents with their places, and the bytes after it.
type PackSection<'a> = (Vec<(ContentHash, PackPosition)>, &'a [u8]);

fn read_section(bytes: &[u8]) -> Option<PackSection<'_>> {
    let (head, _) = bytes.split_at_checked(SECTION_HEADER_BYTES)?;
    let (magic, head) = head.split_first_chunk::<8>()?;
    let (sum, head) = head.split_first_chunk::<32>()?;
    let (pack, count) = head.split_first_chunk::<32>()?;
    let count = u32::from_le_bytes(*count.first_chunk::<4>()?) as usize;
    let end = SECTION_HEADER_BYTES.checked_add(count.checked_mul(POSITION_BYTES)?)?;
    let (section, rest) = bytes.split_at_checked(end)?;
    let body = section.get(SECTION_MAGIC.len() + sum.len()..)?;
    if magic != SECTION_MAGIC || ContentHash::of(body) != ContentHash::from(*sum) {
        return None;
    }
    Some((parse_positions(ContentHash::from(*pack), section.get(SECTION_HEADER_BYTES..)?), rest))
}

fn parse_positions(pack: ContentHash, bytes: &[u8]) -> Vec<(ContentHash, PackPosition)> {
    let (places, _) = bytes.as_chunks::<POSITION_BYTES>();
    let places = places.iter().filter_map(|place| {
        let (hash, place) = place.split_first_chunk::<32>()?;
        let (offset, length) = place.split_first_chunk::<4>()?;
        let (offset, length) = (u32::from_le_bytes(*offset), u32::from_le_bytes(*length.first_chunk()?));
        Some((ContentHash::from(*hash), PackPosition { pack, offset, length }))
    });
    places.collect()
}

/// Reads all whole sections. Returns the end of the last one, and the byte ranges before it that
/// are no section: damage costs one section alone, and a torn section at the end may yet be
/// completed.
pub(crate) fn read_sections(
    bytes: &[u8],
    mut see: impl FnMut(Vec<(ContentHash, PackPosition)>),
) -> (usize, Vec<Range<usize>>) {
    let (mut at, mut end, mut damaged) = (0, 0, Vec::new());
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match read_section(rest) {
            Some((section, after)) => {
                if end < at {
                    damaged.push(end..at);
                }
                see(section);
                at = bytes.len() - after.len();
                end = at;
            }
            None => match rest.get(1..).and_then(|rest| memchr::memmem::find(rest, SECTION_MAGIC)) {
                Some(next) => at += 1 + next,
                None => break,
            },
        }
    }
    (end, damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_index_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _read = read_section(&bytes);
            let sum = ContentHash::of(&bytes);
            let recovered = [SECTION_MAGIC.as_slice(), sum.as_bytes(), &bytes].concat();
            let _read = read_section(&recovered);
        }
    }
}
