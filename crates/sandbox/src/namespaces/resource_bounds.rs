//! The bounds of a command's whole process tree that pid 1 of a sandbox checks: memory, processor
//! time, growth of the disk.
//!
//! The bounds are polled several times a second, so a command can exceed one for that long. Where
//! control groups can be made, the kernel also enforces the bound of memory.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags};

use super::messages::ResourceExcess;
use super::policy::SandboxPolicy;
use super::root_steps::{BindAccess, RootStep};
use super::sys;

/// The time between two checks. A process can't touch much more than 100 MB in that time.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The time between two counts of files in memory without a name, for which all descriptors are
/// searched.
const NAMELESS_FILE_INTERVAL: Duration = Duration::from_millis(250);
/// An expensive measurement may take this part of the time.
const MEASUREMENT_REST_FACTOR: u32 = 8;
/// Maximum entries of the writable paths that are searched for changed files; further entries
/// aren't counted.
const MAX_SCANNED_ENTRIES: usize = 400_000;
/// A command is blamed without proof if it holds more than one of so many parts of what was free.
const SUSPECT_SHARE_DIVISOR: u64 = 2;

/// The bounds, and the time of the next check.
pub(super) struct ResourceBounds {
    memory: Option<u64>,
    /// The sandbox's own file systems that hold files in memory.
    stores: Vec<OwnedFd>,
    /// The bytes that files without a name held at the last count, and the time of the next one.
    nameless: (u64, Instant),
    cpu: Option<Duration>,
    disks: Vec<WritableDisk>,
    page: u64,
    ticks: u64,
    next: Instant,
    /// The time before which no expensive measurement is made again.
    rested: Instant,
}

/// A file system that the command may write to.
struct WritableDisk {
    place: OwnedFd,
    roots: Vec<PathBuf>,
    device: u64,
    free: u64,
    limit: u64,
    /// Files changed before then aren't the command's, in seconds.
    since: i64,
}

impl ResourceBounds {
    /// Creates the bounds from inside the new root, before the command begins.
    pub(super) fn new(policy: &SandboxPolicy<&CStr>) -> Self {
        let now = Instant::now();
        let disks = writable_disks(policy);
        Self {
            memory: policy.memory,
            stores: memory_file_systems(policy),
            nameless: (0, now),
            cpu: policy.cpu.map(Duration::from_micros),
            disks,
            page: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
            ticks: rustix::param::clock_ticks_per_second().max(1),
            next: now + CHECK_INTERVAL,
            rested: now,
        }
    }

    /// Returns the time until the next check.
    pub(super) fn time_to_next_check(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Returns the bound that is exceeded, if it is time for a check.
    pub(super) fn find_excess(&mut self) -> Option<ResourceExcess> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        self.next = now + CHECK_INTERVAL;
        let processes = list_processes();
        if self.memory.is_some_and(|limit| self.exceeds_memory(&processes, limit)) {
            return Some(ResourceExcess::Memory);
        }
        if self.cpu.is_some_and(|limit| self.processor_time(&processes) > limit) {
            return Some(ResourceExcess::Cpu);
        }
        self.fills_disk(&processes).then_some(ResourceExcess::Disk)
    }

    /// Returns true if the processes together hold more than the limit. Memory that several share
    /// counts once; finding that out is expensive, so it is done only where the plain sum exceeds
    /// the bound.
    fn exceeds_memory(&mut self, processes: &[PathBuf], limit: u64) -> bool {
        let files = self.memory_file_bytes(processes);
        if self.resident_bytes(processes).saturating_add(files) <= limit || Instant::now() < self.rested {
            return false;
        }
        let parts = self.measure_throttled(|this| {
            let parts = processes.iter().map(|process| this.proportional_bytes(process));
            parts.fold((0_u64, 0_u64), |(whole, shared), (more, part)| {
                (whole.saturating_add(more), shared.saturating_add(part))
            })
        });
        let (whole, shared) = parts;
        // Files in memory that are mapped, too, count once.
        whole.saturating_sub(shared).saturating_add(shared.max(files)) > limit
    }

    /// Returns the bytes that files hold in memory, mapped by a process or not: in the sandbox's
    /// own file systems, shared segments, and files without a name.
    fn memory_file_bytes(&mut self, processes: &[PathBuf]) -> u64 {
        let now = Instant::now();
        if now >= self.nameless.1 {
            let held = nameless_file_bytes(processes);
            self.nameless =
                (held, now + NAMELESS_FILE_INTERVAL.max(now.elapsed() * 2 * MEASUREMENT_REST_FACTOR));
        }
        let stored: u64 = self.stores.iter().filter_map(used_bytes).sum();
        stored.saturating_add(shared_segment_bytes()).saturating_add(self.nameless.0)
    }

    /// Runs an expensive measurement, and delays the next one in proportion to the time that it
    /// took.
    fn measure_throttled<T>(&mut self, work: impl FnOnce(&Self) -> T) -> T {
        let begun = Instant::now();
        let done = work(self);
        self.rested = Instant::now() + begun.elapsed() * MEASUREMENT_REST_FACTOR;
        done
    }

    /// Returns the memory of all processes, with shared memory counted for each.
    pub(super) fn resident_bytes(&self, processes: &[PathBuf]) -> u64 {
        processes.iter().map(|process| self.process_resident_bytes(process)).sum()
    }

    fn process_resident_bytes(&self, process: &Path) -> u64 {
        let text = fs::read_to_string(process.join("statm")).unwrap_or_default();
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0).saturating_mul(self.page)
    }

    /// Returns a process's own part of what it shares, all of it where the kernel doesn't say; and
    /// how much of that is of files in memory.
    fn proportional_bytes(&self, process: &Path) -> (u64, u64) {
        let text = fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default();
        let told = |name| {
            let mut sizes = text.lines().filter_map(|line| line.strip_prefix(name));
            let size = sizes.find_map(|size| size.trim().strip_suffix(" kB")?.parse::<u64>().ok())?;
            Some(size.saturating_mul(1024))
        };
        match told("Pss:") {
            Some(whole) => (whole, told("Pss_Shmem:").unwrap_or(0)),
            None => (self.process_resident_bytes(process), 0),
        }
    }

    /// Returns the processor time of living processes and of all that were waited for, by them or
    /// here.
    fn processor_time(&self, processes: &[PathBuf]) -> Duration {
        let of = |process: &PathBuf| {
            let text = fs::read(process.join("stat")).unwrap_or_default();
            // The name, in parentheses, may hold anything.
            let after = text.iter().rposition(|&byte| byte == b')').unwrap_or(0);
            let rest = String::from_utf8_lossy(text.get(after..).unwrap_or_default()).into_owned();
            // Of proc(5): utime, stime, cutime, cstime are the fields 14 to 17; the first one here
            // is the second.
            rest.split(' ').skip(12).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>()
        };
        let ticks: u64 = processes.iter().map(of).sum();
        Duration::from_millis(ticks.saturating_mul(1000) / self.ticks) + sys::children_cpu_time()
    }

    /// Returns true if the command filled a disk: the disk grew by more than the bound, and the
    /// command wrote as much or its files hold it. Others may write to the same disk. Where the
    /// disk is about to be full, the writer doesn't matter.
    fn fills_disk(&mut self, processes: &[PathBuf]) -> bool {
        let grown = |disk: &WritableDisk| {
            let free = free_bytes(&disk.place).unwrap_or(disk.free);
            let grown = disk.free.saturating_sub(free);
            (grown > disk.limit).then_some(grown)
        };
        let full = self.disks.iter().filter_map(|disk| Some((disk, grown(disk)?)));
        let Some((disk, grown)) = full.max_by_key(|(_, grown)| *grown) else { return false };
        if grown > disk.free / SUSPECT_SHARE_DIVISOR || written_bytes(processes) > disk.limit {
            return true;
        }
        let (roots, device) = (disk.roots.clone(), disk.device);
        let (since, limit) = (disk.since, disk.limit);
        Instant::now() >= self.rested
            && self.measure_throttled(|_| changed_bytes(roots, device, since, limit)) > limit
    }
}

/// Returns the file systems in memory that are the sandbox's own.
fn memory_file_systems(policy: &SandboxPolicy<&CStr>) -> Vec<OwnedFd> {
    let scratches = policy.steps.iter().filter_map(|step| match step {
        RootStep::Scratch { path, .. } => Some(PathBuf::from("/").join(path.to_string_lossy().as_ref())),
        _ => None,
    });
    let (mut stores, mut devices) = (Vec::new(), Vec::new());
    for path in [PathBuf::from("/")].into_iter().chain(scratches) {
        let Ok(place) = rustix::fs::openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
            continue;
        };
        let Ok(found) = rustix::fs::fstat(&place) else { continue };
        let in_memory = rustix::fs::fstatfs(&place)
            .is_ok_and(|of| i128::from(of.f_type) == i128::from(libc::TMPFS_MAGIC));
        if in_memory && !devices.contains(&found.st_dev) {
            devices.push(found.st_dev);
            stores.push(place);
        }
    }
    stores
}

/// Returns the bytes that a file system holds.
fn used_bytes(place: &OwnedFd) -> Option<u64> {
    let found = rustix::fs::fstatvfs(place).ok()?;
    Some(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
}

/// Bytes of this namespace's shared segments that are in memory or swapped out.
fn shared_segment_bytes() -> u64 {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    parse_segment_bytes(&text)
}

/// Returns the bytes of shared segments: in proc(5), the fields 15 and 16 are resident and swapped
/// out; the first line has names.
fn parse_segment_bytes(text: &str) -> u64 {
    let held = |line: &str| {
        let fields = line.split_ascii_whitespace().skip(14).take(2);
        fields.filter_map(|field| field.parse::<u64>().ok()).fold(0, u64::saturating_add)
    };
    text.lines().skip(1).map(held).fold(0, u64::saturating_add)
}

/// Bytes of the files in memory that have no name but are open, each once. A process that lets
/// nobody look at it hides its own.
fn nameless_file_bytes(processes: &[PathBuf]) -> u64 {
    let (mut known, mut bytes) = (HashSet::new(), 0_u64);
    for process in processes {
        for entry in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_one = fs::read_link(&path)
                .is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"));
            if !is_one {
                continue;
            }
            let Ok(found) = fs::metadata(&path) else { continue };
            if known.insert((found.dev(), found.ino())) {
                bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
            }
        }
    }
    bytes
}

/// Returns all processes but this one, as directories.
pub(super) fn list_processes() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let number = |name: &[u8]| name.first().is_some_and(u8::is_ascii_digit) && name != b"1";
    entries
        .flatten()
        .filter(|entry| number(std::os::unix::ffi::OsStrExt::as_bytes(entry.file_name().as_os_str())))
        .map(|entry| entry.path())
        .collect()
}

/// Returns the file systems beneath what is mounted for writing.
fn writable_disks(policy: &SandboxPolicy<&CStr>) -> Vec<WritableDisk> {
    let mut disks: Vec<WritableDisk> = Vec::new();
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    for step in &policy.steps {
        let (RootStep::Bind { path, access: BindAccess::Writable, .. }
        | RootStep::Base { path, access: BindAccess::Writable }) = *step
        else {
            continue;
        };
        let root = PathBuf::from("/").join(path.to_string_lossy().as_ref());
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let Ok(place) = rustix::fs::openat(CWD, &root, flags, Mode::empty()) else { continue };
        let (Ok(found), Some(free)) = (rustix::fs::fstat(&place), free_bytes(&place)) else { continue };
        match disks.iter_mut().find(|disk| disk.device == found.st_dev) {
            Some(disk) => disk.roots.push(root),
            None => disks.push(WritableDisk {
                place,
                roots: vec![root],
                device: found.st_dev,
                free,
                limit: policy.disk.unwrap_or(free / 4),
                since: now,
            }),
        }
    }
    disks
}

fn free_bytes(place: &OwnedFd) -> Option<u64> {
    let found = rustix::fs::fstatvfs(place).ok()?;
    Some(found.f_bfree.saturating_mul(found.f_frsize))
}

/// Returns the bytes that the processes, and those that were waited for, had written to disks.
/// Allocated ones don't count.
fn written_bytes(processes: &[PathBuf]) -> u64 {
    let of = |process: &PathBuf| {
        let text = fs::read_to_string(process.join("io")).unwrap_or_default();
        let count = |name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        let cancelled = count("cancelled_write_bytes:").unwrap_or(0);
        count("write_bytes:").unwrap_or(0).saturating_sub(cancelled)
    };
    processes.iter().chain([&PathBuf::from("/proc/self")]).map(of).sum()
}

/// Bytes on disk of the files changed since then, until there are more than enough.
fn changed_bytes(mut pending: Vec<PathBuf>, device: u64, since: i64, enough: u64) -> u64 {
    let (mut bytes, mut seen) = (0_u64, 0);
    while let Some(directory) = pending.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            let Ok(found) = fs::symlink_metadata(entry.path()) else { continue };
            if found.is_dir() && found.dev() == device {
                pending.push(entry.path());
            } else if found.ctime() >= since {
                bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
            }
            if bytes > enough || seen > MAX_SCANNED_ENTRIES {
                return bytes;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_segments_are_added_up() {
        let text = "       key      shmid perms       size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime        rss       swap\n\
             0 0 1600 536870912 2 2 0 0 0 0 0 1 1 1 536870912 4096\n\
             0 1 1600 4096 2 2 0 0 0 0 0 1 1 1 0 0\n";
        assert_eq!(parse_segment_bytes(text), 536_870_912 + 4096);
        assert_eq!(parse_segment_bytes("nothing\nof the kind"), 0);
    }
}
