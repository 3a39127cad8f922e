//! The files of a directory as a tar archive for a build, without those that are ignored.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use journeyman_root_fs::LinkPolicy;
use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use tar::EntryType;

/// Bytes of all files: an image's sources, not its data. All of it is in memory at once.
const MAX_ARCHIVE_BYTES: usize = 64 * 1024 * 1024;
/// Entries looked at; far above what a build needs.
const MAX_ENTRIES: usize = 20_000;
/// Directories in each other.
const MAX_DEPTH: usize = 64;
/// Patterns of a `.dockerignore`.
const MAX_IGNORE_PATTERNS: usize = 500;
/// Bytes of a `.dockerignore`.
const MAX_IGNORE_FILE_BYTES: u64 = 64 * 1024;
/// Names that are never given to a build, whatever the project says: history, our own, and where
/// keys usually are.
const NEVER_ARCHIVED: [&str; 3] = [".git", ".journeyman", ".env"];
const NEVER_ARCHIVED_PREFIX: &str = ".env.";

/// The reason why a directory can't be given to a build.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Something of it can't be read.
    #[error("`{}`: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The directory is too large.
    #[error("more than {0}; name what isn't needed in .dockerignore")]
    TooMuch(&'static str),
    /// A pattern isn't followed.
    #[error(".dockerignore, line {0}: this pattern isn't understood; use names, *, ? and **")]
    Pattern(usize),
}

/// Opens the file at a path beneath a directory, with no link on the way.
pub(super) fn open_beneath(root: BorrowedFd<'_>, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let name = if name.is_empty() { "." } else { name };
    Ok(journeyman_root_fs::open_beneath(root, name.as_bytes(), flags, LinkPolicy::Refuse)?)
}

/// Returns the archive of a directory, with one added file. The same tree gives the same bytes.
pub(super) fn archive_directory(
    directory: BorrowedFd<'_>,
    besides: (&str, &str),
) -> Result<Vec<u8>, ArchiveError> {
    let ignored = DockerIgnore::read(directory)?;
    let mut walk = DirectoryWalk { ignored: &ignored, files: BTreeMap::new(), seen: 0, bytes: 0 };
    walk.add_directory(directory, &mut Vec::new())?;
    let (name, text) = besides;
    let special =
        ArchiveEntry { kind: EntryType::Regular, mode: 0o644, link: Vec::new(), content: text.into() };
    let mut out = tar::Builder::new(Vec::new());
    append_entry(&mut out, name.as_bytes(), &special)?;
    for (path, entry) in walk.files.iter().filter(|(path, _)| *path != name.as_bytes()) {
        append_entry(&mut out, path, entry)?;
    }
    out.into_inner().map_err(|source| ArchiveError::Read { path: name.into(), source })
}

struct ArchiveEntry {
    kind: EntryType,
    mode: u32,
    link: Vec<u8>,
    content: Vec<u8>,
}

/// A walk over a directory, and what it found.
struct DirectoryWalk<'a> {
    ignored: &'a DockerIgnore,
    files: BTreeMap<Vec<u8>, ArchiveEntry>,
    seen: usize,
    bytes: usize,
}

impl DirectoryWalk<'_> {
    fn add_directory(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &mut Vec<Vec<u8>>,
    ) -> Result<(), ArchiveError> {
        if path.len() > MAX_DEPTH {
            return Err(ArchiveError::TooMuch("64 directories in each other"));
        }
        for entry in Dir::read_from(directory).map_err(|errno| read_error(path, errno))? {
            let entry = entry.map_err(|errno| read_error(path, errno))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                return Err(ArchiveError::TooMuch("20,000 files"));
            }
            path.push(name.to_bytes().to_vec());
            self.add_entry(directory, name, path)?;
            path.pop();
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &std::ffi::CStr,
        path: &mut Vec<Vec<u8>>,
    ) -> Result<(), ArchiveError> {
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(|errno| read_error(path, errno))?;
        let out = self.ignored.is_ignored(path);
        let mut entry =
            ArchiveEntry { kind: EntryType::Regular, mode: 0o644, link: Vec::new(), content: Vec::new() };
        match FileType::from_raw_mode(found.st_mode) {
            // An ignored directory may contain entries that aren't ignored.
            FileType::Directory if !out || self.ignored.has_exceptions() && !is_never_archived(path) => {
                let inner = open_entry(directory, name, OFlags::RDONLY | OFlags::DIRECTORY);
                let inner = inner.map_err(|errno| read_error(path, errno))?;
                self.add_directory(inner.as_fd(), path)?;
                (entry.kind, entry.mode) = (EntryType::Directory, 0o755);
            }
            FileType::RegularFile if !out => {
                let file = open_entry(directory, name, OFlags::RDONLY | OFlags::NONBLOCK);
                let file = file.map_err(|errno| read_error(path, errno))?;
                let room = MAX_ARCHIVE_BYTES.saturating_sub(self.bytes);
                let mut limited = std::fs::File::from(file).take(room as u64 + 1);
                let read = limited.read_to_end(&mut entry.content);
                read.map_err(|source| ArchiveError::Read { path: join_path(path), source })?;
                if entry.content.len() > room {
                    return Err(ArchiveError::TooMuch("64 MiB"));
                }
                self.bytes += entry.content.len();
                entry.mode = if found.st_mode & 0o111 != 0 { 0o755 } else { 0o644 };
            }
            FileType::Symlink if !out => {
                let link = rustix::fs::readlinkat(directory, name, Vec::new());
                entry.link = link.map_err(|errno| read_error(path, errno))?.into_bytes();
                (entry.kind, entry.mode) = (EntryType::Symlink, 0o777);
            }
            // Left out, and sockets, pipes and devices.
            _ => return Ok(()),
        }
        if !out {
            self.files.insert(path.join(&b'/'), entry);
        }
        Ok(())
    }
}

fn join_path(path: &[Vec<u8>]) -> PathBuf {
    std::ffi::OsStr::from_bytes(&path.join(&b'/')).into()
}

fn read_error(path: &[Vec<u8>], errno: rustix::io::Errno) -> ArchiveError {
    ArchiveError::Read { path: join_path(path), source: errno.into() }
}

fn open_entry(
    directory: BorrowedFd<'_>,
    name: &std::ffi::CStr,
    flags: OFlags,
) -> Result<OwnedFd, rustix::io::Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, rustix::fs::Mode::empty())
}

/// Appends an entry, with GNU's extension for names that are longer than the format has room for.
fn append_entry(
    out: &mut tar::Builder<Vec<u8>>,
    path: &[u8],
    entry: &ArchiveEntry,
) -> Result<(), ArchiveError> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(entry.kind);
    header.set_mode(entry.mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(entry.content.len() as u64);
    let name = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    let appended = if entry.kind == EntryType::Symlink {
        out.append_link(&mut header, name, std::ffi::OsStr::from_bytes(&entry.link))
    } else {
        out.append_data(&mut header, name, entry.content.as_slice())
    };
    appended.map_err(|source| ArchiveError::Read { path: name.to_owned(), source })
}

fn is_never_archived(path: &[Vec<u8>]) -> bool {
    path.iter().any(|name| {
        NEVER_ARCHIVED.iter().any(|never| name.eq_ignore_ascii_case(never.as_bytes()))
            || name.starts_with(NEVER_ARCHIVED_PREFIX.as_bytes())
    })
}

/// The rules of a `.dockerignore`: the last that matches a path, or a directory above it, decides.
struct DockerIgnore(Vec<(bool, Vec<Vec<u8>>)>);

impl DockerIgnore {
    fn read(directory: BorrowedFd<'_>) -> Result<Self, ArchiveError> {
        let error = |source| ArchiveError::Read { path: ".dockerignore".into(), source };
        let file = match open_beneath(directory, ".dockerignore", OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(file) => file,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Self(Vec::new())),
            Err(source) => return Err(error(source)),
        };
        let mut text = Vec::new();
        std::fs::File::from(file).take(MAX_IGNORE_FILE_BYTES + 1).read_to_end(&mut text).map_err(error)?;
        if text.len() as u64 > MAX_IGNORE_FILE_BYTES {
            return Err(ArchiveError::TooMuch("64 KiB of .dockerignore"));
        }
        Self::parse(&text)
    }

    fn parse(text: &[u8]) -> Result<Self, ArchiveError> {
        let mut rules = Vec::new();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let (keep, line) = match line.strip_prefix(b"!") {
                Some(line) => (true, line.trim_ascii()),
                None => (false, line),
            };
            if line.iter().any(|byte| b"[]\\".contains(byte)) || rules.len() >= MAX_IGNORE_PATTERNS {
                return Err(ArchiveError::Pattern(number + 1));
            }
            let mut parts: Vec<Vec<u8>> = Vec::new();
            for part in line.split(|byte| *byte == b'/') {
                match part {
                    b"" | b"." => {}
                    b".." => drop(parts.pop()),
                    part => parts.push(part.to_vec()),
                }
            }
            // Several `**` in a row equal a single one, and would only cost time.
            parts.dedup_by(|later, earlier| later == b"**" && earlier == b"**");
            if !parts.is_empty() {
                rules.push((keep, parts));
            }
        }
        Ok(Self(rules))
    }

    fn has_exceptions(&self) -> bool {
        self.0.iter().any(|(keep, _)| *keep)
    }

    fn is_ignored(&self, path: &[Vec<u8>]) -> bool {
        if is_never_archived(path) {
            return true;
        }
        let matches = |rule: &[Vec<u8>]| {
            (1..=path.len()).any(|length| path.get(..length).is_some_and(|above| matches_path(rule, above)))
        };
        let last = self.0.iter().rev().find(|(_, rule)| matches(rule));
        last.is_some_and(|(keep, _)| !keep)
    }
}

/// Names of a pattern against names of a path; `**` stands for any number of them. By a table, so
/// that no pattern costs more than its length times the path's.
fn matches_path(rule: &[Vec<u8>], path: &[Vec<u8>]) -> bool {
    matches_sequence(rule, path, |part| part == b"**", |part, name| matches_name(part, name))
}

fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    matches_sequence(pattern, name, |byte| *byte == b'*', |byte, other| *byte == b'?' || byte == other)
}

fn matches_sequence<T>(
    pattern: &[T],
    given: &[T],
    is_any: impl Fn(&T) -> bool,
    equal: impl Fn(&T, &T) -> bool,
) -> bool {
    // Which beginnings of what is given the pattern so far matches.
    let mut so_far: Vec<bool> = (0..=given.len()).map(|length| length == 0).collect();
    for part in pattern {
        let mut next = Vec::with_capacity(so_far.len());
        let mut open = false;
        if is_any(part) {
            for matched in &so_far {
                open |= matched;
                next.push(open);
            }
        } else {
            next.push(false);
            next.extend(so_far.iter().zip(given).map(|(matched, one)| *matched && equal(part, one)));
        }
        so_far = next;
    }
    so_far.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(rules: &str, path: &str) -> bool {
        let path: Vec<Vec<u8>> = path.split('/').map(|name| name.as_bytes().to_vec()).collect();
        DockerIgnore::parse(rules.as_bytes()).unwrap().is_ignored(&path)
    }

    #[test]
    fn patterns_leave_out_what_they_name() {
        let cases: &[(&str, &str, bool)] = &[
            ("", "a", false),
            ("target", "target/debug/x", true),
            ("/target/", "target", true),
            ("target", "sub/target", false),
            ("**/target", "a/b/target/x", true),
            ("*.log", "a.log", true),
            ("*.log", "sub/a.log", false),
            ("a?c", "abc", true),
            ("*\n!keep", "keep/x", false),
            ("*\n!keep", "other", true),
            ("!keep\n*", "keep", true),
            ("# c\n\nx", "c", false),
            ("**", "any/thing", true),
            ("", ".git/config", true),
            ("!.git", ".git/config", true),
            ("", "sub/.env", true),
            ("", "sub/.env.local", true),
            ("", ".environment", false),
        ];
        for (rules, path, expected) in cases {
            assert_eq!(covers(rules, path), *expected, "{rules:?} {path}");
        }
        assert!(DockerIgnore::parse(b"[a-z]").is_err() && DockerIgnore::parse(&b"x\n".repeat(600)).is_err());
        assert!(!covers(&"*a".repeat(5_000), &"a".repeat(4_000)));
    }

    #[test]
    fn tar_reads_what_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let long = "long-".repeat(40);
        std::fs::create_dir_all(directory.path().join("sub")).unwrap();
        std::fs::create_dir(directory.path().join(".git")).unwrap();
        for (name, text) in
            [("sub/file", "text"), (long.as_str(), "deep"), (".git/config", "x"), ("left", "x")]
        {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        std::fs::write(directory.path().join(".dockerignore"), "left\n").unwrap();
        std::os::unix::fs::symlink("sub/file", directory.path().join("link")).unwrap();
        let opened = std::fs::File::open(directory.path()).unwrap();
        let bytes = archive_directory(opened.as_fd(), ("Special", "FROM x\n")).unwrap();
        assert_eq!(bytes, archive_directory(opened.as_fd(), ("Special", "FROM x\n")).unwrap());
        let unpacked = tempfile::tempdir().unwrap();
        let tar = unpacked.path().join("archive.tar");
        std::fs::write(&tar, bytes).unwrap();
        let output = std::process::Command::new("tar")
            .arg("-C")
            .arg(unpacked.path())
            .arg("-xf")
            .arg(&tar)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str| std::fs::read_to_string(unpacked.path().join(name)).unwrap();
        assert_eq!(
            (read("sub/file"), read(&long), read("link"), read("Special")),
            ("text".to_owned(), "deep".to_owned(), "text".to_owned(), "FROM x\n".to_owned())
        );
        assert!(!unpacked.path().join(".git").exists() && !unpacked.path().join("left").exists());
    }

    #[test]
    fn too_much_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(directory.path().join("big")).unwrap();
        file.set_len(65 * 1024 * 1024).unwrap();
        let opened = std::fs::File::open(directory.path()).unwrap();
        let error = archive_directory(opened.as_fd(), ("D", "")).unwrap_err();
        assert!(matches!(error, ArchiveError::TooMuch("64 MiB")), "{error}");
    }
}
