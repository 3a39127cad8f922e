//! The history of a repository: ids, contents, the last commits.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use journeyman_protocol::{RelPath, UnixMillis};
use journeyman_sandbox::clean;

use crate::limits::{COMMITS_AT_ONCE, MAX_COMMITS, MAX_MESSAGE, MAX_OUTPUT};
use crate::read::{Ask, Reader};
use crate::tracked::records;
use crate::{Git, GitError};

/// Prints a file's content. `$2` is a commit, `$3` a path.
const SHOW: &str = r#"
file=$("$1" rev-parse -q --verify "$2:$3") || exit 3
exec "$1" cat-file blob "$file"
"#;
/// The script's exit code where the commit doesn't have the path.
const NOT_THERE: i32 = 3;

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its id, as hexadecimal digits.
    pub id: String,
    /// The time of the commit, by its author's clock.
    pub time: UnixMillis,
    /// The author, made safe to show.
    pub author: String,
    /// Its first line, made safe to show.
    pub subject: String,
    /// The changed paths within the project; none for a merge.
    pub paths: Vec<RelPath>,
}

/// One commit, with its whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its id, as hexadecimal digits.
    pub id: String,
    /// The time of the commit, by its author's clock.
    pub time: UnixMillis,
    /// The author, made safe to show.
    pub author: String,
    /// Its message as it is, as far as it is read: not made safe to show.
    pub message: String,
    /// The changed paths within the project.
    pub paths: Vec<RelPath>,
}

impl Git {
    /// The id of the commit that `rev` names; `None` where it names none.
    ///
    /// # Errors
    /// [`GitError::Refused`] for what can't be a name; other [`GitError`]s.
    pub async fn resolve(&self, rev: &str) -> Result<Option<String>, GitError> {
        Reader::open(self).await?.resolve(rev).await
    }

    /// A file as a commit has it, byte for byte and without any filter; `None` where the commit doesn't have it.
    ///
    /// # Errors
    /// [`GitError::TooMuch`] when it has more than `max_bytes` bytes; [`GitError::Refused`] where `rev` names no
    /// commit; other [`GitError`]s.
    pub async fn show(
        &self,
        rev: &str,
        path: &RelPath,
        max_bytes: usize,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let action = "show";
        let reader = Reader::open(self).await?;
        let commit = reader.resolve(rev).await?;
        let commit = commit
            .ok_or_else(|| GitError::Refused(format!("there is no commit {}", clean(rev.as_bytes()))))?;
        let path = [&reader.place.prefix, path.as_bytes()].concat();
        let mut ask = Ask::new(action, [OsStr::new(&commit), OsStr::from_bytes(&path)]).limit(max_bytes);
        ask.script = Some(SHOW);
        let answer = reader.run(ask).await?;
        if answer.code == NOT_THERE { Ok(None) } else { answer.done(action).map(Some) }
    }

    /// The last `count` commits (at most 10,000) that changed something in the project, newest first.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn log(&self, count: usize) -> Result<Vec<Logged>, GitError> {
        let action = "log";
        let reader = Reader::open(self).await?;
        let Some(head) = reader.resolve("HEAD").await? else { return Ok(Vec::new()) };
        let count = format!("--max-count={}", count.min(MAX_COMMITS));
        let mut args: Vec<OsString> = LOG.into_iter().map(OsString::from).collect();
        args.extend([
            count.into(),
            "--format=tformat:%H%x00%at%x00%an%x00%s".into(),
            head.into(),
            "--".into(),
        ]);
        if !reader.place.prefix.is_empty() {
            args.push(".".into());
        }
        let bytes = reader.run(Ask::new(action, args).limit(MAX_OUTPUT)).await?.done(action)?;
        parse(&bytes, &reader.place.prefix).ok_or(GitError::Malformed { action, what: "a commit" })
    }

    /// The ids of a commit and of those before it, merges left out, newest first: at most `count` (and 10,000) that
    /// changed something in the project. None where `rev` names no commit.
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn ancestors(&self, rev: &str, count: usize) -> Result<Vec<String>, GitError> {
        let action = "rev-list";
        let reader = Reader::open(self).await?;
        let Some(commit) = reader.resolve(rev).await? else { return Ok(Vec::new()) };
        let count = format!("--max-count={}", count.min(MAX_COMMITS));
        let mut args = vec!["rev-list", "--no-merges", &count, &commit, "--"];
        if !reader.place.prefix.is_empty() {
            args.push(".");
        }
        let bytes = reader.run(Ask::new(action, args).limit(MAX_OUTPUT)).await?.done(action)?;
        let ids = String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect::<Vec<_>>();
        let malformed = GitError::Malformed { action, what: "an id" };
        if ids.iter().all(|id| is_id(id)) { Ok(ids) } else { Err(malformed) }
    }

    /// Returns these commits in the same order, with their whole messages and their changed paths.
    ///
    /// # Errors
    /// [`GitError::Refused`] for what is no id; other [`GitError`]s, also where the repository lacks one of them.
    pub async fn commits(&self, ids: &[String]) -> Result<Vec<Told>, GitError> {
        let action = "log";
        if let Some(other) = ids.iter().find(|id| !is_id(id)) {
            return Err(GitError::Refused(format!("«{}» is no commit's id", clean(other.as_bytes()))));
        }
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let reader = Reader::open(self).await?;
        let mut told = Vec::with_capacity(ids.len());
        for ids in ids.chunks(COMMITS_AT_ONCE) {
            let format = "--format=tformat:%H%x00%at%x00%an%x00%B";
            let args = LOG.into_iter().chain(["--no-walk=unsorted", "--stdin", format]);
            let mut ask = Ask::new(action, args).limit(MAX_OUTPUT);
            ask.stdin = Some((ids.join("\n") + "\n").into_bytes());
            let bytes = reader.run(ask).await?.done(action)?;
            let parsed = told_of(&bytes, &reader.place.prefix);
            told.extend(parsed.ok_or(GitError::Malformed { action, what: "a commit" })?);
        }
        Ok(told)
    }
}

impl Reader<'_> {
    pub(crate) async fn resolve(&self, rev: &str) -> Result<Option<String>, GitError> {
        let action = "rev-parse";
        if rev.is_empty() || rev.starts_with('-') || rev.contains(|character: char| character.is_control()) {
            return Err(GitError::Refused(format!("«{}» can't name a commit", clean(rev.as_bytes()))));
        }
        let name = format!("{rev}^{{commit}}");
        let answer = self.run(Ask::new(action, ["rev-parse", "-q", "--verify", &name])).await?;
        // Quietly, 1 says that there is none; 128 the same, with words, for what isn't even a name.
        if answer.code != 0 {
            return Ok(None);
        }
        let id = String::from_utf8_lossy(&answer.bytes).trim_end().to_owned();
        if is_id(&id) { Ok(Some(id)) } else { Err(GitError::Malformed { action, what: "an id" }) }
    }
}

/// Returns true if a text is a commit's id, of either length.
pub(crate) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A listing of commits with what they changed, in one format whatever is set, and nothing run for it.
const LOG: [&str; 13] = [
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
];

/// Reads the output; `None` where it isn't in the format. Paths outside of `prefix` are left out.
pub(crate) fn parse(bytes: &[u8], prefix: &[u8]) -> Option<Vec<Logged>> {
    let logged = |Told { id, time, author, message, paths }| {
        let subject = clean(message.as_bytes()).replace('\n', " ");
        Logged { id, time, author, subject, paths }
    };
    Some(told_of(bytes, prefix)?.into_iter().map(logged).collect())
}

fn told_of(bytes: &[u8], prefix: &[u8]) -> Option<Vec<Told>> {
    let mut commits: Vec<Told> = Vec::new();
    let mut records = records(bytes);
    while let Some(record) = records.next() {
        let record = record.strip_prefix(b"\n").unwrap_or(record);
        if record.first() == Some(&b':') {
            let path = records.next()?;
            let inside = path.strip_prefix(prefix).and_then(|path| RelPath::parse(path).ok());
            commits.last_mut()?.paths.extend(inside);
            continue;
        }
        let id = std::str::from_utf8(record).ok().filter(|id| is_id(id))?.to_owned();
        let seconds: i64 = std::str::from_utf8(records.next()?).ok()?.parse().ok()?;
        let author = clean(records.next()?).replace('\n', " ");
        let message = records.next()?;
        let message = message.get(..MAX_MESSAGE.min(message.len())).unwrap_or_default();
        let message = String::from_utf8_lossy(message).trim_end().to_owned();
        let time = UnixMillis(u64::try_from(seconds.saturating_mul(1000)).unwrap_or(0));
        commits.push(Told { id, time, author, message, paths: Vec::new() });
    }
    Some(commits)
}
