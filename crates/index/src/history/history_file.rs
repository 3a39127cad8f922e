//! The file format of a history, with a checksum.
//!
//! `JMHISTORY`, a version, the version of the analysis and the BLAKE3 hash of the rest; then the
//! revision, the paths, the commits and the words of their messages. Numbers are little-endian, and
//! each text is preceded by its length in bytes. Words and the purposes of paths are stored because
//! finding them anew took most of the time of a search. A search asks for no commit: they are
//! checked when the file is loaded, and read from it at the first access.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use super::words::MessageWords;
use super::{Commit, History, LazyCommits};
use crate::IndexError;
use crate::segment::{format_version, map_file};

/// The magic bytes: the format's name and version.
const MAGIC: &[u8; 10] = b"JMHISTORY\x03";
const CHECKSUM_BYTES: usize = 32;
/// Bytes before the part that the checksum covers.
const HEADER_BYTES: usize = MAGIC.len() + size_of::<u64>() + CHECKSUM_BYTES;
/// Maximum bytes of a file: [`super::MAX_COMMITS`] messages and file lists at their bounds.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

impl History {
    /// Loads the file; `None` where there is none.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for any content other than [`History::save`] wrote, including other
    /// versions: the history has to be read from git again. [`IndexError::Io`].
    pub fn load(file: &Path) -> Result<Option<Self>, IndexError> {
        let opened = match File::open(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(IndexError::io("opening", file))?,
        };
        let found = opened.metadata().map_err(IndexError::io("looking at", file))?;
        if found.len() > MAX_FILE_BYTES {
            return Err(IndexError::damaged(file, "it is too long"));
        }
        let map = map_file(&opened).map_err(IndexError::io("mapping", file))?;
        let rest =
            map.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(&format_version().to_le_bytes()));
        let rest = rest.ok_or_else(|| IndexError::damaged(file, "another version"))?;
        let (sum, body) = rest
            .split_at_checked(CHECKSUM_BYTES)
            .ok_or_else(|| IndexError::damaged(file, "it is cut off"))?;
        if blake3::hash(body).as_bytes() != sum {
            return Err(IndexError::damaged(file, "its checksum differs"));
        }
        let parsed =
            parse_history(body).ok_or_else(|| IndexError::damaged(file, "its parts don't fit together"))?;
        let StoredHistory { revision, paths, source, words, commits } = parsed;
        let (start, count) = (HEADER_BYTES + commits.start, commits.count);
        let read = move || read_commits(map.get(start..).unwrap_or_default(), count);
        let commits = LazyCommits::new(Box::new(read));
        Ok(Some(Self { revision, commits, paths, source, words }))
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
        for commit in self.commits() {
            put_bytes(&mut body, commit.id.as_bytes());
            body.extend_from_slice(&commit.time.to_le_bytes());
            put_bytes(&mut body, commit.author.as_bytes());
            put_bytes(&mut body, commit.message.as_bytes());
            put_number(&mut body, commit.files.len());
            commit.files.iter().for_each(|file| body.extend_from_slice(&file.to_le_bytes()));
        }
        body.extend(self.source.iter().map(|source| u8::from(*source)));
        put_bytes(&mut body, self.words.texts.as_bytes());
        put_pairs(&mut body, &self.words.terms);
        put_pairs(&mut body, &self.words.postings);
        self.words.lengths.iter().for_each(|length| body.extend_from_slice(&length.to_le_bytes()));
        // Two processes may write at once: each writes its own file, and the last rename wins.
        let part = file.with_extension(format!("part-{}", std::process::id()));
        let write = || -> std::io::Result<()> {
            let mut out = fs::File::create(&part)?;
            out.write_all(MAGIC)?;
            out.write_all(&format_version().to_le_bytes())?;
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

fn put_pairs(body: &mut Vec<u8>, pairs: &[(u32, u32)]) {
    put_number(body, pairs.len());
    pairs.iter().for_each(|(one, other)| {
        body.extend_from_slice(&one.to_le_bytes());
        body.extend_from_slice(&other.to_le_bytes());
    });
}

/// The content of a file.
struct StoredHistory {
    revision: String,
    paths: Vec<Box<[u8]>>,
    source: Vec<bool>,
    words: MessageWords,
    commits: StoredCommits,
}

/// The commits of a file, which were checked: their beginning after the header, and their number.
struct StoredCommits {
    start: usize,
    count: u32,
}

/// A commit in a file.
struct StoredCommit<'a> {
    id: &'a str,
    time: u64,
    author: &'a str,
    message: &'a str,
    files: &'a [[u8; 4]],
}

impl StoredCommit<'_> {
    fn files(&self) -> impl Iterator<Item = u32> {
        self.files.iter().map(|file| u32::from_le_bytes(*file))
    }
}

fn parse_history(body: &[u8]) -> Option<StoredHistory> {
    let mut rest = body;
    let revision = take_text(&mut rest)?.to_owned();
    let count = take_number(&mut rest)?;
    let paths: Vec<Box<[u8]>> = (0..count).map_while(|_| take_bytes(&mut rest).map(Box::from)).collect();
    let count_of_commits = take_number(&mut rest)?;
    let start = body.len() - rest.len();
    let commits: Vec<StoredCommit<'_>> =
        (0..count_of_commits).map_while(|_| take_commit(&mut rest)).collect();
    let (source, after) = rest.split_at_checked(paths.len())?;
    rest = after;
    let source: Vec<bool> = source.iter().map(|source| *source == 1).collect();
    let texts = take_text(&mut rest)?.to_owned();
    let (terms, postings) = (take_pairs(&mut rest)?, take_pairs(&mut rest)?);
    let lengths: Vec<u32> = commits.iter().map_while(|_| take_number(&mut rest)).collect();
    let whole =
        rest.is_empty() && paths.len() == count as usize && commits.len() == count_of_commits as usize;
    let known = |file: u32| (file as usize) < paths.len();
    if !whole || !commits.iter().flat_map(StoredCommit::files).all(known) {
        return None;
    }
    let words = MessageWords { texts, terms, postings, lengths, ..MessageWords::default() };
    let words = words.with_checked_files(commits.iter().map(StoredCommit::files), &source)?;
    let commits = StoredCommits { start, count: count_of_commits };
    Some(StoredHistory { revision, paths, source, words, commits })
}

/// Reads commits that were checked when their file was loaded.
fn read_commits(mut bytes: &[u8], count: u32) -> Vec<Commit> {
    let stored = (0..count).map_while(|_| take_commit(&mut bytes));
    let commits = stored.map(|stored| Commit {
        id: stored.id.to_owned(),
        time: stored.time,
        author: stored.author.to_owned(),
        message: stored.message.to_owned(),
        files: stored.files().collect(),
    });
    commits.collect()
}

fn take_pairs(rest: &mut &[u8]) -> Option<Vec<(u32, u32)>> {
    let bytes = (take_number(rest)? as usize).checked_mul(8)?;
    let (pairs, after) = rest.split_at_checked(bytes)?;
    *rest = after;
    let (pairs, _) = pairs.as_chunks::<8>();
    let pair = |[a, b, c, d, e, f, g, h]: &[u8; 8]| {
        (u32::from_le_bytes([*a, *b, *c, *d]), u32::from_le_bytes([*e, *f, *g, *h]))
    };
    Some(pairs.iter().map(pair).collect())
}

fn take_commit<'a>(rest: &mut &'a [u8]) -> Option<StoredCommit<'a>> {
    let id = take_text(rest)?;
    let (time, after) = rest.split_first_chunk()?;
    *rest = after;
    let time = u64::from_le_bytes(*time);
    let (author, message) = (take_text(rest)?, take_text(rest)?);
    let length = (take_number(rest)? as usize).checked_mul(4)?;
    let (files, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(StoredCommit { id, time, author, message, files: files.as_chunks().0 })
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

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    take_bytes(rest).and_then(|bytes| std::str::from_utf8(bytes).ok())
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
        let loaded = History::load(&file).unwrap().unwrap();
        assert_eq!((&loaded.words, &loaded.source), (&history.words, &history.source));
        assert_eq!(loaded, history);

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
