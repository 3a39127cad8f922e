//! A process and its whole tree: processor time and peak memory.
#![allow(unsafe_code)]

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;

/// The interval between two samples of the tree's memory.
const SAMPLE_EVERY: Duration = Duration::from_millis(2);

/// The resources that a process tree used.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) status: ExitStatus,
    /// User and system time of the process and every descendant that was waited for.
    pub(crate) cpu: Duration,
    /// Highest sum of the resident sets of the tree's processes, in bytes; shared pages count once
    /// each process.
    pub(crate) peak_rss: u64,
}

/// Runs a command to its end and measures its tree.
pub(crate) fn measure(command: &mut Command) -> anyhow::Result<Used> {
    let before = children_cpu();
    let mut child = command.spawn().context("starting the program")?;
    let sampler = Sampler::start(&child);
    let status = child.wait()?;
    Ok(Used { status, cpu: children_cpu().saturating_sub(before), peak_rss: sampler.stop() })
}

/// Processor time of every descendant that has been waited for.
pub(crate) fn children_cpu() -> Duration {
    // SAFETY: all-zero bytes are a valid `rusage`: it has only integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `rusage`, which the call fills in.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let time = |t: libc::timeval| {
        Duration::from_secs(u64::try_from(t.tv_sec).unwrap_or_default())
            + Duration::from_micros(u64::try_from(t.tv_usec).unwrap_or_default())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

struct Sampler {
    stop: Arc<AtomicBool>,
    peak: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Sampler {
    fn start(child: &Child) -> Self {
        let (stop, peak) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, highest, pid) = (Arc::clone(&stop), Arc::clone(&peak), child.id());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                highest.fetch_max(tree_rss(pid), Ordering::Relaxed);
                std::thread::sleep(SAMPLE_EVERY);
            }
        });
        Self { stop, peak, thread }
    }

    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        // A sampler that died has still said what it saw.
        self.thread.join().ok();
        self.peak.load(Ordering::Relaxed)
    }
}

/// Resident bytes of a process and its descendants, now.
fn tree_rss(pid: u32) -> u64 {
    let place = format!("/proc/{pid}");
    let own = std::fs::read_to_string(format!("{place}/statm"))
        .ok()
        .and_then(|statm| statm.split(' ').nth(1)?.parse::<u64>().ok())
        .unwrap_or_default()
        * 4096;
    let children = children(Path::new(&place)).into_iter().filter(|child| !share_memory(pid, *child));
    own + children.map(tree_rss).sum::<u64>()
}

/// Returns true if two processes are in one address space, as a new child is until it starts its
/// program: its pages are its parent's, not as many again.
fn share_memory(one: u32, other: u32) -> bool {
    /// `KCMP_VM` of `linux/kcmp.h`.
    const ADDRESS_SPACES: libc::c_int = 1;
    let pid = |pid: u32| libc::pid_t::try_from(pid).unwrap_or_default();
    // SAFETY: the call takes numbers only and changes nothing.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, pid(one), pid(other), ADDRESS_SPACES, 0, 0) };
    order == 0
}

fn children(process: &Path) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(process.join("task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}
