//! The size of the store, and the removal of blobs when it exceeds the quota.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use journeyman_protocol::ContentHash;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use crate::StoreError;

/// All blobs are counted after this fraction of the quota was written, because counting reads the
/// metadata of each ...
const COUNT_QUOTA_DIVISOR: u64 = 64;
/// ... and at one in this many new blobs of a handle that hasn't counted yet, so that many short
/// runs count too. Hashes are evenly spread, so their first byte decides.
const NEW_BLOBS_PER_COUNT: u8 = 64;
/// When blobs are removed, this fraction of the quota is freed besides, so that the next put
/// doesn't remove blobs again.
const SLACK_QUOTA_DIVISOR: u64 = 16;
/// Seconds after its put in which a blob isn't removed: it may belong to a run in progress, here or
/// in another process. A repeated put may have left a mark that is a little older.
const RECENT_BLOB_SECS: i64 = 600 + STALE_MARK_SECS;
/// Seconds after which a temporary file counts as left by a process that is gone.
const ABANDONED_FILE_SECS: i64 = 3600;
/// Minimum age in seconds of a blob's time stamp that a repeated put renews.
const STALE_MARK_SECS: i64 = 60;

/// The prefix of a temporary file's name. No hash begins with it. Old temporary files, left by a
/// crash, are removed.
pub(super) const TEMPORARY_PREFIX: &str = ".new-";

/// A handle's record of the bytes in use in the directory.
#[derive(Debug, Default)]
pub(super) struct DiskUsage {
    /// Bytes at the last count and those that this handle added since.
    total: Option<u64>,
    /// Bytes written since the last count.
    since: u64,
    /// The newest time seen on a file, in seconds: the file system's clock.
    clock: Option<i64>,
}

impl DiskUsage {
    pub(super) fn advance_clock(&mut self, time: i64) {
        self.clock = self.clock.max(Some(time));
    }

    pub(super) fn is_stale_time(&self, time: i64) -> bool {
        // The newest time seen is long ago where this handle wrote nothing for long.
        let here = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let here = i64::try_from(here).unwrap_or(i64::MAX);
        self.clock.is_none_or(|seen| seen.max(here).saturating_sub(time) > STALE_MARK_SECS)
    }

    pub(super) fn add_bytes(&mut self, size: u64) {
        self.since = self.since.saturating_add(size);
        self.total = self.total.map(|total| total.saturating_add(size));
    }

    pub(super) fn subtract_bytes(&mut self, size: u64) {
        self.total = self.total.map(|total| total.saturating_sub(size));
    }

    pub(super) fn must_count(&self, hash: &ContentHash, size: u64, quota: u64) -> bool {
        let [first, ..] = hash.as_bytes();
        self.since.saturating_add(size) > quota / COUNT_QUOTA_DIVISOR
            || match self.total {
                Some(total) => total.saturating_add(size) > quota,
                None => first % NEW_BLOBS_PER_COUNT == 0,
            }
    }
}

/// A blob or temporary file.
#[derive(Debug)]
pub(super) struct BlobFile {
    path: PathBuf,
    /// `None` for a temporary file.
    hash: Option<ContentHash>,
    size: u64,
    modified: i64,
}

/// Every file of the directory.
#[derive(Debug, Default)]
pub(super) struct Scan {
    files: Vec<BlobFile>,
}

impl Scan {
    pub(super) fn total(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

/// Lists all blobs and temporary files; none for a missing directory.
pub(super) fn scan(dir: &Path) -> Result<Scan, StoreError> {
    let mut scan = Scan::default();
    for (path, _) in list_directory(dir)? {
        let Some(fan_out) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
            continue;
        };
        if fan_out.len() != 2 || !fan_out.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        for (path, entry) in list_directory(&path)? {
            let metadata = match entry.metadata() {
                Ok(metadata) if metadata.is_file() => metadata,
                Ok(_) => continue,
                // Another process removed the file meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(StoreError::io("look at blob", &path, source)),
            };
            let name = entry.file_name();
            let hash = name.to_str().and_then(|rest| format!("{fan_out}{rest}").parse().ok());
            if hash.is_none() && !name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
                continue;
            }
            scan.files.push(BlobFile { path, hash, size: metadata.len(), modified: metadata.mtime() });
        }
    }
    Ok(scan)
}

fn list_directory(dir: &Path) -> Result<Vec<(PathBuf, fs::DirEntry)>, StoreError> {
    let failed = |source| StoreError::io("list blobs in", dir, source);
    match fs::read_dir(dir) {
        Ok(found) => found.map(|entry| entry.map(|entry| (entry.path(), entry)).map_err(failed)).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => Ok(Vec::new()),
        // A file among the fan-out directories isn't ours, and no reason to stop.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => match dir.parent().map(Path::is_dir) {
            Some(true) => Ok(Vec::new()),
            _ => Err(failed(error)),
        },
        Err(error) => Err(failed(error)),
    }
}

/// Counts all blobs, and removes the ones put longest ago if `needed` bytes don't fit. Removes
/// nothing if not enough can be removed. Returns true if any blob was removed.
///
/// `now` is the time that the file system gave to a file just now. The newest time among the files
/// may be ahead of it, after the clock was set back, and would make every blob an old one.
pub(super) fn enforce_quota(
    dir: &Path,
    quota: u64,
    needed: u64,
    now: i64,
    pinned: &HashSet<ContentHash>,
    usage: &mut DiskUsage,
) -> Result<bool, StoreError> {
    let mut scan = scan(dir)?;
    let total = scan.total();
    scan.files.retain(|file| match &file.hash {
        Some(hash) => now.saturating_sub(file.modified) > RECENT_BLOB_SECS && !pinned.contains(hash),
        None => now.saturating_sub(file.modified) > ABANDONED_FILE_SECS,
    });
    let mut left = total;
    // The new content is in a temporary file already, and so in `total`.
    if total > quota {
        if total.saturating_sub(scan.total()) > quota {
            let used = total.saturating_sub(needed);
            return Err(StoreError::QuotaFull { dir: dir.to_owned(), used, quota, needed });
        }
        left = remove_oldest(scan, total, quota - quota / SLACK_QUOTA_DIVISOR)?;
    }
    usage.total = Some(left.saturating_sub(needed));
    usage.since = 0;
    Ok(left < total)
}

/// Removes the scanned files that were put longest ago until the bytes in use are at most `enough`,
/// and returns these bytes.
fn remove_oldest(mut scan: Scan, total: u64, enough: u64) -> Result<u64, StoreError> {
    let mut left = total;
    scan.files.sort_by_key(|file| (file.hash.is_some(), file.modified));
    for file in &scan.files {
        if left <= enough {
            break;
        }
        // Whoever put it again meanwhile relies on it.
        if fs::symlink_metadata(&file.path).is_ok_and(|found| found.mtime() != file.modified) {
            continue;
        }
        match fs::remove_file(&file.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(StoreError::io("remove old blob", &file.path, source)),
        }
        left = left.saturating_sub(file.size);
    }
    Ok(left)
}

/// Marks a blob as put just now.
pub(super) fn touch(path: &Path) -> io::Result<()> {
    let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: at(UTIME_OMIT), last_modification: at(UTIME_NOW) };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_is_stale_also_where_nothing_newer_was_seen() {
        let long_ago = 1_000_000;
        let mut usage = DiskUsage::default();
        usage.advance_clock(long_ago);
        assert!(usage.is_stale_time(long_ago));
    }

    #[test]
    fn a_blob_that_is_put_again_after_the_scan_is_not_removed() {
        let home = tempfile::tempdir().unwrap();
        let files = [1_u8, 2].map(|number| {
            let name = ContentHash::of(&[number]).to_string();
            let (fan_out, rest) = name.split_at(2);
            let path = home.path().join(fan_out).join(rest);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = fs::File::create(&path).unwrap();
            file.set_len(100).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(9_000)).unwrap();
            path
        });
        let scanned = scan(home.path()).unwrap();
        assert_eq!(scanned.total(), 200);
        touch(&files[0]).unwrap();
        assert_eq!(remove_oldest(scanned, 200, 0).unwrap(), 100);
        assert_eq!(files.each_ref().map(|file| file.exists()), [true, false]);
    }
}
