//! Contents that are kept for an undo.
//!
//! Most are blobs of their own. The many small files of a first snapshot are put together into
//! packs of about 2 MiB, one blob each: thousands of little files would cost a hundred times the
//! work. [`PackIndex`] says where each content lies; it is only read when a blob of its own
//! is missing.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_protocol::ContentHash;
use journeyman_store::{Blobs, Durability, PutOutcome, StoreError};

use crate::contents::blob_usage::BlobUsage;
use crate::contents::pack_index::{PackIndex, PackedBlob};
use crate::error::WorkspaceError;
use crate::state::lock::state_error;

/// From so many files to be kept at once, packs are worth it.
pub(crate) const MIN_FILES_TO_PACK: usize = 128;
/// A pack is closed when it has so many bytes: large enough to be cheap, small enough to unpack for
/// one file.
const PACK_TARGET_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of packs kept unpacked, some 8 MiB: an undo goes through the files of several
/// directories in turn.
const MAX_UNPACKED_PACKS: usize = 4;
/// Larger contents are blobs of their own.
const MAX_PACKED_FILE_BYTES: usize = 128 * 1024;
/// A pack is packed anew when not more than one part in so many of it is needed.
const REPACK_DIVISOR: u64 = 2;
/// The contents of one project.
#[derive(Debug)]
pub(crate) struct BlobStore {
    blobs: Arc<Blobs>,
    usage: BlobUsage,
    index: PackIndex,
    /// The packs that were unpacked last, the newest at the end. Files of one directory lie
    /// together, in as many packs as threads read them.
    unpacked: Mutex<Vec<(ContentHash, Arc<Vec<u8>>)>>,
    /// The number of puts that [`BlobStore::sync`] has to wait for, and how many of them are on
    /// the disk.
    noted: AtomicU64,
    synced: AtomicU64,
    syncing: Mutex<()>,
    /// Blobs that this process found to be whole.
    verified: Mutex<HashSet<ContentHash>>,
}

/// The condition of a kept content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobCondition {
    /// The content is as it was stored.
    Whole,
    /// A file with this hash as its name exists, but its content doesn't match.
    Damaged,
    /// The content is missing.
    Missing,
}

impl BlobStore {
    pub(crate) fn new(blobs: Arc<Blobs>, state_dir: &Path) -> Self {
        Self {
            blobs,
            usage: BlobUsage::new(state_dir),
            index: PackIndex::new(state_dir),
            unpacked: Mutex::default(),
            noted: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            syncing: Mutex::default(),
            verified: Mutex::default(),
        }
    }

    /// Returns the state directory whose index says where packed contents lie.
    pub(crate) fn dir(&self) -> &Path {
        self.index.dir()
    }

    /// Returns the blobs beneath, for what isn't a file's content.
    pub(crate) fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Returns the record of this project's blobs.
    pub(crate) fn usage(&self) -> &BlobUsage {
        &self.usage
    }

    /// Keeps a content.
    pub(crate) fn put(&self, bytes: &[u8], durability: Durability) -> Result<ContentHash, WorkspaceError> {
        let note = &mut |hash: &ContentHash, stored| self.usage.note_put(hash, stored);
        let hash = self.blobs.put_with_callback(bytes, durability, note)?;
        if durability == Durability::Later {
            self.note_unsynced();
        }
        Ok(hash)
    }

    /// Stores data other than a file's content. If it is stored already, no [`BlobStore::sync`] is
    /// needed.
    pub(crate) fn put_metadata(&self, bytes: &[u8]) -> Result<ContentHash, WorkspaceError> {
        let mut is_new = false;
        let note = &mut |hash: &ContentHash, stored| {
            is_new |= matches!(stored, PutOutcome::New(_));
            self.usage.note_put(hash, stored)
        };
        let hash = self.blobs.put_with_callback(bytes, Durability::Later, note)?;
        if is_new {
            self.note_unsynced();
        }
        Ok(hash)
    }

    /// Renews the blob with this hash as if it had just been put; returns false if there is none
    /// outside of packs. Reads the blob the first time, so that nothing relies on a damaged one.
    pub(crate) fn touch_blob(&self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        if !self.blobs.touch(hash)? {
            return Ok(false);
        }
        let is_known = self.lock_verified().contains(hash);
        if !is_known {
            if self.read_intact_blob(hash)?.is_none() {
                return Ok(false);
            }
            self.lock_verified().insert(*hash);
        }
        let noted = self.usage.note_put(hash, PutOutcome::Already);
        noted.map_err(|source| state_error("write", self.usage.path(), source))?;
        Ok(true)
    }

    /// Records that something was put that [`BlobStore::sync`] has to wait for.
    pub(crate) fn note_unsynced(&self) {
        self.noted.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns true if something may not be on the disk yet.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.noted.load(Ordering::Acquire) != self.synced.load(Ordering::Acquire)
    }

    /// Waits until all that was put is on the disk.
    pub(crate) fn sync(&self) -> Result<(), WorkspaceError> {
        // Held meanwhile: whoever finds nothing to wait for has waited for the others.
        let _syncing = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = self.noted.load(Ordering::Acquire);
        if noted != self.synced.load(Ordering::Acquire) {
            self.blobs.sync()?;
            self.index.sync()?;
            self.synced.store(noted, Ordering::Release);
        }
        Ok(())
    }

    /// Returns true if [`BlobStore::sync`], where it waits at all, waits for what was written in
    /// `dir` too.
    pub(crate) fn shares_disk(&self, dir: &Path) -> bool {
        let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
        device(self.blobs.dir()).is_some_and(|ours| device(dir) == Some(ours))
    }

    /// Returns true if the content is here. It isn't read.
    pub(crate) fn contains(&self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        if self.blobs.contains(hash)? {
            return Ok(true);
        }
        match self.index.position_of(hash)? {
            Some(place) => Ok(self.blobs.contains(&place.pack)?),
            None => Ok(false),
        }
    }

    /// Returns true if the content is stored, and keeps it from then on even if another project
    /// stored it. A content outside of packs is read, so that nothing relies on a damaged one; a
    /// pack would have to be unpacked for that.
    pub(crate) fn claim_existing(&self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        if self.read_intact_blob(hash)?.is_some() {
            let noted = self.usage.note_put(hash, PutOutcome::Already);
            noted.map_err(|source| state_error("write", self.usage.path(), source))?;
            return Ok(true);
        }
        match self.index.position_of(hash)? {
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

    /// Reads a blob; `None` if it is missing or damaged, which are treated alike.
    pub(crate) fn read_intact_blob(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, WorkspaceError> {
        match self.blobs.get(hash) {
            Err(StoreError::BlobDamaged { .. }) => Ok(None),
            other => Ok(other?),
        }
    }

    /// Reads a content; `None` if it is missing or damaged.
    pub(crate) fn get(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, WorkspaceError> {
        if let Some(bytes) = self.read_intact_blob(hash)? {
            return Ok(Some(bytes));
        }
        let Some(place) = self.index.position_of(hash)? else { return Ok(None) };
        let Some(pack) = self.load_pack(&place.pack)? else { return Ok(None) };
        let bytes = usize::try_from(place.offset)
            .ok()
            .and_then(|offset| pack.get(offset..))
            .and_then(|rest| rest.get(..usize::try_from(place.length).ok()?));
        Ok(bytes.filter(|bytes| ContentHash::of(bytes) == *hash).map(<[u8]>::to_vec))
    }

    /// Returns a lookup for many contents, which looks for each pack once.
    pub(crate) fn lookup(&self) -> BlobLookup<'_> {
        BlobLookup { blob_store: self, packs: HashMap::new() }
    }

    /// Discards what is cached about packs, as some may have been removed.
    pub(crate) fn invalidate_packs(&self) {
        self.index.invalidate();
        self.lock_unpacked().clear();
        self.lock_verified().clear();
    }

    /// Returns the pack that holds the content.
    pub(crate) fn pack_of(&self, hash: &ContentHash) -> Result<Option<ContentHash>, WorkspaceError> {
        Ok(self.index.position_of(hash)?.map(|place| place.pack))
    }

    /// Moves the needed contents of mostly unneeded packs into new packs. Returns each old pack
    /// with its new ones. Nobody else may put contents meanwhile.
    pub(crate) fn repack(
        &self,
        is_kept: impl Fn(&ContentHash) -> bool,
        is_needed: impl Fn(&ContentHash) -> bool,
    ) -> Result<Vec<(ContentHash, Vec<ContentHash>)>, WorkspaceError> {
        let mut moved = Vec::new();
        for (old, contents) in self.index.packs()?.into_iter().filter(|(pack, _)| is_kept(pack)) {
            let size = |contents: &[PackedBlob]| {
                contents.iter().map(|(_, _, length)| u64::from(*length)).sum::<u64>()
            };
            let needed: Vec<PackedBlob> =
                contents.iter().copied().filter(|(hash, ..)| is_needed(hash)).collect();
            if size(&needed) * REPACK_DIVISOR > size(&contents) {
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

    /// Drops the index entries of packs that aren't kept. Nobody else may put contents meanwhile.
    pub(crate) fn retain_packs(&self, is_kept: impl Fn(&ContentHash) -> bool) -> Result<(), WorkspaceError> {
        if self.index.retain_packs(is_kept)? {
            self.invalidate_packs();
        }
        Ok(())
    }

    fn lock_unpacked(&self) -> MutexGuard<'_, Vec<(ContentHash, Arc<Vec<u8>>)>> {
        self.unpacked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_verified(&self) -> MutexGuard<'_, HashSet<ContentHash>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load_pack(&self, hash: &ContentHash) -> Result<Option<Arc<Vec<u8>>>, WorkspaceError> {
        if let Some((_, bytes)) = self.lock_unpacked().iter().find(|(known, _)| known == hash) {
            return Ok(Some(bytes.clone()));
        }
        let Some(bytes) = self.read_intact_blob(hash)?.map(Arc::new) else { return Ok(None) };
        let mut unpacked = self.lock_unpacked();
        if unpacked.len() >= MAX_UNPACKED_PACKS {
            unpacked.remove(0);
        }
        unpacked.push((*hash, bytes.clone()));
        drop(unpacked);
        Ok(Some(bytes))
    }

    /// Begins a pack, unless there are too many already.
    pub(crate) fn begin_pack(&self) -> Option<PackBuilder<'_>> {
        (!self.index.is_full()).then(|| PackBuilder {
            blob_store: self,
            bytes: Vec::new(),
            contents: Vec::new(),
        })
    }
}

/// Looks up many contents, each pack once.
pub(crate) struct BlobLookup<'a> {
    blob_store: &'a BlobStore,
    packs: HashMap<ContentHash, bool>,
}

impl BlobLookup<'_> {
    /// Returns true if the content is stored, as [`BlobStore::contains`] does.
    pub(crate) fn contains(&mut self, hash: &ContentHash) -> Result<bool, WorkspaceError> {
        let Some(place) = self.blob_store.index.position_of(hash)? else {
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
        let Some((offset, length)) = place.filter(|_| bytes.len() <= MAX_PACKED_FILE_BYTES) else {
            return self.blob_store.put(bytes, Durability::Later);
        };
        let hash = ContentHash::of(bytes);
        self.bytes.extend_from_slice(bytes);
        self.contents.push((hash, offset, length));
        if self.bytes.len() >= PACK_TARGET_BYTES {
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
        self.blob_store.index.add_pack(pack, &self.contents)?;
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
        for cut in [0, 5, 76, index.len() - 1] {
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
            let (end, damaged) = crate::contents::pack_index::read_sections(&damaged, |_| {});
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

    #[test]
    fn contents_are_not_on_disk_while_another_thread_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("blobs");
        let blob_store = BlobStore::new(Arc::new(Blobs::open(&place, 1 << 30).unwrap()), dir.path());
        blob_store.put(b"content", Durability::Later).unwrap();
        // The flush opens the directory. Here it waits until somebody opens the other end.
        std::fs::rename(&place, dir.path().join("away")).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &place, kind, mode, 0).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let (open, unsynced) = std::thread::scope(|scope| {
            for _ in 0..2 {
                let (tell, blob_store) = (tell.clone(), &blob_store);
                scope.spawn(move || {
                    // A pipe may not be flushed, which is no matter here.
                    drop(blob_store.sync());
                    tell.send("a thread says that they are").unwrap();
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            let unsynced = blob_store.is_unsynced();
            tell.send("the flush goes on").unwrap();
            let open = std::fs::File::options().read(true).write(true).open(&place).unwrap();
            (open, unsynced)
        });
        assert!(unsynced);
        assert_eq!(told.recv().unwrap(), "the flush goes on");
        drop(open);
    }
}
