//! The files of a commit, read without a check-out.

use journeyman_protocol::RelPath;

use crate::history::is_object_id;
use crate::limits::CONTENT_BYTES_PER_REQUEST;
use crate::reader::{GitReader, ReadCommand};
use crate::tracked::split_nul_records;
use crate::{Git, GitError};

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// The path, within the project.
    pub path: RelPath,
    /// The hash of the content. Equal contents have equal hashes.
    pub blob: String,
    /// The size in bytes; `None` if the repository lacks the content.
    pub size: Option<u64>,
    /// True for a symbolic link, whose content is its target.
    pub link: bool,
    /// True for an executable file.
    pub executable: bool,
}

impl Git {
    /// Returns the files of a commit; `None` if `rev` names none. Nested repositories are omitted.
    ///
    /// # Errors
    /// [`GitError::InvalidRequest`] for text that can't name a commit; other [`GitError`]s.
    pub async fn list_tree(&self, rev: &str) -> Result<Option<Vec<TreeFile>>, GitError> {
        let action = "ls-tree";
        let reader = GitReader::open(self).await?;
        let Some(commit) = reader.resolve(rev).await? else { return Ok(None) };
        let args = ["ls-tree", "-r", "-z", "-l", "--full-tree", &commit];
        let bytes =
            reader.run(ReadCommand::new(action, args).with_large_limits()).await?.into_output(action)?;
        let files = parse(&bytes, &reader.place.prefix);
        files.ok_or(GitError::Malformed { action, what: "a file" }).map(Some)
    }

    /// Returns contents by hash, with the sizes that [`Git::list_tree`] returned: `None` for a hash
    /// that the repository lacks or that is not a content.
    ///
    /// # Errors
    /// [`GitError::InvalidRequest`] for text that is not a hash; other [`GitError`]s.
    pub async fn read_blobs(&self, blobs: &[(&str, u64)]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let action = "cat-file";
        if blobs.iter().any(|(id, _)| !is_object_id(id)) {
            return Err(GitError::InvalidRequest("what is no id names no content".to_owned()));
        }
        let reader = GitReader::open(self).await?;
        let mut found = Vec::with_capacity(blobs.len());
        let mut rest = blobs;
        while !rest.is_empty() {
            let mut bytes = 0_u64;
            let fits = |(_, size): &&(&str, u64)| {
                bytes = bytes.saturating_add(*size).saturating_add(80);
                bytes <= CONTENT_BYTES_PER_REQUEST
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let Some((now, later)) = rest.split_at_checked(count) else { break };
            rest = later;
            let mut ask = ReadCommand::new(action, ["cat-file", "--batch"]).with_large_limits();
            ask.stdin = Some(now.iter().flat_map(|(id, _)| [id, "\n"]).collect::<String>().into_bytes());
            let bytes = reader.run(ask).await?.into_output(action)?;
            let mut bytes = bytes.as_slice();
            for _ in now {
                found
                    .push(take_content(&mut bytes).ok_or(GitError::Malformed { action, what: "a content" })?);
            }
        }
        Ok(found)
    }
}

/// Takes one entry off the output; the inner `None` stands for a missing object.
#[allow(clippy::option_option)]
fn take_content(rest: &mut &[u8]) -> Option<Option<Vec<u8>>> {
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
    for record in split_nul_records(bytes) {
        let tab = record.iter().position(|byte| *byte == b'\t')?;
        let (head, path) = (record.get(..tab)?, record.get(tab + 1..)?);
        let head = std::str::from_utf8(head).ok()?;
        let mut words = head.split_ascii_whitespace();
        let (mode, kind, blob, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
        if kind != "blob" || !is_object_id(blob) {
            continue;
        }
        if let Some(path) = path.strip_prefix(prefix).and_then(|path| RelPath::parse(path).ok()) {
            let (link, executable) = (mode == "120000", mode == "100755");
            files.push(TreeFile { path, blob: blob.to_owned(), size: size.parse().ok(), link, executable });
        }
    }
    Some(files)
}
