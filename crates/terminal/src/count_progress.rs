//! A count on one line of a terminal, drawn over and over.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::stderr_screen;

/// Time before progress is shown, in milliseconds.
const PROGRESS_DELAY_MS: u64 = 700;
/// Time between two lines of progress, in milliseconds.
const PROGRESS_INTERVAL_MS: u64 = 200;

/// Shows on standard error, if that is a terminal, how much of a longer piece of work is done.
pub struct CountProgress {
    verb: &'static str,
    start: Instant,
    last_ms: AtomicU64,
    is_terminal: bool,
}

impl CountProgress {
    /// Begins to count; `verb` names the work, such as `indexing`.
    #[must_use]
    pub fn new(verb: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { verb, start: Instant::now(), last_ms: AtomicU64::new(0), is_terminal }
    }

    /// Shows that `done` of `of` files are done, unless the line is too fresh to be drawn again.
    pub fn update(&self, done: usize, of: usize) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let before = self.last_ms.load(Ordering::Relaxed);
        if !self.is_terminal || now < PROGRESS_DELAY_MS || now < before + PROGRESS_INTERVAL_MS {
            return;
        }
        if self.last_ms.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let line = format!("\r{}: {done} of {of} files\x1b[K", self.verb);
            stderr_screen().write_wrapped(&line);
        }
    }

    /// Removes the line.
    pub fn clear(&self) {
        if self.last_ms.load(Ordering::Relaxed) > 0 {
            clear_count_line();
        }
    }
}

/// Clears the line that the cursor is on, where standard error is a terminal.
pub fn clear_count_line() {
    if std::io::stderr().is_terminal() {
        stderr_screen().write_wrapped("\r\x1b[K");
    }
}
