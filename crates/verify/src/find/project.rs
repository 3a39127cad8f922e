//! A project and its directories, as the finders see them.

use journeyman_protocol::{CheckKind, RelPath};

use crate::Check;

/// Files that make their directory a project.
pub(super) const MANIFESTS: [&str; 17] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pytest.ini",
    "tox.ini",
    "go.mod",
    "CMakeLists.txt",
    "pom.xml",
    "settings.gradle",
    "settings.gradle.kts",
    "build.gradle",
    "build.gradle.kts",
    "GNUmakefile",
    "makefile",
    "Makefile",
];

/// Queries of the finders.
pub(super) trait Project {
    /// Returns true if there is a file at `path`, relative to the root.
    fn has_file(&self, path: &RelPath) -> bool;

    /// Returns true if there is a directory at `path`.
    fn has_directory(&self, path: &RelPath) -> bool;

    /// Returns true if something that is neither is at `path`, such as a link that leads out of the
    /// project, which nothing here follows.
    fn has_link(&self, path: &RelPath) -> bool;

    /// The text of the file at `path`, if it is there, is text, and isn't too large.
    fn read(&self, path: &RelPath) -> Option<String>;

    /// Returns true if a program of this name can be started.
    fn has_program(&self, name: &str) -> bool;

    /// The project's files, sorted.
    fn files(&self) -> &[RelPath];

    /// The files that were changed, if that is known.
    fn changed(&self) -> &[RelPath];
}

/// One directory of a project, for the finders.
pub(super) struct ProjectDirectory<'a> {
    pub(super) project: &'a dyn Project,
    pub(super) directory: Option<&'a RelPath>,
}

impl ProjectDirectory<'_> {
    /// `name` in this directory, as a path from the root.
    pub(super) fn path(&self, name: &str) -> Option<RelPath> {
        match self.directory {
            Some(directory) => directory.join(name).ok(),
            None => RelPath::parse(name).ok(),
        }
    }

    pub(super) fn has_file(&self, name: &str) -> bool {
        self.path(name).is_some_and(|path| self.project.has_file(&path))
    }

    pub(super) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has_file(name))
    }

    pub(super) fn has_directory(&self, name: &str) -> bool {
        self.path(name).is_some_and(|path| self.project.has_directory(&path))
    }

    pub(super) fn has_link(&self, name: &str) -> bool {
        self.path(name).is_some_and(|path| self.project.has_link(&path))
    }

    pub(super) fn read(&self, name: &str) -> Option<String> {
        self.project.read(&self.path(name)?)
    }

    pub(super) fn has_program(&self, name: &str) -> bool {
        self.project.has_program(name)
    }

    /// The project's files beneath this directory, by their path from it.
    pub(super) fn files(&self) -> impl Iterator<Item = &[u8]> {
        beneath(self.project.files(), self.directory)
    }

    /// The changed files beneath this directory, by their path from it.
    pub(super) fn changed(&self) -> impl Iterator<Item = &[u8]> {
        beneath(self.project.changed(), self.directory)
    }

    /// A check in this directory.
    pub(super) fn check(
        &self,
        kind: CheckKind,
        ecosystem: &'static str,
        command: impl Into<String>,
        why: impl Into<String>,
    ) -> Check {
        Check::new(kind, ecosystem, command, why).within(self.directory)
    }
}

/// The paths beneath `directory`, by what follows it.
fn beneath<'p>(paths: &'p [RelPath], directory: Option<&RelPath>) -> impl Iterator<Item = &'p [u8]> {
    let prefix: Vec<u8> =
        directory.map(|directory| [directory.as_bytes(), b"/"].concat()).unwrap_or_default();
    paths.iter().filter_map(move |path| path.as_bytes().strip_prefix(prefix.as_slice()))
}
