//! The file format of a history, with a checksum.
//!
//! `JMHISTORY`, a version and the BLAKE3 hash of the rest; then the revision, the paths, and the
//! commits. Numbers are little-endian, and each text is preceded by its length in bytes.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use super::{Commit, History};
use crate::IndexError;

/// The magic bytes: the format's name and version.
const MAGIC: &[u8; 10] = b"JMHISTORY\x02";
const CHECKSUM_BYTES: usize = 32;
/// Maximum bytes of a file: [`super::MAX_COMMITS`] messages and file lists at their bounds.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

impl History {
    /// Loads the file; `None` where there is none.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for any content other than [`History::save`] wrote, including other
    /// versions: the history has to be read from git again. [`IndexError::Io`].
    pub fn load(file: &Path) -> Result<Option<Self>, IndexError> {
        let found = match fs::metadata(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.map_err(IndexError::io("looking at", file))?,
        };
        if found.len() > MAX_BYTES {
            return Err(IndexError::damaged(file, "it is too long"));
        }
        let bytes = fs::read(file).map_err(IndexError::io("reading", file))?;
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| IndexError::damaged(file, "another version"))?;
        let (sum, body) = rest
            .split_at_checked(CHECKSUM_BYTES)
            .ok_or_else(|| IndexError::damaged(file, "it is cut off"))?;
        if blake3::hash(body).as_bytes() != sum {
            return Err(IndexError::damaged(file, "its checksum differs"));
        }
        parse_history(body).map(Some).ok_or_else(|| IndexError::damaged(file, "its parts don't fit together"))
    }

    /// Saves the file, atomically.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn save(&self, file: &Path) -> Result<(), IndexError> {
        let mut body = Vec::new();
        put_bytes(&mut body, self.revision.as_bytes());
        put_number(&mut body, self.paths.len());
        self.paths.iter().for_each(|path| put_bytes(&mut body, path));
        put_number(&mut body, self.commits.len());
        for commit in &self.commits {
            put_bytes(&mut body, commit.id.as_bytes());
            body.extend_from_slice(&commit.time.to_le_bytes());
            put_bytes(&mut body, commit.author.as_bytes());
            put_bytes(&mut body, commit.message.as_bytes());
            put_number(&mut body, commit.files.len());
            commit.files.iter().for_each(|file| body.extend_from_slice(&file.to_le_bytes()));
        }
        // Two processes may write at once: each writes its own file, and the last rename wins.
        let part = file.with_extension(format!("part-{}", std::process::id()));
        let write = || -> std::io::Result<()> {
            let mut out = fs::File::create(&part)?;
            out.write_all(MAGIC)?;
            out.write_all(blake3::hash(&body).as_bytes())?;
            out.write_all(&body)?;
            out.sync_all()?;
            fs::rename(&part, file)
        };
        write().map_err(|error| {
            // The first error is reported.
            fs::remove_file(&part).ok();
            IndexError::io("writing", file)(error)
        })
    }
}

fn put_number(body: &mut Vec<u8>, number: usize) {
    body.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    put_number(body, bytes.len());
    body.extend_from_slice(bytes);
}

fn parse_history(body: &[u8]) -> Option<History> {
    let mut rest = body;
    let revision = take_text(&mut rest)?;
    let count = take_number(&mut rest)?;
    let paths: Vec<Box<[u8]>> = (0..count).map_while(|_| take_bytes(&mut rest).map(Box::from)).collect();
    let commits_count = take_number(&mut rest)?;
    let commits: Vec<Commit> = (0..commits_count).map_while(|_| take_commit(&mut rest)).collect();
    let whole = rest.is_empty() && paths.len() == count as usize && commits.len() == commits_count as usize;
    let known = |file: &u32| (*file as usize) < paths.len();
    let whole = whole && commits.iter().flat_map(|commit| &commit.files).all(known);
    whole.then(|| History::from_parts(revision, commits, paths))
}

fn take_commit(rest: &mut &[u8]) -> Option<Commit> {
    let id = take_text(rest)?;
    let (time, after) = rest.split_first_chunk()?;
    *rest = after;
    let time = u64::from_le_bytes(*time);
    let (author, message) = (take_text(rest)?, take_text(rest)?);
    let count = take_number(rest)?;
    let files: Vec<u32> = (0..count).map_while(|_| take_number(rest)).collect();
    (files.len() == count as usize).then_some(Commit { id, time, author, message, files })
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number))
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_number(rest)?;
    let (bytes, after) = rest.split_at_checked(length as usize)?;
    *rest = after;
    Some(bytes)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    take_bytes(rest).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
}

#[cfg(test)]
mod tests {
    use journeyman_git::CommitDetails;
    use journeyman_protocol::{RelPath, UnixMillis};

    use super::*;

    #[test]
    fn saved_histories_load_and_damage_is_detected() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("history");
        assert_eq!(History::load(&file).unwrap(), None);
        let told = |id: &str, path: &str| CommitDetails {
            id: id.to_owned(),
            time: UnixMillis(7),
            author: "ä".to_owned(),
            message: "Words\n\nand more".to_owned(),
            paths: vec![RelPath::parse(path).unwrap(), RelPath::parse("b.rs").unwrap()],
        };
        let history = History::new("abc".to_owned(), [told("1", "a.rs"), told("2", "c d.rs")]);
        history.save(&file).unwrap();
        assert_eq!(History::load(&file).unwrap(), Some(history));

        let good = fs::read(&file).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x20;
            fs::write(&file, &bad).unwrap();
            assert!(matches!(History::load(&file), Err(IndexError::Damaged { .. })), "byte {at}");
            fs::write(&file, &good[..at]).unwrap();
            assert!(matches!(History::load(&file), Err(IndexError::Damaged { .. })), "length {at}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn inconsistent_files_are_refused() {
        let mut body = Vec::new();
        put_bytes(&mut body, b"abc");
        put_number(&mut body, u32::MAX as usize);
        assert!(parse_history(&body).is_none());
        let mut body = Vec::new();
        put_bytes(&mut body, b"abc");
        put_number(&mut body, 0);
        put_number(&mut body, 1);
        put_bytes(&mut body, b"1");
        body.extend_from_slice(&[0; 8]);
        put_bytes(&mut body, b"a");
        put_bytes(&mut body, b"m");
        put_number(&mut body, 1);
        body.extend_from_slice(&[9, 0, 0, 0]);
        assert!(parse_history(&body).is_none());
    }
}
