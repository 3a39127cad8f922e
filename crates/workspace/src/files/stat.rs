//! Metadata of files as `stat` returns it, and the clock that file times come from.

use rustix::fs::{FileType, Mode};

use crate::error::NotAFile;

/// The metadata of a file, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStat {
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) ino: u64,
    pub(crate) owner: (u32, u32),
    /// The number of hard links.
    pub(crate) names: u32,
}

impl FileStat {
    /// Takes what matters; times beyond the year 2262 wrap, which only makes a file look changed.
    // The fields' types differ between platforms.
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_lossless,
        trivial_numeric_casts,
        clippy::unnecessary_fallible_conversions
    )]
    pub(crate) fn of(stat: &rustix::fs::Stat) -> Self {
        let nanos = |s: i64, ns: i64| s.wrapping_mul(1_000_000_000).wrapping_add(ns);
        Self {
            mode: stat.st_mode as u32,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            mtime: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            ino: stat.st_ino as u64,
            owner: (stat.st_uid, stat.st_gid),
            names: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn file_type(&self) -> FileType {
        #[allow(clippy::useless_conversion)]
        match rustix::fs::RawMode::try_from(self.mode) {
            Ok(mode) => FileType::from_raw_mode(mode),
            Err(_) => FileType::Unknown,
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.file_type() == FileType::RegularFile
    }

    pub(crate) fn is_link(&self) -> bool {
        self.file_type() == FileType::Symlink
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.file_type() == FileType::Directory
    }

    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// Returns the kind of something without content; `None` for a regular file.
    pub(crate) fn non_file_kind(&self) -> Option<NotAFile> {
        match self.file_type() {
            FileType::RegularFile => None,
            FileType::Directory => Some(NotAFile::Directory),
            FileType::Fifo => Some(NotAFile::Fifo),
            FileType::Socket => Some(NotAFile::Socket),
            FileType::CharacterDevice | FileType::BlockDevice => Some(NotAFile::Device),
            FileType::Symlink | FileType::Unknown => Some(NotAFile::Other),
        }
    }

    /// Returns true if this is the same content as `other` was, as far as `stat` can tell across a
    /// rename (which changes the ctime).
    pub(crate) fn has_same_content(&self, other: &Self) -> bool {
        (self.ino, self.size, self.mtime) == (other.ino, other.size, other.mtime)
    }
}

/// Converts permission bits to the system's type.
pub(crate) fn to_mode(permissions: u32) -> Mode {
    Mode::from_raw_mode((permissions & 0o7777) as rustix::fs::RawMode)
}

/// File times come from a clock that ticks at least 100 times a second on every kernel we run on;
/// twice that.
pub(crate) const CLOCK_TICK_NS: i64 = 20_000_000;

/// The same tick as a [`Duration`](std::time::Duration).
pub(crate) const CLOCK_TICK: std::time::Duration =
    std::time::Duration::from_nanos(CLOCK_TICK_NS.unsigned_abs());

/// Some file systems keep whole or even seconds only.
pub(crate) const COARSE_TICK_NS: i64 = 2_000_000_000;

/// Returns true if the file's last change is long enough before `now` that a later one must show in
/// its signature.
pub(crate) fn is_change_settled(seen: &FileStat, now: i64) -> bool {
    let newest = seen.mtime.max(seen.ctime);
    let coarse = seen.mtime % 1_000_000_000 == 0 && seen.ctime % 1_000_000_000 == 0;
    let tick = if coarse { COARSE_TICK_NS } else { CLOCK_TICK_NS };
    newest < now.saturating_sub(tick)
}

/// Returns the time by the clock that the kernel stamps files with. It is compared with file times
/// and nothing else, so that no result depends on the time of day.
pub(crate) fn file_clock() -> i64 {
    let clock = rustix::time::ClockId::RealtimeCoarse;
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}
