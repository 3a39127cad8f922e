//! Which file of the index somebody means who names one.

use std::path::{Path, PathBuf};

use journeyman_host::config::Environment;
use journeyman_sandbox::clean;

use journeyman_host::HostError;
use journeyman_host::state::project_root;

/// Where files are named from.
pub(super) struct Place {
    root: PathBuf,
    cwd: PathBuf,
}

impl Place {
    pub(super) fn of(environment: &Environment, directory: Option<&Path>) -> Result<Self, HostError> {
        Ok(Self { root: project_root(environment, directory)?, cwd: environment.cwd.clone() })
    }

    /// The number of the file that is named from the project's directory, from the one that one is in, or with its whole path.
    /// `find` gives it by its path in the project, and `similar` those that may be meant instead.
    pub(super) fn file(
        &self,
        path: &str,
        find: &dyn Fn(&str) -> Option<u32>,
        similar: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<u32, HostError> {
        // With -C, names are told from the project's directory.
        let plain = path.trim_start_matches("./");
        let whole = self.cwd.join(path);
        let whole = std::fs::canonicalize(&whole).unwrap_or(whole);
        let inside = whole.strip_prefix(&self.root).ok().and_then(|inside| inside.to_str());
        if let Some(file) = find(plain).or_else(|| find(inside?)) {
            return Ok(file);
        }
        let shown = clean(path.as_bytes());
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
            format!("; did you mean {}?", clean(similar.join(" or ").as_bytes()))
        };
        Err(HostError::usage(format_args!("{shown} is not in the index: there is no such file{meant}")))
    }
}
