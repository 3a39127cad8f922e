//! A project's index: its files, its history and its graph.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_git::{Git, GitError};
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::RelPath;
use regex::bytes::RegexBuilder;

use crate::analyser::decode_utf16;
use crate::graph::{self, Graph};
use crate::history::History;
use crate::pattern::{PatternError, candidate_files};
use crate::source::{FileSource as _, SourceContent, WorkTree};
use crate::store::{IndexReport, RefreshOptions};
use crate::{Index, IndexError, Snapshot};

/// Maximum bytes of a compiled pattern and of its automaton.
const MAX_COMPILED_PATTERN_BYTES: usize = 2 << 20;
/// Maximum bytes of a line that are returned.
const MAX_RETURNED_LINE_BYTES: usize = 400;

/// A project's index.
#[derive(Debug)]
pub struct ProjectIndex {
    source: WorkTree,
    index: Arc<Index>,
    history: PathBuf,
    graph: Arc<graph::GraphCache>,
}

/// A line that matches a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchingLine {
    /// Number of the file in the snapshot.
    pub file: u32,
    /// The line, 1-based.
    pub line: u32,
    /// Its text, cut at a maximum number of bytes.
    pub text: String,
}

/// The lines that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MatchingLines {
    /// By path and line.
    pub lines: Vec<MatchingLine>,
    /// True if there are more.
    pub has_more: bool,
    /// Number of files that are too long to be read: they may have more.
    pub too_long: usize,
}

impl ProjectIndex {
    /// Opens the index of the tree at `root`, kept in `directory`, which is created if need be;
    /// files are read by a number of threads.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn open(root: &Path, directory: &Path, threads: usize) -> Result<Self, IndexError> {
        Self::open_with_redactor(root, directory, threads, Arc::default())
    }

    /// Opens the index as [`ProjectIndex::open`] does, and keeps this redactor's secrets out of it.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn open_with_redactor(
        root: &Path,
        directory: &Path,
        threads: usize,
        redactor: Arc<Redactor>,
    ) -> Result<Self, IndexError> {
        let index = Arc::new(Index::open(directory)?.with_redactor(redactor));
        let graph = Arc::new(graph::GraphCache::new(directory));
        Ok(Self { source: WorkTree::new(root, threads), index, history: directory.join("history"), graph })
    }

    /// Returns the same index with the tree at another path, as after a new mount.
    #[must_use]
    pub fn with_root(&self, root: &Path, threads: usize) -> Self {
        let (index, graph) = (Arc::clone(&self.index), Arc::clone(&self.graph));
        Self { source: WorkTree::new(root, threads), index, history: self.history.clone(), graph }
    }

    /// Returns the index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the work tree with the project's files.
    #[must_use]
    pub fn work_tree(&self) -> &WorkTree {
        &self.source
    }

    /// Brings the index up to date with the files.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn refresh(&self, options: RefreshOptions<'_>) -> Result<IndexReport, IndexError> {
        self.index.refresh(&self.source, options)
    }

    /// Brings the index up to date without parsing, for a first answer.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn refresh_without_parsing(&self, options: RefreshOptions<'_>) -> Result<IndexReport, IndexError> {
        self.index.refresh_without_parsing(&self.source, options)
    }

    /// Brings the index up to date with some files that may have changed.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn update_files(
        &self,
        paths: &[RelPath],
        options: RefreshOptions<'_>,
    ) -> Result<IndexReport, IndexError> {
        self.index.update_files(&self.source, paths, options)
    }

    /// Returns the history of the project's commits; `None` where there are none.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn load_history(&self, git: &Git) -> Result<Option<History>, GitError> {
        // An unreadable history is read from git again.
        let known = History::load(&self.history).ok().flatten();
        let before = known.as_ref().map(|known| known.revision().to_owned());
        let history = match History::read_with_redactor(git, "HEAD", known, self.index.redactor()).await {
            Err(GitError::NoRepository { .. }) => None,
            other => other?,
        };
        if let Some(history) =
            history.as_ref().filter(|history| before.as_deref() != Some(history.revision()))
        {
            // A history that can't be saved is read again the next time.
            history.save(&self.history).ok();
        }
        Ok(history)
    }

    /// Returns the saved history if it is up to date with the checked-out commit, as far as files
    /// show without running git.
    #[must_use]
    pub fn current_history(&self, git: &Git) -> Option<History> {
        let head = git.read_head_from_files()?;
        self.saved_history().filter(|history| history.revision() == head)
    }

    /// Returns a file's current text; `None` where it can't be read or is too long.
    #[must_use]
    pub fn read_text(&self, path: &RelPath) -> Option<String> {
        let text = String::from_utf8(decode_utf16(self.read_content(path)?));
        Some(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Returns the dependency graph. Building it takes a tenth of the time of the index; later
    /// calls update it for the changes since.
    #[must_use]
    pub fn graph(&self, snapshot: &Arc<Snapshot>) -> Arc<Graph> {
        self.graph.graph(snapshot, &|path| self.read_content(&RelPath::parse(path).ok()?))
    }

    /// Returns the graph if only a few files changed since it was built, for callers that can't
    /// wait for building it.
    #[must_use]
    pub fn graph_without_waiting(&self, snapshot: &Arc<Snapshot>) -> Option<Arc<Graph>> {
        self.graph.graph_without_waiting(snapshot, &|path| self.read_content(&RelPath::parse(path).ok()?))
    }

    fn read_content(&self, path: &RelPath) -> Option<Vec<u8>> {
        match self.source.read(path) {
            Ok((SourceContent::Whole(bytes), _)) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the history as last saved, without running git.
    #[must_use]
    pub fn saved_history(&self) -> Option<History> {
        History::load(&self.history).ok().flatten()
    }

    /// Returns the lines that a pattern of the `regex` crate matches, at most `limit`. Reads only
    /// files that may match.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn matching_lines(
        &self,
        snapshot: &Snapshot,
        pattern: &str,
        case_insensitive: bool,
        limit: usize,
    ) -> Result<MatchingLines, PatternError> {
        let mut regex = RegexBuilder::new(pattern);
        regex.case_insensitive(case_insensitive).multi_line(true).size_limit(MAX_COMPILED_PATTERN_BYTES);
        let regex = regex.build().map_err(|error| PatternError::new(&error))?;
        let mut found = MatchingLines::default();
        for file in candidate_files(snapshot, pattern, case_insensitive)?.files {
            let Some(path) = snapshot.file(file).and_then(|file| file.path()) else { continue };
            let bytes = match self.source.read(&path) {
                Ok((SourceContent::Whole(bytes), _)) => decode_utf16(bytes),
                Ok((SourceContent::TooLong, _)) => {
                    found.too_long += 1;
                    continue;
                }
                Err(_) => continue,
            };
            for (number, text) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
                let text = text.strip_suffix(b"\n").unwrap_or(text);
                let text = text.strip_suffix(b"\r").unwrap_or(text);
                if !regex.is_match(text) {
                    continue;
                }
                if found.lines.len() == limit {
                    found.has_more = true;
                    return Ok(found);
                }
                let line = u32::try_from(number + 1).unwrap_or(u32::MAX);
                found.lines.push(MatchingLine { file, line, text: to_returned_line(text) });
            }
        }
        Ok(found)
    }
}

/// Returns the beginning of a line, cut between two characters.
fn to_returned_line(line: &[u8]) -> String {
    let is_inside = |end: usize| line.get(end).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end = (0..=MAX_RETURNED_LINE_BYTES).rev().find(|end| !is_inside(*end)).unwrap_or_default();
    String::from_utf8_lossy(line.get(..end).unwrap_or(line)).into_owned()
}
