//! The record of a project's blobs: which it stored, and how much disk space they take.
//!
//! One append-only file, `ledger` in the state directory, of entries of 48 bytes: a hash, the bytes
//! that the blob takes if this project was the first to store it, and a checksum of both. Blobs
//! that another project stored first are recorded too, at no cost, so that nobody removes what
//! another project still needs. An entry is written before its blob appears. A sweep (see
//! [`crate::contents::quota`]) replaces the file.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use journeyman_protocol::ContentHash;
use journeyman_store::PutOutcome;

use crate::state::lock::{private_file_options, replace_durably};

/// Size of an entry: a hash, a number and a checksum.
const ENTRY_BYTES: usize = 32 + 8 + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 8;
/// The byte that pads an entry torn by a power failure.
const FILLER_BYTE: u8 = 0xff;
/// Maximum bytes read of the file: 1.4 million blobs, more than the quota has disk blocks for.
const MAX_USAGE_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Set in the number of a blob that another project put first.
const SHARED_BIT: u64 = 1 << 63;
/// The hash of the entry that records how many bytes a sweep had to leave.
const SWEEP_ENTRY_HASH: [u8; 32] = [0; 32];
/// Size of a disk block on nearly all file systems; a file takes whole blocks.
const BLOCK_BYTES: u64 = 4096;

/// Returns the disk space that a blob of so many bytes takes.
pub(crate) fn disk_cost(stored: u64) -> u64 {
    stored.max(1).div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES)
}

/// One blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobEntry {
    pub(crate) hash: ContentHash,
    /// The disk space charged to this project; `None` if another project stored the blob first.
    pub(crate) cost: Option<u64>,
}

/// The totals of the entries read so far.
#[derive(Debug, Default)]
struct UsageTotals {
    ino: u64,
    read: u64,
    total: u64,
    floor: u64,
    /// The first bytes of each hash, which suffice to tell whether a hash is recorded.
    known: HashSet<u64>,
}

/// The record of one project's blobs.
#[derive(Debug)]
pub(crate) struct BlobUsage {
    path: PathBuf,
    book: Mutex<UsageTotals>,
}

impl BlobUsage {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self { path: state_dir.join("ledger"), book: Mutex::default() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Records a blob that is put.
    pub(crate) fn note_put(&self, hash: &ContentHash, stored: PutOutcome) -> io::Result<()> {
        let number = match stored {
            PutOutcome::New(bytes) => disk_cost(bytes),
            PutOutcome::Already => {
                let mut book = self.lock();
                self.read_new_entries(&mut book)?;
                if !book.known.insert(short_hash(hash)) {
                    return Ok(());
                }
                SHARED_BIT
            }
        };
        self.append(hash, number)
    }

    fn append(&self, hash: &ContentHash, number: u64) -> io::Result<()> {
        let open = || private_file_options().append(true).create(true).open(&self.path);
        let mut file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let dir = self.path.parent().unwrap_or(&self.path);
                crate::state::lock::make_private_dir(dir).map_err(io::Error::other)?;
                open()?
            }
            other => other?,
        };
        let mut entry = Vec::with_capacity(ENTRY_BYTES * 2);
        // What a power failure tore is filled up, to an entry of no blob.
        let torn = usize::try_from(file.metadata()?.len() % ENTRY_BYTES as u64).unwrap_or_default();
        if torn > 0 {
            entry.resize(ENTRY_BYTES - torn, FILLER_BYTE);
        }
        push_entry(&mut entry, hash.as_bytes(), number);
        file.write_all(&entry)
    }

    /// Returns the bytes that the project's blobs take, and those that the last sweep had to leave
    /// if that is more than fits.
    pub(crate) fn totals(&self) -> io::Result<(u64, u64)> {
        let mut book = self.lock();
        self.read_new_entries(&mut book)?;
        Ok((book.total, book.floor))
    }

    /// Returns the entries of all blobs, each once.
    pub(crate) fn entries(&self) -> io::Result<Vec<BlobEntry>> {
        let bytes = self.read_from(0)?;
        let mut seen = HashSet::new();
        let mut entries: Vec<BlobEntry> = Vec::new();
        // Newest first: a blob that came back after it was lost counts by what it is now.
        for (hash, number) in parse_entries(&bytes).rev() {
            if *hash.as_bytes() != SWEEP_ENTRY_HASH && seen.insert(hash) {
                entries.push(BlobEntry { hash, cost: (number & SHARED_BIT == 0).then_some(number) });
            }
        }
        entries.reverse();
        Ok(entries)
    }

    /// Replaces all entries. Nobody else may write to the file meanwhile.
    pub(crate) fn replace(&self, entries: &[BlobEntry], floor: u64) -> io::Result<()> {
        let mut bytes = Vec::with_capacity((entries.len() + 1) * ENTRY_BYTES);
        push_entry(&mut bytes, &SWEEP_ENTRY_HASH, floor);
        for entry in entries {
            push_entry(
                &mut bytes,
                entry.hash.as_bytes(),
                entry.cost.map_or(SHARED_BIT, |cost| cost & !SHARED_BIT),
            );
        }
        replace_durably(&self.path, &bytes)
    }

    fn lock(&self) -> MutexGuard<'_, UsageTotals> {
        // What a panic left half read is read again: the place comes last.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the entries appended since the last read, or all of them if the file was replaced.
    fn read_new_entries(&self, book: &mut UsageTotals) -> io::Result<()> {
        let (ino, length) = match fs::metadata(&self.path) {
            Ok(found) => (found.ino(), found.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (0, 0),
            Err(error) => return Err(error),
        };
        if book.ino != ino || length < book.read {
            *book = UsageTotals { ino, ..UsageTotals::default() };
        }
        if length < book.read.saturating_add(ENTRY_BYTES as u64) {
            return Ok(());
        }
        let bytes = self.read_from(book.read)?;
        for (hash, number) in parse_entries(&bytes) {
            if *hash.as_bytes() == SWEEP_ENTRY_HASH {
                book.floor = number & !SHARED_BIT;
            } else {
                book.known.insert(short_hash(&hash));
                if number & SHARED_BIT == 0 {
                    book.total = book.total.saturating_add(number);
                }
            }
        }
        let whole = bytes.len() - bytes.len() % ENTRY_BYTES;
        book.read = book.read.saturating_add(whole as u64);
        Ok(())
    }

    fn read_from(&self, place: u64) -> io::Result<Vec<u8>> {
        read_usage_file(&self.path, place)
    }
}

fn read_usage_file(path: &Path, place: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
        other => other?,
    };
    file.seek(SeekFrom::Start(place))?;
    file.take(MAX_USAGE_FILE_BYTES.saturating_sub(place)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the hashes in another project's file for which `wanted` returns true.
pub(crate) fn read_wanted_hashes(
    path: &Path,
    wanted: impl Fn(&ContentHash) -> bool,
) -> io::Result<Vec<ContentHash>> {
    let bytes = read_usage_file(path, 0)?;
    Ok(parse_entries(&bytes).map(|(hash, _)| hash).filter(wanted).collect())
}

fn push_entry(bytes: &mut Vec<u8>, hash: &[u8; 32], number: u64) {
    let start = bytes.len();
    bytes.extend_from_slice(hash);
    bytes.extend_from_slice(&number.to_le_bytes());
    let sum = ContentHash::of(bytes.get(start..).unwrap_or_default());
    bytes.extend_from_slice(sum.as_bytes().get(..CHECKSUM_BYTES).unwrap_or_default());
}

/// Parses the undamaged entries.
fn parse_entries(bytes: &[u8]) -> impl DoubleEndedIterator<Item = (ContentHash, u64)> {
    let (entries, _torn) = bytes.as_chunks::<ENTRY_BYTES>();
    entries.iter().filter_map(parse_entry)
}

fn parse_entry(entry: &[u8; ENTRY_BYTES]) -> Option<(ContentHash, u64)> {
    let (body, sum) = entry.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (hash, number) = body.split_first_chunk::<32>()?;
    let expected = ContentHash::of(body);
    (expected.as_bytes().first_chunk::<CHECKSUM_BYTES>() == Some(sum))
        .then_some((ContentHash::from(*hash), u64::from_le_bytes(*number.first_chunk::<8>()?)))
}

/// Counts the damaged entries of a file. An entry that a power failure tore doesn't count.
pub(crate) fn count_damaged_entries(path: &Path) -> io::Result<usize> {
    let bytes = read_usage_file(path, 0)?;
    let (entries, _torn) = bytes.as_chunks::<ENTRY_BYTES>();
    let is_filled = |entry: &[u8; ENTRY_BYTES]| entry.ends_with(&[FILLER_BYTE; CHECKSUM_BYTES]);
    Ok(entries.iter().filter(|entry| parse_entry(entry).is_none() && !is_filled(entry)).count())
}

fn short_hash(hash: &ContentHash) -> u64 {
    hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> ContentHash {
        ContentHash::of(&n.to_le_bytes())
    }

    #[test]
    fn what_is_noted_by_anybody_is_known_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (BlobUsage::new(dir.path()), BlobUsage::new(dir.path()));
        assert_eq!(ours.totals().unwrap(), (0, 0));
        ours.note_put(&hash(1), PutOutcome::New(10)).unwrap();
        theirs.note_put(&hash(2), PutOutcome::New(5000)).unwrap();
        theirs.note_put(&hash(1), PutOutcome::Already).unwrap();
        theirs.note_put(&hash(3), PutOutcome::Already).unwrap();
        theirs.note_put(&hash(3), PutOutcome::Already).unwrap();
        let all = [(1, Some(4096)), (2, Some(8192)), (3, None)];
        let all = all.map(|(n, cost)| BlobEntry { hash: hash(n), cost });
        for ledger in [&ours, &theirs] {
            assert_eq!(ledger.totals().unwrap(), (12_288, 0));
            assert_eq!(ledger.entries().unwrap(), all);
        }
        theirs.replace(&all[..1], 7).unwrap();
        ours.note_put(&hash(4), PutOutcome::New(1)).unwrap();
        for ledger in [&ours, &theirs] {
            assert_eq!(ledger.totals().unwrap(), (8192, 7));
        }
    }

    #[test]
    fn a_torn_entry_costs_one_entry() {
        let dir = tempfile::tempdir().unwrap();
        BlobUsage::new(dir.path()).note_put(&hash(1), PutOutcome::New(1)).unwrap();
        let path = dir.path().join("ledger");
        let mut bytes = fs::read(&path).unwrap();
        for torn in [1, 20, 39, 40] {
            bytes.extend(vec![7; torn]);
            fs::write(&path, &bytes).unwrap();
            let ledger = BlobUsage::new(dir.path());
            ledger.totals().unwrap();
            ledger.note_put(&hash(2 + torn as u64), PutOutcome::New(1)).unwrap();
            let found = ledger.entries().unwrap();
            assert!(found.iter().any(|entry| entry.hash == hash(2 + torn as u64)), "{torn}");
            assert!(found.iter().any(|entry| entry.hash == hash(1)));
            bytes = fs::read(&path).unwrap();
            assert_eq!(count_damaged_entries(&path).unwrap(), 0, "{torn}");
        }
    }

    #[test]
    fn a_damaged_entry_is_never_taken_for_a_blob() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = BlobUsage::new(dir.path());
        (1..4).for_each(|n| ledger.note_put(&hash(n), PutOutcome::New(10)).unwrap());
        let path = dir.path().join("ledger");
        let whole = fs::read(&path).unwrap();
        for at in [ENTRY_BYTES, ENTRY_BYTES + 33, 2 * ENTRY_BYTES - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let found = BlobUsage::new(dir.path()).entries().unwrap();
            assert_eq!(found.iter().map(|entry| entry.hash).collect::<Vec<_>>(), [hash(1), hash(3)]);
            assert_eq!(count_damaged_entries(&path).unwrap(), 1);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("ledger"), &bytes).unwrap();
            let ledger = BlobUsage::new(dir.path());
            ledger.totals().unwrap();
            ledger.note_put(&hash(1), PutOutcome::Already).unwrap();
            proptest::prop_assert!(ledger.entries().unwrap().iter().any(|entry| entry.hash == hash(1)));
        }
    }
}
