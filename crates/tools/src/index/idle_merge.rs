//! Merging of small index segments when the session is idle, so that updates stay cheap and memory
//! use falls.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{CANCEL_POLL, IndexCore, IndexState, MAX_STOP_WAIT};
use crate::ToolError;

impl IndexCore {
    /// Notes a use of the index, and schedules a merge for when the index is idle.
    pub(super) fn schedule_segment_merge(self: &Arc<Self>, state: &mut IndexState) {
        state.used = Some(Instant::now());
        if state.resting || state.closed {
            return;
        }
        let core = Arc::clone(self);
        let started = std::thread::Builder::new().name("index-order".to_owned()).spawn(move || {
            let _resting = MergeStateGuard(&core);
            core.merge_segments_when_idle();
        });
        // Without a thread nothing is merged, which costs no more than before.
        state.resting = started.is_ok();
    }

    fn merge_segments_when_idle(&self) {
        let Some(mut state) = self.lock_when_idle() else { return };
        let Some(project) = state.opened.clone() else { return };
        state.tidying = true;
        drop(state);
        // A failed merge is tried again later.
        project.index().merge_small_segments().ok();
    }

    /// Waits until the index is idle, and locks its state; `None` if the session has ended.
    fn lock_when_idle(&self) -> Option<MutexGuard<'_, IndexState>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            let quiet = state.used.map_or(Duration::ZERO, |used| used.elapsed());
            let left = self.idle_time.saturating_sub(quiet);
            if left.is_zero() && state.running.is_none() {
                return Some(state);
            }
            // The end of a refresh notifies this wait.
            let left = left.max(CANCEL_POLL);
            state = self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits while segments are being merged, because only one writer is allowed.
    pub(super) fn wait_for_segment_merge(&self, cancel: &CancellationToken) -> Result<(), ToolError> {
        let end = Instant::now() + MAX_STOP_WAIT;
        let mut state = self.lock();
        while state.tidying && Instant::now() < end {
            if cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            state = self.news.wait_timeout(state, CANCEL_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

/// Clears the state of a waiting or running merge when dropped, even after a panic.
struct MergeStateGuard<'a>(&'a IndexCore);

impl Drop for MergeStateGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.resting, state.tidying) = (false, false);
        drop(state);
        self.0.news.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::RelPath;
    use journeyman_store::Blobs;
    use journeyman_workspace::{Options, Workspace};

    use super::*;
    use crate::SharedIndex;

    #[test]
    fn when_nobody_asks_small_segments_become_one() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let blobs = Arc::new(Blobs::open(&base.path().join("blobs"), 1 << 20).unwrap());
        let options = Options::new(base.path().join("state"), blobs);
        let workspace = Arc::new(Workspace::open(&root, options).unwrap());
        let mut index = SharedIndex::new(workspace, Arc::default(), None);
        Arc::get_mut(&mut index.core).unwrap().idle_time = Duration::ZERO;
        let path = RelPath::parse("a.rs").unwrap();
        let never = CancellationToken::new();
        for round in 0..20 {
            std::fs::write(root.join("a.rs"), format!("fn fresh_{round}() {{}}\n")).unwrap();
            index.note_changed([&path]);
            let asked = index.snapshot(&never).unwrap();
            let mut count = 0;
            asked.snapshot.visit_definitions(&format!("fresh_{round}"), |_| count += 1);
            assert_eq!((count, asked.note.as_str()), (1, ""), "round {round}");
        }
        let segments = || {
            let names = std::fs::read_dir(&index.core.directory).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().starts_with("segment-")).count()
        };
        // Without being put in order there are twenty.
        while segments() > 8 {
            std::thread::yield_now();
        }
        let mut count = 0;
        index.snapshot(&never).unwrap().snapshot.visit_definitions("fresh_19", |_| count += 1);
        assert_eq!(count, 1);
    }
}
