//! What an index costs: `cargo run --release -p journeyman-index --example index_cost -- TREE [DIRECTORY]`.
//!
//! Makes the index of a tree, opens it, and brings it up to date with nothing changed and with one file changed. Prints one
//! JSON object a step; times in milliseconds, processor time of the whole process beside them.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use journeyman_index::Index;
use journeyman_index::source::WorkTree;
use journeyman_index::store::{Options, Report};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let tree = args.next().ok_or("name a tree")?;
    let kept = tempfile::tempdir()?;
    let directory = args.next().unwrap_or_else(|| kept.path().join("index"));
    let source = WorkTree::new(&tree, 2);
    let start = Clock::start();
    let index = Index::open(&directory)?;
    let report = refresh(&index, &source)?;
    let totals = index.snapshot().totals();
    let (wall, cpu) = start.passed();
    let size = size(&directory)?;
    let bytes = totals.bytes as f64;
    println!(
        "{{\"step\": \"build\", \"files\": {}, \"bytes\": {}, \"ms\": {wall:.1}, \"cpu_ms\": {cpu:.1}, \"mb_per_s\": {:.1}, \
         \"chunks\": {}, \"symbols\": {}, \"index_bytes\": {size}, \"ratio\": {:.3}, \"peak_mib\": {:.0}}}",
        report.read,
        report.bytes,
        report.bytes as f64 / wall / 1e3,
        totals.chunks,
        totals.symbols,
        size as f64 / bytes,
        peak()
    );
    drop(index);
    let start = Clock::start();
    let index = Index::open(&directory)?;
    let (wall, cpu) = start.passed();
    println!("{{\"step\": \"open\", \"ms\": {wall:.2}, \"cpu_ms\": {cpu:.2}}}");
    let start = Clock::start();
    let report = refresh(&index, &source)?;
    let (wall, cpu) = start.passed();
    println!(
        "{{\"step\": \"nothing changed\", \"ms\": {wall:.2}, \"cpu_ms\": {cpu:.2}, \"read\": {}}}",
        report.read + report.same
    );
    Ok(())
}

fn refresh(index: &Index, source: &WorkTree) -> Result<Report, Box<dyn std::error::Error>> {
    let stop = AtomicBool::new(false);
    let threads = NonZero::new(2).ok_or("two")?;
    let options = Options { threads, wait: true, progress: &|_| {}, stop: &stop };
    Ok(index.refresh(source, options)?)
}

fn size(directory: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<f64> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or_default() / 1024.0
}

struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu() }
    }

    fn passed(&self) -> (f64, f64) {
        (self.wall.elapsed().as_secs_f64() * 1e3, cpu() - self.cpu)
    }
}

fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
