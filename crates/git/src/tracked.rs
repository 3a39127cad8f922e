//! The files that git tracks.

use journeyman_protocol::RelPath;

use crate::reader::{GitReader, ReadCommand};
use crate::{Git, GitError};

/// A tracked file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedFile {
    /// The path, relative to the project.
    pub path: RelPath,
    /// True if git does not compare the work tree's file: the file is outside a sparse checkout, or
    /// unwatched on the user's request.
    pub unwatched: bool,
}

impl Git {
    /// Returns the tracked files of the project, sorted by path, including submodules.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn tracked_files(&self) -> Result<Vec<TrackedFile>, GitError> {
        GitReader::open(self).await?.tracked_files().await
    }
}

impl GitReader<'_> {
    pub(crate) async fn tracked_files(&self) -> Result<Vec<TrackedFile>, GitError> {
        let action = "ls-files";
        self.place.work_tree()?;
        let bytes = self
            .run(ReadCommand::new(action, [action, "-z", "-v"]).with_large_limits())
            .await?
            .into_output(action)?;
        parse_tracked_files(&bytes).ok_or(GitError::Malformed { action, what: "an entry" })
    }

    /// Returns the files with attributes by which git converts contents on check-out, in ways that
    /// depend on more than the content.
    pub(crate) async fn converted_files(&self) -> Result<Vec<RelPath>, GitError> {
        let action = "ls-files";
        let none = ":(exclude,attr:!filter !ident !working-tree-encoding)";
        let mut ask = ReadCommand::new(action, [action, "-z", "--", ".", none]).with_large_limits();
        ask.env.push(("GIT_LITERAL_PATHSPECS", "0".into()));
        let bytes = self.run(ask).await?.into_output(action)?;
        parse_paths(&bytes).ok_or(GitError::Malformed { action, what: "a path" })
    }
}

/// Parses the output of `ls-files -z -v`; `None` for another format.
pub(crate) fn parse_tracked_files(bytes: &[u8]) -> Option<Vec<TrackedFile>> {
    let mut files = Vec::new();
    for record in split_nul_records(bytes) {
        let [tag, b' ', path @ ..] = record else { return None };
        let path = RelPath::parse(path).ok()?;
        files.push(TrackedFile { path, unwatched: *tag == b'S' || tag.is_ascii_lowercase() });
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    // A file with an unresolved merge is listed once for each side.
    files.dedup_by(|one, other| one.path == other.path);
    Some(files)
}

/// Parses paths, each ended by NUL; `None` for an invalid path.
pub(crate) fn parse_paths(bytes: &[u8]) -> Option<Vec<RelPath>> {
    split_nul_records(bytes).map(|path| RelPath::parse(path).ok()).collect()
}

pub(crate) fn split_nul_records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let some = !bytes.is_empty();
    whole.split(|&byte| byte == 0).filter(move |_| some)
}
