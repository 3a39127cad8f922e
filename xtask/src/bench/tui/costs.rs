//! Costs of a process and all processes that it started.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

/// Returns a process and its descendants.
fn tree_of(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    all
}

/// Returns the switches, voluntary and other, of all threads.
pub(super) fn count_switches(pid: u32) -> u64 {
    let of_thread = |thread: &Path| -> u64 {
        let status = std::fs::read_to_string(thread.join("status")).unwrap_or_default();
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        switches.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    let tree = tree_of(pid);
    let threads = tree.iter().filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).ok());
    threads.flatten().flatten().map(|thread| of_thread(&thread.path())).sum()
}

/// Returns the processor time so far, of what is running and of what has ended.
pub(super) fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    /// Ticks in a second, as every Linux counts them for programs.
    const TICKS: u64 = 100;
    let mut ticks = 0;
    for (place, pid) in tree_of(pid).into_iter().enumerate() {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let fields = stat.rsplit_once(')').context("its name")?.1;
        // Of the first, the time of children that have ended too.
        let count = if place == 0 { 4 } else { 2 };
        ticks += fields
            .split_whitespace()
            .skip(11)
            .take(count)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum::<u64>();
    }
    Ok(Duration::from_millis(ticks * 1000 / TICKS))
}

/// Returns the largest memory so far, in KiB: of all processes, each at its own largest.
pub(super) fn peak_memory(pid: u32) -> u64 {
    let of_process = |pid: &u32| -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    tree_of(pid).iter().filter_map(of_process).sum()
}
