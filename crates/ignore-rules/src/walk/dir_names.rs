//! The names in one directory, in the order of full paths.

use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use crate::{CACHE_TAG_FILE, RULE_FILES, is_git_directory_name};

/// Bytes of the buffer for directory entries: more than most directories need.
const ENTRY_BUFFER_BYTES: usize = 16 * 1024;
/// Maximum number of names of one directory that are listed, which bounds the memory for it.
const MAX_NAMES: usize = 2_000_000;

/// A name in a directory, other than `.git`.
#[derive(Debug, Clone, Copy)]
pub struct DirName {
    start: usize,
    end: usize,
    /// The type of the file with this name; unknown if the file is gone meanwhile.
    pub kind: FileType,
}

/// The names in a directory. Reused for the next directory, so that a walk allocates little.
#[derive(Debug, Default)]
pub struct DirNames {
    text: Vec<u8>,
    all: Vec<DirName>,
    repositories: Vec<Vec<u8>>,
    is_cut: bool,
}

impl DirNames {
    /// Lists `dir`, in the order of full paths.
    ///
    /// # Errors
    /// The system's error.
    pub fn read(&mut self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        self.text.clear();
        self.all.clear();
        self.repositories.clear();
        self.is_cut = false;
        self.read_entries(dir, MAX_NAMES)?;
        let text = &self.text;
        // Some file systems don't list file types.
        for name in self.all.iter_mut().filter(|name| name.kind == FileType::Unknown) {
            let name_bytes = text.get(name.start..name.end).unwrap_or_default();
            match statat(dir, name_bytes, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => name.kind = FileType::from_raw_mode(stat.st_mode),
                // A missing file is left out, as one without content is.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        let key = |name: &DirName| {
            (text.get(name.start..name.end).unwrap_or_default(), name.kind == FileType::Directory)
        };
        self.all.sort_unstable_by(|a, b| compare_paths(key(a), key(b)));
        Ok(())
    }

    /// Returns the names in the order of full paths, without `.git`.
    #[must_use]
    pub fn sorted_names(&self) -> &[DirName] {
        &self.all
    }

    /// Returns the names that are git's own: `.git` in any letter case.
    #[must_use]
    pub fn git_names(&self) -> &[Vec<u8>] {
        &self.repositories
    }

    /// Returns true if the directory has more names than are listed.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.is_cut
    }

    /// Returns the bytes of a name.
    #[must_use]
    pub fn bytes(&self, name: &DirName) -> &[u8] {
        self.text.get(name.start..name.end).unwrap_or_default()
    }

    /// Returns true if a file, not a directory, has this name.
    #[must_use]
    pub fn has_file(&self, name: &[u8]) -> bool {
        let compare = |other: &DirName| {
            compare_paths((self.bytes(other), other.kind == FileType::Directory), (name, false))
        };
        self.all.binary_search_by(compare).is_ok()
    }

    /// Returns true if the directory has no rule file, no cache tag and no `.git`, and all names
    /// are listed.
    #[must_use]
    pub fn has_no_special_names(&self) -> bool {
        let tells = RULE_FILES.into_iter().chain([CACHE_TAG_FILE]).any(|name| self.has_file(name));
        !tells && self.repositories.is_empty() && !self.is_cut
    }

    fn read_entries(&mut self, dir: BorrowedFd<'_>, max_names: usize) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); ENTRY_BUFFER_BYTES];
        let mut raw = rustix::fs::RawDir::new(dir, &mut buffer);
        while let Some(entry) = raw.next() {
            let entry = entry?;
            if self.all.len() >= max_names {
                self.is_cut = true;
                break;
            }
            self.add(entry.file_name().to_bytes(), entry.file_type());
        }
        Ok(())
    }

    fn add(&mut self, name: &[u8], kind: FileType) {
        if is_git_directory_name(name) {
            self.repositories.push(name.to_vec());
        } else if !matches!(name, b"." | b"..") {
            let start = self.text.len();
            self.text.extend_from_slice(name);
            self.all.push(DirName { start, end: self.text.len(), kind });
        }
    }
}

/// Compares names in the order of full paths, in which a directory's name ends with `/`.
#[must_use]
pub fn compare_paths((a, a_is_dir): (&[u8], bool), (b, b_is_dir): (&[u8], bool)) -> Ordering {
    let both = a.len().min(b.len());
    let (a_front, a_rest) = a.split_at_checked(both).unwrap_or_default();
    let (b_front, b_rest) = b.split_at_checked(both).unwrap_or_default();
    a_front.cmp(b_front).then_with(|| {
        let next = |rest: &[u8], is_dir: bool| rest.first().copied().or(is_dir.then_some(b'/'));
        next(a_rest, a_is_dir).cmp(&next(b_rest, b_is_dir)).then(a.len().cmp(&b.len()))
    })
}

/// Returns the names in a directory, in no order.
///
/// # Errors
/// The system's error.
pub fn names_in(dir: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = DirNames::default();
    names.read_entries(dir, usize::MAX)?;
    let all: Vec<Vec<u8>> = names.all.iter().map(|name| names.bytes(name).to_vec()).collect();
    Ok(all.into_iter().chain(names.repositories).collect())
}

/// Returns the names in a directory that are git's own: `.git` in any letter case.
///
/// # Errors
/// The system's error.
pub fn git_names_in(dir: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = DirNames::default();
    names.read_entries(dir, usize::MAX)?;
    Ok(names.repositories)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn names_of_a_directory_are_sorted_and_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "a.b", "b", ".gitignore"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        for name in ["a-", "dir", ".GIT", "CACHEDIR.TAG"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let open = std::fs::File::open(dir.path()).unwrap();
        let mut names = DirNames::default();
        for _ in 0..2 {
            let open = std::fs::File::open(dir.path()).unwrap();
            names.read(open.as_fd()).unwrap();
            let all: Vec<&[u8]> = names.sorted_names().iter().map(|name| names.bytes(name)).collect();
            let expected: [&[u8]; 7] = [b".gitignore", b"CACHEDIR.TAG", b"a", b"a-", b"a.b", b"b", b"dir"];
            assert_eq!(all, expected);
            assert_eq!(names.git_names(), [b".GIT"]);
        }
        assert!(names.has_file(b".gitignore") && !names.has_file(b"CACHEDIR.TAG") && !names.has_file(b"c"));
        assert!(!names.has_no_special_names());
        names.read_entries(open.as_fd(), 9).unwrap();
        assert!(names.is_truncated());
    }

    proptest::proptest! {
        #[test]
        fn names_sort_as_full_paths_do(
            names in proptest::collection::vec(("[.0a-]{1,4}", proptest::bool::ANY), 0..20),
        ) {
            let full = |(name, is_dir): &(String, bool)| if *is_dir { format!("{name}/") } else { name.clone() };
            let mut ours = names.clone();
            ours.sort_by(|a, b| compare_paths((a.0.as_bytes(), a.1), (b.0.as_bytes(), b.1)));
            let mut theirs: Vec<String> = names.iter().map(full).collect();
            theirs.sort();
            proptest::prop_assert_eq!(ours.iter().map(full).collect::<Vec<_>>(), theirs);
        }
    }
}
