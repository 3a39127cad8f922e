//! The kernel's counters of a container's processes.
//!
//! The daemon reports the same numbers only about once a second.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory of control groups, on every Linux.
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// The files of one container. Each is missing where the kernel or the way in which it is set up
/// has none.
#[derive(Debug, Default)]
pub(super) struct CgroupCounters {
    processes: Option<PathBuf>,
    time: Option<PathBuf>,
    peak: Option<PathBuf>,
    exhausted: Option<PathBuf>,
}

/// The resources used since the container was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UsedResources {
    pub(super) user: Duration,
    pub(super) system: Duration,
    /// The most memory at once, in bytes.
    pub(super) peak: u64,
    /// The number of processes killed because memory ran out.
    pub(super) exhausted: u64,
}

impl CgroupCounters {
    /// Finds the counters of the container `id`, whose first process is `process` on the host.
    pub(super) fn for_container(id: &str, process: i64) -> Self {
        let membership = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
        Self::find_files(Path::new(CGROUP_ROOT), &membership, id)
    }

    fn find_files(groups: &Path, membership: &str, id: &str) -> Self {
        let mut found = Self::default();
        for line in membership.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            // A number may be another process's, where the daemon counts them otherwise; the
            // group's name isn't.
            if !path.contains(id) || Path::new(path).components().any(|part| part.as_os_str() == "..") {
                continue;
            }
            let at = |name: &str| {
                let file = groups.join(controllers).join(path.trim_start_matches('/')).join(name);
                file.exists().then_some(file)
            };
            // The second version has all in one place, and its own names.
            let has = |controller: &str| {
                controllers.is_empty() || controllers.split(',').any(|one| one == controller)
            };
            if has("pids") {
                found.processes = found.processes.or_else(|| at("pids.current"));
            }
            if has("cpuacct") {
                found.time = found.time.or_else(|| at("cpu.stat").filter(|_| controllers.is_empty()));
                found.time = found.time.or_else(|| at("cpuacct.usage_all")).or_else(|| at("cpuacct.usage"));
            }
            if has("memory") {
                found.peak =
                    found.peak.or_else(|| at("memory.peak")).or_else(|| at("memory.max_usage_in_bytes"));
                found.exhausted =
                    found.exhausted.or_else(|| at("memory.events")).or_else(|| at("memory.oom_control"));
            }
        }
        found
    }

    /// Returns the number of processes and threads, where it is counted.
    pub(super) fn count_processes(&self) -> Option<u64> {
        fs::read_to_string(self.processes.as_ref()?).ok()?.trim().parse().ok()
    }

    pub(super) fn read_usage(&self) -> UsedResources {
        let read = |path: &Option<PathBuf>| {
            path.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
        };
        let (user, system) = parse_times(&read(&self.time));
        UsedResources {
            user,
            system,
            peak: read(&self.peak).trim().parse().unwrap_or_default(),
            exhausted: parse_counter(&read(&self.exhausted), "oom_kill").unwrap_or_default(),
        }
    }
}

/// Returns the number after `name` in a text of one `name number` pair a line.
fn parse_counter(text: &str, name: &str) -> Option<u64> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(known, _)| *known == name).find_map(|(_, number)| number.trim().parse().ok())
}

/// Returns the time in user mode and in the kernel, from any of the three files that have it.
fn parse_times(text: &str) -> (Duration, Duration) {
    if let (Some(user), Some(system)) = (parse_counter(text, "user_usec"), parse_counter(text, "system_usec"))
    {
        return (Duration::from_micros(user), Duration::from_micros(system));
    }
    if let Ok(whole) = text.trim().parse() {
        return (Duration::from_nanos(whole), Duration::ZERO);
    }
    // A line a processor: its number, nanoseconds in user mode, nanoseconds in the kernel.
    let mut sums = [0_u64; 2];
    for line in text.lines().skip(1) {
        for (sum, number) in sums.iter_mut().zip(line.split_ascii_whitespace().skip(1)) {
            *sum = sum.saturating_add(number.parse().unwrap_or_default());
        }
    }
    let [user, system] = sums.map(Duration::from_nanos);
    (user, system)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(files: &[(&str, &str)]) -> tempfile::TempDir {
        let groups = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = groups.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        groups
    }

    #[test]
    fn both_versions_of_control_groups_are_read() {
        let old = groups(&[
            ("pids/docker/abc/pids.current", "3\n"),
            ("cpu,cpuacct/docker/abc/cpuacct.usage_all", "cpu user system\n0 1000 20\n1 2000 30\n"),
            ("cpu,cpuacct/docker/abc/cpu.stat", "nr_periods 0\n"),
            ("memory/docker/abc/memory.max_usage_in_bytes", "4096\n"),
            ("memory/docker/abc/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        ]);
        let membership = "9:pids:/docker/abc\n4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n0::/\n";
        let counters = CgroupCounters::find_files(old.path(), membership, "abc");
        assert_eq!(counters.count_processes(), Some(3));
        let expected = UsedResources {
            user: Duration::from_nanos(3000),
            system: Duration::from_nanos(50),
            peak: 4096,
            exhausted: 2,
        };
        assert_eq!(counters.read_usage(), expected);

        let new = groups(&[
            ("system.slice/docker-abc.scope/pids.current", "2\n"),
            ("system.slice/docker-abc.scope/cpu.stat", "usage_usec 9\nuser_usec 5\nsystem_usec 4\n"),
            ("system.slice/docker-abc.scope/memory.peak", "8192\n"),
            ("system.slice/docker-abc.scope/memory.events", "low 0\noom 1\noom_kill 1\noom_group_kill 0\n"),
        ]);
        let counters = CgroupCounters::find_files(new.path(), "0::/system.slice/docker-abc.scope\n", "abc");
        assert_eq!(counters.count_processes(), Some(2));
        let expected = UsedResources {
            user: Duration::from_micros(5),
            system: Duration::from_micros(4),
            peak: 8192,
            exhausted: 1,
        };
        assert_eq!(counters.read_usage(), expected);
    }

    #[test]
    fn anothers_groups_arent_read() {
        let all = groups(&[("pids/docker/other/pids.current", "3\n"), ("pids.current", "3\n")]);
        for membership in ["9:pids:/docker/other\n", "9:pids:/\n", "0::/../abc\n", "strange", ""] {
            assert_eq!(
                CgroupCounters::find_files(all.path(), membership, "abc").count_processes(),
                None,
                "{membership}"
            );
        }
        assert_eq!(CgroupCounters::default().read_usage(), UsedResources::default());
    }
}
