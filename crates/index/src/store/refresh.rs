//! Updating the index: analysing new and changed files, and dropping deleted ones.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::memory_release::release_freed_memory;
use hashbrown::HashMap;
use journeyman_protocol::RelPath;

use super::manifest::Manifest;
use super::{Index, MergeOccasion};
use crate::IndexError;
use crate::analyser::{Analyser, MAX_FILE_BYTES};
use crate::analysis::{ContentType, FileStamp};
use crate::segment::{DocumentId, FileRecord, Segment, SegmentBuilder};
use crate::snapshot::LiveSegment;
use crate::source::{FileSource, ListedFile, SourceContent};

/// Maximum bytes of memory of a segment being built, some two thirds of its source: all threads
/// together, with as much again for sorting, stay under a gigabyte.
const MAX_BUILDER_BYTES: usize = 192 << 20;
/// Minimum number of changed files for which a second thread pays.
const MIN_PARALLEL_FILES: usize = 16;
/// A file modified so shortly before it was read may change again with the same time stamp, and is
/// read once more. In nanoseconds; the kernel's clock ticks every 4 ms or less.
const RACY_NANOS: i64 = 20_000_000;
/// This interval for file systems with times in whole seconds (some network file systems count in
/// two).
const RACY_COARSE_NANOS: i64 = 2_000_000_000;

/// Settings of a refresh.
#[derive(Clone, Copy)]
pub struct RefreshOptions<'a> {
    /// Number of threads that read files.
    pub threads: NonZero<usize>,
    /// Wait where another process refreshes the same index, instead of leaving it to that process.
    pub wait: bool,
    /// Called now and then with the progress.
    pub progress: &'a (dyn Fn(RefreshProgress) + Sync),
    /// Set to stop early: the work done until then is kept.
    pub stop: &'a AtomicBool,
}

/// Progress of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshProgress {
    /// Number of files read.
    pub done: usize,
    /// Number of files to read.
    pub of: usize,
    /// Bytes read.
    pub bytes: u64,
}

/// Result of a refresh.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexReport {
    /// Number of new and changed files.
    pub read: usize,
    /// Number of files with a new stamp and the same content.
    pub same: usize,
    /// Number of deleted files.
    pub gone: usize,
    /// Bytes read.
    pub bytes: u64,
    /// There are more files than the index can hold.
    pub cut: bool,
    /// Number of directories and files that couldn't be read.
    pub unreadable: usize,
    /// Another process is refreshing; nothing was done.
    pub left_to_another: bool,
    /// The refresh was stopped before its end.
    pub stopped: bool,
}

/// Position of a living file in the index.
#[derive(Debug, Clone, Copy)]
struct StoredFile {
    segment: usize,
    file: DocumentId,
    stamp: FileStamp,
    hash: [u8; 32],
    shallow: bool,
    unreadable: bool,
}

/// Number of files that are prefetched: a disk is faster with several requests, and no thread waits
/// for it.
const PREFETCHED_FILES: usize = 16;
/// Minimum number of read files after which freed memory is returned to the system.
const MIN_FILES_TO_RELEASE_MEMORY: usize = 200;

/// The depth of an analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnalysisDepth {
    /// Words and trigrams only.
    Text,
    Whole,
}

impl StoredFile {
    fn new(segment: usize, living: &LiveSegment, file: DocumentId, record: &FileRecord) -> Self {
        let (stamp, hash) = (living.stamp(file, record), record.hash);
        let unreadable = record.content == ContentType::Unreadable;
        Self { segment, file, stamp, hash, shallow: record.shallow, unreadable }
    }

    /// Returns true if the stored analysis has the wanted depth, provided that the content is the
    /// same.
    fn has_depth(&self, depth: AnalysisDepth) -> bool {
        depth == AnalysisDepth::Text || !self.shallow
    }
}

impl Index {
    /// Brings the index up to date with all files of a source.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn refresh(
        &self,
        source: &dyn FileSource,
        options: RefreshOptions<'_>,
    ) -> Result<IndexReport, IndexError> {
        self.refresh_to_depth(source, options, AnalysisDepth::Whole)
    }

    /// Brings the index up to date without parsing: new and changed files get only their words and
    /// trigrams. That takes a fraction of the time, for a first answer from a large tree. The index
    /// says that it is partial; the next refresh adds the rest.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn refresh_without_parsing(
        &self,
        source: &dyn FileSource,
        options: RefreshOptions<'_>,
    ) -> Result<IndexReport, IndexError> {
        self.refresh_to_depth(source, options, AnalysisDepth::Text)
    }

    fn refresh_to_depth(
        &self,
        source: &dyn FileSource,
        options: RefreshOptions<'_>,
        depth: AnalysisDepth,
    ) -> Result<IndexReport, IndexError> {
        let Some(_lock) = self.lock(options.wait)? else {
            return Ok(IndexReport { left_to_another: true, ..IndexReport::default() });
        };
        let mut manifest = Manifest::read_or_reset(&self.directory)?;
        let now = now_nanos();
        let listing = source.list()?;
        let mut known = stored_files(&manifest);
        let mut report =
            IndexReport { cut: listing.cut, unreadable: listing.unreadable, ..IndexReport::default() };
        let mut changed = Vec::new();
        for listed in listing.files {
            let place = known.remove(listed.path.as_bytes());
            if place.is_none_or(|place| place.stamp != listed.stamp || !place.has_depth(depth)) {
                changed.push((invalidate_racy_stamp(listed, now), place));
            }
        }
        report.gone = known.len();
        let gone: Vec<StoredFile> = known.into_values().collect();
        let task = RefreshTask { changed, gone, options, depth, all_files: true };
        let report = self.apply_task(&mut manifest, source, task, report)?;
        self.merge_segments(&mut manifest, MergeOccasion::WhenIdle)?;
        if report.read > MIN_FILES_TO_RELEASE_MEMORY {
            release_freed_memory();
        }
        Ok(report)
    }

    /// Brings the index up to date with some files that may have changed. One that is partial, or
    /// was deleted, stays partial. Segments aren't merged until there are very many, which keeps
    /// this fast; call [`Index::merge_small_segments`] later.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn update_files(
        &self,
        source: &dyn FileSource,
        paths: &[RelPath],
        options: RefreshOptions<'_>,
    ) -> Result<IndexReport, IndexError> {
        let Some(_lock) = self.lock(options.wait)? else {
            return Ok(IndexReport { left_to_another: true, ..IndexReport::default() });
        };
        let mut manifest = Manifest::read_or_reset(&self.directory)?;
        let now = now_nanos();
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        for path in paths {
            let place = stored_file(&manifest, path);
            match source.stamp(path) {
                Some(stamp)
                    if place.is_some_and(|place| {
                        place.stamp == stamp && place.has_depth(AnalysisDepth::Whole)
                    }) => {}
                Some(stamp) => changed
                    .push((invalidate_racy_stamp(ListedFile { path: path.clone(), stamp }, now), place)),
                None => gone.extend(place),
            }
        }
        let report = IndexReport { gone: gone.len(), ..IndexReport::default() };
        let depth = AnalysisDepth::Whole;
        let task = RefreshTask { changed, gone, options, depth, all_files: false };
        let report = self.apply_task(&mut manifest, source, task, report)?;
        self.merge_segments(&mut manifest, MergeOccasion::DuringUpdate)?;
        Ok(report)
    }

    /// Merges small segments and those that are half dead: the work that updates put off. Does
    /// nothing where another process writes. Then [releases memory](Self::release_memory).
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn merge_small_segments(&self) -> Result<(), IndexError> {
        let done = match self.lock(false)? {
            Some(_lock) => {
                self.merge_segments(&mut Manifest::read_or_reset(&self.directory)?, MergeOccasion::WhenIdle)
            }
            None => Ok(()),
        };
        self.release_memory();
        done
    }

    /// Unmaps the memory that queries mapped, which is mapped again when it is read, and returns
    /// freed memory to the system.
    pub fn release_memory(&self) {
        release_freed_memory();
        self.snapshot()
            .live_segments()
            .iter()
            .for_each(|living| living.segment.mapped_file().release_memory());
    }

    fn apply_task(
        &self,
        manifest: &mut Manifest,
        source: &dyn FileSource,
        task: RefreshTask<'_>,
        mut report: IndexReport,
    ) -> Result<IndexReport, IndexError> {
        let RefreshTask { changed, gone, options, depth, all_files } = task;
        let completes = all_files && depth == AnalysisDepth::Whole;
        let was_complete = manifest.complete;
        mark_dead(manifest, &gone);
        if changed.is_empty() && gone.is_empty() {
            if !was_complete && completes {
                manifest.complete = true;
                self.publish_manifest(manifest)?;
            } else if self.lock_state().generation != manifest.generation {
                self.apply_manifest(manifest);
            }
            return Ok(report);
        }
        let first = manifest.segments.is_empty();
        manifest.complete = was_complete && !first;
        let work = RefreshWork {
            index: self,
            source,
            options,
            depth,
            changed: &changed,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            shared: Mutex::new(RefreshState { manifest, report: &mut report, failed: None }),
        };
        work.run();
        let failed = work.shared.into_inner().unwrap_or_else(PoisonError::into_inner).failed;
        if let Some(error) = failed {
            return Err(error);
        }
        report.stopped = options.stop.load(Ordering::Relaxed);
        manifest.complete = completes && !report.stopped || was_complete;
        manifest.segments.retain(|living| living.totals.files > 0);
        self.publish_manifest(manifest)?;
        Ok(report)
    }
}

/// The work to do.
struct RefreshTask<'a> {
    changed: Vec<(ListedFile, Option<StoredFile>)>,
    gone: Vec<StoredFile>,
    options: RefreshOptions<'a>,
    depth: AnalysisDepth,
    /// True if all files of the source were compared with the index.
    all_files: bool,
}

/// Reading of changed files by several threads.
struct RefreshWork<'a> {
    index: &'a Index,
    source: &'a dyn FileSource,
    options: RefreshOptions<'a>,
    depth: AnalysisDepth,
    changed: &'a [(ListedFile, Option<StoredFile>)],
    next: AtomicUsize,
    done: AtomicUsize,
    shared: Mutex<RefreshState<'a>>,
}

/// State shared by the threads.
struct RefreshState<'a> {
    manifest: &'a mut Manifest,
    report: &'a mut IndexReport,
    failed: Option<IndexError>,
}

/// State of one thread.
#[derive(Default)]
struct ThreadState {
    analyser: Analyser,
    builder: SegmentBuilder,
    /// The earlier versions of files that `builder` has newer ones of.
    replaced: Vec<StoredFile>,
    restamped: Vec<(StoredFile, FileStamp)>,
    bytes: u64,
    unreadable: usize,
}

impl<'a> RefreshWork<'a> {
    fn run(&self) {
        let threads = if self.changed.len() < MIN_PARALLEL_FILES { 1 } else { self.options.threads.get() };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.run_thread());
            }
            self.run_thread();
        });
    }

    fn run_thread(&self) {
        let analyser = Analyser::with_redactor(Arc::clone(&self.index.redactor));
        let mut own = ThreadState { analyser, ..ThreadState::default() };
        while !self.options.stop.load(Ordering::Relaxed) {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((listed, place)) = self.changed.get(next) else { break };
            self.prefetch(next);
            let read = self.read_file(&mut own, listed, *place);
            let read = read.and_then(|()| {
                if own.builder.memory_bytes() > MAX_BUILDER_BYTES {
                    self.publish_segment(&mut own)
                } else {
                    Ok(())
                }
            });
            if let Err(error) = read {
                self.record_failure(error);
                return;
            }
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            let bytes = own.bytes;
            (self.options.progress)(RefreshProgress { done, of: self.changed.len(), bytes });
        }
        if let Err(error) = self.publish_segment(&mut own) {
            self.record_failure(error);
        }
    }

    /// Prefetches files that come after the one at this position.
    fn prefetch(&self, next: usize) {
        if self.changed.len() < MIN_PARALLEL_FILES {
            return;
        }
        let ahead = if next == 0 {
            1..PREFETCHED_FILES + 1
        } else {
            next + PREFETCHED_FILES..next + PREFETCHED_FILES + 1
        };
        let soon = ahead.filter_map(|at| self.changed.get(at));
        let read = soon.filter(|(listed, _)| listed.stamp.size <= MAX_FILE_BYTES as u64);
        read.for_each(|(listed, _)| self.source.prefetch(&listed.path));
    }

    fn record_failure(&self, error: IndexError) {
        // The other threads end soon.
        self.next.store(usize::MAX / 2, Ordering::Relaxed);
        self.lock_state().failed.get_or_insert(error);
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, RefreshState<'a>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_file(
        &self,
        own: &mut ThreadState,
        listed: &ListedFile,
        place: Option<StoredFile>,
    ) -> Result<(), IndexError> {
        let ListedFile { path, stamp } = listed;
        let read = self.source.read(path);
        // The stamp of another content than this must not count for it, as where a directory was
        // moved away meanwhile and comes back.
        let stamp = match &read {
            Ok((_, opened)) if opened != stamp => stamp.invalidated(),
            // It may be readable the next time, with the same stamp.
            Err(error) if error.kind() != std::io::ErrorKind::PermissionDenied => stamp.invalidated(),
            _ => *stamp,
        };
        let analysis = match read.map(|(content, _)| content) {
            Ok(SourceContent::Whole(bytes)) => {
                own.bytes += bytes.len() as u64;
                let known = place.filter(|place| place.has_depth(self.depth));
                if let Some(place) = known.filter(|place| place.hash == *blake3::hash(&bytes).as_bytes()) {
                    own.restamped.push((place, stamp));
                    return Ok(());
                }
                match self.depth {
                    AnalysisDepth::Text => own.analyser.analyse_without_parsing(path, stamp, &bytes),
                    AnalysisDepth::Whole => own.analyser.analyse(path, stamp, &bytes),
                }
            }
            Ok(SourceContent::TooLong) => own.analyser.analyse_path_only(path, stamp, ContentType::Huge),
            // The file has been deleted since it was listed; the next refresh sees that.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                own.replaced.extend(place);
                return Ok(());
            }
            Err(_) => {
                own.unreadable += 1;
                if let Some(place) = place.filter(|place| place.unreadable) {
                    own.restamped.push((place, stamp));
                    return Ok(());
                }
                own.analyser.analyse_path_only(path, stamp, ContentType::Unreadable)
            }
        };
        own.builder.add(&analysis)?;
        own.replaced.extend(place);
        Ok(())
    }

    /// Writes a thread's segment and adds it to the index.
    fn publish_segment(&self, own: &mut ThreadState) -> Result<(), IndexError> {
        let builder = std::mem::take(&mut own.builder);
        let read = builder.len();
        let mut living = None;
        if !builder.is_empty() {
            let path: PathBuf = {
                let mut shared = self.lock_state();
                shared.manifest.generation += 1;
                self.index.unused_segment_path(shared.manifest)
            };
            builder.finish(&path, true)?;
            living = Some(LiveSegment::new(Arc::new(Segment::open(&path)?)));
        }
        let mut shared = self.lock_state();
        mark_dead(shared.manifest, &own.replaced);
        for (place, stamp) in own.restamped.drain(..) {
            shared.report.same += 1;
            if let Some(living) = shared.manifest.segments.get_mut(place.segment) {
                living.update_stamp(place.file, stamp);
            }
        }
        own.replaced.clear();
        shared.report.read += read;
        shared.report.bytes += std::mem::take(&mut own.bytes);
        shared.report.unreadable += std::mem::take(&mut own.unreadable);
        // At the end everything is published at once.
        let more = self.next.load(Ordering::Relaxed) < self.changed.len();
        shared.manifest.segments.extend(living);
        if more { self.index.publish_manifest(shared.manifest) } else { Ok(()) }
    }
}

fn mark_dead(manifest: &mut Manifest, places: &[StoredFile]) {
    for place in places {
        if let Some(living) = manifest.segments.get_mut(place.segment) {
            living.mark_dead(place.file);
        }
    }
}

fn stored_files(manifest: &Manifest) -> HashMap<Vec<u8>, StoredFile> {
    let files = manifest.segments.iter().map(|living| living.segment.file_count() as usize);
    let mut places = HashMap::with_capacity(files.sum());
    for (segment, living) in manifest.segments.iter().enumerate() {
        for (file, record) in living.live_files() {
            let path = living.segment.path_of(&record).to_vec();
            places.insert(path, StoredFile::new(segment, living, file, &record));
        }
    }
    places
}

fn stored_file(manifest: &Manifest, path: &RelPath) -> Option<StoredFile> {
    manifest.segments.iter().enumerate().find_map(|(segment, living)| {
        let file =
            living.segment.inverted_index().file_at(path).filter(|file| !living.dead.contains(*file))?;
        let record = living.segment.file(file)?;
        Some(StoredFile::new(segment, living, file, &record))
    })
}

fn now_nanos() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns a stamp by which a later change will be noticed: an impossible one for a file that was
/// modified just now.
fn invalidate_racy_stamp(mut listed: ListedFile, now: i64) -> ListedFile {
    let latest = listed.stamp.modified.max(listed.stamp.changed);
    let coarse = listed.stamp.modified % 1_000_000_000 == 0 && listed.stamp.changed % 1_000_000_000 == 0;
    if latest > now - if coarse { RACY_COARSE_NANOS } else { RACY_NANOS } {
        listed.stamp = listed.stamp.invalidated();
    }
    listed
}
