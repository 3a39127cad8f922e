//! Control groups, where this program may make some: the kernel itself then bounds a command's
//! memory and processes.
//!
//! Each command gets groups of its own, made by the agent while the helper starts, joined by the
//! helper or by pid 1 before the command begins, and removed by the agent when the command is gone.
//! The groups of a killed agent are empty, and the next agent removes them.

use std::ffi::{CStr, CString};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::fs::CWD;
use rustix::io::Errno;

use super::c_string::to_c_string;
use super::framing::{FrameReader, FrameWriter};
use super::helper_files::write_file;
use crate::SandboxError;

/// The prefix of every group's name; the owner's process id, its start and a number follow.
const NAME_PREFIX: &str = "journeyman-";
/// Groups of dead owners that are removed at once; the rest waits for the next start.
const MAX_SWEPT_GROUPS: usize = 10_000;
/// The kernel takes some milliseconds to count the last process out of a group; many times that on
/// a machine that has too much to do.
const MAX_REMOVAL_ATTEMPTS: u32 = 400;
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// The way in which a command enters a group, by absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CgroupEntry<T> {
    /// The helper puts itself into it, alone, before it makes anything else. Version 1 alone: it
    /// takes the caller's own thread without waiting until no process of the machine can be
    /// forking, which for another process takes up to tens of milliseconds.
    Enter { file: T },
    /// Pid 1 is put into it.
    Join { file: T },
}

impl<T> CgroupEntry<T> {
    pub(super) fn is_joined(&self) -> bool {
        matches!(self, Self::Join { .. })
    }
}

impl CgroupEntry<CString> {
    pub(super) fn encode(&self, out: &mut FrameWriter) {
        let (kind, path) = match self {
            Self::Enter { file } => (0, file),
            Self::Join { file } => (1, file),
        };
        out.write_u32(kind);
        out.write_text(path);
    }
}

impl<'a> CgroupEntry<&'a CStr> {
    pub(super) fn decode(from: &mut FrameReader<'a>) -> Option<Self> {
        let (kind, file) = (from.read_u32()?, from.read_text()?);
        match kind {
            0 => Some(Self::Enter { file }),
            1 => Some(Self::Join { file }),
            _ => None,
        }
    }
}

/// The resource that a group bounds, and the files by which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupKind {
    /// Version 1, memory.
    Memory,
    /// Version 1, processes.
    Pids,
    /// Version 2: both.
    Unified,
}

/// The directories where groups can be made.
#[derive(Debug, Clone, Default)]
pub(super) struct Cgroups(Arc<OnceLock<Vec<(PathBuf, CgroupKind)>>>);

impl Cgroups {
    fn parent_groups(&self) -> &[(PathBuf, CgroupKind)] {
        self.0.get_or_init(|| {
            let read = |file| fs::read_to_string(file).unwrap_or_default();
            let known = find_own_groups(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
            known.into_iter().filter(|(place, kind)| can_create_group(place, *kind)).collect()
        })
    }

    /// Returns whether memory is bounded by groups, and whether processes are.
    pub(super) fn bounded_resources(&self) -> (bool, bool) {
        let has = |kind| {
            self.parent_groups().iter().any(|(_, found)| *found == kind || *found == CgroupKind::Unified)
        };
        (has(CgroupKind::Memory), has(CgroupKind::Pids))
    }

    /// Returns a lease of groups for one command. None of the groups is created yet.
    pub(super) fn lease_groups(&self) -> CgroupLease {
        let name = next_group_name();
        let groups = self.parent_groups().iter().map(|(place, kind)| (place.join(&name), *kind)).collect();
        CgroupLease { groups, made: false }
    }
}

fn group_error(path: &Path) -> impl Fn(io::Error) -> SandboxError {
    move |source| SandboxError::Path { what: "the command's control group", path: path.to_owned(), source }
}

fn path_to_c_string(path: &Path) -> Result<CString, SandboxError> {
    to_c_string(path.as_os_str())
}

/// The groups of one command. Removed when dropped, by which time nothing may be left in them;
/// blocks for some milliseconds at most.
#[derive(Debug)]
pub(super) struct CgroupLease {
    groups: Vec<(PathBuf, CgroupKind)>,
    made: bool,
}

impl CgroupLease {
    /// Returns a lease of no group.
    pub(super) fn empty() -> Self {
        Self { groups: Vec::new(), made: true }
    }

    /// Creates the groups, if they don't exist.
    pub(super) fn create_groups(&mut self) -> Result<(), SandboxError> {
        if !std::mem::replace(&mut self.made, true) {
            for (directory, _) in &self.groups {
                fs::create_dir(directory).map_err(group_error(directory))?;
            }
        }
        Ok(())
    }

    /// Sets the limits of the groups.
    pub(super) fn set_limits(&self, processes: u64, memory: u64) -> Result<(), SandboxError> {
        // The helper and pid 1 count, too.
        let processes = processes.saturating_add(2).to_string();
        let memory = memory.to_string();
        for (directory, kind) in &self.groups {
            let set = |file: &str, value: &str| {
                let file = directory.join(file);
                let opened = fs::OpenOptions::new().write(true).open(&file);
                let written = opened.and_then(|mut opened| opened.write_all(value.as_bytes()));
                written.map_err(group_error(&file))
            };
            match kind {
                CgroupKind::Memory => {
                    set("memory.limit_in_bytes", &memory)?;
                    if rustix::system::sysinfo().totalswap > 0 {
                        // Not on every kernel: without, what is swapped out isn't counted.
                        set("memory.memsw.limit_in_bytes", &memory).ok();
                    }
                }
                CgroupKind::Pids => set("pids.max", &processes)?,
                CgroupKind::Unified => {
                    set("memory.max", &memory)?;
                    set("memory.swap.max", "0").ok();
                    set("pids.max", &processes)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the groups that the helper must enter or join.
    pub(super) fn group_entries(&self) -> Result<Vec<CgroupEntry<CString>>, SandboxError> {
        let way = |(directory, kind): &(PathBuf, CgroupKind)| {
            Ok(match kind {
                CgroupKind::Memory | CgroupKind::Pids => {
                    CgroupEntry::Enter { file: path_to_c_string(&directory.join("tasks"))? }
                }
                CgroupKind::Unified => {
                    CgroupEntry::Join { file: path_to_c_string(&directory.join("cgroup.procs"))? }
                }
            })
        };
        self.groups.iter().map(way).collect()
    }

    /// Returns true if the kernel killed one of the processes for lack of memory.
    pub(super) fn has_run_out_of_memory(&self) -> bool {
        self.groups.iter().any(|(directory, kind)| {
            let file = match kind {
                CgroupKind::Memory => "memory.oom_control",
                CgroupKind::Unified => "memory.events",
                CgroupKind::Pids => return false,
            };
            let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
            text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Drop for CgroupLease {
    fn drop(&mut self) {
        for (directory, _) in self.groups.iter().filter(|_| self.made) {
            for _ in 0..MAX_REMOVAL_ATTEMPTS {
                match rustix::fs::unlinkat(CWD, directory, rustix::fs::AtFlags::REMOVEDIR) {
                    Err(Errno::BUSY | Errno::INTR) => std::thread::sleep(REMOVAL_PAUSE),
                    // Removed, never made, or not to be removed: the next start tries it again.
                    _ => break,
                }
            }
        }
    }
}

/// Returns a group's name, which no other of this process's or another's has: several sandboxes may
/// begin at once.
fn next_group_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{NAME_PREFIX}{}-{}", process_identity(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns this process's number and start, which together no other process has.
fn process_identity() -> String {
    let id = std::process::id();
    format!("{id}-{}", start_ticks(id).unwrap_or(0))
}

/// Returns the start of a process in ticks since boot: field 22 of its `stat`, as proc(5) counts.
fn start_ticks(process: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    let after = stat.iter().rposition(|&byte| byte == b')')?;
    String::from_utf8_lossy(stat.get(after..)?).split(' ').nth(20)?.parse().ok()
}

/// Returns true if a group with its bounds can be made there. Removes groups of dead owners on the
/// way.
fn can_create_group(place: &Path, kind: CgroupKind) -> bool {
    remove_orphaned_groups(place);
    let trial = place.join(next_group_name());
    if fs::create_dir(&trial).is_err() {
        return false;
    }
    let has = |file| fs::exists(trial.join(file)).unwrap_or(false);
    let bounds = match kind {
        CgroupKind::Memory => has("memory.limit_in_bytes"),
        CgroupKind::Pids => has("pids.max"),
        CgroupKind::Unified => has("memory.max") && has("pids.max"),
    };
    fs::remove_dir(&trial).is_ok() && bounds
}

/// Removes groups of owners that are gone. One with a process in it can't be removed, so nothing is
/// lost.
fn remove_orphaned_groups(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten().take(MAX_SWEPT_GROUPS) {
        let name = entry.file_name();
        if name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME_PREFIX))
            .is_some_and(|rest| !is_owner_alive(rest))
        {
            fs::remove_dir(entry.path()).ok();
        }
    }
}

/// Returns true if the owner in a group's name is alive, or if the name has no owner: such a group
/// is left alone.
fn is_owner_alive(name: &str) -> bool {
    let mut parts = name.split('-');
    let (Some(Ok(process)), Some(Ok(start))) =
        (parts.next().map(str::parse::<u32>), parts.next().map(str::parse::<u64>))
    else {
        return true;
    };
    start_ticks(process) == Some(start)
}

/// Returns this process's own groups, from the mounts and the list of groups.
fn find_own_groups(mounts: &str, groups: &str) -> Vec<(PathBuf, CgroupKind)> {
    // ID:CONTROLLERS:PATH, where version 2 has neither number nor controllers.
    let own = |controller: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            controllers.split(',').any(|found| found == controller).then(|| PathBuf::from(path))
        })
    };
    let mut found = Vec::new();
    for line in mounts.lines() {
        // ID PARENT DEVICE ROOT POINT OPTIONS … - TYPE SOURCE OPTIONS
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let mut columns = before.split(' ').skip(3);
        let (Some(root), Some(point)) = (columns.next(), columns.next()) else { continue };
        let mut after = after.split(' ');
        let (kind, options) = (after.next().unwrap_or_default(), after.nth(1).unwrap_or_default());
        let has = |option| options.split(',').any(|found| found == option);
        let (path, kind) = match kind {
            "cgroup" if has("memory") => (own("memory"), CgroupKind::Memory),
            "cgroup" if has("pids") => (own("pids"), CgroupKind::Pids),
            "cgroup2" => (own(""), CgroupKind::Unified),
            _ => continue,
        };
        // The mounted part of the hierarchy may not contain this process.
        let beneath = path.as_deref().and_then(|path| path.strip_prefix(root).ok());
        if let Some(beneath) = beneath
            && !beneath.components().any(|part| part == std::path::Component::ParentDir)
            && !found.iter().any(|(_, known)| *known == kind)
        {
            found.push((Path::new(point).join(beneath), kind));
        }
    }
    found
}

/// Enters the groups that this process, which has one thread, can enter by itself.
pub(super) fn enter_groups(groups: &[CgroupEntry<&CStr>]) -> Result<(), Errno> {
    for group in groups {
        if let CgroupEntry::Enter { file } = group {
            write_file(file, b"0")?;
        }
    }
    Ok(())
}

/// Joins the other groups for another process. Shares its memory with that process, so it neither
/// allocates nor uses `errno`.
pub(super) fn join_groups(groups: &[CgroupEntry<&CStr>], process: u32) -> Result<(), Errno> {
    for group in groups {
        let CgroupEntry::Join { file } = group else { continue };
        // Ten digits are the most that 32 bits have.
        let mut digits = [b'0'; 10];
        let mut rest = process;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        // With a nought before it, it would be an octal number.
        let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(0);
        write_file(file, digits.get(first..).unwrap_or_default())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_groups_are_found_among_the_mounts() {
        let first = "30 20 0:25 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                     31 20 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                     32 20 0:27 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n";
        let groups = "8:pids:/\n4:memory:/a/b\n0::/\n";
        let expected = [
            (PathBuf::from("/sys/fs/cgroup/memory/a/b"), CgroupKind::Memory),
            (PathBuf::from("/sys/fs/cgroup/pids"), CgroupKind::Pids),
        ];
        assert_eq!(find_own_groups(first, groups), expected);
        let second = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let unified = |path: &str| find_own_groups(second, &format!("0::{path}\n"));
        assert_eq!(unified("/user.slice/x"), [("/sys/fs/cgroup/user.slice/x".into(), CgroupKind::Unified)]);
        // A process outside of what this namespace shows.
        assert_eq!(unified("/../other"), []);
        let part = "29 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(
            find_own_groups(part, "0::/docker/abc/x\n"),
            [("/sys/fs/cgroup/x".into(), CgroupKind::Unified)]
        );
        assert_eq!(find_own_groups(part, "0::/elsewhere\n"), []);
        assert_eq!(find_own_groups("nonsense - \n", "::\n"), []);
    }

    #[test]
    fn sandboxes_that_begin_at_once_find_the_same() {
        let first = Cgroups::default().bounded_resources();
        let all: Vec<_> =
            (0..8).map(|_| std::thread::spawn(|| Cgroups::default().bounded_resources())).collect();
        assert!(all.into_iter().all(|one| one.join().unwrap() == first));
    }

    #[test]
    fn owners_are_told_apart_by_their_beginning() {
        assert!(
            is_owner_alive(&format!("{}-7", process_identity()))
                && is_owner_alive("text")
                && is_owner_alive("1")
                && is_owner_alive("1-x")
        );
        assert!(!is_owner_alive(&format!("{}-1-7", std::process::id())));
        assert!(!is_owner_alive("4294967295-5-0"));
    }
}
