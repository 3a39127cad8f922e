//! The names in one directory, in the order of full paths.

use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;
use rustix::io::Errno;

/// Directory entries are fetched in pieces of this size: more than most directories have.
const ENTRY_BYTES: usize = 16 * 1024;

/// One name, of something that isn't named as git's directory is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirName {
    start: usize,
    end: usize,
    pub(crate) kind: FileType,
}

/// The names in a directory. Used again for the next one, so that a walk allocates little.
#[derive(Debug, Default)]
pub(crate) struct DirNames {
    text: Vec<u8>,
    pub(crate) all: Vec<DirName>,
    pub(crate) gitignore: bool,
    pub(crate) ignore: bool,
    pub(crate) tagged: bool,
    pub(crate) repositories: Vec<Vec<u8>>,
}

impl DirNames {
    /// Lists `dir`, sorted; `look` tells the kind where the listing doesn't.
    pub(crate) fn read(
        &mut self,
        dir: BorrowedFd<'_>,
        look: impl Fn(&[u8]) -> Result<FileType, Errno>,
    ) -> Result<(), Errno> {
        self.text.clear();
        self.all.clear();
        self.repositories.clear();
        (self.gitignore, self.ignore, self.tagged) = (false, false, false);
        self.fill(dir)?;
        let text = &self.text;
        for name in self.all.iter_mut().filter(|name| name.kind == FileType::Unknown) {
            match look(text.get(name.start..name.end).unwrap_or_default()) {
                Ok(kind) => name.kind = kind,
                // It is left out, as what has no content is.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        let bytes = |name: &DirName| text.get(name.start..name.end).unwrap_or_default();
        let is_dir = |name: &DirName| name.kind == FileType::Directory;
        self.all.sort_unstable_by(|a, b| compare_paths((bytes(a), is_dir(a)), (bytes(b), is_dir(b))));
        Ok(())
    }

    /// Returns true if the names are all there is to know: nothing among them says by its content
    /// what counts.
    pub(crate) fn is_plain(&self) -> bool {
        !(self.gitignore || self.ignore || self.tagged) && self.repositories.is_empty()
    }

    pub(crate) fn bytes(&self, name: &DirName) -> &[u8] {
        self.text.get(name.start..name.end).unwrap_or_default()
    }

    fn fill(&mut self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); ENTRY_BYTES];
        let mut raw = rustix::fs::RawDir::new(dir, &mut buffer);
        while let Some(entry) = raw.next() {
            let entry = entry?;
            self.add(entry.file_name().to_bytes(), entry.file_type());
        }
        Ok(())
    }

    fn add(&mut self, name: &[u8], kind: FileType) {
        if journeyman_ignore_rules::is_git(name) {
            self.repositories.push(name.to_vec());
            return;
        }
        if matches!(name, b"." | b"..") {
            return;
        }
        self.gitignore |= name == b".gitignore";
        self.ignore |= name == b".ignore";
        self.tagged |= name == b"CACHEDIR.TAG";
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.all.push(DirName { start, end: self.text.len(), kind });
    }
}

/// Full paths sort as if a directory's name ended with `/`.
pub(crate) fn compare_paths((a, a_is_dir): (&[u8], bool), (b, b_is_dir): (&[u8], bool)) -> Ordering {
    let both = a.len().min(b.len());
    let (a_front, a_rest) = a.split_at_checked(both).unwrap_or_default();
    let (b_front, b_rest) = b.split_at_checked(both).unwrap_or_default();
    a_front.cmp(b_front).then_with(|| {
        let next = |rest: &[u8], is_dir: bool| rest.first().copied().or(is_dir.then_some(b'/'));
        next(a_rest, a_is_dir).cmp(&next(b_rest, b_is_dir)).then(a.len().cmp(&b.len()))
    })
}

/// The names in a directory.
pub(crate) fn names_in(dir: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = DirNames::default();
    names.fill(dir)?;
    let all: Vec<Vec<u8>> = names.all.iter().map(|name| names.bytes(name).to_vec()).collect();
    Ok(all.into_iter().chain(names.repositories).collect())
}

/// The names in this directory that git uses for its own.
pub(crate) fn repositories_in(dir: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = DirNames::default();
    names.fill(dir)?;
    Ok(names.repositories)
}

#[cfg(test)]
mod tests {
    use super::*;

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
