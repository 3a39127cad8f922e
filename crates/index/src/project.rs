//! A project's index: its files, its history, and where both are kept.

use std::path::{Path, PathBuf};

use journeyman_git::{Git, GitError};
use regex::bytes::RegexBuilder;

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
    index: Index,
    history: PathBuf,
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
        let index = Index::open(directory)?;
        Ok(Self { source: WorkTree::new(root, threads), index, history: directory.join("history") })
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Brings the index up to date with the files.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn refresh(&self, options: Options<'_>) -> Result<Report, IndexError> {
        self.index.refresh(&self.source, options)
    }

    /// What the project's commits tell; `None` where there are none.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn history(&self, git: &Git) -> Result<Option<History>, GitError> {
        // One that can't be read is read from git anew.
        let known = History::load(&self.history).ok().flatten();
        let before = known.as_ref().map(|known| known.revision().to_owned());
        let history = match History::read(git, "HEAD", known).await {
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
