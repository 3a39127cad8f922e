//! The files of a commit, for those who look at one without checking it out.

use journeyman_protocol::RelPath;

use crate::history::is_id;
use crate::limits::CONTENTS_AT_ONCE;
use crate::read::{Ask, Reader};
use crate::tracked::records;
use crate::{Git, GitError};

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// The path within the project.
    pub path: RelPath,
    /// Its content's id. Equal contents have equal ids.
    pub blob: String,
    /// The size in bytes; `None` where the repository lacks the content.
    pub size: Option<u64>,
    /// It is a symbolic link, and its content where it leads.
    pub link: bool,
    /// It may be run.
    pub executable: bool,
}

impl Git {
    /// The files of a commit; `None` where `rev` names none. Other repositories within it are left out.
    ///
    /// # Errors
    /// [`GitError::Refused`] for what can't be a name; other [`GitError`]s.
    pub async fn tree(&self, rev: &str) -> Result<Option<Vec<TreeFile>>, GitError> {
        let action = "ls-tree";
        let reader = Reader::open(self).await?;
        let Some(commit) = reader.resolve(rev).await? else { return Ok(None) };
        let args = ["ls-tree", "-r", "-z", "-l", "--full-tree", &commit];
        let bytes = reader.run(Ask::new(action, args).large()).await?.done(action)?;
        let files = parse(&bytes, &reader.place.prefix);
        files.ok_or(GitError::Malformed { action, what: "a file" }).map(Some)
    }

    /// Contents by their ids, with the sizes that [`Git::tree`] told: `None` for one that the repository lacks, or that
    /// is no content.
    ///
    /// # Errors
    /// [`GitError::Refused`] for what is no id; other [`GitError`]s.
    pub async fn contents(&self, blobs: &[(&str, u64)]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let action = "cat-file";
        if blobs.iter().any(|(id, _)| !is_id(id)) {
            return Err(GitError::Refused("what is no id names no content".to_owned()));
        }
        let reader = Reader::open(self).await?;
        let mut found = Vec::with_capacity(blobs.len());
        let mut rest = blobs;
        while !rest.is_empty() {
            let mut bytes = 0_u64;
            let fits = |(_, size): &&(&str, u64)| {
                bytes = bytes.saturating_add(*size).saturating_add(80);
                bytes <= CONTENTS_AT_ONCE
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let Some((now, later)) = rest.split_at_checked(count) else { break };
            rest = later;
            let mut ask = Ask::new(action, ["cat-file", "--batch"]).large();
            ask.stdin = Some(now.iter().flat_map(|(id, _)| [id, "\n"]).collect::<String>().into_bytes());
            let bytes = reader.run(ask).await?.done(action)?;
            let mut bytes = bytes.as_slice();
            for _ in now {
                found.push(content(&mut bytes).ok_or(GitError::Malformed { action, what: "a content" })?);
            }
        }
        Ok(found)
    }
}

/// Takes one answer off; the inner `None` for what isn't there.
#[allow(clippy::option_option)]
fn content(rest: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, after) = rest.split_at_checked(end)?;
    *rest = after.get(1..)?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split(' ').skip(1);
    let (kind, size) = (words.next()?, words.next());
    let Some(size) = size else { return (kind == "missing").then_some(None) };
    let (content, after) = rest.split_at_checked(size.parse().ok()?)?;
    *rest = after.get(1..)?;
    Some((kind == "blob").then(|| content.to_vec()))
}

fn parse(bytes: &[u8], prefix: &[u8]) -> Option<Vec<TreeFile>> {
    let mut files = Vec::new();
    for record in records(bytes) {
        let tab = record.iter().position(|byte| *byte == b'\t')?;
        let (head, path) = (record.get(..tab)?, record.get(tab + 1..)?);
        let head = std::str::from_utf8(head).ok()?;
        let mut words = head.split_ascii_whitespace();
        let (mode, kind, blob, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
        if kind != "blob" || !is_id(blob) {
            continue;
        }
        if let Some(path) = path.strip_prefix(prefix).and_then(|path| RelPath::parse(path).ok()) {
            let (link, executable) = (mode == "120000", mode == "100755");
            files.push(TreeFile { path, blob: blob.to_owned(), size: size.parse().ok(), link, executable });
        }
    }
    Some(files)
}
