//! The differences from the last commit, as reported by `git status --porcelain=v2 -z`.

use journeyman_protocol::RelPath;

use crate::reader::{GitReader, ReadCommand};
use crate::{Git, GitError};

/// The commit and branch of `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GitHead {
    /// The commit's hash; `None` before the first commit.
    pub commit: Option<String>,
    /// The branch, without `refs/heads/`; `None` if `HEAD` is detached.
    pub branch: Option<String>,
}

/// The difference between two versions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusChange {
    /// No difference.
    None,
    /// The content or the mode changed.
    Modified,
    /// The type changed, such as from file to link.
    Type,
    /// The file is new.
    Added,
    /// The file is gone.
    Deleted,
    /// The file was renamed.
    Renamed,
    /// The file is a copy.
    Copied,
    /// Both sides of a merge changed the file.
    Unmerged,
}

/// The status of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryStatus {
    /// A tracked file that differs.
    Tracked {
        /// The difference of the index from `HEAD`: staged changes.
        staged: StatusChange,
        /// The difference of the work tree from the index.
        unstaged: StatusChange,
        /// True for another repository whose commit differs.
        submodule: bool,
    },
    /// A file with an unresolved merge.
    Unmerged,
    /// A file that git neither tracks nor ignores.
    Untracked {
        /// True for a directory with a repository of its own, whose files are not listed.
        repository: bool,
    },
    /// A file that git ignores.
    Ignored,
}

/// A path and its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusEntry {
    /// The path, relative to the project.
    pub path: RelPath,
    /// The path's status.
    pub entry: EntryStatus,
}

/// The differences from the last commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The last commit and its branch.
    pub head: GitHead,
    /// The entries, sorted by path.
    pub entries: Vec<StatusEntry>,
}

impl Git {
    /// Returns the project's differences from the last commit. Every untracked file is listed, and
    /// renames are an addition and a deletion. Files whose filters would have to run may be listed
    /// without a difference, and uncommitted changes in a submodule are not listed: no program
    /// runs, and no other repository's settings are read.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn status(&self) -> Result<Status, GitError> {
        GitReader::open(self).await?.status().await
    }
}

impl GitReader<'_> {
    pub(crate) async fn status(&self) -> Result<Status, GitError> {
        let action = "status";
        self.place.work_tree()?;
        let fixed = [action, "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames"];
        let ask = ReadCommand::new(action, fixed.into_iter().chain(["--ignore-submodules=dirty", "--", "."]));
        let bytes = self.run(ask.with_large_limits()).await?.into_output(action)?;
        parse(&bytes, &self.place.prefix).ok_or(GitError::Malformed { action, what: "an entry" })
    }
}

/// Parses the output; `None` for another format. Entries outside `prefix` are omitted.
pub(crate) fn parse(bytes: &[u8], prefix: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut records = bytes.split(|&byte| byte == 0);
    while let Some(record) = records.next() {
        let Some((kind, rest)) = record.split_first() else { continue };
        let (path, entry) = match kind {
            b'#' => {
                parse_header(rest, &mut status.head);
                continue;
            }
            b'?' => {
                let path = rest.strip_prefix(b" ")?;
                (path, EntryStatus::Untracked { repository: path.ends_with(b"/") })
            }
            b'!' => (rest.strip_prefix(b" ")?, EntryStatus::Ignored),
            b'u' => (text_after_spaces(rest, 10)?, EntryStatus::Unmerged),
            b'1' => (text_after_spaces(rest, 8)?, parse_tracked_entry(rest)?),
            b'2' => {
                let path = text_after_spaces(rest, 9)?;
                // The earlier name is a record of its own.
                records.next()?;
                (path, parse_tracked_entry(rest)?)
            }
            _ => return None,
        };
        let Some(inside) = path.strip_prefix(prefix) else { continue };
        // The project's own directory, if it is a new repository within another.
        if let Ok(path) = RelPath::parse(inside) {
            status.entries.push(StatusEntry { path, entry });
        }
    }
    status.entries.sort_by(|one, other| one.path.cmp(&other.path));
    Some(status)
}

fn parse_header(line: &[u8], head: &mut GitHead) {
    let text = String::from_utf8_lossy(line);
    let mut words = text.trim_start().splitn(2, ' ');
    match (words.next(), words.next()) {
        (Some("branch.oid"), Some(id)) => {
            head.commit = (id != "(initial)").then(|| id.to_owned());
        }
        (Some("branch.head"), Some(name)) => {
            head.branch = (name != "(detached)").then(|| name.to_owned());
        }
        _ => {}
    }
}

/// Returns the text after the given number of spaces.
fn text_after_spaces(record: &[u8], spaces: usize) -> Option<&[u8]> {
    let mut rest = record;
    for _ in 0..spaces {
        let at = rest.iter().position(|&byte| byte == b' ')?;
        rest = rest.get(at + 1..)?;
    }
    (!rest.is_empty()).then_some(rest)
}

fn parse_tracked_entry(record: &[u8]) -> Option<EntryStatus> {
    let [b' ', staged, unstaged, b' ', submodule, ..] = record else { return None };
    Some(EntryStatus::Tracked {
        staged: parse_change(*staged)?,
        unstaged: parse_change(*unstaged)?,
        submodule: *submodule == b'S',
    })
}

fn parse_change(letter: u8) -> Option<StatusChange> {
    Some(match letter {
        b'.' => StatusChange::None,
        b'M' => StatusChange::Modified,
        b'T' => StatusChange::Type,
        b'A' => StatusChange::Added,
        b'D' => StatusChange::Deleted,
        b'R' => StatusChange::Renamed,
        b'C' => StatusChange::Copied,
        b'U' => StatusChange::Unmerged,
        _ => return None,
    })
}
