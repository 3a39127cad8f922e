//! Records which versions of project files the user trusts to run code or send data.

use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use journeyman_protocol::ContentHash;

/// Trusted files by path and content hash, one a line in the state directory.
#[derive(Debug, Clone)]
pub struct TrustStore {
    file: PathBuf,
}

/// The trust in a project's files during one run.
#[derive(Debug, Clone, Copy)]
pub enum ProjectTrust<'a> {
    /// The versions that the user has trusted before.
    Remembered(&'a TrustStore),
    /// This run's project, because of a flag.
    ThisRun,
    /// Nothing.
    Nothing,
}

impl TrustStore {
    /// Uses the state directory `dir`; nothing is created before the first trust.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self { file: dir.join("trusted") }
    }

    /// Records that the user trusts this version of a file.
    ///
    /// # Errors
    /// When the state directory can't be written.
    pub fn remember(&self, path: &Path, hash: &ContentHash) -> std::io::Result<()> {
        if let Some(dir) = self.file.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&self.file)?;
        // In one call: other processes append to the file at the same time.
        file.write_all(format!("{hash} {}\n", path.display()).as_bytes())?;
        file.sync_all()
    }

    /// Returns true if the user trusts this version of a file.
    #[must_use]
    pub fn is_trusted(&self, path: &Path, hash: &ContentHash) -> bool {
        let Ok(file) = std::fs::File::open(&self.file) else { return false };
        let line = format!("{hash} {}", path.display());
        std::io::BufReader::new(file).lines().map_while(Result::ok).any(|known| known == line)
    }
}

impl ProjectTrust<'_> {
    pub(super) fn is_file_trusted(self, path: &Path, hash: &ContentHash) -> bool {
        match self {
            Self::Remembered(store) => store.is_trusted(path, hash),
            Self::ThisRun => true,
            Self::Nothing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_remember_at_once_do_not_mix_their_lines() {
        let place = tempfile::tempdir().unwrap();
        let store = TrustStore::new(place.path());
        let file =
            |number: usize| (PathBuf::from(format!("/{number}")), ContentHash::of(&number.to_le_bytes()));
        std::thread::scope(|scope| {
            for first in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for number in (first..400).step_by(4) {
                        let (path, hash) = file(number);
                        store.remember(&path, &hash).unwrap();
                    }
                });
            }
        });
        let forgotten = (0..400).filter(|number| {
            let (path, hash) = file(*number);
            !store.is_trusted(&path, &hash)
        });
        assert_eq!(forgotten.count(), 0);
    }
}
