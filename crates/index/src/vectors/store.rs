//! The vectors of one model, in a directory.
//!
//! One process at a time writes, by a lock on a file; any number read. Parts are added under names that nobody has, and
//! replaced ones are removed afterwards: whoever has them mapped keeps them.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::{HashMap, HashSet};
use rustix::fs::FlockOperation;

use super::part::{Contents, Key, Link, Part, Visit, key_of, write};
use super::view::View;
use super::{Embedder, quantise::Quantised};
use crate::snapshot::FileView;
use crate::{IndexError, Snapshot};

const DIRECTORY: &str = "vectors";
const LOCK: &str = "lock";
const PART: &str = "part-";
const NEW: &str = "new";
/// So many parts of about one size become one.
const FAN: usize = 8;
/// Parts of at least so many bytes aren't merged with others while what is in them is used.
const LARGEST: u64 = 192 << 20;
/// Bytes up to which parts count as of one size, the smallest.
const SMALLEST: u64 = 64 << 10;
/// So many vectors of texts that are gone may be kept, however few are alive: another branch may have them.
const SPARE: usize = 4_096;
/// Times that opening is tried while another process replaces what is listed.
const TRIES: usize = 20;

/// The vectors of one model.
#[derive(Debug)]
pub struct Vectors {
    directory: PathBuf,
    name: String,
    model: [u8; 32],
    parts: Mutex<Arc<Vec<Arc<Part>>>>,
    found_damaged: Option<String>,
}

/// What is kept of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The model's name.
    pub model: String,
    /// Numbers of a vector; `None` while there is no vector.
    pub dimensions: Option<usize>,
    /// Chunks of living files that have a vector.
    pub embedded: usize,
    /// Chunks of living files that should have one.
    pub chunks: usize,
    /// Vectors that are kept in all, also of texts that are gone.
    pub kept: usize,
    /// Bytes on the disk.
    pub bytes: u64,
}

impl Vectors {
    /// Opens what an index's directory has of a model. Parts that are damaged are removed, so that they are made anew:
    /// [`Vectors::found_damaged`] says so. Without a part there is nothing on the disk.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn open(index: &Path, embedder: &dyn Embedder) -> Result<Self, IndexError> {
        let mut vectors = Self {
            directory: index.join(DIRECTORY),
            name: embedder.name().to_owned(),
            model: embedder.identity(),
            parts: Mutex::default(),
            found_damaged: None,
        };
        vectors.found_damaged = vectors.load()?;
        Ok(vectors)
    }

    /// Forgets every model's vectors of an index.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn forget(index: &Path) -> Result<(), IndexError> {
        let directory = index.join(DIRECTORY);
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(IndexError::io("removing", directory)(error))
            }
            _ => Ok(()),
        }
    }

    /// Why something that was there when it was opened couldn't be used.
    #[must_use]
    pub fn found_damaged(&self) -> Option<&str> {
        self.found_damaged.as_deref()
    }

    /// The model's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn model(&self) -> &[u8; 32] {
        &self.model
    }

    pub(super) fn parts(&self) -> Arc<Vec<Arc<Part>>> {
        Arc::clone(&self.parts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn show(&self, parts: Vec<Arc<Part>>) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(parts);
    }

    /// Numbers of a vector that is kept.
    pub(super) fn dimensions(&self) -> Option<usize> {
        self.parts().first().map(|part| part.dimensions())
    }

    /// Looks at what there is now; says what was damaged.
    pub(super) fn load(&self) -> Result<Option<String>, IndexError> {
        let mut tried = 0;
        loop {
            tried += 1;
            match self.load_once() {
                // Another process merged it just now.
                Err(IndexError::Io { error, .. }) if error.kind() == ErrorKind::NotFound && tried < TRIES => {
                }
                other => return other,
            }
        }
    }

    fn load_once(&self) -> Result<Option<String>, IndexError> {
        let (mut parts, mut damaged) = (Vec::new(), None);
        for path in self.files(|name| name.starts_with(&self.prefix()))? {
            match Part::open(&path, &self.model) {
                Ok(part) => parts.push(Arc::new(part)),
                Err(error @ IndexError::Damaged { .. }) => {
                    remove(&path)?;
                    damaged = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        // Vectors of two lengths can't be compared. That happens where two processes began at the same time with a server
        // whose model was replaced in between.
        let dimensions = parts.last().map(|part: &Arc<Part>| part.dimensions());
        parts.retain(|part| Some(part.dimensions()) == dimensions);
        self.show(parts);
        Ok(damaged)
    }

    fn prefix(&self) -> String {
        let name = blake3::Hash::from_bytes(self.model).to_hex();
        format!("{PART}{}-", name.get(..16).unwrap_or(&name))
    }

    /// Files of the directory whose names are wanted, by name: the oldest first.
    fn files(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, IndexError> {
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

    /// Takes the right to write; `None` where another process has it.
    pub(super) fn lock(&self) -> Result<Option<File>, IndexError> {
        std::fs::create_dir_all(&self.directory).map_err(IndexError::io("making", &self.directory))?;
        let path = self.directory.join(LOCK);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(IndexError::io("opening", &path))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(IndexError::io("locking", &path)(error.into())),
        }
    }

    /// Writes a part and shows it. Only for who has the lock.
    pub(super) fn add(&self, contents: &dyn Contents) -> Result<(), IndexError> {
        let part = self.write(contents)?;
        let mut parts = self.parts().to_vec();
        parts.push(part);
        self.show(parts);
        Ok(())
    }

    fn write(&self, contents: &dyn Contents) -> Result<Arc<Part>, IndexError> {
        let prefix = self.prefix();
        let last = self.files(|name| name.starts_with(&prefix))?.pop();
        let number = last.and_then(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            u64::from_str_radix(name.strip_prefix(&prefix)?, 16).ok()
        });
        let number = number.map_or(0, |number| number.saturating_add(1));
        let path = self.directory.join(format!("{prefix}{number:012x}"));
        write(contents, &self.model, &self.directory.join(NEW), &path)?;
        Part::open(&path, &self.model).map(Arc::new)
    }

    /// Reads all of it and compares the checksums; what is damaged is removed, so that it is made anew.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] where it was; [`IndexError::Io`].
    pub fn verify(&self) -> Result<(), IndexError> {
        for part in self.parts().iter() {
            if let Err(error) = part.verify() {
                remove(part.path())?;
                self.load()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// What there is for the chunks of a snapshot.
    #[must_use]
    pub fn view(&self, snapshot: &Snapshot) -> View {
        View::new(self.parts(), snapshot)
    }

    /// What is kept.
    #[must_use]
    pub fn stats(&self, snapshot: &Snapshot) -> Stats {
        let parts = self.parts();
        Stats {
            model: self.name.clone(),
            dimensions: self.dimensions(),
            embedded: self.view(snapshot).chunks(),
            chunks: wanted(snapshot).map(|(_, file)| file.record.chunks as usize).sum(),
            kept: parts.iter().map(|part| part.count()).sum(),
            bytes: parts.iter().map(|part| part.bytes()).sum(),
        }
    }

    /// Makes one part of many, drops what is gone where that is more than what lives, and, where everything that should be
    /// embedded is, other models' vectors. Says how many vectors were dropped. Only for who has the lock.
    pub(super) fn tidy(&self, snapshot: &Snapshot, complete: bool) -> Result<usize, IndexError> {
        let mut dropped = 0;
        let alive: HashSet<Key> = wanted(snapshot).map(|(_, file)| key_of(&file.record.hash)).collect();
        let parts = self.parts();
        let kept: usize = parts.iter().map(|part| part.count()).sum();
        if kept > SPARE {
            let living: usize = parts.iter().map(|part| living_rows(part, &alive)).sum();
            if complete && kept - living > living.max(SPARE) {
                let all: Vec<usize> = (0..parts.len()).collect();
                let now = self.merge(&all, &|link| alive.contains(&link.content))?;
                dropped = kept.saturating_sub(now);
            }
        }
        while let Some(chosen) = choose(&self.parts()) {
            self.merge(&chosen, &|_| true)?;
        }
        let prefix = self.prefix();
        let others = |name: &str| name.starts_with(PART) && !name.starts_with(&prefix);
        for path in self.files(|name| name == NEW || complete && others(name))? {
            remove(&path)?;
        }
        Ok(dropped)
    }

    /// Puts some parts' links that are wanted, with their rows, into one part in their place. Says how many rows it has.
    fn merge(&self, chosen: &[usize], wanted: &dyn Fn(&Link) -> bool) -> Result<usize, IndexError> {
        let parts = self.parts();
        let merged = Merged::of(chosen.iter().filter_map(|at| parts.get(*at)).collect(), wanted);
        let rows = merged.rows.len();
        let next = if rows > 0 { Some(self.write(&merged)?) } else { None };
        let rest = parts.iter().enumerate().filter(|(at, _)| !chosen.contains(at));
        self.show(rest.map(|(_, part)| Arc::clone(part)).chain(next).collect());
        for part in chosen.iter().filter_map(|at| parts.get(*at)) {
            remove(part.path())?;
        }
        Ok(rows)
    }
}

/// The files whose chunks should have vectors: what people write here, and read.
pub(super) fn wanted(snapshot: &Snapshot) -> impl Iterator<Item = (u32, FileView<'_>)> {
    snapshot.files().filter(|(_, file)| {
        let flags = file.record.flags;
        file.record.chunks > 0 && file.record.lines > 0 && !flags.vendored && !flags.generated
    })
}

fn living_rows(part: &Part, alive: &HashSet<Key>) -> usize {
    let rows: HashSet<u32> =
        part.links().filter(|link| alive.contains(&link.content)).map(|link| link.row).collect();
    rows.len()
}

/// Which parts should become one, if any should.
fn choose(parts: &[Arc<Part>]) -> Option<Vec<usize>> {
    let mut tiers: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.bytes() < LARGEST) {
        tiers.entry((part.bytes() / SMALLEST).max(1).ilog2() / FAN.ilog2()).or_default().push(at);
    }
    tiers.into_values().find(|tier| tier.len() >= FAN)
}

fn remove(path: &Path) -> Result<(), IndexError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(IndexError::io("removing", path)(error)),
        _ => Ok(()),
    }
}

/// Rows of several parts, each text once.
struct Merged<'a> {
    dimensions: usize,
    rows: Vec<(&'a Part, u32)>,
    links: Vec<Link>,
}

impl<'a> Merged<'a> {
    fn of(parts: Vec<&'a Arc<Part>>, wanted: &dyn Fn(&Link) -> bool) -> Self {
        let mut merged = Self {
            dimensions: parts.first().map_or(0, |part| part.dimensions()),
            rows: Vec::new(),
            links: Vec::new(),
        };
        let mut known: HashMap<Key, u32> = HashMap::new();
        for part in parts {
            for link in part.links().filter(wanted) {
                let Some(key) = part.keys().get(link.row as usize) else { continue };
                let row = *known.entry(*key).or_insert_with(|| {
                    merged.rows.push((part, link.row));
                    merged.rows.len() as u32 - 1
                });
                merged.links.push(Link { row, ..link });
            }
        }
        merged.links.sort_unstable();
        merged.links.dedup_by_key(|link| (link.content, link.first_line, link.lines));
        merged
    }
}

impl Contents for Merged<'_> {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn count(&self) -> usize {
        self.rows.len()
    }

    fn each(&self, visit: &mut Visit<'_>) -> std::io::Result<()> {
        self.rows.iter().try_for_each(|(part, row)| {
            let key = part.keys().get(*row as usize).copied().unwrap_or_default();
            visit(&key, part.scale(*row), part.row(*row))
        })
    }

    fn links(&self) -> &[Link] {
        &self.links
    }
}

/// Vectors that aren't written yet.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    dimensions: usize,
    stride: usize,
    keys: Vec<Key>,
    scales: Vec<f32>,
    rows: Vec<u8>,
    links: Vec<Link>,
    known: HashMap<Key, u32>,
}

impl Fresh {
    pub(super) fn new(dimensions: usize) -> Self {
        Self { dimensions, stride: super::dot::stride(dimensions), ..Self::default() }
    }

    pub(super) fn row_of(&self, key: &Key) -> Option<u32> {
        self.known.get(key).copied()
    }

    /// Adds a vector.
    pub(super) fn add(&mut self, key: Key, vector: &Quantised) {
        let bytes = vector.values.iter().map(|value| value.cast_unsigned());
        self.push(key, vector.scale, bytes);
    }

    /// Takes a row over from a part.
    pub(super) fn copy(&mut self, key: Key, part: &Part, row: u32) {
        self.push(key, part.scale(row), part.row(row).iter().copied());
    }

    fn push(&mut self, key: Key, scale: f32, row: impl Iterator<Item = u8>) {
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

    pub(super) fn link(&mut self, link: Link) {
        self.links.push(link);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.len()
    }

    /// Puts the links in order.
    pub(super) fn finish(&mut self) {
        self.links.sort_unstable();
        self.links.dedup_by_key(|link| (link.content, link.first_line, link.lines));
    }
}

impl Contents for Fresh {
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn count(&self) -> usize {
        self.keys.len()
    }

    fn each(&self, visit: &mut Visit<'_>) -> std::io::Result<()> {
        let rows = self.rows.chunks_exact(self.stride.max(1));
        self.keys
            .iter()
            .zip(&self.scales)
            .zip(rows)
            .try_for_each(|((key, scale), row)| visit(key, *scale, row))
    }

    fn links(&self) -> &[Link] {
        &self.links
    }
}
