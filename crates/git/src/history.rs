//! Commits, their messages and the contents of their files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use journeyman_protocol::{RelPath, UnixMillis};
use journeyman_sandbox::clean_output;

use crate::limits::{COMMITS_PER_REQUEST, MAX_COMMIT_MESSAGE_BYTES, MAX_COMMITS, MAX_OUTPUT_BYTES};
use crate::reader::{GitReader, ReadCommand};
use crate::tracked::split_nul_records;
use crate::{Git, GitError};

/// Prints a file's content. `$2` is a commit, `$3` a path.
const SHOW_FILE_SCRIPT: &str = r#"
file=$("$1" rev-parse -q --verify "$2:$3") || exit 3
exec "$1" cat-file blob "$file"
"#;
/// The script's exit code if the commit does not have the path.
const MISSING_FILE_EXIT_CODE: i32 = 3;

/// A commit in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitSummary {
    /// The commit's hash.
    pub id: String,
    /// The author date.
    pub time: UnixMillis,
    /// The author's name, without control characters.
    pub author: String,
    /// The subject, without control characters.
    pub subject: String,
    /// The changed paths within the project; empty for a merge.
    pub paths: Vec<RelPath>,
}

/// A commit with its whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitDetails {
    /// The commit's hash.
    pub id: String,
    /// The author date.
    pub time: UnixMillis,
    /// The author's name, without control characters.
    pub author: String,
    /// The message up to the maximum length, with its control characters.
    pub message: String,
    /// The changed paths within the project.
    pub paths: Vec<RelPath>,
}

impl Git {
    /// Returns the hash of the commit that `rev` names; `None` if there is none.
    ///
    /// # Errors
    /// [`GitError::InvalidRequest`] for text that can't name a commit; other [`GitError`]s.
    pub async fn resolve(&self, rev: &str) -> Result<Option<String>, GitError> {
        GitReader::open(self).await?.resolve(rev).await
    }

    /// Returns a file's bytes in a commit, without any filter; `None` if the commit does not have
    /// the file.
    ///
    /// # Errors
    /// [`GitError::OutputTooLarge`] if the file has more than `max_bytes` bytes;
    /// [`GitError::InvalidRequest`] if `rev` names no commit; other [`GitError`]s.
    pub async fn show(
        &self,
        rev: &str,
        path: &RelPath,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let action = "show";
        let reader = GitReader::open(self).await?;
        let commit = reader.resolve(rev).await?;
        let commit = commit.ok_or_else(|| {
            GitError::InvalidRequest(format!("there is no commit {}", clean_output(rev.as_bytes())))
        })?;
        let path = [&reader.place.prefix, path.as_bytes()].concat();
        let mut ask = ReadCommand::new(action, [OsStr::new(&commit), OsStr::from_bytes(&path)])
            .with_output_limit(max_bytes);
        ask.script = Some(SHOW_FILE_SCRIPT);
        let answer = reader.run(ask).await?;
        if answer.code == MISSING_FILE_EXIT_CODE { Ok(None) } else { answer.into_output(action).map(Some) }
    }

    /// Returns the last `count` commits (at most 10,000) that changed the project, the newest
    /// first.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn log(&self, count: usize) -> Result<Vec<CommitSummary>, GitError> {
        let action = "log";
        let reader = GitReader::open(self).await?;
        let Some(head) = reader.resolve("HEAD").await? else { return Ok(Vec::new()) };
        let count = format!("--max-count={}", count.min(MAX_COMMITS));
        let mut args: Vec<OsString> = LOG_ARGUMENTS.into_iter().map(OsString::from).collect();
        args.extend([
            count.into(),
            "--format=tformat:%H%x00%at%x00%an%x00%s".into(),
            head.into(),
            "--".into(),
        ]);
        if !reader.place.prefix.is_empty() {
            args.push(".".into());
        }
        let bytes = reader
            .run(ReadCommand::new(action, args).with_output_limit(MAX_OUTPUT_BYTES))
            .await?
            .into_output(action)?;
        parse(&bytes, &reader.place.prefix).ok_or(GitError::Malformed { action, what: "a commit" })
    }

    /// Returns the hashes of a commit and its ancestors without merges, the newest first: at most
    /// `count` (and 10,000) that changed the project. Empty if `rev` names no commit.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn ancestors(&self, rev: &str, count: usize) -> Result<Vec<String>, GitError> {
        let action = "rev-list";
        let reader = GitReader::open(self).await?;
        let Some(commit) = reader.resolve(rev).await? else { return Ok(Vec::new()) };
        let count = format!("--max-count={}", count.min(MAX_COMMITS));
        let mut args = vec!["rev-list", "--no-merges", &count, &commit, "--"];
        if !reader.place.prefix.is_empty() {
            args.push(".");
        }
        let bytes = reader
            .run(ReadCommand::new(action, args).with_output_limit(MAX_OUTPUT_BYTES))
            .await?
            .into_output(action)?;
        let ids = String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect::<Vec<_>>();
        let malformed = GitError::Malformed { action, what: "an id" };
        if ids.iter().all(|id| is_object_id(id)) { Ok(ids) } else { Err(malformed) }
    }

    /// Returns the details of these commits, in the same order.
    ///
    /// # Errors
    /// [`GitError::InvalidRequest`] for text that is not a hash; other [`GitError`]s, also if the
    /// repository lacks a commit.
    pub async fn commit_details(&self, ids: &[String]) -> Result<Vec<CommitDetails>, GitError> {
        let action = "log";
        if let Some(other) = ids.iter().find(|id| !is_object_id(id)) {
            return Err(GitError::InvalidRequest(format!(
                "`{}` is not a commit's hash",
                clean_output(other.as_bytes())
            )));
        }
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let reader = GitReader::open(self).await?;
        let mut told = Vec::with_capacity(ids.len());
        for ids in ids.chunks(COMMITS_PER_REQUEST) {
            let format = "--format=tformat:%H%x00%at%x00%an%x00%B";
            let args = LOG_ARGUMENTS.into_iter().chain(["--no-walk=unsorted", "--stdin", format]);
            let mut ask = ReadCommand::new(action, args).with_output_limit(MAX_OUTPUT_BYTES);
            ask.stdin = Some((ids.join("\n") + "\n").into_bytes());
            let bytes = reader.run(ask).await?.into_output(action)?;
            let parsed = parse_details(&bytes, &reader.place.prefix);
            told.extend(parsed.ok_or(GitError::Malformed { action, what: "a commit" })?);
        }
        Ok(told)
    }
}

impl GitReader<'_> {
    pub(crate) async fn resolve(&self, rev: &str) -> Result<Option<String>, GitError> {
        let action = "rev-parse";
        if rev.is_empty() || rev.starts_with('-') || rev.contains(|character: char| character.is_control()) {
            return Err(GitError::InvalidRequest(format!(
                "`{}` can't name a commit",
                clean_output(rev.as_bytes())
            )));
        }
        let name = format!("{rev}^{{commit}}");
        let answer = self.run(ReadCommand::new(action, ["rev-parse", "-q", "--verify", &name])).await?;
        // With `--quiet`, exit code 1 means that there is none; 128 the same for text that is not
        // even a name.
        if answer.code != 0 {
            return Ok(None);
        }
        let id = String::from_utf8_lossy(&answer.bytes).trim_end().to_owned();
        if is_object_id(&id) { Ok(Some(id)) } else { Err(GitError::Malformed { action, what: "an id" }) }
    }
}

/// Returns true for a hash of either length.
pub(crate) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Arguments that list commits and their changes in one format whatever the settings, and run no
/// other program.
const LOG_ARGUMENTS: [&str; 16] = [
    "log",
    "-z",
    "--raw",
    "--root",
    "--no-abbrev",
    "--no-renames",
    "--no-color",
    "--no-decorate",
    "--no-show-signature",
    "--no-ext-diff",
    "--no-textconv",
    "--no-mailmap",
    "--no-follow",
    "--no-relative",
    "--encoding=UTF-8",
    // Without `diff.orderFile`, which may name a file that can't be read here.
    "-O/dev/null",
];

/// Parses the output; `None` for another format. Paths outside `prefix` are omitted.
pub(crate) fn parse(bytes: &[u8], prefix: &[u8]) -> Option<Vec<CommitSummary>> {
    let logged = |CommitDetails { id, time, author, message, paths }| {
        let subject = clean_output(message.as_bytes()).replace('\n', " ");
        CommitSummary { id, time, author, subject, paths }
    };
    Some(parse_details(bytes, prefix)?.into_iter().map(logged).collect())
}

fn parse_details(bytes: &[u8], prefix: &[u8]) -> Option<Vec<CommitDetails>> {
    let mut commits: Vec<CommitDetails> = Vec::new();
    let mut records = split_nul_records(bytes);
    while let Some(record) = records.next() {
        let record = record.strip_prefix(b"\n").unwrap_or(record);
        if record.first() == Some(&b':') {
            let path = records.next()?;
            let inside = path.strip_prefix(prefix).and_then(|path| RelPath::parse(path).ok());
            commits.last_mut()?.paths.extend(inside);
            continue;
        }
        let id = std::str::from_utf8(record).ok().filter(|id| is_object_id(id))?.to_owned();
        // Empty where the commit has no author date that git can read.
        let seconds: i64 = std::str::from_utf8(records.next()?).ok()?.parse().unwrap_or_default();
        let author = clean_output(records.next()?).replace('\n', " ");
        let message = records.next()?;
        let message = message.get(..MAX_COMMIT_MESSAGE_BYTES.min(message.len())).unwrap_or_default();
        let message = String::from_utf8_lossy(message).trim_end().to_owned();
        let time = UnixMillis(u64::try_from(seconds.saturating_mul(1000)).unwrap_or(0));
        commits.push(CommitDetails { id, time, author, message, paths: Vec::new() });
    }
    Some(commits)
}
