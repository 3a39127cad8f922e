//! The authorship of a file's lines.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;

use journeyman_protocol::{RelPath, UnixMillis};
use journeyman_sandbox::clean_output;

use crate::history::is_object_id;
use crate::limits::MAX_BLAME_LINES;
use crate::reader::{GitReader, ReadCommand};
use crate::{Git, GitError};

/// Consecutive lines that come from one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlameHunk {
    /// The first line, 1-based.
    pub first_line: u32,
    /// Number of lines.
    pub lines: u32,
    /// The commit.
    pub commit: String,
    /// The author date of the commit.
    pub time: UnixMillis,
    /// The author's name, without control characters.
    pub author: String,
    /// The commit's subject, without control characters.
    pub subject: String,
}

impl Git {
    /// Returns the commits that a file's lines come from, in the version of commit `rev`. At most
    /// 5,000 lines.
    ///
    /// # Errors
    /// [`GitError::InvalidRequest`] if `rev` names no commit, or for no or too many lines;
    /// [`GitError::Failed`] if the commit does not have the file or the file not so many lines;
    /// other [`GitError`]s.
    pub async fn blame(
        &self,
        rev: &str,
        path: &RelPath,
        lines: RangeInclusive<u32>,
    ) -> Result<Vec<BlameHunk>, GitError> {
        let range = format_line_range(&lines)?;
        let reader = GitReader::open(self).await?;
        let commit = reader.resolve(rev).await?;
        let commit = commit.ok_or_else(|| {
            GitError::InvalidRequest(format!("there is no commit {}", clean_output(rev.as_bytes())))
        })?;
        reader.blame([range, commit.into()], path, None).await
    }

    /// Returns the commits that a file's lines come from, where the file has `content`, in the work
    /// tree or in a copy of it. Lines that aren't committed are left out. At most 5,000 lines.
    ///
    /// # Errors
    /// [`GitError::InvalidRequest`] for no or too many lines; [`GitError::Failed`] if the newest
    /// commit doesn't have the file, or the content has not so many lines; other [`GitError`]s.
    pub async fn blame_content(
        &self,
        path: &RelPath,
        content: Vec<u8>,
        lines: RangeInclusive<u32>,
    ) -> Result<Vec<BlameHunk>, GitError> {
        let which = ["--contents".into(), "-".into(), format_line_range(&lines)?];
        let mut blamed = GitReader::open(self).await?.blame(which, path, Some(content)).await?;
        blamed.retain(|hunk| hunk.commit.bytes().any(|digit| digit != b'0'));
        Ok(blamed)
    }
}

impl GitReader<'_> {
    /// Runs git for these lines, in a version or in the content of its standard input.
    async fn blame(
        &self,
        which: impl IntoIterator<Item = OsString>,
        path: &RelPath,
        stdin: Option<Vec<u8>>,
    ) -> Result<Vec<BlameHunk>, GitError> {
        let action = "blame";
        let fixed = ["blame", "--porcelain", "--encoding=UTF-8", "--no-textconv", "--no-progress"];
        let mut args: Vec<OsString> = fixed.map(OsString::from).into();
        args.extend(which);
        args.extend(["--".into(), OsStr::from_bytes(path.as_bytes()).to_owned()]);
        let command = ReadCommand { stdin, ..ReadCommand::new(action, args).with_large_limits() };
        let bytes = self.run(command).await?.into_output(action)?;
        parse(&bytes).ok_or(GitError::Malformed { action, what: "a line" })
    }
}

/// Returns git's argument for lines.
fn format_line_range(lines: &RangeInclusive<u32>) -> Result<OsString, GitError> {
    let (first, last) = (*lines.start(), *lines.end());
    if first == 0 || last < first || last - first >= MAX_BLAME_LINES {
        return Err(GitError::InvalidRequest(format!("lines {first} to {last} can't be asked for at once")));
    }
    Ok(format!("-L{first},{last}").into())
}

/// Parses git's `--porcelain` format, which describes a commit where it occurs first.
fn parse(bytes: &[u8]) -> Option<Vec<BlameHunk>> {
    let mut blamed: Vec<BlameHunk> = Vec::new();
    let mut told: HashMap<String, (UnixMillis, String, String)> = HashMap::new();
    let mut now = None;
    for line in bytes.split(|byte| *byte == b'\n') {
        if line.first() == Some(&b'\t') {
            let (commit, number): (String, u32) = now.take()?;
            let (time, author, subject) = told.get(&commit).cloned().unwrap_or_default();
            match blamed.last_mut() {
                Some(last) if last.commit == commit && last.first_line + last.lines == number => {
                    last.lines += 1
                }
                _ => blamed.push(BlameHunk { first_line: number, lines: 1, commit, time, author, subject }),
            }
            continue;
        }
        let Some((commit, _)) = &now else {
            let text = String::from_utf8_lossy(line);
            let mut words = text.split(' ');
            let Some(id) = words.next().filter(|id| !id.is_empty()) else { continue };
            let number = words.nth(1)?.parse().ok()?;
            now = is_object_id(id).then(|| (id.to_owned(), number));
            now.as_ref()?;
            continue;
        };
        let entry = told.entry(commit.clone()).or_default();
        if let Some(author) = line.strip_prefix(b"author ") {
            entry.1 = clean_output(author);
        } else if let Some(seconds) = line.strip_prefix(b"author-time ") {
            let seconds: i64 = String::from_utf8_lossy(seconds).parse().ok()?;
            entry.0 = UnixMillis(u64::try_from(seconds.saturating_mul(1000)).unwrap_or(0));
        } else if let Some(subject) = line.strip_prefix(b"summary ") {
            entry.2 = clean_output(subject);
        }
    }
    Some(blamed)
}
