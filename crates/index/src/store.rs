//! An index on disk: a directory of segments with a manifest, updated as files change.
//!
//! One process at a time writes, which a file lock ensures; any number read. A writer adds
//! segments, replaces the manifest by a rename, and then removes segments that the new manifest
//! doesn't name: readers that have them mapped keep them. So a crash at any instant leaves the
//! index as it was before or after the update, with at most some extra files, which the next writer
//! removes.

mod manifest;
mod refresh;
mod seed;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use journeyman_policy::secrets::Redactor;

use crate::IndexError;
use crate::segment::merge_segments;
use crate::snapshot::{LiveSegment, Snapshot};
use crate::write_lock::WriteLock;
use manifest::Manifest;
pub(crate) use manifest::SEGMENT_PREFIX;
pub use refresh::{IndexReport, RefreshOptions, RefreshProgress};

const LOCK_FILE_NAME: &str = "lock";
/// Number of segments of about one size that are merged into one.
const SEGMENTS_PER_MERGE: usize = 8;
/// Number of segments that are merged even while a caller waits. Each segment costs every query a
/// look-up for each of its words.
const MANY_SEGMENTS: usize = 24;
/// Maximum bytes of a segment that is merged with others: larger ones would take seconds and speed
/// queries up little.
const MAX_MERGE_INPUT_BYTES: u64 = 32 << 20;
/// Bytes up to which segments count as the smallest size class.
const SMALLEST_TIER_BYTES: u64 = 64 << 10;

/// An index in a directory.
#[derive(Debug)]
pub struct Index {
    directory: PathBuf,
    now: Mutex<IndexState>,
    /// The reason why an earlier index couldn't be used.
    damage_report: Option<String>,
    /// The secrets that are kept out of the index.
    redactor: Arc<Redactor>,
}

#[derive(Debug, Default)]
struct IndexState {
    generation: u64,
    snapshot: Arc<Snapshot>,
}

impl Index {
    /// Opens the index in a directory, which is created if need be. A damaged index, or one of
    /// another version, is dropped: [`Index::damage_report`] reports this, and the next refresh
    /// rebuilds it.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn open(directory: &Path) -> Result<Self, IndexError> {
        std::fs::create_dir_all(directory).map_err(IndexError::io("making", directory))?;
        let mut index = Self {
            directory: directory.to_owned(),
            now: Mutex::default(),
            damage_report: None,
            redactor: Arc::default(),
        };
        match Manifest::read(directory) {
            Ok(manifest) => index.apply_manifest(&manifest),
            Err(error @ IndexError::Damaged { .. }) => {
                index.damage_report = Some(error.to_string());
                Manifest::remove_manifest(directory)?;
            }
            Err(error) => return Err(error),
        }
        Ok(index)
    }

    /// Returns true if a directory has an index.
    #[must_use]
    pub fn exists_in(directory: &Path) -> bool {
        Manifest::exists_in(directory)
    }

    /// Returns the index with a redactor, whose secrets are kept out besides texts with the shape
    /// of a secret. It applies to files read from now on.
    #[must_use]
    pub fn with_redactor(self, redactor: Arc<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// Returns the redactor of the index.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the reason why the index found by `open` couldn't be used.
    #[must_use]
    pub fn damage_report(&self) -> Option<&str> {
        self.damage_report.as_deref()
    }

    /// Returns the directory of the index.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the current snapshot. A later refresh doesn't change it.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.lock_state().snapshot)
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, IndexState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_manifest(&self, manifest: &Manifest) {
        let snapshot = Arc::new(Snapshot::new(manifest.segments.clone(), !manifest.complete));
        *self.lock_state() = IndexState { generation: manifest.generation, snapshot };
    }

    /// Loads the state that another process has written since, if any.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn reload(&self) -> Result<(), IndexError> {
        let manifest = Manifest::read(&self.directory)?;
        if manifest.generation != self.lock_state().generation {
            self.apply_manifest(&manifest);
        }
        Ok(())
    }

    /// Reads the whole index and compares the checksums; damaged parts are dropped, so that the
    /// next refresh rebuilds them.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] where a part was damaged.
    pub fn verify(&self) -> Result<(), IndexError> {
        let snapshot = self.snapshot();
        for living in snapshot.live_segments() {
            if let Err(error) = living.segment.mapped_file().verify() {
                Manifest::remove_manifest(&self.directory)?;
                *self.lock_state() = IndexState::default();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes everything from the index.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn clear(&self) -> Result<(), IndexError> {
        let _lock = self.lock(true)?;
        Manifest::remove_manifest(&self.directory)?;
        *self.lock_state() = IndexState::default();
        Manifest::default().remove_unlisted_segments(&self.directory)
    }

    /// Takes the write lock. Without `wait`, `None` if another process has it.
    fn lock(&self, wait: bool) -> Result<Option<WriteLock>, IndexError> {
        // It may be deleted at any time. What fails here is reported for the lock's file.
        std::fs::create_dir(&self.directory).ok();
        WriteLock::take(&self.directory.join(LOCK_FILE_NAME), wait)
    }

    /// Returns an unused name for a segment.
    fn unused_segment_path(&self, manifest: &Manifest) -> PathBuf {
        let mut number = manifest.generation.wrapping_mul(1 << 16);
        loop {
            let path = self.directory.join(format!("{SEGMENT_PREFIX}{number:012x}"));
            if !path.exists() {
                return path;
            }
            number = number.wrapping_add(1);
        }
    }

    /// Writes the manifest and replaces the current snapshot.
    fn publish_manifest(&self, manifest: &mut Manifest) -> Result<(), IndexError> {
        manifest.generation += 1;
        manifest.write(&self.directory)?;
        self.apply_manifest(manifest);
        Ok(())
    }

    /// Merges segments where there are many, or where much of one is dead; removes unlisted ones.
    fn merge_segments(&self, manifest: &mut Manifest, when: MergeOccasion) -> Result<(), IndexError> {
        let mut changed = false;
        while let Some(chosen) = choose_segments_to_merge(&manifest.segments, when) {
            let parts: Vec<&LiveSegment> =
                chosen.iter().filter_map(|at| manifest.segments.get(*at)).collect();
            let mut next = None;
            if parts.iter().any(|living| living.totals.files > 0) {
                let path = self.unused_segment_path(manifest);
                let segments: Vec<_> = parts.iter().map(|living| &*living.segment).collect();
                let lives =
                    |place: usize, file| parts.get(place).is_some_and(|living| !living.dead.contains(file));
                let stamps = |place: usize, file, record: &_| {
                    parts.get(place).map_or_else(Default::default, |living| living.stamp(file, record))
                };
                merge_segments(&segments, lives, stamps, &path, true)?;
                next = Some(LiveSegment::new(Arc::new(crate::segment::Segment::open(&path)?)));
            }
            let mut at = 0;
            manifest.segments.retain(|_| {
                at += 1;
                !chosen.contains(&(at - 1))
            });
            manifest.segments.extend(next);
            changed = true;
        }
        if changed {
            self.publish_manifest(manifest)?;
        }
        manifest.remove_unlisted_segments(&self.directory)
    }
}

/// The occasion of merging segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergeOccasion {
    /// A caller waits: only small segments are merged, and only where there are too many.
    DuringUpdate,
    /// No caller waits.
    WhenIdle,
}

/// Returns the segments that should be merged, if any.
fn choose_segments_to_merge(segments: &[LiveSegment], when: MergeOccasion) -> Option<Vec<usize>> {
    let half_dead =
        |living: &LiveSegment| living.totals.files == 0 || u64::from(living.dead.len()) > living.totals.files;
    if when == MergeOccasion::WhenIdle
        && let Some(at) = segments.iter().position(half_dead)
    {
        return Some(vec![at]);
    }
    let mut tiers: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
    for (at, living) in segments.iter().enumerate() {
        let bytes = living.segment.mapped_file().size_bytes();
        if bytes < MAX_MERGE_INPUT_BYTES {
            tiers
                .entry((bytes / SMALLEST_TIER_BYTES).max(1).ilog2() / SEGMENTS_PER_MERGE.ilog2())
                .or_default()
                .push(at);
        }
    }
    match when {
        MergeOccasion::DuringUpdate => tiers.remove(&0).filter(|tier| tier.len() >= MANY_SEGMENTS),
        MergeOccasion::WhenIdle => tiers.into_values().find(|tier| tier.len() >= SEGMENTS_PER_MERGE),
    }
}
