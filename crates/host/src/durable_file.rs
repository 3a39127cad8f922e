//! Small files of the user's that are replaced in one step.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::FlockOperation;

/// Keeps other processes from replacing files of a directory at the same time, until the result is
/// dropped.
pub(crate) fn lock_directory(dir: &Path) -> std::io::Result<File> {
    let lock = File::open(dir)?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// Puts a new text in a file's place, durably and in one step. The file keeps its permissions.
pub(crate) fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    // Nobody can know the name: the directory may be a repository's, with links in it.
    let beside = path.with_extension(format!("jm-{:x}", fastrand::u64(..)));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = (|| {
        if let Ok(replaced) = std::fs::metadata(path) {
            // The mode of a new file is subject to the umask.
            file.set_permissions(replaced.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        match path.parent() {
            Some(dir) => std::fs::File::open(dir)?.sync_all(),
            None => Ok(()),
        }
    })();
    if written.is_err() {
        // The caller reports the failure; the half-written file is of no use.
        std::fs::remove_file(&beside).ok();
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn no_link_in_the_directory_is_followed_and_permissions_stay() {
        let place = tempfile::tempdir().unwrap();
        let [path, other] = ["policy.toml", "other"].map(|name| place.path().join(name));
        std::fs::write(&path, "old").unwrap();
        std::fs::write(&other, "someone's").unwrap();
        // A mode that no usual umask leaves.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        symlink(&other, path.with_extension(format!("jm-{}", std::process::id()))).unwrap();
        replace_file(&path, "new").unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&path), read(&other)), ("new".to_owned(), "someone's".to_owned()));
        let meta = path.symlink_metadata().unwrap();
        assert!(meta.is_file());
        assert_eq!(meta.permissions().mode() & 0o777, 0o666);
    }
}
