//! A project's index: its files, its history, and where both are kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_git::{Git, GitError};
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::RelPath;
use regex::bytes::RegexBuilder;

use crate::analyse::decoded;
use crate::graph::{self, Graph};
use crate::history::History;
use crate::pattern::{BadPattern, candidates};
use crate::source::{Bytes, Source as _, WorkTree};
use crate::store::{Options, Report};
use crate::{Index, IndexError, Snapshot};

/// Bytes that a compiled pattern and its automaton may take.
const PATTERN_BYTES: usize = 2 << 20;
/// Bytes of a line that are shown.
const LINE_BYTES: usize = 400;

/// A project's index.
#[derive(Debug)]
pub struct Project {
    source: WorkTree,
    index: Arc<Index>,
    history: PathBuf,
    graph: Arc<graph::Cache>,
}

/// A line that a pattern matches in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The file's number in the snapshot.
    pub file: u32,
    /// Counted from 1.
    pub line: u32,
    /// Its text, as far as it is shown.
    pub text: String,
}

impl Project {
    /// The index of the tree at `root`, kept in `directory`, which is made if need be; files are read by so many threads.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn open(root: &Path, directory: &Path, threads: usize) -> Result<Self, IndexError> {
        Self::open_redacting(root, directory, threads, Arc::default())
    }

    /// The same, of which what this redactor knows for secrets is kept out.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn open_redacting(
        root: &Path,
        directory: &Path,
        threads: usize,
        redactor: Arc<Redactor>,
    ) -> Result<Self, IndexError> {
        let index = Arc::new(Index::open(directory)?.redacting(redactor));
        let graph = Arc::new(graph::Cache::new(directory));
        Ok(Self { source: WorkTree::new(root, threads), index, history: directory.join("history"), graph })
    }

    /// The same index, with the tree reached by another path: one that is mounted anew has another.
    #[must_use]
    pub fn reached_at(&self, root: &Path, threads: usize) -> Self {
        let (index, graph) = (Arc::clone(&self.index), Arc::clone(&self.graph));
        Self { source: WorkTree::new(root, threads), index, history: self.history.clone(), graph }
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Where its files come from.
    #[must_use]
    pub fn source(&self) -> &WorkTree {
        &self.source
    }

    /// Brings the index up to date with the files.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn refresh(&self, options: Options<'_>) -> Result<Report, IndexError> {
        self.index.refresh(&self.source, options)
    }

    /// As [`Project::refresh`] without what only parsers find: for a first answer.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn refresh_text(&self, options: Options<'_>) -> Result<Report, IndexError> {
        self.index.refresh_text(&self.source, options)
    }

    /// Brings some files up to date, of which it is known that they may have changed.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn update(&self, paths: &[RelPath], options: Options<'_>) -> Result<Report, IndexError> {
        self.index.update(&self.source, paths, options)
    }

    /// What the project's commits tell; `None` where there are none.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn history(&self, git: &Git) -> Result<Option<History>, GitError> {
        // One that can't be read is read from git anew.
        let known = History::load(&self.history).ok().flatten();
        let before = known.as_ref().map(|known| known.revision().to_owned());
        let history = match History::read_redacting(git, "HEAD", known, self.index.redactor()).await {
            Err(GitError::NoRepository { .. }) => None,
            other => other?,
        };
        if let Some(history) =
            history.as_ref().filter(|history| before.as_deref() != Some(history.revision()))
        {
            // What can't be kept is read again the next time.
            history.save(&self.history).ok();
        }
        Ok(history)
    }

    /// A file's text as it is now; `None` where it can't be read or is longer than is read.
    #[must_use]
    pub fn text(&self, path: &RelPath) -> Option<String> {
        let Ok(Bytes::Whole(bytes)) = self.source.read(path) else { return None };
        Some(String::from_utf8_lossy(&decoded(&bytes)).into_owned())
    }

    /// What depends on what. The first time it is made, which takes a tenth of the time that the index took; later
    /// what changed since is looked at.
    #[must_use]
    pub fn graph(&self, snapshot: &Arc<Snapshot>) -> Arc<Graph> {
        self.graph.graph(snapshot, &|path| match self.source.read(&RelPath::parse(path).ok()?) {
            Ok(Bytes::Whole(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        })
    }

    /// The graph, if it is known but for a few files that changed: for who can't wait until it is made.
    #[must_use]
    pub fn graph_at_hand(&self, snapshot: &Arc<Snapshot>) -> Option<Arc<Graph>> {
        self.graph.at_hand(snapshot, &|path| match self.source.read(&RelPath::parse(path).ok()?) {
            Ok(Bytes::Whole(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        })
    }

    /// What was kept of the commits when they were last looked at; git isn't asked.
    #[must_use]
    pub fn history_at_hand(&self) -> Option<History> {
        History::load(&self.history).ok().flatten()
    }

    /// The lines that a pattern of the `regex` crate matches in, by path and line; at most `limit` (and whether there are
    /// more). Only files that may have one are read.
    ///
    /// # Errors
    /// [`BadPattern`].
    pub fn lines(
        &self,
        snapshot: &Snapshot,
        pattern: &str,
        case_insensitive: bool,
        limit: usize,
    ) -> Result<(Vec<Line>, bool), BadPattern> {
        let mut regex = RegexBuilder::new(pattern);
        regex.case_insensitive(case_insensitive).multi_line(true).size_limit(PATTERN_BYTES);
        let regex = regex.build().map_err(|error| BadPattern::new(&error))?;
        let mut lines = Vec::new();
        for file in candidates(snapshot, pattern, case_insensitive)?.files {
            let Some(path) = snapshot.file(file).and_then(|file| file.path()) else { continue };
            let Ok(Bytes::Whole(bytes)) = self.source.read(&path) else { continue };
            let bytes = decoded(&bytes);
            for (number, text) in bytes.split(|byte| *byte == b'\n').enumerate() {
                let text = text.strip_suffix(b"\r").unwrap_or(text);
                if !regex.is_match(text) {
                    continue;
                }
                if lines.len() == limit {
                    return Ok((lines, true));
                }
                let shown = text.get(..LINE_BYTES).unwrap_or(text);
                let text = String::from_utf8_lossy(shown).into_owned();
                lines.push(Line { file, line: u32::try_from(number + 1).unwrap_or(u32::MAX), text });
            }
        }
        Ok((lines, false))
    }
}
