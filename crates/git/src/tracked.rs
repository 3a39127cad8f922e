//! The files that git knows.

use journeyman_protocol::RelPath;

use crate::read::{Ask, Reader};
use crate::{Git, GitError};

/// A file of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracked {
    /// Relative to the project.
    pub path: RelPath,
    /// Git doesn't look at the work tree's file: it is outside of a sparse checkout (and should not be there), or
    /// the user told git not to look.
    pub unwatched: bool,
}

impl Git {
    /// The files of the index beneath the project, by path; submodules are among them.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn tracked(&self) -> Result<Vec<Tracked>, GitError> {
        Reader::open(self).await?.tracked().await
    }
}

impl Reader<'_> {
    pub(crate) async fn tracked(&self) -> Result<Vec<Tracked>, GitError> {
        let action = "ls-files";
        self.place.work_tree()?;
        let bytes = self.run(Ask::new(action, [action, "-z", "-v"]).large()).await?.done(action)?;
        parse(&bytes).ok_or(GitError::Malformed { action, what: "an entry" })
    }

    /// Those with attributes by which git changes contents on their way to the work tree, in ways that depend on
    /// more than the content.
    pub(crate) async fn converted(&self) -> Result<Vec<RelPath>, GitError> {
        let action = "ls-files";
        let none = ":(exclude,attr:!filter !ident !working-tree-encoding)";
        let mut ask = Ask::new(action, [action, "-z", "--", ".", none]).large();
        ask.env.push(("GIT_LITERAL_PATHSPECS", "0".into()));
        let bytes = self.run(ask).await?.done(action)?;
        paths(&bytes).ok_or(GitError::Malformed { action, what: "a path" })
    }
}

/// Reads the output of `ls-files -z -v`; `None` where it isn't in the format.
pub(crate) fn parse(bytes: &[u8]) -> Option<Vec<Tracked>> {
    let mut files = Vec::new();
    for record in records(bytes) {
        let [tag, b' ', path @ ..] = record else { return None };
        let path = RelPath::parse(path).ok()?;
        files.push(Tracked { path, unwatched: *tag == b'S' || tag.is_ascii_lowercase() });
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    // A file with a merge to be settled is there once for each side.
    files.dedup_by(|one, other| one.path == other.path);
    Some(files)
}

/// Reads paths, each ended by NUL; `None` where one isn't a path.
pub(crate) fn paths(bytes: &[u8]) -> Option<Vec<RelPath>> {
    records(bytes).map(|path| RelPath::parse(path).ok()).collect()
}

pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let some = !bytes.is_empty();
    whole.split(|&byte| byte == 0).filter(move |_| some)
}
