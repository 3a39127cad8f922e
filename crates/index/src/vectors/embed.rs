//! Embedding new chunks of a snapshot.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::RelPath;

use super::quantise::{QuantisedVector, quantise};
use super::store::{NewVectors, VectorStore};
use super::vector_part::{ChunkLink, TextKey, VectorPart, text_key_from_hash};
use super::view::embeddable_files;
use super::{Deadline, EmbedError, Embedder, EmbeddingPurpose, MAX_VECTORS, check_vectors, embedded_part};
use crate::analyser::{LineStarts, text_without_secrets};
use crate::source::{FileSource, SourceContent};
use crate::{IndexError, Snapshot};

/// Bytes of new vectors after which they are written.
const FLUSH_BYTES: usize = 32 << 20;
/// Time after which new vectors are written: the maximum loss in a crash, with a slow server.
const FLUSH_INTERVAL: Duration = Duration::from_secs(20);
/// Number of batches that are collected for each thread before they are embedded.
const BATCHES_PER_THREAD: usize = 4;

/// Settings of an embedding run.
#[derive(Clone, Copy)]
pub struct EmbeddingOptions<'a> {
    /// Number of threads, limited by the embedder.
    pub threads: NonZero<usize>,
    /// Called now and then with the progress.
    pub progress: &'a (dyn Fn(EmbeddingProgress) + Sync),
    /// Set to stop early: the work done until then is kept.
    pub stop: &'a AtomicBool,
    /// Secrets that are never sent to a model, besides texts with the shape of a secret.
    pub redactor: &'a Redactor,
}

/// Progress of an embedding run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingProgress {
    /// Number of files whose chunks have vectors now.
    pub done: usize,
    /// Number of files that had none.
    pub of: usize,
}

/// Result of an embedding run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbeddingReport {
    /// Number of embedded texts.
    pub embedded: usize,
    /// Number of chunks whose text had a vector already.
    pub reused: usize,
    /// Number of files whose chunks have vectors now and had none.
    pub files: usize,
    /// Number of files that couldn't be read, or changed since they were indexed; they are retried
    /// the next time.
    pub left: usize,
    /// Number of dropped vectors, of deleted texts.
    pub dropped: usize,
    /// There are more chunks than may have vectors.
    pub cut: bool,
    /// Another process is embedding; nothing was done.
    pub left_to_another: bool,
    /// The reason for an early end.
    pub failed: Option<EmbedError>,
}

impl VectorStore {
    /// Embeds the chunks of a snapshot that have no vector yet. `source` provides its files.
    ///
    /// # Errors
    /// [`IndexError`] where vectors can't be stored. Where the model fails,
    /// [`EmbeddingReport::failed`] has the reason, and the vectors made until then are kept.
    pub fn embed_snapshot(
        &self,
        snapshot: &Snapshot,
        source: &dyn FileSource,
        embedder: &dyn Embedder,
        options: EmbeddingOptions<'_>,
    ) -> Result<EmbeddingReport, IndexError> {
        let Some(_lock) = self.lock()? else {
            return Ok(EmbeddingReport { left_to_another: true, ..EmbeddingReport::default() });
        };
        self.load()?;
        let mut report = EmbeddingReport::default();
        let files = self.files_without_vectors(snapshot, &mut report);
        let mut work = EmbeddingRun {
            vectors: self,
            embedder,
            options,
            known: if files.is_empty() { HashMap::new() } else { stored_rows(&self.parts()) },
            dimensions: self.dimensions().or(embedder.dimensions()),
            fresh: None,
            waiting: Vec::new(),
            texts: Vec::new(),
            places: HashMap::new(),
            flushed: Instant::now(),
            report,
        };
        let of = files.len();
        for (at, file) in files.into_iter().enumerate() {
            let stopped = options.stop.load(Ordering::Relaxed);
            if stopped || work.report.failed.is_some() {
                work.report.failed.get_or_insert(EmbedError::Stopped);
                break;
            }
            work.collect_texts(source, &file);
            if work.is_flush_due() {
                work.embed_collected()?;
                (options.progress)(EmbeddingProgress { done: at + 1, of });
            }
        }
        if work.report.failed.is_none() {
            work.embed_collected()?;
        }
        work.flush()?;
        let mut report = work.report;
        let complete = report.failed.is_none() && report.left == 0;
        report.dropped = self.merge_small_parts(snapshot, complete)?;
        Ok(report)
    }

    /// Returns the files with a chunk without a vector.
    fn files_without_vectors(&self, snapshot: &Snapshot, report: &mut EmbeddingReport) -> Vec<FileToEmbed> {
        let parts = self.parts();
        let (mut files, mut chunks) = (Vec::new(), 0);
        for (_, file) in embeddable_files(snapshot) {
            let numbers = file.first_chunk()..file.first_chunk().saturating_add(file.record.chunks);
            let places: Vec<(u32, u32)> = numbers
                .filter_map(|number| snapshot.chunk(number))
                .map(|chunk| (chunk.first_line, chunk.lines))
                .collect();
            chunks += places.len();
            if chunks > MAX_VECTORS {
                report.cut = true;
                break;
            }
            let content = text_key_from_hash(&file.record.hash);
            let newest = parts.iter().rev().find(|part| part.links_of(&content).next().is_some());
            let is_whole = newest.is_some_and(|part| {
                let has: Vec<(u32, u32)> =
                    part.links_of(&content).map(|link| (link.first_line, link.lines)).collect();
                places.iter().all(|place| has.binary_search(place).is_ok())
            });
            if let Some(path) = file.path().filter(|_| !is_whole) {
                files.push(FileToEmbed { path, hash: file.record.hash, places });
            }
        }
        files
    }
}

/// A file whose chunks need vectors.
struct FileToEmbed {
    path: RelPath,
    hash: [u8; 32],
    places: Vec<(u32, u32)>,
}

/// Returns the stored row of each text.
fn stored_rows(parts: &Arc<Vec<Arc<VectorPart>>>) -> HashMap<TextKey, (Arc<VectorPart>, u32)> {
    let mut known = HashMap::new();
    for part in parts.iter() {
        for (row, key) in (0_u32..).zip(part.keys()) {
            known.insert(*key, (Arc::clone(part), row));
        }
    }
    known
}

/// The lines of a chunk in a file's content, and the key of its text.
struct ChunkText {
    first_line: u32,
    lines: u32,
    key: TextKey,
}

impl ChunkText {
    /// Returns the link to the vector of the text, if there is one.
    fn to_link(&self, content: TextKey, fresh: &NewVectors) -> Option<ChunkLink> {
        let row = fresh.row_of(&self.key)?;
        Some(ChunkLink { content, first_line: self.first_line, lines: self.lines, row })
    }
}

/// An embedding run in progress.
struct EmbeddingRun<'a> {
    vectors: &'a VectorStore,
    embedder: &'a dyn Embedder,
    options: EmbeddingOptions<'a>,
    /// The stored vector of each text.
    known: HashMap<TextKey, (Arc<VectorPart>, u32)>,
    dimensions: Option<usize>,
    fresh: Option<NewVectors>,
    /// Contents with collected texts, and the vectors of these.
    waiting: Vec<(TextKey, Vec<ChunkText>)>,
    /// Texts without a vector.
    texts: Vec<(TextKey, String)>,
    /// Position of each text among them.
    places: HashMap<TextKey, usize>,
    flushed: Instant,
    report: EmbeddingReport,
}

impl EmbeddingRun<'_> {
    /// Collects a file's texts.
    fn collect_texts(&mut self, source: &dyn FileSource, file: &FileToEmbed) {
        let bytes = match source.read(&file.path) {
            Ok((SourceContent::Whole(bytes), _)) if *blake3::hash(&bytes).as_bytes() == file.hash => bytes,
            _ => {
                self.report.left += 1;
                return;
            }
        };
        let text = text_without_secrets(&bytes, self.options.redactor);
        let lines = LineStarts::of_text(&text);
        let mut chunks = Vec::with_capacity(file.places.len());
        for (first_line, count) in &file.places {
            let (first_line, count) = (*first_line, *count);
            let chunk =
                embedded_part(lines.text_of_lines(&text, first_line..first_line.saturating_add(count)));
            let key = self.text_key(chunk);
            chunks.push(ChunkText { first_line, lines: count, key });
            let has = self.known.contains_key(&key)
                || self.fresh.as_ref().is_some_and(|fresh| fresh.row_of(&key).is_some())
                || self.places.contains_key(&key);
            if has {
                self.report.reused += 1;
            } else {
                self.places.insert(key, self.texts.len());
                self.texts.push((key, chunk.to_owned()));
            }
        }
        self.waiting.push((text_key_from_hash(&file.hash), chunks));
    }

    fn text_key(&self, chunk: &str) -> TextKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.vectors.model_identity()).update(chunk.as_bytes());
        text_key_from_hash(hasher.finalize().as_bytes())
    }

    fn thread_count(&self) -> usize {
        self.options.threads.get().min(self.embedder.max_concurrency()).max(1)
    }

    fn is_flush_due(&self) -> bool {
        self.texts.len() >= self.thread_count() * BATCHES_PER_THREAD * self.embedder.batch_size().max(1)
            || self.flushed.elapsed() > FLUSH_INTERVAL
    }

    /// Embeds the collected texts, and links the contents with all their vectors.
    fn embed_collected(&mut self) -> Result<(), IndexError> {
        let texts = std::mem::take(&mut self.texts);
        self.places.clear();
        let vectors = self.request_vectors(&texts);
        let dimensions = self.dimensions.unwrap_or(0);
        let fresh = self.fresh.get_or_insert_with(|| NewVectors::new(dimensions));
        for ((key, _), vector) in texts.iter().zip(&vectors) {
            if let Some(vector) = vector {
                fresh.add_row(*key, vector);
                self.report.embedded += 1;
            }
        }
        for (content, chunks) in self.waiting.drain(..) {
            for ChunkText { key, .. } in &chunks {
                if fresh.row_of(key).is_none()
                    && let Some((part, row)) = self.known.get(key)
                {
                    fresh.copy_row(*key, part, *row);
                }
            }
            // A file with a missing vector is retried the next time, when its other texts have
            // vectors.
            let links: Vec<ChunkLink> =
                chunks.iter().filter_map(|chunk| chunk.to_link(content, fresh)).collect();
            self.report.files += usize::from(links.len() == chunks.len());
            links.into_iter().for_each(|link| fresh.add_link(link));
        }
        if fresh.memory_bytes() > FLUSH_BYTES || self.flushed.elapsed() > FLUSH_INTERVAL {
            self.flush()?;
        }
        Ok(())
    }

    /// Returns the vectors of texts, in order; none after the point where the model failed.
    fn request_vectors(&mut self, texts: &[(TextKey, String)]) -> Vec<Option<QuantisedVector>> {
        let batches: Vec<&[(TextKey, String)]> = texts.chunks(self.embedder.batch_size().max(1)).collect();
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let done: Mutex<Vec<(usize, Vec<Vec<f32>>)>> = Mutex::default();
        let deadline = Deadline { stop: self.options.stop, until: None };
        let thread = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(batch) = batches.get(at) else { return };
                let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
                let vectors = deadline
                    .check()
                    .and_then(|()| self.embedder.embed(&texts, EmbeddingPurpose::Document, deadline))
                    .and_then(|vectors| {
                        check_vectors(self.embedder.name(), texts.len(), self.dimensions, vectors)
                    });
                match vectors {
                    Ok(vectors) => done.lock().unwrap_or_else(PoisonError::into_inner).push((at, vectors)),
                    Err(error) => {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        next.store(batches.len(), Ordering::Relaxed);
                        return;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.thread_count().min(batches.len()) {
                scope.spawn(thread);
            }
            thread();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|(at, _)| *at);
        self.report.failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Option<QuantisedVector>> = vec![None; texts.len()];
        let size = self.embedder.batch_size().max(1);
        for (at, vectors) in done {
            for (place, vector) in (at * size..).zip(vectors) {
                // The first answer determines the length of vectors; concurrent batches may differ.
                let expected = *self.dimensions.get_or_insert(vector.len());
                if vector.len() != expected {
                    let model = self.embedder.name().to_owned();
                    let got = vector.len();
                    self.report.failed.get_or_insert(EmbedError::Dimensions { model, expected, got });
                } else if let Some(slot) = all.get_mut(place) {
                    *slot = Some(quantise(&vector));
                }
            }
        }
        all
    }

    /// Writes new vectors.
    fn flush(&mut self) -> Result<(), IndexError> {
        self.flushed = Instant::now();
        let Some(mut fresh) = self.fresh.take().filter(|fresh| !fresh.is_empty()) else { return Ok(()) };
        fresh.sort_links();
        self.vectors.add_part(&fresh)?;
        if let Some(part) = self.vectors.parts().last() {
            for (row, key) in (0_u32..).zip(part.keys()) {
                self.known.insert(*key, (Arc::clone(part), row));
            }
        }
        Ok(())
    }
}
