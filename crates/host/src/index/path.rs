//! Finding the file of the index that a user names.

use std::path::{Path, PathBuf};

use journeyman_sandbox::clean_output;

use crate::HostError;
use crate::config::Environment;
use crate::root::project_root;

/// Resolves the names of files as a user writes them.
pub(super) struct PathResolver {
    root: PathBuf,
    cwd: PathBuf,
    /// True where -C names the project's directory.
    is_given: bool,
}

impl PathResolver {
    /// Resolves from the current directory and from the root of the project.
    ///
    /// # Errors
    /// [`HostError::Usage`] where the project's directory doesn't exist.
    pub(super) fn new(environment: &Environment, directory: Option<&Path>) -> Result<Self, HostError> {
        let root = project_root(environment, directory)?;
        Ok(Self { root, cwd: environment.cwd.clone(), is_given: directory.is_some() })
    }

    /// Returns the root of the project.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the number of a file that is named from the current directory, from the project's
    /// root, or absolutely; from the root first where -C names that. `find` returns the number of a
    /// path in the project, and `similar` returns paths that may be meant instead.
    ///
    /// # Errors
    /// [`HostError::Usage`] saying why the file isn't in the index.
    pub(super) fn find_file(
        &self,
        path: &str,
        find: &dyn Fn(&str) -> Option<u32>,
        similar: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<u32, HostError> {
        let plain = path.trim_start_matches("./");
        let whole = self.cwd.join(path);
        let whole = std::fs::canonicalize(&whole).unwrap_or(whole);
        let inside = whole.strip_prefix(&self.root).ok().and_then(|inside| inside.to_str());
        let names = if self.is_given { [Some(plain), inside] } else { [inside, Some(plain)] };
        if let Some(file) = names.into_iter().flatten().find_map(find) {
            return Ok(file);
        }
        let shown = clean_output(path.as_bytes());
        let in_project = self.root.join(plain);
        let there = if in_project.exists() { &in_project } else { &whole };
        if path.is_empty() {
            return Err(HostError::usage("the path is empty; name a file"));
        }
        if there.exists() && !there.starts_with(&self.root) {
            let root = self.root.display();
            return Err(HostError::usage(format_args!("{shown} is outside of the project, {root}")));
        }
        if there.is_dir() {
            return Err(HostError::usage(format_args!("{shown} is a directory; name a file")));
        }
        if there.exists() {
            return Err(HostError::usage(format_args!(
                "{shown} is not in the index: .gitignore, .ignore or .journeymanignore leaves it out"
            )));
        }
        let similar = similar(plain);
        let meant = if similar.is_empty() {
            String::new()
        } else {
            format!("; did you mean {}?", clean_output(similar.join(" or ").as_bytes()))
        };
        Err(HostError::usage(format_args!("{shown} is not in the index: there is no such file{meant}")))
    }
}
