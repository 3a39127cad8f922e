//! Processes that can be found again.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static NEXT: AtomicU32 = AtomicU32::new(0);
/// Long enough for a loaded machine.
const TIMEOUT: u32 = 20_000;

/// A command that sleeps for longer than any test, and that no other process has.
pub(crate) struct Marker(String);

impl Marker {
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("sleep 1000.{}{number:03}", std::process::id()))
    }

    pub(crate) fn command(&self) -> String {
        self.0.clone()
    }

    /// How many processes of the machine are it.
    pub(crate) fn alive(&self) -> usize {
        let line = self.0.replace(' ', "\0");
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter(|process| command(&process.path()).starts_with(&line)).count()
    }
}

fn command(process: &Path) -> String {
    let bytes = std::fs::read(process.join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until the kernel has caught up.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..TIMEOUT {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{what} didn't happen");
}
