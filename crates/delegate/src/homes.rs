//! Home directories for CLIs: each CLI has its own for as long as the session lives.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use journeyman_workspace::{remove_tree, remove_trees_of_ended_processes};

use crate::access::CliAccess;

/// The home directories of one session's CLIs, removed when this value is dropped. Those of killed
/// processes are removed when the next session creates its own.
#[derive(Debug)]
pub(crate) struct CliHomes {
    path: PathBuf,
}

/// The home directory of one CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CliHome {
    pub(crate) path: PathBuf,
    /// True if the home was created for this run, so that it has no session of the CLI.
    pub(crate) is_new: bool,
}

impl CliHomes {
    /// Creates the directory for a session's homes beneath `all`, which sessions share.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn create(all: &Path, unique: u64) -> io::Result<Self> {
        remove_trees_of_ended_processes(all);
        let path = all.join(format!("{}-{unique:x}", std::process::id()));
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(Self { path })
    }

    /// Opens the home of a CLI, or creates it with links to the user's credentials, which the
    /// sandbox shows read-only, and the files that its provider needs.
    ///
    /// Nothing is written into a home that a CLI has used, which may have put links there.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn open(
        &self,
        name: &str,
        access: &CliAccess,
        user_home: Option<&Path>,
    ) -> io::Result<CliHome> {
        let path = self.path.join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(CliHome { path, is_new: false });
            }
            Err(error) => return Err(error),
        }
        let filled = fill_home(&path, access, user_home);
        if filled.is_err() {
            // A half filled home would be taken for a used one.
            remove_tree(&path).map_err(io::Error::other)?;
        }
        filled.map(|()| CliHome { path, is_new: true })
    }
}

impl Drop for CliHomes {
    fn drop(&mut self) {
        // A directory that can't be removed now is removed by the next session.
        remove_tree(&self.path).ok();
    }
}

fn fill_home(home: &Path, access: &CliAccess, user_home: Option<&Path>) -> io::Result<()> {
    for credentials in &access.credentials {
        let Some(user_home) = user_home else { break };
        std::os::unix::fs::symlink(user_home.join(credentials), prepare_path(home, credentials)?)?;
    }
    for (path, text) in &access.files {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(prepare_path(home, path)?)?.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Returns the path of a file in a home, and creates its directories.
fn prepare_path(home: &Path, path: &Path) -> io::Result<PathBuf> {
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::Error::other(format!("`{}` is no path beneath a home", path.display())));
    }
    let place = home.join(path);
    if let Some(parent) = place.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_has_links_to_credentials_and_ends_with_its_session() {
        let directory = tempfile::tempdir().unwrap();
        let user = directory.path().join("user");
        std::fs::create_dir_all(user.join(".agent")).unwrap();
        std::fs::write(user.join(".agent/auth.json"), "secret").unwrap();
        let access = CliAccess {
            credentials: vec![".agent/auth.json".into()],
            files: vec![(".agent/settings.json".into(), "{}".to_owned())],
            ..CliAccess::default()
        };
        let all = directory.path().join("all");
        let homes = CliHomes::create(&all, 7).unwrap();
        let home = homes.open("agent", &access, Some(&user)).unwrap();
        assert!(home.is_new);
        let auth = home.path.join(".agent/auth.json");
        assert_eq!(std::fs::read_link(&auth).unwrap(), user.join(".agent/auth.json"));
        assert_eq!(std::fs::read_to_string(home.path.join(".agent/settings.json")).unwrap(), "{}");
        // What the CLI left there stays, and nothing is written through its links.
        std::fs::remove_file(home.path.join(".agent/settings.json")).unwrap();
        std::os::unix::fs::symlink("/dev/full", home.path.join(".agent/settings.json")).unwrap();
        assert_eq!(homes.open("agent", &access, Some(&user)).unwrap(), CliHome { is_new: false, ..home });
        drop(homes);
        assert_eq!(std::fs::read_dir(&all).unwrap().count(), 0);
        assert!(user.join(".agent/auth.json").exists());
    }

    #[test]
    fn homes_of_killed_processes_are_swept() {
        let all = tempfile::tempdir().unwrap();
        let left = all.path().join("1999999999-1/agent");
        std::fs::create_dir_all(&left).unwrap();
        let homes = CliHomes::create(all.path(), 1).unwrap();
        assert!(!left.exists() && homes.path.exists());
    }

    #[test]
    fn no_file_is_written_outside_of_a_home() {
        let all = tempfile::tempdir().unwrap();
        let homes = CliHomes::create(all.path(), 1).unwrap();
        for path in ["../x", "/tmp/x", "a/../../x"] {
            let access = CliAccess { files: vec![(path.into(), String::new())], ..CliAccess::default() };
            assert!(homes.open("agent", &access, None).is_err());
            assert!(!homes.path.join("agent").exists());
        }
    }
}
