//! Checks out `HEAD` into a directory outside the project.
//!
//! A separate index is read from `HEAD` and checked out into the directory. That takes as long as
//! `git worktree add`, does not touch the repository, and leaves nothing to clean up.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use journeyman_protocol::RelPath;

use crate::limits::CHECK_OUT_TIMEOUT;
use crate::reader::{GitReader, ReadCommand};
use crate::status::Status;
use crate::tracked::{TrackedFile, split_nul_records};
use crate::{Git, GitError};

/// Prints the commit and checks out; prints nothing before the first commit. `$2` is the project
/// within the repository. `$3` says whether a list of files is on standard input.
const CHECK_OUT_SCRIPT: &str = r#"
commit=$("$1" rev-parse -q --verify 'HEAD^{commit}') || exit 0
tree=$("$1" rev-parse -q --verify "$commit:$2") && tree=$("$1" rev-parse -q --verify "$tree^{tree}") || tree=
if [ -n "$tree" ]; then
    "$1" read-tree "$tree" || exit
    if [ "$3" = listed ]; then
        "$1" checkout-index -q -z --stdin || exit
    else
        "$1" checkout-index -q -a || exit
    fi
fi
printf %s "$commit"
"#;

/// The only name that no entry of a repository can have.
const GIT_DIRECTORY_NAME: &str = ".git";

/// Any execute bit, because git distinguishes only one.
const ANY_EXECUTE_BIT: u32 = 0o111;

impl Git {
    /// Checks out the project's files of `HEAD` into an empty directory outside the project, except
    /// files that the project lacks. Returns the sorted paths at which the project's tree differs:
    /// changed, new and not ignored, deleted, and submodules and nested repositories as
    /// directories. An equal file may be listed (if git would have to run a program to compare),
    /// but no differing path that git watches is omitted. The index, `HEAD`, references and the
    /// list of worktrees are not changed, and no filter runs. Blocks.
    ///
    /// # Errors
    /// [`GitError`]; the directory may have some of the files then.
    pub fn check_out(&self, into: &Path) -> Result<Vec<RelPath>, GitError> {
        Self::run_blocking(self.check_out_async(into))
    }

    async fn check_out_async(&self, into: &Path) -> Result<Vec<RelPath>, GitError> {
        let reader = GitReader::open(self).await?;
        reader.place.work_tree()?;
        let into = into.canonicalize().map_err(GitError::io("looking at", into))?;
        if into.starts_with(&reader.place.root) {
            return Err(GitError::InvalidRequest(format!("{} lies in the project", into.display())));
        }
        if fs::read_dir(&into).map_err(GitError::io("reading", &into))?.next().is_some() {
            return Err(GitError::InvalidRequest(format!("{} is not empty", into.display())));
        }
        let private = into.join(GIT_DIRECTORY_NAME);
        fs::create_dir(&private).map_err(GitError::io("making", &private))?;
        let filled = tokio::join!(
            reader.write_head_files(&into),
            reader.status(),
            reader.tracked_files(),
            reader.converted_files()
        );
        let removed = fs::remove_dir_all(&private).map_err(GitError::io("removing", &private));
        let (commit, status, tracked, converted) = (filled.0?, filled.1?, filled.2?, filled.3?);
        removed?;
        if commit != status.head.commit {
            return Err(GitError::ConcurrentChange);
        }
        Ok(list_differing_paths(&reader.place.root, &into, &status, &tracked, converted))
    }
}

impl GitReader<'_> {
    /// Writes the files of `HEAD`; returns the commit, if there is one.
    async fn write_head_files(&self, into: &Path) -> Result<Option<String>, GitError> {
        let action = "checkout-index";
        let sparse = self
            .place
            .read_settings()
            .is_none_or(|text| crate::overrides::contains_ignoring_case(&text, b"sparse"));
        let stdin = if sparse { Some(self.checked_out_files().await?) } else { None };
        let (prefix, listed) = (&self.place.prefix, if sparse { "listed" } else { "all" });
        let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
        let args = [std::ffi::OsStr::from_bytes(prefix), listed.as_ref()];
        let mut ask = ReadCommand::new(action, args);
        ask.script = Some(CHECK_OUT_SCRIPT);
        ask.env.push(("GIT_WORK_TREE", into.into()));
        ask.env.push(("GIT_INDEX_FILE", into.join(GIT_DIRECTORY_NAME).join("index").into()));
        (ask.stdin, ask.into, ask.wall) = (stdin, Some(into), CHECK_OUT_TIMEOUT);
        let answer = self.run(ask).await?.into_output(action)?;
        let commit = String::from_utf8(answer).map_err(|_| GitError::Malformed { action, what: "an id" })?;
        Ok((!commit.is_empty()).then_some(commit))
    }

    /// Returns the files of `HEAD` that the project has, each ended by NUL: a sparse checkout has
    /// only some.
    async fn checked_out_files(&self) -> Result<Vec<u8>, GitError> {
        let action = "ls-tree";
        let list = ReadCommand::new(action, [action, "-r", "-z", "--name-only", "HEAD"]).with_large_limits();
        let listed = self.run(list).await?;
        // Before the first commit `HEAD` has no files, so no file is missing.
        let listed = if listed.code == 0 { listed.bytes } else { Vec::new() };
        let mut there = Vec::with_capacity(listed.len());
        for name in split_nul_records(&listed) {
            let path = self.place.root.join(std::ffi::OsStr::from_bytes(name));
            if fs::symlink_metadata(path).is_ok() {
                there.extend_from_slice(name);
                there.push(0);
            }
        }
        Ok(there)
    }
}

/// Returns the paths at which the tree at `root` differs from the tree at `into`.
fn list_differing_paths(
    root: &Path,
    into: &Path,
    status: &Status,
    tracked: &[TrackedFile],
    converted: Vec<RelPath>,
) -> Vec<RelPath> {
    let mut found: BTreeSet<RelPath> = status.entries.iter().map(|entry| entry.path.clone()).collect();
    found.extend(converted);
    for file in tracked {
        // Files that git doesn't watch on the user's request may differ; files outside a sparse
        // checkout are on neither side.
        if !found.contains(&file.path) && !is_file_unchanged(root, into, file) {
            found.insert(file.path.clone());
        }
    }
    found.into_iter().collect()
}

/// Returns true if a file that git considers unchanged is in fact equal: the user's settings, which
/// did not apply here, may have converted its line ends, which changes the size.
fn is_file_unchanged(root: &Path, into: &Path, file: &TrackedFile) -> bool {
    let look = |top: &Path| fs::symlink_metadata(top.join(file.path.as_path()));
    match (look(root), look(into)) {
        (Ok(theirs), Ok(ours)) => {
            let executable = |found: &fs::Metadata| found.mode() & ANY_EXECUTE_BIT != 0;
            !file.unwatched
                // A submodule is a directory of which only the commit is known.
                && !ours.is_dir()
                && theirs.file_type() == ours.file_type()
                && theirs.len() == ours.len()
                && (ours.is_symlink() || executable(&theirs) == executable(&ours))
        }
        (Err(_), Err(_)) => true,
        _ => false,
    }
}
