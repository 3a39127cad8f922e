//! The files that the model has seen.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journeyman_protocol::{ContentHash, FileChange, RelPath};
use journeyman_workspace::{FileContent, Workspace, unified_diff};
use serde::{Deserialize, Serialize};

/// Maximum bytes of kept texts, with which later changes are shown: some thirty source files. For
/// other files the workspace's kept contents are used.
const MAX_TEXTS_BYTES: usize = 512 * 1024;
/// Maximum bytes of one kept text, so that a long one doesn't displace all others.
const MAX_TEXT_BYTES: usize = 128 * 1024;
/// Maximum number of files that are remembered; no context holds more.
const MAX_FILES: usize = 4_096;
/// Maximum bytes of a difference that is shown; for a longer one the file is better read again.
const MAX_DIFF_BYTES: usize = 2_000;

/// The file versions that the session has seen: for each file the content that the model saw last,
/// so that the model never replaces unknown content, and the content last known to exist, so that
/// the session's own changes aren't taken for external ones. Bounded: the least recently used files
/// are forgotten.
#[derive(Debug, Default)]
pub struct SeenFiles {
    state: Mutex<SeenState>,
}

/// The seen versions of one file, as they are logged and [restored](SeenFiles::restore).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    /// The path, as the model wrote it.
    pub path: RelPath,
    /// The hash of the content that the model saw or wrote last.
    pub seen: ContentHash,
    /// The hash of the content last known to exist; `None` if the file was deleted.
    pub known: Option<ContentHash>,
    /// True if `known` is an external change that was [reported](SeenFiles::note_external_change)
    /// to the model.
    #[serde(default)]
    pub outside: bool,
}

/// The relation of a file's present content to the content that the model saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenStatus {
    /// The file was never read.
    Never,
    /// The content changed outside the session.
    Changed,
    /// A command of the session changed the content.
    ChangedByUs,
    /// The content is what the model saw.
    Current,
}

/// The changes of a file since the model saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDifference {
    /// The hunks of a unified diff.
    pub(crate) text: String,
    /// True if the hunks are complete.
    pub(crate) whole: bool,
}

#[derive(Debug, Default)]
struct SeenState {
    files: HashMap<RelPath, KnownFile>,
    /// Files whose entry changed since the last call of [`Seen::take_changes`].
    changed: HashSet<RelPath>,
    text_bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct KnownFile {
    seen: ContentHash,
    known: Option<ContentHash>,
    outside: bool,
    /// The text with the hash `seen`, if it is kept.
    text: Option<Arc<str>>,
    used: u64,
}

impl SeenFiles {
    /// Records that the model saw or wrote `path` with this content.
    pub fn record(&self, path: RelPath, hash: ContentHash) {
        self.lock_state().insert(path, hash, None);
    }

    /// Records seen content as [`SeenFiles::record`] does, and keeps the text to show later
    /// changes.
    pub fn record_text(&self, path: RelPath, hash: ContentHash, text: &str) {
        let text = (text.len() <= MAX_TEXT_BYTES).then(|| Arc::from(text));
        self.lock_state().insert(path, hash, text);
    }

    /// Records content that the session wrote, or a deletion, without the model seeing it. Does
    /// nothing for a file that the model has not seen.
    pub fn note_written(&self, path: &RelPath, hash: Option<ContentHash>) {
        self.lock_state().set_known(path, hash, false);
    }

    /// Records an external change that the model was told of; `hash` is `None` for a deletion.
    pub fn note_external_change(&self, path: &RelPath, hash: Option<ContentHash>) {
        self.lock_state().set_known(path, hash, true);
    }

    /// Records the present content of files that the session changed, under all paths they were
    /// seen by.
    pub fn note_changes(&self, workspace: &Workspace, changes: &[FileChange]) {
        if changes.is_empty() {
            return;
        }
        let changed: HashSet<&RelPath> = changes.iter().map(|change| &change.path).collect();
        let mut paths: Vec<RelPath> = self.lock_state().files.keys().cloned().collect();
        paths.retain(|path| {
            changed.contains(path)
                || workspace.canonicalize(path).is_ok_and(|real| real != *path && changed.contains(&real))
        });
        let hashes = workspace.fingerprints(&paths);
        for (path, hash) in paths.iter().zip(hashes) {
            self.note_written(path, hash);
        }
    }

    /// Compares the present content of `path`, given by its hash, with the content that was seen.
    #[must_use]
    pub fn compare(&self, path: &RelPath, hash: &ContentHash) -> SeenStatus {
        let mut state = self.lock_state();
        let used = state.tick();
        match state.files.get_mut(path) {
            None => SeenStatus::Never,
            Some(file) => {
                file.used = used;
                if file.seen == *hash {
                    SeenStatus::Current
                } else if file.known == Some(*hash) && !file.outside {
                    SeenStatus::ChangedByUs
                } else {
                    SeenStatus::Changed
                }
            }
        }
    }

    /// Returns true if `path` was last known to exist; the caller has found that it doesn't.
    /// Records the deletion.
    pub(crate) fn note_deletion(&self, path: &RelPath) -> bool {
        let mut state = self.lock_state();
        let was_there = state.files.get(path).is_some_and(|file| file.known.is_some());
        if was_there {
            state.set_known(path, None, true);
        }
        was_there
    }

    /// Returns all entries, sorted by path.
    #[must_use]
    pub fn entries(&self) -> Vec<SeenFile> {
        let state = self.lock_state();
        let mut entries: Vec<SeenFile> = state.files.keys().filter_map(|path| state.entry(path)).collect();
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        entries
    }

    /// Returns the existing files that were read or written last, most recent first.
    #[must_use]
    pub fn recent_files(&self, most: usize) -> Vec<RelPath> {
        let state = self.lock_state();
        let there = state.files.iter().filter(|(_, file)| file.known.is_some());
        let mut files: Vec<(u64, &RelPath)> = there.map(|(path, file)| (file.used, path)).collect();
        files.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
        files.into_iter().take(most).map(|(_, path)| path.clone()).collect()
    }

    /// Restores entries from a log, in which the newest entry of a file comes last. They are not
    /// logged again.
    pub fn restore(&self, entries: impl IntoIterator<Item = SeenFile>) {
        let mut state = self.lock_state();
        for SeenFile { path, seen, known, outside } in entries {
            state.insert(path.clone(), seen, None);
            state.set_known(&path, known, outside);
            state.changed.remove(&path);
        }
    }

    /// Returns the changed entries since the last call, sorted by path, for the log.
    #[must_use]
    pub fn take_changes(&self) -> Vec<SeenFile> {
        let mut state = self.lock_state();
        let changed = std::mem::take(&mut state.changed);
        let mut entries: Vec<SeenFile> = changed.iter().filter_map(|path| state.entry(path)).collect();
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        entries
    }

    /// Returns the changes in `path` since the model saw it; `None` if the seen text isn't kept any
    /// more.
    pub(crate) fn difference_since(
        &self,
        workspace: &Workspace,
        path: &RelPath,
        now: &FileContent,
    ) -> Option<FileDifference> {
        let (seen, text) = {
            let state = self.lock_state();
            let file = state.files.get(path)?;
            (file.seen, file.text.clone())
        };
        let before = match text {
            Some(text) => text,
            None => {
                let kept = FileContent::from_bytes(workspace.history().kept_content(&seen).ok()??, false);
                Arc::from(kept.text()?)
            }
        };
        let diff = unified_diff(path, Some(before.as_bytes()), Some(now.text()?.as_bytes()));
        let hunks = diff.find("\n@@").and_then(|at| diff.get(at + 1..))?;
        Some(shorten_hunks(hunks))
    }

    /// Entries are inserted whole, so the data is valid after a panic too.
    fn lock_state(&self) -> MutexGuard<'_, SeenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SeenState {
    fn tick(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    fn insert(&mut self, path: RelPath, seen: ContentHash, text: Option<Arc<str>>) {
        let used = self.tick();
        let new = KnownFile { seen, known: Some(seen), outside: false, text, used };
        self.text_bytes += new.text_bytes();
        let same = self
            .files
            .get(&path)
            .is_some_and(|old| (old.seen, old.known, old.outside) == (new.seen, new.known, new.outside));
        if let Some(old) = self.files.insert(path.clone(), new) {
            self.text_bytes -= old.text_bytes();
        }
        if !same {
            self.changed.insert(path);
        }
        while self.text_bytes > MAX_TEXTS_BYTES {
            let with_text = self.files.values_mut().filter(|file| file.text.is_some());
            let Some(oldest) = with_text.min_by_key(|file| file.used) else { break };
            self.text_bytes -= oldest.text_bytes();
            oldest.text = None;
        }
        if self.files.len() > MAX_FILES {
            let oldest = self.files.iter().min_by_key(|(_, file)| file.used).map(|(path, _)| path.clone());
            if let Some(gone) = oldest.and_then(|path| self.files.remove(&path)) {
                self.text_bytes -= gone.text_bytes();
            }
        }
    }

    fn set_known(&mut self, path: &RelPath, known: Option<ContentHash>, outside: bool) {
        let Some(file) = self.files.get_mut(path) else { return };
        if (file.known, file.outside) != (known, outside) {
            (file.known, file.outside) = (known, outside);
            self.changed.insert(path.clone());
        }
    }

    fn entry(&self, path: &RelPath) -> Option<SeenFile> {
        let file = self.files.get(path)?;
        Some(SeenFile { path: path.clone(), seen: file.seen, known: file.known, outside: file.outside })
    }
}

impl KnownFile {
    fn text_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }
}

/// Keeps as many lines of the hunks as fit.
fn shorten_hunks(hunks: &str) -> FileDifference {
    if hunks.len() <= MAX_DIFF_BYTES {
        return FileDifference { text: hunks.to_owned(), whole: true };
    }
    let fits = hunks.get(..hunks.floor_char_boundary(MAX_DIFF_BYTES)).unwrap_or_default();
    let fits = fits.rfind('\n').and_then(|end| fits.get(..=end)).unwrap_or_default();
    let more = hunks.lines().count() - fits.lines().count();
    FileDifference { text: format!("{fits}[and {more} more lines]\n"), whole: false }
}
