//! Fingerprints of directories of any size. A tree that no journal can hold is compared by its
//! fingerprint before it is deleted for good.

use journeyman_protocol::{ContentHash, RelPath};
use rustix::fs::{AtFlags, statat};

use crate::files::directory::entry_names;
use crate::files::root_dir::RootDir;
use crate::files::stat::FileStat;
use crate::limits::MAX_DEPTH;

/// Entries that are compared: some ten times what the largest builds have, and a minute's work.
const MAX_ENTRIES: u64 = 10_000_000;

/// A tree's fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeFingerprint {
    entries: u64,
    bytes: u64,
    /// The sum of the hashes of all entries: the order in which a directory is listed doesn't
    /// matter.
    sum: [u64; 4],
}

impl TreeFingerprint {
    /// Computes the fingerprint of the directory at `dir`; `None` if a file in it can't be
    /// examined, so that a change couldn't be noticed. The directory's own time of change is left
    /// out: a move changes it.
    pub(crate) fn of(root_dir: &RootDir, dir: &RelPath) -> Option<Self> {
        let top = root_dir.stat(dir).ok()??;
        let mut print = Self { entries: 0, bytes: 0, sum: [0; 4] };
        print.add(b"", &FileStat { ctime: 0, ..top });
        let above = dir.as_bytes().len();
        let mut open = vec![(dir.clone(), 0)];
        while let Some((at, depth)) = open.pop() {
            if depth > MAX_DEPTH {
                return None;
            }
            let listed = root_dir.open_directory(Some(&at)).ok()?;
            for name in entry_names(&listed).ok()? {
                let seen = FileStat::of(&statat(&listed, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).ok()?);
                let path = at.join(&name).ok()?;
                print.add(path.as_bytes().get(above..)?, &seen);
                if print.entries > MAX_ENTRIES {
                    return None;
                }
                if seen.is_dir() {
                    open.push((path, depth + 1));
                }
            }
        }
        Some(print)
    }

    fn add(&mut self, path: &[u8], seen: &FileStat) {
        self.entries += 1;
        if !seen.is_dir() {
            self.bytes = self.bytes.saturating_add(seen.size);
        }
        let mut text = Vec::with_capacity(path.len() + 64);
        for number in [seen.size, seen.ino, u64::from(seen.mode)] {
            text.extend(number.to_le_bytes());
        }
        for time in [seen.mtime, seen.ctime] {
            text.extend(time.to_le_bytes());
        }
        text.extend(path);
        let hash = ContentHash::of(&text);
        for (sum, part) in self.sum.iter_mut().zip(hash.as_bytes().as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*part));
        }
    }
}
