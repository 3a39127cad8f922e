//! The manifest: the list of an index's segments, read first, and replaced as a whole.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::IndexError;
use crate::analysis::FileStamp;
use crate::bit_set::BitSet;
use crate::segment::{Segment, format_version};
use crate::snapshot::{LiveSegment, Totals};

/// Prefix of the names of segment files.
pub(crate) const SEGMENT_PREFIX: &str = "segment-";
const FILE_NAME: &str = "manifest";
const NEW_FILE_NAME: &str = "manifest.new";
/// Maximum bytes of a manifest: a million dead files need a tenth of it.
const MAX_MANIFEST_BYTES: u64 = 128 << 20;
/// Maximum attempts to read while another process replaces the listed segments.
const MAX_READ_ATTEMPTS: usize = 20;

#[derive(Debug, Serialize, Deserialize)]
struct ManifestFile {
    version: u64,
    complete: bool,
    /// Incremented with each writing.
    generation: u64,
    segments: Vec<SegmentRow>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SegmentRow {
    name: String,
    dead: Vec<u32>,
    restamped: Vec<(u32, u64, i64, i64, u64)>,
    totals: Totals,
}

/// The content of a manifest.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) complete: bool,
    pub(crate) generation: u64,
    pub(crate) segments: Vec<LiveSegment>,
}

impl Manifest {
    /// Returns true if a directory has a manifest.
    pub(crate) fn exists_in(directory: &Path) -> bool {
        directory.join(FILE_NAME).is_file()
    }

    /// Reads the manifest in a directory; empty where there is none yet.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] where the index has to be rebuilt; [`IndexError::Io`].
    pub(crate) fn read(directory: &Path) -> Result<Self, IndexError> {
        let mut tried = 0;
        loop {
            tried += 1;
            match Self::read_once(directory) {
                // Another process merged the listed segments, and has written a newer manifest.
                Err(IndexError::Io { error, .. })
                    if error.kind() == ErrorKind::NotFound && tried < MAX_READ_ATTEMPTS => {}
                Err(IndexError::Io { path, error, .. }) if error.kind() == ErrorKind::NotFound => {
                    return Err(IndexError::Damaged { path, what: "it is gone" });
                }
                other => return other,
            }
        }
    }

    /// Reads the manifest in a directory, to be changed. A damaged one is removed, so that the
    /// index is rebuilt.
    pub(crate) fn read_or_reset(directory: &Path) -> Result<Self, IndexError> {
        let mut manifest = match Self::read(directory) {
            Err(IndexError::Damaged { .. }) => {
                Self::remove_manifest(directory)?;
                Self::default()
            }
            other => other?,
        };
        if manifest.generation == 0 {
            manifest.generation = first_generation();
        }
        Ok(manifest)
    }

    fn read_once(directory: &Path) -> Result<Self, IndexError> {
        let path = directory.join(FILE_NAME);
        let mut text = Vec::new();
        match File::open(&path) {
            Ok(file) => {
                file.take(MAX_MANIFEST_BYTES)
                    .read_to_end(&mut text)
                    .map_err(IndexError::io("reading", &path))?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(IndexError::io("opening", &path)(error)),
        }
        let damaged = |what| IndexError::damaged(&path, what);
        let (sum, told) = text.split_at_checked(65).ok_or_else(|| damaged("it is too short"))?;
        if sum.strip_suffix(b"\n") != Some(blake3::hash(told).to_hex().as_bytes()) {
            return Err(damaged("its checksum differs"));
        }
        let written: ManifestFile =
            serde_json::from_slice(told).map_err(|_| damaged("another version wrote it"))?;
        if written.version != format_version() {
            return Err(damaged("another version wrote it"));
        }
        let segments = written.segments.into_iter().map(|row| row.open(directory));
        let segments = segments.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { complete: written.complete, generation: written.generation, segments })
    }

    /// Replaces the manifest. Afterwards it is on disk.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), IndexError> {
        let segments = self.segments.iter().map(SegmentRow::from_live_segment).collect();
        let (complete, generation) = (self.complete, self.generation);
        let written = ManifestFile { version: format_version(), complete, generation, segments };
        let path = directory.join(NEW_FILE_NAME);
        let told = serde_json::to_vec(&written)
            .map_err(|error| IndexError::io("writing", &path)(std::io::Error::other(error)))?;
        let put = || {
            let mut file = File::create(&path)?;
            file.write_all(format!("{}\n", blake3::hash(&told).to_hex()).as_bytes())?;
            file.write_all(&told)?;
            file.sync_data()?;
            std::fs::rename(&path, directory.join(FILE_NAME))?;
            File::open(directory)?.sync_all()
        };
        put().map_err(IndexError::io("writing", &path))
    }

    /// Returns the listed file names.
    pub(crate) fn listed_names(&self) -> impl Iterator<Item = &std::ffi::OsStr> {
        self.segments.iter().filter_map(|living| living.segment.mapped_file().path().file_name())
    }

    /// Removes the segments in a directory that aren't listed.
    pub(crate) fn remove_unlisted_segments(&self, directory: &Path) -> Result<(), IndexError> {
        let listed: std::collections::BTreeSet<_> = self.listed_names().collect();
        let entries = std::fs::read_dir(directory).map_err(IndexError::io("listing", directory))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with(SEGMENT_PREFIX) && !listed.contains(name.as_os_str()) {
                std::fs::remove_file(entry.path()).map_err(IndexError::io("removing", entry.path()))?;
            }
        }
        Ok(())
    }

    /// Removes the manifest, so that the index is rebuilt.
    pub(crate) fn remove_manifest(directory: &Path) -> Result<(), IndexError> {
        match std::fs::remove_file(directory.join(FILE_NAME)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(IndexError::io("removing", directory.join(FILE_NAME))(error))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a generation, for an index built from nothing, that no earlier index in the directory
/// had. Other processes tell by it whether theirs is the newest, and names of segments follow from
/// it.
fn first_generation() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or_default()
}

impl SegmentRow {
    fn from_live_segment(living: &LiveSegment) -> Self {
        let name = living
            .segment
            .mapped_file()
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let flat = |(file, stamp): &(u32, FileStamp)| {
            (*file, stamp.size, stamp.modified, stamp.changed, stamp.inode)
        };
        Self {
            name,
            dead: living.dead.iter().collect(),
            restamped: living.restamped.iter().map(flat).collect(),
            totals: living.totals,
        }
    }

    fn open(self, directory: &Path) -> Result<LiveSegment, IndexError> {
        if self.name.contains('/') || !self.name.starts_with(SEGMENT_PREFIX) {
            return Err(IndexError::damaged(directory.join(FILE_NAME), "it names something else"));
        }
        let segment = Arc::new(Segment::open(&directory.join(self.name))?);
        let mut dead = BitSet::default();
        self.dead.into_iter().filter(|file| *file < segment.file_count()).for_each(|file| dead.insert(file));
        let stamp =
            |(file, size, modified, changed, inode)| (file, FileStamp { size, modified, changed, inode });
        let restamped = self.restamped.into_iter().map(stamp).collect();
        Ok(LiveSegment::from_manifest_row(segment, dead, restamped, self.totals))
    }
}
