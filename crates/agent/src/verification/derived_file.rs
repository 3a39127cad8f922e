//! Small JSON files of derived data in a project's state directory: losing one costs some work.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a file of at most `max_bytes`. One that is missing, longer or broken counts as empty.
pub(super) fn read_derived<T: DeserializeOwned + Default>(path: &Path, max_bytes: u64) -> T {
    let is_small = fs::metadata(path).is_ok_and(|file| file.len() <= max_bytes);
    let text = if is_small { fs::read(path).unwrap_or_default() } else { Vec::new() };
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Replaces a file in one step. A failure leaves it as it was.
pub(super) fn write_derived(path: &Path, value: &impl Serialize) {
    /// Sessions of one process write at the same time.
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let Ok(text) = serde_json::to_vec(value) else { return };
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let new = path.with_extension(format!("{}-{number}.new", std::process::id()));
    if fs::write(&new, text).is_err() || fs::rename(&new, path).is_err() {
        fs::remove_file(&new).ok();
    }
}
