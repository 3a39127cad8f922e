//! History of a repository: files changed by commits with messages similar to a query.
//!
//! It has the last [`MAX_COMMITS`] commits before a revision that aren't merges, with their
//! messages and files, and is stored beside the index with the words of the messages. Commits never
//! change, so another revision costs only its new commits, and a rewritten history only names
//! others.
//!
//! ```no_run
//! # async fn example(git: &journeyman_git::Git) -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//!
//! use journeyman_index::history::History;
//!
//! let file = Path::new("history");
//! if let Some(history) = History::read(git, "HEAD", History::load(file)?).await? {
//!     history.save(file)?;
//! }
//! # Ok(()) }
//! ```

mod commit;
mod history_file;
mod score;
mod words;

use std::collections::HashMap;
use std::sync::LazyLock;

use journeyman_git::{CommitDetails, Git, GitError};
use journeyman_policy::secrets::Redactor;
use journeyman_syntax::language::Language;

use crate::tokens::Tokenizer;

pub use commit::{Commit, MAX_COUNTED_FILES};
pub(crate) use score::HistoryScores;
use words::MessageWords;

/// Maximum commits, newest first.
pub const MAX_COMMITS: usize = 3_000;
/// Maximum bytes of a message; longer ones are lists or logs.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;

/// The commits before a revision.
#[derive(Debug)]
pub struct History {
    revision: String,
    commits: LazyCommits,
    paths: Vec<Box<[u8]>>,
    /// By path: true for source that isn't a test.
    source: Vec<bool>,
    words: MessageWords,
}

/// Commits that are read at the first access.
type LazyCommits = LazyLock<Vec<Commit>, Box<dyn FnOnce() -> Vec<Commit> + Send>>;

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        // The other fields follow from these.
        (&self.revision, self.commits(), &self.paths) == (&other.revision, other.commits(), &other.paths)
    }
}

impl History {
    /// Reads the commits before a revision; `None` where there is no such commit. Commits in
    /// `known` aren't read again.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn read(git: &Git, revision: &str, known: Option<Self>) -> Result<Option<Self>, GitError> {
        Self::read_with_redactor(git, revision, known, &Redactor::default()).await
    }

    /// Reads the commits as [`History::read`] does, with this redactor's secrets masked in
    /// messages; texts with the shape of a secret always are.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn read_with_redactor(
        git: &Git,
        revision: &str,
        known: Option<Self>,
        redactor: &Redactor,
    ) -> Result<Option<Self>, GitError> {
        let head = if revision == "HEAD" { git.head().await? } else { git.resolve(revision).await? };
        let Some(revision) = head else { return Ok(None) };
        let known = match known {
            Some(known) if known.revision == revision => return Ok(Some(known)),
            other => other,
        };
        let ids = git.ancestors(&revision, MAX_COMMITS).await?;
        let mut known: HashMap<String, CommitDetails> =
            known.iter().flat_map(Self::commit_details).map(|told| (told.id.clone(), told)).collect();
        let unknown: Vec<String> = ids.iter().filter(|id| !known.contains_key(*id)).cloned().collect();
        known.extend(git.commit_details(&unknown).await?.into_iter().map(|told| {
            let message = redactor.redact(&told.message).into_owned();
            (told.id.clone(), CommitDetails { message, ..told })
        }));
        Ok(Some(Self::new(revision, ids.iter().filter_map(|id| known.remove(id)))))
    }

    /// Creates a history from commits, newest first.
    #[must_use]
    pub fn new(revision: String, told: impl IntoIterator<Item = CommitDetails>) -> Self {
        let mut numbers: HashMap<Box<[u8]>, u32> = HashMap::new();
        let mut paths: Vec<Box<[u8]>> = Vec::new();
        let mut commits = Vec::new();
        for told in told {
            let number = |path: &[u8]| {
                *numbers.entry(path.into()).or_insert_with(|| {
                    paths.push(path.into());
                    u32::try_from(paths.len() - 1).unwrap_or(u32::MAX)
                })
            };
            // A commit that moved the whole tree would be the largest part of the file, and doesn't
            // count.
            let few = told.paths.len() <= MAX_COUNTED_FILES * 20;
            let mut number = number;
            let files = if few {
                told.paths.iter().map(|path| number(path.as_bytes())).collect()
            } else {
                Vec::new()
            };
            let message =
                told.message.get(..told.message.floor_char_boundary(MAX_MESSAGE_BYTES)).unwrap_or_default();
            commits.push(Commit {
                id: told.id,
                time: told.time.0,
                author: told.author,
                message: message.to_owned(),
                files,
            });
        }
        let source: Vec<bool> = paths.iter().map(|path| is_source(path)).collect();
        let words = MessageWords::new(&commits, &source, &mut Tokenizer::new());
        Self { revision, commits: LazyCommits::new(Box::new(|| commits)), paths, source, words }
    }

    fn commit_details(&self) -> Vec<CommitDetails> {
        let told = |commit: &Commit| CommitDetails {
            id: commit.id.clone(),
            time: journeyman_protocol::UnixMillis(commit.time),
            author: commit.author.clone(),
            message: commit.message.clone(),
            paths: self
                .files(commit)
                .filter_map(|path| journeyman_protocol::RelPath::parse(path).ok())
                .collect(),
        };
        self.commits().iter().map(told).collect()
    }

    /// Returns the revision of the history.
    #[must_use]
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Returns the commits, newest first.
    #[must_use]
    pub fn commits(&self) -> &[Commit] {
        &self.commits
    }

    /// Returns every path that a commit changed, in the order of [`Commit::files`].
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.paths.iter().map(|path| &**path)
    }

    /// Returns the commits that changed a path, newest first.
    pub fn commits_of<'a>(&'a self, path: &[u8]) -> impl Iterator<Item = &'a Commit> {
        let file = self.paths.iter().position(|other| **other == *path);
        let file = file.and_then(|file| u32::try_from(file).ok());
        self.commits().iter().filter(move |commit| file.is_some_and(|file| commit.files.contains(&file)))
    }

    /// Returns the paths that a commit changed.
    pub fn files<'a>(&'a self, commit: &'a Commit) -> impl Iterator<Item = &'a [u8]> {
        commit.files.iter().filter_map(|file| self.paths.get(*file as usize)).map(|path| &**path)
    }

    /// Scores each path by its commits' messages, for these terms.
    pub(crate) fn score_paths(&self, terms: &[crate::query::Term]) -> HistoryScores {
        self.words.score_paths(terms, self.paths.len())
    }
}

/// Returns true for source that isn't test, documentation, third-party or generated: a commit's
/// size is counted by those.
#[must_use]
pub fn is_source(path: &[u8]) -> bool {
    let name = String::from_utf8_lossy(path);
    let code = Language::from_path(&name).is_some_and(|language| {
        use Language::{AsciiDoc, Css, Html, Json, Markdown, Rst, Toml, Yaml};
        !matches!(language, Json | Yaml | Toml | Html | Css | Markdown | Rst | AsciiDoc)
    });
    // Languages without a grammar here, and headers, whose language only their text tells.
    let other = [".pyx", ".y", ".l", ".h", ".jq"].iter().any(|ending| name.ends_with(ending));
    let flags = crate::analyser::purpose_of_file(&name, "");
    let aside =
        flags.test || flags.doc || flags.vendored || flags.generated || is_in_scripts_directory(&name);
    (code || other || crate::query::is_ui_component(path)) && !aside
}

/// Returns true for files that change along with the program without being the topic of an issue:
/// neither test nor document.
fn is_in_scripts_directory(path: &str) -> bool {
    let directories = path.rsplit_once('/').map_or("", |(directories, _)| directories);
    directories.split('/').any(|directory| directory.eq_ignore_ascii_case("scripts"))
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{RelPath, UnixMillis};

    use super::*;
    use crate::query::Query;

    fn told(id: u8, message: &str, paths: &[&str]) -> CommitDetails {
        CommitDetails {
            id: format!("{id:040x}"),
            time: UnixMillis(u64::from(id)),
            author: format!("author {}", id % 2),
            message: message.to_owned(),
            paths: paths.iter().map(|path| RelPath::parse(path).unwrap()).collect(),
        }
    }

    fn history() -> History {
        History::new(
            "f".repeat(40),
            [
                told(4, "Parser: report the line\n\nof an unclosed bracket", &["src/parser.rs", "docs/x.md"]),
                told(3, "Faster lexer", &["src/lexer.rs", "src/parser.rs"]),
                told(2, "Windows colours", &["src/term.rs", "tests/term.rs"]),
                told(1, "Begin", &["src/parser.rs", "src/lexer.rs", "src/term.rs"]),
            ],
        )
    }

    #[test]
    fn messages_speak_for_files() {
        let history = history();
        let query = Query::new("colours are wrong\n\nin the parser", &mut Tokenizer::new());
        let scores = history.score_paths(&query.terms);
        let of = |scores: &[f32], path: &str| {
            history
                .paths()
                .zip(scores)
                .find(|(other, _)| *other == path.as_bytes())
                .map(|(_, score)| *score)
                .unwrap()
        };
        assert!(of(&scores.full, "src/term.rs") > of(&scores.full, "src/parser.rs"));
        assert!(of(&scores.full, "src/parser.rs") > 0.0);
        assert_eq!(of(&scores.title, "src/parser.rs"), 0.0);
        assert!(of(&scores.pool, "src/term.rs") > of(&scores.pool, "src/lexer.rs"));
    }

    #[test]
    fn source_is_told_from_what_is_beside_it() {
        for path in ["src/x.rs", "lib/latest.py", "a.vue", "include/x.h"] {
            assert!(is_source(path.as_bytes()), "{path}");
        }
        for path in ["AppTest.java", "api_pb2.py", "x/node_modules/y.js", "x.svelte.md", "dist/x.js"] {
            assert!(!is_source(path.as_bytes()), "{path}");
        }
        for path in ["README.md", "tests/x.rs", "a/x_test.go", "docs/conf.py", "package.json", "test_x.py"] {
            assert!(!is_source(path.as_bytes()), "{path}");
        }
    }
}
