//! The differences from the last commit, read from `git status --porcelain=v2 -z`.

use journeyman_protocol::RelPath;

use crate::read::{Ask, Reader};
use crate::{Git, GitError};

/// The state of `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The commit, as hexadecimal digits; `None` before the first one.
    pub commit: Option<String>,
    /// The branch, without `refs/heads/`; `None` where it is detached.
    pub branch: Option<String>,
}

/// The difference of one side of a file from the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Not at all.
    None,
    /// Its content or its mode.
    Modified,
    /// It is a link and was a file, or the like.
    Type,
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
    /// It is a copy.
    Copied,
    /// Both sides of a merge changed it.
    Unmerged,
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A tracked file that differs.
    Tracked {
        /// The index against `HEAD`: what is staged.
        staged: Change,
        /// The work tree against the index.
        unstaged: Change,
        /// It is another repository, whose commit differs.
        submodule: bool,
    },
    /// A file with a merge to be settled.
    Unmerged,
    /// Git doesn't know it and doesn't ignore it.
    Untracked {
        /// It is a directory with a repository of its own; its files aren't listed.
        repository: bool,
    },
    /// Git ignores it.
    Ignored,
}

/// One path with how it differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusEntry {
    /// Relative to the project.
    pub path: RelPath,
    /// The state of the path.
    pub entry: Entry,
}

/// The differences from the last commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The last commit, and the branch it is on.
    pub head: Head,
    /// By path.
    pub entries: Vec<StatusEntry>,
}

impl Git {
    /// Returns the project's differences from the last commit. Every untracked file is named by
    /// itself, and a rename is an addition and a deletion. Files whose filters would have to run
    /// may be named though they don't differ, and uncommitted changes in a submodule are not seen:
    /// nothing is run, and no other repository's settings are read.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn status(&self) -> Result<Status, GitError> {
        Reader::open(self).await?.status().await
    }
}

impl Reader<'_> {
    pub(crate) async fn status(&self) -> Result<Status, GitError> {
        let action = "status";
        self.place.work_tree()?;
        let fixed = [action, "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames"];
        let ask = Ask::new(action, fixed.into_iter().chain(["--ignore-submodules=dirty", "--", "."]));
        let bytes = self.run(ask.large()).await?.done(action)?;
        parse(&bytes, &self.place.prefix).ok_or(GitError::Malformed { action, what: "an entry" })
    }
}

/// Reads the output; `None` where it isn't in the format. Entries outside of `prefix` are left out.
pub(crate) fn parse(bytes: &[u8], prefix: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut records = bytes.split(|&byte| byte == 0);
    while let Some(record) = records.next() {
        let Some((kind, rest)) = record.split_first() else { continue };
        let (path, entry) = match kind {
            b'#' => {
                header(rest, &mut status.head);
                continue;
            }
            b'?' => {
                let path = rest.strip_prefix(b" ")?;
                (path, Entry::Untracked { repository: path.ends_with(b"/") })
            }
            b'!' => (rest.strip_prefix(b" ")?, Entry::Ignored),
            b'u' => (field(rest, 10)?, Entry::Unmerged),
            b'1' => (field(rest, 8)?, tracked(rest)?),
            b'2' => {
                let path = field(rest, 9)?;
                // The earlier name is a record of its own.
                records.next()?;
                (path, tracked(rest)?)
            }
            _ => return None,
        };
        let Some(inside) = path.strip_prefix(prefix) else { continue };
        // The project's own directory, where it is a new repository in another one.
        if let Ok(path) = RelPath::parse(inside) {
            status.entries.push(StatusEntry { path, entry });
        }
    }
    status.entries.sort_by(|one, other| one.path.cmp(&other.path));
    Some(status)
}

fn header(line: &[u8], head: &mut Head) {
    let Ok(text) = std::str::from_utf8(line) else { return };
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

/// Returns the rest of a record after so many spaces.
fn field(record: &[u8], spaces: usize) -> Option<&[u8]> {
    let mut rest = record;
    for _ in 0..spaces {
        let at = rest.iter().position(|&byte| byte == b' ')?;
        rest = rest.get(at + 1..)?;
    }
    (!rest.is_empty()).then_some(rest)
}

fn tracked(record: &[u8]) -> Option<Entry> {
    let [b' ', staged, unstaged, b' ', submodule, ..] = record else { return None };
    Some(Entry::Tracked {
        staged: change(*staged)?,
        unstaged: change(*unstaged)?,
        submodule: *submodule == b'S',
    })
}

fn change(letter: u8) -> Option<Change> {
    Some(match letter {
        b'.' => Change::None,
        b'M' => Change::Modified,
        b'T' => Change::Type,
        b'A' => Change::Added,
        b'D' => Change::Deleted,
        b'R' => Change::Renamed,
        b'C' => Change::Copied,
        b'U' => Change::Unmerged,
        _ => return None,
    })
}
