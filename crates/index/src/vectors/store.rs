//! The stored vectors of one model, in a directory.
//!
//! One process at a time writes, which a file lock ensures; any number read. Parts are added under
//! unused names, and replaced ones are removed afterwards: readers that have them mapped keep them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::{HashMap, HashSet};

use super::vector_part::{
    ChunkLink, PartContents, RowVisitor, TextKey, VectorPart, text_key_from_hash, write_part_file,
};
use super::view::{VectorView, embeddable_files};
use super::{Embedder, quantise::QuantisedVector};
use crate::write_lock::WriteLock;
use crate::{IndexError, Snapshot};

const DIRECTORY_NAME: &str = "vectors";
const LOCK_FILE_NAME: &str = "lock";
const PART_FILE_PREFIX: &str = "part-";
const NEW_FILE_NAME: &str = "new";
/// Number of parts of about one size that are merged into one.
const PARTS_PER_MERGE: usize = 8;
/// Maximum bytes of a part that is merged while its content is used.
const MAX_MERGE_INPUT_BYTES: u64 = 192 << 20;
/// Bytes up to which parts count as the smallest size class.
const SMALLEST_TIER_BYTES: u64 = 64 << 10;
/// Number of vectors of deleted texts that are kept in any case: another branch may need them.
const MIN_DROPPED_VECTORS: usize = 4_096;
/// Maximum attempts to open while another process replaces parts.
const MAX_LOAD_ATTEMPTS: usize = 20;

/// The vectors of one model.
#[derive(Debug)]
pub struct VectorStore {
    directory: PathBuf,
    name: String,
    model: [u8; 32],
    parts: Mutex<Arc<Vec<Arc<VectorPart>>>>,
    damage_report: Option<String>,
}

/// Statistics of a model's vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorStats {
    /// The model's name.
    pub model: String,
    /// Number of dimensions; `None` while there is no vector.
    pub dimensions: Option<usize>,
    /// Number of chunks of living files with a vector.
    pub embedded: usize,
    /// Number of chunks of living files that should have one.
    pub chunks: usize,
    /// Number of stored vectors, including those of deleted texts.
    pub kept: usize,
    /// Bytes on disk.
    pub bytes: u64,
}

impl VectorStore {
    /// Opens a model's vectors in an index's directory. Damaged parts are removed, so that they are
    /// made again: [`VectorStore::damage_report`] reports this. Without a part there is nothing on
    /// disk.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn open(index: &Path, embedder: &dyn Embedder) -> Result<Self, IndexError> {
        let mut vectors = Self {
            directory: index.join(DIRECTORY_NAME),
            name: embedder.name().to_owned(),
            model: embedder.identity(),
            parts: Mutex::default(),
            damage_report: None,
        };
        vectors.damage_report = vectors.load()?;
        Ok(vectors)
    }

    /// Removes every model's vectors of an index.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn remove_all(index: &Path) -> Result<(), IndexError> {
        let directory = index.join(DIRECTORY_NAME);
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(IndexError::io("removing", directory)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the reason why stored vectors couldn't be used when they were opened.
    #[must_use]
    pub fn damage_report(&self) -> Option<&str> {
        self.damage_report.as_deref()
    }

    /// Returns the model's name.
    #[must_use]
    pub fn model_name(&self) -> &str {
        &self.name
    }

    pub(super) fn model_identity(&self) -> &[u8; 32] {
        &self.model
    }

    pub(super) fn parts(&self) -> Arc<Vec<Arc<VectorPart>>> {
        Arc::clone(&self.parts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_parts(&self, parts: Vec<Arc<VectorPart>>) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(parts);
    }

    /// Returns the number of dimensions of the stored vectors.
    pub(super) fn dimensions(&self) -> Option<usize> {
        self.parts().first().map(|part| part.dimensions())
    }

    /// Loads the current parts, and returns a report of damage.
    pub(super) fn load(&self) -> Result<Option<String>, IndexError> {
        let mut tried = 0;
        loop {
            tried += 1;
            match self.load_once() {
                // Another process just merged it.
                Err(IndexError::Io { error, .. })
                    if error.kind() == ErrorKind::NotFound && tried < MAX_LOAD_ATTEMPTS => {}
                other => return other,
            }
        }
    }

    fn load_once(&self) -> Result<Option<String>, IndexError> {
        let (mut parts, mut damaged) = (Vec::new(), None);
        for path in self.list_files(|name| name.starts_with(&self.part_prefix()))? {
            match VectorPart::open(&path, &self.model) {
                Ok(part) => parts.push(Arc::new(part)),
                Err(error @ IndexError::Damaged { .. }) => {
                    remove_file(&path)?;
                    damaged = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        // Vectors of two lengths can't be compared. That happens if two processes began at the same
        // time, and the server's model was replaced in between.
        let dimensions = parts.last().map(|part: &Arc<VectorPart>| part.dimensions());
        parts.retain(|part| Some(part.dimensions()) == dimensions);
        self.set_parts(parts);
        Ok(damaged)
    }

    fn part_prefix(&self) -> String {
        let name = blake3::Hash::from_bytes(self.model).to_hex();
        format!("{PART_FILE_PREFIX}{}-", name.get(..16).unwrap_or(&name))
    }

    /// Returns the files of the directory with wanted names, by name: the oldest first.
    fn list_files(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, IndexError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(IndexError::io("listing", &self.directory)(error)),
        };
        let names = entries.flatten().filter(|entry| wanted(&entry.file_name().to_string_lossy()));
        let mut paths: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
        paths.sort();
        Ok(paths)
    }

    /// Takes the write lock; `None` if another process has it.
    pub(super) fn lock(&self) -> Result<Option<WriteLock>, IndexError> {
        std::fs::create_dir_all(&self.directory).map_err(IndexError::io("making", &self.directory))?;
        WriteLock::take(&self.directory.join(LOCK_FILE_NAME), false)
    }

    /// Writes a part and adds it to the loaded parts. The caller must hold the lock.
    pub(super) fn add_part(&self, contents: &dyn PartContents) -> Result<(), IndexError> {
        let part = self.write_part(contents)?;
        let mut parts = self.parts().to_vec();
        parts.push(part);
        self.set_parts(parts);
        Ok(())
    }

    fn write_part(&self, contents: &dyn PartContents) -> Result<Arc<VectorPart>, IndexError> {
        let prefix = self.part_prefix();
        let last = self.list_files(|name| name.starts_with(&prefix))?.pop();
        let number = last.and_then(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            u64::from_str_radix(name.strip_prefix(&prefix)?, 16).ok()
        });
        let number = number.map_or(0, |number| number.saturating_add(1));
        let path = self.directory.join(format!("{prefix}{number:012x}"));
        write_part_file(contents, &self.model, &self.directory.join(NEW_FILE_NAME), &path)?;
        VectorPart::open(&path, &self.model).map(Arc::new)
    }

    /// Reads everything and compares the checksums; damaged parts are removed, so that they are
    /// made again.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] where a part was; [`IndexError::Io`].
    pub fn verify(&self) -> Result<(), IndexError> {
        for part in self.parts().iter() {
            if let Err(error) = part.verify() {
                remove_file(part.path())?;
                self.load()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns a view of the vectors of a snapshot's chunks.
    #[must_use]
    pub fn view(&self, snapshot: &Snapshot) -> VectorView {
        VectorView::new(self.parts(), snapshot)
    }

    /// Returns statistics.
    #[must_use]
    pub fn stats(&self, snapshot: &Snapshot) -> VectorStats {
        let parts = self.parts();
        VectorStats {
            model: self.name.clone(),
            dimensions: self.dimensions(),
            embedded: self.view(snapshot).chunk_count(),
            chunks: embeddable_files(snapshot).map(|(_, file)| file.record.chunks as usize).sum(),
            kept: parts.iter().map(|part| part.row_count()).sum(),
            bytes: parts.iter().map(|part| part.file_bytes()).sum(),
        }
    }

    /// Merges parts, drops vectors of deleted texts if they outnumber the others, and, once
    /// everything is embedded, other models' vectors. Returns the number of dropped vectors. The
    /// caller must hold the lock.
    pub(super) fn merge_small_parts(&self, snapshot: &Snapshot, complete: bool) -> Result<usize, IndexError> {
        let mut dropped = 0;
        let alive: HashSet<TextKey> =
            embeddable_files(snapshot).map(|(_, file)| text_key_from_hash(&file.record.hash)).collect();
        let parts = self.parts();
        let kept: usize = parts.iter().map(|part| part.row_count()).sum();
        if kept > MIN_DROPPED_VECTORS {
            let living: usize = parts.iter().map(|part| count_live_rows(part, &alive)).sum();
            if complete && kept - living > living.max(MIN_DROPPED_VECTORS) {
                let all: Vec<usize> = (0..parts.len()).collect();
                let now = self.merge_parts(&all, &|link| alive.contains(&link.content))?;
                dropped = kept.saturating_sub(now);
            }
        }
        while let Some(chosen) = choose_parts_to_merge(&self.parts()) {
            self.merge_parts(&chosen, &|_| true)?;
        }
        let prefix = self.part_prefix();
        let others = |name: &str| name.starts_with(PART_FILE_PREFIX) && !name.starts_with(&prefix);
        for path in self.list_files(|name| name == NEW_FILE_NAME || complete && others(name))? {
            remove_file(&path)?;
        }
        Ok(dropped)
    }

    /// Replaces some parts by one with their wanted links and rows. Returns the number of its rows.
    fn merge_parts(
        &self,
        chosen: &[usize],
        wanted: &dyn Fn(&ChunkLink) -> bool,
    ) -> Result<usize, IndexError> {
        let parts = self.parts();
        let merged = MergedParts::merge(chosen.iter().filter_map(|at| parts.get(*at)).collect(), wanted);
        let rows = merged.rows.len();
        let next = if rows > 0 { Some(self.write_part(&merged)?) } else { None };
        let rest = parts.iter().enumerate().filter(|(at, _)| !chosen.contains(at));
        self.set_parts(rest.map(|(_, part)| Arc::clone(part)).chain(next).collect());
        for part in chosen.iter().filter_map(|at| parts.get(*at)) {
            remove_file(part.path())?;
        }
        Ok(rows)
    }
}

fn count_live_rows(part: &VectorPart, alive: &HashSet<TextKey>) -> usize {
    let rows: HashSet<u32> =
        part.links().filter(|link| alive.contains(&link.content)).map(|link| link.row).collect();
    rows.len()
}

/// Returns the parts that should be merged, if any.
fn choose_parts_to_merge(parts: &[Arc<VectorPart>]) -> Option<Vec<usize>> {
    let mut tiers: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.file_bytes() < MAX_MERGE_INPUT_BYTES) {
        tiers
            .entry((part.file_bytes() / SMALLEST_TIER_BYTES).max(1).ilog2() / PARTS_PER_MERGE.ilog2())
            .or_default()
            .push(at);
    }
    tiers.into_values().find(|tier| tier.len() >= PARTS_PER_MERGE)
}

fn remove_file(path: &Path) -> Result<(), IndexError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(IndexError::io("removing", path)(error)),
        _ => Ok(()),
    }
}

/// Rows of several parts, each text once.
struct MergedParts<'a> {
    dimensions: usize,
    rows: Vec<(&'a VectorPart, u32)>,
    links: Vec<ChunkLink>,
}

impl<'a> MergedParts<'a> {
    fn merge(parts: Vec<&'a Arc<VectorPart>>, wanted: &dyn Fn(&ChunkLink) -> bool) -> Self {
        let mut merged = Self {
            dimensions: parts.first().map_or(0, |part| part.dimensions()),
            rows: Vec::new(),
            links: Vec::new(),
        };
        let mut known: HashMap<TextKey, u32> = HashMap::new();
        for part in parts {
            for link in part.links().filter(wanted) {
                let Some(key) = part.keys().get(link.row as usize) else { continue };
                let row = *known.entry(*key).or_insert_with(|| {
                    merged.rows.push((part, link.row));
                    merged.rows.len() as u32 - 1
                });
                merged.links.push(ChunkLink { row, ..link });
            }
        }
        merged.links.sort_unstable();
        merged.links.dedup_by_key(|link| (link.content, link.first_line, link.lines));
        merged
    }
}

impl PartContents for MergedParts<'_> {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn row_count(&self) -> usize {
        self.rows.len()
    }

    fn visit_rows(&self, visit: &mut RowVisitor<'_>) -> std::io::Result<()> {
        self.rows.iter().try_for_each(|(part, row)| {
            let key = part.keys().get(*row as usize).copied().unwrap_or_default();
            visit(&key, part.scale(*row), part.row(*row))
        })
    }

    fn links(&self) -> &[ChunkLink] {
        &self.links
    }
}

/// Vectors that aren't written yet.
#[derive(Debug, Default)]
pub(super) struct NewVectors {
    dimensions: usize,
    stride: usize,
    keys: Vec<TextKey>,
    scales: Vec<f32>,
    rows: Vec<u8>,
    links: Vec<ChunkLink>,
    known: HashMap<TextKey, u32>,
}

impl NewVectors {
    pub(super) fn new(dimensions: usize) -> Self {
        Self { dimensions, stride: super::dot::row_bytes(dimensions), ..Self::default() }
    }

    pub(super) fn row_of(&self, key: &TextKey) -> Option<u32> {
        self.known.get(key).copied()
    }

    /// Adds a vector.
    pub(super) fn add_row(&mut self, key: TextKey, vector: &QuantisedVector) {
        let bytes = vector.values.iter().map(|value| value.cast_unsigned());
        self.push_row(key, vector.scale, bytes);
    }

    /// Copies a row from a part.
    pub(super) fn copy_row(&mut self, key: TextKey, part: &VectorPart, row: u32) {
        self.push_row(key, part.scale(row), part.row(row).iter().copied());
    }

    fn push_row(&mut self, key: TextKey, scale: f32, row: impl Iterator<Item = u8>) {
        let at = self.keys.len() as u32;
        if self.known.contains_key(&key) {
            return;
        }
        self.known.insert(key, at);
        self.keys.push(key);
        self.scales.push(scale);
        self.rows.extend(row.take(self.stride));
        self.rows.resize(self.keys.len() * self.stride, 0);
    }

    pub(super) fn add_link(&mut self, link: ChunkLink) {
        self.links.push(link);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.rows.len()
    }

    /// Sorts the links.
    pub(super) fn sort_links(&mut self) {
        self.links.sort_unstable();
        self.links.dedup_by_key(|link| (link.content, link.first_line, link.lines));
    }
}

impl PartContents for NewVectors {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn row_count(&self) -> usize {
        self.keys.len()
    }

    fn visit_rows(&self, visit: &mut RowVisitor<'_>) -> std::io::Result<()> {
        let rows = self.rows.chunks_exact(self.stride.max(1));
        self.keys
            .iter()
            .zip(&self.scales)
            .zip(rows)
            .try_for_each(|((key, scale), row)| visit(key, *scale, row))
    }

    fn links(&self) -> &[ChunkLink] {
        &self.links
    }
}
