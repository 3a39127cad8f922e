//! Reading configuration files, bounded in size; the project's without following links.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;

use super::{ConfigError, Environment};

/// Maximum size of a configuration file, in bytes. Real ones have a few kilobytes.
pub const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
/// The directory of a project's configuration.
pub(super) const PROJECT_DIR: &str = ".journeyman";

/// Returns the paths of all configuration files for the project at `root`: the user's, the
/// project's, and the administrator's, which is `admin`.
#[must_use]
pub fn config_files(environment: &Environment, root: &Path, admin: &Path) -> Vec<PathBuf> {
    let user = environment.config_dir().map(|dir| dir.join("config.toml"));
    let project = root.join(PROJECT_DIR).join("config.toml");
    user.into_iter().chain([project, admin.to_owned()]).collect()
}

/// Reads one of the user's own files if it exists. Links are followed: people keep such files
/// elsewhere.
pub(super) fn read_user_file(path: &Path) -> Result<Option<String>, ConfigError> {
    // Not blocking: opening a FIFO would wait for its other end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    read_opened(path, rustix::fs::open(path, flags, Mode::empty()))
}

/// Reads a file of the project's configuration if it exists. Links are not followed: a repository's
/// link could lead to the user's keys, whose text an error would show.
pub(super) fn read_project_file(root: &Path, name: &str) -> Result<Option<String>, ConfigError> {
    let path = &root.join(PROJECT_DIR).join(name);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    if let Err(Errno::ACCESS) = rustix::fs::access(root, Access::READ_OK | Access::EXEC_OK) {
        let source = Errno::ACCESS.into();
        return Err(ConfigError::UnreadableProject { path: root.to_owned(), source });
    }
    let opened = rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|root| rustix::fs::openat(root, PROJECT_DIR, flags | OFlags::DIRECTORY, Mode::empty()))
        .and_then(|dir| rustix::fs::openat(dir, name, flags, Mode::empty()));
    match opened {
        // A link in place of the directory gives "not a directory" here.
        Err(Errno::LOOP) => Err(link_error(path)),
        Err(Errno::NOTDIR) if root.join(PROJECT_DIR).is_symlink() => Err(link_error(path)),
        opened => read_opened(path, opened),
    }
}

fn link_error(path: &Path) -> ConfigError {
    let source = std::io::Error::other(
        "it is, or lies beyond, a symbolic link; a project's file is read only where it is",
    );
    ConfigError::Unreadable { path: path.to_owned(), source }
}

/// Reads the text of an opened regular file, up to the limit.
fn read_opened(path: &Path, opened: Result<OwnedFd, Errno>) -> Result<Option<String>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let file = match opened {
        Ok(file) => std::fs::File::from(file),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(unreadable(errno.into())),
    };
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(unreadable(std::io::Error::other("it is not a regular file")));
    }
    if meta.len() > MAX_CONFIG_BYTES {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
            size: meta.len(),
            limit: MAX_CONFIG_BYTES,
        });
    }
    let mut text = String::new();
    file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text))
}
