//! A line of progress on a terminal.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Time before progress is shown, in milliseconds.
const PROGRESS_DELAY_MS: u64 = 700;
/// Time between two lines of progress, in milliseconds.
const PROGRESS_INTERVAL_MS: u64 = 200;

/// A line that is drawn over and over.
pub(super) struct ProgressLine {
    verb: &'static str,
    start: Instant,
    last_ms: AtomicU64,
    is_terminal: bool,
}

impl ProgressLine {
    pub(super) fn new(verb: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { verb, start: Instant::now(), last_ms: AtomicU64::new(0), is_terminal }
    }

    pub(super) fn update(&self, done: usize, of: usize) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let before = self.last_ms.load(Ordering::Relaxed);
        if !self.is_terminal || now < PROGRESS_DELAY_MS || now < before + PROGRESS_INTERVAL_MS {
            return;
        }
        if self.last_ms.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            err!("\r{}: {done} of {of} files\x1b[K", self.verb);
        }
    }

    pub(super) fn clear(&self) {
        if self.last_ms.load(Ordering::Relaxed) > 0 {
            clear_line();
        }
    }
}

/// Clears the line that the cursor is on, where standard error is a terminal.
pub(super) fn clear_line() {
    if std::io::stderr().is_terminal() {
        err!("\r\x1b[K");
    }
}
