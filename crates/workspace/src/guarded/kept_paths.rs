//! Contents of guarded files and directories, kept in memory so that a command's change of them can
//! be put back.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use journeyman_protocol::{ContentHash, RelPath};
use rustix::fs::{
    AtFlags, Mode, OFlags, fchmod, fstat, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::files::directory::{entry_names, open_dir};
use crate::files::root_dir::{LinkPolicy, RootDir, read_up_to};
use crate::files::stat::{FileStat, to_mode};
use crate::files::stat::{file_clock, is_change_settled};
use crate::limits::MAX_DEPTH;
use crate::transaction::staging::write_all;

/// Maximum number of files and directories kept of one guarded directory: editors' and agents'
/// settings have dozens.
const MAX_KEPT_ENTRIES: usize = 1_000;
/// Maximum size of the contents kept of one guarded path, in bytes.
const MAX_KEPT_PATH_BYTES: u64 = 4 * 1024 * 1024;

/// A file, link or directory as it was.
#[derive(Debug, Clone)]
pub(crate) struct KeptPath {
    pub(crate) seen: FileStat,
    /// True if the same signature means the same content.
    pub(crate) settled: bool,
    pub(crate) content: KeptContent,
}

#[derive(Debug, Clone)]
pub(crate) enum KeptContent {
    File(Arc<[u8]>, ContentHash),
    Link(Vec<u8>),
    Directory(Vec<(Vec<u8>, KeptPath)>),
    /// A pipe, socket or device: nothing to keep.
    Other,
}

/// The room left for contents.
struct ContentBudget {
    files: usize,
    bytes: u64,
    now: i64,
}

impl KeptPath {
    /// Keeps what is at the path. What `before` has with the same signature isn't read again.
    /// `None` where it is too large, gone or unreadable.
    pub(crate) fn of(root_dir: &RootDir, path: &RelPath, before: Option<&Self>) -> Option<Self> {
        let parent = root_dir.open_parent(path).ok()?;
        let mut room =
            ContentBudget { files: MAX_KEPT_ENTRIES, bytes: MAX_KEPT_PATH_BYTES, now: file_clock() };
        keep_entry(parent.as_fd(), path.file_name(), before, &mut room, 0).ok().flatten()
    }

    /// Returns the size of the contents in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        match &self.content {
            KeptContent::File(bytes, _) => bytes.len() as u64,
            KeptContent::Directory(children) => children.iter().map(|(_, kept)| kept.size_bytes()).sum(),
            KeptContent::Link(_) | KeptContent::Other => 0,
        }
    }

    /// Lists the files that differ between two states of `path`; the directory itself where it is
    /// empty or another kind of thing.
    pub(crate) fn differences(before: Option<&Self>, now: Option<&Self>, path: &RelPath) -> Vec<RelPath> {
        let mut found = Vec::new();
        collect_differences(before, now, path, &mut found);
        found
    }

    /// Returns the state at `wanted` within the content kept at `path`: nothing, or the hash of a
    /// file's content.
    pub(crate) fn hash_at(&self, path: &RelPath, wanted: &RelPath) -> Option<Option<ContentHash>> {
        let mut kept = self;
        for name in wanted.components().skip(path.components().count()) {
            let KeptContent::Directory(children) = &kept.content else { return None };
            kept = children.iter().find(|(child, _)| child == name).map(|(_, kept)| kept)?;
        }
        Some(match &kept.content {
            KeptContent::File(_, hash) => Some(*hash),
            _ => None,
        })
    }

    /// Makes it anew at the path, where nothing may be. Directories above it that are gone are
    /// made.
    pub(crate) fn restore(&self, root_dir: &RootDir, path: &RelPath) -> Result<(), Errno> {
        let mut dir = root_dir.open_directory(None)?;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                return self.write(dir.as_fd(), name);
            }
            match mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            dir = open_dir(dir.as_fd(), name)?;
        }
        Ok(())
    }

    fn write(&self, at: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        match &self.content {
            KeptContent::Link(target) => symlinkat(target.as_slice(), at, name),
            KeptContent::Directory(children) => {
                mkdirat(at, name, Mode::from_raw_mode(0o700))?;
                let dir = open_dir(at, name)?;
                for (child, kept) in children {
                    kept.write(dir.as_fd(), child)?;
                }
                fchmod(&dir, to_mode(self.seen.permissions()))
            }
            KeptContent::File(bytes, _) => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = openat(at, name, flags, Mode::from_raw_mode(0o600))?;
                let written =
                    write_all(&file, bytes).and_then(|()| fchmod(&file, to_mode(self.seen.permissions())));
                if written.is_err() {
                    // Half a file would be worse than none.
                    unlinkat(at, name, AtFlags::empty())?;
                }
                written
            }
            KeptContent::Other => Ok(()),
        }
    }
}

fn keep_entry(
    at: BorrowedFd<'_>,
    name: &[u8],
    before: Option<&KeptPath>,
    room: &mut ContentBudget,
    depth: usize,
) -> Result<Option<KeptPath>, Errno> {
    if room.files == 0 || depth > MAX_DEPTH {
        return Ok(None);
    }
    room.files -= 1;
    let seen = FileStat::of(&statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?);
    if seen.is_dir() {
        return keep_directory(open_dir(at, name)?, before, room, depth);
    }
    let settled = is_change_settled(&seen, room.now);
    let known = before.filter(|kept| kept.settled && kept.seen == seen);
    let content = match known {
        Some(known) => known.content.clone(),
        None if seen.is_link() => KeptContent::Link(readlinkat(at, name, Vec::new())?.into_bytes()),
        None if seen.is_file() => {
            let Some(bytes) = read_bounded(at, name, room.bytes)? else { return Ok(None) };
            let hash = ContentHash::of(&bytes);
            KeptContent::File(bytes.into(), hash)
        }
        None => KeptContent::Other,
    };
    let kept = KeptPath { seen, settled, content };
    let Some(left) = room.bytes.checked_sub(kept.size_bytes()) else { return Ok(None) };
    room.bytes = left;
    Ok(Some(kept))
}

fn keep_directory(
    dir: OwnedFd,
    before: Option<&KeptPath>,
    room: &mut ContentBudget,
    depth: usize,
) -> Result<Option<KeptPath>, Errno> {
    let seen = FileStat::of(&fstat(&dir)?);
    let mut names = entry_names(&dir)?;
    names.sort_unstable();
    let known: &[(Vec<u8>, KeptPath)] = match before.map(|kept| &kept.content) {
        Some(KeptContent::Directory(children)) => children,
        _ => &[],
    };
    let mut all = Vec::with_capacity(names.len().min(room.files));
    for name in names {
        let at = known.binary_search_by(|(other, _)| other.cmp(&name)).ok();
        let before = at.and_then(|at| known.get(at)).map(|(_, kept)| kept);
        match keep_entry(dir.as_fd(), &name, before, room, depth + 1) {
            Ok(Some(kept)) => all.push((name, kept)),
            // It vanished while it was looked at.
            Err(Errno::NOENT) => {}
            other => return other,
        }
    }
    Ok(Some(KeptPath { seen, settled: false, content: KeptContent::Directory(all) }))
}

fn read_bounded(at: BorrowedFd<'_>, name: &[u8], limit: u64) -> Result<Option<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(at, name, flags, Mode::empty())?;
    let seen = FileStat::of(&fstat(&file)?);
    if !seen.is_file() {
        return Err(Errno::AGAIN);
    }
    read_up_to(&file, seen.size, limit).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Reads at most `limit` bytes of the regular file at the path; `None` for anything else and for
/// more.
pub(crate) fn read_small(root_dir: &RootDir, path: &RelPath, limit: u64) -> Option<Vec<u8>> {
    let (file, seen) = root_dir.open_file(path, LinkPolicy::Refuse).ok()?;
    read_up_to(&file, seen.size, limit).ok().flatten()
}

fn collect_differences(
    before: Option<&KeptPath>,
    now: Option<&KeptPath>,
    path: &RelPath,
    found: &mut Vec<RelPath>,
) {
    fn kept_children(kept: Option<&KeptPath>) -> Option<&[(Vec<u8>, KeptPath)]> {
        match kept.map(|kept| &kept.content) {
            Some(KeptContent::Directory(children)) => Some(children),
            _ => None,
        }
    }
    if let (Some(before), Some(now)) = (before, now)
        && before.is_same_node(now)
    {
        return;
    }
    let (old, new) = (kept_children(before), kept_children(now));
    let is_one_directory = old.is_some() && new.is_some();
    let lists = old.unwrap_or_default().iter().chain(new.unwrap_or_default());
    let mut names: Vec<&Vec<u8>> = lists.map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let length = found.len();
    for name in names {
        let Ok(child) = path.join(name) else { continue };
        let of = |list: Option<&'_ [(Vec<u8>, KeptPath)]>| {
            list.and_then(|list| list.iter().find(|(other, _)| other == name)).map(|(_, kept)| kept.clone())
        };
        collect_differences(of(old).as_ref(), of(new).as_ref(), &child, found);
    }
    // An empty directory that came or went, a file, or something that became another kind of thing.
    if !is_one_directory && found.len() == length {
        found.push(path.clone());
    }
}

impl KeptPath {
    /// Returns true if kind, permissions and content are the same. Directories never are: their
    /// entries tell.
    fn is_same_node(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (KeptContent::File(_, a), KeptContent::File(_, b)) => {
                self.seen.permissions() == other.seen.permissions() && a == b
            }
            (KeptContent::Link(a), KeptContent::Link(b)) => a == b,
            (KeptContent::Other, KeptContent::Other) => self.seen.mode == other.seen.mode,
            _ => false,
        }
    }
}
