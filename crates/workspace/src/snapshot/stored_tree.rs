//! Serialization of trees: the stat cache of a project, and the trees of checkpoints.
//!
//! Both are compact binary records. The cache is one file in the state directory, checksummed and
//! thrown away when anything about it is wrong. A checkpoint's tree is cut into chunks of about 256
//! files, at places that only the paths decide, and each chunk is a blob: a checkpoint of a large
//! tree in which one file changed costs one small blob and the list of chunks.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use journeyman_protocol::{ContentHash, RelPath};
use journeyman_store::{Blobs, StoreError};

use crate::contents::store::BlobStore;
use crate::error::WorkspaceError;
use crate::files::stat::FileStat;
use crate::snapshot::entry::{EntryContent, FileKind, FileState, TreeEntry, WalkedDir};
use crate::snapshot::tree::{StoredBlobs, Tree};

/// First bytes of the cache file. The number is that of the format.
const CACHE_MAGIC: &[u8; 8] = b"jmstat\x00\x03";
/// First bytes of the list of chunks.
const TREE_MAGIC: &[u8; 8] = b"jmtree\x00\x01";
/// A chunk ends after a path whose hash has these bits clear: every 256th on average.
const CHUNK_MASK: u64 = 0xff;
const HASH_BYTES: usize = 32;
/// The largest cache that is read: 400,000 files with long paths.
const MAX_CACHE_BYTES: u64 = 256 * 1024 * 1024;
/// Number of kept contents that are looked up among the blobs before a cache is believed.
const CACHE_SAMPLES: usize = 16;

const FLAG_SETTLED: u8 = 1;
const FLAG_HASHED: u8 = 2;
const FLAG_KEPT: u8 = 4;
const FLAG_LINK: u8 = 8;

/// Parses numbers and byte strings from the front of a record; `None` at the first incomplete one.
struct RecordReader<'a>(&'a [u8]);

impl<'a> RecordReader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(front)
    }

    fn path(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(self.array()?);
        self.bytes(usize::from(length))
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }
}

fn push_path(out: &mut Vec<u8>, path: &[u8]) {
    // The system's longest path has 4,095 bytes; a longer one can't have come from it.
    let length = u16::try_from(path.len()).unwrap_or_default();
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(path.get(..usize::from(length)).unwrap_or_default());
}

fn push_dirs(out: &mut Vec<u8>, dirs: &[WalkedDir]) {
    out.extend_from_slice(&(dirs.len() as u64).to_le_bytes());
    for dir in dirs {
        push_path(out, &dir.path);
        out.extend_from_slice(&dir.permissions.to_le_bytes());
    }
}

fn push_hash(out: &mut Vec<u8>, hash: Option<&ContentHash>) {
    out.push(u8::from(hash.is_some()));
    out.extend_from_slice(hash.map_or([0; HASH_BYTES].as_slice(), |hash| hash.as_bytes()));
}

fn read_hash(reader: &mut RecordReader<'_>) -> Option<Option<ContentHash>> {
    let [there] = reader.array()?;
    let hash = ContentHash::from(reader.array::<HASH_BYTES>()?);
    Some((there != 0).then_some(hash))
}

fn read_stored(reader: &mut RecordReader<'_>) -> Option<Option<StoredBlobs>> {
    let hash = read_hash(reader)?;
    let mut chunks = Vec::new();
    for _ in 0..reader.u64()? {
        chunks.push((reader.u32()?, ContentHash::from(reader.array::<HASH_BYTES>()?)));
    }
    Some(hash.map(|hash| StoredBlobs { hash, chunks }))
}

fn read_dirs(reader: &mut RecordReader<'_>) -> Option<Vec<WalkedDir>> {
    let count = reader.u64()?;
    let mut dirs = Vec::new();
    for _ in 0..count {
        dirs.push(WalkedDir { path: reader.path()?.to_vec(), permissions: reader.u32()? });
    }
    Some(dirs)
}

/// Encodes the cache; `durable` says that the stored form of the tree is on the disk.
pub(crate) fn encode_cache(tree: &Tree, durable: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + tree.entries.len() * 128);
    out.extend_from_slice(CACHE_MAGIC);
    out.extend_from_slice(&[0; HASH_BYTES]);
    push_hash(&mut out, tree.rules.as_ref());
    let stored = tree.stored.get().filter(|_| durable);
    push_hash(&mut out, stored.map(|stored| &stored.hash));
    let chunks = stored.map_or(&[][..], |stored| &stored.chunks);
    out.extend_from_slice(&(chunks.len() as u64).to_le_bytes());
    for (end, hash) in chunks {
        out.extend_from_slice(&end.to_le_bytes());
        out.extend_from_slice(hash.as_bytes());
    }
    out.extend_from_slice(&(tree.repositories.len() as u64).to_le_bytes());
    for path in &tree.repositories {
        push_path(&mut out, path);
    }
    push_dirs(&mut out, &tree.dirs);
    out.extend_from_slice(&(tree.entries.len() as u64).to_le_bytes());
    for entry in &tree.entries {
        push_path(&mut out, &entry.path);
        let seen = &entry.seen;
        for number in [u64::from(seen.mode), seen.size, seen.ino] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [seen.mtime, seen.ctime] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&seen.owner.0.to_le_bytes());
        out.extend_from_slice(&seen.owner.1.to_le_bytes());
        out.extend_from_slice(&seen.names.to_le_bytes());
        let settled = if entry.settled { FLAG_SETTLED } else { 0 };
        match entry.content {
            EntryContent::Unkept => out.push(settled),
            EntryContent::Hashed { hash, kept } => {
                out.push(settled | FLAG_HASHED | if kept { FLAG_KEPT } else { 0 });
                out.extend_from_slice(hash.as_bytes());
            }
        }
    }
    let body = out.get(CACHE_MAGIC.len() + HASH_BYTES..).unwrap_or_default();
    let sum = ContentHash::of(body);
    if let Some(slot) = out.get_mut(CACHE_MAGIC.len()..CACHE_MAGIC.len() + HASH_BYTES) {
        slot.copy_from_slice(sum.as_bytes());
    }
    out
}

/// Reads the cache; anything that isn't as it was written makes it worth nothing.
pub(crate) fn read_cache(path: &Path, blob_store: &BlobStore) -> Option<Tree> {
    if std::fs::symlink_metadata(path).ok()?.len() > MAX_CACHE_BYTES {
        return None;
    }
    let tree = parse_cache(&std::fs::read(path).ok()?)?;
    let kept: Vec<ContentHash> = tree
        .entries
        .iter()
        .filter_map(|entry| match entry.content {
            EntryContent::Hashed { hash, kept: true } => Some(hash),
            _ => None,
        })
        .collect();
    let stride = (kept.len() / CACHE_SAMPLES).max(1);
    let all_there = kept.iter().step_by(stride).all(|hash| blob_store.contains(hash).unwrap_or(false));
    all_there.then_some(tree)
}

fn parse_cache(bytes: &[u8]) -> Option<Tree> {
    let mut reader = RecordReader(bytes);
    if reader.array()? != *CACHE_MAGIC {
        return None;
    }
    let sum = ContentHash::from(reader.array::<HASH_BYTES>()?);
    if ContentHash::of(reader.0) != sum {
        return None;
    }
    let rules = read_hash(&mut reader)?;
    let stored = read_stored(&mut reader)?.map(OnceLock::from).unwrap_or_default();
    let mut repositories = Vec::new();
    for _ in 0..reader.u64()? {
        repositories.push(reader.path()?.to_vec());
    }
    let dirs = read_dirs(&mut reader)?;
    let count = reader.u64()?;
    let mut entries = Vec::with_capacity(usize::try_from(count).ok()?.min(bytes.len() / 32));
    for _ in 0..count {
        let path = reader.path()?.to_vec();
        let (mode, size, ino) = (u32::try_from(reader.u64()?).ok()?, reader.u64()?, reader.u64()?);
        let (mtime, ctime) = (reader.i64()?, reader.i64()?);
        let owner = (reader.u32()?, reader.u32()?);
        let names = reader.u32()?;
        let [flags] = reader.array()?;
        let content = if flags & FLAG_HASHED == 0 {
            EntryContent::Unkept
        } else {
            EntryContent::Hashed {
                hash: ContentHash::from(reader.array::<HASH_BYTES>()?),
                kept: flags & FLAG_KEPT != 0,
            }
        };
        let seen = FileStat { mode, size, mtime, ctime, ino, owner, names };
        entries.push(TreeEntry { path, seen, content, settled: flags & FLAG_SETTLED != 0 });
    }
    let tree = Tree { entries, dirs, repositories, rules, stored, ..Tree::default() };
    reader.0.is_empty().then_some(tree)
}

/// A tree as a checkpoint has it: states without signatures.
#[derive(Debug, Default)]
pub(crate) struct StoredTree {
    pub(crate) files: Vec<(Vec<u8>, FileState)>,
    pub(crate) dirs: Vec<WalkedDir>,
}

/// Hashes a path by FNV-1a, which spreads short byte strings well and needs no table.
fn path_hash(path: &[u8]) -> u64 {
    path.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Writes a tree into the blobs, returns the hash to find it by, and records that hash in the tree.
/// `near` is a tree that was stored before and may have chunks in common. The caller syncs the
/// store.
pub(crate) fn store_tree(
    tree: &Tree,
    near: Option<&Tree>,
    blob_store: &BlobStore,
) -> Result<ContentHash, WorkspaceError> {
    let near = if tree.stored.get().is_some() { Some(tree) } else { near };
    let old = near.and_then(|near| Some(PreviousTree { entries: &near.entries, stored: near.stored.get()? }));
    let mut list = Vec::from(TREE_MAGIC);
    push_dirs(&mut list, &tree.dirs);
    let (mut chunks, mut rest, mut end) = (Vec::new(), tree.entries.as_slice(), 0);
    let mut bytes = Vec::new();
    while !rest.is_empty() {
        let known = old.as_ref().and_then(|old| old.matching_chunk(rest));
        let kept = match known {
            Some((_, hash)) if blob_store.touch_blob(&hash)? => known,
            _ => None,
        };
        let (length, hash) = match kept {
            Some(kept) => kept,
            None => {
                bytes.clear();
                let length = push_chunk(&mut bytes, rest);
                (length, blob_store.put_metadata(&bytes)?)
            }
        };
        list.extend_from_slice(hash.as_bytes());
        rest = rest.get(length..).unwrap_or_default();
        end += length;
        chunks.push((u32::try_from(end).unwrap_or(u32::MAX), hash));
    }
    let hash = blob_store.put_metadata(&list)?;
    tree.stored.get_or_init(|| StoredBlobs { hash, chunks });
    Ok(hash)
}

/// Writes files up to the next end of a chunk. Returns their number.
fn push_chunk(chunk: &mut Vec<u8>, entries: &[TreeEntry]) -> usize {
    let mut length = 0;
    for entry in entries {
        let state = entry.state();
        push_path(chunk, &entry.path);
        let link = if state.kind == FileKind::Link { FLAG_LINK } else { 0 };
        chunk.push(link | if state.hash.is_some() { FLAG_HASHED } else { 0 });
        chunk.extend_from_slice(&state.mode.to_le_bytes());
        chunk.extend_from_slice(&state.size.to_le_bytes());
        if let Some(hash) = state.hash {
            chunk.extend_from_slice(hash.as_bytes());
        }
        length += 1;
        if path_hash(&entry.path) & CHUNK_MASK == 0 {
            break;
        }
    }
    length
}

/// A tree that was stored before.
struct PreviousTree<'a> {
    entries: &'a [TreeEntry],
    stored: &'a StoredBlobs,
}

impl PreviousTree<'_> {
    /// Returns the stored chunk that begins with the first of these files, if all its files are
    /// unchanged.
    fn matching_chunk(&self, entries: &[TreeEntry]) -> Option<(usize, ContentHash)> {
        let first = &entries.first()?.path;
        let start = self.entries.binary_search_by(|entry| entry.path.cmp(first)).ok()?;
        let at = self.stored.chunks.partition_point(|(end, _)| *end as usize <= start);
        let (end, hash) = self.stored.chunks.get(at)?;
        let begins = at.checked_sub(1).and_then(|before| self.stored.chunks.get(before));
        if begins.map_or(0, |(end, _)| *end as usize) != start {
            return None;
        }
        let theirs = self.entries.get(start..*end as usize)?;
        let ours = entries.get(..theirs.len())?;
        // The last one may end before the next end of a chunk, as long as it is the last here too.
        let is_last = at + 1 == self.stored.chunks.len();
        let same = |(a, b): (&TreeEntry, &TreeEntry)| a.path == b.path && a.state() == b.state();
        let reusable = (!is_last || entries.len() == theirs.len()) && ours.iter().zip(theirs).all(same);
        reusable.then_some((theirs.len(), *hash))
    }
}

/// Reads back what [`store_tree`] wrote.
pub(crate) fn load_tree(hash: &ContentHash, blobs: &Blobs) -> Result<StoredTree, WorkspaceError> {
    let mut all = Vec::new();
    let dirs = load_tree_with(hash, blobs, |_, files| {
        all.extend(files()?);
        Ok(())
    })?;
    Ok(StoredTree { files: all, dirs })
}

/// Files with their states.
pub(crate) type StoredFiles = Vec<(Vec<u8>, FileState)>;

/// Reads the list of a tree's chunks and passes each to `see`, which may read it. Returns the
/// directories.
pub(crate) fn load_tree_with(
    hash: &ContentHash,
    blobs: &Blobs,
    mut see: impl FnMut(
        ContentHash,
        &mut dyn FnMut() -> Result<StoredFiles, WorkspaceError>,
    ) -> Result<(), WorkspaceError>,
) -> Result<Vec<WalkedDir>, WorkspaceError> {
    let lost = || WorkspaceError::Lost { what: "a checkpoint's tree".to_owned() };
    let whole = |hash: &ContentHash| match blobs.get(hash) {
        Ok(None) | Err(StoreError::BlobDamaged { .. }) => Err(lost()),
        Ok(Some(bytes)) => Ok(bytes),
        Err(other) => Err(other.into()),
    };
    let list = whole(hash)?;
    let mut reader = RecordReader(&list);
    if reader.array() != Some(*TREE_MAGIC) {
        return Err(lost());
    }
    let dirs = read_dirs(&mut reader).ok_or_else(lost)?;
    while !reader.0.is_empty() {
        let hash = ContentHash::from(reader.array::<HASH_BYTES>().ok_or_else(lost)?);
        let mut read = || {
            let chunk = whole(&hash)?;
            let mut files = Vec::new();
            read_chunk(&chunk, &mut files).ok_or_else(lost)?;
            Ok(files)
        };
        see(hash, &mut read)?;
    }
    Ok(dirs)
}

fn read_chunk(chunk: &[u8], files: &mut StoredFiles) -> Option<()> {
    let mut reader = RecordReader(chunk);
    while !reader.0.is_empty() {
        let path = reader.path()?.to_vec();
        let [flags] = reader.array()?;
        let kind = if flags & FLAG_LINK != 0 { FileKind::Link } else { FileKind::File };
        let (mode, size) = (reader.u32()?, reader.u64()?);
        let hash = match flags & FLAG_HASHED {
            0 => None,
            _ => Some(ContentHash::from(reader.array::<HASH_BYTES>()?)),
        };
        files.push((path, FileState { kind, mode, size, hash }));
    }
    Some(())
}

impl StoredTree {
    /// Converts into a tree without signatures, to be compared with one that has them.
    pub(crate) fn into_tree(self) -> Arc<Tree> {
        let entries = self.files.into_iter().filter(|(path, _)| RelPath::parse(path).is_ok());
        let entries = entries.map(|(path, state)| {
            let kind = if state.kind == FileKind::Link { 0o120_000 } else { 0o100_000 };
            let seen = FileStat {
                mode: kind | state.mode,
                size: state.size,
                mtime: 0,
                ctime: 0,
                ino: 0,
                owner: (0, 0),
                names: 1,
            };
            let content =
                state.hash.map_or(EntryContent::Unkept, |hash| EntryContent::Hashed { hash, kept: true });
            TreeEntry { path, seen, content, settled: true }
        });
        Arc::new(Tree { entries: entries.collect(), dirs: self.dirs, ..Tree::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(count: usize) -> Tree {
        let entries = (0..count).map(|n| TreeEntry {
            path: format!("dir/file{n:05}").into_bytes(),
            seen: FileStat {
                mode: 0o100_644,
                size: n as u64,
                mtime: 5,
                ctime: 6,
                ino: n as u64,
                owner: (1, 2),
                names: 1,
            },
            content: if n % 7 == 3 {
                EntryContent::Unkept
            } else {
                EntryContent::Hashed { hash: ContentHash::of(&n.to_le_bytes()), kept: n % 2 == 0 }
            },
            settled: n % 3 == 0,
        });
        let dirs = vec![WalkedDir { path: b"dir".to_vec(), permissions: 0o755 }];
        Tree { entries: entries.collect(), dirs, ..Tree::default() }
    }

    #[test]
    fn the_cache_comes_back_whole_or_not_at_all() {
        let stored =
            StoredBlobs { hash: ContentHash::of(b"list"), chunks: vec![(300, ContentHash::of(b"chunk"))] };
        let (rules, repositories) = (Some(ContentHash::of(b"rules")), vec![b".git".to_vec()]);
        let original = Tree { stored: OnceLock::from(stored), rules, repositories, ..tree(300) };
        let bytes = encode_cache(&original, true);
        let back = parse_cache(&bytes).unwrap();
        assert_eq!((&back.entries, &back.dirs), (&original.entries, &original.dirs));
        assert_eq!((back.rules, back.repositories), (original.rules, original.repositories));
        assert_eq!(back.stored, original.stored);
        for cut in [0, 7, 39, 100, bytes.len() - 1] {
            assert!(parse_cache(&bytes[..cut]).is_none(), "cut at {cut}");
        }
        for flip in [0, 10, 60, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[flip] ^= 1;
            assert!(parse_cache(&damaged).is_none(), "bit flipped at {flip}");
        }
    }

    #[test]
    fn one_changed_file_costs_a_checkpoint_one_chunk() {
        let dir = tempfile::tempdir().unwrap();
        let blob_store = blob_store(dir.path());
        let mut original = tree(5_000);
        let first = store_tree(&original, None, &blob_store).unwrap();
        let before = files(dir.path());
        let near = std::mem::replace(&mut original, tree(5_000));
        original.entries[2_500].content = EntryContent::Hashed { hash: ContentHash::of(b"new"), kept: true };
        let second = store_tree(&original, Some(&near), &blob_store).unwrap();
        let after = files(dir.path());
        assert_ne!(first, second);
        assert_eq!(after - before, 2, "a chunk and a list");
        let back = load_tree(&second, blob_store.blobs()).unwrap();
        let expected: Vec<_> = original.entries.iter().map(|e| (e.path.clone(), e.state())).collect();
        assert_eq!((back.files, back.dirs), (expected, original.dirs));
    }

    fn blob_store(dir: &Path) -> BlobStore {
        BlobStore::new(Arc::new(Blobs::open(&dir.join("blobs"), 1 << 30).unwrap()), dir)
    }

    fn files(dir: &Path) -> usize {
        let fan_out = std::fs::read_dir(dir.join("blobs")).unwrap();
        fan_out.flat_map(|d| std::fs::read_dir(d.unwrap().path()).unwrap()).count()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
        #[test]
        fn a_tree_stored_beside_another_is_as_if_stored_alone(
            gone in proptest::collection::btree_set(0_usize..1_500, 0..6),
            changed in proptest::collection::btree_set(0_usize..1_500, 0..6),
            short in 0_usize..1_500,
        ) {
            let dir = || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let dirs = [dir(), dir()];
            let (near, mut other) = (tree(1_500 - short / 3), tree(1_500 - short));
            for at in &changed {
                if let Some(entry) = other.entries.get_mut(*at) {
                    entry.content = EntryContent::Hashed { hash: ContentHash::of(b"changed"), kept: true };
                }
            }
            let mut at = 0;
            other.entries.retain(|_| { at += 1; !gone.contains(&(at - 1)) });
            let beside = blob_store(dirs[0].path());
            store_tree(&near, None, &beside).unwrap();
            let found = store_tree(&other, Some(&near), &beside).unwrap();
            let noted = other.stored.take();
            let alone = store_tree(&other, None, &blob_store(dirs[1].path())).unwrap();
            proptest::prop_assert_eq!(found, alone);
            proptest::prop_assert_eq!(noted, other.stored.take());
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_readers_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let mut recovered = CACHE_MAGIC.to_vec();
            recovered.extend_from_slice(ContentHash::of(&bytes).as_bytes());
            recovered.extend_from_slice(&bytes);
            let _tree = parse_cache(&recovered);
            let mut files = Vec::new();
            let _read = read_chunk(&bytes, &mut files);
        }
    }
}
