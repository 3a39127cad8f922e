//! Contents that are kept for an undo.
//!
//! Most are blobs of their own. The many small files of a first snapshot are put together into
//! packs of about 2 MiB, one blob each: thousands of little files would cost a hundred times the
//! work. `packs` in the state directory says where each content lies; it is appended to, and only
//! read when a blob of its own is missing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_protocol::ContentHash;
use journeyman_store::{Blobs, Durability, StoreError, Stored};

use crate::contents::blob_usage::BlobUsage;
use crate::error::WorkspaceError;
use crate::state::lock::{make_private_dir, own_file, replace_durably, state_error};

/// From so many files to be kept at once, packs are worth it.
pub(crate) const PACK_FROM: usize = 128;
/// A pack is closed when it has so many bytes: large enough to be cheap, small enough to unpack for
/// one file.
const PACK_BYTES: usize = 2 * 1024 * 1024;
/// So many packs are kept unpacked, some 8 MiB: an undo goes through the files of several
/// directories in turn.
const MAX_UNPACKED_PACKS: usize = 4;
/// Larger contents are blobs of their own.
const PACKED_FILE_BYTES: usize = 128 * 1024;
/// With an index larger than this no more packs are made: it would take too much memory to read.
const INDEX_BYTES: u64 = 32 * 1024 * 1024;
/// A pack is packed anew when not more than one part in so many of it is needed.
const REPACK_FROM: u64 = 2;
/// Hash, offset and length of one content.
const PLACE_BYTES: usize = 32 + 4 + 4;
/// First bytes of each section of the index.
const SECTION_MAGIC: &[u8; 8] = b"jmpack\x00\x01";
/// The section's checksum, the pack's hash, and the number of contents.
const HEAD_BYTES: usize = 8 + 32 + 32 + 4;

/// The position of a content in a pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackPosition {
    pub(crate) pack: ContentHash,
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

#[derive(Debug, Default)]
struct PackIndex {
    places: HashMap<ContentHash, PackPosition>,
    /// So much of the file was read and believed.
    believed: u64,
    /// So long it was then. Another process, or a copy of the tree, may have added to it since.
    length: u64,
    /// The packs that were unpacked last, the newest at the end. Files of one directory lie
    /// together, in as many packs as threads read them.
    unpacked: Vec<(ContentHash, Arc<Vec<u8>>)>,
}

/// The contents of one project.
#[derive(Debug)]
pub(crate) struct BlobStore {
    blobs: Arc<Blobs>,
    path: PathBuf,
    ledger: BlobUsage,
    index: Mutex<PackIndex>,
    unsynced: AtomicBool,
    /// True if the index was written to since it was synced.
    noted: AtomicBool,
    /// Blobs that this process found to be whole.
    verified: Mutex<HashSet<ContentHash>>,
}

/// The condition of a kept content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobCondition {
    /// As it was put.
    Whole,
    /// Something of its name is here, and isn't it.
    Damaged,
    /// Not, or not any more.
    Missing,
}

impl BlobStore {
    pub(crate) fn new(blobs: Arc<Blobs>, state_dir: &Path) -> Self {
        let path = state_dir.join("packs");
        let ledger = BlobUsage::new(state_dir);
        Self {
            blobs,
            path,
            ledger,
            index: Mutex::default(),
            unsynced: AtomicBool::new(false),
            noted: AtomicBool::new(false),
            verified: Mutex::default(),
        }
    }

    /// The state directory whose index says where packed contents lie.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The blobs beneath, for what isn't a file's content.
    pub(crate) fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The book of what this project put.
    pub(crate) fn usage(&self) -> &BlobUsage {
        &self.ledger
    }

    /// Keeps a content.
    pub(crate) fn put(&self, bytes: &[u8], durability: Durability) -> Result<ContentHash, WorkspaceError> {
        let note = &mut |hash: &ContentHash, stored| self.ledger.note_put(hash, stored);
        let hash = self.blobs.put_noting(bytes, durability, note)?;
        if durability == Durability::Later {
            self.note_unsynced();
        }
        Ok(hash)
    }

    /// Keeps what isn't a file's content. What is kept already needs no [`BlobStore::sync`].
    pub(crate) fn put_new(&self, bytes: &[u8]) -> Result<ContentHash, WorkspaceError> {
        let mut is_new = false;
        let note = &mut |hash: &ContentHash, stored| {
            is_new |= matches!(stored, Stored::New(_));
            self.ledger.note_put(hash, stored)
        };
        let hash = self.blobs.put_noting(bytes, Durability::Later, note)?;
        if is_new {
            self.note_unsynced();
        }
        Ok(hash)
    }

    /// Returns true if there is a blob of its own with this hash, which counts as put just now. The
    /// first time it is read, so that nothing relies on a damaged one.
    pub(crate) fn touch_blob(&self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        if !self.blobs.renew(hash)? {
            return Ok(false);
        }
        let is_known = self.lock_verified().contains(hash);
        if !is_known {
            if self.whole_blob(hash)?.is_none() {
                return Ok(false);
            }
            self.lock_verified().insert(*hash);
        }
        let noted = self.ledger.note_put(hash, Stored::Already);
        noted.map_err(|source| state_error("write", self.ledger.path(), source))?;
        Ok(true)
    }

    /// Something was put that a [`BlobStore::sync`] has to wait for.
    pub(crate) fn note_unsynced(&self) {
        self.unsynced.store(true, Ordering::Release);
    }

    /// Returns true if something may not be on the disk yet.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.unsynced.load(Ordering::Acquire)
    }

    /// Waits until all that was put is on the disk.
    pub(crate) fn sync(&self) -> Result<(), WorkspaceError> {
        if !self.unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.blobs.sync().map_err(WorkspaceError::from).and_then(|()| self.sync_index());
        synced.inspect_err(|_| self.note_unsynced())
    }

    /// Returns true if [`BlobStore::sync`], where it waits at all, waits for what was written in
    /// `dir` too.
    pub(crate) fn shares_disk(&self, dir: &Path) -> bool {
        let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
        device(self.blobs.dir()).is_some_and(|ours| device(dir) == Some(ours))
    }

    fn sync_index(&self) -> Result<(), WorkspaceError> {
        if !self.noted.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = File::open(&self.path).and_then(|file| file.sync_data());
        synced.map_err(|source| {
            self.noted.store(true, Ordering::Release);
            state_error("flush", &self.path, source)
        })
    }

    /// Returns true if the content is here. It isn't read.
    pub(crate) fn contains(&self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        if self.blobs.contains(hash)? {
            return Ok(true);
        }
        match self.position_of(hash)? {
            Some(place) => Ok(self.blobs.contains(&place.pack)?),
            None => Ok(false),
        }
    }

    /// Returns true if the content is here; then it stays, whoever put it. One that is a blob of
    /// its own is read, so that nothing relies on a damaged one; a pack would have to be unpacked
    /// for that.
    pub(crate) fn rely_on(&self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        if self.whole_blob(hash)?.is_some() {
            let noted = self.ledger.note_put(hash, Stored::Already);
            noted.map_err(|source| state_error("write", self.ledger.path(), source))?;
            return Ok(true);
        }
        match self.position_of(hash)? {
            Some(place) => Ok(self.blobs.contains(&place.pack)?),
            None => Ok(false),
        }
    }

    /// Reads the content to tell how it is kept.
    pub(crate) fn verify(&self, hash: &ContentHash) -> Result<BlobCondition, WorkspaceError> {
        Ok(match self.get(hash)? {
            Some(_) => BlobCondition::Whole,
            None if self.contains(hash)? => BlobCondition::Damaged,
            None => BlobCondition::Missing,
        })
    }

    /// The bytes of a blob; `None` if it isn't here or damaged, which is as good as not being here.
    pub(crate) fn whole_blob(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, WorkspaceError> {
        match self.blobs.get(hash) {
            Err(StoreError::BlobDamaged { .. }) => Ok(None),
            other => Ok(other?),
        }
    }

    /// The content, or `None` if it isn't here (any more) or damaged.
    pub(crate) fn get(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, WorkspaceError> {
        if let Some(bytes) = self.whole_blob(hash)? {
            return Ok(Some(bytes));
        }
        let Some(place) = self.position_of(hash)? else { return Ok(None) };
        let Some(pack) = self.unpacked(&place.pack)? else { return Ok(None) };
        let bytes = usize::try_from(place.offset)
            .ok()
            .and_then(|offset| pack.get(offset..))
            .and_then(|rest| rest.get(..usize::try_from(place.length).ok()?));
        Ok(bytes.filter(|bytes| ContentHash::of(bytes) == *hash).map(<[u8]>::to_vec))
    }

    /// For asking after many contents: each pack is looked for once.
    pub(crate) fn reader(&self) -> BlobReader<'_> {
        BlobReader { blob_store: self, packs: HashMap::new() }
    }

    /// Packs may have been removed: what is known of them is read again.
    pub(crate) fn forget_packs(&self) {
        *self.lock() = PackIndex::default();
        self.lock_verified().clear();
    }

    /// The pack in which the content lies.
    pub(crate) fn pack_of(&self, hash: &ContentHash) -> Result<Option<ContentHash>, WorkspaceError> {
        Ok(self.position_of(hash)?.map(|place| place.pack))
    }

    /// Puts those contents into new packs that are needed of kept packs which are mostly not; gives
    /// each of these with the new ones. Nobody else may put contents meanwhile.
    pub(crate) fn repack(
        &self,
        is_kept: impl Fn(&ContentHash) -> bool,
        is_needed: impl Fn(&ContentHash) -> bool,
    ) -> Result<Vec<(ContentHash, Vec<ContentHash>)>, WorkspaceError> {
        let mut moved = Vec::new();
        for (old, contents) in self.packs()?.into_iter().filter(|(pack, _)| is_kept(pack)) {
            let size = |contents: &[PackedBlob]| {
                contents.iter().map(|(_, _, length)| u64::from(*length)).sum::<u64>()
            };
            let needed: Vec<PackedBlob> =
                contents.iter().copied().filter(|(hash, ..)| is_needed(hash)).collect();
            if size(&needed) * REPACK_FROM > size(&contents) {
                continue;
            }
            let Some(mut pack) = self.begin_pack() else { break };
            for (hash, ..) in &needed {
                if let Some(bytes) = self.get(hash)? {
                    pack.put(&bytes)?;
                }
            }
            pack.close()?;
            let mut new = HashSet::new();
            for (hash, ..) in &needed {
                new.extend(self.pack_of(hash)?.filter(|new| *new != old));
            }
            moved.push((old, new.into_iter().collect()));
        }
        self.sync()?;
        Ok(moved)
    }

    /// Forgets what lay in packs that aren't kept. Nobody else may put contents meanwhile.
    pub(crate) fn keep_packs(&self, is_kept: impl Fn(&ContentHash) -> bool) -> Result<(), WorkspaceError> {
        let packs = self.packs()?;
        if packs.iter().all(|(pack, _)| is_kept(pack)) {
            return Ok(());
        }
        let mut text = Vec::new();
        for (pack, contents) in packs.iter().filter(|(pack, _)| is_kept(pack)) {
            text.extend(index_section(pack, contents));
        }
        replace_durably(&self.path, &text).map_err(|source| state_error("replace", &self.path, source))?;
        self.forget_packs();
        Ok(())
    }

    /// All packs, with what lies in them.
    fn packs(&self) -> Result<BTreeMap<ContentHash, Vec<PackedBlob>>, WorkspaceError> {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|file| file.take(INDEX_BYTES * 2).read_to_end(&mut bytes));
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

    fn lock_verified(&self) -> MutexGuard<'_, HashSet<ContentHash>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, PackIndex> {
        // Both parts are replaced whole, so that they are valid after a panic.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unpacked(&self, hash: &ContentHash) -> Result<Option<Arc<Vec<u8>>>, WorkspaceError> {
        if let Some((_, bytes)) = self.lock().unpacked.iter().find(|(known, _)| known == hash) {
            return Ok(Some(bytes.clone()));
        }
        let Some(bytes) = self.whole_blob(hash)?.map(Arc::new) else { return Ok(None) };
        let mut index = self.lock();
        if index.unpacked.len() >= MAX_UNPACKED_PACKS {
            index.unpacked.remove(0);
        }
        index.unpacked.push((*hash, bytes.clone()));
        drop(index);
        Ok(Some(bytes))
    }

    fn position_of(&self, hash: &ContentHash) -> Result<Option<PackPosition>, WorkspaceError> {
        let mut index = self.lock();
        if let Some(place) = index.places.get(hash) {
            return Ok(Some(*place));
        }
        self.read_on(&mut index).map_err(|source| state_error("read", &self.path, source))?;
        Ok(index.places.get(hash).copied())
    }

    /// Reads what the index has grown by.
    fn read_on(&self, index: &mut PackIndex) -> std::io::Result<()> {
        let length = match std::fs::metadata(&self.path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        if length < index.length {
            *index = PackIndex { unpacked: std::mem::take(&mut index.unpacked), ..PackIndex::default() };
        }
        if length == index.length {
            return Ok(());
        }
        let mut bytes = Vec::new();
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(index.believed))?;
        file.take(INDEX_BYTES * 2).read_to_end(&mut bytes)?;
        let (believed, _) = read_sections(&bytes, |section| index.places.extend(section));
        index.believed += believed as u64;
        index.length = length;
        Ok(())
    }

    /// Says where the contents of a pack lie.
    fn note_pack(&self, pack: ContentHash, contents: &[PackedBlob]) -> Result<(), WorkspaceError> {
        let section = index_section(&pack, contents);
        if let Some(dir) = self.path.parent() {
            make_private_dir(dir)?;
        }
        let mut index = self.lock();
        let file = own_file().append(true).create(true).open(&self.path);
        let written = file.and_then(|mut file| file.write_all(&section));
        self.noted.store(true, Ordering::Release);
        written.map_err(|source| state_error("write", &self.path, source))?;
        let place = |offset, length| PackPosition { pack, offset, length };
        index.places.extend(contents.iter().map(|(hash, offset, length)| (*hash, place(*offset, *length))));
        Ok(())
    }

    /// Begins a pack, unless there are too many already.
    pub(crate) fn begin_pack(&self) -> Option<PackBuilder<'_>> {
        let size = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        (size < INDEX_BYTES).then(|| PackBuilder {
            blob_store: self,
            bytes: Vec::new(),
            contents: Vec::new(),
        })
    }
}

/// Looks up many contents, each pack once.
pub(crate) struct BlobReader<'a> {
    blob_store: &'a BlobStore,
    packs: HashMap<ContentHash, bool>,
}

impl BlobReader<'_> {
    /// As [`BlobStore::contains`].
    pub(crate) fn has(&mut self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        let Some(place) = self.blob_store.position_of(hash)? else {
            return Ok(self.blob_store.blobs.contains(hash)?);
        };
        let known = match self.packs.get(&place.pack) {
            Some(known) => *known,
            None => {
                let is_there = self.blob_store.blobs.contains(&place.pack)?;
                self.packs.insert(place.pack, is_there);
                is_there
            }
        };
        Ok(known || self.blob_store.blobs.contains(hash)?)
    }
}

/// A content's hash, offset and length in a pack.
type PackedBlob = (ContentHash, u32, u32);

impl PackPosition {
    /// Returns true if the pack has this content here.
    pub(crate) fn holds(&self, pack: &[u8], hash: &ContentHash) -> bool {
        let bytes = usize::try_from(self.offset)
            .ok()
            .and_then(|offset| pack.get(offset..))
            .and_then(|rest| rest.get(..usize::try_from(self.length).ok()?));
        bytes.is_some_and(|bytes| ContentHash::of(bytes) == *hash)
    }
}

/// A section with these contents of one pack; nothing without any.
pub(crate) fn section_of(contents: &[(ContentHash, PackPosition)]) -> Vec<u8> {
    let Some((_, PackPosition { pack, .. })) = contents.first() else { return Vec::new() };
    let packed: Vec<PackedBlob> =
        contents.iter().map(|(hash, place)| (*hash, place.offset, place.length)).collect();
    index_section(pack, &packed)
}

/// Returns the places that a damaged section seems to name. None of them is to be trusted.
pub(crate) fn salvage_section(bytes: &[u8]) -> Vec<(ContentHash, PackPosition)> {
    let Some(pack) = bytes.get(HEAD_BYTES - 36..HEAD_BYTES - 4).and_then(|pack| pack.first_chunk::<32>())
    else {
        return Vec::new();
    };
    index_positions(ContentHash::from(*pack), bytes.get(HEAD_BYTES..).unwrap_or_default())
}

/// Returns the index section of one pack.
fn index_section(pack: &ContentHash, contents: &[PackedBlob]) -> Vec<u8> {
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
    let (head, _) = bytes.split_at_checked(HEAD_BYTES)?;
    let (magic, head) = head.split_first_chunk::<8>()?;
    let (sum, head) = head.split_first_chunk::<32>()?;
    let (pack, count) = head.split_first_chunk::<32>()?;
    let count = u32::from_le_bytes(*count.first_chunk::<4>()?) as usize;
    let end = HEAD_BYTES.checked_add(count.checked_mul(PLACE_BYTES)?)?;
    let (section, rest) = bytes.split_at_checked(end)?;
    let body = section.get(SECTION_MAGIC.len() + sum.len()..)?;
    if magic != SECTION_MAGIC || ContentHash::of(body) != ContentHash::from(*sum) {
        return None;
    }
    Some((index_positions(ContentHash::from(*pack), section.get(HEAD_BYTES..)?), rest))
}

fn index_positions(pack: ContentHash, bytes: &[u8]) -> Vec<(ContentHash, PackPosition)> {
    let (places, _) = bytes.as_chunks::<PLACE_BYTES>();
    let places = places.iter().filter_map(|place| {
        let (hash, place) = place.split_first_chunk::<32>()?;
        let (offset, length) = place.split_first_chunk::<4>()?;
        let (offset, length) = (u32::from_le_bytes(*offset), u32::from_le_bytes(*length.first_chunk()?));
        Some((ContentHash::from(*hash), PackPosition { pack, offset, length }))
    });
    places.collect()
}

/// Reads all whole sections. Gives where the last of them ends, and the bytes before that which are
/// none: a damaged section costs itself alone, and a torn one at the end may yet be completed.
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

/// Contents being put together.
pub(crate) struct PackBuilder<'a> {
    blob_store: &'a BlobStore,
    bytes: Vec<u8>,
    contents: Vec<PackedBlob>,
}

impl PackBuilder<'_> {
    /// Keeps a content, once the pack is closed.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<ContentHash, WorkspaceError> {
        let place = u32::try_from(self.bytes.len()).ok().zip(u32::try_from(bytes.len()).ok());
        let Some((offset, length)) = place.filter(|_| bytes.len() <= PACKED_FILE_BYTES) else {
            return self.blob_store.put(bytes, Durability::Later);
        };
        let hash = ContentHash::of(bytes);
        self.bytes.extend_from_slice(bytes);
        self.contents.push((hash, offset, length));
        if self.bytes.len() >= PACK_BYTES {
            self.close()?;
        }
        Ok(hash)
    }

    /// Stores what was put.
    pub(crate) fn close(&mut self) -> Result<(), WorkspaceError> {
        if self.contents.is_empty() {
            return Ok(());
        }
        let pack = self.blob_store.put(&self.bytes, Durability::Later)?;
        self.blob_store.note_pack(pack, &self.contents)?;
        self.bytes.clear();
        self.contents.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_contents_come_back_in_any_process() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Arc::new(Blobs::open(&dir.path().join("blobs"), 1 << 30).unwrap());
        let blob_store = BlobStore::new(blobs.clone(), dir.path());
        let contents: Vec<Vec<u8>> = (0..300_usize).map(|n| vec![n.to_le_bytes()[0]; n * 97]).collect();
        let mut pack = blob_store.begin_pack().unwrap();
        let hashes: Vec<ContentHash> = contents.iter().map(|bytes| pack.put(bytes).unwrap()).collect();
        pack.close().unwrap();
        blob_store.sync().unwrap();
        for blob_store in [blob_store, BlobStore::new(blobs.clone(), dir.path())] {
            for (hash, bytes) in hashes.iter().zip(&contents) {
                assert!(blob_store.contains(hash).unwrap());
                assert_eq!(blob_store.get(hash).unwrap().as_ref(), Some(bytes));
            }
            assert!(!blob_store.contains(&ContentHash::of(b"never put")).unwrap());
        }
        let index = std::fs::read(dir.path().join("packs")).unwrap();
        for cut in [0, 5, HEAD_BYTES, index.len() - 1] {
            std::fs::write(dir.path().join("packs"), &index[..cut]).unwrap();
            let blob_store = BlobStore::new(blobs.clone(), dir.path());
            assert_eq!(blob_store.get(hashes.last().unwrap()).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_section_of_the_index_costs_its_own_pack_alone() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Arc::new(Blobs::open(&dir.path().join("blobs"), 1 << 30).unwrap());
        let blob_store = BlobStore::new(blobs.clone(), dir.path());
        let mut ends = Vec::new();
        let put = |round: u8| {
            let mut pack = blob_store.begin_pack().unwrap();
            let hash = pack.put(&[round; 40]).unwrap();
            pack.put(&[round + 100; 40]).unwrap();
            pack.close().unwrap();
            hash
        };
        let hashes: Vec<ContentHash> = (0..3)
            .map(|round| {
                let hash = put(round);
                ends.push(std::fs::metadata(dir.path().join("packs")).unwrap().len() as usize);
                hash
            })
            .collect();
        let index = std::fs::read(dir.path().join("packs")).unwrap();
        for at in [0, 9, 80, 120] {
            let mut damaged = index.clone();
            damaged[ends[0] + at % (ends[1] - ends[0])] ^= 0x10;
            std::fs::write(dir.path().join("packs"), &damaged).unwrap();
            let again = BlobStore::new(blobs.clone(), dir.path());
            let found: Vec<bool> = hashes.iter().map(|hash| again.get(hash).unwrap().is_some()).collect();
            assert_eq!(found, [true, false, true], "byte {at}");
            let (end, damaged) = read_sections(&damaged, |_| {});
            assert_eq!((end, damaged.len()), (index.len(), 1));
            assert_eq!(damaged[0], ends[0]..ends[1]);
        }
    }

    #[test]
    fn what_another_one_packed_later_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Arc::new(Blobs::open(&dir.path().join("blobs"), 1 << 30).unwrap());
        let (ours, theirs) = (BlobStore::new(blobs.clone(), dir.path()), BlobStore::new(blobs, dir.path()));
        for round in 0..3_u8 {
            let bytes = [round; 40];
            assert_eq!(theirs.get(&ContentHash::of(&bytes)).unwrap(), None);
            let mut pack = ours.begin_pack().unwrap();
            let hash = pack.put(&bytes).unwrap();
            pack.close().unwrap();
            assert_eq!(theirs.get(&hash).unwrap(), Some(bytes.to_vec()), "round {round}");
        }
    }

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
