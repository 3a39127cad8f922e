//! The process's environment variables, home and current directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Environment variables, home and current directory. Only a surface, or a builder without this
/// part, reads them from the process; everything else gets this type.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Every environment variable.
    pub vars: BTreeMap<OsString, OsString>,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The current directory.
    pub cwd: PathBuf,
}

impl Environment {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// The current directory can't be read.
    pub fn from_process() -> std::io::Result<Self> {
        let cwd = std::env::current_dir().map_err(|error| {
            let text = format!("the current directory can't be read ({error}); was it removed?");
            std::io::Error::new(error.kind(), text)
        })?;
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        Ok(Self { vars: std::env::vars_os().collect(), home, cwd })
    }

    /// Returns a variable's value, if it is set, UTF-8 and not empty.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(std::ffi::OsStr::new(name))?.to_str().filter(|value| !value.is_empty())
    }

    /// Returns the path that a user wrote: below the home after `~/`, else from the current
    /// directory.
    #[must_use]
    pub fn resolve_user_path(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.cwd.join(path),
        }
    }

    /// Returns `$XDG_CONFIG_HOME/journeyman`, or `~/.config/journeyman`.
    #[must_use]
    pub fn config_dir(&self) -> Option<PathBuf> {
        self.xdg_dir("XDG_CONFIG_HOME", ".config")
    }

    /// Returns `$XDG_STATE_HOME/journeyman`, or `~/.local/state/journeyman`.
    #[must_use]
    pub fn state_dir(&self) -> Option<PathBuf> {
        self.xdg_dir("XDG_STATE_HOME", ".local/state")
    }

    /// Returns a directory of the base directory specification, which ignores a relative value.
    fn xdg_dir(&self, name: &str, fallback: &str) -> Option<PathBuf> {
        let set = self.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = set.or_else(|| self.home.as_ref().map(|home| home.join(fallback)))?;
        Some(base.join("journeyman"))
    }

    /// Returns true if a program of this name is on the `PATH`.
    #[must_use]
    pub fn has_program(&self, name: &str) -> bool {
        self.find_program(name).is_some()
    }

    /// Returns the program that `name` starts by the `PATH`. An absolute path to a program is
    /// returned unchanged.
    #[must_use]
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let path = self.vars.get(std::ffi::OsStr::new("PATH"))?;
        std::env::split_paths(path).map(|dir| dir.join(name)).find(|file| is_executable(file))
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
